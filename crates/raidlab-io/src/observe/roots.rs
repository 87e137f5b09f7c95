//! Where `/proc`, `/sys`, `/dev` and udev's data are, so that a recorded or invented tree can stand in for the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};

/// Major and minor number of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device of that driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Splits a `dev_t` as `stat(2)` returns it.
    pub fn from_raw(dev: u64) -> Self {
        Self {
            major: rustix::fs::major(dev),
            minor: rustix::fs::minor(dev),
        }
    }
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parse = |part: &str| part.parse::<u32>().ok();
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: parse(major)?,
                    minor: parse(minor)?,
                })
            })
            .ok_or_else(|| format!("`{text}` is not MAJOR:MINOR"))
    }
}

/// The directories the observations read.
#[derive(Debug, Clone)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys`
    pub sys: PathBuf,
    /// `/dev`
    pub dev: PathBuf,
    /// `/run`, for `/run/udev/data`
    pub run: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self::system()
    }
}

impl Roots {
    /// The running machine.
    pub fn system() -> Self {
        Self::under(Path::new("/"))
    }

    /// The tree below `root`, which holds `proc`, `sys`, `dev` and `run`.
    pub fn under(root: &Path) -> Self {
        Self {
            proc: root.join("proc"),
            sys: root.join("sys"),
            dev: root.join("dev"),
            run: root.join("run"),
        }
    }

    /// Whether these are the running machine's.
    pub fn is_live(&self) -> bool {
        self.proc == Path::new("/proc")
    }

    /// Directory of a block device in sysfs.
    pub fn block(&self, name: &str) -> PathBuf {
        self.sys.join("class/block").join(name)
    }

    /// Names of all block devices, partitions included, in order.
    pub fn block_names(&self) -> Vec<String> {
        names_in(&self.sys.join("class/block"))
    }

    /// Kernel name of a block device by number.
    pub fn block_by_number(&self, number: DeviceNumber) -> Option<String> {
        let wanted = number.to_string();
        self.block_names()
            .into_iter()
            .find(|name| text(&self.block(name).join("dev")).as_deref() == Some(&wanted))
    }

    /// Kernel name of the block device that a path leads to.
    pub(crate) fn block_of(&self, node: &fs::Metadata) -> Result<String> {
        use std::os::unix::fs::MetadataExt as _;
        let number = DeviceNumber::from_raw(node.rdev());
        self.block_by_number(number)
            .ok_or_else(|| ObserveError::UnknownDevice {
                major: number.major,
                minor: number.minor,
                sys: self.sys.join("class/block"),
            })
    }

    /// Text of a file below `/proc`; absence is an error.
    pub(crate) fn proc_text(&self, relative: &str) -> Result<String> {
        required_text(&self.proc.join(relative))
    }
}

/// Text of a file, invalid UTF-8 replaced (device models do contain it).
pub(crate) fn required_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(ObserveError::read(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Trimmed text of an attribute; `None` when it is absent, unreadable or empty: an attribute a driver does not
/// offer is unknown, not an error.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number from an attribute; `None` when it is absent or not of that type.
pub(crate) fn number<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// A `0`/`1` attribute.
pub(crate) fn flag(path: &Path) -> Option<bool> {
    match text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Sorted names in a directory; empty when it cannot be listed.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
