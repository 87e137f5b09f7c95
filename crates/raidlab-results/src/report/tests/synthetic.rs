//! Invented trials: repeats with scatter, flags, failures, histograms and series; the same on every
//! machine.
use crate::record::{Cell, Figure, PhaseRecord, Place, Provenance, Status, TrialRecord, Unit};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::histogram::Latencies;
use raidlab_core::outcome::CpuTime;
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_core::units::MIB;
use std::collections::BTreeMap;

pub(super) fn trial(
    label: &str,
    factors: &[(&str, &str)],
    profile: &str,
    round: u32,
) -> TrialRecord {
    TrialRecord {
        id: crate::id::of_content("test", &[label, profile, &round.to_string()]),
        session: "0".repeat(32),
        order: round * 2,
        round,
        cell: Cell {
            label: label.to_owned(),
            factors: factors
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        },
        cell_digest: None,
        profile: profile.to_owned(),
        settings: BTreeMap::from([("file-size".to_owned(), (1_u64 << 30).to_string())]),
        provenance: Provenance::Measured { place: Place::Host },
        started: Some("2026-11-21T03:00:00Z".to_owned()),
        elapsed_ns: Some(60_000_000_000),
        seed: Some(7),
        digest: Some(0xd1),
        environment: Some("e1".to_owned()),
        command: Some(format!(
            "raidlab bench '/mnt/{label}' --profile {profile} --seed 7"
        )),
        phases: Vec::new(),
        checks: Vec::new(),
        status: Status::Complete,
        flags: Vec::new(),
    }
}

/// About `mib` MiB/s with 1 % scatter.
pub(super) fn phase(name: &str, mib: f64, stream: Stream) -> PhaseRecord {
    let scatter = 1.0 + 0.02 * (stream.at(0) as f64 / u64::MAX as f64 - 0.5);
    let rate = mib * scatter * MIB as f64;
    let mut phase = PhaseRecord::bare(name, Some(rate), Unit::BytesPerSecond);
    let seconds = (1024.0 * MIB as f64 / rate).ceil();
    phase.bytes = Some(1 << 30);
    phase.ops = Some(1 << 18);
    phase.elapsed_ns = Some((1e9 * 1024.0 * MIB as f64 / rate) as u64);
    phase.cpu_percent = Some(12.0 + (stream.at(1) % 30) as f64 / 10.0);
    phase.cpu = Some(CpuTime {
        user: Span::from_millis(300),
        system: Span::from_millis(1500),
        kernel_threads: Some(Span::from_millis(200)),
    });
    let mut latency = Latencies::new();
    for i in 0..2_000 {
        let x = (stream.at(100 + i) % 1000) as f64 / 1000.0;
        latency.record(Span((80_000.0 / (1.0005 - x).powf(0.4)) as u64));
    }
    phase.latency = Some(latency);
    phase.series_width_ns = 1_000_000_000;
    phase.series_bytes = (0..seconds as u64)
        .map(|i| (rate * (0.95 + (stream.at(50_000 + i) % 100) as f64 / 1000.0)) as u64)
        .collect();
    phase
}

/// Two layouts, ten interleaved repeats of the dd profile: one failed, one served from the cache,
/// remarks on some.
pub(super) fn repeats() -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for round in 0..10 {
        for (index, (label, disks, write, read)) in
            [("one", "1", 47.0, 60.0), ("two", "2", 93.0, 61.0)]
                .iter()
                .enumerate()
        {
            let level = if index == 0 { "single" } else { "raid0" };
            let factors = [("level", level), ("disks", *disks)];
            let mut trial = trial(label, &factors, "dd", round);
            trial.order += index as u32;
            let stream = Stream::new(u64::from(round) * 2 + index as u64);
            trial.phases = vec![
                phase("write", *write, stream.child(1)),
                phase("read", *read, stream.child(2)),
            ];
            all.push(trial);
        }
    }
    all[4].status = Status::Failed {
        reason: "write failed: no space left on device (error 28)".to_owned(),
    };
    all[7].phases[1].flags.push(Flag::new(
        FlagKind::ServedFromCache,
        "the device read 12.0 MiB of 1 GiB",
    ));
    all[7].phases[1].rate = Some(4e9);
    for trial in all.iter_mut().skip(10).take(4) {
        trial.flags.push(Flag::new(
            FlagKind::OtherLoad,
            "other processes took 21 % of a processor",
        ));
    }
    all
}

