//! Permutation tests: exact where they can be enumerated, else by seeded draws.

use crate::describe::{mean, sum};
use crate::error::{StatsError, at_most};
use crate::prng::{Stream, seed_from_data};
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// Arrangements up to this number are all enumerated.
const ENUMERATE_UP_TO: u64 = 200_000;
/// Number of random arrangements otherwise.
const DRAWS: u32 = 20_000;
/// Largest number of values: the draws cost that many steps each.
const MAX_VALUES: usize = 2_000;
/// Statistics within this share of the data's size of the observed one count as equal to it.
const TIE: f64 = 1e-12;

/// Result of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Permutation {
    /// The observed statistic.
    pub statistic: f64,
    /// Two-sided p: the share of arrangements with a statistic at least as far from zero. Drawn
    /// arrangements give (1 + #)/(1 + N), which is never 0.
    pub p: f64,
    /// Number of arrangements looked at.
    pub arrangements: u64,
    /// Seed of the draws, from the data; `None` when all were enumerated.
    pub seed: Option<u64>,
}

/// Permutation test of mean(b) − mean(a), two independent samples.
///
/// # Errors
/// [`StatsError::TooMany`] beyond 2000 values together.
pub fn permutation_test(a: &Sample, b: &Sample) -> Result<Permutation, StatsError> {
    let (n_a, n_b) = (a.len(), b.len());
    let n = n_a + n_b;
    at_most("a permutation test", MAX_VALUES, n)?;
    let statistic = b.mean() - a.mean();
    let mut pooled: Vec<f64> = a.sorted().iter().chain(b.sorted()).copied().collect();
    let seed = seed_from_data(&pooled);
    // Centred, the difference of means is Σ_b · (1/n_a + 1/n_b): only that sum need be formed.
    let centre = mean(&pooled);
    for x in &mut pooled {
        *x -= centre;
    }
    let threshold = sum(pooled[n_a..].iter().copied()).abs() - slack(&pooled);
    let (extreme, arrangements, seed) = match choose(n as u64, n_b as u64) {
        Some(all) => (count_subsets(&pooled, n_b, threshold), all, None),
        None => {
            let extreme = count_shuffles(&mut pooled, n_b, threshold, seed);
            (extreme + 1, u64::from(DRAWS) + 1, Some(seed))
        }
    };
    let p = extreme as f64 / arrangements as f64;
    Ok(Permutation {
        statistic,
        p,
        arrangements,
        seed,
    })
}

/// Sign-flip test of the mean of paired differences (log ratios of rounds): all 2ⁿ signs, or
/// draws above n = 17.
///
/// # Errors
/// [`StatsError::TooMany`] beyond 2000 pairs.
pub fn sign_flip_test(differences: &Sample) -> Result<Permutation, StatsError> {
    let d = differences.sorted();
    let n = d.len();
    at_most("a sign-flip test", MAX_VALUES, n)?;
    let threshold = sum(d.iter().copied()).abs() - slack(d);
    let statistic = differences.mean();
    let flipped = |minus: &mut dyn FnMut(usize) -> bool| {
        let total: f64 = d
            .iter()
            .enumerate()
            .map(|(i, &x)| if minus(i) { -x } else { x })
            .sum();
        u64::from(total.abs() >= threshold)
    };
    if n < 64 && (1_u64 << n) <= ENUMERATE_UP_TO {
        let all = 1_u64 << n;
        let extreme: u64 = (0..all)
            .map(|signs| flipped(&mut |i| signs >> i & 1 == 1))
            .sum();
        let p = extreme as f64 / all as f64;
        return Ok(Permutation {
            statistic,
            p,
            arrangements: all,
            seed: None,
        });
    }
    let seed = seed_from_data(d);
    let mut stream = Stream::new(seed);
    let extreme: u64 = (0..DRAWS)
        .map(|_| flipped(&mut |_| stream.next_u64() >> 63 == 1))
        .sum();
    let arrangements = u64::from(DRAWS) + 1;
    let p = (extreme + 1) as f64 / arrangements as f64;
    Ok(Permutation {
        statistic,
        p,
        arrangements,
        seed: Some(seed),
    })
}

