//! What a run has while it lasts: a directory with its sockets, its console and the identity of its
//! processes. The directory is locked by its owner, so that whoever comes later can tell a dead one's, end
//! the very processes that it started, and remove it.
mod identity;
mod left;

pub use identity::Identity;
pub use left::Leftover;

use crate::error::VmError;
use crate::removal::remove_tree;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
const PROCESSES: &str = "processes";
const SAID: &str = "qemu.log";
/// Names of runs begin with this.
const PREFIX: &str = "vm-";

/// Where runs have their directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    path: PathBuf,
}

impl Runs {
    /// In a directory that need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// This user's: in `$XDG_RUNTIME_DIR`, else under `/tmp`. Short, for a socket's name has 107 bytes.
    #[must_use]
    pub fn of_user() -> Self {
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let given = given.filter(|path| path.is_absolute() && path.as_os_str().len() < 60);
        Self::new(match given {
            Some(path) => path.join("raidlab"),
            None => PathBuf::from(format!(
                "/tmp/raidlab-{}",
                rustix::process::getuid().as_raw()
            )),
        })
    }

    /// Where they are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory for a run.
    ///
    /// # Errors
    /// When it cannot be made, or the directory above belongs to another user.
    pub fn create(&self) -> Result<RunDir, VmError> {
        self.own()?;
        let _turn = self.turn();
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(8)
            .tempdir_in(&self.path)
            .map_err(VmError::path("make a directory in", &self.path))?
            .keep();
        let file = path.join(LOCK);
        let lock = File::create(&file).map_err(VmError::path("make", &file))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| VmError::path("lock", &file)(error.into()))?;
        // From here on what goes wrong leaves nothing behind.
        let run = RunDir { path, lock };
        let owner = serde_json::to_string(&Identity::of(std::process::id())?).unwrap_or_default();
        fs::write(&file, owner).map_err(VmError::path("write", &file))?;
        Ok(run)
    }

    /// Held while a directory is made and locked, or looked through: one that is being made has no lock
    /// yet and is no dead one's.
    fn turn(&self) -> Option<File> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(self.path.join(LOCK))
            .ok()?;
        flock(&file, FlockOperation::LockExclusive).ok()?;
        Some(file)
    }

    /// Makes the directory above; one that another user has made is not used.
    fn own(&self) -> Result<(), VmError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&self.path)
            .map_err(VmError::path("make the directory", &self.path))?;
        let data =
            fs::symlink_metadata(&self.path).map_err(VmError::path("look at", &self.path))?;
        let Some(why) = foreign(&data) else {
            return Ok(());
        };
        let error = io::Error::new(io::ErrorKind::PermissionDenied, why);
        Err(VmError::path("use", &self.path)(error))
    }

    /// What dead runs have left: nothing, where the directory above is not this user's alone, for then others can have put
    /// there what they like, the processes that are to be ended included.
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        let found = fs::symlink_metadata(&self.path);
        if !found.is_ok_and(|data| foreign(&data).is_none()) {
            return Vec::new();
        }
        let _turn = self.turn();
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut found: Vec<Leftover> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
            .filter_map(|entry| Leftover::of(entry.path()))
            .collect();
        found.sort_by(|a, b| a.path().cmp(b.path()));
        found
    }

    /// Ends and removes what dead runs have left; what was removed, in words.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn clean(&self) -> Result<Vec<String>, VmError> {
        self.leftovers().into_iter().map(Leftover::remove).collect()
    }
}

/// Why a directory is not one that this user alone has made and filled.
fn foreign(data: &fs::Metadata) -> Option<&'static str> {
    if !data.is_dir() || data.uid() != rustix::process::getuid().as_raw() {
        return Some("it is another user's");
    }
    let others = data.mode() & 0o022 != 0;
    others.then_some("others may write to it: chmod 700 it, or remove it")
}

/// The directory of a run; dropping it removes it.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    lock: File,
}

impl RunDir {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the identity of a process that belongs to this run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(&self, identity: &Identity) -> Result<(), VmError> {
        use std::io::Write;
        let path = self.path.join(PROCESSES);
        let line = serde_json::to_string(identity).unwrap_or_default();
        let file = File::options().create(true).append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(VmError::path("write", &path))
    }

    /// Where QEMU's own words go.
    pub(crate) fn said(&self) -> Result<File, VmError> {
        let path = self.path.join(SAID);
        let file = File::options().create(true).append(true).open(&path);
        file.map_err(VmError::path("write", &path))
    }

    /// The end of a file in it, as text.
    #[must_use]
    pub fn tail(&self, name: &str, most: u64) -> String {
        tail(&self.path.join(name), most).unwrap_or_default()
    }

    /// The end of what QEMU said, without what it only warned of.
    #[must_use]
    pub fn complaint(&self) -> String {
        let said = self.tail(SAID, 2048);
        let lines = said.lines().filter(|line| !line.contains("warning:"));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    }
}

fn tail(path: &Path, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
        unlock(&self.lock);
    }
}

