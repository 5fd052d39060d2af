//! Real, unmodified proxies with the files of `examples/proxies`, between a real upstream and the real binary; and
//! `/v1/authorize`, which they call.
//!
//! `make servers` fetches the proxies. A missing one fails the test; it is never skipped.

mod app;
mod authorize;
mod behaviour;
mod docs;
mod hostile;
mod proxy;
mod stage;

use proxy::Kind;

/// Defines the same tests for every proxy.
macro_rules! for_every_proxy {
    ($($name:ident => $kind:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn clients_see_the_limits() {
                behaviour::clients_see_the_limits($kind);
            }

            #[test]
            fn clients_cannot_bypass_the_limit() {
                behaviour::clients_cannot_bypass_the_limit($kind);
            }

            #[test]
            fn no_byte_and_no_length_gets_past() {
                hostile::no_byte_and_no_length_gets_past($kind);
            }

            #[test]
            fn only_a_failure_goes_on() {
                hostile::only_a_failure_goes_on($kind);
            }

            #[test]
            fn sluicegate_may_be_down() {
                behaviour::sluicegate_may_be_down($kind);
            }
        }
    )*};
}

for_every_proxy! {
    nginx_403 => Kind::Nginx403;
    nginx_429 => Kind::Nginx429;
    caddy => Kind::Caddy;
    caddy_short => Kind::CaddyShort;
    traefik => Kind::Traefik;
    haproxy => Kind::HaProxy;
}
