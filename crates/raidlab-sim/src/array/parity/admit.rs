//! From requests to bands: groups of rows, their admission, and who has to wait for it.
use super::cache::{Found, NONE, Phase, ROW};
use super::{Group, ParityArray, Piece, Waiter};
use crate::array::core::Core;
use crate::array::node::Common;
use crate::block::Bio;
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_layout::parity::Roles;
use raidlab_layout::{Member, MemberSet};

/// Rows that are written alike at most. md handles each by itself; so many together keep the places
/// apart at which requests to members are cut, and where the cache has no room for more, at a fourth
/// of the work.
const GRAIN: u32 = 4;
/// The same in sectors. Where writes have come, a resync has its rows in such parts as well: a part that it has in flight cannot be
/// divided, and writes would wait for all of it, and with them all behind them.
const GRAIN_SECTORS: u32 = GRAIN * ROW;

/// How far the admission of a group came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    /// All of it.
    All,
    /// There was no room for more.
    NoRoom,
    /// A band in flight would have to be divided.
    InFlight,
    /// A write that has not begun is of the same blocks.
    Overlaps,
}

impl ParityArray {
    /// Admits a piece. Before 6.0, and where each page is a request of its own, blocks to be written come chunk by chunk, in
    /// the order of the request (`raid5.c:make_request`): when the cache has no room for more rows of the first chunk, those that
    /// are in it lack the others yet. False when read-ahead has found no room, which ends its request there.
    pub(super) fn groups(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        bio: &Bio,
        roles: &Roles,
        piece: &Piece,
    ) -> bool {
        let at_once = self.era.rows_at_once && !bio.origin.paged;
        let whole = at_once || piece.first == piece.last;
        if bio.kind != BlockKind::Write || whole {
            return self.rows(common, core, parent, bio, roles, piece);
        }
        for index in piece.first..=piece.last {
            let (mut from, mut to) = (0, self.chunk);
            if index == piece.first {
                from = piece.from;
            }
            if index == piece.last {
                to = piece.to;
            }
            let chunk = Piece {
                first: index,
                last: index,
                from,
                to,
                ..*piece
            };
            // Only reads are ahead of anything.
            let _ = self.rows(common, core, parent, bio, roles, &chunk);
        }
        true
    }

