//! What is looked at of each phase.
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::Phase;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_experiment::setup::Setup;
use raidlab_experiment::{Known, parse};
use raidlab_sim::block::{Busy, ResourceKind};
use raidlab_sim::catalogue;
use raidlab_sim::machine::{Account, Machine};
use std::ops::ControlFlow;

/// What was begun before the end of a phase is booked whole by a disk, and work of a core that has not been done.
const BOOKED: Span = Span::from_millis(400);

/// What does not hold of the only cell of an experiment, or why it cannot be run.
pub(crate) fn broken(text: &str) -> Result<Vec<String>, String> {
    std::panic::catch_unwind(|| all_of(text)).unwrap_or_else(|panic| {
        let told = panic.downcast_ref::<String>().map(String::as_str);
        let told = told.or_else(|| panic.downcast_ref::<&str>().copied());
        Ok(vec![format!("panic: {}", told.unwrap_or_default())])
    })
}

fn all_of(text: &str) -> Result<Vec<String>, String> {
    let known: Known<'_> = catalogue::known();
    let experiment = parse(text, "drawn.toml", &known).map_err(|e| e.render(false))?;
    let cell = &experiment.cells[0];
    let built = Machine::build(&experiment, cell, experiment.design.seed);
    let mut machine = built.map_err(|e| e.to_string())?;
    let plan = machine.plan().map_err(|e| e.to_string())?;
    machine.settle(&plan, &mut ()).map_err(|e| e.to_string())?;
    let mut broken = Vec::new();
    for phase in &plan.phases {
        let before = machine.account();
        let came = machine.run_phase(phase, &mut ());
        let outcome = came.map_err(|e| e.to_string())?.outcome;
        let after = machine.account();
        let mut tell = |law: &str, told: Option<String>| {
            broken.extend(told.map(|told| format!("{}: {law}: {told}", phase.id)));
        };
        tell("time passes", without_time(&outcome));
        tell("cores", beyond_cores(&cell.setup, &outcome));
        tell("booked", piled_up(&cell.setup, &machine));
        tell("parts", beyond_parts(&before, &after));
        tell("shares", beyond_time(&before, &after, Span::ZERO));
        tell("in flight", not_in_flight(phase, &outcome));
    }
    broken.extend(refilled(&mut machine));
    Ok(broken)
}

/// What is left of a resync or rebuild by itself comes to its end, with all of it gone through, and no more done than there is time for.
fn refilled(machine: &mut Machine) -> Vec<String> {
    let Some(progress) = machine.resync() else {
        return Vec::new();
    };
    let before = machine.account();
    let came = machine.run_resync(|_| ControlFlow::Continue(()));
    let after = machine.account();
    let left = (progress.total - progress.done) * SECTOR;
    let passed = after.at.since(before.at).0;
    let wrong = match came {
        None => Some("it was gone".to_owned()),
        Some(came) if came.bytes != left => Some(format!("{} of {left}", came.bytes)),
        Some(_) => machine
            .resync()
            .map(|rest| format!("it does not end: {rest:?}")),
    };
    let laws = [
        ("whole", wrong),
        ("parts", beyond_parts(&before, &after)),
        // What is booked at the end of what is leapt over counts as often as that is leapt over, and what the phases have
        // written at random is booked, too.
        (
            "shares",
            beyond_time(&before, &after, BOOKED + Span(passed / 20)),
        ),
    ];
    let told =
        |(law, told): (&str, Option<String>)| told.map(|told| format!("refill: {law}: {told}"));
    laws.into_iter().filter_map(told).collect()
}

fn without_time(outcome: &PhaseOutcome) -> Option<String> {
    let stands = outcome.ops > 0 && outcome.elapsed == Span::ZERO;
    stands.then(|| format!("{} operations in no time", outcome.ops))
}

/// Processor time of the cores that there are.
fn beyond_cores(setup: &Setup, outcome: &PhaseOutcome) -> Option<String> {
    let cpu = &outcome.cpu;
    let used = cpu.user + cpu.system + cpu.kernel_threads.unwrap_or_default();
    let cores = f64::from(setup.host.cores);
    let there = cores * outcome.elapsed.as_secs_f64();
    (used.as_secs_f64() > there + 1e-6)
        .then(|| format!("{used} of {cores} for {}", outcome.elapsed))
}

/// What is done for requests that nobody waits for takes no more of the cores than there is for long.
fn piled_up(setup: &Setup, machine: &Machine) -> Option<String> {
    let booked = machine.host().booked();
    let most = Span(BOOKED.0 * u64::from(setup.host.cores));
    (booked > most).then(|| format!("{booked} to come"))
}

/// What a resource did is no more than the time that it was busy.
fn beyond_parts(before: &Account, after: &Account) -> Option<String> {
    let parts = |busy: &Busy| -> u64 { busy.parts.iter().map(|part| part.1.0).sum() };
    after.busy.iter().find_map(|now| {
        let earlier = before.busy.iter().find(|busy| busy.is_of(now));
        let spent = now.busy.0 - earlier.map_or(0, |busy| busy.busy.0);
        let told = parts(now) - earlier.map_or(0, parts);
        // Rounding, for each thread.
        let most = spent + spent / 1000 + 1000;
        (told > most).then(|| format!("{}: {told} ns of {spent}", now.name))
    })
}

fn beyond_time(before: &Account, after: &Account, more: Span) -> Option<String> {
    let passed = after.at.since(before.at) + BOOKED + more;
    after.busy.iter().find_map(|now| {
        let earlier = before.busy.iter().find(|busy| busy.is_of(now));
        let spent = now.busy.0 - earlier.map_or(0, |busy| busy.busy.0);
        let all = u128::from(passed.0) * u128::from(now.units.max(1));
        let over = now.kind != ResourceKind::Cpu && u128::from(spent) > all;
        over.then(|| format!("{}: {spent} ns of {all}", now.name))
    })
}

/// No more than was asked for, and as many as response times say, where nothing else is waited for.
fn not_in_flight(phase: &Phase, outcome: &PhaseOutcome) -> Option<String> {
    let most: u32 = phase.jobs.iter().map(|job| job.depth.max(1)).sum();
    let mean = outcome.mean_in_flight;
    (mean > f64::from(most) * 1.001).then(|| format!("{mean} of {most}"))
}
