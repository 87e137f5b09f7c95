//! Real arrays on a real kernel: on the disks of this machine, and, by the same code, in a virtual machine on modelled
//! disks.
pub(crate) mod agent;
pub(crate) mod agree;
mod beside;
mod busy;
pub(crate) mod death;
mod disks;
pub(crate) mod driver;
pub(crate) mod early;
mod exec;
mod fit;
mod guests;
pub(crate) mod host;
mod job;
mod lab;
mod maps;
pub(crate) mod members;
pub(crate) mod places;
mod probe;
mod records;
mod room;
mod served;
mod setup;
mod shell;
pub(crate) mod study;
mod traffic;
pub(crate) mod trial;
mod trouble;
mod typing;
mod verify;
mod view;
pub(crate) mod vm;
mod way;
mod zfs;

use crate::args::{VmAction, VmArgs};
use crate::exit::{
    BAD_REQUEST, Code, Failure, INTERRUPTED, MISSING, Outcome, REFUSED, TRIAL_FAILED,
};
use raidlab_core::units::Bytes;
use raidlab_experiment::Own;
use raidlab_experiment::kernel::Kernel;
use raidlab_host::{ErrorKind, HostError};
use raidlab_io::observe::Roots;
use raidlab_io::observe::environment::memory;
use std::path::Path;

/// `raidlab vm`.
pub(crate) fn machine(args: &VmArgs) -> Result<Outcome, Failure> {
    match &args.action {
        VmAction::Setup(setup) => setup::run(args.cache.as_deref(), setup),
        VmAction::Disks(disks) => disks::run(args.cache.as_deref(), disks),
        VmAction::Maps(maps) => maps::run(args.cache.as_deref(), maps),
        VmAction::Shell(shell) => shell::run(args.cache.as_deref(), shell),
        VmAction::Exec(exec) => exec::run(args.cache.as_deref(), exec),
        VmAction::Probe { json } => probe::run(*json),
    }
}

/// Memory of this machine that can cache files, where it can be told.
pub(crate) fn own_memory() -> Option<Bytes> {
    let memory = memory(&Roots::system()).ok()?;
    Some(Bytes(memory.usable()))
}

/// What experiments find here.
pub(crate) fn own() -> Own {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    Own {
        memory: own_memory(),
        kernel: kernel_of(&release),
    }
}

/// The kernel that `uname -r` says is of this release, whoever built it.
fn kernel_of(release: &str) -> Option<Kernel> {
    let version = release.split(|c: char| !c.is_ascii_digit() && c != '.');
    version
        .into_iter()
        .next()?
        .trim_end_matches('.')
        .parse()
        .ok()
}

/// Ends and removes what guests of runs that were killed have left; what was done, in words.
pub(crate) fn clean_guests() -> Result<Vec<String>, Failure> {
    let cleaned = raidlab_vm::rundir::Runs::of_user().clean();
    let mut cleaned = cleaned.map_err(|error| guests::failure(&error))?;
    let cache = guests::cache(std::env::var_os("RAIDLAB_CACHE").as_deref().map(Path::new))?;
    cleaned.extend(raidlab_vm::Zfs::clean(&cache).map_err(|error| guests::failure(&error))?);
    Ok(cleaned)
}

/// What an error of devices means for the exit code.
pub(crate) fn host_failure(error: &HostError) -> Failure {
    let code: Code = match error.kind() {
        ErrorKind::BadRequest => BAD_REQUEST,
        ErrorKind::Refused => REFUSED,
        ErrorKind::Missing => MISSING,
        ErrorKind::Failed => TRIAL_FAILED,
        ErrorKind::Interrupted => INTERRUPTED,
    };
    match error {
        HostError::Missing { what, remedy } => {
            Failure::new(code, what.clone()).remedy(remedy.clone())
        }
        other => Failure::from_error(code, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_by_what_uname_says() {
        for (release, kernel) in [
            ("6.1.0-18-amd64", Some(Kernel::Linux(6, 1, 0))),
            ("6.18.5+", Some(Kernel::Linux(6, 18, 5))),
            (
                "5.14.0-427.13.1.el9_4.x86_64",
                Some(Kernel::Linux(5, 14, 0)),
            ),
            ("6.5.rc1", Some(Kernel::Linux(6, 5, 0))),
            ("generic", None),
        ] {
            assert_eq!(kernel_of(release), kernel, "{release}");
        }
        assert!(own().kernel.is_some());
    }
}
