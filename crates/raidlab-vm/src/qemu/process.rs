//! QEMU as a process that does not outlive raidlab.
use super::{PACKAGE, PROGRAM};
use crate::error::VmError;
use crate::rundir::{Identity, RunDir};
use crate::tools;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long it is given to end when it is asked to.
const ASKED: Duration = Duration::from_secs(2);

/// QEMU under way; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// It writes to a person's terminal, and gives it back as it was when it is asked to end.
    person: bool,
}

/// Starts QEMU in a group of its own: a Ctrl-C is raidlab's business.
///
/// The kernel kills it when the *thread* that called this ends, and with it raidlab: call it from a
/// thread that lasts.
///
/// # Errors
/// When it is not installed or cannot be started.
pub(crate) fn spawn(
    arguments: &[String],
    directory: &RunDir,
    person: bool,
) -> Result<Process, VmError> {
    let program = tools::find(PROGRAM).ok_or_else(|| VmError::Missing {
        program: PROGRAM.to_owned(),
        package: PACKAGE.to_owned(),
    })?;
    let mut command = Command::new(program);
    command.args(arguments);
    let said = directory.said()?;
    command.process_group(0);
    if person {
        // The terminal stays raidlab's: what is typed before the guest listens would be lost on a serial port.
        command.stdin(Stdio::piped()).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null());
        command.stdout(said.try_clone().map_err(VmError::system("share a file"))?);
        command.stderr(said);
    }
    tools::bind(&mut command, Signal::KILL);
    let child = command.spawn().map_err(|error| VmError::Command {
        command: PROGRAM.to_owned(),
        said: error.to_string(),
    })?;
    let process = Process { child, person };
    directory.remember(&Identity::of(process.child.id())?)?;
    Ok(process)
}

impl Process {
    /// How it ended; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What is written here is typed on the console that a person has; the first to ask gets it.
    pub(crate) fn keys(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has not been waited for keeps its number: nobody else is killed.
        let number = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(number) = number.filter(|_| self.person && self.ended().is_none()) {
            let _ = kill_process(number, Signal::TERM);
            let begun = Instant::now();
            while self.ended().is_none() && begun.elapsed() < ASKED {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
