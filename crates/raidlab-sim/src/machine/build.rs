//! From an experiment's hardware and a cell's setup to the specifications of all layers.
mod engines;

use super::edges::Below;
use super::error::MachineError;
use super::models::Models;
use super::place::{self, Area, area};
use crate::array::{ArrayKind, ArraySpec, BitmapSpec, Era, ParityCost, SuperblockSpec};
use crate::disk::DiskModel;
use crate::fabric::{BusSpec, ControllerSpec, DiskSlot, Fabric, FabricSpec, PortInfo};
use crate::host::CpuModel;
use crate::host::cpu::submit_time;
use crate::host::fs::NEW_ZFS;
use crate::queue::QueueSpec;
use crate::storage::{MemberSpec, StorageError, StorageSpec};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::hardware::{Controller, Disk, Link};
use raidlab_experiment::kernel::{Kernel, Scheduler};
use raidlab_experiment::setup::{Array, Bitmap, Engine, Metadata, Setup};
use raidlab_experiment::{Cell, Experiment};

/// libata knows native queueing from here on (2.6.18, K: its release notes).
const NCQ: Kernel = Kernel::Linux(2, 6, 18);

/// Requests that a host adapter takes at a time (`can_queue`). They are the tags that blk-mq has for its disks, whatever of them a disk
/// takes (`scsi_mq_setup_tags`): 32 of each port of AHCI (`AHCI_MAX_CMDS`; 31 before 4.18, which is left out), 253 of Adaptec's SCSI
/// (`AHC_MAX_QUEUE`). That disks of one SCSI host share them is left out. libata's PATA takes one (`ATA_DEF_QUEUE`), as its drives do.
const AHCI_TAGS: u32 = 32;
const SCSI_TAGS: u32 = 253;

/// Requests that ZFS before 0.6.3 gives a disk at a time (`zfs_vdev_max_pending`), and sectors that it
/// joins to one (`zfs_vdev_aggregation_limit`, 128 KiB); it sends each off at once, so that the block
/// layer joins no more of them.
const ZFS_PENDING: u32 = 10;
const ZFS_AGGREGATE: u64 = 256;

/// What a machine is made of.
pub(super) struct Plans {
    pub(super) storage: StorageSpec,
    /// Where another zone of some disk begins, in sectors of the device; empty when that is not told
    /// by the place on the device.
    pub(super) edges: Vec<u64>,
    /// The same in sectors as a resync counts them.
    pub(super) sync_edges: Vec<u64>,
    /// Some disk has no arm.
    pub(super) solid: bool,
}

pub(super) fn plans(
    experiment: &Experiment,
    models: &Models,
    cell: &Cell,
    cpu: &CpuModel,
) -> Result<Plans, MachineError> {
    let setup = &cell.setup;
    modelled(&setup.array)?;
    let parts = Parts::of(experiment, models, &setup.array.members)?;
    let mut fabric = parts.fabric(experiment)?;
    fabric.write_cache_off = !setup.host.write_cache;
    let mut plans = match setup.array.engine {
        Engine::Controller => parts.volume(setup, fabric)?,
        Engine::None => parts.single(setup, fabric)?,
        Engine::Md => parts.md(setup, fabric)?,
        Engine::Zfs => parts.zfs(setup, fabric)?,
        Engine::Btrfs => parts.btrfs(setup, fabric)?,
    };
    plans.storage.array.cost = parity_cost(cpu, setup.host.cpu_mhz);
    plans.storage.array.resync_build = resync_build(cpu, setup.host.cpu_mhz);
    Ok(plans)
}

/// Metadata of md that moves the data by some sectors makes no difference; what moves it elsewhere, or is written
/// beside it, would.
fn modelled(array: &Array) -> Result<(), MachineError> {
    if let Some(metadata) = array.metadata.filter(|metadata| metadata.is_container()) {
        return Err(MachineError::NotModelled(format!("metadata '{metadata}'")));
    }
    Ok(())
}

/// The fabric of these disks of an experiment, in this order, with their controllers and buses.
pub(super) fn fabric(
    experiment: &Experiment,
    members: &[String],
    write_cache: bool,
) -> Result<FabricSpec, MachineError> {
    let disks = members.iter().filter_map(|name| experiment.disk(name));
    let fabric = Parts::of(experiment, &Models::of(disks), members)?.fabric(experiment)?;
    Ok(FabricSpec {
        write_cache_off: !write_cache,
        ..fabric
    })
}

