//! RAID-Z: each request is a block of ZFS, and its columns go to the children.
//!
//! A block is read and written as a whole, so that each touches as many children as it has columns: a block of more
//! data than a row has units touches them all, and a vdev does no more random I/O than one child. Parity is read only when
//! data is missing.
//!
//! Units that only fill a block up are written with the column before them, always; ZFS does so when the next block is
//! written as well, which in a stream is nearly always. Those of a block of less than a row have no column before them, and
//! are left alone.
//!
//! Left out: a column that cannot be read although its child is there is not computed from the others.
use super::core::{Core, Op, Task, Up};
use super::node::Common;
use super::resilver::Needs;
use crate::block::Bio;
use raidlab_core::op::BlockKind;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_layout::raidz::{Column, ColumnKind};
use raidlab_layout::zfs::{END, START};
use raidlab_layout::{MemberSet, Raidz, Survival};

/// A vdev with parity.
#[derive(Clone, Debug)]
pub(super) struct RaidzVdev {
    raidz: Raidz,
    /// Sectors of a child that are used.
    child: u64,
}

impl RaidzVdev {
    pub(super) const fn new(raidz: Raidz, child: Bytes) -> Self {
        Self {
            raidz,
            child: child.0 / SECTOR,
        }
    }

    /// Whether there is enough without these children.
    pub(super) fn survives(&self, missing: MemberSet) -> bool {
        self.raidz.survives(missing) != Survival::Lost
    }

    pub(super) fn submit(&self, common: &Common, core: &mut Core, up: Up, bio: &Bio) {
        let parent = core.open(up);
        let op = Op {
            node: common.index,
            role: 0,
            task: Task::Part(parent),
            at: bio.lba.0,
            kind: bio.kind,
            lba: 0,
            sectors: bio.sectors,
            fua: bio.fua,
            origin: bio.origin,
            tries: 0,
        };
        if let Some(lba) = self.label(common, bio) {
            self.labels(common, core, parent, Op { lba, ..op });
        } else {
            let offset = Bytes(bio.lba.0 * SECTOR - START);
            let size = Bytes(u64::from(bio.sectors) * SECTOR);
            let mut columns = self.raidz.columns(offset, size);
            if bio.kind == BlockKind::Write {
                self.fill_up(&mut columns, offset, size);
            }
            let new = common.lacks(bio.lba.0, u64::from(bio.sectors));
            for column in self.wanted(common, bio.kind, columns, new) {
                let op = Op {
                    role: column.child.0,
                    lba: column.at.0 / SECTOR,
                    sectors: (column.size.0 / SECTOR) as u32,
                    ..op
                };
                core.ask_part(common.children[column.child.index()], parent, op);
            }
        }
        core.close(parent, Ok(()));
    }

    /// Makes columns longer by the units that follow them and only fill the block up: what is written of the block after
    /// it then follows on each child, as ZFS has it, which else would leave a gap in a stream, a turn of the disk at each.
    fn fill_up(&self, columns: &mut [Column], offset: Bytes, size: Bytes) {
        let unit = 1 << self.raidz.ashift();
        for (child, at) in self.raidz.filling(offset, size) {
            let ends = |c: &&mut Column| c.child == child && c.at.0 + c.size.0 == at.0;
            if let Some(column) = columns.iter_mut().find(ends) {
                column.size.0 += unit;
            }
        }
    }

    /// Where on each child it is, if it is in the labels: those at the end are as far from the child's end.
    fn label(&self, common: &Common, bio: &Bio) -> Option<u64> {
        if bio.end() <= START / SECTOR {
            return Some(bio.lba.0);
        }
        let from_end = common.capacity - bio.lba.0;
        (from_end <= END / SECTOR).then(|| self.child - from_end)
    }

    /// Labels are written to all children, and read from one.
    fn labels(&self, common: &Common, core: &mut Core, parent: u32, op: Op) {
        let all = MemberSet::first(self.raidz.children()).without(common.gone);
        let count = if op.kind == BlockKind::Read {
            1
        } else {
            all.len()
        };
        for child in all.iter().take(count) {
            let op = Op {
                role: child.0,
                ..op
            };
            core.ask_part(common.children[child.index()], parent, op);
        }
    }

    /// What a block has in common with those that lack as much on the same children ([`Raidz::turn`]).
    pub(super) const fn turn(&self, at: u64) -> u64 {
        self.raidz.turn(Bytes(at * SECTOR - START))
    }

    /// Parities.
    pub(super) const fn parity(&self) -> usize {
        self.raidz.parity()
    }

    /// What a block of a resilver asks for: all columns that are there, parity as well, and those that new children lack. When
    /// it is only read, what a read asks for.
    pub(super) fn resilver(
        &self,
        common: &Common,
        at: u64,
        sectors: u32,
        only_read: bool,
    ) -> Needs {
        let (offset, size) = (
            Bytes(at * SECTOR - START),
            Bytes(u64::from(sectors) * SECTOR),
        );
        let columns = self.raidz.columns(offset, size);
        let part = |c: &Column| (c.child.0, c.at.0 / SECTOR, (c.size.0 / SECTOR) as u32);
        if only_read {
            let reads = self.wanted(common, BlockKind::Read, columns, true);
            return Needs {
                reads: reads.iter().map(part).collect(),
                writes: Vec::new(),
            };
        }
        let missing = common.gone.union(common.filling);
        let there = |c: &&Column| !missing.contains(c.child);
        let new = |c: &&Column| common.filling.contains(c.child);
        Needs {
            reads: columns.iter().filter(there).map(part).collect(),
            writes: columns.iter().filter(new).map(part).collect(),
        }
    }

    /// The columns that are asked for: all that can be written; of reads the data, and a parity for each that is
    /// missing. Of a block that is older than a `new` child that child has nothing yet.
    fn wanted(
        &self,
        common: &Common,
        kind: BlockKind,
        columns: Vec<Column>,
        new: bool,
    ) -> Vec<Column> {
        let is_data = |column: &Column| matches!(column.kind, ColumnKind::Data(_));
        let lacks = |child| new && kind == BlockKind::Read && common.filling.contains(child);
        let gone = |column: &Column| common.gone.contains(column.child) || lacks(column.child);
        let mut missing = columns.iter().filter(|c| is_data(c) && gone(c)).count();
        let wanted = columns.into_iter().filter(|column| {
            if gone(column) {
                return false;
            }
            if kind != BlockKind::Read || is_data(column) {
                return true;
            }
            let needed = missing > 0;
            missing = missing.saturating_sub(1);
            needed
        });
        wanted.collect()
    }
}
