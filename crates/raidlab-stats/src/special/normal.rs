//! The standard normal distribution.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

/// Φ(z) = ½ erfc(−z/√2), accurate in both tails.
#[must_use]
pub fn norm_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// Upper tail 1 − Φ(z), without cancellation for large z.
#[must_use]
pub fn norm_sf(z: f64) -> f64 {
    norm_cdf(-z)
}

/// Φ⁻¹(p). −∞ at 0, +∞ at 1, NaN outside [0, 1].
///
/// Starting value: Abramowitz & Stegun 26.2.23 (error below 4.5e-4); then Halley steps on the
/// lower tail, where the cdf keeps full relative precision.
#[must_use]
pub fn norm_ppf(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if p == 0.5 {
        return 0.0;
    }
    if p > 0.5 {
        return -lower_tail_quantile(1.0 - p);
    }
    lower_tail_quantile(p)
}

fn lower_tail_quantile(p: f64) -> f64 {
    let w = (-2.0 * libm::log(p)).sqrt();
    let numerator = 2.515_517 + w * (0.802_853 + w * 0.010_328);
    let denominator = 1.0 + w * (1.432_788 + w * (0.189_269 + w * 0.001_308));
    let mut z = numerator / denominator - w;
    for _ in 0..4 {
        let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
        if density == 0.0 {
            break;
        }
        // Halley for Φ(z) − p = 0: Φ'' / Φ' = −z.
        let newton = (norm_cdf(z) - p) / density;
        let step = newton / (1.0 + 0.5 * z * newton);
        z -= step;
        if step.abs() <= 1e-16 * z.abs() {
            break;
        }
    }
    z
}
