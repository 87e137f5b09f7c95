//! Kernel, processor, memory, power and virtualisation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::cgroup;
use crate::observe::error::{ObserveError, Result};
use crate::observe::roots::{self, Roots};

/// The running kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `6.1.0-18-amd64`
    pub release: Option<String>,
    /// Build number and date.
    pub version: Option<String>,
    /// `x86_64`
    pub machine: Option<String>,
    /// Boot parameters.
    pub command_line: Option<String>,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical CPUs online.
    pub online: Option<u32>,
    /// Physical cores, where the kernel numbers them.
    pub cores: Option<u32>,
    /// The frequency governors in use, each once; empty when frequency is not the kernel's to choose.
    pub governors: Vec<String>,
    /// The highest frequency, kHz.
    pub max_khz: Option<u64>,
    /// Vulnerability and what is done about it.
    pub mitigations: BTreeMap<String, String>,
}

/// Memory in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Usable memory.
    pub total: u64,
    /// What programs could get without swapping; `None` before Linux 3.14.
    pub available: Option<u64>,
    /// Page cache waiting to be written.
    pub dirty: Option<u64>,
    /// Swap space.
    pub swap_total: Option<u64>,
    /// Swap space free.
    pub swap_free: Option<u64>,
    /// What the control group of raidlab may use, page cache included; `None` without a limit.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The limits of what may be dirty, and for how long, as the kernel names them (`vm.dirty_*`); of a share and a size
    /// the one that holds is not 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub write_back: BTreeMap<String, u64>,
}

impl Memory {
    /// What can hold files for raidlab: all memory, or the limit of its control group.
    pub fn usable(&self) -> u64 {
        self.limit.map_or(self.total, |limit| limit.min(self.total))
    }

    /// Swap in use, bytes.
    pub fn swap_used(&self) -> Option<u64> {
        Some(self.swap_total?.saturating_sub(self.swap_free?))
    }
}

/// A battery and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatteryState {
    /// `BAT0`
    pub name: String,
    /// `Discharging`
    pub status: String,
}

pub(super) fn kernel(roots: &Roots) -> Kernel {
    let uname = roots.is_live().then(rustix::system::uname);
    let proc = |name: &str| roots::text(&roots.proc.join("sys/kernel").join(name));
    Kernel {
        release: proc("osrelease"),
        version: proc("version"),
        machine: uname.map(|uname| uname.machine().to_string_lossy().into_owned()),
        command_line: roots::text(&roots.proc.join("cmdline")),
    }
}

pub(super) fn cpu(roots: &Roots) -> Cpu {
    let cpuinfo = roots.proc_text("cpuinfo").unwrap_or_default();
    let cpus = roots.sys.join("devices/system/cpu");
    let vulnerabilities = cpus.join("vulnerabilities");
    let mitigations = roots::names_in(&vulnerabilities)
        .into_iter()
        .filter_map(|name| Some((name.clone(), roots::text(&vulnerabilities.join(&name))?)))
        .collect();
    Cpu {
        model: cpu_model(&cpuinfo),
        online: roots::text(&cpus.join("online"))
            .and_then(|list| count_list(&list))
            .or_else(|| count_processors(&cpuinfo)),
        cores: count_cores(&cpuinfo),
        governors: governors(roots),
        max_khz: roots::number(&cpus.join("cpu0/cpufreq/cpuinfo_max_freq")),
        mitigations,
    }
}

/// The governors in use, each once.
pub(crate) fn governors(roots: &Roots) -> Vec<String> {
    let cpus = roots.sys.join("devices/system/cpu");
    let found: BTreeSet<String> = roots::names_in(&cpus)
        .into_iter()
        .filter_map(|name| roots::text(&cpus.join(name).join("cpufreq/scaling_governor")))
        .collect();
    found.into_iter().collect()
}

/// `key : value` of `/proc/cpuinfo`; the key for the model differs between architectures.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "Processor", "cpu"]
        .iter()
        .find_map(|wanted| pairs(cpuinfo).find(|(key, _)| key == wanted))
        .map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim(), value.trim()))
}

