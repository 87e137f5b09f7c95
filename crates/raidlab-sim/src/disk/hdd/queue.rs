//! The requests that wait for the arm, and which of them it serves next.
//!
//! Those that the drive compares stand in no order, so that taking one out moves a single entry; each
//! has a number that says how old it is, and the rest of it stays where it is. Comparing them needs no branch that depends on the data: at
//! five requests, mispredicted branches would cost more than all the arithmetic.
use super::{Hdd, Waiting};
use crate::disk::rotation::REVOLUTION;
use std::collections::VecDeque;
use std::hint::select_unpredictable;

/// Lateness that is told apart when requests are compared, in nanoseconds: five hours. Keeps every
/// cost below 2^63.
const LATEST: u64 = 1 << 44;

/// What is needed of a request to compare it with others.
#[derive(Clone, Copy, Debug)]
struct Near {
    /// Lower is older.
    age: u64,
    lba: u64,
    angle: u64,
    ready: u64,
    cylinder: u32,
    head: u32,
    /// Where the rest of it is.
    place: u32,
    write: bool,
}

/// The requests that wait for the arm.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    near: Vec<Near>,
    /// The rest of these requests, and places that are free.
    places: Vec<Waiting>,
    free: Vec<u32>,
    /// Those that came too late to be compared, the oldest first; all of them in a drive that compares none.
    later: VecDeque<Waiting>,
    size: usize,
    count: u64,
    /// No request that is compared came before this time.
    since: u64,
    /// The drive's processor is through with all that were ever compared by this time.
    latest: u64,
}

impl Queue {
    /// An empty queue of a drive that compares the `window` oldest.
    pub(super) fn new(window: u32) -> Self {
        Self {
            // Of one alone there is nothing to compare.
            size: if window > 1 { window as usize } else { 0 },
            near: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            later: VecDeque::new(),
            count: 0,
            since: 0,
            latest: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.later.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, waiting: &Waiting) {
        if self.near.len() < self.size {
            self.admit(waiting);
        } else {
            self.later.push_back(*waiting);
        }
    }

    #[inline]
    fn admit(&mut self, waiting: &Waiting) {
        let place = if let Some(place) = self.free.pop() {
            self.places[place as usize] = *waiting;
            place
        } else {
            self.places.push(*waiting);
            (self.places.len() - 1) as u32
        };
        self.near.push(Near {
            age: self.count,
            lba: waiting.lba,
            angle: waiting.place.angle,
            ready: waiting.ready,
            cylinder: waiting.place.cylinder,
            head: waiting.place.head,
            place,
            write: waiting.write,
        });
        self.count += 1;
        self.latest = self.latest.max(waiting.ready);
    }

    #[inline(always)]
    fn remove(&mut self, index: usize) -> Waiting {
        let place = self.near.swap_remove(index).place;
        let waiting = self.places[place as usize];
        self.free.push(place);
        if !self.later.is_empty() {
            self.admit_later();
        }
        waiting
    }

    fn admit_later(&mut self) {
        let next = self.remove_later();
        self.admit(&next);
    }

    /// Takes out the oldest of those that are not compared; there must be one.
    #[inline]
    fn remove_later(&mut self) -> Waiting {
        let next = self.later[0];
        self.later.pop_front();
        next
    }

    /// The oldest of those that are compared.
    #[cold]
    fn oldest(&mut self) -> usize {
        let ages = self.near.iter().map(|near| near.age);
        let oldest = ages.zip(0..).min().map_or(0, |(_, index)| index);
        self.since = self.waiting(oldest).since;
        oldest
    }

    #[inline]
    fn waiting(&self, index: usize) -> &Waiting {
        &self.places[self.near[index].place as usize]
    }

    /// Empties it: the numbers of the requests, the oldest first.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        self.near.sort_unstable_by_key(|near| near.age);
        let near = self.near.iter().map(|near| near.place as usize);
        let near = near.map(|place| self.places[place].id);
        let ids = near.chain(self.later.iter().map(|w| w.id)).collect();
        self.near.clear();
        self.places.clear();
        self.free.clear();
        self.later.clear();
        ids
    }
}

/// The lowest cost so far and whose it is.
#[derive(Clone, Copy)]
struct Best {
    cost: u64,
    index: usize,
    /// Perhaps another one's as well.
    shared: bool,
}

impl Best {
    const NONE: Self = Self {
        cost: u64::MAX,
        index: 0,
        shared: false,
    };

    #[inline]
    fn add(&mut self, cost: u64, index: usize) {
        let better = cost < self.cost;
        self.shared |= cost == self.cost;
        self.cost = select_unpredictable(better, cost, self.cost);
        self.index = select_unpredictable(better, index, self.index);
    }
}

impl Hdd {
    /// Takes out the request to serve from time `t` on: the oldest when it is too old or the drive
    /// does not reorder, else the one among the window that is reached soonest (shortest
    /// positioning time first), the older one of two. Some request must wait.
    #[inline(always)]
    pub(super) fn pick(&mut self, t: u64) -> Waiting {
        let index = match self.queue.near.len() {
            0 => return self.queue.remove_later(),
            1 => 0,
            _ => self.pick_among(t),
        };
        self.queue.remove(index)
    }

    /// Which of several.
    #[inline]
    fn pick_among(&mut self, t: u64) -> usize {
        // Sectors that the stream may reach: those are few, and looked at apart.
        let reached = if self.stream.active {
            let (from, to) = self.stream_window();
            (from, to - from + 1)
        } else {
            (0, 0)
        };
        let max_age = self.model.spec.queue.max_age.0;
        if t.saturating_sub(self.queue.since) > max_age {
            let oldest = self.queue.oldest();
            if t.saturating_sub(self.queue.since) > max_age {
                return oldest;
            }
        }
        let (best, streams) = self.compare(t, reached);
        if streams || best.shared {
            return self.compare_all(t, reached);
        }
        best.index
    }

