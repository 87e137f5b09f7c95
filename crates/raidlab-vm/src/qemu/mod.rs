//! The machine that QEMU is asked for: as data, and as a command line that depends on the data alone.
mod command;
mod process;

pub use command::arguments;
pub(crate) use command::{CONSOLE, PORT, SOCKET};
pub(crate) use process::{Process, spawn};

use crate::error::VmError;
use crate::kernel::Flavour;
use crate::tools;
use raidlab_core::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The program.
pub const PROGRAM: &str = "qemu-system-x86_64";
/// The package that has it.
pub const PACKAGE: &str = "qemu-system-x86";

/// The version of QEMU that is here.
///
/// # Errors
/// When it is not installed.
pub fn version() -> Result<String, VmError> {
    let missing = || VmError::Missing {
        program: PROGRAM.to_owned(),
        package: PACKAGE.to_owned(),
    };
    tools::find(PROGRAM).ok_or_else(missing)?;
    let said = tools::run(PROGRAM, &["--version"], None)?;
    let said = String::from_utf8_lossy(&said);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

/// Which clock the guest lives by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// A clock that counts instructions, one a nanosecond, and leaps while the guest is idle: what the
    /// guest measures depends on the load of this machine hardly at all.
    #[default]
    Virtual,
    /// This machine's clock.
    Real,
}

/// What carries out the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// QEMU's translator: everywhere, and slow.
    #[default]
    Tcg,
    /// The processor itself; for functional work only, never for figures.
    Kvm,
}

/// Where a disk of real time is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slot {
    /// One of the two drives of one of the two channels of the PIIX3.
    Ide {
        /// 0 or 1.
        channel: u32,
        /// 0 or 1.
        unit: u32,
    },
    /// A port of an AHCI adapter; each adapter has six.
    Ahci {
        /// Counted over all adapters.
        port: u32,
    },
    /// A target on the bus of an LSI 53C895A; each adapter has one bus of seven targets.
    Scsi {
        /// Which adapter.
        bus: u32,
        /// 0 to 6.
        target: u32,
    },
    /// An NVMe controller of its own.
    Nvme,
    /// A virtio block device of its own.
    Virtio,
}

impl Slot {
    /// The kernel that has its driver.
    #[must_use]
    pub const fn flavour(self) -> Flavour {
        match self {
            Self::Ahci { .. } | Self::Scsi { .. } => Flavour::Generic,
            Self::Ide { .. } | Self::Nvme | Self::Virtio => Flavour::Cloud,
        }
    }

    /// Whether QEMU has such a slot.
    #[must_use]
    pub const fn exists(self) -> bool {
        match self {
            Self::Ide { channel, unit } => channel < 2 && unit < 2,
            Self::Ahci { port } => port < 4 * PORTS,
            Self::Scsi { bus, target } => bus < 4 && target < 7,
            Self::Nvme | Self::Virtio => true,
        }
    }

    /// Whether a disk there may have logical sectors of so many bytes: QEMU's drives of ATA have 512.
    #[must_use]
    pub const fn takes(self, sector: u32) -> bool {
        match self {
            Self::Ide { .. } | Self::Ahci { .. } => sector == 512,
            Self::Scsi { .. } | Self::Nvme | Self::Virtio => true,
        }
    }
}

/// Bytes of a disk's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sectors {
    /// By which it is addressed.
    pub logical: u32,
    /// As they are on the medium.
    pub physical: u32,
}

impl Default for Sectors {
    fn default() -> Self {
        Self {
            logical: 512,
            physical: 512,
        }
    }
}

/// As a device's properties, where they are not what QEMU takes them to be.
impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let Self { logical, physical } = self;
        write!(
            f,
            ",logical_block_size={logical},physical_block_size={physical}"
        )
    }
}

/// Ports of an AHCI adapter.
const PORTS: u32 = 6;

/// A disk that is served over NBD from the host, for real time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Told to the guest as its serial number: 20 characters at the most.
    pub name: String,
    /// The server's socket.
    pub socket: PathBuf,
    /// Where it is connected.
    pub slot: Slot,
    /// Its sectors.
    pub sectors: Sectors,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// The guest's clock.
    pub time: Time,
    /// What runs it.
    pub accelerator: Accelerator,
    /// Memory of the guest's kernel.
    pub memory: Bytes,
    /// Memory above 4 GiB that the guest's kernel leaves alone: what modelled disks hold, in virtual time.
    pub store: Bytes,
    /// Disks that the host serves, in real time.
    pub disks: Vec<Disk>,
}

/// Where memory goes on above the space for devices.
const HIGH: u64 = 4 << 30;
/// Memory below that space at the most.
const LOW: u64 = 3 << 30;

impl Machine {
    /// A machine in virtual time.
    #[must_use]
    pub fn virtual_time(memory: Bytes, store: Bytes) -> Self {
        Self {
            time: Time::Virtual,
            accelerator: Accelerator::Tcg,
            memory,
            store,
            disks: Vec::new(),
        }
    }

    /// A machine in real time.
    #[must_use]
    pub fn real_time(memory: Bytes, disks: Vec<Disk>) -> Self {
        Self {
            time: Time::Real,
            accelerator: Accelerator::Tcg,
            memory,
            store: Bytes(0),
            disks,
        }
    }

    /// Memory of the guest's kernel below the space for devices.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.memory.0.min(LOW)
    }

    /// Where the memory begins that the guest's kernel leaves alone.
    #[must_use]
    pub fn store_at(&self) -> u64 {
        HIGH + self.memory.0 - self.low()
    }

    /// The kernel that has drivers for all of it.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        let generic = |disk: &Disk| disk.slot.flavour() == Flavour::Generic;
        if self.disks.iter().any(generic) {
            Flavour::Generic
        } else {
            Flavour::Cloud
        }
    }

    /// Modules of the drivers of its disks.
    #[must_use]
    pub fn modules(&self) -> Vec<&'static str> {
        let mut wanted: Vec<&str> = Vec::new();
        for disk in &self.disks {
            wanted.extend(match disk.slot {
                Slot::Ide { .. } => ["ata_piix", "sd_mod"].as_slice(),
                Slot::Ahci { .. } => &["ahci", "sd_mod"],
                Slot::Scsi { .. } => &["sym53c8xx", "sd_mod"],
                Slot::Nvme => &["nvme"],
                Slot::Virtio => &["virtio_blk"],
            });
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}
