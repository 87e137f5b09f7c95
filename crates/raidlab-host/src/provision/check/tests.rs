//! What md and btrfs say of their arrays, as they say it.
use super::btrfs::{devices, figures, found as found_by_btrfs, is_through, scrubbed};
use super::compare::found;
use crate::tool::Output;

#[test]
fn mismatches_of_parity_are_never_benign_and_those_of_mirrors_may_be() {
    assert_eq!(found(119, 0, true), None);
    assert_eq!(found(119, 0, false), None);
    let parity = found(119, 8, false).expect("found");
    assert!(!parity.may_be_benign);
    assert!(parity.what.contains("md119") && parity.what.contains("8 sectors (mismatch_cnt)"));
    let mirror = found(7, 128, true).expect("found");
    assert!(mirror.may_be_benign);
    assert!(
        mirror.what.contains("benign where it is swap"),
        "{}",
        mirror.what
    );
}

/// What changes as time goes by alone is no progress.
#[test]
fn how_much_btrfs_has_scrubbed_is_known_with_and_without_a_share() {
    let text = "UUID: b1\nScrub started: Mon\nStatus: running\nDuration: 0:00:05\nTime left: 0:00:10\n\
                Total to scrub: 3.00GiB\nBytes scrubbed: 1.00GiB  (33.33%)\nRate: 200.00MiB/s\nError summary: no errors found\n";
    assert_eq!(scrubbed(text), ["bytes scrubbed: 1.00gib  (33.33%)"]);
    let old = "scrub status for b1\n\tscrub started at Mon, running for 00:00:05\n\ttotal bytes scrubbed: 1.00GiB with 0 errors\n";
    assert_eq!(
        scrubbed(old),
        ["\ttotal bytes scrubbed: 1.00gib with 0 errors"]
    );
}

/// As btrfs-progs 6.2 print it.
const SCRUB: &str = "scrub done for b1c0d687-79bf-442d-9a39-b903b8103176\nScrub started:    Mon Nov 23 23:28:20 2026\nStatus:           \
finished\nDuration:         0:00:00\n\tdata_extents_scrubbed: 1600\n\ttree_extents_scrubbed: 26\n\tdata_bytes_scrubbed: \
104857600\n\ttree_bytes_scrubbed: 425984\n\tread_errors: 0\n\tcsum_errors: 0\n\tverify_errors: 0\n\tno_csum: 0\n\tcsum_discards: \
0\n\tsuper_errors: 0\n\tmalloc_errors: 0\n\tuncorrectable_errors: 0\n\tunverified_errors: 0\n\tcorrected_errors: 0\n\tlast_physical: \
162529280\n";
const STATS: &str = "[/dev/loop0].write_io_errs    0\n[/dev/loop0].read_io_errs     0\n[/dev/loop1].corruption_errs  0\n";

#[test]
fn a_scrub_of_btrfs_that_finds_nothing_is_told_so() {
    let read = figures(SCRUB);
    assert_eq!(read.get("data_bytes_scrubbed"), Some(&104_857_600));
    assert_eq!(read.get("csum_errors"), Some(&0));
    assert_eq!(found_by_btrfs(&read, &devices(STATS, 0)), None);
}

/// As btrfs-progs 6.2 tells it of a mirror of two, one of which is missing.
#[test]
fn a_scrub_without_a_member_has_gone_through_the_others() {
    let said = |status: &str, error: &str| Output {
        out: SCRUB.replace("finished", status),
        error: error.to_owned(),
    };
    let absent = "WARNING: device 2 not present\n\n";
    assert!(is_through(&said("finished", ""), 0));
    assert!(!is_through(&said("aborted", ""), 0));
    assert!(is_through(&said("aborted", absent), 1));
    assert!(is_through(&said("finished", ""), 1));
    // More is missing than was to be, or it was cancelled.
    assert!(!is_through(&said("aborted", absent), 0));
    assert!(!is_through(&said("aborted", &absent.repeat(2)), 1));
    assert!(!is_through(&said("aborted", ""), 1));
}

