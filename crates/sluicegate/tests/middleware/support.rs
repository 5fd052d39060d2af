//! Limiters on manual clocks, services to limit, and a client for real sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::TokioIo;
use sluicegate::middleware::{RateLimitLayer, ResponseBody};
use sluicegate::{Clock, Limiter, ManualClock, MemoryStore, Micros, Quota, Rule, RuleSet, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

/// A time in 2023, not at the edge of any window.
pub(crate) const NOW: Micros = Micros::new(1_700_000_000_123_456);

pub(crate) type TestStore = MemoryStore<ManualClock>;

/// A limited service of any type.
pub(crate) type App =
    BoxCloneSyncService<Request<String>, Response<ResponseBody<Full<Bytes>>>, Infallible>;

/// A limiter with these rules, and its clock.
pub(crate) fn limiter(rules: Vec<Rule>) -> (Limiter<TestStore>, ManualClock) {
    let clock = ManualClock::new(NOW);
    let store = MemoryStore::builder().clock(clock.clone()).max_buckets(10_000).build();
    (Limiter::new(store, RuleSet::new(rules).unwrap()), clock)
}

/// A layer with these rules, and its clock.
pub(crate) fn layer(rules: Vec<Rule>) -> (RateLimitLayer<TestStore>, ManualClock) {
    let (limiter, clock) = limiter(rules);
    (RateLimitLayer::new(limiter), clock)
}

/// A rule with a quota such as `10/s burst 50`.
pub(crate) fn rule(rule_id: u64, key_pattern: &str, quota: &str) -> Rule {
    Rule::new(rule_id, key_pattern, self::quota(quota)).unwrap()
}

/// A quota such as `10/s burst 50`.
pub(crate) fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

/// A limited service that answers `ok`.
pub(crate) fn guarded<S: Store>(layer: &RateLimitLayer<S>) -> App {
    guarding(layer, || Response::new("ok".into()))
}

/// A limited service with this response.
pub(crate) fn guarding<S: Store>(
    layer: &RateLimitLayer<S>,
    answer: impl Fn() -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
) -> App {
    let service = service_fn(move |_: Request<String>| std::future::ready(Ok(answer())));
    BoxCloneSyncService::new(layer.layer(service))
}

/// A request for a path, without further attributes.
pub(crate) fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).unwrap()
}

/// Calls a service once, and reads the whole response.
pub(crate) async fn call<T, B, RB>(service: &T, request: Request<B>) -> Response<String>
where
    T: Service<Request<B>, Response = Response<RB>, Error = Infallible> + Clone,
    RB: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let Ok(response) = service.clone().oneshot(request).await;
    text(response).await
}

/// The whole response.
pub(crate) async fn text<B>(response: Response<B>) -> Response<String>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, String::from_utf8(body.into()).unwrap())
}

/// The statuses of this many sequential calls.
pub(crate) async fn statuses(app: &App, path: &str, calls: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..calls {
        statuses.push(call(app, get(path)).await.status().as_u16());
    }
    statuses
}

/// The text of a header field.
pub(crate) fn field<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

/// The runtime's time, as a clock for stores.
#[derive(Debug)]
pub(crate) struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Micros {
        NOW.after(self.0.elapsed())
    }
}

/// A limiter on the runtime's time, which tests pause.
pub(crate) fn on_runtime_time(rules: Vec<Rule>) -> Limiter<MemoryStore<RuntimeClock>> {
    let store = MemoryStore::builder().clock(RuntimeClock(Instant::now())).build();
    Limiter::new(store, RuleSet::new(rules).unwrap())
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A listener on a free port, and its address.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// One request over a connection of its own.
pub(crate) async fn fetch(
    address: SocketAddr,
    path: &str,
    fields: &[(&str, &str)],
) -> Response<String> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut request = Request::get(path).header("host", address.to_string());
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = text(sender.send_request(request).await.unwrap()).await;
    drop(sender);
    connection.await.unwrap().unwrap();
    response
}
