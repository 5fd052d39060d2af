use super::*;

fn parse(text: &str) -> Result<RedisUrl, RedisUrlError> {
    text.parse()
}

fn shown(text: &str) -> String {
    parse(text).unwrap().to_string()
}

fn tcp(host: &str, port: u16) -> Address {
    Address::Tcp { host: host.into(), port }
}

#[test]
fn every_form_is_read() {
    assert_eq!(shown("redis://localhost"), "redis://localhost:6379/0");
    assert_eq!(shown("REDISS://10.0.0.1:6380/3"), "rediss://10.0.0.1:6380/3");
    assert_eq!(shown("redis://[::1]:7000/"), "redis://[::1]:7000/0");
    assert_eq!(shown("redis://[::1]"), "redis://[::1]:6379/0");
    assert_eq!(shown("unix:/run/redis.sock"), "redis+unix:///run/redis.sock?db=0");
    assert_eq!(shown("unix:///run/a%20b@c?db=2"), "redis+unix:///run/a b@c?db=2");
    assert_eq!(shown("redis+unix://u:p@/r.sock?db=2"), "redis+unix://u:***@/r.sock?db=2");
    assert_eq!(
        shown("redis+sentinel://u:p@h1,h2:26380,[::2]/my%2Dmaster?db=1&sentinel_password=s"),
        "redis+sentinel://u:***@h1:26379,h2:26380,[::2]:26379/my-master?db=1"
    );
    assert_eq!(shown("rediss+cluster://u:p@h1,h2:6380"), "rediss+cluster://u:***@h1:6379,h2:6380");
    assert_eq!(shown("redis+cluster://h1/0"), "redis+cluster://h1:6379");
}

#[test]
fn the_parts_of_a_url_are_parsed() {
    let url = parse("redis://us%40er:p%2F%3a%25w:x@h:1/15").unwrap();
    assert_eq!(url.credentials().username.as_deref(), Some("us@er"));
    assert_eq!(url.credentials().password.as_ref().unwrap().expose(), "p/:%w:x");
    assert_eq!((url.tls(), url.db()), (false, 15));
    assert_eq!(url.topology(), &Topology::One(tcp("h", 1)));

    let url = parse("redis+sentinel://h/m?sentinel_username=su&sentinel_password=s%26p").unwrap();
    let sentinel = url.sentinel_credentials();
    assert_eq!(sentinel.username.as_deref(), Some("su"));
    assert_eq!(sentinel.password.unwrap().expose(), "s&p");
    assert_eq!(url.credentials(), &Credentials::default());
}

#[test]
fn a_user_without_a_password_is_not_the_default_user() {
    let url = parse("redis://limiter@h").unwrap();
    assert_eq!(url.credentials().username.as_deref(), Some("limiter"));
    assert_eq!(url.credentials().password.as_ref().unwrap().expose(), "");
    assert_eq!(url.to_string(), "redis://limiter@h:6379/0");

    let url = parse("redis://:pw@h").unwrap();
    assert_eq!(url.credentials().username, None);
    assert_eq!(url.to_string(), "redis://:***@h:6379/0");
    assert_eq!(parse("redis://@h").unwrap().credentials(), &Credentials::default());
}

