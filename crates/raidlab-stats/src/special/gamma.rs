//! The regularised incomplete gamma function and the χ² tail.

use super::beta::LARGEST_PARAMETER;

/// Upper regularised incomplete gamma function Q(a, x) for 0 < a ≤ 10¹⁰, x ≥ 0; NaN otherwise.
///
/// Series (DLMF 8.11.4) below x = a + 1, continued fraction (DLMF 8.9.2) above.
#[must_use]
pub fn gamma_inc_upper(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && a <= LARGEST_PARAMETER && x >= 0.0) {
        return f64::NAN;
    }
    if x == 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    let terms = 1000 + (20.0 * a.sqrt()) as u32;
    let value = if x < a + 1.0 {
        1.0 - front * lower_series(a, x, terms)
    } else {
        front * upper_fraction(a, x, terms)
    };
    value.clamp(0.0, 1.0)
}

/// Σ xᵏ / (a (a+1) … (a+k)).
fn lower_series(a: f64, x: f64, terms: u32) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for k in 1..terms {
        term *= x / (a + f64::from(k));
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

fn upper_fraction(a: f64, x: f64, terms: u32) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away_from_zero(b);
    let mut value = d;
    for i in 1..terms {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / away_from_zero(an * d + b);
        c = away_from_zero(b + an / c);
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

/// Upper tail of χ² with `df` degrees of freedom: Q(df/2, x/2).
#[must_use]
pub fn chi_squared_sf(x: f64, df: f64) -> f64 {
    gamma_inc_upper(0.5 * df, 0.5 * x)
}
