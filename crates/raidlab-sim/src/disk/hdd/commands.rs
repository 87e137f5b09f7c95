//! What becomes of a command when it comes: served from the buffer, taken into it, or left to the arm.
use super::{Blocked, Done, Hdd, Run, Waiting};
use raidlab_core::time::{Instant, Span};

impl Hdd {
    #[inline]
    pub(super) fn read(&mut self, now: u64, id: u64, lba: u64, sectors: u64) {
        self.counters.reads += 1;
        self.counters.sectors_read += sectors;
        self.last_read = now;
        let mut waiting = self.waiting(id, lba, sectors, now, false);
        if !self.dirty.is_empty() && self.dirty.covers(lba, sectors) {
            return self.serve(&waiting);
        }
        let start = self.stream.start;
        // One comparison, false for all that are elsewhere.
        let ahead = lba.wrapping_sub(start) < self.stream.limit.saturating_sub(start);
        let streaming = self.stream.active && ahead;
        if (streaming || self.segments.may_hold(lba)) && self.hit(&waiting, now) {
            return self.serve(&waiting);
        }
        let overhead = &self.model.spec.overhead;
        waiting.ready = self.decode(now, overhead.read_miss);
        if self.idle(now) {
            self.clock = now;
            self.start_read(&waiting, now);
        } else {
            self.queue.push(&waiting);
            self.run(now);
        }
    }

    /// Nothing waits for the arm and nothing has to be booked when it is free.
    #[inline]
    pub(super) fn idle(&self, now: u64) -> bool {
        self.free_at <= now && self.queue.is_empty() && !self.destage_active && !self.pressing
    }

    /// Whether the buffer has all of a read when it would be served from there.
    fn hit(&mut self, read: &Waiting, now: u64) -> bool {
        // What cannot be read, or only in further turns, has come into no buffer.
        if !self.bad.is_empty() && self.bad.touches(read.lba, read.sectors) {
            return false;
        }
        let at = now.max(self.processor_free) + self.model.spec.overhead.read_hit.0;
        if self.stream.active {
            // What the arm does is settled up to `free_at`, so that this holds only from then on.
            if self.free_at <= at && self.streamed(read.lba, read.end, at) {
                self.segments.touch(self.stream.segment);
                self.book(read, false);
                self.consume(read, at);
                return true;
            }
        }
        let found = self.segments.find(read.lba, read.end);
        if let Some(index) = found {
            self.segments.touch(index);
            self.segments.serve(index, read.sectors, false);
            // What was read ahead before the arm had to go counts now.
            let units = self.segments.book(index, read.place.x, read.end);
            self.counters.transfer += Span(self.spindle.nanos(units));
        }
        found.is_some()
    }

    /// Serves a read from the buffer.
    fn serve(&mut self, read: &Waiting) {
        let ready = self.decode(read.since, self.model.spec.overhead.read_hit);
        let (begin, end) = self.transfer(ready, read.sectors);
        self.counters.read_hits += 1;
        self.ready.push(Done {
            id: read.id,
            at: Instant(end),
            first: Instant(begin),
            result: Ok(()),
            hit: true,
        });
    }

    #[inline]
    pub(super) fn write(&mut self, now: u64, id: u64, lba: u64, sectors: u64, fua: bool) {
        self.counters.writes += 1;
        self.counters.sectors_written += sectors;
        let ready = self.decode(now, self.model.spec.overhead.write);
        if !self.bad.is_empty() {
            self.bad.write(lba, sectors);
        }
        let cache = &self.model.spec.cache;
        if cache.write_back && !fua && sectors <= cache.write_sectors {
            let run = Run {
                lba,
                sectors,
                ready,
                since: self.destaged,
            };
            self.write_back(now, id, run);
        } else {
            self.write_through(now, id, lba, sectors, ready);
        }
    }

    /// A write that ends when the buffer has it.
    #[inline(never)]
    fn write_back(&mut self, now: u64, id: u64, run: Run) {
        self.blocked.push_back(Blocked {
            id,
            run,
            flush: false,
        });
        self.admit(now);
        self.run(now);
    }

    /// A write that ends when the media have it, with which the drive's processor is through at `ready`.
    #[inline(never)]
    fn write_through(&mut self, now: u64, id: u64, lba: u64, sectors: u64, ready: u64) {
        if !self.dirty.is_empty() {
            self.dirty.remove(lba, sectors);
        }
        let mut waiting = self.waiting(id, lba, sectors, now, true);
        waiting.ready = ready;
        if self.idle(now) && self.dirty.is_empty() {
            // What `decide` would do.
            (self.clock, self.destaged_last) = (now, false);
            self.start_write(&waiting, now);
        } else {
            self.send_early(&mut waiting);
            self.queue.push(&waiting);
            self.run(now);
        }
    }

    /// A drive with room in its buffer takes the data of a write that waits for the arm, so that one which goes on where
    /// the one before ends loses no turn.
    fn send_early(&mut self, write: &mut Waiting) {
        let held = self.dirty.sectors() + self.sent + write.sectors;
        // One that takes a command at a time has not been told of those that wait.
        if self.model.spec.queue.tags == 1 || held > self.model.spec.cache.sectors() {
            return;
        }
        let (begin, _) = self.transfer(write.ready, write.sectors);
        write.ready = begin + self.model.link_nanos(1);
        write.sent = true;
        self.sent += write.sectors;
    }

    #[inline(never)]
    pub(super) fn flush(&mut self, now: u64, id: u64) {
        self.counters.flushes += 1;
        let ready = self.decode(now, self.model.spec.overhead.write);
        let run = Run {
            lba: 0,
            sectors: 0,
            ready,
            since: 0,
        };
        self.blocked.push_back(Blocked {
            id,
            run,
            flush: true,
        });
        self.admit(now);
        self.run(now);
    }
}
