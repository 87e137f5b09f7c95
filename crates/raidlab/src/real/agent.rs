//! raidlab inside its own guest: takes the job, does it, sends what came of it.
mod deaths;
mod disks;
mod share;
mod shell;
mod trials;

pub(super) use disks::with_serials;

use super::job::{Job, Wrong};
use raidlab_host::claim::Own;
use raidlab_io::observe::Roots;
use raidlab_vm::guest::{self, Closed, Role, Session};
use std::process::ExitCode;

/// Does what this process is for in a guest.
pub(crate) fn run(role: &Role) -> ExitCode {
    match role {
        Role::Init => guest::init(),
        Role::Modprobe(names) => guest::modprobe(names),
        Role::Agent => match agent() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                crate::talk::note(&format!("raidlab: {why}"));
                ExitCode::FAILURE
            }
        },
    }
}

fn agent() -> Result<(), String> {
    // Jobs write to disks, and may bring the kernel down: whatever started this, it happens in a guest alone.
    if Own::in_guest(&Roots::system()).is_none() {
        return Err("this is no guest that raidlab started".to_owned());
    }
    let mut session = Session::open(env!("CARGO_PKG_VERSION"))
        .map_err(|error| format!("cannot open the channel: {error}"))?;
    let text = session.job().map_err(|error| error.to_string())?;
    let job: Job = match serde_json::from_str(&text) {
        Ok(job) => job,
        Err(error) => return ended(session.failed(format!("the job cannot be read: {error}"))),
    };
    match job {
        Job::Greet => ended(session.done("{}".to_owned())),
        Job::Disks(order) => {
            let came = super::disks::measure(&order, &|phase| session.progress(phase));
            ended(match came {
                Ok(seen) => session.done(serde_json::to_string(&seen).unwrap_or_default()),
                Err(why) => session.failed(why),
            })
        }
        Job::Misbehave { how } => {
            misbehave(how);
            ended(session.failed("it would not go wrong".to_owned()))
        }
        Job::Trials(job) => {
            ended(trials::run(&mut session, &job))?;
            ended(session.done("{}".to_owned()))
        }
        Job::Maps(order) => {
            ended(super::maps::look(&mut session, &order))?;
            ended(session.done("{}".to_owned()))
        }
        Job::Program(program) => ended(match super::exec::carry_out(&program) {
            Ok(ran) => session.done(serde_json::to_string(&ran).unwrap_or_default()),
            Err(why) => session.failed(why),
        }),
        Job::Shell(job) => {
            let came = shell::run(&job, || session.progress(super::shell::LISTENS));
            match came {
                Ok(()) => ended(session.done("{}".to_owned())),
                Err(failure) => ended(session.failed(failure.message)),
            }
        }
    }
}

fn ended(said: Result<(), Closed>) -> Result<(), String> {
    said.map_err(|error| error.to_string())
}

fn misbehave(how: Wrong) {
    match how {
        Wrong::Panic => {
            let _ = std::fs::write("/proc/sysrq-trigger", "c");
        }
        Wrong::Hang => {
            // Even the beats end: everything but this thread stands still.
            let _ = std::fs::write("/proc/sys/kernel/hung_task_timeout_secs", "0");
            guest::hang();
        }
        Wrong::Memory => {
            let mut held: Vec<Vec<u8>> = Vec::new();
            loop {
                // Ones, so that each page is really there.
                held.push(vec![1; 16 << 20]);
                std::hint::black_box(&held);
            }
        }
    }
}
