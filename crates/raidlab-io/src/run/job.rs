//! One job: a thread with a target of its own.
use super::error::RunError;
use crate::engine::{Blocking, Extent, ExtentMode, Files, Heartbeat, TargetOptions, Uring};
use crate::observe::cpu::OwnCpu;
use raidlab_core::drive::{DriveOptions, Lane, Progress, Tally, drive};
use raidlab_core::phase::Access;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::workload::Workload;
use raidlab_core::workload::spec::AnyWorkload;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// How often a job looks whether it should stop; half of what ending early may take is left for what
/// is in flight.
const POLL: Span = Span::from_millis(20);

/// All that a job's thread owns.
pub(super) struct Job {
    pub(super) number: usize,
    pub(super) phase: String,
    pub(super) depth: u32,
    pub(super) access: Access,
    pub(super) uring: bool,
    /// Whether any of its operations writes.
    pub(super) writes: bool,
    /// Data file 0.
    pub(super) data: PathBuf,
    /// The working directory; `None` for a given file or device.
    pub(super) directory: Option<PathBuf>,
    pub(super) seed: u64,
    pub(super) ramp: Span,
    pub(super) stall: Span,
    pub(super) target: TargetOptions,
    pub(super) seen: Arc<Seen>,
}

/// What others see of a running job.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) ops: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Thread id, 0 before it runs.
    pub(super) thread: AtomicI32,
    /// Asks it to stop.
    pub(super) stop: AtomicBool,
    pub(super) heartbeat: Heartbeat,
}

/// What a job tells.
pub(super) enum Message {
    /// Its target is made; it waits for the start.
    Ready,
    Failed(RunError),
    Ended(Box<Ended>),
}

/// What came of a job.
pub(super) struct Ended {
    pub(super) tally: Tally,
    pub(super) interrupted: bool,
    /// Of its thread, from the start to the end of the drive.
    pub(super) cpu: OwnCpu,
}

/// The body of a job's thread. `gate` gives the time of the start; afterwards the target (with the
/// kernel's worker threads that belong to it) is kept until the other end of `gate` is dropped.
pub(super) fn work(
    job: &Job,
    workload: AnyWorkload,
    gate: &Receiver<Instant>,
    tell: &Sender<(usize, Message)>,
) {
    let number = job.number;
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    job.seen.thread.store(tid, Ordering::Relaxed);
    // Sleeping until an arrival is due should not be 50 µs late, the default slack.
    // SAFETY: takes one number and changes nothing but this thread's timers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
    if let Err(error) = prepared(job, workload, gate, tell) {
        // The receiver is gone when the run was given up.
        let _ = tell.send((number, Message::Failed(error)));
    }
}

fn prepared(
    job: &Job,
    workload: AnyWorkload,
    gate: &Receiver<Instant>,
    tell: &Sender<(usize, Message)>,
) -> Result<(), RunError> {
    let mode = ExtentMode {
        direct: job.access == Access::Direct,
        write: job.writes,
        sync: false,
    };
    let options = job.target.clone();
    if job.access == Access::Calls {
        let files = match &job.directory {
            Some(directory) => Files::new(directory, job.seed)?,
            None => Files::given(&job.data, job.writes),
        };
        let target = Blocking::new(None, Some(files), options)?;
        return by_workload(job, workload, target, gate, tell);
    }
    let extent = Extent::open(&job.data, mode)?;
    if job.uring {
        by_workload(job, workload, Uring::new(extent, options)?, gate, tell)
    } else {
        by_workload(
            job,
            workload,
            Blocking::new(Some(extent), None, options)?,
            gate,
            tell,
        )
    }
}

/// The measuring loop is made for block workloads by themselves: they are the fast ones.
fn by_workload<T: Target>(
    job: &Job,
    workload: AnyWorkload,
    target: T,
    gate: &Receiver<Instant>,
    tell: &Sender<(usize, Message)>,
) -> Result<(), RunError> {
    match workload {
        AnyWorkload::Blocks(blocks) => started(job, blocks, target, gate, tell),
        other => started(job, other, target, gate, tell),
    }
}

fn started<W: Workload, T: Target>(
    job: &Job,
    workload: W,
    mut target: T,
    gate: &Receiver<Instant>,
    tell: &Sender<(usize, Message)>,
) -> Result<(), RunError> {
    let _ = tell.send((job.number, Message::Ready));
    let Ok(start) = gate.recv() else {
        return Ok(());
    };
    let failed = |error| RunError::from_drive(error, &job.data, &job.phase, job.number);
    let mut lanes = [Lane {
        workload,
        depth: job.depth,
    }];
    let options = DriveOptions {
        ramp: job.ramp,
        stall: job.stall,
        poll: POLL,
    };
    let mut monitor = |progress: Progress| {
        job.seen.ops.store(progress.ops, Ordering::Relaxed);
        job.seen.bytes.store(progress.bytes, Ordering::Relaxed);
        if job.seen.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    // With nothing in flight this sleeps, and brings the target's present to the start.
    target
        .wait(Some(start), &mut Vec::new())
        .map_err(|error| failed(error.into()))?;
    let before = (OwnCpu::of_this_thread(), thread_time());
    let driven = drive(&mut lanes, &mut target, &options, &mut monitor);
    let total = thread_time().saturating_sub(before.1);
    let cpu = split(total, OwnCpu::of_this_thread().since(&before.0));
    let mut driven = match driven {
        Ok(driven) => driven,
        Err(error) => {
            // Before the target is dropped: that waits for what is still in flight.
            let _ = tell.send((job.number, Message::Failed(failed(error))));
            return Ok(());
        }
    };
    if let Some(tally) = driven.tallies.pop() {
        let ended = Ended {
            tally,
            interrupted: driven.interrupted,
            cpu,
        };
        let _ = tell.send((job.number, Message::Ended(Box::new(ended))));
    }
    // Ends when the sender is dropped.
    let _ = gate.recv();
    Ok(())
}

/// Processor time of this thread, to the nanosecond.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Divides `total` as `getrusage` divides its own, coarser sum: that lags by up to a clock tick
/// while the thread runs.
fn split(total: Duration, coarse: OwnCpu) -> OwnCpu {
    let sum = coarse.total().as_secs_f64();
    let share = if sum > 0.0 {
        coarse.user.as_secs_f64() / sum
    } else {
        0.0
    };
    let user = total.mul_f64(share.min(1.0));
    OwnCpu {
        user,
        system: total.saturating_sub(user),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_kept_when_it_is_divided() {
        let ms = Duration::from_millis;
        let coarse = OwnCpu {
            user: ms(3),
            system: ms(9),
        };
        let cpu = split(ms(16), coarse);
        assert_eq!((cpu.user, cpu.system), (ms(4), ms(12)));
        assert_eq!(split(ms(1), OwnCpu::default()).system, ms(1));
    }
}
