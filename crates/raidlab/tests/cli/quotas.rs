//! Quotas: told beforehand with whose they are, and when one is used up while it is measured.
use crate::lab::{Lab, until};
use crate::root::{self, Loop, Mounted, system};
use std::path::Path;

/// btrfs on a loop device, whose quota groups this machine's kernel needs no module for.
fn btrfs(lab: &Lab, limit: &str) -> (Mounted, Loop) {
    let file = lab.path("image");
    let image = std::fs::File::create(&file).expect("a file");
    image.set_len(400 << 20).expect("room");
    let device = Loop::on(&file);
    let path = lab.path("shared");
    system("mkfs.btrfs", &["-q", "-f", text(&device.path)]);
    let mounted = Mounted::on(&path, &device);
    system("btrfs", &["quota", "enable", text(&path)]);
    allow(&path, limit);
    (mounted, device)
}

fn allow(path: &Path, limit: &str) {
    system("btrfs", &["qgroup", "limit", limit, text(path)]);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain text")
}

fn may(name: &str) -> bool {
    root::may(name) && root::has(name, "mkfs.btrfs") && root::has(name, "btrfs")
}

#[test]
fn what_a_quota_does_not_allow_is_refused_with_whose_it_is() {
    if !may("what_a_quota_does_not_allow_is_refused_with_whose_it_is") {
        return;
    }
    let lab = Lab::new();
    let (shared, _device) = btrfs(&lab, "40M");
    lab.run("bench shared --profile bonnie --size 64MiB -n 1")
        .refused(4)
        .says(&["64 MiB", "40", "the quota of quota group 0/5 (40 MiB, "]);
    assert_eq!(crate::lab::names(&shared.path), Vec::<String>::new());
    assert!(!lab.store().exists());
}

#[test]
fn a_quota_that_is_used_up_meanwhile() {
    if !may("a_quota_that_is_used_up_meanwhile") {
        return;
    }
    let lab = Lab::new();
    let (shared, _device) = btrfs(&lab, "200M");
    let line =
        "bench shared -n 50 --profile bonnie --files 0 --size 24MiB --set fast=yes --set seeks=10";
    let mut running = lab.start(line);
    until("the first trial", || lab.complete() > 0);
    allow(&shared.path, "8M");
    let status = running.end();
    let said = running.said();
    assert!(matches!(status.code(), Some(4 | 5)), "{said}");
    for part in [
        "error: ",
        "the quota of quota group 0/5 (8 MiB, ",
        "smaller size",
    ] {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
    assert!(!said.contains("has gone"), "{said}");
    assert!(lab.complete() > 0, "what was measured is kept");
    assert_eq!(crate::lab::names(&shared.path), Vec::<String>::new());
}
