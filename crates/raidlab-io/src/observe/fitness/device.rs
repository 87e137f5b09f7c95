//! What the devices of a stack give reason to warn of.

use crate::observe::diskstats::Difference;
use crate::observe::environment::DeviceRecord;
use crate::observe::stack::DeviceKind;

use super::{Audit, WarningKind};

/// Requests a second of others on an idle machine that are a log line, not a load.
const IDLE_REQUESTS: f64 = 20.0;
/// Bytes a second likewise.
const IDLE_BYTES: f64 = (1 << 20) as f64;

/// What an array does other than serving, in words; `None` for an idle one.
fn activity(action: &str) -> Option<&str> {
    Some(match action {
        // `frozen` does nothing; it only keeps a resync from starting.
        "idle" | "frozen" => return None,
        "resync" => "resyncing",
        "recover" => "rebuilding a member",
        "check" => "being checked",
        "repair" => "being repaired",
        "reshape" => "being reshaped",
        other => other,
    })
}

/// What an array of a stack is doing or lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayState {
    /// In words: `md0 is resyncing`.
    pub words: String,
    /// It does something beside serving, which passes; else it is so until somebody does something about it.
    pub busy: bool,
}

/// What arrays of a stack are doing or lacking, for [`crate::observe::evidence::Evidence::arrays`].
pub fn array_states(devices: &[DeviceRecord]) -> Vec<ArrayState> {
    let state = |words: Option<String>, busy| words.map(|words| ArrayState { words, busy });
    devices
        .iter()
        .flat_map(|device| [state(syncing(device), true), state(degraded(device), false)])
        .flatten()
        .collect()
}

fn syncing(device: &DeviceRecord) -> Option<String> {
    let action = device.md.as_ref()?.sync_action.as_deref()?;
    Some(format!("{} is {}", device.name, activity(action)?))
}

fn degraded(device: &DeviceRecord) -> Option<String> {
    let missing = device
        .md
        .as_ref()?
        .degraded
        .filter(|missing| *missing > 0)?;
    Some(format!(
        "{} lacks {missing} member{}",
        device.name,
        if missing == 1 { "" } else { "s" }
    ))
}

pub(super) fn array(device: &DeviceRecord, audit: &mut Audit) {
    if let Some(text) = syncing(device) {
        let name = &device.name;
        audit.add(
            WarningKind::ArraySyncing,
            text,
            format!(
                "wait until /sys/block/{name}/md/sync_action says idle (`mdadm --wait /dev/{name}`)"
            ),
        );
    }
    if let Some(text) = degraded(device) {
        audit.add(
            WarningKind::ArrayDegraded,
            text,
            "replace the member and let it rebuild, unless the degraded array is what you measure",
        );
    }
}

/// Only disks that turn or plug have a cache worth a word, and only a state that misleads gets one: a drive that caches
/// writes without the kernel knowing (its flushes are left out then).
pub(super) fn write_cache(device: &DeviceRecord, audit: &mut Audit) {
    let kernel = device.queue.write_cache.as_deref();
    let drive = device
        .identity
        .as_ref()
        .and_then(|identity| identity.write_cache);
    let name = &device.name;
    match (kernel, drive) {
        (Some("write through"), Some(true)) => audit.add(
            WarningKind::WriteCache,
            format!("{name} caches writes, but the kernel takes it for write through and sends no flushes"),
            format!("write `write back` to /sys/block/{name}/queue/write_cache, or switch the cache off with `hdparm -W0`"),
        ),
        (_, Some(false)) if device.queue.rotational == Some(true) => audit.add(
            WarningKind::WriteCache,
            format!("the write cache of {name} is off: writes wait for the platter"),
            "keep it so when that is what you measure, or switch it on with `hdparm -W1`",
        ),
        _ => {}
    }
}

pub(super) fn counters(device: &DeviceRecord, audit: &mut Audit) {
    // A partition shows its disk's queue, and the disk is in the list itself.
    if device.queue.iostats == Some(false) && device.kind != DeviceKind::Partition {
        let name = &device.name;
        audit.add(
            WarningKind::CountersOff,
            format!("the kernel does not count the I/O of {name}, so nothing can be proved"),
            format!("`echo 1 > /sys/class/block/{name}/queue/iostats`"),
        );
    }
}

pub(super) fn device_load(disks: &Difference, name: &str, audit: &mut Audit) {
    let wall = disks.wall.as_secs_f64();
    let Some(device) = disks.devices.get(name).filter(|_| wall > 0.0) else {
        return;
    };
    let requests = device.requests() as f64 / wall;
    let bytes = device.bytes() as f64 / wall;
    let in_flight = device.in_flight.unwrap_or(0);
    if requests > IDLE_REQUESTS || bytes > IDLE_BYTES || in_flight > 1 {
        audit.add(
            WarningKind::DeviceBusy,
            format!(
                "{name} is in use by others: {requests:.0} requests and {:.1} MiB a second, {in_flight} in flight",
                bytes / IDLE_BYTES
            ),
            "end what uses it (`iotop -o` shows which), or wait for write-back to end (`sync`)",
        );
    }
}
