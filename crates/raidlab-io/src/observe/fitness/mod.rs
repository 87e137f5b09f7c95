//! Is this machine fit to measure? Warnings are values that name what is wrong and what to do about it.

mod answers;
mod device;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::observe::cpu::{CpuSnapshot, CpuUse};
use crate::observe::diskstats::{Difference, Snapshot};
use crate::observe::environment::{
    self, BatteryState, DeviceRecord, Environment, Limits, Memory, space_at,
};
use crate::observe::error::Result;
use crate::observe::evidence::{CPU_PRESSURE, FOREIGN_CPUS, STEAL, size};
use crate::observe::lazyinit::{self, Initialising};
use crate::observe::quota;
use crate::observe::resolve::Resolved;
use crate::observe::roots::Roots;

use device::{array, counters, device_load, write_cache};

pub use device::{ArrayState, array_states};

/// Share of the memory below which what is available counts as low.
const LOW_MEMORY: f64 = 0.10;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Swap is in use.
    SwapInUse,
    /// The frequency governor saves power.
    PowerSaving,
    /// Little memory is available.
    LowMemory,
    /// Other programs use the processor.
    ForeignCpu,
    /// The hypervisor takes CPU time.
    Steal,
    /// Tasks wait for a CPU.
    CpuPressure,
    /// An array of the stack resyncs, rebuilds or is checked.
    ArraySyncing,
    /// An array of the stack lacks members.
    ArrayDegraded,
    /// Nothing can be read from a device.
    Unreadable,
    /// Others use the device.
    DeviceBusy,
    /// The kernel does not count the device's I/O.
    CountersOff,
    /// The write cache of a disk is in a state to know of.
    WriteCache,
    /// The target is in memory.
    InMemory,
    /// The kernel still writes what makes up a new file system.
    Initialising,
    /// There is not enough space.
    NoSpace,
    /// The file system or device is write-protected.
    ReadOnly,
    /// The machine runs on its battery.
    OnBattery,
    /// The control group may use only so much of the processor, or of a device.
    Limited,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What is wrong.
    pub kind: WarningKind,
    /// With figures: `other programs use 0.80 CPUs`.
    pub text: String,
    /// What to do.
    pub remedy: String,
    /// Measuring makes no sense or cannot work (no space, write-protected); all others only lessen the figure's worth.
    pub fatal: bool,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.text, self.remedy)
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// In the order in which they were checked.
    pub warnings: Vec<Warning>,
}

impl Audit {
    /// Nothing to complain about.
    pub fn is_clean(&self) -> bool {
        self.warnings.is_empty()
    }

    /// Whether something makes the measurement pointless.
    pub fn is_fatal(&self) -> bool {
        self.warnings.iter().any(|warning| warning.fatal)
    }

    fn add(&mut self, kind: WarningKind, text: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.push(Warning {
            kind,
            text: text.into(),
            remedy: remedy.into(),
            fatal: false,
        });
    }

    fn add_fatal(&mut self, kind: WarningKind, text: String, remedy: &str) {
        self.warnings.push(Warning {
            kind,
            text,
            remedy: remedy.to_owned(),
            fatal: true,
        });
    }
}

/// What the judgement is made from.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Memory.
    pub memory: Memory,
    /// Frequency governors.
    pub governors: Vec<String>,
    /// Batteries.
    pub batteries: Vec<BatteryState>,
    /// What the control group may use of the processor, and of the devices of the stack.
    pub limits: Limits,
    /// CPU use over the sample.
    pub cpu: CpuUse,
    /// Device counters over the sample.
    pub disks: Difference,
    /// Devices of the stack.
    pub devices: Vec<DeviceRecord>,
    /// The topmost ones.
    pub top: Vec<String>,
    /// Topmost devices that answer a read with an error: which, where and with what.
    pub unreadable: Vec<String>,
    /// The data are in memory: why, `tmpfs`.
    pub in_memory: Option<String>,
    /// Write-protected mount, and where.
    pub read_only_mount: Option<String>,
    /// Bytes available to files; `None` for devices.
    pub available: Option<u64>,
    /// The file system is new, and not yet all written.
    pub initialising: Option<Initialising>,
    /// The quota by which it is no more, in words.
    pub limit: Option<String>,
    /// Bytes the run will need.
    pub needed: u64,
    /// Whether anything will be written.
    pub writes: bool,
}

