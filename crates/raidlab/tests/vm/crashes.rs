//! QEMU that itself crashes before its guest has come up.
use crate::guest::{assert_gone, command, left, may};
use crate::lab::{Lab, Ran, ended_within};
use std::os::unix::fs::PermissionsExt;

/// A guest boots with a QEMU that crashes at its start for the first, a moment later for the second of those that are
/// counted, and does as it should when there are no more to crash.
fn booted(lab: &Lab, crashes: [u32; 2]) -> Ran {
    let [at_once, later] = crashes;
    let script = format!(
        r#"#!/bin/sh
case "$*" in *-kernel*) ;; *) PATH=/usr/bin:/bin exec /usr/bin/qemu-system-x86_64 "$@" ;; esac
echo boot >> boots
n=$(wc -l < boots)
[ "$n" -gt {at_once} ] || kill -SEGV $$
[ "$n" -gt $(({at_once} + {later})) ] || (sleep 0.3; kill -SEGV $$) &
exec /usr/bin/qemu-system-x86_64 "$@"
"#
    );
    std::fs::create_dir_all(lab.path("bin")).expect("a writable lab");
    lab.write("bin/qemu-system-x86_64", script);
    let program = lab.path("bin/qemu-system-x86_64");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("its owner");
    let path = std::env::var("PATH").expect("a path");
    let mut command = command(lab, "vm setup --json");
    command.env("PATH", format!("{}:{path}", lab.path("bin").display()));
    let ran = ended_within(command, crate::guest::PATIENCE);
    assert_gone(lab);
    assert!(left(lab).is_empty());
    ran
}

#[test]
fn a_qemu_that_crashes_while_its_guest_boots_is_started_anew() {
    if !may("a_qemu_that_crashes_while_its_guest_boots_is_started_anew") {
        return;
    }
    let lab = Lab::new();
    let ran = booted(&lab, [1, 1]);
    let said = ran.err.clone();
    let crash = "warning: QEMU crashed before its guest had come up (signal: 11 (SIGSEGV)";
    assert_eq!(said.matches(crash).count(), 2, "{said}");
    let told = ran.done().json();
    assert_eq!(told["boot"]["kernel"], told["kernel"]["release"], "{said}");
}

#[test]
fn a_qemu_that_crashes_each_time_is_told() {
    if !may("a_qemu_that_crashes_each_time_is_told") {
        return;
    }
    // 4: it cannot be started; 5: the guest came to nothing.
    for (crashes, code) in [([9, 0], 4), ([0, 9], 5)] {
        let lab = Lab::new();
        let ran = booted(&lab, crashes).code(code);
        assert!(ran.err.contains("signal: 11 (SIGSEGV)"), "{}", ran.err);
        let boots = std::fs::read_to_string(lab.path("boots")).expect("it was called");
        assert_eq!(boots.lines().count(), 3, "{}", ran.err);
    }
}
