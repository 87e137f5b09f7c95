//! One modelled disk as a target of the drive loop, in virtual time.
use super::{Disk, DiskError, Request};
use raidlab_core::op::{BlockKind, Op};
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;
use raidlab_core::units::{Lba, SECTOR};

/// Operations in flight at most; what the drive's queue does not hold waits in front of it in order.
const IN_FLIGHT: u32 = 4096;

/// EIO and EINVAL of Linux.
const EIO: Errno = Errno(5);
const EINVAL: Errno = Errno(22);

/// A disk that block operations go to directly: no host, no channel but the drive's own link.
/// Time jumps from end to end.
#[derive(Clone, Debug)]
pub struct DiskTarget {
    disk: Disk,
    now: Instant,
    /// Lengths by tag, to report the bytes moved.
    lengths: Vec<u32>,
}

impl DiskTarget {
    /// A target that owns `disk`.
    #[must_use]
    pub fn new(disk: Disk) -> Self {
        Self {
            disk,
            now: Instant::ZERO,
            lengths: Vec::new(),
        }
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The disk, to break it.
    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// Lets the time up to `now` pass in the disk, which must not be in the past.
    #[inline]
    fn advance(&mut self, now: Instant, done: &mut Vec<Completion>) {
        self.now = now;
        let lengths = &self.lengths;
        self.disk.advance_each(now, |end| {
            done.push(Completion {
                tag: Tag(end.id as u32),
                result: match end.result {
                    Ok(()) => Ok(lengths[end.id as usize]),
                    Err(DiskError::OutOfRange) => Err(EINVAL),
                    Err(DiskError::Unreadable | DiskError::Failed) => Err(EIO),
                },
                at: end.at,
            });
        });
    }
}

impl Target for DiskTarget {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: IN_FLIGHT,
            alignment: SECTOR as u32,
            size: self.disk.model().sectors() * SECTOR,
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
                why: "a bare disk has no files; model a host with a file system for those",
            });
        };
        let flush = block.kind == BlockKind::Flush;
        let sector = SECTOR as u32;
        if !flush && (!block.offset.is_multiple_of(SECTOR) || !block.len.is_multiple_of(sector)) {
            return Err(TargetError::Unsupported {
                op,
                why: "a disk moves whole sectors of 512 bytes",
            });
        }
        let slot = tag.0 as usize;
        if slot >= self.lengths.len() {
            self.lengths.resize(slot + 1, 0);
        }
        self.lengths[slot] = op.bytes();
        let request = Request {
            id: u64::from(tag.0),
            kind: block.kind,
            lba: Lba(block.offset / SECTOR),
            sectors: block.len / sector,
            fua: false,
        };
        self.disk.submit(self.now, request);
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
            let next = self.disk.next_event();
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
