//! How often, in which order, with which seed.
use crate::lab::{DD, Lab};
use serde_json::Value;
use std::collections::BTreeSet;

fn text<'a>(trial: &'a Value, field: &str) -> &'a str {
    trial[field].as_str().expect(field)
}

#[test]
fn places_and_profiles_are_interleaved() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("other")).expect("a directory");
    lab.run("bench old=place new=other -n 3 --profile dd,tiobench --size 1MiB --block-size 4KiB --count 16 --seed 3")
        .done()
        .says(&["4 arms to measure, 3 rounds", "[12/12]"])
        .prints(&["old", "new"]);
    let mut trials = lab.trials();
    trials.sort_by_key(|trial| trial["order"].as_u64());
    let orders: Vec<_> = trials
        .iter()
        .map(|t| t["order"].as_u64().expect("an order"))
        .collect();
    assert_eq!(orders, (0..12).collect::<Vec<_>>());
    let arm = |trial: &Value| {
        format!(
            "{} {}",
            text(&trial["cell"], "label"),
            text(trial, "profile")
        )
    };
    let rounds: Vec<Vec<String>> = trials
        .chunks(4)
        .map(|round| round.iter().map(arm).collect())
        .collect();
    for (number, (round, trials)) in rounds.iter().zip(trials.chunks(4)).enumerate() {
        assert_eq!(
            round.iter().collect::<BTreeSet<_>>().len(),
            4,
            "each arm once: {round:?}"
        );
        assert!(trials.iter().all(|trial| trial["round"] == number));
    }
    assert!(
        rounds.iter().any(|round| *round != rounds[0]),
        "an order of its own: {rounds:?}"
    );
    lab.assert_clean();
    crate::lab::assert_empty(&lab.path("other"));
}

#[test]
fn a_seed_asks_for_the_same_operations() {
    let lab = Lab::new();
    let digests = |seed: u32| {
        lab.bench(&format!(
            "-n 1 --profile random --size 4MiB --runtime 50ms --seed {seed}"
        ));
        lab.trials()
            .iter()
            .map(|t| t["digest"].as_u64().expect("a digest"))
            .collect::<Vec<_>>()
    };
    let (one, again, other) = (digests(1), digests(1), digests(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn automatic_repeats_end_at_the_most() {
    let lab = Lab::new();
    lab.bench(&format!(
        "--repeats auto --width 0.01% --max-repeats 3 {DD}"
    ))
    .says(&[
        "until ±0.0 % is reached, at most 3",
        "after 3 rounds",
        "is not known well enough",
    ]);
    assert_eq!(lab.trials().len(), 3);
    assert_eq!(lab.sessions()[0]["state"], "finished");
}

#[test]
fn automatic_repeats_end_when_it_is_enough() {
    let lab = Lab::new();
    // Any trial is within 99 % of the next: the least number of rounds is enough.
    lab.bench(
        "--repeats auto --width 99% --max-repeats 40 --profile random --size 4MiB --runtime 100ms",
    );
    let n = lab.trials().len();
    assert!((3..40).contains(&n), "{n}");
}

#[test]
fn no_round_begins_after_the_budget() {
    let lab = Lab::new();
    lab.bench("-n 500 --budget 500ms --profile random --size 4MiB --runtime 150ms")
        .says(&["the time budget is used up after", "of 500 rounds"]);
    let n = lab.trials().len();
    assert!((1..=20).contains(&n), "{n}");
    assert_eq!(lab.sessions()[0]["state"], "finished");
}

/// What is said at the start, without what depends on the machine.
#[test]
fn what_is_said_first() {
    let lab = Lab::new();
    let ran = lab.run("bench old=place --plan --profile tiobench,random --size 4MiB --runtime 500ms --repeats auto").refused(0);
    let text = ran
        .err
        .split(" of the memory of")
        .next()
        .unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("fits in the memory"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    2 arms to measure, rounds until ±5.0 % is reached, at most 30, in an order drawn by seed 1
      old · tiobench: 4 phases, moves 23.6 MiB or more, 500 ms by the clock a round
      old · random: 2 phases, moves 4 MiB or more, 1.00 s by the clock a round
    ");
}
