//! Making durable: `fsync`, `O_SYNC`, `sync`, flushes.
use super::call::Work;
use super::device::{Device, Wish};
use super::fs::{Fsync, Place, Stage, Synced};
use super::inode::Wants;
use super::{EIO, Host, META};
use crate::block::Origin;
use raidlab_core::op::{BlockKind, FileId};
use raidlab_core::time::Span;

/// Where a call that makes durable goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What is in the small file that the call has made (`file_write_and_wait_range`, which every file system's `fsync` begins with).
    Content,
    /// Dirty pages of this file and, when all are meant, of those after it.
    Data(u32),
    /// The transaction.
    Commit,
    /// Metadata and small files at home.
    Home,
    /// The writes that the file system asked for.
    Stages,
    /// The drive's cache.
    Flush,
    /// Nothing more.
    End,
    /// Not to be made durable: a direct call waited for dirty pages of its file.
    Before,
}

impl<D: Device> Host<D> {
    /// Begins to make a data file durable, or everything with `None`.
    pub(super) fn start_sync(&mut self, tag: u32, file: Option<FileId>, data_only: bool) {
        let number = file.map_or(META, |file| self.known(file));
        self.calls[tag as usize].until = self.cores.process(self.now, self.costs.call, Span::ZERO);
        let call = &mut self.calls[tag as usize];
        (call.file, call.made_durable, call.data_only) = (number, file, data_only);
        (call.synced, call.stage, call.planned) = (Synced::default(), 0, false);
        call.synced.data = file.is_some();
        let first = if call.all { META + 1 } else { number };
        if self.traits.fsync == Fsync::Log {
            // The log takes what is dirty: nothing is written in place.
            self.plan_sync(tag);
        }
        let part = match self.calls[tag as usize].content[..] {
            [] => Part::Data(first),
            _ => Part::Content,
        };
        self.sync_on(tag, part);
    }

    /// Nobody else has the device open: what is dirty is written, and all its pages go
    /// (`__blkdev_put`: `sync_blockdev`, `kill_bdev`). The drive's cache is left alone.
    pub(super) fn last_close(&mut self, tag: u32, file: FileId) {
        self.calls[tag as usize].closes = true;
        self.start_sync(tag, Some(file), true);
    }

    /// Asks the file system what is to be done, once: after the data, which may join a transaction as
    /// it is given its place; for all files after the commit.
    fn plan_sync(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        if std::mem::replace(&mut call.planned, true) {
            return;
        }
        let dirty = self.cache.dirty_of(call.file) * super::PAGE;
        call.synced = self.fs.sync(call.made_durable, call.data_only, dirty);
        call.synced.flush &= !call.closes;
        let cost = self.costs.scaled(call.synced.cpu);
        self.works_on(tag, cost);
    }

    /// Whoever makes something durable does one thing after the other, and ends no sooner than he is through with all.
    pub(super) fn works_on(&mut self, tag: u32, cost: Span) {
        let call = &mut self.calls[tag as usize];
        let from = self.now.max(call.until);
        call.until = self.cores.process(from, cost, Span::ZERO);
    }

    /// Goes on at a part.
    pub(super) fn sync_on(&mut self, tag: u32, part: Part) {
        let mut part = part;
        loop {
            part = match part {
                Part::Content => {
                    if self.content_of_call(tag) {
                        self.calls[tag as usize].work = Work::Sync(Part::Commit);
                        return;
                    }
                    Part::Commit
                }
                Part::Data(file) => match self.data_part(tag, file) {
                    Some(next) => next,
                    None => return,
                },
                Part::Commit => {
                    self.calls[tag as usize].work = Work::Sync(part);
                    if !self.calls[tag as usize].all && !self.has_inode(tag, Wants::Force) {
                        return;
                    }
                    if self.commit_for(tag) {
                        self.calls[tag as usize].work = Work::Sync(Part::Home);
                        return;
                    }
                    Part::Home
                }
                Part::Home => {
                    self.gives_inode(tag);
                    // What a commit left to be written home is written by `sync` as well.
                    if self.calls[tag as usize].all && self.unclean(META) {
                        self.calls[tag as usize].file = META;
                        return self.submit_then_wait(tag, Part::Stages);
                    }
                    Part::Stages
                }
                Part::Stages => {
                    self.plan_sync(tag);
                    if self.calls[tag as usize].synced.log {
                        return self.join_log(tag);
                    }
                    if self.stage_of_call(tag) {
                        self.calls[tag as usize].work = Work::Sync(Part::Stages);
                        return;
                    }
                    self.log_written(tag);
                    Part::Flush
                }
                Part::Flush => {
                    if self.calls[tag as usize].synced.flush {
                        self.calls[tag as usize].work = Work::Sync(Part::End);
                        return self.flush_for(tag);
                    }
                    Part::End
                }
                Part::End => return self.sync_ended(tag),
                Part::Before => {
                    self.calls[tag as usize].work = Work::DirectFirst;
                    return self.direct_first(tag);
                }
            }
        }
    }

