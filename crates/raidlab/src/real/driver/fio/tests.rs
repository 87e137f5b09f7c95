use super::*;
use raidlab_core::profile::{Fio, Place, Profile, ProfileContext};
use raidlab_core::units::Bytes;
use raidlab_results::import::{Source, import};

/// The command lines of a profile on a device of 1 GiB.
fn lines(profile: &Profile, queue: Queue) -> Vec<String> {
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Device {
            size: Bytes::gib(1),
        },
        writable: true,
        alignment: 512,
    };
    let plan = profile.plan(&context).expect("a plan");
    let phases = plan.phases.iter();
    phases
        .map(|phase| {
            words(phase, Path::new("/dev/md119"), 7, queue)
                .expect("fio can")
                .join(" ")
        })
        .collect()
}

fn profile(name: &str, settings: &[(&str, &str)]) -> Profile {
    let mut profile = Profile::named(name).expect(name);
    for (setting, value) in settings {
        profile.set(setting, value).expect(setting);
    }
    profile
}

#[test]
fn random_is_a_line_for_each_phase() {
    let random = profile(
        "random",
        &[("time", "2s"), ("size", "64MiB"), ("offset", "1MiB")],
    );
    let same = "fio --output-format=json+ --eta=never --thread=1 --disk_util=0 --lat_percentiles=1 --clat_percentiles=0 \
                --invalidate=0 --randrepeat=0 --randseed=7 --norandommap=1 --ioengine=io_uring --direct=1 \
                --filename=/dev/md119";
    let job = "--bs=4096 --offset=1048576 --size=67108864 --runtime=2000000us --time_based=1";
    assert_eq!(
        lines(&random, Queue::Uring),
        [
            format!("{same} --name=read --iodepth=32 --rw=randread {job}"),
            format!("{same} --name=write --iodepth=32 --rw=randwrite {job}"),
        ]
    );
    assert!(lines(&random, Queue::Libaio)[0].contains("--ioengine=libaio "));
    let one = profile("random", &[("depth", "1")]);
    assert!(lines(&one, Queue::Uring)[0].contains("--ioengine=psync "));
}

#[test]
fn every_setting_has_its_option() {
    let settings = [
        ("jobs", "2"),
        ("depth", "3"),
        ("block", "64KiB"),
        ("read-percent", "75"),
        ("direct", "no"),
        ("total", "3MiB"),
        ("time", "5s"),
        ("ramp", "1s"),
        ("rate", "401"),
        ("arrival", "poisson"),
        ("fsync", "8"),
        ("size", "16MiB"),
    ];
    let line = lines(&profile("sequential", &settings), Queue::Uring).remove(0);
    let (common, jobs) = line.split_once(" --name=").expect("a job");
    assert!(
        common.contains("--direct=0") && common.contains("--ramp_time=1000000us"),
        "{common}"
    );
    let jobs: Vec<&str> = jobs.split(" --name=").collect();
    let job = |from: u64, size: u64, rate: &str| {
        format!(
            "mixed --iodepth=3 --rw=rw --bs=65536 --offset={from} --size={size} --rwmixread=75 --io_size=1572864 \
             --runtime=4000000us --rate_iops={rate} --rate_process=poisson --fsync=8 --end_fsync=1"
        )
    };
    // The second begins in the middle; 201 and 200 operations a second.
    let half = 8 << 20;
    assert_eq!(
        jobs,
        [job(0, 16 << 20, "150,51"), job(half, half, "150,50")]
    );
}

#[test]
fn jobs_of_a_job_file_are_handed_over_group_by_group() {
    let text = "[global]\nioengine=libaio\nsize=4m\ndirect=1\n[a]\nrw=randread\niodepth=8\n[b]\nstonewall\nrw=write\n";
    let file = Profile::Fio(Fio::parse(text).expect("a job file"));
    let lines = lines(&file, Queue::Libaio);
    let jobs: Vec<&str> = lines
        .iter()
        .filter_map(|l| l.split_once(" --name="))
        .map(|l| l.1)
        .collect();
    assert_eq!(
        jobs,
        [
            "a/read --iodepth=8 --rw=randread --bs=4096 --offset=0 --size=4194304 --io_size=4194304",
            "b/write --iodepth=1 --rw=write --bs=4096 --offset=0 --size=4194304 --io_size=4194304",
        ]
    );
}

