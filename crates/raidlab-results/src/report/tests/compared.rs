//! Baseline against candidate with a gate.
use super::synthetic;
use crate::record::{PhaseRecord, Provenance, TrialRecord, Unit};
use crate::reference::study;
use crate::report::{
    CompareReport, CompareRequest, GateResult, ReportError, ReportRequest, TerminalOptions,
    compare_request, render_terminal, report,
};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::rng::Stream;
use raidlab_stats::Confidence;
use std::collections::BTreeMap;

fn of(label: &str) -> Vec<TrialRecord> {
    let mut trials = synthetic::repeats();
    trials.retain(|t| t.cell.label == label);
    trials
}

pub(super) fn request(baseline: Vec<TrialRecord>, candidate: Vec<TrialRecord>) -> CompareRequest {
    CompareRequest {
        names: ["before".to_owned(), "after".to_owned()],
        baseline,
        candidate,
        sessions: Vec::new(),
        environments: BTreeMap::new(),
        gate: Some(0.95),
        gate_latency: BTreeMap::new(),
        margin: 0.02,
        confidence: Confidence::P95,
        allow_mixed_streams: false,
        candidate_narrowed: false,
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
    assert!(
        matches!(error, ReportError::NothingInCommon { .. }),
        "{error}"
    );
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

/// Trials of a cell in a session, `rates` of one phase each, a round apiece.
pub(super) fn session(name: char, label: &str, rates: &[f64]) -> Vec<TrialRecord> {
    let one = |(round, rate): (u32, &f64)| {
        let mut trial = synthetic::trial(label, &[], "random", round);
        trial.session = name.to_string().repeat(32);
        trial.phases = vec![PhaseRecord::bare("read", Some(*rate), Unit::BytesPerSecond)];
        trial
    };
    (0..).zip(rates).map(one).collect()
}

pub(super) const STEADY: [f64; 5] = [1e8, 1.001e8, 0.999e8, 1.0005e8, 0.9995e8];

fn scaled(by: f64) -> Vec<f64> {
    STEADY.iter().map(|rate| rate * by).collect()
}

pub(super) fn told(report: &CompareReport) -> String {
    render_terminal(&report.document, TerminalOptions::new(500, false))
}

/// A rate of nothing is the worst there is, in the same session and in another.
#[test]
fn a_candidate_that_stalls_fails() {
    for candidate in ['a', 'b'] {
        let (base, zero) = (
            session('a', "x", &STEADY),
            session(candidate, "y", &[0.0; 5]),
        );
        let report = compare_request(&request(base.clone(), zero.clone())).unwrap();
        let phase = &report.phases[0];
        assert_eq!(
            (phase.verdict.as_str(), phase.gate),
            ("worse", GateResult::Fail)
        );
        assert_eq!((phase.ratio, phase.interval), (Some(0.0), Some((0.0, 0.0))));
        assert!(phase.basis.as_ref().unwrap().contains("arithmetic means"));
        // One of its runs: not certain, but in the order.
        let mut once = STEADY;
        once[2] = 0.0;
        let once = session(candidate, "y", &once);
        let report = compare_request(&request(base, once)).unwrap();
        assert!(report.phases[0].verdict.starts_with("inconclusive"));
        assert_eq!(report.overall, GateResult::Warn);
    }
}

/// Margin, confidence and whether other streams are compared are what the request says.
#[test]
fn a_comparison_is_judged_by_what_is_asked_for() {
    let asked = || request(session('a', "x", &STEADY), session('a', "x", &scaled(1.03)));
    let phase = |request: &CompareRequest| compare_request(request).unwrap().phases[0].clone();
    let usual = phase(&asked());
    assert_eq!(usual.verdict, "better");
    let mut lenient = asked();
    lenient.margin = 0.05;
    assert_eq!(phase(&lenient).verdict, "equivalent");
    let mut other = asked();
    other.baseline = session('a', "x", &[1.003e8, 0.998e8, 1e8, 0.997e8, 1.002e8]);
    let usual = phase(&other).interval.unwrap();
    other.confidence = Confidence::new(0.99).unwrap();
    let wide = phase(&other).interval.unwrap();
    assert!(wide.0 < usual.0 && usual.1 < wide.1, "{wide:?} {usual:?}");
    let mut mixed = asked();
    for trial in &mut mixed.candidate {
        trial.digest = Some(0xd2);
    }
    assert_eq!(phase(&mixed).verdict, "different streams");
    mixed.allow_mixed_streams = true;
    assert_eq!(phase(&mixed).verdict, "better");
}

/// Cells of one session may do different things: of streams is told where two that are compared differ, with the option that allows it.
#[test]
fn streams_are_told_of_where_those_of_a_pair_differ() {
    let both = |deep: u64| {
        let mut trials = session('a', "depth 1", &STEADY);
        for mut trial in session('a', "depth 16", &STEADY) {
            trial.digest = Some(deep);
            trials.push(trial);
        }
        trials
    };
    let said = |deep: u64| told(&compare_request(&request(both(1), both(deep))).unwrap());
    let alike = said(1);
    assert!(!alike.contains("operation streams"), "{alike}");
    let differ = said(2);
    assert!(differ.contains("--allow-different-streams"), "{differ}");
}

/// An interval that clears the margin by less than two digits show is printed with as many as bear the verdict out.
#[test]
fn a_narrow_verdict_is_printed_with_more_digits() {
    let told = |by: f64| {
        let report = compare_request(&request(
            session('a', "x", &STEADY),
            session('a', "x", &scaled(by)),
        ));
        let phase = report.unwrap().phases[0].clone();
        (phase.verdict, phase.digits)
    };
    let told_by = |word: &str, digits| (word.to_owned(), digits);
    assert_eq!(told(1.0204), told_by("better", Some(4)));
    assert_eq!(told(0.9796), told_by("worse", Some(4)));
    assert_eq!(told(1.04), told_by("better", None));
}

/// Where the runs of a side are taken as the means of its sessions, that is told, whichever side it is.
#[test]
fn a_ratio_of_means_of_sessions_says_so() {
    let two = || [session('a', "x", &STEADY), session('b', "x", &scaled(1.1))].concat();
    let one = || session('c', "x", &STEADY);
    let basis = |base, new| {
        compare_request(&request(base, new)).unwrap().phases[0]
            .basis
            .clone()
    };
    assert_eq!(
        basis(two(), one()).as_deref(),
        Some("ratio of 5 runs against the means of 2 sessions")
    );
    assert_eq!(
        basis(one(), two()).as_deref(),
        Some("ratio of the means of 2 sessions against 5 runs")
    );
    assert_eq!(basis(one(), session('d', "x", &STEADY)), None);
}

/// Runs of which a round has several on a side are in no pairs, whichever side that is.
#[test]
fn rounds_that_are_not_told_apart_make_no_pairs() {
    let rounds = |repeated: [bool; 2]| {
        let [a, b] = repeated.map(|repeated| {
            let mut trials = session('a', "x", &STEADY);
            for trial in trials.iter_mut().filter(|_| repeated) {
                trial.round = 0;
            }
            trials
        });
        compare_request(&request(a, b)).unwrap().phases[0].rounds
    };
    assert_eq!(rounds([false, false]), Some(5));
    for repeated in [[true, false], [false, true], [true, true]] {
        assert_eq!(rounds(repeated), None);
    }
}

/// A figure of nothing in the baseline has no ratio, and is not passed over beside others.
#[test]
fn what_has_no_ratio_is_no_pass() {
    let with = |name: char, rate: f64| {
        let mut trials = session(name, "x", &STEADY);
        for trial in &mut trials {
            let phase = PhaseRecord::bare("write", Some(rate), Unit::BytesPerSecond);
            trial.phases.push(phase);
        }
        trials
    };
    let report = compare_request(&request(with('a', 0.0), with('b', 1.0))).unwrap();
    let gates: Vec<GateResult> = report.phases.iter().map(|p| p.gate).collect();
    assert_eq!(gates, [GateResult::Pass, GateResult::NotJudged]);
    assert_eq!(report.overall, GateResult::Warn);
    assert!(
        report.phases[1].why.contains("baseline"),
        "{:?}",
        report.phases[1]
    );
    assert!(told(&report).contains("1 figure could not be judged"));
}

/// Imported trials that differ in a setting alone.
fn with_setting(name: char, value: &str, rates: &[f64]) -> Vec<TrialRecord> {
    let mut trials = session(name, "disk", rates);
    for trial in &mut trials {
        trial.provenance = Provenance::Imported {
            tool: "fio".to_owned(),
            tool_version: None,
            file: "f".to_owned(),
        };
        trial.digest = None;
        trial.settings.insert("fsync".to_owned(), value.to_owned());
    }
    trials
}

#[test]
fn cells_of_the_same_settings_are_matched() {
    let base = [
        with_setting('a', "0", &STEADY),
        with_setting('a', "1", &scaled(0.1)),
    ]
    .concat();
    let new = [
        with_setting('b', "1", &scaled(0.1)),
        with_setting('b', "0", &STEADY),
    ]
    .concat();
    let report = compare_request(&request(base.clone(), new)).unwrap();
    let verdicts: Vec<_> = report
        .phases
        .iter()
        .map(|p| (p.cell.as_str(), p.verdict.as_str()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("disk (fsync=1)", "equivalent"),
            ("disk (fsync=0)", "equivalent")
        ]
    );
    assert!(report.not_compared.is_empty());
    // What regresses is seen, and what is on one side alone is named with what it lacks.
    let slower = with_setting('b', "0", &scaled(0.1));
    let report = compare_request(&request(base.clone(), slower)).unwrap();
    assert_eq!(report.overall, GateResult::Fail);
    let alone = &report.not_compared[0];
    assert_eq!(alone.cell, "disk (fsync=1)");
    assert_eq!(alone.why, "not with these settings in the candidate");
    assert!(!alone.ambiguous);
}

/// That there are others of its profile does not make them like it.
#[test]
fn a_cell_that_the_other_side_has_not_is_told() {
    let both = |other: &str, name| [session(name, "x", &STEADY), session(name, other, &STEADY)];
    let with = |session: [Vec<TrialRecord>; 2], factor: &str| {
        let mut all = session.concat();
        for trial in all.iter_mut().filter(|t| t.cell.label != "x") {
            trial
                .cell
                .factors
                .insert("level".to_owned(), factor.to_owned());
        }
        all
    };
    let (base, new) = (with(both("y", 'a'), "raid0"), with(both("z", 'b'), "raid5"));
    let report = compare_request(&request(base, new)).unwrap();
    let alone: Vec<_> = report
        .not_compared
        .iter()
        .map(|n| (&n.cell[..], &n.why[..], n.ambiguous))
        .collect();
    assert_eq!(
        alone,
        [
            ("z", "no such cell in the baseline", false),
            ("y", "no such cell in the candidate", false)
        ]
    );
}

/// Two that may be meant: none is guessed, and a gate does not pass over it.
#[test]
fn a_cell_that_may_be_one_of_two_is_not_compared() {
    let base = [
        with_setting('a', "0", &STEADY),
        with_setting('a', "1", &scaled(0.1)),
    ]
    .concat();
    let other = with_setting('b', "2", &scaled(0.1));
    let error = compare_request(&request(base.clone(), other.clone())).unwrap_err();
    assert!(
        matches!(error, ReportError::NothingInCommon { .. }),
        "{error}"
    );
    let both = [with_setting('b', "0", &STEADY), other].concat();
    let report = compare_request(&request(base, both)).unwrap();
    assert_eq!(report.phases.len(), 1);
    assert!(report.not_compared.iter().all(|cell| cell.ambiguous));
    assert_eq!(report.not_compared.len(), 2);
    assert_eq!(report.overall, GateResult::Warn);
}

/// The only cells of their name are compared whatever their settings, and that is said.
#[test]
fn other_settings_are_told() {
    let (base, new) = (
        with_setting('a', "0", &STEADY),
        with_setting('b', "1", &STEADY),
    );
    let report = compare_request(&request(base, new)).unwrap();
    assert_eq!(report.phases[0].verdict, "equivalent");
    let text = told(&report);
    assert!(text.contains("random of disk: fsync 1 against 0"), "{text}");
}

/// Of forty figures one looks worse by chance: the gate says what its row says. What surely is worse fails.
#[test]
fn a_gate_of_many_figures_is_one_decision() {
    const FIRST: [f64; 5] = [0.0, 0.08, -0.08, 0.04, -0.04];
    let side = |name: char, of_first: f64| {
        let mut trials = session(name, "x", &STEADY);
        for (run, trial) in (0..).zip(&mut trials) {
            trial.phases = (0..40)
                .map(|number: u64| {
                    let noise = Stream::new(number).at(run) as f64 / u64::MAX as f64 - 0.5;
                    let even = if name == 'a' { noise } else { -noise };
                    let rate = match number {
                        0 => 1e8 * of_first * (1.0 + FIRST[run as usize]),
                        _ => 1e8 * (1.0 + 0.06 * even),
                    };
                    PhaseRecord::bare(&format!("p{number}"), Some(rate), Unit::PerSecond)
                })
                .collect();
        }
        trials
    };
    let of = |by: f64| compare_request(&request(side('a', 1.0), side('b', by))).unwrap();
    let report = of(0.86);
    let first = &report.phases[0];
    assert!(first.interval.unwrap().1 < 0.95, "{first:?}");
    assert_eq!(
        (first.gate, report.overall),
        (GateResult::Warn, GateResult::Warn)
    );
    assert!(first.verdict.starts_with("inconclusive"), "{first:?}");
    let why = "alone it would fail, but among the 40 figures of the gate it may be chance";
    assert_eq!(first.gate_why.as_deref(), Some(why));
    assert!(told(&report).contains("hardly be chance among 40 figures"));
    let report = of(0.6);
    assert_eq!(report.phases[0].verdict, "worse");
    assert_eq!(report.overall, GateResult::Fail);
    // Alone it is what it looks like.
    let only = |mut trials: Vec<TrialRecord>| {
        trials.iter_mut().for_each(|trial| trial.phases.truncate(1));
        trials
    };
    let alone = request(only(side('a', 1.0)), only(side('b', 0.86)));
    assert_eq!(compare_request(&alone).unwrap().overall, GateResult::Fail);
}

/// A is faster in just the rounds that B lacks: the ratio is of the others, and says so.
#[test]
fn a_ratio_of_common_rounds_says_so() {
    let rates: Vec<f64> = (0..10)
        .map(|round| if round < 4 { 1.5e8 } else { 1e8 })
        .collect();
    let base = session('a', "x", &rates);
    let mut new = session('a', "y", &[1e8; 10]);
    for trial in new.iter_mut().take(4) {
        trial
            .flags
            .push(Flag::new(FlagKind::ServedFromCache, "cached"));
        assert!(!trial.is_valid());
    }
    let compared = compare_request(&request(base.clone(), new.clone())).unwrap();
    let phase = &compared.phases[0];
    assert_eq!(phase.verdict, "equivalent");
    assert_eq!((phase.runs, phase.rounds), (Some([10, 6]), Some(6)));
    let basis = "ratio of the 6 rounds that both have valid";
    assert_eq!(phase.basis.as_deref(), Some(basis));
    assert!(told(&compared).contains(basis));
    let mut request = ReportRequest::new("t", [base, new].concat());
    request.baseline = Some("x".parse().map(crate::report::Baseline::Cell).unwrap());
    let document = report(&request).unwrap();
    let text = render_terminal(&document, TerminalOptions::new(110, false));
    assert!(text.contains(basis), "{text}");
}

/// One session a side says nothing of what another would be; of several the means are compared.
#[test]
fn scatter_between_sessions_is_told_or_measured() {
    let warned = |report: &CompareReport| told(report).contains("not what another one would add");
    let of = |names: &str, by: &[f64]| -> Vec<TrialRecord> {
        let sessions = names.chars().zip(by);
        sessions
            .flat_map(|(name, by)| session(name, "x", &scaled(*by)))
            .collect()
    };
    let (a, b) = ([1.0, 1.08, 0.94], [0.9, 0.97, 0.86]);
    let report = compare_request(&request(of("a", &a), of("d", &b))).unwrap();
    assert_eq!((report.overall, warned(&report)), (GateResult::Fail, true));
    assert_eq!(report.phases[0].rounds, None);
    let report = compare_request(&request(of("abc", &a), of("def", &b))).unwrap();
    assert_eq!((report.overall, warned(&report)), (GateResult::Warn, false));
    let phase = &report.phases[0];
    assert_eq!(phase.runs, Some([15, 15]));
    let basis = "ratio of the means of 3 sessions against the means of 3 sessions";
    assert_eq!(phase.basis.as_deref(), Some(basis));
    // In turns, simulated, or of a run each it is none of its business.
    let report = compare_request(&request(of("a", &a), session('a', "y", &STEADY))).unwrap();
    assert!(!warned(&report));
    let simulated = |mut trials: Vec<TrialRecord>| {
        let all = trials.iter_mut();
        all.for_each(|trial| trial.provenance = Provenance::Simulated);
        trials
    };
    let sides = request(simulated(of("a", &a)), simulated(of("d", &b)));
    assert!(!warned(&compare_request(&sides).unwrap()));
}