/// What parity costs on this processor. Assumed: XOR and syndrome run from its caches, at the rate of
/// copying there (the kernel picks the fastest of its routines at boot, and prefetches) and at two
/// thirds of that; a stripe costs what five system calls do, and each request to a member what one to a disk does. Held against
/// md on a real core (docs/validation/prediction.md, "What md's thread takes"): within a third, but
/// for random writes, which take 8 to 45 % less there.
fn parity_cost(cpu: &CpuModel, mhz: Option<u32>) -> ParityCost {
    ParityCost {
        xor: cpu.copy_cached,
        syndrome: cpu.copy_cached * 2 / 3,
        copy: cpu.copy,
        // 2 us on a core of 2 GHz that does 1000 thousandths of the reference's work a clock.
        stripe: 2000 * 2_000_000 / cpu.speed(mhz),
        submit: submit_time(cpu, mhz).0,
    }
}

/// What a resync of a mirror takes to build a request on this processor. Assumed: 20 us on a core of 3.5 GHz that does 2200
/// thousandths of the reference's work a clock, and so much longer on a slower one, as whoever waits for it takes to ask again. A
/// guest whose core does 1000 million instructions a second builds one each 42 to 46 us, its disks' server included.
fn resync_build(cpu: &CpuModel, mhz: Option<u32>) -> Span {
    Span(20_000 * 7_700_000 / cpu.speed(mhz))
}

/// The members of a cell.
pub(super) struct Parts<'e> {
    disks: Vec<&'e Disk>,
    models: Vec<DiskModel>,
    /// The controllers that have members, in the order of the experiment.
    controllers: Vec<&'e Controller>,
}

impl<'e> Parts<'e> {
    pub(super) fn of(
        experiment: &'e Experiment,
        models: &Models,
        members: &[String],
    ) -> Result<Self, MachineError> {
        let disk = |name: &String| {
            let unknown = || MachineError::UnknownDisk(name.clone());
            experiment.disk(name).ok_or_else(unknown)
        };
        let disks: Vec<&Disk> = members.iter().map(disk).collect::<Result<_, _>>()?;
        let models = disks.iter().map(|disk| models.get(disk));
        let models = models.collect::<Result<_, _>>()?;
        let used = |c: &&Controller| disks.iter().any(|disk| disk.controller == c.name);
        Ok(Self {
            controllers: experiment.controllers.iter().filter(used).collect(),
            disks,
            models,
        })
    }

    /// The name of the first disk whose physical sectors, so many logical ones each, are as wanted.
    pub(super) fn first(&self, wanted: impl Fn(u32) -> bool) -> Option<(&str, u32)> {
        let disks = self.disks.iter().zip(&self.models);
        let mut of = disks.map(|(disk, model)| (disk.name.as_str(), model.physical()));
        of.find(|(_, physical)| wanted(*physical))
    }

    fn fabric(&self, experiment: &Experiment) -> Result<FabricSpec, MachineError> {
        let mut buses: Vec<BusSpec> = Vec::new();
        let mut controllers = Vec::new();
        for controller in &self.controllers {
            let bus = match &controller.bus {
                None => None,
                Some(name) => {
                    let found = experiment.buses.iter().find(|bus| bus.name == *name);
                    let unknown = || MachineError::UnknownBus {
                        controller: controller.name.clone(),
                        bus: name.clone(),
                    };
                    let bus = BusSpec::of(found.ok_or_else(unknown)?);
                    let known = buses.iter().position(|b| b.name == bus.name);
                    let number = known.unwrap_or_else(|| {
                        buses.push(bus);
                        buses.len() - 1
                    });
                    Some(number as u32)
                }
            };
            let spec = ControllerSpec::of(controller, bus);
            controllers.push(spec.map_err(|source| MachineError::ControllerModel {
                controller: controller.name.clone(),
                source,
            })?);
        }
        let slots = self.disks.iter().zip(&self.models);
        let slots = slots.map(|(disk, model)| {
            let place = self
                .controllers
                .iter()
                .position(|c| c.name == disk.controller);
            let unknown = || MachineError::UnknownController {
                disk: disk.name.clone(),
                controller: disk.controller.clone(),
            };
            Ok(DiskSlot {
                name: disk.name.clone(),
                model: model.clone(),
                controller: place.ok_or_else(unknown)? as u32,
                channel: disk.channel,
            })
        });
        Ok(FabricSpec {
            disks: slots.collect::<Result<_, MachineError>>()?,
            buses,
            controllers,
            volumes: Vec::new(),
            write_cache_off: false,
        })
    }

