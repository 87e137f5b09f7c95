//! What a band does: read, compute, write, and then what has come up meanwhile.
//!
//! The order of the questions is that of `raid5.c:handle_stripe`: what must be read is read at once;
//! a write that needs old blocks waits, so that more writes can make it a whole stripe; a write that
//! needs none goes on. Writes that come while a band is being written are the next round.
use super::cache::{Band, NONE, Phase, Purpose};
use super::thread::Job;
use super::{ParityArray, Waiter};
use crate::array::core::{Core, Op};
use crate::array::node::Common;
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_layout::{Cover, Member, MemberSet, Rmw, WriteMethod};

impl ParityArray {
    /// First sector of a band on every member.
    #[inline(always)]
    pub(super) fn start(&self, band: &Band) -> u64 {
        band.stripe * u64::from(self.chunk) + u64::from(band.from)
    }

    /// Whether the resync has yet to pass a band, as far as md knows.
    #[inline(always)]
    fn ahead(&self, common: &Common, band: &Band) -> bool {
        self.start(band) + u64::from(band.to - band.from) > common.known
    }

    /// Members whose blocks a band cannot read.
    #[inline(always)]
    pub(super) fn missing(&self, common: &Common, band: &Band) -> MemberSet {
        let mut missing = common.gone.union(band.bad);
        if !common.filling.is_empty() && self.ahead(common, band) {
            missing = missing.union(common.filling);
        }
        missing
    }

    /// Looks what a band that is not in flight has to do next, and begins it.
    pub(super) fn handle(&mut self, common: &Common, core: &mut Core, key: u32) {
        let band = self.cache.get(key);
        let missing = self.missing(common, band);
        let syncs = band.syncers != NONE;
        if !syncs && band.readers == NONE && band.writers == NONE {
            return self.rest(common, core, key);
        }
        if syncs || !missing.is_empty() {
            return self.handle_hurt(common, core, key, missing);
        }
        self.handle_as::<true>(common, core, key, MemberSet::EMPTY);
    }

    /// The same for a band that lacks the blocks of `missing`, or is synchronised.
    // Apart, so that what a whole array does lies close together.
    #[inline(never)]
    fn handle_hurt(&mut self, common: &Common, core: &mut Core, key: u32, missing: MemberSet) {
        if missing.len() > self.layout.level().parities() {
            return self.give_up(common, core, key);
        }
        self.handle_as::<false>(common, core, key, missing);
    }

    /// Begins what a band has to do next that lacks `missing`. `WHOLE`: it lacks nothing and is not synchronised.
    #[inline(always)]
    fn handle_as<const WHOLE: bool>(
        &mut self,
        common: &Common,
        core: &mut Core,
        key: u32,
        missing: MemberSet,
    ) {
        let band = self.cache.get(key);
        let all = MemberSet::first(common.children.len());
        let wanted = band.want.union(band.part).without(band.cached);
        let lost = wanted.intersection(missing);
        let syncs = !WHOLE && band.syncers != NONE;
        let fetch = if syncs || !lost.is_empty() {
            all.without(missing).without(band.cached)
        } else {
            wanted
        };
        if !fetch.is_empty() {
            return self.read(common, core, key, fetch);
        }
        if syncs {
            return self.compute(common, core, key, Purpose::Sync, WriteMethod::FullStripe);
        }
        if !band.want.is_empty() || !lost.is_empty() {
            return self.compute(common, core, key, Purpose::Read, WriteMethod::FullStripe);
        }
        let touched = band.full.union(band.part);
        let rest = all.without(touched).without(band.parity);
        let at_once = band.sync && self.era.sync_reads_at_once && self.plugged.is_none();
        let preread = band.preread || at_once;
        if !preread && band.cached.is_empty() && !rest.is_empty() && missing.is_empty() {
            // It would read, whichever way it is decided.
            return self.delay(common, core, key);
        }
        let cover = Cover {
            full: band.full,
            part: band.part,
            rest,
            parity: band.parity,
            cached: band.cached,
        };
        let mut policy = self.era.write_policy;
        if common.resyncing && missing.is_empty() && self.ahead(common, band) {
            policy.rmw = Rmw::Never;
        }
        let (method, reads) = self.layout.decide(&cover, missing, policy);
        if reads.is_empty() {
            self.compute(common, core, key, Purpose::Write, method);
        } else if preread && self.defers(key) {
            if !std::mem::replace(&mut self.cache.get_mut(key).queued, true) {
                self.thread.look(core.now, key);
            }
        } else if preread {
            self.preread(key);
            self.read(common, core, key, reads);
        } else {
            self.delay(common, core, key);
        }
    }

    /// A band that would read before it writes waits for more to come.
    fn delay(&mut self, common: &Common, core: &mut Core, key: u32) {
        self.cache.get_mut(key).phase = Phase::Delayed;
        if self.delayed.back() != Some(&key) {
            self.delayed.push_back(key);
        }
        if self.era.delay_plugs {
            self.plugged.get_or_insert(core.now);
        }
        if self.plugged.is_none() {
            self.activate(common, core);
        }
    }

