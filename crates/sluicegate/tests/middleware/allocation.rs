//! Over a store in memory nothing is boxed, and only response fields are allocated.

use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use http::{Request, Response};
use sluicegate::headers::{Draft, Headers, Legacy};
use sluicegate::middleware::Peer;
use tower::{Layer, Service, service_fn};

use crate::middleware::support::{layer, rule};

/// The allocations of one admitted call, of three tiers.
fn allocations(headers: Headers) -> u64 {
    let rules = vec![
        rule(1, "user:{user_id}", "1/hour burst 1000"),
        rule(2, "ip:{ip}", "1/hour burst 1000"),
        rule(3, "endpoint:/a", "1/hour burst 1000"),
    ];
    let layer = layer(rules).0.headers(headers).user_id(|_| Some("42".into()));
    let mut service =
        layer.layer(service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(())))));
    let mut once = || {
        let mut request = Request::get("/a").body(()).unwrap();
        request.extensions_mut().insert(Peer(IpAddr::from([203, 0, 113, 9])));
        let mut allocated = 0;
        let counted = measure(|| {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(service.poll_ready(&mut cx).is_ready());
            let answer = pin!(service.call(request)).poll(&mut cx);
            let Poll::Ready(Ok(answer)) = answer else { panic!("it is there at once") };
            assert_eq!(answer.status().as_u16(), 200);
        });
        allocated += counted.count_total;
        allocated
    };
    // Buckets are created once.
    once();
    once()
}

#[test]
fn a_call_allocates_nothing_but_header_fields() {
    let none = Headers { draft: Draft::Off, legacy: Legacy::Off };
    assert_eq!(allocations(none), 0);
    // Two lists, as text and as values; numbers; the list of fields, and the header map of the response.
    assert!(allocations(Headers::default()) <= 16, "{}", allocations(Headers::default()));
}
