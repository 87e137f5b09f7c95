//! `raidlab vm disks`: how modelled disks look to the guest's kernel, beside the same models alone.
//!
//! The models alone are asked the same requests in the same order, one at a time on each disk, without
//! a kernel, a socket or a processor in between. What the guest measures beside that is what all of
//! these cost, in the time that the guest lives by.
mod alone;
mod measure;
mod real;
mod view;

pub(super) use measure::measure;

use super::early::{self, Early};
use super::guests::{self, Patience};
use super::job::{Disks, Job};
use super::lab;
use super::setup::memory;
use super::view::Waiting;
use crate::args::{Hardware, VmDisksArgs};
use crate::commands::{output, print, print_json};
use crate::exit::{Failure, MISSING, Outcome};
use crate::predict::serve::told;
use crate::predict::{catalogue, topology};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_core::words;
use raidlab_nbd::server::Report;
use raidlab_nbd::session::Action;
use raidlab_sim::fabric::FabricSpec;
use raidlab_vm::channel::Message;
use raidlab_vm::rundir::{RunDir, Runs};
use raidlab_vm::vm::Boot;
use raidlab_vm::{Flavour, Image, Kernel, Machine, Vm};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// What the guest's kernel has at most to keep content in: all of it together.
const MOST: u64 = 8 << 30;
/// A guest that says nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(120);

/// What a guest is to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Order {
    /// Models of the catalogue, disk by disk.
    models: Vec<String>,
    topology: Option<String>,
    /// Bytes of each disk that are shown.
    size: u64,
    seed: u64,
    phases: Vec<Phase>,
    /// Where the disks come from.
    disks: Disks,
}

/// Requests on all disks at the same time, one after the other on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Phase {
    write: bool,
    random: bool,
    /// Bytes of a request.
    block: u32,
    /// Requests on each disk.
    count: u64,
}

/// What came of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Seen {
    /// Requests a second, all disks together.
    pub(super) rate: f64,
    /// Share of the processor's time that the server of the disks took.
    server: f64,
    /// Share that the way to the disks and back is estimated to have taken, the kernel's part included.
    load: f64,
    /// Replies later than the model's time, in nanoseconds: half of them, 99 in 100, all.
    late: [u64; 3],
}

impl Seen {
    /// A rate of disks that are served elsewhere.
    const fn of(rate: f64) -> Self {
        Self {
            rate,
            server: 0.0,
            load: 0.0,
            late: [0; 3],
        }
    }
}

impl Phase {
    const fn action(&self) -> Action {
        if self.write {
            Action::Write
        } else {
            Action::Read
        }
    }

    /// Offset of the i-th request on a disk.
    fn offset(&self, order: &Order, disk: u64, index: u64) -> u64 {
        let blocks = order.size / u64::from(self.block);
        let block = if self.random {
            let stream = raidlab_core::rng::Stream::new(order.seed);
            stream
                .child(disk)
                .child(u64::from(self.write))
                .below(index, blocks)
        } else {
            index % blocks
        };
        block * u64::from(self.block)
    }

    fn name(&self) -> String {
        let order = if self.random { "random" } else { "sequential" };
        let what = if self.write { "writes" } else { "reads" };
        format!("{order} {what} of {}", Bytes(u64::from(self.block)))
    }
}

impl Order {
    fn new(args: &VmDisksArgs) -> Self {
        let phase = |write, random, block: Bytes, count| Phase {
            write,
            random,
            block: block.0 as u32,
            count,
        };
        let (large, small) = (Bytes::mib(1), Bytes::kib(4));
        let most = args.size.0 / large.0;
        let long = args.sequential.min(most).max(1);
        Self {
            models: vec![args.model.clone(); args.count as usize],
            topology: args.topology.clone(),
            size: args.size.0 / large.0 * large.0,
            seed: args.seed,
            disks: Disks::Modelled {
                bytes: args.size.0 / large.0 * large.0 * u64::from(args.count),
            },
            phases: vec![
                phase(false, false, large, long),
                phase(true, false, large, long),
                phase(false, true, small, args.random),
                phase(true, true, small, args.random),
            ],
        }
    }

    /// So many random reads from each disk of a machine in real time, of which so many bytes are looked at.
    pub(super) fn reading(machine: &Machine, size: u64, count: u64) -> Self {
        Self {
            models: vec![String::new(); machine.disks.len()],
            topology: None,
            size,
            seed: 0,
            phases: vec![Phase {
                write: false,
                random: true,
                block: 4096,
                count,
            }],
            disks: lab::disks(machine),
        }
    }

    /// Whether the disks are in the time of the host.
    const fn in_real_time(&self) -> bool {
        matches!(self.disks, Disks::Given { .. })
    }

    /// The disks behind their controllers.
    pub(super) fn fabric(&self) -> Result<FabricSpec, Failure> {
        let models = self.models.iter().map(|name| catalogue::disk(name));
        let models: Vec<_> = models.collect::<Result<_, _>>()?;
        topology::fabric(&models, self.topology.as_deref())
    }
}

