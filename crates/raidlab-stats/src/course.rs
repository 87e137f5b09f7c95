//! How a rate went within a run: did it stay, switch, fall off or swing?
//!
//! A run whose rate switched has no one rate: a longer run would have another mean. The change points of its
//! windows say where ([`change_points`]); what is made of them here are words for a report.

use crate::changepoint::{ChangePoints, MIN_SEGMENT, PHASE_DIFFERENCE, change_points};
use crate::describe::{least_squares_slope, mean, sum, sum_of_squares};
use crate::error::{StatsError, at_least};
use serde::{Deserialize, Serialize};

/// Fewest windows that a course is told of: two segments.
pub const LEAST_WINDOWS: usize = 2 * MIN_SEGMENT;
/// Most windows that are looked at one by one; of more, neighbours are taken together. The search is quadratic.
const MOST_WINDOWS: usize = 600;
/// Standard errors that two levels are apart by at least. The place between them was looked for, which makes some of them out
/// of nothing.
const STANDARD_ERRORS: f64 = 5.0;
/// Most levels that are told one by one.
const MOST_LEVELS: usize = 3;

/// A part of a run with a level of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The window it begins with.
    pub start: usize,
    /// Its mean.
    pub mean: f64,
}

/// How the rate of a run went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// At one level, or at levels that differ by 5 % at most.
    Even,
    /// Two or three levels, one after the other.
    Steps(Vec<Level>),
    /// Down or up all the while, with the means of its first and last part.
    Gradual {
        /// At the beginning.
        first: f64,
        /// At the end.
        last: f64,
    },
    /// Up and down between levels.
    Swings {
        /// The lowest.
        least: f64,
        /// The highest.
        most: f64,
        /// How many levels followed each other.
        levels: usize,
    },
}

impl Course {
    /// The course of a run from the rates of its windows, all of the same width.
    ///
    /// Neighbouring levels less than 5 % apart are one, and such as differ by no more than noise. Levels that go one way are gradual when a straight line is as
    /// near to the windows as they are, or when there are more than three.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] under [`LEAST_WINDOWS`]; as [`Sample::new`](crate::Sample::new).
    pub fn of(windows: &[f64]) -> Result<Self, StatsError> {
        at_least(
            "the course of a run (in windows)",
            LEAST_WINDOWS,
            windows.len(),
        )?;
        let together = windows.len().div_ceil(MOST_WINDOWS);
        // A rest that is narrower than the others says less, and nothing that they do not.
        let coarse: Vec<f64> = windows.chunks_exact(together).map(mean).collect();
        let levels = merged(&coarse, &change_points(&logarithms(&coarse), MIN_SEGMENT)?);
        Ok(named(&coarse, levels, together))
    }
}

/// A rate's noise is a share of it: of 480 that fall to 95, the first part would else be divided by a noise that is that of
/// the second. A standstill has a logarithm, too, that of a thousandth of the highest rate.
fn logarithms(windows: &[f64]) -> Vec<f64> {
    let highest = windows.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return vec![0.0; windows.len()];
    }
    let of = |x: &f64| libm::log((x / highest).max(1e-3));
    windows.iter().map(of).collect()
}

/// The segments, those taken together that are not told apart: by 5 %, and by more than their noise.
fn merged(windows: &[f64], found: &ChangePoints) -> Vec<Level> {
    let mut starts: Vec<usize> = [0].into_iter().chain(found.at.iter().copied()).collect();
    loop {
        let ends = starts[1..].iter().copied().chain([windows.len()]);
        let parts: Vec<&[f64]> = starts
            .iter()
            .zip(ends)
            .map(|(&from, to)| &windows[from..to])
            .collect();
        // The nearest two first: of 100, 104, 108 the middle one belongs to either, and all three are not one.
        let nearest = parts
            .windows(2)
            .map(|pair| apart(pair[0], pair[1]))
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match nearest {
            Some((at, apart)) if apart <= 1.0 => starts.remove(at + 1),
            _ => {
                let level = |(&start, part): (&usize, &&[f64])| Level {
                    start,
                    mean: mean(part),
                };
                return starts.iter().zip(&parts).map(level).collect();
            }
        };
    }
}

/// How far apart two neighbouring segments are, in what they have to be apart by.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let variance = (sum_of_squares(a) + sum_of_squares(b)) / (n_a + n_b - 2.0);
    let noise = STANDARD_ERRORS * (variance * (1.0 / n_a + 1.0 / n_b)).sqrt();
    let share = PHASE_DIFFERENCE * mean_a.abs().min(mean_b.abs());
    let limit = share.max(noise);
    let difference = (mean_a - mean_b).abs();
    if limit > 0.0 {
        difference / limit
    } else if difference > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

