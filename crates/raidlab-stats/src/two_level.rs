//! Runs inside sessions: the interval between sessions, and how to spend the next hours.

use crate::describe::{mean, t_ci};
use crate::error::{StatsError, at_least, positive};
use crate::estimate::{Confidence, Estimate, Method};
use crate::sample::Sample;
use crate::summary::{Aggregate, Headline, headline_of};
use serde::{Deserialize, Serialize};

/// Variance at both levels and the allocation that follows (Kalibera & Jones 2013).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TwoLevel {
    /// Mean of the session means; the t interval is over sessions, or over all runs when pooled.
    pub estimate: Estimate,
    /// S₁²: mean variance of the runs within a session.
    pub s1_squared: f64,
    /// S₂²: variance of the session means.
    pub s2_squared: f64,
    /// T₂² = S₂² − S₁²/r₁: what sessions add beyond their runs. May come out negative.
    pub t2_squared: f64,
    /// Best number of runs in a session, ⌈√((c₂/c₁)(S₁²/T₂²))⌉; `None` when sessions add nothing,
    /// so that one long session will do.
    pub best_runs: Option<u64>,
    /// Whether T₂² ≤ 0, so that all runs were pooled into one sample.
    pub pooled: bool,
}

/// Two-level analysis of sessions of runs. `run_cost` and `session_cost` are the costs (in any
/// common unit) of one more run and of one more session.
///
/// Sessions of unequal length enter by their means; r₁ is then the harmonic mean of their lengths.
///
/// # Errors
/// [`StatsError::TooFew`] under two sessions or two runs in one; [`StatsError::Parameter`] for a
/// cost not above zero.
pub fn two_level(
    sessions: &[Sample],
    run_cost: f64,
    session_cost: f64,
    confidence: Confidence,
) -> Result<TwoLevel, StatsError> {
    at_least("a two-level interval (in sessions)", 2, sessions.len())?;
    positive("cost of a run", run_cost)?;
    positive("cost of a session", session_cost)?;
    let mut within = Vec::with_capacity(sessions.len());
    for session in sessions {
        let variance = session.variance().ok_or(StatsError::TooFew {
            purpose: "a two-level interval (in runs of each session)",
            needed: 2,
            got: session.len(),
        })?;
        within.push(variance);
    }
    let shares: Vec<f64> = sessions.iter().map(|s| 1.0 / s.len() as f64).collect();
    let means = Sample::new(sessions.iter().map(Sample::mean).collect::<Vec<_>>())?;
    let s1_squared = mean(&within);
    let s2_squared = means.variance().unwrap_or(0.0);
    let t2_squared = s2_squared - s1_squared * mean(&shares);
    let pooled = t2_squared <= 0.0;
    let mut estimate = if pooled {
        let all: Vec<f64> = sessions
            .iter()
            .flat_map(|s| s.values().iter().copied())
            .collect();
        t_ci(&Sample::new(all)?, confidence)
    } else {
        t_ci(&means, confidence)
    };
    estimate.method = Method::TwoLevelT;
    estimate.n = sessions.iter().map(Sample::len).sum();
    let best_runs = (!pooled).then(|| {
        let runs = (session_cost / run_cost * (s1_squared / t2_squared)).sqrt();
        (runs.ceil() as u64).max(1)
    });
    Ok(TwoLevel {
        estimate,
        s1_squared,
        s2_squared,
        t2_squared,
        best_runs,
        pooled,
    })
}

/// The figure over several sessions of runs, at the level that scatters more: the mean of the sessions' own headlines,
/// with the t interval over sessions. `None` when sessions add nothing to the scatter of their runs (T₂² ≤ 0), so that
/// all runs are one sample. All on the scale of the aggregate; of values that are not below zero the interval is not, either.
///
/// # Errors
/// As [`two_level`]; [`StatsError::NotPositive`] for harmonic and geometric means of values ≤ 0.
pub fn headline_of_sessions(
    sessions: &[Sample],
    aggregate: Aggregate,
    which: Headline,
    confidence: Confidence,
) -> Result<Option<Estimate>, StatsError> {
    let scaled: Result<Vec<Sample>, StatsError> =
        sessions.iter().map(|s| aggregate.forward(s)).collect();
    let scaled = scaled?;
    // What sessions cost has no part in the interval.
    if two_level(&scaled, 1.0, 1.0, confidence)?.pooled {
        return Ok(None);
    }
    let of_session = |session: &Sample| headline_of(session, which, confidence).value;
    let figures = Sample::new(scaled.iter().map(of_session).collect::<Vec<_>>())?;
    let mut estimate = aggregate.back(&t_ci(&figures, confidence));
    estimate.method = Method::TwoLevelT;
    estimate.n = sessions.iter().map(Sample::len).sum();
    // Of few sessions it is wide: what is never below zero has no mean there.
    if let Some(interval) = &mut estimate.interval
        && sessions.iter().all(|session| session.min() >= 0.0)
    {
        interval.lo = interval.lo.max(0.0);
    }
    Ok(Some(estimate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(rows: &[&[f64]]) -> Vec<Sample> {
        rows.iter().map(|r| Sample::new(*r).unwrap()).collect()
    }

    #[test]
    fn sessions_that_add_nothing_are_pooled() {
        let rows = sessions(&[&[1.0, 3.0, 2.0], &[3.0, 1.0, 2.0]]);
        let r = two_level(&rows, 1.0, 1.0, Confidence::P95).unwrap();
        assert!(r.pooled && r.best_runs.is_none());
        assert_eq!(r.estimate.n, 6);
    }

    #[test]
    fn shapes_and_costs_are_checked() {
        let p = Confidence::P95;
        assert!(two_level(&sessions(&[&[1.0, 2.0]]), 1.0, 1.0, p).is_err());
        assert!(two_level(&sessions(&[&[1.0, 2.0], &[1.0]]), 1.0, 1.0, p).is_err());
        assert!(two_level(&sessions(&[&[1.0, 2.0], &[1.0, 2.0]]), 0.0, 1.0, p).is_err());
        let unequal = two_level(&sessions(&[&[1.0, 2.0], &[9.0, 9.5, 9.1]]), 1.0, 5.0, p);
        assert_eq!(unequal.unwrap().best_runs, Some(1));
    }
}
