//! Job files as people write them, and what is said of those that cannot be run.
use super::*;
use crate::op::OpClass;
use crate::profile::tests::outcomes;
use crate::time::Span;
use crate::workload::spec::{Arrival, Order};
use proptest::prelude::*;

fn directory() -> ProfileContext {
    ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Directory {
            free: Bytes::gib(100),
        },
        writable: true,
        alignment: 4096,
    }
}

const ORDINARY: &str = "\
; a common one
[global]
ioengine=libaio
direct=1
bs=4k          # fio's k is 1024
size=1g
runtime=30
time_based
group_reporting

[random-read]
rw=randread
iodepth=32
numjobs=4

[mixed]
stonewall
rw=randrw
rwmixread=70
rate_iops=500
rate_process=poisson
fsync=8
";

fn one(options: &str) -> Result<FioJob, FioError> {
    Fio::parse(&format!("[a]\n{options}\n")).map(|mut fio| fio.jobs.remove(0))
}

#[test]
fn writes_are_made_durable_in_one_of_two_ways() {
    let asked = |options| one(options).map(|job| (job.fsync, job.data_only));
    assert_eq!(asked("rw=randwrite\nfsync=8"), Ok((8, false)));
    assert_eq!(asked("rw=randwrite\nfdatasync=8"), Ok((8, true)));
    assert_eq!(asked("rw=randwrite\nfdatasync=8\nfsync=0"), Ok((8, true)));
    let both = asked("rw=randwrite\nfdatasync=1\nfsync=8").unwrap_err();
    assert_eq!(both.line, 4);
}

