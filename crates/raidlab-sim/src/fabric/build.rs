//! From a specification to disks, lines, pipes and ports.
use super::check::{check, volume_controller};
use super::line::{Direct, Drive, Line, Linked, Pata, Scsi, Times};
use super::models::Models;
use super::pipe::{Path, Pipe, Pipes};
use super::plant::{Owner, Plant, Slot};
use super::spec::{BusSpec, ControllerSpec, DiskSlot, FabricError, FabricSpec, VolumeSpec};
use super::volume::{Cached, Firmware, Members, Volume};
use super::{Fabric, PortInfo};
use crate::block::{ResourceKind, Way};
use crate::catalogue::controller::CacheModel;
use crate::disk::{Disk, DiskModel};
use raidlab_core::rng::Stream;
use raidlab_experiment::hardware::Link;

/// Nominal rate from which on an ATA channel has the efficiency of its fast modes (mode 4 has
/// 66.7 MB/s, mode 3 44.4).
const FAST_ATA: u64 = 60_000_000;

/// Nominal rate of Ultra2 SCSI, whose disks arbitrate fairly.
const ULTRA2: u64 = 80_000_000;

/// Commands that a volume takes from the host at a time when its controller has a cache. Assumed:
/// usual for the class; few workloads here keep more in flight.
const VOLUME_TAGS: u32 = 256;

/// The pipes of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Card {
    /// Its processor.
    pub(super) processor: u16,
    /// To and from the host, for the data of ports or volumes.
    pub(super) host_read: Path,
    pub(super) host_write: Path,
    /// To and from its disks.
    pub(super) disk_read: Path,
    pub(super) disk_write: Path,
    /// Where the cache is and parity is computed; with a cache only.
    pub(super) memory: Option<u16>,
    /// What the first channel's data pass in both directions.
    first: Option<u16>,
}

impl Card {
    /// So many sectors go to the host, or come from it, on their way `path`; when they have. The memory serves the
    /// host between whatever else it does: runs to the disks and their parity are long, and a host that waited for
    /// the end of each would leave it idle in between.
    pub(super) fn host(&self, path: Path, now: u64, sectors: u64, plant: &mut Plant) -> u64 {
        let end = plant.pipes.pass(path, now, sectors);
        let memory = self
            .memory
            .map(|memory| plant.pipes.list[usize::from(memory)].pass_first(now, sectors));
        end.max(memory.unwrap_or(now))
    }

    /// Parity of so many sectors of operands is computed in the memory; when it has been.
    pub(super) fn xor(&self, now: u64, sectors: u64, per_sector: u64, plant: &mut Plant) -> u64 {
        let nanos = (sectors * per_sector) >> 20;
        match self.memory {
            Some(memory) => plant.pipes.list[usize::from(memory)].work(now, nanos),
            None => now + nanos,
        }
    }
}

/// The pipes of a bus: one for both directions, or one for each.
#[derive(Clone, Copy, Debug)]
struct BusPipes {
    reads: u16,
    writes: u16,
}

impl BusPipes {
    fn new(bus: &BusSpec, pipes: &mut Pipes) -> Self {
        let pipe = || Pipe::new(bus.name.clone(), ResourceKind::Bus, bus.rate);
        if bus.duplex {
            return Self {
                reads: pipes.add(pipe().one_way(Way::Reads)),
                writes: pipes.add(pipe().one_way(Way::Writes)),
            };
        }
        let both = pipes.add(pipe());
        Self {
            reads: both,
            writes: both,
        }
    }
}

pub(super) fn build(spec: &FabricSpec, seed: u64) -> Result<Fabric, FabricError> {
    check(spec)?;
    let mut pipes = Pipes::default();
    let buses: Vec<BusPipes> = spec
        .buses
        .iter()
        .map(|bus| BusPipes::new(bus, &mut pipes))
        .collect();
    let cards: Vec<Card> = spec
        .controllers
        .iter()
        .map(|controller| card(controller, &buses, &mut pipes))
        .collect();
    let (ports, mut slots) = ports(spec);
    let mut models = Models::default();
    let numbers = Stream::new(seed);
    let (mut lines, mut disks) = (Vec::new(), Vec::with_capacity(spec.disks.len()));
    for (index, slot) in spec.disks.iter().enumerate() {
        let controller = &spec.controllers[slot.controller as usize];
        let card = &cards[slot.controller as usize];
        let rate = link_rate(controller, std::slice::from_ref(&slot));
        let shared = !card.disk_read.is_empty()
            || !card.disk_write.is_empty()
            || controller.model.command.0 > 0;
        let own_line = matches!(controller.link, Link::Sata | Link::Nvme);
        let link = if own_line { rate } else { 0 };
        let model = models.get(&slot.model, link, spec.write_cache_off);
        disks.push(Disk::new(&model, numbers.child(index as u64).seed()));
        if own_line {
            slots[index].line = lines.len() as u32;
            let disk = index as u32;
            lines.push(if shared {
                let command = (controller.model.command.0, card.processor);
                let paths = (card.disk_read, card.disk_write);
                Line::Linked(Linked::new(disk, rate, command, paths))
            } else {
                Line::Direct(Direct { disk })
            });
        }
    }
    for (number, controller) in spec.controllers.iter().enumerate() {
        for channel in 0..controller.channels {
            let on = on_channel(spec, number as u32, channel);
            if let Some(line) = shared_line(spec, controller, channel, &on, &cards[number]) {
                on.iter()
                    .for_each(|disk| slots[*disk as usize].line = lines.len() as u32);
                lines.push(line);
            }
        }
    }
    let plant = Plant::new(disks, slots, lines, pipes);
    let volumes = spec
        .volumes
        .iter()
        .map(|v| volume(spec, v, &cards))
        .collect();
    Ok(Fabric::assemble(plant, ports, volumes))
}

