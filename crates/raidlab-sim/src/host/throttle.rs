//! Holding back writers that dirty pages faster than the device takes them (`balance_dirty_pages`).
use super::device::Device;
use super::era::Throttle;
use super::{Host, What};
use raidlab_core::time::{Instant, Span};

/// How fast pages are written, as the kernel estimates it since 3.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Pages a second.
    pages: u64,
    written: u64,
    since: Instant,
}

impl Default for Rate {
    /// 100 MB/s before anything is known (`INIT_BW`).
    fn default() -> Self {
        Self {
            pages: 25_600,
            written: 0,
            since: Instant::ZERO,
        }
    }
}

/// Longest sleep of a writer (`MAX_PAUSE`), and how often the rate is estimated
/// (`BANDWIDTH_INTERVAL`).
const LONGEST: Span = Span::from_millis(200);

/// The longest sleep of a writer with so many pages dirty or on their way: an eighth of the time in which they are written,
/// so that the device does not run out of them (`bdi_max_pause`, in ticks of 4 ms, Linux since 3.2).
fn longest(pages: u64, rate: u64) -> Span {
    let ticks = pages / (1 + rate / 32) + 1;
    Span::from_millis(4 * ticks).min(LONGEST)
}

/// Since 3.2 writers are looked at more often where they may dirty few pages (`dirty_poll_interval`); here with each third of
/// the limit, so that nobody is further above it than that.
pub(super) fn look_at_least(limit: u64) -> u64 {
    (limit / 3).max(1)
}

impl Rate {
    pub(super) fn wrote(&mut self, pages: u64) {
        self.written += pages;
    }

    /// The rate at `now`, moved an eighth of the way to what was seen since.
    pub(super) fn at(&mut self, now: Instant) -> u64 {
        let passed = now.since(self.since).0;
        if passed >= LONGEST.0 {
            if passed < 5 * LONGEST.0 && self.written > 0 {
                let seen = self.written * 1_000_000_000 / passed;
                self.pages = (self.pages * 7 + seen) / 8;
            }
            (self.since, self.written) = (now, 0);
        }
        self.pages.max(16)
    }
}

impl<D: Device> Host<D> {
    /// A writer has dirtied so many pages; true when it is held back and will be stepped again.
    #[inline]
    pub(super) fn held_back(&mut self, tag: u32, dirtied: u64) -> bool {
        self.back.since += dirtied;
        let every = if self.back.exceeded {
            self.back.every.min(8)
        } else {
            self.back.every
        };
        if self.back.since < every {
            return false;
        }
        self.balance(tag)
    }

    fn balance(&mut self, tag: u32) -> bool {
        let dirtied = std::mem::take(&mut self.back.since);
        let (dirty, total) = (
            self.cache.dirty(),
            self.cache.dirty() + self.cache.writing(),
        );
        if self.back.by_commit {
            if dirty > self.back.transaction {
                self.want_commit();
            }
        } else if dirty > self.back.threshold && !self.back.background {
            self.back.background = true;
            self.pump();
        }
        if self.by_groups() && self.group_full() {
            self.back.held.push(tag);
            self.calls[tag as usize].budget = 0;
            self.below.unplug(self.now);
            self.pump();
            return true;
        }
        let sleeps = self.era.throttle == Throttle::Sleeps && !self.back.by_commit;
        if sleeps && total <= self.back.limit {
            return self.pause(tag, dirtied, total);
        }
        self.back.exceeded = total > self.back.limit;
        if !self.back.exceeded {
            return false;
        }
        let writes = match self.era.throttle {
            Throttle::Writes => !self.back.by_commit,
            Throttle::WritesBeyond => !self.back.by_commit && dirty > self.back.limit,
            Throttle::Sleeps | Throttle::Waits => false,
        };
        // `sync_writeback_pages`.
        let share = self.back.every + self.back.every / 2;
        self.calls[tag as usize].budget = if writes { share } else { 0 };
        self.below.device.writer_sleeps(self.now);
        self.back.held.push(tag);
        self.below.unplug(self.now);
        self.pump();
        true
    }

    /// Sleeps as long as the device takes for what was dirtied, more when there is much dirty and
    /// less when there is little: `bdi_position_ratio` with one device.
    fn pause(&mut self, tag: u32, dirtied: u64, total: u64) -> bool {
        let (limit, threshold) = (self.back.limit, self.back.threshold);
        let free = u64::midpoint(limit, threshold);
        let rate = self.back.rate.at(self.now);
        // A look for every 10 ms of writing.
        self.back.every = (rate / 100).clamp(8, 1024).min(look_at_least(limit));
        if total <= free {
            return false;
        }
        let middle = u64::midpoint(free, limit) as i64;
        let span = (limit as i64 - middle).max(1);
        let x = ((middle - total as i64) * 1024 / span).clamp(-1024, 1024);
        let ratio = (1024 + x * x * x / (1 << 20)) as u64;
        let wanted = (rate * ratio).max(1);
        let pause = Span(dirtied * 1_000_000_000 * 1024 / wanted).min(longest(total, rate));
        self.below.device.writer_sleeps(self.now);
        self.at(self.now + pause, What::Step(tag));
        true
    }

    /// ZFS before 0.6.3: data belongs to a transaction group that has a size.
    fn by_groups(&self) -> bool {
        self.back.by_commit && self.traits.commit_time.is_some()
    }

    /// The open group is full and cannot be closed, because the one before is being written: writers
    /// wait (`dsl_pool_tempreserve_space`, `txg_wait_open`). Pages of the group that is being written
    /// count as dirty until they are submitted.
    fn group_full(&self) -> bool {
        let open = self.cache.dirty().saturating_sub(self.journal.data_left());
        self.journal.is_busy() && open > self.back.transaction
    }

    /// Counts what a call frees in the open transaction; true when that has as much as it may have: the call goes on when the
    /// next one is open (`txg_wait_open` in `dmu_free_long_range_impl`).
    pub(super) fn too_much_freed(&mut self, tag: u32) -> bool {
        if self.back.frees >= self.back.frees_most {
            self.wait_for_open(tag);
            return true;
        }
        self.back.frees += std::mem::take(&mut self.calls[tag as usize].frees);
        false
    }

    /// Lets writers go on that wait for fewer pages to be on their way.
    pub(super) fn release_held(&mut self) {
        let total = self.cache.dirty() + self.cache.writing();
        if self.back.held.is_empty() || total > self.back.limit {
            return;
        }
        if self.by_groups() && self.group_full() {
            return;
        }
        // The next look is after as many pages as usual.
        self.back.exceeded = false;
        for tag in std::mem::take(&mut self.back.held) {
            self.calls[tag as usize].budget = 0;
            self.at(self.now, What::Step(tag));
        }
    }

    /// A writer has written out its share.
    pub(super) fn release(&mut self, tag: u32) {
        let total = self.cache.dirty() + self.cache.writing();
        // Without anything left to write it waits for what is on its way.
        if (total > self.back.limit && self.cache.dirty() == 0)
            || (self.by_groups() && self.group_full())
        {
            return;
        }
        self.back.held.retain(|held| *held != tag);
        self.at(self.now, What::Step(tag));
    }
}
