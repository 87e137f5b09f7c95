//! A shell in a guest: what is typed before it listens is not lost, and a script ends it.
use crate::guest::{assert_gone, command, may};
use crate::lab::Lab;
use std::io::Write as _;
use std::process::Stdio;

const ONE: &str = r#"title = "One disk"
disks = { model = "nearline-24tb", count = 1 }
filesystem = "xfs"
profile = { name = "random", size = "64MiB" }
[array]
layout = "single"
member-size = "512MiB"
[host]
memory = "384MiB"
"#;

#[test]
fn a_script_is_carried_out_from_its_first_character_on() {
    if !may("a_script_is_carried_out_from_its_first_character_on") {
        return;
    }
    let lab = Lab::new();
    lab.write("one.toml", ONE);
    let mut command = command(&lab, "vm shell one.toml");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut shell = command.spawn().expect("raidlab starts");
    // All of it is there before the guest has even begun to boot.
    let mut keys = shell.stdin.take().expect("its keys");
    keys.write_all(
        b"echo first-$((40+2))\ngrep -c xfs /proc/filesystems\necho xfs-$?\necho last-$((40+3))",
    )
    .expect("it listens");
    drop(keys);
    let output = shell.wait_with_output().expect("it ends by itself");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}\n{err}");
    // `mount` without a kind tries what the kernel has.
    for line in ["first-42", "xfs-0", "last-43"] {
        assert!(out.contains(line), "no {line} in {out}\n{err}");
    }
    // What comes before the shell reads is shown by the shell, and not by its terminal, too.
    let shown = out.matches("first-$((40+2))").count();
    assert_eq!(shown, 1, "{out}");
    assert_gone(&lab);
}
