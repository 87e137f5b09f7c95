//! Phases run for real: what is prepared, measured, flagged, refused and left behind.
#[path = "run/host.rs"]
mod host;

use raidlab_core::flag::FlagKind;
use raidlab_core::op::OpenMode;
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::{Access, Counted, Evidence, Job, Needed, Phase};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, Extent};
use raidlab_core::workload::spec::{
    Arrival, BlockSpec, Durable, Handle, Limit, Order, PassAction, PassSpec, WorkloadSpec,
};
use raidlab_io::run::{
    EngineChoice, Place, RunError, RunOptions, RunProgress, RunStage, run_phase,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

const MIB: u64 = 1 << 20;

fn blocks(size: u64, limit: Limit) -> BlockSpec {
    BlockSpec {
        order: Order::Random,
        read_percent: 100,
        block: 4096,
        region: Extent::new(0, size),
        first: 0,
        limit,
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    }
}

fn random_reads(size: u64, depth: u32, limit: Limit) -> Job {
    Job {
        workload: WorkloadSpec::Blocks(blocks(size, limit)),
        depth,
    }
}

fn ops(count: u64) -> Limit {
    Limit {
        ops: Some(count),
        time: None,
    }
}

fn pass(action: PassAction, mode: OpenMode, size: u64, call: u32) -> Job {
    Job {
        workload: WorkloadSpec::Pass(PassSpec {
            handle: Handle::new(0, mode),
            action,
            start: Bytes(0),
            size: Bytes(size),
            call,
            durable: Durable::AtEnd,
        }),
        depth: 1,
    }
}

fn phase(access: Access, jobs: Vec<Job>, needs: &[u64]) -> Phase {
    Phase {
        id: "test".into(),
        title: "a test".into(),
        jobs,
        access,
        counted: Counted::Bytes,
        cold: false,
        evidence: Evidence::None,
        needs: needs
            .iter()
            .enumerate()
            .map(|(file, &size)| Needed {
                file: file as u32,
                size: Bytes(size),
            })
            .collect(),
        fresh: Vec::new(),
        ramp: Span::ZERO,
    }
}

fn quiet(_: RunProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(phase: &Phase, place: &Place, options: &RunOptions) -> Result<PhaseOutcome, RunError> {
    run_phase(phase, place, options, &mut quiet)
}

fn directory() -> (tempfile::TempDir, Place) {
    // On the file system of the build: a temporary directory may be in memory.
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = Place::open(parent.path()).unwrap();
    (parent, place)
}

#[test]
fn several_jobs_share_a_file_and_are_counted_together() {
    let (_parent, place) = directory();
    let jobs = vec![
        random_reads(4 * MIB, 8, ops(1000)),
        random_reads(4 * MIB, 1, ops(500)),
        random_reads(4 * MIB, 32, ops(2000)),
    ];
    let phase = phase(Access::Buffered, jobs, &[4 * MIB]);
    for engine in [
        EngineChoice::Auto,
        EngineChoice::Uring,
        EngineChoice::Blocking,
    ] {
        let options = RunOptions {
            engine,
            ..RunOptions::new(1)
        };
        let outcome = run(&phase, &place, &options).unwrap();
        assert_eq!(
            (outcome.ops, outcome.bytes),
            (3500, 3500 * 4096),
            "{engine:?}"
        );
        assert_eq!(outcome.digest, phase.digest(1));
        assert_eq!(outcome.latency().count(), 3500);
        assert!(outcome.elapsed > Span::ZERO);
        assert!(outcome.cpu.user + outcome.cpu.system > Span::ZERO);
    }
}

fn flags(outcome: &PhaseOutcome) -> Vec<FlagKind> {
    outcome.flags.iter().map(|flag| flag.kind).collect()
}

/// Which files a run prepares.
fn prepared(phase: &Phase, place: &Place, options: &RunOptions) -> Vec<u32> {
    let mut files = Vec::new();
    let mut monitor = |progress: RunProgress| {
        if let RunStage::Preparing { file } = progress.stage {
            files.push(file);
        }
        ControlFlow::Continue(())
    };
    run_phase(phase, place, options, &mut monitor).unwrap();
    files.dedup();
    files
}

#[test]
fn data_files_are_made_once_and_again_when_they_are_not_what_is_needed() {
    let (parent, place) = directory();
    let reads = || vec![random_reads(MIB, 4, ops(10))];
    let small = phase(Access::Buffered, reads(), &[MIB, MIB + 100]);
    let options = RunOptions::new(1);
    assert_eq!(prepared(&small, &place, &options), [0, 1]);
    assert_eq!(std::fs::metadata(place.data(1)).unwrap().len(), MIB + 100);
    assert_eq!(prepared(&small, &place, &options), [] as [u32; 0]);
    // Another seed, a larger size, damage.
    assert_eq!(prepared(&small, &place, &RunOptions::new(2)), [0, 1]);
    let large = phase(Access::Buffered, reads(), &[2 * MIB]);
    assert_eq!(prepared(&large, &place, &RunOptions::new(2)), [0]);
    std::fs::write(place.data(0), vec![0; 2 * MIB as usize]).unwrap();
    assert_eq!(prepared(&large, &place, &RunOptions::new(2)), [0]);
    // What a phase has written is what the next one needs.
    let mut write = phase(
        Access::Calls,
        vec![pass(PassAction::Write, OpenMode::Create, 2 * MIB, 8192)],
        &[],
    );
    write.fresh = vec![0];
    run(&write, &place, &RunOptions::new(2)).unwrap();
    assert_eq!(
        prepared(&large, &place, &RunOptions::new(2)),
        [] as [u32; 0]
    );
    place.close().unwrap();
    assert_eq!(
        std::fs::read_dir(parent.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn a_file_that_must_not_be_there_is_removed_before() {
    let (_parent, place) = directory();
    std::fs::write(place.data(0), vec![1; 3 * MIB as usize]).unwrap();
    let mut write = phase(
        Access::Calls,
        vec![pass(PassAction::Write, OpenMode::Create, MIB, 8192)],
        &[],
    );
    write.fresh = vec![0, 7];
    run(&write, &place, &RunOptions::new(1)).unwrap();
    assert_eq!(std::fs::metadata(place.data(0)).unwrap().len(), MIB);
}

#[test]
fn a_given_file_is_read_and_never_written() {
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = parent.path().join("mine");
    std::fs::write(&path, vec![5; MIB as usize]).unwrap();
    let place = Place::open(&path).unwrap();
    assert_eq!((place.size(), place.directory()), (Some(MIB), None));
    let reads = phase(
        Access::Buffered,
        vec![random_reads(MIB, 4, ops(100))],
        &[MIB],
    );
    assert_eq!(run(&reads, &place, &RunOptions::new(1)).unwrap().ops, 100);
    let call = pass(PassAction::Read, OpenMode::Read, MIB, 65_536);
    let mut calls = phase(Access::Calls, vec![call], &[MIB]);
    calls.fresh = vec![0];
    assert_eq!(run(&calls, &place, &RunOptions::new(1)).unwrap().bytes, MIB);
    let write = phase(
        Access::Calls,
        vec![pass(PassAction::Write, OpenMode::Update, MIB, 65_536)],
        &[],
    );
    let refused = run(&write, &place, &RunOptions::new(1)).unwrap_err();
    assert!(matches!(refused, RunError::NotWritable { .. }), "{refused}");
    assert!(refused.to_string().contains("only read"), "{refused}");
    let large = phase(
        Access::Buffered,
        vec![random_reads(MIB, 4, ops(1))],
        &[2 * MIB],
    );
    let refused = run(&large, &place, &RunOptions::new(1)).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("has 1 MiB, the workload needs 2 MiB"),
        "{message}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), vec![5; MIB as usize]);
}

#[test]
fn a_run_ends_early_when_it_is_asked_to() {
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let hour = Limit {
        ops: None,
        time: Some(Span::from_secs(3600)),
    };
    for depth in [1, 32] {
        let phase = phase(Access::Buffered, vec![random_reads(MIB, depth, hour)], &[]);
        let options = RunOptions::new(1);
        let mut by_flag = |progress: RunProgress| {
            assert_eq!(progress.expected.time, hour.time);
            if progress.ops > 1000 {
                options.cancel.store(true, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let outcome = run_phase(&phase, &place, &options, &mut by_flag).unwrap();
        assert!(outcome.ops > 1000);
        assert_eq!(flags(&outcome).last(), Some(&FlagKind::Interrupted));
        let mut by_monitor = |progress: RunProgress| {
            if progress.ops > 1000 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let outcome = run_phase(&phase, &place, &RunOptions::new(1), &mut by_monitor).unwrap();
        assert!(
            outcome
                .flags
                .iter()
                .any(|flag| flag.voids && flag.kind == FlagKind::Interrupted)
        );
    }
}

#[test]
fn preparing_can_be_cancelled_and_leaves_no_torn_file() {
    let (_parent, place) = directory();
    let phase = phase(
        Access::Buffered,
        vec![random_reads(MIB, 1, ops(1))],
        &[64 * MIB],
    );
    let mut monitor = |progress: RunProgress| {
        if progress.bytes > 4 * MIB {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let ended = run_phase(&phase, &place, &RunOptions::new(1), &mut monitor).unwrap_err();
    assert!(matches!(ended, RunError::Cancelled));
    assert!(!place.data(0).exists());
}

#[test]
fn a_depth_that_is_not_reached_is_flagged() {
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let phase = phase(
        Access::Buffered,
        vec![random_reads(MIB, 16, ops(20_000))],
        &[],
    );
    let of = |engine| {
        let options = RunOptions {
            engine,
            ..RunOptions::new(1)
        };
        run(&phase, &place, &options).unwrap()
    };
    let blocking = of(EngineChoice::Blocking);
    assert!(
        flags(&blocking).contains(&FlagKind::DepthNotReached),
        "{:?}",
        blocking.flags
    );
    let uring = of(EngineChoice::Auto);
    assert!(uring.mean_in_flight > 15.0, "{}", uring.mean_in_flight);
    assert!(!flags(&uring).contains(&FlagKind::DepthNotReached));
}

#[test]
fn a_rate_that_is_not_kept_is_flagged() {
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let of = |per_second, number| {
        let mut job = random_reads(MIB, 1, ops(number));
        if let WorkloadSpec::Blocks(spec) = &mut job.workload {
            spec.arrival = Arrival::Constant { per_second };
        }
        let phase = phase(Access::Buffered, vec![job], &[]);
        run(&phase, &place, &RunOptions::new(1)).unwrap()
    };
    // More than any processor copies.
    let missed = of(u32::MAX, 100_000);
    assert!(
        flags(&missed).contains(&FlagKind::RateNotReached),
        "{:?}",
        missed.flags
    );
    let kept = of(100, 20);
    assert!(
        !flags(&kept).contains(&FlagKind::RateNotReached),
        "{:?}",
        kept.flags
    );
}

#[test]
fn a_phase_that_ends_within_its_ramp_fails() {
    let place = Place::open(Path::new("/dev/zero")).unwrap();
    let mut phase = phase(Access::Buffered, vec![random_reads(MIB, 1, ops(10))], &[]);
    phase.ramp = Span::from_secs(60);
    let error = run(&phase, &place, &RunOptions::new(1)).unwrap_err();
    assert!(matches!(error, RunError::EndedInRamp { .. }), "{error}");
}

#[test]
fn a_cached_read_is_told_from_one_that_reached_the_device() {
    let (_parent, place) = directory();
    if place.resolved().stack().is_none() {
        eprintln!(
            "skipped a_cached_read_is_told_from_one_that_reached_the_device: no block device"
        );
        return;
    }
    let read = pass(PassAction::Read, OpenMode::Read, 32 * MIB, 65_536);
    let mut phase = phase(Access::Calls, vec![read], &[32 * MIB]);
    phase.evidence = Evidence::ReadsReachDevice;
    phase.cold = true;
    let cold = run(&phase, &place, &RunOptions::new(1)).unwrap();
    let device = cold.device.unwrap();
    assert_eq!(device.claimed_read, 32 * MIB);
    assert!(device.device_read >= 32 * MIB * 98 / 100, "{device:?}");
    assert!(
        !flags(&cold).contains(&FlagKind::ServedFromCache),
        "{:?}",
        cold.flags
    );
    assert!(
        !flags(&cold).contains(&FlagKind::NotCold),
        "{:?}",
        cold.flags
    );
    phase.cold = false;
    let warm = run(&phase, &place, &RunOptions::new(1)).unwrap();
    // Other programs may read from the same device meanwhile.
    let cached =
        |kind: &FlagKind| matches!(kind, FlagKind::ServedFromCache | FlagKind::PartlyCached);
    assert!(flags(&warm).iter().any(cached), "{:?}", warm.flags);
}

#[test]
fn paths_that_cannot_be_measured_are_named() {
    let open = |path: &str| Place::open(Path::new(path)).unwrap_err().to_string();
    assert!(open("/no/such/place").contains("/no/such/place"));
    let message = open("/proc");
    assert!(
        message.starts_with("cannot make a working directory in /proc"),
        "{message}"
    );
    let direct = phase(Access::Direct, vec![random_reads(MIB, 1, ops(1))], &[]);
    let zero = Place::open(Path::new("/dev/zero")).unwrap();
    let message = run(&direct, &zero, &RunOptions::new(1))
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "/dev/zero: direct I/O is not supported here; measure buffered, or name a path on another file system"
    );
}