    /// Lets delayed bands read: all, unless others do (`raid5.c:raid5_activate_delayed`), and those that
    /// somebody waits for in any case.
    pub(super) fn activate(&mut self, common: &Common, core: &mut Core) {
        let others = self.prereads > 0;
        if others && !self.era.sync_reads_at_once {
            return;
        }
        for _ in 0..self.delayed.len() {
            let Some(key) = self.delayed.pop_front() else {
                return;
            };
            // It may have become whole, or idle, or another band, since.
            let band = self.cache.get_mut(key);
            if band.phase != Phase::Delayed || band.writers == NONE || band.preread {
                continue;
            }
            if others && !band.sync {
                self.delayed.push_back(key);
                continue;
            }
            self.preread(key);
            self.handle(common, core, key);
        }
    }

    /// Whether a band that would read waits until the thread comes to it, one stripe after the other: more may
    /// have come by then to make it whole.
    fn defers(&self, key: u32) -> bool {
        self.thread.all_busy() && self.looks_at != Some(key) && !self.era.submitter_handles
    }

    /// The thread has come to a band.
    pub(super) fn look(&mut self, common: &Common, core: &mut Core, key: u32) {
        let band = self.cache.get_mut(key);
        if std::mem::take(&mut band.queued) && band.phase == Phase::Delayed {
            self.looks_at = Some(key);
            self.handle(common, core, key);
            self.looks_at = None;
        }
    }

    /// What was read of a band has been handed over: its rows are free for others when the thread has come to them once
    /// more, behind all that it has to do (`raid5.c:ops_complete_biofill` sets `STRIPE_HANDLE`; `do_release_stripe` puts
    /// it at the end of `handle_list`). False when there is more to do with it, or the thread takes no time.
    fn leaves(&mut self, core: &Core, key: u32) -> bool {
        let band = self.cache.get_mut(key);
        let nothing = band.readers == NONE && band.writers == NONE && band.syncers == NONE;
        if !nothing || self.thread.is_free() {
            return false;
        }
        if !std::mem::replace(&mut band.queued, true) {
            let sectors = band.to - band.from;
            self.thread.leave(core.now, key, sectors);
        }
        true
    }

    /// A band counts as one that reads before it writes.
    fn preread(&mut self, key: u32) {
        if !std::mem::replace(&mut self.cache.get_mut(key).preread, true) {
            self.prereads += 1;
        }
    }

    fn read(&mut self, common: &Common, core: &mut Core, key: u32, members: MemberSet) {
        let band = self.cache.get_mut(key);
        (band.phase, band.moving) = (Phase::Reading, members);
        self.ask(common, core, key, BlockKind::Read, members);
    }

    /// Has the thread compute what a purpose needs.
    fn compute(
        &mut self,
        common: &Common,
        core: &mut Core,
        key: u32,
        purpose: Purpose,
        method: WriteMethod,
    ) {
        let data = self.layout.data_members() as u32;
        let free = self.thread.is_free();
        let missing = self.missing(common, self.cache.get(key));
        let band = self.cache.get_mut(key);
        band.phase = Phase::Computing(purpose);
        let touched = band.full.union(band.part);
        // With one member missing, the parity that does not make up for it is checked (`handle_parity_checks6`).
        let checks =
            purpose == Purpose::Sync && self.layout.level().parities() == 2 && missing.len() == 1;
        let (sums, copies) = match purpose {
            Purpose::Write => {
                band.moving = touched;
                band.current = std::mem::replace(&mut band.writers, NONE);
                (band.full, band.part) = (MemberSet::EMPTY, MemberSet::EMPTY);
                if !self.queue.is_empty() {
                    // Among those that wait may be a write of the same blocks.
                    self.rested.get_or_insert(core.now);
                }
                let blocks = if free { 0 } else { touched.len() as u32 };
                // Old blocks are taken out of the parity and new ones put in, or all are summed.
                let sums = match method {
                    WriteMethod::ReadModifyWrite => 2 * blocks,
                    _ => data,
                };
                (sums, blocks)
            }
            Purpose::Read => {
                let wanted = band.want.union(band.part).without(band.cached);
                let lost = !wanted.intersection(missing).is_empty();
                band.cached = band.cached.union(wanted);
                (u32::from(lost) * data, band.want.len() as u32)
            }
            // What does not agree is computed once more, to be written (`raid5.c:handle_parity_checks5`, `6`).
            Purpose::Sync => {
                let twice = common.unlike() || checks;
                let sums = if twice { 2 * data } else { data };
                (sums, 0)
            }
        };
        if free {
            return self.computed(common, core, key);
        }
        let job = Job {
            sectors: band.to - band.from,
            sums,
            syndrome: self.layout.level().parities() == 2,
            copies,
            comes_again: purpose == Purpose::Read,
            checks,
        };
        self.thread.run(core.now, key, job);
    }

