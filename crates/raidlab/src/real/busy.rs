//! What goes on in an array beside the phases: a resync or a rebuild, as the cell's state asks for it.
use super::host_failure;
use super::trial::{Came, Lab, Turn, Watch, monitor, run_failure};

use crate::exit::Failure;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::profile::Plan as ProfilePlan;
use raidlab_experiment::setup::ArrayState;
use raidlab_host::HostError;
use raidlab_host::provision::{Built, Context, Stage, SyncState};
use raidlab_io::observe::Roots;
use raidlab_io::run::{Place, lay_out};
use raidlab_results::record::{Figure, PhaseRecord, Unit};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The resync or rebuild that the cell's state asks for begins.
pub(super) fn begin_background(
    lab: &mut Lab<'_>,
    built: &mut Built,
    watch: &mut dyn Watch,
) -> Result<(), Failure> {
    watched(lab, watch, |lab, context| {
        built.start(lab.claims, lab.journal, context)
    })
}

/// As [`begin_background`], of an array whose new members get what is in use: the files of the first phase, and what fills the array
/// up to what is wanted, are laid out while all members are there. Then these fail, are filled by themselves, and fail anew.
pub(super) fn begin_with_files(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    (profile, place): (&ProfilePlan, &mut Place),
    watch: &mut dyn Watch,
) -> Result<(), Failure> {
    let files = profile.laid_out(turn.cell.setup.array.allocated);
    let options = lab.options(turn);
    let mut monitor = monitor(&options, watch);
    lay_out(&files, place, &options, &mut monitor).map_err(|error| run_failure(&error))?;
    drop(monitor);
    let begun = place.while_remounted(|| {
        watched(lab, watch, |lab, context| {
            built.fill_alone(lab.claims, lab.journal, context)
        })?;
        begin_background(lab, built, watch)
    });
    begun.map_err(|error| run_failure(&error))?
}

/// Does `work`, which tells `watch` what it is at and ends early when the run is to stop.
pub(super) fn watched<R>(
    lab: &mut Lab<'_>,
    watch: &mut dyn Watch,
    work: impl FnOnce(&mut Lab<'_>, &mut Context<'_>) -> Result<R, HostError>,
) -> Result<R, Failure> {
    let stop = Arc::clone(&lab.stop);
    let mut monitor = |stage: &Stage| {
        watch.stage(stage);
        ControlFlow::Continue(())
    };
    let mut context = Context {
        roots: &Roots::system(),
        cancel: &stop,
        monitor: &mut monitor,
    };
    work(lab, &mut context).map_err(|error| host_failure(&error))
}

pub(super) fn syncs(roots: &Roots, built: &Built) -> Result<Vec<SyncState>, Failure> {
    built.syncs(roots).map_err(|error| host_failure(&error))
}

/// What the resync or rebuild did beside the phases, and how long a rebuild takes by itself.
pub(super) fn background(
    turn: Turn<'_>,
    lab: &mut Lab<'_>,
    built: &mut Built,
    watch: &mut dyn Watch,
    came: &mut Came,
    (before, after, elapsed): (&[SyncState], &[SyncState], f64),
) -> Result<(), Failure> {
    if before.is_empty() {
        return Ok(());
    }
    let still = after.iter().any(|state| !state.is_whole());
    let state = turn.cell.setup.array.state;
    if !still {
        let what = format!(
            "the array was whole again before the phases ended: not all of them ran on one that is {state}"
        );
        came.flags.push(Flag::new(FlagKind::Other, what));
    }
    let alone = watched(lab, watch, |lab, context| {
        built.rebuild_alone(lab.claims, lab.journal, context)
    })?;
    let figure = |name: &str, value: f64, unit: Unit| Figure {
        name: name.to_owned(),
        value,
        unit,
    };
    let mut record = PhaseRecord::bare("rebuild", None, Unit::BytesPerSecond);
    if let (Some(then), Some(now)) = (before.first(), after.first())
        && let (Some(from), Some(to), Some(total)) = (then.done.or(Some(0)), now.done, now.total)
        && still
        && elapsed > 0.0
        && to > from
    {
        let rate = (to - from) as f64 / elapsed;
        record
            .figures
            .push(figure("rebuild-rate-loaded", rate, Unit::BytesPerSecond));
        // What was seen of it is mostly the outermost part of the disks, where they are fast; no load makes it shorter.
        let least = alone.map_or(0.0, |(took, _)| took.as_secs_f64());
        let whole = (total as f64 / rate).max(least);
        record
            .figures
            .push(figure("rebuild-time-loaded", whole, Unit::Seconds));
    }
    if let Some((took, bytes)) = alone {
        let seconds = took.as_secs_f64();
        record.bytes = Some(bytes);
        record.elapsed_ns = Some(took.as_nanos() as u64);
        record.rate = (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds);
        record
            .figures
            .push(figure("rebuild-time", seconds, Unit::Seconds));
    }
    if record.rate.is_some() || !record.figures.is_empty() {
        came.phases.push(record);
        came.planned += 1;
    }
    Ok(())
}

/// An array that is busy or degraded because the cell asks for it is no doubt about the figure. What fills members of btrfs
/// goes through the very devices that the phases are seen to use (`refills`).
pub(super) fn expected_state(state: ArrayState, refills: bool, record: &mut PhaseRecord) {
    if state == ArrayState::Clean {
        return;
    }
    for flag in &mut record.flags {
        if flag.kind == FlagKind::ArrayBusy || (refills && flag.kind == FlagKind::ForeignIo) {
            flag.voids = false;
            flag.reason = format!("as the cell asks for ({state}): {}", flag.reason);
        }
    }
}
