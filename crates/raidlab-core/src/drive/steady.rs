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
/// Most that the standard error of the mean of many windows may be, in millionths of the pace: what disturbs a pace seldom and
/// much lets windows spread for ever, and yet the mean is known.
const ERROR_OF_MANY: u128 = 2000;
/// Windows at least: two may be alike by chance.
const LEAST: u64 = 4;
/// Windows after which two and two are taken for one: something has a longer period.
const MOST: usize = 48;
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

impl Point {
    const ORIGIN: Self = Self {
        at: Instant::ZERO,
        amount: 0,
    };

    /// Time for an amount of 1 from here to there.
    fn cost(self, there: Self) -> u64 {
        let time = u128::from(there.at.since(self.at).0) << BITS;
        let amount = u128::from(there.amount.saturating_sub(self.amount).max(1));
        u64::try_from(time / amount).unwrap_or(u64::MAX)
    }
}

/// Watches a growing amount over time.
#[derive(Clone, Debug)]
pub struct Steady {
    least: Span,
    window: Span,
    /// Where windows begin and end, and how many such places there are.
    marks: [Point; MOST + 1],
    len: usize,
    last: Point,
    /// The fastest window as time for an amount of 1.
    low: u64,
    tries: u32,
}

impl Steady {
    /// Compares windows of at least so long.
    #[must_use]
    pub const fn new(window: Span) -> Self {
        Self {
            least: window,
            window,
            marks: [Point::ORIGIN; MOST + 1],
            len: 0,
            last: Point::ORIGIN,
            low: u64::MAX,
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
        if self.len == 0 {
            self.mark(here);
            return Seen::First;
        }
        if now.since(self.last.at) < self.window || amount <= self.last.amount {
            return Seen::Nothing;
        }
        self.compare(here)
    }

    #[cold]
    fn compare(&mut self, here: Point) -> Seen {
        let one = self.last.cost(here);
        if self.len > 1 && one.abs_diff(self.low) / ANOTHER > self.low / 1000 {
            self.tries += 1;
            return self.anew(here);
        }
        self.mark(here);
        self.low = self.low.min(one);
        let (level, first) = (self.is_level(), self.marks[0]);
        if self.len > MOST {
            self.widen();
        }
        if !level {
            return Seen::Mark;
        }
        Seen::Steady(Pace {
            amount: here.amount - first.amount,
            time: here.at.since(first.at),
        })
    }

    fn mark(&mut self, here: Point) {
        self.marks[self.len] = here;
        self.len += 1;
        self.last = here;
    }

    /// Time for an amount of 1 in each window.
    fn costs(&self) -> impl Iterator<Item = u64> + '_ {
        let marks = &self.marks[..self.len];
        marks.windows(2).map(|pair| pair[0].cost(pair[1]))
    }

    /// Whether the windows are alike, or many enough for their mean to be known.
    fn is_level(&self) -> bool {
        let windows = self.len as u64 - 1;
        if windows < LEAST {
            return false;
        }
        let mean = u128::from(self.marks[0].cost(self.last).max(1));
        let (low, high) = self.costs().fold((u64::MAX, 0), |(low, high), one| {
            (low.min(one), high.max(one))
        });
        let spread = u128::from(high - low) * 1_000_000 / mean;
        let n = u128::from(windows);
        let (each, most) = SPREAD_OF_MANY;
        if spread * spread <= SPREAD * SPREAD * n {
            return true;
        }
        if windows < MANY {
            return false;
        }
        // In millionths of the mean, whose squares fit.
        let off = |one: u64| u128::from(one).abs_diff(mean) * 1_000_000 / mean;
        let squares: u128 = self.costs().map(|one| off(one) * off(one)).sum();
        spread <= (each * n).min(most) || squares <= ERROR_OF_MANY * ERROR_OF_MANY * n * (n - 1)
    }

    /// Takes two and two windows for one, and compares windows of twice the time from now on.
    fn widen(&mut self) {
        self.len = MOST / 2 + 1;
        for mark in 0..self.len {
            self.marks[mark] = self.marks[2 * mark];
        }
        self.window = Span(self.window.0.saturating_mul(2));
        self.low = self.costs().min().unwrap_or(u64::MAX);
    }

    /// Begins again, after some tries with longer windows.
    fn anew(&mut self, here: Point) -> Seen {
        let longer = self.tries >= TRIES;
        let window = Span(self.window.0.saturating_mul(1 + u64::from(longer)));
        let tries = if longer { 0 } else { self.tries };
        (self.window, self.tries) = (window, tries);
        (self.len, self.low) = (0, u64::MAX);
        self.mark(here);
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
    fn a_pace_that_is_disturbed_now_and_then_is_known_by_its_mean() {
        // One window of five loses a twelfth, in no order: windows of twice and four times the time still differ as much.
        let mut random = 12_345_u64;
        let rates: Vec<u64> = (0..1000)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                if (random >> 33) % 1000 < 200 {
                    920
                } else {
                    1000
                }
            })
            .collect();
        let (at, pace) = until_steady(|ms| rates[ms as usize / 100], 100_000).expect("steady");
        let mean = pace.amount as f64 / pace.time.as_millis_f64();
        assert!((mean / 984.0 - 1.0).abs() < 0.003, "{mean}");
        // Longer windows that began anew each time took 91 s.
        assert!(at < 30_000, "{at}");
    }

    #[test]
    fn windows_go_on_where_nobody_makes_use_of_a_pace() {
        // Level from some window on; whoever has no room for a leap yet goes on watching.
        let mut steady = Steady::new(Span::from_millis(100));
        let (mut now, mut amount, mut levels) = (0, 0, 0);
        for window in 0..400 {
            let seen = steady.observe(Instant(now), amount);
            levels += u32::from(matches!(seen, Seen::Steady(_)));
            now += steady.window().0;
            amount += steady.window().0 / if window % 2 == 0 { 1000 } else { 1018 };
        }
        assert!(levels > 100, "{levels}");
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