fn count_processors(cpuinfo: &str) -> Option<u32> {
    let count = pairs(cpuinfo)
        .filter(|(key, _)| *key == "processor")
        .count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

fn count_cores(cpuinfo: &str) -> Option<u32> {
    let mut cores = BTreeSet::new();
    let mut package = None;
    for (key, value) in pairs(cpuinfo) {
        match key {
            "processor" => package = None,
            "physical id" => package = value.parse::<u32>().ok(),
            "core id" => {
                cores.insert((package?, value.parse::<u32>().ok()?));
            }
            _ => {}
        }
    }
    u32::try_from(cores.len()).ok().filter(|count| *count > 0)
}

/// Number of CPUs in a list such as `0-3,8`.
pub(super) fn count_list(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Reads `/proc/meminfo`, and the limit of the control group.
///
/// # Errors
/// When it cannot be read or does not tell the total.
pub fn memory(roots: &Roots) -> Result<Memory> {
    Ok(Memory {
        limit: cgroup::memory_limit(roots),
        write_back: write_back(roots),
        ..parse_meminfo(&roots.proc_text("meminfo")?)?
    })
}

/// What of these the kernel has.
fn write_back(roots: &Roots) -> BTreeMap<String, u64> {
    const NAMES: [&str; 6] = [
        "dirty_background_bytes",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_expire_centisecs",
        "dirty_ratio",
        "dirty_writeback_centisecs",
    ];
    let files = roots.proc.join("sys/vm");
    let read = |name: &str| Some((name.to_owned(), roots::number(&files.join(name))?));
    NAMES.into_iter().filter_map(read).collect()
}

/// Parses `/proc/meminfo`, whose `kB` are KiB.
///
/// # Errors
/// When the total is missing.
pub(super) fn parse_meminfo(text: &str) -> Result<Memory> {
    let value = |wanted: &str| {
        let (_, value) = pairs(text).find(|(key, _)| *key == wanted)?;
        let kib: u64 = value.strip_suffix(" kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    Ok(Memory {
        total: value("MemTotal").ok_or_else(|| {
            ObserveError::malformed("/proc/meminfo", 1, "there is no line `MemTotal: N kB`")
        })?,
        available: value("MemAvailable"),
        dirty: value("Dirty"),
        swap_total: value("SwapTotal"),
        swap_free: value("SwapFree"),
        limit: None,
        write_back: BTreeMap::new(),
    })
}

/// A hint at a hypervisor or container. Order: what names itself first.
pub(super) fn virtualisation(roots: &Roots) -> Option<String> {
    let dmi = roots.sys.join("class/dmi/id");
    let vendor = [
        roots::text(&dmi.join("sys_vendor")),
        roots::text(&dmi.join("product_name")),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(" ");
    const VENDORS: [(&str, &str); 9] = [
        ("KVM", "kvm"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("Xen", "xen"),
        ("Virtual Machine", "hyper-v"),
        ("Amazon EC2", "amazon ec2"),
        ("Google Compute Engine", "google compute engine"),
        ("Bochs", "bochs"),
    ];
    let named = VENDORS
        .iter()
        .find(|(mark, _)| vendor.contains(mark))
        .map(|(_, name)| *name);
    let hypervisor = roots::text(&roots.sys.join("hypervisor/type"));
    let cpuinfo = roots.proc_text("cpuinfo").unwrap_or_default();
    let cpu_flag = pairs(&cpuinfo)
        .find(|(key, _)| *key == "flags")
        .is_some_and(|(_, flags)| flags.split(' ').any(|flag| flag == "hypervisor"));
    named
        .map(str::to_owned)
        .or(hypervisor)
        .or_else(|| cpu_flag.then(|| "hypervisor".to_owned()))
        .or_else(|| container(roots))
}

fn container(roots: &Roots) -> Option<String> {
    let init = std::fs::read(roots.proc.join("1/environ")).ok()?;
    init.split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"container="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

/// The batteries of the machine (not those of a mouse, whose scope is `Device`).
pub(crate) fn batteries(roots: &Roots) -> Vec<BatteryState> {
    let class = roots.sys.join("class/power_supply");
    roots::names_in(&class)
        .into_iter()
        .filter(|name| {
            let attribute = |file: &str| roots::text(&class.join(name).join(file));
            attribute("type").as_deref() == Some("Battery")
                && attribute("scope").as_deref() != Some("Device")
        })
        .filter_map(|name| {
            let status = roots::text(&class.join(&name).join("status"))?;
            Some(BatteryState { name, status })
        })
        .collect()
}

#[cfg(test)]
#[path = "../tests/host.rs"]
mod tests;
