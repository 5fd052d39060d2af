//! The Redis store on real, private servers.

mod batches;
mod deny_cache;
mod differential;
mod keys;
mod link;
mod overrides;
mod reservations;
mod stored;
mod together;
