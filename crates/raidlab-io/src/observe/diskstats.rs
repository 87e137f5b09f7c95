//! Counters of block devices: `/proc/diskstats` (Linux `Documentation/admin-guide/iostats.rst`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use raidlab_core::units::SECTOR;
use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};
use super::roots::{DeviceNumber, Roots};

const FILE: &str = "/proc/diskstats";

/// One kind of request: how many, merged, sectors of 512 bytes, milliseconds summed over the requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounters {
    /// Requests completed.
    pub completed: u64,
    /// Requests merged into a neighbour before they were issued.
    pub merged: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Time spent by all requests, ms; a 32-bit counter in every kernel.
    pub time_ms: u64,
}

impl RequestCounters {
    /// Bytes transferred.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR)
    }

    fn since(&self, before: &Self, width: CounterWidth) -> Option<Self> {
        Some(Self {
            completed: width.difference(before.completed, self.completed)?,
            merged: width.difference(before.merged, self.merged)?,
            sectors: width.difference(before.sectors, self.sectors)?,
            time_ms: difference_32(before.time_ms, self.time_ms),
        })
    }
}

/// All counters of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Device number.
    pub number: DeviceNumber,
    /// Reads.
    pub read: RequestCounters,
    /// Writes.
    pub write: RequestCounters,
    /// Discards; `None` before Linux 4.18.
    pub discard: Option<RequestCounters>,
    /// Flush requests completed and their time in ms; `None` before Linux 5.5.
    pub flush: Option<(u64, u64)>,
    /// Requests in flight at this moment. `None` when the kernel's counter is off (a value below zero, which stacked
    /// drivers have been seen to show as 4294967295).
    pub in_flight: Option<u32>,
    /// Time with at least one request in flight, ms; 32 bits in every kernel.
    pub busy_ms: u64,
    /// Integral of in-flight over time, ms; 32 bits in every kernel.
    pub weighted_ms: u64,
}

/// How the kernel counts requests and sectors (`unsigned long`). The ms counters are 32 bits wide on all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterWidth {
    /// 32-bit kernel: a smaller value has wrapped.
    Bits32,
    /// 64-bit kernel: counters cannot wrap in practice, a smaller value means the device was made anew.
    Bits64,
}

impl CounterWidth {
    /// Of the running kernel, as far as the build tells.
    pub fn native() -> Self {
        if cfg!(target_pointer_width = "64") {
            Self::Bits64
        } else {
            Self::Bits32
        }
    }

    fn difference(self, before: u64, after: u64) -> Option<u64> {
        match self {
            Self::Bits64 => after.checked_sub(before),
            Self::Bits32 => Some(difference_32(before, after)),
        }
    }
}

/// Difference of counters of 32 bits.
fn difference_32(before: u64, after: u64) -> u64 {
    let modulus = 1u64 << 32;
    (after % modulus + modulus - before % modulus) % modulus
}

/// Counters of every device at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When it was taken.
    pub taken: Instant,
    /// By kernel name.
    pub devices: BTreeMap<String, DeviceCounters>,
}

impl Snapshot {
    /// Reads the counters now.
    ///
    /// # Errors
    /// When `/proc/diskstats` cannot be read or is malformed.
    pub fn take(roots: &Roots) -> Result<Self> {
        let text = roots.proc_text("diskstats")?;
        Ok(Self {
            taken: Instant::now(),
            devices: parse(&text)?,
        })
    }

    /// What happened on each device since `before`. Devices that came or went, or whose counters restarted, are not
    /// in it: ask with [`Difference::missing`]. What those that came were asked for is in [`Difference::come`].
    pub fn since(&self, before: &Self) -> Difference {
        let devices = self
            .devices
            .iter()
            .filter_map(|(name, now)| {
                let then = before.devices.get(name)?;
                Some((name.clone(), now.since(then, CounterWidth::native())?))
            })
            .collect();
        let new = |name: &&String| !before.devices.contains_key(*name);
        let come = self
            .devices
            .iter()
            .filter(|(name, _)| new(name))
            .filter_map(|(name, now)| {
                let nothing = DeviceCounters::nothing(now.number);
                Some((name.clone(), now.since(&nothing, CounterWidth::native())?))
            })
            .collect();
        Difference {
            wall: self.taken.saturating_duration_since(before.taken),
            devices,
            come,
        }
    }
}

impl DeviceCounters {
    /// Of a device that has just come.
    fn nothing(number: DeviceNumber) -> Self {
        Self {
            number,
            read: RequestCounters::default(),
            write: RequestCounters::default(),
            discard: None,
            flush: None,
            in_flight: None,
            busy_ms: 0,
            weighted_ms: 0,
        }
    }

