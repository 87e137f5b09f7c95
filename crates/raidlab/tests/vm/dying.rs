//! Disks of an allow-list that die while raidlab runs on them, in a guest: its kernel has md, and SCSI disks that can be
//! switched off and on.
use crate::guest::{PATIENCE, command, has, may};
use crate::lab::{Lab, ended_within};

/// Programs that the run needs.
const WITH: [&str; 4] = ["busybox", "mdadm", "mkfs.ext4", "dumpe2fs"];

/// Two disks of the allow-list in a mirror; in the second trial one is dead, later it lives again.
const SCRIPT: &str = r#"
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root XDG_CONFIG_HOME=/tmp/c XDG_STATE_HOME=/tmp/s XDG_DATA_HOME=/tmp/d
b=busybox
$b rmmod scsi_debug
$b insmod $($b find / -xdev -name "scsi_debug.ko*" | $b head -n 1) dev_size_mb=64 add_host=2 per_host_store=1 delay=0 || exit 9
$b sleep 1
$b mkdir -p /tmp/c/raidlab /tmp/w
cd /tmp/w
raidlab devices | $b grep -A 3 "^.*\[\[device\]\]" | $b grep -v "^--" > /tmp/c/raidlab/expendable.toml
$b chmod 600 /tmp/c/raidlab/expendable.toml
$b cat > lab.toml <<END
title = "A disk that dies"
disks = { model = "ST3250624AS", count = 2 }
filesystem = "ext4"
[array]
layout = "raid1"
[profile]
name = "random"
block = "64KiB"
depth = 4
size = "16MiB"
time = "3s"
read-percent = 50
[design]
repeats = 2
END
yes=$(raidlab plan lab.toml --on host | $b grep -o -- "--yes [0-9a-f]*" | $b head -n 1)
raidlab run lab.toml --on host $yes > /dev/null 2> said & run=$!
while kill -0 $run 2> /dev/null && ! $b grep -qF "[1/2]" said; do $b usleep 100000; done
while kill -0 $run 2> /dev/null && ! $b ls /tmp/s/raidlab/mnt/.raidlab-*/data-0 > /dev/null 2>&1; do $b usleep 100000; done
$b sleep 1
echo offline > /sys/block/sdb/device/state
wait $run
echo "run: $?"
$b cat said
echo "arrays: $($b grep -c "^md" /proc/mdstat), mounts: $($b grep -c /tmp/s /proc/mounts)"
raidlab list
raidlab clean
echo "clean: $?"
echo running > /sys/block/sdb/device/state
raidlab clean
echo "clean: $?"
raidlab run lab.toml --on host $yes > /dev/null 2> said
echo "again: $?"
$b cat said
"#;

/// One of two disks dies while their mirror is synced for the first time.
const AT_FIRST: &str = r#"
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root XDG_CONFIG_HOME=/tmp/c XDG_STATE_HOME=/tmp/s XDG_DATA_HOME=/tmp/d
b=busybox
$b rmmod scsi_debug
$b insmod $($b find / -xdev -name "scsi_debug.ko*" | $b head -n 1) dev_size_mb=64 add_host=2 per_host_store=1 delay=1 || exit 9
$b sleep 1
$b mkdir -p /tmp/c/raidlab /tmp/w
cd /tmp/w
raidlab devices | $b grep -A 3 "^.*\[\[device\]\]" | $b grep -v "^--" > /tmp/c/raidlab/expendable.toml
$b chmod 600 /tmp/c/raidlab/expendable.toml
$b cat > lab.toml <<END
title = "A disk that dies at first"
disks = { model = "ST3250624AS", count = 2 }
filesystem = "ext4"
profile = { name = "random", size = "16MiB", time = "1s" }
[array]
layout = "raid1"
[design]
repeats = 1
END
yes=$(raidlab plan lab.toml --on host | $b grep -o -- "--yes [0-9a-f]*" | $b head -n 1)
raidlab run lab.toml --on host $yes > /dev/null 2> said & run=$!
while kill -0 $run 2> /dev/null && ! $b grep -q "resync *=" /proc/mdstat; do :; done
echo offline > /sys/block/sdb/device/state
wait $run
echo "run: $?"
$b cat said
echo "arrays: $($b grep -c "^md" /proc/mdstat), mounts: $($b grep -c /tmp/s /proc/mounts)"
echo "told: $($b cat said | $b grep -o "is not cleared" | $b wc -l)"
echo running > /sys/block/sdb/device/state
raidlab clean
echo "clean: $?"
"#;

#[test]
fn a_disk_that_dies_while_its_array_is_made_is_named_with_what_to_do() {
    let name = "a_disk_that_dies_while_its_array_is_made_is_named_with_what_to_do";
    if !may(name) || !WITH.iter().all(|program| has(name, program)) {
        return;
    }
    let said = in_a_guest(AT_FIRST);
    for part in [
        "run: 5",
        "member disk1 (sdb, serial number ",
        "md119 does not become whole: 1 of its members are missing",
        "when it is sound again, the same command goes on",
        "arrays: 0, mounts: 0",
        "told: 1\n",
        "cleared /dev/sdb",
        "clean: 0",
    ] {
        assert!(said.contains(part), "no '{part}' in\n{said}");
    }
}

/// What a script says in a guest with two disks of scsi_debug.
fn in_a_guest(script: &str) -> String {
    let lab = Lab::new();
    let with = WITH[1..].iter().map(|program| format!("--with {program} "));
    let modules = ["scsi_debug", "sd_mod", "md_mod", "raid1"];
    let modules = modules.map(|module| format!("--module {module} ")).concat();
    let line = format!(
        "vm exec busybox {}{modules} --limit 500s -- sh -c",
        with.collect::<String>()
    );
    let mut command = command(&lab, &line);
    command.arg(script);
    ended_within(command, PATIENCE).done().out
}

#[test]
fn a_disk_that_dies_is_named_its_array_taken_apart_and_the_run_goes_on_when_it_is_back() {
    let name =
        "a_disk_that_dies_is_named_its_array_taken_apart_and_the_run_goes_on_when_it_is_back";
    if !may(name) || !WITH.iter().all(|program| has(name, program)) {
        return;
    }
    let said = in_a_guest(SCRIPT);
    let (died, later) = said.split_once("clean: 3").expect("it is not cleared yet");
    for part in [
        "run: 5",
        "member disk1 (sdb, serial number ",
        "when it is sound again, the same command goes on",
        // All is taken apart that can be; what cannot be cleared is known by its serial number.
        "arrays: 0, mounts: 0",
        "is not cleared, and may carry what raidlab wrote",
        "unfinished",
    ] {
        assert!(died.contains(part), "no '{part}' in\n{said}");
    }
    for part in [
        "cleared /dev/sdb",
        "clean: 0",
        "again: 0",
        "1 of 2 trials are there",
        "[2/2]",
    ] {
        assert!(later.contains(part), "no '{part}' in\n{said}");
    }
}
