//! What stands in the machine: disks, buses, controllers, and which disk sits where.
use crate::words::words;
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, SECTOR};
use serde::{Deserialize, Serialize};

words! {
    /// How a disk is connected.
    Link: "link" {
        /// Parallel ATA: two disks share a channel, one command at a time.
        Pata = "pata",
        /// Serial ATA: a link of its own.
        Sata = "sata",
        /// Parallel SCSI: disks share a bus and disconnect between phases.
        Scsi = "scsi",
        /// PCI Express, many queues.
        Nvme = "nvme",
    }
}

words! {
    /// What a controller is.
    ControllerKind: "controller kind" {
        /// Parallel ATA channels.
        Pata = "pata",
        /// SATA ports.
        Sata = "sata",
        /// SCSI buses.
        Scsi = "scsi",
        /// NVMe slots.
        Nvme = "nvme",
        /// Has a cache and RAID of its own; the host sees its volumes.
        HardwareRaid = "hardware-raid",
    }
}

impl ControllerKind {
    /// Disks that fit on one channel: two on an ATA cable, sixteen addresses less the controller's on
    /// a wide SCSI bus.
    #[must_use]
    pub const fn ports(self) -> u32 {
        match self {
            Self::Pata => 2,
            Self::Sata | Self::Nvme => 1,
            Self::Scsi | Self::HardwareRaid => 15,
        }
    }

    /// The link of its disks, where the kind says it.
    #[must_use]
    pub const fn link(self) -> Option<Link> {
        match self {
            Self::Pata => Some(Link::Pata),
            Self::Sata => Some(Link::Sata),
            Self::Scsi => Some(Link::Scsi),
            Self::Nvme => Some(Link::Nvme),
            Self::HardwareRaid => None,
        }
    }
}

words! {
    /// When a write through a controller's cache is reported done.
    CacheMode: "cache mode" {
        /// When it is in the cache.
        WriteBack = "write-back",
        /// When it is on the disks.
        WriteThrough = "write-through",
    }
}

words! {
    /// Ultra DMA mode of an ATA channel.
    AtaMode: "ATA mode" {
        /// 33.3 MB/s.
        Udma2 = "udma2",
        /// 44.4 MB/s.
        Udma3 = "udma3",
        /// 66.7 MB/s.
        Udma4 = "udma4",
        /// 100 MB/s.
        Udma5 = "udma5",
        /// 133 MB/s.
        Udma6 = "udma6",
    }
}

/// What differs from the catalogue's model of a disk. Absent: as the model has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Overrides {
    /// User-visible capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// Turns a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u32>,
    /// Buffer of the drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Bytes>,
    /// Average seek of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_average: Option<Span>,
    /// Seek to the next track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_track: Option<Span>,
    /// Seek over all tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_full: Option<Span>,
    /// Bytes a second, streaming at the outermost tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_rate: Option<u64>,
    /// Bytes a second, streaming at the innermost tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_rate: Option<u64>,
    /// Bytes of a sector as it is on the medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector_physical: Option<Bytes>,
    /// Bytes of a sector as the drive reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector_logical: Option<Bytes>,
    /// Commands that the drive takes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Disk {
    /// Its name in this experiment.
    pub name: String,
    /// The group it was declared in.
    pub group: String,
    /// The catalogue's model, or the path of a model file as the experiment names it.
    pub model: String,
    /// The text of the model file; `None`: the model is the catalogue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
    /// Of the model or the override; `None` when the catalogue does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// The controller it sits on.
    pub controller: String,
    /// The channel of that controller, from 0.
    pub channel: u32,
    /// What differs from the model.
    #[serde(rename = "override")]
    pub overrides: Overrides,
}

impl Disk {
    /// Bytes of the sectors by which it is addressed: 512 unless the experiment says otherwise, for all models of the
    /// catalogue have such.
    #[must_use]
    pub fn logical_sector(&self) -> Bytes {
        self.overrides.sector_logical.unwrap_or(Bytes(SECTOR))
    }
}

/// A bus that controllers share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bus {
    /// Its name in this experiment.
    pub name: String,
    /// What it is, such as `pci-32-33`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Bytes a second at the most.
    pub rate: u64,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Controller {
    /// Its name in this experiment.
    pub name: String,
    /// What it is.
    pub kind: ControllerKind,
    /// The link of its disks.
    pub link: Link,
    /// The catalogue's model of it, or the path of a model file as the experiment names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The text of the model file; `None`: the model is the catalogue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
    /// The bus it is on; `None`: one that does not limit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Its channels.
    pub channels: u32,
    /// Disks that fit on one channel.
    pub ports: u32,
    /// Mode of its ATA channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<AtaMode>,
    /// Bytes a second of one channel at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Bytes>,
    /// What the cache does with writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_mode: Option<CacheMode>,
    /// Whether it has RAID of its own.
    pub own_raid: bool,
}

/// Bytes a second of a bus by its name: PCI by width and clock, PCI Express by generation and lanes
/// (after line coding).
pub(crate) fn bus_rate(kind: &str) -> Option<u64> {
    if let Some(rest) = kind.strip_prefix("pcie-") {
        let (generation, lanes) = rest.split_once("-x")?;
        let lanes: u64 = lanes
            .parse()
            .ok()
            .filter(|n| [1, 2, 4, 8, 16].contains(n))?;
        let lane = match generation {
            "1" => 250_000_000,
            "2" => 500_000_000,
            "3" => 984_615_385,
            "4" => 1_969_230_769,
            "5" => 3_938_461_538,
            _ => return None,
        };
        return Some(lane * lanes);
    }
    BUSES.iter().find(|(name, _)| *name == kind).map(|b| b.1)
}

/// Parallel buses: width in bits and clock in MHz.
pub(crate) const BUSES: [(&str, u64); 6] = [
    ("pci-32-33", 133_333_333),
    ("pci-32-66", 266_666_667),
    ("pci-64-33", 266_666_667),
    ("pci-64-66", 533_333_333),
    ("pci-x-64-100", 800_000_000),
    ("pci-x-64-133", 1_066_666_667),
];
