//! What file systems do to the device: where files lie, journals, metadata, ZFS transaction groups.
//!
//! A file system here has no clock and issues nothing. It answers with plans: places on the device,
//! processor time, metadata that must be in memory, metadata that a transaction has changed, and
//! what the commit of that transaction writes. The host does the waiting, the caching and the I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | the answers: [`Piece`], [`Place`], [`Charge`], [`Commit`], [`Traits`] |
//! | [`spec`] | what a file system is made with |
//! | `raw` | no file system: a file is a stretch of the device |
//! | `ext` | ext2, ext3, ext4 |
//! | `zfs` | ZFS on vdevs of one kind |
//! | `extents` | xfs, btrfs and NTFS in a simple form |
//! | `space`, `runs` | free space by groups, and where the blocks of one file lie |
mod ext;
mod extents;
mod lent;
pub mod plan;
mod raw;
mod runs;
mod space;
pub mod spec;
mod stamp;
mod zfs;

pub(crate) use extents::metadata_chunk;
pub use plan::{Charge, Commit, Fsync, Piece, Place, Pressure, Punts, Stage, Synced, Traits};
pub use spec::{FsSpec, Spread};
pub(crate) use zfs::NEW as NEW_ZFS;

use crate::block::Watch;
use raidlab_core::op::{FileId, FileOp, OpenMode};
use raidlab_experiment::kernel::FilesystemKind;
use std::ops::ControlFlow;

/// Why a file system does not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// `ENOSPC`.
    #[error("no space left on the file system")]
    NoSpace,
    /// Larger than the file system can address (`EFBIG`), or past the end of a raw device.
    #[error("past the end of what the file system can address")]
    TooLarge,
    /// `ENOENT`.
    #[error("no such file")]
    NoFile,
    /// The device is too small for it.
    #[error("a device of {sectors} sectors is too small for {kind}")]
    DeviceTooSmall {
        /// Sectors given.
        sectors: u64,
        /// The file system.
        kind: FilesystemKind,
    },
    /// The device has more blocks than it can number.
    #[error(
        "a device of {sectors} sectors is too large for {kind}, whose block numbers have 32 bits"
    )]
    DeviceTooLarge {
        /// Sectors given.
        sectors: u64,
        /// The file system.
        kind: FilesystemKind,
    },
    /// Records of ZFS smaller than its unit of allocation, which it has and the model has not.
    #[error(
        "records of {record} bytes, smaller than the pool's unit of allocation of {unit} bytes (2^ashift), are not modelled"
    )]
    SmallRecord {
        /// The record in bytes.
        record: u64,
        /// The unit in bytes.
        unit: u64,
    },
    /// A block, record or journal size that it cannot have.
    #[error("{kind} cannot have a {what} of {given} bytes")]
    Size {
        /// The file system.
        kind: FilesystemKind,
        /// `block`, `record` or `journal`.
        what: &'static str,
        /// The size in bytes.
        given: u64,
    },
}

/// A file system on a device, or the bare device.
#[derive(Clone, Debug)]
pub struct FileSystem(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Raw(raw::Raw),
    Ext(Box<ext::Ext>),
    Zfs(Box<zfs::Zfs>),
    Extents(Box<extents::Extents>),
}

/// Calls the same method of whichever it is.
macro_rules! each {
    ($self:expr, $fs:ident => $call:expr) => {
        match $self {
            Inner::Raw($fs) => $call,
            Inner::Ext($fs) => $call,
            Inner::Zfs($fs) => $call,
            Inner::Extents($fs) => $call,
        }
    };
}

impl FileSystem {
    /// Freshly made and mounted, with its metadata in memory as far as mounting reads it.
    ///
    /// # Errors
    /// [`FsError::DeviceTooSmall`], [`FsError::DeviceTooLarge`], [`FsError::SmallRecord`] and [`FsError::Size`].
    pub fn new(spec: &FsSpec) -> Result<Self, FsError> {
        Ok(Self(match spec.kind {
            FilesystemKind::None => Inner::Raw(raw::Raw::new(spec)),
            FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => {
                Inner::Ext(Box::new(ext::Ext::new(spec)?))
            }
            FilesystemKind::Zfs => Inner::Zfs(Box::new(zfs::Zfs::new(spec)?)),
            FilesystemKind::Xfs | FilesystemKind::Btrfs | FilesystemKind::Ntfs => {
                Inner::Extents(Box::new(extents::Extents::new(spec)?))
            }
        }))
    }

