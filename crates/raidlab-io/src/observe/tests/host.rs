use proptest::prelude::*;

use crate::observe::tree::Tree;

use super::*;

const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu vme hypervisor\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) Processor\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu\n";

#[test]
fn reads_the_processor() {
    let tree = Tree::new();
    let cpus = "sys/devices/system/cpu";
    tree.file("proc/cpuinfo", CPUINFO)
        .file(&format!("{cpus}/online"), "0-1\n")
        .file(
            &format!("{cpus}/cpu0/cpufreq/scaling_governor"),
            "powersave\n",
        )
        .file(
            &format!("{cpus}/cpu1/cpufreq/scaling_governor"),
            "powersave\n",
        )
        .file(
            &format!("{cpus}/cpu0/cpufreq/cpuinfo_max_freq"),
            "3500000\n",
        )
        .file(
            &format!("{cpus}/vulnerabilities/meltdown"),
            "Mitigation: PTI\n",
        );
    let cpu = cpu(&tree.roots);
    assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Processor"));
    assert_eq!(
        (cpu.online, cpu.cores, cpu.max_khz),
        (Some(2), Some(1), Some(3_500_000))
    );
    assert_eq!(cpu.governors, ["powersave"]);
    assert_eq!(cpu.mitigations["meltdown"], "Mitigation: PTI");
    assert_eq!(virtualisation(&tree.roots).as_deref(), Some("hypervisor"));
    tree.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_eq!(virtualisation(&tree.roots).as_deref(), Some("qemu"));
}

#[test]
fn knows_nothing_of_an_empty_machine() {
    let tree = Tree::new();
    let cpu = cpu(&tree.roots);
    assert_eq!(
        (cpu.model, cpu.online, cpu.cores, cpu.max_khz),
        (None, None, None, None)
    );
    assert!(cpu.governors.is_empty() && cpu.mitigations.is_empty());
    assert_eq!(virtualisation(&tree.roots), None);
    let kernel = kernel(&tree.roots);
    assert_eq!(
        (kernel.release, kernel.command_line, kernel.machine),
        (None, None, None)
    );
    assert!(batteries(&tree.roots).is_empty());
    assert!(
        memory(&tree.roots)
            .unwrap_err()
            .to_string()
            .contains("proc/meminfo")
    );
}

#[test]
fn reads_memory_in_bytes() {
    let text = "MemTotal:       24684096 kB\nMemFree:        1 kB\nMemAvailable:   20000000 kB\nDirty:    12 kB\nSwapTotal:      1000 kB\nSwapFree:       400 kB\n";
    let memory = parse_meminfo(text).unwrap();
    assert_eq!(memory.total, 24_684_096 * 1024);
    assert_eq!(memory.dirty, Some(12 * 1024));
    assert_eq!(memory.swap_used(), Some(600 * 1024));
    let problem = parse_meminfo("MemTotal: many kB\n")
        .unwrap_err()
        .to_string();
    assert_eq!(
        problem,
        "/proc/meminfo: line 1: there is no line `MemTotal: N kB`"
    );
}

#[test]
fn reads_what_may_be_dirty_as_far_as_the_kernel_tells() {
    let tree = Tree::new();
    tree.file("proc/meminfo", "MemTotal: 4096 kB\n");
    assert!(memory(&tree.roots).unwrap().write_back.is_empty());
    tree.file("proc/sys/vm/dirty_ratio", "0\n")
        .file("proc/sys/vm/dirty_bytes", "67108864\n")
        .file("proc/sys/vm/dirtytime_expire_seconds", "43200\n");
    let told = memory(&tree.roots).unwrap().write_back;
    let told: Vec<(&str, u64)> = told.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    assert_eq!(told, [("dirty_bytes", 67_108_864), ("dirty_ratio", 0)]);
}

#[test]
fn a_mouse_has_no_say_in_whether_the_machine_is_on_battery() {
    let tree = Tree::new();
    for (name, scope) in [("BAT0", "System"), ("hidpp_battery_0", "Device")] {
        let place = format!("sys/class/power_supply/{name}");
        tree.file(&format!("{place}/type"), "Battery\n")
            .file(&format!("{place}/scope"), &format!("{scope}\n"))
            .file(&format!("{place}/status"), "Discharging\n");
    }
    assert_eq!(batteries(&tree.roots).len(), 1);
}

#[test]
fn counts_cpu_lists() {
    assert_eq!(count_list("0-3,8"), Some(5));
    assert_eq!(count_list("0"), Some(1));
    for bad in ["", "a", "3-1", "0-4294967295,1-2", "0-"] {
        assert_eq!(count_list(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn never_panics(text in "[A-Za-z0-9: \n\tkB-]{0,200}") {
        let _ = parse_meminfo(&text);
        let _ = (cpu_model(&text), count_cores(&text), count_list(&text));
    }
}
