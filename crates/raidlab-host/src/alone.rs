//! One run at a time: what has a name of its own on the machine, a mount point, an array or a setting of the system, is one
//! run's until it ends.
use crate::error::{HostError, Result};
use crate::patience::patiently;
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, Metadata};
use std::io::ErrorKind;
use std::os::linux::fs::MetadataExt as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// What a machine has once, whatever directory a run keeps its state in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once {
    /// The names of md arrays.
    Arrays,
    /// Settings of the system.
    Settings,
}

impl Once {
    /// Whoever has the socket of this name has it. The socket is in no directory, and goes with its process.
    const fn socket(self) -> &'static str {
        match self {
            Self::Arrays => "raidlab makes arrays",
            Self::Settings => "raidlab sets the system",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Arrays => "md arrays",
            Self::Settings => "settings of the system",
        }
    }
}

/// What a run had that was killed is free within this time: a program that it was just starting has its files, too, until it is
/// another program.
const LETS_GO: Duration = Duration::from_millis(500);

/// The right of a run to be the only one. It ends when it is dropped, or with the process, however that ends.
#[derive(Debug)]
pub struct Alone {
    state: File,
    _once: Vec<UnixListener>,
}

/// A program that another thread is just starting has the file, too, and with it the lock.
impl Drop for Alone {
    fn drop(&mut self) {
        let _ = flock(&self.state, FlockOperation::Unlock);
    }
}

impl Alone {
    /// Makes this the only one of the runs that keep their state in this directory, which is made when it is not there; and the
    /// only one on this machine that uses any of `once`.
    ///
    /// # Errors
    /// [`HostError::Missing`] when another run has it; when the directory cannot be made.
    pub fn take(state: &Path, once: &[Once]) -> Result<Self> {
        let mut make = DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(state).map_err(HostError::call("make", state))?;
        let directory = File::open(state).map_err(HostError::call("open", state))?;
        own(&directory, state)?;
        // On a file system that knows no locks the mount point is still made by one alone.
        let lock = || match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
            _ => Ok(()),
        };
        if patiently(LETS_GO, lock).is_err() {
            let what = state.display().to_string();
            return Err(match holder(&directory) {
                Some(process) => taken(&format!("{what}), by {}", told_of(process))),
                None => taken(&format!("{what})")),
            });
        }
        let mut all = Vec::new();
        for once in once {
            all.extend(take_once(*once)?);
        }
        Ok(Self {
            state: directory,
            _once: all,
        })
    }
}

/// What is in here says what is removed and cleared, and is where file systems are mounted: nobody else may put anything there.
fn own(directory: &File, path: &Path) -> Result<()> {
    let found = directory.metadata();
    let found = found.map_err(HostError::call("inspect", path))?;
    let user = rustix::process::geteuid().as_raw();
    if found.st_uid() != user && found.st_uid() != 0 {
        return Err(HostError::missing(
            format!(
                "{} belongs to another user (of the number {}), who could change what is undone and where file systems are mounted",
                path.display(),
                found.st_uid()
            ),
            "set HOME or XDG_STATE_HOME to a directory of this user (sudo -H does)",
        ));
    }
    if found.st_mode() & 0o022 == 0 {
        return Ok(());
    }
    // Made by one whose umask lets a group write, mostly his own.
    let mode = Mode::from_raw_mode(found.st_mode() & 0o755);
    rustix::fs::fchmod(directory, mode)
        .map_err(HostError::call("keep others from writing to", path))
}

/// A process that has something that there is once.
struct Holder {
    process: u32,
    /// Whether it can use it: the administrator, or this user.
    may: bool,
}

/// Who has the socket, by what the kernel knows of its listener (`SO_PEERCRED` in unix(7)).
fn holder_of(once: Once) -> Option<Holder> {
    let address = SocketAddr::from_abstract_name(once.socket()).ok()?;
    let peer = UnixStream::connect_addr(&address).ok()?;
    let known = rustix::net::sockopt::socket_peercred(&peer).ok()?;
    let user = rustix::process::geteuid();
    Some(Holder {
        process: known.pid.as_raw_nonzero().get().unsigned_abs(),
        may: known.uid.is_root() || known.uid == user,
    })
}

fn take_once(once: Once) -> Result<Option<UnixListener>> {
    let what = once.what();
    let take = || {
        match SocketAddr::from_abstract_name(once.socket())
            .and_then(|address| UnixListener::bind_addr(&address))
        {
            Ok(listener) => Ok(Some(listener)),
            Err(error) if error.kind() == ErrorKind::AddrInUse => match holder_of(once) {
                // Anybody may take the name, but nobody else can do what it stands for.
                Some(holder) if !holder.may => Ok(None),
                Some(holder) => Err(taken(&format!("{what}), by {}", told_of(holder.process)))),
                None => Err(taken(&format!("{what})"))),
            },
            // Where sockets are forbidden, md itself refuses a name that is there; of settings nothing more can be known.
            Err(_) => Ok(None),
        }
    };
    patiently(LETS_GO, take)
}

/// The process that holds the lock of a directory.
fn holder(directory: &File) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    holder_by(&locks, directory)
}

