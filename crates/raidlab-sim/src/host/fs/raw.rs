//! No file system: a file is the device itself, byte for byte.
use super::FsError;
use super::plan::{Charge, Commit, Fsync, Piece, Punts, Synced, Traits};
use super::spec::FsSpec;
use raidlab_core::op::{FileId, FileOp, OpenMode};
use raidlab_core::time::Span;
use raidlab_core::units::{Lba, SECTOR};

/// Block-device pages go through `blkdev_get_block`: some tens of instructions a page.
const PER_CALL: Span = Span(60);

/// The bare device. Every file is the whole device from its first byte.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    traits: Traits,
    sectors: u64,
}

impl Raw {
    pub(super) fn new(spec: &FsSpec) -> Self {
        Self {
            traits: Traits {
                unit: 4096,
                block: 512,
                delayed: false,
                copy_on_write: false,
                ordered: false,
                data_journal: false,
                commit_interval: None,
                home_every: None,
                dirty_limit: None,
                dirty_most: None,
                frees_most: None,
                commit_time: None,
                fill_times: None,
                whole_run: None,
                read_ahead: 0,
                fsync: Fsync::OwnData,
                prefetch: None,
                page_cache: true,
                direct: true,
                fsync_holds: false,
                punts: Punts::None,
                punts_cached: Punts::None,
                punts_reads: None,
                zero_fill: false,
                says_flusher: true,
                free_log: false,
            },
            sectors: spec.device_sectors,
        }
    }

    pub(super) const fn traits(&self) -> &Traits {
        &self.traits
    }

    #[inline]
    pub(super) fn reserve(&mut self, _: FileId, offset: u64, len: u64) -> Result<Charge, FsError> {
        if offset.saturating_add(len) > self.sectors * SECTOR {
            return Err(FsError::NoSpace);
        }
        Ok(Charge {
            cpu: PER_CALL,
            ..Charge::default()
        })
    }

    #[inline]
    pub(super) fn place(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Result<Charge, FsError> {
        Ok(self.find(file, offset, len, out))
    }

    #[inline]
    pub(super) fn find(
        &mut self,
        _: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Charge {
        let first = (offset / SECTOR).min(self.sectors);
        let end = (offset + len).div_ceil(SECTOR).min(self.sectors);
        push_sectors(out, first * SECTOR, first, end - first);
        Charge {
            cpu: PER_CALL,
            ..Charge::default()
        }
    }

    pub(super) fn open(&mut self, _: FileId, _: OpenMode) -> Result<Charge, FsError> {
        Ok(Charge::default())
    }

    pub(super) fn provide(&mut self, _: FileId, bytes: u64) -> Result<(), FsError> {
        if bytes > self.sectors * SECTOR {
            return Err(FsError::TooLarge);
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, _: FileId, _: u64) -> Charge {
        Charge::default()
    }

    pub(super) fn remove(&mut self, _: FileId) -> Charge {
        Charge::default()
    }

    pub(super) fn small(&mut self, op: &FileOp) -> Result<Charge, FsError> {
        match op {
            FileOp::SyncAll | FileOp::SyncDirectory { .. } => Ok(Charge::default()),
            // A device has no names.
            _ => Err(FsError::NoFile),
        }
    }

    pub(super) fn sync(&mut self, _: Option<FileId>, _: bool, _: u64) -> Synced {
        Synced {
            data: true,
            flush: true,
            ..Synced::default()
        }
    }

    pub(super) fn commit(&mut self) -> Option<Commit> {
        None
    }
}

/// Adds a run of sectors as pieces, each of fewer than 2^32 sectors.
pub(super) fn push_sectors(out: &mut Vec<Piece>, mut offset: u64, mut lba: u64, mut sectors: u64) {
    const MOST: u64 = 1 << 31;
    while sectors > 0 {
        let n = sectors.min(MOST);
        out.push(Piece {
            offset,
            lba: Lba(lba),
            sectors: n as u32,
        });
        offset += n * SECTOR;
        lba += n;
        sectors -= n;
    }
}
