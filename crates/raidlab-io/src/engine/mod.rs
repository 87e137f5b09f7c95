//! Targets in wall time: what a [workload](raidlab_core::workload::Workload) is driven against.
//!
//! | engine | block operations | file operations | in flight |
//! |---|---|---|---|
//! | [`Uring`] | io_uring with registered file and buffers, one system call a turn | no | as many as asked for |
//! | [`Blocking`] | `pread`, `pwrite`, `fsync` | all | one |
//!
//! Both answer to the conformance suite in `tests/conformance.rs`.
//!
//! Time is read once a turn, at the end of [`wait`](raidlab_core::target::Target::wait), and is the
//! time at which all of that turn's operations are said to have ended: the moment the program learned
//! of it. `now` gives that same time, so it does not move between two waits.
//!
//! # When a device does not answer
//! [`drive`](raidlab_core::drive::drive) calls a run stalled when operations are in flight and none
//! ends. It cannot do so while its own thread sits in a system call, so each target counts its turns
//! in a [`Heartbeat`] that another thread can look at. What that thread can do is report: a thread in
//! uninterruptible sleep (state D) takes no signal, and the memory and descriptors of its operation
//! stay with it. The process ends when the kernel gives the operation up.
mod blocking;
mod clock;
mod content;
mod error;
mod extent;
mod files;
mod memory;
mod names;
mod stream;
mod uring;

pub use blocking::Blocking;
pub use clock::Clock;
pub use content::{BLOCK, Content, PERIOD};
pub use error::EngineError;
pub(crate) use extent::size_of;
pub use extent::{Extent, ExtentMode, direct_alignment_at};
pub use files::Files;
pub use names::data_name;
pub(crate) use names::{is_data_name, is_directory_name, is_entry_name};
pub use uring::{Uring, UringFeatures};

use raidlab_core::op::Op;
use raidlab_core::target::TargetError;
use raidlab_core::time::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a target is made for.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// Most operations in flight (the blocking engine has one at a time whatever this says).
    pub depth: u32,
    /// Largest operation in bytes that buffers are laid out for; a larger one works, but slower.
    pub largest: u32,
    /// The time axis.
    pub clock: Clock,
    /// What is written.
    pub content: Content,
    /// Signs of life.
    pub heartbeat: Heartbeat,
}

impl TargetOptions {
    /// For `depth` operations of up to `largest` bytes, on an axis of its own.
    #[must_use]
    pub fn new(depth: u32, largest: u32, content: Content) -> Self {
        Self {
            depth: depth.max(1),
            largest: largest.max(1),
            clock: Clock::start(),
            content,
            heartbeat: Heartbeat::default(),
        }
    }
}

/// When a target last ended an operation or was idle, for another thread to look at.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    #[inline]
    fn beat(&self, now: Instant) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// The time of the last sign of life; zero before the first.
    #[must_use]
    pub fn last(&self) -> Instant {
        Instant(self.0.load(Ordering::Relaxed))
    }
}

#[cold]
fn unsupported(op: Op, why: &'static str) -> TargetError {
    TargetError::Unsupported { op, why }
}

#[cold]
fn failed(
    context: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> TargetError {
    TargetError::Failed {
        context: context.to_owned(),
        source: source.into(),
    }
}

const NOT_ALIGNED: &str =
    "direct I/O here takes offsets and lengths that are multiples of the target's alignment";
const NOT_WRITABLE: &str = "the target was opened for reading only";
const NO_EXTENT: &str = "the target has no extent for block operations";
