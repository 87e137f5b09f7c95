//! Other programs: found, run without a question, and ended with this one.
use crate::error::{HostError, Result};
use crate::patience::patiently;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where tools are besides `PATH`: that of a user mostly lacks the administrator's.
const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// So long a tool that only asks is waited for when it was killed.
const LETS_GO: Duration = Duration::from_secs(2);

/// What package has a tool.
const PACKAGES: [(&str, &str); 14] = [
    ("mdadm", "mdadm"),
    ("mkfs.ext2", "e2fsprogs"),
    ("mkfs.ext3", "e2fsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("dumpe2fs", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("btrfs", "btrfs-progs"),
    ("zpool", "zfsutils-linux"),
    ("zfs", "zfsutils-linux"),
    ("zdb", "zfsutils-linux"),
    ("hdparm", "hdparm"),
    ("bonnie++", "bonnie++"),
    ("fio", "fio"),
];

/// A program with its arguments.
#[derive(Debug)]
pub struct Tool<'a> {
    words: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
    cancel: Option<&'a AtomicBool>,
    limit: Option<Duration>,
    directory: Option<PathBuf>,
}

/// What a program wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// To standard output.
    pub out: String,
    /// To standard error.
    pub error: String,
}

/// Where a tool is; `None` when it is not installed.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from));
    find_in(places, name)
}

/// Only in places that are the same wherever it is called: an empty or relative one is in the working directory, which may be
/// anybody's.
fn find_in(places: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    places
        .filter(|place| place.is_absolute())
        .map(|place| place.join(name))
        .find(runs)
}

/// Fails with the package's name when a tool is not installed.
///
/// # Errors
/// [`HostError::Missing`].
pub fn need(name: &str) -> Result<PathBuf> {
    let package = PACKAGES.iter().find(|(tool, _)| *tool == name);
    let package = package.map_or(name, |(_, package)| package);
    find(name).ok_or_else(|| {
        HostError::missing(
            format!("{name} is not installed"),
            format!("install the package {package}"),
        )
    })
}

