//! md's own check: it reads all members and counts what differs.
use super::super::build::{Context, Stage};
use super::super::sync::{self, SyncState};
use super::progress::{HEARS, Progress, STALLED};
use super::{Checked, Found};
use crate::error::{HostError, Result};
use crate::patience::patiently;
use crate::sysfs;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_core::words::count;
use raidlab_io::observe::Roots;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);

/// Lets md compare the members of an array, and waits for it.
pub(super) fn array(context: &mut Context<'_>, number: u32, mirror: bool) -> Result<Checked> {
    array_within(context, number, mirror, STALLED)
}

/// As [`array()`], which is given up when it comes no further for so long.
pub(super) fn array_within(
    context: &mut Context<'_>,
    number: u32,
    mirror: bool,
    most: Duration,
) -> Result<Checked> {
    let roots = context.roots;
    let action = directory(roots, number).join("sync_action");
    sync::full_speed(roots, number);
    let before = SyncState::of(roots, number).degraded;
    let begun = Instant::now();
    // A check that was stopped would be gone on with from where it was.
    let from = directory(roots, number).join("sync_min");
    // What was going on a moment ago may not be put away yet: EBUSY.
    let checked = patiently(HEARS, || sysfs::set(&from, "0"))
        .and_then(|()| patiently(HEARS, || sysfs::set(&action, "check")))
        .and_then(|()| wait(context, number, most))
        .and_then(|bytes| Ok((bytes, counted(roots, number)?)));
    let took = begun.elapsed();
    if checked.is_err() {
        stop(roots, number);
    }
    sync::usual_speed(roots, number);
    let (bytes, sectors) = checked?;
    let missing = SyncState::of(roots, number).degraded;
    if missing > before {
        return Err(HostError::Unexpected(format!(
            "md{number} lost {} while it was checked",
            count(missing - before, "member")
        )));
    }
    Ok(Checked {
        of: format!("md{number}"),
        by: "md check",
        took,
        bytes,
        counts: [("mismatch_cnt".to_owned(), sectors)].into(),
        found: found(number, sectors, mirror),
    })
}

fn directory(roots: &Roots, number: u32) -> PathBuf {
    roots.block(&format!("md{number}")).join("md")
}

/// Waits for the end; returns how much of each member was gone through.
fn wait(context: &mut Context<'_>, number: u32, most: Duration) -> Result<Option<u64>> {
    let mut progress = Progress::new(most);
    let what = format!("check of md{number}");
    loop {
        let state = SyncState::of(context.roots, number);
        match state.action.as_deref() {
            Some("idle") => break,
            Some(_) => {}
            None => return Err(gone(number)),
        }
        context.tell(&Stage {
            what: what.clone(),
            done: state.done.unwrap_or(0),
            of: state.total.unwrap_or(0),
        })?;
        progress.is_at(&what, state.done)?;
        std::thread::sleep(POLL);
    }
    // md forgets where it began when it comes to the end, and notes where it was when it is stopped.
    let at = sysfs::number(&directory(context.roots, number).join("sync_min"));
    if let Some(sectors) = at.filter(|sectors| *sectors > 0) {
        return Err(HostError::Unexpected(format!(
            "the check of md{number} was stopped by something else after {} of each member",
            Bytes(sectors * SECTOR)
        )));
    }
    let last = sysfs::text(&directory(context.roots, number).join("last_sync_action"));
    match last.as_deref() {
        // Kernels before 3.11 do not tell.
        None | Some("check") => Ok(sync::component(context.roots, number)),
        Some(other) => Err(HostError::Unexpected(format!(
            "md{number} was told to check itself, and the last that it did is '{other}'; see the kernel's log (dmesg)"
        ))),
    }
}

fn gone(number: u32) -> HostError {
    HostError::Unexpected(format!(
        "md{number} was stopped while it was checked: it is no longer there"
    ))
}

fn counted(roots: &Roots, number: u32) -> Result<u64> {
    let file = directory(roots, number).join("mismatch_cnt");
    let unreadable = || HostError::Unexpected(format!("{} cannot be read", file.display()));
    sysfs::number(&file).ok_or_else(unreadable)
}

/// Ends a check that is under way, and waits until it has ended.
fn stop(roots: &Roots, number: u32) {
    let action = directory(roots, number).join("sync_action");
    let _ = patiently(HEARS, || -> std::result::Result<(), ()> {
        let _ = sysfs::set(&action, "idle");
        match sysfs::text(&action).as_deref() {
            Some("idle") | None => Ok(()),
            Some(_) => Err(()),
        }
    });
}

/// What a count of md says.
pub(super) fn found(number: u32, sectors: u64, mirror: bool) -> Option<Found> {
    let many = count(sectors, "sector");
    let what = match (sectors, mirror) {
        (0, _) => return None,
        (_, true) => format!(
            "copies in md{number} differ in {many} (mismatch_cnt): benign where it is swap, or pages that changed while \
             they were written, and nobody reads them; else one of the copies is wrong, and reads get either"
        ),
        (_, false) => format!(
            "parity in md{number} does not agree with the data in {many} (mismatch_cnt): what a lost member held could not \
             be had back"
        ),
    };
    Some(Found {
        what,
        may_be_benign: mirror,
    })
}
