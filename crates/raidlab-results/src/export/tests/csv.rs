use super::bundle;
use crate::export::write_csv;
use crate::store::Bundle;
use crate::store::tests::samples::{any_trial, session};
use proptest::prelude::*;
use raidlab_core::words::steers;
use std::collections::BTreeMap;

type Rows = Vec<BTreeMap<String, String>>;

fn rows(bundle: &Bundle) -> Rows {
    let mut out = Vec::new();
    write_csv(&mut out, bundle).unwrap();
    csv::Reader::from_reader(out.as_slice())
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn one_phase_is_one_row() {
    let rows = rows(&bundle());
    let shown: Vec<String> = rows
        .iter()
        .map(|row| {
            let filled = row.iter().filter(|(_, cell)| !cell.is_empty());
            let filled: Vec<_> = filled
                .map(|(name, cell)| format!("{name}={cell}"))
                .collect();
            filled.join("\n")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    bytes=409600
    claimed_read_bytes=409600
    claimed_written_bytes=0
    command=raidlab bench /srv --seed 7
    cpu_kernel_threads_ns=3000000
    cpu_percent=12.5
    cpu_system_ns=25000000
    cpu_user_ns=100000000
    device_read_bytes=409600
    device_written_bytes=8192
    digest=deadbeefdeadbeef
    elapsed_ns=1000000000
    environment=64cc52fb4d0d74717377e6c11233d63f
    factor.disks=2
    factor.level=raid0
    figure.iops.per_second=100
    label=raid0, 2 disks
    latency_count=2000
    latency_max_ns=7200000000000
    latency_mean_ns=4932333500
    latency_p50_ns=1002438655
    latency_p90_ns=3254779903
    latency_p99_ns=3925868543
    mean_in_flight_ops=31.7
    ops=100
    order=0
    phase=read
    phase_flag_reasons=1.00 s, "asked" 10 s
    phase_flags=too-short
    phase_number=0
    place=host
    profile=random
    rate_bytes_per_second=409600
    round=0
    seed=18446744073709551615
    session=cf55473b4f991834e1ebea6e1491c898
    session_title=a
    setting.block-size=4096
    source=measured
    started=2026-11-21T08:00:00Z
    status=complete
    trial=0a543c6554029d8a2d7ecc9ab79b8a73
    trial_elapsed_ns=1500000000
    trial_flag_reasons=load 3.2
    trial_flags=other-load
    valid=true

    command=raidlab bench /srv --seed 7
    digest=deadbeefdeadbeef
    environment=64cc52fb4d0d74717377e6c11233d63f
    factor.disks=2
    factor.level=raid0
    label=raid0, 2 disks
    order=0
    phase=write
    phase_number=1
    place=host
    profile=random
    round=0
    seed=18446744073709551615
    session=cf55473b4f991834e1ebea6e1491c898
    session_title=a
    setting.block-size=4096
    source=measured
    started=2026-11-21T08:00:00Z
    status=complete
    trial=0a543c6554029d8a2d7ecc9ab79b8a73
    trial_elapsed_ns=1500000000
    trial_flag_reasons=load 3.2
    trial_flags=other-load
    valid=false

    command=raidlab bench /srv --seed 7
    digest=deadbeefdeadbeef
    factor.disks=2
    factor.level=raid0
    label=raid0, 2 disks
    order=1
    phase=read
    phase_number=0
    place=host
    profile=random
    rate_per_second=1.1
    round=1
    seed=18446744073709551615
    session=cf55473b4f991834e1ebea6e1491c898
    session_title=a
    setting.block-size=4096
    source=measured
    started=2026-11-21T08:00:01Z
    status=complete
    trial=583cfdd13f77f3f1ff8e110eb8f1942f
    trial_elapsed_ns=1500000000
    valid=true

    command=raidlab bench /srv --seed 7
    digest=deadbeefdeadbeef
    factor.disks=2
    factor.level=raid0
    label=raid0, 2 disks
    order=0
    place=host
    profile=random
    reason=no, "it" broke
    at once
    round=0
    seed=18446744073709551615
    session=c21346311f951841252fce80e8730d95
    session_title=b
    setting.block-size=4096
    source=measured
    status=failed
    trial=46291909a0b1b24bcd6d28a19f3a9827
    trial_elapsed_ns=1500000000
    valid=false
    "#);
}

#[test]
fn an_empty_export_has_a_header() {
    assert!(rows(&Bundle::default()).is_empty());
    let mut out = Vec::new();
    write_csv(&mut out, &Bundle::default()).unwrap();
    assert!(out.starts_with(b"trial,session,session_title,"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_figure_is_there_exactly_when_it_exists(trial in any_trial("s")) {
        let bundle = Bundle {
            sessions: vec![session("s")],
            trials: vec![trial.clone()],
            ..Bundle::default()
        };
        let rows = rows(&bundle);
        prop_assert_eq!(rows.len(), trial.phases.len().max(1));
        for (row, phase) in rows.iter().zip(&trial.phases) {
            let label = trial.cell.label.replace(steers, "\u{fffd}");
            let inert = format!("'{label}");
            prop_assert!([label, inert].contains(&row["label"]));
            let number = |name: &str| Some(row[name].as_str()).filter(|c| !c.is_empty());
            let rates = ["rate_bytes_per_second", "rate_per_second", "rate_seconds", "rate_percent"];
            let rates: Vec<f64> =
                rates.iter().filter_map(|n| number(n)).map(|c| c.parse().unwrap()).collect();
            let expected: Vec<f64> = phase.rate.into_iter().collect();
            prop_assert_eq!(rates, expected);
            let bytes: Option<u64> = number("bytes").map(|c| c.parse().unwrap());
            prop_assert_eq!(bytes, phase.bytes);
            let figures = row.iter().filter(|(n, c)| n.starts_with("figure.") && !c.is_empty());
            prop_assert_eq!(figures.count(), phase.figures.len());
        }
    }
}

/// Names and commands may be of foreign files, and are opened by programs that compute.
#[test]
fn a_cell_is_read_and_does_nothing() {
    let mut bundle = bundle();
    let names = [
        ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
        ("@SUM(1)", "'@SUM(1)"),
        ("-O2", "'-O2"),
        ("-4", "-4"),
        ("1+1", "1+1"),
        ("a\u{1b}[2Jb\u{202e}c", "a\u{fffd}[2Jb\u{fffd}c"),
    ];
    for (name, shown) in names {
        bundle.trials[0].cell.label = name.to_owned();
        assert_eq!(rows(&bundle)[0]["label"], shown);
    }
}
