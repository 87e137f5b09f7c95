//! Reading ahead: after a read the head stays on the track and fills the segment, until the segment
//! is full or the arm is needed elsewhere.
//!
//! The coordinate under the head is a straight line in time, so that how far the segment is filled
//! at any moment is one multiplication (MODELS 5.2, equation 5), and nothing happens in between.
use super::Hdd;
use super::Waiting;
use crate::disk::rotation::REVOLUTION;
use crate::disk::spec::Restart;

/// What the head reads ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    pub(super) active: bool,
    pub(super) segment: u8,
    /// First sector of the segment.
    pub(super) start: u64,
    /// Sectors that the segment can hold.
    size: u64,
    /// The coordinate `x` is under the head at time `t`; it goes on from there.
    pub(super) x: u64,
    pub(super) t: u64,
    /// First sector that is not read ahead.
    pub(super) limit: u64,
    /// A coordinate that the limit lies beyond; the limit's own once `exact`.
    bound: u64,
    exact: bool,
    /// It may reach further from where the arm is booked than a segment does.
    pub(super) long: bool,
    /// Coordinate where the track of the arm's booked position ends.
    pub(super) track_end: u64,
    /// Coordinate up to which the passing is in the counters: the host has asked for what lies before it.
    booked: u64,
    /// How long a head that had paused waited for its place to come round; 0 once that is in the counters.
    lost: u64,
}

impl Hdd {
    /// Starts reading ahead in `segment`, which begins with the sector `start`, behind the sector before
    /// `from`, whose coordinate end is `end`; the coordinate `x` is under the head at `t`.
    #[inline]
    pub(super) fn start_stream(
        &mut self,
        segment: u8,
        (start, from): (u64, u64),
        end: u64,
        (t, x): (u64, u64),
        track_end: u64,
    ) {
        let ahead = self.model.spec.cache.read_ahead;
        // What was asked for stays in the segment.
        let size = self.segments.size();
        let room = (start + size).max(from);
        let limit = (from + ahead).min(room).min(self.model.spec.sectors);
        self.stream = Stream {
            active: true,
            segment,
            start,
            size,
            x,
            t,
            limit,
            bound: end + (limit - from) * self.model.geometry.narrowest(),
            exact: limit == from,
            long: limit - start > size,
            track_end,
            booked: end,
            lost: 0,
        };
    }

    /// The stream that has just been started began so much later than its head was free.
    #[inline]
    pub(super) fn lose(&mut self, nanos: u64) {
        self.stream.lost = nanos;
    }

    /// Counts what the mechanism did for a read that the stream serves, which has to wait for the head if `waits`.
    ///
    /// Sectors that pass while nobody waits for them count when they are asked for, and each time that they pass once: a reader whom
    /// something else holds up does not make the mechanism less busy with what he reads. What is passed over on the way to the next
    /// sector that is wanted is a wait for that, up to the turn from which on a seek gets there as soon. A turn
    /// that a full segment cost counts when a read then has to wait for the head: if the segment is full again
    /// before, the turn was nobody's loss.
    pub(super) fn book(&mut self, read: &Waiting, waits: bool) {
        let from = self.stream.booked;
        if waits && read.end > self.stream.x {
            self.counters.rotation.0 += std::mem::take(&mut self.stream.lost);
        }
        if read.end <= from {
            return;
        }
        let gap = read.place.x.saturating_sub(from);
        let skipped = self.spindle.nanos(gap);
        if gap < REVOLUTION {
            self.counters.rotation.0 += skipped;
        }
        // In whole nanoseconds, so that no rounding adds up.
        let reached = from + self.spindle.units(skipped);
        let passed = self.spindle.nanos(read.end.saturating_sub(reached));
        self.counters.transfer.0 += passed;
        self.stream.booked = reached + self.spindle.units(passed);
    }

    /// Coordinate of the end of the last sector that is read ahead.
    #[inline(never)]
    fn limit_x(&mut self) -> u64 {
        if !self.stream.exact {
            self.stream.bound = self.model.geometry.locate(self.stream.limit - 1).end();
            self.stream.exact = true;
        }
        self.stream.bound
    }

    /// Coordinate up to which the segment is filled at time `t`.
    #[inline]
    pub(super) fn frontier(&mut self, t: u64) -> u64 {
        let Some(passed) = t.checked_sub(self.stream.t) else {
            return self.stream.x;
        };
        let x = self.stream.x.saturating_add(self.spindle.units(passed));
        if x <= self.stream.bound {
            x
        } else {
            x.min(self.limit_x())
        }
    }

