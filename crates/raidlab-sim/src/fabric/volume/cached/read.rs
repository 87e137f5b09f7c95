//! Reads: from the cache, from the disks, and ahead of a sequential reader.
use super::Cached;
use super::Due;
use super::lines::BLOCK;
use super::task::Kind;
use crate::disk::DiskError;
use crate::fabric::plant::Plant;

/// Sequential readers that are kept track of. Assumed: usual for controllers.
const STREAMS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Sector after the last that was read.
    next: u64,
    /// Sector after the last that was asked for ahead.
    ahead: u64,
    /// Reads that went on where the one before ended.
    run: u32,
    used: u64,
}

/// The sequential readers, the least recently used making room for a new one.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    list: [Stream; STREAMS],
    clock: u64,
}

impl Streams {
    /// A read; where reading ahead should go on from, when it is sequential.
    fn read(&mut self, lba: u64, end: u64) -> Option<u64> {
        self.clock += 1;
        let clock = self.clock;
        let known = self.list.iter_mut().find(|s| s.next == lba && s.used > 0);
        if let Some(stream) = known {
            (stream.next, stream.used) = (end, clock);
            stream.run += 1;
            stream.ahead = stream.ahead.max(end);
            return Some(stream.ahead);
        }
        if let Some(oldest) = self.list.iter_mut().min_by_key(|s| s.used) {
            *oldest = Stream {
                next: end,
                ahead: end,
                run: 0,
                used: clock,
            };
        }
        None
    }

    fn asked_ahead(&mut self, next: u64, to: u64) {
        if let Some(stream) = self.list.iter_mut().find(|s| s.next == next) {
            stream.ahead = to;
        }
    }
}

impl Cached {
    /// A read has been decoded.
    pub(super) fn read(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let bio = self.asked[number as usize].bio;
        self.gives_way(now);
        let ahead = self.streams.read(bio.lba.0, bio.end());
        if !self.serve(now, number, plant) {
            self.reading.push(number);
            self.demand(now, bio.lba.0, bio.end(), plant);
        }
        if let Some(from) = ahead.filter(|_| self.model.read_ahead > 0) {
            // Whole groups, so that every disk gets commands of a useful length.
            let reach = (bio.end() + self.model.read_ahead).min(self.capacity);
            let to = if reach == self.capacity {
                reach
            } else {
                reach - reach % self.group
            };
            if to > from {
                self.streams.asked_ahead(bio.end(), to);
                self.fetch(now, from, to, plant);
            }
        }
    }

    /// What the cache has of a read goes to the host, up to what is missing; whether that was all.
    fn serve(&mut self, now: u64, number: u32, plant: &mut Plant) -> bool {
        let asked = &mut self.asked[number as usize];
        let (from, end) = (asked.bio.lba.0 + asked.moved, asked.bio.end());
        let (mut at, size) = (from, self.lines.size);
        while at < end {
            let key = at / size;
            let Some(index) = self.lines.find(key) else {
                break;
            };
            let first = (at % size) / BLOCK;
            let valid = u64::from((self.lines.at(index).valid >> first).trailing_ones());
            if valid == 0 {
                break;
            }
            at = end.min(key * size + (first + valid) * BLOCK);
            self.lines.settle(index);
            if at < (key + 1) * size {
                break;
            }
        }
        if at > from {
            asked.moved += at - from;
            let card = &self.card;
            asked.moved_at = card.host(card.host_read, now, at - from, plant);
        }
        if at < end {
            return false;
        }
        self.agenda
            .push(asked.moved_at.max(now), Due::Ended(number));
        true
    }

    /// Fetches sectors that the host waits for; where there is no line for them, one has to become free.
    fn demand(&mut self, now: u64, from: u64, to: u64, plant: &mut Plant) {
        if !self.fetch(now, from, to, plant) {
            self.make_room(now, plant);
        }
    }

    /// Reads from the disks what is neither there nor on its way, of the sectors from `from` to
    /// before `to`; as far as there are lines for it. Whether there were.
    fn fetch(&mut self, now: u64, from: u64, to: u64, plant: &mut Plant) -> bool {
        let mut run: Option<(u64, u64)> = None;
        let mut room = true;
        let mut at = from - from % BLOCK;
        while at < to {
            let key = at / self.lines.size;
            let Some(index) = self.lines.obtain(key) else {
                room = false;
                break;
            };
            let start = key * self.lines.size;
            let stop = to.min(start + self.lines.size);
            let wanted = self.lines.mask(key, at, stop);
            let line = self.lines.at_mut(index);
            let mut missing = wanted & !line.valid & !line.coming;
            line.coming |= missing;
            self.lines.settle(index);
            while missing != 0 {
                let first = u64::from(missing.trailing_zeros());
                let blocks = u64::from((missing >> first).trailing_ones());
                let (low, high) = (start + first * BLOCK, start + (first + blocks) * BLOCK);
                missing &= !(((1_u64 << (first + blocks)) - 1) as u32);
                run = match run {
                    Some((begin, end)) if end == low && high - begin <= self.group => {
                        Some((begin, high))
                    }
                    Some((begin, end)) => {
                        self.start(now, Kind::Fetch, begin, end, plant);
                        Some((low, high))
                    }
                    None => Some((low, high)),
                };
            }
            at = stop;
        }
        if let Some((begin, end)) = run {
            self.start(now, Kind::Fetch, begin, end, plant);
        }
        room
    }

    /// Sectors have come from the disks, or could not be read.
    pub(super) fn fetched(
        &mut self,
        now: u64,
        (from, to): (u64, u64),
        result: Result<(), DiskError>,
        plant: &mut Plant,
    ) {
        self.lines.each(from, to, |line, mask| {
            line.coming &= !mask;
            if result.is_ok() {
                line.valid |= mask;
            }
        });
        let touched = |bio: &crate::block::Bio| bio.lba.0 < to && from < bio.end();
        let mut index = 0;
        while index < self.reading.len() {
            let number = self.reading[index];
            let bio = self.asked[number as usize].bio;
            let mut gone = false;
            if touched(&bio) {
                gone = match result {
                    Ok(()) => self.serve(now, number, plant),
                    Err(error) => {
                        self.fail(now, number, error);
                        true
                    }
                };
            }
            if gone {
                self.reading.remove(index);
            } else {
                index += 1;
            }
        }
        self.ask_again(now, plant);
        if !self.writing.is_empty() {
            self.written(now, plant);
        }
    }

    /// Reads for which there were no lines, or whose lines went to others before the host had taken
    /// them, ask for what they lack once more.
    pub(super) fn ask_again(&mut self, now: u64, plant: &mut Plant) {
        let mut index = 0;
        while index < self.reading.len() {
            let number = self.reading[index];
            let asked = &self.asked[number as usize];
            let (from, end) = (asked.bio.lba.0 + asked.moved, asked.bio.end());
            let key = from / self.lines.size;
            let mask = self.lines.mask(key, from, (from + 1).min(end));
            let line = self.lines.find(key).map(|index| *self.lines.at(index));
            if line.is_some_and(|line| line.coming & mask != 0) {
                index += 1;
            } else if self.serve(now, number, plant) {
                self.reading.remove(index);
            } else {
                self.demand(now, from, end, plant);
                index += 1;
            }
        }
    }
}