    /// Whether there is none: every file is the device from its first byte.
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        matches!(self.0, Inner::Raw(_))
    }

    /// What decides how the host treats its files.
    #[must_use]
    pub fn traits(&self) -> &Traits {
        each!(&self.0, fs => fs.traits())
    }

    /// Nanoseconds since the machine began, for the times of files that are written from now on.
    #[inline]
    pub fn clock(&mut self, now: u64) {
        match &mut self.0 {
            Inner::Raw(_) | Inner::Zfs(_) => {}
            Inner::Ext(ext) => ext.clock.now = now,
            Inner::Extents(extents) => extents.clock.now = now,
        }
    }

    /// The next write changes the time of a data file.
    pub(super) fn outdate(&mut self, file: FileId) {
        if let Inner::Extents(extents) = &mut self.0 {
            extents.outdate(file);
        }
    }

    /// Whether a write up to byte `end` changes the inode of a data file.
    pub(super) fn changes(&self, file: FileId, end: u64) -> bool {
        match &self.0 {
            Inner::Raw(_) | Inner::Zfs(_) | Inner::Ext(_) => false,
            Inner::Extents(extents) => extents.changes(file, end),
        }
    }

    /// A `write` of these bytes into the page cache. Without delayed allocation the blocks get their
    /// places here. Processor time is that of the file system alone, without copying.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], [`FsError::TooLarge`].
    #[inline]
    pub fn reserve(&mut self, file: FileId, offset: u64, len: u64) -> Result<Charge, FsError> {
        each!(&mut self.0, fs => fs.reserve(file, offset, len))
    }

    /// A `write` of these bytes past the page cache: [`Self::place`] is called for them next.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn reserve_direct(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
    ) -> Result<Charge, FsError> {
        match &mut self.0 {
            Inner::Extents(fs) => fs.promise(file, offset, len, true),
            _ => self.reserve(file, offset, len),
        }
    }

    /// Write-back of these dirty bytes: adds where they go to `out`, in the order of the file.
    /// Delayed allocation and copy on write choose their places here, so the bytes must be asked for
    /// once a write-back and in the order in which they are to lie on the device.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]. What fitted is in `out`.
    #[inline]
    pub fn place(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Result<Charge, FsError> {
        each!(&mut self.0, fs => fs.place(file, offset, len, out))
    }

    /// Where these bytes lie, for reading: adds pieces to `out`, in the order of the file. Bytes
    /// without a place (holes, and data that only the cache has) are left out.
    #[inline]
    pub fn find(&mut self, file: FileId, offset: u64, len: u64, out: &mut Vec<Piece>) -> Charge {
        each!(&mut self.0, fs => fs.find(file, offset, len, out))
    }

    /// Opens a data file; `Create` makes it, or empties it when it is there.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] without an inode to give.
    pub fn open(&mut self, file: FileId, mode: OpenMode) -> Result<Charge, FsError> {
        each!(&mut self.0, fs => fs.open(file, mode))
    }

    /// Makes a data file of `bytes` that was there before the run, written in one go and long since
    /// on the device. Costs nothing and joins no transaction.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], [`FsError::TooLarge`].
    pub fn provide(&mut self, file: FileId, bytes: u64) -> Result<(), FsError> {
        let _ = self.provide_watched(file, bytes, &mut || ControlFlow::Continue(()))?;
        Ok(())
    }

    /// The same with a `watch` that is asked now and then while it takes long, and may end it: `Break`, and the file is not whole.
    ///
    /// # Errors
    /// As of [`provide`](Self::provide).
    pub fn provide_watched(
        &mut self,
        file: FileId,
        bytes: u64,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, FsError> {
        match &mut self.0 {
            Inner::Raw(raw) => raw.provide(file, bytes),
            Inner::Ext(ext) => ext.provide(file, bytes),
            Inner::Extents(extents) => extents.provide(file, bytes),
            Inner::Zfs(zfs) => return zfs.provide(file, bytes, watch),
        }
        .map(ControlFlow::Continue)
    }

    /// Cuts a data file to `bytes`; its places are free from the next commit on, at once without a journal.
    pub fn truncate(&mut self, file: FileId, bytes: u64) -> Charge {
        each!(&mut self.0, fs => fs.truncate(file, bytes))
    }

    /// Removes a data file.
    pub fn remove(&mut self, file: FileId) -> Charge {
        each!(&mut self.0, fs => fs.remove(file))
    }

    /// What a call on small files and directories costs: `Create`, `Stat`, `Unlink`,
    /// `MakeDirectory`, `RemoveDirectory`, `SyncDirectory`, `SyncAll`. Any other costs nothing here.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; [`FsError::NoFile`] for an entry that was not created.
    pub fn small(&mut self, op: &FileOp) -> Result<Charge, FsError> {
        each!(&mut self.0, fs => fs.small(op))
    }

    /// Whether the running transaction is to be committed for its size.
    #[inline]
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        match &self.0 {
            Inner::Raw(_) | Inner::Zfs(_) => Pressure::None,
            Inner::Ext(ext) => ext.pressure(),
            Inner::Extents(extents) => extents.pressure(),
        }
    }

    /// Whether blocks have been freed that others may have once the running transaction has been committed.
    #[must_use]
    pub fn frees_at_commit(&self) -> bool {
        match &self.0 {
            Inner::Raw(_) | Inner::Zfs(_) => false,
            Inner::Ext(ext) => ext.frees_at_commit(),
            Inner::Extents(extents) => extents.frees_at_commit(),
        }
    }

    /// What `fsync` (or `fdatasync`) of a data file, or of anything else with `None`, must do.
    /// `dirty` are the bytes of the file that only the cache has: an intent log writes them.
    pub fn sync(&mut self, file: Option<FileId>, data_only: bool, dirty: u64) -> Synced {
        each!(&mut self.0, fs => fs.sync(file, data_only, dirty))
    }

    /// Ends the log that those add to whose [`Synced::log`] says so, and says what it writes.
    pub fn write_log(&mut self) -> Vec<Stage> {
        match &mut self.0 {
            Inner::Raw(_) | Inner::Zfs(_) | Inner::Ext(_) => Vec::new(),
            Inner::Extents(extents) => extents.write_tree_log(),
        }
    }

    /// Where all blocks lie that have a place, as a walk through the tree of blocks meets them: what ZFS resilvers; of btrfs by their
    /// addresses, what a new member is filled with. Nothing of other file systems, whose arrays know nothing of blocks.
    #[must_use]
    pub fn blocks(&self) -> Vec<crate::block::Extent> {
        let mut on = || ControlFlow::Continue(());
        self.blocks_watched(&mut on).unwrap_or_default()
    }

    /// The same with a `watch` that is asked now and then, and may end it: `None`.
    #[must_use]
    pub fn blocks_watched(&self, watch: Watch<'_>) -> Option<Vec<crate::block::Extent>> {
        match &self.0 {
            Inner::Zfs(zfs) => zfs.blocks(watch),
            Inner::Extents(extents) => extents.blocks(watch),
            _ => Some(Vec::new()),
        }
    }

    /// btrfs: nothing new is put at these sectors, from the first to the one after the last, and again at those that were told before.
    pub(super) fn close(&mut self, sectors: Option<(u64, u64)>) {
        if let Inner::Extents(extents) = &mut self.0 {
            extents.close(sectors);
        }
    }

    /// It is mounted anew: of btrfs nothing of what lies there is in memory, not the checksums either. Whether it has any.
    pub(super) fn mount_anew(&mut self) -> bool {
        match &mut self.0 {
            Inner::Extents(extents) => extents.mount_anew(),
            _ => false,
        }
    }

    /// The device fills its new members: ZFS has something to write of that.
    pub(super) const fn fills(&mut self) {
        if let Inner::Zfs(zfs) = &mut self.0 {
            zfs.resilvers();
        }
    }

    /// Ends the running transaction and says what that writes; `None` when it is empty. Everything
    /// of the transaction that is to be on the device first must have been placed before. `sync` of
    /// everything also writes home what commits left for later.
    pub fn commit(&mut self) -> Option<Commit> {
        each!(&mut self.0, fs => fs.commit())
    }
}
