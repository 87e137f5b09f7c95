//! Was it the disk? Accounting, limits and the model of a cached read.

use crate::error::{StatsError, positive};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Bandwidth of a second pass over a file, best case: h = min(1, C/S); 1/BW = h/B_c + (1 − h)/B_d.
///
/// Sizes in one unit, bandwidths in one unit.
///
/// # Errors
/// [`StatsError::Parameter`] for an argument not above zero.
pub fn cached_read_bandwidth(
    size: f64,
    cache_size: f64,
    cache_bandwidth: f64,
    disk_bandwidth: f64,
) -> Result<f64, StatsError> {
    positive("size of the file", size)?;
    positive("size of the cache", cache_size)?;
    positive("bandwidth of the cache", cache_bandwidth)?;
    positive("bandwidth of the disk", disk_bandwidth)?;
    let hit = (cache_size / size).min(1.0);
    Ok(1.0 / (hit / cache_bandwidth + (1.0 - hit) / disk_bandwidth))
}

/// The inverse: which share h = (1/B_d − 1/BW)/(1/B_d − 1/B_c) came from the cache. Held to 0..=1.
///
/// # Errors
/// [`StatsError::Parameter`] for an argument not above zero, or a cache not faster than the disk.
pub fn hit_fraction(
    bandwidth: f64,
    cache_bandwidth: f64,
    disk_bandwidth: f64,
) -> Result<f64, StatsError> {
    positive("bandwidth", bandwidth)?;
    positive("bandwidth of the cache", cache_bandwidth)?;
    positive("bandwidth of the disk", disk_bandwidth)?;
    if cache_bandwidth <= disk_bandwidth {
        return Err(StatsError::Parameter {
            name: "bandwidth of the cache",
            value: cache_bandwidth,
            allowed: "it must exceed the bandwidth of the disk, else no share can be told",
        });
    }
    // The same quotient, multiplied out so that no reciprocals cancel.
    let share = (bandwidth - disk_bandwidth) / bandwidth
        * (cache_bandwidth / (cache_bandwidth - disk_bandwidth));
    Ok(share.clamp(0.0, 1.0))
}

/// What was seen of one phase: bytes the application was given, bytes that crossed the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheEvidence {
    /// Bandwidth the application saw.
    pub bandwidth: f64,
    /// Fastest the media can be (declared media rate, or zone rate × data disks), same unit.
    pub media_limit: Option<f64>,
    /// Fastest the link can be (SATA, SAS, PCIe lanes), same unit.
    pub link_limit: Option<f64>,
    /// Bytes the application read or wrote; above zero.
    pub app_bytes: f64,
    /// Bytes that reached the backing devices meanwhile.
    pub device_bytes: f64,
    /// Allowance on the limits: 0.1 is 10 %.
    pub tolerance: f64,
}

/// Who served a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CacheVerdict {
    /// The bytes came from the device, no faster than it can.
    Cold,
    /// More than nine tenths never reached the device.
    PageCache {
        /// Share not read from the device, 1 − D/A.
        hit: f64,
    },
    /// Between 2 % and nine tenths never reached the device.
    PartlyPageCache {
        /// Share not read from the device, 1 − D/A.
        hit: f64,
    },
    /// The bytes crossed the bus, but faster than the media can.
    DeviceCache,
    /// Faster than the link: the accounting or the clock is wrong, or another cache answered.
    AboveLink,
    /// The device moved over 10 % more than the application asked for.
    ForeignIo,
}

impl CacheVerdict {
    /// The sentence for a report.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::PageCache { .. } => "OS page cache",
            Self::PartlyPageCache { .. } => "partly OS page cache",
            Self::DeviceCache => {
                "device-side cache (controller/drive/host): above media limit although the bytes \
                 crossed the bus"
            }
            Self::AboveLink => "above the link rate: host cache or clock error",
            Self::ForeignIo => "foreign I/O or read-ahead",
        }
    }
}

impl fmt::Display for CacheVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Judges one phase, strongest evidence first: bytes that never reached the device, then the limits,
/// then bytes nobody asked for.
///
/// # Errors
/// [`StatsError::Parameter`] for a bandwidth, limit or number of bytes out of range.
pub fn cache_verdict(evidence: &CacheEvidence) -> Result<CacheVerdict, StatsError> {
    positive("bandwidth", evidence.bandwidth)?;
    positive("bytes of the application", evidence.app_bytes)?;
    for (name, value) in [
        ("bytes of the device", evidence.device_bytes),
        ("tolerance", evidence.tolerance),
    ] {
        if !value.is_finite() || value < 0.0 {
            let allowed = "it must be a finite number, not below zero";
            return Err(StatsError::Parameter {
                name,
                value,
                allowed,
            });
        }
    }
    let exceeds = |name, limit: Option<f64>| -> Result<bool, StatsError> {
        let Some(limit) = limit else { return Ok(false) };
        Ok(evidence.bandwidth > (1.0 + evidence.tolerance) * positive(name, limit)?)
    };
    let above_media = exceeds("media limit", evidence.media_limit)?;
    let above_link = exceeds("link limit", evidence.link_limit)?;
    let hit = 1.0 - evidence.device_bytes / evidence.app_bytes;
    Ok(if hit > 0.9 {
        CacheVerdict::PageCache { hit }
    } else if hit > 0.02 {
        CacheVerdict::PartlyPageCache { hit }
    } else if above_link {
        CacheVerdict::AboveLink
    } else if above_media {
        CacheVerdict::DeviceCache
    } else if hit < -0.1 {
        CacheVerdict::ForeignIo
    } else {
        CacheVerdict::Cold
    })
}