    fn area(&self, setup: &Setup, role: usize) -> Result<Area, MachineError> {
        let has = self.models[role].sectors();
        let start = setup.array.member_start.map(|start| start.0 / SECTOR);
        let mut area = area(setup.host.kernel, setup.array.engine, has, start);
        if let Some(wanted) = setup.array.member_size {
            area.sectors = area.sectors.min(wanted.0 / SECTOR);
        }
        if area.sectors == 0 {
            return Err(MachineError::TooSmall {
                disk: self.disks[role].name.clone(),
                size: Bytes(has * SECTOR),
            });
        }
        Ok(area)
    }

    fn areas(&self, setup: &Setup) -> Result<Vec<Area>, MachineError> {
        (0..self.disks.len())
            .map(|role| self.area(setup, role))
            .collect()
    }

    fn below(&self, areas: &[Area]) -> Vec<Below<'_>> {
        let of = |(model, area): (_, &Area)| Below {
            model,
            offset: area.offset,
        };
        self.models.iter().zip(areas).map(of).collect()
    }

    /// Joins it all. The members are the volumes, when there are any, else the disks.
    fn plans(
        &self,
        setup: &Setup,
        fabric: FabricSpec,
        kind: ArrayKind,
        areas: &[Area],
        edges: Vec<u64>,
    ) -> Result<Plans, MachineError> {
        let probe = Fabric::new(&fabric, 0).map_err(StorageError::from)?;
        // A controller that shows nothing but volumes has no port for a disk.
        let members = areas.iter().enumerate().map(|(role, area)| {
            let wanted = match fabric.volumes.get(role) {
                Some(volume) => &volume.name,
                None => &self.disks[role].name,
            };
            let port = probe.ports().iter().position(|port| port.name == *wanted);
            let unknown = || MachineError::NoPort(wanted.clone());
            let port = port.ok_or_else(unknown)?;
            Ok(MemberSpec {
                port: port as u32,
                offset: area.offset,
                queue: self.queue(setup, role, &probe.ports()[port]),
            })
        });
        let members = members.collect::<Result<Vec<_>, MachineError>>()?;
        let mut array = self.array(setup, kind);
        let requests = members.iter().map(|member| &member.queue.requests);
        let writes = requests.map(|requests| requests.total.min(requests.each[1]));
        array.member_requests = writes.min().unwrap_or(array.member_requests);
        Ok(Plans {
            storage: StorageSpec {
                members,
                array,
                fabric,
            },
            edges,
            sync_edges: Vec::new(),
            solid: self.models.iter().any(|model| !model.rotational()),
        })
    }

    fn queue(&self, setup: &Setup, role: usize, port: &PortInfo) -> QueueSpec {
        let host = &setup.host;
        let on = &self.disks[role].controller;
        let link = self.controllers.iter().find(|c| c.name == *on);
        let link = link.map(|c| c.link);
        let mut tags = port.tags;
        // The volume of a card is no disk of libata's, whatever the card's disks are.
        let volume = setup.array.engine == Engine::Controller;
        let adapter = match link {
            Some(Link::Sata) if !volume => AHCI_TAGS.max(tags),
            Some(Link::Scsi) if !volume => SCSI_TAGS.max(tags),
            _ => tags,
        };
        let sata = link == Some(Link::Sata);
        if sata && !volume && matches!(host.kernel, Kernel::Linux(..)) && host.kernel < NCQ {
            tags = 1;
        }
        let mut largest = host.request_size.map_or(u64::MAX, |size| size.0 / SECTOR);
        let old_zfs = setup.array.engine == Engine::Zfs && host.kernel < NEW_ZFS;
        if old_zfs {
            tags = tags.min(ZFS_PENDING);
            largest = largest.min(ZFS_AGGREGATE);
        }
        let max_sectors = u64::from(port.max_sectors).min(largest) as u32;
        let spec = QueueSpec::of(
            host.kernel,
            host.scheduler,
            port.rotational,
            max_sectors,
            adapter,
        );
        let mut spec = spec.with_write_cache(host.write_cache);
        spec.fua = port.fua;
        spec.segments = port.segments;
        let spec = match host.queue_requests {
            Some(requests) => spec.with_requests(host.kernel, host.scheduler, requests),
            None => spec,
        };
        let spec = spec.with_drive_queue(tags.min(host.drive_queue.unwrap_or(u32::MAX)));
        // Schedulers that hold something back are modelled without the queue above them; others have little left to do.
        let passes = match host.scheduler {
            Some(Scheduler::Noop) => true,
            Some(Scheduler::None | Scheduler::Deadline | Scheduler::MqDeadline) => !old_zfs,
            _ => false,
        };
        if setup.array.engine == Engine::Zfs && passes {
            return spec.under_vdev(host.kernel);
        }
        spec
    }

    fn array(&self, setup: &Setup, kind: ArrayKind) -> ArraySpec {
        let given = &setup.array;
        let mut plain = ArraySpec::new(kind);
        if given.engine != Engine::Md {
            // The limit is md's; whoever else fills members or makes them agree goes as fast as the disks do.
            plain.sync_speed_max = u64::MAX;
        }
        let mut era = Era::of(setup.host.kernel);
        if matches!(given.metadata, Some(Metadata::Imsm | Metadata::Ddf)) {
            // mdmon tells these, after times of its own.
            era.safe_mode = None;
        }
        ArraySpec {
            state: given.state,
            failed: given.failed.clone(),
            rotational: self.models.iter().map(DiskModel::rotational).collect(),
            stripe_cache: given.stripe_cache.unwrap_or(plain.stripe_cache),
            group_threads: match plain.kind {
                // Two more workers than cores, and no more than eight (`open_ctree`, `thread_pool_size`).
                ArrayKind::Btrfs(_) => setup.host.cores.saturating_add(1).min(7) as u16,
                _ => given
                    .group_threads
                    .unwrap_or(0)
                    .try_into()
                    .unwrap_or(u16::MAX),
            },
            sync_speed_min: given.sync_speed_min.unwrap_or(plain.sync_speed_min),
            sync_speed_max: given.sync_speed_max.unwrap_or(plain.sync_speed_max),
            superblock: self.superblock(setup),
            bitmap: self.bitmap(setup),
            era,
            ..plain
        }
    }
}

