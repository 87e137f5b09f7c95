//! The gates before a device is written to, in a guest: its kernel has arrays, volume groups and encryption, and nothing
//! of anyone's is there to be lost. What runs are the gates' own tests, as they were built for this machine.
use crate::built;
use crate::guest;
use crate::lab::Lab;
use std::collections::BTreeSet;
use std::io::Write as _;

/// What a gate must refuse, by the test that shows it and that without the gate the claim is given.
const GATES: [&str; 14] = [
    "an_empty_device_of_the_allow_list_is_claimed_and_held",
    "a_mounted_device_is_refused",
    "a_partition_of_a_disk_in_use_is_refused_and_so_is_the_disk",
    "swap_is_refused",
    "a_physical_volume_of_lvm_is_refused",
    "a_device_below_device_mapper_is_refused",
    "a_member_of_an_array_is_refused",
    // Members of ZFS pools and BIOS RAIDs among them, by their bytes.
    "file_systems_and_members_of_others_are_refused_by_their_bytes",
    "a_member_of_a_mounted_btrfs_that_no_mount_names_is_refused",
    "an_encrypted_device_is_refused_open_and_closed",
    "another_serial_number_or_size_is_refused",
    "a_name_that_has_become_another_device_is_refused",
    "a_device_that_changes_while_it_is_lent_is_not_taken_back",
    "a_device_that_someone_holds_is_refused",
];

/// Programs that the tests call.
const WITH: [&str; 17] = [
    "losetup",
    "mount",
    "umount",
    "partx",
    "sgdisk",
    "mkswap",
    "swapon",
    "swapoff",
    "mkfs.ext3",
    "mkfs.ext4",
    "e2fsck",
    "mkfs.btrfs",
    "mdadm",
    "dmsetup",
    "lvm",
    "cryptsetup",
    "busybox",
];

#[test]
fn every_gate_refuses_in_a_guest_and_nothing_else_stands_behind_it() {
    let name = "every_gate_refuses_in_a_guest_and_nothing_else_stands_behind_it";
    if !guest::may(name) || !WITH.iter().all(|program| guest::has(name, program)) {
        return;
    }
    let lab = Lab::new();
    // Of the whole workspace, so that what it needs has been built in the same way.
    let program = built::tests(&["--workspace"]);
    let with = WITH.map(|program| format!("--with {program}")).join(" ");
    let modules = ["loop", "md_mod", "dm_mod"].map(|module| format!("--module {module}"));
    let line = format!(
        "vm exec {} {with} {} --env CI=1 --env RAIDLAB_GATES_IN_GUEST=1 --env TMPDIR=/tmp -- claim::tests:: \
         --test-threads=1 --skip the_disk_that_this_system_runs_from",
        program.display(),
        modules.join(" "),
    );
    // A guest that ends without a result is no success of the command.
    let ran = guest::run(&lab, &line).done();
    let passed: BTreeSet<&str> = ran
        .out
        .lines()
        .filter_map(|line| {
            let test = line
                .strip_prefix("test claim::tests::")?
                .strip_suffix(" ... ok")?;
            // Whatever part of the tests it is in.
            test.rsplit("::").next()
        })
        .collect();
    for gate in GATES {
        assert!(passed.contains(gate), "{gate} in\n{}", ran.out);
    }
    assert!(
        !ran.err.contains("SKIPPED") && !ran.err.contains("UNTESTED"),
        "{}",
        ran.err
    );
    for test in &passed {
        // For the sum over all tests: what this machine's kernel could not show has been shown.
        let _ = writeln!(std::io::stderr(), "TESTED {test}: in a guest");
    }
    assert!(guest::left(&lab).is_empty());
}

/// A gate that is broken must not pass for one that holds.
#[test]
fn a_test_that_fails_in_a_guest_and_a_guest_that_dies_are_failures() {
    let name = "a_test_that_fails_in_a_guest_and_a_guest_that_dies_are_failures";
    if !guest::may(name) || !guest::has(name, "busybox") {
        return;
    }
    let lab = Lab::new();
    let script = |text: &str| format!("vm exec busybox -- sh -c '{text}'");
    guest::run(&lab, &script("echo out; echo err >&2; exit 3"))
        .code(5)
        .prints(&["out"])
        .says(&["err", "ended with code 3 in the guest"]);
    guest::run(&lab, &script("echo c > /proc/sysrq-trigger"))
        .refused(5)
        .says(&["Kernel panic"]);
    // The same program that is the guest's first process is a tool to whoever works there.
    guest::run(&lab, &script("raidlab --version"))
        .done()
        .prints(&["raidlab"]);
    guest::run(&lab, "vm exec ./nowhere")
        .refused(2)
        .says(&["there is no program ./nowhere"]);
    // A module that few want is put into the guest; one that the kernel does not have is told.
    guest::run(
        &lab,
        "vm exec busybox --module overlay -- cat /proc/filesystems",
    )
    .done()
    .prints(&["overlay"]);
    guest::run(&lab, "vm exec busybox --module no-such -- true")
        .refused(2)
        .says(&["no module 'no-such'"]);
    assert!(guest::left(&lab).is_empty());
}
