//! What each kind of line does to the disks on it.
use super::*;
use crate::disk::Request;

/// MB/s of sequential reads or writes of 128 KiB, `depth` in flight on each port.
fn streams(spec: &FabricSpec, kind: BlockKind, depth: u32) -> f64 {
    let mut fabric = Fabric::new(spec, 1).unwrap();
    let total = 400 * spec.disks.len();
    let ends = closed_loop(&mut fabric, depth, total, |_, i| bio(i, kind, i * 256, 256));
    let last = ends.last().unwrap().end.at;
    total as f64 * 131_072.0 / last.0 as f64 * 1e3
}

#[test]
fn a_disk_on_a_link_of_its_own_is_the_disk() {
    let spec = on_channels("ahci", "ST3250624AS", &[1]);
    let mut fabric = Fabric::new(&spec, 9).unwrap();
    let seed = Stream::new(9).child(0).seed();
    let mut disk = Disk::new(&spec.disks[0].model, seed);
    let numbers = Stream::new(4);
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    for i in 0..500 {
        let lba = numbers.below(i, 400_000_000);
        let now = Instant(i * 13_000_000);
        let request = Request {
            id: i,
            kind: BlockKind::Read,
            lba: Lba(lba),
            sectors: 8,
            fua: false,
        };
        fabric.submit(now, 0, bio(i, BlockKind::Read, lba, 8));
        disk.submit(now, request);
        fabric.advance(now, &mut ends);
        disk.advance(now, &mut done);
    }
    let late = Instant(1 << 40);
    fabric.advance(late, &mut ends);
    disk.advance(late, &mut done);
    let fabric: Vec<_> = ends.iter().map(|e| (e.end.id, e.end.at)).collect();
    let disk: Vec<_> = done.iter().map(|d| (d.id, d.at)).collect();
    assert_eq!(fabric.len(), 500);
    assert_eq!(fabric, disk);
}

#[test]
fn two_drives_of_an_ata_channel_never_overlap() {
    let one = on_channels("pata", "ST340015A", &[1]);
    let same = on_channels("pata", "ST340015A", &[2]);
    let apart = on_channels("pata", "ST340015A", &[1, 1]);
    // Random reads: while one drive seeks, the other one waits.
    let seconds = |spec: &FabricSpec| {
        let mut fabric = Fabric::new(spec, 3).unwrap();
        let numbers = Stream::new(5);
        let total = 300 * spec.disks.len();
        let ends = closed_loop(&mut fabric, 1, total, |port, i| {
            let lba = numbers.child(u64::from(port)).below(i, 78_000_000);
            bio(i, BlockKind::Read, lba, 8)
        });
        let mut busy = Vec::new();
        let end = ends.last().unwrap().end.at;
        fabric.busy(end, &mut busy);
        let channel = busy
            .iter()
            .find(|b| b.kind == ResourceKind::Channel)
            .unwrap();
        (end.0 as f64, channel.busy.0 as f64, channel.name.clone())
    };
    let (alone, _, _) = seconds(&one);
    let (shared, held, name) = seconds(&same);
    let (separate, _, _) = seconds(&apart);
    close(shared, 2.0 * alone, 0.03);
    close(separate, alone, 0.06);
    // The channel is the limit, and says so.
    assert_eq!(name, "channel 0 of card");
    assert!(held > 0.999 * shared, "{held} of {shared}");
}

#[test]
fn an_ata_channel_goes_at_the_least_of_drive_controller_and_mode() {
    let rate = |mode: Option<u64>| {
        let mut card = controller("pata", 1, None);
        card.rate = mode;
        let disk = disk_model("ST340015A");
        streams(&with_disks(card, &disk, &[1]), BlockKind::Write, 1)
    };
    // The media take 46.5 MB/s, which is more than mode 2 carries.
    assert!(rate(None) > 42.0, "{}", rate(None));
    let slow = rate(Some(33_333_333));
    // A drive whose buffer runs dry loses turns as well.
    assert!((24.0..32.4).contains(&slow), "{slow}");
}

/// MB/s of drives that have the data at once.
fn at_once(card: &str, channels: &[u32], kind: BlockKind) -> f64 {
    let drive = instant_disk(1, 100_000_000);
    let card = controller(card, channels.len() as u32, None);
    streams(&with_disks(card, &drive, channels), kind, 1)
}

#[test]
fn a_change_of_drive_costs_what_the_channel_says() {
    let per_command = |rate: f64| 131_072.0 / rate;
    let read = |card, channels| per_command(at_once(card, channels, BlockKind::Read));
    let switch = |card| {
        let times = controller(card, 1, None).model.channel;
        times.switch_read.0 as f64 / 1e3
    };
    // In microseconds: 128 KiB at 88 % of 100 MB/s, and a command; every command changes the drive.
    for card in ["pata", "ITE8212"] {
        close(read(card, &[2]), 1489.5 + 15.0 + switch(card), 0.002);
        close(read(card, &[1]), 1489.5 + 15.0, 0.002);
    }
}

