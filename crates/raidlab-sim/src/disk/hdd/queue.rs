//! The requests that wait for the arm, and which of them it serves next.
//!
//! Those that the drive compares stand in no order, so that taking one out moves a single entry; each
//! has a number that says how old it is, and the rest of it stays where it is. They are compared by [bounds](rough) first, without a
//! branch that depends on the data: at five requests, mispredicted branches would cost more than all the arithmetic. Only when
//! the bounds do not tell are they compared exactly.
use super::{Hdd, Waiting};
use crate::disk::rotation::REVOLUTION;
use crate::disk::rough::{self, Lowest};
use std::collections::VecDeque;

/// Lateness that is told apart when requests are compared, in nanoseconds: five hours. Keeps every
/// cost below 2^63.
const LATEST: u64 = 1 << 44;

/// What is needed of a request to compare it with others roughly.
#[derive(Clone, Copy, Debug)]
struct Near {
    cylinder: u32,
    /// Its angle, and what its bound begins later by, in [parts](rough::parts) of a turn.
    parts: u32,
    settling: u32,
    /// Where the rest of it is.
    place: u32,
}

/// The rest.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Lower is older.
    age: u64,
    waiting: Waiting,
}

/// The requests that wait for the arm.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    near: Vec<Near>,
    /// The rest of these requests, and places that are free.
    places: Vec<Rest>,
    free: Vec<u32>,
    /// Those that came too late to be compared, the oldest first; all of them in a drive that compares none.
    later: VecDeque<Waiting>,
    size: usize,
    /// What the bound of a write begins later by, in parts of a turn.
    settling: u32,
    count: u64,
    /// No request is compared since before this time.
    since: u64,
    /// The drive's processor is through with all that were ever compared by this time.
    latest: u64,
}

impl Queue {
    /// An empty queue of a drive that compares the `window` oldest, and writes' bounds with [`settling`](Self::settling).
    pub(super) fn new(window: u32, settling: u32) -> Self {
        Self {
            // Of one alone there is nothing to compare.
            size: if window > 1 { window as usize } else { 0 },
            settling,
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
        let rest = Rest {
            age: self.count,
            waiting: *waiting,
        };
        let place = if let Some(place) = self.free.pop() {
            self.places[place as usize] = rest;
            place
        } else {
            self.places.push(rest);
            (self.places.len() - 1) as u32
        };
        self.near.push(Near {
            cylinder: waiting.place.cylinder,
            parts: rough::parts(waiting.place.angle),
            settling: if waiting.write { self.settling } else { 0 },
            place,
        });
        self.count += 1;
        self.latest = self.latest.max(waiting.ready);
    }

    /// Takes out one of those that are compared, at `t`.
    #[inline(always)]
    fn remove(&mut self, index: usize, t: u64) -> Waiting {
        let place = self.near.swap_remove(index).place;
        let waiting = self.places[place as usize].waiting;
        self.free.push(place);
        if !self.later.is_empty() {
            self.admit_later(t);
        }
        waiting
    }

    /// The oldest of those that are not compared is from `t` on, and only then can be passed over. To count what it
    /// has waited before would make all of them too old at once when the drive is given more than it serves in that time,
    /// and it would not sort any more.
    fn admit_later(&mut self, t: u64) {
        let next = self.remove_later();
        self.admit(&Waiting { since: t, ..next });
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
        let ages = self.near.iter().map(|near| self.rest(near).age);
        let oldest = ages.zip(0..).min().map_or(0, |(_, index)| index);
        self.since = self.rest(&self.near[oldest]).waiting.since;
        oldest
    }

    #[inline]
    fn rest(&self, near: &Near) -> &Rest {
        &self.places[near.place as usize]
    }

    /// Empties it: the numbers of the requests, the oldest first.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        let mut near: Vec<&Rest> = self.near.iter().map(|near| self.rest(near)).collect();
        near.sort_unstable_by_key(|rest| rest.age);
        let near = near.into_iter().map(|rest| rest.waiting.id);
        let ids = near.chain(self.later.iter().map(|w| w.id)).collect();
        self.near.clear();
        self.places.clear();
        self.free.clear();
        self.later.clear();
        ids
    }
}

impl Hdd {
    /// Takes out the request to serve from time `t` on: the oldest when others have been preferred for too long or the
    /// drive does not reorder, else the one among the window that is reached soonest (shortest
    /// positioning time first), the older one of two. Some request must wait.
    #[inline(always)]
    pub(super) fn pick(&mut self, t: u64) -> Waiting {
        let index = match self.queue.near.len() {
            0 => return self.queue.remove_later(),
            1 => 0,
            _ => self.pick_among(t),
        };
        self.queue.remove(index, t)
    }

