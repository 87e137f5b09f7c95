//! Baseline against candidate: ratio, interval, tests and verdict.

use crate::error::{StatsError, positive};
use crate::estimate::{Confidence, Estimate, Flag, Interval, Method};
use crate::law::Law;
use crate::mann_whitney::{RANK_VERDICT_FROM, mann_whitney};
use crate::multiple::holm;
use crate::permutation::{permutation_test, sign_flip_test};
use crate::ratio::{
    RatioTest, bare_ratio, differences, fieller_ratio, log_ratios, mean_ratio,
    paired_fieller_ratio, paired_log_ratio, unpaired_log_ratio,
};
use crate::runs::{minimum_detectable, runs_required};
use crate::sample::Sample;
use crate::special::t_ppf;
use crate::verdict::{Direction, Verdict};
use crate::wilcoxon::wilcoxon_signed_rank;
use serde::{Deserialize, Serialize};

/// Practical margin δ unless another is declared.
pub const DEFAULT_MARGIN: f64 = 0.02;
/// Fewest pairs for a signed-rank p: five cannot come below .0625.
const PAIRED_RANK_FROM: usize = 6;

/// How the runs of the two sides belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// The i-th runs of both sides were made in the same round.
    Paired,
    /// Runs of different sessions, or a stored baseline.
    Unpaired,
}

/// What a comparison is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// How the runs belong together.
    pub pairing: Pairing,
    /// Which way the figure improves.
    pub direction: Direction,
    /// Practical margin δ: 0.02 calls differences within ±2 % equivalent.
    pub margin: f64,
    /// Confidence of the interval; see [`Confidence::shared_by`] for a table of many.
    pub confidence: Confidence,
}

impl Criteria {
    /// Margin 2 %, confidence 95 %.
    #[must_use]
    pub fn new(pairing: Pairing, direction: Direction) -> Self {
        Self {
            pairing,
            direction,
            margin: DEFAULT_MARGIN,
            confidence: Confidence::P95,
        }
    }

    /// With another margin.
    #[must_use]
    pub fn with_margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }

    /// With another confidence.
    #[must_use]
    pub fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }
}

/// Tests of "no difference", two-sided.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tests {
    /// Student's (paired) or Welch's t on the logarithms, or Fieller's: the p that belongs to the interval.
    pub t: Option<f64>,
    /// Sign flips of the log ratios (paired; of the differences, where a value is not above zero) or permutation of the
    /// means.
    pub permutation: Option<f64>,
    /// Wilcoxon's signed ranks (paired) or Mann–Whitney. `None` under 6 pairs or 4 + 4 runs, where
    /// no rank verdict can be had.
    pub rank: Option<f64>,
    /// Probability that a run of the candidate exceeds one of the baseline (A₁₂); `None` under
    /// 4 + 4 runs.
    pub a12: Option<f64>,
}

/// A comparison with all that a report needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Valid runs of the baseline; some may be in no pair.
    pub baseline_n: usize,
    /// Valid runs of the candidate.
    pub candidate_n: usize,
    /// The values of both sides that ratio and interval rest on: runs, runs of rounds that both sides have (paired), or
    /// means of sessions ([`crate::sessions`]).
    pub replicates: [usize; 2],
    /// What it was judged by.
    pub criteria: Criteria,
    /// Candidate over baseline, with its interval: the paired log-t ratio, or Welch's on the
    /// logarithms, or Fieller's where a value is not above zero.
    pub ratio: Estimate,
    /// Unpaired only: ratio of arithmetic means with Fieller's interval, for comparison.
    pub fieller: Option<Estimate>,
    /// What tests other ratios than one; `None` of single runs.
    pub law: Option<Law>,
    /// p values and effect size.
    pub tests: Tests,
    /// Holm-adjusted t p value, once [`adjust_family`] has run.
    pub p_adjusted: Option<f64>,
    /// Smallest true difference (0.03 is 3 %) that so many runs with this scatter would show with
    /// 80 % probability.
    pub minimum_detectable: Option<f64>,
    /// better / worse / equivalent / different, small / inconclusive.
    pub verdict: Verdict,
    /// The reason of the verdict, one sentence.
    pub why: String,
}

