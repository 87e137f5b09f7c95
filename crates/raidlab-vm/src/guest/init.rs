//! The first process.
use super::{AGENT, load};
use rustix::mount::{MountFlags, mount};
use rustix::process::{WaitOptions, waitpid};
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;

/// Modules that the agent needs before it can be told anything.
const FIRST: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Source, place and type of what is mounted first.
const MOUNTS: [(&str, &str, &str); 6] = [
    ("proc", "/proc", "proc"),
    ("sysfs", "/sys", "sysfs"),
    ("devtmpfs", "/dev", "devtmpfs"),
    ("tmpfs", "/run", "tmpfs"),
    ("tmpfs", "/tmp", "tmpfs"),
    ("devpts", "/dev/pts", "devpts"),
];

/// Starts the system, waits for the agent's end, switches the machine off.
pub fn init() -> ! {
    for (source, target, kind) in MOUNTS {
        let _ = fs::create_dir_all(target);
        if let Err(error) = mount(source, target, kind, MountFlags::empty(), None) {
            say(&format!("cannot mount {target}: {error}"));
        }
    }
    let _ = fs::create_dir_all("/run/lock");
    for link in [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ] {
        let _ = std::os::unix::fs::symlink(link.0, link.1);
    }
    for said in load(&FIRST) {
        say(&said);
    }
    match agent() {
        Ok(()) => {}
        Err(why) => say(&why),
    }
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    // Ends the guest all the same: the kernel panics, and does not start anew.
    std::process::exit(1)
}

/// Runs the agent and buries what dies meanwhile: orphans are this process's children.
fn agent() -> Result<(), String> {
    let mut command = Command::new("/init");
    command
        .env_clear()
        .env(AGENT, "1")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("TERM", "linux")
        .env("LC_ALL", "C")
        .current_dir("/root");
    let child = command
        .spawn()
        .map_err(|error| format!("cannot start the agent: {error}"))?;
    let agent = i32::try_from(child.id()).unwrap_or(-1);
    loop {
        match waitpid(None, WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == agent => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(0), _) => Ok(()),
                    (Some(code), _) => Err(format!("the agent ended with code {code}")),
                    (None, Some(signal)) => Err(format!("the agent was ended by signal {signal}")),
                    (None, None) => Err("the agent ended".to_owned()),
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait for the agent: {error}")),
        }
    }
}

/// Lets this thread run before all others, as soon as it has something to do.
pub(super) fn first() {
    let parameter = libc::sched_param { sched_priority: 99 };
    // SAFETY: changes how this thread is scheduled; the parameter lives until the call has returned.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter);
    }
}

/// Stands still with the only processor: nothing else of the guest runs. For showing that it is noticed.
pub fn hang() -> ! {
    // Threads of the highest priority leave no share for others.
    let _ = fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    first();
    loop {
        std::hint::spin_loop();
    }
}

/// A line on the console.
fn say(text: &str) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = writeln!(console, "raidlab: {text}");
    }
}
