//! Members that are gone, and devices that are no arrays.
use super::*;
use crate::journal::{Journal, Undo};
use crate::provision::{Context, Node, ProvisionPlan, Target, build, claimed_member};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

#[test]
fn a_member_that_is_no_longer_there_keeps_nothing_else_from_being_undone() {
    if !may("a_member_that_is_no_longer_there_keeps_nothing_else_from_being_undone") {
        return;
    }
    let roots = Roots::system();
    let (lost, steady) = (Theirs::new(), Theirs::new());
    let mut claims = [&lost, &steady].map(|theirs| theirs.take(Gate::ALL).expect("a claim"));
    let plan = ProvisionPlan {
        members: claims
            .iter()
            .map(|claim| claimed_member(&roots, claim))
            .collect(),
        steps: Vec::new(),
        fill: Vec::new(),
        start: Vec::new(),
        checks: Vec::new(),
        target: Target::Device(Node::Member(1)),
        notes: Vec::new(),
    };
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(&place.path().join("journal"), "x").expect("begun");
    let mut context = Context {
        roots: &roots,
        cancel: &AtomicBool::new(false),
        monitor: &mut |_| ControlFlow::Continue(()),
    };
    let built = build(&plan, &mut claims, &mut journal, &mut context).expect("nothing to do");
    let made = place.path().join("made");
    journal
        .intend("make a directory", &[Undo::NewDirectory(made.clone())])
        .expect("announced");
    std::fs::create_dir(&made).expect("made");
    // Another size is another device.
    let file = lost.directory.path().join("disk");
    let file = OpenOptions::new().write(true).open(file).expect("its file");
    file.set_len(SIZE / 2).expect("shorter");
    system(&["losetup", "--set-capacity", lost.path()]);
    let report = built
        .undo(&mut claims, &mut journal, &roots)
        .expect("the others are undone");
    assert!(!made.exists(), "{report:?}");
    assert_eq!(report.left.len(), 1, "{report:?}");
    assert!(report.left[0].contains("another device"), "{report:?}");
}

#[test]
fn a_loop_device_that_someone_looks_at_is_gone_when_it_is_undone() {
    if !may("a_loop_device_that_someone_looks_at_is_gone_when_it_is_undone") {
        return;
    }
    let theirs = Theirs::new();
    let file = FileId::of(&theirs.directory.path().join("disk")).expect("its file");
    let looks = File::open(&theirs.path).expect("readable");
    let looking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(looks);
    });
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(place.path(), "x").expect("begun");
    journal
        .intend("show it as a block device", &[Undo::LoopDevice(file)])
        .expect("announced");
    let report = journal.undo_since(&Roots::system(), 0).expect("undone");
    assert_eq!(report.undone.len(), 1, "{report:?}");
    let name = theirs.path.file_name().expect("a name");
    let shown = Roots::system()
        .sys
        .join("block")
        .join(name)
        .join("loop/backing_file");
    // The number may have been given to another test meanwhile.
    let shown = sysfs::text(&shown).unwrap_or_default();
    let own = theirs.directory.path().to_str().expect("a name");
    assert!(!shown.starts_with(own), "it still shows its file");
    looking.join().expect("it has looked");
}

#[test]
fn a_device_that_lies_on_nothing_is_not_taken_for_an_array() {
    if !may("a_device_that_lies_on_nothing_is_not_taken_for_an_array") {
        return;
    }
    let theirs = Theirs::new();
    let error = Claim::of_built(&Roots::system(), &theirs.path, &[]).expect_err("a bare disk");
    assert!(error.to_string().contains("no array"), "{error}");
}
