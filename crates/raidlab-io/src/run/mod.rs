//! Phases in wall time: from a [`Phase`] and a [`Place`] to a [`PhaseOutcome`] with its doubts.
//!
//! [`run_phase`] prepares the data files, empties the cache when the phase is cold (and proves it),
//! notes the counters of the devices and processors, starts a thread for each job on one time axis,
//! waits for them, notes the counters again, and judges.
//!
//! # Ending early
//! The monitor or [`RunOptions::cancel`] ends a run within 100 ms: the jobs stop asking for
//! operations and wait for what is in flight. A job whose thread sits in a system call for longer is
//! left behind: it ends, unheard, when the kernel lets it go.
//!
//! # No progress
//! The calling thread looks at each job's sign of life, and at that of the thread which writes data files. When nothing ended for
//! [`RunOptions::stall`], the run fails with [`RunError::Stalled`], which tells the state of the
//! job's thread; that thread is left behind as above. Nothing more can be done about a thread in
//! uninterruptible sleep (state `D`).
mod asked;
mod error;
mod job;
mod jobs;
mod judge;
mod place;
mod prepare;
mod remedy;
mod standstill;
mod workdir;
mod writer;

pub use error::RunError;
pub use place::{NULL_SIZE, Place, size_of_place};
pub use workdir::{Stale, WorkDir};

use crate::engine::{Content, Uring};
use crate::observe::cache::{Eviction, evict};
use crate::observe::{Holes, Resolved, Roots};
use raidlab_core::data::DataPolicy;
use raidlab_core::op::FileId;
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::{Needed, Phase};
use raidlab_core::time::Span;
use raidlab_core::workload::Expected;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// By which system calls block operations are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring for a depth above 1, blocking calls for a depth of 1 (where they cost less) and
    /// where there is no io_uring (with a remark on the outcome).
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Blocking calls, one operation at a time whatever the depth.
    Blocking,
}

/// How phases are run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Seed of the operation streams and of the data.
    pub seed: u64,
    /// What is written.
    pub data: DataPolicy,
    /// The engine for block operations; file operations are always blocking calls.
    pub engine: EngineChoice,
    /// How long nothing may end before a run is called stalled.
    pub stall: Span,
    /// Set by another thread (or a signal handler) to end the run.
    pub cancel: Arc<AtomicBool>,
}

impl RunOptions {
    /// Seeded data, the engine that suits, a stall after 60 s.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            data: DataPolicy::default(),
            engine: EngineChoice::default(),
            stall: Span::from_secs(60),
            cancel: Arc::default(),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// What a run is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// Writing a data file that the phase needs.
    Preparing {
        /// Which.
        file: FileId,
    },
    /// Emptying the cache.
    Evicting,
    /// The phase itself.
    Running,
}

/// What a monitor is told, about 50 times a second while a phase runs.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// What the run is at.
    pub stage: RunStage,
    /// Since this stage began.
    pub elapsed: Span,
    /// Counted operations so far, all jobs.
    pub ops: u64,
    /// Counted bytes so far, all jobs; while preparing, bytes written.
    pub bytes: u64,
    /// How far this stage will go.
    pub expected: Expected,
}

/// Told of the progress; `Break` ends the run.
pub type RunMonitor<'a> = &'a mut dyn FnMut(RunProgress) -> ControlFlow<()>;

/// Runs one phase.
///
/// The outcome carries its doubts as flags; an interrupted run that has something to tell is an
/// outcome with the flag [`Interrupted`](raidlab_core::flag::FlagKind::Interrupted).
///
/// # Errors
/// See [`RunError`]: no space, a file that is too small, a failed operation, no progress, cancelled.
pub fn run_phase(
    phase: &Phase,
    place: &Place,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<PhaseOutcome, RunError> {
    let content = Content::new(options.data, options.seed);
    let cold = ready(phase, place, options, &content, monitor)?;
    let launched = jobs::launch(phase, place, options, &content)?;
    let watch = judge::Watch::begin(phase, place)?;
    let ran = launched.run(monitor)?;
    if !ran.interrupted && phase.ended_in_ramp(&ran.tallies) {
        return Err(RunError::EndedInRamp {
            phase: phase.id.clone(),
            ramp: phase.ramp,
        });
    }
    watch.end(phase, place, options, &cold, ran)
}

/// Makes all ready for a phase that another program carries out: its data files are there, and out of the cache where it
/// begins cold.
///
/// # Errors
/// See [`RunError`]: no space, a file that is too small, cancelled.
pub fn make_ready(
    phase: &Phase,
    place: &Place,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<(), RunError> {
    let content = Content::new(options.data, options.seed);
    ready(phase, place, options, &content, monitor).map(drop)
}

/// Makes data files in a directory before the phases that find them, and all of them durable.
///
/// # Errors
/// See [`RunError`]: no space, cancelled.
pub fn lay_out(
    files: &[Needed],
    place: &Place,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<(), RunError> {
    let content = Content::new(options.data, options.seed);
    prepare::provide(place, files, &content, options, monitor)?;
    place.laid_out(files);
    prepare::write_back(place)
}

/// What a phase reads of a given file, or of the file that a loop device shows, that no disk is read for.
#[must_use]
pub fn holes(phase: &Phase, resolved: &Resolved) -> Option<Holes> {
    judge::holes(&Roots::system(), phase, resolved)
}

/// Whether io_uring can be used here, and if not, why.
///
/// # Errors
/// The reason.
pub fn uring_available() -> Result<(), RunError> {
    Ok(Uring::probe()?)
}

/// What a phase finds when it begins; how cold that is.
fn ready(
    phase: &Phase,
    place: &Place,
    options: &RunOptions,
    content: &Content,
    monitor: RunMonitor<'_>,
) -> Result<Vec<Eviction>, RunError> {
    prepare::prepare(place, phase, content, options, monitor)?;
    prepare::settle(place, phase)?;
    if phase.cold {
        evict_all(phase, place, options, monitor)
    } else {
        Ok(Vec::new())
    }
}

/// Takes what the phase reads out of the page cache.
fn evict_all(
    phase: &Phase,
    place: &Place,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<Vec<Eviction>, RunError> {
    let progress = RunProgress {
        stage: RunStage::Evicting,
        elapsed: Span::ZERO,
        ops: 0,
        bytes: 0,
        expected: Expected::default(),
    };
    if monitor(progress).is_break() || options.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    if place.is_null() {
        return Ok(Vec::new());
    }
    let mut paths: Vec<_> = phase
        .needs
        .iter()
        .map(|need| place.way(need.file))
        .collect();
    paths.sort();
    paths.dedup();
    let evicted: Result<_, _> = paths.iter().map(|path| evict(path)).collect();
    Ok(evicted?)
}
