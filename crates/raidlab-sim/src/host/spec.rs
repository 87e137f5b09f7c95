//! What a computer is made of.
use super::cache::PAGE;
use super::cpu::CpuModel;
use super::device::Hints;
use super::era::Era;
use super::fs::Traits;
use crate::catalogue::cpu::find_or_of_its_time;
use raidlab_core::units::{Bytes, MIB, SECTOR};
use raidlab_experiment::dirty::{Dirty, WriteBack};
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::Host;

/// A computer without its block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its processor.
    pub cpu: CpuModel,
    /// Cores that are used.
    pub cores: u32,
    /// Their clock in MHz; `None`: the processor's own.
    pub mhz: Option<u32>,
    /// Memory.
    pub memory: Bytes,
    /// The system.
    pub kernel: Kernel,
    /// Largest read-ahead window; `None`: what the system sets.
    pub read_ahead: Option<Bytes>,
    /// What of the limits of dirty memory is set.
    pub write_back: WriteBack,
}

impl HostSpec {
    /// The computer of a cell.
    #[must_use]
    pub fn of(host: &Host) -> Self {
        Self {
            cpu: find_or_of_its_time(host.cpu.as_deref(), host.kernel).cpu,
            cores: host.cores,
            mhz: host.cpu_mhz,
            memory: host.memory,
            kernel: host.kernel,
            read_ahead: host.read_ahead,
            write_back: host.write_back,
        }
    }

    /// Pages that can cache files: the kernel and the processes keep 24 MiB and a sixteenth of the
    /// memory (assumed: a system of the time after booting without a desktop; the kernel's map of
    /// pages alone takes 1/128 to 1/64). The ARC of ZFS takes half of the memory at most
    /// (`zfs_arc_max`).
    pub(super) fn cache_pages(&self, traits: &Traits) -> u64 {
        let all = self.memory.0;
        let kept = 24 * MIB + all / 16;
        let free = all.saturating_sub(kept).max(4 * MIB);
        let most = if traits.page_cache {
            free
        } else {
            free.min(all / 2)
        };
        most / PAGE
    }

    /// Pages that may be dirty or on their way before writers are held back, and from how many dirty ones on the flusher
    /// writes, of `cache` pages that can hold files (`get_dirty_limits`, `domain_dirty_limits`).
    pub(super) fn dirty_pages(&self, era: &Era, cache: u64) -> (u64, u64) {
        let set = &self.write_back;
        // `total_pages` to 2.6.21; what can be dirtied at all since.
        let base = match era.dirties_of_all {
            true => self.memory.0 / PAGE,
            false => cache,
        };
        let pages = |set: Option<Dirty>, own: u64, (least, most): (u64, u64)| match set {
            None => base * own / 100,
            Some(Dirty::Percent(percent)) => base * u64::from(percent).clamp(least, most) / 100,
            Some(Dirty::Size(size)) => size.0.div_ceil(PAGE),
        };
        let limit = pages(set.limit, era.dirty_percent, era.dirty_bounds);
        let background = pages(set.background, era.background_percent, (0, 100));
        let is_set = set.limit.is_some() || set.background.is_some();
        if is_set && background >= limit {
            return (limit, limit / 2);
        }
        (limit, background)
    }

    /// Largest read-ahead window in pages. md raises a smaller default to two stripes when an array
    /// is assembled (`ra_pages < 2*stripe` in raid0.c, raid5.c and raid10.c).
    pub(super) fn read_ahead_pages(&self, era: &Era, traits: &Traits, below: &Hints) -> u64 {
        // `blk_apply_bdi_limits` of 6.18: a disk that turns and has no optimal size of its own counts its largest request for that.
        let optimal = match below.stripe {
            0 if below.rotational && era.ahead_of_disks => u64::from(below.max_sectors) * SECTOR,
            stripe => stripe,
        };
        let bytes = match (traits.prefetch, self.read_ahead) {
            (Some(own), _) => own,
            _ if traits.read_ahead > 0 => traits.read_ahead,
            (None, Some(set)) => set.0,
            (None, None) => era.read_ahead.max(2 * optimal),
        };
        bytes / PAGE
    }
}
