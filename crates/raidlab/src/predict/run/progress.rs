//! What the user sees while an experiment is simulated: one line that moves on a terminal; elsewhere a
//! line a trial, or now and then a line when there are many.
use super::super::estimate::told;
use crate::bench::summary;
use crate::talk;
use indicatif::ProgressBar;
use raidlab_results::record::{Status, TrialRecord};
use std::time::{Duration, Instant};

/// With more trials, not every one is told.
const MOST_LINES: usize = 60;
/// So often, then.
const OFTEN: Duration = Duration::from_secs(2);

pub(super) struct View {
    bar: Option<ProgressBar>,
    begun: Instant,
    told: Instant,
    /// Trials of the plan, and those that are stored.
    all: usize,
    done: usize,
    /// Guessed work to be done by this run, and what of it is done.
    work: f64,
    worked: f64,
}

impl View {
    /// A view of `all` trials, `done` of which were stored before; `work` is guessed for the others.
    pub(super) fn new(all: usize, done: usize, work: f64) -> Self {
        Self {
            bar: talk::bar(),
            begun: Instant::now(),
            told: Instant::now(),
            all,
            done,
            work: work.max(f64::MIN_POSITIVE),
            worked: 0.0,
        }
    }

    /// A trial is stored; `work` was guessed for it.
    pub(super) fn ended(&mut self, trial: &TrialRecord, work: f64) {
        self.done += 1;
        self.worked += work;
        let left = left(self.begun.elapsed(), self.worked / self.work);
        let place = format!("[{}/{}]", self.done, self.all);
        let came = match &trial.status {
            Status::Complete => summary(trial),
            Status::Failed { reason } => format!("failed: {reason}"),
        };
        let label = talk::one_line(&trial.cell.label);
        let line = format!("{place} {label} round {}: {came}", trial.round + 1);
        match &self.bar {
            Some(bar) => {
                if self.all <= MOST_LINES {
                    bar.suspend(|| talk::note(&line));
                }
                bar.set_position((1000 * self.done / self.all.max(1)) as u64);
                talk::message(bar, &format!("{place} {left}{label}"));
            }
            None if self.all <= MOST_LINES => talk::note(&line),
            None => {
                if self.told.elapsed() >= OFTEN || self.done == self.all {
                    self.told = Instant::now();
                    talk::note(&format!("{place} {left}{label}"));
                }
            }
        }
    }

    /// Nothing more comes; the moving line is taken away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Time left, from the share of the work that is done; nothing at the end.
fn left(elapsed: Duration, share: f64) -> String {
    if share >= 1.0 || share <= 0.0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() * (1.0 - share) / share;
    format!("about {} left · ", told(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_in_proportion_to_the_work() {
        assert_eq!(left(Duration::from_secs(10), 0.25), "about 30 s left · ");
        assert_eq!(left(Duration::from_secs(10), 1.0), "");
        assert_eq!(left(Duration::from_secs(10), 0.0), "");
    }
}
