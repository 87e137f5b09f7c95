//! Where the kernel puts what, beside where the layouts say.
use crate::guest;
use crate::lab::Lab;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One array of each kind; the whole matrix is kept with the validation.
const KINDS: [&str; 7] = [
    "linear on 2 unequal 1.2",
    "raid0 on 4 unequal 64KiB 1.2",
    "raid4 on 3 16KiB 1.2",
    "raid5-la on 3 64KiB imsm",
    "raid6-ddf-N-continue on 4 64KiB ddf",
    "raid10-f2 on 3 16KiB 1.2",
    "raid5+0 2x3 on 6 64KiB 1.0",
];

/// Without the program that makes arrays there is nothing to look at, which is known before a guest boots.
#[test]
fn without_mdadm_no_guest_is_booted_to_look_at_arrays() {
    let name = "without_mdadm_no_guest_is_booted_to_look_at_arrays";
    let hidden = Path::new("/usr/sbin/mdadm").exists();
    if !guest::may(name) || !guest::has(name, "unshare") || !hidden {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        // Hiding a program takes a mount.
        return;
    }
    let lab = Lab::new();
    let empty = lab.place().display().to_string();
    let inside = guest::command(&lab, "vm maps --only raid1");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.args(["mount --bind \"$0\" /usr/sbin && exec \"$@\"", &empty]);
    command.arg(inside.get_program()).args(inside.get_args());
    lab.settle(&mut command);
    for (name, value) in inside.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    crate::lab::ended_within(command, guest::PATIENCE)
        .refused(4)
        .says(&["mdadm", "apt-get install mdadm"]);
}

#[test]
fn the_kernel_puts_every_sector_and_parity_where_the_layouts_say() {
    if !guest::may("the_kernel_puts_every_sector_and_parity_where_the_layouts_say") {
        return;
    }
    let lab = Lab::new();
    let only = KINDS.map(|kind| format!("--only '{kind}'")).join(" ");
    let seen = guest::run(&lab, &format!("vm maps --json {only}"))
        .done()
        .json();
    let arrays = seen["arrays"].as_array().expect("arrays");
    assert_eq!(arrays.len(), KINDS.len(), "{seen:#}");
    for array in arrays {
        let label = array["array"].as_str().expect("a name");
        let compared = &array["came"]["compared"];
        let number = |key: &str| {
            compared[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{array:#}"))
        };
        assert_eq!(number("wrong"), 0, "{array:#}");
        // Three MiB of each member, or more.
        assert!(number("sectors") >= 6144, "{array:#}");
        let copies = if label.starts_with("raid10") { 2 } else { 1 };
        assert_eq!(number("places"), copies * number("sectors"), "{array:#}");
        let parity = ["raid4", "raid5", "raid6"].map(|level| label.starts_with(level));
        assert_eq!(number("p") > 0, parity.contains(&true), "{array:#}");
        assert_eq!(number("q") > 0, parity[2], "{array:#}");
    }
    assert!(guest::left(&lab).is_empty());
}

#[test]
fn an_array_that_is_laid_out_otherwise_is_noticed() {
    if !guest::may("an_array_that_is_laid_out_otherwise_is_noticed") {
        return;
    }
    let lab = Lab::new();
    let line = "vm maps --only 'raid5-ls on 3 16KiB' --against raid5-la --json";
    let seen: Value = guest::run(&lab, line).code(1).json();
    let told = seen["arrays"][0]["came"]["compared"]["told"].to_string();
    assert!(told.contains("not array sector"), "{seen:#}");
    assert!(guest::left(&lab).is_empty());
}

#[test]
fn arrays_are_asked_for_by_what_is_in_their_names() {
    let lab = Lab::new();
    let listed = lab.run("vm maps --list --only imsm").done();
    listed.prints(&["raid5-la on 3 64KiB imsm", "raid1 on 2 imsm"]);
    lab.run("vm maps --only raid7")
        .refused(2)
        .says(&["no array has any of that", "--list"]);
}
