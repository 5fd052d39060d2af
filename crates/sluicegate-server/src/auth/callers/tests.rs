use super::*;
use crate::auth::tokens;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn stored(caller_id: u64, name: &str) -> StoredCaller {
    StoredCaller {
        caller_id,
        name: name.into(),
        rights: Rights::from_iter([Right::Check]),
        namespace: None,
        hash: Some(tokens::hash(name)),
        certificate: None,
        expires_at: None,
        created_by: "admin".into(),
        created_at: Timestamp::from_micros(0),
    }
}

fn callers(stored: &[StoredCaller]) -> Callers {
    let callers = Callers::default();
    callers.set(stored, NOW);
    callers
}

fn name(caller: Option<Arc<Caller>>) -> Option<String> {
    caller.map(|caller| caller.name.to_string())
}

#[test]
fn a_caller_is_found_by_its_token_and_its_name() {
    let callers = callers(&[stored(1, "a"), stored(2, "b"), stored(3, "c")]);
    for it in ["a", "b", "c"] {
        let hash = tokens::hash(it);
        assert_eq!(name(callers.by_hash(&hash)).as_deref(), Some(it));
        assert_eq!(name(callers.by_name(it.as_bytes(), &hash)).as_deref(), Some(it));
    }
    let hash = tokens::hash("a");
    assert_eq!(name(callers.by_name(b"b", &hash)), None, "the token of another");
    assert_eq!(name(callers.unverified(b"b")).as_deref(), Some("b"));
    assert_eq!(name(callers.unverified(b"made up")), None);
    assert_eq!(name(callers.by_hash(&tokens::hash("d"))), None);
    assert_eq!(name(callers.by_hash(&[0; 32])), None);
    let mut near = hash;
    for byte in 0..32 {
        near[byte] ^= 1;
        assert_eq!(name(callers.by_hash(&near)), None, "byte {byte}");
        near[byte] ^= 1;
    }
}

#[test]
fn a_caller_without_a_token_is_found_by_no_hash() {
    let certificate = Some("a.example".into());
    let only = StoredCaller { hash: None, certificate, ..stored(1, "a") };
    let callers = callers(&[only]);
    assert_eq!(name(callers.by_hash(&[0; 32])), None);
    assert_eq!(name(callers.by_certificate(&["a.example".into()])).as_deref(), Some("a"));
}

#[test]
fn the_first_name_of_the_certificate_counts() {
    let with = |id, name: &str, certificate: &str| StoredCaller {
        certificate: Some(certificate.into()),
        ..stored(id, name)
    };
    let uri = "spiffe://Example/b";
    let callers = callers(&[with(1, "a", "A.Example"), with(2, "b", uri), stored(3, "c")]);
    let found = |names: &[&str]| {
        let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
        name(callers.by_certificate(&names))
    };
    assert_eq!(found(&["a.example", uri]).as_deref(), Some("a"));
    assert_eq!(found(&[uri, "a.example"]).as_deref(), Some("b"));
    assert_eq!(found(&["x.example", uri]).as_deref(), Some("b"));
    assert_eq!(found(&["spiffe://example/b"]), None, "case matters in a URI");
    assert_eq!(found(&["x.example", "c", ""]), None);
    assert_eq!(found(&[]), None);
}

#[test]
fn an_expired_caller_exists_and_is_not_found() {
    let at = |micros| Some(Timestamp::from_micros(micros));
    let certificate = Some("a.example".into());
    let both = [
        StoredCaller { expires_at: at(1_000_000), certificate, ..stored(1, "a") },
        StoredCaller { expires_at: at(1_000_001), ..stored(2, "b") },
    ];
    let callers = callers(&both);
    assert_eq!(name(callers.by_hash(&tokens::hash("a"))), None);
    assert_eq!(name(callers.by_certificate(&["a.example".into()])), None);
    let other = callers.by_hash(&tokens::hash("b")).unwrap();
    assert!(other.may(Right::Check) && !other.may(Right::Take));
    assert_eq!(callers.len(), 1);
    let epoch = callers.epoch();
    callers.set(&both, Timestamp::from_micros(1_000_001));
    assert_ne!(callers.epoch(), epoch);
    assert_eq!(callers.len(), 0);
    assert!(!callers.is_empty(), "expired callers exist");
    callers.set(&[], NOW);
    assert!(callers.is_empty());
}

#[test]
fn the_epoch_changes_with_the_callers_only() {
    let callers = Callers::default();
    assert!(callers.is_empty());
    let mut epochs = vec![callers.epoch()];
    let mut changed = |callers: &Callers| {
        let is_new = *epochs.last().unwrap() != callers.epoch();
        epochs.push(callers.epoch());
        is_new
    };
    callers.set(&[], NOW);
    assert!(!changed(&callers));
    callers.set(&[stored(1, "a")], NOW);
    assert!(changed(&callers));
    callers.set(&[stored(1, "a")], NOW);
    assert!(!changed(&callers));
    for other in [
        StoredCaller { rights: Rights::ALL, ..stored(1, "a") },
        StoredCaller { namespace: Some("team".into()), ..stored(1, "a") },
        StoredCaller { hash: Some([1; 32]), ..stored(1, "a") },
        StoredCaller { certificate: Some("a.example".into()), ..stored(1, "a") },
    ] {
        callers.set(&[other], NOW);
        assert!(changed(&callers));
    }
    callers.set(&[], NOW);
    assert!(changed(&callers));
}

#[test]
fn uses_are_collected_once_and_survive_a_change() {
    let callers = callers(&[stored(1, "a"), stored(2, "b"), stored(3, "c")]);
    assert!(callers.take_used().is_empty());
    for it in ["a", "c"] {
        callers.by_hash(&tokens::hash(it)).unwrap().note_use();
    }
    let changed = StoredCaller { rights: Rights::ALL, ..stored(3, "c") };
    callers.set(&[stored(1, "a"), changed], NOW);
    assert_eq!(callers.take_used(), [1, 3]);
    assert!(callers.take_used().is_empty());
}

#[test]
fn callers_beyond_the_maximum_are_ignored() {
    let many: Vec<_> =
        (1..=CALLERS_MAX as u64 + 1).rev().map(|id| stored(id, &id.to_string())).collect();
    let callers = callers(&many);
    assert_eq!(callers.len(), CALLERS_MAX);
    assert!(callers.by_hash(&tokens::hash("1")).is_some());
    assert!(callers.by_hash(&tokens::hash("1001")).is_none());
}
