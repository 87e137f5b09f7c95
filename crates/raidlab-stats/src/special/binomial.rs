//! The binomial distribution.

use super::beta::beta_inc_split;

/// P(X ≤ k) for X ~ Bin(n, p), through I_{1−p}(n − k, k + 1); NaN unless 0 ≤ p ≤ 1
/// and n ≤ 10¹⁰.
#[must_use]
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if k >= n {
        return 1.0;
    }
    beta_inc_split((n - k) as f64, k as f64 + 1.0, 1.0 - p, p)
}
