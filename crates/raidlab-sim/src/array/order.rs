//! The order in which md comes to the parts of a request that is too large for it.
//!
//! What the block layer takes apart (`bio_split_to_limits`) or a level (`bio_split` at the end of a chunk) goes back to the
//! submitter's list, and what came back last is taken first (`__submit_bio_noacct`). So the first part is made, then all that is
//! beyond the largest request, and at last the rest of the first one. With chunks of 512 KiB and windows of several MiB, members
//! are asked for what lies further back after what lies further on.
//!
//! Raid0 takes a chunk at most and asks for both parts of it at once ("md/raid0: Fix performance regression for large sequential
//! writes"), so that it comes to all in turn. So does 6.1.192; that the commit is of 6.6, and what it mends of 4.12, is from memory.
//! Kernels between are left out.
//!
//! Since 6.18 what is taken apart goes to the front of the list, and all comes in turn.
use super::Array;
use super::core::{Child, Core, Up};
use super::node::{Node, Shape};
use super::spec::Era;
use crate::block::Bio;
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;

/// Sectors of a request that a parity array takes at most (`raid5.c:raid5_run`: it notes for 256 rows of 4 KiB
/// which of them are through, `RAID5_MAX_REQ_STRIPES`; since 6.0).
pub(crate) const PARITY_REQUEST: u32 = 256 * 8;

/// Calls `each` with where a part begins and its sectors, for all parts of `from..end` in their order, of requests of at most
/// `most`; `run` is how many sectors the level takes at a time from a sector on.
fn rest_last(
    from: u64,
    end: u64,
    most: u64,
    mut run: impl FnMut(u64) -> u64,
    mut each: impl FnMut(u64, u64),
) {
    let mut list = vec![(from, end)];
    while let Some((from, end)) = list.pop() {
        let first = end.min(from + most);
        let part = first.min(from.saturating_add(run(from)));
        each(from, part - from);
        for rest in [(part, first), (first, end)] {
            if rest.0 < rest.1 {
                list.push(rest);
            }
        }
    }
}

/// The same in turn.
fn in_turn(
    from: u64,
    end: u64,
    most: u64,
    mut run: impl FnMut(u64) -> u64,
    mut each: impl FnMut(u64, u64),
) {
    let (mut at, mut request) = (from, from.saturating_add(most));
    while at < end {
        let part = run(at).min(request - at).min(end - at);
        each(at, part);
        at += part;
        if at == request {
            request = request.saturating_add(most);
        }
    }
}

/// How large requests are, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Larger ones the array takes apart.
    largest: u32,
    /// A member takes so much.
    member: u32,
    /// The rest of what is taken apart comes after all else.
    rests_last: bool,
}

impl Sizes {
    /// All are handed on as they come.
    pub(super) const ANY: Self = Self {
        largest: u32::MAX,
        member: u32::MAX,
        rests_last: false,
    };
}

impl Array {
    /// Members take so many sectors at a time, and the whole array `wide` if it has a limit of its own: what is larger the arrays of
    /// md take apart, as in this era.
    pub(crate) fn of_requests(mut self, era: &Era, most: u32, wide: Option<u32>) -> Self {
        let rests_last = era.rests_last;
        for index in (0..self.nodes.len()).rev() {
            let of = |child: &Child| match child {
                Child::Disk(_) => most,
                Child::Node(node) => self.nodes[usize::from(*node)].common.sizes.largest,
            };
            let node = &self.nodes[index];
            let member = node.common.children.iter().map(of).min().unwrap_or(most);
            self.nodes[index].common.sizes = Sizes {
                largest: node.own_largest(member),
                member,
                rests_last: rests_last && !matches!(node.shape, Shape::Raid0(_)),
            };
        }
        if let (Some(wide), Some(root)) = (wide, self.nodes.first_mut()) {
            root.common.sizes.largest = wide;
        }
        self
    }
}

impl Array {
    /// Members take requests of so many pages: an array with a stripe cache asks for no more rows at a time.
    pub(crate) fn of_pages(mut self, most: u32) -> Self {
        for node in &mut self.nodes {
            if let Shape::Parity(parity) = &mut node.shape {
                parity.limit_rows(most);
            }
        }
        self
    }
}

