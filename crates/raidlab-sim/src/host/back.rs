//! Write-back: dirty pages go to the device in the order of the file, batch by batch.
//!
//! Whoever wants pages written only says how many: those who make files durable first, then the
//! journal, then writers that are held back, then the flusher. Requests are submitted as long as the
//! device's queues take them; when those are full, nobody submits before an eighth is free again, as
//! a queue of the kernel stays congested for a while.
mod chunk;
mod submit;

use chunk::Chunk;

use super::device::Device;
use super::era::{Era, Throttle};
use super::fs::Traits;
use super::throttle::look_at_least;
use super::{Host, HostSpec, META, PAGE, What, sectors};
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;

/// Who writes a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// A call that waits for it (makes durable).
    Durable(u32),
    /// The journal.
    Journal,
    /// A writer that is held back.
    Held(u32),
    /// The flusher.
    Flusher,
}

/// What is on the way to the device, and who wants more of it.
#[derive(Clone, Debug)]
pub(super) struct WriteBack {
    /// Sectors of write-back in the device.
    sectors: u64,
    /// Sectors that the queues take.
    queue: u64,
    full: bool,
    /// Number of the next request.
    pub(super) number: u64,
    /// Requests of data files in the device.
    pub(super) data: u32,
    /// Calls that make a file durable and have pages left to submit.
    pub(super) durable: VecDeque<u32>,
    /// Calls that wait for requests up to their mark.
    pub(super) marked: Vec<u32>,
    /// Writers that are held back.
    pub(super) held: Vec<u32>,
    /// The flusher writes until there are few dirty pages.
    pub(super) background: bool,
    /// Whose turn it is.
    turn: u32,
    /// What the flusher is at.
    chunk: Option<Chunk>,
    armed: bool,
    /// Pages that are dirty or on their way above which writers are held back.
    pub(super) limit: u64,
    /// Dirty pages above which the flusher writes.
    pub(super) threshold: u64,
    /// Pages dirtied since a writer was last looked at, and after how many one is.
    pub(super) since: u64,
    pub(super) every: u64,
    /// Writers were above the limit at the last look.
    pub(super) exceeded: bool,
    /// Data goes to the device with transactions alone.
    pub(super) by_commit: bool,
    /// Then: dirty pages above which a transaction is closed at once, now and at the most.
    pub(super) transaction: u64,
    pub(super) transaction_most: u64,
    /// Bytes that the open transaction frees, and from how many on it may free no more.
    pub(super) frees: u64,
    pub(super) frees_most: u64,
    pub(super) rate: super::throttle::Rate,
    /// Until then the processor is at work on what was submitted last; nothing is submitted before. Only where data goes
    /// to the device with transactions alone.
    paced: Instant,
    /// Threads that are at that work.
    issuers: u64,
}

/// Threads that ZFS issues writes with: three quarters of the processors (`zio_taskq_batch_pct` 75).
fn issuers(cores: u32) -> u64 {
    (u64::from(cores) * 3 / 4).max(1)
}

impl WriteBack {
    pub(super) fn new(spec: &HostSpec, era: &Era, traits: &Traits, cache: u64, queue: u64) -> Self {
        let memory = spec.memory.0 / PAGE;
        let (mut limit, threshold) = spec.dirty_pages(era, cache);
        let shared = |share: u32| spec.memory.0 / 1024 * u64::from(share);
        if let Some(share) = traits.dirty_most {
            limit = shared(share) / PAGE;
        }
        // Of a machine with hardly any memory; what is set is at least two pages.
        let limit = limit.max(match spec.write_back.limit {
            Some(_) => 2,
            None => 64,
        });
        let frees_most = match (traits.frees_most, traits.dirty_most) {
            (Some(percent), Some(share)) => shared(share) / 100 * u64::from(percent),
            _ => u64::MAX,
        };
        let transaction = match traits.dirty_limit {
            Some((share, most)) => (shared(share).min(most) / PAGE).min(limit / 2).max(32),
            None => u64::MAX,
        };
        Self {
            sectors: 0,
            queue,
            full: false,
            number: 0,
            data: 0,
            durable: VecDeque::new(),
            marked: Vec::new(),
            held: Vec::new(),
            background: false,
            turn: 0,
            chunk: None,
            armed: false,
            limit,
            threshold,
            since: 0,
            every: if traits.dirty_limit.is_some() {
                // The size of a group is looked at with each unit (`dsl_pool_dirty_space`).
                u64::from(traits.unit) / PAGE
            } else if era.throttle == Throttle::Waits {
                1
            } else {
                // `set_ratelimit`: 1/32 of memory a processor, 16 pages to 4 MiB.
                let every = (memory / (32 * u64::from(spec.cores.max(1)))).clamp(16, 1024);
                match era.throttle {
                    Throttle::Sleeps => every.min(look_at_least(limit)),
                    _ => every,
                }
            },
            exceeded: false,
            by_commit: traits.dirty_limit.is_some(),
            transaction,
            transaction_most: transaction,
            frees: 0,
            frees_most,
            rate: super::throttle::Rate::default(),
            paced: Instant::ZERO,
            issuers: issuers(spec.cores),
        }
    }

    /// Pages went into the device's queues.
    pub(super) fn submitted(&mut self, pages: u64) {
        self.sectors += sectors(pages);
    }
}

impl<D: Device> Host<D> {
    /// Sees to it that the flusher wakes.
    pub(super) fn arm_flusher(&mut self) {
        if !self.back.armed && self.era.wake > Span::ZERO {
            self.back.armed = true;
            self.at(self.now + self.era.wake, What::Wake);
        }
    }

