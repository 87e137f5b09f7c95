//! Profiles: how btrfs keeps what is in its chunks, and how these take room.
use super::{RESERVED, STRIPE, deal};
use crate::error::LayoutError;
use crate::types::MAX_MEMBERS;
use raidlab_core::units::{Bytes, Sectors};

/// How a profile takes room (`btrfs_raid_array`): each chunk lies on as many members as still have some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// No fewer members than these.
    pub least: usize,
    /// No more than these, where there is a limit.
    pub most: Option<usize>,
    /// A multiple of these.
    pub multiple: usize,
    /// Copies of each byte.
    pub copies: usize,
    /// Members of each chunk whose room is parity's.
    pub parities: usize,
}

impl Takes {
    /// Of a layout by its name, or nothing of one that btrfs has not. `degenerate`: stripes may be over one member or one pair, as
    /// since Linux 5.15.
    #[must_use]
    pub fn of(layout: &str, degenerate: bool) -> Option<Self> {
        let all = |least, multiple, copies, parities| Self {
            least,
            most: None,
            multiple,
            copies,
            parities,
        };
        let most = |most, copies| Self {
            most: Some(most),
            ..all(most, 1, copies, 0)
        };
        Some(match layout {
            "single" | "linear" => most(1, 1),
            "raid0" => all(if degenerate { 1 } else { 2 }, 1, 1, 0),
            "raid1" => most(2, 2),
            "raid1c3" => most(3, 3),
            "raid1c4" => most(4, 4),
            "raid10" | "raid10-n2" => all(if degenerate { 2 } else { 4 }, 2, 2, 0),
            "raid5" => all(2, 1, 1, 1),
            "raid6" => all(3, 1, 1, 2),
            _ => return None,
        })
    }

    /// How many of so many members that have room a chunk takes; nothing where those are too few.
    #[must_use]
    pub fn wide(&self, having: usize) -> Option<usize> {
        let wide = having.min(self.most.unwrap_or(having)) / self.multiple * self.multiple;
        (wide >= self.least).then_some(wide)
    }

    /// Pieces of data of a chunk on so many members: each of its pieces has one of the copies of one, or parity.
    #[must_use]
    pub const fn data(&self, wide: usize) -> usize {
        wide.saturating_sub(self.parities) / self.copies
    }
}

/// How the chunks of data keep what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BtrfsProfile {
    /// Once, on one member.
    Single,
    /// Once, in stripes over all members that have room.
    Raid0,
    /// Twice, on two members.
    Raid1,
    /// Three times, on three members.
    Raid1c3,
    /// Four times, on four members.
    Raid1c4,
    /// In stripes over pairs of members, each of which has it twice.
    Raid10,
    /// In stripes with a parity.
    Raid5,
    /// In stripes with two parities.
    Raid6,
}

impl BtrfsProfile {
    /// All of them, as `mkfs` lists them.
    pub const ALL: [Self; 8] = [
        Self::Single,
        Self::Raid0,
        Self::Raid1,
        Self::Raid1c3,
        Self::Raid1c4,
        Self::Raid10,
        Self::Raid5,
        Self::Raid6,
    ];

    /// Of a layout as experiments write it; nothing of one that btrfs has not.
    #[must_use]
    pub fn of(layout: &str) -> Option<Self> {
        Self::named(match layout {
            "linear" => "single",
            "raid10-n2" => "raid10",
            other => other,
        })
    }

    /// Any of them, by the name that `mkfs` has for it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Copies of each byte.
    #[must_use]
    pub const fn copies(self) -> usize {
        match self {
            Self::Single | Self::Raid0 | Self::Raid5 | Self::Raid6 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid1c3 => 3,
            Self::Raid1c4 => 4,
        }
    }

    /// Any so many members may fail.
    #[must_use]
    pub const fn survives(self) -> usize {
        match self {
            Self::Single | Self::Raid0 => 0,
            Self::Raid1 | Self::Raid10 | Self::Raid5 => 1,
            Self::Raid1c3 | Self::Raid6 => 2,
            Self::Raid1c4 => 3,
        }
    }

    /// How it takes room; `degenerate` as in [`Takes::of`].
    #[must_use]
    pub fn takes(self, degenerate: bool) -> Takes {
        Takes::of(self.name(), degenerate).expect("each profile has a name of these")
    }

    /// How metadata is kept beside such data: as that, but twice where data is on one member alone, and in copies that survive as
    /// much where data has parity, as btrfs(5) wants it.
    #[must_use]
    pub const fn of_metadata(self) -> Self {
        match self {
            Self::Single | Self::Raid5 => Self::Raid1,
            Self::Raid6 => Self::Raid1c3,
            other => other,
        }
    }

    /// Members of each chunk whose room is parity's.
    #[must_use]
    pub fn parities(self) -> usize {
        self.takes(true).parities
    }

    /// As `mkfs` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid1c3 => "raid1c3",
            Self::Raid1c4 => "raid1c4",
            Self::Raid10 => "raid10",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        }
    }
}

impl BtrfsProfile {
    /// Whether `mkfs` takes members of these sizes.
    pub(super) fn check(self, sizes: &[Sectors], degenerate: bool) -> Result<(), LayoutError> {
        if sizes.len() > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { given: sizes.len() });
        }
        let least = self.takes(degenerate).least.max(2);
        if sizes.len() < least {
            return Err(LayoutError::TooFewMembers {
                level: format!("{} of btrfs", self.name()),
                least,
                given: sizes.len(),
                instead: None,
            });
        }
        // Each has room for what mkfs makes on the first.
        match sizes.iter().position(|size| size.0 < deal::LEAST) {
            Some(member) => Err(self.too_small(member, sizes[member], Sectors(deal::LEAST))),
            None => Ok(()),
        }
    }

    /// No chunk of data has room beside that of metadata.
    pub(super) fn no_room(self, sizes: &[u64], metadata: Bytes) -> LayoutError {
        let smallest = (0..sizes.len()).min_by_key(|member| sizes[*member]);
        let smallest = smallest.unwrap_or(0);
        let least = RESERVED.0 + metadata.to_sectors().0 + STRIPE;
        self.too_small(smallest, Sectors(sizes[smallest]), Sectors(least))
    }

    fn too_small(self, member: usize, size: Sectors, least: Sectors) -> LayoutError {
        LayoutError::MemberTooSmall {
            level: format!("{} of btrfs", self.name()),
            member,
            size,
            least,
            remedy: "use a larger member",
        }
    }
}
