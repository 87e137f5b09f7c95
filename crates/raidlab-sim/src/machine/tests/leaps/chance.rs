//! Operations by chance on solid-state disks are passed over, and nothing changes but the effort.
use super::*;
use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::outcome::DeviceBytes;
use raidlab_core::rng::Stream;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};

fn text(layout: &str, more: &str) -> String {
    let (count, array) = match layout {
        "single" => (1, String::new()),
        "raid5" => (3, format!("[array]\nlayout = \"{layout}\"\n{more}")),
        _ => (4, format!("[array]\nlayout = \"{layout}\"\n{more}")),
    };
    format!(
        r#"
title = "Solid-state disks"
disks = {{ model = "sata-ssd", count = {count} }}

[host]
cores = 8
{array}
"#
    )
}

fn random(phases: &str) -> String {
    format!("[profile]\nname = \"random\"\nsize = \"64GiB\"\n{phases}\n")
}

/// The phases, and the real time of the models alone.
fn phases(text: &str, leaps: bool, room: Option<u64>) -> (Vec<PhaseRun>, f64) {
    let mut machine = built(text, leaps);
    if let Some(room) = room {
        let less = |disk: &crate::disk::Disk| disk.room().map(|all| all - room);
        let taken: Vec<_> = machine.host.device().disks().map(less).collect();
        machine.host.with_device(|storage| storage.fill(&taken));
    }
    let runs = run(&mut machine);
    let time = machine.host().now().since(Instant::ZERO);
    (runs, time.as_secs_f64())
}

fn same(told: &str, full: &PhaseRun, fast: &PhaseRun) {
    let outcomes = [full, fast].map(|run| &run.outcome);
    let [a, b] = outcomes.map(|o| o.bytes as f64 / o.elapsed.as_secs_f64());
    assert!(close(a, b, 0.005), "{told}: {a} {b}");
    let [a, b] = outcomes.map(|o| o.mean_in_flight);
    assert!(close(a, b, 0.005), "{told}: {a} {b} in flight");
    let [a, b] = outcomes.map(|o| o.device.unwrap());
    let moved = |d: DeviceBytes| {
        [
            d.device_read,
            d.device_written,
            d.claimed_read,
            d.claimed_written,
        ]
    };
    for (a, b) in moved(a).into_iter().zip(moved(b)) {
        assert!(a.abs_diff(b) <= a / 50, "{told}: {a} {b} bytes");
    }
    same_shares(told, &full.why, &fast.why);
}

#[test]
fn random_calls_are_passed_over() {
    for (layout, depth, percent) in [
        ("single", 4, 100),
        ("single", 2, 0),
        ("raid0", 4, 70),
        ("raid5", 4, 50),
        ("raid10", 6, 0),
    ] {
        let of =
            format!("block = \"32KiB\"\ntime = \"7s\"\ndepth = {depth}\nread-percent = {percent}");
        let text = text(layout, "") + &random(&of);
        let told = format!("{layout}, {percent} % read");
        let ((full, whole), (fast, part)) = (phases(&text, false, None), phases(&text, true, None));
        assert!(close(whole, 7.0, 0.001), "{told}: {whole}");
        assert!(part < 3.6, "{told}: {part} of {whole}");
        same(&told, &full[0], &fast[0]);
    }
}

/// Beyond its fast area a disk writes at another pace: it is passed over to before that, and after it again.
#[test]
fn a_disk_comes_to_the_end_of_its_fast_area_when_it_would() {
    let of = "block = \"64KiB\"\ntime = \"24s\"\ndepth = 4\nread-percent = 0";
    let text = text("single", "") + &random(of);
    // Of 6 GiB, at some 500 MB/s.
    let room = Some(12 << 20);
    let ((full, whole), (fast, part)) = (phases(&text, false, room), phases(&text, true, room));
    let full_speed = phases(&text, true, None).0[0].outcome.bytes;
    let [a, b] = [&full, &fast].map(|runs| runs[0].outcome.bytes);
    assert!(close(a as f64, b as f64, 0.01), "{a} {b}");
    assert!(
        a < full_speed / 10 * 9,
        "{a} of {full_speed}: it has run out"
    );
    assert!(part < whole / 2.0, "{part} of {whole}");
}

