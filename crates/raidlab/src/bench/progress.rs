//! What the user sees while it runs: one line that moves on a terminal, one line a trial elsewhere.
use super::schedule::time_left;
use crate::talk;
use indicatif::ProgressBar;
use raidlab_core::flag::FlagKind;
use raidlab_core::time::Span;
use raidlab_core::units::MIB;
use raidlab_core::workload::Expected;
use raidlab_results::record::{PhaseRecord, TrialRecord, Unit};
use std::time::{Duration, Instant};

/// Progress of a session on standard error.
pub(crate) struct View {
    bar: Option<ProgressBar>,
    started: Instant,
    /// Trials that there will be at most, and those of earlier runs of the same session.
    most: u32,
    done: u32,
    done_before: u32,
    spent: Duration,
    trial: TrialView,
}

#[derive(Default)]
struct TrialView {
    name: String,
    started: Option<Instant>,
    phases: usize,
    phase: usize,
    title: String,
    stage: Option<Stage>,
}

/// Something untimed that is under way: since when, and how much of it was done then.
struct Stage {
    what: String,
    since: Instant,
    done: u64,
}

impl View {
    /// A view of a session of at most `most` trials, `done` of which are in the store already.
    pub(crate) fn new(most: u32, done: u32) -> Self {
        Self {
            bar: talk::bar(),
            started: Instant::now(),
            most: most.max(1),
            done,
            done_before: done,
            spent: Duration::ZERO,
            trial: TrialView::default(),
        }
    }

    /// A trial begins.
    pub(crate) fn trial_begins(&mut self, name: String, phases: usize) {
        self.trial = TrialView {
            name,
            started: Some(Instant::now()),
            phases,
            phase: 0,
            title: "preparing".into(),
            stage: None,
        };
        self.draw(0.0, "");
    }

    /// Something untimed happens, such as writing the file that will be read.
    pub(crate) fn preparing(&mut self, what: &str, done: u64, of: u64) {
        let stage = match self.trial.stage.take() {
            Some(stage) if stage.what == what && stage.done <= done => stage,
            _ => Stage {
                what: what.to_owned(),
                since: Instant::now(),
                done,
            },
        };
        let share = match of {
            0 => String::new(),
            of => format!(" {} %{}", 100 * done / of, stage.left(done, of)),
        };
        self.trial.stage = Some(stage);
        self.draw(0.0, &format!("{what}{share}"));
    }

    /// The last phase has ended; what follows is part of the trial, but not timed.
    pub(crate) fn phases_ended(&mut self) {
        "after the phases:".clone_into(&mut self.trial.title);
    }

    /// A phase begins.
    pub(crate) fn phase_begins(&mut self, number: usize, title: &str) {
        self.trial.phase = number;
        title.clone_into(&mut self.trial.title);
        self.draw(0.0, "");
    }

    /// A phase is under way.
    pub(crate) fn tick(&mut self, expected: Expected, elapsed: Span, ops: u64, bytes: u64) {
        let ratio =
            |done: u64, of: Option<u64>| of.filter(|of| *of > 0).map(|of| done as f64 / of as f64);
        let share = ratio(elapsed.0, expected.time.map(|t| t.0))
            .or(ratio(bytes, expected.bytes))
            .or(ratio(ops, expected.ops))
            .unwrap_or(0.0)
            .clamp(0.0, 1.0);
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rate = if bytes > 0 {
            format!("{:.1} MiB/s", bytes as f64 / MIB as f64 / seconds)
        } else {
            format!("{:.0}/s", ops as f64 / seconds)
        };
        self.draw(share, &rate);
    }

    /// A trial has ended and is in the store.
    pub(crate) fn trial_ends(&mut self, record: &TrialRecord) {
        self.done += 1;
        self.spent += self.trial.started.map_or(Duration::ZERO, |at| at.elapsed());
        let text = format!(
            "[{}/{}] {}  {}",
            self.done,
            self.most,
            self.trial.name,
            summary(record)
        );
        match &self.bar {
            Some(bar) => bar.suspend(|| talk::note(&text)),
            None => talk::note(&text),
        }
    }

    /// The session has ended; the moving line is taken away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, phase_share: f64, detail: &str) {
        let Some(bar) = &self.bar else { return };
        let trial_share = (self.trial.phase as f64 + phase_share) / self.trial.phases.max(1) as f64;
        let share = (f64::from(self.done) + trial_share) / f64::from(self.most);
        bar.set_position((1000.0 * share) as u64);
        // The time left comes first: a narrow terminal cuts the end off.
        let left = self
            .left(trial_share)
            .map_or(String::new(), |span| format!("about {span} left · "));
        let line = format!(
            "[{}/{}] {left}{} · {} {detail}",
            self.done + 1,
            self.most,
            self.trial.name,
            self.trial.title
        );
        talk::message(bar, &line);
    }

    /// From the mean length of the trials that have ended; before the first, from this one's own
    /// progress.
    fn left(&self, trial_share: f64) -> Option<Span> {
        let ended = self.done - self.done_before;
        if ended == 0 {
            let this = time_left(Span::from(self.started.elapsed()), trial_share)?;
            let whole = Span::from(self.started.elapsed()) + this;
            return Some(
                this + Span(
                    whole
                        .0
                        .saturating_mul(u64::from(self.most.saturating_sub(self.done + 1))),
                ),
            );
        }
        let mean = self.spent / ended;
        let to_come = f64::from(self.most.saturating_sub(self.done)) - trial_share;
        Some(Span::from(mean.mul_f64(to_come.max(0.0))))
    }
}

