//! How fast the link to a disk can be at most, so that a figure above it is known to come from a cache.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::roots::{self, Roots};
use super::stack::DeviceStack;

/// An upper limit of a rate and where it is known from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Payload bytes a second after line coding.
    pub bytes_per_second: f64,
    /// `SATA 3.0 Gbps`, `PCIe 8.0 GT/s x4`.
    pub source: String,
}

const MEGA: f64 = 1e6;

/// The limit of a whole stack: the sum over its lowest devices, because no layout can move more than all its links
/// together. `None` when one of them is unknown.
pub fn stack_limit(roots: &Roots, stack: &DeviceStack) -> Option<RateLimit> {
    let limits = stack
        .leaves()
        .map(|leaf| device_limit(roots, &leaf.name).map(|limit| (leaf.name.as_str(), limit)))
        .collect::<Option<Vec<_>>>()?;
    let (first, rest) = limits.split_first()?;
    if rest.is_empty() {
        return Some(first.1.clone());
    }
    Some(RateLimit {
        bytes_per_second: limits.iter().map(|(_, limit)| limit.bytes_per_second).sum(),
        source: limits
            .iter()
            .map(|(name, limit)| format!("{name} {}", limit.source))
            .collect::<Vec<_>>()
            .join(" + "),
    })
}

/// The limit of one disk's link; `None` when sysfs does not tell (virtual disks, memory).
pub fn device_limit(roots: &Roots, name: &str) -> Option<RateLimit> {
    let path = std::fs::canonicalize(roots.block(name)).ok()?;
    nvme(&path)
        .or_else(|| sas(&path))
        .or_else(|| usb(&path))
        .or_else(|| ata(roots, &path))
}

fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

