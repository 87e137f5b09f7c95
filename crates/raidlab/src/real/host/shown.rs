//! How far a trial on the host is, as whoever watches is told.
use crate::bench::View;
use crate::real::job::At;
use crate::real::trial::Watch;
use raidlab_host::provision::Stage;
use raidlab_io::run::{RunProgress, RunStage};

/// The moving line of a measuring session tells how far a trial is.
pub(super) struct Shown<'v> {
    view: &'v mut View,
    /// What was told last.
    pub(super) at: String,
}

impl<'v> Shown<'v> {
    pub(super) const fn new(view: &'v mut View) -> Self {
        let at = String::new();
        Self { view, at }
    }
}

impl Watch for Shown<'_> {
    fn stage(&mut self, stage: &Stage) {
        self.at = At::of_stage(stage);
        self.view.preparing(&stage.what, stage.done, stage.of);
    }

    fn phase(&mut self, number: usize, _: usize, title: &str) {
        title.clone_into(&mut self.at);
        self.view.phase_begins(number, title);
    }

    fn ended(&mut self) {
        self.view.phases_ended();
    }

    fn tick(&mut self, progress: &RunProgress) {
        match progress.stage {
            RunStage::Preparing { .. } => {
                let of = progress.expected.bytes.unwrap_or(0);
                self.view.preparing("writing the data", progress.bytes, of);
            }
            RunStage::Evicting => self.view.preparing("emptying the cache", 0, 0),
            RunStage::Running => {
                self.view.tick(
                    progress.expected,
                    progress.elapsed,
                    progress.ops,
                    progress.bytes,
                );
            }
        }
    }
}
