//! Arguments of `raidlab vm`.
use crate::real::death::Death;
use crate::real::early::Early;
use clap::{Args, Subcommand, ValueEnum};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
A guest is a real Linux kernel in QEMU, whose disks are raidlab's models. It needs no root and no
hardware virtualisation; 'raidlab run FILE --on vm' boots one by itself. What it is made of:
  the kernel     the distribution's package, fetched with apt-get download and unpacked in the cache
  the image      this raidlab, and this machine's mdadm, mkfs.*, hdparm, bonnie++ and libraries
  QEMU           qemu-system-x86_64, which translates: a guest's figures come from its own clock

Examples:
  raidlab vm setup                                find a kernel, write the image, boot it once
  raidlab vm setup --kernel generic               with drivers of real hardware (AHCI, SCSI)
  raidlab vm setup --zfs                          build ZFS for guests, too
  raidlab vm disks ST3250624AS -n 4               are they as fast as the models there?
  raidlab vm shell experiments/vm-levels.toml     look around in there, with the experiment's disks
  raidlab vm maps --only raid5                    is each sector where raidlab says it is?
  raidlab vm exec ./my-test                       a program of yours, in there
  raidlab vm probe                                is hardware virtualisation of any use here?")]
pub(crate) struct VmArgs {
    /// Where kernels and images are kept [default: raidlab in the XDG cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "RAIDLAB_CACHE")]
    pub(crate) cache: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) action: VmAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VmAction {
    /// Find a kernel, write the guest's image, and boot it once
    Setup(SetupArgs),
    /// How modelled disks look to the guest's kernel, beside the models alone
    Disks(VmDisksArgs),
    /// Whether the kernel puts every sector, copy and parity where raidlab's layouts say
    Maps(MapsArgs),
    /// Whether hardware virtualisation really runs here (for functional work; never for figures)
    Probe {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Boot a guest with an experiment's disks and a shell on this terminal
    Shell(ShellArgs),
    /// Run a program of this machine in a guest, whose kernel and devices it may ruin
    Exec(ExecArgs),
}

/// Which of the distribution's kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelChoice {
    /// For virtual machines: small, boots fast
    #[default]
    Cloud,
    /// With drivers of real hardware
    Generic,
}

/// What a guest does for a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Misbehave {
    /// Its kernel panics
    Panic,
    /// It says nothing more
    Hang,
    /// It uses up its memory
    Memory,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The same programs and kernel give the same image, bit for bit; its SHA-256 is kept with every trial.
Nothing is installed: what this machine lacks is told with the package that has it.

With --zfs the module is built from Debian's source package (zfs-dkms, of its contrib component)
against the kernel's headers, which takes some minutes once, gcc and make; no root, and the
machine's apt stays as it is. It is kept in the cache by kernel and version. ZFS has the CDDL as its
licence and Linux the GPL: whoever builds the two together may use them, and not pass them on;
raidlab brings neither.

Examples:
  raidlab vm setup                                what 'run --on vm' would use
  raidlab vm setup --refresh                      the distribution's kernel of today
  raidlab vm setup --zfs                          and ZFS, for experiments with pools
  raidlab vm setup --package linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb")]
pub(crate) struct SetupArgs {
    /// Which kernel
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kernel: KernelChoice,

    /// A kernel package's file, instead of fetching one
    #[arg(long, value_name = "DEB")]
    pub(crate) package: Option<PathBuf>,

    /// Look for a newer package although a kernel is there
    #[arg(long, conflicts_with = "package")]
    pub(crate) refresh: bool,

    /// Build ZFS for the guest's kernel, unless that has been done
    #[arg(long)]
    pub(crate) zfs: bool,

    /// Do not boot
    #[arg(long)]
    pub(crate) no_boot: bool,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Let the guest do this, to see that it is noticed
    #[arg(long, value_enum, hide = true)]
    pub(crate) misbehave: Option<Misbehave>,
}

/// What disks are connected by in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hardware {
    /// A virtio device for each
    Virtio,
    /// The two channels of an IDE controller, two drives on each
    Ide,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The guest's clock counts instructions, a nanosecond each, and leaps while nothing is to be done;
raidlab itself serves the disks in there, so that its server, the kernel's block layer and the
program that asks share one processor. Replies leave 32 us early, as long as the way of a small
request is; what all this costs beyond that is what the guest's figures are below the models'. Reads
and writes go past the page cache, one at a time on each disk, on all disks at the same time.

Examples:
  raidlab vm disks ST3250624AS                    one disk
  raidlab vm disks ST340015A -n 4 --topology pata:2+2
  raidlab vm disks nvme-ssd                       what the server in the guest can do at most
  raidlab vm disks ST3250624AS --real virtio      in real time: needs an idle machine

With --real the disks are served by this machine's raidlab, in real time, behind hardware that QEMU
emulates. How late replies were is told below the table; on a busy machine they are.")]
pub(crate) struct VmDisksArgs {
    /// A disk of the catalogue
    #[arg(value_name = "MODEL")]
    pub(crate) model: String,

