//! Trials in the guest: disks for each, and the same code that runs a trial on this machine's own.
use super::super::job::{Asked, At, Came, Disks, Trials};
use super::deaths::Deaths;
use super::disks::Source;
use super::share::Shares;
use crate::exit::Failure;
use crate::real::driver::Driver;
use crate::real::host_failure;
use crate::real::trial::{self, Ended, Lab, Turn, Watch};
use crate::real::way::Counting;
use raidlab_core::time::Span;
use raidlab_experiment::Experiment;
use raidlab_experiment::kernel::Scheduler;
use raidlab_host::claim::{Claim, Own, Right};
use raidlab_host::inventory::device_at;
use raidlab_host::journal::Journal;
use raidlab_host::provision::{InitialSync, Stage, claimed_member};
use raidlab_io::observe::Roots;
use raidlab_io::run::{RunProgress, RunStage};
use raidlab_results::record::{Place, Status};
use raidlab_vm::guest::{Closed, Session, load};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the guest keeps what it is about to do; it goes with the guest.
const JOURNAL: &str = "/run/raidlab/journal";
/// A phase in which nothing ends for so long, by the guest's clock, has stalled.
const STALL: Span = Span::from_secs(300);

/// Runs the trials of a job; each is acknowledged before the next begins.
pub(super) fn run(session: &mut Session, job: &Trials) -> Result<(), Closed> {
    let stop = session.stop();
    let mut source = match Source::open(&job.disks) {
        Ok(source) => source,
        Err(failure) => return nothing(session, job, &failure),
    };
    load_schedulers(&job.experiment);
    for asked in &job.trials {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        tell(session, &At::Trial { order: asked.order });
        let came = match one(session, job, *asked, &mut source, &stop) {
            Ok(came) => came,
            Err(failure) => Came::Nothing {
                reason: failure.message,
            },
        };
        let text = serde_json::to_string(&came).unwrap_or_default();
        session.record(text)?;
    }
    Ok(())
}

/// The kernel tells of schedulers that are loaded alone. One that cannot be loaded is told where it is set.
fn load_schedulers(experiment: &Experiment) {
    for cell in &experiment.cells {
        let module = match cell.setup.host.scheduler {
            Some(Scheduler::Bfq | Scheduler::Cfq | Scheduler::Anticipatory) => "bfq",
            Some(Scheduler::Kyber) => "kyber_iosched",
            _ => continue,
        };
        let _ = load(&[module]);
    }
}

/// Without disks there are no trials.
fn nothing(session: &mut Session, job: &Trials, failure: &Failure) -> Result<(), Closed> {
    for _ in &job.trials {
        let reason = failure.message.clone();
        let came = Came::Nothing { reason };
        session.record(serde_json::to_string(&came).unwrap_or_default())?;
    }
    Ok(())
}

fn tell(session: &Session, at: &At) {
    session.progress(&serde_json::to_string(at).unwrap_or_default());
}

fn one(
    session: &Session,
    job: &Trials,
    asked: Asked,
    source: &mut Source,
    stop: &Arc<AtomicBool>,
) -> Result<Came, Failure> {
    let experiment: &Experiment = &job.experiment;
    let cell = &experiment.cells[asked.cell];
    let roots = Roots::system();
    let members = source.members(experiment, cell, asked.seed)?;
    let mut claims = claims(&roots, members.paths())?;
    let directory = Path::new(JOURNAL);
    let mut journal =
        Journal::begin(directory, &job.command).map_err(|error| host_failure(&error))?;
    let devices: Vec<_> = claims
        .iter()
        .map(|claim| claimed_member(&roots, claim))
        .collect();
    let sync = if job.sync {
        InitialSync::Real
    } else {
        InitialSync::AssumeClean
    };
    let provision = trial::plan_of(cell, &devices, sync, experiment.design.verify, true)?;
    let mut lab = Lab {
        claims: &mut claims,
        journal: &mut journal,
        stop: Arc::clone(stop),
        stall: STALL,
    };
    let turn = Turn {
        experiment,
        cell,
        session: &job.session,
        order: asked.order,
        round: asked.round,
        seed: asked.seed,
        command: &job.command,
        place: Place::Vm,
        driver: if job.tools {
            Driver::Tool
        } else {
            Driver::Raidlab
        },
    };
    let mut told = Told {
        session,
        shares: Shares::default(),
        deaths: Deaths::new(&job.deaths, cell, &members),
        counting: Counting::new(members.paths()),
    };
    let ended = trial::run(turn, &provision, &mut lab, &mut told)?;
    let disks = members.facts();
    let came = told.add(ended, disks, matches!(job.disks, Disks::Given { .. }));
    drop(claims);
    journal
        .finish(&roots)
        .map_err(|error| host_failure(&error))?;
    drop(members);
    Ok(came)
}