    /// Which of several.
    #[inline]
    fn pick_among(&mut self, t: u64) -> usize {
        let max_age = self.model.spec.queue.max_age.0;
        if t.saturating_sub(self.queue.since) > max_age {
            let oldest = self.queue.oldest();
            if t.saturating_sub(self.queue.since) > max_age {
                return oldest;
            }
        }
        let Some(soonest) = self.soonest(t) else {
            return self.compare(t);
        };
        debug_assert_eq!(soonest, self.compare(t), "bounds pick another one");
        soonest
    }

    /// The one whose bound tells that it is reached first. `None` when bounds do not tell, which is seldom: when the
    /// stream may reach one, when two are reached at nearly the same time, and when whether a sector is
    /// reached in this turn or the next depends on a little.
    // By itself, so that its loop has the registers for itself.
    #[inline(never)]
    fn soonest(&self, t: u64) -> Option<usize> {
        // Bounds leave out that the drive's processor may not be through with a request, and tell nothing
        // of those that a stream reaches within a segment.
        if self.queue.latest > t || (self.stream.active && self.stream.long) {
            return None;
        }
        let rough = &self.model.rough;
        let begin = rough.begin(self.spindle.passed(t));
        let bound = |near: &Near| {
            let way = (self.cylinder, near.cylinder);
            rough.bound(begin, way, near.parts, near.settling)
        };
        let mut lowest = Lowest::NONE;
        for (index, near) in self.queue.near.iter().enumerate() {
            lowest.add(&bound(near), index);
        }
        let index = lowest.index();
        let sure = lowest.is_apart() && rough.is_sure(&bound(&self.queue.near[index]));
        sure.then_some(index)
    }

    /// Compares them exactly. Of equal ones the oldest.
    ///
    /// Whoever leaves a stream for what came later has to come back to what the stream would have reached, a turn later at the
    /// least: so much more that costs. Without it a drive would jump over each gap of a stream, such as the parity on a member of RAID5.
    #[cold]
    fn compare(&mut self, t: u64) -> usize {
        let angle = self.spindle.angle(t);
        let streamed = self.oldest_in_stream(t);
        let mut best = (u64::MAX, u64::MAX, 0);
        for index in 0..self.queue.near.len() {
            let Rest { age, waiting } = *self.queue.rest(&self.queue.near[index]);
            let ahead = self.stream_reach(&waiting, t.max(waiting.ready));
            let cost = match ahead {
                Some(ahead) => {
                    let late = self.spindle.units(waiting.ready.saturating_sub(t));
                    late.saturating_add(ahead)
                }
                None => self.reach(&waiting, t, angle) + u64::from(age > streamed) * REVOLUTION,
            };
            best = best.min((cost, age, index));
        }
        best.2
    }

    /// Age of the oldest request that a stream which goes on will reach; later than any when there is none.
    fn oldest_in_stream(&mut self, t: u64) -> u64 {
        if !(self.stream.active && self.stream.long) {
            return u64::MAX;
        }
        let mut oldest = u64::MAX;
        for index in 0..self.queue.near.len() {
            let Rest { age, waiting } = *self.queue.rest(&self.queue.near[index]);
            if age < oldest && self.stream_reach(&waiting, t.max(waiting.ready)).is_some() {
                oldest = age;
            }
        }
        oldest
    }

    /// Angle that passes from time `t`, with `angle` under the heads, until the first sector of a request is there.
    #[inline]
    fn reach(&self, waiting: &Waiting, t: u64, angle: u64) -> u64 {
        let place = &waiting.place;
        let late = waiting.ready.saturating_sub(t).min(LATEST);
        let seek = self.move_nanos((place.cylinder, place.head), waiting.write);
        let least = self.spindle.turned(late + seek);
        // The first time from `least` on that the sector's angle comes round.
        let gap = self.spindle.gap(angle, place.angle);
        let missing = least.saturating_sub(gap + self.spindle.tolerance());
        let turns = missing + (REVOLUTION - 1);
        gap + turns / REVOLUTION * REVOLUTION
    }
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
        let (mut waiting, mut t, mut late, mut by_bounds) = (Vec::new(), 0, 0, 0);
        let mut aged = 0;
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
            waiting[window - 1].since = t;
            late += u64::from(hdd.queue.latest > t);
            by_bounds += u64::from(hdd.soonest(t).is_some());
            let picked = hdd.pick(t);
            assert_eq!(picked.id, expected.id, "pick {i}");
            aged += u64::from(best == 0 && t - picked.since > model.spec.queue.max_age.0);
            (hdd.cylinder, hdd.head) = (picked.place.cylinder, picked.place.head);
            t += 7_000_000 + numbers.below(i, 9_000_000);
        }
        assert!((500..2900).contains(&late), "{late}");
        // Of those with which the processor is through nearly all.
        assert!(by_bounds * 10 > (3000 - late) * 9, "{by_bounds} of {late}");
        assert!(aged > 0, "none was passed over for too long");
        let left: Vec<u64> = waiting.iter().map(|w| w.id).collect();
        assert_eq!(hdd.queue.drain(), left);
        assert!(hdd.queue.is_empty());
    }
}
