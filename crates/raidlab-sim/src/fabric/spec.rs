//! What a fabric is built of.
use crate::catalogue::controller::{self, ControllerError, ControllerModel};
use crate::catalogue::full_duplex;
use crate::disk::DiskModel;
use raidlab_core::units::SECTOR;
use raidlab_experiment::hardware::{AtaMode, Bus, CacheMode, Controller, ControllerKind, Link};
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::Layout;
use std::sync::Arc;

/// A bus that controllers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusSpec {
    /// What reports call it.
    pub name: String,
    /// Bytes a second that transfers get out of it.
    pub rate: u64,
    /// Reads and writes get as much at a time.
    pub duplex: bool,
}

impl BusSpec {
    /// The bus of an experiment: of its peak rate, the share that transfers get on a bus of its kind.
    #[must_use]
    pub fn of(bus: &Bus) -> Self {
        let kind = bus.kind.as_deref().unwrap_or_default();
        let percent = controller::bus_efficiency(kind);
        Self {
            name: bus.name.clone(),
            rate: (u128::from(bus.rate) * u128::from(percent) / 100) as u64,
            duplex: full_duplex(kind),
        }
    }
}

/// A controller: a model of the catalogue and what differs from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSpec {
    /// What reports call it.
    pub name: String,
    /// Its model.
    pub model: Arc<ControllerModel>,
    /// What its disks are connected by.
    pub link: Link,
    /// Number of its bus in the fabric; `None`: one that does not limit it.
    pub bus: Option<u32>,
    /// Its channels.
    pub channels: u32,
    /// Nominal bytes a second of a channel at the most, such as of an ATA mode; `None`: as the model.
    pub rate: Option<u64>,
    /// Sectors of its cache; `None`: as the model.
    pub cache: Option<u64>,
    /// Whether a write ends when it is in the cache; `None`: as the model.
    pub write_back: Option<bool>,
}

impl ControllerSpec {
    /// The controller of an experiment: the model it names, or the generic one of its kind.
    ///
    /// # Errors
    /// A model that the catalogue does not have, and a file that is none.
    pub fn of(given: &Controller, bus: Option<u32>) -> Result<Self, ControllerError> {
        let model = match (&given.model, &given.model_text) {
            (Some(path), Some(text)) => controller::parse(path, text)?,
            (Some(name), None) => controller::find(name)?,
            (None, _) => controller::find(match given.kind {
                ControllerKind::Pata => "pata",
                ControllerKind::Sata => "ahci",
                ControllerKind::Scsi => "u160",
                ControllerKind::Nvme => "nvme",
                ControllerKind::HardwareRaid => "hardware-raid",
            })?,
        };
        Ok(Self {
            name: given.name.clone(),
            link: given.link,
            model: Arc::new(model.controller),
            bus,
            channels: given.channels,
            rate: match (given.mode.map(mode_rate), given.rate) {
                (Some(mode), Some(rate)) => Some(mode.min(rate)),
                (mode, rate) => mode.or(rate),
            },
            cache: given.cache.map(|bytes| bytes.0 / SECTOR),
            write_back: given.cache_mode.map(|mode| mode == CacheMode::WriteBack),
        })
    }
}

/// Bytes a second of an Ultra DMA mode's strobes.
const fn mode_rate(mode: AtaMode) -> u64 {
    match mode {
        AtaMode::Udma2 => 33_333_333,
        AtaMode::Udma3 => 44_444_444,
        AtaMode::Udma4 => 66_666_667,
        AtaMode::Udma5 => 100_000_000,
        AtaMode::Udma6 => 133_333_333,
    }
}

/// A disk and where it sits.
#[derive(Clone, Debug)]
pub struct DiskSlot {
    /// What reports call it.
    pub name: String,
    /// What it is a disk of.
    pub model: DiskModel,
    /// Number of its controller in the fabric.
    pub controller: u32,
    /// Its channel there, from 0.
    pub channel: u32,
}

