//! What the user sees of guests: one line that moves on a terminal; elsewhere a line a trial.
use super::job::At;
use crate::bench::summary;
use crate::predict::told;
use crate::talk;
use indicatif::ProgressBar;
use raidlab_results::record::{Status, TrialRecord};
use std::time::{Duration, Instant};

/// One line that moves.
pub(super) struct Waiting {
    bar: Option<ProgressBar>,
}

impl Waiting {
    pub(super) fn new(what: &str) -> Self {
        let bar = talk::spinner(what);
        if bar.is_none() {
            talk::note(what);
        }
        Self { bar }
    }

    /// How far it is; only on a terminal.
    pub(super) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            talk::message(bar, what);
        }
    }

    /// Prints something while the line is out of the way.
    pub(super) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Trials under way.
pub(super) struct View {
    bar: Option<ProgressBar>,
    begun: Instant,
    all: usize,
    before: usize,
    done: usize,
    label: String,
    /// What of the trial was told last.
    at: String,
}

impl View {
    /// A view of `all` trials, `done` of which were stored before.
    pub(super) fn new(all: usize, done: usize) -> Self {
        Self {
            bar: talk::spinner("booting the guest"),
            begun: Instant::now(),
            all,
            before: done,
            done,
            label: String::new(),
            at: String::new(),
        }
    }

    /// A guest boots.
    pub(super) fn boots(&mut self) {
        self.label.clear();
        self.at.clear();
        self.show("booting the guest");
    }

    /// A trial begins.
    pub(super) fn begins(&mut self, label: &str, round: u32) {
        self.label = format!("{label} round {}: ", round + 1);
        self.at.clear();
        self.show("");
    }

    /// How far it is.
    pub(super) fn at(&mut self, at: &At) {
        match at {
            At::Trial { .. } | At::Ended => {}
            At::Stage { what } => {
                what.clone_into(&mut self.at);
                self.show(what);
            }
            At::Phase { number, of, title } => {
                title.clone_into(&mut self.at);
                self.show(&format!("{title} ({} of {of})", number + 1));
            }
        }
    }

    fn show(&self, what: &str) {
        if let Some(bar) = &self.bar {
            let left = left(
                self.begun.elapsed(),
                self.done - self.before,
                self.all - self.done,
            );
            let line = format!("[{}/{}] {left}{}{what}", self.done, self.all, self.label);
            talk::message(bar, &line);
        }
    }

    /// A trial is stored.
    pub(super) fn ended(&mut self, trial: &TrialRecord) {
        self.done += 1;
        self.at.clear();
        let came = match &trial.status {
            Status::Complete => summary(trial),
            Status::Failed { reason } => format!("failed: {reason}"),
        };
        let (done, all, label) = (self.done, self.all, talk::one_line(&trial.cell.label));
        let line = format!("[{done}/{all}] {label} round {}: {came}", trial.round + 1);
        match &self.bar {
            Some(bar) => bar.suspend(|| talk::note(&line)),
            None => talk::note(&line),
        }
    }

    /// The trial that is under way, and what of it.
    pub(super) fn under_way(&self) -> Option<String> {
        (!self.at.is_empty()).then(|| format!("{}{}", self.label, self.at))
    }

    /// Nothing more comes.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Time left, when the others take as long as those that are done.
fn left(elapsed: Duration, done: usize, left: usize) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / done as f64 * left as f64;
    format!("about {} left · ", told(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_in_proportion_to_the_trials() {
        assert_eq!(left(Duration::from_secs(10), 2, 6), "about 30 s left · ");
        assert_eq!(left(Duration::from_secs(10), 0, 6), "");
    }
}
