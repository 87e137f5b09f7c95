//! One block device as sysfs, udev and its own identify data tell it.

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::units::SECTOR;
use serde::{Deserialize, Serialize};

use super::identify::{self, Identity};
use crate::observe::link::{self, RateLimit};
use crate::observe::roots::{self, DeviceNumber, Roots};
use crate::observe::stack::{DeviceKind, StackDevice};

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub number: Option<DeviceNumber>,
    /// Disk, partition, md, loop ...
    pub kind: DeviceKind,
    /// Devices directly below.
    pub below: Vec<String>,
    /// What lies below when that is no block device.
    pub note: Option<String>,
    /// Vendor, SCSI only.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// World-wide name.
    pub wwid: Option<String>,
    /// `nvme`, `sata`, `ata`, `sas`, `usb`, `virtio`, `iscsi`, `mmc`, `fc`.
    pub transport: Option<String>,
    /// Size, bytes.
    pub size: Option<u64>,
    /// Write-protected.
    pub read_only: Option<bool>,
    /// Can be taken out.
    pub removable: Option<bool>,
    /// Depth the device itself queues to.
    pub queue_depth: Option<u32>,
    /// First byte of a partition on its disk.
    pub partition_start: Option<u64>,
    /// The request queue; partitions use their disk's.
    pub queue: QueueRecord,
    /// What `hdparm -i` would tell, for ATA disks.
    pub identity: Option<Identity>,
    /// Upper limit by the link.
    pub link: Option<RateLimit>,
    /// md arrays.
    pub md: Option<MdRecord>,
    /// bcache devices.
    pub bcache: Option<BcacheRecord>,
}

/// Settings of a request queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Logical sector, bytes.
    pub logical_sector: Option<u32>,
    /// Physical sector, bytes.
    pub physical_sector: Option<u32>,
    /// Preferred smallest request, bytes (the chunk of an array).
    pub minimum_io: Option<u64>,
    /// Preferred request, bytes (the stripe of an array).
    pub optimal_io: Option<u64>,
    /// Has turning platters, as far as the kernel knows.
    pub rotational: Option<bool>,
    /// The active I/O scheduler.
    pub scheduler: Option<String>,
    /// Read-ahead, KiB.
    pub read_ahead_kib: Option<u64>,
    /// Requests the queue holds.
    pub nr_requests: Option<u32>,
    /// Largest request, KiB.
    pub max_sectors_kib: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Merging switched off: 0 all merges, 1 simple ones, 2 none.
    pub nomerges: Option<u8>,
    /// Target latency of write-back throttling, µs; 0 is off.
    pub wbt_latency_us: Option<i64>,
    /// CPU on which completions run.
    pub rq_affinity: Option<u8>,
    /// Smallest discard, bytes; 0 is none.
    pub discard_granularity: Option<u64>,
    /// `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Whether its I/O is counted.
    pub iostats: Option<bool>,
}

/// State of an md array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdRecord {
    /// `raid5`
    pub level: Option<String>,
    /// Number of the layout within its level.
    pub layout: Option<u64>,
    /// Chunk, bytes; 0 where the level has none.
    pub chunk: Option<u64>,
    /// Members the array should have.
    pub raid_disks: Option<u32>,
    /// Members by device, with their state (`in_sync`, `faulty`, `spare`).
    pub members: BTreeMap<String, String>,
    /// Missing members.
    pub degraded: Option<u32>,
    /// `clean`, `active`, `readonly` ...
    pub array_state: Option<String>,
    /// `idle`, `resync`, `recover`, `check`, `repair`, `reshape`, `frozen`.
    pub sync_action: Option<String>,
    /// Superblock version, `1.2`.
    pub metadata_version: Option<String>,
    /// Where the write-intent bitmap is.
    pub bitmap: Option<String>,
    /// Stripes cached, raid4/5/6.
    pub stripe_cache_size: Option<u32>,
    /// Extra worker threads, raid4/5/6.
    pub group_thread_count: Option<u32>,
    /// `resync`, `journal`, `ppl`, `bitmap`.
    pub consistency_policy: Option<String>,
}

/// State of a bcache device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BcacheRecord {
    /// The active cache mode.
    pub cache_mode: Option<String>,
    /// `clean`, `dirty`, `no cache`.
    pub state: Option<String>,
}

