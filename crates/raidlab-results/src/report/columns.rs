//! The columns under which the tool of a profile prints its figures.
use super::document::Column;
use crate::record::{Unit, whole_of};
use raidlab_core::units::{KIB, MIB};

/// What a column shows of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// The rate, in units of so many stored ones.
    Rate(f64),
    /// Share of a processor in per cent.
    Cpu,
    /// A figure by name, in units of so many stored ones; from the histograms where there are any.
    Figure(&'static str, f64),
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolColumn {
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) phase: String,
    pub(crate) source: Source,
    /// Digits after the point; `None`: four significant ones.
    pub(crate) decimals: Option<usize>,
}

/// The title under which a tool's table stands, and its columns for these phases.
pub(crate) fn columns(
    profile: &str,
    phases: &[&str],
    unit: &dyn Fn(&str) -> Unit,
) -> Vec<ToolColumn> {
    match profile {
        "bonnie" => bonnie(phases),
        "tiobench" => tiobench(phases),
        "hdbench" => hdbench(phases),
        "hdparm" => hdparm(phases),
        "dd" => dd(phases),
        _ => fio(phases, unit),
    }
}

/// What the units of a tool's columns mean.
pub(crate) fn unit_note(profile: &str) -> &'static str {
    match profile {
        "bonnie" => "K = 1024 bytes",
        "tiobench" => "MB = 2^20 bytes",
        "hdbench" => "K = 1024 bytes",
        "hdparm" => "MB = 2^20 bytes",
        "dd" => "MB = 10^6 bytes",
        _ => "binary units",
    }
}

fn column(
    (group, title): (&str, &str),
    phase: &str,
    source: Source,
    decimals: Option<usize>,
) -> ToolColumn {
    ToolColumn {
        group: group.to_owned(),
        title: title.to_owned(),
        phase: phase.to_owned(),
        source,
        decimals,
    }
}

const BONNIE: [(&str, &str, bool); 12] = [
    ("putc", "Out Per Chr", true),
    ("block-write", "Out Block", true),
    ("rewrite", "Out Rewrite", true),
    ("getc", "In Per Chr", true),
    ("block-read", "In Block", true),
    ("seeks", "Random Seeks", false),
    ("seq-create", "Seq Create", false),
    ("seq-stat", "Seq Read", false),
    ("seq-delete", "Seq Delete", false),
    ("ran-create", "Ran Create", false),
    ("ran-stat", "Ran Read", false),
    ("ran-delete", "Ran Delete", false),
];

fn bonnie(phases: &[&str]) -> Vec<ToolColumn> {
    let known = BONNIE.iter().filter(|(phase, ..)| phases.contains(phase));
    known
        .flat_map(|&(phase, group, bytes)| {
            let (unit, scale) = if bytes {
                ("K/sec", KIB as f64)
            } else {
                ("/sec", 1.0)
            };
            let decimals = if phase == "seeks" { 1 } else { 0 };
            [
                column((group, unit), phase, Source::Rate(scale), Some(decimals)),
                column((group, "%CP"), phase, Source::Cpu, Some(0)),
            ]
        })
        .collect()
}

const TIOBENCH: [(&str, &str); 4] = [
    ("write", "Write"),
    ("random-write", "Random Write"),
    ("read", "Read"),
    ("random-read", "Random Read"),
];

fn tiobench(phases: &[&str]) -> Vec<ToolColumn> {
    let known = TIOBENCH.iter().filter(|(phase, _)| phases.contains(phase));
    known
        .flat_map(|&(phase, group)| {
            let figure = |name, scale| Source::Figure(name, scale);
            [
                column((group, "MB/s"), phase, Source::Rate(MIB as f64), Some(3)),
                column((group, "Usr %"), phase, figure("cpu-user", 1.0), Some(1)),
                column((group, "Sys %"), phase, figure("cpu-system", 1.0), Some(1)),
                column(
                    (group, "Avg ms"),
                    phase,
                    figure("latency-mean", 1e-3),
                    Some(3),
                ),
                column(
                    (group, "Max ms"),
                    phase,
                    figure("latency-max", 1e-3),
                    Some(3),
                ),
                column(
                    (group, "% >2 s"),
                    phase,
                    figure("share-above-2s", 1.0),
                    Some(5),
                ),
                column(
                    (group, "% >10 s"),
                    phase,
                    figure("share-above-10s", 1.0),
                    Some(5),
                ),
            ]
        })
        .collect()
}

fn hdbench(phases: &[&str]) -> Vec<ToolColumn> {
    phases
        .iter()
        .filter_map(|phase| {
            let (column_name, size) = phase.split_once('-')?;
            let title = match column_name {
                "read" => "Read K/s",
                "write" => "Write K/s",
                "copy" => "Copy K/s",
                _ => return None,
            };
            let size = size.to_ascii_uppercase();
            Some(column(
                (&size, title),
                phase,
                Source::Rate(KIB as f64),
                Some(0),
            ))
        })
        .collect()
}

fn hdparm(phases: &[&str]) -> Vec<ToolColumn> {
    let known = [
        ("cached-read", "cached reads"),
        ("buffered-read", "buffered disk reads"),
        ("direct-cached-read", "O_DIRECT cached reads"),
        ("direct-read", "O_DIRECT disk reads"),
    ];
    known
        .iter()
        .filter(|(phase, _)| phases.contains(phase))
        .map(|(phase, group)| column((group, "MB/sec"), phase, Source::Rate(MIB as f64), Some(2)))
        .collect()
}

