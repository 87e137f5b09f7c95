//! ZFS pools: vdevs of one kind with data spread over them.
use crate::error::{LayoutError, SpecError};
use crate::raidz::Raidz;
use crate::survival::{Survival, Tolerance};
use crate::types::{Member, MemberSet};
use crate::zfs::{END, START, ZfsMirror, metaslab};
use raidlab_core::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// Of so many parts of a pool one is never given to files (`spa_slop_shift`).
const SLOP: u64 = 32;
/// A block of pointers, how many it holds and how many copies of it there are (`SPA_BLKPTRSHIFT`, `DN_MAX_INDBLKSHIFT`).
const POINTERS: Bytes = Bytes::kib(128);
const POINTERS_IN: u64 = 1024;
const POINTER_COPIES: u64 = 2;

/// The kind of vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VdevKind {
    /// All children hold the same.
    Mirror,
    /// RAID-Z with this many parities, 1 to 3.
    Raidz(usize),
}

/// What kind of pool is asked for. Read from a text:
///
/// | text | meaning |
/// |---|---|
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

    /// The pool over members of these sizes, the first vdev from the first ones.
    ///
    /// # Errors
    /// [`SpecError::Members`] when the shape has another number of members, [`SpecError::Layout`] when a vdev cannot
    /// be made of them.
    pub fn build(&self, sizes: &[Bytes], ashift: u32) -> Result<Pool, SpecError> {
        let (groups, each) = self.shape.unwrap_or((1, sizes.len()));
        if sizes.len() != groups * each {
            return Err(SpecError::Members {
                groups,
                each,
                given: sizes.len(),
            });
        }
        let vdev = |sizes: &[Bytes]| -> Result<Vdev, LayoutError> {
            Ok(match self.kind {
                VdevKind::Mirror => Vdev::Mirror(ZfsMirror::new(sizes, ashift)?),
                VdevKind::Raidz(parity) => Vdev::Raidz(Raidz::new(sizes, parity, ashift)?),
            })
        };
        // No members at all are no chunks either.
        let parts = sizes.chunks(each.max(1)).map(|sizes| {
            let smallest = sizes.iter().min().copied().unwrap_or_default();
            Ok((vdev(sizes)?, smallest))
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
    /// A mirror.
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
mod tests {
    use super::*;

    fn pool(text: &str, members: usize) -> Pool {
        let spec: PoolSpec = text.parse().unwrap();
        spec.build(&vec![Bytes::gib(1); members], 12).unwrap()
    }

    #[test]
    fn a_text_is_read_and_told_again() {
        for (text, told) in [
            ("zfs-mirror", "zfs-mirror"),
            ("raidz", "raidz1"),
            ("RAIDZ3", "raidz3"),
            ("zfs-mirror 2x2", "zfs-mirror 2x2"),
            (" raidz2  2 x 6", "raidz2 2x6"),
        ] {
            assert_eq!(text.parse::<PoolSpec>().unwrap().to_string(), told);
        }
        for text in ["mirror", "raidz4", "zfs", "raidz1 2", "zfs-mirror two"] {
            assert!(text.parse::<PoolSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn striped_mirrors_survive_one_of_each() {
        let pool = pool("zfs-mirror 2x2", 4);
        let of = |members: &[usize]| {
            let failed: MemberSet = members.iter().copied().map(Member::new).collect();
            pool.survives(failed)
        };
        assert_eq!(of(&[]), Survival::Intact);
        assert_eq!(of(&[0, 3]), Survival::Degraded);
        assert_eq!(of(&[2, 3]), Survival::Lost);
        assert_eq!(pool.guaranteed(), 1);
        // Of six pairs, the two that are a mirror are fatal.
        assert_eq!(pool.second_failures(), Some(4.0 / 6.0));
        assert_eq!(pool.capacity(), Bytes::gib(2));
    }

    /// All patterns of failures, one by one.
    #[test]
    fn the_patterns_that_are_survived_are_counted() {
        for (text, members) in [
            ("zfs-mirror 2x2", 4),
            ("zfs-mirror 2x3", 6),
            ("raidz1 3x3", 9),
            ("raidz2 2x4", 8),
            ("raidz3", 6),
        ] {
            let pool = pool(text, members);
            let mut survived = vec![0_u128; members + 1];
            for bits in 0..1_u32 << members {
                let failed = (0..members).filter(|member| bits >> member & 1 == 1);
                if pool.survives(failed.map(Member::new).collect()) != Survival::Lost {
                    survived[bits.count_ones() as usize] += 1;
                }
            }
            let tolerance = pool.tolerance();
            assert_eq!(tolerance.members(), members);
            let counted: Vec<u128> = (0..=members).map(|k| tolerance.survived(k)).collect();
            assert_eq!(counted, survived, "{text}");
            assert_eq!(tolerance.guaranteed(), pool.guaranteed(), "{text}");
        }
    }

    #[test]
    fn a_shape_fixes_the_number_of_members() {
        let of = |text: &str| text.parse::<PoolSpec>().unwrap().shape_members();
        assert_eq!(of("raidz2 2x6"), Some(12));
        assert_eq!(of("raidz2"), None);
    }

    #[test]
    fn room_is_what_slop_and_pointers_leave_of_whole_metaslabs() {
        // Of 1019.5 MiB fifteen metaslabs of 64 MiB; a record of 128 KiB has two copies of a 1024th of a block of pointers.
        let whole = Bytes::mib(15 * 64).0;
        let left = whole - whole / 32;
        let pool = pool("zfs-mirror", 2);
        assert_eq!(pool.room(Bytes::kib(128), true), Bytes(left * 512 / 513));
        // Of small records the pointers are a larger part.
        assert_eq!(pool.room(Bytes::kib(4), true), Bytes(left * 16 / 17));
    }

    #[test]
    fn parities_and_filling_are_taken_off() {
        assert_eq!(pool("raidz1", 5).capacity(), Bytes::gib(4));
        // 32 units of data take 44.
        let four = pool("raidz1", 4).capacity().0 as f64 / Bytes::gib(1).0 as f64;
        assert!((four - 4.0 * 32.0 / 44.0).abs() < 1e-6, "{four}");
        assert_eq!(pool("raidz2", 6).second_failures(), Some(1.0));
        assert_eq!(pool("raidz1", 4).second_failures(), Some(0.0));
        assert_eq!(pool("raidz3 2x4", 8).guaranteed(), 3);
        assert_eq!(pool("raidz3 2x4", 8).vdevs().count(), 2);
        for vdev in [pool("raidz2", 5), pool("zfs-mirror", 2)] {
            assert!(vdev.vdevs().all(|vdev| vdev.of_child() == Bytes::gib(1)));
        }
    }

    #[test]
    fn another_number_of_members_is_refused() {
        let spec: PoolSpec = "zfs-mirror 2x2".parse().unwrap();
        let told = spec.build(&[Bytes::gib(1); 3], 12).unwrap_err().to_string();
        assert!(
            told.contains("2x2 has 4 members and 3 were given"),
            "{told}"
        );
        let spec: PoolSpec = "raidz1".parse().unwrap();
        assert!(spec.build(&[], 12).is_err());
    }
}
