//! What differs in the arrays and hosts of two experiments whose cells are called the same.
use super::compared::{STEADY, request, session, told};
use crate::record::{Session, TrialRecord};
use crate::report::{CompareRequest, compare_request};
use serde_json::{Value, json};

const LABELS: [&str; 2] = ["raid5", "raid10"];

/// Two layouts in one session.
fn trials(name: char) -> Vec<TrialRecord> {
    let all = LABELS.map(|label| session(name, label, &STEADY));
    all.concat()
}

/// The session of these trials, whose cells have such an array and host.
fn planned(trials: &[TrialRecord], array: &Value, host: &Value, disks: &Value) -> Session {
    let cells = LABELS.map(|label| {
        let mut array = array.clone();
        array["layout"] = label.into();
        json!({"label": label, "setup": {"array": array, "host": host}})
    });
    Session {
        id: trials[0].session.clone(),
        title: "layouts".to_owned(),
        created: "2026-11-01T00:00:00Z".to_owned(),
        command: "raidlab run".to_owned(),
        raidlab: "0.1.0".to_owned(),
        plan: Some(json!({"experiment": {"cells": cells, "disks": disks}})),
        planned: None,
        finished: true,
        notes: Vec::new(),
    }
}

fn compared(base: (Value, Value, Value), candidate: (Value, Value, Value)) -> String {
    let (a, b) = (trials('a'), trials('b'));
    let sessions = vec![
        planned(&a, &base.0, &base.1, &base.2),
        planned(&b, &candidate.0, &candidate.1, &candidate.2),
    ];
    let request = CompareRequest {
        sessions,
        ..request(a, b)
    };
    told(&compare_request(&request).unwrap())
}

/// Nothing of it is a factor, and no label tells it.
#[test]
fn what_no_label_tells_is_told() {
    let disks = |cache: u64| {
        let one = |name| json!({"group": "big", "name": name, "model": "nearline-24tb", "override": {"cache": cache}});
        json!([one("big0"), one("big1")])
    };
    let text = compared(
        (
            json!({"chunk": 65_536, "members": ["big0", "big1"]}),
            json!({"kernel": "6.1", "memory": 4_294_967_296_u64}),
            disks(1 << 28),
        ),
        (
            json!({"chunk": 524_288, "members": ["big0", "big1"], "stripe-cache": 4096}),
            json!({"kernel": "5.10", "memory": 4_294_967_296_u64, "write-back": {"limit": "5%"}}),
            disks(1 << 29),
        ),
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = "all: big: cache 512 MiB against 256 MiB, chunk 512 KiB against 64 KiB, dirty-limit 5% against none, \
        kernel 5.10 against 6.1, stripe-cache 4096 against none";
    assert!(words.join(" ").contains(line), "{text}");
}

#[test]
fn what_is_the_same_is_not_told() {
    let side = || {
        (
            json!({"chunk": 65_536}),
            json!({"kernel": "6.1"}),
            json!([]),
        )
    };
    let text = compared(side(), side());
    assert!(!text.contains("although they differ"), "{text}");
}
