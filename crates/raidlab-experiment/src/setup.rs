//! What one cell is: an array of disks in a state, under a host, a file system and a profile.
use crate::dirty::WriteBack;
use crate::kernel::{FilesystemKind, JournalMode, Kernel, Scheduler};
use crate::words::{by_text, words};
use raidlab_core::profile::{Place, Profile, ProfileContext};
use raidlab_core::suggest;
use raidlab_core::units::Bytes;
use raidlab_layout::{BtrfsProfile, PoolSpec, Spec, VdevKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

words! {
    /// What keeps the members together.
    Engine: "engine" {
        /// Nothing: a single disk.
        None = "none",
        /// The kernel's md.
        Md = "md",
        /// The controller's own RAID.
        Controller = "controller",
        /// ZFS.
        Zfs = "zfs",
        /// btrfs.
        Btrfs = "btrfs",
    }
}

words! {
    /// In which form an array's description lies on the members of md.
    Metadata: "metadata format" {
        /// At the end, of md's first years.
        V0_90 = "0.90",
        /// At the end.
        V1_0 = "1.0",
        /// At the start.
        V1_1 = "1.1",
        /// 4 KiB from the start; mdadm's own choice since 3.2.
        V1_2 = "1.2",
        /// Intel's, which boards with its BIOS RAID read.
        Imsm = "imsm",
        /// SNIA's Disk Data Format, which controllers and other BIOS RAIDs read.
        Ddf = "ddf",
    }
}

impl Metadata {
    /// Whether it describes a container of disks with volumes in it.
    #[must_use]
    pub const fn is_container(self) -> bool {
        matches!(self, Self::Imsm | Self::Ddf)
    }
}

words! {
    /// Where md notes what is being written, so that a resync after a crash is short.
    Bitmap: "bitmap" {
        /// Nowhere.
        None = "none",
        /// On the members.
        Internal = "internal",
    }
}

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

/// What has happened to the array before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArrayState {
    /// All members present and in agreement.
    Clean,
    /// So many members have failed and are gone.
    Degraded(u16),
    /// As `mdadm --create` leaves it over members with unlike contents, before its first sync has ended: copies or parity
    /// agree nowhere and are written, or the last member of a raid4 or raid5 is being filled.
    InitialSync,
    /// Copies or parity are being made to agree after an unclean stop: nearly all do.
    Resyncing,
    /// So many failed members have been replaced and are being filled.
    Rebuilding(u16),
}

impl ArrayState {
    /// Members that have failed.
    #[must_use]
    pub const fn failures(self) -> u16 {
        match self {
            Self::Clean | Self::InitialSync | Self::Resyncing => 0,
            Self::Degraded(n) | Self::Rebuilding(n) => n,
        }
    }

    /// Whether members are read and written beside what is measured: a resync, or a rebuild.
    #[must_use]
    pub const fn syncs(self) -> bool {
        matches!(
            self,
            Self::InitialSync | Self::Resyncing | Self::Rebuilding(_)
        )
    }

    /// Whether all members are there, and copies or parity are not taken to agree.
    #[must_use]
    pub const fn is_unsynced(self) -> bool {
        matches!(self, Self::InitialSync | Self::Resyncing)
    }
}

impl fmt::Display for ArrayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Degraded(n) => write!(f, "degraded {n}"),
            Self::InitialSync => f.write_str("initial-sync"),
            Self::Resyncing => f.write_str("resyncing"),
            Self::Rebuilding(n) => write!(f, "rebuilding {n}"),
        }
    }
}

/// A text that is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no state of an array{near}: write clean, initial-sync, resyncing, or degraded or rebuilding with the number of failed members, such as 'degraded 1'",
    near = nearest_state(.0)
)]
pub struct ParseStateError(String);

/// The state that was most likely meant, as a remark, by the first word.
fn nearest_state(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let states = [
        "clean",
        "degraded",
        "initial-sync",
        "resyncing",
        "rebuilding",
    ];
    // One that is there is not what is wrong.
    let near = suggest::nearest(word, states).filter(|state| *state != word);
    suggest::meant(near)
}

impl FromStr for ArrayState {
    type Err = ParseStateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseStateError(text.to_owned());
        let mut words = text.split_whitespace();
        let word = words.next().ok_or_else(wrong)?;
        let number = words
            .next()
            .map(|n| n.parse::<u16>().ok().filter(|n| *n > 0));
        let number = match number {
            Some(None) => return Err(wrong()),
            Some(given) => given,
            None => None,
        };
        if words.next().is_some() {
            return Err(wrong());
        }
        match (word, number) {
            ("clean", None) => Ok(Self::Clean),
            ("initial-sync", None) => Ok(Self::InitialSync),
            ("resyncing", None) => Ok(Self::Resyncing),
            ("degraded", n) => Ok(Self::Degraded(n.unwrap_or(1))),
            ("rebuilding", n) => Ok(Self::Rebuilding(n.unwrap_or(1))),
            _ => Err(wrong()),
        }
    }
}
by_text!(ArrayState);