impl<'a> Tool<'a> {
    /// A command line.
    pub fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            cancel: None,
            limit: None,
            directory: None,
        }
    }

    /// With variables of the environment.
    #[must_use]
    pub fn with(mut self, environment: &[(&'static str, &'static str)]) -> Self {
        self.environment.extend_from_slice(environment);
        self
    }

    /// In a directory.
    #[must_use]
    pub fn inside(mut self, directory: PathBuf) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Killed when this is set.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Given up when it has not ended within this time. Only for what asks: one that writes is waited for, so that nothing is
    /// written any more when it has ended.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it is not installed, ends with another code than 0, was cancelled or took too long.
    pub fn run(&self) -> Result<Output> {
        let (status, output) = self.run_any()?;
        if status.success() {
            return Ok(output);
        }
        let said = if output.error.trim().is_empty() {
            &output.out
        } else {
            &output.error
        };
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        Err(HostError::Tool {
            command: self.words.join(" "),
            status: status.to_string(),
            output: gist(&lines),
        })
    }

    /// Runs it to its end, whatever code it ends with.
    ///
    /// # Errors
    /// When it is not installed, cannot be started, was cancelled or took too long.
    pub fn run_any(&self) -> Result<(ExitStatus, Output)> {
        let name = self.words.first().map_or("", String::as_str);
        let program = need(name)?;
        // Not pipes: a daemon that it leaves running (mdmon) would keep them open.
        let (out, error) = (memory(&program)?, memory(&program)?);
        let mut command = Command::new(&program);
        command
            .args(&self.words[1..])
            .env("LC_ALL", "C")
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(handed_down(&out, &program)?)
            .stderr(handed_down(&error, &program)?)
            // Ctrl-C on the terminal is for raidlab, which decides what to do with its children.
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec only two system calls are made, both of which may be made there (they take no
        // lock and allocate nothing).
        unsafe {
            command.pre_exec(move || {
                // A raidlab that is killed takes its children with it; one that was already gone when this was set is
                // no longer the parent.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if rustix::process::getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(std::io::Error::from_raw_os_error(libc::ESRCH))
                }
            });
        }
        let mut child = command
            .spawn()
            .map_err(HostError::call("start", &program))?;
        let status = self.wait(&mut child, &program)?;
        let output = Output {
            out: written(&out),
            error: written(&error),
        };
        Ok((status, output))
    }

    fn wait(&self, child: &mut Child, program: &Path) -> Result<ExitStatus> {
        let cancelled = || {
            self.cancel
                .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
        };
        let begun = Instant::now();
        loop {
            if let Some(status) = child
                .try_wait()
                .map_err(HostError::call("wait for", program))?
            {
                return Ok(status);
            }
            if cancelled() {
                self.end(child);
                return Err(HostError::Interrupted);
            }
            if let Some(limit) = self.limit.filter(|limit| begun.elapsed() > *limit) {
                self.end(child);
                return Err(HostError::Unexpected(format!(
                    "'{}' has not ended within {} s: what it asks does not answer",
                    self.words.join(" "),
                    limit.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it. What a dead device holds in the kernel dies when that lets go, which may be never.
    fn end(&self, child: &mut Child) {
        let _ = child.kill();
        match self.limit {
            None => _ = child.wait(),
            Some(_) => {
                let ended = || child.try_wait().ok().flatten().ok_or(());
                let _ = patiently(LETS_GO, ended);
            }
        }
    }
}

/// What matters of what a failed program said: mostly the end, but some say what is wrong first and then how they are
/// used.
fn gist(lines: &[&str]) -> String {
    match lines {
        [first, second, .., before, last] if lines.len() > 6 => {
            [*first, second, "...", before, last].join("; ")
        }
        lines => lines.join("; "),
    }
}

/// A file in memory that a program writes to.
fn memory(program: &Path) -> Result<File> {
    let made = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC);
    Ok(File::from(made.map_err(HostError::call("start", program))?))
}

fn handed_down(file: &File, program: &Path) -> Result<Stdio> {
    let file = file
        .try_clone()
        .map_err(HostError::call("start", program))?;
    Ok(Stdio::from(file))
}

/// What a program has written. It has ended, so that the place in the file, which it shared, is free.
fn written(mut file: &File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_answer_is_given_up() {
        let begun = Instant::now();
        let tool = Tool::new(["sleep", "20"]).within(Duration::from_millis(100));
        let error = tool.run().expect_err("it sleeps").to_string();
        assert!(error.contains("'sleep 20' has not ended"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        let tool = Tool::new(["true"]).within(Duration::from_secs(20));
        tool.run().expect("it ends");
    }

    #[test]
    fn a_tool_is_a_program_in_a_place_that_is_the_same_from_everywhere() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().expect("a directory");
        let [notes, programs] = ["notes", "programs"].map(|name| place.path().join(name));
        for (directory, mode) in [(&notes, 0o644), (&programs, 0o755)] {
            std::fs::create_dir(directory).expect("made");
            let file = directory.join("mdadm");
            std::fs::write(&file, "").expect("written");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&file, mode).expect("changed");
        }
        let found =
            |places: &[&Path]| find_in(places.iter().map(|place| place.to_path_buf()), "mdadm");
        assert_eq!(found(&[&notes, &programs]), Some(programs.join("mdadm")));
        assert_eq!(found(&[&notes]), None);
        // Tests run in the directory of their package.
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
        let test = |place: &Path| find_in([place.to_path_buf()].into_iter(), "test.sh");
        assert!(test(&scripts).is_some());
        assert_eq!(test(Path::new("../../scripts")), None);
    }

    #[test]
    fn the_first_words_of_a_long_complaint_are_told() {
        assert_eq!(gist(&["a", "b", "c"]), "a; b; c");
        let usage = [
            "Log size must be at least 64MB.",
            "Usage: mkfs.xfs",
            "1",
            "2",
            "3",
            "4",
            "devicename is required",
            "sizes",
        ];
        assert_eq!(
            gist(&usage),
            "Log size must be at least 64MB.; Usage: mkfs.xfs; ...; devicename is required; sizes"
        );
    }
}
