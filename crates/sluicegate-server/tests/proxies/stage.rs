//! A proxy between a client, Sluicegate and an application.

use std::net::IpAddr;

use crate::common::{Client, Launch, Response, Server};
use crate::proxies::app::App;
use crate::proxies::proxy::{Kind, Patience, Proxy};

/// Periods of an hour: buckets do not refill during a test.
pub(crate) const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "ip:{ip}"
tokens = 1
period = "1h"
burst_capacity = 3
conditions = { endpoint = "/limited/**" }

[[rule]]
rule_id = 2
key_pattern = "user:{user_id}"
tokens = 1
period = "1h"
burst_capacity = 2
conditions = { endpoint = "/users" }

[[rule]]
rule_id = 3
key_pattern = "login:{ip}"
tokens = 1
period = "1h"
burst_capacity = 4
conditions = { endpoint = "/login", method = "POST" }

[[rule]]
rule_id = 4
key_pattern = "crowd:{ip}"
tokens = 1
period = "1h"
burst_capacity = 20
conditions = { endpoint = "/crowd", host = "crowd.example" }
"#;

/// Address of the client where it matters, which Sluicegate does not trust.
pub(crate) const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) proxy: Proxy,
    pub(crate) sluicegate: Server,
    _app: App,
}

/// Sluicegate with the rules above, which trusts proxies on 127.0.0.1.
pub(crate) fn sluicegate() -> Launch {
    Launch::serve(&["--rules", "r.toml", "--proxies-trusted", "127.0.0.1"])
        .args(&["--authorize-user-header", "x-api-key"])
        .file("r.toml", RULES)
}

impl Stage {
    pub(crate) fn set(kind: Kind, patience: Patience) -> Self {
        let (app, sluicegate) = (App::start(), sluicegate().start());
        let proxy = Proxy::start(kind, patience, sluicegate.address, app.address);
        Self { proxy, sluicegate, _app: app }
    }

    /// Sends a request over a new connection.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        self.proxy.connect().request(method, path, headers, body.as_bytes()).unwrap()
    }

    /// Sends a request from an untrusted address.
    pub(crate) fn request_from_afar(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut client = Client::connect_from(CLIENT, self.proxy.address).unwrap();
        client.request(method, path, headers, b"").unwrap()
    }
}
