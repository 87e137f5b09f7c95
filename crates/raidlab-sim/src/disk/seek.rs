//! Seek curves: time by distance in cylinders, from a measured table, two fitted pieces, or the three
//! figures of a datasheet.
use raidlab_core::time::Span;

/// How a disk's seek times are known.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekSpec {
    /// Measured points (cylinders, time), ascending in both; straight lines between them.
    Table(Vec<(u32, Span)>),
    /// `a + b sqrt(d)` up to the break, `c + e d` beyond it, in milliseconds.
    TwoPiece {
        /// Constant of the short piece in ms.
        a: f64,
        /// Factor of the square root of the distance in ms.
        b: f64,
        /// Constant of the long piece in ms.
        c: f64,
        /// Milliseconds a cylinder of the long piece.
        e: f64,
        /// Last distance of the short piece in cylinders.
        knee: u32,
    },
    /// A datasheet's figures: `t(d) = t1 + b sqrt(d-1) + c (d-1)`, with b and c solved so that the
    /// mean over random pairs of cylinders and the full stroke are as given.
    Figures {
        /// To the next cylinder.
        track_to_track: Span,
        /// Mean over uniformly random pairs of different cylinders.
        average: Span,
        /// Over all cylinders.
        full: Span,
    },
}

/// Why a seek curve cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeekError {
    /// No points at all.
    #[error(
        "the seek table is empty: give at least the times to the next cylinder and over all of them"
    )]
    Empty,
    /// The first point of a table is not distance 1.
    #[error(
        "the seek table begins at {0} cylinders: its first point must be 1 cylinder, as [1, ms]"
    )]
    NoFirst(u32),
    /// A table that ends too early.
    #[error(
        "the seek table ends at {last} cylinders, but seeks go up to {needed}: add the full stroke"
    )]
    Short {
        /// The last distance given.
        last: u32,
        /// The longest possible distance.
        needed: u32,
    },
    /// A longer seek that takes less time.
    #[error(
        "a seek of {distance} cylinders takes {time}, less than a shorter one: seek times must not fall with the distance"
    )]
    Falls {
        /// The distance where it falls.
        distance: u32,
        /// The time there.
        time: Span,
    },
    /// Longer than four seconds, or not a number.
    #[error("a seek of {distance} cylinders takes longer than 4 s: times are in milliseconds")]
    TooLong {
        /// The distance.
        distance: u32,
    },
    /// The three figures of a datasheet contradict each other.
    #[error(
        "track-to-track {first}, average {average} and full stroke {full} do not lie on one rising curve: the average of a rising curve lies between about a third and two thirds of the way from the first to the last"
    )]
    Figures {
        /// Track to track.
        first: Span,
        /// Average.
        average: Span,
        /// Full stroke.
        full: Span,
    },
}

/// Distances with an entry each; beyond, entries stand apart and lines join them.
const DENSE: u32 = 2048;
/// Most entries beyond the dense ones.
const COARSE: u32 = 2048;
/// In the place of what is added: the entry has corners. More than any time.
const BENT: u32 = u32::MAX;
/// Longest seek that an entry holds.
const LONGEST_NS: f64 = 4e9;

/// Seek times by distance, at most 24 KiB and the points of a table whatever the number of cylinders: near distances have an
/// entry each, far ones lie on lines between entries (a square root bends there by less than 0.01 %), which bend where the
/// curve does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    dense: Box<[u32]>,
    /// Time at an entry, and what is added up to the next; or where its corners begin, and [`BENT`].
    coarse: Box<[(u32, u32)]>,
    /// Distances and times of the corners of entries that bend, each with its two ends.
    corners: Box<[(u32, u32)]>,
    shift: u32,
}

