//! What makes no machine is told with its place.
use super::*;

const PLAIN: &str = r#"
title = "Plain"
disks = { model = "ST3250624AS", count = 2 }

[array]
layout = "raid1"

[profile]
name = "random"
time = "1s"
"#;

/// The message when the experiment is changed after it was read.
fn told(change: impl FnOnce(&mut Experiment)) -> String {
    let mut experiment = experiment(PLAIN);
    change(&mut experiment);
    let built = Machine::build(&experiment, &experiment.cells[0], 1);
    built.expect_err("it is refused").to_string()
}

#[test]
fn models_are_named() {
    let told = told(|e| e.disks[1].model = "ST9999".to_owned());
    assert!(
        told.starts_with("disk 'disk1': there is no disk model 'ST9999': write"),
        "{told}"
    );
}

#[test]
fn overrides_are_named() {
    assert_eq!(
        told(|e| e.disks[1].overrides.rpm = Some(99_999)),
        "disk 'disk1', model 'ST3250624AS': with its override it is no disk: 99999 rpm is not a disk's speed: between 300 and 20000 is"
    );
}

#[test]
fn places_are_named() {
    assert_eq!(
        told(|e| e.disks[0].controller = "card".to_owned()),
        "disk 'disk0' is on controller 'card', which the experiment does not have"
    );
    assert_eq!(
        told(|e| e.controllers[0].bus = Some("isa".to_owned())),
        "controller 'sata' is on bus 'isa', which the experiment does not have"
    );
    assert_eq!(
        told(|e| e.cells[0].setup.array.members[1] = "disk9".to_owned()),
        "member 'disk9' is no disk of the experiment"
    );
}

#[test]
fn layouts_are_named() {
    let text = told(|e| e.cells[0].setup.array.members.truncate(1));
    assert!(text.starts_with("layout 'raid1' of 1 members: "), "{text}");
    assert_eq!(
        told(|e| e.disks[0].overrides.capacity = Some(Bytes(512 * 64))),
        "disk 'disk0' of 32 KiB is too small: nothing is left of it for data"
    );
}
