//! Options that mean nothing where an experiment is carried out are refused: who gives one expects something of it.
use crate::args::{
    GuestTime, On, PlanArgs, RealArgs, ReferenceRunArgs, RunArgs, StudyOn, VmRunArgs,
};
use crate::exit::Failure;
use crate::real::driver::Driver;
use crate::real::early::Early;
use raidlab_core::units::GIB;

/// An option, whether it was given, and where it means something.
type Option = (&'static str, bool, &'static [On]);

/// Refuses what `raidlab run` would not heed.
///
/// # Errors
/// The first option that means nothing there.
pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    let here = [
        ("--with-sim", args.with_sim, &[On::Vm][..]),
        ("--jobs", args.jobs.is_some(), &[On::Sim, On::Vm]),
        (
            "--no-fast-forward",
            args.no_fast_forward,
            &[On::Sim, On::Vm],
        ),
    ];
    let all = of_real(&args.real)
        .into_iter()
        .chain(of_guests(&args.vm))
        .chain(here);
    refuse(all, args.on)
}

/// Refuses what `raidlab plan` would not heed: without `--on` it is the simulator's plan.
///
/// # Errors
/// The first option that means nothing there.
pub(super) fn plan(args: &PlanArgs) -> Result<(), Failure> {
    refuse(of_real(&args.real), args.on.unwrap_or(On::Sim))
}

/// Refuses what `raidlab reference run` would not heed.
///
/// # Errors
/// The first option that means nothing there.
pub(super) fn study(args: &ReferenceRunArgs) -> Result<(), Failure> {
    let here = [
        ("--driver tool", args.driver == Driver::Tool, &[On::Vm][..]),
        ("--fresh", args.fresh, &[On::Vm]),
        ("--store", args.store.store.is_some(), &[On::Vm]),
    ];
    let on = match args.on {
        StudyOn::Sim => On::Sim,
        StudyOn::Vm => On::Vm,
    };
    refuse(of_guests(&args.vm).into_iter().chain(here), on)
}

fn of_real(args: &RealArgs) -> [Option; 5] {
    [
        ("--loop-dir", args.loop_dir.is_some(), &[On::Host]),
        ("--loop-size", args.loop_size.0 != GIB, &[On::Host]),
        ("--yes", args.yes.is_some(), &[On::Host]),
        ("--assume-clean", args.assume_clean, &[On::Host]),
        (
            "--driver tool",
            args.driver == Driver::Tool,
            &[On::Host, On::Vm],
        ),
    ]
}

/// The place of the cache is left out: it may be set for all commands in the environment.
fn of_guests(args: &VmRunArgs) -> [Option; 4] {
    [
        ("--time real", args.time == GuestTime::Real, &[On::Vm]),
        ("--early", matches!(args.early, Early::Given(_)), &[On::Vm]),
        ("--sync", args.sync, &[On::Vm]),
        ("--fail", !args.fail.is_empty(), &[On::Vm]),
    ]
}

fn refuse(options: impl IntoIterator<Item = Option>, on: On) -> Result<(), Failure> {
    let unheard = options
        .into_iter()
        .find(|(_, given, places)| *given && !places.contains(&on));
    let Some((option, _, places)) = unheard else {
        return Ok(());
    };
    let places: Vec<String> = places
        .iter()
        .map(|on| format!("--on {}", name(*on)))
        .collect();
    let message = format!("{option} means nothing to --on {}", name(on));
    let remedy = match option {
        "--fail" => {
            "run it with --on vm, or give the array a state: state = \"degraded 1\"".to_owned()
        }
        "--assume-clean" if on == On::Vm => {
            "leave it out: guests take new arrays to agree unless --sync is given".to_owned()
        }
        _ => format!("leave it out, or give {} with it", places.join(" or ")),
    };
    Err(Failure::bad_request(message).remedy(remedy))
}

const fn name(on: On) -> &'static str {
    match on {
        On::Sim => "sim",
        On::Vm => "vm",
        On::Host => "host",
    }
}
