//! The disks outside, in real time.
use super::Order;
use crate::args::Hardware;
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use crate::real::guests;
use crate::real::lab;
use crate::real::setup::memory;
use raidlab_core::time::Span;
use raidlab_nbd::server::{Disk, Listener, Options, Running, Server};
use raidlab_nbd::store::{Budget, Sparse, Store};
use raidlab_sim::fabric::{Fabric, FabricSpec};
use raidlab_vm::Machine;
use raidlab_vm::qemu::{Disk as Attached, Sectors, Slot};
use raidlab_vm::rundir::RunDir;
use std::collections::BTreeMap;

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
        let directory = guest
            .runs
            .create()
            .map_err(|error| guests::failure(&error))?;
        let spec = order.fabric()?;
        let slots = slots(hardware, &spec)?;
        let fabric = Fabric::new(&spec, order.seed)
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
                slot: slots[number as usize],
                sectors: Sectors::default(),
            });
        }
        let running = server
            .start()
            .map_err(|error| Failure::new(MISSING, format!("cannot start the server: {error}")))?;
        let machine = Machine::real_time(memory(&guest.image), attached);
        order.disks = lab::disks(&machine);
        Ok(Self {
            machine,
            directory,
            running,
        })
    }
}

/// Where QEMU connects each disk. Drives of different channels are on different channels there, too: one command at a
/// time is what a channel makes of its two.
fn slots(hardware: Hardware, spec: &FabricSpec) -> Result<Vec<Slot>, Failure> {
    let mut on = BTreeMap::<(u32, u32), Vec<usize>>::new();
    for (number, disk) in spec.disks.iter().enumerate() {
        let channel = on.entry((disk.controller, disk.channel)).or_default();
        channel.push(number);
    }
    let mut slots = vec![Slot::Virtio; spec.disks.len()];
    if hardware == Hardware::Virtio {
        return Ok(slots);
    }
    if on.len() > 2 || on.values().any(|drives| drives.len() > 2) {
        return Err(
            Failure::bad_request("an IDE controller has two channels of two drives each").remedy(
                "say with --topology which drives share a channel, such as pata:2+2, or use --real virtio",
            ),
        );
    }
    for (channel, drives) in (0..).zip(on.values()) {
        for (unit, drive) in (0..).zip(drives) {
            slots[*drive] = Slot::Ide { channel, unit };
        }
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{catalogue, topology};

    fn ide(disks: usize, text: Option<&str>) -> Result<Vec<Slot>, Failure> {
        let model = catalogue::disk("ST340015A").expect("a disk of the catalogue");
        let spec = topology::fabric(&vec![model; disks], text).expect("a topology");
        slots(Hardware::Ide, &spec)
    }

    #[test]
    fn drives_share_a_channel_where_their_models_do() {
        let at = |channel, unit| Slot::Ide { channel, unit };
        let placed = |disks, text| ide(disks, text).map_err(|failure| failure.message);
        assert_eq!(placed(2, Some("pata:2")), Ok(vec![at(0, 0), at(0, 1)]));
        assert_eq!(placed(2, Some("pata:1+1")), Ok(vec![at(0, 0), at(1, 0)]));
        assert_eq!(placed(2, None), Ok(vec![at(0, 0), at(1, 0)]));
        let four = vec![at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
        assert_eq!(placed(4, Some("pata:2+2")), Ok(four));
        let three = placed(3, None).expect_err("three channels");
        assert!(three.contains("two channels"), "{three}");
    }
}
