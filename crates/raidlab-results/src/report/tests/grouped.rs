//! What is said of the runs of a cell together.
use super::synthetic;
use crate::record::{Provenance, TrialRecord, Unit};
use crate::reference::WITHHELD;
use crate::report::group::{exclusions, group, median};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::rng::Stream;

#[test]
fn a_median_is_the_one_in_the_middle_or_between_two() {
    let of = |values: &[f64]| median(values.iter().copied());
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[3.0]), Some(3.0));
    assert_eq!(of(&[9.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(of(&[9.0, 1.0, 4.0, 2.0]), Some(3.0));
}

/// The reads and the writes of a phase that does both are void as a whole.
#[test]
fn what_is_kept_out_as_a_whole_is_told_once() {
    let mut trial = synthetic::trial("one", &[], "random", 0);
    let void = Flag::new(FlagKind::ServedFromCache, "the device read nothing");
    let phase = |name| {
        let mut phase = synthetic::phase(name, 50.0, Stream::new(0));
        phase.flags.push(void.clone());
        phase
    };
    trial.phases = ["mixed", "mixed: read", "mixed: write", "read"]
        .map(phase)
        .into();
    let trials = [trial];
    let told = exclusions(&group(&trials));
    let of = |phase: &str| format!("one, run 1, {phase}: {void}");
    assert_eq!(told, [of("mixed"), of("read")]);
}

/// What is remarked of one phase is told of no other, and what is remarked of a figure that counts for nothing of none.
#[test]
fn remarks_are_of_the_phase_and_of_runs_that_count() {
    let mut trials: Vec<TrialRecord> = (0..3)
        .map(|round| {
            let mut trial = synthetic::trial("one", &[], "dd", round);
            let phase = |name| synthetic::phase(name, 50.0, Stream::new(u64::from(round)));
            trial.phases = vec![phase("write"), phase("read")];
            trial
        })
        .collect();
    let short = Flag::new(FlagKind::TooShort, "over in 0.2 s");
    trials[0].phases[1].flags.push(short.clone());
    let void = Flag::new(FlagKind::ServedFromCache, "the device read nothing");
    assert!(void.voids);
    trials[1].phases[1].flags.extend([void, short.clone()]);
    trials[2].flags.push(Flag::new(FlagKind::OtherLoad, "21 %"));
    // The cell itself says so.
    let withheld = Flag::new(FlagKind::Other, WITHHELD);
    trials[1].phases[0].flags.push(withheld);
    let groups = group(&trials);
    let load = (
        FlagKind::OtherLoad,
        "other-load (1 of 3 runs): 21 %".to_owned(),
    );
    let short = (
        short.kind,
        "too-short (1 of 3 runs): over in 0.2 s".to_owned(),
    );
    assert_eq!(groups[0].remarks("write"), std::slice::from_ref(&load));
    let told = groups[0].remarks("read");
    assert!(
        told.len() == 2 && told.contains(&load) && told.contains(&short),
        "{told:?}"
    );
}

/// Runs that differ in what their offsets were drawn from, and in where their logs went, are repeats; in what they did, cells.
#[test]
fn seeds_and_names_of_logs_make_no_cell() {
    let run = |round, tool: &str, settings: &[(&str, &str)]| {
        let mut trial = synthetic::trial("one", &[], "fio", round);
        trial.provenance = Provenance::Imported {
            tool: tool.to_owned(),
            tool_version: None,
            file: format!("{round}.json"),
        };
        let own = settings
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        trial.settings = own.collect();
        trial
    };
    let cells = |tool: &str, a: &[(&str, &str)], b: &[(&str, &str)]| {
        let trials = [run(0, tool, a), run(1, tool, b)];
        group(&trials).len()
    };
    let (one, two) = (("randseed", "1"), ("randseed", "2"));
    assert_eq!(cells("fio", &[one, ("bs", "4k")], &[two, ("bs", "4k")]), 1);
    assert_eq!(
        cells("fio", &[("a/randseed", "1")], &[("a/randseed", "2")]),
        1
    );
    let log = |name| [("write_bw_log", name)];
    assert_eq!(cells("fio", &log("a"), &log("b")), 1);
    assert_eq!(cells("fio", &log("a"), &[]), 1);
    assert_eq!(cells("elbencho", &[("date", "a")], &[("date", "b")]), 1);
    // What is read and how makes another one.
    for (name, a, b) in [
        ("filename", "/dev/sda", "/dev/sdb"),
        ("randrepeat", "0", "1"),
        ("write_lat", "1", "2"),
        ("rate_iops", "1", "2"),
        ("log_synthetic", "1", "2"),
    ] {
        assert_eq!(cells("fio", &[(name, a)], &[(name, b)]), 2, "{name}");
    }
    assert_eq!(cells("bonnie++", &[one], &[two]), 2, "another tool's word");
}

/// Megabytes and operations a second have no mean: they are two cells, each called by what it counts.
#[test]
fn what_is_counted_in_another_unit_is_another_cell() {
    let run = |round, unit| {
        let mut trial = synthetic::trial("one", &[], "tool", round);
        let phase = |name| synthetic::phase(name, 50.0, Stream::new(u64::from(round)));
        trial.phases = vec![phase("write"), phase("read")];
        trial.phases[0].unit = unit;
        trial
    };
    let trials = [
        run(0, Unit::BytesPerSecond),
        run(1, Unit::PerSecond),
        run(2, Unit::BytesPerSecond),
    ];
    let groups = group(&trials);
    let labels: Vec<(&str, usize)> = groups
        .iter()
        .map(|group| (&group.label[..], group.trials.len()))
        .collect();
    assert_eq!(
        labels,
        [("one (write in bytes/s)", 2), ("one (write in 1/s)", 1)]
    );
}
