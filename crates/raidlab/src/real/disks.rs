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

use super::guests::{self, BOOT, OFF};
use super::job::Job;
use super::setup::memory;
use super::view::Waiting;
use crate::args::VmDisksArgs;
use crate::commands::{output, print, print_json};
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome, REFUSED, TRIAL_FAILED};
use crate::predict::serve::told;
use crate::predict::{catalogue, topology};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
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
    /// The disks come from outside, in real time.
    outside: Option<Outside>,
}

/// Disks that the guest finds when it boots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Outside {
    /// Their drivers.
    modules: Vec<String>,
    /// Their devices.
    devices: Vec<String>,
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
    rate: f64,
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
            outside: None,
            phases: vec![
                phase(false, false, large, long),
                phase(true, false, large, long),
                phase(false, true, small, args.random),
                phase(true, true, small, args.random),
            ],
        }
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
        return Err(Failure::new(
            if order.size == 0 {
                BAD_REQUEST
            } else {
                REFUSED
            },
            format!(
                "{} disks of {} do not fit into a guest",
                args.count, args.size
            ),
        )
        .remedy("all disks together may show 1 MiB to 8 GiB: give a --size"));
    }
    let models = alone::alone(&order)?;
    let guest = Guest::find(cache)?;
    let served = match args.real {
        Some(hardware) => Some(real::Served::new(&mut order, hardware, args.early, &guest)?),
        None => None,
    };
    let (seen, report) = guest.measure(&order, served, &stop)?;
    let Some(seen) = seen else {
        return Ok(Outcome::Interrupted);
    };
    if args.json {
        print_json(&view::as_json(&order, &seen, &models))?;
    } else {
        output::print_document(&view::document(&order, &seen, &models))?;
        if let Some(report) = report {
            print(&told::report(&report))?;
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

    /// Boots and has it measure, and what the server outside did, if there is one; no figures when
    /// interrupted.
    fn measure(
        &self,
        order: &Order,
        served: Option<real::Served>,
        stop: &Stop,
    ) -> Result<(Option<Vec<Seen>>, Option<Report>), Failure> {
        let _waiting = Waiting::new("measuring in the guest");
        let Some(served) = served else {
            // Pieces of the store are whole MiB.
            let store = order.size * order.models.len() as u64;
            let machine = Machine::virtual_time(memory(&self.image), Bytes(store));
            let directory = self
                .runs
                .create()
                .map_err(|error| guests::failure(&error))?;
            return Ok((self.boot(&machine, directory, order, stop)?, None));
        };
        let real::Served {
            machine,
            directory,
            running,
        } = served;
        let seen = self.boot(&machine, directory, order, stop)?;
        Ok((seen, running.stop()))
    }

    fn boot(
        &self,
        machine: &Machine,
        directory: RunDir,
        order: &Order,
        stop: &Stop,
    ) -> Result<Option<Vec<Seen>>, Failure> {
        let boot = Boot {
            kernel: &self.kernel,
            image: &self.image,
            machine,
            person: false,
        };
        let vm = Vm::start_in(&boot, directory).map_err(|error| guests::failure(&error))?;
        converse(vm, order, stop)
    }
}

/// Gives the guest its job and waits for what it measures; `None` when interrupted.
fn converse(mut vm: Vm, order: &Order, stop: &Stop) -> Result<Option<Vec<Seen>>, Failure> {
    let trouble = |trouble| guests::trouble(&trouble);
    if vm.hello(BOOT, &|| stop.asked()).map_err(trouble)?.is_none() {
        return Ok(None);
    }
    let job = serde_json::to_string(&Job::Disks(order.clone())).unwrap_or_default();
    vm.send(&Message::Job(job)).map_err(trouble)?;
    loop {
        if stop.asked() {
            return Ok(None);
        }
        match vm.receive(Duration::from_millis(50)).map_err(trouble)? {
            Some(Message::Done(number, text)) => {
                vm.send(&Message::Ack(number)).map_err(trouble)?;
                vm.finish(OFF).map_err(trouble)?;
                let seen = serde_json::from_str(&text);
                return seen.map(Some).map_err(|error| {
                    Failure::new(TRIAL_FAILED, format!("the guest sent nonsense: {error}"))
                });
            }
            Some(Message::Failed(number, why)) => {
                let _ = vm.send(&Message::Ack(number));
                return Err(Failure::new(TRIAL_FAILED, format!("in the guest: {why}")));
            }
            _ if vm.silent() > SILENCE => return Err(trouble(vm.too_silent())),
            _ => {}
        }
    }
}