    /// So many of them
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) count: u32,

    /// What they are connected by: KIND or KIND:DISKS+DISKS, as of 'raidlab disk serve'
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,

    /// Bytes of each disk that are shown, from its beginning on
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub(crate) size: Bytes,

    /// MiB that are read, and written, in sequence on each disk
    #[arg(long, value_name = "N", default_value_t = 128,
          value_parser = clap::value_parser!(u64).range(1..=8192))]
    pub(crate) sequential: u64,

    /// Random reads, and writes, on each disk
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) random: u64,

    /// In real time, behind this hardware
    #[arg(long, value_enum, value_name = "HARDWARE")]
    pub(crate) real: Option<Hardware>,

    /// In real time: reply so much before the model's time, to make up for the way to the guest and back: a TIME such
    /// as 500us, or 'auto', which measures the way in a guest of its own first
    #[arg(long, value_name = "TIME", default_value = "auto", requires = "real")]
    pub(crate) early: Early,

    /// Seed of models and requests
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A guest builds each array with mdadm, writes every sector of it with a content that says which
sector it is, flushes, and reads the members underneath. Every place that the layout names for a
sector is compared, copies included; parities are computed from the data and looked for where the
layout has them. One line an array:
  sectors   of the array, all of them written
  places    on members where they were looked for
  P, Q      sectors of parity that were compared
Exit code 1: the kernel and raidlab disagree; 5: an array could not be looked at.

Examples:
  raidlab vm maps                                 every level and layout: some minutes
  raidlab vm maps --only raid6 --only imsm        those with either in their names
  raidlab vm maps --list                          their names")]
pub(crate) struct MapsArgs {
    /// Only arrays with this in their names; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,

    /// Tell which there are, and do nothing
    #[arg(long)]
    pub(crate) list: bool,

    /// Compare with this layout instead, to see that a difference is noticed
    #[arg(long, value_name = "LAYOUT", hide = true)]
    pub(crate) against: Option<String>,

    /// Seed of what is written
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The shell is busybox's, with mdadm, mkfs.* and raidlab beside it; the disks are the models of the
experiment, by the guest's own clock, which leaps while nothing is typed (--time real has this
machine's). 'exit' or Ctrl-D ends the guest; nothing of it is kept.

Examples:
  raidlab vm shell experiments/vm-levels.toml
  raidlab vm shell lab.toml --cell raid5          the disks of that cell, if cells differ in them")]
pub(crate) struct ShellArgs {
    /// The experiment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The cell whose disks are there, by its label [default: the first]
    #[arg(long, value_name = "LABEL")]
    pub(crate) cell: Option<String>,

    /// Show only so much of each disk, from its beginning on [default: the file's]
    #[arg(long, value_name = "SIZE", value_parser = super::real::size)]
    pub(crate) member_size: Option<Bytes>,

    /// The guest's clock
    #[arg(long, value_enum, default_value_t)]
    pub(crate) time: GuestTime,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The program runs as root in a guest of its own, with the libraries that it loads, and without disks;
loop devices can be made there. What it writes comes here when it has ended. Exit code 5: it ended
with another code than 0, or the guest came to nothing.

Examples:
  raidlab vm exec cat --module raid1 -- /proc/mdstat
  raidlab vm exec ./my-test --with losetup --with mdadm --module loop -- --verbose
  raidlab vm exec zpool --zfs -- version")]
pub(crate) struct ExecArgs {
    /// The program: a name, or the path of its file
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: PathBuf,

    /// Its arguments
    #[arg(value_name = "ARGUMENT", last = true)]
    pub(crate) arguments: Vec<String>,

    /// A further program that the guest is to have; may be given several times
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) with: Vec<String>,

    /// A kernel module to load before; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) module: Vec<String>,

    /// Give the guest ZFS, as 'raidlab vm setup --zfs' has built it, and load its module before
    #[arg(long)]
    pub(crate) zfs: bool,

    /// A variable of its environment; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,

    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) memory: Bytes,

    /// It may take so long by this machine's clock
    #[arg(long, value_name = "TIME", default_value = "600s")]
    pub(crate) limit: Span,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The guest's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuestTime {
    /// It counts instructions, and leaps while the guest is idle; disks are modelled inside the guest
    #[default]
    Virtual,
    /// This machine's; disks are served by the host behind controllers of the experiment's kinds
    Real,
}

/// What runs are told of the virtual machine.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "In a virtual machine")]
pub(crate) struct VmRunArgs {
    /// The guest's clock
    #[arg(long, value_enum, default_value_t)]
    pub(crate) time: GuestTime,

    /// In real time: reply so much before the model's time, to make up for the way to the guest and back: a TIME such
    /// as 500us, or 'auto', which measures the way in a guest of its own first
    #[arg(long, value_name = "TIME", default_value = "auto")]
    pub(crate) early: Early,

    /// Let a disk fail for good so long after a trial's first phase began, by the guest's clock: disk1@5s; may be given
    /// several times
    #[arg(long, value_name = "DISK@TIME")]
    pub(crate) fail: Vec<Death>,

    /// Wait for new md arrays to sync, instead of taking the blank disks to agree already
    #[arg(long)]
    pub(crate) sync: bool,

    /// Where kernels and images are kept [default: raidlab in the XDG cache directory]
    #[arg(long, value_name = "DIR", env = "RAIDLAB_CACHE")]
    pub(crate) cache: Option<PathBuf>,
}
