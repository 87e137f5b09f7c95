//! RAID of controllers: against the equations, the published shape, and failures.
use super::*;
use crate::catalogue::controller::CacheModel;
use raidlab_core::units::{Bytes, Sectors};
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Geometry, Spec};

/// A volume of the first `members` disks of `spec`.
pub(super) fn volume(mut spec: FabricSpec, layout: &str, members: usize) -> FabricSpec {
    let sizes: Vec<Sectors> = spec.disks[..members]
        .iter()
        .map(|disk| Sectors(disk.model.sectors() / 128 * 128))
        .collect();
    let geometry = Geometry {
        sizes,
        chunk: Bytes::kib(64).to_sectors(),
        outer_chunk: None,
    };
    let layout: Spec = layout.parse().unwrap();
    spec.volumes.push(VolumeSpec {
        name: "volume".to_owned(),
        disks: (0..members as u32).collect(),
        layout: layout.build(&geometry).unwrap(),
        failed: Vec::new(),
        state: ArrayState::Clean,
        rebuild_rate: None,
    });
    spec
}

fn perc(layout: &str, members: u32) -> FabricSpec {
    let spec = on_channels("PERC3/Di", "ST336706LW", &[0, members]);
    volume(spec, layout, members as usize)
}

/// Seconds that a file of so many bytes takes in calls of 64 KiB, one after the other, from `start`.
fn pass(fabric: &mut Fabric, start: Instant, kind: BlockKind, bytes: u64) -> (Instant, f64) {
    let (mut now, mut done) = (start, Vec::new());
    let port = fabric.ports().len() as u32 - 1;
    for i in 0..bytes / 65_536 {
        fabric.submit(now, port, bio(i, kind, i * 128, 128));
        while done.is_empty() {
            now = fabric.next_event().expect("a request is in flight");
            fabric.advance(now, &mut done);
        }
        assert_eq!(done.pop().unwrap().end.result, Ok(()));
    }
    (now, bytes as f64 / (now.0 - start.0) as f64 * 1e3)
}

/// MB/s of writing and then reading a file.
pub(super) fn write_and_read(spec: &FabricSpec, bytes: u64) -> (f64, f64) {
    let mut fabric = Fabric::new(spec, 1).unwrap();
    let (now, write) = pass(&mut fabric, Instant::ZERO, BlockKind::Write, bytes);
    let (_, read) = pass(&mut fabric, now, BlockKind::Read, bytes);
    (write, read)
}

#[test]
fn a_command_of_the_firmware_takes_its_time_and_the_slowest_channels_parts() {
    let time = |layout: &str, channels: &[u32], kind| {
        let drive = instant_disk(1, 100_000_000);
        let card = controller("ITE8212", channels.len() as u32, None);
        let disks = channels.iter().sum::<u32>() as usize;
        let spec = volume(with_disks(card, &drive, channels), layout, disks);
        let mut fabric = Fabric::new(&spec, 1).unwrap();
        assert_eq!(
            (fabric.ports()[0].tags, fabric.ports()[0].max_sectors),
            (1, 256)
        );
        // Eight at a time are worked off one after the other.
        let ends = closed_loop(&mut fabric, 8, 50, |_, i| bio(i, kind, i * 256, 256));
        ends[49].end.at.0 as f64 / 50.0
    };
    let model = controller("ITE8212", 2, None).model;
    let firmware = model.firmware.unwrap();
    // 64 KiB at 88 % of 100 MB/s.
    let part = 65_536.0 / 0.088 + model.channel.command.0 as f64;
    let (read, write) = (firmware.read.0 as f64, firmware.write.0 as f64);
    let switch = firmware.switch_write.0 as f64;
    for (channels, parts, switches) in [([1, 1], 1.0, 0.0), ([2, 0], 2.0, 2.0), ([0, 2], 2.0, 2.0)]
    {
        let took = time("raid0", &channels, BlockKind::Write);
        close(took, write + parts * part + switches * switch, 0.005);
    }
    close(
        time("raid0", &[2, 0], BlockKind::Read),
        read + 2.0 * (part + firmware.switch_read.0 as f64),
        0.005,
    );
    close(
        time("raid1", &[1, 1], BlockKind::Write),
        write + 2.0 * part - 15e3,
        0.005,
    );
    // One command of the disk.
    close(
        time("linear", &[2, 2], BlockKind::Read),
        read + 2.0 * part - 15e3,
        0.005,
    );
}

