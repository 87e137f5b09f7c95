//! How far a check is, and that it comes on.
use crate::error::{HostError, Result};
use std::time::{Duration, Instant};

/// How long a check may come no further: a dead disk holds it for as long as the kernel likes. Of the largest disks, too, something
/// that is told of it has changed after a minute or two.
pub(in super::super) const STALLED: Duration = Duration::from_secs(300);
/// How long what asks for a check, for how far it is, or for its end may take.
pub(in super::super) const HEARS: Duration = Duration::from_secs(20);

/// How far a check was when it last came on, in whatever tells it.
#[derive(Debug)]
pub(in super::super) struct Progress<T> {
    most: Duration,
    at: Option<T>,
    since: Instant,
}

impl<T: PartialEq> Progress<T> {
    pub(in super::super) fn new(most: Duration) -> Self {
        Self {
            most,
            at: None,
            since: Instant::now(),
        }
    }

    /// It is so far now; `None` when nothing tells.
    ///
    /// # Errors
    /// When it has come no further for too long: with the words for what it is.
    pub(in super::super) fn is_at(&mut self, what: &str, at: Option<T>) -> Result<()> {
        if at.is_some() && at != self.at {
            self.at = at;
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
