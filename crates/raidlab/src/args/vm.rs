//! Arguments of `raidlab vm`.
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
A guest is a real Linux kernel in QEMU, whose disks are raidlab's models. It needs no root and no hardware
virtualisation; 'raidlab run FILE --on vm' boots one by itself. What it is made of:
  the kernel     the distribution's package, fetched with apt-get download and unpacked in the cache
  the image      this raidlab, and mdadm, mkfs.*, hdparm, bonnie++ of this machine, with their libraries
  QEMU           qemu-system-x86_64, which translates: a guest's figures come from its own clock

Examples:
  raidlab vm setup                                find a kernel, write the image, boot it once
  raidlab vm setup --kernel generic               with drivers of real hardware (AHCI, SCSI)
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
    /// Whether hardware virtualisation really runs here (for functional work; never for figures)
    Probe {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
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

Examples:
  raidlab vm setup                                what 'run --on vm' would use
  raidlab vm setup --refresh                      the distribution's kernel of today
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
