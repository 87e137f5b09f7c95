//! Profiles as plans: what a user is told, what runs where, and that the phases do what is planned.
mod columns;
mod data;
mod refusals;

use super::*;
use crate::drive::{DriveOptions, Lane, drive};
use crate::flag::FlagKind;
use crate::op::{FileOp, Op};
use crate::outcome::PhaseOutcome;
use crate::phase::{Counted, Evidence};
use crate::time::Span;
use crate::units::Bytes;
use crate::workload::tests::Model;
use proptest::prelude::*;
use std::fmt::Write as _;

pub(super) fn directory() -> ProfileContext {
    ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Directory {
            free: Bytes::gib(100),
        },
        writable: true,
        alignment: 4096,
    }
}

pub(super) fn device(writable: bool) -> ProfileContext {
    ProfileContext {
        place: Place::Device {
            size: Bytes::gib(8),
        },
        writable,
        ..directory()
    }
}

pub(super) fn profile(name: &str, settings: &[(&str, &str)]) -> Profile {
    let mut profile = Profile::named(name).unwrap();
    for (setting, value) in settings {
        profile.set(setting, value).unwrap();
    }
    profile
}

/// A plan in words, one line a phase.
fn summary(plan: &Plan) -> String {
    let mut text = String::new();
    for phase in &plan.phases {
        let expected = phase.expected();
        let amount = match (phase.counted, expected.ops, expected.bytes, expected.time) {
            (Counted::Ops, Some(ops), ..) => format!("{ops} ops"),
            (_, _, Some(bytes), _) => Bytes(bytes).to_string(),
            (.., time) => format!("for {}", time.unwrap_or_default()),
        };
        let cold = if phase.cold { ", cold" } else { "" };
        let evidence = match phase.evidence {
            Evidence::None => String::new(),
            other => format!(", {other:?}"),
        };
        let jobs = phase.jobs.len();
        writeln!(
            text,
            "{}: {jobs} job(s), {amount}{cold}{evidence}",
            phase.id
        )
        .unwrap();
    }
    for skipped in &plan.skipped {
        writeln!(text, "not {}: {}", skipped.phase, skipped.why).unwrap();
    }
    for note in &plan.notes {
        writeln!(text, "note: {note}").unwrap();
    }
    for flag in &plan.flags {
        writeln!(text, "flag: {flag}").unwrap();
    }
    let (space, bytes) = (plan.space_needed, plan.bytes_planned());
    writeln!(
        text,
        "space {space}, {bytes} and {} planned",
        plan.time_planned()
    )
    .unwrap();
    text
}

/// The phases against a model, and what came of them.
pub(super) fn outcomes(plan: &Plan) -> Vec<PhaseOutcome> {
    let run = |phase: &Phase| {
        let mut lanes: Vec<_> = phase
            .jobs
            .iter()
            .enumerate()
            .map(|(number, job)| Lane {
                workload: job.workload.build(phase.stream(1, number)),
                depth: job.depth,
            })
            .collect();
        let mut model = Model::new(Span::from_micros(100));
        let options = DriveOptions {
            ramp: phase.ramp,
            ..DriveOptions::default()
        };
        let driven = drive(&mut lanes, &mut model, &options, &mut ()).unwrap();
        PhaseOutcome::from_tallies(&phase.id, &driven.tallies)
    };
    plan.phases.iter().map(run).collect()
}

