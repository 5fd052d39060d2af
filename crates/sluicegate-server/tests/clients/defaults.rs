//! Redis clients as applications use them: with their defaults, in both versions of the protocol, in pipelines of
//! thousands, with a password, and after an error. The commands are in the programs beside this file.

use std::path::Path;

use crate::clients::program::{Program, serve};
use crate::common::Launch;

fn works(program: &str) {
    let server = serve();
    let guarded = Launch::serve(&[]).with_resp().env("SLUICEGATE_RESP_PASSWORD", "canary").start();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/programs").join(program);
    let printed = Program::new(&source)
        .ask(&server)
        .env("SLUICEGATE_GUARDED", &guarded.address_of("resp").to_string())
        .run();
    assert_eq!(printed, "done\n", "{program}");
}

#[test]
fn redis_py() {
    works("redis_py.py");
}

#[test]
fn node_redis() {
    works("node_redis.mjs");
}

#[test]
fn ioredis() {
    works("ioredis.mjs");
}

#[test]
fn redis_rb() {
    works("redis_rb.rb");
}

#[test]
fn phpredis() {
    works("phpredis.php");
}

#[test]
fn predis() {
    works("predis.php");
}
