mod processor;

use crate::observe::neighbours::neighbours;
use crate::observe::{diskstats, resolve};

use super::*;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn reading(device: u64) -> Evidence {
    Evidence {
        claimed_read: GIB,
        wall: Duration::from_secs(10),
        device_read: Some(device),
        device_written: Some(0),
        ..Evidence::default()
    }
}

fn kinds(evidence: &Evidence) -> Vec<FlagKind> {
    judge(evidence).iter().map(|flag| flag.kind).collect()
}

fn reasons(evidence: &Evidence) -> String {
    judge(evidence)
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_sound_phase_has_no_flag() {
    assert_eq!(kinds(&reading(GIB)), []);
    let writing = Evidence {
        claimed_written: GIB,
        flushed: true,
        wall: Duration::from_secs(10),
        device_read: Some(0),
        device_written: Some(GIB + GIB / 50),
        generator: vec![Duration::from_secs(3)],
        foreign_cpus: Some(0.1),
        steal: Some(0.02),
        cpu_pressure: Some(0.05),
        ..Evidence::default()
    };
    assert_eq!(kinds(&writing), []);
}

#[test]
fn what_is_unknown_is_not_judged() {
    let unknown = Evidence {
        claimed_read: GIB,
        claimed_written: GIB,
        direct: true,
        wall: Duration::from_secs(1),
        ..Evidence::default()
    };
    assert_eq!(kinds(&unknown), []);
}

#[test]
fn the_thresholds_of_cache_accounting() {
    use FlagKind::{ForeignIo, PartlyCached, ServedFromCache};
    let permille = |n: u64| kinds(&reading(GIB / 1000 * n));
    assert_eq!(permille(0), [ServedFromCache]);
    assert_eq!(permille(99), [ServedFromCache]);
    assert_eq!(permille(101), [PartlyCached]);
    assert_eq!(permille(979), [PartlyCached]);
    assert_eq!(permille(981), []);
    assert_eq!(permille(1099), []);
    assert_eq!(permille(1101), [ForeignIo]);
}

#[test]
fn a_few_kilobytes_of_journal_are_no_foreign_load() {
    let small = Evidence {
        claimed_read: 4096,
        device_read: Some(1 << 20),
        ..reading(0)
    };
    assert_eq!(kinds(&small), []);
    let other = Evidence {
        device_written: Some(100 << 20),
        ..reading(GIB)
    };
    assert_eq!(kinds(&other), [FlagKind::ForeignIo]);
}

#[test]
fn a_warm_run_is_meant_to_come_from_the_cache() {
    let warm = Evidence {
        warm: true,
        link: Some(RateLimit {
            bytes_per_second: 1e6,
            source: "SATA".to_owned(),
        }),
        ..reading(0)
    };
    assert_eq!(kinds(&warm), []);
}

#[test]
fn direct_io_is_held_to_its_word() {
    let by_bytes = Evidence {
        direct: true,
        ..reading(0)
    };
    assert_eq!(kinds(&by_bytes), [FlagKind::DirectNotHonoured]);
    assert!(judge(&by_bytes)[0].voids);
    let by_residency = Evidence {
        direct: true,
        resident_before: Some(0.0),
        resident_after: Some(0.5),
        ..reading(GIB)
    };
    assert_eq!(kinds(&by_residency), [FlagKind::DirectNotHonoured]);
    let writes = Evidence {
        direct: true,
        claimed_written: GIB,
        claimed_read: 0,
        ..reading(0)
    };
    assert_eq!(kinds(&writes), [FlagKind::DirectNotHonoured]);
    let half = Evidence {
        direct: true,
        ..reading(GIB / 2)
    };
    assert_eq!(kinds(&half), [FlagKind::PartlyCached]);
}

#[test]
fn direct_io_of_a_mix_is_judged_in_each_direction() {
    let mix = Evidence {
        direct: true,
        claimed_written: GIB,
        device_written: Some(GIB),
        ..reading(0)
    };
    assert_eq!(kinds(&mix), [FlagKind::DirectNotHonoured]);
    assert!(
        reasons(&mix).ends_with("but the device read 0 B of 1 GiB"),
        "{}",
        reasons(&mix)
    );
}

#[test]
fn the_own_io_count_tells_read_ahead_from_others() {
    let cause = |process_read| {
        reasons(&Evidence {
            process_read,
            ..reading(2 * GIB)
        })
    };
    assert!(cause(None).contains("something else read too, or read-ahead"));
    assert!(cause(Some(GIB)).ends_with("something else read too"));
    assert!(cause(Some(2 * GIB)).ends_with("read-ahead fetched more than was used"));
}

#[test]
fn copies_on_several_devices_are_no_foreign_writes() {
    let mirrored = Evidence {
        claimed_written: GIB,
        device_written: Some(2 * GIB),
        flushed: true,
        wall: Duration::from_secs(9),
        ..Evidence::default()
    };
    assert_eq!(kinds(&mirrored), [FlagKind::ForeignIo]);
    assert_eq!(
        kinds(&Evidence {
            copies: true,
            ..mirrored
        }),
        []
    );
}

#[test]
fn counters_that_stand_still_prove_nothing() {
    let tree = crate::observe::tree::lvm_on_mirror();
    let counters = |text: &str| diskstats::Snapshot {
        taken: std::time::Instant::now(),
        devices: diskstats::parse(text).unwrap(),
    };
    let before = counters("253 0 dm-0 0 0 0 0 0 0 0 0 0 0 0\n");
    let difference = counters("253 0 dm-0 4 0 64 9 2 0 32 0 7 90 90\n").since(&before);
    let gathered = || {
        let stack = resolve::device_stack(&tree.roots, vec!["dm-0".to_owned()]).unwrap();
        let evidence = Evidence::default().with_devices(&difference, &stack, &[]);
        (evidence.device_read, evidence.device_written)
    };
    assert_eq!(gathered(), (Some(64 * 512), Some(32 * 512)));
    tree.attribute("dm-0", "queue/iostats", "1");
    assert_eq!(gathered(), (Some(64 * 512), Some(32 * 512)));
    // Device mapper of Linux 6.1 says so, and counts nevertheless.
    tree.attribute("dm-0", "queue/iostats", "0");
    assert_eq!(gathered(), (Some(64 * 512), Some(32 * 512)));
    // Others mean it.
    tree.attribute("md0", "queue/iostats", "0");
    let stack = resolve::device_stack(&tree.roots, vec!["md0".to_owned()]).unwrap();
    assert!(!stack.top_counted());
}

/// A neighbour that reads 4 KiB at random takes a hard disk's time and moves next to no bytes.
#[test]
fn a_neighbours_small_requests_are_noticed() {
    let of = |read, written, beside| {
        Some(Requests {
            read,
            written,
            beside,
            ..Requests::default()
        })
    };
    let sequential = |requests| Evidence {
        requests,
        ..reading(GIB)
    };
    assert_eq!(kinds(&sequential(of(1000, 20, 0))), []);
    assert_eq!(kinds(&sequential(of(1000, 400, 0))), [FlagKind::ForeignIo]);
    assert_eq!(kinds(&sequential(of(1000, 0, 400))), [FlagKind::ForeignIo]);
    let writing = |process_read| Evidence {
        claimed_written: GIB,
        wall: Duration::from_secs(10),
        device_read: Some(2 * MIB),
        device_written: Some(GIB),
        process_read: Some(process_read),
        requests: of(400, 1000, 0),
        ..Evidence::default()
    };
    assert_eq!(kinds(&writing(0)), [FlagKind::ForeignIo]);
    assert_eq!(kinds(&writing(2 * MIB)), [], "it reads what it writes to");
    // The same direction, on a disk that does a hundred reads a second.
    let random = |process_read| Evidence {
        claimed_read: 2 * MIB,
        direct: true,
        process_read: Some(process_read),
        ..reading(4 * MIB)
    };
    assert_eq!(kinds(&random(2 * MIB)), [FlagKind::ForeignIo]);
    assert_eq!(kinds(&random(4 * MIB)), [], "read-ahead of its own");
}

/// One partition is measured, another one of its disk is used meanwhile: the measured one's counters do not tell.
#[test]
fn another_partition_of_the_same_disk_is_a_neighbour() {
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    if !crate::observe::tree::is_root("another_partition_of_the_same_disk_is_a_neighbour") {
        return;
    }
    let roots = crate::observe::Roots::system();
    let disk = crate::observe::tree::LoopDevice::new(32 << 20);
    disk.add_partition(1, 2048, 16384);
    disk.add_partition(2, 20480, 16384);
    let node = |number: u32| format!("{}p{number}", disk.node.display());
    let stack = resolve::device_stack(&roots, vec![format!("{}p1", disk.name())]).unwrap();
    let read = |path: &str, blocks: u64| {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECT);
        let file = options.open(path).unwrap();
        let mut room = vec![0_u8; 8192];
        let aligned = room.as_ptr().align_offset(4096);
        for block in 0..blocks {
            let buffer = &mut room[aligned..aligned + 4096];
            file.read_exact_at(buffer, block * 4096).unwrap();
        }
    };
    // Other tests have loop devices on the disk beneath.
    let mut neighbours = neighbours(&roots, &stack);
    neighbours.retain(|neighbour| neighbour.on == disk.name());
    let measured = |beside: u64| {
        let before = diskstats::Snapshot::take(&roots).unwrap();
        read(&node(1), 1000);
        read(&node(2), beside);
        let difference = diskstats::Snapshot::take(&roots).unwrap().since(&before);
        Evidence {
            claimed_read: 1000 * 4096,
            direct: true,
            wall: Duration::from_secs(1),
            ..Evidence::default()
        }
        .with_devices(&difference, &stack, &neighbours)
    };
    let mut alone = measured(0);
    alone.beneath_read = None;
    alone.beneath.clear();
    assert_eq!(kinds(&alone), [], "{alone:?}");
    let mut beside = measured(500);
    beside.beneath_read = None;
    beside.beneath.clear();
    assert_eq!(kinds(&beside), [FlagKind::ForeignIo], "{beside:?}");
}

