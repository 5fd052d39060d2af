use sluicegate::{Limiter, MemoryStore, Quota, Rule};

use super::*;
use crate::config::{self, Privacy, Secret};
use crate::observe::audit::test_support::{NOON, folded_limiter, limiter, request, verdict};

fn limited(privacy: Privacy) -> MostLimited {
    let privacy_key = Some(Secret::new("a key"));
    let settings = config::Audit { privacy, privacy_key, ..config::Audit::default() };
    MostLimited::new(Pseudonyms::new(&settings))
}

fn moment(slot: u64) -> Moment {
    Moment { slot, at: NOON.plus_micros(slot as i64 * 5_000_000) }
}

/// Denies a user's requests `times` times.
fn deny(limited: &MostLimited, limiter: &Limiter, user_id: &str, times: u64, slot: u64) {
    let verdict = verdict(limiter, user_id);
    for _ in 0..times {
        limited.note_at(&request(user_id), &verdict, moment(slot));
    }
}

/// Bucket key, denials and mode of the subjects denied by this limiter's rules.
fn reported(limited: &MostLimited, limiter: &Limiter, slot: u64) -> Vec<(String, u64, Mode)> {
    let top = limited.top_in(&limiter.rules(), slot);
    top.into_iter().map(|it| (it.bucket.bucket_key, it.denied, it.rule.mode)).collect()
}

#[test]
fn the_most_denied_come_first_and_only_those_of_the_last_minute() {
    let (limited, limiter) = (limited(Privacy::Raw), limiter(&[Mode::Enforce]));
    deny(&limited, &limiter, "seldom", 1, 0);
    deny(&limited, &limiter, "often", 3, 0);
    deny(&limited, &limiter, "late", 1, 1);
    let of = |name: &str, denied| (format!("enforce1:{name}"), denied, Mode::Enforce);
    assert_eq!(
        reported(&limited, &limiter, 1),
        [of("often", 3), of("late", 1), of("seldom", 1)],
        "on a tie the latest denial comes first"
    );
    deny(&limited, &limiter, "often", 2, 11);
    assert_eq!(reported(&limited, &limiter, 11)[0], of("often", 5));
    // The first slot is now a minute old, then the second.
    assert_eq!(reported(&limited, &limiter, 12), [of("often", 2), of("late", 1)]);
    assert_eq!(reported(&limited, &limiter, 13), [of("often", 2)]);
    // After a long pause, counting begins again.
    deny(&limited, &limiter, "often", 1, 1000);
    assert_eq!(reported(&limited, &limiter, 1000), [of("often", 1)]);
    limited.clear();
    assert_eq!(reported(&limited, &limiter, 1000), []);
}

#[test]
fn shadow_rules_are_counted_separately() {
    let (limited, limiter) =
        (limited(Privacy::Raw), limiter(&[Mode::Enforce, Mode::Enforce, Mode::Shadow]));
    deny(&limited, &limiter, "42", 2, 0);
    // Of two enforced rules that deny, the verdict names one.
    let expected =
        [("enforce1:42".into(), 2, Mode::Enforce), ("shadow3:42".into(), 2, Mode::Shadow)];
    let mut both = reported(&limited, &limiter, 0);
    both.sort_by_key(|(bucket_key, ..)| bucket_key.clone());
    assert_eq!(both, expected);
    // A granted request is not counted.
    let granted = request("42").cost(1);
    limited.note(&granted, &limiter.check_now(&granted));
    assert_eq!(reported(&limited, &limiter, 0).len(), 2);
}

#[test]
fn subjects_are_reported_as_the_audit_records_them() {
    let limiter = limiter(&[Mode::Enforce]);
    let bucket = |privacy| {
        let limited = limited(privacy);
        deny(&limited, &limiter, "42", 1, 0);
        let bucket = limited.top_in(&limiter.rules(), 0).remove(0).bucket;
        [bucket.bucket_key, bucket.subject, bucket.user_id.unwrap(), bucket.ip_address.unwrap()]
    };
    assert_eq!(bucket(Privacy::Raw), ["enforce1:42", "42", "42", "203.0.113.9"]);
    assert_eq!(bucket(Privacy::Truncated), ["enforce1:42", "42", "42", "203.0.113.0/24"]);
    let hash = "h:WWTpCmNs_h5JlFh-pIxRMw";
    let [bucket_key, subject, user_id, ip] = bucket(Privacy::Hashed);
    assert_eq!([&*subject, &*user_id], [hash, hash]);
    assert!(bucket_key.starts_with("enforce1:") && !bucket_key.contains("42"), "{bucket_key}");
    assert!(ip.starts_with("h:"), "{ip}");
}

