//! D2: a denial without a lock is one that the lock would have given: never from before a reset or a refund
//! that its thread knows of, never from the middle of another charge.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use sluicegate::{LocalStore, MemoryKey, MemoryStore, Quota};

use crate::store::support::{key, on_threads, part, remaining, tokens};

const ROUNDS: usize = 20_000;

/// A bucket that one thread uses while others are denied it: all their charges also include an exhausted
/// bucket, so that they take nothing from this one, but read it all the time.
struct Contended {
    store: MemoryStore,
    bucket: MemoryKey,
    empty: MemoryKey,
    quota: Quota,
    done: AtomicBool,
}

impl Contended {
    fn new() -> Self {
        let store = MemoryStore::new();
        let (bucket, empty) = (key(&store, "bucket"), key(&store, "empty"));
        let quota = tokens(10);
        assert!(store.charge_one_now(part(&empty, &quota, 10)).is_granted());
        Self { store, bucket, empty, quota, done: AtomicBool::new(false) }
    }

    fn take(&self, cost: u64) -> bool {
        self.store.charge_one_now(part(&self.bucket, &self.quota, cost)).is_granted()
    }

    fn be_denied_until_done(&self) {
        while !self.done.load(Ordering::Relaxed) {
            let charges = [part(&self.bucket, &self.quota, 1), part(&self.empty, &self.quota, 1)];
            let decisions = self.store.charge_now(&charges);
            assert!(!decisions[1].is_granted());
        }
    }

    /// Runs `work` on one thread while two others are denied.
    fn run(&self, work: impl Fn() + Sync) {
        on_threads(3, |thread| {
            if thread == 0 {
                let _done = SetWhenDropped(&self.done);
                work();
            } else {
                self.be_denied_until_done();
            }
        });
    }
}

/// Ends the other threads also when this one panics.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Once a reset has returned, the next charge sees it.
#[test]
fn d2_no_denial_is_older_than_the_reset_before_it() {
    let contended = Contended::new();
    contended.run(|| {
        for round in 0..ROUNDS {
            assert!(contended.take(10), "round {round}");
            assert!(!contended.take(1), "round {round}");
            assert!(contended.store.reset_now(&contended.bucket));
        }
    });
}

/// Once a refund has returned, exactly the refunded tokens can be taken.
#[test]
fn d2_no_denial_is_older_than_the_refund_before_it() {
    let contended = Contended::new();
    assert!(contended.take(10));
    contended.run(|| {
        for round in 0..ROUNDS {
            assert!(!contended.take(1), "round {round}");
            let figures = contended.store.refund_now(&contended.bucket, &contended.quota, 1);
            assert_eq!(figures.remaining, 1);
            assert!(!contended.take(2), "round {round}");
            assert!(contended.take(1), "round {round}");
        }
    });
}

/// The same for a thread that learned of the reset from another.
#[test]
fn d2_whoever_is_told_of_a_reset_sees_it() {
    let contended = Contended::new();
    let (tell_reset, resets) = mpsc::channel();
    let (tell_taken, takes) = mpsc::channel();
    std::thread::scope(|scope| {
        let contended = &contended;
        scope.spawn(|| contended.be_denied_until_done());
        scope.spawn(move || {
            let _done = SetWhenDropped(&contended.done);
            for round in resets {
                assert!(contended.take(10), "round {round}");
                assert!(!contended.take(1), "round {round}");
                tell_taken.send(()).unwrap();
            }
        });
        for round in 0..ROUNDS / 4 {
            contended.store.reset_now(&contended.bucket);
            tell_reset.send(round).unwrap();
            takes.recv().unwrap();
        }
        drop(tell_reset);
    });
}

/// Two buckets that are always charged together are seen so by all threads at all times: a denial never sees
/// one of them charged and the other not yet.
#[test]
fn m1_no_denial_sees_half_of_another_charge() {
    let quota = tokens(50_000);
    for _ in 0..10 {
        let contended = Contended::new();
        let store = &contended.store;
        let (left, right) = (key(store, "left"), key(store, "right"));
        contended.store.charge_now(&[part(&left, &quota, 1), part(&right, &quota, 1)]);
        on_threads(2, |thread| {
            if thread == 0 {
                let _done = SetWhenDropped(&contended.done);
                for _ in 0..ROUNDS {
                    let charges = [part(&left, &quota, 1), part(&right, &quota, 1)];
                    assert!(store.charge_now(&charges)[0].is_granted());
                }
                return;
            }
            while !contended.done.load(Ordering::Relaxed) {
                let charges = [
                    part(&left, &quota, 1),
                    part(&right, &quota, 1),
                    part(&contended.empty, &contended.quota, 1),
                ];
                let decisions = store.charge_now(&charges);
                assert_eq!(decisions[0].remaining, decisions[1].remaining);
            }
        });
        assert_eq!(remaining(store, &left, &quota), remaining(store, &right, &quota));
    }
}
