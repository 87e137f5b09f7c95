//! ZFS in guests, driven through the program: built from the distribution's source package, which takes minutes, and
//! therefore a target of its own: `make test-zfs`.
#[path = "../vm/built.rs"]
mod built;
#[path = "../vm/guest.rs"]
#[expect(dead_code, reason = "the other tests' helpers")]
mod guest;
#[path = "../cli/lab.rs"]
#[expect(dead_code, reason = "the other tests' helpers")]
mod lab;

mod build;
mod gates;
mod inside;
mod places;
mod pools;
mod shell;
mod states;

use lab::{Lab, Ran};
use std::process::Command;
use std::time::Duration;

/// The longest that a build may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(5400);

/// A command with the cache that `make test-zfs` names, where ZFS is kept once it is built.
fn command(lab: &Lab, line: &str) -> Command {
    let mut command = guest::command(lab, line);
    if let Some(cache) = std::env::var_os("RAIDLAB_CACHE") {
        command.env("RAIDLAB_CACHE", cache);
    }
    command
}

fn run(lab: &Lab, line: &str) -> Ran {
    lab::ended_within(command(lab, line), PATIENCE)
}
