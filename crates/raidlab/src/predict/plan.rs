//! `raidlab plan`: what an experiment comes to.
use super::arrays;
use super::catalogue;
use super::caution;
use super::choose;
use super::estimate::{self, Estimate, Works};
use super::machine::Machines;
use super::run::Took;
use super::unheard;
use super::unmodelled;
use crate::args::{On, PlanArgs};
use crate::commands::{print, print_json, print_text};
use crate::exit::{Failure, MISSING, Outcome};
use crate::place;
use crate::real::agree;
use crate::real::own;
use crate::screen;
use crate::talk::{one_line, plain};
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use raidlab_experiment::setup::Array;
use raidlab_experiment::{Cell, Experiment, Own, Plan, cautions, expand};
use raidlab_results::store::Store;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Most cells and rounds that are listed unless all are asked for.
const MOST: usize = 40;

pub(crate) fn run(args: &PlanArgs, store: &place::Store) -> Result<Outcome, Failure> {
    unheard::plan(args)?;
    let mut experiment = match args.on {
        None | Some(On::Sim) => catalogue::simulated(&args.file, &args.design)?,
        Some(On::Vm | On::Host) => catalogue::experiment(&args.file, &args.design)?,
    };
    choose::only(&mut experiment, args.only.as_deref())?;
    if args.resolved {
        let text = experiment
            .to_toml()
            .map_err(|error| Failure::from_error(MISSING, &error))?;
        print(&text)?;
        return Ok(Outcome::Done);
    }
    let machines = Machines::new(&experiment, true);
    if args.on == Some(On::Sim) {
        machines.check()?;
    }
    let own = match args.on {
        Some(On::Host) => Some(own()),
        _ => None,
    };
    let plan = expand(&experiment, experiment.design.seed);
    let mut took = earlier(&experiment, store);
    let processors = estimate::processors();
    let simulated = took.remove("sim").unwrap_or_default();
    let simulated = estimate::estimate(&plan, &simulated, processors);
    let measured: Vec<(String, Estimate)> = took
        .iter()
        .filter_map(|(on, took)| Some((on.clone(), estimate::earlier(&plan, took)?)))
        .collect();
    if args.json {
        let mut told = as_json(&plan, own, &simulated, &measured)?;
        if args.on == Some(On::Host) {
            told["host"] = agree::told_as_json(&experiment, args)?;
        }
        print_json(&told)?;
    } else {
        let mut told = text(&plan, args.all);
        let _ = writeln!(
            told,
            "\nWith --on sim {} on {}{}. Nothing of this machine is read or written but the store.",
            estimate::range((simulated.from, simulated.to)),
            count(processors, "processor"),
            because(&simulated, experiment.cells.len()),
        );
        for (on, measured) in measured.iter().filter(|(on, _)| is_asked(args.on, on)) {
            told.push_str(&as_earlier(on, measured, experiment.cells.len()));
        }
        match args.on {
            None | Some(On::Sim) => {
                for unmodelled in unmodelled::told(&experiment) {
                    told.push_str(&format!("{unmodelled}\n"));
                }
                if let Some(unpredictable) = machines.unpredictable() {
                    told.push_str(&format!("Not with --on sim: {unpredictable}\n"));
                }
            }
            Some(On::Vm | On::Host) => {}
        }
        let mut told = screen::folded(&told, screen::width());
        // Command lines are to be copied, and stay as they are.
        match args.on {
            None | Some(On::Sim) => {}
            Some(On::Vm) => told.push_str(&agree::told_of_guests(&experiment)?),
            Some(On::Host) => told.push_str(&agree::told(&experiment, args)?),
        }
        let cautions = caution::told(&experiment, own);
        told.push_str(&screen::folded(&cautions, screen::width()));
        // Names of a file may come from anywhere.
        print_text(&plain(&told))?;
    }
    Ok(Outcome::Done)
}

/// Whether times of trials that were carried out there are of interest.
fn is_asked(asked: Option<On>, on: &str) -> bool {
    let place = on.split(',').next();
    match asked {
        None => true,
        Some(On::Sim) => false,
        Some(On::Vm) => place == Some("vm"),
        Some(On::Host) => place == Some("host"),
    }
}

/// How long it takes where earlier trials were carried out: there one comes after the other.
fn as_earlier(on: &str, measured: &Estimate, cells: usize) -> String {
    let on = match on.split_once(", ") {
        Some((place, how)) => format!("{place} ({how})"),
        None => on.to_owned(),
    };
    let rest = match measured.known < cells {
        true => "; of the other cells nothing is known",
        false => "",
    };
    format!(
        "With --on {on} {}{}{rest}.\n",
        estimate::range((measured.from, measured.to)),
        because(measured, cells)
    )
}

/// What earlier trials of the experiment's cells took, by where they were carried out. A store that is not there or cannot be
/// read has none: nothing is wrong with the plan.
fn earlier(experiment: &Experiment, place: &place::Store) -> BTreeMap<String, Took> {
    let cells: BTreeSet<String> = experiment
        .cells
        .iter()
        .map(|cell| experiment.cell_digest(cell))
        .collect();
    let store = place
        .path()
        .ok()
        .and_then(|path| Store::open_read_only(&path).ok());
    let took = store.and_then(|store| Took::stored(&store, &cells).ok());
    took.unwrap_or_default()
}

/// What an estimate is made of, after it.
fn because(estimate: &Estimate, cells: usize) -> String {
    let trials = count(estimate.trials, "earlier trial");
    match estimate.known {
        0 => String::new(),
        known if known == cells => {
            format!(", by the time of {trials} of these cells in the store")
        }
        known => format!(", for {known} of {cells} cells by the time of {trials} in the store"),
    }
}

