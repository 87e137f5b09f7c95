//! `raidlab vm maps`: whether md puts every sector, copy and parity where raidlab's layouts say.
//!
//! A guest builds each array as an experiment's would be built, writes every sector of it with a content that says which
//! sector it is, and looks for each on the members underneath. What is found is compared with what `raidlab-layout` says
//! of the same array.
mod cases;
mod check;
mod measure;

use super::guests::{self, Patience};
use super::job::Job;
use super::view::Waiting;
use crate::args::MapsArgs;
use crate::commands::{print, print_json};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::predict::told;
use crate::signals::Stop;
use cases::Case;
use check::Checked;
use raidlab_core::units::Bytes;
use raidlab_experiment::setup::ArrayLayout;
use raidlab_layout::SpecError;
use raidlab_vm::channel::Message;
use raidlab_vm::guest::{Closed, Session};
use raidlab_vm::vm::Boot;
use raidlab_vm::{Flavour, Machine, Vm};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Memory of the guest: the disks are in it, and what is read of them.
const MEMORY: Bytes = Bytes(1 << 30);
/// A guest that says nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(300);
/// No array takes so long by this machine's clock.
const LIMIT: Duration = Duration::from_secs(600);

/// What a guest is to look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Order {
    seed: u64,
    cases: Vec<Case>,
    /// The layout to compare with instead of each array's own: to see that a difference is noticed.
    against: Option<ArrayLayout>,
}

/// What came of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Seen {
    /// It was written and compared.
    Compared(Checked),
    /// It could not be built, written or read.
    Failed(String),
}

impl Seen {
    const fn agrees(&self) -> bool {
        matches!(self, Self::Compared(checked) if checked.wrong == 0 && checked.sectors > 0)
    }

    /// A line, and one more for each disagreement that is told.
    fn lines(&self, label: &str) -> String {
        match self {
            Self::Failed(why) => format!("{label:<36} failed: {why}\n"),
            Self::Compared(checked) => {
                let Checked {
                    sectors,
                    places,
                    p,
                    q,
                    wrong,
                    told,
                    roles,
                } = checked;
                let verdict = match wrong {
                    0 => "agrees".to_owned(),
                    wrong => format!("DISAGREES in {wrong}"),
                };
                let mut text = format!(
                    "{label:<36} sectors {sectors:>6}  places {places:>6}  P {p:>5}  Q {q:>5}  {verdict}"
                );
                if !roles.is_empty() {
                    text.push_str(&format!("; roles 0, 1, ... are with disks {roles:?}"));
                }
                text.push('\n');
                for told in told {
                    text.push_str(&format!("    {told}\n"));
                }
                text
            }
        }
    }
}

/// In the guest: one array after the other, each acknowledged before the next begins.
pub(super) fn look(session: &mut Session, order: &Order) -> Result<(), Closed> {
    let stop = session.stop();
    let prepared = measure::prepare();
    for case in &order.cases {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let seen = match &prepared {
            Ok(()) => match measure::one(case, order, &stop) {
                Ok(checked) => Seen::Compared(checked),
                Err(failure) => Seen::Failed(failure.message),
            },
            Err(failure) => Seen::Failed(failure.message.clone()),
        };
        session.record(serde_json::to_string(&seen).unwrap_or_default())?;
    }
    Ok(())
}

pub(super) fn run(cache: Option<&Path>, args: &MapsArgs) -> Result<Outcome, Failure> {
    let cases = cases::with(&args.only)?;
    if cases.is_empty() {
        return Err(Failure::bad_request("no array has any of that in its name")
            .remedy("'raidlab vm maps --list' tells their names"));
    }
    if args.list {
        let names = cases.iter().map(|case| format!("{}\n", case.label));
        print(&names.collect::<String>())?;
        return Ok(Outcome::Done);
    }
    let against = args.against.as_deref().map(str::parse).transpose();
    let against = against.map_err(|error: SpecError| Failure::bad_request(error.to_string()))?;
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let order = Order {
        seed: args.seed,
        cases,
        against,
    };
    let Some(seen) = in_guest(cache, &order, args.json, &stop)? else {
        return Ok(Outcome::Interrupted);
    };
    let failed = seen.iter().filter(|seen| matches!(seen, Seen::Failed(_)));
    let (all, failed) = (seen.len(), failed.count());
    let agree = seen.iter().filter(|seen| seen.agrees()).count();
    if args.json {
        let rows = order.cases.iter().zip(&seen);
        let rows = rows.map(|(case, seen)| json!({ "array": case.label, "came": seen }));
        print_json(&json!({
            "seed": order.seed, "arrays": rows.collect::<Vec<_>>(), "agree": agree, "failed": failed,
        }))?;
    } else {
        print(&format!("{agree} of {all} arrays agree\n"))?;
    }
    if agree + failed < all {
        return Ok(Outcome::Worse);
    }
    if failed > 0 {
        let message = format!("{failed} of {all} arrays could not be looked at");
        return Err(Failure::new(TRIAL_FAILED, message));
    }
    Ok(Outcome::Done)
}

/// Boots a guest and has it look; `None` when interrupted.
fn in_guest(
    cache: Option<&Path>,
    order: &Order,
    quiet: bool,
    stop: &Stop,
) -> Result<Option<Vec<Seen>>, Failure> {
    let cache = guests::cache(cache)?;
    let kernel = guests::kernel(&cache, Flavour::Cloud)?;
    let image = guests::image(&cache, &kernel, &[], None)?;
    guests::needs(&image, "mdadm")?;
    let runs = guests::runs()?;
    let all = order.cases.len();
    let waiting = Waiting::new(&format!("looking at {all} arrays in a guest"));
    let machine = Machine::virtual_time(guests::memory(MEMORY, &image), Bytes(0));
    let boot = Boot {
        kernel: &kernel,
        image: &image,
        machine: &machine,
        person: false,
    };
    let vm = Vm::start(&boot, &runs).map_err(|error| guests::failure(&error))?;
    let mut seen: Vec<Seen> = Vec::new();
    let begun = Instant::now();
    let mut heard = |message: &Message| {
        let Message::Record(_, text) = message else {
            return Ok(());
        };
        let came: Seen = guests::read(text)?;
        let case = order.cases.get(seen.len());
        let case = case.ok_or_else(|| guests::nonsense("more arrays than were asked for"))?;
        if !quiet {
            waiting.suspend(|| print(&came.lines(&case.label)))?;
        }
        seen.push(came);
        let left = begun.elapsed().as_secs_f64() / seen.len() as f64;
        let left = told(left * (all - seen.len()) as f64);
        waiting.say(&format!("[{}/{all}] about {left} left", seen.len()));
        Ok(())
    };
    let patience = Patience {
        silence: SILENCE,
        limit: Some(LIMIT),
    };
    let job = Job::Maps(Box::new(order.clone()));
    if guests::have_done(vm, &job, patience, stop, &mut heard)?.is_none() {
        return Ok(None);
    }
    match seen.len() == all {
        true => Ok(Some(seen)),
        false => Err(guests::nonsense("not all arrays were looked at")),
    }
}
