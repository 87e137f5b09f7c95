//! What nbd.ko does not tell of a disk.
use super::GuestError;
use raidlab_sim::fabric::PortInfo;
use std::path::Path;

/// Requests that the kernel lets be set at the least (`BLKDEV_MIN_RQ`).
const LEAST: u32 = 4;

/// Largest request that the kernel makes for a disk by itself (`BLK_DEF_MAX_SECTORS`, 2560 sectors since 4.3).
const KERNEL_LIMIT_KIB: u32 = 1280;

/// How long the kernel lets reads of disks with an arm take before it holds write-back back, in microseconds.
const WBT_LATENCY: u32 = 75_000;

/// Bytes of a page, in KiB.
const PAGE_KIB: u32 = 4;

/// The largest request in KiB, of single `pages` or of what lies side by side.
fn largest(port: &PortInfo, pages: bool) -> u32 {
    let most = (port.max_sectors / 2).min(KERNEL_LIMIT_KIB);
    let most = match pages {
        true => most.min(port.segments.saturating_mul(PAGE_KIB)),
        false => most,
    };
    most.max(PAGE_KIB)
}

/// Sets the queue of a device to what its port is; an array may ask it for single `pages`.
pub(super) fn tune(device: &Path, port: &PortInfo, pages: bool) -> Result<(), GuestError> {
    let queue = Path::new("/sys/block")
        .join(device.file_name().unwrap_or_default())
        .join("queue");
    let write = |name: &'static str, value: String| {
        std::fs::write(queue.join(name), value).map_err(|source| GuestError::Kernel {
            path: device.to_owned(),
            what: name,
            source,
        })
    };
    write("rotational", u8::from(port.rotational).to_string())?;
    // What the kernel gives a disk by itself is less than this driver could take.
    write("max_sectors_kb", largest(port, pages).to_string())?;
    // The depth of the device itself can be set while there is no scheduler before it.
    let schedulers = std::fs::read_to_string(queue.join("scheduler")).unwrap_or_default();
    write("scheduler", "none".to_owned())?;
    write("nr_requests", port.tags.clamp(LEAST, 128).to_string())?;
    let chosen = schedulers.split(['[', ']']).nth(1).unwrap_or("none");
    write("scheduler", chosen.to_owned())?;
    // Chosen when the device came, as one without an arm (`wbt_default_latency_nsec`); not all kernels have it.
    if port.rotational && queue.join("wbt_lat_usec").exists() {
        write("wbt_lat_usec", WBT_LATENCY.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_pages_are_asked_for_as_far_as_the_drivers_of_the_port_would_go() {
        let port = |max_sectors, segments| PortInfo {
            name: "disk".to_owned(),
            sectors: 1 << 20,
            physical: 1,
            tags: 32,
            rotational: true,
            max_sectors,
            segments,
            fua: false,
            disk: Some(0),
        };
        let both = |port: PortInfo| (largest(&port, false), largest(&port, true));
        assert_eq!(both(port(65_536, 168)), (1280, 672));
        assert_eq!(both(port(65_536, u32::MAX)), (1280, 1280));
        assert_eq!(both(port(512, 168)), (256, 256));
        assert_eq!(both(port(1, 1)), (4, 4));
    }
}
