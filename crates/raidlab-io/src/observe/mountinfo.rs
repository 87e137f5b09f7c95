//! The mount table, `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};
use super::roots::DeviceNumber;

const FILE: &str = "/proc/self/mountinfo";

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Mount id, unique at one time.
    pub id: u64,
    /// Id of the mount it hangs on.
    pub parent: u64,
    /// `st_dev` of files on it; btrfs subvolumes and overlays show an anonymous one (major 0).
    pub number: DeviceNumber,
    /// The directory of the file system that is the root here: not `/` for a bind mount or a btrfs subvolume.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of this mount (`rw,relatime`).
    pub options: Vec<String>,
    /// File-system type, `ext4`, `fuse.sshfs`.
    pub fs_type: String,
    /// What is mounted: a device, a pool, a server, or a word without meaning.
    pub source: String,
    /// Options of the file system itself (`rw,stripe=256`).
    pub super_options: Vec<String>,
}

impl Mount {
    /// Value of `key=value` among the options of the file system, then of the mount.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.super_options
            .iter()
            .chain(&self.options)
            .find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }

    /// Whether writing is refused, by the mount or by the file system.
    pub fn read_only(&self) -> bool {
        self.options
            .iter()
            .chain(&self.super_options)
            .any(|option| option == "ro")
    }

    /// Whether only a part of the file system is seen here: a bind mount or a subvolume.
    pub fn is_partial(&self) -> bool {
        self.root != Path::new("/")
    }
}

/// Parses the mount table.
///
/// # Errors
/// On a line without the fixed fields or without the ` - ` that ends the optional ones.
pub fn parse(text: &str) -> Result<Vec<Mount>> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            parse_line(line).map_err(|problem| ObserveError::malformed(FILE, index + 1, problem))
        })
        .collect()
}

fn parse_line(line: &str) -> std::result::Result<Mount, String> {
    let mut fields = line.split(' ');
    let mut next = |what: &str| {
        fields
            .next()
            .ok_or_else(|| format!("the {what} is missing"))
    };
    let id = next("mount id")?;
    let parent = next("parent id")?;
    let number = next("device number")?.parse()?;
    let root = unescape(next("root")?);
    let point = unescape(next("mount point")?);
    let options = list(next("mount options")?);
    // Optional fields (shared:1, master:2 ...) end with a lone dash.
    if !fields.any(|field| field == "-") {
        return Err("the ` - ` before the file-system type is missing".to_owned());
    }
    let fs_type = fields.next().ok_or("the file-system type is missing")?;
    // The source may be empty ("mount -t tmpfs '' /x"), and then the super options are all that is left.
    let source = fields.next().unwrap_or_default();
    let super_options = fields.next().unwrap_or_default();
    let integer = |text: &str, what: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("{what} `{text}` is not a number"))
    };
    Ok(Mount {
        id: integer(id, "mount id")?,
        parent: integer(parent, "parent id")?,
        number,
        root,
        point,
        options,
        fs_type: fs_type.to_owned(),
        source: unescape(source).to_string_lossy().into_owned(),
        super_options: list(super_options),
    })
}

fn list(text: &str) -> Vec<String> {
    // Escapes matter here too: an overlay's upperdir may contain blanks.
    text.split(',')
        .filter(|option| !option.is_empty())
        .map(|option| unescape(option).to_string_lossy().into_owned())
        .collect()
}

/// Undoes the kernel's `\040` for blanks, tabs, newlines and backslashes.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = (bytes[at] == b'\\')
            .then(|| bytes.get(at + 1..at + 4))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// The mount a path lies on: by mount id where the kernel tells it (`statx`, Linux 5.8), else the longest mount point
/// that is a prefix, the last one mounted there. `path` must be canonical.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path, id: Option<u64>) -> Option<&'a Mount> {
    if let Some(mount) = id.and_then(|id| mounts.iter().find(|mount| mount.id == id)) {
        return Some(mount);
    }
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        // max_by_key takes the last of equals: the uppermost of mounts on one point.
        .max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
#[path = "tests/mountinfo.rs"]
mod tests;
