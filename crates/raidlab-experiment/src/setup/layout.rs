//! Layouts of arrays, as experiments write them.
use crate::words::by_text;
use raidlab_layout::{BtrfsProfile, PoolSpec, Spec, VdevKind};
use std::fmt;
use std::str::FromStr;

/// Which member sector holds which array sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayLayout {
    /// One disk as it is.
    Single,
    /// Any layout with fixed places, as it was written.
    Fixed(Spec, String),
    /// A pool of ZFS: disks alone, mirrors or RAID-Z.
    Zfs(PoolSpec),
}

impl ArrayLayout {
    /// The level without its variant and shape: `raid10` of `raid10-f2`, `raid50` of `raid5-la+0 2x3`.
    #[must_use]
    pub fn level(&self) -> String {
        match self {
            Self::Single => "single".to_owned(),
            Self::Zfs(pool) => match (pool.kind, pool.shape) {
                (VdevKind::Disk, _) => "raid0".to_owned(),
                (VdevKind::Mirror, None) => "raid1".to_owned(),
                (VdevKind::Mirror, Some(_)) => "raid10".to_owned(),
                (VdevKind::Raidz(parity), _) => format!("raidz{parity}"),
            },
            Self::Fixed(_, text) => {
                let name = text.split(' ').next().unwrap_or(text);
                let of = |part: &str| part.split('-').next().unwrap_or(part).to_owned();
                name.split('+').map(of).collect()
            }
        }
    }

    /// Failures that btrfs is sure to survive with it, where it keeps copies.
    #[must_use]
    pub fn btrfs_spare(&self) -> Option<usize> {
        let Self::Fixed(_, text) = self else {
            return None;
        };
        let copies = |profile: &BtrfsProfile| profile.copies() > 1;
        let profile = BtrfsProfile::of(text).filter(copies)?;
        Some(profile.survives())
    }

    /// Parities that btrfs keeps with it, as many as it survives failures; 0 where it keeps none.
    #[must_use]
    pub fn btrfs_parities(&self) -> usize {
        let Self::Fixed(_, text) = self else {
            return 0;
        };
        BtrfsProfile::of(text).map_or(0, BtrfsProfile::parities)
    }

    /// Whether btrfs alone has it.
    #[must_use]
    pub fn is_of_btrfs(&self) -> bool {
        matches!(self.level().as_str(), "raid1c3" | "raid1c4")
    }

    /// Whether it holds anything twice, or parity.
    #[must_use]
    pub fn is_redundant(&self) -> bool {
        !matches!(
            self.level().as_str(),
            "single" | "linear" | "jbod" | "raid0"
        )
    }

    /// Whether the chunk makes a difference.
    #[must_use]
    pub fn uses_chunk(&self) -> bool {
        let Self::Fixed(..) = self else { return false };
        !matches!(
            self.level().as_str(),
            "linear" | "jbod" | "raid1" | "raid11" | "raid1c3" | "raid1c4"
        )
    }

    /// Whether it is an array of arrays.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        matches!(self, Self::Fixed(spec, _) if spec.shape_members().is_some())
    }

    /// The number of members that a shape fixes.
    #[must_use]
    pub fn shape_members(&self) -> Option<usize> {
        match self {
            Self::Single => Some(1),
            Self::Fixed(spec, _) => spec.shape_members(),
            Self::Zfs(pool) => pool.shape_members(),
        }
    }
}

impl fmt::Display for ArrayLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Fixed(_, text) => f.write_str(text),
            Self::Zfs(pool) => pool.fmt(f),
        }
    }
}

impl FromStr for ArrayLayout {
    type Err = raidlab_layout::SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let text = words.join(" ");
        match text.as_str() {
            "single" => Ok(Self::Single),
            zfs if zfs.starts_with("zfs") || zfs.starts_with("raidz") => {
                Ok(Self::Zfs(zfs.parse()?))
            }
            // Of btrfs alone: three or four copies, on however many members.
            "raid1c3" | "raid1c4" => Ok(Self::Fixed("raid1".parse()?, text)),
            _ => Ok(Self::Fixed(text.parse()?, text)),
        }
    }
}
by_text!(ArrayLayout);
