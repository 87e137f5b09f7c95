//! What all levels of an array share: requests in flight, and the two ways they go.
//!
//! A request from above becomes a *parent* that counts what it waits for. What goes to a member is an
//! *op*; its number is the identity of the member's request. In an array of arrays a member may be
//! another array: then the op is the origin of that array's parent.
use super::clean::Clean;
use super::slab::Slab;
use crate::block::{Bio, Ended, Origin};
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;
use std::collections::VecDeque;

/// A request of an array to one member, by the member's number in the whole array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberBio {
    /// Which member.
    pub member: u16,
    /// What is asked of it; its `id` comes back with [`super::Array::member_ended`].
    pub bio: Bio,
}

/// Who waits for a request: each kind with a word, so that it goes from hand to hand in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Up {
    /// Whoever uses the array, by its identity.
    Host(u64),
    /// An op of the array above, by its number.
    Op(u64),
    /// The resync of an array of the tree.
    Sync(OfResync),
    /// A request that is kept apart from a resync.
    Guard(u64),
    /// A request of the same array that it is a part of, by the parent's number.
    Part(u64),
}

/// A request of the resync of an array of the tree: which array in the upper 16 bits, and its number in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfResync(u64);

impl OfResync {
    const BITS: u32 = 48;

    pub(super) fn new(node: u16, number: u64) -> Self {
        debug_assert!(number >> Self::BITS == 0, "so many requests take ages");
        Self((u64::from(node) << Self::BITS) | number)
    }

    /// The array, and the number of the request.
    pub(super) const fn parts(self) -> (u16, u64) {
        let number = self.0 & ((1 << Self::BITS) - 1);
        ((self.0 >> Self::BITS) as u16, number)
    }
}

/// A request that waits for its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    pub(super) up: Up,
    pub(super) waits: u32,
    pub(super) error: Option<DiskError>,
}

/// What a request of an array of the tree is followed for until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardOf {
    /// It is kept apart from the resync.
    Resync,
    /// It is noted in the bitmap.
    Bitmap,
    /// It is a write, while which the array is not clean.
    Clean,
}

/// A request that is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) up: Up,
    pub(super) node: u16,
    pub(super) from: u64,
    pub(super) end: u64,
    pub(super) of: GuardOf,
}

/// What an op is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A part of a parent's request.
    Part(u32),
    /// Blocks of a band of a parity array.
    Band(u32),
    /// A copy of a mirror's resync.
    Copy(u32),
    /// A block of a resilver.
    Resilver(u32),
    /// A part of what a member of btrfs is replaced with.
    Replace(u32),
    /// A part of a row of btrfs with parity, which [`Op::at`] tells.
    Row,
    /// A page of the bitmap.
    Bitmap(u32),
    /// The superblock.
    Superblock,
}

/// A member of one array of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// A disk, by the number of the member in the whole array.
    Disk(u16),
    /// Another array, by its place in the tree.
    Node(u16),
}

/// Something asked of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    /// Which array of the tree asked, and which of its members.
    pub(super) node: u16,
    pub(super) role: u16,
    pub(super) task: Task,
    /// Where on the array that asked, for another try elsewhere (mirrors); the first address of a row of btrfs.
    pub(super) at: u64,
    pub(super) kind: BlockKind,
    pub(super) lba: u64,
    pub(super) sectors: u32,
    pub(super) fua: bool,
    pub(super) origin: Origin,
    /// Members that were tried before.
    pub(super) tries: u16,
}

impl Op {
    /// A flush that somebody waits for, before a page of the array's own is written.
    pub(super) fn flush(node: u16, role: u16, task: Task) -> Self {
        Self {
            node,
            role,
            task,
            at: 0,
            kind: BlockKind::Flush,
            lba: 0,
            sectors: 0,
            fua: false,
            origin: Origin {
                sync: true,
                ..Origin::default()
            },
            tries: 0,
        }
    }

    /// A request of whoever fills new members.
    pub(super) fn refill(
        node: u16,
        task: Task,
        kind: BlockKind,
        (role, lba, sectors): (u16, u64, u32),
    ) -> Self {
        Self {
            node,
            role,
            task,
            at: lba,
            kind,
            lba,
            sectors,
            fua: false,
            origin: Origin::resync(kind),
            tries: 0,
        }
    }
}

/// Something to be done within the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// A request to an array of the tree.
    Submit { node: u16, up: Up, bio: Bio },
    /// An op on an array of the tree has ended.
    End {
        op: u32,
        result: Result<(), DiskError>,
    },
    /// A request of the resync of an array has ended.
    Synced { node: u16, number: u64 },
    /// A guarded request of an array has ended.
    Left(Guard),
}

/// What a resync hears of others on one member (`md.c:is_mddev_idle`): sectors that have ended, less those that
/// resyncs have sent. What a resync has in flight hides others' requests from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// Sectors that have ended, less those that resyncs have sent.
    pub(super) events: i64,
    /// That, when somebody was heard last.
    pub(super) last: i64,
    /// Sectors that a resync has asked of the array's thread, which has not come to them yet.
    pub(super) asked: i64,
    /// Sectors of others that have ended, and their requests under way.
    pub(super) others: i64,
    pub(super) under_way: u32,
}