#[test]
fn a_read_cap_limits_the_channels_together() {
    let drive = instant_disk(1, 100_000_000);
    let rate = |kind| {
        let mut card = controller("ITE8212", 2, None);
        let mut model = (*card.model).clone();
        model.read_rate = 92_000_000;
        card.model = model.into();
        streams(&with_disks(card, &drive, &[1, 1]), kind, 1)
    };
    close(rate(BlockKind::Read), 92.0, 0.01);
    let writes = rate(BlockKind::Write);
    assert!(writes > 120.0, "{writes}");
}

#[test]
fn a_bus_is_shared_by_its_controllers() {
    let mut spec = on_channels("ahci", "ST3250624AS", &[1, 1, 1, 1]);
    spec.buses.push(BusSpec {
        name: "pci".to_owned(),
        rate: 106_000_000,
        duplex: false,
    });
    spec.controllers[0].bus = Some(0);
    close(streams(&spec, BlockKind::Read, 2), 106.0, 0.02);
    spec.controllers[0].bus = None;
    assert!(streams(&spec, BlockKind::Read, 2) > 240.0);
}

#[test]
fn scsi_disks_seek_at_the_same_time() {
    let rate = |disks: u32| {
        let spec = on_channels("u160", "u160-10k-2002", &[disks]);
        let mut fabric = Fabric::new(&spec, 3).unwrap();
        let numbers = Stream::new(5);
        let total = 200 * disks as usize;
        let ends = closed_loop(&mut fabric, 1, total, |port, i| {
            let lba = numbers.child(u64::from(port)).below(i, 71_000_000);
            bio(i, BlockKind::Read, lba, 16)
        });
        total as f64 / ends.last().unwrap().end.at.0 as f64
    };
    close(rate(6), 6.0 * rate(1), 0.06);
}

/// Streams on a bus that they fill: the least and the most that a disk gets, in requests.
#[test]
fn disks_from_ultra2_on_take_turns_on_a_full_bus() {
    let shares = |model: &str| {
        let mut fabric = Fabric::new(&on_channels("u160", model, &[6]), 1).unwrap();
        let ends = closed_loop(&mut fabric, 4, 3000, |_, i| {
            bio(i, BlockKind::Read, i * 256, 256)
        });
        let of = |port| ends.iter().filter(|end| end.port == port).count();
        let all: Vec<usize> = (0..6).map(of).collect();
        (*all.iter().min().unwrap(), *all.iter().max().unwrap())
    };
    let (least, most) = shares("ST336752LW");
    assert!(least * 20 > most * 19, "{least} {most}");
    // Before, the last ones have what the first ones leave.
    let (least, most) = shares("HP-C3323A");
    assert!(least * 5 < most, "{least} {most}");
}

#[test]
fn a_scsi_bus_carries_what_its_data_phases_and_phases_allow() {
    let spec = on_channels("u160", "u160-10k-2002", &[6]);
    let got = streams(&spec, BlockKind::Read, 2);
    // 128 KiB take 819 us at 160 MB/s, and 22 us of phases.
    close(got, 131_072.0 / (819.2 + 22.0), 0.03);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |spec: &FabricSpec| Fabric::new(spec, 0).unwrap_err().to_string();
    assert_eq!(
        refused(&on_channels("pata", "ST340015A", &[3])),
        "channel 0 of controller 'card' has 3 disks: at most 2 fit"
    );
    let mut spec = on_channels("pata", "ST340015A", &[1]);
    spec.disks[0].channel = 1;
    assert!(refused(&spec).starts_with("disk 'disk0' is on channel 1 of controller 0"));
    spec.controllers[0].bus = Some(0);
    assert_eq!(
        refused(&spec),
        "controller 'card' is on bus 0, but there are 0 buses"
    );
}

#[test]
fn a_dead_disk_ends_its_requests_and_frees_its_channel() {
    for card in ["pata", "u160", "ahci"] {
        let spec = on_channels(card, "ST340015A", &[2]);
        let spec = if card == "ahci" {
            on_channels(card, "ST340015A", &[1, 1])
        } else {
            spec
        };
        let mut fabric = Fabric::new(&spec, 3).unwrap();
        for i in 0..20 {
            fabric.submit(Instant::ZERO, 0, bio(i, BlockKind::Read, i * 1_000_000, 8));
            fabric.submit(Instant::ZERO, 1, bio(i, BlockKind::Read, i * 1_000_000, 8));
        }
        let mut done = Vec::new();
        fabric.advance(Instant(30_000_000), &mut done);
        fabric.inject(Instant(30_000_000), 0, Fault::Dead);
        done.append(&mut drain(&mut fabric));
        assert_eq!(done.len(), 40, "{card}");
        let fine = |port| {
            done.iter()
                .filter(|e| e.port == port && e.end.result.is_ok())
                .count()
        };
        assert!(fine(0) < 20 && fine(1) == 20, "{card}");
    }
}
