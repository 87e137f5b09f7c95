//! What makes the members of an array agree, whoever's array it is.

/// What it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refill {
    /// All agree but for what is compared or made anew, a first sync too.
    #[default]
    Resync,
    /// A new member is filled.
    Rebuild,
    /// The same, of ZFS.
    Resilver,
}

impl Refill {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resync => "resync",
            Self::Rebuild => "rebuild",
            Self::Resilver => "resilver",
        }
    }
}

/// How far a resync or rebuild is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Sectors that agree, from the start on: of each member, and of the array for the resync of a
    /// raid10.
    pub done: u64,
    /// Sectors to go through.
    pub total: u64,
    /// Bytes a second in the last half minute or less, counted as the sectors are.
    pub rate: u64,
}

impl Progress {
    /// All together; `None` when there are none.
    pub(crate) fn sum(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.reduce(|sum, more| Self {
            done: sum.done + more.done,
            total: sum.total + more.total,
            rate: sum.rate + more.rate,
        })
    }
}