/// Requests in flight of the whole tree.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) now: Instant,
    pub(super) ops: Slab<Op>,
    pub(super) parents: Slab<Parent>,
    pub(super) out: Vec<MemberBio>,
    pub(super) ended: Vec<Ended>,
    pub(super) work: VecDeque<Work>,
    pub(super) guards: Slab<Guard>,
    /// By array of the tree, if some have superblocks to say whether they are clean.
    pub(super) clean: Vec<Option<Clean>>,
    /// Sectors before the data of each disk that are told, too: those of the disks begin so far before those of their array.
    pub(super) base: u64,
    /// By array of the tree and role, while there is a resync.
    pub(super) heard: Vec<Vec<Heard>>,
    /// A resync asks the array's thread, which comes to it when the resync waits.
    pub(super) asks_thread: bool,
    /// It has asked the thread for something that this has not come to yet.
    asked: bool,
    /// When somebody beside resilvers asked last, while there is one.
    pub(super) others: Option<Instant>,
    /// When a resilver ended last.
    pub(super) resilvered: Option<Instant>,
    /// Sectors that resyncs, rebuilds and resilvers have asked of disks.
    pub(super) refilled: u64,
}

impl Core {
    pub(super) const fn new() -> Self {
        Self {
            now: Instant::ZERO,
            ops: Slab::new(),
            parents: Slab::new(),
            out: Vec::new(),
            ended: Vec::new(),
            work: VecDeque::new(),
            guards: Slab::new(),
            clean: Vec::new(),
            base: 0,
            heard: Vec::new(),
            asks_thread: false,
            asked: false,
            others: None,
            resilvered: None,
            refilled: 0,
        }
    }

    /// A request that waits for one thing: that its parts are made.
    #[inline]
    pub(super) fn open(&mut self, up: Up) -> u32 {
        self.parents.insert(Parent {
            up,
            waits: 1,
            error: None,
        })
    }

    /// One thing less to wait for.
    #[inline]
    pub(super) fn close(&mut self, parent: u32, result: Result<(), DiskError>) {
        let entry = self.parents.get_mut(parent);
        entry.waits -= 1;
        if let Err(error) = result {
            entry.error.get_or_insert(error);
        }
        if entry.waits == 0 {
            let Parent { up, error, .. } = self.parents.remove(parent);
            self.finish(up, error.map_or(Ok(()), Err));
        }
    }

    /// A request has ended.
    #[inline]
    pub(super) fn finish(&mut self, up: Up, result: Result<(), DiskError>) {
        match up {
            Up::Host(id) => self.ended.push(Ended {
                id,
                at: self.now,
                result,
            }),
            Up::Op(op) => self.work.push_back(Work::End {
                op: op as u32,
                result,
            }),
            Up::Sync(_) | Up::Guard(_) | Up::Part(_) => self.finish_rare(up, result),
        }
    }

    // Apart, so that the common ways lie close together.
    #[inline(never)]
    fn finish_rare(&mut self, up: Up, result: Result<(), DiskError>) {
        match up {
            Up::Sync(request) => {
                let (node, number) = request.parts();
                self.work.push_back(Work::Synced { node, number });
            }
            Up::Guard(guard) => {
                let guard = self.guards.remove(guard as u32);
                let now = self.now;
                match (guard.of, self.clean_of(guard.node)) {
                    (GuardOf::Clean, Some(clean)) => clean.ends(now),
                    _ => self.work.push_back(Work::Left(guard)),
                }
                self.finish(guard.up, result);
            }
            Up::Part(parent) => self.close(parent as u32, result),
            Up::Host(_) | Up::Op(_) => self.finish(up, result),
        }
    }

    /// Asks a member.
    #[inline(always)]
    pub(super) fn ask(&mut self, child: Child, op: Op) {
        if !self.heard.is_empty() {
            let heard = &mut self.heard[usize::from(op.node)][usize::from(op.role)];
            match (op.origin.background, self.asks_thread) {
                (true, true) => {
                    heard.asked += i64::from(op.sectors);
                    self.asked = true;
                }
                (true, false) => heard.events -= i64::from(op.sectors),
                (false, _) => heard.under_way += 1,
            }
        }
        let id = self.ops.insert(op);
        let bio = Bio {
            id: u64::from(id),
            kind: op.kind,
            lba: Lba(op.lba),
            sectors: op.sectors,
            fua: op.fua,
            origin: op.origin,
        };
        match child {
            Child::Disk(member) => {
                self.refilled += u64::from(op.sectors) * u64::from(op.origin.background);
                let lba = Lba(op.lba.wrapping_add(self.base));
                let bio = Bio { lba, ..bio };
                self.out.push(MemberBio { member, bio });
            }
            Child::Node(node) => self.work.push_back(Work::Submit {
                node,
                up: Up::Op(u64::from(id)),
                bio,
            }),
        }
    }

    /// The thread of an array comes to what its resync has asked for, and sends it (`raid5.c:ops_run_io`).
    pub(super) fn come_to(&mut self, node: usize) {
        self.asks_thread = false;
        if !std::mem::take(&mut self.asked) {
            return;
        }
        for heard in self.heard.get_mut(node).into_iter().flatten() {
            heard.events -= std::mem::take(&mut heard.asked);
        }
    }

    /// An op has ended.
    #[inline]
    pub(super) fn hear(&mut self, op: &Op) {
        if !self.heard.is_empty() {
            let heard = &mut self.heard[usize::from(op.node)][usize::from(op.role)];
            heard.events += i64::from(op.sectors);
            if !op.origin.background {
                heard.others += i64::from(op.sectors);
                heard.under_way -= 1;
            }
        }
    }

    /// Asks a member for a part of `parent`'s request.
    #[inline]
    pub(super) fn ask_part(&mut self, child: Child, parent: u32, op: Op) {
        self.parents.get_mut(parent).waits += 1;
        self.ask(child, op);
    }
}
