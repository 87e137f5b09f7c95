//! What is told before devices are overwritten, and that the user agrees to it.
use super::host::{planned_members, plans, source};
use super::members::{self, Chosen, Source};
use super::room::lacks;
use super::{fit, trial, verify};
use crate::args::{GuestTime, PlanArgs, RunArgs};
use crate::exit::{Failure, REFUSED};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_experiment::Experiment;
use raidlab_host::provision::{ProvisionPlan, digest};
use raidlab_io::observe::Roots;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// Digits of a plan's digest that are shown and asked for.
const DIGITS: usize = 12;

/// The user's own devices are overwritten by a plan that the user has seen, and by no other.
pub(super) fn confirm(
    args: &RunArgs,
    devices: &[Chosen],
    plans: &[ProvisionPlan],
    stop: &Stop,
) -> Result<(), Failure> {
    let wanted = &digest(plans)[..DIGITS];
    if let Some(given) = &args.real.yes {
        if given.len() >= 8 && digest(plans).starts_with(given.as_str()) {
            return Ok(());
        }
        let message = format!(
            "the plan has changed since: its digest is {wanted}, and --yes was given {given}"
        );
        return Err(
            Failure::new(REFUSED, message).remedy("look at 'raidlab plan FILE --on host' again")
        );
    }
    let mut text = String::from("This overwrites ALL of:\n");
    for device in devices {
        let _ = writeln!(text, "  {}", about(device));
    }
    let _ = write!(
        text,
        "by the plan {wanted} ('raidlab plan FILE --on host' prints it)."
    );
    talk::note(&text);
    if !std::io::stdin().is_terminal() {
        let message = "devices would be overwritten, and nobody is there to agree";
        return Err(Failure::new(REFUSED, message)
            .remedy(format!("look at the plan and add --yes {wanted}")));
    }
    talk::note("Type 'yes' to go on:");
    let line = stop.or_line();
    if matches!(line, Ok(Some(line)) if line.trim() == "yes") {
        return Ok(());
    }
    Err(Failure::new(REFUSED, "not agreed to; nothing was written"))
}

fn about(chosen: &Chosen) -> String {
    let device = &chosen.device;
    let mut out = format!(
        "{}  {}  serial {}  {}",
        device.path.display(),
        device.model.as_deref().unwrap_or("unknown model"),
        device.identity.serial.as_deref().unwrap_or("none"),
        Bytes(device.identity.size)
    );
    if let Some(volume) = chosen.array() {
        let _ = write!(out, "  a controller's {volume}");
    }
    out
}

/// What `raidlab plan FILE --on host` prints after the cells.
pub(crate) fn told(experiment: &Experiment, args: &PlanArgs) -> Result<String, Failure> {
    let roots = Roots::system();
    let parts = members::parts(experiment);
    let source = source(&args.real);
    let devices = planned_members(&roots, &source, &parts)?;
    let plans = plans(experiment, &parts, &devices, &args.real)?;
    let mut out = String::from("\nOn --on host:\n");
    match &source {
        Source::Loops { directory, size } => {
            let _ = writeln!(
                out,
                "  {} loop files of {} in {}, made and removed by raidlab; no device of yours is written to",
                parts.len(),
                Bytes(*size),
                directory.display()
            );
        }
        Source::Allowed => {
            out.push_str("  ALL of these is overwritten:\n");
            for device in members::allowed(&roots, &parts)? {
                let _ = writeln!(out, "    {}", about(&device));
            }
        }
    }
    steps(&mut out, experiment, &plans, source == Source::Allowed);
    for lack in lacks(experiment, &source, &parts, &devices)? {
        let _ = writeln!(out, "  Not as it is: {}", talk::one_line(&lack.message));
        let _ = writeln!(out, "    {}", lack.remedy);
    }
    if source == Source::Allowed {
        let wanted = &digest(&plans)[..DIGITS];
        let _ = writeln!(
            out,
            "  Digest of this plan: {wanted}; 'raidlab run FILE --on host --yes {wanted}' carries it out."
        );
    }
    Ok(out)
}

/// The same for `raidlab plan FILE --on host --json`: what overwrites which devices, and what stands against it.
///
/// # Errors
/// As [`told`].
pub(crate) fn told_as_json(experiment: &Experiment, args: &PlanArgs) -> Result<Value, Failure> {
    let roots = Roots::system();
    let parts = members::parts(experiment);
    let source = source(&args.real);
    let devices = planned_members(&roots, &source, &parts)?;
    let plans = plans(experiment, &parts, &devices, &args.real)?;
    let overwritten = match &source {
        Source::Loops { .. } => Vec::new(),
        Source::Allowed => members::allowed(&roots, &parts)?,
    };
    let overwritten = overwritten.iter().map(|chosen| {
        let device = &chosen.device;
        json!({
            "device": device.path, "model": device.model, "serial": device.identity.serial,
            "bytes": device.identity.size,
        })
    });
    let cells = experiment.cells.iter().zip(&plans).map(|(cell, plan)| {
        json!({
            "label": cell.label, "commands": plan.lines(), "after_phases": plan.check_lines(),
            "afterwards": plan.undo_lines(), "notes": plan.notes,
        })
    });
    let lacks = lacks(experiment, &source, &parts, &devices)?;
    let lacks = lacks
        .iter()
        .map(|lack| json!({ "message": lack.message, "help": lack.remedy }));
    Ok(json!({
        "digest": &digest(&plans)[..DIGITS],
        "overwritten": overwritten.collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
        "lacks": lacks.collect::<Vec<_>>(),
    }))
}

/// The commands of each cell, which is built on disks or on what stands for them.
fn steps(out: &mut String, experiment: &Experiment, plans: &[ProvisionPlan], on_disks: bool) {
    for (cell, plan) in experiment.cells.iter().zip(plans) {
        let _ = writeln!(out, "\n  {}:", talk::one_line(&cell.label));
        for line in plan.lines() {
            let _ = writeln!(out, "    {line}");
        }
        for line in plan.check_lines() {
            let _ = writeln!(out, "    after the phases: {line}");
        }
        for reads in verify::time(experiment, cell, plan, on_disks) {
            let _ = writeln!(out, "    with that: {reads}");
        }
        for line in plan.undo_lines() {
            let _ = writeln!(out, "    afterwards: {line}");
        }
        for note in &plan.notes {
            let _ = writeln!(out, "    but: {note}");
        }
    }
    let _ = writeln!(out, "\n  Each UUID-N is drawn anew for each trial.");
}

/// What `raidlab plan FILE --on vm` prints after the cells: how `run` builds them in a guest when it is given no other option.
///
/// # Errors
/// What guests cannot carry out.
pub(crate) fn told_of_guests(experiment: &Experiment) -> Result<String, Failure> {
    fit::check(experiment, GuestTime::Virtual)?;
    let plans: Result<Vec<_>, _> = experiment
        .cells
        .iter()
        .map(|cell| {
            let members = members::of_guest(experiment, cell);
            trial::plan_in_guest(cell, &members, experiment.design.verify)
        })
        .collect();
    let mut out = String::from(
        "\nOn --on vm:\n  in a guest, in virtual time, on modelled disks of its own; no device of yours is written to\n",
    );
    steps(&mut out, experiment, &plans?, false);
    Ok(out)
}
