//! Writes a data file on a thread of its own, so that a device that does not answer is noticed.
//!
//! A thread in a system call cannot be woken: one that is stuck is left behind, and ends, unheard, when the kernel
//! lets it go. What it has written so far it removes itself, for whoever removed it now would be stuck as well.
use super::error::RunError;
use super::jobs::{GRACE, STALL_MARGIN, TICK, thread_state};
use crate::descriptor::by_name;
use crate::engine::Content;
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::MIB;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// Bytes written at a time.
const PIECE: usize = MIB as usize;
/// Written through in steps, so that the sync at the end does not sit on gigabytes: it could not be cancelled, and
/// would be taken for a stall.
const STEP: u64 = 64 * MIB;

/// A data file to be written.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) file: FileId,
    /// Bytes.
    pub(super) size: u64,
    pub(super) content: Content,
}

/// What the writing thread and the one that watches tell each other.
#[derive(Default)]
struct Shared {
    /// Bytes written.
    done: AtomicU64,
    /// Its number; 0 before it runs.
    thread: AtomicI32,
    stop: AtomicBool,
}

impl Writer {
    /// Writes the file; `report` is told the bytes written so far, and ends it with an error of its own.
    ///
    /// # Errors
    /// What `report` gave, what the file system answered, and [`RunError::Stalled`] when nothing was written for
    /// `stall`. The file is gone then, or will be as soon as the kernel lets the thread go.
    pub(super) fn write(
        self,
        stall: Span,
        mut report: impl FnMut(u64) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        report(0)?;
        let path = self.path.clone();
        let shared = Arc::<Shared>::default();
        let (tell, hear) = channel();
        let seen = shared.clone();
        let thread = std::thread::Builder::new()
            .name("prepare".to_owned())
            .spawn(move || {
                // Nobody listens any more when it was left behind.
                let _ = tell.send(self.work(&seen));
            })
            .map_err(RunError::Thread)?;
        let mut last = (0, Instant::now());
        let mut ending: Option<(Instant, RunError)> = None;
        loop {
            match hear.recv_timeout(TICK) {
                Ok(result) => {
                    // It has told its last; how it ends says nothing more.
                    let _ = thread.join();
                    return match ending {
                        Some((_, why)) => Err(why),
                        None => report(shared.done.load(Ordering::Relaxed)).and(result),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Died {
                        phase: "prepare".to_owned(),
                        job: 0,
                    });
                }
            }
            let (now, done) = (Instant::now(), shared.done.load(Ordering::Relaxed));
            if done != last.0 {
                last = (done, now);
            }
            match &ending {
                // Stuck in the kernel: left behind.
                Some((since, _)) if Span::from(now - *since) >= GRACE => {
                    return Err(ending.map_or(RunError::Cancelled, |(_, why)| why));
                }
                Some(_) => {}
                None => {
                    let waited = Span::from(now - last.1);
                    if waited >= stall + STALL_MARGIN {
                        shared.stop.store(true, Ordering::Relaxed);
                        return Err(stalled(path, waited, &shared));
                    }
                    if let Err(why) = report(done) {
                        shared.stop.store(true, Ordering::Relaxed);
                        ending = Some((now, why));
                    }
                }
            }
        }
    }

    fn work(&self, shared: &Shared) -> Result<(), RunError> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        shared.thread.store(thread, Ordering::Relaxed);
        let result = self.fill(shared);
        if result.is_err() || shared.stop.load(Ordering::Relaxed) {
            // A torn file would be found invalid, but it takes space meanwhile.
            let _ = std::fs::remove_file(&self.path);
        }
        result
    }

    fn fill(&self, shared: &Shared) -> Result<(), RunError> {
        let path = self.path.as_path();
        let mut file = File::create(path).map_err(RunError::path("make", path))?;
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        while at < self.size {
            if shared.stop.load(Ordering::Relaxed) {
                return Err(RunError::Cancelled);
            }
            let len = (self.size - at).min(PIECE as u64) as usize;
            self.content.fill(self.file, at, &mut piece[..len]);
            file.write_all(&piece[..len])
                .map_err(RunError::path("write", path))?;
            at += len as u64;
            if at.is_multiple_of(STEP) {
                sync(&file, path)?;
            }
            shared.done.store(at, Ordering::Relaxed);
        }
        file.sync_all().map_err(RunError::path("sync", path))
    }
}

fn sync(file: &File, path: &Path) -> Result<(), RunError> {
    file.sync_data().map_err(RunError::path("sync", path))
}

fn stalled(path: PathBuf, waited: Span, shared: &Shared) -> RunError {
    RunError::Stalled {
        path: by_name(&path),
        job: 0,
        waited,
        in_flight: "writing a data file".to_owned(),
        state: thread_state(shared.thread.load(Ordering::Relaxed)),
    }
}