/// Whether a mean service time of random I/O is under half the least mechanical time of a disk:
/// half a rotation (30/rpm seconds) and the settle time. Then a cache answered.
///
/// # Errors
/// [`StatsError::Parameter`] for a time or speed not above zero, or a negative settle time.
pub fn too_fast_for_mechanics(
    mean_service_seconds: f64,
    rpm: f64,
    settle_seconds: f64,
) -> Result<bool, StatsError> {
    positive("mean service time", mean_service_seconds)?;
    positive("revolutions a minute", rpm)?;
    if !settle_seconds.is_finite() || settle_seconds < 0.0 {
        let allowed = "it must be a finite number, not below zero";
        return Err(StatsError::Parameter {
            name: "settle time",
            value: settle_seconds,
            allowed,
        });
    }
    Ok(mean_service_seconds < 0.5 * (30.0 / rpm + settle_seconds))
}

/// Whether a second pass was so much faster than the first (by more than a fifth) that something
/// was cached.
///
/// # Errors
/// [`StatsError::Parameter`] for a rate not above zero.
pub fn second_pass_cached(first: f64, second: f64) -> Result<bool, StatsError> {
    Ok(
        positive("rate of the second pass", second)? / positive("rate of the first pass", first)?
            > 1.2,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> CacheEvidence {
        CacheEvidence {
            bandwidth: 45.0,
            media_limit: Some(47.0),
            link_limit: Some(150.0),
            app_bytes: 1e9,
            device_bytes: 1e9,
            tolerance: 0.1,
        }
    }

    #[test]
    fn limits_speak_in_order() {
        let of = |e| cache_verdict(&e).unwrap();
        assert_eq!(of(evidence()), CacheVerdict::Cold);
        assert_eq!(
            of(CacheEvidence {
                bandwidth: 60.0,
                ..evidence()
            }),
            CacheVerdict::DeviceCache
        );
        assert_eq!(
            of(CacheEvidence {
                bandwidth: 600.0,
                ..evidence()
            }),
            CacheVerdict::AboveLink
        );
        assert_eq!(
            of(CacheEvidence {
                device_bytes: 1.2e9,
                ..evidence()
            }),
            CacheVerdict::ForeignIo
        );
        let unknown = CacheEvidence {
            bandwidth: 600.0,
            media_limit: None,
            link_limit: None,
            ..evidence()
        };
        assert_eq!(of(unknown), CacheVerdict::Cold);
    }

    #[test]
    fn shares_are_cut_at_two_and_at_ninety_per_cent() {
        for (from_device, word) in [
            (0.99, "cold"),
            (0.97, "partly OS page cache"),
            (0.11, "partly OS page cache"),
            (0.09, "OS page cache"),
            (1.09, "cold"),
            (1.11, "foreign I/O or read-ahead"),
        ] {
            let seen = CacheEvidence {
                device_bytes: from_device * 1e9,
                ..evidence()
            };
            assert_eq!(cache_verdict(&seen).unwrap().text(), word, "{from_device}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(
            cache_verdict(&CacheEvidence {
                app_bytes: 0.0,
                ..evidence()
            })
            .is_err()
        );
        assert!(
            cache_verdict(&CacheEvidence {
                device_bytes: -1.0,
                ..evidence()
            })
            .is_err()
        );
        assert!(
            cache_verdict(&CacheEvidence {
                media_limit: Some(f64::NAN),
                ..evidence()
            })
            .is_err()
        );
        assert!(cached_read_bandwidth(0.0, 1.0, 1.0, 1.0).is_err());
        assert!(hit_fraction(50.0, 47.0, 47.0).is_err());
        assert!(second_pass_cached(0.0, 1.0).is_err());
    }

    #[test]
    fn the_model_and_its_inverse_agree() {
        for size in [150.0, 400.0, 5000.0] {
            let bandwidth = cached_read_bandwidth(size, 128.0, 105.0, 47.0).unwrap();
            let hit = hit_fraction(bandwidth, 105.0, 47.0).unwrap();
            assert!((hit - 128.0 / size).abs() < 1e-12);
        }
        assert_eq!(hit_fraction(40.0, 105.0, 47.0).unwrap(), 0.0);
    }

    #[test]
    fn a_seek_cannot_be_faster_than_half_a_turn() {
        // 7200 rpm: 4.17 ms for half a turn.
        assert!(too_fast_for_mechanics(0.0005, 7200.0, 0.0005).unwrap());
        assert!(!too_fast_for_mechanics(0.008, 7200.0, 0.0005).unwrap());
        assert!(too_fast_for_mechanics(0.1, 0.0, 0.0).is_err());
        assert!(
            second_pass_cached(47.0, 105.0).unwrap() && !second_pass_cached(47.0, 50.0).unwrap()
        );
    }
}
