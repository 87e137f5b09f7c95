//! The journal's thread: closes transactions and writes them, every few seconds and when asked.
mod fill;

use super::device::Device;
use super::era::Chunks;
use super::fs::{Pressure, Stage};
use super::{Host, META, What};
use crate::block::Origin;
use fill::Filling;
use raidlab_core::time::Instant;
use std::collections::BTreeSet;

/// What a commit does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Idle,
    /// Dirty data of the transaction is submitted.
    Data,
    /// And waited for.
    Wait,
    /// The transaction itself is written.
    Stages,
}

/// Transactions, numbered from 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    part: Part,
    /// Transactions closed, and those that are durable.
    closed: u64,
    committed: u64,
    /// To be committed up to here.
    wanted: u64,
    /// The running transaction holds something.
    dirty: bool,
    armed: bool,
    /// Pages of data to be submitted before it is closed, by file.
    data: Vec<(u32, u64)>,
    left: u32,
    mark: u64,
    /// When the commit began, and with how many dirty pages.
    begun: Instant,
    pages: u64,
    stages: Vec<Stage>,
    stage: usize,
    later: Vec<super::fs::Place>,
    /// Metadata of ended commits that goes home by itself, and whether a time is set for it; it goes when this commit ends.
    aged: BTreeSet<super::fs::Place>,
    aging: bool,
    home: bool,
    waiting: Vec<u32>,
    /// Calls that wait for the running transaction to be closed.
    opening: Vec<u32>,
    /// What this commit has to do with new members of the device.
    filling: Filling,
}

/// Pages of a transaction at the least where its size follows the rate (`zfs_write_limit_min`, 32 MiB).
const LEAST: u64 = (32 << 20) / super::PAGE;

impl Journal {
    /// A file and how many of its pages the journal wants written now.
    pub(super) fn data_wanted(&self) -> Option<(u32, u64)> {
        (self.part == Part::Data).then(|| self.data.last().copied())?
    }

    /// Pages of the transaction that is being committed that have not been submitted.
    pub(super) fn data_left(&self) -> u64 {
        match self.part {
            Part::Data => self.data.iter().map(|(_, pages)| pages).sum(),
            _ => 0,
        }
    }

    /// A transaction is being committed.
    pub(super) fn is_busy(&self) -> bool {
        self.part != Part::Idle
    }

    /// Nothing in the running transaction, nothing being committed.
    pub(super) fn is_clean(&self) -> bool {
        !self.dirty && self.part == Part::Idle
    }
}

impl<D: Device> Host<D> {
    /// Who asks for what a commit writes: a thread of the kernel.
    fn of_journal(&self) -> Origin {
        Origin {
            sync: self.era.marks_durable,
            last: !self.traits.free_log,
            ..Origin::default()
        }
    }

    /// The running transaction holds something from now on.
    #[inline]
    pub(super) fn joined_transaction(&mut self) {
        if !self.journal.dirty {
            self.journal.dirty = true;
            self.arm_commit();
        }
    }

    fn arm_commit(&mut self) {
        if let Some(interval) = self.traits.commit_interval
            && !self.journal.armed
        {
            self.journal.armed = true;
            self.at(self.now + interval, What::Commit);
        }
    }

    pub(super) fn commit_timer(&mut self) {
        self.journal.armed = false;
        if self.journal.dirty {
            self.want_commit();
        }
    }

    /// The running transaction is to be committed.
    pub(super) fn want_commit(&mut self) {
        self.journal.wanted = self.journal.closed + 1;
        if self.journal.part == Part::Idle {
            self.start_commit();
        }
    }

    /// A call waits for the transaction that is being written; `None` when none is. Else whether its end, with which the drive's
    /// cache is emptied, has been sent off already.
    pub(super) fn wait_for_written(&mut self, tag: u32) -> Option<bool> {
        let journal = &mut self.journal;
        if journal.part != Part::Stages {
            return None;
        }
        self.calls[tag as usize].transaction = journal.closed;
        journal.waiting.push(tag);
        Some(journal.stage.div_ceil(2) >= journal.stages.len())
    }

