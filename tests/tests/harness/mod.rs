//! Tests of the harness itself.
//!
//! | module | subject |
//! |---|---|
//! | `cluster` | clusters whose slots move and whose nodes fail |
//! | `proxy` | the proxy that injects faults |
//! | `sentinel` | sentinels that replace a master |
//! | `servers` | single servers: start, stop, crash |

mod cluster;
mod proxy;
mod sentinel;
mod servers;