impl SeekCurve {
    /// The curve of a disk of `cylinders`.
    ///
    /// # Errors
    /// When the times fall with the distance, do not reach the full stroke or are absurd.
    pub fn new(spec: &SeekSpec, cylinders: u32) -> Result<Self, SeekError> {
        let longest = cylinders.max(2) - 1;
        let curve = Formula::new(spec, longest)?;
        let mut shift = 0;
        while longest.saturating_sub(DENSE) >> shift >= COARSE {
            shift += 1;
        }
        // A small disk has an entry for every distance.
        let dense_end = if shift == 0 { longest + 1 } else { DENSE };
        let mut dense = vec![0; dense_end as usize];
        let mut before = 0;
        for d in 1..dense_end {
            before = rising(&curve, d, before)?;
            dense[d as usize] = before;
        }
        let (mut coarse, mut corners) = (Vec::new(), Vec::new());
        if shift > 0 {
            let bends = curve.bends(longest);
            before = rising(&curve, DENSE, before)?;
            for start in (DENSE..=longest).step_by(1 << shift) {
                let end = start + (1 << shift);
                let inside = bends.iter().filter(|at| (start + 1..end).contains(at));
                let first = (start, before);
                let mut bent = vec![first];
                for &at in inside {
                    before = rising(&curve, at, before)?;
                    bent.push((at, before));
                }
                before = rising(&curve, end.min(longest), before)?;
                if bent.len() == 1 {
                    coarse.push((first.1, before - first.1));
                    continue;
                }
                coarse.push((corners.len() as u32, BENT));
                corners.append(&mut bent);
                corners.push((end, before));
            }
        }
        Ok(Self {
            dense: dense.into(),
            coarse: coarse.into(),
            corners: corners.into(),
            shift,
        })
    }

    /// Time in nanoseconds to cross `distance` cylinders; 0 for 0.
    #[must_use]
    #[inline]
    pub fn nanos(&self, distance: u32) -> u64 {
        if let Some(&time) = self.dense.get(distance as usize) {
            return u64::from(time);
        }
        let beyond = distance - DENSE;
        let index = (beyond >> self.shift) as usize;
        let Some(&(from, rise)) = self.coarse.get(index) else {
            return self.beyond_all(beyond);
        };
        if rise == BENT {
            return self.between_corners(from, distance);
        }
        let part = u64::from(beyond) - ((index as u64) << self.shift);
        u64::from(from) + ((u64::from(rise) * part) >> self.shift)
    }

    /// On the line between the corners around a distance, the first of which are those of its entry.
    #[inline(never)]
    fn between_corners(&self, first: u32, distance: u32) -> u64 {
        let mut corners = self.corners[first as usize..].iter().copied();
        let (mut from, mut before) = corners.next().unwrap_or_default();
        for (to, time) in corners {
            if to >= distance {
                let (part, whole) = (u64::from(distance - from), u64::from(to - from));
                let rise = u64::from(time - before);
                return u64::from(before) + (rise * part + whole / 2) / whole;
            }
            (from, before) = (to, time);
        }
        u64::from(before)
    }

    /// A distance longer than the full stroke lies on the last line.
    #[cold]
    fn beyond_all(&self, beyond: u32) -> u64 {
        let last = self.coarse.len().saturating_sub(1);
        let (from, rise) = self.coarse.last().copied().unwrap_or_default();
        if rise == BENT {
            return self.corners.last().map_or(0, |(_, time)| u64::from(*time));
        }
        let part = u64::from(beyond) - ((last as u64) << self.shift);
        u64::from(from) + ((u64::from(rise) * part) >> self.shift)
    }

    /// The longest time of the curve in nanoseconds, for a disk of `cylinders`.
    #[must_use]
    pub fn full_stroke(&self, cylinders: u32) -> u64 {
        self.nanos(cylinders.max(2) - 1)
    }
}

/// The time at `d`, which must not be below `before`.
fn rising(curve: &Formula<'_>, d: u32, before: u32) -> Result<u32, SeekError> {
    let ns = curve.nanos(d);
    if !(0.0..=LONGEST_NS).contains(&ns) {
        return Err(SeekError::TooLong { distance: d });
    }
    let ns = libm::round(ns) as u32;
    if ns < before {
        return Err(SeekError::Falls {
            distance: d,
            time: Span(u64::from(ns)),
        });
    }
    Ok(ns)
}

/// A curve that can be evaluated anywhere, in floating point; only used to fill the table.
enum Formula<'s> {
    Table(&'s [(u32, Span)]),
    TwoPiece([f64; 4], u32),
    Root { first: f64, b: f64, c: f64 },
}

