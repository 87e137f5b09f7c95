//! Pools of ZFS: RAID-Z and several vdevs.
use super::*;
use crate::disk::Counters;

/// All phases of a pool's cell, and the counters of its disks.
fn measured(array: &str, profile: &str, memory: &str) -> (Vec<PhaseRun>, Vec<Counters>) {
    measured_on(array, profile, &format!("memory = \"{memory}\""))
}

/// The same on such a host.
fn measured_on(array: &str, profile: &str, host: &str) -> (Vec<PhaseRun>, Vec<Counters>) {
    let members = match array {
        text if text.contains("single") => 1,
        text if text.contains("\"zfs-mirror\"") => 2,
        _ => 4,
    };
    let text = format!(
        "title = \"Pools\"\n\
         disks = {{ model = \"ST3250624AS\", count = {members}, override = {{ capacity = \"16GiB\" }} }}\n\
         [array]\n{array}\n[host]\n{host}\n[profile]\n{profile}\n"
    );
    let experiment = experiment(&text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    let runs = run(&mut machine);
    let disks = machine.host().device().disks();
    (runs, disks.map(|disk| *disk.counters()).collect())
}

const ONE: &str = "layout = \"single\"\nengine = \"zfs\"";
const RECORDS: &str = "name = \"random\"\nblock = \"128KiB\"\nread-percent = 100\ndirect = false";

/// Random reads of whole records by so many processes, a second; and reads of disks for each. The file takes as much of each disk,
/// whatever the layout, so that arms have as far to go: so many GiB.
fn reads(array: &str, gib: u32, jobs: u32) -> (f64, f64) {
    let profile =
        format!("{RECORDS}\nsize = \"{gib}GiB\"\ndepth = 1\njobs = {jobs}\ntime = \"20s\"");
    let (runs, disks) = measured(array, &profile, "256MiB");
    let outcome = &runs[0].outcome;
    let asked: u64 = disks.iter().map(|c| c.reads).sum();
    (
        outcome.ops_per_second().expect("time has passed"),
        asked as f64 / outcome.ops as f64,
    )
}

/// A record is on all children of a vdev but those with its parity: each read moves three arms of four, and waits for the
/// last of them. What is gained over one disk is two thirds of the transfer, and that one child of four is left out.
#[test]
fn a_raidz_vdev_reads_at_random_like_one_disk_and_mirrors_like_all() {
    const RAIDZ: &str = "layout = \"raidz1\"";
    let ((one, each), (raidz, columns)) = (reads(ONE, 1, 8), reads(RAIDZ, 3, 8));
    // Less what is in memory of the file, an eighth at the most.
    assert!((0.85..1.05).contains(&each), "{each}");
    assert!((2.7..3.1).contains(&columns), "{columns}");
    assert!((1.0..1.7).contains(&(raidz / one)), "{raidz} {one}");
    let (mirrors, of_one) = reads("layout = \"zfs-mirror 2x2\"", 2, 8);
    assert!((0.85..1.05).contains(&of_one), "{of_one}");
    let times = (mirrors / one, mirrors / raidz);
    assert!(times.0 > 2.0 && times.1 > 1.2, "{mirrors} {raidz} {one}");
    // One at a time the last of three arms is later than one.
    let (one, raidz) = (reads(ONE, 1, 1).0, reads(RAIDZ, 3, 1).0);
    assert!(raidz < one, "{raidz} {one}");
}

/// What somebody waits for goes in the order that it came, ten at a time, and is no reading ahead, which goes by place and
/// three at a time: metadata that is read between would have calls wait for seconds.
#[test]
fn who_waits_for_a_record_is_served_in_turn() {
    let profile = format!("{RECORDS}\nsize = \"12GiB\"\ndepth = 1\njobs = 32\ntime = \"20s\"");
    let (runs, _) = measured(ONE, &profile, "256MiB");
    let latency = runs[0].outcome.latency();
    let (most, mean) = (latency.max().unwrap(), latency.mean().unwrap());
    let times = most.as_secs_f64() / mean.as_secs_f64();
    assert!(times < 4.0, "the longest waits {times} times the mean");
}

/// A process waits within each read that it has handed over until Linux 6.4, and hears of all of them at once; since 6.5 four workers
/// of each processor wait for it.
#[test]
fn one_process_has_one_read_under_way_until_workers_wait_for_it() {
    let reads = |kernel: &str, jobs: u32, depth: u32| {
        let profile =
            format!("{RECORDS}\nsize = \"4GiB\"\ndepth = {depth}\njobs = {jobs}\ntime = \"20s\"");
        let host = format!("memory = \"256MiB\"\nkernel = \"{kernel}\"\ncores = 1");
        let (runs, _) = measured_on("layout = \"zfs-stripe\"", &profile, &host);
        let latency = runs[0].outcome.latency();
        let mean = latency.mean().expect("calls").as_secs_f64();
        (runs[0].outcome.ops_per_second().expect("a rate"), mean)
    };
    for kernel in ["4.4", "6.1"] {
        let ((alone, one), (deep, eight)) = (reads(kernel, 1, 1), reads(kernel, 1, 8));
        assert!(
            (0.97..1.03).contains(&(deep / alone)),
            "{kernel}: {deep} {alone}"
        );
        assert!(
            (7.5..8.2).contains(&(eight / one)),
            "{kernel}: {eight} {one}"
        );
        let (several, _) = reads(kernel, 8, 1);
        assert!(several > 2.0 * alone, "{kernel}: {several} {alone}");
    }
    let (alone, deep) = (reads("6.5", 1, 1).0, reads("6.5", 1, 8).0);
    let (four, eight) = (reads("6.5", 4, 1).0, reads("6.5", 8, 1).0);
    assert!((0.9..1.1).contains(&(deep / four)), "{deep} {four}");
    assert!(
        deep > 1.5 * alone && deep < 0.95 * eight,
        "{deep} {alone} {eight}"
    );
}

/// Each record is on one disk of four.
#[test]
fn a_stripe_reads_at_random_like_all_its_disks() {
    const STRIPE: &str = "layout = \"zfs-stripe\"";
    let ((one, _), (stripe, of_one)) = (reads(ONE, 1, 16), reads(STRIPE, 4, 16));
    assert!((0.85..1.05).contains(&of_one), "{of_one}");
    // Of sixteen reads more wait at one disk than at each of four, which so have less to choose from.
    assert!((2.3..4.0).contains(&(stripe / one)), "{stripe} {one}");
}

#[test]
fn what_is_written_of_a_record_is_its_data_and_a_parity_for_each_row() {
    for (layout, share) in [
        ("single\"\nengine = \"zfs", 1.0),
        ("zfs-stripe", 1.0),
        ("zfs-mirror 2x2", 2.0),
        // 32 units of 4 KiB: 11 rows of 3, 16 rows of 2, with what fills a block up.
        ("raidz1", 44.0 / 32.0),
        ("raidz2", 66.0 / 32.0),
        ("raidz3", 4.0),
    ] {
        let array = format!("layout = \"{layout}\"");
        let (runs, disks) = measured(&array, "name = \"dd\"\ncount = 1024", "2GiB");
        let claimed = runs.iter().filter_map(|run| run.outcome.device);
        let asked = claimed.map(|device| device.claimed_written).sum::<u64>() as f64;
        let written: u64 = disks.iter().map(|c| c.sectors_written).sum();
        let per = (written * SECTOR) as f64 / asked;
        assert!(
            (1.0..1.03).contains(&(per / share)),
            "{layout}: {per} {share}"
        );
        // Nobody has much more of it than the others.
        let most = disks.iter().map(|c| c.sectors_written).max().unwrap_or(0);
        let mean = written as f64 / disks.len() as f64;
        assert!(most as f64 / mean < 1.05, "{layout}: {most} {mean}");
    }
}

/// A direct write of a part of a record goes through the ARC as any other, which reads the rest of the record first.
#[test]
fn a_direct_write_of_a_part_of_a_record_waits_for_the_rest_of_it() {
    let profile = "name = \"random\"\nsize = \"2GiB\"\ndepth = 1\ntime = \"5s\"";
    let (runs, disks) = measured(ONE, profile, "256MiB");
    let rates = runs.iter().map(|run| run.outcome.ops_per_second());
    let [read, write] = rates.collect::<Option<Vec<_>>>().unwrap()[..] else {
        panic!("two phases")
    };
    assert!((0.4..1.5).contains(&(write / read)), "{write} {read}");
    // Of both phases: each call moves a record from the disk.
    let moved = disks[0].sectors_read as f64 * SECTOR as f64;
    let calls: u64 = runs.iter().map(|run| run.outcome.ops).sum();
    let record = 128.0 * 1024.0;
    assert!(moved > 0.8 * record * calls as f64, "{moved} {calls}");
}

/// What is read is data alone, so that it takes its share of all disks' rates: of RAID-Z with one parity 32 of 43 units, with
/// two a half. Writes come to less, as what ends a group is written to several disks as well.
#[test]
fn sequential_reads_are_as_fast_as_the_disks_that_have_data() {
    let rates = |array: &str| {
        let (runs, _) = measured(array, "name = \"dd\"\ncount = 1024", "256MiB");
        let rate = |name: &str| {
            let run = runs.iter().find(|run| run.outcome.id == name);
            let run = run.expect("a phase");
            run.outcome.bytes_per_second().expect("time has passed")
        };
        (rate("write-first"), rate("read-first"))
    };
    let (write, read) = rates(ONE);
    for (layout, disks, least_of_writes) in [
        ("zfs-stripe", 4.0, 2.3),
        ("zfs-mirror 2x2", 4.0, 1.5),
        ("raidz1", 4.0 * 32.0 / 43.0, 1.8),
        ("raidz2", 2.0, 1.4),
    ] {
        let (wrote, got) = rates(&format!("layout = \"{layout}\""));
        let times = got / read;
        assert!(
            (0.7 * disks..1.03 * disks).contains(&times),
            "{layout}: {times} {disks}"
        );
        assert!(wrote / write > least_of_writes, "{layout}: {wrote} {write}");
    }
}

#[test]
fn a_degraded_pool_reads_as_much_with_parity_instead_of_data() {
    let profile = format!("{RECORDS}\nsize = \"1GiB\"\ndepth = 4\ntotal = \"64MiB\"");
    let read = |state: &str| {
        let array = format!("layout = \"raidz1\"\nstate = \"{state}\"");
        let (_, disks) = measured(&array, &profile, "256MiB");
        disks.iter().map(|c| c.sectors_read).collect::<Vec<_>>()
    };
    let (clean, degraded) = (read("clean"), read("degraded 1"));
    assert_eq!(degraded.iter().filter(|sectors| **sectors == 0).count(), 1);
    let sum = |all: &[u64]| all.iter().sum::<u64>() as f64;
    let ratio = sum(&degraded) / sum(&clean);
    assert!((ratio - 1.0).abs() < 0.03, "{clean:?} {degraded:?}");
}

/// Records of 4 KiB, written in order: commands are nearly as large as ZFS joins them before 0.8, but for what finds the disk
/// idle; since then twice as large as those could be at the most, with groups that end before the disk has its fill.
#[test]
fn small_records_go_out_as_large_commands() {
    for (kernel, least) in [("2.6.32", 96 << 10), ("4.4", 96 << 10), ("6.1", 256 << 10)] {
        let array = "layout = \"zfs-mirror\"\nrecord-size = \"4KiB\"";
        let profile = "name = \"dd\"\nbs = \"64KiB\"\ncount = 1024";
        let host = format!("2GiB\"\nkernel = \"{kernel}");
        let (_, disks) = measured(array, profile, &host);
        let counters = disks[0];
        let mean = counters.sectors_written * SECTOR / counters.writes;
        assert!(mean > least, "{kernel}: {mean} bytes");
    }
}

/// Records that `fsync` wants on the disks take their time on the cores that there are, before it ends.
#[test]
fn no_more_processor_time_is_used_than_cores_have() {
    for cores in [1, 4, 16] {
        let text = format!(
            "title = \"Cores\"\ndisks = {{ model = \"nvme-ssd\", count = 6 }}\n\
             [array]\nlayout = \"zfs-stripe\"\nmember-size = \"1GiB\"\nrecord-size = \"8KiB\"\n\
             [host]\nmemory = \"1GiB\"\nkernel = \"2.6.32\"\ncores = {cores}\n\
             [profile]\nname = \"hdbench\"\nsizes = [\"16MiB\"]\n"
        );
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        assert_eq!(runs.len(), 3);
        for outcome in runs.iter().map(|run| &run.outcome) {
            let cpu = &outcome.cpu;
            let used = cpu.user + cpu.system + cpu.kernel_threads.unwrap_or_default();
            let share = used.as_secs_f64() / outcome.elapsed.as_secs_f64();
            let most = 1.01 * f64::from(cores);
            assert!(share <= most, "{}: {share} of {cores}", outcome.id);
        }
    }
}

/// Real preparation goes through the ARC, which no advice empties (`zpl_fadvise`): a file that fits is read from there, of another
/// the end that was written last. Other file systems give up what a cold phase reads, and what is read past their cache.
#[test]
fn a_prepared_file_of_a_pool_is_in_its_cache_as_far_as_it_fits() {
    let on = "layout = \"single\"\n[filesystem]\nkind = \"ext4\"";
    let read = |array: &str, size: &str, direct: bool| {
        let profile = format!(
            "name = \"random\"\nread-percent = 100\ndepth = 4\ntime = \"5s\"\nsize = \"{size}\"\ndirect = {direct}"
        );
        let (runs, _) = measured(array, &profile, "512MiB");
        let device = runs[0].outcome.device.unwrap();
        device.device_read as f64 / device.claimed_read as f64
    };
    for direct in [true, false] {
        assert!(read(ONE, "128MiB", direct) < 0.01, "{direct}");
        assert!(read(on, "128MiB", direct) > 0.3, "{direct}");
        // Half of it, in records of 128 KiB for 4.
        let of_half = read(ONE, "512MiB", direct);
        let of_most = read(ONE, "8GiB", direct);
        assert!(
            (0.3..0.7).contains(&(of_half / of_most)),
            "{of_half} {of_most}"
        );
    }
}
