//! The Redis store on real, private servers.

#![cfg(test)]

#[path = "../store/asks.rs"]
mod asks;
mod batches;
mod deny_cache;
mod differential;
mod keys;
mod link;
#[path = "../store/naive.rs"]
#[expect(dead_code, reason = "the memory store's proofs look at more of it")]
mod naive;
mod overrides;
#[path = "../store/quotas.rs"]
#[expect(dead_code, reason = "the memory store's proofs draw from it in other ways")]
mod quotas;
mod reservations;
mod stored;
mod together;
