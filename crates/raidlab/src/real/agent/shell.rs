//! A shell for a person, with the disks of a cell.
use super::super::job::Shell;
use super::disks::Source;
use crate::exit::{Failure, MISSING};
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_experiment::{Cell, Experiment};
use raidlab_vm::guest::load;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Command;

/// Modules that a person would miss: the kernel asks for most others by itself. The image has ZFS's when the experiment has pools.
const ALSO: [&str; 2] = ["md_mod", "zfs"];

/// Those, and the file systems of the experiment: `mount` tries what the kernel has, where it is not told which one.
fn modules(experiment: &Experiment) -> Vec<String> {
    let of = |cell: &Cell| cell.setup.filesystem.as_ref().map(|made| made.kind);
    let named = |kind: FilesystemKind| match kind {
        FilesystemKind::None | FilesystemKind::Zfs | FilesystemKind::Ntfs => None,
        // One driver has all three.
        FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => Some("ext4".into()),
        other => Some(other.to_string()),
    };
    let kinds = experiment.cells.iter().filter_map(of).filter_map(named);
    let all: BTreeSet<String> = ALSO.map(str::to_owned).into_iter().chain(kinds).collect();
    all.into_iter().collect()
}

/// What the shell reads before its first prompt.
const BEGINS: &str = "/root/.begins";

/// Serves the disks, and waits for the end of the shell. `listens` is called when what is typed is no longer lost.
pub(super) fn run(job: &Shell, listens: impl FnOnce()) -> Result<(), Failure> {
    let cell = &job.experiment.cells[job.cell];
    let modules = modules(&job.experiment);
    let _ = load(&modules.iter().map(String::as_str).collect::<Vec<_>>());
    let mut source = Source::open(&job.disks)?;
    let members = source.members(&job.experiment, cell, job.experiment.design.seed)?;
    let failed = |error: std::io::Error| Failure::new(MISSING, format!("no shell: {error}"));
    let mut console = std::fs::File::options()
        .write(true)
        .open("/dev/console")
        .map_err(failed)?;
    let mut welcome = format!(
        "\r\nA guest of raidlab's, with the disks of '{}':\r\n",
        cell.label
    );
    for (path, name) in members.paths().iter().zip(&cell.setup.array.members) {
        welcome.push_str(&format!("  {}  {name}\r\n", path.display()));
    }
    let zfs = match raidlab_host::tool::find("zpool") {
        Some(_) => ", zpool, zfs",
        None => "",
    };
    welcome.push_str(&format!(
        "mdadm, mkfs.*{zfs}, lsblk, hdparm and raidlab are here; 'exit' ends the guest.\r\n"
    ));
    console.write_all(welcome.as_bytes()).map_err(failed)?;
    // It stays open from here on: to open a serial port for the first time empties it.
    let input = console_in().map_err(failed)?;
    hush(&input)?;
    listens();
    // A terminal of its own, so that Ctrl-C reaches what runs in it.
    let shell = Command::new("busybox")
        .args(["setsid", "-c", "busybox", "sh", "-l"])
        .env_remove(raidlab_vm::guest::AGENT)
        .env("PS1", "guest# ")
        .env("ENV", BEGINS)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/root")
        .stdin(input)
        .stdout(console.try_clone().map_err(failed)?)
        .stderr(console)
        .status()
        .map_err(failed)?;
    let _ = shell;
    drop(members);
    Ok(())
}

/// The terminal shows nothing of what comes before the shell reads it: the shell shows that itself, and it would stand there
/// twice. The last thing before its first prompt is to switch that on again, for the programs that it starts.
fn hush(terminal: &std::fs::File) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(MISSING, format!("no shell: {error}"));
    std::fs::write(BEGINS, "busybox stty echo\n").map_err(failed)?;
    let mut modes = tcgetattr(terminal).map_err(|error| failed(error.into()))?;
    modes.local_modes -= LocalModes::ECHO;
    tcsetattr(terminal, OptionalActions::Now, &modes).map_err(|error| failed(error.into()))
}

/// The console itself: `/dev/console` cannot be the terminal of a session.
fn console_in() -> std::io::Result<std::fs::File> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/ttyS0")
}
