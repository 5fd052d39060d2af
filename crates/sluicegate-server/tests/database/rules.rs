//! Rules: creation, change, deletion, replacement, and history.

use std::time::Duration;

use sluicegate::rules::{Override, RULES_MAX, RuleSet, RuleSpec, Scope};
use sluicegate::{Algorithm, Decimal, Refill};
use sluicegate_server::data::{DataError, OverrideSpec, Page, RuleFilter, StoredRule, rule_json};

use crate::database::common::{FIRST, Place, by, on_both, spec};

on_both!(
    the_starter_rules_are_those_of_the_library,
    a_rule_is_made_changed_and_deleted,
    every_column_comes_back_as_it_was_written,
    conflicting_and_invalid_rules_are_rejected,
    a_stale_version_is_refused,
    lists_are_filtered_and_go_on_where_they_stopped,
    rules_are_replaced_whole_or_not_at_all,
    unchanged_rules_are_left_alone,
    two_rules_can_swap_their_patterns,
    ten_thousand_rules_are_the_most,
    writers_at_the_same_time_do_not_lose_changes,
    chosen_ids_are_not_changed,
    a_dry_run_is_the_same_change_rolled_back,
);

async fn a_dry_run_is_the_same_change_rolled_back(place: Place) {
    let database = place.migrated().await;
    let dry = database.dry_run();
    let before = database.load().await.unwrap();
    let history = database.rule_changes(None, FIRST).await.unwrap();
    let unchanged = async || {
        assert_eq!(database.load().await.unwrap(), before, "the generation included");
        assert_eq!(database.rule_changes(None, FIRST).await.unwrap(), history);
    };

    // Errors are the same, with the rule that is in the way.
    let clash = spec("ip:{ip}");
    let error = dry.create_rule(&clash, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { rule_id: Some(7), .. }), "{error}");
    assert_eq!(database.create_rule(&clash, &by("me")).await.unwrap_err(), error);
    let moved = RuleSpec { rule_id: 5, ..clash };
    let error = dry.update_rule(&moved, None, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { rule_id: Some(7), .. }), "{error}");
    assert_eq!(database.update_rule(&moved, None, &by("me")).await.unwrap_err(), error);
    let taken = RuleSpec { rule_id: 4, ..spec("new") };
    let error = dry.create_rule(&taken, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { rule_id: Some(4), .. }), "{error}");
    assert_eq!(database.create_rule(&taken, &by("me")).await.unwrap_err(), error);
    let stale = dry.delete_rule(5, Some(9), &by("me")).await;
    assert_eq!(stale, database.delete_rule(5, Some(9), &by("me")).await);
    unchanged().await;

    // So are answers, however often the change is tried.
    let changed = RuleSpec { description: "changed".into(), ..before.rules[0].spec.clone() };
    let all = [spec("one"), changed.clone(), spec("two")];
    for _ in 0..3 {
        let made = dry.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
        assert_eq!((made.spec.rule_id, made.version), (10, 1));
        assert_eq!(dry.update_rule(&changed, Some(1), &by("me")).await.unwrap().version, 2);
        assert_eq!(dry.delete_rule(3, None, &by("me")).await.unwrap().spec.rule_id, 3);
        let replaced = dry.replace_rules(&all, Some(before.generation), &by("me")).await.unwrap();
        assert_eq!(replaced.generation, before.generation);
        unchanged().await;
    }
    let would_be = dry.replace_rules(&all, None, &by("me")).await.unwrap();
    let planned = dry.update_rule(&changed, None, &by("me")).await.unwrap();
    let replaced = database.replace_rules(&all, Some(before.generation), &by("me")).await.unwrap();
    assert_eq!(replaced.generation, database.generation().await.unwrap());
    assert_eq!(replaced.old, would_be.old);
    let named = |rules: &[StoredRule]| -> Vec<_> {
        rules.iter().map(|rule| (rule.spec.clone(), rule.version)).collect()
    };
    assert_eq!(named(&replaced.new), named(&would_be.new));
    let ids: Vec<_> = replaced.new.iter().map(|rule| rule.spec.rule_id).collect();
    assert_eq!(ids, [1, 10, 11]);
    assert_eq!(database.rule(1).await.unwrap(), planned);
    assert_eq!(database.load().await.unwrap().rules, replaced.new);
}

