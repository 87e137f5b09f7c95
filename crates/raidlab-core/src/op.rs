//! What can be asked of a target: block operations on an extent and file operations.
//!
//! Both kinds are plain values without buffers: a target owns its buffers and fills them by the
//! run's [data policy](crate::data). A model never looks at the bytes.
mod text;

use serde::{Deserialize, Serialize};

/// Whether bytes come, go, or are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockKind {
    /// Read the extent.
    Read,
    /// Write the extent.
    Write,
    /// Make all that was written durable; the extent is not looked at.
    Flush,
    /// The same without what of a file's description it takes no one to read the data (`fdatasync`). Devices know
    /// no such difference.
    FlushData,
}

impl BlockKind {
    /// Whether nothing is moved.
    #[must_use]
    #[inline]
    pub const fn is_flush(self) -> bool {
        matches!(self, Self::Flush | Self::FlushData)
    }

    /// What a device is asked for.
    #[must_use]
    #[inline]
    pub const fn of_device(self) -> Self {
        match self {
            Self::FlushData => Self::Flush,
            kind => kind,
        }
    }
}

/// An operation on the target's one extent (a device or a file), direct or queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockOp {
    /// Read, write or flush.
    pub kind: BlockKind,
    /// Length in bytes.
    pub len: u32,
    /// First byte.
    pub offset: u64,
}

/// A file of the run by number: data files are `0..`, and small files of a metadata phase are told
/// apart by [`Entry`].
pub type FileId = u32;

/// A small file of a metadata phase: its number decides directory, name and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the file, from 0.
    pub index: u32,
    /// Number of the directory it is in, from 0.
    pub directory: u32,
    /// True when the names sort in the order of creation (sequential phases), false when they are
    /// shuffled (random phases).
    pub ordered: bool,
}

/// How a data file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OpenMode {
    /// Made anew or emptied, for writing (and reading).
    Create,
    /// An existing file for reading.
    Read,
    /// An existing file for reading and writing in place.
    Update,
}

/// An operation through the file system by ordinary system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileOp {
    /// Open a data file. `direct` asks for `O_DIRECT`.
    Open {
        /// Which file.
        file: FileId,
        /// How.
        mode: OpenMode,
        /// Past the page cache.
        direct: bool,
        /// Every write durable before it returns (`O_SYNC`).
        sync: bool,
    },
    /// One `pread` of `len` bytes.
    Read {
        /// Which file.
        file: FileId,
        /// Size of the call in bytes.
        len: u32,
        /// First byte.
        offset: u64,
    },
    /// One `pread` of `len` bytes, of which a byte of each sector is then looked at, as hdparm does
    /// to be sure that the data came.
    Scan {
        /// Which file.
        file: FileId,
        /// Size of the call in bytes.
        len: u32,
        /// First byte.
        offset: u64,
    },
    /// One `pwrite` of `len` bytes.
    Write {
        /// Which file.
        file: FileId,
        /// Size of the call in bytes.
        len: u32,
        /// First byte.
        offset: u64,
    },
    /// `len` one-byte writes (`putc` on a buffered stream, as bonnie++ 1.x does), counted as one op.
    PutChars {
        /// Which file.
        file: FileId,
        /// Number of characters.
        len: u32,
        /// First byte.
        offset: u64,
    },
    /// `len` one-byte reads (`getc` on a buffered stream), counted as one op.
    GetChars {
        /// Which file.
        file: FileId,
        /// Number of characters.
        len: u32,
        /// First byte.
        offset: u64,
    },
    /// Make a data file durable: `fsync`, or `fdatasync` when `data_only`.
    Sync {
        /// Which file.
        file: FileId,
        /// Leave metadata that is not needed to read the data back.
        data_only: bool,
    },
    /// Close a data file.
    Close {
        /// Which file.
        file: FileId,
    },
    /// Remove a data file.
    Remove {
        /// Which file.
        file: FileId,
    },
    /// Create a small file of `size` bytes, close it, and `fsync` it first when `sync`.
    Create {
        /// Which small file.
        entry: Entry,
        /// Its size in bytes.
        size: u32,
        /// Durable before it is closed.
        sync: bool,
    },
    /// `stat` a small file, and read it when `size` is not 0 (as bonnie++ does).
    Stat {
        /// Which small file.
        entry: Entry,
        /// Bytes to read after the `stat`.
        size: u32,
    },
    /// Remove a small file.
    Unlink {
        /// Which small file.
        entry: Entry,
    },
    /// Make a directory of a metadata phase.
    MakeDirectory {
        /// Number of the directory.
        directory: u32,
    },
    /// Remove a directory of a metadata phase, which must be empty.
    RemoveDirectory {
        /// Number of the directory.
        directory: u32,
    },
    /// Make a directory's entries durable (`fsync` on the directory).
    SyncDirectory {
        /// Number of the directory.
        directory: u32,
    },
    /// Make the whole file system that holds the run's files durable (`syncfs`; bonnie++ calls
    /// `sync` at the end of each creation and deletion).
    SyncAll,
}

