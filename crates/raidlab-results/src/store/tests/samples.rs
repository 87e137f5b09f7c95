//! Records for tests: one with everything in it, and arbitrary ones.
use crate::id;
use crate::record::{
    BusyPart, Cell, Check, Explained, Figure, MemberIo, PhaseRecord, Place, Provenance, Resource,
    Session, Status, TrialRecord, Unit,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::histogram::Latencies;
use raidlab_core::outcome::{CpuTime, DeviceBytes};
use raidlab_core::time::Span;
use serde_json::{Value, json};

/// An identifier that is the same for the same name.
pub(crate) fn id_of(name: &str) -> String {
    id::of_content("test", &[name])
}

pub(crate) fn session(name: &str) -> Session {
    Session {
        id: id_of(name),
        title: name.to_owned(),
        created: "2026-11-21T08:00:00Z".to_owned(),
        command: "raidlab bench /srv --profile random".to_owned(),
        raidlab: "0.1.0".to_owned(),
        plan: None,
        planned: None,
        finished: true,
        notes: Vec::new(),
    }
}

/// An unfinished one with a plan.
pub(crate) fn planned(name: &str) -> Session {
    Session {
        plan: Some(json!({"profile": "random", "repeats": 5, "rate": 0.1})),
        planned: Some(5),
        finished: false,
        ..session(name)
    }
}

pub(crate) fn environment() -> Value {
    json!({"kernel": "6.1.0-28-amd64", "cpu": {"model": "x", "ghz": 2.6}, "disks": ["sda", "sdb"]})
}

/// A trial of which only what must be there is there.
pub(crate) fn trial(session: &str, order: u32) -> TrialRecord {
    TrialRecord {
        id: id_of(&format!("{session} {order}")),
        session: id_of(session),
        order,
        round: order,
        cell: Cell {
            label: "raid0, 2 disks".to_owned(),
            factors: [("level", "raid0"), ("disks", "2")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
        },
        cell_digest: None,
        profile: "random".to_owned(),
        settings: [("block-size".to_owned(), "4096".to_owned())].into(),
        provenance: Provenance::Measured { place: Place::Host },
        started: Some(format!("2026-11-21T08:00:{:02}Z", order % 60)),
        elapsed_ns: Some(1_500_000_000),
        seed: Some(u64::MAX),
        digest: Some(0xdead_beef_dead_beef),
        environment: None,
        command: Some("raidlab bench /srv --seed 7".to_owned()),
        phases: vec![PhaseRecord::bare(
            "read",
            Some(f64::from(order) + 0.1),
            Unit::PerSecond,
        )],
        checks: Vec::new(),
        status: Status::Complete,
        flags: Vec::new(),
    }
}

/// A trial with everything in it.
pub(crate) fn full_trial(session: &str, order: u32) -> TrialRecord {
    let mut latency = Latencies::new();
    for n in 1..2000_u64 {
        latency.record(Span(n * n * 1000));
    }
    latency.record(Span::from_secs(7200));
    let read = PhaseRecord {
        bytes: Some(409_600),
        ops: Some(100),
        elapsed_ns: Some(1_000_000_000),
        cpu_percent: Some(12.5),
        cpu: Some(CpuTime {
            user: Span::from_millis(100),
            system: Span::from_millis(25),
            kernel_threads: Some(Span::from_millis(3)),
        }),
        latency: Some(latency),
        mean_in_flight: Some(31.7),
        device: Some(DeviceBytes {
            claimed_read: 409_600,
            claimed_written: 0,
            device_read: 409_600,
            device_written: 8192,
        }),
        series_bytes: vec![204_800, 204_800],
        series_ops: vec![50, 50],
        series_width_ns: 500_000_000,
        figures: vec![Figure {
            name: "iops".to_owned(),
            value: 100.0,
            unit: Unit::PerSecond,
        }],
        flags: vec![Flag::new(FlagKind::TooShort, "1.00 s, \"asked\" 10 s")],
        ..PhaseRecord::bare("read", Some(409_600.0), Unit::BytesPerSecond)
    };
    TrialRecord {
        phases: vec![read, PhaseRecord::bare("write", None, Unit::BytesPerSecond)],
        flags: vec![Flag::new(FlagKind::OtherLoad, "load 3.2")],
        ..trial(session, order)
    }
}

/// A check that found something.
pub(crate) fn check() -> Check {
    Check {
        of: "md119".to_owned(),
        by: "md check".to_owned(),
        elapsed_ns: 1_500_000_000,
        bytes: Some(1 << 30),
        counts: [("mismatch_cnt".to_owned(), 8)].into(),
        consistent: false,
    }
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::BytesPerSecond,
        Unit::PerSecond,
        Unit::Seconds,
        Unit::Percent,
    ])
}

fn finite() -> impl Strategy<Value = f64> {
    use prop::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

fn flags() -> impl Strategy<Value = Vec<Flag>> {
    let kind = prop::sample::select(vec![
        FlagKind::ServedFromCache,
        FlagKind::NotCold,
        FlagKind::Other,
    ]);
    let flag = (kind, any::<String>(), any::<bool>()).prop_map(|(kind, reason, voids)| Flag {
        kind,
        reason,
        voids,
    });
    vec(flag, 0..3)
}

fn latencies() -> impl Strategy<Value = Latencies> {
    vec((any::<u64>(), 1_u64..1_000_000), 0..30).prop_map(|counts| {
        let mut latencies = Latencies::new();
        for (at, n) in counts {
            // Spread over the magnitudes, as times are.
            latencies.record_n(Span(at >> (at % 64)), n);
        }
        latencies
    })
}

fn figures() -> impl Strategy<Value = Vec<Figure>> {
    btree_map(any::<String>(), (finite(), unit()), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(name, (value, unit))| Figure { name, value, unit })
            .collect()
    })
}

