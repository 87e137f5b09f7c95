//! What a guest says while it runs trials, and what is kept of it.
use super::{Guest, Session};
use crate::bench::kept;
use crate::commands::timestamp;
use crate::exit::{Failure, TRIAL_FAILED};
use crate::real::job::{At, Came};
use crate::real::served::{self, Served};
use crate::real::view::View;
use crate::real::way::Serving;
use crate::talk;
use raidlab_experiment::Trial;
use raidlab_results::record::{Status, TrialRecord};
use raidlab_vm::Vm;
use raidlab_vm::channel::Message;
use raidlab_vm::vm::Trouble;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A guest that gives no sign of life for so long is given up.
const SILENCE: Duration = Duration::from_secs(300);
/// No trial takes so long by this machine's clock.
const LIMIT: Duration = Duration::from_secs(3600);

impl Session<'_> {
    /// Takes messages until the guest's last word; `false` when the user wants to stop.
    pub(super) fn listen(
        &mut self,
        vm: &mut Vm,
        trials: &[Trial],
        done: &mut usize,
        guest: &Guest<'_>,
        view: &mut View,
    ) -> Result<Result<bool, Trouble>, Failure> {
        let mut began = (Instant::now(), timestamp());
        let mut serving = Serving::default();
        loop {
            if self.stop.asked() {
                return Ok(Ok(false));
            }
            let message = match vm.receive(Duration::from_millis(50)) {
                Ok(message) => message,
                Err(trouble) => return Ok(Err(trouble)),
            };
            if vm.silent() > SILENCE {
                return Ok(Err(vm.too_silent()));
            }
            if began.0.elapsed() > LIMIT {
                return Ok(Err(vm.too_late(LIMIT)));
            }
            let Some(message) = message else { continue };
            let number = message.number();
            let last = match message {
                Message::Progress(text) => {
                    self.progress(&text, trials, guest, &mut serving, view);
                    continue;
                }
                Message::Record(_, text) if *done < trials.len() => {
                    let (mut record, environment) =
                        self.record(trials[*done], &text, &began.1, guest)?;
                    serving.judge(&mut record, &environment);
                    record.doubt_parts();
                    serving.clear();
                    self.keep(&record, &environment)?;
                    if record.status == Status::Complete {
                        let digest = self.recorder.digest(trials[*done].cell);
                        let took = self.since.elapsed().as_secs_f64();
                        self.took.add(digest, took);
                    }
                    self.since = Instant::now();
                    view.ended(&record);
                    *done += 1;
                    began = (Instant::now(), timestamp());
                    false
                }
                Message::Done(..) => true,
                Message::Failed(_, why) => {
                    return Ok(Err(Trouble::Ended {
                        how: why,
                        console: vm.console(),
                    }));
                }
                _ => continue,
            };
            if let Some(number) = number
                && let Err(trouble) = vm.send(&Message::Ack(number))
            {
                return Ok(Err(trouble));
            }
            if last {
                return Ok(Ok(true));
            }
        }
    }

    /// The record of a trial as the guest sent it, with what the host knows.
    fn record(
        &self,
        trial: Trial,
        text: &str,
        began: &str,
        guest: &Guest<'_>,
    ) -> Result<(TrialRecord, Value), Failure> {
        let came: Came = serde_json::from_str(text).map_err(|error| {
            Failure::new(TRIAL_FAILED, format!("a record cannot be read: {error}"))
        })?;
        let mut facts = self.lab.facts();
        facts["machine"] = serde_json::to_value(guest.machine).unwrap_or_default();
        let report = guest.served.and_then(Served::report);
        if let Some(report) = &report {
            facts["disks"] = served::facts(report);
            facts["disks"]["early_us"] = guest
                .served
                .map(|served| served.early.0 as f64 / 1e3)
                .into();
        }
        let (mut record, environment) = self.recorder.came(trial, came, began, &facts);
        let notes = environment["array"]["notes"].as_array();
        for note in notes.into_iter().flatten().filter_map(Value::as_str) {
            if self.told.borrow_mut().insert(note.to_owned()) {
                talk::warn(note);
            }
        }
        record.flags.extend(report.as_ref().and_then(served::doubt));
        Ok((record, environment))
    }

    fn progress(
        &self,
        text: &str,
        trials: &[Trial],
        guest: &Guest<'_>,
        serving: &mut Serving,
        view: &mut View,
    ) {
        let Ok(at) = serde_json::from_str::<At>(text) else {
            return;
        };
        if let (At::Phase { .. } | At::Ended, Some(served)) = (&at, guest.served) {
            serving.mark(served.report().as_ref());
        }
        if let At::Trial { order } = at
            && let Some(trial) = trials.iter().find(|trial| trial.order == order)
        {
            view.begins(&self.plan.experiment.cells[trial.cell].label, trial.round);
        }
        view.at(&at);
    }

    /// Stores a trial; when this returns, it is on the medium.
    pub(super) fn keep(
        &mut self,
        record: &TrialRecord,
        environment: &Value,
    ) -> Result<(), Failure> {
        kept(self.stop, self.store, |store| {
            store.append_trial(record, Some(environment)).map(drop)
        })
    }
}
