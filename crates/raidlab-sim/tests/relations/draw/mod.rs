//! Experiments drawn at random, as data that a relation can change in one place: another disk more, half the calls, the
//! other scheduler.
#[path = "../../shared/draws.rs"]
mod draws;
mod part;
mod text;
mod tools;

use draws::{Draws, schedulers};
use part::{layout, load, pool, topology};
use raidlab_core::rng::Stream;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::kernel::Kernel;
pub(crate) use tools::Tool;

/// Disks of the catalogue with the interface that decides where they fit, and the highest rate of their media in bytes a
/// second (of the link, for those without an arm).
pub(crate) const MODELS: &[(&str, Kind, f64)] = &[
    ("HP-C3323A", Kind::Scsi, 7.2e6),
    ("KW036", Kind::Scsi, 55e6),
    ("MAN3367MP", Kind::Scsi, 65e6),
    ("ST336706LW", Kind::Scsi, 60e6),
    ("ST336752LW", Kind::Scsi, 69e6),
    ("u160-10k-2002", Kind::Scsi, 58e6),
    ("ST340015A", Kind::Pata, 46.5e6),
    ("ST3250624AS", Kind::Sata, 67.5e6),
    ("ST3160812AS", Kind::Sata, 76.5e6),
    ("ST3000DM001", Kind::Sata, 210e6),
    ("nearline-24tb", Kind::Sata, 285e6),
    ("sata-ssd", Kind::Solid, 560e6),
    ("nvme-ssd", Kind::Nvme, 7000e6),
];

/// What a disk fits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scsi,
    Pata,
    Sata,
    /// SATA without an arm.
    Solid,
    Nvme,
}

impl Kind {
    pub(crate) const fn link(self) -> Link {
        match self {
            Self::Scsi => Link::Scsi,
            Self::Pata => Link::Pata,
            Self::Sata | Self::Solid => Link::Sata,
            Self::Nvme => Link::Nvme,
        }
    }
}

/// How the disks are connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Topology {
    /// Each on its own.
    Own,
    /// On controllers of their kind, so many on a channel, on a bus of the kind or on none.
    Cards {
        on_channel: usize,
        bus: Option<&'static str>,
    },
    /// A controller with a cache makes the array.
    Hardware { cache: &'static str, back: bool },
}

/// One experiment of one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) model: usize,
    pub(crate) disks: usize,
    /// What of the model is overridden: `key = value` joined by commas.
    pub(crate) overrides: String,
    pub(crate) topology: Topology,
    pub(crate) layout: &'static str,
    pub(crate) chunk: u64,
    pub(crate) state: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) scheduler: Option<&'static str>,
    pub(crate) write_cache: bool,
    pub(crate) memory: u64,
    /// More lines of `[host]`.
    pub(crate) host: String,
    /// More lines of `[array]`.
    pub(crate) array: String,
    /// More lines of `[profile]`.
    pub(crate) profile: String,
    pub(crate) filesystem: &'static str,
    pub(crate) load: Load,
    /// A tool's profile, instead of the load.
    pub(crate) tool: Option<Tool>,
    pub(crate) seed: u64,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) random: bool,
    pub(crate) read: bool,
    pub(crate) direct: bool,
    pub(crate) block: u64,
    pub(crate) depth: u64,
    pub(crate) jobs: u64,
    pub(crate) total: u64,
    /// Bytes of the array or file that are used; 0: all of it.
    pub(crate) size: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const KERNELS: &[&str] = &[
    "2.4.20", "2.6.12", "2.6.16", "2.6.21", "2.6.32", "2.6.39", "3.2", "3.16", "4.4", "4.19",
    "5.10", "6.1",
];
const BUSES: &[Option<&str>] = &[
    None,
    Some("pci-32-33"),
    Some("pci-64-66"),
    Some("pci-x-64-133"),
    Some("pcie-2-x4"),
    Some("pcie-3-x4"),
];

impl Point {
    /// Point `number` of a seed; every eighth is a pool of ZFS. Not all can be built (a scheduler that a kernel does not have, a layout that needs more
    /// disks): those are for the experiment language to refuse.
    pub(crate) fn draw(seed: u64, number: u64) -> Self {
        let mut draws = Draws::new(Stream::new(seed).child(number));
        let model = draws.below(MODELS.len() as u64) as usize;
        let kind = MODELS[model].1;
        let zfs = number % 8 == 7;
        let (layout, disks) = if zfs {
            pool(&mut draws)
        } else {
            layout(&mut draws)
        };
        let topology = match topology(&mut draws, kind) {
            Topology::Hardware { .. } if zfs => Topology::Own,
            topology => topology,
        };
        let kernel = draws.of(KERNELS);
        let schedulers = schedulers(kernel);
        let scheduler =
            (!schedulers.is_empty() && !draws.once_in(3)).then(|| draws.of(&schedulers));
        let redundant = !["single", "linear", "raid0"].contains(&layout);
        let state = match draws.below(6) {
            0 if redundant => "degraded 1",
            1 if redundant => "rebuilding 1",
            // ZFS has no such state.
            2 if redundant && !zfs => "resyncing",
            _ => "clean",
        };
        let filesystem = match draws.below(6) {
            0 => "ext3",
            1 => "ext4",
            2 => "xfs",
            _ => "none",
        };
        let filesystem = if zfs { "zfs" } else { filesystem };
        let mut load = load(&mut draws, kind, filesystem != "none");
        if zfs {
            (load.direct, load.depth) = (false, 1);
        }
        let overrides = match draws.below(8) {
            0 => "capacity = \"8GiB\"",
            1 => "cache = \"1MiB\"",
            2 => "capacity = \"16GiB\", sector-physical = \"4KiB\"",
            _ => "",
        };
        Self {
            model,
            disks,
            overrides: overrides.to_owned(),
            topology,
            layout,
            chunk: draws.of(&[4, 16, 64, 64, 128, 512, 512, 1024]) * KIB,
            state,
            kernel,
            scheduler,
            write_cache: !draws.once_in(5),
            // A prepared file of a pool is in the ARC as far as it fits, and of what is read from there no disk tells.
            memory: draws.of(if zfs { &[128; 3] } else { &[128, 1024, 4096] }) * MIB,
            host: String::new(),
            array: String::new(),
            profile: String::new(),
            filesystem,
            load,
            tool: None,
            seed: draws.below(1 << 20),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        MODELS[self.model].1
    }

    pub(crate) fn media(&self) -> f64 {
        MODELS[self.model].2
    }

    pub(crate) fn rotates(&self) -> bool {
        !matches!(self.kind(), Kind::Solid | Kind::Nvme)
    }

    /// Kernels to 2.6.23 with deadline, which does not sort what is given more than a disk serves in half a second: what has
    /// waited for longer goes first, one by one in the order of arrival (`deadline_dispatch_requests` ends a batch with the
    /// first request that does not go on where the last ended).
    pub(crate) fn expires(&self) -> bool {
        let kernel = self.kernel.parse::<Kernel>();
        let old = kernel.is_ok_and(|kernel| kernel < Kernel::Linux(2, 6, 24));
        old && self.scheduler == Some("deadline") && self.rotates()
    }

    /// The same, changed.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    /// One disk of those, by itself.
    pub(crate) fn alone(&self) -> Self {
        self.with(|p| {
            (p.layout, p.disks, p.state) = ("single", 1, "clean");
            p.array.clear();
        })
    }
}
