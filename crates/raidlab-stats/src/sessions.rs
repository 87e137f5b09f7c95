//! Baseline against candidate where the runs of a side come from several sessions.

use crate::compare::{Comparison, Criteria, Pairing, compare};
use crate::error::StatsError;
use crate::sample::Sample;
use crate::two_level::two_level;

/// Compares sides that were not interleaved, each given by its sessions with their runs.
///
/// What differs from session to session (a machine begun anew, other neighbours) is no scatter of runs: of a side with two
/// sessions or more the replicates are the means of its sessions, unless these scatter no more than their runs let expect
/// (T₂² ≤ 0, see [`two_level`]); then they are the runs. Of a single session there are only the runs, and the interval knows
/// nothing of what other sessions would add.
///
/// # Errors
/// As [`compare`], whatever `criteria` say of pairs.
pub fn compare_sessions(
    baseline: &[Vec<f64>],
    candidate: &[Vec<f64>],
    criteria: &Criteria,
) -> Result<Comparison, StatsError> {
    // A value without a logarithm takes both sides to arithmetic means.
    let all = baseline.iter().chain(candidate).flatten();
    let geometric = all.into_iter().all(|value| *value > 0.0);
    let (a, b) = (
        replicates(baseline, geometric, criteria)?,
        replicates(candidate, geometric, criteria)?,
    );
    let unpaired = Criteria {
        pairing: Pairing::Unpaired,
        ..*criteria
    };
    let runs = |side: &[Vec<f64>]| side.iter().map(Vec::len).sum();
    Ok(compare(&a, &b, &unpaired)?.of_runs(runs(baseline), runs(candidate)))
}

/// The runs of a side, or the means of its sessions where these say more.
fn replicates(
    sessions: &[Vec<f64>],
    geometric: bool,
    criteria: &Criteria,
) -> Result<Vec<f64>, StatsError> {
    let samples: Vec<Sample> = sessions
        .iter()
        .map(|runs| match geometric {
            true => Sample::new(runs.clone())?.ln(),
            false => Sample::new(runs.clone()),
        })
        .collect::<Result<_, _>>()?;
    let pooled = match samples.iter().any(|runs| runs.len() > 1) {
        // Costs decide on how many runs would be best, which is not asked here.
        true if samples.len() > 1 => match two_level(&samples, 1.0, 1.0, criteria.confidence) {
            Ok(levels) => levels.pooled,
            // A session of one run tells nothing of the scatter within.
            Err(StatsError::TooFew { .. }) => false,
            Err(error) => return Err(error),
        },
        _ => true,
    };
    if pooled {
        return Ok(sessions.iter().flatten().copied().collect());
    }
    let mean = |runs: &Sample| match geometric {
        true => libm::exp(runs.mean()),
        false => runs.mean(),
    };
    Ok(samples.iter().map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Direction, Verdict};

    fn rates() -> Criteria {
        Criteria::new(Pairing::Unpaired, Direction::HigherIsBetter)
    }

    fn session(mean: f64) -> Vec<f64> {
        [0.999, 1.0, 1.001, 1.0005, 0.9995].map(|x| x * mean).into()
    }

    /// Sessions 5 % apart, runs 0.1 %: fifteen runs a side look certain, three sessions are not.
    #[test]
    fn sessions_that_differ_are_the_replicates() {
        let (a, b) = (
            [100.0, 106.0, 96.0].map(session),
            [94.0, 99.0, 91.0].map(session),
        );
        let runs = compare(&a.concat(), &b.concat(), &rates()).unwrap();
        assert_eq!(runs.verdict, Verdict::Worse);
        let c = compare_sessions(&a, &b, &rates()).unwrap();
        assert!(matches!(c.verdict, Verdict::Inconclusive { .. }), "{c:?}");
        assert_eq!(
            (c.replicates, c.baseline_n, c.candidate_n),
            ([3, 3], 15, 15)
        );
        assert!((c.ratio.value - runs.ratio.value).abs() < 1e-9);
    }

    #[test]
    fn sessions_alike_are_pooled_and_one_is_its_runs() {
        let (a, b) = ([100.0, 100.0].map(session), [90.0].map(session));
        let c = compare_sessions(&a, &b, &rates()).unwrap();
        assert_eq!(c.replicates, [10, 5]);
        assert_eq!(c.verdict, Verdict::Worse);
        // Sessions of a run each: the runs are the sessions.
        let singles = [vec![100.0], vec![101.0], vec![99.0]];
        let c = compare_sessions(&singles, &singles, &rates()).unwrap();
        assert_eq!(c.replicates, [3, 3]);
        // One session of one run leaves nothing to compare with the scatter between.
        let mixed = [vec![100.0], vec![101.0, 101.5]];
        let c = compare_sessions(&mixed, &b, &rates()).unwrap();
        assert_eq!(c.replicates, [2, 5]);
    }

    #[test]
    fn runs_of_sessions_are_in_no_pairs_whatever_the_criteria_say() {
        let (a, b) = ([100.0].map(session), [94.0, 99.0, 91.0].map(session));
        let paired = Criteria {
            pairing: Pairing::Paired,
            ..rates()
        };
        let c = compare_sessions(&a, &b, &paired).unwrap();
        assert_eq!(c, compare_sessions(&a, &b, &rates()).unwrap());
        assert_eq!(c.criteria.pairing, Pairing::Unpaired);
    }

    #[test]
    fn sessions_with_a_zero_are_compared_by_their_means() {
        let stalled = [vec![0.0; 4], vec![0.0; 4]];
        let c = compare_sessions(&[100.0, 104.0].map(session), &stalled, &rates()).unwrap();
        assert_eq!(c.ratio.value, 0.0);
        assert_eq!(c.replicates, [2, 8]);
        assert!(compare_sessions(&[], &stalled, &rates()).is_err());
    }
}