/// A volume that a controller shows the host in place of its disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// What reports call it.
    pub name: String,
    /// Numbers of its disks in the fabric, in role order; all on one controller.
    pub disks: Vec<u32>,
    /// Which sector is where. One disk as it is: [`Layout::linear`] of one member.
    pub layout: Layout,
    /// Roles that are missing from the start, or new and to be filled.
    pub failed: Vec<u16>,
    /// Which of that, and whether copies and parity are to be made to agree.
    pub state: ArrayState,
    /// Per cent of the time that the controller takes for that while the host wants something; `None`: as the model.
    pub rebuild_rate: Option<u32>,
}

/// A whole fabric.
#[derive(Clone, Debug, Default)]
pub struct FabricSpec {
    /// Buses.
    pub buses: Vec<BusSpec>,
    /// Controllers.
    pub controllers: Vec<ControllerSpec>,
    /// Disks.
    pub disks: Vec<DiskSlot>,
    /// Volumes; a disk in none is a port of its own, unless its controller has a cache and shows
    /// nothing but volumes.
    pub volumes: Vec<VolumeSpec>,
    /// Turn the write caches of the hard disks off. A drive delivered without one stays without one
    /// in any case; solid-state disks keep their buffers.
    pub write_cache_off: bool,
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// A bus that is not there.
    #[error("controller '{controller}' is on bus {bus}, but there are {buses} buses")]
    NoBus {
        /// The controller.
        controller: String,
        /// As given.
        bus: u32,
        /// How many there are.
        buses: usize,
    },
    /// A controller or channel that is not there.
    #[error("disk '{disk}' is on channel {channel} of controller {controller}, which is not there")]
    NoPlace {
        /// The disk.
        disk: String,
        /// Number of the controller.
        controller: u32,
        /// The channel.
        channel: u32,
    },
    /// More disks than a channel takes.
    #[error("channel {channel} of controller '{controller}' has {disks} disks: at most {most} fit")]
    Crowded {
        /// The controller.
        controller: String,
        /// The channel.
        channel: u32,
        /// As given.
        disks: usize,
        /// At most.
        most: usize,
    },
    /// A volume without a disk, with one that is not there, twice, or in another volume too.
    #[error("volume '{volume}' names disk {disk}, which is not there or already in use")]
    NoDisk {
        /// The volume.
        volume: String,
        /// Number of the disk.
        disk: u32,
    },
    /// A volume over several controllers.
    #[error("the disks of volume '{0}' are on several controllers")]
    Scattered(String),
    /// A volume on a controller that has no RAID of its own.
    #[error(
        "volume '{volume}' is on controller '{controller}', whose model has no RAID of its own: give it a 'model' that has, such as ITE8212"
    )]
    NoRaid {
        /// The volume.
        volume: String,
        /// The controller.
        controller: String,
    },
    /// A level that the controller does not have.
    #[error("controller '{controller}' has no parity levels, as volume '{volume}' needs")]
    NoParity {
        /// The volume.
        volume: String,
        /// The controller.
        controller: String,
    },
    /// A layout for another number of members.
    #[error("the layout of volume '{volume}' is for {members} disks, but it has {disks}")]
    Members {
        /// The volume.
        volume: String,
        /// Of the layout.
        members: usize,
        /// As given.
        disks: usize,
    },
    /// A layout that needs more of a member than the disk has.
    #[error(
        "the layout of volume '{volume}' uses {used} sectors of disk '{disk}', which has {has}"
    )]
    TooSmall {
        /// The volume.
        volume: String,
        /// The disk.
        disk: String,
        /// What the layout uses.
        used: u64,
        /// What there is.
        has: u64,
    },
    /// A rate of 0, or a cache too small to work with.
    #[error("{what} of '{name}' is too small to work with")]
    TooLittle {
        /// Which.
        what: &'static str,
        /// Whose.
        name: String,
    },
}
