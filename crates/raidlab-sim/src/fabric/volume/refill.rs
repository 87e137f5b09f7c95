//! What a controller does to make the members of a volume agree while it serves the host: a new member is filled, copies
//! and parity are compared after an unclean stop, or made for the first time.
//!
//! Arrays go through their sectors in groups of whole rows, several groups at a time: what one needs is read, then what it
//! makes is written. While the host wants something, so many groups begin together, and when all of them have ended nothing
//! begins for as long as leaves the host its share of the time; with nothing to do for the host one follows the other.
//!
//! Left out: that writes of the host wait for the group that is worked on, and the controller's own records of how far it is.
mod own;

use super::members::Part;
use crate::block::{self, Progress, Tally};
use crate::catalogue::controller::BackgroundModel;
use crate::fabric::time::NEVER;
use own::Own;
use raidlab_core::time::Instant;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Layout, Member, MemberSet, PlanError};

/// The host is there for so long after its last command. Assumed: longer than the gaps between the calls of a process.
const PRESENT: u64 = 50_000_000;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// All is read and agrees.
    Compare,
    /// Data, or first copies, are read, and parity or the other copies are written.
    Make,
    /// What new members should have is read from the others, or computed, and written.
    Fill,
}

/// Sectors of one of the arrays that are worked on, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    own: u16,
    began: u64,
    /// Sectors of that array.
    from: u64,
    to: u64,
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Refill {
    what: What,
    arrays: Vec<Own>,
    /// Groups at a time, and those under way.
    most: u32,
    out: u32,
    /// When the first of those that begin together did, and how many of them have.
    since: u64,
    begun: u32,
    /// The host wants something, and they have all begun: none begins before they have ended.
    full: bool,
    /// None begins before that.
    rests: u64,
    /// Per cent of the time that is its own while the host wants something.
    share: u32,
    /// Until when the host is taken to want something.
    present: u64,
    paused: bool,
    /// It cannot go on: what it reads cannot be had, or what it fills has failed.
    given_up: bool,
    tally: Tally,
    now: u64,
    /// Sectors that were asked of disks.
    asked: u64,
}

impl Refill {
    /// What there is to do in this state; `None`: nothing.
    pub(super) fn new(
        layout: &Layout,
        failed: MemberSet,
        state: ArrayState,
        model: &BackgroundModel,
    ) -> Option<Self> {
        let what = match state {
            ArrayState::Clean | ArrayState::Degraded(_) => return None,
            ArrayState::Resyncing => What::Compare,
            ArrayState::InitialSync => What::Make,
            ArrayState::Rebuilding(_) => What::Fill,
        };
        let arrays = own::arrays(layout, failed, what, model.run);
        let most = arrays.len() as u32 * model.runs.max(1);
        (!arrays.is_empty()).then(|| Self {
            what,
            tally: Tally::new(0, 1, Instant::ZERO),
            arrays,
            most,
            out: 0,
            since: 0,
            begun: 0,
            full: false,
            rests: 0,
            share: model.share,
            present: 0,
            paused: false,
            given_up: false,
            now: 0,
            asked: 0,
        })
    }

    /// Members that are being filled.
    pub(super) fn filling(&self) -> MemberSet {
        let all = self.arrays.iter().map(Own::filling);
        let all = all.filter(|_| !self.is_over());
        all.fold(MemberSet::EMPTY, MemberSet::union)
    }

    /// Whether what a member has at a sector is there by now.
    pub(super) fn has(&self, member: Member, sector: u64) -> bool {
        let of = self
            .arrays
            .iter()
            .find(|own| own.filling().contains(member));
        of.is_none_or(|own| own.has(member, sector))
    }

    /// The host wants something.
    pub(super) const fn seen(&mut self, now: u64) {
        self.present = now + PRESENT;
    }

    pub(super) fn is_over(&self) -> bool {
        self.arrays.iter().all(Own::is_done)
    }

    fn goes_on(&self) -> bool {
        !self.given_up && !self.is_over()
    }

    /// When a group may begin; `NEVER`: not before one has ended.
    pub(super) fn next(&self) -> u64 {
        let room = self.out < self.most && !self.full;
        let may = room && !self.paused && !self.given_up;
        match may && self.arrays.iter().any(Own::has_more) {
            true => self.rests,
            false => NEVER,
        }
    }

