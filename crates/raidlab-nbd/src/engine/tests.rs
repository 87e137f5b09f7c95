//! Requests on modelled disks, in virtual time.
use super::*;
use raidlab_core::time::Span;
use raidlab_sim::catalogue::{self, controller};
use raidlab_sim::fabric::{ControllerSpec, DiskSlot, FabricSpec};
use std::sync::Arc;

/// A controller of the catalogue with so many disks on each of its channels.
pub(crate) fn spec(card: &str, disk: &str, channels: &[u32]) -> FabricSpec {
    let model = controller::find(card).unwrap().controller;
    let mut spec = FabricSpec {
        controllers: vec![ControllerSpec {
            name: card.to_owned(),
            link: model.link,
            model: Arc::new(model),
            bus: None,
            channels: channels.len() as u32,
            rate: None,
            cache: None,
            write_back: None,
        }],
        ..FabricSpec::default()
    };
    for (channel, disks) in channels.iter().enumerate() {
        for _ in 0..*disks {
            spec.disks.push(DiskSlot {
                name: format!("disk{}", spec.disks.len()),
                model: catalogue::find(disk).unwrap().disk,
                controller: 0,
                channel: channel as u32,
            });
        }
    }
    spec
}

fn engine(card: &str, disk: &str, channels: &[u32]) -> Engine {
    Engine::new(Fabric::new(&spec(card, disk, channels), 1).unwrap())
}

fn job(port: u32, kind: BlockKind, lba: u64, sectors: u64) -> Job {
    Job {
        port,
        kind,
        lba,
        sectors,
        fua: false,
    }
}

fn drain(engine: &mut Engine) -> Vec<Finished> {
    let mut done = Vec::new();
    while engine.in_flight() > 0 {
        let next = engine.next_event().expect("something is under way");
        engine.advance(next, &mut done);
    }
    done
}

#[test]
fn one_piece_takes_what_the_disk_takes() {
    let mut engine = engine("ahci", "ST3250624AS", &[1]);
    engine.submit(Instant(5), 77, job(0, BlockKind::Read, 1_000_000, 8));
    let done = drain(&mut engine);
    let spec = spec("ahci", "ST3250624AS", &[1]);
    let mut fabric = Fabric::new(&spec, 1).unwrap();
    let bio = Bio {
        id: 0,
        kind: BlockKind::Read,
        lba: Lba(1_000_000),
        sectors: 8,
        fua: false,
        origin: Origin::default(),
    };
    fabric.submit(Instant(5), 0, bio);
    let mut ends = Vec::new();
    fabric.advance(Instant(1 << 40), &mut ends);
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].token, done[0].at), (77, ends[0].end.at));
}

#[test]
fn long_requests_go_down_in_pieces() {
    let mut engine = engine("ahci", "ST3250624AS", &[1]);
    let most = u64::from(engine.fabric().ports()[0].max_sectors);
    let sectors = most * 300 + 5;
    engine.submit(Instant(0), 1, job(0, BlockKind::Write, 3, sectors));
    engine.submit(Instant(0), 2, job(0, BlockKind::Flush, 0, 0));
    let done = drain(&mut engine);
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|end| end.result.is_ok()));
    let counters = engine.fabric().disk(0).counters();
    assert_eq!(counters.writes, 301);
    assert_eq!(counters.sectors_written, sectors);
    assert_eq!(counters.flushes, 1);
}

#[test]
fn bytes_within_sectors_ask_for_all_of_them() {
    let of = |offset, len| Job::of(0, Action::Read, offset, len, false).unwrap();
    assert_eq!((of(0, 512).lba, of(0, 512).sectors), (0, 1));
    assert_eq!((of(511, 2).lba, of(511, 2).sectors), (0, 2));
    assert_eq!((of(1024, 1).lba, of(1024, 1).sectors), (2, 1));
    assert_eq!(of((1 << 40) - 1, u32::MAX).lba, (1 << 31) - 1);
    assert!(Job::of(0, Action::Trim, 0, 512, false).is_none());
    let zeroes = Job::of(0, Action::Zeroes { hole: true }, 0, 512, true).unwrap();
    assert_eq!((zeroes.kind, zeroes.fua), (BlockKind::Write, true));
}

/// Random reads one at a time on each disk: how long a thousand of them take.
fn random_reads(engine: &mut Engine, ports: &[u32]) -> f64 {
    let numbers = raidlab_core::rng::Stream::new(7);
    let mut done = Vec::new();
    let mut count = 0;
    let mut submit = |engine: &mut Engine, at, port: u32| {
        let sectors = engine.fabric().ports()[0].sectors;
        let lba = numbers.below(count, sectors / 8) * 8;
        engine.submit(at, u64::from(port), job(port, BlockKind::Read, lba, 8));
        count += 1;
        count
    };
    for port in ports {
        submit(engine, Instant::ZERO, *port);
    }
    loop {
        let next = engine.next_event().expect("requests are under way");
        engine.advance(next, &mut done);
        for end in std::mem::take(&mut done) {
            if submit(engine, end.at, end.token as u32) >= 1000 {
                return end.at.0 as f64 / 1e9;
            }
        }
    }
}

#[test]
fn two_disks_on_one_ata_channel_take_turns() {
    let mut one = engine("pata", "ST340015A", &[2, 1]);
    let shared = random_reads(&mut one, &[0, 1]);
    let mut other = engine("pata", "ST340015A", &[2, 1]);
    let apart = random_reads(&mut other, &[0, 2]);
    assert!(shared > 1.8 * apart, "{shared} against {apart}");
}

#[test]
fn a_dead_disk_fails_what_it_has_and_what_comes() {
    let mut engine = engine("ahci", "ST3250624AS", &[1, 1]);
    engine.submit(Instant(0), 1, job(0, BlockKind::Read, 5000, 100_000));
    engine.submit(Instant(0), 2, job(1, BlockKind::Read, 5000, 8));
    engine.inject(Instant(10), 0, Fault::Stall(Span(1)));
    assert!(!engine.is_dead(0));
    engine.inject(Instant(10), 0, Fault::Dead);
    assert!(engine.is_dead(0) && !engine.is_dead(1));
    engine.submit(Instant(20), 3, job(0, BlockKind::Flush, 0, 0));
    let mut done = drain(&mut engine);
    done.sort_by_key(|end| end.token);
    let results: Vec<_> = done.iter().map(|end| end.result).collect();
    let dead = Err(DiskError::Failed);
    assert_eq!(results, [dead, Ok(()), dead]);
}

#[test]
fn looking_ahead_makes_nothing_later() {
    let ended = |ahead: u64| {
        let mut engine = engine("ahci", "ST3250624AS", &[1]);
        engine.advance(Instant(ahead), &mut Vec::new());
        engine.submit(Instant(500), 1, job(0, BlockKind::Read, 1_000_000, 8));
        drain(&mut engine)[0].at
    };
    assert_eq!(ended(400_000), ended(500));
}
