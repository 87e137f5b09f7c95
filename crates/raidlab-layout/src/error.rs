//! What is refused, and the remedy.
use crate::types::{MAX_MEMBERS, MemberSet, Run};
use raidlab_core::suggest::meant;
use raidlab_core::units::{Bytes, SECTOR, Sectors};
use raidlab_core::words::count;

/// Why a geometry is no array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Fewer members than the level needs.
    #[error("{level} needs at least {} and was given {given}: add members{}", count(.least, "member"), or_use(.instead))]
    TooFewMembers {
        /// The level asked for.
        level: String,
        /// The least it needs.
        least: usize,
        /// What it was given.
        given: usize,
        /// A level that this many members can have, if any.
        instead: Option<&'static str>,
    },
    /// More members than a set of members holds.
    #[error(
        "{given} members are more than the {MAX_MEMBERS} that one array may have here: use fewer"
    )]
    TooManyMembers {
        /// What it was given.
        given: usize,
    },
    /// Chunk 0.
    #[error(
        "{level} needs a chunk size and was given 0: give one, for instance {} (md's default)",
        Bytes::kib(512)
    )]
    ZeroChunk {
        /// The level asked for.
        level: String,
    },
    /// A chunk that md refuses for this level.
    #[error("md needs a power of two of at least 4 KiB as the chunk of {level}, not {}: use {}{}", bytes(.chunk), bytes(.below), or_above(.above))]
    Chunk {
        /// The level asked for.
        level: String,
        /// What it was given.
        chunk: Sectors,
        /// The next valid size below that the members have room for, or the least one.
        below: Sectors,
        /// The next valid size above, where the members have room for it.
        above: Option<Sectors>,
    },
    /// More copies than members.
    #[error("{near} near x {far} far copies need {} and there are {members}: use at most {} or add members", count(.near * .far, "member"), count(.members, "copy"))]
    TooManyCopies {
        /// Near copies.
        near: usize,
        /// Far or offset copies.
        far: usize,
        /// Members given.
        members: usize,
    },
    /// No copies, or only one.
    #[error(
        "raid10 with {} of each chunk stores nothing twice: use 2 or more copies, or raid0", count(.copies, "copy")
    )]
    TooFewCopies {
        /// Near times far copies.
        copies: usize,
    },
    /// A member that holds nothing of the array.
    #[error("member {member} has {}, less than the {} that {level} needs of every member: {remedy}", bytes(.size), bytes(.least))]
    MemberTooSmall {
        /// The level asked for.
        level: String,
        /// Which member.
        member: usize,
        /// Its size.
        size: Sectors,
        /// The least that each member must have.
        least: Sectors,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The members together exceed 2^63 bytes.
    #[error("the members together have more than 8 EiB: use smaller members")]
    TooLarge,
    /// A rotation of the other level.
    #[error("{algorithm} is no rotation of {level}: use one of {known}")]
    Algorithm {
        /// The level asked for.
        level: &'static str,
        /// The rotation asked for.
        algorithm: &'static str,
        /// Those that the level has.
        known: String,
    },
    /// An outer array that was not made over the inner ones.
    #[error(
        "the outer array has {outer} members and there are {inner} inner arrays: give each inner array its place"
    )]
    NestedMembers {
        /// Members of the outer array.
        outer: usize,
        /// Inner arrays.
        inner: usize,
    },
    /// An outer array that believes its members larger than the inner arrays are.
    #[error("inner array {inner} has {} and the outer array takes it for {}: make the outer array from the inner capacities", bytes(.has), bytes(.believed))]
    NestedSize {
        /// Which inner array.
        inner: usize,
        /// Its capacity.
        has: Sectors,
        /// What the outer array was made with.
        believed: Sectors,
    },
    /// RAID-Z has up to three parities.
    #[error("raidz has 1, 2 or 3 parities and not {0}: use raidz1, raidz2 or raidz3")]
    Raidz(usize),
    /// No ZFS pool can have this.
    #[error(
        "ashift {0} is outside 9 to 16 (512 B to 64 KiB): use 12 for disks with 4 KiB physical sectors"
    )]
    Ashift(u32),
}

impl LayoutError {
    /// The same of a part of an array: its members are those of the array from `first` on.
    pub(crate) fn of_members_from(mut self, first: usize) -> Self {
        if let Self::MemberTooSmall { member, .. } = &mut self {
            *member += first;
        }
        self
    }
}

/// For the message: what is refused may be too large for a size in bytes.
fn bytes(sectors: &Sectors) -> Bytes {
    Bytes(sectors.0.saturating_mul(SECTOR))
}

fn or_above(above: &Option<Sectors>) -> String {
    above
        .as_ref()
        .map_or_else(String::new, |above| format!(" or {}", bytes(above)))
}

fn or_use(level: &Option<&'static str>) -> String {
    level.map_or_else(String::new, |level| format!(" or use {level}"))
}

/// Why a read or write has no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Beyond the end of the array.
    #[error("sectors {run} end beyond the array's {capacity} sectors: ask for less")]
    OutOfRange {
        /// What was asked for.
        run: Run,
        /// Sectors of the array.
        capacity: u64,
    },
    /// The array does not survive these failures.
    #[error("the array is lost with {failed} failed: no read or write can be planned")]
    Lost {
        /// The failed members.
        failed: MemberSet,
    },
}

/// Why a text is no [`crate::Spec`], or cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No known level.
    #[error("'{text}' is no level{}: use linear, raid0, raid1, raid4, raid5, raid6, raid10, or a nested one such as 'raid50 2x3'", meant(*.nearest))]
    Level {
        /// What was written.
        text: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// A variant that the level does not have.
    #[error("{level} has no variant '{variant}': use {known}")]
    Variant {
        /// The level.
        level: String,
        /// What was written after it.
        variant: String,
        /// What it has.
        known: &'static str,
    },
    /// A shape that is not `GROUPSxMEMBERS`.
    #[error("'{0}' is no shape: write groups x members of each, for instance '2x3'")]
    Shape(String),
    /// A shape of no groups or no members, or of too many.
    #[error("'{0}' has too few or too many: there are 1 to 999 groups, of 1 to 999 members each")]
    ShapeSize(String),
    /// A nested level without a shape.
    #[error(
        "{0} is an array of arrays: add its shape, groups x members of each, for instance '{0} 2x3'"
    )]
    NoShape(String),
    /// A shape or a number behind a level that is not nested.
    #[error("{0} is not nested: write it alone, and the number of members apart from it")]
    NotNested(String),
    /// ZFS keeps no fixed places.
    #[error(
        "'{0}' has no fixed places to map: ZFS allocates each record where it finds room; ask for what a record occupies instead"
    )]
    Zfs(String),
    /// A chunk that ends within a sector.
    #[error("a chunk of {} is no whole number of 512-byte sectors: use a multiple of 512", count(.0.0, "byte"))]
    OddChunk(Bytes),
    /// Not as many members as the shape has.
    #[error("the shape {groups}x{each} has {} and {given} were given: give {}", count(.groups * .each, "member"), .groups * .each)]
    Members {
        /// Groups.
        groups: usize,
        /// Members of each.
        each: usize,
        /// Members given.
        given: usize,
    },
    /// The geometry is no array.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
