use std::collections::BTreeMap;

use crate::observe::tree::lvm_on_mirror;
use crate::observe::{Roots, diskstats, resolve};

use super::*;

fn idle_cpu() -> CpuUse {
    CpuUse {
        wall: Duration::from_secs(1),
        own: crate::observe::cpu::OwnCpu::default(),
        threads: Vec::new(),
        kernel: BTreeMap::new(),
        busy: Duration::ZERO,
        interrupts: Duration::ZERO,
        steal: Duration::ZERO,
        io_wait: Duration::ZERO,
        all: Duration::from_secs(2),
        foreign: Duration::ZERO,
        cpu_pressure: None,
        io_pressure: None,
        io: None,
        throttled: None,
    }
}

fn fit() -> Observations {
    Observations {
        memory: Memory {
            total: 8 << 30,
            available: Some(6 << 30),
            dirty: Some(0),
            swap_total: Some(1 << 30),
            swap_free: Some(1 << 30),
            write_back: BTreeMap::new(),
            limit: None,
        },
        governors: vec!["performance".to_owned()],
        batteries: Vec::new(),
        limits: Limits::default(),
        cpu: idle_cpu(),
        disks: Difference {
            wall: Duration::from_secs(1),
            devices: BTreeMap::new(),
            come: BTreeMap::new(),
        },
        devices: Vec::new(),
        top: Vec::new(),
        unreadable: Vec::new(),
        in_memory: None,
        read_only_mount: None,
        available: Some(100 << 30),
        limit: None,
        initialising: None,
        needed: 16 << 30,
        writes: true,
    }
}

#[test]
fn a_quiet_machine_is_fit() {
    let audit = audit(&fit());
    assert!(audit.is_clean() && !audit.is_fatal(), "{audit:?}");
}

fn loaded() -> Observations {
    let tree = lvm_on_mirror();
    tree.file("proc/meminfo", "MemTotal: 1 kB\n");
    let resolved = resolve(&tree.roots, &tree.path("proc")).unwrap();
    let target = Environment::capture(&tree.roots, Some(&resolved))
        .unwrap()
        .target
        .unwrap();
    let counters = |text: &str| Snapshot {
        taken: std::time::Instant::now(),
        devices: diskstats::parse(text).unwrap(),
    };
    let before = counters("253 0 dm-0 0 0 0 0 0 0 0 0 0 0 0\n");
    let mut disks = counters("253 0 dm-0 400 0 20480 9 0 0 0 0 7 90 90\n").since(&before);
    disks.wall = Duration::from_secs(1);
    let mut seen = fit();
    seen.memory.swap_free = Some(512 << 20);
    seen.memory.available = Some(100 << 20);
    seen.governors = vec!["powersave".to_owned()];
    seen.batteries = vec![BatteryState {
        name: "BAT0".to_owned(),
        status: "Discharging".to_owned(),
    }];
    seen.cpu.foreign = Duration::from_millis(800);
    seen.cpu.steal = Duration::from_millis(60);
    seen.cpu.cpu_pressure = Some(crate::observe::cpu::PressureShare {
        some: 0.2,
        full: None,
    });
    seen.disks = disks;
    seen.devices = target.devices;
    seen.top = target.top;
    seen.in_memory = Some("tmpfs".to_owned());
    seen.read_only_mount = Some("/mnt".to_owned());
    seen.available = Some(1 << 30);
    seen
}

#[test]
fn each_warning_names_what_and_the_remedy() {
    let audit = audit(&loaded());
    assert!(audit.is_fatal());
    let text: Vec<String> = audit.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    the target is in memory (tmpfs): no disk is measured; name a path on a disk, or take the figure as one of memory
    /mnt is mounted read only; remount it for writing, or name another path
    16 GiB is needed, 1 GiB is available; free some space, or give a smaller --size
    512 MiB of swap is in use; end what needs the memory, then `swapoff -a && swapon -a`
    only 100 MiB of 8 GiB memory is available; end other programs
    the CPU frequency governor is powersave; `cpupower frequency-set -g performance` for the time of the measurement
    the machine runs on its battery (BAT0); connect the power supply
    other programs use 0.80 CPUs; end them (top shows which), or measure when they are idle
    the hypervisor takes 3.0 % of the CPU time; measure when its other guests are quiet, with more repeats
    tasks wait for a CPU in 20.0 % of the time; end other programs (top shows which)
    md0 is rebuilding a member; wait until /sys/block/md0/md/sync_action says idle (`mdadm --wait /dev/md0`)
    md0 lacks 1 member; replace the member and let it rebuild, unless the degraded array is what you measure
    dm-0 is in use by others: 400 requests and 10.0 MiB a second, 7 in flight; end what uses it (`iotop -o` shows which), or wait for write-back to end (`sync`)
    ");
}