fn cpu() -> impl Strategy<Value = CpuTime> {
    any::<(u64, u64, Option<u64>)>().prop_map(|(user, system, kernel)| CpuTime {
        user: Span(user),
        system: Span(system),
        kernel_threads: kernel.map(Span),
    })
}

fn device() -> impl Strategy<Value = DeviceBytes> {
    any::<[u64; 4]>().prop_map(|[a, b, c, d]| DeviceBytes {
        claimed_read: a,
        claimed_written: b,
        device_read: c,
        device_written: d,
    })
}

fn phase() -> impl Strategy<Value = PhaseRecord> {
    let counts = any::<(Option<u64>, Option<u64>, Option<u64>)>();
    let reals = (
        option::of(finite().prop_map(f64::abs)),
        option::of(finite()),
        option::of(finite().prop_map(f64::abs)),
    );
    let parts = (
        option::of(cpu()),
        option::of(latencies()),
        option::of(device()),
    );
    let lists = (
        vec(any::<(u64, u64)>(), 0..5),
        figures(),
        option::of(explained()),
    );
    (
        any::<String>(),
        unit(),
        counts,
        reals,
        parts,
        lists,
        any::<u64>(),
        flags(),
    )
        .prop_map(
            |(phase, unit, counts, reals, parts, lists, series_width_ns, flags)| PhaseRecord {
                phase,
                rate: reals.0,
                unit,
                bytes: counts.0,
                ops: counts.1,
                elapsed_ns: counts.2,
                cpu_percent: reals.1,
                cpu: parts.0,
                latency: parts.1,
                mean_in_flight: reals.2,
                device: parts.2,
                series_bytes: lists.0.iter().map(|window| window.0).collect(),
                series_ops: lists.0.iter().map(|window| window.1).collect(),
                series_width_ns: match lists.0.is_empty() {
                    true => 0,
                    false => series_width_ns.max(1),
                },
                figures: lists.1,
                flags,
                explained: lists.2,
            },
        )
}

fn explained() -> impl Strategy<Value = Explained> {
    let part = any::<(String, u64)>().prop_map(|(name, ns)| BusyPart { name, ns });
    let resource = (any::<(String, String, u32, u64)>(), vec(part, 0..3));
    let resource = resource.prop_map(|((name, kind, units, busy_ns), parts)| Resource {
        name,
        kind,
        units,
        busy_ns,
        parts,
    });
    let member = any::<(String, String, [u64; 4])>().prop_map(|(disk, model, n)| MemberIo {
        disk,
        model,
        reads: n[0],
        writes: n[1],
        read_bytes: n[2],
        written_bytes: n[3],
    });
    (any::<String>(), vec(resource, 0..3), vec(member, 0..3)).prop_map(
        |(why, resources, members)| Explained {
            why,
            resources,
            members,
        },
    )
}

fn provenance() -> impl Strategy<Value = Provenance> {
    prop_oneof![
        prop::sample::select(vec![Place::Host, Place::Vm])
            .prop_map(|place| Provenance::Measured { place }),
        Just(Provenance::Simulated),
        any::<(String, Option<String>, String)>().prop_map(|(tool, tool_version, file)| {
            Provenance::Imported {
                tool,
                tool_version,
                file,
            }
        }),
        any::<(String, String)>().prop_map(|(study, date)| Provenance::Published { study, date }),
    ]
}

/// Phases of which no two have the same name.
fn of_own_names(mut phases: Vec<PhaseRecord>) -> Vec<PhaseRecord> {
    let mut known = std::collections::BTreeSet::new();
    phases.retain(|phase| known.insert(phase.phase.clone()));
    phases
}

/// Any trial of the session of that name.
pub(crate) fn any_trial(of: &'static str) -> impl Strategy<Value = TrialRecord> {
    let names = any::<(
        String,
        String,
        Option<String>,
        Option<String>,
        Option<String>,
    )>();
    let numbers = any::<(u32, u32, Option<u64>, Option<u64>, Option<u64>)>();
    let pairs = || btree_map(any::<String>(), any::<String>(), 0..4);
    (
        "[0-9a-f]{32}",
        names,
        numbers,
        (pairs(), pairs()),
        provenance(),
        vec(phase(), 0..4).prop_map(of_own_names),
        flags(),
        option::of(0_i64..4_000_000_000),
    )
        .prop_map(
            move |(id, names, numbers, pairs, provenance, phases, flags, started)| TrialRecord {
                id,
                session: id_of(of),
                order: numbers.0,
                round: numbers.1,
                cell: Cell {
                    label: names.0,
                    factors: pairs.0,
                },
                cell_digest: names.4,
                profile: names.1,
                settings: pairs.1,
                provenance,
                started: started.map(|s| jiff::Timestamp::from_second(s).unwrap().to_string()),
                elapsed_ns: numbers.2,
                seed: numbers.3,
                digest: numbers.4,
                environment: None,
                phases,
                checks: names.2.iter().map(|_| check()).collect(),
                command: names.2,
                status: match names.3 {
                    None => Status::Complete,
                    Some(reason) => Status::Failed { reason },
                },
                flags,
            },
        )
}