async fn the_starter_rules_are_those_of_the_library(place: Place) {
    let database = place.migrated().await;
    let loaded = database.load().await.unwrap();
    let built = loaded.rules.iter().map(|rule| rule.spec.build().unwrap()).collect();
    let set = RuleSet::new(built).unwrap();
    assert_eq!(set.rules(), RuleSet::starter().rules());
    assert!(loaded.rules.iter().all(|rule| rule.version == 1));
    assert!(loaded.overrides.is_empty() && loaded.tokens.is_empty());
    // Deleted rules stay deleted, and their ids are not reused.
    database.delete_rule(9, None, &by("me")).await.unwrap();
    database.delete_rule(3, None, &by("me")).await.unwrap();
    drop(database);
    let again = place.migrated().await;
    assert_eq!(again.load().await.unwrap().rules.len(), 7);
    assert_eq!(again.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap().spec.rule_id, 10);
}

async fn a_rule_is_made_changed_and_deleted(place: Place) {
    let database = place.migrated().await;
    let before = database.generation().await.unwrap();
    let made = database.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    assert_eq!((made.spec.rule_id, made.version), (10, 1));
    assert_eq!((made.spec.scope, made.spec.burst_capacity), (Some(Scope::Ip), Some(10)));
    assert_eq!(database.rule(10).await.unwrap(), made);

    let wanted = RuleSpec { burst_capacity: Some(99), ..made.spec.clone() };
    let changed = database.update_rule(&wanted, Some(1), &by("you")).await.unwrap();
    assert_eq!((&changed.spec, changed.version), (&wanted, 2));
    assert_eq!(changed.created_at, made.created_at);
    assert_eq!(database.rule(10).await.unwrap(), changed);
    // An update without a difference is not a change.
    assert_eq!(database.update_rule(&wanted, Some(2), &by("you")).await.unwrap(), changed);

    let subject = OverrideSpec {
        rule_id: 10,
        subject: "203.0.113.9".into(),
        instead: Override::Blocked,
        reason: String::new(),
        expires_at: None,
    };
    database.put_override(&subject, None, &by("me")).await.unwrap();
    assert_eq!(database.delete_rule(10, Some(2), &by("they")).await.unwrap(), changed);
    assert_eq!(database.rule(10).await, Err(DataError::NotFound("rule")));
    assert_eq!(database.delete_rule(10, None, &by("they")).await, Err(DataError::NotFound("rule")));
    assert_eq!(
        database.update_rule(&wanted, None, &by("they")).await,
        Err(DataError::NotFound("rule"))
    );
    let loaded = database.load().await.unwrap();
    assert!(loaded.overrides.is_empty(), "a rule takes its overrides with it");
    assert!(loaded.generation > before);

    let changes = database.rule_changes(Some(10), FIRST).await.unwrap();
    let who: Vec<_> = changes.iter().map(|change| change.changed_by.as_str()).collect();
    assert_eq!(who, ["they", "you", "me"]);
    assert_eq!((&changes[2].old, &changes[2].new), (&None, &Some(rule_json(&made))));
    assert_eq!(changes[1].old, Some(rule_json(&made)));
    assert_eq!(changes[1].new, Some(rule_json(&changed)));
    assert_eq!((&changes[0].old, &changes[0].new), (&Some(rule_json(&changed)), &None));
    let rest = Page { after: Some(changes[1].change_id), limit: 5 };
    assert_eq!(database.rule_changes(None, rest).await.unwrap(), changes[2..]);
}