    /// Admits a piece, group by group of rows that it covers alike.
    fn rows(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        bio: &Bio,
        roles: &Roles,
        piece: &Piece,
    ) -> bool {
        let down = |x: u32| x / ROW * ROW;
        let up = |x: u32| x.div_ceil(ROW) * ROW;
        let (from, to) = (piece.from, piece.to);
        let write = bio.kind == BlockKind::Write;
        let empty = MemberSet::EMPTY;
        let group = Group {
            parent,
            stripe: piece.stripe,
            from,
            to,
            parity: roles.parity(),
            full: empty,
            part: empty,
            want: empty,
            resync: false,
            fua: write && bio.fua,
            sync: write && bio.origin.sync,
            ahead: !write && bio.origin.ahead && self.era.ahead_fails,
            task: bio.origin.task,
        };
        if piece.first == piece.last && down(from) == from && down(to) == to {
            // Whole rows of one chunk: by far most requests.
            let full = MemberSet::one(Member::new(roles.member(piece.first)));
            let group = if write {
                Group { full, ..group }
            } else {
                Group {
                    want: full,
                    ..group
                }
            };
            return self.enter_grains(common, core, group);
        }
        let mut cuts = [0, down(from), up(from), down(to), up(to), self.chunk];
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            if from == to {
                continue;
            }
            let (mut full, mut part) = (MemberSet::EMPTY, MemberSet::EMPTY);
            for index in piece.first..=piece.last {
                let start = if index == piece.first { piece.from } else { 0 };
                let end = if index == piece.last {
                    piece.to
                } else {
                    self.chunk
                };
                if start <= from && to <= end {
                    full.insert(Member::new(roles.member(index)));
                } else if start < to && from < end {
                    part.insert(Member::new(roles.member(index)));
                }
            }
            let touched = full.union(part);
            if touched.is_empty() {
                continue;
            }
            let only = |set: MemberSet, when: bool| if when { set } else { MemberSet::EMPTY };
            let group = Group {
                from,
                to,
                full: only(full, write),
                part: only(part, write),
                want: only(touched, !write),
                ..group
            };
            if !self.enter_grains(common, core, group) {
                return false;
            }
        }
        true
    }

    /// Admits a group, [`GRAIN`] after [`GRAIN`] when it is to be written.
    #[inline]
    fn enter_grains(&mut self, common: &Common, core: &mut Core, group: Group) -> bool {
        let grain = GRAIN_SECTORS;
        self.written |= group.want.is_empty();
        if group.full.is_empty() || group.to - group.from <= grain {
            return self.enter(common, core, group);
        }
        let mut from = group.from;
        while from < group.to {
            let to = ((from / grain + 1) * grain).min(group.to);
            let _ = self.enter(common, core, Group { from, to, ..group });
            from = to;
        }
        true
    }

    /// Admits a group, or lets it wait behind those that wait already; false when it fails instead.
    fn enter(&mut self, common: &Common, core: &mut Core, mut group: Group) -> bool {
        if self.queue.is_empty() || group.ahead {
            match self.admit(common, core, &mut group) {
                Admitted::All => return true,
                Admitted::NoRoom if group.ahead => {
                    let error = &mut core.parents.get_mut(group.parent).error;
                    error.get_or_insert(DiskError::Unreadable);
                    return false;
                }
                Admitted::Overlaps => {
                    // Whoever waits sends off what he holds back, or nothing would ever become of it.
                    self.release(common, core);
                }
                Admitted::NoRoom | Admitted::InFlight => {}
            }
        }
        core.parents.get_mut(group.parent).waits += 1;
        self.queue.push_back(group);
        if self.short {
            // Whoever waits for room releases the plug (`raid5.c:get_active_stripe`).
            self.release(common, core);
        }
        true
    }

    /// Rows `at..at + len` of all members for a resync; false when that cannot be now. `parent` waits
    /// for what could be admitted; `at` is moved past it.
    pub(in crate::array) fn resync(
        &mut self,
        common: &Common,
        core: &mut Core,
        parent: u32,
        at: &mut u64,
        end: u64,
    ) -> bool {
        let chunk = u64::from(self.chunk);
        let (stripe, from) = (*at / chunk, (*at % chunk) as u32);
        let end = end.min((stripe + 1) * chunk);
        let mut group = Group {
            parent,
            stripe,
            from,
            to: from + (end - *at) as u32,
            parity: self.roles(stripe).parity(),
            full: MemberSet::EMPTY,
            part: MemberSet::EMPTY,
            want: MemberSet::EMPTY,
            resync: true,
            fua: false,
            sync: false,
            ahead: false,
            task: 0,
        };
        let all = self.admit(common, core, &mut group) == Admitted::All;
        self.sync_waits = !all;
        if self.cache.take_kept() && (self.short || !self.queue.is_empty()) {
            // What it came for was there already: its row is for those that wait.
            self.rested.get_or_insert(core.now);
        }
        *at = stripe * chunk + u64::from(group.from);
        all
    }

    /// Puts the rows of a group into bands as far as can be.
    #[inline]
    fn admit(&mut self, common: &Common, core: &mut Core, group: &mut Group) -> Admitted {
        if self.era.submitter_handles {
            self.asks = group.task;
        }
        let admitted = self.put(common, core, group);
        self.asks = 0;
        admitted
    }

    #[inline]
    fn put(&mut self, common: &Common, core: &mut Core, group: &mut Group) -> Admitted {
        while group.from < group.to {
            let key = match self.cache.find(group.stripe, group.from, group.to) {
                Found::Band(key) => {
                    if self.cache.get(key).overlaps(group.full, group.part) {
                        return Admitted::Overlaps;
                    }
                    let Some(key) = self.fit(core, key, group) else {
                        return Admitted::InFlight;
                    };
                    if self.cache.get(key).phase == Phase::Idle {
                        self.cache.wake(key);
                        self.cache.get_mut(key).phase = Phase::Delayed;
                    }
                    key
                }
                Found::Gap(end) => {
                    let kept = group.resync && self.cache.take_kept();
                    let room = match self.short {
                        true => 0,
                        false => self.cache.available().min(self.cache.most_rows()),
                    };
                    let room = room.max(u32::from(kept));
                    if room == 0 {
                        self.runs_short(group);
                        return Admitted::NoRoom;
                    }
                    let mut to = end.min(group.from + room * ROW);
                    if group.resync && self.written {
                        to = to.min((group.from / GRAIN_SECTORS + 1) * GRAIN_SECTORS);
                    }
                    self.cache
                        .insert(group.stripe, group.from, to, group.parity)
                }
            };
            group.from = self.cache.get(key).to;
            self.join(core, key, group);
            if !self.cache.get(key).in_flight() {
                self.handle(common, core, key);
            } else if !group.want.is_empty() {
                self.ask_more(common, core, key);
            }
        }
        Admitted::All
    }

    /// There is no room; kernels that let the cache grow add a stripe each time, unless others are kept out already.
    /// Read-ahead keeps nobody else out.
    fn runs_short(&mut self, group: &Group) {
        let before = self.short;
        self.short |= !group.ahead;
        if !before && self.era.cache_grows {
            self.cache.grow();
        }
    }

    /// The rows of the band `key` that the group covers, from its first row on; divided from the
    /// others where need be. `None` when the band is in flight and would have to be divided.
    fn fit(&mut self, core: &mut Core, key: u32, group: &Group) -> Option<u32> {
        let band = self.cache.get(key);
        if band.from == group.from && band.to <= group.to {
            return Some(key);
        }
        if band.in_flight() {
            return None;
        }
        let (from, to) = (band.from, band.to);
        let mut key = key;
        if from < group.from {
            key = self.cut(core, key, group.from);
        }
        if to > group.to {
            self.cut(core, key, group.to);
        }
        Some(key)
    }

    /// Cuts a band; who waits for it waits for both.
    fn cut(&mut self, core: &mut Core, key: u32, at: u32) -> u32 {
        let new = self.cache.cut(key, at);
        let band = *self.cache.get(new);
        let lists = [band.readers, band.writers, band.syncers].map(|head| self.double(core, head));
        let upper = self.cache.get_mut(new);
        [upper.readers, upper.writers, upper.syncers] = lists;
        if band.phase == Phase::Delayed {
            self.delayed.push_back(new);
        }
        if band.queued {
            self.thread.look(core.now, new);
        }
        if band.preread {
            self.prereads += 1;
        }
        new
    }

    fn double(&mut self, core: &mut Core, mut list: u32) -> u32 {
        let mut copy = NONE;
        while list != NONE {
            let Waiter { parent, next } = *self.waiters.get(list);
            core.parents.get_mut(parent).waits += 1;
            copy = self.waiters.insert(Waiter { parent, next: copy });
            list = next;
        }
        copy
    }

    /// Adds what a group wants to a band.
    #[inline]
    fn join(&mut self, core: &mut Core, key: u32, group: &Group) {
        let band = self.cache.get_mut(key);
        band.full = band.full.union(group.full);
        // A block that was to be written in part and now wholly needs no old content.
        band.part = band.part.union(group.part).without(band.full);
        band.want = band.want.union(group.want);
        band.fua |= group.fua;
        band.sync |= group.sync;
        let list = if group.resync {
            &mut band.syncers
        } else if group.want.is_empty() {
            &mut band.writers
        } else {
            &mut band.readers
        };
        let (parent, next) = (group.parent, *list);
        *list = self.waiters.insert(Waiter { parent, next });
        core.parents.get_mut(parent).waits += 1;
    }

    /// Lets those in that wait, as far as there is room.
    pub(super) fn retry(&mut self, common: &Common, core: &mut Core) {
        let mut overlaps = false;
        while self.rested.take().is_some() {
            if self.short && self.cache.available() <= self.cache.most_rows() {
                break;
            }
            self.short = false;
            if std::mem::take(&mut self.sync_waits) && self.cache.available() > 0 {
                self.cache.keep_row();
            }
            if !self.queue.is_empty() {
                // Whoever waited goes on submitting, and what he submits is held back again.
                self.plugged.get_or_insert(core.now);
            }
            while let Some(mut group) = self.queue.pop_front() {
                let admitted = self.admit(common, core, &mut group);
                let result = match admitted {
                    Admitted::All => Ok(()),
                    Admitted::NoRoom if group.ahead => {
                        self.refused += u64::from(group.to - group.from);
                        Err(DiskError::Unreadable)
                    }
                    Admitted::NoRoom | Admitted::InFlight | Admitted::Overlaps => {
                        overlaps = admitted == Admitted::Overlaps;
                        self.queue.push_front(group);
                        break;
                    }
                };
                core.close(group.parent, result);
            }
        }
        let through = self.queue.is_empty() && std::mem::take(&mut self.unplug_after);
        if self.short || through || overlaps {
            self.release(common, core);
        }
    }
}