#[test]
fn unknown_parts_are_refused() {
    use RedisUrlError as E;
    let cases = [
        ("", E::Scheme),
        ("localhost:6379", E::Scheme),
        ("http://h", E::Scheme),
        ("redis:h", E::Scheme),
        ("redis:/h", E::Scheme),
        (" redis://h", E::Character),
        ("redis://h\n", E::Character),
        ("redis://h\u{f6}st", E::Character),
        ("redis://", E::HostMissing { number: 1 }),
        ("redis://:6379", E::HostMissing { number: 1 }),
        ("redis://u:p@", E::HostMissing { number: 1 }),
        ("redis+cluster://a,,b", E::HostMissing { number: 2 }),
        ("redis+cluster://a,b,", E::HostMissing { number: 3 }),
        ("redis://a,b", E::HostsForOne),
        ("redis://[::1", E::Host { number: 1 }),
        ("redis://[::1]x", E::Host { number: 1 }),
        ("redis://[localhost]", E::Host { number: 1 }),
        ("redis://a*b", E::Host { number: 1 }),
        ("redis://h%00", E::Host { number: 1 }),
        ("redis://::1", E::HostMissing { number: 1 }),
        ("redis://h:", E::Port { number: 1 }),
        ("redis://h:0", E::Port { number: 1 }),
        ("redis://h:+1", E::Port { number: 1 }),
        ("redis://h:65536", E::Port { number: 1 }),
        ("redis://h:6379:1", E::Port { number: 1 }),
        ("redis://h/x", E::Database),
        ("redis://h/-1", E::Database),
        ("redis://h/1/2", E::Database),
        ("redis://h/65536", E::Database),
        ("redis://h?db=1", E::Parameter),
        ("redis+sentinel://h/m?db=1&db=2", E::Parameter),
        ("redis+sentinel://h/m?password=x", E::Parameter),
        ("redis+cluster://h/1", E::DatabaseOfCluster),
        ("redis+cluster://h?db=0", E::Parameter),
        ("redis+sentinel://h", E::Master),
        ("redis+sentinel://h/", E::Master),
        ("redis+sentinel://h/a/b", E::Master),
        ("redis+sentinel://h/a%0Ab", E::Master),
        ("unix:relative", E::SocketPath),
        ("unix:", E::SocketPath),
        ("redis+unix://host/path", E::SocketPath),
        ("redis://u:%zz@h", E::Encoding),
        ("redis://u:%4@h", E::Encoding),
        ("redis://u:%ff@h", E::Encoding),
        ("redis://u:%00@h", E::Encoding),
        ("redis://h#f", E::Fragment),
    ];
    for (text, error) in cases {
        assert_eq!(parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn the_bounds_hold() {
    let hosts = |count| format!("redis+cluster://{}", vec!["h"; count].join(","));
    assert!(parse(&hosts(HOSTS_MAX)).is_ok());
    assert_eq!(parse(&hosts(HOSTS_MAX + 1)), Err(RedisUrlError::HostsTooMany));
    let url = |bytes: usize| format!("redis://:{}@h", "p".repeat(bytes - "redis://:@h".len()));
    assert!(parse(&url(URL_BYTES_MAX)).is_ok());
    assert_eq!(parse(&url(URL_BYTES_MAX + 1)), Err(RedisUrlError::TooLong));
    assert!(parse(&format!("redis://{}", "h".repeat(254))).is_err());
    assert!(parse(&format!("unix:/{}", "h".repeat(107))).is_err());
}

#[test]
fn a_password_that_is_not_encoded_is_refused() {
    for password in ["p@ss", "p/ss", "p?ss", "p#ss", "@", "/", "a@b/c", "12/3"] {
        let error = parse(&format!("redis://user:{password}@host:6379/1")).unwrap_err();
        assert!(
            matches!(error, RedisUrlError::Credentials | RedisUrlError::Fragment),
            "{password}: {error:?}"
        );
    }
}

#[test]
fn no_secret_is_ever_shown() {
    let urls = [
        "redis://u:hunter2@h",
        "unix:/hunter?db=0",
        "redis+sentinel://u:hunter2@h/m?sentinel_username=s&sentinel_password=hunter2",
        "rediss+cluster://:hunter2@h",
    ];
    for text in urls {
        let url = parse(text).unwrap();
        let all = format!("{url} {url:?} {url:#?} {:?}", url.topology());
        assert!(!all.contains("hunter2"), "{all}");
        assert!(
            !format!("{:?} {:?}", url.credentials(), url.sentinel_credentials())
                .contains("hunter2")
        );
    }
    for text in [
        "redis://u:hunter2@",
        "hunter2://h",
        "redis://hunter2%",
        "redis://h:hunter2",
        "redis://h/hunter2",
        "redis://h?hunter2=hunter2",
        "redis://u:hunter2@a@b",
        "redis://[hunter2]",
        "unix:hunter2",
    ] {
        let error = parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn redirections_are_read() {
    let source = tcp("here", 7000);
    let to = |text| Address::redirected(text, &source);
    assert_eq!(to("10.0.0.2:7001"), Some(tcp("10.0.0.2", 7001)));
    assert_eq!(to("node.example:7001"), Some(tcp("node.example", 7001)));
    assert_eq!(to("::1:7001"), Some(tcp("::1", 7001)));
    assert_eq!(to("[::1]:7001"), Some(tcp("::1", 7001)));
    assert_eq!(to(":7001"), Some(tcp("here", 7001)));
    assert_eq!(Address::redirected(":7001", &Address::Unix("/s".into())), None);
    for bad in ["?:7001", "", "h", "h:", "h:0", "h:x", "h h:1", "h:65536"] {
        assert_eq!(to(bad), None, "{bad:?}");
    }
}