/// The whole chain on a disk that nobody else uses: evict, read cold, read warm, and judge by the kernel's counters.
#[test]
fn a_cold_read_is_proved_and_a_warm_one_is_found_out() {
    if !crate::observe::tree::is_root("a_cold_read_is_proved_and_a_warm_one_is_found_out") {
        return;
    }
    let roots = crate::observe::Roots::system();
    let mounted = crate::observe::tree::MountedLoop::ext4(64 << 20, &[]);
    let path = mounted.point.path().join("data");
    std::fs::write(&path, vec![9u8; 32 << 20]).unwrap();
    assert!(crate::observe::cache::evict(&path).unwrap().proved);
    let resolved = resolve(&roots, &path).unwrap();
    let read = || {
        let before = diskstats::Snapshot::take(&roots).unwrap();
        let claimed_read = std::fs::read(&path).unwrap().len() as u64;
        let difference = diskstats::Snapshot::take(&roots).unwrap().since(&before);
        Evidence {
            claimed_read,
            wall: Duration::from_secs(1),
            ..Evidence::default()
        }
        .with_devices(&difference, resolved.stack().unwrap(), &[])
    };
    let cold = read();
    assert!(cold.device_read.unwrap() >= cold.claimed_read, "{cold:?}");
    let by_itself = Evidence {
        beneath_read: None,
        beneath: Vec::new(),
        ..cold.clone()
    };
    assert_eq!(kinds(&by_itself), []);
    // The loop device was read; whether the disk beneath it was is another matter, and is told. What others read of that disk
    // in the meantime is counted with it, so that only little and all of it say what is to be told.
    match cold.beneath_read {
        Some(read) if read < MIB => assert!(!kinds(&cold).is_empty(), "{cold:?}"),
        Some(read) if read < cold.claimed_read => {}
        _ => assert!(
            !kinds(&cold).contains(&FlagKind::ServedFromCache),
            "{cold:?}"
        ),
    }
    let warm = Evidence {
        beneath: Vec::new(),
        ..read()
    };
    assert_eq!(kinds(&warm), [FlagKind::ServedFromCache], "{warm:?}");
}

