//! The beta function and its regularised incomplete integral.

use core::f64::consts::PI;

/// Arguments from here on use Stirling's series.
const STIRLING_FROM: f64 = 10.0;

/// δ(z) in ln Γ(z) = (z − ½) ln z − z + ½ ln 2π + δ(z), for z ≥ 10 (DLMF 5.11.1).
/// The first omitted term is below 6e-16 there.
fn stirling_remainder(z: f64) -> f64 {
    let u = 1.0 / (z * z);
    let series = 1.0 / 12.0
        - u * (1.0 / 360.0
            - u * (1.0 / 1260.0
                - u * (1.0 / 1680.0 - u * (1.0 / 1188.0 - u * (691.0 / 360_360.0 - u / 156.0)))));
    series / z
}

/// ln B(a, b) for a, b > 0; NaN otherwise.
///
/// With a large argument the three ln Γ would cancel; there Stirling's series is applied to their
/// combination instead, so the result keeps its digits for samples of any size.
#[must_use]
pub fn ln_beta(a: f64, b: f64) -> f64 {
    if !(a > 0.0 && b > 0.0) {
        return f64::NAN;
    }
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    let sum = small + large;
    if small >= STIRLING_FROM {
        let remainder =
            stirling_remainder(small) + stirling_remainder(large) - stirling_remainder(sum);
        0.5 * libm::log(2.0 * PI) - 0.5 * libm::log(large)
            + (small - 0.5) * libm::log(small / sum)
            + large * libm::log1p(-small / sum)
            + remainder
    } else if large >= STIRLING_FROM {
        libm::lgamma(small) + small - small * libm::log(sum)
            + (large - 0.5) * libm::log1p(-small / sum)
            + stirling_remainder(large)
            - stirling_remainder(sum)
    } else {
        libm::lgamma(small) + libm::lgamma(large) - libm::lgamma(sum)
    }
}

/// Largest parameter accepted, which bounds the work: the fraction needs O(√parameter) terms.
pub(crate) const LARGEST_PARAMETER: f64 = 1e10;

/// Regularised incomplete beta function I_x(a, b) for 0 < a, b ≤ 10¹⁰ and 0 ≤ x ≤ 1; NaN otherwise.
#[must_use]
pub fn beta_inc(a: f64, b: f64, x: f64) -> f64 {
    beta_inc_split(a, b, x, 1.0 - x)
}

/// I_x(a, b) with `y` = 1 − x given apart, so that neither end loses digits.
pub(crate) fn beta_inc_split(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let parameter = |v: f64| v > 0.0 && v <= LARGEST_PARAMETER;
    if !(parameter(a) && parameter(b) && x >= 0.0 && y >= 0.0) {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    if y == 0.0 {
        return 1.0;
    }
    let ln_front = a * ln_of(x, y) + b * ln_of(y, x) - ln_beta(a, b);
    let front = libm::exp(ln_front);
    // The continued fraction converges fast below the mean; above it use I_x(a,b) = 1 − I_y(b,a).
    if x <= (a + 1.0) / (a + b + 2.0) {
        (front * continued_fraction(a, b, x) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - front * continued_fraction(b, a, y) / b).clamp(0.0, 1.0)
    }
}

/// ln v where `rest` = 1 − v: through log1p when v is near one.
fn ln_of(v: f64, rest: f64) -> f64 {
    if v > 0.5 {
        libm::log1p(-rest)
    } else {
        libm::log(v)
    }
}

/// The continued fraction of DLMF 8.17.22 by the modified Lentz method.
/// It needs O(√max(a, b)) terms.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let max_terms = 1000 + (20.0 * a.max(b).sqrt()) as u32;
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..max_terms {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON {
            return value;
        }
    }
    f64::NAN
}