fn named(windows: &[f64], mut levels: Vec<Level>, together: usize) -> Course {
    let means = || levels.iter().map(|level| level.mean);
    let (first, last) = match levels.as_slice() {
        [] | [_] => return Course::Even,
        [first, .., last] => (first.mean, last.mean),
    };
    let one_way = |sign: f64| {
        levels
            .windows(2)
            .all(|w| sign * (w[1].mean - w[0].mean) > 0.0)
    };
    let monotone = one_way(1.0) || one_way(-1.0);
    if monotone && (levels.len() > MOST_LEVELS || line_fits(windows, &levels)) {
        return Course::Gradual { first, last };
    }
    if levels.len() > MOST_LEVELS {
        return Course::Swings {
            least: means().fold(f64::INFINITY, f64::min),
            most: means().fold(f64::NEG_INFINITY, f64::max),
            levels: levels.len(),
        };
    }
    for level in &mut levels {
        level.start *= together;
    }
    Course::Steps(levels)
}

/// Whether a straight line is as near to the windows as the levels are, by squares.
fn line_fits(windows: &[f64], levels: &[Level]) -> bool {
    let (slope, centre) = (least_squares_slope(windows), mean(windows));
    let middle = 0.5 * (windows.len() - 1) as f64;
    let off_line = |(i, x): (usize, &f64)| x - centre - slope * (i as f64 - middle);
    let off_level = |(i, x): (usize, &f64)| {
        let level = levels.iter().rev().find(|level| level.start <= i);
        x - level.map_or(centre, |level| level.mean)
    };
    let squares = |off: &dyn Fn((usize, &f64)) -> f64| {
        sum(windows.iter().enumerate().map(|window| off(window).powi(2)))
    };
    squares(&off_line) <= squares(&off_level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Stream;

    /// The rates with noise of so many per cent.
    fn noisy(rates: impl IntoIterator<Item = f64>, percent: f64, seed: u64) -> Vec<f64> {
        let mut random = Stream::new(seed);
        let mut share = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        rates
            .into_iter()
            .map(|rate| rate * (1.0 + percent / 100.0 * (2.0 * share() - 1.0)))
            .collect()
    }

    fn steps(parts: &[(usize, f64)]) -> Vec<f64> {
        let of = |(count, rate): &(usize, f64)| vec![*rate; *count];
        parts.iter().flat_map(of).collect()
    }

    #[test]
    fn a_cache_that_is_full_is_a_step() {
        for seed in 0..50 {
            let course = Course::of(&noisy(steps(&[(12, 480.0), (30, 95.0)]), 5.0, seed)).unwrap();
            let Course::Steps(levels) = course else {
                panic!("{course:?}");
            };
            assert_eq!(levels.len(), 2, "{levels:?}");
            assert_eq!(levels[1].start, 12);
            assert!((levels[0].mean - 480.0).abs() < 15.0 && (levels[1].mean - 95.0).abs() < 3.0);
        }
    }

    #[test]
    fn a_pass_to_the_inner_zones_is_gradual() {
        let pass = (0..120).map(|i| 265.0 - f64::from(i));
        for seed in 0..50 {
            let course = Course::of(&noisy(pass.clone(), 2.0, seed)).unwrap();
            let Course::Gradual { first, last } = course else {
                panic!("{course:?}");
            };
            assert!(first > 240.0 && last < 170.0, "{first} {last}");
        }
    }

    #[test]
    fn little_is_even_and_much_swings() {
        for seed in 0..200 {
            assert_eq!(
                Course::of(&noisy(vec![100.0; 60], 5.0, seed)).unwrap(),
                Course::Even
            );
            let little = steps(&[(20, 100.0), (20, 104.0)]);
            assert_eq!(Course::of(&noisy(little, 0.5, seed)).unwrap(), Course::Even);
        }
        let swings = steps(&[(10, 100.0), (10, 50.0), (10, 90.0), (10, 40.0)]);
        let swings = Course::of(&noisy(swings, 2.0, 1)).unwrap();
        assert!(
            matches!(swings, Course::Swings { levels: 4, .. }),
            "{swings:?}"
        );
    }

    #[test]
    fn a_standstill_is_a_step() {
        let course = Course::of(&noisy(steps(&[(20, 100.0), (6, 0.0), (20, 100.0)]), 1.0, 1));
        let Ok(Course::Steps(levels)) = course else {
            panic!("{course:?}");
        };
        assert_eq!(
            levels.iter().map(|l| l.start).collect::<Vec<_>>(),
            [0, 20, 26]
        );
    }

    #[test]
    fn places_are_windows_however_long_the_run() {
        let long = noisy(steps(&[(1000, 100.0), (2600, 50.0)]), 3.0, 1);
        let Course::Steps(levels) = Course::of(&long).unwrap() else {
            panic!();
        };
        assert!(levels[1].start.abs_diff(1000) <= 6, "{levels:?}");
        assert!(Course::of(&[1.0; 9]).is_err());
        assert_eq!(Course::of(&[0.0; 40]).unwrap(), Course::Even);
    }
}