/// The same by the text of `/proc/locks` (proc(5)): `1: FLOCK ADVISORY WRITE 4242 08:01:131 0 EOF`. Other file systems have the same
/// inode numbers, and the device in there is not the one that stat(2) tells where a file system has several (btrfs): who has the
/// lock of this directory has it open.
fn holder_by(locks: &str, directory: &File) -> Option<u32> {
    let its = directory.metadata().ok()?;
    let inode = its.st_ino().to_string();
    let of = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = words.iter().position(|word| *word == "FLOCK")?;
        let locked = words.get(at + 4)?.rsplit(':').next()?;
        (locked == inode).then_some(())?;
        words.get(at + 3)?.parse().ok()
    };
    locks
        .lines()
        .filter(|line| !line.contains("->"))
        .filter_map(of)
        .find(|process| has_open(*process, &its))
}

/// Whether a process has that file open, as far as this user may know.
fn has_open(process: u32, file: &Metadata) -> bool {
    let opened = std::fs::read_dir(format!("/proc/{process}/fd"));
    let same = |its: Metadata| (its.st_dev(), its.st_ino()) == (file.st_dev(), file.st_ino());
    opened
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| std::fs::metadata(entry.path()).is_ok_and(same))
}

/// A process in words: its number, how long it has been there, and how it was started, as far as the kernel tells.
#[must_use]
pub fn told_of(process: u32) -> String {
    let mut told = format!("process {process}");
    if let Some(age) = age(process) {
        let (hours, minutes, seconds) = (age / 3600, age / 60 % 60, age % 60);
        told.push_str(&match (hours, minutes) {
            (0, 0) => format!(", begun {seconds} s ago"),
            (0, _) => format!(", begun {minutes} min ago"),
            _ => format!(", begun {hours} h {minutes} min ago"),
        });
    }
    let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let words: Vec<&str> = command.split_terminator('\0').collect();
    if !words.is_empty() {
        told.push_str(&format!(" ('{}')", words.join(" ")));
    }
    told
}

/// Seconds since a process began: the machine's clock may have been set meanwhile, its uptime has not.
fn age(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Field 22 of proc_pid_stat(5), in ticks since the boot; the second one, in parentheses, may hold anything.
    let start: u64 = stat
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(19)?
        .parse()
        .ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some((uptime as u64).saturating_sub(start / ticks.max(1)))
}

fn taken(what: &str) -> HostError {
    HostError::missing(
        format!("another run of raidlab on this machine's disks is under way ({what}"),
        "wait for its end; nothing was begun",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn one_run_at_a_time_and_the_next_when_it_has_ended() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("state/raidlab");
        let first = Alone::take(&state, &[]).expect("nobody has it");
        let refused = Alone::take(&state, &[]).expect_err("somebody has it");
        assert!(refused.to_string().contains("another run"), "{refused}");
        // By whom: this process, here.
        let whose = format!("by process {}, begun ", std::process::id());
        assert!(refused.to_string().contains(&whose), "{refused}");
        let elsewhere = place.path().join("other");
        drop(Alone::take(&elsewhere, &[]).expect("another mount point"));
        drop(first);
        Alone::take(&state, &[]).expect("it is free again");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_made_private_and_one_of_another_user_is_not_used() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("state");
        std::fs::create_dir(&state).expect("made");
        let mode = |mode| std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode));
        mode(0o775).expect("changed");
        drop(Alone::take(&state, &[]).expect("this user's"));
        let found = std::fs::metadata(&state).expect("there").st_mode();
        assert_eq!(found & 0o777, 0o755);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&state, Some(4242), None).expect("given away");
            let refused = Alone::take(&state, &[]).expect_err("another user's");
            assert!(
                refused.to_string().contains("of the number 4242"),
                "{refused}"
            );
        }
    }

    /// As a program that is just being started has the files of the run.
    #[test]
    fn a_lock_ends_with_its_run_whoever_has_its_file() {
        let place = tempfile::tempdir().expect("a directory");
        let first = Alone::take(place.path(), &[]).expect("nobody has it");
        let _kept = first.state.try_clone().expect("the same open file");
        drop(first);
        let directory = File::open(place.path()).expect("the directory");
        let lock = flock(&directory, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(lock, Ok(()), "free at once");
    }

    #[test]
    fn a_lock_on_another_file_system_is_not_taken_for_this_one() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = File::open(place.path()).expect("a directory");
        let inode = directory.metadata().expect("its inode").st_ino();
        let this = std::process::id();
        // The first process has a file of the same number, on another file system; it is not this directory that it has open.
        let locks = format!(
            "1: FLOCK  ADVISORY  WRITE 1 00:2a:{inode} 0 EOF\n\
             1: -> FLOCK  ADVISORY  WRITE 2 00:2a:{inode} 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE {this} 08:01:{inode} 0 EOF\n"
        );
        assert_eq!(holder_by(&locks, &directory), Some(this));
        let others = format!("1: FLOCK  ADVISORY  WRITE 1 00:2a:{inode} 0 EOF\n");
        assert_eq!(holder_by(&others, &directory), None, "nobody is named");
    }

    #[test]
    fn what_there_is_once_is_one_runs_whatever_its_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        for (once, what) in [
            (Once::Arrays, "md arrays"),
            (Once::Settings, "settings of the system"),
        ] {
            // A run of somebody else on this machine may have it for a while.
            let first = patiently(PATIENCE, || Alone::take(&one, &[once])).expect("nobody has it");
            let refused = Alone::take(&other, &[once]).expect_err("somebody has it");
            let whose = format!("{what}), by process {}", std::process::id());
            assert!(refused.to_string().contains(&whose), "{refused}");
            drop(Alone::take(&other, &[]).expect("one that needs nothing of it"));
            drop(first);
            patiently(PATIENCE, || Alone::take(&other, &[once])).expect("it is free again");
        }
    }
}
