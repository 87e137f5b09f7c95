//! The arm at work: seek, settle, wait for the sector, transfer; each in closed form.
use super::{Done, Hdd, Waiting};
use crate::disk::DiskError;
use crate::disk::geometry::Place;
use crate::disk::rotation::REVOLUTION;
use raidlab_core::time::Instant;

/// Physical sectors that were written in part and are remembered at most. Assumed: a few, each in a piece of the buffer of
/// its own.
const PARTS: usize = 32;

impl Hdd {
    /// Time to bring the arm and the head over a track, given as cylinder and head.
    #[inline]
    pub(super) fn move_nanos(&self, (cylinder, head): (u32, u32), write: bool) -> u64 {
        let distance = cylinder.abs_diff(self.cylinder);
        let moved = if distance > 0 {
            self.model.seek.nanos(distance)
        } else if head != self.head {
            // The skew between tracks covers the switch and the settling.
            return self.model.spec.head_switch.0;
        } else {
            return 0;
        };
        if write {
            moved + self.model.spec.write_settle.0
        } else {
            moved
        }
    }

    /// Moves to `place` from time `t` and waits for it: when it is under the head, and the coordinate
    /// exactly under it then.
    #[inline(never)]
    pub(super) fn position(&mut self, t: u64, place: &Place, write: bool) -> (u64, u64) {
        self.position_here(t, place, write)
    }

    /// The same as part of the caller, for the path of most reads.
    #[inline(always)]
    fn position_here(&mut self, t: u64, place: &Place, write: bool) -> (u64, u64) {
        let seek = self.move_nanos((place.cylinder, place.head), write);
        let (begin, x) = self.spindle.meet(t + seek, place.x, place.angle);
        self.counters.seek.0 += seek;
        self.counters.rotation.0 += begin - t - seek;
        (self.cylinder, self.head) = (place.cylinder, place.head);
        (begin, x)
    }

    /// The head passes from `x`, under it at `begin`, to the coordinate `end`; when it is there.
    #[inline]
    pub(super) fn pass(&mut self, begin: u64, x: u64, end: u64, place: &Place) -> u64 {
        let nanos = self.spindle.nanos(end - x);
        self.counters.transfer.0 += nanos;
        if end > place.track_end() {
            (self.cylinder, self.head) = self.model.geometry.track_at(end - 1);
        }
        begin + nanos
    }

    /// A read begins, at `at` or when the drive's processor is through with it.
    #[inline]
    pub(super) fn start_read(&mut self, read: &Waiting, at: u64) {
        let t = at.max(read.ready);
        let (first, mut media_end);
        if self.stream_reach(read, t).is_some() {
            (first, media_end) = self.read_on(read, t);
        } else {
            (first, media_end) = self.read_anew(read, t);
        }
        let mut result = Ok(());
        if !self.bad.is_empty() {
            (media_end, result) = self.read_bad(read, media_end);
        }
        self.free_at = media_end;
        self.position = read.lba + read.sectors;
        // The last sector goes over the link when the media have given it, the others meanwhile.
        let (begin, end) = self.transfer(first, read.sectors);
        let end = end.max(media_end + self.model.link_nanos(1));
        self.ready.push(Done {
            id: read.id,
            at: Instant(end),
            first: Instant(begin),
            result,
            hit: false,
        });
    }

    /// A read on a disk with bad sectors that would have ended at `media_end`: when it does, and how.
    #[cold]
    fn read_bad(&mut self, read: &Waiting, media_end: u64) -> (u64, Result<(), DiskError>) {
        let (turns, result) = self.bad.read(read.lba, read.sectors);
        if turns > 0 || result.is_err() {
            // Nothing is read ahead while the head stays for another try.
            self.stop_stream(media_end);
        }
        (media_end + turns * self.spindle.revolution(), result)
    }

    /// The stream that is being read ahead passes over the sectors: no seek. When the first sector is
    /// there, and the last.
    #[inline(never)]
    fn read_on(&mut self, read: &Waiting, t: u64) -> (u64, u64) {
        self.segments.touch(self.stream.segment);
        self.consume(read, t);
        let at = |x: u64| self.stream.t + self.spindle.nanos(x.saturating_sub(self.stream.x));
        let first = at(read.place.end()).max(t);
        let end = at(read.end).max(t);
        self.counters.stream_hits += 1;
        self.book(read, end > t);
        (first, end)
    }

    /// The arm goes to the sectors and reads ahead from there. When the first sector is there, and
    /// the last.
    #[inline]
    fn read_anew(&mut self, read: &Waiting, t: u64) -> (u64, u64) {
        self.stop_here(t);
        let place = &read.place;
        let (first, begin, x, media_end);
        let mut late = 0;
        if self.model.spec.zero_latency && read.end <= place.track_end() {
            (first, media_end) = self.read_whole_track(read, t);
            let wait = self.spindle.until(media_end, read.end % REVOLUTION);
            late = self.spindle.nanos(wait);
            (begin, x) = (media_end + late, read.end);
        } else {
            (begin, x) = self.position_here(t, place, false);
            media_end = self.pass(begin, x, read.end, place);
            first = begin + self.spindle.nanos(place.width());
        }
        let to = read.lba + read.sectors;
        if let Some(segment) = self.segments.take(read.lba, read.sectors) {
            let track_end = if read.end <= place.track_end() {
                place.track_end()
            } else {
                0
            };
            if self.model.spec.cache.read_ahead > 0 {
                self.start_stream(segment, (read.lba, to), read.end, (begin, x), track_end);
                self.lose(late);
                self.ahead_until = media_end + self.least_ahead(to);
            } else {
                self.segments.fill(segment, read.end);
            }
        }
        (first, media_end)
    }