/// Three layouts, eleven block sizes, as the block-size study measured.
pub(super) fn sweep() -> Vec<TrialRecord> {
    let mut all = Vec::new();
    let layouts = [
        ("raid0 1 disk", "1", 38.0),
        ("raid0 2 disks 2 channels", "2", 75.0),
        ("raid0 2 disks 1 channel", "2", 33.0),
    ];
    for (layout, disks, mib) in layouts {
        for power in 10..=20_u32 {
            let size = (1_u64 << power).to_string();
            for round in 0..3 {
                let factors = [("layout", layout), ("disks", disks), ("block-size", &size)];
                let mut trial = trial(&format!("{layout}, {size}"), &factors, "tiobench", round);
                let cost = 1.0 - 0.3 / f64::from(power - 9);
                let stream = Stream::new(u64::from(power * 10 + round));
                let mut record = phase("write", mib * cost, stream);
                record.latency = None;
                record.series_bytes.clear();
                for (name, value, unit) in [
                    ("latency-mean", 0.002, Unit::Seconds),
                    ("latency-max", 0.4, Unit::Seconds),
                    ("share-above-2s", 0.0, Unit::Percent),
                ] {
                    record.figures.push(Figure {
                        name: name.to_owned(),
                        value,
                        unit,
                    });
                }
                trial.phases = vec![record];
                all.push(trial);
            }
        }
    }
    all
}

pub(super) fn environments() -> BTreeMap<String, serde_json::Value> {
    let of = |scheduler: &str| {
        serde_json::json!({
            "kernel": {"release": "6.1.0-40-amd64", "machine": "x86_64"},
            "cpu": {"model": "Invented CPU 3.8 GHz", "online": 2},
            "memory": {"total": 536_870_912_u64, "available": 1},
            "target": {
                "path": "/mnt",
                "mount": {"fs_type": "ext4", "options": ["rw", "relatime"]},
                "devices": [{"name": "sda", "model": "Invented disk", "size": 40_000_000_000_u64,
                             "queue": {"scheduler": scheduler, "read_ahead_kib": 128}}]
            }
        })
    };
    BTreeMap::from([
        ("e1".to_owned(), of("mq-deadline")),
        ("e2".to_owned(), of("none")),
    ])
}

/// One trial each of profiles with columns of their own.
pub(super) fn own_profiles() -> Vec<TrialRecord> {
    let of = |profile: &str, phases: &[&str]| {
        let mut trial = trial("a", &[], profile, 0);
        let stream = Stream::new(9);
        trial.phases = phases
            .iter()
            .zip(0..)
            .map(|(name, i)| phase(name, 100.0 + i as f64, stream.child(i)))
            .collect();
        trial
    };
    vec![
        of("hdparm", &["cached-read", "buffered-read"]),
        of(
            "tiobench",
            &["write", "random-write", "read", "random-read"],
        ),
        of("random", &["read", "write"]),
    ]
}

/// What an importer makes: no histograms, percentiles as figures, no digest.
pub(super) fn imported() -> Vec<TrialRecord> {
    let mut trial = trial("job1", &[], "fio", 0);
    trial.provenance = Provenance::Imported {
        tool: "fio".to_owned(),
        tool_version: Some("3.33".to_owned()),
        file: "randread.json".to_owned(),
    };
    (trial.digest, trial.environment, trial.command) = (None, None, None);
    let mut record = PhaseRecord::bare("read", Some(4e8), Unit::BytesPerSecond);
    for (name, value, unit) in [
        ("iops", 97_656.0, Unit::PerSecond),
        ("latency-p50", 0.000_31, Unit::Seconds),
        ("latency-p99", 0.000_9, Unit::Seconds),
        ("latency-max", 0.012, Unit::Seconds),
    ] {
        record.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit,
        });
    }
    trial.phases = vec![record];
    vec![trial]
}
