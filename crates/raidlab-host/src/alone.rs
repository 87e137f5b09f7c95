//! One run at a time: what has a name of its own on the machine, a mount point or an array, is one run's until it ends.
use crate::error::{HostError, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// Whoever has the socket of this name makes arrays. It is in no directory, and goes with its process.
const ARRAYS: &str = "raidlab makes arrays";

/// The right of a run to be the only one. It ends when it is dropped, or with the process, however that ends.
#[derive(Debug)]
pub struct Alone {
    _state: File,
    _arrays: Option<UnixListener>,
}

impl Alone {
    /// Makes this the only one of the runs that keep their state in this directory, which is made when it is not there; and, when
    /// `arrays` of md are to be made, the only one of all that make such on this machine: the kernel has one set of names for them.
    ///
    /// # Errors
    /// [`HostError::Missing`] when another run has it; when the directory cannot be made.
    pub fn take(state: &Path, arrays: bool) -> Result<Self> {
        let mut make = DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(state).map_err(HostError::call("make", state))?;
        let directory = File::open(state).map_err(HostError::call("open", state))?;
        // On a file system that knows no locks the mount point is still made by one alone.
        let lock = flock(&directory, FlockOperation::NonBlockingLockExclusive);
        if lock == Err(Errno::WOULDBLOCK) {
            return Err(taken(&state.display().to_string()));
        }
        let arrays = match arrays {
            true => take_arrays()?,
            false => None,
        };
        Ok(Self {
            _state: directory,
            _arrays: arrays,
        })
    }
}

fn take_arrays() -> Result<Option<UnixListener>> {
    let address = SocketAddr::from_abstract_name(ARRAYS);
    match address.and_then(|address| UnixListener::bind_addr(&address)) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(taken("md arrays")),
        // Where sockets are forbidden, md itself refuses a name that is there.
        Err(_) => Ok(None),
    }
}

fn taken(what: &str) -> HostError {
    HostError::missing(
        format!("another run of raidlab on this machine's disks is under way ({what})"),
        "wait for its end; nothing was begun",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn one_run_at_a_time_and_the_next_when_it_has_ended() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("state/raidlab");
        let first = Alone::take(&state, false).expect("nobody has it");
        let refused = Alone::take(&state, false).expect_err("somebody has it");
        assert!(refused.to_string().contains("another run"), "{refused}");
        let elsewhere = place.path().join("other");
        drop(Alone::take(&elsewhere, false).expect("another mount point"));
        drop(first);
        Alone::take(&state, false).expect("it is free again");
    }

    #[test]
    fn arrays_have_one_set_of_names() {
        let place = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        // A run of somebody else on this machine may have it for a while.
        let patience = Instant::now() + Duration::from_secs(60);
        let first = loop {
            match Alone::take(&one, true) {
                Ok(first) => break first,
                Err(error) if Instant::now() > patience => panic!("{error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        };
        let refused = Alone::take(&other, true).expect_err("somebody makes arrays");
        assert!(refused.to_string().contains("md arrays"), "{refused}");
        drop(Alone::take(&other, false).expect("one that makes none"));
        drop(first);
        Alone::take(&other, true).expect("it is free again");
    }
}