/// Its cache takes what comes while it fills up, which takes longer than a pace to be known.
#[test]
fn a_hard_disk_is_run_until_its_cache_is_full() {
    let of = "block = \"4KiB\"\ntime = \"20s\"\ndepth = 1\nread-percent = 0";
    let text = (text("single", "") + &random(of)).replace("sata-ssd", "nearline-24tb");
    let ((full, _), (fast, _)) = (phases(&text, false, None), phases(&text, true, None));
    let [first, last] = [0, 19].map(|second| full[0].outcome.series.windows[second].bytes);
    assert!(first > 2 * last, "{first} {last}: it has filled up");
    let [a, b] = [&full, &fast].map(|runs| runs[0].outcome.bytes);
    assert!(close(a as f64, b as f64, 0.02), "{a} {b}");
}

/// What does not go on as it has is run: through the cache of the host or a controller, beside a rebuild, with a bitmap that is
/// written now and then; at a rate of its own, and for so many operations.
#[test]
fn what_changes_as_it_goes_on_is_run() {
    let of = |more: &str| random(&format!("time = \"6s\"\ndepth = 2\n{more}"));
    let (reads, writes) = ("read-percent = 100", "read-percent = 0");
    let card = r#"
engine = "controller"
[topology.controllers.card]
kind = "sata"
model = "hardware-raid"
own-raid = true
disks = [["disk0"], ["disk1"], ["disk2"], ["disk3"]]
"#;
    let part = |layout, array, more: &str| phases(&(text(layout, array) + &of(more)), true, None).1;
    let on_files =
        (text("single", "") + &of(writes)).replace("[host]", "filesystem = \"ext4\"\n[host]");
    let on_files = phases(&on_files, true, None).1;
    assert!(on_files > 5.9, "{on_files}");
    let as_it_is = part("raid10", "", writes);
    assert!(as_it_is < 4.0, "{as_it_is}");
    for (layout, array, more) in [
        ("raid10", card, writes),
        ("single", "", "direct = false\nread-percent = 100"),
        ("single", "", "rate = 500\nread-percent = 100"),
        ("raid5", "state = \"rebuilding\"", reads),
        ("raid10", "bitmap = \"internal\"", writes),
    ] {
        let part = part(layout, array, more);
        assert!(part > 5.9, "{layout} {array} {more}: {part}");
    }
}

/// Whether a machine says before and after some thousand calls that it goes on so, when they end then.
fn says(mut machine: Machine, reads: bool, until: Instant) -> [bool; 2] {
    let chance = Chance {
        until,
        reads,
        writes: !reads,
    };
    let before = machine.stays(&chance, true).is_some();
    some_calls(&mut machine, reads);
    [before, machine.stays(&chance, false).is_some()]
}

fn some_calls(machine: &mut Machine, reads: bool) {
    let spec = BlockSpec {
        order: Order::Random,
        read_percent: if reads { 100 } else { 0 },
        block: 4096,
        region: Extent::new(0, 64 << 30),
        first: 0,
        limit: Limit {
            ops: Some(3000),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    };
    let mut lanes = [Lane {
        workload: Blocks::new(spec, Stream::new(1)),
        depth: 4,
    }];
    drive(&mut lanes, machine, &DriveOptions::default(), &mut ()).expect("it is done");
}

#[test]
fn a_machine_knows_what_changes_in_it() {
    let of = |layout, array| text(layout, array) + &random("");
    let hard = |text: String| text.replace("sata-ssd", "nearline-24tb");
    let noted = of("raid10", "bitmap = \"internal\"");
    let rebuilt = of("raid5", "state = \"rebuilding\"");
    for (told, text, reads, direct, expected) in [
        ("written", of("raid10", ""), false, true, true),
        (
            "a bitmap that is written",
            noted.clone(),
            false,
            true,
            false,
        ),
        ("a bitmap that is not", noted, true, true, true),
        ("a rebuild", rebuilt, true, true, false),
        ("a disk's cache", hard(of("single", "")), false, true, false),
        (
            "a disk that is read",
            hard(of("single", "")),
            true,
            true,
            true,
        ),
        ("the host's cache", of("single", ""), true, false, false),
    ] {
        let mut machine = built(&text, true);
        machine.set_direct(direct);
        let [_, after] = says(machine, reads, Instant(u64::MAX));
        assert_eq!(after, expected, "{told}");
    }
}

/// As machines are built a million calls are to come.
#[test]
fn what_is_soon_over_is_run() {
    let text = text("single", "") + &random("");
    let as_usual = || {
        let experiment = experiment(&text);
        machine(&experiment, &experiment.cells[0])
    };
    for (seconds, expected) in [(10, false), (1000, true)] {
        let until = Instant::ZERO + Span::from_secs(seconds);
        let mut machine = as_usual();
        some_calls(&mut machine, true);
        // Beforehand by the calls that were made, and then by those that were looked at.
        assert_eq!(says(machine, true, until), [expected; 2], "{seconds} s");
    }
}