impl<'s> Formula<'s> {
    fn new(spec: &'s SeekSpec, longest: u32) -> Result<Self, SeekError> {
        match spec {
            SeekSpec::Table(points) => {
                check_table(points, longest)?;
                Ok(Self::Table(points))
            }
            SeekSpec::TwoPiece { a, b, c, e, knee } => {
                Ok(Self::TwoPiece([a * 1e6, b * 1e6, c * 1e6, e * 1e6], *knee))
            }
            SeekSpec::Figures {
                track_to_track,
                average,
                full,
            } => solve(*track_to_track, *average, *full, longest),
        }
    }

    /// Where lines between entries would cut corners, in ascending order.
    fn bends(&self, longest: u32) -> Vec<u32> {
        match self {
            Self::Table(points) => {
                let inside = points.iter().map(|(at, _)| *at);
                inside.filter(|at| *at < longest).chain([longest]).collect()
            }
            Self::TwoPiece(_, knee) if *knee < longest => vec![*knee, *knee + 1],
            Self::TwoPiece(..) | Self::Root { .. } => Vec::new(),
        }
    }

    fn nanos(&self, d: u32) -> f64 {
        let x = f64::from(d);
        match self {
            Self::Table(points) => {
                let next = points
                    .partition_point(|(at, _)| *at < d)
                    .min(points.len() - 1);
                let (to, time) = points[next];
                if to == d || next == 0 {
                    return time.0 as f64;
                }
                let (from, before) = points[next - 1];
                let part = (x - f64::from(from)) / f64::from(to - from);
                before.0 as f64 + (time.0 as f64 - before.0 as f64) * part
            }
            Self::TwoPiece([a, b, c, e], knee) => {
                if d <= *knee {
                    a + b * libm::sqrt(x)
                } else {
                    // Two separately fitted pieces do not quite meet; the curve never falls there.
                    (c + e * x).max(a + b * libm::sqrt(f64::from(*knee)))
                }
            }
            Self::Root { first, b, c } => first + b * libm::sqrt(x - 1.0) + c * (x - 1.0),
        }
    }
}

fn check_table(points: &[(u32, Span)], longest: u32) -> Result<(), SeekError> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(SeekError::Empty);
    };
    if first.0 != 1 {
        return Err(SeekError::NoFirst(first.0));
    }
    for pair in points.windows(2) {
        if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
            return Err(SeekError::Falls {
                distance: pair[1].0,
                time: pair[1].1,
            });
        }
    }
    if last.0 < longest {
        return Err(SeekError::Short {
            last: last.0,
            needed: longest,
        });
    }
    Ok(())
}

/// Solves b and c from the mean and the full stroke. The distance d between two random, different
/// ones of C cylinders has the probability 2 (C-d) / (C (C-1)).
fn solve(
    first: Span,
    average: Span,
    full: Span,
    longest: u32,
) -> Result<Formula<'static>, SeekError> {
    let wrong = SeekError::Figures {
        first,
        average,
        full,
    };
    let (t1, mean, end) = (first.0 as f64, average.0 as f64, full.0 as f64);
    let cylinders = f64::from(longest) + 1.0;
    let (mut root, mut line) = (0.0, 0.0);
    for d in 1..=longest {
        let weight = cylinders - f64::from(d);
        root += weight * libm::sqrt(f64::from(d - 1));
        line += weight * f64::from(d - 1);
    }
    let scale = 2.0 / (cylinders * (cylinders - 1.0));
    let (root, line) = (root * scale, line * scale);
    let (root_end, line_end) = (libm::sqrt(f64::from(longest - 1)), f64::from(longest - 1));
    let determinant = root * line_end - line * root_end;
    if longest < 3 || determinant == 0.0 {
        return Err(wrong);
    }
    let b = ((mean - t1) * line_end - (end - t1) * line) / determinant;
    let c = ((end - t1) * root - (mean - t1) * root_end) / determinant;
    // Rising everywhere: the slope b / (2 sqrt(d-1)) + c is least at one end.
    let slope_end = b / (2.0 * root_end) + c;
    if b < 0.0 || slope_end < 0.0 || t1 < 0.0 {
        return Err(wrong);
    }
    Ok(Formula::Root { first: t1, b, c })
}

#[cfg(test)]
mod tests;