/// What the run is going to do.
#[derive(Debug, Clone, Copy)]
pub struct Intent {
    /// Bytes of new files.
    pub needed: u64,
    /// Whether anything will be written.
    pub writes: bool,
    /// How long to watch the machine; a second is enough to see load and too short to annoy.
    pub sample: Duration,
}

impl Intent {
    /// A run that writes `needed` bytes, watched for a second.
    pub fn writing(needed: u64) -> Self {
        Self {
            needed,
            writes: true,
            sample: Duration::from_secs(1),
        }
    }
}

/// Watches the machine for the sample time. raidlab must be idle in it.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn observe(roots: &Roots, resolved: &Resolved, intent: Intent) -> Result<Observations> {
    let (cpu, disks) = (CpuSnapshot::take(roots)?, Snapshot::take(roots)?);
    std::thread::sleep(intent.sample);
    let disks = Snapshot::take(roots)?.since(&disks);
    let after = CpuSnapshot::take(roots)?;
    let initialising = lazyinit::initialising(roots, resolved, &after);
    let cpu = after.since(&cpu);
    let target = Environment::capture(roots, Some(resolved))?.target;
    let (devices, top) = target.map_or_else(Default::default, |t| (t.devices, t.top));
    let mount = resolved.mount.as_ref();
    let unreadable = top.iter();
    let unreadable = unreadable.filter_map(|name| answers::unreadable(roots, name));
    let unreadable = unreadable.collect();
    let available = mount
        .and_then(|_| space_at(&resolved.path).ok())
        .map(|space| space.available);
    Ok(Observations {
        memory: environment::memory(roots)?,
        governors: environment::governors(roots),
        batteries: environment::batteries(roots),
        limits: limits(roots, resolved),
        cpu,
        disks,
        devices,
        top,
        unreadable,
        in_memory: resolved.in_memory().then(|| {
            mount.map_or_else(
                || "a device in memory".to_owned(),
                |mount| mount.fs_type.clone(),
            )
        }),
        read_only_mount: mount
            .filter(|mount| mount.read_only())
            .map(|mount| mount.point.display().to_string()),
        available,
        limit: mount
            .and_then(|_| quota::limiting(roots, &resolved.path, available?))
            .map(|quota| quota.to_string()),
        initialising,
        needed: intent.needed,
        writes: intent.writes,
    })
}

/// Of devices those alone that are measured.
fn limits(roots: &Roots, resolved: &Resolved) -> Limits {
    let mut limits = environment::limits(roots);
    let devices = resolved.stack().map_or(&[][..], |stack| &stack.devices);
    let own = |number| devices.iter().any(|device| device.number == Some(number));
    limits.io.retain(|limit| own(limit.device));
    limits
}

/// Judges what was observed.
pub fn audit(seen: &Observations) -> Audit {
    let mut audit = Audit::default();
    target(seen, &mut audit);
    memory_and_power(seen, &mut audit);
    limited(seen, &mut audit);
    processor(&seen.cpu, &mut audit);
    for text in &seen.unreadable {
        audit.add(
            WarningKind::Unreadable,
            text,
            "see the kernel's log (dmesg), and 'dmsetup table' where it is a device of device-mapper",
        );
    }
    for device in &seen.devices {
        array(device, &mut audit);
        write_cache(device, &mut audit);
        counters(device, &mut audit);
    }
    for name in &seen.top {
        device_load(&seen.disks, name, &mut audit);
    }
    audit
}

fn by_quota(limit: Option<&str>) -> String {
    limit.map_or(String::new(), |limit| format!(" by {limit}"))
}

