//! What raid4, raid5 and raid6 read and write, as md's stripe cache decides it.
//!
//! md works in rows of one page (4 KiB) across the members and decides for each row; rows of equal
//! coverage are decided together here. What a row has in memory from earlier I/O is unknown to a
//! pure mapping, so every old block counts as a read; a stripe cache is the business of whoever
//! executes the plan.
use crate::parity::{Parity, Roles};
use crate::plan::{IoKind, Rmw, RowDecision, Sink, WriteMethod, WritePolicy};
use crate::stripe::PAGE;
use crate::types::{Member, MemberSet};
use raidlab_core::units::Sectors;

/// The part of one stripe that an array run covers: from `from` in data chunk `first` up to
/// (excluding) `to` in data chunk `last`.
struct Span {
    first: usize,
    last: usize,
    from: u64,
    to: u64,
    chunk: u64,
}

/// How some rows are covered by what is to be written, and what is known of them, by member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Data blocks that are covered wholly.
    pub full: MemberSet,
    /// Data blocks that are covered in part.
    pub part: MemberSet,
    /// Data blocks that are not covered.
    pub rest: MemberSet,
    /// Blocks of parity.
    pub parity: MemberSet,
    /// Blocks whose content is in memory, so that they need not be read.
    pub cached: MemberSet,
}

impl Cover {
    /// The cheaper of read-modify-write and reconstruct-write, by what reading blocks that are not
    /// `cached` costs, and the blocks to read that are not `known`.
    #[inline]
    fn decide(
        &self,
        rmw: Rmw,
        known: MemberSet,
        cost: impl Fn(MemberSet) -> usize,
    ) -> (WriteMethod, MemberSet) {
        // A block that is written in part is read in any case and counts for neither side.
        let old = self.full.union(self.parity);
        let cost = |blocks: MemberSet| cost(blocks.without(self.cached));
        let modify = match rmw {
            Rmw::Never => false,
            Rmw::FewerReads => cost(old) < cost(self.rest),
            Rmw::Prefer => cost(old) <= cost(self.rest),
        };
        if modify {
            let reads = self.part.union(old).without(known);
            return (WriteMethod::ReadModifyWrite, reads);
        }
        let reads = self.part.union(self.rest).without(known);
        if reads.is_empty() && self.rest.is_empty() {
            return (WriteMethod::FullStripe, reads);
        }
        (WriteMethod::ReconstructWrite, reads)
    }
}

impl Span {
    /// Covered sectors of data chunk `index`.
    fn covered(&self, index: usize) -> (u64, u64) {
        let from = if index == self.first { self.from } else { 0 };
        let to = if index == self.last {
            self.to
        } else {
            self.chunk
        };
        (from, to)
    }

    /// Call `visit` with each maximal group of page rows of equal coverage, in row order.
    fn row_groups(&self, mut visit: impl FnMut(u64, u64)) {
        if self.first == self.last && (self.from | self.to).is_multiple_of(PAGE) {
            // Whole rows of one chunk, by far most requests: the others are not covered at all.
            return visit(self.from, self.to);
        }
        let down = |x: u64| x / PAGE * PAGE;
        let up = |x: u64| x.div_ceil(PAGE) * PAGE;
        let mut cuts = [
            0,
            down(self.from),
            up(self.from),
            down(self.to),
            up(self.to),
            self.chunk,
        ];
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            if pair[0] < pair[1] {
                visit(pair[0], pair[1]);
            }
        }
    }

    fn cover(&self, roles: &Roles, members: usize, from: u64, to: u64) -> Cover {
        let (mut full, mut part) = (MemberSet::EMPTY, MemberSet::EMPTY);
        for index in self.first..=self.last {
            let (start, end) = self.covered(index);
            if start <= from && to <= end {
                full.insert(Member::new(roles.member(index)));
            } else if start < to && from < end {
                part.insert(Member::new(roles.member(index)));
            }
        }
        let parity = roles.parity();
        let rest = MemberSet::first(members).without(full.union(part).union(parity));
        Cover {
            full,
            part,
            rest,
            parity,
            cached: MemberSet::EMPTY,
        }
    }
}

impl Parity {
    /// A healthy array is read around the stripe cache, sector by sector; a degraded one (of
    /// current kernels: `raid5_make_request`) in page rows through it, and a row with a wanted
    /// block on a failed member is read whole: md reads both parities of raid6 even for one
    /// failure (`raid5.c:need_this_block`, `fetch_block`).
    pub(crate) fn read(&self, start: u64, len: u64, failed: MemberSet, sink: &mut Sink<'_>) {
        self.each_stripe(start, len, |stripe, roles, span| {
            let base = stripe << self.shift();
            if failed.is_empty() {
                for index in span.first..=span.last {
                    let (from, to) = span.covered(index);
                    sink.add(0, IoKind::Read, roles.member(index), base + from, to - from);
                }
                return;
            }
            span.row_groups(|from, to| {
                let cover = span.cover(roles, self.members(), from, to);
                let wanted = cover.full.union(cover.part);
                let whole = !wanted.intersection(failed).is_empty();
                let reads = if whole {
                    MemberSet::first(self.members())
                } else {
                    wanted
                };
                self.add(
                    sink,
                    0,
                    IoKind::Read,
                    reads.without(failed),
                    base + from,
                    to - from,
                );
            });
        });
    }

