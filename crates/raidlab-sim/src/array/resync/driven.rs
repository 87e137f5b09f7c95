//! What a resync does to its array: what it sends, what comes back, and how far everything agrees.
use super::super::core::{Core, OfResync, Up};
use super::super::node::{Node, Shape};
use super::UNIT;
use crate::block::{Progress, Tally};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::SECTOR;
use raidlab_layout::{Layout, MemberSet};

impl Node {
    /// Sends what the resync may send now. Of a parity array it asks the thread, which counts what it sends: all that
    /// is asked for in one go hides nobody from the resync yet.
    pub(in super::super) fn pump(&mut self, core: &mut Core) {
        core.asks_thread = self.parity().is_some_and(|parity| parity.thread_syncs());
        self.send(core);
        core.come_to(usize::from(self.common.index));
    }

    /// Whether a resync waits for the stripe cache, or for the tick after that, as after most ends of requests of its members: it
    /// would send nothing, and nobody would notice that it was asked.
    #[inline]
    pub(in super::super) fn waits_for_cache(&self, now: Instant) -> bool {
        let (Some(resync), Shape::Parity(parity)) = (&self.resync, &self.shape) else {
            return false;
        };
        let to_do = !self.common.filling.is_empty() || self.common.resyncing;
        let waits = match resync.short {
            true => parity.sync_waits(),
            false => resync.naps.is_some_and(|until| until > now),
        };
        waits && to_do && !self.common.lost
    }

    fn send(&mut self, core: &mut Core) {
        let index = usize::from(self.common.index);
        if let Shape::Mirror(mirror) = &mut self.shape {
            mirror.built(core.now);
        }
        let pointless = self.common.filling.is_empty() && !self.common.resyncing;
        if pointless || self.common.lost {
            // The member that was filled has failed, or more.
            return self.stop(core);
        }
        if let Shape::Mirror(mirror) = &mut self.shape
            && !mirror.may_read(core.now)
        {
            return;
        }
        while let Some(resync) = &mut self.resync {
            if let Shape::Parity(parity) = &self.shape
                && !resync.has_room(core.now, parity.sync_waits())
            {
                return;
            }
            let may = resync.may(core.now, &mut core.heard[index]);
            self.common.known = resync.known(&self.common);
            if std::mem::take(&mut resync.notes) {
                self.write_superblocks(core);
            }
            if !may {
                return;
            }
            let Some(resync) = &mut self.resync else {
                return;
            };
            if let Shape::Mirror(mirror) = &self.shape
                && (mirror.builds().is_some()
                    || !resync.lets_pass(core.now, mirror.is_waited_for()))
            {
                return;
            }
            let (number, at, end) = resync.piece();
            let node = self.common.index;
            let parent = core.open(Up::Sync(OfResync::new(node, number)));
            let mut to = at;
            let all = match &mut self.shape {
                Shape::Parity(parity) => parity.resync(&self.common, core, parent, &mut to, end),
                Shape::Mirror(mirror) => mirror.resync(&self.common, core, parent, &mut to, end),
                Shape::Linear(_)
                | Shape::Raid0(_)
                | Shape::Raidz(_)
                | Shape::Vdevs(_)
                | Shape::Btrfs(_) => false,
            };
            if !all && matches!(self.shape, Shape::Parity(_)) {
                resync.runs_short();
            }
            if to == at {
                core.parents.remove(parent);
                return;
            }
            resync.went(to);
            core.close(parent, Ok(()));
            if !all {
                return;
            }
        }
    }

    /// Request `number` of the resync has ended.
    pub(in super::super) fn synced(&mut self, core: &mut Core, number: u64) {
        if let Shape::Mirror(mirror) = &mut self.shape {
            mirror.lower(&self.common, core);
        }
        let Some(resync) = &mut self.resync else {
            return;
        };
        let index = (number - resync.first) as usize;
        let begin = match index.checked_sub(1) {
            Some(before) => resync.window[before].0,
            None => self.common.front,
        };
        let request = &mut resync.window[index];
        request.1 = true;
        resync.active -= request.0 - begin;
        while let Some((end, true)) = resync.window.front().copied() {
            self.common.front = end;
            resync.window.pop_front();
            resync.first += 1;
        }
        self.common.known = resync.known(&self.common);
        if self.common.front >= resync.end {
            self.finish_resync(core);
        }
    }