fn dd(phases: &[&str]) -> Vec<ToolColumn> {
    let known = [
        ("write-first", "write, first pass"),
        ("write", "write"),
        ("read-first", "read, first pass"),
        ("read", "read"),
    ];
    known
        .iter()
        .filter(|(phase, _)| phases.contains(phase))
        .map(|(phase, group)| column((group, "MB/s"), phase, Source::Rate(1e6), None))
        .collect()
}

/// As fio prints: bandwidth, IOPS and completion latencies; also for tools that have no columns of
/// their own here.
fn fio(phases: &[&str], unit: &dyn Fn(&str) -> Unit) -> Vec<ToolColumn> {
    phases
        .iter()
        .flat_map(|phase| {
            let rate = match unit(phase) {
                Unit::BytesPerSecond => ("MiB/s", MIB as f64),
                Unit::PerSecond => ("/s", 1.0),
                Unit::Seconds => ("s", 1.0),
                Unit::Percent => ("%", 1.0),
            };
            let figure = |name, scale| Source::Figure(name, scale);
            [
                column((phase, rate.0), phase, Source::Rate(rate.1), None),
                column((phase, "IOPS"), phase, figure("iops", 1.0), Some(0)),
                column(
                    (phase, "mean µs"),
                    phase,
                    figure("latency-mean", 1e-6),
                    None,
                ),
                column((phase, "p50 µs"), phase, figure("latency-p50", 1e-6), None),
                column((phase, "p99 µs"), phase, figure("latency-p99", 1e-6), None),
                column(
                    (phase, "p99.9 µs"),
                    phase,
                    figure("latency-p99.9", 1e-6),
                    None,
                ),
                column((phase, "max µs"), phase, figure("latency-max", 1e-6), None),
                column((phase, "CPU %"), phase, Source::Cpu, Some(1)),
            ]
            .into_iter()
            // Nobody knows which part of a phase took the processor's time.
            .filter(|column| whole_of(phase).is_none() || column.source != Source::Cpu)
        })
        .collect()
}

/// The heading of a phase where its rate alone is shown.
pub(crate) fn heading(profile: &str, phase: &str) -> Column {
    match (profile, phase.split_once('-')) {
        ("hdbench", Some((what, size))) => Column::number(what).under(size.to_ascii_uppercase()),
        _ => Column::number(phase),
    }
}

/// Families of the profiles whose phases are known beforehand.
fn named_families(profile: &str) -> &'static [(&'static str, &'static [&'static str])] {
    match profile {
        "bonnie" => &[
            (
                "Sequential throughput",
                &["block-write", "rewrite", "block-read"],
            ),
            ("Per-character throughput", &["putc", "getc"]),
            ("Random seeks", &["seeks"]),
            (
                "Files",
                &[
                    "seq-create",
                    "seq-stat",
                    "seq-delete",
                    "ran-create",
                    "ran-stat",
                    "ran-delete",
                ],
            ),
        ],
        "tiobench" => &[
            ("Sequential throughput", &["write", "read"]),
            ("Random throughput", &["random-write", "random-read"]),
        ],
        "hdbench" => &[
            ("0.1 GB file", &["read-0.1gb", "write-0.1gb", "copy-0.1gb"]),
            ("2 GB file", &["read-2gb", "write-2gb", "copy-2gb"]),
        ],
        "dd" => &[("Throughput", &["write", "read"])],
        _ => &[],
    }
}

/// The phase that a resync or rebuild is kept as: what members get, no figure of the profile.
pub(crate) const REBUILD: &str = "rebuild";

/// The phases whose rates are charted together, with a name for the chart. All of a family have one
/// unit.
pub(crate) fn families<'a>(
    profile: &str,
    phases: &[&'a str],
    unit: &dyn Fn(&str) -> Unit,
) -> Vec<(String, Vec<&'a str>)> {
    let (rebuild, own): (Vec<&str>, Vec<&str>) = phases.iter().partition(|p| **p == REBUILD);
    let mut families = own_families(profile, &own, unit);
    if !rebuild.is_empty() {
        families.push(("Resync and rebuild by itself".to_owned(), rebuild));
    }
    families
}

fn own_families<'a>(
    profile: &str,
    phases: &[&'a str],
    unit: &dyn Fn(&str) -> Unit,
) -> Vec<(String, Vec<&'a str>)> {
    let named = named_families(profile);
    let present = |list: &[&str]| -> Vec<&'a str> {
        phases
            .iter()
            .copied()
            .filter(|p| list.contains(p))
            .collect()
    };
    if !named.is_empty() {
        return named
            .iter()
            .map(|(name, list)| ((*name).to_owned(), present(list)))
            .filter(|(_, list)| !list.is_empty())
            .collect();
    }
    let mut families: Vec<(Unit, Vec<&'a str>)> = Vec::new();
    for phase in phases {
        match families.iter_mut().find(|(u, _)| *u == unit(phase)) {
            Some((_, list)) => list.push(phase),
            None => families.push((unit(phase), vec![phase])),
        }
    }
    families
        .into_iter()
        .map(|(unit, list)| {
            let name = match unit {
                Unit::BytesPerSecond => "Throughput",
                Unit::PerSecond => "Rate",
                Unit::Seconds => "Time",
                Unit::Percent => "Share",
            };
            (name.to_owned(), list)
        })
        .collect()
}