/// Records one device of a stack.
pub(super) fn record(roots: &Roots, device: &StackDevice) -> DeviceRecord {
    let name = device.name.as_str();
    let directory = roots.block(name);
    let queue_owner = match device.kind {
        DeviceKind::Partition => device.below.first().map_or(name, String::as_str),
        _ => name,
    };
    let udev = device
        .number
        .map(|number| udev_properties(roots, number))
        .unwrap_or_default();
    let identity = identify::read(roots, device);
    let from_udev = |key: &str| udev.get(key).cloned();
    let attribute = |file: &str| roots::text(&directory.join(file));
    let ata =
        |pick: fn(&Identity) -> &Option<String>| identity.as_ref().and_then(|i| pick(i).clone());
    DeviceRecord {
        name: name.to_owned(),
        number: device.number,
        kind: device.kind.clone(),
        below: device.below.clone(),
        note: device.note.clone(),
        vendor: attribute("device/vendor").filter(|vendor| !vendor.starts_with("0x")),
        // SCSI cuts the model to 16 characters; the disk's own word and udev's are whole.
        model: ata(|i| &i.model)
            .or_else(|| from_udev("ID_MODEL"))
            .or_else(|| attribute("device/model")),
        serial: ata(|i| &i.serial)
            .or_else(|| from_udev("ID_SERIAL_SHORT"))
            .or_else(|| attribute("device/serial"))
            .or_else(|| attribute("serial")),
        firmware: ata(|i| &i.firmware)
            .or_else(|| attribute("device/firmware_rev"))
            .or_else(|| attribute("device/rev"))
            .or_else(|| from_udev("ID_REVISION")),
        wwid: attribute("wwid")
            .or_else(|| attribute("device/wwid"))
            .or_else(|| from_udev("ID_WWN_WITH_EXTENSION"))
            .or_else(|| from_udev("ID_WWN")),
        transport: transport(&directory),
        size: roots::number::<u64>(&directory.join("size")).and_then(|n| n.checked_mul(SECTOR)),
        read_only: roots::flag(&directory.join("ro")),
        removable: roots::flag(&directory.join("removable")),
        queue_depth: roots::number(&directory.join("device/queue_depth")),
        partition_start: roots::number::<u64>(&directory.join("start"))
            .and_then(|n| n.checked_mul(SECTOR)),
        queue: QueueRecord {
            // What the switch says is not always so.
            iostats: device.counted,
            ..queue(&roots.block(queue_owner).join("queue"))
        },
        identity,
        link: link::device_limit(roots, name),
        md: directory
            .join("md")
            .exists()
            .then(|| md(&directory.join("md"))),
        bcache: directory
            .join("bcache")
            .exists()
            .then(|| bcache(&directory.join("bcache"))),
    }
}

fn queue(directory: &Path) -> QueueRecord {
    let at = |name: &str| directory.join(name);
    QueueRecord {
        logical_sector: roots::number(&at("logical_block_size")),
        physical_sector: roots::number(&at("physical_block_size")),
        minimum_io: roots::number(&at("minimum_io_size")),
        optimal_io: roots::number(&at("optimal_io_size")),
        rotational: roots::flag(&at("rotational")),
        scheduler: roots::text(&at("scheduler")).and_then(|text| chosen(&text)),
        read_ahead_kib: roots::number(&at("read_ahead_kb")),
        nr_requests: roots::number(&at("nr_requests")),
        max_sectors_kib: roots::number(&at("max_sectors_kb")),
        write_cache: roots::text(&at("write_cache")),
        nomerges: roots::number(&at("nomerges")),
        wbt_latency_us: roots::number(&at("wbt_lat_usec")),
        rq_affinity: roots::number(&at("rq_affinity")),
        discard_granularity: roots::number(&at("discard_granularity")),
        zoned: roots::text(&at("zoned")),
        iostats: None,
    }
}

/// The bracketed choice of `none [mq-deadline] kyber`; a lone word is the only choice.
pub(super) fn chosen(text: &str) -> Option<String> {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    match bracketed {
        Some(word) => Some(word.to_owned()),
        None => {
            let mut words = text.split_whitespace();
            let only = words.next()?;
            words.next().is_none().then(|| only.to_owned())
        }
    }
}

fn md(directory: &Path) -> MdRecord {
    let at = |name: &str| directory.join(name);
    let members = roots::names_in(directory)
        .into_iter()
        .filter_map(|name| {
            let member = name.strip_prefix("dev-")?.to_owned();
            let state = roots::text(&at(&name).join("state"))?;
            Some((member, state))
        })
        .collect();
    MdRecord {
        level: roots::text(&at("level")),
        layout: roots::number(&at("layout")),
        chunk: roots::number(&at("chunk_size")),
        // During a reshape this reads `5 (4)`: the new number first.
        raid_disks: roots::text(&at("raid_disks"))
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        members,
        degraded: roots::number(&at("degraded")),
        array_state: roots::text(&at("array_state")),
        sync_action: roots::text(&at("sync_action")),
        metadata_version: roots::text(&at("metadata_version")),
        bitmap: roots::text(&at("bitmap/location")),
        stripe_cache_size: roots::number(&at("stripe_cache_size")),
        group_thread_count: roots::number(&at("group_thread_cnt")),
        consistency_policy: roots::text(&at("consistency_policy")),
    }
}

fn bcache(directory: &Path) -> BcacheRecord {
    BcacheRecord {
        cache_mode: roots::text(&directory.join("cache_mode")).and_then(|text| chosen(&text)),
        state: roots::text(&directory.join("state")),
    }
}

/// How a disk is attached, from its place in sysfs. A SATA disk is below an `ataN`, a SAS one below an `end_device`.
fn transport(directory: &Path) -> Option<String> {
    let path = std::fs::canonicalize(directory).ok()?;
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let any = |prefix: &str| parts.iter().any(|part| numbered(part, prefix));
    let found = if any("usb") {
        "usb"
    } else if any("nvme-subsys") || any("nvme") {
        "nvme"
    } else if any("end_device-") {
        "sas"
    } else if any("session") {
        "iscsi"
    } else if any("rport-") {
        "fc"
    } else if any("ata") {
        "ata"
    } else if any("mmc") {
        "mmc"
    } else if any("virtio") {
        "virtio"
    } else {
        return None;
    };
    Some(found.to_owned())
}

/// Properties udev keeps of a block device (`/run/udev/data/bMAJ:MIN`, lines `E:KEY=value`).
fn udev_properties(roots: &Roots, number: DeviceNumber) -> BTreeMap<String, String> {
    let text = roots::text(&roots.run.join("udev/data").join(format!("b{number}")));
    parse_udev(&text.unwrap_or_default())
}

pub(super) fn parse_udev(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("E:")?.split_once('='))
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
