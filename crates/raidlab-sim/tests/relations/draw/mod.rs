//! Experiments drawn at random, as data that a relation can change in one place: another disk more, half the calls, the
//! other scheduler.
use raidlab_core::rng::Stream;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::kernel::{Kernel, Scheduler};

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
    pub(crate) filesystem: &'static str,
    pub(crate) load: Load,
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
const SCHEDULERS: &[&str] = &[
    "noop",
    "deadline",
    "anticipatory",
    "cfq",
    "none",
    "mq-deadline",
    "bfq",
    "kyber",
];
const BUSES: &[Option<&str>] = &[
    None,
    Some("pci-32-33"),
    Some("pci-64-66"),
    Some("pci-x-64-133"),
    Some("pcie-2-x4"),
    Some("pcie-3-x4"),
];

/// Draws one after the other from a stream.
struct Draws(Stream, u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.1 += 1;
        self.0.below(self.1, most)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

impl Point {
    /// Point `number` of a seed. Not all can be built (a scheduler that a kernel does not have, a layout that needs more
    /// disks): those are for the experiment language to refuse.
    pub(crate) fn draw(seed: u64, number: u64) -> Self {
        let mut draws = Draws(Stream::new(seed).child(number), 0);
        let model = draws.below(MODELS.len() as u64) as usize;
        let kind = MODELS[model].1;
        let (layout, disks) = layout(&mut draws);
        let topology = topology(&mut draws, kind);
        let kernel = draws.of(KERNELS);
        let known = kernel.parse::<Kernel>().ok();
        let has = |name: &&str| {
            known
                .zip(Scheduler::named(name))
                .is_some_and(|(k, s)| k.lacks(s).is_none())
        };
        let schedulers: Vec<&str> = SCHEDULERS.iter().copied().filter(has).collect();
        let scheduler =
            (!schedulers.is_empty() && !draws.once_in(3)).then(|| draws.of(&schedulers));
        let redundant = !["single", "linear", "raid0"].contains(&layout);
        let state = match draws.below(6) {
            0 if redundant => "degraded 1",
            1 if redundant => "rebuilding 1",
            2 if redundant => "resyncing",
            _ => "clean",
        };
        let rebuilt = matches!(topology, Topology::Hardware { .. }) && state != "degraded 1";
        let state = if rebuilt { "clean" } else { state };
        let filesystem = match draws.below(6) {
            0 => "ext3",
            1 => "ext4",
            2 => "xfs",
            _ => "none",
        };
        let load = load(&mut draws, kind, filesystem != "none");
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
            memory: draws.of(&[128, 1024, 4096]) * MIB,
            host: String::new(),
            array: String::new(),
            filesystem,
            load,
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

    /// Its experiment, as a user would write it.
    pub(crate) fn text(&self) -> String {
        let Load {
            random,
            read,
            direct,
            block,
            depth,
            jobs,
            total,
            size,
        } = self.load;
        let name = if random { "random" } else { "sequential" };
        let yes = |on: bool| if on { "yes" } else { "no" };
        let mut text = format!(
            "title = \"Drawn\"\ndesign.seed = {}\ndisks = {{ model = \"{}\", count = {}, override = {{ {} }} }}\n",
            self.seed, MODELS[self.model].0, self.disks, self.overrides
        );
        text += &self.topology();
        text += &format!("\n[array]\nlayout = \"{}\"\n", self.layout);
        if !["single", "linear", "raid1"].contains(&self.layout) {
            text += &format!("chunk = \"{}B\"\n", self.chunk);
        }
        if self.state != "clean" {
            text += &format!("state = \"{}\"\n", self.state);
        }
        text += &self.array;
        text += &format!(
            "\n[host]\nkernel = \"{}\"\nmemory = \"{}B\"\nwrite-cache = {}\n{}",
            self.kernel, self.memory, self.write_cache, self.host
        );
        if let Some(scheduler) = self.scheduler {
            text += &format!("scheduler = \"{scheduler}\"\n");
        }
        if self.filesystem != "none" {
            text += &format!("\n[filesystem]\nkind = \"{}\"\n", self.filesystem);
        }
        text += &format!(
            "\n[profile]\nname = \"{name}\"\nblock = \"{block}B\"\ndepth = {depth}\njobs = {jobs}\ndirect = \"{}\"\n\
             time = \"100000s\"\ntotal = \"{total}B\"\nread-percent = {}\n",
            yes(direct),
            if read { 100 } else { 0 }
        );
        if !read {
            text += "end-fsync = \"yes\"\n";
        }
        if size > 0 {
            text += &format!("size = \"{size}B\"\n");
        }
        text
    }

    fn topology(&self) -> String {
        let kind = match self.kind() {
            Kind::Scsi => "scsi",
            Kind::Pata => "pata",
            Kind::Sata | Kind::Solid => "sata",
            Kind::Nvme => "nvme",
        };
        match self.topology {
            Topology::Own => String::new(),
            Topology::Cards { on_channel, bus } => {
                let disks: Vec<String> = (0..self.disks).map(|d| format!("\"disk{d}\"")).collect();
                let channels = disks.chunks(on_channel.max(1));
                let channels: Vec<String> =
                    channels.map(|c| format!("[{}]", c.join(", "))).collect();
                let bus_name = if bus.is_some() {
                    "bus = \"slot\"\n"
                } else {
                    ""
                };
                let bus = bus.map_or_else(String::new, |bus| {
                    format!("\n[topology.buses.slot]\nkind = \"{bus}\"\n")
                });
                let disks = if self.disks == 1 {
                    "[\"disk\"]".to_owned()
                } else {
                    channels.join(", ")
                };
                format!(
                    "{bus}\n[topology.controllers.card]\nkind = \"{kind}\"\n{bus_name}channels = {}\ndisks = [{disks}]\n",
                    channels.len()
                )
            }
            Topology::Hardware { cache, back } => format!(
                "\n[topology.controllers.card]\nkind = \"hardware-raid\"\nlink = \"{kind}\"\ncache = \"{cache}\"\n\
                 cache-mode = \"{}\"\n",
                if back { "write-back" } else { "write-through" }
            ),
        }
    }
}

fn layout(draws: &mut Draws) -> (&'static str, usize) {
    let any = |draws: &mut Draws, least: u64, most: u64| least + draws.below(most - least + 1);
    let (layout, disks) = match draws.below(15) {
        0 => ("single", 1),
        1 => ("linear", any(draws, 2, 4)),
        2 | 3 => ("raid0", any(draws, 2, 12)),
        4 | 5 => ("raid1", any(draws, 2, 3)),
        6 => ("raid4", any(draws, 3, 8)),
        7 | 8 => ("raid5", any(draws, 3, 12)),
        9 => ("raid6", any(draws, 4, 12)),
        10 => ("raid10", any(draws, 2, 9)),
        11 => ("raid10-f2", any(draws, 2, 8)),
        12 => ("raid10-o2", any(draws, 2, 8)),
        13 => draws.of(&[("raid01 2x2", 4), ("raid01 2x3", 6)]),
        _ => draws.of(&[("raid50 2x3", 6), ("raid50 2x4", 8)]),
    };
    (layout, disks as usize)
}

fn topology(draws: &mut Draws, kind: Kind) -> Topology {
    let cards = |on_channel: usize, draws: &mut Draws| Topology::Cards {
        on_channel,
        bus: draws.of(BUSES),
    };
    match (kind, draws.below(4)) {
        (_, 0) => Topology::Own,
        (Kind::Nvme, _) => cards(1, draws),
        (_, 1) => Topology::Hardware {
            cache: draws.of(&["32MiB", "512MiB"]),
            back: !draws.once_in(3),
        },
        (Kind::Pata, _) => {
            let on_channel = draws.of(&[1, 2]);
            cards(on_channel, draws)
        }
        (Kind::Scsi, _) => {
            let on_channel = draws.of(&[4, 12]);
            cards(on_channel, draws)
        }
        _ => cards(1, draws),
    }
}

fn load(draws: &mut Draws, kind: Kind, file: bool) -> Load {
    let random = draws.once_in(2);
    let read = draws.once_in(2);
    let direct = !draws.once_in(3);
    let block = if random {
        draws.of(&[512, 4 * KIB, 4 * KIB, 8 * KIB, 64 * KIB, MIB])
    } else {
        draws.of(&[
            512,
            4 * KIB,
            64 * KIB,
            128 * KIB,
            256 * KIB,
            MIB,
            MIB,
            4 * MIB,
        ])
    };
    let depth = if direct {
        draws.of(&[1, 1, 2, 4, 8, 16, 32, 64, 128, 1024])
    } else {
        1
    };
    let jobs = if draws.once_in(5) {
        draws.of(&[2, 4])
    } else {
        1
    };
    let solid = matches!(kind, Kind::Solid | Kind::Nvme);
    let ops = if solid { 6000 } else { 1200 } + 4 * depth * jobs;
    let total = match random {
        true => (block * ops)
            .min(160 * MIB)
            .max(block * 16 * (depth * jobs).min(32)),
        false => draws.of(&[64, 128, 256]) * MIB.min(block * 64),
    };
    let size = if file {
        draws.of(&[1, 4]) * (256 * MIB).max(total)
    } else {
        0
    };
    Load {
        random,
        read,
        direct,
        block,
        depth,
        jobs,
        total: total / (block * jobs) * block * jobs,
        size,
    }
}

impl Point {
    /// In a line.
    pub(crate) fn told(&self) -> String {
        let Load {
            random,
            read,
            direct,
            block,
            depth,
            jobs,
            total,
            size,
        } = self.load;
        format!(
            "{} x {} {{{}}} {} chunk {}K {} {:?} linux {} {} wc={} mem={}M fs={} {} {}{}: {}B x {depth} x {jobs}, {}M of {}M",
            self.disks,
            MODELS[self.model].0,
            self.overrides,
            self.layout,
            self.chunk / KIB,
            self.state,
            self.topology,
            self.kernel,
            self.scheduler.unwrap_or("-"),
            self.write_cache,
            self.memory / MIB,
            self.filesystem,
            if random { "random" } else { "sequential" },
            if read { "read" } else { "write" },
            if direct { " direct" } else { "" },
            block,
            total / MIB,
            size / MIB,
        )
    }
}
