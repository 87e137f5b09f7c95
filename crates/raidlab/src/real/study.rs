//! `raidlab reference run --on vm`: a published study on a real kernel, beside the simulator and what was published.
use super::vm::{self, Carried, Head};
use crate::args::{On, RealArgs, ReferenceRunArgs, RunArgs};
use crate::bench::store_failure;
use crate::commands::output;
use crate::exit::{Failure, Outcome};
use crate::place;
use crate::predict::choose;
use crate::predict::reference;
use crate::predict::run::told_failures;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_experiment::Experiment;
use raidlab_experiment::setup::Engine;
use raidlab_results::reference::Study;
use raidlab_results::report::Document;
use raidlab_results::report::document::Block;
use std::path::PathBuf;

pub(crate) fn run(
    args: &ReferenceRunArgs,
    studies: &[Study],
    place: &place::Store,
) -> Result<Outcome, Failure> {
    let mut some = false;
    for study in studies {
        let Some(experiment) = chosen(args, study)? else {
            continue;
        };
        some = true;
        if let Outcome::Interrupted = one(args, study, experiment, place)? {
            return Ok(Outcome::Interrupted);
        }
    }
    if some {
        return Ok(Outcome::Done);
    }
    let rows = args.rows.as_deref().unwrap_or_default();
    Err(
        Failure::bad_request(format!("no row that a kernel can run matches '{rows}'"))
            .remedy("'raidlab reference report STUDY' lists the rows; * and ? stand for anything"),
    )
}

/// The cells of a study's experiment that are asked for and that a kernel can run; `None` without any.
fn chosen(args: &ReferenceRunArgs, study: &Study) -> Result<Option<Experiment>, Failure> {
    let Some(mut experiment) = reference::experiment(args, study)? else {
        return Ok(None);
    };
    let rows = experiment.expected.as_ref().map(|e| e.rows.clone());
    let rows = rows.unwrap_or_default();
    choose::keep(&mut experiment, |cell| {
        reference::is_wanted(args, &rows, &cell.label)
    });
    let all = experiment.cells.len();
    choose::keep(&mut experiment, |cell| {
        cell.setup.array.engine != Engine::Controller
    });
    let left_out = all - experiment.cells.len();
    if left_out > 0 {
        talk::note(&format!(
            "{}: {left_out} of {all} rows are left out: a controller's own RAID has no kernel to run it",
            study.id
        ));
    }
    Ok((!experiment.cells.is_empty()).then_some(experiment))
}

fn one(
    args: &ReferenceRunArgs,
    study: &Study,
    experiment: Experiment,
    place: &place::Store,
) -> Result<Outcome, Failure> {
    let run = RunArgs {
        file: PathBuf::from(format!("experiments/{}.toml", study.id)),
        on: On::Vm,
        design: args.design.clone(),
        only: None,
        jobs: args.jobs,
        fresh: args.fresh,
        no_fast_forward: args.no_fast_forward,
        real: RealArgs {
            loop_dir: None,
            loop_size: Bytes(0),
            yes: None,
            driver: args.driver,
            assume_clean: false,
        },
        vm: args.vm.clone(),
        with_sim: true,
        out: None,
        output: args.output.clone(),
        store: args.store.clone(),
    };
    let rows = match &args.rows {
        Some(rows) => format!(" --rows {}", crate::commands::quoted(rows)),
        None => String::new(),
    };
    let head = Head(format!("reference run {}{rows} --on vm", study.id));
    let Some(mut carried) = vm::carry_out(&experiment, &run, &head, place)? else {
        return Ok(Outcome::Interrupted);
    };
    let Carried {
        store,
        session,
        on,
        beside,
    } = &mut carried;
    let mut document = Document::new(format!(
        "{} ({}), on a real kernel",
        study.title, study.date
    ));
    document.blocks.push(Block::paragraph(format!(
        "Seed {}; measured on {on}.",
        experiment.design.seed
    )));
    document.blocks.append(beside);
    document.blocks.push(Block::heading("What the study found"));
    let findings = study.findings.iter();
    document.blocks.push(Block::List {
        items: findings
            .map(|finding| format!("Finding {}: {}", finding.number, finding.text))
            .collect(),
    });
    let failed = told_failures(store, session)?;
    if failed.is_none() {
        store.finish_session(session).map_err(store_failure)?;
    }
    output::emit(&document, &args.output)?;
    failed.map_or(Ok(Outcome::Done), Err)
}
