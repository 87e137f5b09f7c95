//! The tools' own columns.
use super::*;
use crate::histogram::Latencies;
use crate::op::OpClass;
use crate::outcome::CpuTime;

/// 100 MiB in 2 s by 25 600 calls of 4 KiB, three of them slow, with a quarter of one processor.
fn outcome(id: &str) -> PhaseOutcome {
    let mut latency = Latencies::new();
    latency.record_n(Span::from_micros(75), 25_597);
    latency.record_n(Span::from_secs(3), 2);
    latency.record(Span::from_secs(11));
    PhaseOutcome {
        ops: 25_600,
        bytes: 100 << 20,
        elapsed: Span::from_secs(2),
        latencies: vec![(OpClass::Read, latency)],
        cpu: CpuTime {
            user: Span::from_millis(100),
            system: Span::from_millis(400),
            kernel_threads: None,
        },
        ..PhaseOutcome::from_tallies(id, &[])
    }
}

fn columns(profile: &Profile, number: usize) -> String {
    let plan = profile.plan(&directory()).unwrap();
    let phase = &plan.phases[number];
    let figures = profile.figures(phase, &outcome(&phase.id));
    let line = |f: &Figure| {
        format!(
            "{} = {}: {} {} {}",
            f.name,
            f.value,
            f.column,
            f.text(),
            f.unit
        )
    };
    figures.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_profile_prints_its_tools_columns() {
    insta::assert_snapshot!(columns(&profile("bonnie", &[]), 1));
    insta::assert_snapshot!(columns(&profile("bonnie", &[]), 5));
    insta::assert_snapshot!(columns(&profile("tiobench", &[]), 2));
    insta::assert_snapshot!(columns(&profile("hdbench", &[]), 0));
    insta::assert_snapshot!(columns(&profile("hdparm", &[]), 1));
    insta::assert_snapshot!(columns(&profile("dd", &[]), 0));
    insta::assert_snapshot!(columns(&profile("random", &[]), 0));
}

#[test]
fn without_time_there_are_no_rates() {
    let bonnie = profile("bonnie", &[]);
    let plan = bonnie.plan(&directory()).unwrap();
    let nothing = PhaseOutcome::from_tallies("block-write", &[]);
    assert_eq!(bonnie.figures(&plan.phases[1], &nothing), []);
}