fn as_json(
    plan: &Plan<'_>,
    own: Option<Own>,
    simulated: &Estimate,
    measured: &[(String, Estimate)],
) -> Result<Value, Failure> {
    let experiment = plan.experiment;
    let failed = |error| Failure::from_error(MISSING, &error);
    let works = Works::new(experiment);
    let cells = experiment.cells.iter().map(|cell| {
        let work = works.of(cell);
        json!({
            "label": cell.label, "digest": experiment.cell_digest(cell),
            "phases": cell.setup.phases, "bytes": work.bytes, "calls": work.calls,
        })
    });
    let trials = plan.trials.iter().map(|trial| {
        json!({
            "order": trial.order, "round": trial.round, "seed": trial.seed,
            "cell": experiment.cells[trial.cell].label,
        })
    });
    let cautions = cautions(experiment, own);
    let warnings = cautions.into_iter().map(|caution| {
        json!({ "message": caution.message, "help": caution.help, "cells": caution.cells })
    });
    Ok(json!({
        "digest": experiment.digest().map_err(failed)?,
        "seed": plan.seed,
        "estimated_seconds": {
            "sim": simulated.to, "sim_least": simulated.from,
            "sim_cells_by_earlier_trials": simulated.known,
            "by_earlier_trials": measured.iter().map(|(on, told)| json!({
                "on": on, "least": told.from, "most": told.to, "cells": told.known, "trials": told.trials,
            })).collect::<Vec<_>>(),
        },
        "cells": cells.collect::<Vec<_>>(),
        "trials": trials.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
        "experiment": serde_json::to_value(experiment)
            .map_err(|error| Failure::new(MISSING, error.to_string()))?,
    }))
}

fn text(plan: &Plan<'_>, all: bool) -> String {
    let experiment = plan.experiment;
    let most = if all { usize::MAX } else { MOST };
    let described: Vec<String> = plan.describe().iter().map(|line| one_line(line)).collect();
    let mut out = described.join("\n");
    out.push('\n');
    let width = experiment.cells.len().to_string().len();
    let works = Works::new(experiment);
    let done: Vec<String> = experiment
        .cells
        .iter()
        .map(|cell| done(&works, cell))
        .collect();
    // What is the same of all is told once.
    let of_all = done
        .first()
        .filter(|first| done.len() > 1 && done.iter().all(|done| done == *first));
    if let Some(of_all) = of_all {
        let _ = writeln!(out, "each: {of_all}");
    }
    out.push_str("\nCells:\n");
    for ((number, cell), done) in (1..).zip(&experiment.cells).zip(&done).take(most) {
        let array = array(experiment, &cell.setup.array);
        let about = match of_all {
            Some(_) => array,
            None => format!("{array}, {done}"),
        };
        let _ = writeln!(
            out,
            "  {number:>width$}  {}\n  {:width$}  {}",
            one_line(&cell.label),
            "",
            one_line(&about)
        );
    }
    left_out(&mut out, experiment.cells.len(), most, "more cell");
    // One cell has one order.
    if experiment.cells.len() > 1 {
        order(&mut out, plan, most);
    }
    out
}

fn order(out: &mut String, plan: &Plan<'_>, most: usize) {
    out.push_str("\nOrder, by the numbers of the cells:\n");
    let rounds = plan.experiment.design.repeats as usize;
    for round in 0..rounds.min(most) {
        let cells = plan.trials.iter().filter(|t| t.round as usize == round);
        let mut order: Vec<String> = cells.map(|t| (t.cell + 1).to_string()).collect();
        if order.len() > most {
            order.truncate(most);
            order.push("…".to_owned());
        }
        let _ = writeln!(out, "  round {}: {}", round + 1, order.join(" "));
    }
    left_out(out, rounds, most, "more round");
}

fn left_out(out: &mut String, all: usize, most: usize, what: &str) {
    if all > most {
        let _ = writeln!(out, "  … and {}; --all lists them", count(all - most, what));
    }
}

/// What an array is, on one line.
fn array(experiment: &Experiment, array: &Array) -> String {
    let mut parts = vec![format!(
        "{} of {} on channels {}",
        array.layout,
        array.members.join(" "),
        array.channels
    )];
    if let Some(chunk) = array.chunk {
        parts.push(format!("chunk {chunk}"));
    }
    parts.push(format!("by {}", array.engine));
    if array.initial_sync {
        parts.push("synced first".to_owned());
    }
    if array.state.to_string() != "clean" {
        let state = array.state.to_string();
        parts.push(match arrays::rebuild_rate(experiment, array) {
            Some(rate) => format!("{state} at a rebuild rate of {rate} %"),
            None => state,
        });
    }
    if let Some(allocated) = array.allocated {
        parts.push(format!("with {allocated} of files in it"));
    }
    if let Some(capacity) = array.capacity {
        parts.push(format!("holds {capacity}"));
    }
    if let Some(price) = experiment.price(array) {
        parts.push(format!("costs {price}"));
    }
    parts.join(", ")
}

/// What is done there.
fn done(works: &Works<'_>, cell: &Cell) -> String {
    let setup = &cell.setup;
    let on = match &setup.filesystem {
        Some(filesystem) => filesystem.kind.to_string(),
        None => "raw device".to_owned(),
    };
    let work = works.of(cell);
    let moved = match (work.bytes, work.clock) {
        (0, time) => format!("{time} by the clock"),
        (bytes, raidlab_core::time::Span::ZERO) => format!("moves {}", Bytes(bytes)),
        (bytes, time) => format!("moves {}, {time} by the clock", Bytes(bytes)),
    };
    format!(
        "{on}, {}: {}, {moved}",
        setup.profile.name(),
        setup.phases.join(" ")
    )
}