/// Lets a lock go. Closing its file does not while a program that another thread is just starting has it, too.
fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::time::Duration;

    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Self {
            Self(Command::new("sleep").arg("600").spawn().expect("sleep"))
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn runs() -> (tempfile::TempDir, Runs) {
        let directory = tempfile::tempdir().unwrap();
        let runs = Runs::new(directory.path().join("runs"));
        (directory, runs)
    }

    /// A run whose owner is gone without having cleaned up.
    fn die(run: RunDir) -> PathBuf {
        let path = run.path().to_owned();
        let kept = path.with_extension("kept");
        fs::rename(&path, &kept).unwrap();
        drop(run);
        fs::rename(&kept, &path).unwrap();
        path
    }

    #[test]
    fn a_run_that_lasts_is_left_alone_and_leaves_nothing() {
        let (_directory, runs) = runs();
        let run = runs.create().unwrap();
        assert!(runs.leftovers().is_empty());
        assert_eq!(runs.clean().unwrap(), [""; 0]);
        let path = run.path().to_owned();
        drop(run);
        assert!(!path.exists());
    }

    /// As a program that was just started when its raidlab was killed.
    #[test]
    fn a_lock_that_outlives_its_run_for_a_moment_is_waited_for() {
        let (_directory, runs) = runs();
        let run = runs.create().unwrap();
        let file = run.path().join(LOCK);
        let text = fs::read_to_string(&file).unwrap();
        let living: Identity = serde_json::from_str(&text).expect("whose it is");
        let mut gone = living.clone();
        gone.started += 1;
        let kept = run.lock.try_clone().unwrap();
        std::mem::forget(run);
        assert!(runs.leftovers().is_empty(), "its run lives");
        fs::write(&file, serde_json::to_string(&gone).unwrap()).unwrap();
        let lets_go = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            unlock(&kept);
        });
        assert_eq!(runs.leftovers().len(), 1);
        lets_go.join().unwrap();
    }

    /// As a program that another thread is just starting has the files of the run.
    #[test]
    fn a_lock_ends_with_its_run_whoever_has_its_file() {
        let (_directory, runs) = runs();
        let run = runs.create().unwrap();
        let _kept = run.lock.try_clone().unwrap();
        die(run);
        let left = runs.leftovers();
        let _kept = left[0].kept().unwrap();
        drop(left);
        assert_eq!(runs.clean().unwrap().len(), 1);
    }

    #[test]
    fn what_a_dead_run_started_is_ended_and_its_directory_removed() {
        let (_directory, runs) = runs();
        let mut sleeper = Sleeper::new();
        let other = Sleeper::new();
        let run = runs.create().unwrap();
        let identity = Identity::of(sleeper.0.id()).unwrap();
        run.remember(&identity).unwrap();
        // Another process with a number that was used before is not the one that was started.
        let mut reused = Identity::of(other.0.id()).unwrap();
        reused.started += 1;
        run.remember(&reused).unwrap();
        let path = die(run);
        let said = runs.clean().unwrap();
        assert_eq!(said.len(), 1);
        assert!(
            said[0].contains(&format!("ended process {} and", sleeper.0.id())),
            "{said:?}"
        );
        assert!(!path.exists() && !identity.lives());
        assert!(sleeper.0.wait().unwrap().code().is_none(), "killed");
        assert!(Identity::of(other.0.id()).unwrap().lives());
        assert_eq!(runs.clean().unwrap(), [""; 0]);
    }

    /// Whoever makes the directory first, under /tmp, could name processes and files of others in it.
    #[test]
    fn what_others_can_have_put_there_is_not_obeyed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (directory, runs) = runs();
        let mut sleeper = Sleeper::new();
        let run = runs.create().unwrap();
        let identity = Identity::of(sleeper.0.id()).unwrap();
        run.remember(&identity).unwrap();
        let path = die(run);
        let mode = |mode| fs::set_permissions(runs.path(), fs::Permissions::from_mode(mode));
        mode(0o777).unwrap();
        let _ = fs::remove_file(runs.path().join(LOCK));
        symlink(directory.path().join("nologin"), runs.path().join(LOCK)).unwrap();
        assert_eq!(runs.clean().unwrap(), [""; 0]);
        let told = runs.create().unwrap_err().to_string();
        assert!(told.contains("others may write to it"), "{told}");
        assert!(identity.lives() && path.exists());
        assert!(!directory.path().join("nologin").exists());
        let linked = Runs::new(directory.path().join("link"));
        symlink(runs.path(), linked.path()).unwrap();
        mode(0o700).unwrap();
        assert!(linked.leftovers().is_empty());
        fs::remove_file(runs.path().join(LOCK)).unwrap();
        assert_eq!(runs.clean().unwrap().len(), 1);
        assert!(sleeper.0.wait().unwrap().code().is_none(), "killed");
    }

    #[test]
    fn a_warning_is_no_complaint() {
        let (_directory, runs) = runs();
        let run = runs.create().unwrap();
        fs::write(
            run.path().join(SAID),
            "qemu: warning: Large machine\nno room\n",
        )
        .unwrap();
        assert_eq!(run.complaint(), "no room");
    }

    #[test]
    fn an_unfinished_line_is_no_process() {
        let (_directory, runs) = runs();
        let run = runs.create().unwrap();
        fs::write(run.path().join(PROCESSES), "{\"pid\":1,\"star").unwrap();
        let path = die(run);
        assert!(runs.leftovers()[0].living().is_empty());
        runs.clean().unwrap();
        assert!(!path.exists());
    }
}
