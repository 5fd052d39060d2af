//! Compares `CL.THROTTLE` with redis-cell itself, loaded into a Redis.

use std::cell::{Cell, RefCell};
use std::env;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::resp::support::{Redis, connect, serve};

/// Path of the module, if it was built: `SLUICEGATE_REDIS_CELL`, or the output of `make redis-cell`.
fn module() -> Option<PathBuf> {
    let built = "../../bench/target/redis-cell/release/libredis_cell.so";
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join(built);
    let module = env::var_os("SLUICEGATE_REDIS_CELL").map_or(built, PathBuf::from);
    module.canonicalize().ok()
}

#[derive(Clone, Debug)]
struct RecordedCall {
    key: u8,
    max_burst: u64,
    count: u64,
    quantity: u64,
}

fn recorded_call() -> impl Strategy<Value = RecordedCall> {
    // Each key has one quota, which refills so slowly that the order of the two servers does not matter.
    let quotas = [(0, 1), (1, 1), (4, 2), (9, 3), (99, 7)];
    (0..quotas.len(), 0u64..8).prop_map(move |(key, quantity)| {
        let (max_burst, count) = quotas[key];
        RecordedCall { key: key as u8, max_burst, count, quantity }
    })
}

#[test]
fn redis_cell_answers_the_same() {
    let Some(module) = module() else {
        eprintln!("redis-cell is not there, and not asked: build it with `make redis-cell`");
        return;
    };
    let other = RedisServer::builder(Flavour::Redis70)
        .config(format!("loadmodule {}", module.display()))
        .start();
    let server = serve(&[]);
    let theirs = Redis::connect(([127, 0, 0, 1], other.port()).into()).unwrap();
    let both = RefCell::new((connect(&server), theirs));
    let mut runner = TestRunner::new(Config { cases: 30, ..Config::default() });
    let rounds = Cell::new(0);
    runner
        .run(&prop::collection::vec(recorded_call(), 1..40), |questions| {
            let (ours, theirs) = &mut *both.borrow_mut();
            let round = rounds.replace(rounds.get() + 1);
            for RecordedCall { key, max_burst, count, quantity } in questions {
                let line =
                    format!("CL.THROTTLE {round}:{key} {max_burst} {count} 360000 {quantity}");
                let (ours, theirs) = (ours.numbers(&line), theirs.numbers(&line));
                prop_assert_eq!(&ours[..3], &theirs[..3], "{}", line);
                same_wait(ours[3], theirs[3], &line)?;
                same_wait(ours[4], theirs[4], &line)?;
            }
            Ok(())
        })
        .unwrap();
}

/// This version of redis-cell truncates fractions of a second; the next one rounds them up, which is correct. The
/// two servers also answer at different times.
fn same_wait(ours: i64, theirs: i64, line: &str) -> Result<(), TestCaseError> {
    let (is_none, differs_by) = (theirs == -1, ours - theirs);
    let is_same = if is_none { ours == -1 } else { (0..=2).contains(&differs_by) };
    prop_assert!(is_same, "{line}: {ours}, and theirs {theirs}");
    Ok(())
}