    /// Begins to wait for the transaction of a call's file, or for the running one; false when there is nothing to wait for.
    fn commit_for(&mut self, tag: u32) -> bool {
        if self.calls[tag as usize].all {
            return self.wait_for_commit(tag);
        }
        self.plan_sync(tag);
        let synced = &self.calls[tag as usize].synced;
        let shared = synced.flush_shared;
        if synced.commit {
            let waits = self.wait_for_commit(tag);
            let follows = waits && shared && !self.leads(tag);
            self.calls[tag as usize].synced.flush |= follows;
            return waits;
        }
        if !synced.under_way {
            return false;
        }
        let Some(past) = self.wait_for_written(tag) else {
            return false;
        };
        // jbd: the commit that is waited for empties the drive's cache (`jbd2_trans_will_send_data_barrier`).
        self.calls[tag as usize].synced.flush &= past || shared;
        true
    }

    /// Writes a file's dirty pages; the part after when there is nothing to wait for.
    fn data_part(&mut self, tag: u32, file: u32) -> Option<Part> {
        let call = &self.calls[tag as usize];
        if !call.synced.data && !call.all {
            return Some(Part::Commit);
        }
        let last = if call.all {
            self.files.len() as u32 - 1
        } else {
            file
        };
        // With a log, what does not go into it goes to its place before the transaction does.
        let asked = !call.all;
        for number in file..=last {
            let some = self.cache.dirty_of(number) > 0 || self.files[number as usize].writes > 0;
            if self.unclean(number) || (asked && some) {
                self.calls[tag as usize].file = number;
                let next = if number < last {
                    Part::Data(number + 1)
                } else {
                    Part::Commit
                };
                self.submit_then_wait(tag, next);
                return None;
            }
        }
        Some(Part::Commit)
    }

    /// Whether pages of the file are dirty or on their way. Data that goes with transactions alone
    /// is left to those.
    fn unclean(&self, file: u32) -> bool {
        let ours = file == META || !self.back.by_commit;
        ours && (self.cache.dirty_of(file) > 0 || self.files[file as usize].writes > 0)
    }

    fn sync_ended(&mut self, tag: u32) {
        let call = &self.calls[tag as usize];
        let (file, closes) = (call.file, call.closes);
        if closes {
            self.cache.forget(file, 0, u64::MAX, false);
        }
        if std::mem::take(&mut self.files[file as usize].failed) {
            self.calls[tag as usize].error = Some(EIO);
        }
        self.works_on(tag, self.costs.switch);
        self.finish(tag, Span::ZERO, Span::ZERO);
    }

    /// Submits all that is dirty of the call's file, waits for all that is on its way, then goes on
    /// at `next`.
    pub(super) fn submit_then_wait(&mut self, tag: u32, next: Part) {
        let call = &mut self.calls[tag as usize];
        call.work = Work::Sync(next);
        call.budget = self.cache.dirty_of(call.file);
        if call.budget == 0 {
            return self.submitted(tag);
        }
        self.back.durable.push_back(tag);
        self.pump();
    }

    /// All that the call wanted written and that can be submitted now is on its way.
    pub(super) fn submitted(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        (call.mark, call.left) = (self.back.number, self.files[call.file as usize].writes);
        if call.left == 0 {
            return self.at(self.now, super::What::Step(tag));
        }
        self.back.marked.push(tag);
        self.below.unplug(self.now);
    }

