//! Every layout in every state builds, and does what it is asked.
use super::*;
use raidlab_core::flag::FlagKind;

/// Six disks of 2 GB, every layout in every state that it has; a few random operations.
fn text(state: &str, layouts: &str) -> String {
    format!(
        r#"
title = "All layouts"
disks = {{ model = "ST3250624AS", count = 6, override = {{ capacity = "2000007168B" }} }}
array.state = "{state}"

[profile]
name = "random"
time = "1s"
depth = 4
read-percent = 50

[factors]
layout = [{layouts}]
"#
    )
}

fn all(state: &str, layouts: &str) {
    let experiment = experiment(&text(state, layouts));
    for cell in &experiment.cells {
        let mut machine = machine(&experiment, cell);
        for run in run(&mut machine) {
            let (outcome, label) = (&run.outcome, &cell.label);
            assert!(outcome.ops > 10, "{label} {state}: {}", outcome.ops);
            let sum: u128 = outcome.latencies.iter().map(|(_, l)| l.sum()).sum();
            let area = outcome.mean_in_flight * outcome.elapsed.0 as f64;
            // Little: what waited, added over all, is what was in flight, added over time.
            assert!(
                (sum as f64 / area - 1.0).abs() < 0.02,
                "{label} {state}: {sum} {area}"
            );
            assert!(!run.why.sentence.is_empty() && run.why.shares.len() > 1);
            assert!(run.why.shares.iter().all(|s| (0.0..=1.0).contains(&s.busy)));
        }
    }
}

#[test]
fn clean() {
    all(
        "clean",
        r#""single", "linear", "raid0", "raid1", "raid10", "raid10-f2", "raid10-o2", "raid10-n3", "raid01 2x3", "raid1+0 3x2""#,
    );
}

#[test]
fn clean_with_parity() {
    all(
        "clean",
        r#""raid4", "raid5", "raid5-la", "raid6", "raid50 2x3""#,
    );
}

#[test]
fn degraded() {
    all(
        "degraded 1",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
    all("degraded 2", r#""raid1", "raid6""#);
}

#[test]
fn resyncing() {
    all(
        "resyncing",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
}

#[test]
fn rebuilding() {
    all(
        "rebuilding 1",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
}

/// A card acknowledges at the speed of its memory what disks need minutes for.
#[test]
fn what_is_left_in_the_cache_of_a_card_is_told() {
    let flags = |seconds: u32| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"ST3000DM001\", count = 4 }}\nhost.write-cache = false\n\
             [array]\nlayout = \"raid5\"\nengine = \"controller\"\n\
             [topology.controllers.card]\nkind = \"hardware-raid\"\n\
             [profile]\nname = \"random\"\nread-percent = 0\nsize = \"1GiB\"\ntime = \"{seconds}s\"\n"
        );
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let flags = runs.iter().flat_map(|run| run.outcome.flags.clone());
        let mut of = flags.filter(|flag| flag.kind == FlagKind::Unflushed);
        of.next().map(|flag| (flag.reason, flag.voids))
    };
    let Some((reason, false)) = flags(2) else {
        panic!("nothing is told");
    };
    assert!(
        reason.ends_with("were still in the controller's cache when the clock stopped"),
        "{reason}"
    );
}

/// What a drive's cache took is not written: a short phase is faster than the media, and that is told of the writes.
#[test]
fn what_is_left_in_the_caches_of_disks_is_told() {
    let flags = |cache: &str, seconds: u32| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 1 }}\narray.layout = \"single\"\n\
             host.write-cache = {cache}\n[profile]\nname = \"sequential\"\ntime = \"{seconds}s\"\n"
        );
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let kept = |run: &PhaseRun| {
            let flags = run.outcome.flags.iter();
            let mut of = flags.filter(|flag| flag.kind == FlagKind::Unflushed);
            of.next().map(|flag| (flag.reason.clone(), flag.voids))
        };
        runs.iter().map(kept).collect::<Vec<_>>()
    };
    let told = flags("true", 4);
    let [None, Some((reason, false))] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        reason.ends_with("still in their caches when the clock stopped"),
        "{reason}"
    );
    // Of a minute it is no great share, and without the cache nothing is.
    assert_eq!(flags("true", 60), [None, None]);
    assert_eq!(flags("false", 4), [None, None]);
}