    /// The host takes the sectors of a read at time `t`: there is room
    /// to read further ahead. A head that had to pause is on its track still, and goes on when the
    /// place comes round again.
    pub(super) fn consume(&mut self, read: &Waiting, t: u64) {
        let (to, end) = (read.lba + read.sectors, read.end);
        self.stream.size = self.segments.serve(self.stream.segment, read.sectors, true);
        let cache = self.model.spec.cache;
        let ahead = cache.read_ahead.min(self.stream.size);
        let limit = (to + ahead).min(self.model.spec.sectors);
        if limit <= self.stream.limit {
            return;
        }
        let left = self.stream.limit.saturating_sub(to);
        if to <= self.stream.limit && cache.restart == Restart::Lazy && left * 2 > ahead {
            return;
        }
        let old = self.limit_x();
        let stopped = self.stream.t + self.spindle.nanos(old.saturating_sub(self.stream.x));
        if t > stopped {
            let wait = self.spindle.nanos(self.spindle.until(t, old % REVOLUTION));
            (self.stream.x, self.stream.t) = (old, t + wait);
            self.stream.lost = wait;
        }
        (self.stream.limit, self.stream.long) = (limit, true);
        self.stream.bound = end + (limit - to) * self.model.geometry.narrowest();
        self.stream.exact = limit == to;
    }

    /// First sector that the segment being filled still holds at time `t`: once it is full, new
    /// sectors take the place of the oldest.
    #[inline]
    fn oldest(&mut self, t: u64) -> u64 {
        let Stream { start, size, .. } = self.stream;
        if self.stream.limit <= start + size {
            return start;
        }
        self.oldest_of_full(t, start)
    }

    #[inline(never)]
    fn oldest_of_full(&mut self, t: u64, start: u64) -> u64 {
        let size = self.stream.size;
        let there = self.frontier(t);
        let passed = self.model.geometry.sector_at(there);
        start.max(passed.saturating_sub(size))
    }

    /// Whether the segment being filled holds the sectors from `lba` to the coordinate `end` at `t`.
    pub(super) fn streamed(&mut self, lba: u64, end: u64, t: u64) -> bool {
        self.stream.active
            && self.stream.start <= lba
            && lba < self.stream.limit
            && end <= self.frontier(t)
            && self.oldest(t) <= lba
    }

    /// Sectors among which a request must begin for the stream to reach it.
    #[inline]
    pub(super) fn stream_window(&self) -> (u64, u64) {
        // At most a turn beyond the limit.
        (
            self.stream.start,
            self.stream.limit + u64::from(self.model.geometry.widest()),
        )
    }

    /// How long after `t` the stream will have reached the first sector of `read`, in units of angle;
    /// `None` when it is behind, or so far ahead that a seek gets there no later.
    #[inline]
    pub(super) fn stream_reach(&mut self, read: &Waiting, t: u64) -> Option<u64> {
        if !self.stream.active || read.write {
            return None;
        }
        let (start, last) = self.stream_window();
        // One comparison, false for all that are elsewhere.
        if read.lba.wrapping_sub(start) > last - start {
            return None;
        }
        self.reach_in_window(read, t)
    }

    /// The same for a read that the stream may reach, which few are.
    #[inline(never)]
    fn reach_in_window(&mut self, read: &Waiting, t: u64) -> Option<u64> {
        if read.lba < self.oldest(t) {
            return None;
        }
        let there = self.frontier(t);
        let ahead = read.place.x.saturating_sub(there);
        if ahead >= REVOLUTION {
            return None;
        }
        // A paused head waits for its place to come round.
        let paused = self.stream.exact && there == self.stream.bound && read.end > there;
        let wait = if paused {
            self.spindle.until(t, there % REVOLUTION)
        } else {
            0
        };
        Some(ahead + wait)
    }

    /// The arm is needed elsewhere at `t`: books what was read and where the arm is.
    pub(super) fn stop_stream(&mut self, t: u64) {
        self.stop_here(t);
    }

    /// The same as part of the caller, for the path of every read.
    #[inline(always)]
    pub(super) fn stop_here(&mut self, t: u64) {
        if !self.stream.active {
            return;
        }
        let there = self.frontier(t);
        let oldest = self.oldest(t);
        let geometry = &self.model.geometry;
        let Stream {
            segment, booked, ..
        } = self.stream;
        self.segments.leave(segment, oldest, (booked, there), || {
            geometry.sector_at(there)
        });
        if there > self.stream.track_end {
            (self.cylinder, self.head) = geometry.track_after(self.stream.start, there);
        }
        self.stream.active = false;
    }
}