    /// A group that begins now, if one may; `wanted`: the host has something at work.
    pub(super) fn take(&mut self, now: u64, wanted: bool) -> Option<Group> {
        if self.next() > now {
            return None;
        }
        let wanted = self.is_wanted(now, wanted);
        if self.share == 0 && wanted {
            self.rests = now + PRESENT;
            return None;
        }
        let least = (0..self.arrays.len()).filter(|own| self.arrays[*own].has_more());
        let own = least.min_by_key(|own| self.arrays[*own].passed())?;
        let (from, to) = self.arrays[own].take();
        if self.out == 0 {
            (self.since, self.begun) = (now, 0);
        }
        (self.out, self.begun) = (self.out + 1, self.begun + 1);
        // With all of the time for it one follows the other.
        self.full = wanted && self.share < 100 && self.begun >= self.most;
        self.now = now;
        Some(Group {
            own: own as u16,
            began: now,
            from,
            to,
        })
    }

    /// The commands of a group, reads first, and the sectors that parity is computed from.
    pub(super) fn plan(&mut self, group: &Group, parts: &mut Vec<Part>) -> Result<u64, PlanError> {
        let own = &mut self.arrays[usize::from(group.own)];
        let operands = own.plan(self.what, (group.from, group.to), parts)?;
        self.asked += parts
            .iter()
            .map(|part| u64::from(part.sectors))
            .sum::<u64>();
        Ok(operands)
    }

    const fn is_wanted(&self, now: u64, wanted: bool) -> bool {
        wanted || now < self.present
    }

    /// A group has come to its end. One that could not be read in some place is passed over, as it is by controllers that
    /// note such places (K: "punctured" stripes).
    pub(super) fn ended(&mut self, now: u64, group: &Group, wanted: bool) {
        self.out -= 1;
        if self.share < 100 && self.is_wanted(now, wanted) {
            if !self.full {
                // The host has come since: what was before counts for nothing.
                (self.full, self.since) = (self.out > 0, group.began);
            }
            if self.out == 0 {
                self.full = false;
                let took = now - self.since;
                let rest = match self.share {
                    0 => PRESENT,
                    share => took * u64::from(100 - share.min(100)) / u64::from(share),
                };
                self.rests = now + rest;
            }
        } else {
            self.full = false;
        }
        self.now = now;
        let before = self.done();
        self.arrays[usize::from(group.own)].ended((group.from, group.to));
        self.tally.note(Instant(now), self.done() - before);
    }

    /// It ends here.
    pub(super) const fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Nothing begins any more.
    pub(in crate::fabric) const fn pause(&mut self) {
        self.paused = true;
    }

    /// It goes on, from `now` on.
    pub(in crate::fabric) fn resume(&mut self, now: u64) {
        self.paused = false;
        self.rests = self.rests.max(now);
    }

    /// Paused, with nothing under way.
    pub(in crate::fabric) fn is_drained(&self) -> bool {
        self.paused && self.out == 0
    }

    /// All before sector `to`, counted as [`Self::position`] does, is taken for done; rounded down to whole groups.
    pub(in crate::fabric) fn skip(&mut self, to: u64) {
        self.arrays.iter_mut().for_each(|own| own.skip(to));
    }

    fn done(&self) -> u64 {
        self.arrays.iter().map(Own::done).sum()
    }

    /// How far it is, added over the arrays; `None` when it goes no further.
    pub(in crate::fabric) fn progress(&self) -> Option<Progress> {
        self.goes_on().then(|| Progress {
            done: self.done(),
            total: self.arrays.iter().map(Own::total).sum(),
            rate: self.tally.progress(Instant(self.now)).rate,
        })
    }

    /// Sectors that are through in every array.
    pub(in crate::fabric) fn position(&self) -> Option<u64> {
        let all = self.arrays.iter().map(Own::done);
        all.min().filter(|_| self.goes_on())
    }

    /// Where it ends, counted as that.
    pub(in crate::fabric) fn end(&self) -> Option<u64> {
        let all = self.arrays.iter().map(Own::total);
        all.max().filter(|_| self.goes_on())
    }

    /// Sectors that it has asked of disks, and its word.
    pub(in crate::fabric) const fn refilled(&self) -> (u64, block::Refill) {
        let word = match self.what {
            What::Fill => block::Refill::Rebuild,
            What::Compare | What::Make => block::Refill::Resync,
        };
        (self.asked, word)
    }
}