    /// Whether a call was the first to wait for what it waits for.
    pub(super) fn leads(&self, tag: u32) -> bool {
        let of = |tag: u32| self.calls[tag as usize].transaction;
        let mut waiting = self.journal.waiting.iter();
        waiting.find(|&&other| of(other) == of(tag)) == Some(&tag)
    }

    /// A call waits for the running transaction, or for the one that is being committed when that is
    /// empty; false when there is nothing to wait for.
    pub(super) fn wait_for_commit(&mut self, tag: u32) -> bool {
        let journal = &self.journal;
        let open = journal.dirty || matches!(journal.part, Part::Data | Part::Wait);
        if !open && journal.part == Part::Idle {
            return false;
        }
        self.calls[tag as usize].transaction = journal.closed + u64::from(open);
        self.journal.waiting.push(tag);
        if open {
            self.want_commit();
        }
        self.below.unplug(self.now);
        true
    }

    /// A call goes on when the running transaction is closed, which is asked for.
    pub(super) fn wait_for_open(&mut self, tag: u32) {
        self.journal.opening.push(tag);
        self.below.unplug(self.now);
        self.want_commit();
    }

    /// A call is about to add to the running transaction, which is committed when it has the size it may have. True when the
    /// call waits until it is closed, because the one before is still being written.
    #[inline]
    pub(super) fn crowded(&mut self, tag: u32) -> bool {
        let pressure = self.fs.pressure();
        if pressure == Pressure::None {
            return false;
        }
        let waits = match pressure {
            Pressure::None | Pressure::Some => false,
            Pressure::Full => self.journal.part == Part::Stages,
            Pressure::Wait => true,
        };
        if waits {
            self.wait_for_open(tag);
            return true;
        }
        self.want_commit();
        false
    }

    fn start_commit(&mut self) {
        self.journal.part = Part::Data;
        (self.journal.begun, self.journal.pages) = (self.now, self.cache.dirty());
        self.journal.filling = Filling::default();
        self.journal.data.clear();
        // With places chosen at write-back a transaction holds only data that is on its way already.
        let traits = &self.traits;
        if traits.ordered && (!traits.delayed || traits.copy_on_write) {
            for file in META + 1..self.files.len() as u32 {
                let dirty = self.cache.dirty_of(file);
                if dirty > 0 {
                    self.journal.data.push((file, dirty));
                }
            }
        }
        if self.journal.data.is_empty() {
            return self.wait_for_data();
        }
        self.pump();
    }

    /// So many pages of what was wanted are on their way.
    pub(super) fn journal_data_submitted(&mut self, written: u64) {
        if let Some((_, wanted)) = self.journal.data.last_mut() {
            *wanted = wanted.saturating_sub(written);
            if *wanted == 0 || written == 0 {
                self.journal.data.pop();
            } else if self.era.chunks == Chunks::Oldest {
                // Buffers are in the transaction's list as they became dirty (`t_sync_datalist`), not file by file.
                self.journal.data.rotate_right(1);
            }
        }
        if self.journal.data.is_empty() {
            self.wait_for_data();
        }
    }

    fn wait_for_data(&mut self) {
        self.journal.part = Part::Wait;
        self.journal.mark = self.back.number;
        self.journal.left = if self.traits.ordered {
            self.back.data
        } else {
            0
        };
        if self.journal.left == 0 {
            return self.close_transaction();
        }
        self.below.unplug(self.now);
    }

    /// A write of data has ended.
    pub(super) fn journal_data_ended(&mut self, number: u64) {
        if self.journal.part == Part::Wait && number < self.journal.mark {
            self.journal.left -= 1;
            if self.journal.left == 0 {
                self.close_transaction();
            }
        }
    }

    fn close_transaction(&mut self) {
        // What was dirtied while the data of this one was written belongs to the next.
        let more = self.back.by_commit && self.cache.dirty() > 0;
        let journal = &mut self.journal;
        journal.part = Part::Stages;
        journal.dirty = more;
        journal.closed += 1;
        journal.stage = 0;
        self.back.frees = 0;
        for tag in std::mem::take(&mut self.journal.opening) {
            self.at(self.now, What::Step(tag));
        }
        if self.goes_on_filling() {
            self.fs.fills();
        }
        match self.fs.commit() {
            None => (self.journal.stages, self.journal.later) = (Vec::new(), Vec::new()),
            Some(commit) => {
                self.journal.stages = commit.stages;
                (self.journal.later, self.journal.home) = (commit.later, commit.home);
                let cost = self.costs.scaled(commit.cpu);
                self.cores.kernel(self.now, cost);
            }
        }
        self.commit_on();
    }

