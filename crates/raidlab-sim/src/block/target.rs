//! A block device as a target of the drive loop: no host, no cache, no processor above it.
use super::{Bio, Ended, Origin};
use crate::disk::DiskError;
use raidlab_core::op::Op;
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;
use raidlab_core::units::{Lba, SECTOR};

/// Operations in flight at most; what the device does not take waits in front of it in order.
const IN_FLIGHT: u32 = 4096;

/// Later than anything.
const NEVER: Instant = Instant(u64::MAX);

/// EIO and EINVAL of Linux.
const EIO: Errno = Errno(5);
const EINVAL: Errno = Errno(22);

/// A device that takes requests of submitters who each wait for theirs.
pub trait Alone {
    /// Its size.
    fn sectors(&self) -> u64;

    /// Takes a request whose submitter waits for it.
    fn submit_alone(&mut self, now: Instant, bio: Bio);

    /// When to call [`advance_each`](Self::advance_each) next.
    fn next_event(&self) -> Option<Instant>;

    /// Lets time pass until `now` and hands over what has ended, in the order of the ends.
    fn advance_each(&mut self, now: Instant, each: impl FnMut(Ended));
}

/// A block device that block operations go to directly, each from a process that waits for it. Time
/// jumps from event to event.
#[derive(Clone, Debug)]
pub struct BlockTarget<D> {
    device: D,
    now: Instant,
    /// Lengths by tag, to report the bytes moved.
    lengths: Vec<u32>,
}

impl<D> BlockTarget<D> {
    /// A target that owns `device`.
    #[must_use]
    pub const fn new(device: D) -> Self {
        Self {
            device,
            now: Instant::ZERO,
            lengths: Vec::new(),
        }
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// The device, to break it.
    pub const fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
}

impl<D: Alone> BlockTarget<D> {
    /// Lets the time up to `now` pass, which must not be in the past.
    #[inline]
    fn advance(&mut self, now: Instant, done: &mut Vec<Completion>) {
        self.now = now;
        let lengths = &self.lengths;
        self.device.advance_each(now, |end| {
            done.push(Completion {
                tag: Tag(end.id as u32),
                result: match end.result {
                    Ok(()) => Ok(lengths[end.id as usize]),
                    Err(error) => Err(errno(error)),
                },
                at: end.at,
            });
        });
    }
}

/// What a process is told of an error.
#[cold]
fn errno(error: DiskError) -> Errno {
    match error {
        DiskError::OutOfRange => EINVAL,
        DiskError::Unreadable | DiskError::Failed => EIO,
    }
}

impl<D: Alone> Target for BlockTarget<D> {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: IN_FLIGHT,
            alignment: SECTOR as u32,
            size: self.device.sectors() * SECTOR,
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
        let whole = block.offset.is_multiple_of(SECTOR) && block.len.is_multiple_of(SECTOR as u32);
        if !whole && !block.kind.is_flush() {
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
            kind: block.kind.of_device(),
            lba: Lba(block.offset / SECTOR),
            sectors: block.len / SECTOR as u32,
            fua: false,
            origin: Origin {
                task: 1,
                sync: true,
                ..Origin::default()
            },
        };
        self.device.submit_alone(self.now, bio);
        Ok(())
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let (before, until) = (done.len(), until.unwrap_or(NEVER));
        loop {
            let next = self.device.next_event().unwrap_or(NEVER);
            let to = next.min(until);
            if to == NEVER {
                return Ok(());
            }
            self.advance(to.max(self.now), done);
            if done.len() > before || next > to {
                return Ok(());
            }
        }
    }
}