#[test]
fn bonnie_with_its_defaults() {
    let plan = profile("bonnie", &[]).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn bonnie_fast_and_small() {
    let settings = [
        ("fast", "yes"),
        ("size", "64MiB"),
        ("files", "0"),
        ("seek-time", "0"),
    ];
    let plan = profile("bonnie", &settings).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn tiobench_with_its_defaults() {
    let plan = profile("tiobench", &[]).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn hdbench_with_its_defaults() {
    let plan = profile("hdbench", &[]).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn hdparm_on_a_device_that_is_only_read() {
    let plan = profile("hdparm", &[]).plan(&device(false)).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn dd_on_a_device_that_is_only_read() {
    let plan = profile("dd", &[]).plan(&device(false)).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn random_in_a_directory_and_on_a_device() {
    let plan = profile("random", &[]).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
    let plan = profile("random", &[]).plan(&device(false)).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn sequential_with_a_mixture_through_the_cache() {
    let settings = [
        ("read-percent", "70"),
        ("direct", "no"),
        ("total", "512MiB"),
        ("jobs", "3"),
    ];
    let plan = profile("sequential", &settings).plan(&directory()).unwrap();
    insta::assert_snapshot!(summary(&plan));
}

#[test]
fn the_resolved_settings_of_bonnie() {
    let plan = profile("bonnie", &[("size", "1000000kB")])
        .plan(&directory())
        .unwrap();
    let text: Vec<String> = plan
        .settings
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn the_phases_do_what_is_planned() {
    let small = [
        profile(
            "bonnie",
            &[("size", "1MiB"), ("files", "1"), ("seek-time", "0")],
        ),
        profile(
            "bonnie",
            &[
                ("size", "1MiB"),
                ("files", "0"),
                ("characters", "calls"),
                ("seek-time", "0"),
                ("fsync-writes", "yes"),
            ],
        ),
        profile("tiobench", &[("size", "1MiB"), ("random-time", "0")]),
        profile("hdbench", &[("sizes", "1MB,2MB")]),
        profile("dd", &[("bs", "4KiB"), ("count", "99")]),
        profile(
            "random",
            &[("total", "1MiB"), ("jobs", "3"), ("rate", "50000")],
        ),
        profile(
            "sequential",
            &[("total", "8MiB"), ("read-percent", "50"), ("fsync", "2")],
        ),
    ];
    for profile in small {
        let plan = profile.plan(&directory()).unwrap();
        for (phase, outcome) in plan.phases.iter().zip(outcomes(&plan)) {
            let expected = phase.expected();
            assert_eq!(
                expected.ops,
                Some(outcome.ops),
                "{} {}",
                profile.name(),
                phase.id
            );
            assert_eq!(
                expected.bytes,
                Some(outcome.bytes),
                "{} {}",
                profile.name(),
                phase.id
            );
        }
    }
}

#[test]
fn the_windows_of_hdparm_are_those_of_hdparm() {
    let plan = profile("hdparm", &[]).plan(&device(false)).unwrap();
    let seconds: Vec<f64> = outcomes(&plan)
        .iter()
        .map(|o| o.elapsed.as_secs_f64())
        .collect();
    // 8 GiB at 2 MiB in 0.1 ms are read in 0.4 s: the region ends before the window.
    for (seconds, wanted) in seconds.iter().zip([2.0, 0.41, 2.0, 0.41]) {
        assert!((seconds - wanted).abs() < 0.001, "{seconds} for {wanted}");
    }
}

#[test]
fn bonnie_counts_a_rewritten_block_once() {
    let settings = [("size", "8MiB"), ("files", "0"), ("fast", "yes")];
    let plan = profile("bonnie", &settings).plan(&directory()).unwrap();
    let all = outcomes(&plan);
    let rewrite = all.iter().find(|o| o.id == "rewrite").unwrap();
    assert_eq!((rewrite.bytes, rewrite.ops), (8 << 20, 1024));
    // Open, sync and close, and two calls a block, 0.1 ms each.
    assert_eq!(rewrite.elapsed, Span::from_micros(100 * (3 + 2048)));
}

#[test]
fn seekers_share_the_seeks_and_differ() {
    let plan = profile("bonnie", &[]).plan(&directory()).unwrap();
    let seeks = plan.phases.iter().find(|p| p.id == "seeks").unwrap();
    let shares: Vec<u64> = seeks
        .jobs
        .iter()
        .map(|job| match job.workload {
            crate::workload::spec::WorkloadSpec::Calls(spec) => spec.count,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shares, [1639, 1639, 1638, 1638, 1638]);
    let digest = |job: usize| seeks.jobs[job].workload.digest(seeks.stream(7, job));
    assert_ne!(digest(1), digest(2));
    assert_ne!(seeks.digest(7), seeks.digest(8));
    assert_eq!(seeks.digest(7), seeks.digest(7));
}

#[test]
fn profiles_are_stored_and_read_again() {
    for name in Profile::NAMES {
        let profile = Profile::named(name).unwrap();
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        let bare = format!("{{\"profile\":\"{name}\"}}");
        assert_eq!(serde_json::from_str::<Profile>(&bare).unwrap(), profile);
    }
    let misspelt = r#"{"profile":"bonnie","seekrs":3}"#;
    assert!(serde_json::from_str::<Profile>(misspelt).is_err());
}

#[test]
fn every_setting_can_be_set_to_what_it_shows() {
    for name in Profile::NAMES {
        let mut profile = Profile::named(name).unwrap();
        let shown = profile.settings();
        assert_eq!(shown.len(), profile.about().len(), "{name}");
        for (setting, value) in &shown {
            profile.set(setting, value).unwrap();
        }
        assert_eq!(profile, Profile::named(name).unwrap());
        // The resolved ones can be set as well, and resolve to themselves.
        let plan = profile.plan(&directory()).unwrap();
        for (setting, value) in &plan.settings {
            profile.set(setting, value).unwrap();
        }
        assert_eq!(
            profile.plan(&directory()).unwrap().phases,
            plan.phases,
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn no_setting_panics(
        name in 0_usize..7, setting in 0_usize..16, value in "(auto|yes|no|[0-9]{1,20}(KiB|GiB|GB|s|ms)?|\\PC{0,8})",
        memory: u64, size: u64, alignment: u32, writable: bool, kind in 0_u8..3,
    ) {
        let mut profile = Profile::named(Profile::NAMES[name]).unwrap();
        let settings = profile.about();
        let _ = profile.set(settings[setting % settings.len()].key, &value);
        let size = Bytes(size);
        let place = match kind {
            0 => Place::Directory { free: size },
            1 => Place::File { size },
            _ => Place::Device { size },
        };
        let context = ProfileContext { memory: Bytes(memory), place, writable, alignment };
        if let Ok(plan) = profile.plan(&context) {
            prop_assert!(!plan.phases.is_empty());
            let _ = (plan.bytes_planned(), plan.time_planned());
            for phase in &plan.phases {
                let _ = phase.expected();
            }
        }
    }
}