    /// The flusher wakes: files that have been dirty for long are written whole.
    pub(super) fn flusher_wakes(&mut self) {
        self.back.armed = false;
        if self.cache.dirty() + self.cache.writing() == 0 {
            return;
        }
        self.arm_flusher();
        for number in 0..self.files.len() as u32 {
            let dirty = self.cache.dirty_of(number);
            let file = &mut self.files[number as usize];
            let old = |since: Instant| self.now.since(since) >= self.era.expire;
            if self.era.lazy > 0 {
                file.expired = dirty.div_ceil(self.era.lazy);
            } else if file.dirtied.is_some_and(old) {
                file.expired = dirty;
            }
        }
        self.pump();
    }

    /// Submits what is wanted and what the queues take.
    pub(super) fn pump(&mut self) {
        let mut submitted = false;
        loop {
            let room = self.back.queue.saturating_sub(self.back.sectors);
            if self.back.full && room < self.back.queue / 8 {
                break;
            }
            self.back.full = room < u64::from(self.below.hints.max_sectors);
            if self.back.full {
                // Whoever would submit more sleeps until a request is free: all that waits goes off.
                self.below.unplug(self.now);
                break;
            }
            if self.back.paced > self.now {
                break;
            }
            let Some((writer, file, wanted)) = self.next_writer() else {
                break;
            };
            // Whoever sleeps until a request is free leaves the rest dirty: what is dirtied meanwhile is found when it comes to it.
            // What is under way then wakes it.
            if self.back.sectors > 0 && self.below.device.sleeps(&self.origin_of(writer)) {
                break;
            }
            let wanted = match writer {
                Writer::Flusher => wanted,
                Writer::Held(_) => self.or_run_of(file, wanted.min(self.at_a_time())),
                Writer::Durable(_) | Writer::Journal => wanted.min(self.at_a_time()),
            };
            let written = self.write_batch(file, wanted.min((room / 8).max(1)), writer);
            submitted |= written > 0;
            self.account(writer, file, written);
        }
        if submitted && self.era.unplug_batch {
            self.below.unplug(self.now);
        }
    }

    /// Who writes next, of which file, and how many pages at most.
    fn next_writer(&mut self) -> Option<(Writer, u32, u64)> {
        if let Some(&tag) = self.back.durable.front() {
            let call = &self.calls[tag as usize];
            return Some((Writer::Durable(tag), call.file, call.budget));
        }
        if let Some((file, pages)) = self.journal.data_wanted() {
            return Some((Writer::Journal, file, pages));
        }
        let held = self.back.held.iter().copied();
        let writing = held
            .into_iter()
            .find(|tag| self.calls[*tag as usize].budget > 0);
        if let Some(tag) = writing
            && let Some(file) = self.dirty_file(|_| true)
        {
            let budget = self.calls[tag as usize].budget;
            return Some((Writer::Held(tag), file, budget));
        }
        if let Some(Chunk { file, left }) = self.back.chunk {
            return Some((Writer::Flusher, file, left));
        }
        let background = self.back.background && self.cache.dirty() > self.back.threshold;
        self.back.background = background;
        let file = self.dirty_file(|file| background || file.expired > 0)?;
        let mut left = self.chunk_of(file);
        if !background {
            left = left.min(self.files[file as usize].expired);
        }
        self.back.chunk = Some(Chunk { file, left });
        Some((Writer::Flusher, file, left))
    }

    /// The next file in turn with dirty pages that are not on their way and that is wanted.
    fn dirty_file(&mut self, wanted: impl Fn(&super::File) -> bool) -> Option<u32> {
        if self.cache.dirty() == 0 {
            return None;
        }
        let count = self.files.len() as u32;
        for step in 0..count {
            let number = (self.back.turn + step) % count;
            // With transactions of its own the file system lets the flusher have metadata alone.
            let ours = number == META || !self.back.by_commit;
            if ours && self.cache.dirty_of(number) > 0 && wanted(&self.files[number as usize]) {
                self.back.turn = number;
                return Some(number);
            }
        }
        None
    }

    /// Books what a batch was for.
    fn account(&mut self, writer: Writer, file: u32, written: u64) {
        let known = &mut self.files[file as usize];
        known.expired = known.expired.saturating_sub(written);
        if written == 0 {
            // All that is dirty is on its way as well.
            known.expired = 0;
        }
        match writer {
            Writer::Durable(tag) => {
                let call = &mut self.calls[tag as usize];
                call.budget = call.budget.saturating_sub(written);
                if call.budget == 0 || written == 0 {
                    self.back.durable.pop_front();
                    self.submitted(tag);
                }
            }
            Writer::Journal => self.journal_data_submitted(written),
            Writer::Held(tag) => {
                self.back.turn += 1;
                let call = &mut self.calls[tag as usize];
                call.budget = call.budget.saturating_sub(written);
                if written == 0 {
                    // All that is dirty is on its way as well, the page perhaps that he was about to fill: he has not done
                    // his share, and waits until there is less of it (`congestion_wait` in `balance_dirty_pages`).
                    call.budget = 0;
                    self.release_held();
                } else if call.budget == 0 {
                    self.release(tag);
                }
            }
            Writer::Flusher => {
                self.wrote_of_chunk(written);
                if written == 0 {
                    self.back.background = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_the_processors_issue_writes() {
        assert_eq!([1, 2, 4, 16].map(issuers), [1, 1, 3, 12]);
    }
}
