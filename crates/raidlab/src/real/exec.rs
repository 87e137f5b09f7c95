//! `raidlab vm exec`: a program of this machine in a guest, whose disks and kernel it may ruin.
use super::guests::{self, Patience};
use super::job::{Job, Program, Ran};
use super::view::Waiting;
use super::zfs;
use crate::args::ExecArgs;
use crate::commands::print;
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_vm::vm::Boot;
use raidlab_vm::{Flavour, Image, Kernel, Machine, Vm};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A guest that gives no sign of life for so long is given up.
const SILENCE: Duration = Duration::from_secs(120);

pub(super) fn run(cache: Option<&Path>, args: &ExecArgs) -> Result<Outcome, Failure> {
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let named = args.program.to_string_lossy().into_owned();
    if named.contains('/') && !args.program.is_file() {
        let message = format!("there is no program {named}");
        return Err(Failure::new(BAD_REQUEST, message));
    }
    let (kernel, image) = made(cache, args, &named)?;
    let runs = guests::runs()?;
    let job = Job::Program(program(args));
    let machine = Machine::virtual_time(guests::memory(args.memory, &image), Bytes(0));
    let boot = Boot {
        kernel: &kernel,
        image: &image,
        machine: &machine,
        person: false,
    };
    let waiting = Waiting::new(&format!("running {named} in a guest"));
    let vm = Vm::start(&boot, &runs).map_err(|error| guests::failure(&error))?;
    let patience = Patience {
        silence: SILENCE,
        limit: Some(args.limit.to_std()),
    };
    let word = guests::have_done(vm, &job, patience, &stop, &mut |_| Ok(()))?;
    drop(waiting);
    match word {
        None => Ok(Outcome::Interrupted),
        Some(word) => told(&named, &guests::read(&word)?),
    }
}

/// The kernel, and an image with the programs that are named.
fn made(cache: Option<&Path>, args: &ExecArgs, named: &str) -> Result<(Kernel, Image), Failure> {
    let cache = guests::cache(cache)?;
    let kernel = guests::kernel(&cache, Flavour::Cloud)?;
    let zfs = match args.zfs {
        true => zfs::of_kernel(&cache, &kernel, Flavour::Cloud)?,
        false => None,
    };
    let mut also: Vec<&str> = args.with.iter().map(String::as_str).collect();
    also.push(named);
    let image = guests::image_with(&cache, &kernel, &also, &args.module, zfs.as_ref())?;
    let missing = |name: &&String| {
        image
            .content
            .no_modules
            .contains(&raidlab_vm::modules::plain(name))
    };
    if let Some(name) = args.module.iter().find(missing) {
        let message = format!("the guest's kernel has no module '{name}'");
        return Err(Failure::new(BAD_REQUEST, message));
    }
    for name in &also {
        guests::needs(&image, name)?;
    }
    Ok((kernel, image))
}

/// What the guest is asked to run.
fn program(args: &ExecArgs) -> Program {
    let name = args.program.file_name().unwrap_or_default();
    let mut words = vec![name.to_string_lossy().into_owned()];
    words.extend(args.arguments.iter().cloned());
    // Nothing asks the kernel for it: zpool does so for a person at a terminal alone.
    let of_zfs = args.zfs.then(|| "zfs".to_owned());
    Program {
        words,
        environment: args.env.clone(),
        modules: args.module.iter().cloned().chain(of_zfs).collect(),
    }
}

/// What it wrote comes here; that it ended well is done.
fn told(named: &str, ran: &Ran) -> Result<Outcome, Failure> {
    print(&ran.out)?;
    if !ran.error.is_empty() {
        talk::note(ran.error.trim_end());
    }
    let how = match ran.code {
        Some(0) => return Ok(Outcome::Done),
        Some(code) => format!("with code {code}"),
        None => "by a signal".to_owned(),
    };
    let message = format!("{named} ended {how} in the guest");
    Err(Failure::new(TRIAL_FAILED, message))
}

/// In the guest: runs it to its end.
pub(super) fn carry_out(program: &Program) -> Result<Ran, String> {
    let modules: Vec<&str> = program.modules.iter().map(String::as_str).collect();
    if let Some(said) = raidlab_vm::guest::load(&modules).into_iter().next() {
        return Err(said);
    }
    let Some((name, arguments)) = program.words.split_first() else {
        return Err("no program is named".to_owned());
    };
    let output = Command::new(name)
        .args(arguments)
        .env_remove(raidlab_vm::guest::AGENT)
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    Ok(Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