#[test]
fn a_volume_of_the_firmware_tells_whether_a_command_is_in_service() {
    let drive = instant_disk(1, 100_000_000);
    let card = controller("ITE8212", 2, None);
    let spec = volume(with_disks(card, &drive, &[1, 1]), "raid0", 2);
    let mut fabric = Fabric::new(&spec, 1).unwrap();
    let busy = |fabric: &Fabric, now| {
        let mut all = Vec::new();
        fabric.busy(now, &mut all);
        all.into_iter().find(|b| b.kind == ResourceKind::Volume)
    };
    assert_eq!(busy(&fabric, Instant::ZERO), None);
    fabric.submit(Instant(5_000), 0, bio(0, BlockKind::Read, 0, 256));
    let during = busy(&fabric, Instant(105_000)).unwrap();
    assert_eq!((during.busy.0, &*during.name), (100_000, "volume of card"));
    let mut done = Vec::new();
    while done.is_empty() {
        let next = fabric.next_event().unwrap();
        fabric.advance(next, &mut done);
    }
    let end = done[0].end.at;
    // It is at rest afterwards.
    let after = busy(&fabric, Instant(end.0 + 1_000_000)).unwrap();
    assert_eq!(after.busy.0, end.0 - 5_000);
    let firmware = spec.controllers[0].model.firmware.unwrap();
    assert!(after.parts.contains(&("in the firmware", firmware.read)));
}

#[test]
fn the_memory_of_a_caching_controller_is_the_limit_it_was_found_to_be() {
    let size = 150_000_000;
    let (raid0_write, raid0_read) = write_and_read(&perc("raid0", 2), size);
    let (raid1_write, _) = write_and_read(&perc("raid1", 2), size);
    let (raid5_write, raid5_read) = write_and_read(&perc("raid5", 3), size);
    let (six_write, six_read) = write_and_read(&perc("raid5", 6), size);
    // Reads stop at about the same figure whatever the level; mirrors write every byte twice.
    for read in [raid0_read, raid5_read, six_read] {
        assert!((45.0..59.5).contains(&read), "{read}");
    }
    assert!(raid0_write < 66.0 && raid0_write > 50.0, "{raid0_write}");
    assert!(raid1_write < 0.62 * raid0_write, "{raid1_write}");
    assert!(
        raid1_write < raid5_write && raid5_write < six_write,
        "{raid5_write} {six_write}"
    );
}

/// MB/s of a copy: a file is read and what was read is written elsewhere, 1 MiB at a time.
pub(super) fn copy(spec: &FabricSpec, bytes: u64) -> f64 {
    let mut fabric = Fabric::new(spec, 1).unwrap();
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    let (chunk, to) = (2048, 4_000_000);
    for i in 0..bytes / (chunk * 512) {
        for (kind, at) in [(BlockKind::Read, 0), (BlockKind::Write, to)] {
            fabric.submit(now, 0, bio(i, kind, at + i * chunk, chunk as u32));
            while done.is_empty() {
                now = fabric.next_event().expect("a request is in flight");
                fabric.advance(now, &mut done);
            }
            assert_eq!(done.pop().unwrap().end.result, Ok(()));
        }
    }
    bytes as f64 / now.0 as f64 * 1e3
}

