//! Records in a few lines, for snapshots.
use raidlab_results::import::Imported;
use raidlab_results::record::{PhaseRecord, Provenance, Status, TrialRecord, Unit};
use std::fmt::Write as _;

pub(crate) fn render(imported: &Imported) -> String {
    let mut out = format!("{} | {}\n", imported.format, imported.title);
    for trial in &imported.trials {
        render_trial(&mut out, trial);
    }
    for remark in &imported.remarks {
        writeln!(out, "! {remark}").unwrap();
    }
    out
}

fn render_trial(out: &mut String, trial: &TrialRecord) {
    let Provenance::Imported {
        tool, tool_version, ..
    } = &trial.provenance
    else {
        panic!("an import of another provenance");
    };
    let version = tool_version.as_deref().unwrap_or("?");
    writeln!(
        out,
        "#{} round {} {}: {:?} ({tool} {version})",
        trial.order, trial.round, trial.profile, trial.cell.label
    )
    .unwrap();
    for (name, value) in &trial.settings {
        let mark = if trial.cell.factors.contains_key(name) {
            "*"
        } else {
            ""
        };
        writeln!(out, "    {name}{mark} = {value}").unwrap();
    }
    let optional = [
        ("started", trial.started.clone()),
        (
            "elapsed",
            trial.elapsed_ns.map(|ns| format!("{} s", ns as f64 / 1e9)),
        ),
        ("seed", trial.seed.map(|seed| seed.to_string())),
        ("command", trial.command.clone()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            writeln!(out, "    ({name}: {value})").unwrap();
        }
    }
    if let Status::Failed { reason } = &trial.status {
        writeln!(out, "    FAILED {reason}").unwrap();
    }
    for flag in &trial.flags {
        writeln!(out, "    flag {flag}").unwrap();
    }
    for phase in &trial.phases {
        render_phase(out, phase);
    }
}

fn render_phase(out: &mut String, phase: &PhaseRecord) {
    let unit = match phase.unit {
        Unit::BytesPerSecond => "B/s",
        Unit::PerSecond => "/s",
        Unit::Seconds | Unit::Percent => panic!("a rate in seconds or per cent"),
    };
    let rate = phase
        .rate
        .map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    write!(out, "  {:<16} {rate:>16} {unit:<3}", phase.phase).unwrap();
    if let Some(percent) = phase.cpu_percent {
        write!(out, " cpu {percent:.1} %").unwrap();
    }
    if let Some(bytes) = phase.bytes {
        write!(out, " bytes {bytes}").unwrap();
    }
    if let Some(ops) = phase.ops {
        write!(out, " ops {ops}").unwrap();
    }
    if let Some(ns) = phase.elapsed_ns {
        write!(out, " in {} s", ns as f64 / 1e9).unwrap();
    }
    if let Some(depth) = phase.mean_in_flight {
        write!(out, " in flight {depth}").unwrap();
    }
    if let Some(latency) = &phase.latency {
        let at = |percent| latency.percentile(percent).map_or(0, |span| span.0);
        write!(
            out,
            " histogram n={} mean={} p50={} p99={} max={} ns",
            latency.count(),
            latency.mean().map_or(0, |span| span.0),
            at(50.0),
            at(99.0),
            latency.max().map_or(0, |span| span.0)
        )
        .unwrap();
    }
    out.push('\n');
    for figure in &phase.figures {
        writeln!(
            out,
            "      {} = {} {:?}",
            figure.name, figure.value, figure.unit
        )
        .unwrap();
    }
    for flag in &phase.flags {
        let mark = if flag.voids { "VOID " } else { "" };
        writeln!(out, "      {mark}{flag}").unwrap();
    }
}
