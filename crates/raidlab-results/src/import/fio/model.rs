//! The parts of fio's JSON that are used. Unknown members are skipped, so that versions before and
//! after 3.33 are read too.
use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

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
    /// Milliseconds.
    #[serde(default)]
    pub(super) job_runtime: u64,
    #[serde(default)]
    pub(super) usr_cpu: f64,
    #[serde(default)]
    pub(super) sys_cpu: f64,
    pub(super) hostname: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Direction {
    #[serde(default)]
    pub(super) io_bytes: u64,
    /// Bytes a second; from version 3 on.
    pub(super) bw_bytes: Option<f64>,
    /// KiB a second.
    #[serde(default)]
    pub(super) bw: f64,
    #[serde(default)]
    pub(super) iops: f64,
    /// Milliseconds.
    #[serde(default)]
    pub(super) runtime: u64,
    #[serde(default)]
    pub(super) total_ios: u64,
    pub(super) lat_ns: Option<Latency>,
    pub(super) clat_ns: Option<Latency>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Latency {
    #[serde(default)]
    pub(super) max: u64,
    #[serde(default)]
    pub(super) mean: f64,
    #[serde(rename = "N", default)]
    pub(super) n: u64,
    #[serde(default)]
    pub(super) percentile: Pairs,
    /// Counts by the middle of their bucket in nanoseconds; JSON+ only.
    #[serde(default)]
    pub(super) bins: Pairs,
}

/// An object whose names are numbers: percentiles or the middles of buckets.
#[derive(Debug, Default)]
pub(super) struct Pairs(pub(super) Vec<(f64, u64)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers with numbers as names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, u64>()? {
                    let number = name
                        .parse::<f64>()
                        .ok()
                        .filter(|n| (0.0..1e19).contains(n))
                        .ok_or_else(|| de::Error::custom(format!("'{name}' is no number")))?;
                    pairs.push((number, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl Latency {
    pub(super) fn has_distribution(&self) -> bool {
        self.n > 0 && !(self.percentile.0.is_empty() && self.bins.0.is_empty())
    }

    pub(super) fn percentile(&self, percent: f64) -> Option<u64> {
        let same = |p: &&(f64, u64)| (p.0 - percent).abs() < 1e-6;
        self.percentile.0.iter().find(same).map(|(_, ns)| *ns)
    }
}
