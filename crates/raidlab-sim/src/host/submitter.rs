//! Processes that have several calls under way on files which cannot be read or written without waiting for them: ZFS's, and those of
//! btrfs whose checksums are not in memory.
//!
//! io_uring tries each call without waiting (`IOCB_NOWAIT`). Until Linux 6.4 it took any regular file for one that knows what that
//! is, unless a block device below says otherwise (`__io_file_supports_nowait`, 5.1 `io_file_supports_async`), and ZFS does not look:
//! the process waits within the call, begins the next one when that has ended, and hears of all that it handed over when the last has
//! ended, however deep its queue. So does libaio, which asks nobody. Since 6.5 the file says it (`FMODE_NOWAIT`), and workers take
//! all its calls. Seen of ZFS 2.1.11 on 6.1: one read in flight at depths of 1 to 32 (`docs/validation/zfs.md`).
//!
//! btrfs lets itself be asked for a direct read without waiting, and waits all the same for the leaf that has its checksums, before the
//! read is in a queue (`btrfs_submit_bio`, until 5.19 `btrfs_submit_direct`, by `btrfs_lookup_bio_sums`). Then the process begins the
//! next call, while the reads that are submitted go on. Larger ones than it takes so (`punts_reads`) are workers' from the beginning.
use super::device::Device;
use super::era::Era;
use super::fs::Traits;
use super::{Host, What};
use raidlab_core::op::{BlockKind, Op};
use raidlab_core::target::Completion;
use std::collections::{BTreeMap, VecDeque};

/// Who waits for a call that cannot be begun without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nobody: there are no such.
    #[default]
    Nobody,
    /// The process itself.
    Process,
    /// A worker.
    Worker,
    /// The process itself, until it is submitted.
    Submission,
}

impl Waits {
    /// On a file system of these traits, in this time.
    pub(super) const fn of(traits: &Traits, era: &Era) -> Self {
        match (traits.page_cache, era.asks_files) {
            (true, _) => Self::Nobody,
            (false, false) => Self::Process,
            (false, true) => Self::Worker,
        }
    }
}

/// A process and the call that it waits within.
#[derive(Clone, Debug, Default)]
struct Within {
    call: Option<u32>,
    /// What it has handed over with it.
    behind: VecDeque<(u32, Op)>,
    /// What it will hear of.
    ended: Vec<Completion>,
}

/// Processes that have waited, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Submitters(BTreeMap<u16, Within>);

impl<D: Device> Host<D> {
    /// Whether a call that a process hands over is held back, because that waits within another.
    #[inline]
    pub(super) fn holds_back(&mut self, tag: u32, op: Op) -> bool {
        matches!(self.waits, Waits::Process | Waits::Submission)
            && matches!(op, Op::Block(_))
            && self.comes_behind(tag, op)
    }

    fn comes_behind(&mut self, tag: u32, op: Op) -> bool {
        let waited_for = self.is_waited_for(op);
        let within = self.submitters.0.entry(self.process).or_default();
        if within.call.is_some() {
            within.behind.push_back((tag, op));
            return true;
        }
        within.call = waited_for.then_some(tag);
        false
    }

    /// What lies on the device has its checksums there, too, from now on.
    pub(super) fn submits_cold(&mut self) {
        if self.waits == Waits::Nobody {
            self.waits = Waits::Submission;
        }
    }

    /// Workers make durable, and write through the cache.
    fn is_waited_for(&self, op: Op) -> bool {
        match op {
            Op::Block(block) if self.waits == Waits::Submission => {
                let len = u64::from(block.len);
                block.kind == BlockKind::Read && self.direct_blocks && !self.is_large(len)
            }
            Op::Block(block) => match block.kind {
                BlockKind::Read => true,
                BlockKind::Write => self.direct_blocks || !self.era.workers_sync,
                _ => !self.era.workers_sync,
            },
            Op::File(_) => false,
        }
    }

    /// A call has ended, of which its process hears when it waits for none.
    pub(super) fn ends_within(
        &mut self,
        process: u16,
        end: Completion,
        done: &mut Vec<Completion>,
    ) {
        let within = self.submitters.0.entry(process).or_default();
        let was_within = within.call == Some(end.tag.0);
        if within.call.is_none() {
            return done.push(end);
        }
        within.ended.push(end);
        if !was_within {
            return;
        }
        if self.goes_on(process) {
            self.hears(process, done);
        }
    }

    /// A call has been submitted; its process, if that waited for it, goes on.
    pub(super) fn is_submitted(&mut self, tag: u32) {
        if self.waits != Waits::Submission {
            return;
        }
        let process = self.calls[tag as usize].process;
        let within = self.submitters.0.get(&process);
        if within.is_some_and(|within| within.call == Some(tag)) && self.goes_on(process) {
            self.at(self.now, What::Hears(process));
        }
    }

    /// A process begins what it has handed over with a call that it has waited for; whether it waits for none any more.
    fn goes_on(&mut self, process: u16) -> bool {
        while let Some((tag, op)) = self.next_behind(process) {
            let waits = self.is_waited_for(op);
            self.begin_call(tag, op);
            if waits {
                return false;
            }
        }
        if let Some(within) = self.submitters.0.get_mut(&process) {
            within.call = None;
        }
        true
    }

    /// A process hears of what has ended while it waited.
    pub(super) fn hears(&mut self, process: u16, done: &mut Vec<Completion>) {
        let at = self.now;
        if let Some(within) = self.submitters.0.get_mut(&process) {
            let ended = within.ended.drain(..);
            done.extend(ended.map(|end| Completion { at, ..end }));
        }
    }

    fn next_behind(&mut self, process: u16) -> Option<(u32, Op)> {
        let within = self.submitters.0.get_mut(&process)?;
        let next = within.behind.pop_front()?;
        within.call = Some(next.0);
        Some(next)
    }
}