/// The ratio turned so that above 1 is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The point.
    pub value: f64,
    /// The interval, if there is one.
    pub interval: Option<Interval>,
}

impl Comparison {
    /// The ratio turned so that above 1 is better: the same verdict follows whether a result is
    /// stated as a rate or as a time. `None` where a ratio does not order the sides (Fieller's with
    /// a baseline's mean that is not above zero, or a candidate's below). Of a time of zero it is infinite.
    #[must_use]
    pub fn gain(&self) -> Option<Gain> {
        gain_of(&self.ratio, self.criteria.direction)
    }

    /// One-sided p of "the gain is `threshold` or more": small when it is surely less. `None` without an ordered interval.
    #[must_use]
    pub fn p_of_less(&self, threshold: f64) -> Option<f64> {
        self.gain()?.interval?;
        let law = self.law?;
        Some(match self.criteria.direction {
            Direction::HigherIsBetter => law.p_of_less(threshold),
            Direction::LowerIsBetter => law.p_of_more(1.0 / threshold),
        })
    }

    /// With the numbers of valid runs of the sides, when not all of them are in pairs or are told apart.
    #[must_use]
    pub fn of_runs(self, baseline: usize, candidate: usize) -> Self {
        Self {
            baseline_n: baseline,
            candidate_n: candidate,
            ..self
        }
    }
}

fn gain_of(ratio: &Estimate, direction: Direction) -> Option<Gain> {
    if ratio.flags.contains(&Flag::Unordered) {
        return None;
    }
    Some(match direction {
        Direction::HigherIsBetter => Gain {
            value: ratio.value,
            interval: ratio.interval,
        },
        Direction::LowerIsBetter => Gain {
            value: inverse(ratio.value),
            interval: ratio.interval.map(|i| Interval {
                lo: inverse(i.hi),
                hi: inverse(i.lo),
                ..i
            }),
        },
    })
}

/// No time at all, and less by scatter alone, is infinitely faster.
fn inverse(ratio: f64) -> f64 {
    if ratio > 0.0 {
        1.0 / ratio
    } else {
        f64::INFINITY
    }
}

/// Compares a candidate with a baseline; values in run (round) order.
///
/// # Errors
/// As [`Sample::new`] for either side; [`StatsError::UnequalLengths`] for paired data that cannot be;
/// [`StatsError::Parameter`] for a margin outside 0 < δ < 1 or a baseline whose mean is zero.
pub fn compare(
    baseline: &[f64],
    candidate: &[f64],
    criteria: &Criteria,
) -> Result<Comparison, StatsError> {
    if positive("margin", criteria.margin)? >= 1.0 {
        let allowed = "it is a share, as 0.02 for 2 %, and lies below 1";
        return Err(StatsError::Parameter {
            name: "margin",
            value: criteria.margin,
            allowed,
        });
    }
    let (a, b) = (Sample::new(baseline)?, Sample::new(candidate)?);
    let test = ratio_test(&a, &b, criteria)?;
    let fieller = match criteria.pairing {
        Pairing::Unpaired => fieller_ratio(&a, &b, criteria.confidence)
            .ok()
            .map(|f| f.ratio),
        Pairing::Paired => None,
    };
    let (verdict, why) = judge(&test, criteria);
    let detectable = test
        .se_log
        .zip(test.df)
        .map(|(se, df)| libm::expm1(minimum_detectable(se, df, criteria.confidence)));
    Ok(Comparison {
        baseline_n: a.len(),
        candidate_n: b.len(),
        replicates: [a.len(), b.len()],
        criteria: *criteria,
        law: test.law,
        tests: run_tests(&a, &b, criteria.pairing, test.p)?,
        ratio: test.ratio,
        fieller,
        p_adjusted: None,
        minimum_detectable: detectable.filter(|d| d.is_finite()),
        verdict,
        why,
    })
}