fn volume(spec: &FabricSpec, volume: &VolumeSpec, cards: &[Card]) -> Volume {
    let number = volume_controller(spec, volume) as usize;
    let (controller, card) = (&spec.controllers[number], &cards[number]);
    let model = &controller.model;
    let mut background = model.background;
    background.share = volume.rebuild_rate.unwrap_or(background.share);
    if let (None, Some(firmware)) = (&model.cache, &model.firmware) {
        background.run = background.run.min(u64::from(firmware.max_sectors));
    }
    let members = Members::new(volume, &background);
    if let Some(cache) = model.cache {
        let cache = CacheModel {
            // Checked: sixteen lines are left.
            sectors: controller.cache.unwrap_or(cache.sectors) - cache.firmware,
            firmware: 0,
            write_back: controller.write_back.unwrap_or(cache.write_back),
            ..cache
        };
        return Volume::Cached(Box::new(Cached::new(members, cache, card)));
    }
    // Checked: a volume is on a controller that has the one or the other.
    let firmware = model.firmware.unwrap_or_default();
    let processor = card.processor;
    let name = format!("{} of {}", volume.name, controller.name);
    Volume::Firmware(Box::new(Firmware::new(name, members, firmware, processor)))
}

fn card(spec: &ControllerSpec, buses: &[BusPipes], pipes: &mut Pipes) -> Card {
    let bus = spec.bus.map(|bus| buses[bus as usize]);
    let kind = ResourceKind::Controller;
    let name = format!("processor of {}", spec.name);
    let processor = pipes.add(Pipe::new(name, kind, 0));
    let mut pipe = |what: &str, rate: u64| {
        let name = format!("{what} of {}", spec.name);
        (rate > 0).then(|| pipes.add(Pipe::new(name, kind, rate)))
    };
    let model = &spec.model;
    let first = pipe("first channel", model.channel.first_both);
    let Some(cache) = &model.cache else {
        let read = Path::EMPTY
            .and(pipe("way of reads", model.read_rate))
            .and(bus.map(|bus| bus.reads));
        let write = Path::EMPTY
            .and(pipe("way of writes", model.write_rate))
            .and(bus.map(|bus| bus.writes));
        return Card {
            processor,
            host_read: Path::EMPTY,
            host_write: Path::EMPTY,
            disk_read: read,
            disk_write: write,
            memory: None,
            first,
        };
    };
    let memory = pipe("memory", cache.memory);
    let read = Path::EMPTY
        .and(pipe("way to the host", cache.host_read))
        .and(bus.map(|bus| bus.reads));
    let write = Path::EMPTY
        .and(pipe("way from the host", cache.host_write))
        .and(bus.map(|bus| bus.writes));
    Card {
        processor,
        host_read: read,
        host_write: write,
        disk_read: Path::EMPTY
            .and(pipe("way from the disks", cache.disk_read))
            .and(memory),
        disk_write: Path::EMPTY
            .and(pipe("way to the disks", cache.disk_write))
            .and(memory),
        memory,
        first,
    }
}

/// What the host sees, and the place of each disk but for its line.
fn ports(spec: &FabricSpec) -> (Vec<PortInfo>, Vec<Slot>) {
    let (mut ports, mut slots) = (Vec::new(), Vec::new());
    for (index, disk) in spec.disks.iter().enumerate() {
        let spec_of = &spec.controllers[disk.controller as usize];
        let controller = &spec_of.model;
        let volume = spec
            .volumes
            .iter()
            .position(|v| v.disks.contains(&(index as u32)));
        // ATA drives of a shared channel are not queued, whatever the drive could do.
        let tags = match spec_of.link {
            Link::Pata => 1,
            _ => disk.model.tags().max(1),
        };
        let owner = match volume {
            Some(volume) => Owner::Volume(volume as u32),
            None if controller.cache.is_some() => Owner::Nobody,
            None => Owner::Port(ports.len() as u32),
        };
        if let Owner::Port(_) = owner {
            ports.push(PortInfo {
                name: disk.name.clone(),
                sectors: disk.model.sectors(),
                physical: disk.model.physical(),
                tags,
                rotational: disk.model.rotational(),
                max_sectors: controller.max_sectors,
                segments: segments(spec_of.link),
                fua: spec_of.link == Link::Nvme,
                disk: Some(index as u32),
            });
        }
        slots.push(Slot::new(disk.name.clone(), owner, tags));
    }
    for volume in &spec.volumes {
        let controller = &spec.controllers[volume_controller(spec, volume) as usize].model;
        let disk = |disk: &u32| &spec.disks[*disk as usize].model;
        let (tags, max_sectors) = match &controller.firmware {
            Some(firmware) if controller.cache.is_none() => (1, firmware.max_sectors),
            _ => (VOLUME_TAGS, controller.max_sectors),
        };
        ports.push(PortInfo {
            name: volume.name.clone(),
            sectors: volume.layout.capacity().0,
            physical: volume
                .disks
                .iter()
                .map(|d| disk(d).physical())
                .max()
                .unwrap_or(1),
            tags,
            rotational: volume.disks.iter().any(|d| disk(d).rotational()),
            max_sectors,
            segments: u32::MAX,
            fua: false,
            disk: None,
        });
    }
    (ports, slots)
}

