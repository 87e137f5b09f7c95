//! How a process opens its data file, and what it does before it closes it.
use crate::op::{FileId, FileOp, Op, OpenMode};
use serde::{Deserialize, Serialize};

/// A data file and how it is opened. Opening and closing it are part of the phase and not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Handle {
    /// Which data file.
    pub file: FileId,
    /// How it is opened.
    pub mode: OpenMode,
    /// Past the page cache.
    #[serde(default)]
    pub direct: bool,
    /// Every write durable before it returns (`O_SYNC`).
    #[serde(default)]
    pub sync: bool,
}

impl Handle {
    /// Ordinary buffered calls.
    #[must_use]
    pub const fn new(file: FileId, mode: OpenMode) -> Self {
        Self {
            file,
            mode,
            direct: false,
            sync: false,
        }
    }

    /// The same past the page cache when `direct`.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    pub(super) const fn open(&self) -> Op {
        Op::File(FileOp::Open {
            file: self.file,
            mode: self.mode,
            direct: self.direct,
            sync: self.sync,
        })
    }

    pub(super) const fn close(&self) -> Op {
        Op::File(FileOp::Close { file: self.file })
    }

    pub(super) const fn read(&self, offset: u64, len: u32) -> Op {
        Op::File(FileOp::Read {
            file: self.file,
            len,
            offset,
        })
    }

    pub(super) const fn scan(&self, offset: u64, len: u32) -> Op {
        Op::File(FileOp::Scan {
            file: self.file,
            len,
            offset,
        })
    }

    pub(super) const fn write(&self, offset: u64, len: u32) -> Op {
        Op::File(FileOp::Write {
            file: self.file,
            len,
            offset,
        })
    }

    pub(super) const fn make_durable(&self, data_only: bool) -> Op {
        Op::File(FileOp::Sync {
            file: self.file,
            data_only,
        })
    }
}

/// When a process makes its file durable. The calls are part of the phase and not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// Never; the kernel writes back when it likes.
    #[default]
    Never,
    /// `fsync` once before the file is closed.
    AtEnd,
    /// `fdatasync` once before the file is closed.
    DataAtEnd,
    /// `fsync` after every write call, and once before the file is closed.
    EveryWrite,
}

impl Durable {
    pub(super) const fn at_end(self, handle: &Handle) -> Option<Op> {
        match self {
            Self::Never => None,
            Self::AtEnd | Self::EveryWrite => Some(handle.make_durable(false)),
            Self::DataAtEnd => Some(handle.make_durable(true)),
        }
    }
}

/// Where a process is between opening and closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Open,
    Work,
    Sync,
    Close,
    Over,
}

impl Stage {
    /// The calls around the work itself: `Err` while it is the work's turn.
    pub(super) fn frame(&mut self, handle: &Handle, durable: Durable) -> Result<Option<Op>, ()> {
        match *self {
            Self::Open => {
                *self = Self::Work;
                Ok(Some(handle.open()))
            }
            Self::Work => Err(()),
            Self::Sync => {
                *self = Self::Close;
                match durable.at_end(handle) {
                    Some(sync) => Ok(Some(sync)),
                    None => self.frame(handle, durable),
                }
            }
            Self::Close => {
                *self = Self::Over;
                Ok(Some(handle.close()))
            }
            Self::Over => Ok(None),
        }
    }
}
