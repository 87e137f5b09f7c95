//! What nbd.ko does not tell of a disk.
use super::GuestError;
use raidlab_sim::fabric::PortInfo;
use std::path::Path;

/// Requests that the kernel lets be set at the least (`BLKDEV_MIN_RQ`).
const LEAST: u32 = 4;

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
    // A request is served whole, however large; the kernel's own limit is 32 MiB here.
    let most = (port.max_sectors / 2).clamp(4, 32 << 10);
    write("max_sectors_kb", most.to_string())?;
    // The depth of the device itself can be set while there is no scheduler before it.
    let schedulers = std::fs::read_to_string(queue.join("scheduler")).unwrap_or_default();
    write("scheduler", "none".to_owned())?;
    write("nr_requests", port.tags.clamp(LEAST, 128).to_string())?;
    let chosen = schedulers.split(['[', ']']).nth(1).unwrap_or("none");
    write("scheduler", chosen.to_owned())
}