async fn every_column_comes_back_as_it_was_written(place: Place) {
    let database = place.migrated().await;
    let everything = RuleSpec {
        rule_id: 77,
        key_pattern: "queue:{tenant}:{user_id}".into(),
        scope: Some(Scope::Custom),
        rate_per_second: Some(Decimal::from_f64(0.016).unwrap()),
        burst_capacity: Some(3),
        algorithm: Algorithm::LeakyBucket,
        max_wait: Some(Duration::from_micros(1_500_001)),
        plan: "gold \u{1f947}".into(),
        mode: sluicegate::Mode::Shadow,
        on_error: sluicegate::OnError::Deny,
        is_active: false,
        description: "it's \"quoted\"; -- and\nlong: '); DROP TABLE rate_limit_rules;".into(),
        conditions: vec![
            ("method".into(), "!POST|PUT".into()),
            ("endpoint".into(), "/a/**".into()),
        ],
        name: "it's a \"name\"".into(),
        replaces: vec!["b, c".into(), "a".into()],
        ..RuleSpec::default()
    };
    let stored = database.create_rule(&everything, &by("me")).await.unwrap();
    assert_eq!((stored.spec.tokens, stored.spec.rate_per_second), (Some(1), None));
    assert_eq!(stored.spec.period, Some(Duration::from_micros(62_500_000)));
    assert_eq!(stored.spec.conditions[0].0, "endpoint");
    assert_eq!(database.rule(77).await.unwrap(), stored);
    let json = rule_json(&stored);
    assert_eq!(json["rate_per_second"], 0.016);
    assert_eq!((&json["period"], &json["max_wait"]), (&62.5.into(), &1.500_001.into()));
    assert_eq!(json["conditions"]["method"], "!POST|PUT");
    assert_eq!((&json["name"], &json["replaces"][0]), (&"it's a \"name\"".into(), &"b, c".into()));
    assert_eq!(json["created_at"], stored.created_at.to_string());
    let whole = rule_json(&database.rule(4).await.unwrap());
    assert_eq!((&whole["rate_per_second"], &whole["period"]), (&1000.into(), &1.into()));
    assert_eq!((&whole["plan"], &whole["max_wait"]), (&().into(), &().into()));
    assert_eq!((&whole["name"], whole["replaces"].as_array()), (&().into(), Some(&Vec::new())));
    // An unlimited rule needs no quota; a default one is stored.
    let unlimited = RuleSpec {
        rule_id: 70,
        key_pattern: "free".into(),
        mode: sluicegate::Mode::Unlimited,
        ..RuleSpec::default()
    };
    let stored = database.create_rule(&unlimited, &by("me")).await.unwrap();
    assert_eq!(stored.spec.tokens, Some(1_000_000));
    assert_eq!(database.rule(70).await.unwrap(), stored);
    // A window has no burst capacity, although the column shows its tokens.
    let window = RuleSpec { algorithm: Algorithm::SlidingWindow, ..spec("window:{ip}") };
    let window = database.create_rule(&window, &by("me")).await.unwrap();
    assert_eq!(window.spec, window.spec.build().unwrap().spec());
    assert_eq!(window.spec.burst_capacity, None);
    assert_eq!(database.rule(78).await.unwrap(), window);
    assert_eq!(rule_json(&window)["burst_capacity"], 10);
    // A rate with more tokens than the column holds is stored reduced.
    let huge = RuleSpec {
        tokens: Some(1 << 60),
        period: Some(Duration::from_micros(1 << 50)),
        burst_capacity: Some(7),
        ..spec("huge:{ip}")
    };
    let stored = database.create_rule(&huge, &by("me")).await.unwrap();
    assert_eq!(
        (stored.spec.tokens, stored.spec.period),
        (Some(1 << 10), Some(Duration::from_micros(1)))
    );
    for rule_id in [78, 79] {
        database.delete_rule(rule_id, None, &by("me")).await.unwrap();
    }
    // The next id follows the largest one ever used, also if it was chosen.
    assert_eq!(database.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap().spec.rule_id, 80);
    database.delete_rule(80, None, &by("me")).await.unwrap();
    let interval = RuleSpec { refill: Refill::Interval, ..spec("new:{ip}") };
    assert_eq!(database.create_rule(&interval, &by("me")).await.unwrap().spec.rule_id, 81);
}

async fn conflicting_and_invalid_rules_are_rejected(place: Place) {
    let database = place.migrated().await;
    let before = database.load().await.unwrap();
    let refused = async |spec: RuleSpec, field: &str| {
        let error = database.create_rule(&spec, &by("me")).await.unwrap_err();
        let found = match &error {
            DataError::Conflict { field, .. } => field,
            DataError::Refused(errors) => errors[0].field,
            error => panic!("{error}"),
        };
        assert_eq!(found, field, "{error}");
    };
    refused(spec("ip:{ip}"), "key_pattern").await;
    refused(RuleSpec { plan: "pro".into(), ..spec("user:{user_id}") }, "key_pattern").await;
    refused(RuleSpec { rule_id: 4, ..spec("new") }, "rule_id").await;
    refused(RuleSpec { rule_id: 1 << 53, ..spec("new") }, "rule_id").await;
    refused(RuleSpec { tokens: Some(0), ..spec("new") }, "tokens").await;
    refused(spec("new:{"), "key_pattern").await;
    refused(RuleSpec { description: "\0".into(), ..spec("new") }, "description").await;
    let twice = vec![("ip".into(), "a".into()), ("ip".into(), "b".into())];
    refused(RuleSpec { conditions: twice, ..spec("new") }, "conditions").await;
    let same = RuleSpec { rule_id: 7, ..spec("global") };
    let error = database.update_rule(&same, None, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { field: "key_pattern", .. }), "{error}");
    assert_eq!(database.load().await.unwrap(), before);
    // The same key pattern for another plan is allowed.
    let other = RuleSpec { plan: "default".into(), ..spec("ip:{ip}") };
    database.create_rule(&other, &by("me")).await.unwrap();
}

