//! Processes that have several calls under way on files which cannot be read or written without waiting for them: ZFS's.
//!
//! io_uring tries each call without waiting (`IOCB_NOWAIT`). Until Linux 6.4 it took any regular file for one that knows what that
//! is, unless a block device below says otherwise (`__io_file_supports_nowait`, 5.1 `io_file_supports_async`), and ZFS does not look:
//! the process waits within the call, begins the next one when that has ended, and hears of all that it handed over when the last has
//! ended, however deep its queue. So does libaio, which asks nobody. Since 6.5 the file says it (`FMODE_NOWAIT`), and workers take
//! all its calls. Seen of ZFS 2.1.11 on 6.1: one read in flight at depths of 1 to 32 (`docs/validation/zfs.md`).
use super::Host;
use super::device::Device;
use super::era::Era;
use super::fs::Traits;
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

/// A process that waits within a call.
#[derive(Clone, Debug, Default)]
struct Within {
    call: u32,
    /// What it has handed over with it.
    behind: VecDeque<(u32, Op)>,
    /// What it will hear of.
    ended: Vec<Completion>,
}

/// Processes that wait, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Submitters(BTreeMap<u16, Within>);

impl<D: Device> Host<D> {
    /// Whether a call that a process hands over is held back, because that waits within another.
    #[inline]
    pub(super) fn holds_back(&mut self, tag: u32, op: Op) -> bool {
        self.waits == Waits::Process && matches!(op, Op::Block(_)) && self.comes_behind(tag, op)
    }

    fn comes_behind(&mut self, tag: u32, op: Op) -> bool {
        let process = self.process;
        if let Some(within) = self.submitters.0.get_mut(&process) {
            within.behind.push_back((tag, op));
            return true;
        }
        if self.is_waited_for(op) {
            let call = Within {
                call: tag,
                ..Within::default()
            };
            self.submitters.0.insert(process, call);
        }
        false
    }

    /// Workers make durable, and write through the cache.
    fn is_waited_for(&self, op: Op) -> bool {
        match op {
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
        let Some(within) = self.submitters.0.get_mut(&process) else {
            return done.push(end);
        };
        let was_within = within.call == end.tag.0;
        within.ended.push(end);
        if !was_within {
            return;
        }
        while let Some((tag, op)) = self.next_behind(process) {
            self.begin_call(tag, op);
            if self.is_waited_for(op) {
                return;
            }
        }
        if let Some(within) = self.submitters.0.remove(&process) {
            let at = self.now;
            done.extend(within.ended.into_iter().map(|end| Completion { at, ..end }));
        }
    }

    fn next_behind(&mut self, process: u16) -> Option<(u32, Op)> {
        let within = self.submitters.0.get_mut(&process)?;
        let next = within.behind.pop_front()?;
        within.call = next.0;
        Some(next)
    }
}
