//! The parts of fio's JSON that are used. Unknown members are skipped, so that versions before and
//! after 3.33 are read too.
//!
//! What a member means has changed with the versions, and the names tell which it is: `io_bytes` are
//! KiB up to 2.20 and bytes where `io_kbytes` stands beside them (from 2.21 on); times are whole
//! microseconds in `clat` and `lat` (to 2.21) and nanoseconds in `clat_ns` and `lat_ns` (from 2.99
//! on); `bw_bytes` came with 3.2, a latency's `N` with 3.18, `total_ios` with 2.1.14 and
//! `job_runtime` with 3.8.
use super::progress::{Counters, Moved};
use raidlab_core::units::KIB;
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

#[derive(Debug, Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    /// Seconds since 1970 at the end of the run.
    pub(super) timestamp: Option<u64>,
    pub(super) timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    pub(super) global: BTreeMap<String, String>,
    pub(super) jobs: Option<Vec<Job>>,
    pub(super) client_stats: Option<Vec<Job>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) jobname: String,
    #[serde(default)]
    pub(super) groupid: u64,
    #[serde(default)]
    pub(super) error: i64,
    #[serde(rename = "job options", default)]
    pub(super) options: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) read: Direction,
    #[serde(default)]
    pub(super) write: Direction,
    #[serde(default)]
    pub(super) trim: Direction,
    /// All directions together (`unified_rw_reporting`): instead of them, or beside them.
    #[serde(default)]
    pub(super) mixed: Direction,
    /// Milliseconds.
    #[serde(default)]
    job_runtime: u64,
    #[serde(default)]
    pub(super) usr_cpu: f64,
    #[serde(default)]
    pub(super) sys_cpu: f64,
    pub(super) hostname: Option<String>,
    pub(super) port: Option<u64>,
    /// Seconds that fio had run, whatever the job; of versions that tell it.
    pub(super) elapsed: Option<u64>,
    /// When the job began, which only the latest versions tell.
    #[serde(default)]
    job_start: u64,
    #[serde(default)]
    ctx: u64,
    #[serde(default)]
    majf: u64,
    #[serde(default)]
    minf: u64,
}

impl Job {
    /// Milliseconds; of versions that do not tell it, the longest direction's. What is told of all
    /// clones together (`group_reporting`) is the sum of their times, which can be more than there were.
    pub(super) fn runtime(&self) -> u64 {
        let directions = [&self.read, &self.write, &self.trim, &self.mixed];
        let longest = directions.iter().map(|d| d.runtime).max().unwrap_or(0);
        let sum = directions.iter().map(|d| d.runtime);
        let sum = sum.fold(0_u64, u64::saturating_add);
        let most = self
            .elapsed
            .map_or(sum, |seconds| sum.min(seconds.saturating_mul(1000)));
        match self.job_runtime {
            0 => longest,
            told if told > most.saturating_add(1000) => longest,
            told => told,
        }
    }

