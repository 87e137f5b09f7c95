//! Programs of this machine: found on the path, run with what they said kept.
use crate::error::VmError;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group,
    set_parent_process_death_signal, waitid,
};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a program is looked at.
const STEP: Duration = Duration::from_millis(50);
/// How long programs are given to end when they are asked to.
const ASKED: Duration = Duration::from_secs(5);

/// Directories that a user's path may lack.
const ALSO: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The file of a program.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::split_paths(&path);
    let mut all = given.chain(ALSO.iter().map(PathBuf::from));
    all.find_map(|directory| {
        let file = directory.join(name);
        file.is_file().then_some(file)
    })
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
/// [`VmError::Command`] with what it said.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    directory: Option<&Path>,
) -> Result<Vec<u8>, VmError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let failed = |said: String| VmError::Command {
        command: command(),
        said,
    };
    let file = find(program).ok_or_else(|| failed("it is not installed".to_owned()))?;
    let mut process = Command::new(file);
    process
        .args(arguments)
        .stdin(Stdio::null())
        .env("LC_ALL", "C");
    if let Some(directory) = directory {
        process.current_dir(directory);
    }
    let output = process
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(failed(if said.is_empty() {
        output.status.to_string()
    } else {
        said.to_owned()
    }))
}

/// As [`run`], with variables of the environment; ended, and [`VmError::Interrupted`], when `stop` is set.
pub(crate) fn run_with(
    program: &str,
    arguments: &[&str],
    directory: Option<&Path>,
    environment: &[(&str, &str)],
    stop: Option<&AtomicBool>,
) -> Result<Vec<u8>, VmError> {
    let command = format!("{program} {}", arguments.join(" "));
    let file = || tempfile::tempfile().map_err(VmError::system("make a file"));
    let (mut out, mut error) = (file()?, file()?);
    let mut process = Command::new(program);
    process.args(arguments).envs(environment.iter().copied());
    if let Some(directory) = directory {
        process.current_dir(directory);
    }
    let status = Job::start(process, &out, &error)?.wait(stop, &mut || ())?;
    let mut said = Vec::new();
    let of = if status.success() {
        &mut out
    } else {
        &mut error
    };
    of.rewind()
        .and_then(|()| of.read_to_end(&mut said))
        .map_err(VmError::system("read what a program said"))?;
    if status.success() {
        return Ok(said);
    }
    let said = String::from_utf8_lossy(&said);
    let said = match said.trim() {
        "" => status.to_string(),
        said => said.to_owned(),
    };
    Err(VmError::Command { command, said })
}

/// Has the kernel send what is started this signal when the *thread* that starts it ends, and with it raidlab.
pub(crate) fn bind(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let bound = move || {
        set_parent_process_death_signal(Some(signal))?;
        // It may have gone in the meantime.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: the closure runs between fork and exec and makes system calls alone: no allocation, no lock.
    unsafe {
        command.pre_exec(bound);
    }
}

/// A program, and what it starts, in a group of its own.
#[derive(Debug)]
pub(crate) struct Job {
    name: String,
    child: Child,
}

impl Job {
    /// Starts it. When raidlab dies, it is asked to end, and `make` asks what it has started.
    ///
    /// # Errors
    /// When it is not installed or cannot be started.
    pub(crate) fn start(mut command: Command, out: &File, error: &File) -> Result<Self, VmError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |said: String| VmError::Command {
            command: name.clone(),
            said,
        };
        if !name.contains('/') && find(&name).is_none() {
            return Err(failed("it is not installed".to_owned()));
        }
        let share = |file: &File| file.try_clone().map_err(VmError::system("share a file"));
        command
            .stdin(Stdio::null())
            .stdout(share(out)?)
            .stderr(share(error)?)
            .env("LC_ALL", "C")
            .process_group(0);
        bind(&mut command, Signal::TERM);
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        Ok(Self { name, child })
    }

    /// Waits for its end, calling `tick` meanwhile.
    ///
    /// # Errors
    /// [`VmError::Interrupted`] when `stop` is set: all of the group has been ended then.
    pub(crate) fn wait(
        mut self,
        stop: Option<&AtomicBool>,
        tick: &mut dyn FnMut(),
    ) -> Result<ExitStatus, VmError> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(VmError::Interrupted);
            }
            tick();
            std::thread::sleep(STEP);
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, VmError> {
        self.child.try_wait().map_err(|error| VmError::Command {
            command: self.name.clone(),
            said: error.to_string(),
        })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let number = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(group) = number.filter(|_| matches!(self.ended(), Ok(None))) else {
            return;
        };
        let _ = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        // Looked at without being waited for, it keeps its number, and the group its own: nobody else is killed.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(group), look), Ok(None)) && begun.elapsed() < ASKED {
            std::thread::sleep(STEP);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}
