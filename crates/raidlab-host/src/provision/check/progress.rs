//! How far a check is, and that it comes on.
use crate::error::{HostError, Result};
use std::time::{Duration, Instant};

/// How long a check may come no further: a dead disk holds it for as long as the kernel likes. Even the largest disks are further
/// by what is told of them after seconds.
pub(super) const STALLED: Duration = Duration::from_secs(300);
/// How long what asks for a check, for how far it is, or for its end may take.
pub(super) const HEARS: Duration = Duration::from_secs(20);

/// How far a check was when it last came on.
#[derive(Debug)]
pub(super) struct Progress {
    most: Duration,
    at: Option<u64>,
    since: Instant,
}

impl Progress {
    pub(super) fn new(most: Duration) -> Self {
        Self {
            most,
            at: None,
            since: Instant::now(),
        }
    }

    /// It is so far now.
    ///
    /// # Errors
    /// When it has come no further for too long: with the words for what it is.
    pub(super) fn is_at(&mut self, what: &str, done: Option<u64>) -> Result<()> {
        if done.is_some() && done != self.at {
            self.at = done;
            self.since = Instant::now();
        }
        if self.since.elapsed() <= self.most {
            return Ok(());
        }
        Err(HostError::Unexpected(format!(
            "the {what} came no further for {} s and was stopped: a disk may be dead; see the kernel's log (dmesg)",
            self.most.as_secs()
        )))
    }
}
