//! Reading and writing past the page cache.
use super::call::{Call, Work};
use super::device::{Device, Wish};
use super::inode::Wants;
use super::sync::Part;
use super::{EFBIG, ENOSPC, Host, SECTOR, What, pages_of};
use crate::block::Marked;
use crate::host::fs::{FsError, Punts};
use raidlab_core::op::BlockKind;
use raidlab_core::target::Errno;
use raidlab_core::time::Span;

/// Bytes of the largest call that is one request of the kernel: `BIO_MAX_VECS` (256) pages that are not side by
/// side in memory.
const ONE_BIO: u64 = 1 << 20;

/// What a process is told.
pub(super) const fn errno(error: FsError) -> Errno {
    match error {
        FsError::NoSpace => ENOSPC,
        FsError::TooLarge => EFBIG,
        FsError::NoFile => super::ENOENT,
        _ => super::EINVAL,
    }
}

impl<D: Device> Host<D> {
    /// Begins a direct call: dirty pages of the file are written first, what a write replaces is
    /// forgotten, and the metadata is found.
    pub(super) fn direct_first(&mut self, tag: u32) {
        let call = &self.calls[tag as usize];
        let (file, at, end, write) = (call.file, call.at, call.end, call.write);
        if at >= end {
            return self.finish(tag, self.costs.call, Span::ZERO);
        }
        let (page, pages) = pages_of(at, end - at);
        if self.cache.pages_of(file) > 0 {
            if self.cache.any_dirty(file, page, pages) {
                let dirty = self.cache.dirty_of(file);
                self.calls[tag as usize].budget = dirty;
                return self.submit_then_wait(tag, Part::Before);
            }
            if write {
                self.cache.forget(file, page, pages, true);
            }
        }
        if self.fs.is_raw() || !(write || self.traits.fsync_holds) {
            return self.direct_on(tag, self.costs.call);
        }
        // What others do until the processor has come to it comes before it.
        self.calls[tag as usize].work = Work::DirectNext;
        self.work_then_step(tag, self.costs.call, Span::ZERO);
    }

    /// The file system is told of a direct call.
    pub(super) fn direct_next(&mut self, tag: u32) {
        let Call {
            file,
            end,
            write,
            by_worker,
            ..
        } = self.calls[tag as usize];
        let call = &mut self.calls[tag as usize];
        if call.inode.is_none() {
            call.looked = self.now;
        }
        let changes = write && self.changes_inode(tag, end);
        let wants = if changes { Wants::Change } else { Wants::Look };
        let (punts, in_turn) = match self.traits.punts {
            Punts::None => (false, false),
            Punts::Changing { in_turn } => (changes || !self.would_have_inode(tag, wants), in_turn),
            Punts::All => (true, true),
        };
        if punts && write && !by_worker && self.era.workers_sync {
            return self.by_worker(tag, in_turn.then_some(file));
        }
        if self.has_inode(tag, wants) {
            self.direct_on(tag, Span::ZERO);
        }
    }

    /// Room is found for what a direct call writes, and its requests are made.
    fn direct_on(&mut self, tag: u32, begun: Span) {
        let call = &self.calls[tag as usize];
        let (file, at, end, write) = (call.file, call.at, call.end, call.write);
        let mut system = begun;
        if write {
            let charge = match self.fs.reserve_direct(file - 1, at, end - at) {
                Ok(charge) => charge,
                Err(error) if self.waits_for_space(tag, error) => return,
                Err(error) => return self.fail(tag, errno(error)),
            };
            self.calls[tag as usize].meta = charge.reads.clone();
            system += self.charged(charge);
            let size = &mut self.files[file as usize].size;
            *size = end.max(*size);
        }
        let requests = (end - at).div_ceil(SECTOR * u64::from(self.below.hints.max_sectors.max(8)));
        system += Span(self.costs.submit.0 * requests);
        self.calls[tag as usize].work = Work::Direct;
        let at = self.work(tag, system, Span::ZERO);
        self.at(at, What::Step(tag));
    }

    /// The processor has come to submitting the requests.
    pub(super) fn direct_submit(&mut self, tag: u32) {
        if self.calls[tag as usize].inode.is_some() {
            self.gives_inode(tag);
        }
        if !self.metadata_there(tag) {
            return;
        }
        let call = &self.calls[tag as usize];
        if call.error.is_some() {
            return self.direct_ended(tag);
        }
        let (file, at, end, write, met) = (call.file, call.at, call.end, call.write, call.met);
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let charge = if write {
            self.fs.place(file - 1, at, end - at, &mut pieces)
        } else {
            Ok(self.fs.find(file - 1, at, end - at, &mut pieces))
        };
        let charge = match charge {
            Ok(charge) => charge,
            Err(error) => {
                self.pieces = pieces;
                return self.fail(tag, errno(error));
            }
        };
        if !write && met == 0 && !charge.reads.is_empty() {
            // Where the data lies must be known first.
            self.calls[tag as usize].meta = charge.reads;
            self.pieces = pieces;
            return self.at(self.now, What::Step(tag));
        }
        self.calls[tag as usize].met = 1;
        let cost = self.charged(charge);
        self.work(tag, cost, Span::ZERO);
        let kind = if write {
            BlockKind::Write
        } else {
            BlockKind::Read
        };
        let collects_nothing = if write {
            self.era.bare_writes
        } else {
            self.era.bare_direct
        };
        let bare = collects_nothing && self.fs.is_raw() && end - at <= ONE_BIO;
        self.below.bare = bare;
        let mut origin = self.origin(tag, true);
        if !write && self.reads_by_another(tag, end - at) {
            origin.marked = Marked::Worker;
        }
        for piece in &pieces {
            let wish = Wish {
                kind,
                lba: piece.lba.0,
                sectors: u64::from(piece.sectors),
                fua: false,
                origin,
            };
            self.submit_own(tag, wish);
        }
        self.below.bare = false;
        self.pieces = pieces;
        let beside = self.below.beside();
        if beside > 0 {
            self.work(tag, Span(self.costs.submit.0 * beside), Span::ZERO);
        }
        self.below.unplug(self.now);
        if self.calls[tag as usize].left == 0 {
            // All of it holes.
            self.direct_ended(tag);
        } else if self.calls[tag as usize].by_worker {
            // Its end is not waited for by the worker.
            self.worker_ends(tag);
        } else {
            self.is_submitted(tag);
        }
    }

    /// All requests of a direct call have ended.
    pub(super) fn direct_ended(&mut self, tag: u32) {
        let call = &self.calls[tag as usize];
        if call.durable && call.error.is_none() {
            let file = call.file - 1;
            return self.start_sync(tag, Some(file), false);
        }
        let user = self.user_time(call.user, call.end - call.at);
        self.finish(tag, self.costs.switch, user);
    }
}