impl Parts<'_> {
    /// Where md writes how far a resync is, and whether the array is clean.
    fn superblock(&self, setup: &Setup) -> Option<SuperblockSpec> {
        let array = &setup.array;
        if array.engine != Engine::Md {
            return None;
        }
        let start = array.member_start.map(|start| start.0 / SECTOR);
        let first = self.models.iter().map(DiskModel::sectors).min()?;
        let kernel = setup.host.kernel;
        let sectors = place::superblock_sectors(kernel, array.metadata);
        Some(SuperblockSpec {
            at: place::superblock(kernel, array.metadata, first, start),
            sectors: sectors.next_multiple_of(self.block()),
        })
    }

    /// Sectors of the largest logical sector of the disks.
    fn block(&self) -> u32 {
        let block = |disk: &&Disk| disk.logical_sector().0 / SECTOR;
        self.disks.iter().map(block).max().unwrap_or(1).max(1) as u32
    }

    /// The bitmap that mdadm makes.
    fn bitmap(&self, setup: &Setup) -> Option<BitmapSpec> {
        let array = &setup.array;
        if array.bitmap != Some(Bitmap::Internal) {
            return None;
        }
        let start = array.member_start.map(|start| start.0 / SECTOR);
        // mdadm makes the place of the first member that of all.
        let first = self.models.iter().map(DiskModel::sectors).min()?;
        let of = array.member_size.map(|size| size.0 / SECTOR);
        let spec = place::bitmap(setup.host.kernel, array.metadata, first, start, of);
        Some(BitmapSpec {
            chunk: array.bitmap_chunk.map(|chunk| chunk.0 / SECTOR),
            block: self.block(),
            ..spec
        })
    }
}