/// Rounding allowance for sums over these values.
fn slack(values: &[f64]) -> f64 {
    TIE * values.iter().map(|x| x.abs()).sum::<f64>()
}

/// C(n, k) if it is small enough to be enumerated.
fn choose(n: u64, k: u64) -> Option<u64> {
    let k = k.min(n - k);
    let mut value = 1_u64;
    for i in 1..=k {
        value = value * (n - k + i) / i;
        if value > ENUMERATE_UP_TO {
            return None;
        }
    }
    Some(value)
}

/// Number of subsets of `size` whose sum reaches the threshold in magnitude.
fn count_subsets(values: &[f64], size: usize, threshold: f64) -> u64 {
    let n = values.len();
    let mut chosen: Vec<usize> = (0..size).collect();
    let mut extreme = 0;
    loop {
        let total: f64 = chosen.iter().map(|&i| values[i]).sum();
        extreme += u64::from(total.abs() >= threshold);
        // The next combination in lexicographic order: advance the last index that can move.
        let Some(place) = (0..size).rev().find(|&i| chosen[i] < n - size + i) else {
            return extreme;
        };
        chosen[place] += 1;
        for i in place + 1..size {
            chosen[i] = chosen[i - 1] + 1;
        }
    }
}

/// Number of random subsets (partial Fisher–Yates) whose sum reaches the threshold.
fn count_shuffles(values: &mut [f64], size: usize, threshold: f64, seed: u64) -> u64 {
    let mut stream = Stream::new(seed);
    let n = values.len();
    let mut extreme = 0;
    for _ in 0..DRAWS {
        for i in 0..size {
            let j = i + stream.index((n - i) as u32);
            values.swap(i, j);
        }
        let total: f64 = values[..size].iter().sum();
        extreme += u64::from(total.abs() >= threshold);
    }
    extreme
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl Into<Vec<f64>>) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn equal_values_are_no_evidence() {
        assert_eq!(
            permutation_test(&sample([1.0; 4]), &sample([1.0; 5]))
                .unwrap()
                .p,
            1.0
        );
        assert_eq!(sign_flip_test(&sample([0.0; 5])).unwrap().p, 1.0);
        assert_eq!(
            permutation_test(&sample([1.0]), &sample([2.0])).unwrap().p,
            1.0
        );
    }

    #[test]
    fn draws_agree_with_the_enumeration_and_repeat() {
        // 11 + 11 is beyond enumeration (705 432 arrangements), 10 + 10 is not.
        let a: Vec<f64> = (0..11).map(|i| f64::from(i * i % 17)).collect();
        let b: Vec<f64> = (0..11).map(|i| f64::from(i * i % 17) + 4.5).collect();
        let drawn = permutation_test(&sample(a.clone()), &sample(b.clone())).unwrap();
        assert_eq!(
            drawn,
            permutation_test(&sample(a.clone()), &sample(b.clone())).unwrap()
        );
        assert!(drawn.seed.is_some());
        let all = permutation_test(&sample(&a[..10]), &sample(&b[..10])).unwrap();
        assert_eq!(all.arrangements, 184_756);
        assert!((drawn.p - all.p).abs() < 0.03, "{} {}", drawn.p, all.p);
    }

    #[test]
    fn drawn_p_is_never_zero() {
        let low: Vec<f64> = (0..40).map(f64::from).collect();
        let high: Vec<f64> = low.iter().map(|x| x + 1000.0).collect();
        let p = permutation_test(&sample(low.clone()), &sample(high))
            .unwrap()
            .p;
        assert_eq!(p, 1.0 / 20_001.0);
        assert!(sign_flip_test(&sample(&low[1..])).unwrap().p > 0.0);
        assert!(permutation_test(&sample(vec![1.0; 2000]), &sample([1.0])).is_err());
    }
}
