//! Experiments with the profiles that do as a tool does: bonnie, tiobench, HDBench, hdparm and dd.
use super::{Draws, KIB, MIB, Point};
use raidlab_core::rng::Stream;
use raidlab_experiment::kernel::Kernel;

/// What a tool is asked for. Its sizes are chosen so that a run takes about a second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) profile: &'static str,
    /// Bytes of the file, or of all files; of hdparm those of the file that it reads.
    pub(crate) size: u64,
    /// Bytes of a call; hdparm has its own.
    pub(crate) call: u64,
    /// Threads of tiobench, seekers of bonnie.
    pub(crate) threads: u64,
    /// Random operations of bonnie and tiobench.
    pub(crate) random: u64,
    /// Small files of bonnie, in units of 1024, with their largest size and the directories that they are in.
    pub(crate) files: u64,
    pub(crate) file_size: u64,
    pub(crate) directories: u64,
    /// Each character of bonnie is a call.
    pub(crate) by_call: bool,
    /// Caches are emptied before what is read.
    pub(crate) cold: bool,
    /// What is written is made durable: by bonnie and tiobench after every write, by HDBench and dd at the end.
    pub(crate) sync: bool,
    pub(crate) direct: bool,
    pub(crate) cpu: &'static str,
    pub(crate) cores: u64,
}

const TOOLS: &[&str] = &[
    "bonnie", "bonnie", "bonnie", "tiobench", "tiobench", "hdbench", "hdbench", "hdparm", "dd",
];
const CPUS: &[&str] = &[
    "Athlon 64 X2 3800+",
    "Xeon 1.6 GHz",
    "Turion II Neo N40L",
    "server-2011",
    "modern",
];

impl Tool {
    fn draw(draws: &mut Draws, memory: u64) -> Self {
        let profile = draws.of(TOOLS);
        let twice = draws.below(3) > 0;
        let size = if twice { 2 * memory } else { memory / 2 };
        let writes = ["hdbench", "dd"].contains(&profile);
        let call = match profile {
            "bonnie" => draws.of(&[2 * KIB, 8 * KIB, 8 * KIB, 64 * KIB]),
            "tiobench" => draws.of(&[4 * KIB, 4 * KIB, 16 * KIB, 128 * KIB]),
            "hdbench" => draws.of(&[16 * KIB, 64 * KIB, 64 * KIB, 256 * KIB]),
            _ => draws.of(&[64 * KIB, MIB, MIB, 4 * MIB]),
        };
        Self {
            profile,
            size: size.clamp(32 * MIB, 512 * MIB),
            call,
            threads: draws.of(&[1, 2, 4, 5, 8]),
            random: draws.of(&[200, 500, 1000]),
            files: draws.of(&[0, 1, 1, 2, 4]),
            file_size: draws.of(&[0, 0, 4 * KIB, 64 * KIB]),
            directories: draws.of(&[1, 1, 16]),
            by_call: draws.once_in(3),
            cold: !draws.once_in(4),
            sync: if writes {
                !draws.once_in(4)
            } else {
                draws.once_in(8)
            },
            direct: draws.once_in(6),
            cpu: draws.of(CPUS),
            cores: draws.of(&[1, 1, 2, 4]),
        }
    }

    /// The section of an experiment.
    pub(super) fn text(&self) -> String {
        let yes = |on: bool| if on { "yes" } else { "no" };
        let Self {
            size,
            call,
            threads,
            random,
            files,
            file_size,
            directories,
            ..
        } = *self;
        let name = self.profile;
        let mut text = format!(
            "\n[profile]\nname = \"{name}\"\ndirect = \"{}\"\n",
            yes(self.direct)
        );
        text += &match name {
            "bonnie" => format!(
                "size = \"{size}B\"\nchunk = \"{call}B\"\nseekers = {threads}\nseeks = {random}\nfiles = {files}\n\
                 file-size-max = \"{file_size}B\"\ndirectories = {directories}\nfsync-writes = \"{}\"\n\
                 characters = \"{}\"\ncharacters-size = \"{}B\"\n",
                yes(self.sync),
                if self.by_call { "calls" } else { "stream" },
                if self.by_call { MIB } else { size },
            ),
            "tiobench" => format!(
                "size = \"{size}B\"\nblock = \"{call}B\"\nthreads = {threads}\nrandom = {random}\nsync = \"{}\"\n",
                yes(self.sync)
            ),
            "hdbench" => format!(
                "sizes = [\"{size}B\"]\ncall = \"{call}B\"\nsync = \"{}\"\n",
                yes(self.sync)
            ),
            "hdparm" => {
                format!("size = \"{size}B\"\nread-time = \"1s\"\ncached-time = \"100ms\"\n")
            }
            _ => format!(
                "bs = \"{call}B\"\ncount = {}\nconv = \"{}\"\n",
                size / call,
                if self.sync { "fdatasync" } else { "none" }
            ),
        };
        // hdparm has caches and files in phases of their own.
        if name != "hdparm" {
            text += &format!("cold = \"{}\"\n", yes(self.cold));
        }
        text
    }

    /// In a line.
    pub(super) fn told(&self) -> String {
        let Self {
            size,
            call,
            threads,
            random,
            files,
            file_size,
            directories,
            ..
        } = *self;
        let on = |on: bool, name: &'static str| if on { name } else { "" };
        format!(
            "{} {}M calls {call}{}{}{}{} threads {threads} random {random} files {files}x{file_size} in {directories} \
             on {} x {}",
            self.profile,
            size / MIB,
            on(self.by_call, " by-call"),
            on(!self.cold, " warm"),
            on(self.sync, " sync"),
            on(self.direct, " direct"),
            self.cores,
            self.cpu,
        )
    }
}

impl Point {
    /// Point `number` of a seed with a tool's profile: the hardware and the system of [`Point::draw`], with a file system
    /// of the time (none for a quarter of hdparm and dd), less memory and another processor.
    pub(crate) fn draw_tool(seed: u64, number: u64) -> Self {
        let mut point = Self::draw(seed, number);
        let mut draws = Draws::new(Stream::new(seed).child(number).child(1));
        point.memory = draws.of(&[64, 128, 256]) * MIB;
        // ZFS needs some to prefetch into.
        if point.filesystem == "zfs" {
            point.memory = 256 * MIB;
        }
        let tool = Tool::draw(&mut draws, point.memory);
        let windows = draws.once_in(10) && point.filesystem != "zfs";
        if windows {
            (point.kernel, point.scheduler) = ("windows-2000", None);
        }
        let modern = point.kernel.parse::<Kernel>();
        let modern = modern.is_ok_and(|kernel| kernel >= Kernel::Linux(2, 6, 28));
        point.filesystem = match (point.filesystem, draws.below(8)) {
            ("zfs", _) => "zfs",
            (_, 0 | 1) if ["hdparm", "dd"].contains(&tool.profile) => "none",
            _ if windows => "ntfs",
            (_, 0..=2) if modern => "ext4",
            (_, 3) => "xfs",
            (_, 4) => "ext2",
            (_, 5) if modern => "btrfs",
            _ => "ext3",
        };
        point.tool = Some(tool);
        point
    }
}
