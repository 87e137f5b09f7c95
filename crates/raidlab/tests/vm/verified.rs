//! Arrays that are checked after the phases: what was changed behind md's back is found by the kernel's own md.
use crate::built;
use crate::guest::{has, left, may, run};
use crate::lab::Lab;
use std::io::Write as _;

const ARRAYS: &str = r#"title = "Checked"
disks = { model = "ST3250624AS", count = 4 }

[profile]
name = "sequential"
block = "256KiB"
depth = 2
total = "4MiB"
read-percent = 0

[array]
member-size = "24MiB"
chunk = "64KiB"

[host]
memory = "384MiB"

[factors]
layout = ["raid0", "raid1", "raid5", "raid6", "raid10"]

[design]
repeats = 1
verify = true
"#;

#[test]
fn arrays_are_checked_after_the_phases_and_those_without_redundancy_are_told() {
    if !may("arrays_are_checked_after_the_phases_and_those_without_redundancy_are_told") {
        return;
    }
    let lab = Lab::new();
    lab.write("checked.toml", ARRAYS);
    run(&lab, "run checked.toml --on vm")
        .done()
        .says(&["raid0 is not verified: it has no redundancy"])
        .prints(&[
            "Verified after the phases (md check",
            "consistent in 4 of 4 trials; of 1 more",
        ]);
    for trial in lab.trials() {
        let label = trial["cell"]["label"].as_str().expect("a label");
        assert_eq!(trial["status"], "complete", "{trial:#}");
        let checks = trial["checks"].as_array().map_or(&[][..], Vec::as_slice);
        if label == "raid0" {
            assert!(checks.is_empty(), "{trial:#}");
            continue;
        }
        let [check] = checks else {
            panic!("{label}: {checks:?}");
        };
        assert_eq!(check["by"], "md check", "{label}");
        assert_eq!(check["counts"]["mismatch_cnt"], 0, "{label}");
        assert_eq!(check["consistent"], true, "{label}");
        assert!(
            check["elapsed_ns"].as_u64().is_some_and(|ns| ns > 0),
            "{label}: {check}"
        );
        assert!(
            check["bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes >= 20 << 20),
            "{label}: {check}"
        );
        assert!(
            trial["flags"].as_array().is_some_and(Vec::is_empty),
            "{trial:#}"
        );
    }
}

/// The check's own tests, in a guest: its kernel has md.
#[test]
fn what_was_changed_behind_mds_back_is_found_in_a_guest() {
    let name = "what_was_changed_behind_mds_back_is_found_in_a_guest";
    if !may(name) || !has(name, "losetup") {
        return;
    }
    let lab = Lab::new();
    let program = built::tests(&["--workspace"]);
    let modules =
        ["loop", "md_mod", "raid1", "raid10", "raid456"].map(|module| format!("--module {module}"));
    let line = format!(
        "vm exec {} --with losetup --with mdadm {} --env CI=1 --env RAIDLAB_GATES_IN_GUEST=1 --env TMPDIR=/tmp -- \
         provision::check::tests::of_the_kernel:: --test-threads=1",
        program.display(),
        modules.join(" "),
    );
    let ran = run(&lab, &line).done();
    for test in [
        "what_was_changed_behind_mds_back_is_found",
        "a_check_that_is_interrupted_leaves_the_array_idle",
        "a_check_in_the_middle_is_stopped_and_one_that_another_stopped_is_no_check",
    ] {
        let passed = format!("of_the_kernel::{test} ... ok");
        assert!(
            ran.out.contains(&passed),
            "{test} in\n{}{}",
            ran.out,
            ran.err
        );
        // For the sum over all tests: what this machine's kernel could not show has been shown.
        let _ = writeln!(std::io::stderr(), "TESTED {test}: in a guest");
    }
    assert!(!ran.err.contains("UNTESTED"), "{}", ran.err);
    assert!(left(&lab).is_empty());
}
