//! What can be wrong with zones.

/// Why zones do not make a disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// No zones.
    #[error("there are no zones: give at least one, or a sustained rate to derive them from")]
    NoZones,
    /// A zone that holds nothing.
    #[error(
        "zone {0} holds no sectors: give cylinders, and more sectors than are spare, unused and slipped"
    )]
    EmptyZone(usize),
    /// Figures of a zone that no track has.
    #[error(
        "zone {0} has impossible tracks: at most 1048576 sectors on a track, skews of at most 8 tracks, spares and unused sectors below a track's and a zone's sectors"
    )]
    Track(usize),
    /// A zone whose given first sector the zones before do not reach, or that overlaps them.
    #[error(
        "zone {zone} begins at logical sector {first}, but the zones before it hold only {held} sectors: correct first_lba or add cylinders"
    )]
    Gap {
        /// Number of the zone, from 0.
        zone: usize,
        /// Its first sector as given.
        first: u64,
        /// What the zones before it hold.
        held: u64,
    },
    /// A zone that begins before the one before it.
    #[error(
        "zone {zone} begins at logical sector {first}, not after the start of the zone before at {before}: zones must not overlap"
    )]
    Overlap {
        /// Number of the zone, from 0.
        zone: usize,
        /// Its first sector as given.
        first: u64,
        /// First sector of the zone before.
        before: u64,
    },
    /// Fewer sectors than the disk has.
    #[error(
        "the zones hold {held} sectors, but the disk has {needed}: add cylinders or sectors per track"
    )]
    TooSmall {
        /// Sectors in the zones.
        held: u64,
        /// Sectors of the disk.
        needed: u64,
    },
    /// More tracks than coordinates reach.
    #[error("{0} tracks are more than can be counted: check cylinders and heads")]
    TooManyTracks(u64),
}
