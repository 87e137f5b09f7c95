//! When progress is steady: two stretches of time one after another in which as much was done.
use crate::time::{Instant, Span};

/// The least time that is compared. Assumed: a few hundred turns of a disk, so that where in a turn or
/// between two batches of read-ahead a window ends makes less difference than two windows may differ.
pub const WINDOW: Span = Span::from_secs(4);
/// The same for writes, which file systems commit and flush every few seconds (5 s in Linux).
pub const WINDOW_OF_WRITES: Span = Span::from_secs(10);
/// Most that two windows may differ in pace, in thousandths.
const TOLERANCE: u128 = 2;
/// Unlike windows after which longer ones are compared: something has a longer period.
const TRIES: u32 = 3;

/// So much was done in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Operations, bytes, or whatever is counted.
    pub amount: u64,
    /// The time that it takes.
    pub time: Span,
}

impl Pace {
    /// The time that `amount` takes.
    #[must_use]
    pub fn time_for(&self, amount: u64) -> Span {
        let time = u128::from(self.time.0) * u128::from(amount) / u128::from(self.amount.max(1));
        Span(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// What an observation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing yet.
    Nothing,
    /// A window begins here.
    Mark,
    /// Two windows were alike, and the next one begins here. The pace is that of the last one's
    /// amount, at the mean time of both.
    Steady(Pace),
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    amount: u64,
}

/// Watches a growing amount over time.
#[derive(Clone, Debug)]
pub struct Steady {
    least: Span,
    window: Span,
    tries: u32,
    first: Option<Point>,
    second: Option<Point>,
}

impl Steady {
    /// Compares windows of at least so long.
    #[must_use]
    pub fn new(window: Span) -> Self {
        Self {
            least: window,
            window,
            tries: 0,
            first: None,
            second: None,
        }
    }

    /// Forgets what was seen: something has changed.
    pub fn restart(&mut self) {
        *self = Self::new(self.least);
    }

    /// The least time to the next thing worth observing after a mark.
    #[must_use]
    pub fn window(&self) -> Span {
        self.window
    }

    /// `amount` in all has been done at `now`.
    #[inline]
    pub fn observe(&mut self, now: Instant, amount: u64) -> Seen {
        let here = Point { at: now, amount };
        match (self.first, self.second) {
            (None, _) => {
                self.first = Some(here);
                Seen::Mark
            }
            (Some(first), None) => {
                if now.since(first.at) < self.window || amount <= first.amount {
                    return Seen::Nothing;
                }
                self.second = Some(here);
                Seen::Mark
            }
            (Some(first), Some(second)) => self.compare(first, second, here),
        }
    }

    fn compare(&mut self, first: Point, second: Point, here: Point) -> Seen {
        let earlier = (second.amount - first.amount, second.at.since(first.at));
        let later = (here.amount - second.amount, here.at.since(second.at));
        if later.0 < earlier.0 {
            // Far slower than before: what was before is no measure.
            if later.1.0 > earlier.1.0.saturating_mul(4) {
                (self.first, self.second) = (Some(here), None);
                return Seen::Mark;
            }
            return Seen::Nothing;
        }
        (self.first, self.second) = (Some(second), Some(here));
        let a = u128::from(earlier.1.0) * u128::from(later.0);
        let b = u128::from(later.1.0) * u128::from(earlier.0);
        if a.abs_diff(b) * 1000 <= TOLERANCE * a {
            let mean = (a / u128::from(earlier.0) + u128::from(later.1.0)) / 2;
            return Seen::Steady(Pace {
                amount: later.0,
                time: Span(u64::try_from(mean).unwrap_or(u64::MAX)),
            });
        }
        self.tries += 1;
        if self.tries >= TRIES {
            (self.tries, self.window) = (0, Span(self.window.0.saturating_mul(2)));
            (self.first, self.second) = (Some(here), None);
        }
        Seen::Mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds an amount that grows by `rate(ms)` each millisecond until it is steady.
    fn until_steady(rate: impl Fn(u64) -> u64, most: u64) -> Option<(u64, Pace)> {
        let mut steady = Steady::new(Span::from_millis(100));
        let mut amount = 0;
        for ms in 0..most {
            if let Seen::Steady(pace) = steady.observe(Instant(ms * 1_000_000), amount) {
                return Some((ms, pace));
            }
            amount += rate(ms);
        }
        None
    }

    #[test]
    fn an_even_pace_is_steady_after_two_windows() {
        let (at, pace) = until_steady(|_| 7, 1000).expect("steady");
        assert_eq!(
            (at, pace.amount, pace.time),
            (200, 700, Span::from_millis(100))
        );
        assert_eq!(pace.time_for(1400), Span::from_millis(200));
    }

    #[test]
    fn a_changing_pace_is_not_steady_before_it_has_settled() {
        let (at, pace) = until_steady(|ms| if ms < 150 { 100 } else { 7 }, 10_000).expect("steady");
        assert!(at > 350, "{at}");
        assert!(
            pace.time_for(7000).0.abs_diff(1_000_000_000) < 3_000_000,
            "{pace:?}"
        );
        assert_eq!(until_steady(|ms| ms, 20_000), None, "it grows all the time");
    }

    #[test]
    fn a_period_shorter_than_the_window_is_levelled() {
        // Of every 13 ms nothing is done for 4 ms.
        let slow = |ms| if ms % 13 < 9 { 9 } else { 0 };
        let (_, pace) = until_steady(slow, 1_000_000).expect("steady");
        let rate = pace.amount as f64 / pace.time.as_millis_f64();
        assert!((rate * 13.0 / 81.0 - 1.0).abs() < 0.03, "{rate}");
    }
}
