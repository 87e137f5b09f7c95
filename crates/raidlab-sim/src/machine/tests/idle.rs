//! For whom schedulers keep a disk idle.
use super::theory::{first, rate, text};
use super::*;

/// With a cache that keeps what it holds, `fsync` costs no turn of the disk; CFQ kept it idle for 8 ms after each of a process's
/// requests once, while the log waited: 80 calls a second where deadline had 17 000.
#[test]
fn a_log_does_not_wait_for_more_of_who_waits_for_it() {
    for (kernel, filesystem) in [
        ("2.6.18", "ext3"),
        ("2.6.32", "xfs"),
        ("3.10", "ext4"),
        ("4.19", "xfs"),
    ] {
        let of = |scheduler: &str| {
            let jobs = "[w]\nrw=write\nbs=4k\nsize=64m\nfsync=1\nruntime=2\ntime_based";
            let profile = format!("name = \"fio\"\njobs = '''\n{jobs}'''");
            let host = format!("\n[host]\nkernel = \"{kernel}\"\nscheduler = \"{scheduler}\"\n");
            let options = "\n[filesystem]\nmount-options = \"barrier=0\"\n";
            let system = format!("{options}kind = \"{filesystem}\"\n");
            let disk = r#"{ model = "ST3250624AS" }"#;
            let text = text(disk, "layout = \"single\"", &profile) + &host + &system;
            first(&text)
                .0
                .outcome
                .ops_per_second()
                .expect("time has passed")
        };
        let [cfq, deadline] = ["cfq", "deadline"].map(of);
        assert!(cfq > 0.8 * deadline, "{kernel}: {cfq} {deadline}");
    }
}

/// Each of two that write to a mirror could be the one that CFQ kept a disk for, at one disk the one and at the other the other: every
/// call took 8 ms when what came before had left the disks so. Copies say that nothing will follow (4.10); before 3.6 the
/// thread of the array asks for all writes.
#[test]
fn two_writers_do_not_keep_a_mirror_idle_for_each_other() {
    for kernel in ["2.6.32", "3.5", "4.10", "4.19"] {
        let of = |reads: &str| {
            let profile = format!(
                "name = \"sequential\"\nblock = \"4KiB\"\njobs = 2\ndepth = 1\ntime = \"3s\"\n{reads}"
            );
            let host = format!("\n[host]\nkernel = \"{kernel}\"\nscheduler = \"cfq\"\n");
            let disks = r#"{ model = "ST3250624AS", count = 2 }"#;
            let experiment = experiment(&(text(disks, "layout = \"raid1\"", &profile) + &host));
            let mut machine = machine(&experiment, &experiment.cells[0]);
            rate(run(&mut machine).last().expect("a phase"))
        };
        let [after, alone] = ["", "read-percent = 0"].map(of);
        assert!(
            (after / alone - 1.0).abs() < 0.1,
            "{kernel}: {after} {alone}"
        );
    }
}
