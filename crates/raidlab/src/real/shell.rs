//! `raidlab vm shell`: the guest of an experiment, for a person to look around in.
use super::fit;
use super::guests::{self, OFF};
use super::job::{Job, Shell};
use super::lab::{self, Lab};
use super::served::Served;
use super::typing::{Hushed, Typing};
use super::view::Waiting;
use crate::args::{DesignArgs, GuestTime, ShellArgs};
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome};
use crate::predict::catalogue;
use crate::signals::Stop;
use raidlab_core::time::Span;
use raidlab_experiment::Experiment;
use raidlab_vm::Vm;
use raidlab_vm::channel::Message;
use std::path::Path;
use std::time::Duration;

/// What a guest says when its shell gets what is typed.
pub(super) const LISTENS: &str = "the shell listens";

pub(super) fn run(cache: Option<&Path>, args: &ShellArgs) -> Result<Outcome, Failure> {
    let design = DesignArgs {
        member_size: args.member_size,
        ..DesignArgs::default()
    };
    let mut experiment = catalogue::experiment(&args.file, &design)?;
    let number = chosen(&experiment, args)?;
    if number >= experiment.cells.len() {
        return Err(Failure::new(BAD_REQUEST, "the experiment has no cells"));
    }
    // The others are no matter of this guest, neither what they need nor what they cannot have.
    experiment.cells = vec![experiment.cells.swap_remove(number)];
    fit::check(&experiment, args.time)?;
    let cell = &experiment.cells[0];
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let lab = Lab::prepare(cache, &experiment, args.time, &["busybox"])?;
    lab.needs("busybox")?;
    let directory = lab.runs.create().map_err(|error| guests::failure(&error))?;
    let served = match args.time {
        GuestTime::Virtual => None,
        GuestTime::Real => {
            let seed = experiment.design.seed;
            Some(Served::start(
                &experiment,
                cell,
                seed,
                Span::ZERO,
                directory.path(),
            )?)
        }
    };
    let machine = lab.machine(&experiment, cell.setup.host.memory, served.as_ref());
    // Given back after the shell has given back what it changed.
    let _hushed = Hushed::begin(std::io::stdin());
    let waiting = Waiting::new("booting the guest");
    let mut vm = lab.boot(&machine, directory, true)?;
    if guests::hello(&mut vm, &stop)?.is_none() {
        return Ok(Outcome::Interrupted);
    }
    drop(waiting);
    let job = Job::Shell(Box::new(Shell {
        disks: lab::disks(&machine),
        cell: 0,
        experiment,
    }));
    let job =
        serde_json::to_string(&job).map_err(|error| Failure::new(MISSING, error.to_string()))?;
    vm.send(&Message::Job(job))
        .map_err(|trouble| guests::trouble(&trouble))?;
    serve(vm, &stop)
}

/// The number of the cell that was asked for; the first one when none was.
fn chosen(experiment: &Experiment, args: &ShellArgs) -> Result<usize, Failure> {
    let Some(label) = &args.cell else {
        return Ok(0);
    };
    let mut cells = experiment.cells.iter();
    let found = cells.position(|cell| cell.label == *label);
    found.ok_or_else(|| {
        Failure::bad_request(format!("there is no cell '{label}'"))
            .remedy(format!("'raidlab plan {}' lists them", args.file.display()))
    })
}

/// Waits until the shell ends.
fn serve(mut vm: Vm, stop: &Stop) -> Result<Outcome, Failure> {
    // The terminal is as it was before when this ends, however it does.
    let mut typing: Option<Typing> = None;
    loop {
        if stop.asked() {
            return Ok(Outcome::Interrupted);
        }
        let message = vm.receive(Duration::from_millis(50));
        match message.map_err(|trouble| guests::trouble(&trouble))? {
            Some(Message::Progress(what)) if what == LISTENS => {
                typing = vm.keys().map(Typing::begin);
            }
            Some(Message::Done(number, _)) => {
                drop(typing.take());
                let acknowledged = vm.send(&Message::Ack(number));
                acknowledged.map_err(|trouble| guests::trouble(&trouble))?;
                vm.finish(OFF)
                    .map_err(|trouble| guests::trouble(&trouble))?;
                return Ok(Outcome::Done);
            }
            Some(Message::Failed(number, why)) => {
                let _ = vm.send(&Message::Ack(number));
                return Err(Failure::new(MISSING, why));
            }
            _ => {}
        }
    }
}
