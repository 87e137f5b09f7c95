//! ZFS pools: vdevs of one kind with data spread over them.
use crate::error::{LayoutError, SpecError};
use crate::raidz::Raidz;
use crate::survival::{Survival, Tolerance};
use crate::types::{Member, MemberSet};
use crate::zfs::{END, START, ZfsMirror, count, metaslab};
use raidlab_core::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// Of so many parts of a pool one is never given to files (`spa_slop_shift`).
const SLOP: u64 = 32;
/// A block of pointers, how many it holds and how many copies of it there are (`SPA_BLKPTRSHIFT`, `DN_MAX_INDBLKSHIFT`).
const POINTERS: Bytes = Bytes::kib(128);
const POINTERS_IN: u64 = 1024;
const POINTER_COPIES: u64 = 2;

/// What pools there are, for messages: the kinds of [`PoolSpec`].
pub const POOLS: &str = "zfs-stripe, zfs-mirror, raidz1, raidz2, raidz3";

/// The kind of vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VdevKind {
    /// A disk alone: nothing is kept twice.
    Disk,
    /// All children hold the same.
    Mirror,
    /// RAID-Z with this many parities, 1 to 3.
    Raidz(usize),
}

/// What kind of pool is asked for. Read from a text:
///
/// | text | meaning |
/// |---|---|
/// | `zfs-stripe` | data spread over all members, each a vdev of its own |
/// | `zfs-mirror` | one mirror of all members |
/// | `zfs-mirror 2x3` | data spread over 2 mirrors of 3 members each |
/// | `raidz` or `raidz1`, `raidz2`, `raidz3` | one RAID-Z of all members with so many parities |
/// | `raidz2 2x6` | data spread over 2 of 6 members each |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolSpec {
    /// Of all its vdevs.
    pub kind: VdevKind,
    /// Vdevs, and members of each; `None`: one of all members.
    pub shape: Option<(usize, usize)>,
}

impl PoolSpec {
    /// The number of members that the shape fixes.
    #[must_use]
    pub fn shape_members(&self) -> Option<usize> {
        self.shape.map(|(groups, each)| groups * each)
    }

    /// Of so many members: vdevs, and members of each.
    #[must_use]
    pub fn vdevs_of(&self, members: usize) -> (usize, usize) {
        match (self.kind, self.shape) {
            (_, Some(shape)) => shape,
            (VdevKind::Disk, None) => (members, 1),
            (VdevKind::Mirror | VdevKind::Raidz(_), None) => (1, members),
        }
    }

    /// The pool over members of these sizes, the first vdev from the first ones.
    ///
    /// # Errors
    /// [`SpecError::Members`] when the shape has another number of members, [`SpecError::Layout`] when a vdev cannot
    /// be made of them.
    pub fn build(&self, sizes: &[Bytes], ashift: u32) -> Result<Pool, SpecError> {
        let (groups, each) = self.vdevs_of(sizes.len());
        if sizes.len() != groups * each {
            return Err(SpecError::Members {
                groups,
                each,
                given: sizes.len(),
            });
        }
        let vdev = |sizes: &[Bytes]| -> Result<Vdev, LayoutError> {
            Ok(match self.kind {
                VdevKind::Disk => Vdev::Mirror(ZfsMirror::of_one(sizes, ashift)?),
                VdevKind::Mirror => Vdev::Mirror(ZfsMirror::new(sizes, ashift)?),
                VdevKind::Raidz(parity) => Vdev::Raidz(Raidz::new(sizes, parity, ashift)?),
            })
        };
        if self.kind == VdevKind::Disk {
            count("a ZFS stripe", sizes.len(), 1, None)?;
        }
        // No members at all are no chunks either.
        let parts = sizes.chunks(each.max(1)).enumerate().map(|(index, sizes)| {
            let smallest = sizes.iter().min().copied().unwrap_or_default();
            let vdev = vdev(sizes).map_err(|error| error.of_members_from(index * each))?;
            Ok((vdev, smallest))
        });
        let parts: Vec<(Vdev, Bytes)> = parts.collect::<Result<_, LayoutError>>()?;
        if parts.is_empty() {
            vdev(&[])?;
        }
        Ok(Pool { parts })
    }
}

impl fmt::Display for PoolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            VdevKind::Disk => f.write_str("zfs-stripe")?,
            VdevKind::Mirror => f.write_str("zfs-mirror")?,
            VdevKind::Raidz(parity) => write!(f, "raidz{parity}")?,
        }
        match self.shape {
            Some((groups, each)) => write!(f, " {groups}x{each}"),
            None => Ok(()),
        }
    }
}

impl FromStr for PoolSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, shape) = match lower.split_once(char::is_whitespace) {
            Some((name, shape)) => (name, Some(crate::spec::shape(shape.trim())?)),
            None => (lower.as_str(), None),
        };
        let kind = match name {
            "zfs-stripe" if shape.is_some() => return Err(SpecError::NotNested(name.into())),
            "zfs-stripe" => VdevKind::Disk,
            "zfs-mirror" => VdevKind::Mirror,
            "raidz" | "raidz1" => VdevKind::Raidz(1),
            "raidz2" => VdevKind::Raidz(2),
            "raidz3" => VdevKind::Raidz(3),
            _ => return Err(SpecError::Zfs(name.into())),
        };
        Ok(Self { kind, shape })
    }
}

/// One vdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vdev {
    /// A mirror, or a disk alone, which is as one of a single child.
    Mirror(ZfsMirror),
    /// A RAID-Z.
    Raidz(Raidz),
}

