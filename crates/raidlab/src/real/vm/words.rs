//! What is said of a run in guests: where it is, how it is repeated, and what came of it beside the simulator.
use super::Head;
use crate::args::{GuestTime, RunArgs};
use crate::bench::store_failure;
use crate::commands::{quoted, reference};
use crate::exit::Failure;
use crate::predict::arrays;
use crate::predict::run as sessions;
use crate::real::beside::{self, Published};
use crate::real::driver::Driver;
use crate::real::early::Early;
use crate::real::verify;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::time::Span;
use raidlab_experiment::setup::Engine;
use raidlab_experiment::{Experiment, Plan, expand};
use raidlab_results::record::{Status, TrialRecord};
use raidlab_results::report::document::Block;
use raidlab_results::store::{Store, TrialFilter};

/// Where it is carried out, as the session keeps it: trials of other kinds are other trials.
pub(super) fn on(args: &RunArgs, experiment: &Experiment) -> String {
    let time = match args.vm.time {
        GuestTime::Virtual => "vm",
        GuestTime::Real => "vm, real time",
    };
    let early = match (args.vm.time, args.vm.early) {
        (GuestTime::Virtual, _) | (_, Early::Given(Span::ZERO)) => String::new(),
        (_, Early::Measured) => ", replies as early as the way is long".to_owned(),
        (_, Early::Given(early)) => format!(", replies {early} early"),
    };
    let sync = if args.vm.sync { ", arrays synced" } else { "" };
    let members = args.design.member_size;
    let members = members.map_or_else(String::new, |size| format!(", {size} of each disk used"));
    let by = match args.real.driver {
        Driver::Raidlab => "",
        Driver::Tool => ", by the tools themselves",
    };
    let deaths = args
        .vm
        .fail
        .iter()
        .map(|death| format!(", {}", death.told()));
    let deaths: String = deaths.collect();
    let verified = verify::told(experiment);
    format!("{time}{early}{members}{sync}{by}{verified}{deaths}")
}

/// The command that repeats the run.
pub(super) fn command(args: &RunArgs, Head(head): &Head, plan: &Plan<'_>) -> String {
    let sync = if args.vm.sync { " --sync" } else { "" };
    let early = match (args.vm.time, args.vm.early) {
        (GuestTime::Virtual, _) | (_, Early::Measured) => String::new(),
        (_, early) => format!(" --early {early}"),
    };
    let members = args.design.member_size;
    let members = members.map_or_else(String::new, |size| format!(" --member-size {}B", size.0));
    let tools = match args.real.driver {
        Driver::Raidlab => "",
        Driver::Tool => " --driver tool",
    };
    let time = match args.vm.time {
        GuestTime::Virtual => "",
        GuestTime::Real => " --time real",
    };
    let fail = args
        .vm
        .fail
        .iter()
        .map(|death| format!(" --fail {}", quoted(&death.to_string())));
    let fail: String = fail.collect();
    // A study's figures are always predicted beside.
    let beside = match args.with_sim && !head.starts_with("reference") {
        true => " --with-sim",
        false => "",
    };
    let verify = if args.design.verify { " --verify" } else { "" };
    let slow = match args.no_fast_forward {
        true => " --no-fast-forward",
        false => "",
    };
    format!(
        "raidlab {head}{time}{early}{members}{sync}{verify}{tools}{fail}{beside}{slow} --seed {} --repeats {}",
        plan.seed, plan.experiment.design.repeats
    )
}

/// Predicts the same trials, if that was asked for.
pub(super) fn beside(
    args: &RunArgs,
    plan: &Plan<'_>,
    store: &mut Store,
    session: &str,
    stop: &Stop,
) -> Result<Vec<Block>, Failure> {
    if !args.with_sim {
        return Ok(Vec::new());
    }
    talk::note("predicting the same trials");
    let synced = args.vm.sync.then(|| synced(plan.experiment));
    let synced = synced.as_ref().map(|synced| expand(synced, plan.seed));
    let predicted = sessions::predicted(synced.as_ref().unwrap_or(plan), session, stop)?;
    let measured = store
        .trials(&TrialFilter::of_session(session))
        .map_err(store_failure)?;
    let place = |trial: &TrialRecord| {
        let mut cells = plan.experiment.cells.iter();
        cells.position(|cell| cell.label == trial.cell.label)
    };
    let mut measured: Vec<TrialRecord> = measured
        .into_iter()
        .filter(|trial| trial.status == Status::Complete)
        .collect();
    measured.sort_by_cached_key(|trial| (place(trial), trial.round));
    let published = match &plan.experiment.expected {
        None => None,
        Some(expected) => Some(Published {
            study: reference::find(&expected.study)?,
            rows: expected.rows.clone(),
            second: arrays::second_failures(plan.experiment),
        }),
    };
    Ok(beside::blocks(&measured, &predicted, published.as_ref()))
}

/// The experiment with arrays that have been synced, as those of a guest have with `--sync`; one that is resyncing or in its
/// initial sync is in that sync.
fn synced(experiment: &Experiment) -> Experiment {
    let mut synced = experiment.clone();
    for array in synced.cells.iter_mut().map(|cell| &mut cell.setup.array) {
        let md = array.engine == Engine::Md && array.layout.is_redundant();
        array.initial_sync |= md && !array.state.is_unsynced();
    }
    synced
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_experiment::parse;
    use raidlab_sim::catalogue;

    #[test]
    fn arrays_of_md_have_been_synced_unless_they_are_in_their_sync() {
        let text = "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 4 }\n[profile]\nname = \"sequential\"\n\
                    [factors]\narray = [{ name = \"a\", layout = \"raid5\" }, \
                    { name = \"b\", layout = \"raid5\", state = \"resyncing\" }, \
                    { name = \"c\", layout = \"zfs-mirror\" }, \
                    { name = \"d\", layout = \"raid6\", state = \"initial-sync\" }, \
                    { name = \"e\", layout = \"raid0\" }]\n";
        let experiment = parse(text, "t.toml", &catalogue::known());
        let experiment = experiment.unwrap_or_else(|e| panic!("{}", e.render(false)));
        let of = |experiment: &Experiment| -> Vec<bool> {
            let cells = experiment.cells.iter();
            cells.map(|cell| cell.setup.array.initial_sync).collect()
        };
        assert_eq!(of(&experiment), [false; 5]);
        assert_eq!(of(&synced(&experiment)), [true, false, false, false, false]);
    }
}
