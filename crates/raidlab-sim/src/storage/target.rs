//! A block device as a target of the drive loop: no processes, no processor, no cache above it.
use super::Storage;
use crate::block::{Bio, Ended, Origin};
use crate::disk::DiskError;
use raidlab_core::op::Op;
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;
use raidlab_core::units::{Lba, SECTOR};

/// Operations in flight at most.
const IN_FLIGHT: u32 = 4096;

/// EIO and EINVAL of Linux.
const EIO: Errno = Errno(5);
const EINVAL: Errno = Errno(22);

/// A block device that block operations go to directly, each from a process that waits for it. Time
/// jumps from event to event.
#[derive(Clone, Debug)]
pub struct StorageTarget {
    storage: Storage,
    now: Instant,
    /// Lengths by tag, to report the bytes moved.
    lengths: Vec<u32>,
    ended: Vec<Ended>,
}

impl StorageTarget {
    /// A target that owns `storage`.
    #[must_use]
    pub const fn new(storage: Storage) -> Self {
        Self {
            storage,
            now: Instant::ZERO,
            lengths: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The block device.
    #[must_use]
    pub const fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The block device, to break it.
    pub const fn storage_mut(&mut self) -> &mut Storage {
        &mut self.storage
    }

    #[inline]
    fn advance(&mut self, now: Instant, done: &mut Vec<Completion>) {
        self.now = now;
        self.storage.advance(now, &mut self.ended);
        for end in &self.ended {
            done.push(Completion {
                tag: Tag(end.id as u32),
                result: match end.result {
                    Ok(()) => Ok(self.lengths[end.id as usize]),
                    Err(DiskError::OutOfRange) => Err(EINVAL),
                    Err(DiskError::Unreadable | DiskError::Failed) => Err(EIO),
                },
                at: end.at,
            });
        }
        self.ended.clear();
    }
}

impl Target for StorageTarget {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: IN_FLIGHT,
            alignment: SECTOR as u32,
            size: self.storage.sectors() * SECTOR,
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    #[inline]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let Op::Block(block) = op else {
            return Err(TargetError::Unsupported {
                op,
                why: "a bare block device has no files; model a host with a file system for those",
            });
        };
        if !block.offset.is_multiple_of(SECTOR) || !u64::from(block.len).is_multiple_of(SECTOR) {
            return Err(TargetError::Unsupported {
                op,
                why: "a block device moves whole sectors of 512 bytes",
            });
        }
        let slot = tag.0 as usize;
        if slot >= self.lengths.len() {
            self.lengths.resize(slot + 1, 0);
        }
        self.lengths[slot] = op.bytes();
        let bio = Bio {
            id: u64::from(tag.0),
            kind: block.kind,
            lba: Lba(block.offset / SECTOR),
            sectors: block.len / SECTOR as u32,
            fua: false,
            origin: Origin {
                task: 1,
                sync: true,
                ..Origin::default()
            },
        };
        self.storage.submit_alone(self.now, bio);
        Ok(())
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let before = done.len();
        loop {
            let next = self.storage.next_event();
            match (next, until) {
                (Some(next), Some(until)) if next > until => {
                    self.advance(until.max(self.now), done);
                    return Ok(());
                }
                (Some(next), _) => self.advance(next.max(self.now), done),
                (None, Some(until)) => {
                    self.advance(until.max(self.now), done);
                    return Ok(());
                }
                (None, None) => return Ok(()),
            }
            if done.len() > before {
                return Ok(());
            }
        }
    }
}