#[test]
fn a_bucket_that_is_denied_often_is_not_evicted_by_many_that_are_denied_once() {
    let (limited, limiter) = (limited(Privacy::Raw), limiter(&[Mode::Enforce]));
    let entries = || limited.shards.iter().map(|shard| shard.lock().entries.len()).sum::<usize>();
    for wave in 0..40 {
        for name in 0..500 {
            deny(&limited, &limiter, &format!("{wave}-{name}"), 1, 0);
        }
        deny(&limited, &limiter, "often", 3, 0);
    }
    assert_eq!(entries(), SHARDS * SHARD_ENTRIES_MAX);
    for shard in &limited.shards {
        let shard = shard.lock();
        assert_eq!(shard.places.len(), shard.entries.len());
        for (key, place) in &shard.places {
            assert_eq!(shard.entries[*place].key, *key);
        }
    }
    let top = reported(&limited, &limiter, 0);
    assert_eq!(top.len(), TOP_MAX);
    assert_eq!(top[0], ("enforce1:often".into(), 120, Mode::Enforce));
    assert!(top[1..].iter().all(|(_, denied, _)| *denied == 1), "never more than there were");
}

#[test]
fn deleted_rules_are_not_reported() {
    let (limited, limiter) = (limited(Privacy::Raw), limiter(&[Mode::Enforce]));
    deny(&limited, &limiter, "42", 1, 0);
    limiter.replace_rules(RuleSet::default());
    assert_eq!(reported(&limited, &limiter, 0), []);
}

#[test]
fn addresses_that_are_recorded_as_one_network_are_reported_once() {
    let rule = Rule::new(1, "ip:{ip}", Quota::per_second(1).unwrap()).unwrap();
    let limiter = Limiter::new(MemoryStore::new(), RuleSet::new(vec![rule]).unwrap());
    let limited = limited(Privacy::Truncated);
    for (slot, ip) in ["203.0.113.9", "203.0.113.10", "198.51.100.1"].into_iter().enumerate() {
        let request = Request::new().ip(ip).cost(2);
        limited.note_at(&request, &limiter.check_now(&request), moment(slot as u64));
    }
    let of = |network: &str, denied| (format!("ip:{network}"), denied, Mode::Enforce);
    assert_eq!(
        reported(&limited, &limiter, 2),
        [of("203.0.113.0/24", 2), of("198.51.100.0/24", 1)],
    );
    assert_eq!(limited.top_in(&limiter.rules(), 2)[0].last_at, moment(1).at);
}

#[test]
fn spellings_of_a_folded_path_are_reported_once() {
    let (limited, limiter) = (limited(Privacy::Raw), folded_limiter());
    for path in ["/login", "/LOGIN"] {
        let request = Request::new().endpoint(path).cost(2);
        limited.note_at(&request, &limiter.check_now(&request), moment(0));
    }
    assert_eq!(limited.shards.iter().map(|shard| shard.lock().entries.len()).sum::<usize>(), 1);
    assert_eq!(reported(&limited, &limiter, 0), [("e:/login".into(), 2, Mode::Enforce)]);
}

#[test]
fn buckets_with_the_same_readable_key_are_reported_separately() {
    let rule = Rule::new(1, "x:{tenant}:{user_id}", Quota::per_second(1).unwrap()).unwrap();
    let limiter = Limiter::new(MemoryStore::new(), RuleSet::new(vec![rule]).unwrap());
    let limited = limited(Privacy::Raw);
    for (tenant, user_id) in [("a:b", "c"), ("a", "b:c"), ("a:b", "c")] {
        let request = Request::new().attribute("tenant", tenant).user_id(user_id).cost(2);
        limited.note_at(&request, &limiter.check_now(&request), moment(0));
    }
    let of = |denied| ("x:a:b:c".to_owned(), denied, Mode::Enforce);
    assert_eq!(reported(&limited, &limiter, 0), [of(2), of(1)]);
}