async fn a_stale_version_is_refused(place: Place) {
    let database = place.migrated().await;
    let rule = database.rule(1).await.unwrap();
    let wanted = RuleSpec { description: "changed".into(), ..rule.spec };
    let stale = Err(DataError::Stale { current: 1 });
    assert_eq!(database.update_rule(&wanted, Some(2), &by("me")).await, stale);
    assert_eq!(database.delete_rule(1, Some(7), &by("me")).await, stale);
    database.update_rule(&wanted, Some(1), &by("me")).await.unwrap();
    let error = database.update_rule(&wanted, Some(1), &by("me")).await.unwrap_err();
    assert_eq!(error, DataError::Stale { current: 2 });
    let error = database.replace_rules(&[], Some(1), &by("me")).await.unwrap_err();
    let current = database.generation().await.unwrap();
    assert_eq!(error, DataError::Stale { current });
}

async fn lists_are_filtered_and_go_on_where_they_stopped(place: Place) {
    let database = place.migrated().await;
    let ids = async |filter: RuleFilter, page: Page| -> Vec<u64> {
        let rules = database.rules(&filter, page).await.unwrap();
        rules.iter().map(|rule| rule.spec.rule_id).collect()
    };
    let all = RuleFilter::default();
    assert_eq!(ids(all.clone(), Page { after: None, limit: 4 }).await, [1, 2, 3, 4]);
    assert_eq!(ids(all.clone(), Page { after: Some(7), limit: 4 }).await, [8, 9]);
    assert_eq!(ids(all.clone(), Page { after: Some(u64::MAX), limit: 4 }).await, [0u64; 0]);
    let of = |plan: &str| RuleFilter { plan: Some(plan.into()), ..RuleFilter::default() };
    assert_eq!(ids(of("pro"), FIRST).await, [2]);
    assert_eq!(ids(of(""), FIRST).await, [4, 5, 6, 7, 8, 9]);
    let ip = RuleFilter { scope: Some("ip".into()), ..all.clone() };
    assert_eq!(ids(ip, FIRST).await, [5, 7]);
    let off = RuleSpec { is_active: false, ..database.rule(2).await.unwrap().spec };
    database.update_rule(&off, None, &by("me")).await.unwrap();
    let inactive = RuleFilter { is_active: Some(false), ..all };
    assert_eq!(ids(inactive.clone(), FIRST).await, [2]);
    // Filters are combined.
    assert_eq!(ids(RuleFilter { plan: Some("free".into()), ..inactive }, FIRST).await, [0u64; 0]);
}

async fn rules_are_replaced_whole_or_not_at_all(place: Place) {
    let database = place.migrated().await;
    let before = database.load().await.unwrap();
    let bad = [spec("one"), RuleSpec { tokens: Some(0), ..spec("two") }];
    assert!(matches!(
        database.replace_rules(&bad, None, &by("me")).await,
        Err(DataError::Refused(_))
    ));
    let twice = [spec("one"), spec("one")];
    let error = database.replace_rules(&twice, None, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { field: "key_pattern", .. }), "{error}");
    let same_id = [RuleSpec { rule_id: 5, ..spec("one") }, RuleSpec { rule_id: 5, ..spec("two") }];
    let error = database.replace_rules(&same_id, None, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { field: "rule_id", .. }), "{error}");
    assert_eq!(database.load().await.unwrap(), before);

    let new = [
        spec("ip:{ip}"),
        RuleSpec { rule_id: 20, ..spec("twenty") },
        spec("first"),
        RuleSpec { rule_id: 11, ..spec("eleven") },
        spec("second"),
    ];
    database.replace_rules(&new, Some(before.generation), &by("me")).await.unwrap();
    let rules = database.load().await.unwrap().rules;
    let names: Vec<_> = rules
        .iter()
        .map(|rule| (rule.spec.rule_id, rule.spec.key_pattern.as_str(), rule.version))
        .collect();
    let expected = [
        (7, "ip:{ip}", 2),
        (10, "first", 1),
        (11, "eleven", 1),
        (12, "second", 1),
        (20, "twenty", 1),
    ];
    assert_eq!(names, expected);
    database.replace_rules(&[], None, &by("me")).await.unwrap();
    assert!(database.load().await.unwrap().rules.is_empty());
    assert_eq!(database.create_rule(&spec("x"), &by("me")).await.unwrap().spec.rule_id, 21);
}

