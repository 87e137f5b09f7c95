//! What a file system is made with.
use raidlab_core::units::{Bytes, Lba, SECTOR};
use raidlab_experiment::kernel::{FilesystemKind, JournalMode, Kernel};
use raidlab_experiment::setup::{Engine, Setup};
use raidlab_layout::{Btrfs, Vdev};

/// What btrfs has several devices for: the device of the specification is its space of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Bytes of the chunk of metadata, which is the first behind the superblocks.
    pub metadata: u64,
    /// Bytes of a chunk of data.
    pub chunk: u64,
    /// What all devices have for so many bytes of data.
    pub raw: (u64, u64),
    /// Where each chunk of data begins, and what a row of it has that has parity, else 0; in bytes.
    pub chunks: Vec<(u64, u64)>,
}

impl Spread {
    /// As the devices are dealt out.
    #[must_use]
    pub fn of(btrfs: &Btrfs) -> Self {
        Self {
            metadata: btrfs.metadata().0 * SECTOR,
            chunk: btrfs.chunk().0 * SECTOR,
            raw: btrfs.raw(),
            chunks: {
                let bytes = |(at, row): (Lba, u64)| (at.0 * SECTOR, row * SECTOR);
                btrfs.begins().zip(btrfs.rows()).map(bytes).collect()
            },
        }
    }
}

/// What a file system is made with. Zero stands for "as its maker would choose".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsSpec {
    /// Which one.
    pub kind: FilesystemKind,
    /// The system: decides defaults and how it allocates.
    pub kernel: Kernel,
    /// Sectors of the device.
    pub device_sectors: u64,
    /// Bytes of a block; 0: the maker's choice.
    pub block: u32,
    /// Bytes of the journal; 0: the maker's choice.
    pub journal: u64,
    /// What the journal holds; `None`: the kind's default.
    pub mode: Option<JournalMode>,
    /// Flushes around commits; `None`: the kind's default.
    pub barriers: Option<bool>,
    /// Directories with a hash tree; `None`: the maker's choice.
    pub dir_index: Option<bool>,
    /// Reading changes the time of access on the device.
    pub atime: bool,
    /// ZFS: log2 of the unit of allocation in bytes.
    pub ashift: u32,
    /// ZFS: largest record in bytes.
    pub record: u32,
    /// ZFS: the vdevs that the device is made of, one after the other with its labels; empty: the device is one without
    /// parity.
    pub vdevs: Vec<Vdev>,
    /// Bytes of an array's chunk as md tells who makes a file system on it (`minimum_io_size`), 0 without.
    pub chunk: u64,
    /// Bytes of data in a stripe of one (`optimal_io_size`), 0 without.
    pub stripe: u64,
    /// Bytes of a physical sector of the device.
    pub sector: u32,
    /// btrfs: over several devices.
    pub spread: Option<Spread>,
}

impl FsSpec {
    /// The bare kind with every choice left to its maker.
    #[must_use]
    pub const fn new(kind: FilesystemKind, kernel: Kernel, device_sectors: u64) -> Self {
        Self {
            kind,
            kernel,
            device_sectors,
            block: 0,
            journal: 0,
            mode: None,
            barriers: None,
            dir_index: None,
            atime: true,
            ashift: 12,
            record: 128 << 10,
            vdevs: Vec::new(),
            chunk: 0,
            stripe: 0,
            sector: SECTOR as u32,
            spread: None,
        }
    }

    /// The file system of a cell on a device of so many sectors.
    ///
    /// Of the mount options those mean something here that [`Self::knows`] of; others are left to the host.
    #[must_use]
    pub fn of(setup: &Setup, device_sectors: u64) -> Self {
        let array = &setup.array;
        let kind = match (&setup.filesystem, array.engine) {
            (_, Engine::Zfs) => FilesystemKind::Zfs,
            (Some(fs), _) => fs.kind,
            (None, _) => FilesystemKind::None,
        };
        let mut spec = Self::new(kind, setup.host.kernel, device_sectors);
        spec.ashift = array.ashift.unwrap_or(spec.ashift);
        spec.record = array.record_size.map_or(spec.record, |b| b.0 as u32);
        if array.engine == Engine::Md && array.layout.uses_chunk() {
            spec.chunk = array.outer_chunk.or(array.chunk).map_or(0, |b| b.0);
        }
        if let Some(fs) = &setup.filesystem {
            let bytes = |b: Option<Bytes>| b.map_or(0, |b| b.0);
            spec.block = bytes(fs.block) as u32;
            spec.journal = bytes(fs.journal);
            spec.mode = fs.mode;
            for option in fs.mount_options.iter().flat_map(|o| o.split(',')) {
                // What is not known is told before the run.
                let _ = spec.option(option.trim());
            }
        }
        // relatime became the default with 2.6.30; the property of ZFS is on by default.
        if kind != FilesystemKind::Zfs && setup.host.kernel >= Kernel::Linux(2, 6, 30) {
            spec.atime = false;
        }
        spec
    }

    /// Whether a mount option means something here for such a file system, or by its name nothing anywhere.
    #[must_use]
    pub fn knows(kind: FilesystemKind, option: &str) -> bool {
        let journal = matches!(kind, FilesystemKind::Ext3 | FilesystemKind::Ext4);
        let mut spec = Self::new(kind, Kernel::DEFAULT, 0);
        let known = spec.option(option) && (journal || !option.starts_with("data="));
        known || matches!(option, "defaults" | "rw" | "")
    }

    /// Takes an option; whether it is one of those that mean something.
    fn option(&mut self, option: &str) -> bool {
        match option {
            "barrier" | "barrier=1" => self.barriers = Some(true),
            "nobarrier" | "barrier=0" => self.barriers = Some(false),
            "noatime" | "relatime" => self.atime = false,
            "data=ordered" => self.mode = Some(JournalMode::Ordered),
            "data=writeback" => self.mode = Some(JournalMode::Writeback),
            "data=journal" => self.mode = Some(JournalMode::Journal),
            _ => return false,
        }
        true
    }

    /// Bytes of the device.
    #[must_use]
    pub const fn device_bytes(&self) -> u64 {
        self.device_sectors * SECTOR
    }
}
