//! The stripe cache: rows of 4 KiB across the members, in bands.
//!
//! md keeps a stripe for each row. Rows of one chunk that are touched alike behave alike, so they are
//! one [`Band`] here; a request that touches only some of its rows splits it, and idle neighbours that
//! know the same are joined. The size of the cache still counts rows.
mod band;

pub(super) use self::band::{Band, Phase, Purpose};
use raidlab_layout::MemberSet;

/// No band, no waiter.
pub(super) const NONE: u32 = u32::MAX;
/// Sectors of a row on one member: a page.
pub(super) const ROW: u32 = 8;
/// Rows that the cache grows to at most: 4 MiB of each member. The kernel's grows until memory runs short, a row for each time
/// that it is found full. Assumed: twelve disks of 24 TB are rebuilt at 271.7 MiB/s with so many rows and at 270 with four times as
/// many, when no limit holds the rebuild back; what others get beside it was not compared.
pub(super) const MOST_ROWS: u32 = 1024;

/// What is at some row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This band.
    Band(u32),
    /// Nothing up to this sector of the chunk.
    Gap(u32),
}

/// The bands.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    bands: Vec<Band>,
    free: Vec<u32>,
    /// First band of each bucket; a bucket holds all bands of its stripes.
    buckets: Vec<u32>,
    oldest: u32,
    newest: u32,
    idle_rows: u32,
    used_rows: u32,
    rows: u32,
    /// It has grown, and nothing has become free since.
    grown: bool,
    /// It keeps its size.
    keeps: bool,
    /// Rows in a request to a member at most.
    request: u32,
    /// A row is kept for a resync.
    kept: bool,
}

impl Cache {
    pub(super) fn new(rows: u32) -> Self {
        Self {
            bands: Vec::new(),
            free: Vec::new(),
            buckets: vec![NONE; (rows as usize * 2).next_power_of_two()],
            oldest: NONE,
            newest: NONE,
            idle_rows: 0,
            used_rows: 0,
            rows,
            grown: false,
            keeps: false,
            request: u32::MAX,
            kept: false,
        }
    }

