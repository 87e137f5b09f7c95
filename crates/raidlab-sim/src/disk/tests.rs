//! Disks against theory, datasheets and themselves.
mod ahead;
mod behaviour;
mod buffer;
mod dies;
mod digest;
mod faults;
mod solid_state;
mod theory;

use super::*;
use crate::catalogue;
use raidlab_core::drive::{DriveOptions, Lane, Tally, drive};
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};

fn model(name: &str) -> DiskModel {
    catalogue::find(name).unwrap().disk
}

/// The hard disk of a model with changes to its specification.
fn changed(name: &str, change: impl FnOnce(&mut spec::HddSpec)) -> DiskModel {
    let DiskModel::Hdd(model) = model(name) else {
        panic!("{name} is not a hard disk")
    };
    let mut spec = model.spec.clone();
    change(&mut spec);
    DiskModel::Hdd(Arc::new(spec.build().unwrap()))
}

fn hdd(model: &DiskModel) -> &HddModel {
    match model {
        DiskModel::Hdd(model) => model,
        DiskModel::Ssd(_) => panic!("a hard disk is needed"),
    }
}

fn blocks(model: &DiskModel, order: Order, block: u32, ops: u64) -> BlockSpec {
    let size = model.sectors() * 512;
    BlockSpec {
        order,
        read_percent: 100,
        block,
        region: Extent::new(0, size / u64::from(block) * u64::from(block)),
        first: 0,
        limit: Limit {
            ops: Some(ops),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    }
}

fn run(model: &DiskModel, spec: BlockSpec, depth: u32) -> (Tally, DiskTarget) {
    let mut target = DiskTarget::new(Disk::new(model, 7));
    let mut lanes = [Lane {
        workload: Blocks::new(spec, Stream::new(11)),
        depth,
    }];
    let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).unwrap();
    let tally = driven.tallies.into_iter().next().unwrap();
    (tally, target)
}

fn per_second(tally: &Tally) -> f64 {
    tally.ops as f64 / tally.elapsed().as_secs_f64()
}

fn bytes_per_second(tally: &Tally) -> f64 {
    tally.bytes as f64 / tally.elapsed().as_secs_f64()
}

fn close(got: f64, wanted: f64, within: f64) {
    assert!(
        (got / wanted - 1.0).abs() <= within,
        "{got} is not within {} % of {wanted}",
        within * 100.0
    );
}

fn request(id: u64, kind: BlockKind, lba: u64, sectors: u32) -> Request {
    Request {
        id,
        kind,
        lba: Lba(lba),
        sectors,
        fua: false,
    }
}

/// Submits one request at `now` and waits for its end.
fn one(disk: &mut Disk, now: Instant, request: Request) -> Done {
    disk.submit(now, request);
    until(disk, request.id)
}

fn until(disk: &mut Disk, id: u64) -> Done {
    let mut done = Vec::new();
    loop {
        let next = disk.next_event().expect("the request ends");
        disk.advance(next, &mut done);
        if let Some(end) = done.iter().find(|end| end.id == id) {
            return *end;
        }
    }
}