    /// A write of a file's pages has ended: it counts for those who wait for it.
    pub(super) fn marked_ended(&mut self, file: u32, number: u64) {
        let mut next = 0;
        while let Some(&tag) = self.back.marked.get(next) {
            let call = &mut self.calls[tag as usize];
            if call.file == file && number < call.mark {
                call.left -= 1;
            }
            if call.left > 0 {
                next += 1;
                continue;
            }
            self.back.marked.remove(next);
            let call = &self.calls[tag as usize];
            if call.budget > 0 && self.cache.dirty_of(call.file) > 0 {
                // Pages that were written again on their way: they go now that they have arrived, as
                // the kernel waits for each before it writes it for good (`WB_SYNC_ALL`).
                self.back.durable.push_back(tag);
            } else {
                self.at(self.now, super::What::Step(tag));
            }
        }
    }

    /// Submits what is in the small file that the call has made; false when write-back has come to all of it.
    fn content_of_call(&mut self, tag: u32) -> bool {
        let content = std::mem::take(&mut self.calls[tag as usize].content);
        let origin = self.durable(tag);
        let mut count = 0;
        for place in &content {
            let (page, pages) = Self::pages_at(place);
            if self.cache.any_dirty(META, page, pages) {
                self.cache.make_clean(META, page, pages);
                count += self.submit_place(place, false, super::Owner::Call(tag), origin);
            }
        }
        self.calls[tag as usize].left += count;
        self.below.unplug(self.now);
        count > 0
    }

    /// Submits what is next of the call's own stages; false when they are done.
    fn stage_of_call(&mut self, tag: u32) -> bool {
        loop {
            let call = &mut self.calls[tag as usize];
            let Some(stage) = call.synced.stages.get_mut(call.stage / 2) else {
                return false;
            };
            let writes = call.stage % 2 == 1;
            call.stage += 1;
            if !writes {
                if stage.flush_before {
                    self.flush_for(tag);
                    return true;
                }
                continue;
            }
            let stage = std::mem::take(stage);
            let origin = Origin {
                last: !self.traits.free_log,
                ..self.durable(tag)
            };
            let count = self.submit_stage(&stage, super::Owner::Call(tag), origin);
            self.calls[tag as usize].left += count;
            if count > 0 {
                return true;
            }
        }
    }

    /// Submits the writes of a stage; returns how many requests they are.
    pub(super) fn submit_stage(
        &mut self,
        stage: &Stage,
        owner: super::Owner,
        origin: Origin,
    ) -> u32 {
        let mut count = 0;
        for place in &stage.writes {
            if stage.checkpoint {
                let (page, pages) = Self::pages_at(place);
                if !self.cache.any_dirty(META, page, pages) {
                    continue;
                }
                self.cache.make_clean(META, page, pages);
            }
            count += self.submit_place(place, stage.durable, owner, origin);
        }
        self.below.unplug(self.now);
        count
    }

    /// Writes metadata to its place; the number of requests.
    pub(super) fn submit_place(
        &mut self,
        place: &Place,
        fua: bool,
        owner: super::Owner,
        origin: Origin,
    ) -> u32 {
        if self.traits.copy_on_write {
            // What was changed in memory is there still, at its new place.
            let (page, pages) = Self::pages_at(place);
            self.cache.fill(META, page, pages);
        }
        let wish = Wish {
            kind: BlockKind::Write,
            lba: place.lba.0,
            sectors: u64::from(place.sectors),
            fua,
            origin,
        };
        self.submit_split(wish, owner)
    }

    /// Empties the drive's cache for a call.
    fn flush_for(&mut self, tag: u32) {
        self.calls[tag as usize].left += 1;
        self.submit_flush(super::Owner::Call(tag), self.durable(tag));
    }

    pub(super) fn submit_flush(&mut self, owner: super::Owner, origin: Origin) {
        let wish = Wish {
            kind: BlockKind::Flush,
            lba: 0,
            sectors: 0,
            fua: false,
            origin,
        };
        self.below.submit(self.now, wish, owner);
        self.below.unplug(self.now);
    }
}
