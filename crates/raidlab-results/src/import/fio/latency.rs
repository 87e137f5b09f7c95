//! Response times: a histogram where fio gives one, otherwise its percentiles.
use super::model::{Direction, Times};
use crate::import::draft::{Harvest, figure};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::histogram::Latencies;
use raidlab_core::time::Span;

/// The percentiles that are kept where there is no histogram.
const PERCENTILES: [(f64, &str); 4] = [
    (50.0, "latency-p50"),
    (90.0, "latency-p90"),
    (99.0, "latency-p99"),
    (99.9, "latency-p99.9"),
];

/// Adds the latency that has a distribution: of the whole operation when fio was asked for it
/// (`lat_percentiles=1`), otherwise of its completion; and where none has, the whole operation's mean
/// and maximum.
pub(super) fn add_latency(phase: &mut PhaseRecord, active: &[&Direction], harvest: &mut Harvest) {
    type Of = for<'a> fn(&'a Direction) -> Option<Times<'a>>;
    let all = |of: Of| active.iter().map(|d| of(d)).collect::<Option<Vec<_>>>();
    let spread = |all: &Vec<Times<'_>>| all.iter().all(Times::has_distribution);
    let (whole, completion) = (all(Direction::whole), all(Direction::completion));
    let is_whole = match (&whole, &completion) {
        (Some(whole), Some(completion)) => spread(whole) || !spread(completion),
        (whole, _) => whole.is_some(),
    };
    let Some(parts) = (if is_whole { whole } else { completion }) else {
        harvest.remark_once("fio gives no response times (neither lat nor clat)");
        return;
    };
    if !is_whole {
        harvest.remark_once(
            "latencies are fio's completion latencies (clat): without the time of submission",
        );
    }
    if parts.iter().any(Times::is_in_microseconds) {
        harvest.remark_once("this fio (before 2.99) tells response times in whole microseconds");
    }
    if parts.iter().all(Times::has_bins) {
        let mut merged = Latencies::new();
        for part in &parts {
            merged.merge(&histogram(part, &phase.phase, harvest));
        }
        phase.latency = Some(merged);
        return;
    }
    if let [only] = parts.as_slice() {
        for (percent, name) in PERCENTILES {
            if let Some(ns) = only.percentile(percent) {
                figure(phase, name, ns / 1e9, Unit::Seconds);
            }
        }
    } else if parts.iter().any(Times::has_distribution) {
        harvest.remark_once(
            "percentiles of several jobs cannot be joined: left out (json+ has histograms, which can)",
        );
    }
    let max = parts.iter().map(Times::max).fold(0.0, f64::max);
    figure(phase, "latency-max", max / 1e9, Unit::Seconds);
    let n: f64 = parts.iter().map(|times| times.n as f64).sum();
    let mean = |times: &Times<'_>| times.mean() * (times.n as f64 / n);
    let mean = parts.iter().map(mean).sum::<f64>();
    figure(phase, "latency-mean", mean / 1e9, Unit::Seconds);
}

fn histogram(times: &Times<'_>, phase: &str, harvest: &mut Harvest) -> Latencies {
    let mut counts = Latencies::new();
    let max = times.max() as u64;
    let bins = times.bins().filter(|(_, count)| *count > 0);
    let top = bins.clone().map(|(ns, _)| ns).fold(0.0, f64::max);
    let mut total = 0_u64;
    for (ns, mut count) in bins {
        total = total.saturating_add(count);
        // fio tells the maximum exactly, its bucket only to 1 %.
        if ns.to_bits() == top.to_bits() && max > 0 {
            counts.record(Span(max));
            count -= 1;
        }
        let middle = Span((ns as u64).min(if max > 0 { max } else { u64::MAX }));
        counts.record_n(middle, count);
    }
    if total != times.n {
        harvest.remark_once(format!(
            "the histogram of {phase} counts {total} operations, fio says {}",
            times.n
        ));
    }
    counts
}