/// The primary ratio: on logarithms, or Fieller's for values that have none.
fn ratio_test(a: &Sample, b: &Sample, criteria: &Criteria) -> Result<RatioTest, StatsError> {
    let confidence = criteria.confidence;
    let paired = criteria.pairing == Pairing::Paired;
    let logarithms = match paired {
        true => paired_log_ratio(a, b, confidence),
        false => unpaired_log_ratio(a, b, confidence),
    };
    match logarithms {
        Err(StatsError::NotPositive { .. }) => {}
        outcome => return outcome,
    }
    let mut test = if a.len() < 2 || b.len() < 2 {
        let n = if paired { 1 } else { a.len() + b.len() };
        bare_ratio(mean_ratio(a, b)?, Method::Fieller, n)
    } else {
        let fieller = match paired {
            true => paired_fieller_ratio(a, b, confidence)?,
            false => fieller_ratio(a, b, confidence)?,
        };
        RatioTest {
            ratio: fieller.ratio,
            t: fieller.law.t(1.0),
            df: Some(fieller.law.df()),
            p: Some(fieller.law.p(1.0)),
            se_log: None,
            law: Some(fieller.law),
        }
    };
    // Nothing is worse than a rate of zero, and no time better.
    if a.mean() <= 0.0 || b.mean() < 0.0 {
        test.ratio.flag(Flag::Unordered);
    }
    Ok(test)
}

fn run_tests(
    a: &Sample,
    b: &Sample,
    pairing: Pairing,
    t: Option<f64>,
) -> Result<Tests, StatsError> {
    let smaller = a.len().min(b.len());
    if smaller < 2 {
        return Ok(Tests::default());
    }
    let ranked = (smaller >= RANK_VERDICT_FROM).then(|| mann_whitney(a, b));
    let (permutation, rank) = match pairing {
        Pairing::Paired => {
            let d = log_ratios(a, b).or_else(|_| differences(a, b))?;
            let rank = (d.len() >= PAIRED_RANK_FROM).then(|| wilcoxon_signed_rank(&d).p);
            (sign_flip_test(&d).ok(), rank)
        }
        Pairing::Unpaired => (permutation_test(a, b).ok(), ranked.map(|r| r.p)),
    };
    Ok(Tests {
        t,
        permutation: permutation.map(|p| p.p),
        rank,
        a12: ranked.map(|r| r.a12),
    })
}

fn judge(test: &RatioTest, criteria: &Criteria) -> (Verdict, String) {
    let unknown = Verdict::Inconclusive { more_rounds: None };
    if test.ratio.flags.contains(&Flag::SingleValue) {
        return (unknown, Flag::SingleValue.text().to_owned());
    }
    let Some(gain) = gain_of(&test.ratio, criteria.direction) else {
        return (unknown, Flag::Unordered.text().to_owned());
    };
    let Some(interval) = gain.interval else {
        return (
            unknown,
            "ratio not estimable: its interval has no bound".to_owned(),
        );
    };
    let margin = percent(criteria.margin);
    let verdict = Verdict::of_gain(&interval, criteria.margin);
    let why = match verdict {
        Verdict::Better => format!("the whole interval is better by more than {margin}"),
        Verdict::Worse => format!("the whole interval is worse by more than {margin}"),
        Verdict::Equivalent => format!("the whole interval is within ±{margin}"),
        Verdict::DifferentButSmall => {
            format!("the interval excludes no difference but reaches into ±{margin}")
        }
        Verdict::Inconclusive { .. } => {
            let more_rounds = more_rounds(&gain, test, criteria);
            let why = format!("the interval holds no difference as well as one beyond ±{margin}");
            return (Verdict::Inconclusive { more_rounds }, why);
        }
    };
    (verdict, why)
}