impl Node {
    /// What the level takes at most of members that take so much.
    fn own_largest(&self, member: u32) -> u32 {
        match &self.shape {
            Shape::Parity(parity) if parity.takes_rows() => member.min(PARITY_REQUEST),
            // Whole chunks at most in any case.
            Shape::Raid0(raid0) if raid0.chunk().0 <= u64::from(member) => u32::MAX,
            _ => member,
        }
    }

    /// Whether md or a member takes a request apart, other than by the level itself.
    #[inline]
    pub(super) const fn is_too_large(&self, bio: &Bio) -> bool {
        bio.sectors > self.common.sizes.largest
    }

    /// Takes a request part by part.
    // Apart, so that the common ways lie close together.
    #[inline(never)]
    pub(super) fn submit_large(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        let parent = core.open(up);
        let Sizes {
            largest,
            member,
            rests_last,
        } = self.common.sizes;
        let mut parts = Vec::new();
        let stripes = matches!(self.shape, Shape::Raid0(_));
        let run = |at| self.run(bio.kind, at);
        // A member that takes less than a chunk takes that in turn.
        let each = |at, sectors| {
            in_turn(
                at,
                at + sectors,
                u64::from(member),
                |_| u64::MAX,
                |at, sectors| {
                    parts.push((at, sectors as u32));
                },
            );
        };
        let (from, end) = (bio.lba.0, bio.end());
        match rests_last {
            // A chunk is a request.
            false if stripes => in_turn(from, end, u64::MAX, run, each),
            true => rest_last(from, end, u64::from(largest), run, each),
            false => in_turn(from, end, u64::from(largest), run, each),
        }
        for (at, sectors) in parts {
            core.parents.get_mut(parent).waits += 1;
            let part = Bio {
                lba: Lba(at),
                sectors,
                ..*bio
            };
            self.submit(core, Up::Part(u64::from(parent)), &part);
        }
        core.close(parent, Ok(()));
    }

    /// Sectors that the level takes at a time from `at` on.
    fn run(&mut self, kind: BlockKind, at: u64) -> u64 {
        let common = &self.common;
        match &mut self.shape {
            Shape::Linear(linear) => linear.place(at).1,
            Shape::Mirror(mirror) => mirror.run_at(at),
            Shape::Parity(parity) => parity.run_at(common, kind, at),
            Shape::Raid0(raid0) => raid0.place(at).1,
            Shape::Raidz(_) | Shape::Vdevs(_) | Shape::Btrfs(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(from: u64, end: u64, most: u64, chunk: u64) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        let run = |at| chunk - at % chunk;
        rest_last(from, end, most, run, |at, len| parts.push((at, len)));
        parts
    }

    /// A window of 2 MiB on raid10 with chunks of 512 KiB and requests of 1280 KiB, as it was seen in a guest of 6.1
    /// (`block_rq_issue` of the members): the first part, what is beyond 1280 KiB, and then the rest.
    #[test]
    fn what_is_beyond_the_largest_request_comes_before_the_rest_of_the_first() {
        assert_eq!(
            order(320, 320 + 4096, 2560, 1024),
            [
                (320, 704),
                (2880, 192),
                (3072, 1024),
                (4096, 320),
                (1024, 1024),
                (2048, 832)
            ]
        );
    }

    #[test]
    fn with_several_times_the_largest_request_the_rests_come_from_the_last_to_the_first() {
        assert_eq!(
            order(96, 96 + 384, 128, 128),
            [
                (96, 32),
                (224, 32),
                (352, 32),
                (384, 96),
                (256, 96),
                (128, 96)
            ]
        );
        assert_eq!(order(128, 384, 128, 128), [(128, 128), (256, 128)]);
    }

    #[test]
    fn all_of_it_comes_once() {
        for (from, end, most, chunk) in [(7, 5000, 320, 128), (0, 1, 8, 8), (5, 9999, 100, 1024)] {
            let mut parts = order(from, end, most, chunk);
            parts.sort_unstable();
            let mut at = from;
            for (begin, len) in parts {
                assert!(begin == at && len > 0 && len <= most);
                at += len;
            }
            assert_eq!(at, end);
        }
    }
}
