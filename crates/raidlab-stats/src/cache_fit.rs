//! How large is the cache? A sweep over sizes, and latencies in two classes.

use crate::describe::sum;
use crate::error::{StatsError, at_least, at_most, positive};
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// Candidate cache sizes tried per doubling.
const STEPS_PER_OCTAVE: i32 = 32;
/// A cache less than this much faster than the disk is not told from noise.
const VISIBLE: f64 = 1.2;
/// Ratio of the two classes' mean latencies from which they count as cache and disk.
const MODE_RATIO: f64 = 4.0;
/// Smallest share of the minor class.
const MINOR_SHARE: f64 = 0.02;

/// A cache seen in a sweep, in the units of the points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheFit {
    /// Estimated size of the cache.
    pub cache_size: f64,
    /// Measured sizes on either side of the estimate.
    pub bracket: (f64, f64),
    /// Bandwidth of the cache.
    pub cache_bandwidth: f64,
    /// Bandwidth of the disk.
    pub disk_bandwidth: f64,
}

/// Fits the model 1/BW = h/B_c + (1 − h)/B_d, h = min(1, C/S), to measured (size, bandwidth)
/// points: least squares in 1/B_c and 1/B_d for each C of a geometric grid between the smallest
/// and largest size. `None` when no cache shows (no fit is at least 1.2 times faster inside).
///
/// # Errors
/// [`StatsError::TooFew`] under four points, [`StatsError::TooMany`] above 10 000;
/// [`StatsError::Parameter`] for a size or bandwidth not above zero.
pub fn fit_cache(points: &[(f64, f64)]) -> Result<Option<CacheFit>, StatsError> {
    at_least("a fit of the cache model", 4, points.len())?;
    at_most("a fit of the cache model", 10_000, points.len())?;
    for &(size, bandwidth) in points {
        positive("size of the file", size)?;
        positive("bandwidth", bandwidth)?;
    }
    let mut sizes: Vec<f64> = points.iter().map(|p| p.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let (smallest, largest) = (sizes[0], sizes[sizes.len() - 1]);
    let step = libm::exp2(1.0 / f64::from(STEPS_PER_OCTAVE));
    let mut best: Option<(f64, CacheFit)> = None;
    let mut cache_size = smallest;
    // 64 octaves reach from a byte to the largest file there can be.
    for _ in 0..64 * STEPS_PER_OCTAVE {
        if cache_size >= largest {
            break;
        }
        if let Some((error, inside, outside)) = least_squares(points, cache_size)
            && inside >= VISIBLE * outside
            && best.as_ref().is_none_or(|(least, _)| error < *least)
        {
            let above = sizes.partition_point(|&s| s <= cache_size);
            let bracket = (sizes[above - 1], sizes[above]);
            let fit = CacheFit {
                cache_size,
                bracket,
                cache_bandwidth: inside,
                disk_bandwidth: outside,
            };
            best = Some((error, fit));
        }
        cache_size *= step;
    }
    Ok(best.map(|(_, fit)| fit))
}

/// Squared error and the two bandwidths for one cache size; `None` when they are not positive.
fn least_squares(points: &[(f64, f64)], cache_size: f64) -> Option<(f64, f64, f64)> {
    let hit = |size: f64| (cache_size / size).min(1.0);
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(size, bandwidth) in points {
        let (a, y) = (hit(size), 1.0 / bandwidth);
        let b = 1.0 - a;
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * y;
        by += b * y;
    }
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-12 * aa * bb {
        return None;
    }
    let inside = (ay * bb - by * ab) / determinant;
    let outside = (by * aa - ay * ab) / determinant;
    if inside.is_nan() || inside <= 0.0 || outside.is_nan() || outside <= 0.0 {
        return None;
    }
    let error = sum(points.iter().map(|&(size, bandwidth)| {
        let a = hit(size);
        let residual = 1.0 / bandwidth - a * inside - (1.0 - a) * outside;
        residual * residual
    }));
    Some((error, 1.0 / inside, 1.0 / outside))
}

/// Two classes of latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoModes {
    /// Share of the fast class: the hit fraction.
    pub hit: f64,
    /// Geometric mean of the fast class.
    pub fast: f64,
    /// Geometric mean of the slow class.
    pub slow: f64,
}