fn target(seen: &Observations, audit: &mut Audit) {
    if let Some(what) = &seen.in_memory {
        audit.add(
            WarningKind::InMemory,
            format!("the target is in memory ({what}): no disk is measured"),
            "name a path on a disk, or take the figure as one of memory",
        );
    }
    if let Some(initialising) = seen.initialising {
        audit.add(
            WarningKind::Initialising,
            initialising.to_string(),
            lazyinit::REMEDY,
        );
    }
    if !seen.writes {
        return;
    }
    if let Some(point) = &seen.read_only_mount {
        audit.add_fatal(
            WarningKind::ReadOnly,
            format!("{point} is mounted read only"),
            "remount it for writing, or name another path",
        );
    }
    if let Some(available) = seen.available.filter(|available| *available < seen.needed) {
        audit.add_fatal(
            WarningKind::NoSpace,
            format!(
                "{} is needed, {} is available{}",
                size(seen.needed),
                size(available),
                by_quota(seen.limit.as_deref())
            ),
            "free some space, or give a smaller --size",
        );
    }
    let protected = |name: &&String| {
        seen.devices
            .iter()
            .any(|device| device.name == **name && device.read_only == Some(true))
    };
    // A read-only mount on a read-only device has been said already.
    if let Some(name) = seen
        .top
        .iter()
        .find(protected)
        .filter(|_| seen.read_only_mount.is_none())
    {
        audit.add_fatal(
            WarningKind::ReadOnly,
            format!("{name} is write-protected"),
            "lift the protection (blockdev --setrw), or only read",
        );
    }
}

fn memory_and_power(seen: &Observations, audit: &mut Audit) {
    let memory = &seen.memory;
    if let Some(used) = memory.swap_used().filter(|used| *used > 0) {
        audit.add(
            WarningKind::SwapInUse,
            format!("{} of swap is in use", size(used)),
            "end what needs the memory, then `swapoff -a && swapon -a`",
        );
    }
    let low = |available: &u64| (*available as f64) < LOW_MEMORY * memory.total as f64;
    if let Some(available) = memory.available.filter(low) {
        audit.add(
            WarningKind::LowMemory,
            format!(
                "only {} of {} memory is available",
                size(available),
                size(memory.total)
            ),
            "end other programs",
        );
    }
    let saving = |governor: &&String| matches!(governor.as_str(), "powersave" | "conservative");
    if let Some(governor) = seen.governors.iter().find(saving) {
        audit.add(
            WarningKind::PowerSaving,
            format!("the CPU frequency governor is {governor}"),
            "`cpupower frequency-set -g performance` for the time of the measurement",
        );
    }
    if let Some(battery) = seen
        .batteries
        .iter()
        .find(|battery| battery.status == "Discharging")
    {
        audit.add(
            WarningKind::OnBattery,
            format!("the machine runs on its battery ({})", battery.name),
            "connect the power supply",
        );
    }
}

fn limited(seen: &Observations, audit: &mut Audit) {
    if let Some(cpus) = seen.limits.cpus {
        audit.add(
            WarningKind::Limited,
            format!("this control group may use {cpus:.2} CPUs"),
            "measure outside of it, or lift the limit (cpu.max, CPUQuota=)",
        );
    }
    for limit in &seen.limits.io {
        let mut devices = seen.devices.iter();
        let named = devices.find(|device| device.number == Some(limit.device));
        let name = named.map_or_else(|| limit.device.to_string(), |device| device.name.clone());
        audit.add(
            WarningKind::Limited,
            format!("this control group may {limit} on {name}"),
            "measure outside of it, or lift the limit (io.max, IOReadBandwidthMax= and the like)",
        );
    }
}

fn processor(cpu: &CpuUse, audit: &mut Audit) {
    if let Some(cpus) = cpu.foreign_cpus().filter(|cpus| *cpus > FOREIGN_CPUS) {
        audit.add(
            WarningKind::ForeignCpu,
            format!("other programs use {cpus:.2} CPUs"),
            "end them (top shows which), or measure when they are idle",
        );
    }
    if let Some(steal) = cpu.steal_share().filter(|steal| *steal > STEAL) {
        audit.add(
            WarningKind::Steal,
            format!(
                "the hypervisor takes {:.1} % of the CPU time",
                steal * 100.0
            ),
            "measure when its other guests are quiet, with more repeats",
        );
    }
    let waiting = cpu.cpu_pressure.map(|pressure| pressure.some);
    if let Some(share) = waiting.filter(|share| *share > CPU_PRESSURE) {
        audit.add(
            WarningKind::CpuPressure,
            format!("tasks wait for a CPU in {:.1} % of the time", share * 100.0),
            "end other programs (top shows which)",
        );
    }
}

#[cfg(test)]
#[path = "../tests/fitness.rs"]
mod tests;