    /// How long the head reads ahead from `to` on in any case.
    fn least_ahead(&self, to: u64) -> u64 {
        let least = self.model.spec.cache.least_ahead;
        if least == 0 {
            return 0;
        }
        let sectors = least.min(self.stream.limit.saturating_sub(to));
        let per_track = u64::from(self.model.geometry.per_track(to - 1));
        sectors * self.spindle.revolution() / per_track
    }

    /// A read within a track by a drive that takes its sectors as they come: from the middle it needs
    /// one turn, not the wait for the first sector as well.
    #[inline(never)]
    fn read_whole_track(&mut self, read: &Waiting, t: u64) -> (u64, u64) {
        let seek = self.move_nanos((read.place.cylinder, read.place.head), false);
        let arrived = t + seek;
        let wait = self.spindle.until(arrived, read.place.angle);
        let length = read.end - read.place.x;
        if wait + length <= REVOLUTION {
            let (begin, x) = self.position(t, &read.place, false);
            let end = self.pass(begin, x, read.end, &read.place);
            return (begin + self.spindle.nanos(read.place.width()), end);
        }
        self.counters.seek.0 += seek;
        (self.cylinder, self.head) = (read.place.cylinder, read.place.head);
        let end = arrived + self.spindle.revolution();
        self.counters.transfer.0 += end - arrived;
        // The first sector of the request comes last but for the part before the arrival.
        (arrived + self.spindle.nanos(wait), end)
    }

    /// A write past the buffer: ends when it is on the media.
    pub(super) fn start_write(&mut self, write: &Waiting, at: u64) {
        let ready = if write.sent {
            self.sent -= write.sectors;
            write.ready
        } else {
            let (data, _) = self.transfer(at.max(write.ready), write.sectors);
            data + self.model.link_nanos(1)
        };
        self.stop_stream(at.max(write.ready));
        let end = self.write_at(write, at.max(write.ready), ready);
        self.free_at = end;
        self.ready.push(Done {
            id: write.id,
            at: Instant(end),
            first: Instant(end),
            result: Ok(()),
            hit: false,
        });
    }

    /// Writes sectors to the media from time `t`, their data there from `ready` on; when it is done.
    ///
    /// A physical sector that is written in part and is not in the buffer is read first, and written
    /// when it comes round again.
    pub(super) fn write_media(&mut self, lba: u64, sectors: u64, t: u64, ready: u64) -> u64 {
        let write = self.waiting(0, lba, sectors, t, true);
        self.write_at(&write, t, ready)
    }

    /// The same for a write whose place is known.
    fn write_at(&mut self, write: &Waiting, t: u64, ready: u64) -> u64 {
        let (lba, sectors, place) = (write.lba, write.sectors, &write.place);
        let (from, count) = self.widen(lba, sectors);
        let mut t = t;
        if (from, count) != (lba, sectors) {
            t = self.read_ends(lba, sectors, t);
        }
        let seek = self.move_nanos((place.cylinder, place.head), true);
        // The data must have come when the first sector does.
        let (begin, x) = self.position(t.max(ready.saturating_sub(seek)), place, true);
        self.position = from + count;
        self.pass(begin, x, write.end, place)
    }

    /// Reads the physical sectors that a write covers in part and that are not in the buffer; when
    /// that is done.
    fn read_ends(&mut self, lba: u64, sectors: u64, t: u64) -> u64 {
        let (from, count) = self.widen(lba, sectors);
        let physical = u64::from(self.model.spec.physical);
        let part_head = from != lba && !self.buffered(from, physical);
        let part_tail =
            from + count != lba + sectors && !self.buffered(from + count - physical, physical);
        let mut t = t;
        if part_head || part_tail {
            self.counters.read_modify_writes += 1;
            let first = if part_head {
                from
            } else {
                from + count - physical
            };
            let last = if part_tail {
                from + count
            } else {
                from + physical
            };
            t = self.read_first(first, last, t);
        }
        if from != lba {
            self.remember(from);
        }
        if from + count != lba + sectors {
            self.remember(from + count - physical);
        }
        t
    }

    /// Reads the sectors from `first` to before `last` for the sake of a partial write.
    fn read_first(&mut self, first: u64, last: u64, t: u64) -> u64 {
        let geometry = &self.model.geometry;
        let place = geometry.locate(first);
        let end = geometry.end_of(&place, first, last - first);
        let (begin, x) = self.position(t, &place, false);
        self.pass(begin, x, end, &place)
    }

    /// The physical sector at `lba` is in the buffer, since a part of it was written.
    fn remember(&mut self, lba: u64) {
        self.parts.retain(|(part, _)| *part != lba);
        self.parts.push_front((lba, self.passed()));
        self.parts.truncate(PARTS);
    }

    /// Sectors that went through the buffer so far.
    fn passed(&self) -> u64 {
        self.counters.sectors_read + self.counters.sectors_written
    }

    /// Whether the buffer holds the sectors. What was written in part stays until as much as the buffer has for writes has
    /// gone through it.
    fn buffered(&self, lba: u64, sectors: u64) -> bool {
        let since = self
            .passed()
            .saturating_sub(self.model.spec.cache.write_sectors);
        if self
            .parts
            .iter()
            .any(|(part, at)| *part == lba && *at >= since)
        {
            return true;
        }
        if !self.segments.may_hold(lba) {
            return false;
        }
        let geometry = &self.model.geometry;
        let place = geometry.locate(lba);
        let end = geometry.end_of(&place, lba, sectors);
        self.segments.find(lba, end).is_some()
    }
}