/// The disks of a guest are all raidlab's own.
fn claims(roots: &Roots, paths: &[PathBuf]) -> Result<Vec<Claim>, Failure> {
    let own = Own::in_guest(roots).ok_or_else(|| {
        Failure::new(
            crate::exit::REFUSED,
            "this is no guest that raidlab started",
        )
    })?;
    let claim = |path: &PathBuf| {
        let device = device_at(roots, path)?;
        Claim::take(roots, &device, Right::Own(&own))
    };
    let claims: Result<Vec<Claim>, _> = paths.iter().map(claim).collect();
    claims.map_err(|error| host_failure(&error))
}

/// Tells the host how far a trial is, and keeps how busy the processor was.
struct Told<'s> {
    session: &'s Session,
    shares: Shares,
    deaths: Deaths<'s>,
    counting: Counting,
}

impl Told<'_> {
    /// What came of a trial, with what was heard meanwhile and what the server of modelled disks says. `given`: the disks
    /// are served from outside.
    fn add(self, ended: Ended, disks: Option<Value>, given: bool) -> Came {
        let deaths = self.deaths.flags();
        match ended {
            Ended::Complete(mut record, mut environment)
            | Ended::Stuck(mut record, mut environment, _)
                if record.status == Status::Complete =>
            {
                self.shares.note(&mut record.phases);
                record.flags.extend(deaths);
                if let Some(fields) = environment.as_object_mut() {
                    fields.insert("disks".to_owned(), disks.unwrap_or_default());
                }
                if given {
                    self.counting.note(&mut environment);
                }
                Came::Record {
                    record,
                    environment,
                }
            }
            // The disks of the next trial are others: what could not be undone has gone with these.
            Ended::Complete(mut record, environment)
            | Ended::Failed(mut record, environment, _)
            | Ended::Stuck(mut record, environment, _) => {
                record.flags.extend(deaths);
                Came::Record {
                    record,
                    environment,
                }
            }
            Ended::Interrupted => Came::Nothing {
                reason: "interrupted".to_owned(),
            },
        }
    }
}

impl Watch for Told<'_> {
    fn stage(&mut self, stage: &Stage) {
        let what = At::of_stage(stage);
        // Each word costs the guest time: the same is not said twice.
        if self.shares.is_new(&what) {
            tell(self.session, &At::Stage { what });
        }
    }

    fn phase(&mut self, number: usize, of: usize, title: &str) {
        self.shares.phase(number);
        self.deaths.phase();
        self.counting.mark();
        let title = title.to_owned();
        tell(self.session, &At::Phase { number, of, title });
    }

    fn tick(&mut self, progress: &RunProgress) {
        if progress.stage == RunStage::Running {
            self.shares.tick();
        }
        self.deaths.tick();
    }

    fn at_work(&mut self) {
        self.shares.tick();
    }

    fn ended(&mut self) {
        self.counting.mark();
        tell(self.session, &At::Ended);
    }
}
