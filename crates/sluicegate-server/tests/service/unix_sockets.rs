//! Listeners on Unix sockets: permissions, stale files, shutdown, and the commands that use them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::common::{Launch, PATIENCE, Server};

/// A service whose HTTP listener is `s.sock` in its folder, with these options.
fn launch(options: &str) -> Launch {
    let launch = Launch::serve(&[]);
    let address = format!("unix:{}{options}", socket(launch.folder()).display());
    launch.env("SLUICEGATE_LISTEN_HTTP", &address)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("s.sock")
}

fn exchange(path: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(path: &Path, target: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    exchange(path, head.as_bytes())
}

fn rules_of(path: &Path) -> Server {
    let launch = Launch::serve(&[]);
    launch.env("SLUICEGATE_LISTEN_HTTP", &format!("unix:{}", path.display())).start()
}

#[test]
fn http_and_resp_are_served_and_the_files_are_removed() {
    let launch = launch("");
    let (http, resp) = (socket(launch.folder()), launch.folder().join("r.sock"));
    let server = launch.env("SLUICEGATE_LISTEN_RESP", &format!("unix:{}", resp.display())).start();
    assert!(get(&http, "/livez").starts_with("HTTP/1.1 200 "));
    // This machine alone reaches it, so the administration is open, and other names are not its own.
    assert!(get(&http, "/v1/rules").starts_with("HTTP/1.1 200 "));
    let foreign = b"GET /v1/rules HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(exchange(&http, foreign).starts_with("HTTP/1.1 403 "));
    let answer = exchange(&resp, b"CLIENT INFO\r\nSG.TAKE k 5 1 1000\r\nQUIT\r\n");
    assert!(answer.contains("addr=127.0.0.1:0 "), "{answer}");
    assert!(answer.ends_with("+OK\r\n"), "{answer}");
    for path in [&http, &resp] {
        let found = fs::symlink_metadata(path).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o7777, 0o600);
    }
    server.signal("TERM");
    assert_eq!(server.wait().code, Some(0));
    assert!(!http.exists() && !resp.exists());
}

#[test]
fn mode_and_group_are_set() {
    // A number may be used as well as a name, and every user is in its own group.
    let own = fs::metadata("/proc/self").unwrap().gid();
    let launch = launch(&format!("?mode=0666&group={own}"));
    let path = socket(launch.folder());
    let server = launch.start();
    let found = fs::symlink_metadata(&path).unwrap();
    assert_eq!((found.permissions().mode() & 0o7777, found.gid()), (0o666, own));
    drop(server);

    let groups = fs::read_to_string("/etc/group").unwrap();
    let is_own = |line: &&str| line.split(':').nth(2) == Some(&own.to_string());
    if let Some(line) = groups.lines().find(is_own) {
        let name = line.split(':').next().unwrap();
        let launch = self::launch(&format!("?group={name}"));
        let path = socket(launch.folder());
        let _server = launch.start();
        assert_eq!(fs::symlink_metadata(&path).unwrap().gid(), own);
    }
    let finished = self::launch("?group=no-such-group").run();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains("no group `no-such-group`"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("the folder of"), "{}", finished.stderr);
}

#[test]
fn a_stale_socket_is_replaced_and_nothing_else() {
    let launch = launch("");
    let path = socket(launch.folder());
    // A process that was killed leaves its file.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = launch.start();
    assert!(get(&path, "/livez").starts_with("HTTP/1.1 200 "));

    let second =
        Launch::serve(&[]).env("SLUICEGATE_LISTEN_HTTP", &format!("unix:{}", path.display()));
    let finished = second.run();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains("another process listens there"), "{}", finished.stderr);
    // The refused process has not removed the file of the other.
    assert!(get(&path, "/livez").starts_with("HTTP/1.1 200 "));
    drop(server);

    let launch = self::launch("").file("s.sock", "precious");
    let path = socket(launch.folder());
    let kept = path.with_extension("kept");
    fs::hard_link(&path, &kept).unwrap();
    let finished = launch.run();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains("a file of another kind"), "{}", finished.stderr);
    assert!(finished.stderr.contains("help: remove "), "{}", finished.stderr);

    let finished =
        Launch::serve(&[]).env("SLUICEGATE_LISTEN_HTTP", "unix:/nonexistent/s.sock").run();
    assert_eq!(finished.code, Some(3));
    assert!(
        finished.stderr.contains("the folder of /nonexistent/s.sock must exist"),
        "{}",
        finished.stderr
    );
}

/// A replica that takes the path over keeps it when the old one ends.
#[test]
fn the_socket_of_another_process_is_not_removed() {
    let launch = launch("");
    let path = socket(launch.folder());
    let old = launch.start();
    fs::remove_file(&path).unwrap();
    let _new = rules_of(&path);
    old.signal("TERM");
    assert_eq!(old.wait().code, Some(0));
}

#[test]
fn commands_reach_it() {
    let launch = launch("");
    let path = socket(launch.folder());
    let url = format!("unix:{}", path.display());
    let server = launch.start();
    let finished = Launch::new(&["rules", "list", "--server", &url]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("/login"), "{}", finished.stdout);
    let check = ["check", "--ip", "203.0.113.9", "--endpoint", "/login"];
    let finished = Launch::new(&check).env("SLUICEGATE_SERVER", &url).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    drop(server);
    let finished = Launch::new(&["rules", "list", "--server", &url]).run();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains(&format!("cannot reach {url}: ")), "{}", finished.stderr);
}

/// The header is read from a Unix socket as from any other, and its peer is 127.0.0.1.
#[test]
fn a_proxy_may_use_it() {
    let launch = launch("").env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "http");
    let path = socket(launch.folder());
    let _server = launch
        .env("SLUICEGATE_PROXIES_TRUSTED", "127.0.0.1")
        .env("SLUICEGATE_LISTEN_ANONYMOUS", "true")
        .env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple")
        .start();
    let ask = "GET /v1/rules HTTP/1.1\r\nhost: limits.example\r\nconnection: close\r\n\r\n";
    let proxied = format!("PROXY TCP4 203.0.113.9 192.0.2.1 51234 8080\r\n{ask}");
    // Others reach it through the proxy: a token is needed, and any host name is accepted.
    let answer = exchange(&path, proxied.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    // Without the header, the connection is closed.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(ask.as_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0);
}
