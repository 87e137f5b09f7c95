//! Arguments of what happens on real devices.
use crate::real::driver::Driver;
use clap::Args;
use raidlab_core::units::Bytes;
use std::path::PathBuf;

/// Members of --on host.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "On real disks")]
pub(crate) struct RealArgs {
    /// Make the members as loop files in this directory, instead of using devices of the allow-list
    #[arg(long, value_name = "DIR")]
    pub(crate) loop_dir: Option<PathBuf>,

    /// Size of each loop file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) loop_size: Bytes,

    /// Agree to the plan with this digest, which overwrites devices
    #[arg(long, value_name = "DIGEST")]
    pub(crate) yes: Option<String>,

    /// What carries out the profiles: raidlab, or the tools that they are named after
    #[arg(long, value_enum, default_value = "raidlab", value_name = "WHAT")]
    pub(crate) driver: Driver,

    /// Do not wait for new md arrays to sync: copies and parity are taken to agree
    #[arg(long)]
    pub(crate) assume_clean: bool,
}

/// Least size of a member: below, file systems of any kind have no room.
const LEAST: u64 = 16 << 20;

pub(super) fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if size.0 < LEAST || !size.0.is_multiple_of(4096) {
        return Err("give at least 16MiB, and a multiple of 4KiB".to_owned());
    }
    Ok(size)
}

#[derive(Debug, Args)]
#[command(after_help = "\
A device is overwritten only when three things agree: the allow-list names it, by an id that stays,
its serial number and its size; the kernel knows of no mount, swap, array or other use of it, of its
partitions and of its disk; and its bytes carry no known signature. Clear an old disk yourself
('wipefs -a DEVICE') before allowing it.

The allow-list is raidlab/expendable.toml in the XDG configuration directory (~/.config).

Examples:
  raidlab devices                                 what is here, and what may be used
  raidlab devices --json                          the same for scripts")]
pub(crate) struct DevicesArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every run on real devices writes down what it is about to do, and how to undo it, before it does it.
What runs that are gone left behind is undone here, found by serial number, inode and uuid, never by
name. 'raidlab run' does the same before it begins. What raidlab did not make is told and left alone
(exit code 3).

Examples:
  raidlab clean                                   as the user that ran it, mostly root")]
pub(crate) struct CleanArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
