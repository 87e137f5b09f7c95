//! What takes root, or something unusual of the host: full and frozen file systems, no io_uring.
use super::{MIB, blocks, ops, pass, phase, random_reads, run};
use raidlab_core::flag::FlagKind;
use raidlab_core::op::OpenMode;
use raidlab_core::phase::{Access, Evidence, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::workload::spec::{
    BlockSpec, FilesAction, FilesSpec, Limit, PassAction, WorkloadSpec,
};
use raidlab_io::run::{
    EngineChoice, Place, RunError, RunOptions, RunProgress, RunStage, run_phase,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

#[test]
fn too_little_space_is_said_before_anything_is_written() {
    let parent = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "raidlab-test"])
        .arg(parent.path())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!(
            "skipped too_little_space_is_said_before_anything_is_written: mounting takes root"
        );
        return;
    }
    let place = Place::open(parent.path()).unwrap();
    let needs = phase(
        Access::Buffered,
        vec![random_reads(MIB, 1, ops(1))],
        &[8 * MIB],
    );
    let message = run(&needs, &place, &RunOptions::new(1))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("8 MiB are needed, 4.0 MiB are available"),
        "{message}"
    );
    // A phase that fills the disk itself ends with what the system says.
    let fills = pass(PassAction::Write, OpenMode::Create, 8 * MIB, 65_536);
    let fills = phase(Access::Calls, vec![fills], &[]);
    let failed = run(&fills, &place, &RunOptions::new(1)).unwrap_err();
    let message = failed.to_string();
    assert!(
        matches!(failed, RunError::Short { .. }) || message.contains("free some space"),
        "{message}"
    );
    place.close().unwrap();
    assert!(unmounts(parent.path()));
}

#[test]
fn a_figure_of_memory_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "raidlab-test"])
        .arg(parent.path())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("skipped a_figure_of_memory_says_so: mounting takes root");
        return;
    }
    let place = Place::open(parent.path()).unwrap();
    let mut reads = phase(
        Access::Buffered,
        vec![random_reads(MIB, 1, ops(100))],
        &[MIB],
    );
    reads.evidence = Evidence::ReadsReachDevice;
    let outcome = run(&reads, &place, &RunOptions::new(1)).unwrap();
    let told = outcome
        .flags
        .iter()
        .find(|flag| flag.reason.contains("in memory (tmpfs)"));
    assert!(told.is_some_and(|flag| !flag.voids), "{:?}", outcome.flags);
    place.close().unwrap();
    assert!(unmounts(parent.path()));
}

/// Unmounts it within 5 s: what another test starts has this one's descriptors until it is the other
/// program, and a job that was left behind ends by itself.
fn unmounts(point: &Path) -> bool {
    (0..100).any(|_| {
        let unmount = Command::new("umount").arg(point).output();
        unmount.is_ok_and(|output| output.status.success()) || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    })
}

#[test]
fn a_job_stuck_in_the_kernel_is_reported_with_its_state() {
    stuck_at(
        "a_job_stuck_in_the_kernel_is_reported_with_its_state",
        |progress| progress.stage == RunStage::Running && progress.ops > 0,
        "in a system call",
    );
}

/// A file system that stops answering while data files are written.
#[test]
fn preparing_that_is_stuck_in_the_kernel_is_reported_with_its_state() {
    stuck_at(
        "preparing_that_is_stuck_in_the_kernel_is_reported_with_its_state",
        |progress| progress.stage == RunStage::Preparing { file: 0 },
        "writing a data file",
    );
}