pub(super) fn run(cache: Option<&Path>, args: &VmDisksArgs) -> Result<Outcome, Failure> {
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    if raidlab_sim::catalogue::find(&args.model).is_err() {
        return Err(
            Failure::bad_request(format!("'{}' is no disk of the catalogue", args.model))
                .remedy("'raidlab disk list' tells which there are"),
        );
    }
    let mut order = Order::new(args);
    let store = order.size * u64::from(args.count);
    if order.size == 0 || store > MOST {
        let message = format!(
            "{} of {} do not fit into a guest",
            words::count(args.count, "disk"),
            args.size
        );
        return Err(Failure::bad_request(message)
            .remedy("all disks together may show 1 MiB to 8 GiB: give a --size"));
    }
    let models = alone::alone(&order)?;
    let guest = Guest::find(cache)?;
    let mut early = None;
    let (seen, report) = match args.real {
        None => (guest.inside(&order, &stop)?, None),
        Some(hardware) => {
            let Some(way) = guest.early(&mut order, hardware, args.early, &stop)? else {
                return Ok(Outcome::Interrupted);
            };
            early = Some(way);
            let served = real::Served::new(&mut order, hardware, way, &guest)?;
            guest.outside(&order, served, &stop)?
        }
    };
    let Some(seen) = seen else {
        return Ok(Outcome::Interrupted);
    };
    if args.json {
        print_json(&view::as_json(&order, &seen, &models, early))?;
    } else {
        output::print_document(&view::document(&order, &seen, &models))?;
        if let Some(report) = report {
            print(&told::report(&report))?;
            print(&view::early(early))?;
        }
    }
    Ok(Outcome::Done)
}

/// What a guest is booted from.
struct Guest {
    kernel: Kernel,
    image: Image,
    runs: Runs,
}

impl Guest {
    fn find(cache: Option<&Path>) -> Result<Self, Failure> {
        let cache = guests::cache(cache)?;
        let kernel = Kernel::find(&cache, Flavour::Cloud, &mut talk::note)
            .map_err(|error| guests::failure(&error))?;
        let image = guests::image(&cache, &kernel, &[], None)?;
        let runs = guests::runs()?;
        Ok(Self {
            kernel,
            image,
            runs,
        })
    }

    /// Boots and has it measure disks that it models itself; no figures when interrupted.
    fn inside(&self, order: &Order, stop: &Stop) -> Result<Option<Vec<Seen>>, Failure> {
        let _waiting = Waiting::new("measuring in the guest");
        // Pieces of the store are whole MiB.
        let store = order.size * order.models.len() as u64;
        let machine = Machine::virtual_time(memory(&self.image), Bytes(store));
        let directory = self.runs.create();
        let directory = directory.map_err(|error| guests::failure(&error))?;
        converse(self.boot(&machine, directory)?, order, stop, &mut || {})
    }

    /// Boots and has it measure disks that are served already, and what their server did.
    fn outside(
        &self,
        order: &Order,
        served: real::Served,
        stop: &Stop,
    ) -> Result<(Option<Vec<Seen>>, Option<Report>), Failure> {
        let _waiting = Waiting::new("measuring in the guest");
        let vm = self.boot(&served.machine, served.directory)?;
        let seen = converse(vm, order, stop, &mut || {})?;
        Ok((seen, served.running.stop()))
    }

    /// By how much replies of disks behind this hardware are to leave early; `None` when interrupted.
    fn early(
        &self,
        order: &mut Order,
        hardware: Hardware,
        asked: Early,
        stop: &Stop,
    ) -> Result<Option<Span>, Failure> {
        if let Early::Given(span) = asked {
            return Ok(Some(span));
        }
        let _waiting = Waiting::new("measuring the way to the disks");
        let served = real::Served::new(order, hardware, Span::ZERO, self)?;
        let vm = self.boot(&served.machine, served.directory)?;
        early::measure(vm, &served.machine, order.size, &served.running, stop)
    }

    fn boot(&self, machine: &Machine, directory: RunDir) -> Result<Vm, Failure> {
        let boot = Boot {
            kernel: &self.kernel,
            image: &self.image,
            machine,
            person: false,
        };
        Vm::start_in(&boot, directory).map_err(|error| guests::failure(&error))
    }
}

/// Gives the guest its job and waits for what it measures; `None` when interrupted. `mark` is called as each phase begins
/// and as the last has ended.
pub(super) fn converse(
    vm: Vm,
    order: &Order,
    stop: &Stop,
    mark: &mut dyn FnMut(),
) -> Result<Option<Vec<Seen>>, Failure> {
    let patience = Patience {
        silence: SILENCE,
        limit: None,
    };
    let job = Job::Disks(order.clone());
    let word = guests::have_done(vm, &job, patience, stop, &mut |message| {
        if matches!(message, Message::Progress(_) | Message::Done(..)) {
            mark();
        }
        Ok(())
    })?;
    word.as_deref().map(guests::read).transpose()
}
