//! Fabrics against theory and themselves.
mod digest;
mod kept;
mod lines;
mod refills;
mod theory;
mod volumes;
mod ways;

use super::*;
use crate::catalogue::{self, controller};
use crate::disk::DiskModel;
use crate::disk::ssd::SsdSpec;
use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::units::Lba;
use std::sync::Arc;

/// A controller of the catalogue with changes.
fn controller(name: &str, channels: u32, bus: Option<u32>) -> ControllerSpec {
    let model = controller::find(name).unwrap().controller;
    ControllerSpec {
        name: "card".to_owned(),
        link: model.link,
        model: Arc::new(model),
        bus,
        channels,
        rate: None,
        cache: None,
        write_back: None,
    }
}

/// The same with another model of its controller.
fn with_model(
    mut spec: FabricSpec,
    change: impl FnOnce(&mut controller::ControllerModel),
) -> FabricSpec {
    change(Arc::make_mut(&mut spec.controllers[0].model));
    spec
}

fn disk_model(name: &str) -> DiskModel {
    catalogue::find(name).unwrap().disk
}

/// One controller and so many disks of a model on each of its channels.
fn on_channels(card: &str, disk: &str, channels: &[u32]) -> FabricSpec {
    with_disks(
        controller(card, channels.len() as u32, None),
        &disk_model(disk),
        channels,
    )
}

fn with_disks(card: ControllerSpec, model: &DiskModel, channels: &[u32]) -> FabricSpec {
    let mut spec = FabricSpec {
        controllers: vec![card],
        ..FabricSpec::default()
    };
    for (channel, disks) in channels.iter().enumerate() {
        for _ in 0..*disks {
            spec.disks.push(DiskSlot {
                name: format!("disk{}", spec.disks.len()),
                model: model.clone(),
                controller: 0,
                channel: channel as u32,
            });
        }
    }
    spec
}

/// A disk that answers at once, so that only what is in front of it takes time.
fn instant_disk(tags: u32, link: u64) -> DiskModel {
    let DiskModel::Ssd(model) = disk_model("nvme-ssd") else {
        panic!("a solid-state disk is needed")
    };
    let spec = SsdSpec {
        tags,
        link,
        overhead: Span(0),
        turn: Span(0),
        read: Span(1),
        channel_rate: 100_000_000_000,
        ..model.spec.clone()
    };
    DiskModel::Ssd(Arc::new(spec.build().unwrap()))
}

fn bio(id: u64, kind: BlockKind, lba: u64, sectors: u32) -> Bio {
    Bio {
        id,
        kind,
        lba: Lba(lba),
        sectors,
        fua: false,
        origin: crate::block::Origin::default(),
    }
}

/// Lets everything end; what did.
fn drain(fabric: &mut Fabric) -> Vec<PortEnd> {
    let mut done = Vec::new();
    while let Some(next) = fabric.next_event() {
        fabric.advance(next, &mut done);
        if next.0 > 1 << 50 {
            break;
        }
    }
    done
}

/// Keeps `depth` requests in flight on each port until `total` have ended: request `i` of a port is
/// what `make` says. When the last ended, and the ends.
fn closed_loop(
    fabric: &mut Fabric,
    depth: u32,
    total: usize,
    mut make: impl FnMut(u32, u64) -> Bio,
) -> Vec<PortEnd> {
    let ports = fabric.ports().len() as u32;
    let mut counts = vec![0_u64; ports as usize];
    let (mut ends, mut new) = (Vec::new(), Vec::new());
    let mut give = |fabric: &mut Fabric, now, port: u32| {
        let count = &mut counts[port as usize];
        fabric.submit(now, port, make(port, *count));
        *count += 1;
    };
    for port in 0..ports {
        for _ in 0..depth {
            give(fabric, Instant::ZERO, port);
        }
    }
    while ends.len() < total {
        let now = fabric.next_event().expect("requests are in flight");
        fabric.advance(now, &mut new);
        for end in new.drain(..) {
            assert_eq!(end.end.at, now);
            ends.push(end);
            give(fabric, now, end.port);
        }
    }
    ends
}

fn close(got: f64, wanted: f64, within: f64) {
    assert!(
        (got / wanted - 1.0).abs() <= within,
        "{got} is not within {} % of {wanted}",
        within * 100.0
    );
}