/// Looks for a fast and a slow class of latencies: the optimal (least squares) division of the
/// sorted log-latencies in two. `None` unless their means differ more than four times and the
/// smaller class holds at least 2 %.
///
/// # Errors
/// As [`Sample::new`]; [`StatsError::NotPositive`].
pub fn two_modes(latencies: &[f64]) -> Result<Option<TwoModes>, StatsError> {
    let logs = Sample::new(latencies)?.ln()?;
    let sorted = logs.sorted();
    let n = sorted.len();
    let total = sum(sorted.iter().copied());
    // Least within-class squares is the largest between-class term.
    let mut below = 0.0;
    let mut best: Option<(f64, usize, f64)> = None;
    for split in 1..n {
        below += sorted[split - 1];
        let (low, high) = (split as f64, (n - split) as f64);
        let gap = (total - below) / high - below / low;
        let between = gap * gap * low * high;
        if best.is_none_or(|(most, ..)| between > most) {
            best = Some((between, split, below));
        }
    }
    let Some((_, split, below)) = best else {
        return Ok(None);
    };
    let fast = below / split as f64;
    let slow = (total - below) / (n - split) as f64;
    let hit = split as f64 / n as f64;
    let seen = slow - fast > libm::log(MODE_RATIO) && hit.min(1.0 - hit) >= MINOR_SHARE;
    Ok(seen.then(|| TwoModes {
        hit,
        fast: libm::exp(fast),
        slow: libm::exp(slow),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::cached_read_bandwidth;

    #[test]
    fn a_sweep_finds_the_cache_it_was_made_with() {
        let points: Vec<(f64, f64)> = [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]
            .iter()
            .map(|&s| (s, cached_read_bandwidth(s, 100.0, 105.0, 47.0).unwrap()))
            .collect();
        let fit = fit_cache(&points).unwrap().unwrap();
        assert!((fit.cache_size / 100.0 - 1.0).abs() < 0.03, "{fit:?}");
        assert_eq!(fit.bracket, (64.0, 128.0));
        assert!(
            (fit.cache_bandwidth - 105.0).abs() < 2.0 && (fit.disk_bandwidth - 47.0).abs() < 1.0
        );
    }

    #[test]
    fn a_flat_sweep_shows_no_cache() {
        let flat = [(1.0, 50.0), (2.0, 51.0), (4.0, 49.5), (8.0, 50.5)];
        assert_eq!(fit_cache(&flat).unwrap(), None);
        assert_eq!(fit_cache(&[(2.0, 50.0); 4]).unwrap(), None);
        assert!(fit_cache(&flat[..3]).is_err());
        assert!(fit_cache(&[(0.0, 1.0); 4]).is_err());
    }

    #[test]
    fn cache_hits_show_in_the_latencies() {
        let mut latencies = vec![0.008; 70];
        latencies.extend([0.0001; 30]);
        let modes = two_modes(&latencies).unwrap().unwrap();
        assert!((modes.hit - 0.3).abs() < 1e-12 && modes.slow > 70.0 * modes.fast);
        assert_eq!(two_modes(&[0.008, 0.009, 0.0085, 0.0075]).unwrap(), None);
        assert_eq!(two_modes(&[0.008]).unwrap(), None);
        assert!(two_modes(&[0.0, 1.0]).is_err());
        // One straggler in two hundred is not a class.
        let mut one = vec![0.001; 200];
        one.push(0.5);
        assert_eq!(two_modes(&one).unwrap(), None);
    }
}
