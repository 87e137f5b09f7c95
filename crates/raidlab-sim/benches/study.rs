//! How long whole experiments take on one core, phase by phase, and what came of them.
//!
//! `cargo bench -p raidlab-sim --bench study -- FILE.toml [TEXT]`: the cells of an experiment whose
//! labels contain the text; without a file, `experiments/pata-raid0.toml`. `--no-fast-forward` runs
//! steady stretches to their end; `--resync` runs resync or rebuild in place of the phases.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures"
)]
mod shared;

use raidlab_experiment::{Experiment, parse};
use raidlab_sim::catalogue;
use raidlab_sim::machine::{Machine, PhaseRun};
use shared::on_processor;
use std::ops::ControlFlow;
use std::time::Instant;

/// The experiment in a file, without what it says of published figures.
fn experiment(path: &str) -> Option<Experiment> {
    let text = std::fs::read_to_string(path)
        .inspect_err(|e| eprintln!("{path}: {e}"))
        .ok()?;
    let text = text.split("[expected]").next()?;
    let text = text.replace(", \"published\"", "");
    parse(&text, path, &catalogue::known())
        .inspect_err(|e| eprintln!("{}", e.render(false)))
        .ok()
}

fn show(label: &str, seconds: f64, run: &PhaseRun) {
    let outcome = &run.outcome;
    println!(
        "{label:36} {:14} {:9.0} KiB/s {:8.1} ops/s {:>12} in {seconds:6.3} s; {}",
        outcome.id,
        outcome.bytes_per_second().unwrap_or(0.0) / 1024.0,
        outcome.ops_per_second().unwrap_or(0.0),
        outcome.elapsed.to_string(),
        run.why.sentence,
    );
    for flag in &outcome.flags {
        println!("{:36} {flag}", "");
    }
}

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let leaps = !all.iter().any(|a| a == "--no-fast-forward");
    let resync = all.iter().any(|a| a == "--resync");
    let mut words = all.iter().filter(|a| !a.starts_with("--"));
    let usual = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../experiments/pata-raid0.toml"
    );
    let path = words.next().map_or(usual, String::as_str);
    let wanted = words.next().map_or("", String::as_str);
    let Some(experiment) = experiment(path) else {
        return;
    };
    let begin = Instant::now();
    for cell in experiment.cells.iter().filter(|c| c.label.contains(wanted)) {
        let mut machine = match Machine::build(&experiment, cell, experiment.design.seed) {
            Ok(machine) => machine,
            Err(error) => {
                println!("{:36} {error}", cell.label);
                continue;
            }
        };
        machine.set_fast_forward(leaps);
        if resync {
            let before = on_processor(begin);
            if let Some(done) = machine.run_resync(|_| ControlFlow::Continue(())) {
                println!(
                    "{:36} {:>12}, {:.3} MB/s in {:.3} s; {}",
                    cell.label,
                    format!("{:.3} s", done.elapsed.as_secs_f64()),
                    done.rate() / 1e6,
                    on_processor(begin) - before,
                    done.why.sentence
                );
            }
            continue;
        }
        let plan = match machine.plan() {
            Ok(plan) => plan,
            Err(error) => {
                println!("{:36} {error}", cell.label);
                continue;
            }
        };
        for phase in &plan.phases {
            let before = on_processor(begin);
            match machine.run_phase(phase, &mut ()) {
                Ok(run) => show(&cell.label, on_processor(begin) - before, &run),
                Err(error) => println!("{:36} {error}", cell.label),
            }
        }
    }
    println!("all of it in {:.3} s", on_processor(begin));
}
