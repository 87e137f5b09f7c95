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

/// Sets the queue of a device to what its port is.
pub(super) fn tune(device: &Path, port: &PortInfo) -> Result<(), GuestError> {
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
    let most = (port.max_sectors / 2).clamp(4, KERNEL_LIMIT_KIB);
    write("max_sectors_kb", most.to_string())?;
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
