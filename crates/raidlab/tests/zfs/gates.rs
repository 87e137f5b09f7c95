//! The gates before a device is written to, and what is done with pools that a killed run left, with ZFS itself: their own
//! tests, run in a guest that has it.
use crate::built;
use crate::lab::Lab;

const GATES: [&str; 4] = [
    "a_member_of_an_imported_and_of_an_exported_pool_is_refused",
    "a_device_whose_file_is_in_an_imported_pool_is_refused_by_its_bytes",
    "a_pool_that_someone_has_put_files_into_is_left",
    "a_pool_that_someone_has_exported_is_looked_into",
];

#[test]
fn members_of_real_pools_are_refused_and_nothing_stands_behind_the_gates() {
    let lab = Lab::new();
    let program = built::tests(&["-p", "raidlab-host", "--features", "test-zfs"]);
    let with = ["losetup", "sgdisk", "partx"].map(|program| format!("--with {program}"));
    let line = format!(
        "vm exec '{}' --zfs {} --module loop --env CI=1 --env RAIDLAB_GATES_IN_GUEST=1 --env TMPDIR=/tmp --limit 3600s \
         -- claim::tests::pools:: --test-threads=1",
        program.display(),
        with.join(" "),
    );
    let ran = crate::run(&lab, &line).done();
    for gate in GATES {
        let passed = format!("test claim::tests::pools::{gate} ... ok");
        assert!(ran.out.contains(&passed), "{gate} in\n{}", ran.out);
    }
    assert!(crate::guest::left(&lab).is_empty());
}
