//! When progress is steady: windows of time one after another in which about as much was done, so many
//! that what they differ by no longer matters.
use crate::time::{Instant, Span};

/// The least time that is compared. Assumed: a few hundred turns of a disk, so that where in a turn or
/// between two batches of read-ahead a window ends makes little difference.
pub const WINDOW: Span = Span::from_secs(2);
/// The same for writes, which file systems commit and flush every few seconds (5 s in Linux).
pub const WINDOW_OF_WRITES: Span = Span::from_secs(5);
/// Most that the windows may spread, in millionths of the pace and for one window; of n windows, the
/// square root of n times as much. A mean of n values that spread by r has a standard error of about
/// r / (3.5 sqrt n), so that the pace is known to a thousandth.
const SPREAD: u128 = 3500;
/// The same for many windows and for each of them, and at the most: what one window lacks at its end
/// for being cut off between two batches the next one has, so that the mean is better than by chance.
const SPREAD_OF_MANY: (u128, u128) = (2500, 40_000);
/// Windows that are many.
const MANY: u64 = 12;
/// Windows at least: two may be alike by chance.
const LEAST: u64 = 4;
/// Windows after which longer ones are compared: something has a longer period.
const MOST: u64 = 48;
/// Beginnings after which longer windows are compared.
const TRIES: u32 = 4;
/// A window that differs by more than this share from those before begins anew, in thousandths.
const ANOTHER: u64 = 100;
/// Bits behind the point of a time for an amount of 1.
const BITS: u32 = 20;

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

    /// What is done in `time`.
    #[must_use]
    pub fn amount_in(&self, time: Span) -> u64 {
        let amount = u128::from(self.amount) * u128::from(time.0) / u128::from(self.time.0.max(1));
        u64::try_from(amount).unwrap_or(u64::MAX)
    }
}

/// What an observation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing yet.
    Nothing,
    /// The first window begins here; what was before counts no more.
    First,
    /// Another window begins here.
    Mark,
    /// The windows since the first are alike, and another one begins here. The pace is that of all of
    /// them.
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
    first: Option<Point>,
    last: Point,
    /// Windows so far; the fastest and the slowest of them as time for an amount of 1.
    windows: u64,
    low: u64,
    high: u64,
    tries: u32,
}

impl Steady {
    /// Compares windows of at least so long.
    #[must_use]
    pub const fn new(window: Span) -> Self {
        Self {
            least: window,
            window,
            first: None,
            last: Point {
                at: Instant::ZERO,
                amount: 0,
            },
            windows: 0,
            low: u64::MAX,
            high: 0,
            tries: 0,
        }
    }

    /// Forgets what was seen: something has changed.
    pub const fn restart(&mut self) {
        *self = Self::new(self.least);
    }

    /// The least time to the next thing worth observing after a mark.
    #[must_use]
    pub const fn window(&self) -> Span {
        self.window
    }

    /// `amount` in all has been done at `now`.
    #[inline]
    pub fn observe(&mut self, now: Instant, amount: u64) -> Seen {
        let here = Point { at: now, amount };
        let Some(first) = self.first else {
            (self.first, self.last) = (Some(here), here);
            return Seen::First;
        };
        if now.since(self.last.at) < self.window || amount <= self.last.amount {
            return Seen::Nothing;
        }
        self.compare(first, here)
    }

    #[cold]
    fn compare(&mut self, first: Point, here: Point) -> Seen {
        let each = |from: Point| {
            let time = u128::from(here.at.since(from.at).0) << BITS;
            u64::try_from(time / u128::from(here.amount - from.amount)).unwrap_or(u64::MAX)
        };
        let (one, all) = (each(self.last), each(first));
        if self.windows > 0 && one.abs_diff(self.low) / ANOTHER > self.low / 1000 {
            self.tries += 1;
            return self.anew(here);
        }
        self.last = here;
        self.windows += 1;
        (self.low, self.high) = (self.low.min(one), self.high.max(one));
        let spread = u128::from(self.high - self.low) * 1_000_000 / u128::from(all.max(1));
        let windows = u128::from(self.windows);
        let (each, most) = SPREAD_OF_MANY;
        let level = spread * spread <= SPREAD * SPREAD * windows
            || (self.windows >= MANY && spread <= (each * windows).min(most));
        if self.windows >= LEAST && level {
            return Seen::Steady(Pace {
                amount: here.amount - first.amount,
                time: here.at.since(first.at),
            });
        }
        if self.windows < MOST {
            return Seen::Mark;
        }
        self.tries = TRIES;
        self.anew(here)
    }

    /// Begins again, after some tries with longer windows.
    fn anew(&mut self, here: Point) -> Seen {
        let longer = self.tries >= TRIES;
        *self = Self {
            least: self.least,
            window: Span(self.window.0.saturating_mul(1 + u64::from(longer))),
            first: Some(here),
            last: here,
            tries: if longer { 0 } else { self.tries },
            ..Self::new(self.least)
        };
        Seen::First
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
    fn an_even_pace_is_steady_after_some_windows() {
        let (at, pace) = until_steady(|_| 7, 1000).expect("steady");
        assert_eq!(
            (at, pace.amount, pace.time),
            (400, 2800, Span::from_millis(400))
        );
        assert_eq!(pace.time_for(700), Span::from_millis(100));
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