    #[inline]
    pub(super) fn get(&self, band: u32) -> &Band {
        &self.bands[band as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, band: u32) -> &mut Band {
        &mut self.bands[band as usize]
    }

    /// Rows that could be had.
    #[inline]
    pub(super) const fn available(&self) -> u32 {
        self.rows - (self.used_rows - self.idle_rows)
    }

    /// Keeps a row for a resync; there must be room.
    pub(super) fn keep_row(&mut self) {
        self.make_room(1);
        self.used_rows += 1;
        self.kept = true;
    }

    /// Keeps it no longer; whether it did.
    pub(super) const fn take_kept(&mut self) -> bool {
        let kept = self.kept;
        self.kept = false;
        self.used_rows -= kept as u32;
        kept
    }

    /// It was found too small, and holds a row more from now on; only one until something has become free (`R5_ALLOC_MORE`,
    /// `R5_DID_ALLOC`).
    pub(super) fn grow(&mut self) {
        let most = self.keeps || self.rows >= MOST_ROWS;
        if most || std::mem::replace(&mut self.grown, true) {
            return;
        }
        self.rows += 1;
        if self.rows as usize > self.buckets.len() {
            self.spread();
        }
    }

    /// Keeps its size from now on, or no longer.
    pub(super) const fn keep(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Rows that it holds at most.
    pub(super) const fn rows(&self) -> u32 {
        self.rows
    }

    /// Doubles the buckets.
    fn spread(&mut self) {
        let buckets = vec![NONE; self.buckets.len() * 2];
        let keys: Vec<u32> = std::mem::replace(&mut self.buckets, buckets);
        for mut key in keys {
            while key != NONE {
                let (stripe, next) = (self.get(key).stripe, self.get(key).chain);
                let bucket = self.bucket(stripe);
                self.get_mut(key).chain = self.buckets[bucket];
                self.buckets[bucket] = key;
                key = next;
            }
        }
    }

    /// Most rows of one band: a quarter of the cache, so that several fit, and what a member takes in a request.
    pub(super) fn most_rows(&self) -> u32 {
        (self.rows / 4).min(self.request).max(1)
    }

    /// Rows that a member takes in a request, where that is limited.
    pub(super) fn request(&self) -> Option<u32> {
        (self.request < u32::MAX).then_some(self.request)
    }

    /// A member takes so many rows in a request.
    pub(super) fn limit(&mut self, rows: u32) {
        self.request = rows;
    }

    #[inline]
    fn bucket(&self, stripe: u64) -> usize {
        raidlab_core::rng::mix(stripe) as usize & (self.buckets.len() - 1)
    }

    /// What is at `from`, looking no further than `to`.
    #[inline]
    pub(super) fn find(&self, stripe: u64, from: u32, to: u32) -> Found {
        let mut gap = to;
        let mut at = self.buckets[self.bucket(stripe)];
        while at != NONE {
            let band = &self.bands[at as usize];
            if band.stripe == stripe && band.to > from {
                if band.from <= from {
                    return Found::Band(at);
                }
                gap = gap.min(band.from);
            }
            at = band.chain;
        }
        Found::Gap(gap)
    }

    /// A band for rows that have none; there must be room. It is not idle.
    pub(super) fn insert(&mut self, stripe: u64, from: u32, to: u32, parity: MemberSet) -> u32 {
        let empty = MemberSet::EMPTY;
        self.make_room((to - from) / ROW);
        self.place(Band {
            stripe,
            from,
            to,
            phase: Phase::Delayed,
            preread: false,
            queued: false,
            fua: false,
            sync: false,
            bad: empty,
            parity,
            cached: empty,
            full: empty,
            part: empty,
            want: empty,
            moving: empty,
            flight: 0,
            readers: NONE,
            writers: NONE,
            current: NONE,
            syncers: NONE,
            chain: NONE,
            older: NONE,
            newer: NONE,
        })
    }

    /// Puts a band where it is found. Its rows count as used.
    pub(super) fn place(&mut self, mut band: Band) -> u32 {
        let bucket = self.bucket(band.stripe);
        band.chain = self.buckets[bucket];
        self.used_rows += band.rows();
        let key = if let Some(key) = self.free.pop() {
            self.bands[key as usize] = band;
            key
        } else {
            self.bands.push(band);
            (self.bands.len() - 1) as u32
        };
        self.buckets[bucket] = key;
        key
    }

    /// Forgets a band that is in no list.
    pub(super) fn remove(&mut self, key: u32) {
        let (stripe, chain) = (self.get(key).stripe, self.get(key).chain);
        self.used_rows -= self.get(key).rows();
        let bucket = self.bucket(stripe);
        let mut at = self.buckets[bucket];
        if at == key {
            self.buckets[bucket] = chain;
        } else {
            while self.get(at).chain != key {
                at = self.get(at).chain;
            }
            self.get_mut(at).chain = chain;
        }
        self.free.push(key);
    }

    /// Forgets what was not used for longest, until so many rows are free.
    fn make_room(&mut self, rows: u32) {
        while self.rows - self.used_rows < rows {
            let lacks = rows - (self.rows - self.used_rows);
            let oldest = self.oldest;
            debug_assert!(oldest != NONE, "the caller looked for room");
            if self.get(oldest).rows() > lacks {
                self.get_mut(oldest).from += lacks * ROW;
                (self.idle_rows, self.used_rows) = (self.idle_rows - lacks, self.used_rows - lacks);
            } else {
                self.wake(oldest);
                self.remove(oldest);
            }
        }
    }

    /// A band has nothing to do: it becomes the last to be forgotten, joined with neighbours that
    /// know the same.
    pub(super) fn rest(&mut self, mut key: u32) {
        self.grown = false;
        self.get_mut(key).phase = Phase::Idle;
        self.push_newest(key);
        let band = *self.get(key);
        if band.from > 0
            && let Found::Band(left) = self.find(band.stripe, band.from - ROW, band.from)
        {
            key = self.join(left, key);
        }
        if let Found::Band(right) = self.find(band.stripe, band.to, band.to + ROW) {
            self.join(key, right);
        }
    }

    /// Joins two neighbouring bands when both are idle and alike; the one that is left.
    fn join(&mut self, left: u32, right: u32) -> u32 {
        let (l, r) = (*self.get(left), *self.get(right));
        let alike = l.cached == r.cached;
        let idle = l.phase == Phase::Idle && r.phase == Phase::Idle;
        if !alike || !idle || l.rows() + r.rows() > self.most_rows() {
            return right;
        }
        self.wake(left);
        self.wake(right);
        self.remove(right);
        self.used_rows += r.rows();
        self.get_mut(left).to = r.to;
        self.push_newest(left);
        left
    }

    fn push_newest(&mut self, key: u32) {
        let newest = self.newest;
        let band = self.get_mut(key);
        (band.older, band.newer) = (newest, NONE);
        let rows = band.rows();
        if newest == NONE {
            self.oldest = key;
        } else {
            self.get_mut(newest).newer = key;
        }
        self.newest = key;
        self.idle_rows += rows;
    }

    /// A band is idle no longer.
    pub(super) fn wake(&mut self, key: u32) {
        let Band { older, newer, .. } = *self.get(key);
        self.idle_rows -= self.get(key).rows();
        if older == NONE {
            self.oldest = newer;
        } else {
            self.get_mut(older).newer = newer;
        }
        if newer == NONE {
            self.newest = older;
        } else {
            self.get_mut(newer).older = older;
        }
    }

    /// Cuts a band that is not in flight at `at`, which lies within it: the key stays with the rows
    /// before, the new one has those from `at` on. Lists of waiters are the caller's to double.
    pub(super) fn cut(&mut self, key: u32, at: u32) -> u32 {
        let idle = self.get(key).phase == Phase::Idle;
        if idle {
            self.wake(key);
        }
        let mut upper = *self.get(key);
        upper.from = at;
        self.used_rows -= upper.rows();
        self.get_mut(key).to = at;
        let new = self.place(upper);
        if idle {
            self.push_newest(key);
            self.push_newest(new);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether sectors `from..to` of `stripe` are in the cache.
    fn holds(cache: &Cache, stripe: u64, from: u32) -> bool {
        matches!(cache.find(stripe, from, from + ROW), Found::Band(_))
    }

    #[test]
    fn the_least_recently_used_rows_go_first_and_no_more_than_needed() {
        let mut cache = Cache::new(32);
        for stripe in 0..4 {
            let band = cache.insert(stripe, 0, 64, MemberSet::EMPTY);
            cache.rest(band);
        }
        assert_eq!(cache.available(), 32);
        cache.insert(9, 0, 16, MemberSet::EMPTY);
        assert_eq!(cache.available(), 30);
        assert!(!holds(&cache, 0, 8) && holds(&cache, 0, 16) && holds(&cache, 1, 0));
        cache.insert(10, 0, 64, MemberSet::EMPTY);
        assert!(!holds(&cache, 0, 56) && !holds(&cache, 1, 8) && holds(&cache, 1, 16));
        assert_eq!(cache.available(), 22);
    }

    #[test]
    fn what_is_in_it_is_found_when_it_has_grown() {
        let mut cache = Cache::new(17);
        for stripe in 0..300 {
            let band = cache.insert(stripe, 0, 8, MemberSet::EMPTY);
            // Nothing has become free: no second row.
            cache.grow();
            cache.grow();
            cache.rest(band);
        }
        assert_eq!((cache.rows(), cache.available()), (317, 317));
        assert!((0..300).all(|stripe| holds(&cache, stripe, 0)));
    }

    #[test]
    fn idle_neighbours_that_know_the_same_are_one() {
        let mut cache = Cache::new(64);
        for row in [0, 2, 1] {
            let band = cache.insert(3, row * ROW, (row + 1) * ROW, MemberSet::EMPTY);
            cache.rest(band);
        }
        let Found::Band(band) = cache.find(3, 8, 16) else {
            panic!("the row is known");
        };
        assert_eq!((cache.get(band).from, cache.get(band).to), (0, 24));
        let upper = cache.cut(band, 16);
        assert_eq!((cache.get(band).to, cache.get(upper).from), (16, 16));
        assert_eq!(cache.available(), 64);
        cache.wake(upper);
        assert_eq!(cache.available(), 63);
        assert_eq!(cache.find(3, 24, 80), Found::Gap(80));
    }
}
