//! Arguments of the commands that model: traces, experiments.
use super::StoreArgs;
use super::real::RealArgs;
use super::results::Output;
use super::vm::VmRunArgs;
use crate::real::driver::Driver;
use clap::{Args, ValueEnum};
use raidlab_core::units::Bytes;
use raidlab_sim::trace::DeviceName;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Formats: fio (iolog 2 and 3), blkparse (its text), spc (Storage Performance Council), msr (MSR
Cambridge), disksim (ASCII; a sixth column is the measured response in milliseconds). The first line
tells which.

Every request is issued when the trace says, however far behind the disk is. A log of fio's version
2, which fio before 3.31 writes, has no times: its requests are issued one after the other, or as
many at a time as --depth says, as fio's iodepth.

A write that blkparse shows with a flush before it (FWS, as a journal's commit) is begun when the
disk has written all that it held, and one that must be durable (WFS) is followed by another such
flush, as Linux does with SATA disks; its response ends with the write, as blkparse's does.

Response times go to standard output as CSV, in the order in which requests end, and the summary to
standard error; with --out the CSV goes to a file and the summary to standard output. Sectors have
512 bytes; 'lba' is as recorded, 'moved_to' where --wrap has put the request. Where the trace has
response times of its own, the summary has the relative demerit: how far the two distributions lie
apart, as a share of the measured mean (Ruemmler and Wilkes, 1994).

Examples:
  raidlab replay trace.csv --disk ST3250624AS > responses.csv
  raidlab replay trace.txt --disk ./my-disk.toml --out responses.csv
  raidlab replay trace.txt --experiment lab.toml --cell raid5 --device 0 --wrap")]
pub(crate) struct ReplayArgs {
    /// The trace ('-' for standard input)
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    /// Replay on one disk: a model's name, or the path of a model file
    #[arg(long, value_name = "MODEL")]
    pub(crate) disk: Option<String>,

    /// Replay on the array of an experiment's cell
    #[arg(long, value_name = "FILE", conflicts_with = "disk")]
    pub(crate) experiment: Option<PathBuf>,

    /// Which cell, by its label [default: the only one]
    #[arg(
        long,
        value_name = "LABEL",
        requires = "experiment",
        conflicts_with = "disk"
    )]
    pub(crate) cell: Option<String>,

    /// The format, when the first line does not tell
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,

    /// Only the requests of this device, as the trace names it: a number, 8,16 of blkparse (8:16 in the response times),
    /// host and disk of MSR's (usr:0), or the file of fio's log (/dev/sdb)
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<DeviceName>,

    /// Move requests beyond the end inside instead of refusing them: to their block modulo the capacity in whole
    /// MiB and stripes, so that they keep their alignment and their neighbours
    #[arg(long)]
    pub(crate) wrap: bool,

    /// Keep N requests in flight, in the order of the trace, whatever its times [default: 1 for a trace without
    /// times, else each when the trace says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) depth: Option<u32>,

    /// Seed of the model: the angle under the heads at the start
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the response times here instead of standard output ('-')
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON; the response times are written with --out alone
    #[arg(long)]
    pub(crate) json: bool,
}

/// What of an experiment's design the command line decides.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DesignArgs {
    /// Seed of order, operations and models [default: the file's]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,

    /// Trials of each cell [default: the file's, else 10 on the simulator and 3 elsewhere]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeats: Option<u32>,

    /// Use only so much of each disk, from its beginning on [default: the file's]
    #[arg(long, value_name = "SIZE", value_parser = super::real::size)]
    pub(crate) member_size: Option<Bytes>,

    /// Check each real array after the phases of a trial: md's copies and parity, checksums of ZFS and btrfs [default: the file's]
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
All that is wrong with the file is told at once, each thing with its line, and the exit code is 2.
docs/experiments.md describes the language; experiments/ has worked examples.

Examples:
  raidlab plan experiments/home-lab.toml          cells, trials, order, time
  raidlab plan lab.toml --resolved                what it comes to, with every default filled in
  raidlab plan lab.toml --on host                 the exact commands, and what they overwrite")]
pub(crate) struct PlanArgs {
    /// The experiment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) design: DesignArgs,

    /// Only cells whose label has this in it, or matches it with * and ?
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// Also print the exact commands by which it would be carried out there
    #[arg(long, value_enum, value_name = "sim|vm|host")]
    pub(crate) on: Option<On>,

    #[command(flatten)]
    pub(crate) real: RealArgs,

    /// Print what the experiment comes to, every default filled in, as TOML to read (it is no experiment file)
    #[arg(long, conflicts_with = "json")]
    pub(crate) resolved: bool,

    /// List every cell and every round, however many there are
    #[arg(long)]
    pub(crate) all: bool,

    /// Print as JSON: the resolved experiment, cells with their digests, trials in order; with
    /// --on host what would be done there
    #[arg(long)]
    pub(crate) json: bool,