#[test]
fn a_run_that_only_reads_needs_no_space_and_no_permission_to_write() {
    let seen = Observations {
        writes: false,
        ..loaded()
    };
    assert!(!audit(&seen).is_fatal());
}

#[test]
fn the_state_of_arrays_is_in_words() {
    let states = array_states(&loaded().devices);
    let states: Vec<_> = states.iter().map(|s| (&s.words[..], s.busy)).collect();
    assert_eq!(
        states,
        [
            ("md0 is rebuilding a member", true),
            ("md0 lacks 1 member", false)
        ]
    );
    assert!(array_states(&[]).is_empty());
}

#[test]
fn switched_off_counters_are_told() {
    let mut seen = fit();
    seen.devices = loaded().devices;
    seen.devices
        .retain(|device| device.name == "sda" || device.name == "sda1");
    for device in &mut seen.devices {
        device.queue.iostats = Some(false);
    }
    let audit = audit(&seen);
    assert_eq!(
        audit.warnings.len(),
        1,
        "the partition has its disk's queue: {audit:?}"
    );
    assert_eq!(audit.warnings[0].kind, WarningKind::CountersOff);
}

#[test]
fn a_write_cache_the_kernel_does_not_know_of_is_told() {
    let mut device = loaded().devices.pop().unwrap();
    let warns = |device: &DeviceRecord| {
        let mut audit = Audit::default();
        write_cache(device, &mut audit);
        audit
            .warnings
            .iter()
            .any(|warning| warning.kind == WarningKind::WriteCache)
    };
    assert!(!warns(&device));
    let identity = |on| environment::Identity {
        write_cache: Some(on),
        ..Default::default()
    };
    device.identity = Some(identity(true));
    device.queue.write_cache = Some("write back".to_owned());
    assert!(!warns(&device));
    device.queue.write_cache = Some("write through".to_owned());
    assert!(warns(&device));
    device.identity = Some(identity(false));
    assert!(!warns(&device), "not known to turn");
    device.queue.rotational = Some(true);
    assert!(warns(&device));
}

#[test]
fn the_running_machine_can_be_observed() {
    let roots = Roots::system();
    let directory = tempfile::tempdir().unwrap();
    let resolved = resolve(&roots, directory.path()).unwrap();
    let intent = Intent {
        needed: u64::MAX,
        writes: true,
        sample: Duration::ZERO,
    };
    let seen = observe(&roots, &resolved, intent).unwrap();
    let audit = audit(&seen);
    assert!(
        audit
            .warnings
            .iter()
            .any(|w| w.kind == WarningKind::NoSpace && w.fatal),
        "{audit:?}"
    );
}

#[test]
fn limits_of_the_control_group_are_told_of_the_devices_that_are_measured() {
    let tree = lvm_on_mirror();
    tree.file("proc/meminfo", "MemTotal: 1 kB\n")
        .file("proc/self/cgroup", "0::/job\n")
        .file("sys/fs/cgroup/job/cpu.max", "25000 100000\n")
        .file(
            "sys/fs/cgroup/job/io.max",
            "8:16 rbps=1048576 wbps=max riops=max wiops=max\n8:32 rbps=1 wbps=1 riops=1 wiops=1\n",
        );
    let resolved = resolve(&tree.roots, &tree.path("proc")).unwrap();
    let mut seen = loaded();
    seen.limits = limits(&tree.roots, &resolved);
    let told: Vec<String> = audit(&seen)
        .warnings
        .into_iter()
        .filter(|warning| warning.kind == WarningKind::Limited)
        .map(|warning| warning.text)
        .collect();
    assert_eq!(
        told,
        [
            "this control group may use 0.25 CPUs",
            "this control group may read 1 MiB a second on sdb"
        ]
    );
}