    /// Sends nothing more, and ends with what is in flight.
    fn stop(&mut self, core: &mut Core) {
        if self.resync.as_ref().is_some_and(|r| r.active == 0) {
            self.finish_resync(core);
        } else {
            self.pause(core, true);
        }
    }

    fn finish_resync(&mut self, core: &mut Core) {
        self.resync = None;
        self.common.filling = MemberSet::EMPTY;
        self.common.resyncing = false;
        match &mut self.shape {
            Shape::Mirror(mirror) => mirror.unguard(&self.common, core),
            Shape::Parity(parity) => parity.sync_ends(),
            _ => {}
        }
    }

    /// Sectors that are done, as [`Self::progress`] tells them.
    pub(in super::super) fn done(&self) -> Option<u64> {
        match self.tally() {
            Some(tally) => Some(tally.done()),
            None => self.resync.as_ref().map(|_| self.common.front),
        }
    }

    /// What is filled by what is in use.
    fn tally(&self) -> Option<&Tally> {
        let resilver = self.resilver.as_ref().map(|resilver| &resilver.tally);
        resilver.or(self.replace.as_ref().map(|replace| &replace.tally))
    }

    /// Progress of the resync, if there is one.
    pub(in super::super) fn progress(&self, now: Instant) -> Option<Progress> {
        if let Some(tally) = self.tally() {
            return Some(tally.progress(now));
        }
        let resync = self.resync.as_ref()?;
        let synced = resync.issued - resync.active;
        let (since, before) = resync.marks.front().copied()?;
        let bytes = u128::from((synced - before) * SECTOR) * 1_000_000_000;
        Some(Progress {
            done: self.common.front,
            total: resync.end,
            rate: (bytes / u128::from(now.since(since).0.max(1))) as u64,
        })
    }

    pub(in super::super) fn limit(&mut self, core: &Core, most: Option<u64>) {
        if let Some(resync) = &mut self.resync {
            let chunk = self.layout.as_ref().and_then(Layout::chunk);
            let room = match &self.shape {
                Shape::Parity(parity) => Some(parity.room()),
                _ => None,
            };
            resync.limit(
                core.now,
                most,
                chunk.map_or(u64::MAX, |chunk| chunk.0),
                room,
            );
        }
        if let Shape::Parity(parity) = &mut self.shape {
            parity.keep_cache(most.is_none());
        }
    }

    pub(in super::super) fn pause(&mut self, core: &mut Core, paused: bool) {
        if let Some(resync) = &mut self.resync {
            resync.paused = paused;
        }
        if let Shape::Mirror(mirror) = &mut self.shape {
            mirror.calm(&self.common, core);
        }
    }

    /// Takes the sectors up to `to` for done, and `passed` for the time that took.
    pub(in super::super) fn skip(&mut self, core: &mut Core, to: u64, passed: Span) {
        let Some(resync) = &mut self.resync else {
            return;
        };
        if resync.skipping() && to > resync.next {
            resync.next = (to / UNIT * UNIT).max(resync.next).min(resync.end);
            if to >= resync.end {
                resync.next = resync.end;
            }
            self.common.front = resync.next;
            resync.checked.0 = resync.next;
        }
        resync.checked.1 += passed;
        self.common.known = resync.known(&self.common);
        for (at, _) in &mut resync.marks {
            *at += passed;
        }
        resync.sleeps = resync.sleeps.map(|until| until + passed);
        resync.naps = resync.naps.map(|until| until + passed);
        if self.common.front >= resync.end {
            self.finish_resync(core);
        }
    }
}
