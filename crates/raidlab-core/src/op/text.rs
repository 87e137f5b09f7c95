//! Operations as a person reads them: in errors.
use super::{BlockKind, BlockOp, Entry, FileOp, Op, OpenMode};
use std::fmt;

/// A number of bytes in the largest binary unit that divides it: exact, unlike
/// [`Bytes`](crate::units::Bytes), since it may be a place.
struct Exact(u64);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("EiB", 60),
            ("PiB", 50),
            ("TiB", 40),
            ("GiB", 30),
            ("MiB", 20),
            ("KiB", 10),
        ];
        let fitting = units.into_iter().find(|(_, bits)| {
            let unit = 1_u64 << bits;
            self.0 > 0 && self.0.is_multiple_of(unit)
        });
        match fitting {
            Some((name, bits)) => write!(f, "{} {name}", self.0 >> bits),
            None if self.0 == 0 => write!(f, "0"),
            None if self.0 == 1 => write!(f, "1 byte"),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl fmt::Display for BlockOp {
    /// `read of 4 KiB at 12 MiB`, `flush`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            BlockKind::Read => "read",
            BlockKind::Write => "write",
            BlockKind::Flush => return write!(f, "flush"),
            BlockKind::FlushData => return write!(f, "flush of data"),
        };
        let (len, offset) = (Exact(u64::from(self.len)), Exact(self.offset));
        write!(f, "{name} of {len} at {offset}")
    }
}

impl fmt::Display for Entry {
    /// `small file 7 of directory 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "small file {} of directory {}",
            self.index, self.directory
        )
    }
}

impl fmt::Display for FileOp {
    /// `read of 4 KiB at 12 MiB of file 0`, `creation of small file 7 of directory 0 with 1 KiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut moving = |name: &str, file: &u32, len: &u32, offset: &u64| {
            let (len, offset) = (Exact(u64::from(*len)), Exact(*offset));
            write!(f, "{name} of {len} at {offset} of file {file}")
        };
        match self {
            Self::Read { file, len, offset } => moving("read", file, len, offset),
            Self::Scan { file, len, offset } => moving("scan", file, len, offset),
            Self::Write { file, len, offset } => moving("write", file, len, offset),
            Self::PutChars { file, len, offset } => {
                moving("write by characters", file, len, offset)
            }
            Self::GetChars { file, len, offset } => moving("read by characters", file, len, offset),
            Self::Open {
                file,
                mode,
                direct,
                sync,
            } => {
                let mode = match mode {
                    OpenMode::Create => "creation",
                    OpenMode::Read => "opening for reading",
                    OpenMode::Update => "opening for writing",
                };
                let direct = if *direct { ", past the page cache" } else { "" };
                let sync = if *sync { ", every write durable" } else { "" };
                write!(f, "{mode} of file {file}{direct}{sync}")
            }
            Self::Sync { file, data_only } => {
                let call = if *data_only { "fdatasync" } else { "fsync" };
                write!(f, "{call} of file {file}")
            }
            Self::Close { file } => write!(f, "closing of file {file}"),
            Self::Remove { file } => write!(f, "removal of file {file}"),
            Self::Create { entry, size, sync } => {
                let sync = if *sync { " and fsync" } else { "" };
                let size = Exact(u64::from(*size));
                write!(f, "creation of {entry} with {size}{sync}")
            }
            Self::Stat { entry, size: 0 } => write!(f, "stat of {entry}"),
            Self::Stat { entry, size } => {
                write!(f, "stat of {entry} and read of {}", Exact(u64::from(*size)))
            }
            Self::Unlink { entry } => write!(f, "removal of {entry}"),
            Self::MakeDirectory { directory } => write!(f, "creation of directory {directory}"),
            Self::RemoveDirectory { directory } => write!(f, "removal of directory {directory}"),
            Self::SyncDirectory { directory } => write!(f, "fsync of directory {directory}"),
            Self::SyncAll => write!(f, "syncfs"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(op) => op.fmt(f),
            Self::File(op) => op.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_as_a_person_reads_them() {
        let block = |kind, len, offset| Op::Block(BlockOp { kind, len, offset }).to_string();
        assert_eq!(
            block(BlockKind::Read, 4096, 12 << 20),
            "read of 4 KiB at 12 MiB"
        );
        assert_eq!(
            block(BlockKind::Write, 1 << 20, (5 << 30) + 4096),
            "write of 1 MiB at 5242884 KiB"
        );
        assert_eq!(block(BlockKind::Read, 1, 0), "read of 1 byte at 0");
        assert_eq!(block(BlockKind::Flush, 0, 0), "flush");
        assert_eq!(block(BlockKind::FlushData, 0, 0), "flush of data");
        let entry = Entry {
            index: 7,
            directory: 2,
            ordered: true,
        };
        for (op, text) in [
            (
                FileOp::Scan {
                    file: 0,
                    len: 2 << 20,
                    offset: 513,
                },
                "scan of 2 MiB at 513 bytes of file 0",
            ),
            (
                FileOp::Open {
                    file: 1,
                    mode: OpenMode::Update,
                    direct: true,
                    sync: false,
                },
                "opening for writing of file 1, past the page cache",
            ),
            (
                FileOp::Create {
                    entry,
                    size: 100,
                    sync: true,
                },
                "creation of small file 7 of directory 2 with 100 bytes and fsync",
            ),
            (
                FileOp::Stat { entry, size: 0 },
                "stat of small file 7 of directory 2",
            ),
            (
                FileOp::Sync {
                    file: 3,
                    data_only: true,
                },
                "fdatasync of file 3",
            ),
        ] {
            assert_eq!(Op::File(op).to_string(), text);
        }
    }
}