    /// Where earlier trials of the same cells tell how long they take
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Where an experiment is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// On modelled disks in virtual time
    Sim,
    /// On a real kernel in a virtual machine, whose disks are the models
    Vm,
    /// On the disks of this machine
    Host,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every finished trial is in the store at once. After an interruption, even kill -9, the same command
goes on where it stopped; --fresh begins anew. With --on sim the results depend on the file and the
seed alone: not on the number of threads, the machine or the day.

--on host builds each cell's array with mdadm, mkfs and their like, measures it, and takes it apart
again. It needs root. Members are devices that the file expendable.toml names ('raidlab devices'
prints what to write there), and all that is on them is lost; or, with --loop-dir, files of
raidlab's own. What it does is written down before it is done: after kill -9 the next run, or
'raidlab clean', undoes it.

--on vm boots a real Linux kernel in QEMU, without root, and gives it the modelled disks; it builds
each cell's array with mdadm and mkfs, runs the phases, and takes it apart again. By the guest's own
clock, which counts instructions, idle disk time costs nothing and the load of this machine hardly
matters ('raidlab vm --help').

Examples:
  raidlab plan experiments/home-lab.toml                     what would happen, and how long
  raidlab run experiments/home-lab.toml --on sim             predict, and print the report
  raidlab run lab.toml --on sim --html report.html -n 10     ten trials of each cell, and a page
  raidlab run lab.toml --on host --loop-dir /var/tmp         on loop files of 1 GiB, as root
  raidlab plan lab.toml --on host                            the commands, and --yes's digest
  raidlab run lab.toml --on host --yes 3f2a91c07be4          on devices that it may use, as root
  raidlab run experiments/vm-levels.toml --on vm --with-sim  a real kernel, beside predicted
  raidlab report                                             the report of the last session again")]
pub(crate) struct RunArgs {
    /// The experiment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Where to carry it out
    #[arg(long, value_enum, value_name = "sim|vm|host")]
    pub(crate) on: On,

    #[command(flatten)]
    pub(crate) design: DesignArgs,

    /// Only cells whose label has this in it, or matches it with * and ?
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// Trials at a time [default: one a processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Begin anew although an interrupted session of the same experiment could be gone on with
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Simulate every request: steady stretches are not passed over in one step
    #[arg(long)]
    pub(crate) no_fast_forward: bool,

    #[command(flatten)]
    pub(crate) real: RealArgs,

    #[command(flatten)]
    pub(crate) vm: VmRunArgs,

    /// Also predict the same trials, and print measured beside predicted, and beside published if the experiment
    /// carries out a published study
    #[arg(long, help_heading = "In a virtual machine")]
    pub(crate) with_sim: bool,

    /// Also write the trials as JSON lines ('-' for standard output; the report goes to standard error then)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every row is predicted, the withheld ones too. The error of each figure is predicted / published -
1; the findings of the study are checked on the predictions alone. Nothing is stored; 'raidlab run'
on the study's file under experiments/ keeps its trials.

With --on vm a real kernel in a virtual machine carries out the study as well, on the modelled
disks, and its figures are printed beside the predicted and the published ones. Those trials are
kept: after an interruption the same command goes on where it stopped. Content of disks is kept in
memory, so that large ones need a --member-size; what a controller's own RAID did is left out, for
no kernel runs that.

Examples:
  raidlab reference run pata-raid0                one study, figure by figure
  raidlab reference run scsi-hdbench --rows raid5  the rows with it in their names
  raidlab reference run all                       one table of accuracy, and what is off by most
  raidlab reference run sata-md-levels --on vm --driver tool --sync --member-size 1GiB
                                                  as its author ran it: arrays synced, hdparm, dd
  raidlab reference run pata-raid0 --on vm --time real --rows 'md raid0 2*' --member-size 4GiB
                                                  behind two IDE channels of QEMU's")]
pub(crate) struct ReferenceRunArgs {
    /// Studies by their ids, or 'all'
    #[arg(required = true, value_name = "STUDY")]
    pub(crate) studies: Vec<String>,

    /// Only rows whose name has this in it, or matches it with * and ?
    #[arg(long, value_name = "PATTERN")]
    pub(crate) rows: Option<String>,

    #[command(flatten)]
    pub(crate) design: DesignArgs,

    /// Trials at a time [default: one a processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Simulate every request: steady stretches are not passed over in one step
    #[arg(long)]
    pub(crate) no_fast_forward: bool,

    /// Predict alone, or measure in a virtual machine beside
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: StudyOn,

    /// With --on vm: begin anew although an interrupted session could be gone on with
    #[arg(long)]
    pub(crate) fresh: bool,

    /// With --on vm: what carries out the profiles
    #[arg(long, value_enum, default_value = "raidlab", value_name = "WHAT")]
    pub(crate) driver: Driver,

    #[command(flatten)]
    pub(crate) vm: VmRunArgs,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Where a published study is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StudyOn {
    /// On modelled disks in virtual time
    #[default]
    Sim,
    /// There, and on a real kernel in a virtual machine
    Vm,
}