    pub(crate) fn write(
        &self,
        start: u64,
        len: u64,
        failed: MemberSet,
        policy: WritePolicy,
        sink: &mut Sink<'_>,
    ) {
        self.each_stripe(start, len, |stripe, roles, span| {
            span.row_groups(|from, to| {
                let cover = span.cover(roles, self.members(), from, to);
                let touched = cover.full.union(cover.part);
                if touched.is_empty() {
                    return;
                }
                let (method, reads) = self.decide(&cover, failed, policy);
                sink.plan.decide(RowDecision {
                    base: Member(sink.base),
                    stripe,
                    offset: Sectors(from),
                    len: Sectors(to - from),
                    method,
                    reads: reads.len() as u16,
                });
                let (at, len) = ((stripe << self.shift()) + from, to - from);
                self.add(sink, 0, IoKind::Read, reads, at, len);
                let writes = touched.union(cover.parity).without(failed);
                self.add(
                    sink,
                    usize::from(!reads.is_empty()),
                    IoKind::Write,
                    writes,
                    at,
                    len,
                );
            });
        });
    }

    fn add(
        &self,
        sink: &mut Sink<'_>,
        step: usize,
        kind: IoKind,
        on: MemberSet,
        at: u64,
        len: u64,
    ) {
        for member in on.iter() {
            sink.add(step, kind, member.index(), at, len);
        }
    }

    /// Visit the stripes of an array run in order, with the part of each that is covered.
    fn each_stripe(&self, start: u64, len: u64, mut visit: impl FnMut(u64, &Roles, &Span)) {
        let (data, chunk) = (self.data_members(), self.chunk().0);
        let end = start + len;
        let mut at = start;
        let (mut stripe, mut first) = {
            let number = at >> self.shift();
            (number / data as u64, (number % data as u64) as usize)
        };
        while at < end {
            let from = at & (chunk - 1);
            let to_end = ((data - first) as u64 * chunk) - from;
            let covered = to_end.min(end - at);
            let last_sector = from + covered - 1;
            let last = first + (last_sector >> self.shift()) as usize;
            let to = (last_sector & (chunk - 1)) + 1;
            visit(
                stripe,
                &self.roles(stripe),
                &Span {
                    first,
                    last,
                    from,
                    to,
                    chunk,
                },
            );
            at += covered;
            stripe += 1;
            first = 0;
        }
    }

    /// How parity of rows is brought up to date, and which blocks are read before. The order of the questions is md's:
    /// first what must be read in any case (`need_this_block`), then the cheaper of read-modify-
    /// write and reconstruct-write (`handle_stripe_dirtying`), where a block on a failed member
    /// counts as 2n reads and a tie reconstructs.
    #[must_use]
    #[inline]
    pub fn decide(
        &self,
        cover: &Cover,
        failed: MemberSet,
        policy: WritePolicy,
    ) -> (WriteMethod, MemberSet) {
        let no_rmw = self.level().parities() == 2 && !policy.raid6_rmw;
        if failed.is_empty() {
            let rmw = if no_rmw { Rmw::Never } else { policy.rmw };
            return cover.decide(rmw, cover.cached, MemberSet::len);
        }
        self.decide_degraded(cover, failed, policy, no_rmw)
    }

    #[inline(never)]
    fn decide_degraded(
        &self,
        cover: &Cover,
        failed: MemberSet,
        policy: WritePolicy,
        no_rmw: bool,
    ) -> (WriteMethod, MemberSet) {
        let known = cover.cached.union(failed);
        let all = MemberSet::first(self.members()).without(known);
        let all_new = cover.part.is_empty() && cover.rest.is_empty();
        if no_rmw && !all_new {
            return (WriteMethod::ReconstructWrite, all);
        }
        let rmw_level = if no_rmw { Rmw::Never } else { policy.rmw };
        let touched_failed = cover
            .full
            .union(cover.part)
            .union(cover.parity)
            .intersection(failed);
        let reconstruct_only =
            rmw_level == Rmw::Never || (failed.len() >= 2 && !touched_failed.is_empty());
        let lost = failed.without(cover.cached);
        let old_data_failed = !cover.part.union(cover.rest).intersection(lost).is_empty();
        if !cover.part.intersection(lost).is_empty() || (reconstruct_only && old_data_failed) {
            return (WriteMethod::ReconstructWrite, all);
        }
        cover.decide(rmw_level, known, |blocks| {
            let lost = blocks.intersection(lost);
            blocks.without(failed).len() + lost.len() * 2 * self.members()
        })
    }
}
