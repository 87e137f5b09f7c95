//! The pace of a resync whose windows differ for ever: disks that are read and written in turn fall into one order and out of it,
//! and by how much seconds, or minutes, differ is chance. What can be known is the mean, the better the longer it is looked at, and
//! how well it is known can be told from how much windows differ.
use crate::machine::totals::Totals;
use raidlab_core::drive::Pace;
use raidlab_core::time::{Instant, Span};

/// Standard error that the time of a whole resync may have for what was leapt over, as a share of it: two of them are the half per
/// cent that leaps may change the time of anything by.
const ERROR: f64 = 0.0025;
/// ... and that of a single stretch, however short.
const MOST_ERROR: f64 = 0.02;
/// The error is looked at after each so many windows. Whoever looks after every one of them stops where it is small by chance, and
/// is off by more than it says.
const LOOK: usize = 8;
/// Windows from which on two and two are taken for one: those that follow each other are not independent, and the longer they are
/// the nearer they come to it.
const MOST: usize = 48;

/// Watches a growing amount over time, in windows that need not be alike.
pub(super) struct Uneven {
    window: Span,
    /// Windows at least.
    least: usize,
    /// Not looked at before: caches fill, and the arms are elsewhere.
    settled: Instant,
    marks: Vec<(Instant, u64)>,
    /// Of the accounts when the first window began.
    pub(super) before: Totals,
}

impl Uneven {
    /// Compares windows of at least so long, `least` of them and more, from `settled` on.
    pub(super) const fn new(window: Span, least: usize, settled: Instant, before: Totals) -> Self {
        Self {
            window,
            least,
            settled,
            marks: Vec::new(),
            before,
        }
    }

    /// So much has been done; the pace of all windows so far when its standard error is at most what a stretch may have that is
    /// `share` of the whole.
    pub(super) fn look(
        &mut self,
        at: (Instant, u64),
        share: f64,
        totals: impl FnOnce() -> Totals,
    ) -> Option<Pace> {
        let Some(last) = self.marks.last() else {
            if at.0 >= self.settled {
                self.marks.push(at);
                self.before = totals();
            }
            return None;
        };
        if at.0.since(last.0) < self.window {
            return None;
        }
        self.marks.push(at);
        // Stretches err independently of each other, so that their squares add up, each with the square of its share.
        let may = (ERROR / share.sqrt()).min(MOST_ERROR);
        let windows = self.marks.len() - 1;
        let looks = windows >= self.least && windows.is_multiple_of(LOOK);
        let known = looks && self.error() <= may;
        let first = self.marks[0];
        if self.marks.len() > MOST {
            self.marks = self.marks.iter().step_by(2).copied().collect();
            self.window = Span(self.window.0.saturating_mul(2));
        }
        known.then(|| Pace {
            amount: at.1 - first.1,
            time: at.0.since(first.0),
        })
    }

    /// Standard error of the mean as a share of it: the greatest that windows, pairs of them, fours and so on up to the two halves
    /// tell. Windows alone would tell too little of what comes and goes in longer times, and nothing of a pace that grows.
    fn error(&self) -> f64 {
        let windows = self.marks.len() - 1;
        let steps = std::iter::successors(Some(1), |step| Some(step * 2));
        let steps = steps.take_while(|step| windows / step >= 2);
        steps
            .map(|step| self.error_of(step))
            .fold(0.0, |most, one| if one > most { one } else { most })
    }

    /// The same of so many windows taken for one; the first that are too few for another one are left out.
    fn error_of(&self, step: usize) -> f64 {
        let over = (self.marks.len() - 1) % step;
        let marks: Vec<(Instant, u64)> = self.marks[over..].iter().step_by(step).copied().collect();
        let rate = |from: (Instant, u64), to: (Instant, u64)| {
            (to.1 - from.1) as f64 / to.0.since(from.0).as_secs_f64()
        };
        let n = (marks.len() - 1) as f64;
        let mean = rate(marks[0], marks[marks.len() - 1]);
        if mean <= 0.0 {
            return f64::INFINITY;
        }
        let off = marks.windows(2).map(|pair| rate(pair[0], pair[1]) - mean);
        let squares: f64 = off.map(|off| off * off).sum();
        (squares / (n * (n - 1.0))).sqrt() / mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many seconds a pace of `rate` in each second is known, and what it is a second.
    fn known(mut rate: impl FnMut(u64) -> u64, share: f64) -> Option<(u64, f64)> {
        let of = Totals::default;
        let mut uneven = Uneven::new(Span::from_secs(1), 32, Instant::ZERO, of());
        let mut amount = 0;
        for second in 0..20_000 {
            let now = Instant::ZERO + Span::from_secs(second);
            if let Some(pace) = uneven.look((now, amount), share, of) {
                return Some((second, pace.amount as f64 / pace.time.as_secs_f64()));
            }
            amount += rate(second);
        }
        None
    }

    fn random(seed: &mut u64) -> u64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    #[test]
    fn the_mean_of_what_is_chance_is_known_in_time() {
        for mut seed in 1..40 {
            // By a quarter up and down, a standard deviation of 14 %.
            let mut next = || 75_000 + random(&mut seed) % 50_001;
            let (of_all, mean) = known(|_| next(), 1.0).expect("known");
            assert!((mean / 100_000.0 - 1.0).abs() < 0.012, "{mean}");
            let (of_part, mean) = known(|_| next(), 1.0 / 30.0).expect("known");
            assert!((mean / 100_000.0 - 1.0).abs() < 0.06, "{mean}");
            assert!(of_part * 5 < of_all, "{of_part} of {of_all}");
        }
    }

    #[test]
    fn what_comes_and_goes_in_longer_times_is_looked_at_for_longer() {
        // Two paces for some ten seconds each, and as much chance in each second: it needs some ten times as long.
        let (mut together, mut alone) = (0, 0);
        for mut seed in 1..20 {
            let mut fast = false;
            let mut seldom = |_| {
                fast ^= random(&mut seed).is_multiple_of(10);
                if fast { 150_000 } else { 100_000 }
            };
            together += known(&mut seldom, 1.0 / 64.0).expect("known").0;
            let often = |_| 100_000 + random(&mut seed) / 7 % 2 * 50_000;
            alone += known(often, 1.0 / 64.0).expect("known").0;
        }
        assert!(together > 4 * alone, "{together} and {alone}");
    }

    #[test]
    fn a_pace_that_grows_is_never_known() {
        assert_eq!(known(|second| 100_000 + 100 * second, 1.0), None);
    }
}
