//! Whether md takes an array for clean: for one of whose redundancy nothing is in doubt, as its superblocks say.
//!
//! The first write to a clean array waits until the superblocks say that it is not, and whoever submits it waits with it
//! (`md.c:md_write_start`). When nothing has been written for some time (`safe_mode_delay`), md's thread takes the array for clean
//! again and says so (`md_write_end`, `safemode_timeout`, `set_in_sync`), for which nobody waits but the thread. All levels with redundancy do
//! that, with or without a bitmap, whatever members lack or are being filled; an array that is written all the time does it once.
//! Linear and raid0 never do (they do not call `md_write_start`).
//!
//! Since 4.12 the thread waits for a grace period of RCU before it looks whether nothing is being written
//! (`percpu_ref_switch_to_atomic_sync`), which keeps nobody else from writing.
//!
//! At first an array is clean, as md takes every one that it starts (`do_md_run`, `in_sync`).
use super::NEVER;
use super::core::{Core, Guard, GuardOf, Up};
use super::node::Node;
use super::spec::SafeMode;
use crate::block::Bio;
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_experiment::kernel::TICK;
use std::collections::VecDeque;

/// Timers that go off within so many ticks do it to a tick, those beyond (and up to 512) to eight (`timer.c`, `LVL_START(1)`, `LVL_GRAN(1)`).
const NEAR: u64 = 63;
const COARSE: u64 = 8;

/// What md knows of one array, and who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Clean {
    mode: SafeMode,
    /// The array is taken for clean.
    is_clean: bool,
    /// Writes under way.
    writes: u32,
    /// When the timer goes off, and the tick that it was set to.
    timer: Option<(Instant, u64)>,
    /// It has, and the thread has yet to come to that (`safemode` of 1).
    due: bool,
    /// The thread waits so long before it looks.
    grace: Option<Instant>,
    /// What waits until the superblocks say that the array is written, and what its processes were to submit after that.
    held: VecDeque<(Up, Bio)>,
}

impl Clean {
    pub(super) const fn new(mode: SafeMode) -> Self {
        Self {
            mode,
            is_clean: true,
            writes: 0,
            timer: None,
            due: false,
            grace: None,
            held: VecDeque::new(),
        }
    }

    /// Whether whoever submits this waits already, or would now.
    fn waits(&self, bio: &Bio) -> bool {
        let task = bio.origin.task;
        !self.held.is_empty()
            && (bio.kind == BlockKind::Write || self.held.iter().any(|of| of.1.origin.task == task))
    }

    /// When something happens by itself.
    pub(super) fn next(&self) -> Option<Instant> {
        let timer = self.timer.map(|(at, _)| at);
        timer.into_iter().chain(self.grace).min()
    }

    /// A write has ended.
    pub(super) fn ends(&mut self, now: Instant) {
        self.writes -= 1;
        if self.writes > 0 && !self.mode.by_periods {
            return;
        }
        let (tick, delay) = (now.0 / TICK.0, self.mode.delay);
        let set_to = match self.mode.by_periods {
            true => tick.next_multiple_of(delay) + delay,
            false => tick + delay,
        };
        // One that is set to the same tick again stays as it is.
        if self.timer.is_some_and(|(_, before)| before == set_to) {
            return;
        }
        let off = match self.mode.late_timers {
            true if set_to - tick >= NEAR => (set_to / COARSE + 1) * COARSE,
            late => set_to + u64::from(late),
        };
        self.timer = Some((Instant(off * TICK.0), set_to));
    }
}

impl Core {
    /// What is known of an array of the tree that has superblocks to say whether it is clean.
    #[inline]
    pub(super) fn clean_of(&mut self, node: u16) -> Option<&mut Clean> {
        self.clean.get_mut(usize::from(node))?.as_mut()
    }

    /// Whether whoever writes waits for superblocks.
    pub(super) fn holds_writes(&self) -> bool {
        let mut all = self.clean.iter().flatten();
        all.any(|clean| !clean.held.is_empty())
    }

    /// When something happens with one of them by itself.
    #[inline]
    pub(super) fn clean_next(&self) -> Instant {
        let next = |clean: &Clean| clean.next();
        let all = self.clean.iter().flatten().filter_map(next);
        all.min().unwrap_or(NEVER)
    }
}

impl Node {
    /// Whether a request waits for the superblocks, as one before it of the same process does, or any write then.
    #[inline]
    pub(super) fn waits_for_superblocks(&self, core: &mut Core, up: Up, bio: &Bio) -> bool {
        match core.clean_of(self.common.index) {
            Some(clean) if clean.waits(bio) => {
                clean.held.push_back((up, *bio));
                true
            }
            _ => false,
        }
    }

    /// A write begins, which is counted; `None` when it waits until the superblocks say so.
    #[inline]
    pub(super) fn begins(&mut self, core: &mut Core, up: Up, bio: &Bio) -> Option<Up> {
        let Some(clean) = core.clean_of(self.common.index) else {
            return Some(up);
        };
        if std::mem::take(&mut clean.is_clean) {
            clean.held.push_back((up, *bio));
            self.write_superblocks(core);
            return None;
        }
        clean.writes += 1;
        clean.due = false;
        let guard = core.guards.insert(Guard {
            up,
            node: self.common.index,
            from: bio.lba.0,
            end: bio.end(),
            of: GuardOf::Clean,
        });
        Some(Up::Guard(u64::from(guard)))
    }

    /// The superblocks say all that is known: nobody waits for that any more.
    pub(super) fn is_told_unclean(&mut self, core: &mut Core) {
        let Some(clean) = core.clean_of(self.common.index) else {
            return;
        };
        for (up, bio) in std::mem::take(&mut clean.held) {
            if self.common.lost {
                core.finish(up, Err(DiskError::Failed));
            } else {
                self.submit(core, up, &bio);
            }
        }
    }

    /// The timer may have gone off, or the grace period be over.
    pub(super) fn clean_advance(&mut self, core: &mut Core) {
        let now = core.now;
        let Some(clean) = core.clean_of(self.common.index) else {
            return;
        };
        if clean.timer.is_some_and(|(at, _)| at <= now) {
            (clean.timer, clean.due) = (None, true);
            self.thread_asks_whether_clean(core);
        }
        if let Some(clean) = core.clean_of(self.common.index)
            && clean.grace.is_some_and(|until| until <= now)
        {
            clean.grace = None;
            self.common.superblock.waits = false;
            self.common.superblock.again |= self.becomes_clean(core);
            self.thread_looks(core);
        }
    }

    /// The thread comes to the timer that has gone off, unless it waits for something.
    pub(super) fn thread_asks_whether_clean(&mut self, core: &mut Core) {
        let now = core.now;
        let Some(clean) = core.clean_of(self.common.index) else {
            return;
        };
        if self.common.superblock.keeps_thread() || !std::mem::take(&mut clean.due) {
            return;
        }
        if clean.is_clean {
            return;
        }
        if clean.mode.grace > Span::ZERO {
            clean.grace = Some(now + clean.mode.grace);
            self.common.superblock.waits = true;
            return self.thread_stops(core);
        }
        if self.becomes_clean(core) {
            self.write_superblocks(core);
        }
    }

    /// An array that nobody writes is clean; whether it is now and was not, which is to be told.
    fn becomes_clean(&self, core: &mut Core) -> bool {
        let Some(clean) = core.clean_of(self.common.index) else {
            return false;
        };
        let agrees = clean.mode.while_resyncing || !self.common.resyncing;
        let becomes = clean.writes == 0 && agrees && !clean.is_clean;
        clean.is_clean |= becomes;
        becomes
    }
}