/// An array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Array {
    /// Which sector is where.
    pub layout: ArrayLayout,
    /// What keeps the members together.
    pub engine: Engine,
    /// Names of the disks, in role order.
    pub members: Vec<String>,
    /// Members on each channel: `1+1`.
    pub channels: String,
    /// Used of each member; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_size: Option<Bytes>,
    /// Where on each disk what is used of it begins; `None`: where the first partition of the system's time does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_start: Option<Bytes>,
    /// Unit of striping; `None` where the layout has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Of the outer layout of a nested array; `None`: as `chunk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_chunk: Option<Bytes>,
    /// Its state.
    pub state: ArrayState,
    /// Roles of the failed members, from 0.
    pub failed: Vec<u16>,
    /// Usable bytes; `None` when the catalogue does not say how large a member is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// Usable capacity in members, two decimals at the most: `3`, `2.5`.
    pub capacity_disks: String,
    /// ZFS: smallest block as a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ashift: Option<u32>,
    /// ZFS: largest record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_size: Option<Bytes>,
    /// ZFS that rebuilds: bytes of files in the pool when its new members come; `None`: those that the profile reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<Bytes>,
    /// md: form of its description on the members; `None`: 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// md: write-intent bitmap; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Bitmap>,
    /// md: what a bit of it stands for; `None`: as mdadm picks, 64 MiB mostly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitmap_chunk: Option<Bytes>,
    /// md: the members of the new array have been made to agree, and it has run on since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initial_sync: bool,
    /// md raid4, 5, 6: stripes of the stripe cache, 4 KiB of each member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe_cache: Option<u32>,
    /// md raid4, 5, 6: threads beside the array's own that handle its stripes, of each NUMA node (`group_thread_cnt`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_threads: Option<u32>,
    /// md: resync and rebuild go at least so fast when others want the disks, bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_speed_min: Option<u64>,
    /// md: resync and rebuild go at most so fast, bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_speed_max: Option<u64>,
}

/// md's `sync_speed_min` when nothing is said: 1000 KiB a second (`md.c:sysctl_speed_limit_min`).
pub const SYNC_SPEED_MIN: u64 = 1000 << 10;

/// The computer and its system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Host {
    /// What processor; told in reports and looked up by the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Cores used.
    pub cores: u32,
    /// Clock of a core in MHz; `None`: as the processor has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u32>,
    /// Memory of the system.
    pub memory: Bytes,
    /// The system.
    pub kernel: Kernel,
    /// I/O scheduler of the member disks; `None` where the system has no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Read-ahead of the array's device; `None`: what the system sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<Bytes>,
    /// Largest request to a disk; `None`: what the system sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Bytes>,
    /// Requests that the queue before each disk holds (`nr_requests`); `None`: what the system sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_requests: Option<u32>,
    /// Whether the drives' write caches are on.
    pub write_cache: bool,
    /// Commands given to a drive at once; `None`: as many as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_queue: Option<u32>,
    /// How much written data is kept in memory, and for how long.
    #[serde(default, skip_serializing_if = "WriteBack::is_default")]
    pub write_back: WriteBack,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Filesystem {
    /// Which one.
    pub kind: FilesystemKind,
    /// Bytes of its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// Size of its journal; `None`: as its maker would set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Bytes>,
    /// What the journal holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<JournalMode>,
    /// Options to mount with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<String>,
}

/// All that makes one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Setup {
    /// The array.
    pub array: Array,
    /// The computer.
    pub host: Host,
    /// On the array; `None`: the raw device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Filesystem>,
    /// What is done.
    pub profile: Profile,
    /// The profile's settings as this host makes them, `auto` resolved.
    pub settings: BTreeMap<String, String>,
    /// The phases, in order.
    pub phases: Vec<String>,
}

/// Room where nobody knows how large the disks are.
const ROOM: Bytes = Bytes(1 << 50);

/// What a profile must know of a place with so much `room`, or of a device of that size, where direct calls are multiples of
/// `alignment` bytes.
pub(crate) const fn context(
    memory: Bytes,
    filesystem: Option<&Filesystem>,
    room: Option<Bytes>,
    alignment: u32,
) -> ProfileContext {
    let room = match room {
        Some(room) => room,
        None => ROOM,
    };
    ProfileContext {
        memory,
        place: match filesystem {
            Some(_) => Place::Directory { free: room },
            None => Place::Device { size: room },
        },
        writable: true,
        alignment,
    }
}

impl Setup {
    /// What the profile must know of the array before there is one; direct calls are multiples of `alignment` bytes there.
    #[must_use]
    pub const fn context(&self, alignment: u32) -> ProfileContext {
        let filesystem = self.filesystem.as_ref();
        context(self.host.memory, filesystem, self.array.capacity, alignment)
    }
}
