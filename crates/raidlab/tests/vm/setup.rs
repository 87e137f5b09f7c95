//! `raidlab vm setup` and `raidlab vm probe`.
use crate::guest::{left, may, run};
use crate::lab::Lab;

#[test]
fn a_guest_boots_and_the_image_is_the_same_each_time() {
    if !may("a_guest_boots_and_the_image_is_the_same_each_time") {
        return;
    }
    let lab = Lab::new();
    let first = run(&lab, "vm setup --json").done().json();
    let second = run(&lab, "vm setup --no-boot --json").done().json();
    assert_eq!(
        first["image"], second["image"],
        "the same content, bit for bit"
    );
    assert_eq!(first["boot"]["kernel"], first["kernel"]["release"]);
    let programs = first["image"]["programs"].as_array().expect("a list");
    for name in ["mdadm", "mke2fs"] {
        assert!(programs.iter().any(|p| p == name), "{name} in {programs:?}");
    }
    // By its own clock a guest boots in seconds, whatever this machine is doing.
    let seconds = first["boot"]["guest_seconds"].as_f64().expect("a time");
    assert!((0.1..10.0).contains(&seconds), "{seconds}");
    let memory = first["boot"]["guest_memory"].as_u64().expect("bytes");
    assert!(memory > 400 << 20, "{memory}");
    assert!(left(&lab).is_empty());
}

#[test]
fn a_guest_that_goes_wrong_is_noticed_with_its_console() {
    if !may("a_guest_that_goes_wrong_is_noticed_with_its_console") {
        return;
    }
    for (how, said) in [
        ("panic", "Kernel panic - not syncing: sysrq triggered crash"),
        ("hang", "no sign of life"),
        ("memory", "Out of memory"),
    ] {
        let lab = Lab::new();
        let ran = run(&lab, &format!("vm setup --misbehave {how}"));
        ran.refused(5).says(&[said, "console"]);
        assert!(left(&lab).is_empty(), "{how}");
    }
}

#[test]
fn a_probe_tells_what_is_there_and_ends() {
    let lab = Lab::new();
    let found = run(&lab, "vm probe --json").done().json();
    let kinds = ["absent", "unusable", "runs"];
    assert!(kinds.iter().any(|kind| found["kvm"] == *kind), "{found}");
    run(&lab, "vm probe")
        .done()
        .prints(&["hardware virtualisation", "Guests"]);
}

#[test]
fn what_is_no_kernel_package_is_refused() {
    if !may("what_is_no_kernel_package_is_refused") {
        return;
    }
    let lab = Lab::new();
    lab.write("other.deb", "no package");
    run(&lab, "vm setup --package other.deb")
        .refused(4)
        .says(&["dpkg-deb"]);
}

#[test]
fn a_program_that_is_not_here_is_no_package_of_that_name() {
    if !may("a_program_that_is_not_here_is_no_package_of_that_name") {
        return;
    }
    let lab = Lab::new();
    let said = run(&lab, "vm exec nosuchprog").refused(4).err;
    for part in [
        "the guest has no program 'nosuchprog'",
        "./nosuchprog",
        "/usr/bin",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("apt-get"), "{said}");
    lab.write("script", "#!/bin/sh\n");
    run(&lab, "vm exec ./script").refused(4).says(&[
        "./script is no program that a guest could start",
        "vm exec sh -- -c",
    ]);
    assert!(left(&lab).is_empty());
}