async fn unchanged_rules_are_left_alone(place: Place) {
    let database = place.migrated().await;
    let before = database.load().await.unwrap();
    let specs: Vec<_> = before.rules.iter().map(|rule| rule.spec.clone()).collect();
    database.replace_rules(&specs, None, &by("me")).await.unwrap();
    assert_eq!(database.load().await.unwrap(), before);
    assert!(database.rule_changes(None, FIRST).await.unwrap().is_empty());
    let mut other = specs.clone();
    other[0].description = "changed".into();
    database.replace_rules(&other, None, &by("me")).await.unwrap();
    let changes = database.rule_changes(None, FIRST).await.unwrap();
    assert_eq!(changes.iter().map(|change| change.rule_id).collect::<Vec<_>>(), [1]);
}

async fn two_rules_can_swap_their_patterns(place: Place) {
    let database = place.migrated().await;
    let mut specs: Vec<_> =
        database.load().await.unwrap().rules.into_iter().map(|rule| rule.spec).collect();
    let [first, second, ..] = &mut specs[6..] else { panic!("nine rules") };
    std::mem::swap(&mut first.key_pattern, &mut second.key_pattern);
    database.replace_rules(&specs, None, &by("me")).await.unwrap();
    assert_eq!(database.rule(7).await.unwrap().spec.key_pattern, "global");
    assert_eq!(database.rule(8).await.unwrap().spec.key_pattern, "ip:{ip}");
}

async fn ten_thousand_rules_are_the_most(place: Place) {
    let database = place.migrated().await;
    let specs = (0..RULES_MAX).map(|n| spec(&format!("endpoint:/{n}")));
    let mut specs: Vec<_> = specs.collect();
    database.replace_rules(&specs, None, &by("me")).await.unwrap();
    assert_eq!(database.load().await.unwrap().rules.len(), RULES_MAX);
    let error = database.create_rule(&spec("another"), &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Refused(_)), "{error}");
    specs.push(spec("another"));
    let error = database.replace_rules(&specs, None, &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Refused(_)), "{error}");
}

async fn writers_at_the_same_time_do_not_lose_changes(place: Place) {
    let database = place.migrated().await;
    let other = place.open().await;
    let writers = (0..8).map(|n| {
        let database = if n % 2 == 0 { database.clone() } else { other.clone() };
        tokio::spawn(async move {
            for m in 0..5 {
                database.create_rule(&spec(&format!("rule{n}-{m}")), &by("me")).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let rules = database.load().await.unwrap().rules;
    assert_eq!(rules.len(), 9 + 40);
    assert_eq!(rules.last().unwrap().spec.rule_id, 49);
    // Of many concurrent creations of the same rule, one succeeds.
    let racers = (0..8).map(|n| {
        let database = if n % 2 == 0 { database.clone() } else { other.clone() };
        tokio::spawn(
            async move { database.create_rule(&spec("the same"), &by("me")).await.is_ok() },
        )
    });
    let mut winners = 0;
    for racer in racers.collect::<Vec<_>>() {
        winners += u32::from(racer.await.unwrap());
    }
    assert_eq!(winners, 1);
}

async fn chosen_ids_are_not_changed(place: Place) {
    let database = place.migrated().await;
    let by_hand = "INSERT INTO rate_limit_rules (rule_id, key_pattern, scope, tokens, period, burst_capacity) \
                   VALUES (11, 'by hand', 'custom', 1, 1000000, 1)";
    place.by_hand(by_hand).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..3 {
        let made = database.create_rule(&spec(&format!("rule{n}")), &by("me")).await.unwrap();
        ids.push(made.spec.rule_id);
    }
    assert!(ids.is_sorted() && !ids.contains(&11), "{ids:?}");
    assert_eq!(database.rule(11).await.unwrap().spec.key_pattern, "by hand");
    // The last id is used: earlier ones can still be chosen.
    let last = RuleSpec { rule_id: (1 << 53) - 1, ..spec("last") };
    database.create_rule(&last, &by("me")).await.unwrap();
    for error in [
        database.create_rule(&spec("next"), &by("me")).await.unwrap_err(),
        database.replace_rules(&[spec("next")], None, &by("me")).await.unwrap_err(),
    ] {
        let DataError::Refused(errors) = &error else { panic!("{error}") };
        assert_eq!(errors[0].field, "rule_id");
    }
    database.create_rule(&RuleSpec { rule_id: 500, ..spec("next") }, &by("me")).await.unwrap();
}
