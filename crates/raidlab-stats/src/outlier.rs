//! Outliers: flagged, never deleted.

use crate::describe::{mean, median_of, median_sorted, quantile_sorted};
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// Φ⁻¹(¾): makes the MAD of normal data an estimate of σ.
pub(crate) const MAD_TO_SIGMA: f64 = 0.674_489_750_196_081_7;
/// √(π/2): makes the mean absolute deviation of normal data an estimate of σ.
const MEAN_AD_TO_SIGMA: f64 = 1.253_314_137_315_500_1;
/// Limit of the modified z score (Iglewicz & Hoaglin 1993).
const OUTLIER_LIMIT: f64 = 3.5;
/// |x − median|/MAD above which an outlier is severe: ten robust σ, as hyperfine has it.
const SEVERE_LIMIT: f64 = 14.826;
/// Fewest values for flags to mean anything.
const FLAGS_FROM: usize = 5;

/// The modified z scores of a sample and who exceeds which limit. Indices are in run order, from 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outliers {
    /// Median.
    pub median: f64,
    /// Raw median absolute deviation.
    pub mad: f64,
    /// Signed score 0.6745 (x − median)/MAD of each value. When the MAD is 0 the scale is
    /// 1.2533 × the mean absolute deviation; when that is 0 too all scores are 0.
    pub scores: Vec<f64>,
    /// Values whose score exceeds 3.5 in magnitude; empty for n < 5.
    pub outliers: Vec<usize>,
    /// Values more than ten robust standard deviations out; empty for n < 5.
    pub severe: Vec<usize>,
    /// Tukey's fences, quartiles ∓ 1.5 IQR: for plots.
    pub tukey_fences: (f64, f64),
    /// Values outside Tukey's fences; empty for n < 5.
    pub tukey: Vec<usize>,
}

/// Scores every value.
#[must_use]
pub fn outliers(sample: &Sample) -> Outliers {
    let values = sample.values();
    let median = median_sorted(sample.sorted());
    let mut deviations: Vec<f64> = values.iter().map(|x| (x - median).abs()).collect();
    let mean_deviation = mean(&deviations);
    let mad = median_of(&mut deviations);

    let sigma = if mad > 0.0 {
        mad / MAD_TO_SIGMA
    } else {
        MEAN_AD_TO_SIGMA * mean_deviation
    };
    let score = |x: f64| {
        if sigma > 0.0 {
            (x - median) / sigma
        } else {
            0.0
        }
    };
    let scores: Vec<f64> = values.iter().map(|&x| score(x)).collect();

    let quartile = |p| quantile_sorted(sample.sorted(), p);
    let reach = 1.5 * (quartile(0.75) - quartile(0.25));
    let tukey_fences = (quartile(0.25) - reach, quartile(0.75) + reach);
    let pick = |far: &dyn Fn(usize) -> bool| -> Vec<usize> {
        if values.len() < FLAGS_FROM {
            Vec::new()
        } else {
            (0..values.len()).filter(|&i| far(i)).collect()
        }
    };
    Outliers {
        median,
        mad,
        outliers: pick(&|i| scores[i].abs() > OUTLIER_LIMIT),
        // |x − median|/MAD > 14.826 says the same of the score.
        severe: pick(&|i| scores[i].abs() > SEVERE_LIMIT * MAD_TO_SIGMA),
        tukey: pick(&|i| values[i] < tukey_fences.0 || values[i] > tukey_fences.1),
        scores,
        tukey_fences,
    }
}

/// Whether the first run is a severe outlier and the smallest (`slow_is_low`) or largest of all:
/// the hint that it met a cold cache.
#[must_use]
pub fn cold_start(sample: &Sample, slow_is_low: bool) -> bool {
    let first = sample.values()[0];
    let slowest = if slow_is_low {
        sample.min()
    } else {
        sample.max()
    };
    first == slowest && outliers(sample).severe.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Outliers {
        outliers(&Sample::new(values).unwrap())
    }

    #[test]
    fn constants_have_no_outliers() {
        let r = of(&[3.0; 6]);
        assert!(r.outliers.is_empty() && r.severe.is_empty() && r.tukey.is_empty());
        assert_eq!(r.scores, [0.0; 6]);
    }

    #[test]
    fn a_mad_of_zero_falls_back_to_the_mean_deviation() {
        let mut values = vec![10.0; 60];
        values.push(11.0);
        let r = of(&values);
        assert_eq!((r.mad, r.outliers.as_slice()), (0.0, &[60][..]));
    }

    #[test]
    fn four_values_flag_nothing() {
        assert!(of(&[1.0, 1.1, 0.9, 500.0]).outliers.is_empty());
    }

    #[test]
    fn a_cold_start_is_slow_and_first() {
        let rates = [10.0, 99.0, 100.0, 101.0, 100.5, 99.5];
        let sample = Sample::new(rates).unwrap();
        assert!(cold_start(&sample, true));
        assert!(!cold_start(&sample, false));
        let mut later = rates;
        later.swap(0, 3);
        assert!(!cold_start(&Sample::new(later).unwrap(), true));
    }
}