fn array(words: &str, busy: bool) -> ArrayState {
    ArrayState {
        words: words.to_owned(),
        busy,
    }
}

#[test]
fn an_array_that_only_lacks_a_member_is_measured_as_it_is() {
    let flag = |arrays| {
        let seen = Evidence {
            arrays,
            ..reading(GIB)
        };
        let flag = array_busy(&seen).expect("a flag");
        (flag.voids, flag.reason)
    };
    let lacks = array("md0 lacks 1 member", false);
    assert_eq!(
        flag(vec![lacks.clone()]),
        (false, "md0 lacks 1 member".to_owned())
    );
    let both = vec![array("md0 is rebuilding a member", true), lacks];
    assert_eq!(
        flag(both),
        (
            true,
            "md0 is rebuilding a member; md0 lacks 1 member".to_owned()
        )
    );
}

#[test]
fn reasons_name_their_figures() {
    let all = Evidence {
        claimed_read: GIB,
        claimed_written: GIB,
        wall: Duration::from_millis(250),
        device_read: Some(12 << 20),
        device_written: Some(256 << 20),
        link: Some(RateLimit {
            bytes_per_second: 6e8,
            source: "SATA 6.0 Gbit/s".to_owned(),
        }),
        generator: vec![Duration::from_millis(245)],
        foreign_cpus: Some(0.8),
        steal: Some(0.031),
        cpu_pressure: Some(0.2),
        arrays: vec![array("md0 is resyncing", true)],
        ..Evidence::default()
    };
    insta::assert_snapshot!(reasons(&all), @r"
    too-short: it took 0.250 s, less than 0.5 s
    served-from-cache: the device read 12 MiB of 1 GiB: the page cache served it
    unflushed: 256 MiB of 1 GiB had reached the device when the clock stopped; the rest was still in memory, or was overwritten there
    above-limit: 8590 MB/s is above the 600 MB/s of SATA 6.0 Gbit/s, more than the link carries: a cache of the operating system, or a wrong clock
    generator-bound: 1 of 1 job used 95 % of a CPU or more: the processor was the limit, not the storage
    other-load: other programs used 0.80 CPUs; the hypervisor took 3.1 % of the CPU time; tasks waited for a CPU in 20.0 % of the time
    array-busy: md0 is resyncing
    ");
    let flushed = Evidence {
        flushed: true,
        ..all
    };
    assert!(reasons(&flushed).contains("though it was flushed"));
    // Half of the blocks were written twice, which is no file system that compresses; what is missing beyond that may be one.
    let again = |distinct| Evidence {
        distinct_written: Some(distinct),
        ..flushed.clone()
    };
    assert!(!reasons(&again(257 << 20)).contains("unflushed"));
    let told = reasons(&again(512 << 20));
    assert!(
        told.contains("about 512 MiB are different ones") && told.contains("compresses"),
        "{told}"
    );
}

#[test]
fn the_medium_is_a_limit_of_its_own() {
    let limit = |bytes_per_second| {
        Some(RateLimit {
            bytes_per_second,
            source: "60 MB/s disk".to_owned(),
        })
    };
    // 1 GiB in 10 s is 107.4 MB/s.
    let above = Evidence {
        medium: limit(97e6),
        ..reading(GIB)
    };
    assert_eq!(kinds(&above), [FlagKind::AboveLimit]);
    assert_eq!(
        kinds(&Evidence {
            medium: limit(98e6),
            ..reading(GIB)
        }),
        []
    );
}

/// Bytes and processor time are those of the ramp, too, and the time that is long enough is the counted one.
#[test]
fn what_is_not_counted_of_a_phase_is_part_of_its_time() {
    let of = |wall, ramp| Evidence {
        wall: Duration::from_millis(wall),
        ramp: Duration::from_millis(ramp),
        generator: vec![Duration::from_millis(2000)],
        link: Some(RateLimit {
            bytes_per_second: 300e6,
            source: "SATA".to_owned(),
        }),
        ..reading(GIB)
    };
    assert_eq!(kinds(&of(4000, 3000)), []);
    assert_eq!(
        kinds(&of(1000, 0)),
        [FlagKind::AboveLimit, FlagKind::GeneratorBound]
    );
    assert_eq!(kinds(&of(4000, 3600)), [FlagKind::TooShort]);
}

#[test]
fn a_phase_without_time_or_bytes_is_judged_too() {
    let empty = Evidence {
        device_read: Some(0),
        device_written: Some(0),
        ..Evidence::default()
    };
    assert_eq!(kinds(&empty), [FlagKind::TooShort]);
}

#[test]
fn a_loop_device_whose_file_is_in_memory_reads_no_disk() {
    let of = |beneath| Evidence {
        direct: true,
        beneath_read: Some(beneath),
        ..reading(GIB)
    };
    assert_eq!(kinds(&of(GIB)), []);
    assert_eq!(kinds(&of(GIB / 2)), [FlagKind::PartlyCached]);
    assert_eq!(kinds(&of(0)), [FlagKind::ServedFromCache]);
    assert!(
        reasons(&of(0)).contains("1 GiB were read through loop devices, and 0 B from the disk"),
        "{}",
        reasons(&of(0))
    );
    // It is the cost of the software that arrays of loop files are measured for.
    assert!(judge(&of(0)).iter().all(|flag| !flag.voids));
    // A warm run wants the cache.
    let warm = Evidence {
        warm: true,
        ..of(0)
    };
    assert_eq!(kinds(&warm), []);
}