#[test]
fn an_ordinary_file_is_two_phases() {
    let plan = Fio::parse(ORDINARY).unwrap().plan(&directory()).unwrap();
    let ids: Vec<&str> = plan.phases.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["random-read/read", "mixed/mixed"]);
    let (read, mixed) = (&plan.phases[0], &plan.phases[1]);
    assert_eq!(
        (read.jobs.len(), read.jobs[0].depth, read.access),
        (4, 32, Access::Direct)
    );
    // Each copy has a part of its own, as each would have a file of its own.
    let starts: Vec<u64> = read
        .jobs
        .iter()
        .map(|job| match job.workload {
            WorkloadSpec::Blocks(spec) => spec.region.start.0 >> 30,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(starts, [0, 1, 2, 3]);
    assert_eq!(plan.space_needed, Bytes::gib(4));
    let WorkloadSpec::Blocks(spec) = mixed.jobs[0].workload else {
        panic!("{mixed:?}");
    };
    assert_eq!(spec.arrival, Arrival::Poisson { per_second: 500 });
    assert_eq!(
        (spec.read_percent, spec.flush_every, spec.order),
        (70, 8, Order::Random)
    );
    assert_eq!(
        (spec.limit.ops, spec.limit.time),
        (None, Some(Span::from_secs(30)))
    );
}

#[test]
fn a_single_job_has_the_plain_name_and_ends_with_its_size() {
    let fio = Fio::parse("[w]\nrw=write\nbs=1m\nsize=64m\nend_fsync=1\n").unwrap();
    let plan = fio.plan(&directory()).unwrap();
    assert_eq!(plan.phases[0].id, "write");
    assert_eq!(plan.phases[0].expected().bytes, Some(64 << 20));
    assert_eq!(plan.phases[0].access, Access::Buffered);
    let WorkloadSpec::Blocks(spec) = plan.phases[0].jobs[0].workload else {
        panic!("{:?}", plan.phases);
    };
    assert!(spec.flush_end);
}

#[test]
fn a_named_file_is_shared_by_the_copies() {
    let fio = Fio::parse(
        "[r]\nfilename=/dev/sdz\nrw=randread\nnumjobs=2\nsize=1m\nioengine=psync\niodepth=8\n",
    )
    .unwrap();
    assert_eq!(fio.target().unwrap().as_deref(), Some("/dev/sdz"));
    let plan = fio.plan(&directory()).unwrap();
    assert_eq!(plan.space_needed, Bytes::mib(1));
    // A synchronous engine has one operation in flight whatever iodepth says.
    assert_eq!(plan.phases[0].jobs[0].depth, 1);
}

#[test]
fn a_directory_stands_before_the_name_of_a_file() {
    let target = |options: &str| {
        let fio = Fio::parse(&format!("[a]\n{options}\n")).unwrap();
        fio.target().unwrap()
    };
    assert_eq!(
        target("directory=/mnt\nfilename=dat"),
        target("filename=/mnt/dat")
    );
    assert_eq!(target("directory=/mnt"), Some("/mnt".to_owned()));
    // Seen with fio 3.33.
    let both = target("directory=/mnt\nfilename=/x/dat").unwrap();
    assert_eq!(both, "/mnt//x/dat");
    assert_eq!(
        Fio::target_line("[a]\ndirectory=/mnt\n filename = dat\n"),
        Some(3)
    );
    assert_eq!(
        Fio::target_line("[a]\n#filename=x\ndirectory=/mnt\n"),
        Some(3)
    );
    assert_eq!(Fio::target_line("[a]\nrw=read\n"), None);
    let two =
        Fio::parse("[a]\ndirectory=/mnt\nfilename=d\n[b]\ndirectory=/srv\nfilename=d\n").unwrap();
    assert!(two.target().is_err());
}

#[test]
fn the_runtime_begins_when_the_ramp_has_ended() {
    let phase = |options: &str| {
        let fio = Fio::parse(&format!("[a]\nrw=randread\n{options}\n")).unwrap();
        fio.plan(&directory()).unwrap().phases.remove(0)
    };
    for (ramp, runtime) in [(1, 2), (2, 1)] {
        let phase = phase(&format!(
            "size=64m\nramp_time={ramp}\nruntime={runtime}\ntime_based"
        ));
        assert_eq!(phase.ramp, Span::from_secs(ramp));
        assert_eq!(phase.expected().time, Some(Span::from_secs(3)));
    }
    assert_eq!(phase("size=64m\nramp_time=2").expected().time, None);
}

#[test]
fn a_device_that_is_only_read_is_not_written() {
    let device = ProfileContext {
        place: Place::Device {
            size: Bytes::gib(1),
        },
        writable: false,
        ..directory()
    };
    let fio = Fio::parse("[r]\nrw=read\n[w]\nstonewall\nrw=write\n").unwrap();
    let plan = fio.plan(&device).unwrap();
    assert_eq!((plan.phases.len(), plan.skipped.len()), (1, 1));
    assert_eq!(plan.skipped[0].why, "the device is only read");
}

#[test]
fn what_cannot_be_run_is_told_with_its_line() {
    let files = [
        "rw=read\n",
        "[a\nrw=read\n",
        "[global]\nbs=4k\n",
        "",
        "[a]\nthinktime=5\n",
        "[a]\nrwmixreed=5\n",
        "[a]\nbs=4KiB\n",
        "[a]\nbs=4k,8k\n",
        "[a]\nbs=0\n",
        "[a]\nsize=50%\n",
        "[a]\n\niodepth=none\n",
        "[a]\nrw=trim\n",
        "[a]\nioengine=mmap\n",
        "[a]\nruntime=soon\n",
        "[a]\nbs\n",
        "[a]\nsize=${SIZE}\n",
        "[a]\nfilename=/dev/sda:/dev/sdb\n",
        "[b]\ntime_based=1\n",
        "[a]\nloops=3\n",
        "[a]\nzstandard=1\n",
        "[a]\nsize=99999999999g\n",
    ];
    let told: Vec<String> = files
        .iter()
        .map(|f| Fio::parse(f).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn everything_wrong_is_told_with_its_line() {
    let wrong = Fio::read("bs=4k\n[a\nrw=raed\n[b]\nfoo=bar\nsize=4k\ntime_based\n").unwrap_err();
    let lines: Vec<usize> = wrong.iter().map(|wrong| wrong.line).collect();
    assert_eq!(lines, [1, 2, 3, 5, 4], "{wrong:?}");
    assert_eq!(Fio::parse("bs=4k\n[a\n").unwrap_err(), wrong[0]);
}

#[test]
fn what_cannot_run_together_is_told() {
    let files = [
        "[a]\nsize=1m\ndirect=1\n[b]\nsize=1m\n",
        "[a]\nsize=1m\n[b]\nsize=1m\nramp_time=1\n",
        "[a]\nsize=1m\n[b]\nfilename=x\nsize=1m\n",
        "[a]\n",
        "[a]\nsize=1k\n",
        "[a]\nsize=1m\nbs=512\ndirect=1\n",
        "[a]\nsize=1m\n[b]\nstonewall\nsize=1m\n[a]\nstonewall\nsize=1m\n",
        "[a]\nsize=8388607t\noffset=1t\n",
    ];
    let told: Vec<String> = files
        .iter()
        .map(|f| {
            Fio::parse(f)
                .unwrap()
                .plan(&directory())
                .unwrap_err()
                .to_string()
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn sizes_and_times_are_read_as_fio_reads_them() {
    for (text, bytes) in [
        ("4096", 4096),
        ("4k", 4096),
        ("4KB", 4096),
        ("1M", 1 << 20),
        ("2g", 2 << 30),
        ("512b", 512),
    ] {
        assert_eq!(
            one(&format!("size={text}")).unwrap().size,
            Some(Bytes(bytes)),
            "{text}"
        );
    }
    for (text, time) in [
        ("30", 30_000),
        ("30s", 30_000),
        ("2m", 120_000),
        ("250ms", 250),
        ("1h", 3_600_000),
    ] {
        assert_eq!(
            one(&format!("runtime={text}")).unwrap().runtime,
            Some(Span::from_millis(time)),
            "{text}"
        );
    }
}

#[test]
fn global_holds_for_the_sections_after_it_alone() {
    let fio =
        Fio::parse("[a]\n[global]\nbs=8k\n[b]\n[c]\nbs=16k\n[global]\niodepth=4\n[d]\n").unwrap();
    let sizes: Vec<u64> = fio.jobs.iter().map(|job| job.bs.0 / 1024).collect();
    assert_eq!(sizes, [4, 8, 16, 8]);
    assert_eq!(fio.jobs[3].iodepth, 4);
}

proptest! {
    #[test]
    fn reading_never_panics(text in "(\\[[a-z]{0,4}\\]?\n|[a-z_]{1,8}=?[0-9a-z%$:,.]{0,8}\n|\\PC{0,20}\n){0,12}") {
        if let Ok(fio) = Fio::parse(&text) {
            let _ = fio.plan(&directory());
        }
    }

    #[test]
    fn a_job_that_is_written_is_read(
        rw in 0_usize..6, bs in 1_u64..1 << 20, iodepth in 1_u32..4096, numjobs in 1_u32..64, mix in 0_u32..=100,
        size in 1_u64..1 << 40, runtime in 1_u64..100_000, direct: bool, seed: u64,
    ) {
        let word = ["read", "write", "rw", "randread", "randwrite", "randrw"][rw];
        let text = format!(
            "[job]\nrw = {word}\nbs={bs}\niodepth={iodepth}\nnumjobs={numjobs}\nrwmixread={mix}\nsize={size}\n\
             runtime={runtime}ms\ndirect={}\nrandseed={seed}\n",
            u8::from(direct)
        );
        let job = one(text.trim_start_matches("[job]\n")).unwrap();
        prop_assert_eq!(job.rw.word(), word);
        prop_assert_eq!((job.bs.0, job.iodepth, job.numjobs, u32::from(job.rwmixread)), (bs, iodepth, numjobs, mix));
        prop_assert_eq!((job.size, job.runtime), (Some(Bytes(size)), Some(Span::from_millis(runtime))));
        prop_assert_eq!((job.direct, job.randseed), (direct, Some(seed)));
    }
}

/// Blocks of two sizes, so that no count of operations alone tells the bytes.
#[test]
fn reads_and_writes_of_a_phase_that_does_both_add_up() {
    let jobs = "[global]\ndirect=1\nioengine=libaio\n\
                [copy]\nrw=write\nbs=1m\nsize=64m\n\
                [both]\nrw=randrw\nbs=4k\niodepth=4\nsize=64m\nio_size=4m\n";
    let plan = Fio::parse(jobs).unwrap().plan(&directory()).unwrap();
    let outcome = &outcomes(&plan)[0];
    let [reads, writes] = outcome.directions[..] else {
        panic!("{:?}", outcome.directions)
    };
    assert_eq!((reads.class, writes.class), (OpClass::Read, OpClass::Write));
    assert_eq!(reads.ops + writes.ops, outcome.ops);
    assert_eq!(reads.bytes + writes.bytes, outcome.bytes);
    assert_eq!(reads.bytes, reads.ops * 4096);
    assert_eq!(writes.bytes, (64 << 20) + (writes.ops - 64) * 4096);
    assert_eq!(reads.elapsed.max(writes.elapsed), outcome.elapsed);

    let alone = Fio::parse("[a]\nrw=randread\nsize=1m\n").unwrap();
    let alone = outcomes(&alone.plan(&directory()).unwrap());
    assert!(alone[0].directions.is_empty());
}
