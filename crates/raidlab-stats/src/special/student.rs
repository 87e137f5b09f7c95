//! Student's t distribution with real degrees of freedom.

use super::beta::{LARGEST_PARAMETER, beta_inc_split, ln_beta};
use super::normal::{norm_ppf, norm_sf};

/// Degrees of freedom beyond which t is the normal to ten digits.
const NORMAL_FROM: f64 = LARGEST_PARAMETER;

/// P(T > t) for t ≥ 0: ½ I_x(ν/2, ½) with x = ν/(ν + t²).
fn upper_tail(t: f64, df: f64) -> f64 {
    if df > NORMAL_FROM {
        return norm_sf(t);
    }
    // t² may overflow; the quotients below are then 0 and 1, which is right.
    let ratio = t / df.sqrt();
    let square = ratio * ratio;
    let x = 1.0 / (1.0 + square);
    let y = if square.is_infinite() {
        1.0
    } else {
        square / (1.0 + square)
    };
    0.5 * beta_inc_split(0.5 * df, 0.5, x, y)
}

/// Cumulative distribution P(T ≤ t); NaN unless `df` > 0.
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if t >= 0.0 {
        1.0 - upper_tail(t, df)
    } else {
        upper_tail(-t, df)
    }
}

/// Two-sided p value P(|T| ≥ |t|), without cancellation for large |t|; NaN unless `df` > 0.
#[must_use]
pub fn t_two_sided_p(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    (2.0 * upper_tail(t.abs(), df)).min(1.0)
}

/// Quantile of Student's t: the t with P(T ≤ t) = p. ±∞ at 0 and 1; NaN outside the domain.
///
/// Newton steps on the upper tail, held inside a bracket by bisection.
#[must_use]
pub fn t_ppf(p: f64, df: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    if df > NORMAL_FROM || p == 0.0 || p == 1.0 {
        return norm_ppf(p);
    }
    if p > 0.5 {
        solve_upper(1.0 - p, df)
    } else {
        -solve_upper(p, df)
    }
}

fn solve_upper(tail: f64, df: f64) -> f64 {
    let mut low = 0.0;
    // t is heavier tailed than the normal, so −Φ⁻¹(tail) is a lower bound to grow from.
    let mut high = -norm_ppf(tail) + 1.0;
    while upper_tail(high, df) > tail {
        low = high;
        high *= 2.0;
        if high.is_infinite() {
            return high;
        }
    }
    let ln_scale = -ln_beta(0.5 * df, 0.5) - 0.5 * libm::log(df);
    let mut t = 0.5 * (low + high);
    for _ in 0..200 {
        let error = upper_tail(t, df) - tail;
        if error > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let ratio = t / df.sqrt();
        let density = libm::exp(ln_scale - 0.5 * (df + 1.0) * libm::log1p(ratio * ratio));
        let newton = t + error / density;
        let next = if newton > low && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        if (next - t).abs() <= 4.0 * f64::EPSILON * next {
            return next;
        }
        t = next;
    }
    t
}
