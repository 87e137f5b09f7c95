//! Checks of arrays that do not answer, and that come no further.
use super::compare::array_within;
use super::pool::scrub_by;
use crate::error::HostError;
use crate::provision::build::Context;
use raidlab_io::observe::Roots;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);
/// What is stopped ends within this time.
const SOON: Duration = Duration::from_secs(8);

/// A zpool that writes down what it is told, and answers so when it is asked for the status.
fn zpool(place: &Path, status: &str) -> String {
    let (path, text, told) = (place.join("zpool"), place.join("text"), place.join("told"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\n[ $1 = status ] || exit 0\n{status}\n",
        told.display()
    );
    fs::write(&text, script).expect("written");
    // A program that was open for writing here may be so still in one that another test is just starting, and is not run then.
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).args([&text, &path]).status();
    assert!(installed.expect("install").success());
    path.to_str().expect("a name").to_owned()
}

/// What a check came to, which is ended when it goes on for longer than it should.
fn checked<T>(roots: &Roots, check: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let begun = Instant::now();
    check(&mut Context {
        roots,
        cancel: &AtomicBool::new(false),
        monitor: &mut |_| match begun.elapsed() < SOON {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        },
    })
}

#[test]
fn a_pool_that_does_not_answer_is_not_waited_for_after_a_signal() {
    let place = tempfile::tempdir().expect("a directory");
    let zpool = zpool(place.path(), "exec sleep 30");
    let (roots, cancel) = (Roots::system(), AtomicBool::new(false));
    let told = || fs::read_to_string(place.path().join("told")).unwrap_or_default();
    let begun = Instant::now();
    let came = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !told().contains("status") && begun.elapsed() < SOON {
                std::thread::sleep(Duration::from_millis(10));
            }
            cancel.store(true, Ordering::Relaxed);
        });
        let mut context = Context {
            roots: &roots,
            cancel: &cancel,
            monitor: &mut |_| ControlFlow::Continue(()),
        };
        scrub_by(&zpool, &mut context, "tank", SOON)
    });
    assert!(matches!(came, Err(HostError::Interrupted)), "{came:?}");
    assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
    assert_eq!(told(), "scrub tank\nstatus -p tank\nscrub -s tank\n");
}

#[test]
fn a_scrub_that_comes_no_further_is_stopped_and_told() {
    let place = tempfile::tempdir().expect("a directory");
    let at = "echo '  scan: scrub in progress since Sun'; echo '  0 repaired, 33.33% done, 00:00:13 to go'";
    let zpool = zpool(place.path(), at);
    let scrub = |context: &mut Context<'_>| scrub_by(&zpool, context, "tank", SHORT);
    let error = checked(&Roots::system(), scrub).expect_err("it stands still");
    assert!(error.to_string().contains("came no further"), "{error}");
    let told = fs::read_to_string(place.path().join("told")).expect("told");
    assert!(told.ends_with("scrub -s tank\n"), "{told}");
}

/// ZFS looks at all that it knows of first, and reads it in the order of the disks afterwards: until then nothing is done.
#[test]
fn a_scrub_that_gathers_what_it_is_to_read_comes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let asked = "n=$(grep -c status $(dirname $0)/told); [ $n -lt 12 ] || exec echo '  scan: scrub repaired 0B in 00:00:02 with 0 errors'\n\
                 echo '  scan: scrub in progress since Sun'; echo \" $n.50G scanned at 3M/s, 0B issued at 0B/s, 2T total\"\n\
                 echo '  0B repaired, 0.00% done, no estimated completion time'";
    let zpool = zpool(place.path(), asked);
    let scrub = |context: &mut Context<'_>| scrub_by(&zpool, context, "tank", 2 * SHORT);
    checked(&Roots::system(), scrub).expect("it comes to its end");
}

#[test]
fn a_check_of_md_that_comes_no_further_is_stopped_and_told() {
    let tree = tempfile::tempdir().expect("a directory");
    let roots = Roots::under(tree.path());
    let md = roots.block("md7").join("md");
    fs::create_dir_all(&md).expect("made");
    fs::write(md.join("sync_completed"), "8 / 100\n").expect("written");
    let check = |context: &mut Context<'_>| array_within(context, 7, false, SHORT);
    let error = checked(&roots, check).expect_err("it stands still");
    let error = error.to_string();
    assert!(
        error.contains("the check of md7 came no further"),
        "{error}"
    );
    let action = fs::read_to_string(md.join("sync_action")).expect("set");
    assert_eq!(action, "idle", "it was stopped");
}
