//! Calls on names and attributes: data files opened and removed, small files and directories; and
//! what a file system's answer does to the cache.
use super::cache::PAGE;
use super::call::Work;
use super::device::Device;
use super::direct::errno;
use super::fs::{Charge, FsError, Fsync, Place};
use super::readahead::ReadAhead;
use super::{File, Host, META, SECTOR, pages_of};
use raidlab_core::op::{FileId, FileOp, OpenMode};
use raidlab_core::time::Span;

/// Whether a call adds to the running transaction.
const fn changes_names(op: &FileOp) -> bool {
    matches!(
        op,
        FileOp::Create { .. }
            | FileOp::Unlink { .. }
            | FileOp::MakeDirectory { .. }
            | FileOp::RemoveDirectory { .. }
            | FileOp::Remove { .. }
            | FileOp::Open {
                mode: OpenMode::Create,
                ..
            }
    )
}

impl<D: Device> Host<D> {
    /// Begins any call but those that move data of data files.
    pub(super) fn begin_names(&mut self, tag: u32, op: &FileOp) {
        if changes_names(op) && self.crowded(tag) {
            let call = &mut self.calls[tag as usize];
            (call.work, call.refused) = (Work::Names, Some(*op));
            return;
        }
        let charge = match *op {
            FileOp::Sync { file, data_only } => {
                return self.begin_sync(tag, Some(file), data_only);
            }
            FileOp::Open {
                file,
                mode,
                direct,
                sync,
            } => self.open(file, mode, direct, sync),
            FileOp::Close { file } => {
                let number = self.known(file);
                let known = &mut self.files[number as usize];
                known.opens = known.opens.saturating_sub(1);
                if known.opens == 0 && self.fs.is_raw() {
                    return self.last_close(tag, file);
                }
                Ok(Charge::default())
            }
            FileOp::Remove { file } => {
                let number = self.known(file);
                if !self.fs.is_raw() {
                    self.cut(number);
                }
                Ok(self.fs.remove(file))
            }
            _ => self.fs.small(op),
        };
        let charge = match charge {
            Ok(charge) => charge,
            Err(error) if self.waits_for_space(tag, error) => {
                let call = &mut self.calls[tag as usize];
                (call.work, call.refused) = (Work::Names, Some(*op));
                return;
            }
            Err(error) => return self.fail(tag, errno(error)),
        };
        let copied = match op {
            FileOp::Create { size, .. } | FileOp::Stat { size, .. } => u64::from(*size),
            _ => 0,
        };
        self.calls[tag as usize].all = matches!(op, FileOp::SyncAll);
        let call = &mut self.calls[tag as usize];
        call.work = Work::Names;
        call.durable = charge.commit_needed
            || matches!(op, FileOp::SyncDirectory { .. })
            // ZFS before 0.6.3 did not wait ('ashift 9' of zfs-ashift: creating and deleting use 99 %
            // of the processor to the end).
            || (matches!(op, FileOp::SyncAll) && self.traits.commit_time.is_none())
            || matches!(op, FileOp::Create { sync: true, .. });
        call.meta.clone_from(&charge.reads);
        call.content.clear();
        // A log takes what the file has (ZFS); else that goes to its place before the transaction with its name.
        if matches!(op, FileOp::Create { sync: true, .. }) && self.traits.fsync != Fsync::Log {
            call.content.clone_from(&charge.written);
        }
        call.frees = charge.frees;
        let mut system = self.costs.call + self.charged(charge);
        if copied > 0 {
            let pages = copied.div_ceil(PAGE);
            system += Span(self.costs.copy(copied, false) + pages * self.costs.page);
        }
        self.calls[tag as usize].until = self.cores.process(self.now, system, Span::ZERO);
        self.names_on(tag);
    }

    /// Goes on when the metadata is there, or tries again.
    pub(super) fn names_on(&mut self, tag: u32) {
        if let Some(op) = self.calls[tag as usize].refused.take() {
            return self.begin_names(tag, &op);
        }
        if !self.metadata_there(tag) {
            return;
        }
        if self.calls[tag as usize].frees > 0 && self.too_much_freed(tag) {
            return;
        }
        let call = &self.calls[tag as usize];
        if call.durable && call.error.is_none() {
            return self.start_sync(tag, None, false);
        }
        self.finish(tag, Span::ZERO, Span::ZERO);
    }

    fn open(
        &mut self,
        file: FileId,
        mode: OpenMode,
        direct: bool,
        sync: bool,
    ) -> Result<Charge, FsError> {
        let number = self.known(file);
        let charge = self.fs.open(file, mode)?;
        if mode == OpenMode::Create && !self.fs.is_raw() {
            self.cut(number);
        }
        let known = &mut self.files[number as usize];
        if known.opens == 0 {
            // Calls in flight may still name one of them: they stay, and know nothing.
            known.ahead.fill(ReadAhead::new());
        }
        known.opens += 1;
        (known.direct, known.sync) = (direct && self.traits.direct, sync);
        Ok(charge)
    }

    /// The file has no content any more.
    fn cut(&mut self, number: u32) {
        self.cache.forget(number, 0, u64::MAX, true);
        let known = &mut self.files[number as usize];
        *known = File {
            opens: known.opens,
            direct: known.direct,
            sync: known.sync,
            writes: known.writes,
            ahead: std::mem::take(&mut known.ahead),
            ..File::default()
        };
    }

    /// First page and number of pages of metadata.
    pub(super) const fn pages_at(place: &Place) -> (u64, u64) {
        pages_of(place.lba.0 * SECTOR, place.sectors as u64 * SECTOR)
    }

    /// Metadata or small files are dirty at home.
    pub(super) fn dirty_metadata(&mut self, page: u64, pages: u64) {
        self.cache.make_dirty(META, page, pages);
        if self.files[META as usize].dirtied.is_none() {
            self.files[META as usize].dirtied = Some(self.now);
        }
        self.arm_flusher();
    }

    /// Does what an answer of the file system says to the cache and the journal; returns its
    /// processor time on this machine.
    #[inline]
    pub(super) fn charged(&mut self, charge: Charge) -> Span {
        if charge.dirtied > 0 {
            self.joined_transaction();
        }
        for place in &charge.made {
            let (page, pages) = Self::pages_at(place);
            self.cache.fill(META, page, pages);
        }
        for place in &charge.written {
            let (page, pages) = Self::pages_at(place);
            self.dirty_metadata(page, pages);
        }
        for place in &charge.dropped {
            let (page, pages) = Self::pages_at(place);
            self.cache.forget(META, page, pages, true);
        }
        // What was dirty when it came, and above the size, can go since.
        self.cache.shrink();
        self.costs.scaled(charge.cpu)
    }
}