/// As btrfs-progs 6.2 and Linux 6.18 tell of a `raid5` that is mounted without its second member, and written.
#[test]
fn what_is_counted_of_a_missing_member_is_no_finding() {
    let stats = format!("{STATS}[devid:2].write_io_errs    4096\n[devid:2].flush_io_errs    0\n");
    let read = figures(SCRUB);
    assert_eq!(found_by_btrfs(&read, &devices(&stats, 1)), None);
    // More is missing than was to be.
    let counted = [("devid:2 write_io_errs".to_owned(), 4096)];
    assert_eq!(devices(&stats, 0), counted);
    let more = format!("{stats}[devid:4].write_io_errs    1\n");
    assert_eq!(devices(&more, 1).len(), 2);
    assert_eq!(devices(&more, 2), []);
}

#[test]
fn what_a_scrub_of_btrfs_finds_is_told_by_kind_and_device() {
    let read = figures(
        &SCRUB
            .replace("csum_errors: 0", "csum_errors: 1280")
            .replace("\tcorrected_errors: 0", "\tcorrected_errors: 1280"),
    );
    let stats = devices(
        &STATS.replace("corruption_errs  0", "corruption_errs  1280"),
        0,
    );
    let found = found_by_btrfs(&read, &stats).expect("found");
    assert!(!found.may_be_benign);
    for part in [
        "1280 csum errors",
        "1280 corrected errors",
        "/dev/loop1 corruption_errs 1280",
    ] {
        assert!(found.what.contains(part), "{part} in {}", found.what);
    }
}

/// Arrays of the kernel's md, whose members are changed behind its back. Run where the kernel has md: in a guest, by the
/// tests of raidlab's virtual machines.
mod of_the_kernel {
    use crate::error::HostError;
    use crate::provision::check::{Checked, compare};
    use crate::provision::{Context, Stage};
    use crate::sysfs;
    use crate::tool::Tool;
    use raidlab_io::observe::Roots;
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::ops::ControlFlow;
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    const NUMBER: u32 = 58;
    const SIZE: u64 = 48 << 20;

    fn may(name: &str) -> bool {
        let there = rustix::process::geteuid().is_root() && File::open("/proc/mdstat").is_ok();
        if !there {
            let message = format!("UNTESTED {name}: needs root, and md of the kernel");
            let in_guest = std::env::var_os("RAIDLAB_GATES_IN_GUEST").is_some();
            assert!(!in_guest, "{message}");
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        there
    }

    fn system(words: &[&str]) -> String {
        let ran = Tool::new(words.iter().copied()).run();
        ran.unwrap_or_else(|error| panic!("{error}"))
            .out
            .trim()
            .to_owned()
    }

    /// An array on loop devices.
    struct Array {
        directory: tempfile::TempDir,
        loops: Vec<String>,
    }

    impl Array {
        fn of(level: &str, members: usize) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let one = |number: usize| {
                let path = directory.path().join(number.to_string());
                let file = File::create(&path).expect("a file");
                file.set_len(SIZE).expect("room");
                system(&[
                    "losetup",
                    "--find",
                    "--show",
                    path.to_str().expect("a name"),
                ])
            };
            let loops: Vec<String> = (0..members).map(one).collect();
            let (device, count) = (
                format!("/dev/md{NUMBER}"),
                format!("--raid-devices={members}"),
            );
            let mut words = vec![
                "mdadm",
                "--create",
                &device,
                "--run",
                "--assume-clean",
                "--bitmap=none",
                level,
                &count,
            ];
            words.extend(loops.iter().map(String::as_str));
            system(&words);
            Self { directory, loops }
        }

        /// Writes on a member what md knows nothing of.
        fn corrupt(&self, member: usize, at: u64, length: usize) {
            let path = self.directory.path().join(member.to_string());
            let file = OpenOptions::new().write(true).open(path).expect("writable");
            file.write_all_at(&vec![0xa5; length], at)
                .and_then(|()| file.sync_all())
                .expect("written");
        }

        fn attribute(name: &str) -> PathBuf {
            PathBuf::from(format!("/sys/block/md{NUMBER}/md/{name}"))
        }

        fn check(&self, mirror: bool, stop: &AtomicBool) -> Result<Checked, HostError> {
            let roots = Roots::system();
            let mut context = Context {
                roots: &roots,
                cancel: stop,
                monitor: &mut |_| ControlFlow::Continue(()),
            };
            compare::array(&mut context, NUMBER, mirror)
        }
    }

    impl Drop for Array {
        fn drop(&mut self) {
            let _ = Tool::new(["mdadm", "--stop", &format!("/dev/md{NUMBER}")]).run();
            for device in &self.loops {
                let _ = Tool::new(["losetup", "--detach", device]).run();
            }
        }
    }

