//! Controllers as data: adapters that pass commands on, cards with RAID in their firmware, and RAID
//! controllers with a cache. The files are written as those of disks are: every value has a source.
mod lower;

use super::reader::Reader;
use super::{Fact, ModelError};
use raidlab_core::time::Span;
use raidlab_experiment::hardware::Link;
use toml::de::DeTable;

/// A controller of the catalogue or of a file.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it is.
    pub controller: ControllerModel,
    /// One line on what it is.
    pub description: String,
    /// Every value with its source.
    pub facts: Vec<Fact>,
}

/// What a controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerModel {
    /// Model name.
    pub name: String,
    /// What its disks are connected by.
    pub link: Link,
    /// Time of the adapter for a command, one command at a time.
    pub command: Span,
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// Bytes a second that it reads at the most; 0: no limit of its own.
    pub read_rate: u64,
    /// Bytes a second that it writes at the most; 0: no limit of its own.
    pub write_rate: u64,
    /// Its channels.
    pub channel: ChannelModel,
    /// RAID without a cache.
    pub firmware: Option<FirmwareModel>,
    /// RAID with a cache.
    pub cache: Option<CacheModel>,
    /// What either does beside serving the host.
    pub background: BackgroundModel,
}

/// A channel: cable, bus or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelModel {
    /// Nominal bytes a second at the most; 0: no limit of its own.
    pub rate: u64,
    /// Share of the nominal rate in per cent that data get.
    pub efficiency: u32,
    /// The same below 60 MB/s, where an ATA channel's pauses weigh less.
    pub slow_efficiency: u32,
    /// Time a command takes on the channel before its data.
    pub command: Span,
    /// SCSI: time of arbitration, reselection and messages before the data of a disk that had
    /// disconnected.
    pub reconnect: Span,
    /// PATA: more time of a read when the command before it went to the other drive.
    pub switch_read: Span,
    /// The same of a write.
    pub switch_write: Span,
    /// Bytes a second that pass the first channel in both directions together; 0: no limit of its own.
    pub first_both: u64,
}

/// RAID in the firmware of a card without a cache: the host sees one disk that takes one command at
/// a time (MODELS 5.2, equation 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareModel {
    /// Largest command in sectors.
    pub max_sectors: u32,
    /// Time of the firmware for a read.
    pub read: Span,
    /// Time of the firmware for a write.
    pub write: Span,
    /// More time on a channel for a part of a read when the part before went to the channel's other
    /// drive: the firmware's own change of drive, not that of the host's driver.
    pub switch_read: Span,
    /// The same of a write.
    pub switch_write: Span,
}

/// How members are filled and made to agree while the host is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundModel {
    /// Per cent of the time that it takes while the host wants something; 0: only when it wants nothing.
    pub share: u32,
    /// Groups of stripes at a time in each array.
    pub runs: u32,
    /// Sectors that a group has of each member.
    pub run: u64,
}

impl Default for BackgroundModel {
    /// K: MegaRAID comes with a rebuild rate of 30 %, and takes it as the share of its processor's time. Assumed: the next group
    /// is read while one is written, and runs are so long that disks of today move them in about the time they take to come to them.
    fn default() -> Self {
        Self {
            share: 30,
            runs: 2,
            run: 2048,
        }
    }
}

/// RAID behind a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheModel {
    /// Sectors of its memory.
    pub sectors: u64,
    /// Sectors of that which the firmware needs for itself.
    pub firmware: u64,
    /// A write ends when it is in the cache.
    pub write_back: bool,
    /// Sectors of a cache line.
    pub line: u64,
    /// Sectors read ahead of a sequential reader; 0: none.
    pub read_ahead: u64,
    /// Share in per cent, of what the firmware leaves, that may wait to be written.
    pub high: u32,
    /// Share in per cent down to which it then writes whatever is dirty.
    pub low: u32,
    /// After so long without a command all that is dirty is written. Reads alone keep writes back that
    /// long, too.
    pub quiet: Span,
    /// Most runs on their way to the disks at a time.
    pub destages: u32,
    /// Commands of one direction that it keeps at a disk at a time; 0: as many as the disk takes.
    pub at_disk: u32,
    /// Time of the processor for a command of the host.
    pub command: Span,
    /// Bytes a second to the host.
    pub host_read: u64,
    /// Bytes a second from the host.
    pub host_write: u64,
    /// Bytes a second from the disks to its memory.
    pub disk_read: u64,
    /// Bytes a second from its memory to the disks.
    pub disk_write: u64,
    /// Bytes a second that its memory gives and takes, for host and disks together.
    pub memory: u64,
    /// Bytes a second of the operands of parity, for which it has the memory for itself.
    pub xor_rate: u64,
}

macro_rules! models {
    ($($name:literal = $file:literal),* $(,)?) => {
        /// The controllers that come with the program: name and text of the file.
        pub const MODELS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../models/controllers/", $file, ".toml")))),*
        ];
    };
}

models!(
    "ITE8212" = "ITE8212",
    "PERC3/Di" = "PERC3-Di",
    "pata" = "pata",
    "ahci" = "ahci",
    "u160" = "u160",
    "nvme" = "nvme",
    "hardware-raid" = "hardware-raid",
);

/// Shares of their peak rate that transfers get on buses: prefix of the kind, per cent. Bursts end at
/// the latency timer and begin with an address phase on PCI (K: 80 to 110 of 133 MB/s; of that, fitted
/// on the row 'md raid0 2 disks, 2 channels' of pata-raid0, 93 MB/s); PCI-X has split transactions; PCI Express has packet headers (K: 128-byte payloads under 24 bytes of
/// overhead).
const BUSES: [(&str, u32); 3] = [("pcie", 84), ("pci-x", 85), ("pci", 70)];

/// Share of its peak rate in per cent that transfers get on a bus of this kind; 100 for a kind that
/// is not known.
#[must_use]
pub fn bus_efficiency(kind: &str) -> u32 {
    let found = BUSES.iter().find(|(prefix, _)| kind.starts_with(prefix));
    found.map_or(100, |(_, percent)| *percent)
}

/// Reads a model file; `file` is how messages name it.
///
/// # Errors
/// All that is wrong with it, each with its line and what to do.
pub fn parse(file: &str, text: &str) -> Result<Model, ModelError> {
    let reader = Reader::new(file, text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let read = if syntax.is_empty() {
        lower::lower(&reader, document.get_ref())
    } else {
        for error in syntax {
            reader.report(&error.span().unwrap_or_default(), error.message());
        }
        None
    };
    let ((controller, description), facts) = reader.finish(read)?;
    Ok(Model {
        controller,
        description,
        facts,
    })
}

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no controller model '{name}': write the path of a model file, or one of {}",
    names()
)]
pub struct UnknownController {
    /// As asked for.
    pub name: String,
}

/// Why there is no model of a controller.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// No controller has its name.
    #[error(transparent)]
    Unknown(#[from] UnknownController),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] ModelError),
}

fn names() -> String {
    let all: Vec<_> = MODELS.iter().map(|(name, _)| *name).collect();
    all.join(", ")
}

/// A controller that comes with the program, by its name in any case.
///
/// # Errors
/// When there is none of that name; the message lists those there are.
pub fn find(name: &str) -> Result<Model, UnknownController> {
    let found = MODELS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    let unknown = || UnknownController {
        name: name.to_owned(),
    };
    let (known, text) = found.ok_or_else(unknown)?;
    // The files of the catalogue are checked by a test.
    parse(known, text).map_err(|_| unknown())
}

#[cfg(test)]
mod tests;
