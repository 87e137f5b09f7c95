//! Raidlab and t/io_uring at the same time on the same processor.
//!
//! The scheduler gives it to them by turns of a few milliseconds, so that whatever else the machine does,
//! and whatever speed its clock has, falls on both alike: far less of that is left in a ratio than when one
//! runs after the other. What can be compared is processor time an I/O. Of a cached file that is the whole
//! truth: nothing is waited for, and a processor for oneself does as many I/Os a second as fit.
use crate::configs::{Config, Figures};
use crate::tio::Running;
use crate::{Result, ours};
use std::path::Path;

/// Ours and theirs.
pub(crate) fn run(
    tio: Option<&Path>,
    path: &Path,
    config: &Config,
    seconds: u64,
) -> Result<(Figures, Figures)> {
    let seconds = seconds.max(1);
    // Both warm up for a second, which is not counted: the one that is told of ends a little later.
    let theirs = Running::start(tio, path, config.depth, seconds + 3)?;
    std::thread::scope(|scope| {
        // Its processor time is looked up when it tells of a second.
        let theirs = scope.spawn(|| theirs.end().map_err(|error| error.to_string()));
        let ours = ours::run(path, config, 1000 * seconds);
        let theirs = theirs.join().map_err(|_| "its reader ended early")?;
        Ok((ours?, theirs?))
    })
}