    /// What happened since `before`; `None` when the device is another one or its counters restarted.
    pub fn since(&self, before: &Self, width: CounterWidth) -> Option<DeviceDifference> {
        if self.number != before.number {
            return None;
        }
        let discard = match (self.discard, before.discard) {
            (Some(now), Some(then)) => Some(now.since(&then, width)?),
            _ => None,
        };
        let flush = match (self.flush, before.flush) {
            (Some(now), Some(then)) => Some((
                width.difference(then.0, now.0)?,
                difference_32(then.1, now.1),
            )),
            _ => None,
        };
        Some(DeviceDifference {
            read: self.read.since(&before.read, width)?,
            write: self.write.since(&before.write, width)?,
            discard,
            flush,
            in_flight: self.in_flight,
            busy: Duration::from_millis(difference_32(before.busy_ms, self.busy_ms)),
            weighted: Duration::from_millis(difference_32(before.weighted_ms, self.weighted_ms)),
        })
    }
}

/// What one device did between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDifference {
    /// Reads.
    pub read: RequestCounters,
    /// Writes.
    pub write: RequestCounters,
    /// Discards.
    pub discard: Option<RequestCounters>,
    /// Flushes and their time in ms.
    pub flush: Option<(u64, u64)>,
    /// In flight at the end.
    pub in_flight: Option<u32>,
    /// Time with at least one request in flight.
    pub busy: Duration,
    /// Integral of in-flight over time; over the wall time it is the mean depth.
    pub weighted: Duration,
}

impl DeviceDifference {
    /// Requests of reads and writes.
    pub fn requests(&self) -> u64 {
        self.read.completed.saturating_add(self.write.completed)
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.bytes().saturating_add(self.write.bytes())
    }
}

/// What every device did between two snapshots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Difference {
    /// Time between them.
    pub wall: Duration,
    /// By kernel name.
    pub devices: BTreeMap<String, DeviceDifference>,
    /// Of devices that came in between: all that they were asked for. By kernel name.
    #[serde(default)]
    pub come: BTreeMap<String, DeviceDifference>,
}

impl Difference {
    /// The sum over some devices; `None` when one is missing, because a part would pass for the whole.
    pub fn sum<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<(u64, u64)> {
        names
            .into_iter()
            .try_fold((0u64, 0u64), |(read, written), name| {
                let device = self.devices.get(name)?;
                Some((
                    read.saturating_add(device.read.bytes()),
                    written.saturating_add(device.write.bytes()),
                ))
            })
    }

    /// Those of `names` whose counters are not known over the whole time.
    pub fn missing<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        names
            .into_iter()
            .filter(|name| !self.devices.contains_key(*name))
            .collect()
    }

    /// Fraction of the time a device was busy, 0 to 1.
    pub fn busy_fraction(&self, name: &str) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        let device = self.devices.get(name)?;
        (wall > 0.0).then(|| (device.busy.as_secs_f64() / wall).min(1.0))
    }

    /// Mean number of requests in flight.
    pub fn mean_depth(&self, name: &str) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        let device = self.devices.get(name)?;
        (wall > 0.0).then(|| device.weighted.as_secs_f64() / wall)
    }
}

/// Parses the text of `/proc/diskstats`: 14 columns, 18 since Linux 4.18, 20 since 5.5; further ones are ignored.
///
/// # Errors
/// On a line with too few columns, or one that is not a number where a number must be.
pub fn parse(text: &str) -> Result<BTreeMap<String, DeviceCounters>> {
    let mut devices = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let (name, counters) = parse_line(line)
            .map_err(|problem| ObserveError::malformed(FILE, index + 1, problem))?;
        devices.insert(name, counters);
    }
    Ok(devices)
}

fn parse_line(line: &str) -> std::result::Result<(String, DeviceCounters), String> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let [major, minor, name, rest @ ..] = columns.as_slice() else {
        return Err(format!("`{line}` has no device name"));
    };
    let number = format!("{major}:{minor}").parse()?;
    let values = rest
        .iter()
        .map(|value| {
            value
                .parse::<u64>()
                .map_err(|_| format!("device {name}: `{value}` is not a counter"))
        })
        .collect::<std::result::Result<Vec<u64>, String>>()?;
    if values.len() < 11 {
        return Err(format!(
            "device {name} has {} counters, at least 11 are expected",
            values.len()
        ));
    }
    let request = |at: usize| RequestCounters {
        completed: values[at],
        merged: values[at + 1],
        sectors: values[at + 2],
        time_ms: values[at + 3],
    };
    let counters = DeviceCounters {
        number,
        read: request(0),
        write: request(4),
        in_flight: u32::try_from(values[8])
            .ok()
            .filter(|n| *n <= i32::MAX.unsigned_abs()),
        busy_ms: values[9],
        weighted_ms: values[10],
        discard: (values.len() >= 15).then(|| request(11)),
        flush: (values.len() >= 17).then(|| (values[15], values[16])),
    };
    Ok(((*name).to_owned(), counters))
}

#[cfg(test)]
#[path = "tests/diskstats.rs"]
mod tests;
