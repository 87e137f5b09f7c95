//! Baseline against candidate with a gate.
use super::synthetic;
use crate::record::TrialRecord;
use crate::reference::study;
use crate::report::{
    CompareRequest, GateResult, ReportError, TerminalOptions, compare_request, render_terminal,
};
use raidlab_stats::Confidence;
use std::collections::BTreeMap;

fn of(label: &str) -> Vec<TrialRecord> {
    let mut trials = synthetic::repeats();
    trials.retain(|t| t.cell.label == label);
    trials
}

fn request(baseline: Vec<TrialRecord>, candidate: Vec<TrialRecord>) -> CompareRequest {
    CompareRequest {
        names: ["before".to_owned(), "after".to_owned()],
        baseline,
        candidate,
        environments: BTreeMap::new(),
        gate: Some(0.95),
        gate_latency: BTreeMap::new(),
        margin: 0.02,
        confidence: Confidence::P95,
        allow_mixed_streams: false,
    }
}

#[test]
fn a_gate_passes_what_is_better_or_equal() {
    let report = compare_request(&request(of("one"), of("two"))).unwrap();
    assert_eq!(report.overall, GateResult::Pass);
    let told: Vec<_> = report
        .phases
        .iter()
        .map(|p| (p.phase.as_str(), p.verdict.as_str(), p.gate))
        .collect();
    assert_eq!(
        told,
        [
            ("write", "better", GateResult::Pass),
            ("read", "equivalent", GateResult::Pass)
        ]
    );
    let text = render_terminal(&report.document, TerminalOptions::new(110, false));
    insta::assert_snapshot!("compare-terminal", text);
}

#[test]
fn a_gate_fails_what_is_proved_worse() {
    let report = compare_request(&request(of("two"), of("one"))).unwrap();
    assert_eq!(report.overall, GateResult::Fail);
    let write = &report.phases[0];
    // 47/93 = 0.505
    assert!((write.ratio.unwrap() - 47.0 / 93.0).abs() < 0.01);
    assert_eq!(
        (write.verdict.as_str(), write.gate),
        ("worse", GateResult::Fail)
    );
}

#[test]
fn one_run_proves_nothing() {
    let study = study("pata-raid0").unwrap().unwrap();
    let row = |name: &str| -> Vec<TrialRecord> {
        let mut trials = study.trials();
        trials.retain(|t| t.cell.label == name);
        trials
    };
    let one = row("md raid0 1 disk");
    let slower = row("md raid0 2 disks, 1 channel");
    let report = compare_request(&request(one.clone(), slower)).unwrap();
    assert_eq!(report.overall, GateResult::Warn);
    assert_eq!(report.phases[0].verdict, "n=1, no interval");
    let withheld = row("md raid0 4 disks");
    let report = compare_request(&request(one, withheld)).unwrap();
    assert_eq!(report.overall, GateResult::NotJudged);
    assert_eq!(report.phases[0].verdict, "withheld");
}

#[test]
fn sides_without_anything_in_common_are_refused() {
    let study = study("pata-raid0").unwrap().unwrap();
    let error = compare_request(&request(of("one"), study.trials())).unwrap_err();
    assert!(matches!(error, ReportError::NothingInCommon(_)), "{error}");
    let mut wrong = request(of("one"), of("two"));
    wrong.gate = Some(0.0);
    assert_eq!(compare_request(&wrong).unwrap_err(), ReportError::Gate(0.0));
}

#[test]
fn cells_of_two_sets_are_matched_by_what_they_are() {
    let mut both = synthetic::repeats();
    both.retain(|t| t.round < 5);
    let report = compare_request(&request(synthetic::repeats(), both)).unwrap();
    let cells: Vec<&str> = report.phases.iter().map(|p| p.cell.as_str()).collect();
    assert_eq!(cells, ["one", "one", "two", "two"]);
    assert!(report.phases.iter().all(|p| p.verdict == "equivalent"));
}