#[test]
fn other_phases_are_refused() {
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Directory {
            free: Bytes::gib(9),
        },
        writable: true,
        alignment: 512,
    };
    let plan = Profile::named("dd")
        .expect("dd")
        .plan(&context)
        .expect("a plan");
    let failure =
        words(&plan.phases[0], Path::new("f"), 1, Queue::Uring).expect_err("dd is no fio");
    assert_eq!(failure.code(), BAD_REQUEST);
}

#[test]
fn both_directions_of_a_mixture_are_one_phase() {
    let side = |bytes: u64, ops: u64, ns: u64| {
        let kib = bytes / 1024;
        format!(
            r#"{{"io_bytes":{bytes},"bw_bytes":{bytes},"bw":{kib},"iops":{ops}.0,"runtime":1000,"total_ios":{ops},
                "lat_ns":{{"max":{ns},"mean":{ns}.0,"N":{ops},"bins":{{"{ns}":{ops}}}}}}}"#
        )
    };
    let json = format!(
        "{{\n\"fio version\":\"fio-3.33\",\"jobs\":[{{\"jobname\":\"mixed\",\"usr_cpu\":2.0,\"sys_cpu\":3.0,\"read\":{},\"write\":{}}}]}}\n",
        side(3000, 30, 1000),
        side(1000, 10, 9000),
    );
    let read = import(json.as_bytes(), &Source::new("t").format(Format::FioJson)).expect("fio's");
    let said = read.trials.into_iter().next().expect("a run").phases;
    let profile = profile("random", &[("read-percent", "75")]);
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Device {
            size: Bytes::gib(1),
        },
        writable: true,
        alignment: 512,
    };
    let phase = profile.plan(&context).expect("a plan").phases.remove(0);
    let parts = parts_of(&phase, &said);
    let whole = joined(&phase, said).expect("something was done");
    assert_eq!((whole.phase.as_str(), whole.rate), ("mixed", Some(4000.0)));
    assert_eq!((whole.bytes, whole.ops), (Some(4000), Some(40)));
    // The job's own time, not once for each direction.
    assert_eq!(whole.cpu_percent, Some(5.0));
    assert_eq!(whole.latency.expect("both").count(), 40);
    let figures: Vec<(&str, f64)> = whole
        .figures
        .iter()
        .map(|f| (f.name.as_str(), f.value))
        .collect();
    assert_eq!(figures, [("iops", 40.0)]);
    // By themselves as in raidlab's own phases.
    let parts: Vec<_> = parts
        .iter()
        .map(|part| (part.phase.as_str(), part.rate, part.ops))
        .collect();
    let wanted = [
        ("mixed: read", Some(3000.0), Some(30)),
        ("mixed: write", Some(1000.0), Some(10)),
    ];
    assert_eq!(parts, wanted);
    assert!(joined(&phase, Vec::new()).is_err());
}

/// Seen on a RAID10 that was rebuilt, Linux 6.1, fio 3.33.
#[test]
fn beside_a_rebuild_fio_waits_for_what_the_array_puts_off() {
    assert_eq!(Queue::choose(true, false), Queue::Uring);
    assert_eq!(Queue::choose(true, true), Queue::Libaio);
    assert_eq!(Queue::choose(false, false), Queue::Libaio);
    let said = "'fio --ioengine=io_uring' failed (exit status: 1): fio: io_u error on file /dev/md119: Resource temporarily \
                unavailable: write offset=138149888, buflen=262144";
    let told = |said: &str, queue| put_off(Failure::new(TRIAL_FAILED, said), queue).remedy;
    let remedy = told(said, Queue::Uring).expect("a remedy");
    assert!(
        remedy.contains("(EAGAIN)") && remedy.contains("leave --driver out"),
        "{remedy}"
    );
    // A limit of processes or of locked memory is no device's.
    assert_eq!(told(said, Queue::Libaio), None);
    assert_eq!(
        told("fio: io_u error: Input/output error", Queue::Uring),
        None
    );
}
