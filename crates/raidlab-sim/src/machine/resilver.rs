//! What lies in a pool of ZFS or an array of btrfs whose new members are filled: they get that alone.
use super::{Machine, MachineError, RunError, context};
use crate::array::Array;
use crate::block::Progress;
use crate::host::fs::{FileSystem, FsSpec, Spread};
use raidlab_core::drive::Monitor;
use raidlab_core::profile::{FILLER, Place, Plan};
use raidlab_core::target::Target;
use raidlab_core::time::Instant;
use raidlab_core::units::{Bytes, Lba};
use raidlab_experiment::setup::Setup;
use raidlab_layout::Btrfs;
use std::ops::ControlFlow;

/// The address that files come to which lie in an array of btrfs when its new members come: as they will be laid out.
pub(super) fn written(setup: &Setup, whole: &Btrfs) -> Result<Lba, MachineError> {
    let capacity = whole.capacity();
    let place = Place::Directory {
        free: capacity.to_bytes(),
    };
    // Whether the profile fits is told when it is planned.
    let Ok(plan) = setup.profile.plan(&context(setup.host.memory, place)) else {
        return Ok(Lba(0));
    };
    let mut spec = FsSpec::of(setup, capacity.0);
    spec.spread = Some(Spread::of(whole));
    let mut fs = FileSystem::new(&spec)?;
    for need in plan.laid_out(setup.array.allocated) {
        if fs.provide(need.file, need.size.0).is_err() {
            // So is what has no room.
            return Ok(Lba(capacity.0));
        }
    }
    let ends = fs
        .blocks()
        .into_iter()
        .map(|extent| extent.start + extent.len);
    Ok(Lba(ends.max().unwrap_or(0)))
}

impl Machine {
    /// Whether the array is a pool of ZFS, or one of btrfs, whose new members wait for [`settle`](Self::settle).
    #[must_use]
    pub fn awaits_resilver(&self) -> bool {
        let array = self.host.device().array();
        array.is_some_and(Array::awaits_resilver)
    }

    /// Bytes of files that lie in the array when its new members come: as the experiment says, else as many as the data files have
    /// that phases of `plan` find; what the first phase finds in any case.
    #[must_use]
    pub fn allocated(&self, plan: &Plan) -> Bytes {
        plan.allocated(self.allocated)
    }

    /// Lays files out in a pool of ZFS, or an array of btrfs, whose new members have just come, and lets these be filled: those of the
    /// first phase, and before them one that fills it up to [`allocated`](Self::allocated). Takes no time. Does nothing to other
    /// arrays.
    ///
    /// # Errors
    /// When there is no room for them, or nothing to fill the new members with; when `monitor`, which is asked now and then, ends it.
    pub fn settle(&mut self, plan: &Plan, monitor: &mut impl Monitor) -> Result<(), RunError> {
        if !self.awaits_resilver() {
            return Ok(());
        }
        let wanted = self.allocated(plan);
        if wanted.0 == 0 {
            return Err(RunError::NothingAllocated);
        }
        let filler = plan.filler(self.allocated).0;
        if filler > 0 {
            let told = |source| RunError::Allocated { wanted, source };
            let before = self.unbegun();
            let laid = self
                .host
                .provide_aside(FILLER, filler, &mut || monitor.poll(before));
            if laid.map_err(told)?.is_break() {
                return Err(RunError::Interrupted);
            }
        }
        if let Some(first) = plan.phases.first() {
            self.prepare(first, monitor)?;
        }
        self.begin_resilver(monitor)?;
        match self.resync() {
            Some(_) => Ok(()),
            None => Err(RunError::NothingThere),
        }
    }

    /// New members of a pool, or of an array of btrfs, are filled with what lies in it now.
    ///
    /// # Errors
    /// When `monitor` ends it.
    pub(super) fn begin_resilver(&mut self, monitor: &mut impl Monitor) -> Result<(), RunError> {
        if !self.awaits_resilver() {
            return Ok(());
        }
        let (before, now) = (self.unbegun(), self.host.now());
        let mut watch = || monitor.poll(before);
        let blocks = self.host.blocks_watched(&mut watch);
        let extents = blocks.ok_or(RunError::Interrupted)?;
        let begin = |array: &mut Array| array.begin_resilver(now, extents, &mut watch);
        let begun = self
            .host
            .with_device(|storage| storage.with_array(now, begin));
        self.host.close_copied();
        self.host.mount_anew();
        self.host.filling_begins();
        match begun {
            Some(ControlFlow::Break(())) => Err(RunError::Interrupted),
            _ => Ok(()),
        }
    }

    /// How far a resync or rebuild is; `None` when there is none.
    #[must_use]
    pub fn resync(&self) -> Option<Progress> {
        self.host.device().resync()
    }

    /// When the last resilver of a pool of ZFS, or replacement of members of btrfs, ended, if none goes on.
    #[must_use]
    pub fn resilvered(&self) -> Option<Instant> {
        let ended = self.host.device().array().and_then(Array::resilvered);
        ended.map(|at| at + self.leaping.forward)
    }
}
