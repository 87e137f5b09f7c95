//! Cumulative curves of response times, from the histograms of the runs.
use super::distribution::{Panel, Strand, left_out, panels};
use crate::report::document::{Curve, DistributionChart, Spread, Step};
use crate::report::group::Group;
use raidlab_core::histogram::Latencies;

/// Most curves of one chart that can be told apart: eight colours, and some of them dashed.
const MOST_CURVES: usize = 12;

/// Fewer operations are no distribution.
const LEAST_OPERATIONS: u64 = 10;

/// The least share that is shown.
pub(crate) const LEAST_SHARE: f64 = 0.01;

/// Shares at which the spread of the runs is told, for each tenfold of the odds.
const LEVELS: u32 = 12;

/// The response times of each phase, a curve for each cell; of one phase alone when that is wanted.
pub(crate) fn curves(
    profile: &str,
    groups: &[Group<'_>],
    phase: Option<&str>,
) -> Vec<DistributionChart> {
    let mut panels = panels(groups);
    if let Some(phase) = phase {
        for panel in &mut panels {
            panel.strands.retain(|strand| strand.phase == phase);
            phase.clone_into(&mut panel.title);
        }
    }
    let charts = panels.iter().filter_map(|panel| chart(profile, panel));
    charts.collect()
}

fn chart(profile: &str, panel: &Panel<'_, '_>) -> Option<DistributionChart> {
    let timed = |strand: &&Strand<'_, '_>| {
        let latencies = strand.group.latencies(strand.phase);
        latencies.is_some_and(|all| all.count() >= LEAST_OPERATIONS)
    };
    let strands: Vec<&Strand<'_, '_>> = panel.strands.iter().filter(timed).collect();
    let drawn = strands.iter().take(MOST_CURVES);
    let curves: Vec<Curve> = drawn.filter_map(|strand| curve(strand)).collect();
    if curves.is_empty() {
        return None;
    }
    let shaded = if curves.iter().any(|curve| !curve.spread.is_empty()) {
        " Shaded: from the fastest to the slowest of the runs."
    } else {
        ""
    };
    let names = curves.iter().map(|curve| curve.name.as_str());
    Some(DistributionChart {
        id: format!("{profile}-latency-{}", panel.title),
        title: format!("{profile}: response time of {}", panel.title_of(names)),
        description: format!(
            "The share of operations that took no longer, histograms of all valid runs merged, as far as the longest; thin where \
             fewer than ten took longer.{shaded}{}",
            left_out(curves.len(), strands.len())
        ),
        curves,
    })
}

fn curve(strand: &Strand<'_, '_>) -> Option<Curve> {
    let merged = strand.group.latencies(strand.phase)?;
    let runs = strand.group.runs(strand.phase);
    let runs = runs.iter().filter_map(|run| run.phase.latency.as_ref());
    let runs: Vec<&Latencies> = runs.filter(|latencies| !latencies.is_empty()).collect();
    Some(Curve {
        name: strand.name.clone(),
        operations: merged.count(),
        steps: steps(&merged),
        spread: spread(&runs),
    })
}

/// Seconds of a time in nanoseconds, above zero for a logarithmic axis.
fn seconds(ns: u64) -> f64 {
    ns.max(1) as f64 / 1e9
}

/// The filled buckets with how many operations are beyond each.
fn steps(latencies: &Latencies) -> Vec<Step> {
    let longest = latencies.max().map_or(0, |max| max.0);
    let mut slower = latencies.count();
    let step = |(highest, count): (u64, u64)| {
        slower = slower.saturating_sub(count);
        // What took longer than an hour is in the last bucket.
        let end = if slower == 0 { longest } else { highest };
        Step {
            seconds: seconds(end.min(longest)),
            slower,
        }
    };
    latencies.buckets().map(step).collect()
}

/// How far runs are apart: at each share, as far as each of them has an operation beyond it.
fn spread(runs: &[&Latencies]) -> Vec<Spread> {
    let fewest = runs.iter().map(|run| run.count()).min().unwrap_or(0);
    if runs.len() < 2 || fewest < LEAST_OPERATIONS {
        return Vec::new();
    }
    let most = 1.0 - 1.0 / fewest as f64;
    let odds = |share: f64| share / (1.0 - share);
    let level = |number: u32| {
        let odds = odds(LEAST_SHARE) * 10_f64.powf(f64::from(number) / f64::from(LEVELS));
        odds / (1.0 + odds)
    };
    let mut shares: Vec<f64> = (0..).map(level).take_while(|share| *share < most).collect();
    shares.push(most);
    let times: Vec<Vec<f64>> = runs.iter().map(|run| at(run, &shares)).collect();
    let of_runs = |place: usize| times.iter().map(move |of_run| of_run[place]);
    let shares = shares.iter().enumerate();
    shares
        .map(|(place, share)| Spread {
            share: *share,
            least: of_runs(place).fold(f64::INFINITY, f64::min),
            greatest: of_runs(place).fold(0.0, f64::max),
        })
        .collect()
}

/// The times that ascending shares of the operations did not exceed, in seconds.
fn at(latencies: &Latencies, shares: &[f64]) -> Vec<f64> {
    let steps = steps(latencies);
    let count = latencies.count() as f64;
    let mut place = 0;
    let time = |share: &f64| {
        while place + 1 < steps.len() && count - (steps[place].slower as f64) < share * count {
            place += 1;
        }
        steps[place].seconds
    };
    shares.iter().map(time).collect()
}
