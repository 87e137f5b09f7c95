//! Writing into the page cache.
use super::call::Call;
use super::device::Device;
use super::direct::errno;
use super::fs::FsError;
use super::inode::Wants;
use super::{Host, PAGE, What, pages_of};
use raidlab_core::time::Span;

/// A long call is carried on in parts of this many bytes, so that its copying overlaps with what it
/// makes the flusher do.
const PART: u64 = 256 << 10;

/// Commits that a call waits for to find space: others may take what comes back (`ext4_should_retry_alloc` forces that
/// many; xfs forces its log, btrfs and NTFS write a transaction).
const MOST_TRIES: u8 = 4;

impl<D: Device> Host<D> {
    /// Goes on with a write.
    #[inline]
    pub(super) fn write_on(&mut self, tag: u32, begun: Span) {
        let mut system = begun;
        loop {
            if !self.metadata_there(tag) {
                self.work(tag, system, Span::ZERO);
                return;
            }
            let Call {
                file,
                at,
                end,
                reserved,
                user,
                error,
                durable,
                ..
            } = self.calls[tag as usize];
            if at >= end || error.is_some() {
                if durable && error.is_none() {
                    self.work(tag, system, Span::ZERO);
                    return self.start_sync(tag, Some(file - 1), false);
                }
                return self.finish(tag, system, Span::ZERO);
            }
            let part = end.min((at / PART + 1) * PART);
            if reserved < part {
                if self.crowded(tag) {
                    self.work(tag, system, Span::ZERO);
                    return;
                }
                // Of a write through the cache the mapping alone takes it so (`xfs_buffered_write_iomap_begin`).
                if !self.has_inode(tag, Wants::Change) {
                    self.work(tag, system, Span::ZERO);
                    return;
                }
                self.gives_inode(tag);
                self.fs.clock(self.now.0);
                match self.fs.reserve(file - 1, at, part - at) {
                    Ok(mut charge) => {
                        let call = &mut self.calls[tag as usize];
                        (call.reserved, call.met, call.tries) = (part, 0, 0);
                        call.meta = std::mem::take(&mut charge.reads);
                        system += self.charged(charge);
                    }
                    Err(error) => {
                        if !self.waits_for_space(tag, error) {
                            return self.fail(tag, errno(error));
                        }
                        self.work(tag, system, Span::ZERO);
                        return;
                    }
                }
                continue;
            }
            if self.part_of_unit_missing(tag, part, &mut system) {
                self.work(tag, system, Span::ZERO);
                return;
            }
            let (page, pages) = pages_of(at, part - at);
            let new = self.cache.missing(file, page, pages);
            let known = &mut self.files[file as usize];
            known.size = known.size.max(part);
            // Of a unit above a page all is dirty when a part is: it is counted whole and written whole (a buffer of the
            // DMU, `dbuf_dirty`).
            let (first, count) = self.whole_units(file, page, pages);
            let dirtied = self.cache.make_dirty(file, first, count);
            let known = &mut self.files[file as usize];
            if known.dirtied.is_none() {
                known.dirtied = Some(self.now);
                self.arm_flusher();
            }
            if self.back.by_commit {
                self.joined_transaction();
            }
            if new > 0 {
                self.cache.shrink();
            }
            let held = self.cache.pages_of(file) * PAGE;
            let copy = self
                .costs
                .copy(part - at, held + part - at <= self.costs.cache);
            system += Span(pages * self.costs.dirty + new * self.costs.fill + copy);
            self.calls[tag as usize].at = part;
            let user = self.user_time(user, part - at);
            if self.held_back(tag, dirtied) {
                let until = self.work(tag, system, user);
                self.calls[tag as usize].until = until;
                return;
            }
            if part < end {
                return self.work_then_step(tag, system, user);
            }
            if !durable {
                return self.finish(tag, system, user);
            }
            let at = self.work(tag, system, user);
            return self.at(at, What::Step(tag));
        }
    }

    /// Blocks that the running transaction frees are free when it has been committed: a call that finds no space waits for
    /// that and is stepped again. False when there is nothing to wait for.
    #[cold]
    pub(super) fn waits_for_space(&mut self, tag: u32, error: FsError) -> bool {
        let call = &mut self.calls[tag as usize];
        if error != FsError::NoSpace || call.tries == MOST_TRIES || !self.fs.frees_at_commit() {
            return false;
        }
        call.tries += 1;
        self.gives_inode(tag);
        self.wait_for_commit(tag)
    }

    /// Reads what a write does not cover of the units at its ends, where the device has something
    /// there; true when the call waits for it.
    #[inline]
    fn part_of_unit_missing(&mut self, tag: u32, part: u64, system: &mut Span) -> bool {
        let call = &self.calls[tag as usize];
        let unit = u64::from(self.traits.unit).max(PAGE);
        let (begin, at, end) = (call.begin, call.at, call.end);
        let head = at == begin && !at.is_multiple_of(unit);
        let tail = part == end && !end.is_multiple_of(unit);
        if !head && !tail {
            return false;
        }
        let (file, size) = (call.file, self.size_of(call.file));
        let before = (at / unit * unit, at.min(size));
        let after = (end.max(at), end.next_multiple_of(unit).min(size));
        for (whole, (from, to)) in [(head, before), (tail, after)] {
            if !whole || from >= to {
                continue;
            }
            let (page, pages) = pages_of(from, to - from);
            // What was seen there once need not be there still: it must not be waited for in turns
            // with the rest when memory is short.
            let (page, last) = (page.max(self.calls[tag as usize].look), page + pages);
            if page >= last {
                continue;
            }
            let mut seen = page + self.cache.present_run(file, page, last - page);
            if seen < last {
                self.fill(tag, seen, last - seen, false, system);
                seen += self.cache.present_run(file, seen, last - seen);
            }
            self.calls[tag as usize].look = seen;
            if seen < last {
                self.wait_for_page(tag, file, seen);
                return true;
            }
        }
        false
    }
}