    /// Goes on with writing the transaction.
    fn commit_on(&mut self) {
        loop {
            let journal = &mut self.journal;
            let stage = journal.stages.get_mut(journal.stage / 2);
            if stage.as_ref().is_none_or(|stage| stage.fills_before) && self.fills_now() {
                return;
            }
            let journal = &mut self.journal;
            let Some(stage) = journal.stages.get_mut(journal.stage / 2) else {
                return self.commit_ended();
            };
            let writes = journal.stage % 2 == 1;
            journal.stage += 1;
            if !writes {
                if stage.flush_before {
                    journal.left = 1;
                    return self.submit_flush(super::Owner::Journal, self.of_journal());
                }
                continue;
            }
            let stage = std::mem::take(stage);
            let count = self.submit_stage(&stage, super::Owner::Journal, self.of_journal());
            self.journal.left = count;
            if count > 0 {
                return;
            }
        }
    }

    /// A request of the journal has ended.
    pub(super) fn request_of_journal(&mut self) {
        self.journal.left -= 1;
        if self.journal.left == 0 {
            self.commit_on();
        }
    }

    /// Sizes the next transaction so that it is written in the time aimed at, at the rate of this one.
    fn size_transaction(&mut self) {
        let (Some(aim), true) = (self.traits.commit_time, self.journal.pages >= 1024) else {
            return;
        };
        let took = self.wrote_for().0.max(1);
        let pages = u128::from(self.journal.pages) * u128::from(aim.0) / u128::from(took);
        let most = self.back.transaction_most;
        self.back.transaction = (pages.min(u128::from(most)) as u64).max(LEAST.min(most));
    }

    /// What the commit changed is dirty in memory from now on, or is when its time has come.
    fn leave_for_home(&mut self) {
        let later = std::mem::take(&mut self.journal.later);
        let Some(every) = self.traits.home_every else {
            for place in later {
                let (page, pages) = Self::pages_at(&place);
                self.dirty_metadata(page, pages);
            }
            return;
        };
        let journal = &mut self.journal;
        journal.aged.extend(later);
        if std::mem::take(&mut journal.home) {
            self.write_home();
        } else if !std::mem::replace(&mut journal.aging, true) {
            self.at(self.now + every, What::Home);
        }
    }

    /// The time has come for metadata to go home.
    pub(super) fn home_timer(&mut self) {
        self.journal.aging = false;
        self.write_home();
    }

    /// All metadata of ended commits is written, by a thread of its own (`xfsaild`).
    fn write_home(&mut self) {
        for place in std::mem::take(&mut self.journal.aged) {
            let (page, pages) = Self::pages_at(&place);
            self.dirty_metadata(page, pages);
        }
        self.files[META as usize].expired = self.cache.dirty_of(META);
        self.pump();
    }

    fn commit_ended(&mut self) {
        self.size_transaction();
        self.leave_for_home();
        let journal = &mut self.journal;
        (journal.part, journal.committed) = (Part::Idle, journal.closed);
        let committed = journal.committed;
        let full = self.back.by_commit && self.cache.dirty() > self.back.transaction;
        let again = (full || journal.wanted > committed) && journal.dirty;
        let waiting = std::mem::take(&mut journal.waiting);
        for tag in waiting {
            if self.calls[tag as usize].transaction <= committed {
                self.at(self.now, What::Step(tag));
            } else {
                self.journal.waiting.push(tag);
            }
        }
        let waits = !self.journal.waiting.is_empty() || !self.journal.opening.is_empty();
        if again || waits || self.goes_on_filling() {
            self.start_commit();
        } else if self.journal.dirty {
            self.arm_commit();
        }
        self.release_held();
    }
}
