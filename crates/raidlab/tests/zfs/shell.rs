//! A shell in the guest of an experiment with pools.
use crate::lab::Lab;
use crate::{command, pools};
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn the_shell_of_an_experiment_with_pools_has_zfs() {
    let lab = Lab::new();
    lab.write("pools.toml", pools::SMALL);
    let mut command = command(&lab, "vm shell pools.toml");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().expect("raidlab starts");
    let mut keys = shell.stdin.take().expect("its keys");
    keys.write_all(b"zpool list; echo went-$((40+2))-$?\n")
        .expect("it listens");
    drop(keys);
    let output = shell.wait_with_output().expect("it ends by itself");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    for said in ["zpool, zfs", "no pools available", "went-42-0"] {
        assert!(out.contains(said), "no '{said}' in {out}");
    }
}
