//! The disks outside, in real time.
use super::{Order, Outside};
use crate::args::Hardware;
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use crate::real::guests;
use crate::real::setup::memory;
use raidlab_core::time::Span;
use raidlab_nbd::server::{Disk, Listener, Options, Running, Server};
use raidlab_nbd::store::{Budget, Sparse, Store};
use raidlab_sim::fabric::Fabric;
use raidlab_vm::Machine;
use raidlab_vm::qemu::{Disk as Attached, Slot};
use raidlab_vm::rundir::RunDir;

/// Memory of this machine for what the disks hold.
const CONTENT: u64 = 4 << 30;

/// Disks that are served already, and the machine that has them.
pub(super) struct Served {
    pub(super) machine: Machine,
    pub(super) directory: RunDir,
    pub(super) running: Running,
}

impl Served {
    pub(super) fn new(
        order: &mut Order,
        hardware: Hardware,
        early: Span,
        guest: &super::Guest,
    ) -> Result<Self, Failure> {
        let count = order.models.len() as u32;
        if hardware == Hardware::Ide && count > 4 {
            return Err(
                Failure::bad_request("an IDE controller has two channels of two drives")
                    .remedy("give at most four disks, or --real virtio"),
            );
        }
        let directory = guest
            .runs
            .create()
            .map_err(|error| guests::failure(&error))?;
        let fabric = Fabric::new(&order.fabric()?, order.seed)
            .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
        let budget = Budget::new(CONTENT);
        let ports = fabric.ports().iter().enumerate();
        let disks = ports.map(|(number, port)| {
            let store = Store::Sparse(Sparse::new(&budget));
            Disk::new(number as u32, port, "", order.size, store)
        });
        let disks = disks.collect();
        let options = Options {
            early,
            ..Options::default()
        };
        let mut server = Server::new(fabric, disks, options);
        let mut attached = Vec::new();
        for (number, export) in (0..).zip(server.exports()) {
            let socket = directory.path().join(format!("{}.sock", export.name));
            let listener = Listener::unix(&socket, number as usize)
                .map_err(|error| Failure::from_error(MISSING, &error))?;
            server.listen(listener);
            attached.push(Attached {
                name: export.name,
                socket,
                slot: slot(hardware, number),
            });
        }
        let running = server
            .start()
            .map_err(|error| Failure::new(MISSING, format!("cannot start the server: {error}")))?;
        let machine = Machine::real_time(memory(&guest.image), 2, attached);
        let letter = |number: u32| char::from(b'a' + number as u8);
        let prefix = match hardware {
            Hardware::Virtio => "/dev/vd",
            Hardware::Ide => "/dev/sd",
        };
        order.outside = Some(Outside {
            modules: machine.modules().iter().map(ToString::to_string).collect(),
            devices: (0..count)
                .map(|n| format!("{prefix}{}", letter(n)))
                .collect(),
        });
        Ok(Self {
            machine,
            directory,
            running,
        })
    }
}

fn slot(hardware: Hardware, number: u32) -> Slot {
    match hardware {
        Hardware::Virtio => Slot::Virtio,
        Hardware::Ide => Slot::Ide {
            channel: number / 2,
            unit: number % 2,
        },
    }
}