    /// The value of an option, its own or one for all jobs.
    pub(super) fn option<'a>(
        &'a self,
        global: &'a BTreeMap<String, String>,
        option: &str,
    ) -> Option<&'a str> {
        let found = self.options.get(option).or_else(|| global.get(option));
        found.map(String::as_str)
    }

    /// How far it has come.
    pub(super) fn counters(&self) -> Counters {
        let directions = [&self.read, &self.write, &self.trim, &self.mixed];
        Counters {
            group: self.groupid,
            begun: self.job_start,
            directions: directions.map(Direction::moved).to_vec(),
            others: vec![self.ctx, self.majf, self.minf],
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Direction {
    #[serde(default)]
    io_bytes: u64,
    io_kbytes: Option<u64>,
    /// Bytes a second.
    pub(super) bw_bytes: Option<f64>,
    /// KiB a second.
    pub(super) bw: Option<f64>,
    #[serde(default)]
    pub(super) iops: f64,
    /// Milliseconds.
    #[serde(default)]
    pub(super) runtime: u64,
    pub(super) total_ios: Option<u64>,
    lat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    lat: Option<Latency>,
    clat: Option<Latency>,
}

impl Direction {
    pub(super) fn is_active(&self) -> bool {
        self.io_bytes > 0 || self.total_ios.is_some_and(|n| n > 0)
    }

    /// Whether `io_bytes` are KiB, in spite of their name: of no version that has one of the others.
    pub(super) fn is_in_kib(&self) -> bool {
        let later = self.lat_ns.is_some() || self.clat_ns.is_some();
        self.io_kbytes.is_none() && self.bw_bytes.is_none() && !later
    }

    /// Bytes moved; to a whole KiB below when [`Self::is_in_kib`].
    pub(super) fn bytes(&self) -> u64 {
        let scale = if self.is_in_kib() { KIB } else { 1 };
        self.io_bytes.saturating_mul(scale)
    }

    /// Bytes a second over the direction's time, to more digits than the whole KiB/s of `bw`.
    pub(super) fn rate(&self) -> f64 {
        match self.bw_bytes {
            Some(rate) => rate,
            None if self.runtime > 0 => self.bytes() as f64 * 1e3 / self.runtime as f64,
            None => self.bw.unwrap_or(0.0) * KIB as f64,
        }
    }

    fn moved(&self) -> Moved {
        let times = self.whole().or_else(|| self.completion());
        Moved {
            bytes: self.bytes(),
            runtime: self.runtime,
            ops: self.total_ios.unwrap_or(0),
            min: times.as_ref().map_or(0.0, |times| times.latency.min),
            max: times.as_ref().map_or(0.0, |times| times.latency.max),
            mean: times.as_ref().map_or(0.0, |times| times.latency.mean),
        }
    }

    /// Times of whole operations, from submission on.
    pub(super) fn whole(&self) -> Option<Times<'_>> {
        self.times(self.lat_ns.as_ref(), self.lat.as_ref())
    }

    /// Times of completion: without submission.
    pub(super) fn completion(&self) -> Option<Times<'_>> {
        self.times(self.clat_ns.as_ref(), self.clat.as_ref())
    }

    fn times<'a>(&self, ns: Option<&'a Latency>, us: Option<&'a Latency>) -> Option<Times<'a>> {
        let (latency, unit) = match (ns, us) {
            (Some(latency), _) => (latency, 1.0),
            (None, Some(latency)) => (latency, 1e3),
            (None, None) => return None,
        };
        // Versions that do not count the times have one of every operation; before those were
        // counted, bytes stand for how many there were.
        let n = latency.n.or(self.total_ios).unwrap_or(self.bytes());
        (n > 0 && latency.max > 0.0).then_some(Times { latency, unit, n })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    #[serde(default)]
    min: f64,
    #[serde(default)]
    max: f64,
    #[serde(default)]
    mean: f64,
    #[serde(rename = "N")]
    n: Option<u64>,
    #[serde(default)]
    percentile: Pairs<f64>,
    /// Counts by the middle of their bucket; JSON+ only.
    #[serde(default)]
    bins: Pairs<u64>,
}

/// Response times of one direction of a job, in nanoseconds whatever the version's unit is.
pub(super) struct Times<'a> {
    latency: &'a Latency,
    /// Nanoseconds in the version's unit.
    unit: f64,
    /// How many there are; where that is not told, in proportion to it.
    pub(super) n: u64,
}

impl Times<'_> {
    pub(super) fn has_distribution(&self) -> bool {
        self.has_bins() || !self.latency.percentile.pairs.is_empty()
    }

    pub(super) fn has_bins(&self) -> bool {
        // Up to 2.19 the buckets are numbered, and a layout of another fio cannot be known.
        let known = self
            .latency
            .bins
            .bits
            .is_none_or(|bits| bits == BUCKET_BITS);
        known && self.latency.bins.pairs.iter().any(|(_, count)| *count > 0)
    }

    pub(super) fn is_in_microseconds(&self) -> bool {
        self.unit > 1.0
    }

    pub(super) fn max(&self) -> f64 {
        self.latency.max * self.unit
    }

    pub(super) fn mean(&self) -> f64 {
        self.latency.mean * self.unit
    }

    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let same = |p: &&(f64, f64)| (p.0 - percent).abs() < 1e-6;
        let found = self.latency.percentile.pairs.iter().find(same);
        found.map(|(_, time)| time * self.unit)
    }

    /// Middles of buckets and counts.
    pub(super) fn bins(&self) -> impl Iterator<Item = (f64, u64)> + Clone {
        let bins = &self.latency.bins;
        let numbered = bins.bits.is_some();
        bins.pairs.iter().map(move |(name, count)| {
            let middle = if numbered {
                middle(*name as u64)
            } else {
                *name
            };
            (middle * self.unit, *count)
        })
    }
}

/// Buckets of a power of two, as a power of two: `FIO_IO_U_PLAT_BITS`.
const BUCKET_BITS: u64 = 6;

/// The middle of a bucket that is told by its number.
fn middle(number: u64) -> f64 {
    let buckets = 1 << BUCKET_BITS;
    if number < 2 * buckets {
        return number as f64;
    }
    let bits = ((number >> BUCKET_BITS) - 1).min(57) as i32;
    let width = 2_f64.powi(bits);
    (buckets as f64 + (number % buckets) as f64 + 0.5) * width
}

/// An object whose names are numbers: percentiles, or the middles or numbers of buckets.
#[derive(Debug)]
struct Pairs<T> {
    pairs: Vec<(f64, T)>,
    /// `FIO_IO_U_PLAT_BITS`, which stands among buckets that are numbered.
    bits: Option<T>,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self {
            pairs: Vec::new(),
            bits: None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers with numbers as names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut all = Pairs::default();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if let Some(layout) = name.strip_prefix("FIO_IO_U_PLAT_") {
                        if layout == "BITS" {
                            all.bits = Some(value);
                        }
                        continue;
                    }
                    let number = name
                        .parse::<f64>()
                        .ok()
                        .filter(|n| (0.0..1e19).contains(n))
                        .ok_or_else(|| de::Error::custom(format!("'{name}' is no number")))?;
                    all.pairs.push((number, value));
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(Object(PhantomData))
    }
}