/// Freezes a file system of 32 MiB as soon as `at` says so, and sees what becomes of the run.
fn stuck_at(test: &str, at: fn(&RunProgress) -> bool, what: &str) {
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (image, point) = (parent.path().join("image"), parent.path().join("point"));
    std::fs::File::create(&image)
        .unwrap()
        .set_len(32 * MIB)
        .unwrap();
    std::fs::create_dir(&point).unwrap();
    let ok = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let mounted = ok(Command::new("mkfs.ext4").arg("-q").arg(&image))
        && ok(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&point));
    if !mounted {
        eprintln!("skipped {test}: a loop mount takes root");
        return;
    }
    let place = Place::open(&point).unwrap();
    let phase = phase(
        Access::Buffered,
        vec![Job {
            workload: WorkloadSpec::Blocks(BlockSpec {
                read_percent: 0,
                ..blocks(
                    MIB,
                    Limit {
                        ops: None,
                        time: Some(Span::from_secs(600)),
                    },
                )
            }),
            depth: 1,
        }],
        &[MIB],
    );
    let options = RunOptions {
        stall: Span::from_millis(300),
        ..RunOptions::new(1)
    };
    let mut frozen = false;
    let mut freeze = |progress: RunProgress| {
        if at(&progress) && !frozen {
            frozen = ok(Command::new("fsfreeze").arg("-f").arg(&point));
        }
        ControlFlow::Continue(())
    };
    // Writes to a frozen file system wait in the kernel until it is thawed.
    let stuck = run_phase(&phase, &place, &options, &mut freeze);
    let thawed = ok(Command::new("fsfreeze").arg("-u").arg(&point));
    // The job that was left behind ends now; without it the file system can be unmounted.
    drop(place);
    assert!(frozen && thawed && unmounts(&point));
    let Err(RunError::Stalled {
        job: 0,
        waited,
        state,
        in_flight,
        ..
    }) = stuck
    else {
        panic!("{stuck:?}");
    };
    assert!(waited >= options.stall);
    assert!(matches!(state, 'D' | 'S'), "{state}");
    assert_eq!(in_flight, what);
}

/// Makes `io_uring_setup` fail with EPERM in this thread and those it starts, as container runtimes
/// do.
fn forbid_io_uring() {
    const SYS_IO_URING_SETUP: u32 = 425;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let statement = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let mut program = [
        // The number of the call is the first word.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            SYS_IO_URING_SETUP,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            ERRNO | libc::EPERM.unsigned_abs(),
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program lives over the call, which copies it.
    let answer = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            )
    };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn without_io_uring_blocking_calls_are_used_and_it_is_said() {
    // Each test has a thread of its own, and only that one is restricted.
    forbid_io_uring();
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let phase = phase(Access::Buffered, vec![random_reads(MIB, 8, ops(1000))], &[]);
    let outcome = run(&phase, &place, &RunOptions::new(1)).unwrap();
    assert_eq!(outcome.ops, 1000);
    assert!((outcome.mean_in_flight - 1.0).abs() < 1e-9);
    let reason = &outcome
        .flags
        .iter()
        .find(|flag| flag.kind == FlagKind::Other)
        .unwrap()
        .reason;
    assert!(
        reason.contains("io_uring is not available") && reason.contains("seccomp"),
        "{reason}"
    );
    let asked_for = RunOptions {
        engine: EngineChoice::Uring,
        ..RunOptions::new(1)
    };
    let message = run(&phase, &place, &asked_for).unwrap_err().to_string();
    assert!(message.contains("use the blocking engine"), "{message}");
}

fn small_files(action: FilesAction) -> Phase {
    let spec = FilesSpec {
        action,
        ordered: true,
        count: 64,
        directories: 2,
        size_min: 0,
        size_max: 0,
        size_seed: 1,
        sync_each: false,
        sync_end: true,
    };
    let job = Job {
        workload: WorkloadSpec::Files(spec),
        depth: 1,
    };
    phase(Access::Calls, vec![job], &[])
}

/// What is dirty elsewhere on the file system was written before the phase begins, and what another file system holds is not waited for
/// at its end.
#[test]
fn small_files_begin_on_a_file_system_that_is_written() {
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let others = parent.path().join("others");
    std::fs::write(&others, vec![0x5a; 32 << 20]).unwrap();
    let place = Place::open(parent.path()).unwrap();
    for action in [FilesAction::Create, FilesAction::Stat, FilesAction::Delete] {
        let outcome = run(&small_files(action), &place, &RunOptions::new(1)).unwrap();
        assert_eq!(outcome.ops, 64);
        let told = outcome
            .flags
            .iter()
            .filter(|f| f.reason.contains("files and their names"));
        // Tests beside this one may write to the same disk: then it is they, and the flag is right.
        let beside: Vec<_> = told.collect();
        assert!(beside.len() <= 1, "{beside:?}");
    }
    place.close().unwrap();
}