    /// Compares the requests by seek and rotation alone; whether the stream may reach any.
    // By itself, so that its loop has the registers for itself.
    #[inline(never)]
    fn compare(&self, t: u64, reached: (u64, u64)) -> (Best, bool) {
        if self.queue.latest <= t {
            // The drive's processor is through with all of them, as mostly.
            self.compare_by(t, reached, |_| 0)
        } else {
            self.compare_by(t, reached, |near| late(near, t))
        }
    }

    #[inline(always)]
    fn compare_by(
        &self,
        t: u64,
        (from, span): (u64, u64),
        late: impl Fn(&Near) -> u64,
    ) -> (Best, bool) {
        let angle = self.spindle.angle(t);
        let (mut best, mut streams) = (Best::NONE, false);
        for (index, near) in self.queue.near.iter().enumerate() {
            streams |= near.lba.wrapping_sub(from) < span;
            best.add(self.reach(near, late(near), angle), index);
        }
        (best, streams)
    }

    /// Compares them when the stream may reach some, or when some are reached at the same time, both
    /// of which are few. Of equal ones the oldest.
    #[cold]
    fn compare_all(&mut self, t: u64, (from, span): (u64, u64)) -> usize {
        let angle = self.spindle.angle(t);
        let mut best = (u64::MAX, u64::MAX, 0);
        for index in 0..self.queue.near.len() {
            let near = self.queue.near[index];
            let mut cost = None;
            if near.lba.wrapping_sub(from) < span {
                let waiting = *self.queue.waiting(index);
                let ahead = self.stream_reach(&waiting, t.max(near.ready));
                let late = self.spindle.units(near.ready.saturating_sub(t));
                cost = ahead.map(|ahead| late.saturating_add(ahead));
            }
            let cost = cost.unwrap_or_else(|| self.reach(&near, late(&near, t), angle));
            best = best.min((cost, near.age, index));
        }
        best.2
    }

    /// Angle that passes until the first sector of a request is there, with `angle` under the heads now
    /// and the drive's processor through with the request `late` nanoseconds from now.
    #[inline(always)]
    fn reach(&self, near: &Near, late: u64, angle: u64) -> u64 {
        let seek = self.move_nanos((near.cylinder, near.head), near.write);
        let least = self.spindle.turned(late + seek);
        // The first time from `least` on that the sector's angle comes round.
        let gap = self.spindle.gap(angle, near.angle);
        let missing = least.saturating_sub(gap + self.spindle.tolerance());
        let turns = missing + (REVOLUTION - 1);
        gap + turns / REVOLUTION * REVOLUTION
    }
}

/// How long after `t` the drive's processor is through with a request.
#[inline]
fn late(near: &Near, t: u64) -> u64 {
    near.ready.saturating_sub(t).min(LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::disk::DiskModel;
    use raidlab_core::rng::Stream;
    use std::sync::Arc;

    /// Compared one by one in the order of arrival, as the words have it.
    #[test]
    fn the_soonest_of_the_oldest_is_picked() {
        let DiskModel::Hdd(model) = catalogue::find("ST3000DM001").expect("a model").disk else {
            panic!("a hard disk");
        };
        let (mut hdd, numbers) = (Hdd::new(Arc::clone(&model), 3), Stream::new(5));
        let window = model.spec.queue.window as usize;
        assert!(window > 1);
        let (mut waiting, mut t, mut late) = (Vec::new(), 0, 0);
        for i in 0..3000 {
            while waiting.len() < 2 * window {
                let n = 1000 * i + waiting.len() as u64;
                let lba = numbers.below(n, model.spec.sectors - 8) / 8 * 8;
                let mut request = hdd.waiting(n, lba, 8, t, n.is_multiple_of(3));
                // The processor is not through with some of every other hundred.
                if i / 100 % 2 == 1 {
                    request.ready = t + numbers.below(n, 1_000_000_000);
                }
                hdd.queue.push(&request);
                waiting.push(request);
            }
            let angle = hdd.spindle.angle(t);
            let cost = |w: &Waiting| {
                let seek = hdd.move_nanos((w.place.cylinder, w.place.head), w.write);
                let arrived = hdd.spindle.units(seek + w.ready.saturating_sub(t));
                let gap = hdd.spindle.gap(angle, w.place.angle);
                let mut wait = gap;
                while wait + hdd.spindle.tolerance() < arrived {
                    wait += REVOLUTION;
                }
                wait
            };
            let best = if t - waiting[0].since > model.spec.queue.max_age.0 {
                0
            } else {
                (0..window)
                    .min_by_key(|&i| cost(&waiting[i]))
                    .expect("some")
            };
            let expected = waiting.remove(best);
            late += u64::from(hdd.queue.latest > t);
            let picked = hdd.pick(t);
            assert_eq!(picked.id, expected.id, "pick {i}");
            (hdd.cylinder, hdd.head) = (picked.place.cylinder, picked.place.head);
            t += 7_000_000 + numbers.below(i, 9_000_000);
        }
        assert!((500..2900).contains(&late), "{late}");
        let left: Vec<u64> = waiting.iter().map(|w| w.id).collect();
        assert_eq!(hdd.queue.drain(), left);
        assert!(hdd.queue.is_empty());
    }
}