/// Anything that can be asked of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// On the target's extent.
    Block(BlockOp),
    /// Through the file system.
    File(FileOp),
}

/// Operations whose latencies are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpClass {
    /// Bytes come.
    Read,
    /// Bytes go.
    Write,
    /// Made durable.
    Sync,
    /// Names and attributes.
    Meta,
}

impl OpClass {
    /// All classes, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::Meta];
}

impl Op {
    /// The class its latency is counted in.
    #[must_use]
    #[inline]
    pub const fn class(&self) -> OpClass {
        match self {
            Self::Block(op) => match op.kind {
                BlockKind::Read => OpClass::Read,
                BlockKind::Write => OpClass::Write,
                BlockKind::Flush | BlockKind::FlushData => OpClass::Sync,
            },
            Self::File(op) => match op {
                FileOp::Read { .. } | FileOp::Scan { .. } | FileOp::GetChars { .. } => {
                    OpClass::Read
                }
                FileOp::Write { .. } | FileOp::PutChars { .. } => OpClass::Write,
                FileOp::Sync { .. } | FileOp::SyncDirectory { .. } | FileOp::SyncAll => {
                    OpClass::Sync
                }
                _ => OpClass::Meta,
            },
        }
    }

    /// Bytes of data that it moves when it succeeds (small files count their content).
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> u32 {
        match self {
            Self::Block(op) => match op.kind {
                BlockKind::Flush | BlockKind::FlushData => 0,
                _ => op.len,
            },
            Self::File(op) => match op {
                FileOp::Read { len, .. }
                | FileOp::Scan { len, .. }
                | FileOp::Write { len, .. }
                | FileOp::PutChars { len, .. }
                | FileOp::GetChars { len, .. } => *len,
                FileOp::Create { size, .. } | FileOp::Stat { size, .. } => *size,
                _ => 0,
            },
        }
    }

    /// Three words that say the same for the same operation everywhere: the input of the digest.
    #[must_use]
    pub fn words(&self) -> [u64; 3] {
        let entry = |e: &Entry| {
            u64::from(e.index) << 33 | u64::from(e.directory) << 1 | u64::from(e.ordered)
        };
        let pair = |a: &u32, b: &u32| u64::from(*a) << 32 | u64::from(*b);
        match self {
            Self::Block(op) => [op.kind as u64, u64::from(op.len), op.offset],
            Self::File(op) => match op {
                FileOp::Open {
                    file,
                    mode,
                    direct,
                    sync,
                } => [
                    16,
                    u64::from(*file),
                    (*mode as u64) << 2 | u64::from(*direct) << 1 | u64::from(*sync),
                ],
                FileOp::Read { file, len, offset } => [17, pair(file, len), *offset],
                FileOp::Write { file, len, offset } => [18, pair(file, len), *offset],
                FileOp::PutChars { file, len, offset } => [19, pair(file, len), *offset],
                FileOp::GetChars { file, len, offset } => [20, pair(file, len), *offset],
                FileOp::Sync { file, data_only } => [21, u64::from(*file), u64::from(*data_only)],
                FileOp::Close { file } => [22, u64::from(*file), 0],
                FileOp::Remove { file } => [23, u64::from(*file), 0],
                FileOp::Create {
                    entry: e,
                    size,
                    sync,
                } => [24, entry(e), u64::from(*size) << 1 | u64::from(*sync)],
                FileOp::Stat { entry: e, size } => [25, entry(e), u64::from(*size)],
                FileOp::Unlink { entry: e } => [26, entry(e), 0],
                FileOp::MakeDirectory { directory } => [27, u64::from(*directory), 0],
                FileOp::RemoveDirectory { directory } => [28, u64::from(*directory), 0],
                FileOp::SyncDirectory { directory } => [29, u64::from(*directory), 0],
                FileOp::SyncAll => [30, 0, 0],
                FileOp::Scan { file, len, offset } => [31, pair(file, len), *offset],
            },
        }
    }
}