    /// Intact, it is told so; with a page changed behind md's back that page is found, wherever the level keeps what.
    #[test]
    fn what_was_changed_behind_mds_back_is_found() {
        if !may("what_was_changed_behind_mds_back_is_found") {
            return;
        }
        let levels = [
            ("--level=1", 2, true),
            ("--level=10", 4, true),
            ("--level=4", 3, false),
            ("--level=5", 3, false),
            ("--level=6", 4, false),
        ];
        for (level, members, mirror) in levels {
            let array = Array::of(level, members);
            let go = AtomicBool::new(false);
            let intact = array.check(mirror, &go).expect("checked");
            assert_eq!(intact.found, None, "{level}");
            assert_eq!(intact.counts["mismatch_cnt"], 0, "{level}");
            assert!(
                intact.bytes.is_some_and(|bytes| bytes > SIZE / 2),
                "{level}: {intact:?}"
            );
            array.corrupt(1, SIZE / 2, 4096);
            let wrong = array.check(mirror, &go).expect("checked");
            let sectors = wrong.counts["mismatch_cnt"];
            let wanted = if mirror { 8..=128 } else { 8..=8 };
            assert!(wanted.contains(&sectors), "{level}: {sectors}");
            let found = wrong.found.expect("found");
            assert_eq!(found.may_be_benign, mirror, "{level}");
            // Looked at, and not mended: a repair is not what was asked for.
            assert_eq!(
                array.check(mirror, &go).expect("checked").counts["mismatch_cnt"],
                sectors,
                "{level}"
            );
        }
    }

    #[test]
    fn a_check_that_is_interrupted_leaves_the_array_idle() {
        if !may("a_check_that_is_interrupted_leaves_the_array_idle") {
            return;
        }
        let array = Array::of("--level=5", 3);
        // Another check would be over too soon: stopped before the first look.
        let error = array
            .check(false, &AtomicBool::new(true))
            .expect_err("interrupted");
        assert!(matches!(error, HostError::Interrupted), "{error}");
        let now = |name: &str| sysfs::text(&Array::attribute(name)).unwrap_or_default();
        assert_eq!(now("sync_action"), "idle");
        assert!(
            now("sync_speed_max").ends_with("(system)"),
            "{}",
            now("sync_speed_max")
        );
        let go = AtomicBool::new(false);
        assert_eq!(array.check(false, &go).expect("checked").found, None);
    }

    /// A check that waits in the middle: md goes no further than it is told.
    fn halfway(then: &str) -> Result<Checked, HostError> {
        sysfs::set(&Array::attribute("sync_max"), "32768").expect("a limit");
        let stop = AtomicBool::new(false);
        let roots = Roots::system();
        let mut monitor = |stage: &Stage| {
            // Sectors of 512 bytes; some of the first MiB at the least.
            if stage.done > 1 << 20 {
                match then {
                    "interrupt" => stop.store(true, Ordering::Relaxed),
                    word => sysfs::set(&Array::attribute("sync_action"), word).expect("told"),
                }
            }
            ControlFlow::Continue(())
        };
        let mut context = Context {
            roots: &roots,
            cancel: &stop,
            monitor: &mut monitor,
        };
        let came = compare::array(&mut context, NUMBER, false);
        sysfs::set(&Array::attribute("sync_max"), "max").expect("no limit");
        came
    }

    #[test]
    fn a_check_in_the_middle_is_stopped_and_one_that_another_stopped_is_no_check() {
        if !may("a_check_in_the_middle_is_stopped_and_one_that_another_stopped_is_no_check") {
            return;
        }
        let array = Array::of("--level=5", 3);
        let error = halfway("interrupt").expect_err("interrupted");
        assert!(matches!(error, HostError::Interrupted), "{error}");
        let action = sysfs::text(&Array::attribute("sync_action"));
        assert_eq!(action.as_deref(), Some("idle"));
        let error = halfway("idle").expect_err("stopped");
        assert!(
            error.to_string().contains("was stopped by something else"),
            "{error}"
        );
        // The next begins at the beginning: what differs there is found.
        array.corrupt(1, 4 << 20, 4096);
        let whole = array
            .check(false, &AtomicBool::new(false))
            .expect("checked");
        assert_eq!(whole.counts["mismatch_cnt"], 8);
    }
}