impl Stage {
    /// How long it takes yet, by its own pace: `, 2 min left`. Nothing until that can be told.
    fn left(&self, done: u64, of: u64) -> String {
        let share =
            done.saturating_sub(self.done) as f64 / of.saturating_sub(self.done).max(1) as f64;
        let left = time_left(Span::from(self.since.elapsed()), share);
        left.map_or_else(String::new, |left| format!(", {left} left"))
    }
}

/// The rates of a trial on one line.
pub(crate) fn summary(record: &TrialRecord) -> String {
    let told = |kind: FlagKind| record.flags.iter().find(|flag| flag.kind == kind);
    // What was asked for and has come out badly is not left to the report.
    let verified = [FlagKind::Inconsistent, FlagKind::Unverified];
    let doubt = verified.into_iter().find_map(told);
    let doubt = doubt.map_or_else(String::new, |flag| format!("  [{flag}]"));
    rates(&record.phases) + &doubt
}

fn rates(phases: &[PhaseRecord]) -> String {
    let rates: Vec<String> = phases.iter().map(rate).collect();
    let legend = match rates.iter().any(|rate| rate.contains('†')) {
        true => " († is kept out of the figures: the report says why)",
        false => "",
    };
    rates.join(", ") + legend
}

fn rate(phase: &PhaseRecord) -> String {
    let loaded = phase
        .figures
        .iter()
        .find(|f| f.name == "rebuild-rate-loaded");
    if let (None, Some(loaded)) = (phase.rate, loaded) {
        // A resync of a real array is not carried out again by itself.
        let rate = loaded.value / MIB as f64;
        return format!("{} {rate:.1} MiB/s beside the load", phase.phase);
    }
    let value = match (phase.rate, phase.unit) {
        (None, _) => "no figure".to_owned(),
        (Some(rate), Unit::BytesPerSecond) => format!("{:.1} MiB/s", rate / MIB as f64),
        (Some(rate), Unit::PerSecond) => format!("{rate:.1}/s"),
        (Some(seconds), Unit::Seconds) => format!("{seconds:.2} s"),
        (Some(percent), Unit::Percent) => format!("{percent:.1} %"),
    };
    // The summary says what a dagger is.
    let doubt = if phase.is_valid() { "" } else { "†" };
    format!("{} {value}{doubt}", phase.phase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::flag::Flag;
    use raidlab_results::record::Figure;

    #[test]
    fn a_rate_is_told_with_its_unit_and_its_doubt() {
        let mut phase =
            PhaseRecord::bare("block-read", Some(100.0 * MIB as f64), Unit::BytesPerSecond);
        assert_eq!(rate(&phase), "block-read 100.0 MiB/s");
        phase.flags.push(Flag::new(
            FlagKind::ServedFromCache,
            "the device read nothing",
        ));
        assert_eq!(rate(&phase), "block-read 100.0 MiB/s†");
        let sound = PhaseRecord::bare("seeks", Some(170.74), Unit::PerSecond);
        assert_eq!(
            rates(&[phase, sound.clone()]),
            "block-read 100.0 MiB/s†, seeks 170.7/s († is kept out of the figures: the report says why)"
        );
        assert_eq!(rates(&[sound]), "seeks 170.7/s");
        assert_eq!(
            rate(&PhaseRecord::bare("seeks", Some(170.74), Unit::PerSecond)),
            "seeks 170.7/s"
        );
        assert_eq!(
            rate(&PhaseRecord::bare("seeks", None, Unit::PerSecond)),
            "seeks no figure†"
        );
    }

    #[test]
    fn a_resync_that_has_no_time_by_itself_is_told_as_beside_the_load() {
        let mut phase = PhaseRecord::bare("rebuild", None, Unit::BytesPerSecond);
        phase.figures.push(Figure {
            name: "rebuild-rate-loaded".to_owned(),
            value: 10.0 * MIB as f64,
            unit: Unit::BytesPerSecond,
        });
        assert_eq!(rates(&[phase]), "rebuild 10.0 MiB/s beside the load");
    }

    #[test]
    fn time_left_comes_from_the_trials_that_ended() {
        let mut view = View::new(10, 4);
        view.done = 6;
        view.spent = Duration::from_secs(20);
        // Two ended in 20 s; four are to come, one of them half done.
        assert_eq!(view.left(0.5), Some(Span::from_secs(35)));
    }
}
