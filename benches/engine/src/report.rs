//! What is printed.
use crate::configs::Measured;
use crate::goals::{Verdict, is_contended};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Medians of each configuration.
pub(crate) fn table(measured: &[Measured]) -> String {
    let mut by_name: BTreeMap<&str, Vec<&Measured>> = BTreeMap::new();
    for one in measured {
        by_name.entry(&one.name).or_default().push(one);
    }
    let mut text = format!(
        "{:<24} {:>12} {:>10} {:>9} {:>9} {:>8}\n",
        "medians", "IOPS", "CPU ns/IO", "user ns", "in flight", "foreign"
    );
    for (name, rows) in by_name {
        let of = |pick: &dyn Fn(&Measured) -> Option<f64>, digits: usize| {
            median(rows.iter().filter_map(|row| pick(row)).collect())
                .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let iops = of(&|m| Some(m.figures.iops), 0);
        let cpu = of(&|m| Some(m.figures.cpu_ns), 0);
        let user = of(&|m| m.figures.user_ns, 1);
        let in_flight = of(&|m| m.figures.in_flight, 1);
        let foreign = of(&|m| Some(m.foreign), 2);
        let _ = writeln!(
            text,
            "{name:<24} {iops:>12} {cpu:>10} {user:>9} {in_flight:>9} {foreign:>8}"
        );
    }
    let contended = measured.iter().filter(|m| m.contended).count();
    let _ = writeln!(
        text,
        "\n{contended} of {} measurements were contended{}",
        measured.len(),
        if is_contended(measured) {
            ": only ratios of CPU time are judged"
        } else {
            ""
        }
    );
    text
}

/// The goals with their verdicts.
pub(crate) fn goals(verdicts: &[Verdict]) -> String {
    let mut text = "\ngoal\n".to_owned();
    for verdict in verdicts {
        let digits = if verdict.value < 5.0 { 3 } else { 1 };
        let interval = verdict.interval.map_or(String::new(), |(low, high)| {
            format!("[{low:.digits$}, {high:.digits$}]")
        });
        let met = match verdict.met {
            Some(true) => "met",
            Some(false) | None => verdict.note,
        };
        let _ = writeln!(
            text,
            "{:<4} {:<56} {:>8.digits$} {:<16} {:>8}  {met}",
            verdict.id, verdict.what, verdict.value, interval, verdict.goal
        );
    }
    text
}

/// One line a measurement.
pub(crate) fn json_lines(measured: &[Measured]) -> String {
    measured
        .iter()
        .map(|m| {
            let line = serde_json::json!({
                "round": m.round,
                "config": m.name,
                "iops": m.figures.iops,
                "cpu_ns": m.figures.cpu_ns,
                "user_ns": m.figures.user_ns,
                "in_flight": m.figures.in_flight,
                "foreign_cpus": m.foreign,
                "contended": m.contended,
            });
            format!("{line}\n")
        })
        .collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
