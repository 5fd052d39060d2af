use std::time::Duration;

use sluicegate::{LocalStore, ManualClock, MemoryStore, Micros, Space, Store};

use super::*;
use crate::app::RequestLimits;
use crate::doors::resp::commands::table::CommandSpec;
use crate::doors::resp::parser::Parser;

/// Recorded answers of redis-cell. The file says how they were recorded.
const RECORDED: &str = include_str!("redis_cell.txt");

fn limits() -> RequestLimits {
    RequestLimits {
        body_bytes_max: 1,
        body_timeout: Duration::from_secs(1),
        batch_max: 1,
        attributes_max: 1,
        value_bytes_max: 64,
        take_full_max: Duration::from_hours(24 * 366),
    }
}

/// Numbers of a reply, as sent.
fn answer(store: &MemoryStore<ManualClock>, line: &str) -> Vec<i64> {
    let input = format!("{line}\r\n");
    let mut parser = Parser::default();
    let command = parser.next(input.as_bytes()).unwrap().unwrap();
    let known = CommandSpec::find(command.argument(0)).unwrap();
    let take = read_throttle(&command, known, &limits(), &mut None).unwrap();
    let key = store.key(Space::Take, &[take.key]);
    let charge = sluicegate::Charge::new(&key, &take.quota, take.cost);
    let mut replies = Replies::default();
    take.answer(&store.charge_one_now(charge), false, &mut replies);
    let text = String::from_utf8(replies.bytes).unwrap();
    let numbers = text.strip_prefix("*5\r\n").unwrap().split_terminator("\r\n");
    numbers.map(|line| line.strip_prefix(':').unwrap().parse().unwrap()).collect()
}

/// Corrects redis-cell's rounding: a wait is never reported as zero.
fn corrected(mut theirs: Vec<i64>) -> Vec<i64> {
    if theirs[0] == 1 && theirs[3] == 0 {
        theirs[3] = 1;
    }
    if theirs[2] < theirs[1] && theirs[4] == 0 {
        theirs[4] = 1;
    }
    theirs
}

#[test]
fn redis_cell_answers_the_same() {
    let mut corrections = 0;
    for recorded in RECORDED.split("quota: ").skip(1) {
        let mut lines = recorded.lines();
        let quota = lines.next().unwrap();
        let clock = ManualClock::new(Micros::new(1_700_000_000_000_000));
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let mut now_ms = 0;
        for (question, theirs) in lines.map(|line| line.split_once(" : ").unwrap()) {
            let (at_ms, quantity) = question.split_once(' ').unwrap();
            let at_ms: u64 = at_ms.parse().unwrap();
            clock.advance(Duration::from_millis(at_ms - now_ms));
            now_ms = at_ms;
            let theirs: Vec<i64> =
                theirs.split(' ').map(|number| number.parse().unwrap()).collect();
            let right = corrected(theirs.clone());
            corrections += usize::from(right != theirs);
            let ours = answer(&store, &format!("CL.THROTTLE key {quota} {quantity}"));
            assert_eq!(ours, right, "{quota}: {question}");
        }
    }
    assert_eq!(corrections, 4, "some of redis-cell's answers are rounded down");
}

#[test]
fn quotas_that_fill_too_slowly_are_refused() {
    let fault = |line: &str| {
        let input = format!("{line}\r\n");
        let mut parser = Parser::default();
        let command = parser.next(input.as_bytes()).unwrap().unwrap();
        let known = CommandSpec::find(command.argument(0)).unwrap();
        let read = match known.name {
            table::Name::Take => read_take(&command, known, &limits()),
            _ => read_throttle(&command, known, &limits(), &mut None),
        };
        read.err().map(|fault| fault.to_string())
    };
    assert_eq!(fault("CL.THROTTLE key 365 1 86400"), None);
    assert_eq!(fault("SG.TAKE key 366 1 86400000"), None);
    let refused = fault("CL.THROTTLE key 366 1 86400").unwrap();
    assert!(refused.contains("max_burst, count_per_period and period"), "{refused}");
    assert!(refused.contains("31708800 s") && refused.contains("store.take_full_max"), "{refused}");
    let refused = fault("SG.TAKE key 367 1 86400000").unwrap();
    assert!(refused.contains("capacity, tokens and period_ms"), "{refused}");
    assert!(fault("SG.TAKE key 1 1 31622400001 ALGORITHM fixed_window").is_some());
}

/// Most commands charge one bucket: the other variant must not make the enum larger, or need a box.
#[test]
fn questions_are_all_of_a_size() {
    let (take, check) = (size_of::<Take<'_>>(), size_of::<Check<'_>>());
    assert!(check <= take + 32, "{take} and {check}");
}
