//! Bootstrap intervals, reproducible to the bit.
//!
//! For n ≥ 10 runs and smooth statistics only. With outliers the bootstrap of a trimmed mean is far
//! wider than the trimmed t interval (resamples hold an outlier twice), so below n = 20 prefer
//! [`crate::trimmed`] and [`crate::median`].

use crate::describe::{mean, median_sorted, quantile_sorted, sum, sum_of_squares};
use crate::error::{StatsError, at_least, at_most};
use crate::estimate::{Confidence, Estimate, Flag, Interval, Method};
use crate::prng::{Stream, seed_from_data};
use crate::sample::Sample;
use crate::special::{norm_cdf, norm_ppf};
use serde::{Deserialize, Serialize};

/// Resamples drawn unless another number is asked for.
pub const DEFAULT_RESAMPLES: usize = 10_000;
const MAX_RESAMPLES: usize = 1_000_000;
const MAX_VALUES: usize = 5_000;
/// Largest number of resamples that [`bootstrap_exact`] enumerates (6⁶ is below).
const MAX_ENUMERATED: u64 = 100_000;
/// A statistic to bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Mean without this many values at each end.
    TrimmedMean(usize),
    /// Median.
    Median,
}

impl Statistic {
    /// Smallest sample it is defined for even with one value left out, as the jackknife does.
    fn needs(self) -> usize {
        match self {
            Self::Mean | Self::Median => 2,
            Self::TrimmedMean(k) => k.saturating_mul(2).saturating_add(2),
        }
    }

    /// The statistic of the values, which it may reorder.
    fn of(self, values: &mut [f64]) -> f64 {
        if self != Self::Mean {
            values.sort_unstable_by(f64::total_cmp);
        }
        match self {
            Self::Mean => pairwise_mean(values),
            Self::TrimmedMean(k) => pairwise_mean(&values[k..values.len() - k]),
            Self::Median => median_sorted(values),
        }
    }
}

/// Mean by numpy's pairwise summation.
///
/// z₀ counts ties between resampled statistics and the estimate, and whether a resample that is a
/// permutation of the data ties is a matter of the last bit. So the order of summation is part of
/// the definition; this is the one of `scipy.stats.bootstrap` on numpy arrays.
fn pairwise_mean(values: &[f64]) -> f64 {
    pairwise_sum(values) / values.len() as f64
}

/// In order below eight values; eight interleaved partial sums up to 128; halves above.
fn pairwise_sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    const BLOCK: usize = 128;
    let n = values.len();
    if n < LANES {
        return values.iter().fold(0.0, |total, x| total + x);
    }
    if n > BLOCK {
        let half = n / 2 - (n / 2) % LANES;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut lane = whole[0];
    for chunk in &whole[1..] {
        for (total, x) in lane.iter_mut().zip(chunk) {
            *total += x;
        }
    }
    let [a, b, c, d, e, f, g, h] = lane;
    let total = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(total, |total, x| total + x)
}

/// A bootstrap: point, BCa interval, and the numbers to check it by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// The statistic of the data with its BCa interval; flagged [`Flag::Degenerate`] without one.
    pub estimate: Estimate,
    /// Plain percentile interval of the resampled statistics.
    pub percentile: Interval,
    /// Standard deviation of the resampled statistics (n − 1).
    pub standard_error: f64,
    /// Bias correction z₀; `None` when infinite.
    pub z0: Option<f64>,
    /// Acceleration a, from the jackknife.
    pub acceleration: f64,
    /// The corrected levels α₁, α₂ at which the quantiles were read.
    pub alpha: Option<(f64, f64)>,
    /// Number of resamples.
    pub resamples: usize,
    /// Seed of the resampling; `None` when all resamples were enumerated.
    pub seed: Option<u64>,
}

/// BCa bootstrap (Efron 1987) with a seed of its own: for each resample, n indices in turn.
///
/// The result depends on the order of the values, since the indices do.
///
/// # Errors
/// [`StatsError::TooFew`] for a sample the statistic (or its jackknife) is undefined on,
/// [`StatsError::TooMany`] beyond 5000 values or a million resamples.
pub fn bootstrap_bca(
    sample: &Sample,
    statistic: Statistic,
    resamples: usize,
    seed: u64,
    confidence: Confidence,
) -> Result<Bootstrap, StatsError> {
    check_sizes(sample, statistic)?;
    at_least("a bootstrap (in resamples)", 100, resamples)?;
    at_most("a bootstrap (in resamples)", MAX_RESAMPLES, resamples)?;
    let mut stream = Stream::new(seed);
    let mut drawn = vec![0.0; sample.len()];
    let replicates = (0..resamples)
        .map(|_| {
            draw(&mut stream, sample.values(), &mut drawn);
            statistic.of(&mut drawn)
        })
        .collect();
    Ok(assemble(
        sample,
        statistic,
        replicates,
        Some(seed),
        confidence,
    ))
}

