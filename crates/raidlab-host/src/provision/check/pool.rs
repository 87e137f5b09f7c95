//! `zpool scrub`: ZFS reads all that is allocated in a pool, with all copies and parity, and compares checksums.
use super::super::build::{Context, Stage};
use super::Checked;
use super::progress::{HEARS, Progress, STALLED};
use super::status::{Status, WHOLE};
use crate::error::{HostError, Result};
use crate::tool::Tool;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(200);

/// Scrubs a pool.
pub(super) fn scrub(context: &mut Context<'_>, name: &str) -> Result<Checked> {
    scrub_by("zpool", context, name, STALLED)
}

/// As [`scrub`], by this program, and given up when it comes no further for so long. That it goes on in the kernel needs no step in
/// the journal: it goes with its pool, which has one.
pub(super) fn scrub_by(
    zpool: &str,
    context: &mut Context<'_>,
    name: &str,
    most: Duration,
) -> Result<Checked> {
    let begun = Instant::now();
    let begin = Tool::new([zpool, "scrub", name]).within(HEARS);
    let status = begin
        .cancelled_by(context.cancel)
        .run()
        .and_then(|_| wait(zpool, context, name, most));
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            let _ = Tool::new([zpool, "scrub", "-s", name]).within(HEARS).run();
            return Err(error);
        }
    };
    let took = begun.elapsed();
    let bytes = Tool::new([zpool, "list", "-Hp", "-o", "alloc", name]);
    let bytes = bytes.within(HEARS).run();
    if !status.scan.starts_with("scrub repaired") {
        return Err(HostError::Unexpected(format!(
            "the scrub of {name} did not come to its end: {}",
            status.scan
        )));
    }
    Ok(Checked {
        of: name.to_owned(),
        by: "zpool scrub",
        took,
        bytes: bytes.ok().and_then(|said| said.out.trim().parse().ok()),
        counts: status.counts(),
        found: status.found(),
    })
}

fn wait(zpool: &str, context: &mut Context<'_>, name: &str, most: Duration) -> Result<Status> {
    const WHAT: &str = "scrub of the pool";
    let mut progress = Progress::new(most);
    loop {
        let asked = Tool::new([zpool, "status", "-p", name]).within(HEARS);
        let said = asked.cancelled_by(context.cancel).run()?.out;
        let status = Status::parse(&said);
        if !status.scan.starts_with("scrub in progress") {
            return Ok(status);
        }
        context.tell(&Stage {
            what: WHAT.to_owned(),
            done: status.done.unwrap_or(0),
            of: status.done.map_or(0, |_| WHOLE),
        })?;
        progress.is_at(WHAT, Some((status.done, status.amounts)))?;
        std::thread::sleep(POLL);
    }
}
