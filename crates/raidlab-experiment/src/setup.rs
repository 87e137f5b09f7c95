//! What one cell is: an array of disks in a state, under a host, a file system and a profile.
mod layout;
mod state;

pub use layout::ArrayLayout;
pub use state::{ArrayState, ParseStateError};

use crate::dirty::WriteBack;
use crate::kernel::{FilesystemKind, JournalMode, Kernel, Scheduler};
use crate::words::words;
use raidlab_core::profile::{Place, Profile, ProfileContext};
use raidlab_core::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// A controller's own: per cent of the time that it takes for resync and rebuild while the host wants something; `None`: as
    /// its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild_rate: Option<u32>,
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