#[test]
fn a_copy_passes_the_memory_and_takes_both_ways_of_the_disks() {
    let size = 300_000_000;
    let spec = perc("raid01 2x2", 4);
    let (write, _) = write_and_read(&spec, size);
    let usual = copy(&spec, size);
    // In from the disks, out to the host, in from the host, out to two disks.
    let cache = spec.controllers[0].model.cache.unwrap();
    let most = cache.memory as f64 / 1e6 / 5.0;
    // What is still in the cache in the end, a twelfth at the most, is not out yet.
    assert!((0.9 * most..1.05 * most).contains(&usual), "{usual} {most}");
    // With memory to spare, reading costs writing nothing: these are two ways.
    let with = |change: fn(&mut CacheModel)| {
        let spec = with_model(spec.clone(), |model| change(model.cache.as_mut().unwrap()));
        copy(&spec, size)
    };
    let wide = with(|cache| cache.memory = 1_000_000_000);
    assert!(wide > 0.9 * write, "{wide} {write}");
    let narrow = with(|cache| cache.memory /= 2);
    assert!((0.4..0.6).contains(&(narrow / usual)), "{narrow} {usual}");
}

#[test]
fn a_file_that_fits_the_cache_is_read_from_it() {
    let size = 60_000_000;
    let (_, single) = write_and_read(&perc("linear", 1), size);
    assert!(single > 100.0, "{single}");
    // Writes that end on the disks are slower, and leave nothing in the cache.
    let mut through = perc("linear", 1);
    through.controllers[0].write_back = Some(false);
    let (back, _) = write_and_read(&perc("linear", 1), size);
    let (write, read) = write_and_read(&through, size / 4);
    assert!(write < 0.5 * back && read < 60.0, "{write} {back} {read}");
}

#[test]
fn what_the_firmware_needs_of_the_memory_is_no_cache() {
    // 128 MiB are 134 MB, without the firmware's 10 MiB 124.
    let size = 128_000_000;
    let read = |firmware_mib: u64| {
        let spec = with_model(perc("linear", 1), |model| {
            model.cache.as_mut().unwrap().firmware = firmware_mib * 2048;
        });
        write_and_read(&spec, size).1
    };
    let (all, less) = (read(0), read(10));
    assert!(all > 100.0 && less < 60.0, "{all} {less}");
    // A cache that is the firmware's alone is refused.
    let mut spec = perc("linear", 1);
    spec.controllers[0].cache = Some(10 * 2048);
    assert!(Fabric::new(&spec, 1).is_err());
}

#[test]
fn everything_dirty_comes_to_the_disks_when_it_is_quiet() {
    let mut fabric = Fabric::new(&perc("raid5", 3), 1).unwrap();
    for i in 0..100 {
        fabric.submit(Instant::ZERO, 0, bio(i, BlockKind::Write, i * 5_000, 8));
    }
    let done = drain(&mut fabric);
    assert_eq!(done.len(), 100);
    // The writes end at once; the disks get them later: data and parity of each, after two reads.
    assert!(done.iter().all(|end| end.end.at < Instant(50_000_000)));
    let all = (0..3).map(|disk| *fabric.disk(disk).counters());
    let (reads, writes) = all.fold((0, 0), |(r, w), c| (r + c.reads, w + c.writes));
    assert_eq!(writes, 200);
    assert!((100..=200).contains(&reads), "{reads}");
}

#[test]
fn what_is_dirty_waits_while_the_host_only_reads() {
    let mut fabric = Fabric::new(&perc("raid5", 3), 1).unwrap();
    let size = 60_000_000;
    let written = |fabric: &Fabric| -> u64 {
        (0..3)
            .map(|disk| fabric.disk(disk).counters().sectors_written)
            .sum()
    };
    let (begun, _) = pass(&mut fabric, Instant::ZERO, BlockKind::Write, size);
    let before = written(&fabric);
    // Half a second of reads from the cache: without them the disks would have got all meanwhile.
    let (now, _) = pass(&mut fabric, begun, BlockKind::Read, size);
    assert!(now.since(begun).0 > 400_000_000);
    let all = size / 65_536 * 128 * 3 / 2;
    let left = all - written(&fabric);
    assert!(left > 10_000, "{left} of {all}");
    assert!(all - before > left, "what is on its way still arrives");
    drain(&mut fabric);
    assert!(written(&fabric) >= all);
}