    /// The computation of a band has ended.
    pub(super) fn computed(&mut self, common: &Common, core: &mut Core, key: u32) {
        let band = self.cache.get(key);
        let Phase::Computing(purpose) = band.phase else {
            return;
        };
        let writes = match purpose {
            Purpose::Read => {
                let band = self.cache.get_mut(key);
                band.phase = Phase::Delayed;
                // More may have come to be wanted meanwhile.
                if band.want.without(band.cached).is_empty() {
                    band.want = MemberSet::EMPTY;
                    let readers = std::mem::replace(&mut band.readers, NONE);
                    self.answer(core, readers, Ok(()));
                }
                if self.leaves(core, key) {
                    return;
                }
                return self.handle(common, core, key);
            }
            Purpose::Write => band.moving.union(band.parity).without(common.gone),
            Purpose::Sync => {
                let missing = self.missing(common, band);
                let fill = common.filling.intersection(missing);
                let agree = if common.unlike() {
                    band.parity.without(common.gone)
                } else {
                    MemberSet::EMPTY
                };
                fill.union(agree)
            }
        };
        let cached = match purpose {
            Purpose::Write => band.moving.union(band.parity),
            _ => MemberSet::first(common.children.len()),
        };
        if band.preread {
            self.undelay(common, core, key);
        }
        let band = self.cache.get_mut(key);
        band.cached = band.cached.union(cached);
        band.phase = Phase::Writing(purpose);
        if writes.is_empty() {
            self.written(common, core, key);
        } else {
            self.ask(common, core, key, BlockKind::Write, writes);
        }
    }

    /// A band that read before it wrote does so no longer; others may.
    fn undelay(&mut self, common: &Common, core: &mut Core, key: u32) {
        if std::mem::take(&mut self.cache.get_mut(key).preread) {
            self.prereads -= 1;
            if self.prereads == 0 && self.plugged.is_none() {
                self.activate(common, core);
            }
        }
    }

    /// A member request of a band has ended.
    #[inline]
    pub(in crate::array) fn band_ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        key: u32,
        op: &Op,
        result: Result<(), DiskError>,
    ) {
        let band = self.cache.get_mut(key);
        band.flight -= 1;
        // Half of them are reads: not a question for the processor.
        let read = op.kind == BlockKind::Read;
        let member = MemberSet::one(Member(op.role)).only_if(read);
        if result.is_ok() {
            band.cached = band.cached.union(member);
        } else {
            band.bad = band.bad.union(member);
        }
        if band.flight > 0 {
            return;
        }
        if let Phase::Writing(_) = band.phase {
            self.written(common, core, key);
        } else {
            band.phase = Phase::Delayed;
            self.handle(common, core, key);
        }
    }

    /// All writes of a band have ended.
    fn written(&mut self, common: &Common, core: &mut Core, key: u32) {
        let band = self.cache.get_mut(key);
        let Phase::Writing(purpose) = band.phase else {
            return;
        };
        band.phase = Phase::Delayed;
        band.moving = MemberSet::EMPTY;
        let list = if purpose == Purpose::Sync {
            &mut band.syncers
        } else {
            &mut band.current
        };
        let list = std::mem::replace(list, NONE);
        if band.writers == NONE {
            (band.fua, band.sync) = (false, false);
        }
        // What a failed member was given in vain is on the others.
        let result = if common.lost {
            Err(DiskError::Failed)
        } else {
            Ok(())
        };
        self.answer(core, list, result);
        self.handle(common, core, key);
    }

    fn answer(&mut self, core: &mut Core, mut list: u32, result: Result<(), DiskError>) {
        while list != NONE {
            let Waiter { parent, next } = self.waiters.remove(list);
            core.close(parent, result);
            list = next;
        }
    }

    /// Too much is missing: nobody gets anything.
    fn give_up(&mut self, common: &Common, core: &mut Core, key: u32) {
        let empty = MemberSet::EMPTY;
        let band = self.cache.get_mut(key);
        let lists = [band.readers, band.writers, band.syncers];
        (band.readers, band.writers, band.syncers) = (NONE, NONE, NONE);
        (band.full, band.part, band.want) = (empty, empty, empty);
        let error = if common.lost {
            DiskError::Failed
        } else {
            DiskError::Unreadable
        };
        for list in lists {
            self.answer(core, list, Err(error));
        }
        self.rest(common, core, key);
    }

    /// A band has nothing to do.
    fn rest(&mut self, common: &Common, core: &mut Core, key: u32) {
        self.undelay(common, core, key);
        let band = self.cache.get_mut(key);
        (band.fua, band.sync, band.bad) = (false, false, MemberSet::EMPTY);
        self.cache.rest(key);
        if self.short || self.sync_waits || !self.queue.is_empty() {
            self.rested.get_or_insert(core.now);
        }
    }
}
