//! Measuring on this machine: one trial of one arm, from its place to its record.
use super::again;
use super::plan::{Plan, Prepared};
use super::progress::View;
use super::record::of_phase;
use super::session::{Ended, Measure, Turn};
use crate::args::EngineChoice;
use crate::commands::timestamp;
use crate::exit::{BAD_REQUEST, Code, Failure, MISSING, REFUSED, TRIAL_FAILED};
use crate::patience;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::flag::FlagKind;
use raidlab_core::phase::Phase;
use raidlab_core::rng::mix;
use raidlab_io::engine::EngineError;
use raidlab_io::observe::Roots;
use raidlab_io::observe::cache::drop_global;
use raidlab_io::observe::environment::Environment;
use raidlab_io::run::{
    EngineChoice as Engine, Place, RunError, RunOptions, RunProgress, RunStage, run_phase,
};
use raidlab_results::id;
use raidlab_results::record::{PhaseRecord, Place as Where, Provenance, Status, TrialRecord};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Measures on this machine.
pub(crate) struct Machine<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) stop: &'a Stop,
    /// A working directory could not be removed, and stays.
    pub(crate) left: bool,
}

impl Measure for Machine<'_> {
    fn trial(
        &mut self,
        prepared: &Prepared,
        turn: Turn<'_>,
        view: &mut View,
    ) -> Result<Ended, Failure> {
        if self.stop.asked() {
            return Ok(Ended::Interrupted);
        }
        let began = (Instant::now(), timestamp());
        let name = format!(
            "{} {} round {}",
            prepared.arm.label,
            prepared.arm.profile.name(),
            turn.round + 1
        );
        view.trial_begins(name, prepared.plan.phases.len());
        let path = &prepared.arm.path;
        let place = patience::asking(path, || open_place(path))?;
        let environment = patience::asking(path, || self.environment(&place))?;
        let Phases {
            mut records,
            parts,
            error,
        } = self.phases(prepared, turn, &place, view);
        // Removing the files belongs to the trial: the next one must find the space free.
        let closed = patience::asking(path, || place.close());
        let stopped = self.stop.asked() || matches!(error, Some(RunError::Cancelled));
        // All was measured by then, and is not less true for it.
        if let Err(error) = closed {
            self.left = true;
            talk::warn(&left_behind(&error));
        }
        let planned = prepared.plan.phases.len();
        if stopped && !(error.is_none() && all_ended(&records, planned)) {
            return Ok(Ended::Interrupted);
        }
        records.extend(parts);
        let mut record = self.record(prepared, turn, records)?;
        record.started = Some(began.1);
        record.elapsed_ns = Some(u64::try_from(began.0.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Ok(match error {
            None => Ended::Complete(Box::new(record), environment),
            Some(error) => {
                let failure = failure(&error);
                record.status = Status::Failed {
                    reason: failure.message.clone(),
                };
                Ended::Failed(Box::new(record), environment, failure)
            }
        })
    }
}

/// What is told of a working directory that stays.
fn left_behind(error: &RunError) -> String {
    match error {
        // With what keeps it, and what helps.
        RunError::Stays { .. } => error.to_string(),
        _ => format!(
            "{error}; what is left is removed by the next run in the same place, or by 'raidlab clean'"
        ),
    }
}

impl Machine<'_> {
    fn environment(&self, place: &Place) -> Result<Value, Failure> {
        let captured = Environment::capture(&Roots::system(), Some(place.resolved()))
            .map_err(|error| Failure::from_error(MISSING, &error))?;
        serde_json::to_value(captured).map_err(|error| Failure::new(MISSING, error.to_string()))
    }

    /// Runs the phases in order until one fails.
    fn phases(
        &self,
        prepared: &Prepared,
        turn: Turn<'_>,
        place: &Place,
        view: &mut View,
    ) -> Phases {
        let options = RunOptions {
            data: self.plan.data,
            engine: match self.plan.engine {
                EngineChoice::Auto => Engine::Auto,
                EngineChoice::Uring => Engine::Uring,
                EngineChoice::Blocking => Engine::Blocking,
            },
            stall: self.plan.stall,
            cancel: self.stop.flag(),
            ..RunOptions::new(turn.seed)
        };
        let (mut records, mut parts) = (Vec::new(), Vec::new());
        for (number, phase) in prepared.plan.phases.iter().enumerate() {
            view.phase_begins(number, &phase.title);
            let mut monitor = |progress: RunProgress| {
                match progress.stage {
                    RunStage::Preparing { .. } => {
                        view.preparing(
                            "writing the data",
                            progress.bytes,
                            progress.expected.bytes.unwrap_or(0),
                        );
                    }
                    RunStage::Evicting => view.preparing("emptying the cache", 0, 0),
                    RunStage::Running => {
                        view.tick(
                            progress.expected,
                            progress.elapsed,
                            progress.ops,
                            progress.bytes,
                        );
                    }
                }
                if self.stop.asked() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            if phase.cold
                && self.plan.allow_global
                && let Err(error) = drop_all(phase, place)
            {
                return Phases {
                    records,
                    parts,
                    error: Some(error),
                };
            }
            match run_phase(phase, place, &options, &mut monitor) {
                Ok(outcome) => {
                    let recorded = of_phase(outcome, phase);
                    records.push(recorded.whole);
                    parts.extend(recorded.parts);
                }
                Err(error) => {
                    return Phases {
                        records,
                        parts,
                        error: Some(error),
                    };
                }
            }
        }
        Phases {
            records,
            parts,
            error: None,
        }
    }

    fn record(
        &self,
        prepared: &Prepared,
        turn: Turn<'_>,
        phases: Vec<PhaseRecord>,
    ) -> Result<TrialRecord, Failure> {
        let Prepared { arm, plan, .. } = prepared;
        let mut settings = plan.settings.clone();
        settings.insert("data".into(), self.plan.data.to_string());
        // The digest is that of the session's seed, not of the round's: rounds do different
        // operations of the same kind, and trials of two sessions with the same seed match.
        let digest = plan.phases.iter().fold(0_u64, |all, phase| {
            mix(all.rotate_left(7) ^ phase.digest(self.plan.seed))
        });
        Ok(TrialRecord {
            id: id::random().map_err(|error| Failure::from_error(MISSING, &error))?,
            session: turn.session.to_owned(),
            order: turn.order,
            round: turn.round,
            cell: arm.cell(),
            cell_digest: None,
            profile: arm.profile.name().to_owned(),
            settings,
            provenance: Provenance::Measured { place: Where::Host },
            started: None,
            elapsed_ns: None,
            seed: Some(self.plan.seed),
            digest: Some(digest),
            environment: None,
            command: Some(again::command(self.plan)),
            phases,
            checks: Vec::new(),
            status: Status::Complete,
            flags: plan.flags.clone(),
        })
    }
}

/// The phases of a trial as far as it came.
struct Phases {
    records: Vec<PhaseRecord>,
    /// Parts of them.
    parts: Vec<PhaseRecord>,
    error: Option<RunError>,
}

/// Whether all phases of a trial ran to their ends: a request to stop that came later takes nothing
/// from it.
fn all_ended(phases: &[PhaseRecord], planned: usize) -> bool {
    let cut = |phase: &PhaseRecord| {
        let mut kinds = phase.flags.iter().map(|flag| flag.kind);
        kinds.any(|kind| kind == FlagKind::Interrupted)
    };
    phases.len() == planned && !phases.iter().any(cut)
}

/// Empties the page cache of the whole machine, which reaches what the files' own eviction cannot:
/// other files' pages, names and attributes. Files that are yet to be written are cold anyway.
fn drop_all(phase: &Phase, place: &Place) -> Result<(), RunError> {
    let files = phase.needs.iter().map(|need| place.data(need.file));
    if let Some(file) = files.into_iter().find(|path| path.exists()) {
        drop_global(&Roots::system(), &file)?;
    }
    Ok(())
}

/// Opens a place; says what an earlier run had left there.
pub(super) fn open_place(path: &Path) -> Result<Place, Failure> {
    let place = Place::open(path).map_err(|error| failure(&error))?;
    for stale in &place.stale().removed {
        talk::note(&format!(
            "removed {}, left by a raidlab that was killed",
            stale.display()
        ));
    }
    for left in &place.stale().left {
        talk::warn_once(&format!("left by a raidlab that was killed: {left}"));
    }
    Ok(place)
}

/// Removes what was made in a place.
pub(super) fn close_place(place: Place) -> Result<(), Failure> {
    place.close().map_err(|error| failure(&error))
}

/// What a run's error means for the exit code. A failed operation is a failed trial; the rest is a
/// place that cannot be used as asked.
fn failure(error: &RunError) -> Failure {
    let failure = Failure::from_error(code_of(error), error);
    match error {
        RunError::Engine(EngineError::NoDirect { .. }) => failure.remedy("add --buffered"),
        _ => failure,
    }
}

fn code_of(error: &RunError) -> Code {
    match error {
        RunError::NoSpace { .. } => MISSING,
        RunError::TooSmall { .. } => BAD_REQUEST,
        RunError::NotWritable { .. } | RunError::Stays { .. } => REFUSED,
        RunError::Path { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            BAD_REQUEST
        }
        RunError::Path { .. }
        | RunError::Engine(_)
        | RunError::Observe(_)
        | RunError::Thread(_) => MISSING,
        _ => TRIAL_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::flag::Flag;
    use raidlab_results::record::Unit;

    #[test]
    fn a_directory_that_stays_is_told_with_what_helps() {
        let path = std::path::PathBuf::from("/mnt/.raidlab-5e3799");
        let told = left_behind(&RunError::Path {
            action: "remove",
            path: path.clone(),
            source: std::io::ErrorKind::ReadOnlyFilesystem.into(),
            remedy: String::new(),
        });
        assert!(
            told.starts_with("cannot remove /mnt/.raidlab-5e3799: ")
                && told.contains("by the next run"),
            "{told}"
        );
        let why = "it holds 'letters'; move that elsewhere".to_owned();
        let told = left_behind(&RunError::Stays { path, why });
        assert!(told.ends_with("move that elsewhere"), "{told}");
    }

    #[test]
    fn a_trial_is_whole_when_no_phase_is_missing_or_cut_short() {
        let phase = |name| PhaseRecord::bare(name, Some(1.0), Unit::BytesPerSecond);
        let mut phases = vec![phase("write"), phase("read")];
        assert!(all_ended(&phases, 2));
        assert!(!all_ended(&phases, 3), "stopped before the last one");
        phases[1].flags = vec![Flag::new(FlagKind::Other, "the disk is slow")];
        assert!(all_ended(&phases, 2));
        phases[1]
            .flags
            .push(Flag::new(FlagKind::Interrupted, "stopped"));
        assert!(!all_ended(&phases, 2), "stopped in the last one");
    }
}
