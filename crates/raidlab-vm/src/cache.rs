//! Where kernels and images are kept between runs: a directory of raidlab's own.
use crate::error::VmError;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    path: PathBuf,
}

/// Held while something is added; lets go when dropped.
#[derive(Debug)]
pub struct CacheLock(#[expect(dead_code, reason = "closing it is what unlocks")] File);

impl Cache {
    /// A cache at that path, which need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn directory(&self, name: &str) -> Result<PathBuf, VmError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(VmError::path("make the directory", &path))?;
        Ok(path)
    }

    /// Waits until no other raidlab adds to it.
    ///
    /// # Errors
    /// When the file of the lock cannot be made.
    pub fn lock(&self) -> Result<CacheLock, VmError> {
        let path = self.directory("")?.join("lock");
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(VmError::path("open", &path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| VmError::path("lock", &path)(error.into()))?;
        Ok(CacheLock(file))
    }
}

/// SHA-256 of a file as 64 hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn digest_of(path: &Path) -> Result<String, VmError> {
    let mut file = File::open(path).map_err(VmError::path("open", path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(n) => digest.update(&buffer[..n]),
            Err(error) => return Err(VmError::path("read", path)(error)),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names in a directory, in order; none where there is none.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