/// BCa bootstrap seeded from the data: [`bootstrap_bca`] of the *sorted* values with 10 000
/// resamples and [`seed_from_data`] of them, so neither a seed nor the run order is an input.
///
/// # Errors
/// As [`bootstrap_bca`].
pub fn bootstrap(
    sample: &Sample,
    statistic: Statistic,
    confidence: Confidence,
) -> Result<Bootstrap, StatsError> {
    let seed = seed_from_data(sample.sorted());
    let ordered = Sample::new(sample.sorted())?;
    bootstrap_bca(&ordered, statistic, DEFAULT_RESAMPLES, seed, confidence)
}

/// BCa bootstrap over all nⁿ resamples, without any chance; for n ≤ 6.
///
/// # Errors
/// As [`bootstrap_bca`], with [`StatsError::TooMany`] above n = 6.
pub fn bootstrap_exact(
    sample: &Sample,
    statistic: Statistic,
    confidence: Confidence,
) -> Result<Bootstrap, StatsError> {
    check_sizes(sample, statistic)?;
    let n = sample.len();
    at_most("an exhaustive bootstrap", 6, n)?;
    let count = (n as u64).pow(n as u32).min(MAX_ENUMERATED);
    let mut drawn = vec![0.0; n];
    let replicates = (0..count)
        .map(|code| {
            let mut rest = code;
            for slot in &mut drawn {
                *slot = sample.values()[(rest % n as u64) as usize];
                rest /= n as u64;
            }
            statistic.of(&mut drawn)
        })
        .collect();
    Ok(assemble(sample, statistic, replicates, None, confidence))
}

