//! Disks of guests in real time: modelled on the host, served over NBD to QEMU, behind controllers of the
//! experiment's kinds.
use super::fit;
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::{Cell, Experiment};
use raidlab_nbd::server::{Disk, Listener, Options, Report, Running, Server};
use raidlab_nbd::store::{Budget, Sparse, Store};
use raidlab_sim::fabric::Fabric;
use raidlab_sim::machine;
use raidlab_vm::Flavour;
use raidlab_vm::qemu::{self, Sectors, Slot};
use serde_json::{Value, json};
use std::path::Path;

/// A reply that is later than this is late: a tenth of what a hard disk takes.
const TOLERANCE: Span = Span::from_millis(1);
/// So many of all replies may be late; with more, the disks were not those of the model.
const LATE: f64 = 0.01;
/// QEMU tells a serial number of at most so many characters.
const SERIAL: usize = 20;

/// Disks that are served.
pub(super) struct Served {
    running: Running,
    /// How QEMU is told of them, in the order of the members.
    pub(super) disks: Vec<qemu::Disk>,
    /// By how much replies leave before the model's time.
    pub(super) early: Span,
}

impl Served {
    /// Serves the disks of a cell from sockets in `directory`.
    pub(super) fn start(
        experiment: &Experiment,
        cell: &Cell,
        seed: u64,
        early: Span,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::error::Error| Failure::from_error(BAD_REQUEST, error);
        let missing = |error: &dyn std::error::Error| Failure::from_error(MISSING, error);
        let spec = machine::fabric(
            experiment,
            &cell.setup.array.members,
            cell.setup.host.write_cache,
        )
        .map_err(|error| wrong(&error))?;
        let fabric = Fabric::new(&spec, seed).map_err(|error| wrong(&error))?;
        let slots = slots(experiment, cell);
        let budget = Budget::new(fit::room());
        let mut disks = Vec::new();
        let mut served = Vec::new();
        let mut listeners = Vec::new();
        let shown = fit::shown(experiment, cell);
        for (n, (shown, slot)) in shown.into_iter().zip(slots).enumerate() {
            let port = &fabric.ports()[n];
            let store = Store::Sparse(Sparse::new(&budget));
            let disk = Disk::new(n as u32, port, &spec.disks[n].name, shown.bytes, store);
            served.push(disk.with_sector(shown.sector));
            let socket = directory.join(format!("d{n}.sock"));
            let listener = Listener::unix(&socket, n).map_err(|error| missing(&error))?;
            listeners.push(listener);
            disks.push(qemu::Disk {
                name: serial(n, &spec.disks[n].name),
                socket,
                slot,
                sectors: Sectors {
                    logical: shown.sector,
                    physical: shown.sector.max(port.physical * SECTOR as u32),
                },
            });
        }
        let options = Options {
            tolerance: TOLERANCE,
            early,
            ..Options::default()
        };
        let mut server = Server::new(fabric, served, options);
        for listener in listeners {
            server.listen(listener);
        }
        let running = server.start().map_err(|error| missing(&error))?;
        Ok(Self {
            running,
            disks,
            early,
        })
    }

    /// The server.
    pub(super) const fn server(&self) -> &Running {
        &self.running
    }

    /// What has been served so far, and how late.
    pub(super) fn report(&self) -> Option<Report> {
        self.running.report()
    }
}

/// A serial number that tells disks apart, even of long or odd names.
fn serial(n: usize, name: &str) -> String {
    let plain = name.chars().filter(char::is_ascii_alphanumeric);
    format!("raidlab{n}-{}", plain.collect::<String>())
        .chars()
        .take(SERIAL)
        .collect()
}

/// The kernel that has drivers for the members of all cells.
pub(super) fn flavour(experiment: &Experiment) -> Flavour {
    let mut slots = experiment
        .cells
        .iter()
        .flat_map(|cell| slots(experiment, cell));
    if slots.any(|slot| slot.flavour() == Flavour::Generic) {
        Flavour::Generic
    } else {
        Flavour::Cloud
    }
}

/// Where each member is connected: as the experiment has it where QEMU can have it so, else each by itself.
pub(super) fn slots(experiment: &Experiment, cell: &Cell) -> Vec<Slot> {
    let mut taken: Vec<Slot> = Vec::new();
    for (n, name) in cell.setup.array.members.iter().enumerate() {
        let disk = experiment.disk(name);
        let controller = disk.and_then(|disk| {
            let mut all = experiment.controllers.iter().enumerate();
            all.find(|(_, controller)| controller.name == disk.controller)
        });
        let slot = match (disk, controller) {
            (Some(disk), Some((card, controller))) => match controller.link {
                Link::Pata => {
                    let channel = disk.channel;
                    let first = Slot::Ide { channel, unit: 0 };
                    let unit = u32::from(taken.contains(&first));
                    Slot::Ide { channel, unit }
                }
                Link::Sata => Slot::Ahci { port: n as u32 },
                Link::Scsi => {
                    let bus = card as u32 + disk.channel;
                    let on = |slot: &&Slot| matches!(slot, Slot::Scsi { bus: b, .. } if *b == bus);
                    let target = taken.iter().filter(on).count() as u32;
                    Slot::Scsi { bus, target }
                }
                Link::Nvme => Slot::Nvme,
            },
            _ => Slot::Virtio,
        };
        let fits = slot.exists() && slot.takes(fit::sector(experiment, name));
        let fits = fits && (slot == Slot::Nvme || !taken.contains(&slot));
        taken.push(if fits { slot } else { Slot::Virtio });
    }
    taken
}

/// What the server says of a trial, for its environment.
pub(super) fn facts(report: &Report) -> Value {
    let late = &report.lateness;
    let micros = |span: Option<Span>| span.map(|span| span.0 as f64 / 1e3);
    json!({
        "replies": late.all.count(),
        "late": late.late,
        "tolerance_us": late.tolerance.0 as f64 / 1e3,
        "lateness_us": {
            "p50": micros(late.all.percentile(50.0)), "p99": micros(late.all.percentile(99.0)),
            "max": micros(late.all.max()),
        },
        "server_cpu_share": report.cpu_share(),
        "scheduled_first": report.scheduled,
    })
}

/// The doubt about a trial whose disks answered late; none when they kept their time.
pub(super) fn doubt(report: &Report) -> Option<Flag> {
    let late = &report.lateness;
    let share = late.late as f64 / late.all.count().max(1) as f64;
    (share > LATE).then(|| {
        Flag::new(
            FlagKind::Late,
            format!(
                "{:.1} % of the disks' replies were more than {} late: this machine was too busy to serve them in time",
                100.0 * share,
                late.tolerance
            ),
        )
    })
}