/// Rounds still needed for a half-width of δ (or of the distance from 1, where that is more and
/// already tells the sides apart): n·(half-width/δ)² in all, corrected for Student's t at small n.
/// Where the interval is that narrow but straddles an edge of the margin, it has to shrink until it
/// leaves either the edge or 1.
fn more_rounds(gain: &Gain, test: &RatioTest, criteria: &Criteria) -> Option<u64> {
    let (se, interval) = (test.se_log?, gain.interval?);
    let n = match criteria.pairing {
        Pairing::Paired => test.ratio.n as f64,
        Pairing::Unpaired => 0.5 * test.ratio.n as f64,
    };
    let half_width = 0.5 * (libm::log(interval.hi) - libm::log(interval.lo));
    let distance = libm::log(gain.value).abs();
    let margin = libm::log1p(criteria.margin);
    let wanted = if half_width > distance.max(margin) {
        distance.max(margin)
    } else {
        distance.max(margin - distance)
    };
    let needed = runs_required(se * n.sqrt(), wanted, criteria.confidence).ok()?;
    Some(needed.saturating_sub(n as u64).max(1))
}

/// A share as a percentage without needless digits: "2 %", "0.5 %".
fn percent(share: f64) -> String {
    let digits = format!("{:.3}", 100.0 * share);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Adjusts the comparisons of one report together by Holm's method: fills `p_adjusted`, and takes
/// back a difference (to "inconclusive") that does not hold at the family's level. A pre-declared
/// primary comparison is exempt: leave it out. Comparisons without a p value are left alone.
///
/// # Errors
/// Does not fail for comparisons made by [`compare`]; [`StatsError::Parameter`] for a p value from
/// elsewhere outside 0 to 1.
pub fn adjust_family(
    comparisons: &mut [Comparison],
    confidence: Confidence,
) -> Result<(), StatsError> {
    let p: Vec<f64> = comparisons.iter().filter_map(|c| c.tests.t).collect();
    let adjusted = holm(&p)?;
    let family = p.len();
    let tested = comparisons.iter_mut().filter(|c| c.tests.t.is_some());
    for (comparison, p) in tested.zip(adjusted) {
        comparison.p_adjusted = Some(p);
        let claims_difference = matches!(
            comparison.verdict,
            Verdict::Better | Verdict::Worse | Verdict::DifferentButSmall
        );
        if claims_difference && p > 1.0 - confidence.level() {
            let more_rounds = more_for_family(comparison, confidence, family);
            // The p value is beside it: with it in the sentence, each of a table's would be another.
            comparison.why = format!(
                "alone it would be \"{}\", but among the {family} comparisons that are judged together it may be \
                 chance",
                comparison.verdict
            );
            comparison.verdict = Verdict::Inconclusive { more_rounds };
        }
    }
    Ok(())
}

/// Rounds still needed, in all likelihood, for a difference that is as large as it looks to hold among so
/// many comparisons: until Bonferroni's interval, the widest that Holm's method asks for, excludes 1.
fn more_for_family(comparison: &Comparison, confidence: Confidence, size: usize) -> Option<u64> {
    let interval = comparison.ratio.interval.filter(|i| i.lo > 0.0)?;
    let runs = comparison.ratio.n as f64;
    let (n, df) = match comparison.criteria.pairing {
        Pairing::Paired => (runs, runs - 1.0),
        Pairing::Unpaired => (0.5 * runs, runs - 2.0),
    };
    let half_width = 0.5 * (libm::log(interval.hi) - libm::log(interval.lo));
    let se = half_width / t_ppf(comparison.criteria.confidence.upper(), df);
    let distance = libm::log(comparison.ratio.value).abs();
    let needed = runs_required(se * n.sqrt(), distance, confidence.shared_by(size as u32)).ok()?;
    Some(needed.saturating_sub(n as u64).max(1))
}

#[cfg(test)]
mod tests;