fn nvme(path: &Path) -> Option<RateLimit> {
    if !name_of(path).starts_with("nvme") {
        return None;
    }
    // With native multipathing the namespace hangs under the subsystem; any of its controllers leads to PCI.
    let subsystem = path
        .ancestors()
        .find(|p| name_of(p).starts_with("nvme-subsys"));
    let controllers = subsystem.map(|subsystem| {
        let names = roots::names_in(subsystem);
        let is_controller = |name: &String| {
            name.strip_prefix("nvme")
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        names
            .into_iter()
            .filter(is_controller)
            .map(|name| subsystem.join(name))
            .collect::<Vec<_>>()
    });
    let starts = controllers.unwrap_or_else(|| vec![path.to_owned()]);
    let limits = starts
        .iter()
        .map(|start| pcie_of(start))
        .collect::<Option<Vec<_>>>()?;
    // Several paths to one namespace may be used at once: their sum is the limit.
    let total = limits.iter().map(|limit| limit.bytes_per_second).sum();
    let source = limits.first()?.source.clone();
    Some(RateLimit {
        bytes_per_second: total,
        source,
    })
}

fn pcie_of(start: &Path) -> Option<RateLimit> {
    let start = std::fs::canonicalize(start).ok()?;
    let device: PathBuf = start
        .ancestors()
        .find(|p| p.join("current_link_speed").exists())?
        .to_owned();
    pcie_limit(
        &roots::text(&device.join("current_link_speed"))?,
        &roots::text(&device.join("current_link_width"))?,
    )
}

/// From `current_link_speed` (`8.0 GT/s PCIe`) and `current_link_width` (`4`). Coding: 8b/10b up to 5 GT/s, 128b/130b
/// up to 32 GT/s, 242/256 FLITs at 64 GT/s (PCI Express Base Specification 6.0).
pub fn pcie_limit(speed: &str, width: &str) -> Option<RateLimit> {
    let giga = leading_number(speed)?;
    let lanes: f64 = f64::from(
        width
            .trim()
            .parse::<u16>()
            .ok()
            .filter(|lanes| (1..=32).contains(lanes))?,
    );
    let efficiency = match giga {
        g if g <= 5.0 => 0.8,
        g if g <= 32.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    Some(RateLimit {
        bytes_per_second: giga * 1e9 / 8.0 * efficiency * lanes,
        source: format!("PCIe {giga:.1} GT/s x{lanes}"),
    })
}

fn sas(path: &Path) -> Option<RateLimit> {
    let port = path
        .ancestors()
        .filter(|p| name_of(p).starts_with("port-"))
        .find(|p| {
            // The port nearest to the disk; those of the host have the same form.
            p.is_dir()
        })?;
    let rates: Vec<String> = roots::names_in(port)
        .into_iter()
        .filter(|name| name.starts_with("phy-"))
        .filter_map(|phy| {
            roots::text(
                &port
                    .join(&phy)
                    .join("sas_phy")
                    .join(&phy)
                    .join("negotiated_linkrate"),
            )
        })
        .collect();
    let limits = rates
        .iter()
        .map(|rate| sas_limit(rate))
        .collect::<Option<Vec<_>>>()?;
    let first = limits.first()?;
    Some(RateLimit {
        bytes_per_second: limits.iter().map(|limit| limit.bytes_per_second).sum(),
        source: format!("{} x{}", first.source, limits.len()),
    })
}

/// From `negotiated_linkrate` (`6.0 Gbit`): 8b/10b up to 12 Gbit/s, 128b/150b at 22.5 (SPL-4).
pub fn sas_limit(rate: &str) -> Option<RateLimit> {
    let giga = leading_number(rate)?;
    let efficiency = if giga > 12.0 { 128.0 / 150.0 } else { 0.8 };
    Some(RateLimit {
        bytes_per_second: giga * 1e9 / 8.0 * efficiency,
        source: format!("SAS {giga:.1} Gbit/s"),
    })
}

fn usb(path: &Path) -> Option<RateLimit> {
    // A USB device directory has both files; the nearest ancestor is the disk, not the hub.
    let device = path
        .ancestors()
        .find(|p| p.join("speed").exists() && p.join("bMaxPower").exists())?;
    usb_limit(&roots::text(&device.join("speed"))?)
}

/// From a USB device's `speed` in Mbit/s: 8b/10b at 5000, 128b/132b above (USB 3.2), none below.
pub fn usb_limit(speed: &str) -> Option<RateLimit> {
    let mega = leading_number(speed)?;
    let efficiency = match mega {
        m if m < 5000.0 => 1.0,
        m if m <= 5000.0 => 0.8,
        _ => 128.0 / 132.0,
    };
    Some(RateLimit {
        bytes_per_second: mega * MEGA / 8.0 * efficiency,
        source: format!("USB {mega} Mbit/s"),
    })
}

fn ata(roots: &Roots, path: &Path) -> Option<RateLimit> {
    let port = path
        .ancestors()
        .find_map(|p| name_of(p).strip_prefix("ata")?.parse::<u32>().ok())?;
    let class = roots.sys.join("class");
    roots::text(&class.join(format!("ata_link/link{port}/sata_spd")))
        .and_then(|speed| sata_limit(&speed))
        .or_else(|| {
            // A parallel port has two devices; without telling which, the faster one bounds both.
            let modes = [0, 1].map(|unit| {
                roots::text(&class.join(format!("ata_device/dev{port}.{unit}/dma_mode")))
                    .and_then(|mode| pata_limit(&mode))
            });
            modes
                .into_iter()
                .flatten()
                .max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))
        })
}

/// From `sata_spd` (`6.0 Gbps`), coded 8b/10b: 150, 300, 600 MB/s. `<unknown>` gives none.
pub fn sata_limit(speed: &str) -> Option<RateLimit> {
    let giga = leading_number(speed)?;
    Some(RateLimit {
        bytes_per_second: giga * 1e9 * 0.8 / 8.0,
        source: format!("SATA {giga:.1} Gbit/s"),
    })
}

/// From `dma_mode` (`XFER_UDMA_5`): the transfer rates of Ultra DMA modes 0 to 6 (ATA/ATAPI-7).
pub fn pata_limit(mode: &str) -> Option<RateLimit> {
    const RATES: [f64; 7] = [16.7, 25.0, 33.3, 44.4, 66.7, 100.0, 133.3];
    let digits = mode.trim().strip_prefix("XFER_UDMA_")?;
    let number: usize = digits.parse().ok()?;
    Some(RateLimit {
        bytes_per_second: RATES.get(number)? * MEGA,
        source: format!("Ultra DMA mode {number}"),
    })
}

/// The number a text starts with, when it is positive.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text[..end]
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
#[path = "tests/link.rs"]
mod tests;