/// Stretches of memory that drivers take in a request: 168 of AHCI (`AHCI_MAX_SG`), 128 of libata's PATA (`LIBATA_MAX_PRD`) and of
/// SCSI adapters (`SG_ALL`; `AHC_NSEG` of Adaptec's), 127 of NVMe (`NVME_MAX_SEGS`; 128 of later kernels, which is left out). A
/// stretch has a page at the least, so that only the last limits requests of up to 512 KiB, those of Linux before 4.3.
const fn segments(link: Link) -> u32 {
    match link {
        Link::Sata => 168,
        Link::Nvme => 127,
        _ => 128,
    }
}

pub(super) fn on_channel(spec: &FabricSpec, controller: u32, channel: u32) -> Vec<u32> {
    let here = |slot: &&DiskSlot| slot.controller == controller && slot.channel == channel;
    let all = spec.disks.iter().enumerate();
    let found = all.filter(|(_, slot)| here(slot));
    found.map(|(index, _)| index as u32).collect()
}

/// Bytes a second of a disk's interface.
fn nominal(model: &DiskModel) -> u64 {
    match model {
        DiskModel::Hdd(model) => model.spec.link,
        DiskModel::Ssd(model) => model.spec.link,
    }
}

/// Bytes a second of data on the line of these disks: the least of drives, controller and what the
/// topology says, less what the kind of channel loses. The drives of an ATA channel share its mode.
fn link_rate(spec: &ControllerSpec, disks: &[&DiskSlot]) -> u64 {
    let channel = &spec.model.channel;
    let of_disk = |slot: &&DiskSlot| nominal(&slot.model);
    let limits = [channel.rate, spec.rate.unwrap_or(0)];
    let rates = disks.iter().map(of_disk).chain(limits);
    let nominal = rates.filter(|rate| *rate > 0).min().unwrap_or(0);
    let percent = if nominal < FAST_ATA {
        channel.slow_efficiency
    } else {
        channel.efficiency
    };
    (u128::from(nominal) * u128::from(percent) / 100) as u64
}

/// The line of a channel whose disks share it; `None` when it has no disk or they do not.
fn shared_line(
    spec: &FabricSpec,
    controller: &ControllerSpec,
    channel: u32,
    disks: &[u32],
    card: &Card,
) -> Option<Line> {
    if disks.is_empty() {
        return None;
    }
    let name = format!("channel {channel} of {}", controller.name);
    let slots: Vec<_> = disks.iter().map(|d| &spec.disks[*d as usize]).collect();
    let rate = link_rate(controller, &slots);
    let model = &controller.model;
    let first = card.first.filter(|_| channel == 0);
    let paths = (card.disk_read.and(first), card.disk_write.and(first));
    let times = &model.channel;
    match controller.link {
        Link::Sata | Link::Nvme => None,
        Link::Scsi => {
            let times = Times {
                rate,
                command: times.command.0,
                reconnect: times.reconnect.0,
            };
            let adapter = (model.command.0, card.processor);
            let fair = |(disk, slot): (&u32, &&DiskSlot)| (*disk, nominal(&slot.model) >= ULTRA2);
            let disks: Vec<(u32, bool)> = disks.iter().zip(&slots).map(fair).collect();
            Some(Line::Scsi(Scsi::new(name, &disks, times, adapter, paths)))
        }
        Link::Pata => {
            let drive = |disk: &u32| drive(spec, controller, *disk);
            let drives = disks.iter().map(drive).collect();
            Some(Line::Pata(Pata::new(name, drives, rate, paths)))
        }
    }
}

/// What commands to a drive cost: those of the host pay for a change of drive, those of the card's
/// own firmware what that takes.
fn drive(spec: &FabricSpec, controller: &ControllerSpec, disk: u32) -> Drive {
    let (model, times) = (&controller.model, &controller.model.channel);
    let command = model.command.0 + times.command.0;
    let in_volume = spec.volumes.iter().any(|v| v.disks.contains(&disk));
    let switch = match model.firmware.filter(|_| in_volume) {
        Some(firmware) => [firmware.switch_read.0, firmware.switch_write.0],
        None => [times.switch_read.0, times.switch_write.0],
    };
    Drive {
        disk,
        command: [command, command],
        switch,
    }
}
