//! Arguments of `raidlab disk`.
use super::datasheet::NewArgs;
use crate::real::death::Death;
use clap::{Args, Subcommand};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
A MODEL is a name of the catalogue, of a disk or a controller, or the path of a model file.

A disk of which you have a datasheet gets a file from its figures ('raidlab disk new --help'), whose
path the experiment names; or it is the nearest of the catalogue with a few figures changed:
  disks = { model = \"nearline-24tb\", override = { capacity = \"8TB\", rpm = 5640 } }
Of one that you know better, print the nearest file (--file), and change its figures, each with its
source.

Examples:
  raidlab disk list                               what is in the catalogue, and how fast it is
  raidlab disk show ST340015A                     every parameter with its source
  raidlab disk show ST340015A --file > my-disk.toml    a file to begin with
  raidlab disk new hdd --capacity 8TB --rpm 5640 --outer-rate 215MB/s > my-8tb.toml
                                                  a file from a datasheet
  raidlab disk show ./my-disk.toml                a file of your own, checked
  raidlab disk serve ST340015A -n 2 --unix DIR    two of them over NBD, as slow as they are")]
pub(crate) struct DiskArgs {
    #[command(subcommand)]
    pub(crate) action: DiskAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DiskAction {
    /// List the models of the catalogue with what follows from their parameters
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one model: every parameter with its source, and what follows from them
    Show {
        /// The name of a disk, controller or processor, or the path of a model file
        model: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Print the model's file as it is, to begin one of your own with
        #[arg(long, conflicts_with = "json")]
        file: bool,
    },
    /// Make a model file from the figures of a datasheet
    New(NewArgs),
    /// Serve modelled disks over NBD, each reply when the model says
    Serve(Box<ServeArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Whoever speaks NBD can use the disks: QEMU, nbd-client, nbdinfo, qemu-img. Content begins with
zeroes and is kept in memory (or in sparse files with --backing) as it is written. Reads, writes,
flushes and writes with FUA (which disks of NVMe offer, and others not: libata leaves it off) take
the time of the modelled disk, its cache and all that it shares with others; trimming takes none.
How late replies were against the model's time is told in the end, and with Ctrl-C, the usual end,
sockets are removed. The socket of a server that was killed is replaced by the next one.

A --topology says which disks share a channel, in the order of the models:
  pata:2+2      two ATA channels of two drives, which take turns
  sata          a port of its own for each (also: scsi, all on one bus; nvme)
  ITE8212:1+1   a controller of 'raidlab disk list'
  lab.toml      all disks of an experiment, with its controllers and buses
Without it each disk has a channel of its own; SCSI disks share a bus.

Examples:
  raidlab disk serve ST3250624AS --unix /tmp/disks                 /tmp/disks/disk0.sock
  raidlab disk serve ST340015A -n 4 --topology pata:2+2 --unix DIR  a neighbour in the way
  raidlab disk serve nearline-24tb --size 8GiB --tcp 127.0.0.1:10809
  raidlab disk serve --topology experiments/home-lab.toml --unix DIR --json")]
pub(crate) struct ServeArgs {
    /// Models' names, or paths of model files; the disks are called disk0, disk1 and so on
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,

    /// So many disks of each model
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) count: u32,

    /// What the disks are connected by: KIND, KIND:DISKS+DISKS, or an experiment's file
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,

    /// A socket for each disk in this directory, which is made if it is not there
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "tcp",
        conflicts_with = "tcp"
    )]
    pub(crate) unix: Option<PathBuf>,

    /// All disks by their names on this port of this machine (port 0: a free one)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<SocketAddr>,

    /// Show only the beginning of each disk
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Keep content in sparse files in this directory; what they hold is there again next time
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    pub(crate) backing: Option<PathBuf>,

    /// Memory for content; a write beyond it fails [default: half of this machine's]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,

    /// Turn the write caches of the hard disks off
    #[arg(long)]
    pub(crate) no_write_cache: bool,

    /// Count replies that are later than this
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub(crate) tolerance: Span,

    /// Reply so much before the model's time, to make up for the way to the client and back
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) early: Span,

    /// Let a disk fail for good so long after the beginning: disk1@5s; may be given several times
    #[arg(long, value_name = "DISK@TIME")]
    pub(crate) fail: Vec<Death>,

    /// Seed of the models: the angles under the heads at the start
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print as JSON: where the disks are, and in the end how late they were
    #[arg(long)]
    pub(crate) json: bool,
}