#[test]
fn a_volume_that_loses_a_disk_goes_on_if_its_level_can() {
    let ite = |layout: &str, members: usize| {
        volume(
            on_channels("ITE8212", "ST340015A", &[2, 2]),
            layout,
            members,
        )
    };
    for (name, spec, survives) in [
        ("raid5", perc("raid5", 3), true),
        ("raid50", perc("raid50 2x3", 6), true),
        ("raid1", perc("raid1", 2), true),
        ("raid0", perc("raid0", 2), false),
        ("firmware raid1", ite("raid1", 2), true),
        ("firmware raid01", ite("raid01 2x2", 4), true),
        ("firmware raid0", ite("raid0", 4), false),
    ] {
        let mut fabric = Fabric::new(&spec, 1).unwrap();
        let port = fabric.ports().len() as u32 - 1;
        for i in 0..120 {
            let kind = if i % 3 == 0 {
                BlockKind::Write
            } else {
                BlockKind::Read
            };
            fabric.submit(Instant::ZERO, port, bio(i, kind, 10_000_000 + i * 64, 64));
        }
        let mut done = Vec::new();
        fabric.advance(Instant(20_000_000), &mut done);
        fabric.inject(Instant(20_000_000), 1, Fault::Dead);
        done.append(&mut drain(&mut fabric));
        assert_eq!(done.len(), 120, "{name}");
        let failed = done.iter().filter(|end| end.end.result.is_err()).count();
        assert_eq!(failed == 0, survives, "{name}: {failed} failed");
    }
}

#[test]
fn a_degraded_volume_reads_more_than_it_is_asked_for() {
    let mut spec = perc("raid5", 3);
    spec.volumes[0].failed = vec![1];
    let mut fabric = Fabric::new(&spec, 1).unwrap();
    for i in 0..64 {
        fabric.submit(Instant::ZERO, 0, bio(i, BlockKind::Read, i * 1_280, 8));
    }
    let done = drain(&mut fabric);
    assert!(done.len() == 64 && done.iter().all(|end| end.end.result.is_ok()));
    assert_eq!(fabric.disk(1).counters().reads, 0);
    let read = fabric.disk(0).counters().sectors_read + fabric.disk(2).counters().sectors_read;
    assert!(read > 64 * 8, "{read}");
}

#[test]
fn an_unreadable_sector_is_read_from_the_others() {
    let fault = Fault::Unreadable {
        lba: 0,
        sectors: 128,
        retries: 2,
    };
    for (layout, members, fine) in [("raid5", 3, true), ("raid1", 2, true), ("raid0", 2, false)] {
        let mut fabric = Fabric::new(&perc(layout, members), 1).unwrap();
        fabric.inject(Instant::ZERO, 0, fault);
        fabric.submit(Instant::ZERO, 0, bio(0, BlockKind::Read, 0, 8));
        let done = drain(&mut fabric);
        assert_eq!(done[0].end.result.is_ok(), fine, "{layout}");
    }
}

#[test]
fn a_volume_that_the_controller_cannot_make_is_refused() {
    let refused = |spec: &FabricSpec| Fabric::new(spec, 0).unwrap_err().to_string();
    let ite = on_channels("ITE8212", "ST340015A", &[2, 2]);
    assert_eq!(
        refused(&volume(ite.clone(), "raid5", 4)),
        "controller 'card' has no parity levels, as volume 'volume' needs"
    );
    assert_eq!(
        refused(&volume(on_channels("pata", "ST340015A", &[2]), "raid0", 2)),
        "volume 'volume' is on controller 'card', whose model has no RAID of its own: give it a 'model' that has, such as ITE8212"
    );
    let mut twice = volume(ite, "raid0", 2);
    twice.volumes[0].disks = vec![1, 1];
    assert_eq!(
        refused(&twice),
        "volume 'volume' names disk 1, which is not there or already in use"
    );
}
