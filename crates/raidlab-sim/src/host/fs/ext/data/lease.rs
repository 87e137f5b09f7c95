//! What is kept for a file ahead of what it asks for: reservation windows of ext2's and ext3's drivers, preallocation of
//! ext4's (`fs/ext4/mballoc.c`).
//!
//! ext4's allocator asks for more than is wanted, by what the file will have with it (`ext4_mb_normalize_request`): of files up
//! to 1 MiB as much as brings them to the next power of two, 16 KiB at the least; of larger ones up to the next 2, 4 or 8 MiB of the
//! file. Files of up to 16 blocks take what they ask for from 512 blocks that are kept for all of them (`ext4_mb_group_or_file`,
//! `s_mb_group_prealloc`). Seen so in a real 6.1 (docs/validation/prediction.md).
//!
//! What is left out: the kernel keeps blocks for small files by processor, and ends a file's preallocation when its last writer
//! closes it; it keeps several of a file, each for a part of it, where here what is asked for next gets what is kept.
use super::super::super::FsError;
use super::super::super::plan::Charge;
use super::super::super::space::Run;
use super::super::{Ext, File};
use raidlab_core::op::FileId;
use raidlab_core::units::{KIB, MIB};

/// Blocks of the largest file that takes from what is kept for all (`MB_DEFAULT_STREAM_THRESHOLD`).
const SMALL: u64 = 16;
/// Blocks that are kept for those at a time (`MB_DEFAULT_GROUP_PREALLOC`).
const FOR_SMALL: u64 = 512;

/// Slots without a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The first.
    pub slot: u64,
    /// Its block in the file; 0 of what points to data.
    pub at: u64,
    /// How many.
    pub len: u64,
}

/// Where a preallocation ends that begins at byte `at` of a file: one that a request takes to `size` bytes.
fn normalized(at: u64, size: u64) -> u64 {
    let unit = match size.div_ceil(MIB) {
        0..=1 => return size.next_power_of_two().max(16 * KIB),
        2..=4 => 2 * MIB,
        5..=8 => 4 * MIB,
        _ => 8 * MIB,
    };
    at / unit * unit + unit
}

impl Ext {
    /// Takes what a file is given next from the free space.
    pub(super) fn lease(
        &mut self,
        id: FileId,
        f: &mut File,
        wanted: Wanted,
        charge: &mut Charge,
    ) -> Result<Run, FsError> {
        let before = wanted.slot.checked_sub(1);
        let after = before
            .and_then(|before| f.runs.get(before))
            .map(|dev| dev + 1);
        // ext3_find_near: the inode's group, at one of 16 places by the number of the process.
        let goal = after.unwrap_or_else(|| {
            let group = f.inode / self.geometry.inodes;
            let colour = u64::from(id) % 16 * (self.geometry.per_group / 16);
            self.space.start_of(group) + colour
        });
        let run = if self.mballoc {
            self.preallocate(f, wanted, goal, after.is_some())
        } else {
            let window = f.window;
            f.window = (window * 2).min(self.windows.0);
            self.space.take(goal, window)
        };
        let run = run.or_else(|| self.steal(goal, wanted.len));
        let run = run.ok_or(FsError::NoSpace)?;
        let bitmap = self.geometry.block_bitmap(self.space.group_of(run.start));
        charge.reads.push(self.geometry.place(bitmap, 1));
        Ok(run)
    }

    /// As ext4's allocator does.
    fn preallocate(
        &mut self,
        f: &mut File,
        wanted: Wanted,
        goal: u64,
        follows: bool,
    ) -> Option<Run> {
        let block = u64::from(self.geometry.block);
        let largest = 8 * MIB / block;
        // What is delayed is asked for in as many blocks at the most (`MAX_WRITEPAGES_EXTENT_LEN`), and what is not page by page.
        let asked = if self.traits.delayed {
            wanted.len.min(largest)
        } else {
            1
        };
        let size = f.size.max(wanted.at + asked);
        if size <= SMALL {
            return self.shared(goal, wanted.len.min(SMALL - wanted.at));
        }
        let end = normalized(wanted.at * block, size * block) / block;
        // Nor is more kept than up to what has a place.
        let next = f.runs.from(wanted.slot).map(|run| run.at - wanted.slot);
        let room = next.unwrap_or(u64::MAX);
        let whole = end.saturating_sub(wanted.at).max(asked).min(room);
        // Where the block before lies, if all of it has room there (`ext4_mb_find_by_goal`; maps of indirect blocks do not
        // ask for it).
        let there = follows && !self.by_ext4;
        if let Some(run) = there.then(|| self.space.take_here(goal, whole)).flatten() {
            return Some(run);
        }
        // `ext4_mb_simple_scan_group`: a power of two is a buddy of that order.
        let buddy = whole.is_power_of_two() && (whole > asked || whole == largest);
        let buddy = buddy.then(|| self.space.take_aligned(goal, whole));
        buddy.flatten().or_else(|| self.space.take(goal, whole))
    }

    /// Blocks of what is kept for small files.
    fn shared(&mut self, goal: u64, want: u64) -> Option<Run> {
        let lease = match self.for_small.take() {
            Some(lease) if lease.len >= want => lease,
            rest => {
                let lease = self.space.take_aligned(goal, FOR_SMALL);
                rest.into_iter().for_each(|rest| self.space.give(rest));
                lease.or_else(|| self.space.take(goal, want))?
            }
        };
        let (start, len) = (lease.start, want.min(lease.len));
        self.for_small = (len < lease.len).then_some(Run {
            start: start + len,
            len: lease.len - len,
        });
        Some(Run { start, len })
    }

    /// The device is full but for what other files keep for themselves: that is given up.
    pub(in super::super) fn steal(&mut self, goal: u64, want: u64) -> Option<Run> {
        self.give_up_leases();
        self.space.take(goal, want)
    }

    /// Whether files kept anything for themselves (`ext4_discard_preallocations`).
    pub(super) fn give_up_leases(&mut self) -> bool {
        let before = self.space.free();
        let leases = self.files.values_mut().filter_map(|f| f.lease.take());
        for lease in leases.chain(self.for_small.take()) {
            self.space.give(lease);
        }
        self.space.free() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preallocations_grow_with_the_file() {
        let ends = [
            (64, 68, 128),
            (900, 1024, 1024),
            (1024, 1028, 2048),
            (3000, 4096, 4096),
            (4096, 4100, 8192),
            (8192, 8196, 16_384),
            (100_000, 100_004, 106_496),
            // In the middle of a large file.
            (0, 1_000_000, 8192),
        ];
        for (at, size, end) in ends {
            assert_eq!(normalized(at * KIB, size * KIB), end * KIB, "{at} {size}");
        }
        assert_eq!(normalized(0, 1), 16 * KIB);
    }
}
