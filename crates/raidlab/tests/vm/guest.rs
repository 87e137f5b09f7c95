//! A lab whose commands can boot guests: the cache is shared, so that a kernel is fetched once.
use crate::lab::{Lab, Ran};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A boot takes ten seconds on a quiet machine; this is for one that is not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(540);

/// Whether a test that boots a guest may go on. Where it may not, it says so; in CI that is a failure.
pub(crate) fn may(name: &str) -> bool {
    let wanted = ["qemu-system-x86_64", "dpkg", "apt-get", "mdadm"];
    wanted.iter().all(|program| has(name, program))
}

/// Whether a test that needs this program may go on.
pub(crate) fn has(name: &str, program: &str) -> bool {
    let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"];
    if places
        .iter()
        .any(|place| PathBuf::from(place).join(program).exists())
    {
        return true;
    }
    let message = format!("SKIPPED {name}: needs {program}");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    // Not `eprintln!`: the harness keeps that of a test that passes to itself.
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// A command that may boot guests.
pub(crate) fn command(lab: &Lab, line: &str) -> Command {
    let mut command = lab.command(line);
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vm-cache");
    command
        .env("RAIDLAB_CACHE", cache)
        .env("XDG_RUNTIME_DIR", lab.path("run"));
    command
}

/// Runs a command that boots guests to its end.
pub(crate) fn run(lab: &Lab, line: &str) -> Ran {
    crate::lab::ended_within(command(lab, line), PATIENCE)
}

/// Directories of runs that are there.
pub(crate) fn left(lab: &Lab) -> Vec<String> {
    let runs = lab.path("run/raidlab");
    if !runs.exists() {
        return Vec::new();
    }
    let mut names = crate::lab::names(&runs);
    names.retain(|name| name != "lock");
    names
}

/// Processes that have to do with the lab's runs: number and command line.
pub(crate) fn processes(lab: &Lab) -> Vec<(i32, String)> {
    let runs = lab.path("run/raidlab").display().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let process = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&runs).then_some((pid, line))
    };
    entries.filter_map(process).collect()
}

/// No process of a run is there any more; its directory is for the next run to remove.
#[track_caller]
pub(crate) fn assert_gone(lab: &Lab) {
    let begun = Instant::now();
    while !processes(lab).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?} run on",
            processes(lab)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
