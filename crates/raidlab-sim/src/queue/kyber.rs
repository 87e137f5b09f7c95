//! kyber: each kind of request may have a number of tokens in the device, and the numbers follow the
//! latencies that are seen. `block/kyber-iosched.c`, since 4.12 (percentiles since 4.20, taken for
//! all). In order of arrival within a kind.
use super::store::{NIL, Rq, Store};
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};

/// Reads and writes: `kyber_depth` 256 and 128, `kyber_batch_size` 16 and 8.
const TOKENS: [u32; 2] = [256, 128];
const BATCH: [u32; 2] = [16, 8];
/// `kyber_latency_targets`: 2 ms for reads, 10 ms for writes.
const TARGET: [Span; 2] = [Span::from_millis(2), Span::from_millis(10)];
/// How often the tokens are looked at (`HZ / 10`).
const PERIOD: Span = Span::from_millis(100);
/// Buckets of a quarter of the target: four good ones, four bad ones (`KYBER_LATENCY_SHIFT` 2).
const BUCKETS: usize = 8;
const GOOD: usize = 4;
/// Samples that make a percentile (500), unless the first came a second ago.
const SAMPLES: u32 = 500;
const PATIENCE: Span = Span::from_secs(1);

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Latency that reads and writes should keep below.
    pub target: [Span; 2],
}

impl Default for Tunables {
    fn default() -> Self {
        Self { target: TARGET }
    }
}

/// Latencies counted by quarter of the target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    counts: [u32; BUCKETS],
    samples: u32,
    since: u64,
}

impl Histogram {
    fn add(&mut self, now: u64, latency: u64, target: u64) {
        if self.samples == 0 {
            self.since = now;
        }
        let bucket = latency.saturating_sub(1) / (target / GOOD as u64).max(1);
        self.counts[(bucket as usize).min(BUCKETS - 1)] += 1;
        self.samples += 1;
    }

    /// The bucket of the percentile, after which counting starts anew; `None` with too few samples.
    fn take(&mut self, now: u64, percent: u32) -> Option<usize> {
        if self.samples == 0 || (self.samples < SAMPLES && now < self.since + PATIENCE.0) {
            return None;
        }
        let mut rank = (u64::from(self.samples) * u64::from(percent)).div_ceil(100);
        let mut bucket = 0;
        while bucket < BUCKETS - 1 && u64::from(self.counts[bucket]) < rank {
            rank -= u64::from(self.counts[bucket]);
            bucket += 1;
        }
        *self = Self::default();
        Some(bucket)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Kyber {
    with: Tunables,
    allowed: [u32; 2],
    used: [u32; 2],
    class: usize,
    batched: u32,
    look_at: u64,
    /// From coming in to the end, and in the device alone.
    total: [Histogram; 2],
    device: [Histogram; 2],
    remembered: [Option<usize>; 2],
}

impl Kyber {
    pub(super) fn new(with: Tunables) -> Self {
        Self {
            with,
            allowed: TOKENS,
            used: [0; 2],
            class: 0,
            batched: 0,
            look_at: 0,
            total: Default::default(),
            device: Default::default(),
            remembered: [None; 2],
        }
    }

    #[inline]
    pub(super) fn class(kind: BlockKind) -> u16 {
        u16::from(kind != BlockKind::Read)
    }

    /// The request to be given out now; [`NIL`] when there are no tokens for those that wait.
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        self.look(now);
        if self.batched < BATCH[self.class] {
            let slot = self.take(store);
            if slot != NIL {
                return slot;
            }
        }
        // A new batch, of the next kind that has requests and tokens.
        self.batched = 0;
        for _ in 0..2 {
            self.class = 1 - self.class;
            let slot = self.take(store);
            if slot != NIL {
                return slot;
            }
        }
        NIL
    }

    fn take(&mut self, store: &Store) -> u32 {
        if self.used[self.class] >= self.allowed[self.class] {
            return NIL;
        }
        let slot = store.oldest(self.class as u16);
        if slot != NIL {
            self.used[self.class] += 1;
            self.batched += 1;
        }
        slot
    }

    /// The device has ended a request.
    pub(super) fn ended(&mut self, now: Instant, rq: &Rq) {
        let class = usize::from(rq.class);
        self.used[class] -= 1;
        let target = self.with.target[class].0;
        self.total[class].add(now.0, now.0 - rq.since, target);
        self.device[class].add(now.0, now.0 - rq.started, target);
        if self.look_at == 0 {
            self.look_at = now.0 + PERIOD.0;
        }
        self.look(now);
    }

    /// Sets the tokens when it is time to.
    fn look(&mut self, now: Instant) {
        if self.look_at == 0 || now.0 < self.look_at {
            return;
        }
        self.look_at = 0;
        // The device is congested when a tenth of the requests of a kind take longer in it than they
        // should.
        let mut congested = false;
        for class in 0..2 {
            let p90 = self.device[class].take(now.0, 90);
            congested |= p90.is_some_and(|bucket| bucket >= GOOD);
        }
        for (class, &most) in TOKENS.iter().enumerate() {
            let mut p99 = self.total[class].take(now.0, 99);
            if congested {
                // What was seen last counts once.
                p99 = p99.or(self.remembered[class]);
                self.remembered[class] = None;
            } else if p99.is_some() {
                self.remembered[class] = p99;
            }
            let Some(bucket) = p99 else {
                continue;
            };
            if congested || bucket >= GOOD {
                let scaled = self.allowed[class] * (bucket as u32 + 1) / GOOD as u32;
                self.allowed[class] = scaled.clamp(1, most);
            }
        }
    }

    /// Tokens of reads and writes.
    #[cfg(test)]
    pub(super) fn allowed(&self) -> [u32; 2] {
        self.allowed
    }
}
