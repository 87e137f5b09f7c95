//! What building does when it cannot go on.
use super::*;
use std::path::PathBuf;

#[test]
fn the_mount_point_of_another_run_is_left_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let point = place.path().join("mnt");
    std::fs::create_dir(&point).expect("made by the other run");
    let plan = ProvisionPlan {
        members: Vec::new(),
        steps: vec![Step::Mount {
            fs_type: "ext4",
            options: String::new(),
            source: PathBuf::from("/nowhere"),
            on: Vec::new(),
            point: point.clone(),
        }],
        fill: Vec::new(),
        start: Vec::new(),
        checks: Vec::new(),
        target: Target::Directory(point.clone()),
        notes: Vec::new(),
    };
    let roots = Roots::system();
    let mut journal = Journal::begin(&place.path().join("journal"), "x").expect("begun");
    let mut context = Context {
        roots: &roots,
        cancel: &AtomicBool::new(false),
        monitor: &mut |_| ControlFlow::Continue(()),
    };
    let error = build(&plan, &mut [], &mut journal, &mut context).expect_err("it is taken");
    assert!(
        error.to_string().contains("another run of raidlab"),
        "{error}"
    );
    assert!(point.exists());
    let report = journal.finish(&roots).expect("nothing is open");
    assert_eq!(report, Report::default());
}
