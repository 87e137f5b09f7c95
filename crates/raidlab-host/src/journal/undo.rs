//! What undoes a step, with the identities by which it is found again.
use crate::identity::{FileId, Identity};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One thing to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum Undo {
    /// A directory that was about to be made: removed when it is there and empty.
    NewDirectory(#[serde(with = "as_path")] PathBuf),
    /// A directory that was made: removed when it is empty.
    Directory(FileId),
    /// A file that was about to be made: removed when it is there and empty.
    NewFile(#[serde(with = "as_path")] PathBuf),
    /// A file that was made.
    File(FileId),
    /// A loop device over a file of raidlab's own.
    LoopDevice(FileId),
    /// A file system mounted at a place that raidlab made, from devices of its own.
    Mount {
        /// Where.
        point: PathBuf,
        /// What the file system is on, down to the members.
        members: Vec<Identity>,
    },
    /// An md array over these members.
    Array {
        /// The members, below all arrays.
        members: Vec<Identity>,
        /// The kernel name that it was to have: told only.
        name: String,
    },
    /// A ZFS pool on these members.
    Pool {
        /// Its name, made for this run.
        name: String,
    },
    /// A scrub of btrfs, which goes on without its tool, and what the tool noted of it.
    Scrub {
        /// Where the file system is mounted.
        point: PathBuf,
        /// Its uuid.
        uuid: String,
    },
    /// A replacement of members of btrfs, which goes on without its tool, and keeps the file system from being unmounted.
    Replacement {
        /// Where the file system is mounted.
        point: PathBuf,
        /// Its uuid.
        uuid: String,
    },
    /// What was written on a member: cleared, as long as all that is on it carries one of these uuids.
    Contents {
        /// The member.
        member: Identity,
        /// Hexadecimal digits without separators.
        uuids: Vec<String>,
    },
    /// A setting in a device's sysfs directory.
    Attribute {
        /// The device.
        device: Identity,
        /// Such as `queue/scheduler`.
        attribute: String,
        /// What it was.
        value: String,
    },
    /// A setting under `/proc/sys/vm`: as it was, unless somebody has set it anew since.
    System {
        /// What is set.
        set: Setting,
        /// What it was: of a share and a size the one that went.
        was: Setting,
    },
    /// A drive's write cache.
    WriteCache {
        /// The drive.
        device: Identity,
        /// Whether it was on.
        on: bool,
    },
}

/// A file under `/proc/sys/vm` and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Setting {
    /// Such as `dirty_ratio`.
    pub name: String,
    /// A number.
    pub value: String,
}

mod as_path {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::{Path, PathBuf};

    /// A tagged enumeration takes no bare string: the path is a table of its own.
    #[derive(Serialize, Deserialize)]
    struct At {
        path: PathBuf,
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let path = path.to_owned();
        At { path }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(At::deserialize(from)?.path)
    }
}

/// What came of undoing one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It was not there.
    Nothing,
    /// Done; in words.
    Done(String),
    /// It is there and was left; in words, why and what a person can do.
    Left(String),
}