impl Vdev {
    /// Number of its members.
    #[must_use]
    pub const fn children(&self) -> usize {
        match self {
            Self::Mirror(mirror) => mirror.children(),
            Self::Raidz(raidz) => raidz.children(),
        }
    }

    /// log2 of the unit of allocation in bytes.
    #[must_use]
    pub const fn ashift(&self) -> u32 {
        match self {
            Self::Mirror(mirror) => mirror.ashift(),
            Self::Raidz(raidz) => raidz.ashift(),
        }
    }

    /// Bytes that a block of `psize` bytes (after compression) takes of it, parity and filling included.
    #[must_use]
    pub const fn allocated(&self, psize: Bytes) -> Bytes {
        match self {
            Self::Mirror(mirror) => mirror.allocated(psize),
            Self::Raidz(raidz) => raidz.allocated(psize),
        }
    }

    /// Bytes that can be allocated at most: the space that offsets of ZFS are in.
    #[must_use]
    pub const fn allocatable(&self) -> Bytes {
        match self {
            Self::Mirror(mirror) => mirror.allocatable(),
            Self::Raidz(raidz) => raidz.allocatable(),
        }
    }

    /// Bytes of each child that it uses, labels included.
    #[must_use]
    pub const fn of_child(&self) -> Bytes {
        let data = match self {
            Self::Mirror(mirror) => mirror.allocatable().0,
            Self::Raidz(raidz) => raidz.allocatable().0 / raidz.children() as u64,
        };
        Bytes(START + data + END)
    }

    /// What is left with these children failed.
    #[must_use]
    pub const fn survives(&self, failed: MemberSet) -> Survival {
        match self {
            Self::Mirror(mirror) => mirror.survives(failed),
            Self::Raidz(raidz) => raidz.survives(failed),
        }
    }
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its vdevs, with the size of the smallest member of each.
    parts: Vec<(Vdev, Bytes)>,
}

impl Pool {
    /// The vdevs, in the order of their members.
    pub fn vdevs(&self) -> impl Iterator<Item = &Vdev> {
        self.parts.iter().map(|(vdev, _)| vdev)
    }

    /// The vdevs, each with the size of its smallest member.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&Vdev, Bytes)> {
        self.parts.iter().map(|(vdev, smallest)| (vdev, *smallest))
    }

    /// Number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.vdevs().map(Vdev::children).sum()
    }

    /// Bytes of data that fit when labels and slop are left aside and all blocks have 128 KiB, as ZFS counts: parity
    /// and what RAID-Z fills blocks up with are taken off.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        let of = |(vdev, smallest): &(Vdev, Bytes)| match vdev {
            Vdev::Mirror(_) => smallest.0,
            Vdev::Raidz(raidz) => raidz.usable(*smallest).0,
        };
        Bytes(self.parts.iter().map(of).sum())
    }

    /// Bytes of files in records of so many bytes that fit at most: in whole metaslabs (`since_08`: those of ZFS 0.8 and later),
    /// without the slop of 1/32 that is kept back, and with two copies of a pointer for each record as if they did not
    /// compress. Less than [`capacity`](Self::capacity), by which ZFS tells what is free.
    #[must_use]
    pub fn room(&self, record: Bytes, since_08: bool) -> Bytes {
        let of = |vdev: &Vdev| {
            let all = vdev.allocatable();
            let metaslab = metaslab(all, since_08).0.min(all.0).max(1);
            all.0 / metaslab * metaslab
        };
        let whole: u64 = self.vdevs().map(of).sum();
        let taken = |vdev: &Vdev| {
            vdev.allocated(record).0 + POINTER_COPIES * vdev.allocated(POINTERS).0 / POINTERS_IN
        };
        let record_takes = self.vdevs().map(taken).max().unwrap_or(1).max(1);
        let room =
            u128::from(whole - whole / SLOP) * u128::from(record.0) / u128::from(record_takes);
        Bytes(room as u64)
    }

    /// What is left with these members failed. A pool is lost with any of its vdevs.
    #[must_use]
    pub fn survives(&self, failed: MemberSet) -> Survival {
        let mut from = 0;
        let mut worst = Survival::Intact;
        for vdev in self.vdevs() {
            let own =
                (0..vdev.children()).filter(|child| failed.contains(Member::new(from + child)));
            let own: MemberSet = own.map(Member::new).collect();
            worst = worst.max(vdev.survives(own));
            from += vdev.children();
        }
        worst
    }

    /// How many failures it survives, over all patterns.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        let of = |vdev: &Vdev| match vdev {
            Vdev::Mirror(mirror) => (mirror.children(), mirror.children() - 1),
            Vdev::Raidz(raidz) => (raidz.children(), raidz.parity()),
        };
        Tolerance::of_vdevs(self.vdevs().map(of))
    }

    /// Any so many failures are survived.
    #[must_use]
    pub fn guaranteed(&self) -> usize {
        let of = |vdev: &Vdev| match vdev {
            Vdev::Mirror(mirror) => mirror.children() - 1,
            Vdev::Raidz(raidz) => raidz.parity(),
        };
        self.vdevs().map(of).min().unwrap_or(0)
    }

    /// Share of second failures that is survived, over all first ones; `None` when some first one is not.
    #[must_use]
    pub fn second_failures(&self) -> Option<f64> {
        let n = self.members();
        if self.guaranteed() == 0 || n < 2 {
            return None;
        }
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let survived = |(a, b): &(usize, usize)| {
            let failed: MemberSet = [*a, *b].into_iter().map(Member::new).collect();
            self.survives(failed) != Survival::Lost
        };
        let all = n * (n - 1) / 2;
        Some(pairs.filter(survived).count() as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests;
