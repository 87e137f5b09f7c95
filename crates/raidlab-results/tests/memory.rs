//! An export takes the memory of one trial, however many there are.
use raidlab_core::histogram::Latencies;
use raidlab_core::time::Span;
use raidlab_results::export::{export_csv, export_jsonl};
use raidlab_results::record::{
    Cell, PhaseRecord, Place, Provenance, Session, Status, TrialRecord, Unit,
};
use raidlab_results::store::{Store, TrialFilter};
use std::path::Path;

/// Histograms of 36 KiB each, 127 MiB together.
const TRIALS: u32 = 60;
const PHASES: u32 = 60;

/// Peak resident memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect("a peak").parse().expect("a number")
}

fn phase(number: u32) -> PhaseRecord {
    let mut latency = Latencies::new();
    // One of each order of magnitude, so that all of the histogram's memory is used.
    (0..42).for_each(|bit| latency.record(Span((1 << bit) + u64::from(number))));
    PhaseRecord {
        phase: format!("phase-{number}"),
        rate: Some(1e6),
        unit: Unit::BytesPerSecond,
        bytes: Some(1 << 20),
        ops: Some(1),
        elapsed_ns: Some(1_000_000),
        cpu_percent: None,
        cpu: None,
        latency: Some(latency),
        mean_in_flight: None,
        device: None,
        series_bytes: Vec::new(),
        series_ops: Vec::new(),
        series_width_ns: 0,
        figures: Vec::new(),
        flags: Vec::new(),
        explained: None,
    }
}

fn trial(number: u32) -> TrialRecord {
    TrialRecord {
        id: format!("{number:032x}"),
        session: "0".repeat(32),
        order: number,
        round: number,
        cell: Cell {
            label: "here".to_owned(),
            factors: [].into(),
        },
        cell_digest: None,
        profile: "random".to_owned(),
        settings: [].into(),
        provenance: Provenance::Measured { place: Place::Host },
        started: None,
        elapsed_ns: None,
        seed: Some(1),
        digest: None,
        environment: None,
        command: None,
        phases: (0..PHASES).map(phase).collect(),
        checks: Vec::new(),
        status: Status::Complete,
        flags: Vec::new(),
    }
}

fn filled(path: &Path) -> Store {
    let mut store = Store::open(path).expect("a new store");
    let session = Session {
        id: "0".repeat(32),
        title: "many".to_owned(),
        created: "2026-11-21T08:00:00Z".to_owned(),
        command: "raidlab bench".to_owned(),
        raidlab: "0.1.0".to_owned(),
        plan: None,
        planned: None,
        finished: true,
        notes: Vec::new(),
    };
    store.begin_session(&session).expect("a session");
    for number in 0..TRIALS {
        let added = store.append_trial(&trial(number), None);
        added.expect("a trial");
    }
    store
}

#[test]
fn exports_hold_one_trial_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = filled(&directory.path().join("store.sqlite"));
    let all = TrialFilter::default();
    let mut lines = Vec::new();
    let written = export_jsonl(&mut lines, &mut store, &all).expect("an export");
    assert_eq!(written, u64::from(TRIALS));
    assert_eq!(lines.split(|&b| b == b'\n').count(), TRIALS as usize + 2);
    let mut rows = Vec::new();
    let written = export_csv(&mut rows, &mut store, &all).expect("an export");
    assert_eq!(written, u64::from(TRIALS));
    let lines = rows.split(|&b| b == b'\n').count();
    assert_eq!(lines, (TRIALS * PHASES) as usize + 2);
    let kib = peak();
    assert!(kib > 1024, "it is told: {kib} KiB");
    assert!(kib < 100 * 1024, "{kib} KiB for {TRIALS} trials");
    // All of them at once are more than that: the limit above can be exceeded.
    let trials = store.trials(&all).expect("trials");
    assert_eq!(trials.len(), TRIALS as usize);
    assert!(peak() > 100 * 1024, "{} KiB", peak());
}