/// Ratio candidate/baseline of a statistic with a bootstrap percentile interval; each side is
/// resampled on its own, the baseline first.
///
/// # Errors
/// As [`bootstrap_bca`], and [`StatsError::NotPositive`] for values ≤ 0 on either side.
pub fn bootstrap_ratio(
    baseline: &Sample,
    candidate: &Sample,
    statistic: Statistic,
    resamples: usize,
    seed: u64,
    confidence: Confidence,
) -> Result<Estimate, StatsError> {
    for side in [baseline, candidate] {
        check_sizes(side, statistic)?;
        side.require_positive("a bootstrapped ratio")?;
    }
    at_least("a bootstrap (in resamples)", 100, resamples)?;
    at_most("a bootstrap (in resamples)", MAX_RESAMPLES, resamples)?;
    let mut stream = Stream::new(seed);
    let mut a = vec![0.0; baseline.len()];
    let mut b = vec![0.0; candidate.len()];
    let mut ratios: Vec<f64> = (0..resamples)
        .map(|_| {
            draw(&mut stream, baseline.values(), &mut a);
            draw(&mut stream, candidate.values(), &mut b);
            statistic.of(&mut b) / statistic.of(&mut a)
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let point = statistic.of(&mut candidate.values().to_vec())
        / statistic.of(&mut baseline.values().to_vec());
    // A percentile interval need not hold the point: it is given as it is.
    let interval = Interval {
        lo: quantile_sorted(&ratios, confidence.lower()),
        hi: quantile_sorted(&ratios, confidence.upper()),
        confidence: confidence.level(),
    };
    Ok(Estimate {
        value: point,
        interval: Some(interval),
        method: Method::BootstrapRatio,
        n: baseline.len() + candidate.len(),
        flags: Vec::new(),
    })
}

fn check_sizes(sample: &Sample, statistic: Statistic) -> Result<(), StatsError> {
    at_least("a bootstrap", statistic.needs(), sample.len())?;
    at_most("a bootstrap", MAX_VALUES, sample.len())
}

fn draw(stream: &mut Stream, values: &[f64], into: &mut [f64]) {
    let n = values.len() as u32;
    for slot in into {
        *slot = values[stream.index(n)];
    }
}

fn assemble(
    sample: &Sample,
    statistic: Statistic,
    mut replicates: Vec<f64>,
    seed: Option<u64>,
    confidence: Confidence,
) -> Bootstrap {
    let point = statistic.of(&mut sample.values().to_vec());
    replicates.sort_unstable_by(f64::total_cmp);
    let z0 = bias_correction(point, &replicates);
    let acceleration = acceleration(sample.values(), statistic);
    let alpha = z0.and_then(|z0| levels(z0, acceleration, confidence));
    let at = |p: f64| quantile_sorted(&replicates, p);
    let n = sample.len();
    let all_same = replicates[0] == replicates[replicates.len() - 1];
    let estimate = match alpha {
        Some((low, high)) if !all_same => {
            let level = confidence.level();
            let interval = Interval {
                lo: at(low),
                hi: at(high),
                confidence: level,
            };
            Estimate {
                value: point,
                interval: Some(interval),
                method: Method::BootstrapBca,
                n,
                flags: Vec::new(),
            }
        }
        _ => Estimate::bare(point, Method::BootstrapBca, n, Flag::Degenerate),
    };
    Bootstrap {
        estimate,
        percentile: Interval {
            lo: at(confidence.lower()),
            hi: at(confidence.upper()),
            confidence: confidence.level(),
        },
        standard_error: (sum_of_squares(&replicates) / (replicates.len() - 1) as f64).sqrt(),
        z0,
        acceleration,
        alpha,
        resamples: replicates.len(),
        seed,
    }
}

/// z₀ = Φ⁻¹((#{θ* < θ̂} + ½ #{θ* = θ̂}) / B); `None` when infinite.
fn bias_correction(point: f64, sorted: &[f64]) -> Option<f64> {
    let below = sorted.partition_point(|&t| t < point);
    let up_to = sorted.partition_point(|&t| t <= point);
    let share = (below as f64 + 0.5 * (up_to - below) as f64) / sorted.len() as f64;
    let z0 = norm_ppf(share);
    z0.is_finite().then_some(z0)
}

/// a = Σ(θ̄ − θᵢ)³ / (6 [Σ(θ̄ − θᵢ)²]^{3/2}) over the leave-one-out statistics θᵢ.
fn acceleration(values: &[f64], statistic: Statistic) -> f64 {
    let n = values.len();
    let mut rest = Vec::with_capacity(n);
    let left_out: Vec<f64> = (0..n)
        .map(|skip| {
            rest.clear();
            rest.extend(
                values
                    .iter()
                    .enumerate()
                    .filter(|&(i, _)| i != skip)
                    .map(|(_, &x)| x),
            );
            statistic.of(&mut rest)
        })
        .collect();
    let centre = mean(&left_out);
    let largest = left_out
        .iter()
        .map(|t| (centre - t).abs())
        .fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    // Scaled by the largest, so that the cubes stay finite.
    let scaled: Vec<f64> = left_out.iter().map(|t| (centre - t) / largest).collect();
    let squares = sum(scaled.iter().map(|d| d * d));
    sum(scaled.iter().map(|d| d * d * d)) / (6.0 * squares * squares.sqrt())
}

/// α_j = Φ(z₀ + (z₀ + z_j)/(1 − a(z₀ + z_j))); `None` where the denominator is not positive.
fn levels(z0: f64, a: f64, confidence: Confidence) -> Option<(f64, f64)> {
    let level = |z: f64| {
        let shifted = z0 + z;
        let denominator = 1.0 - a * shifted;
        (denominator > 0.0).then(|| norm_cdf(z0 + shifted / denominator))
    };
    Some((
        level(norm_ppf(confidence.lower()))?,
        level(norm_ppf(confidence.upper()))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn equal_values_are_degenerate_not_a_panic() {
        let b = bootstrap(&sample(&[2.0; 12]), Statistic::Mean, Confidence::P95).unwrap();
        assert_eq!(b.estimate.flags, [Flag::Degenerate]);
        assert_eq!(b.estimate.interval, None);
        assert_eq!(b.standard_error, 0.0);
    }

    #[test]
    fn the_default_seed_is_a_function_of_the_set_of_values() {
        let forward = sample(&[3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.3, 5.8, 9.7, 9.3]);
        let mut reversed = forward.values().to_vec();
        reversed.reverse();
        let one = bootstrap(&forward, Statistic::TrimmedMean(1), Confidence::P95).unwrap();
        let two = bootstrap(
            &sample(&reversed),
            Statistic::TrimmedMean(1),
            Confidence::P95,
        );
        assert_eq!(one, two.unwrap());
        let again = bootstrap_bca(
            &sample(forward.sorted()),
            Statistic::TrimmedMean(1),
            DEFAULT_RESAMPLES,
            one.seed.unwrap(),
            Confidence::P95,
        );
        assert_eq!(one, again.unwrap());
    }

    #[test]
    fn the_pairwise_sum_loses_nothing_at_its_seams() {
        for n in [1_u32, 7, 8, 9, 16, 127, 128, 129, 1000] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(pairwise_sum(&values), f64::from(n * (n + 1) / 2));
        }
    }

    #[test]
    fn sizes_are_checked() {
        let p = Confidence::P95;
        assert!(bootstrap(&sample(&[1.0]), Statistic::Mean, p).is_err());
        assert!(bootstrap(&sample(&[1.0, 2.0, 3.0]), Statistic::TrimmedMean(1), p).is_err());
        assert!(bootstrap(&sample(&[1.0]), Statistic::TrimmedMean(usize::MAX), p).is_err());
        assert!(bootstrap_exact(&sample(&[1.0; 7]), Statistic::Mean, p).is_err());
        assert!(bootstrap_bca(&sample(&[1.0, 2.0]), Statistic::Mean, 0, 1, p).is_err());
        let zero = sample(&[0.0, 1.0]);
        assert!(bootstrap_ratio(&zero, &zero, Statistic::Mean, 1000, 1, p).is_err());
    }
}
