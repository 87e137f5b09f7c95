//! `raidlab vm exec`: a program of this machine in a guest, whose disks and kernel it may ruin.
use super::guests::{self, BOOT, OFF};
use super::job::{Job, Program, Ran};
use super::view::Waiting;
use crate::args::ExecArgs;
use crate::commands::print;
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_vm::channel::Message;
use raidlab_vm::vm::Boot;
use raidlab_vm::{Flavour, Machine, Vm};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A guest that gives no sign of life for so long is given up.
const SILENCE: Duration = Duration::from_secs(120);

pub(super) fn run(cache: Option<&Path>, args: &ExecArgs) -> Result<Outcome, Failure> {
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let named = args.program.to_string_lossy().into_owned();
    let is_file = named.contains('/');
    if is_file && !args.program.is_file() {
        let message = format!("there is no program {named}");
        return Err(Failure::new(BAD_REQUEST, message));
    }
    let cache = guests::cache(cache)?;
    let kernel = guests::kernel(&cache, Flavour::Cloud)?;
    let mut also: Vec<&str> = args.with.iter().map(String::as_str).collect();
    also.push(&named);
    let image = guests::image(&cache, &kernel, &also, None)?;
    for name in &also {
        guests::needs(&image, name)?;
    }
    let runs = guests::runs()?;
    let name = args.program.file_name().unwrap_or_default();
    let mut words = vec![name.to_string_lossy().into_owned()];
    words.extend(args.arguments.iter().cloned());
    let job = Job::Program(Program {
        words,
        environment: args.env.clone(),
        modules: args.module.clone(),
    });
    let machine = Machine::virtual_time(guests::memory(args.memory, &image), Bytes(0));
    let boot = Boot {
        kernel: &kernel,
        image: &image,
        machine: &machine,
        person: false,
    };
    let waiting = Waiting::new(&format!("running {named} in a guest"));
    let vm = Vm::start(&boot, &runs).map_err(|error| guests::failure(&error))?;
    let ran = converse(vm, &job, args.limit.to_std(), &stop)?;
    drop(waiting);
    let Some(Ran { code, out, error }) = ran else {
        return Ok(Outcome::Interrupted);
    };
    print(&out)?;
    if !error.is_empty() {
        talk::note(error.trim_end());
    }
    match code {
        Some(0) => Ok(Outcome::Done),
        code => {
            let how = code.map_or("by a signal".to_owned(), |code| format!("with code {code}"));
            let message = format!("{named} ended {how} in the guest");
            Err(Failure::new(TRIAL_FAILED, message))
        }
    }
}

/// Gives the guest its job and waits for its last word; `None` when interrupted.
fn converse(mut vm: Vm, job: &Job, limit: Duration, stop: &Stop) -> Result<Option<Ran>, Failure> {
    let trouble = |trouble| guests::trouble(&trouble);
    if vm.hello(BOOT, &|| stop.asked()).map_err(trouble)?.is_none() {
        return Ok(None);
    }
    let job =
        serde_json::to_string(job).map_err(|error| Failure::new(MISSING, error.to_string()))?;
    vm.send(&Message::Job(job)).map_err(trouble)?;
    let begun = Instant::now();
    loop {
        if stop.asked() {
            return Ok(None);
        }
        match vm.receive(Duration::from_millis(50)).map_err(trouble)? {
            Some(Message::Done(number, text)) => {
                vm.send(&Message::Ack(number)).map_err(trouble)?;
                vm.finish(OFF).map_err(trouble)?;
                return serde_json::from_str(&text).map(Some).map_err(|error| {
                    Failure::new(TRIAL_FAILED, format!("the guest sent nonsense: {error}"))
                });
            }
            Some(Message::Failed(number, why)) => {
                let _ = vm.send(&Message::Ack(number));
                return Err(Failure::new(TRIAL_FAILED, format!("in the guest: {why}")));
            }
            _ if vm.silent() > SILENCE => return Err(trouble(vm.too_silent())),
            _ if begun.elapsed() > limit => return Err(trouble(vm.too_late(limit))),
            _ => {}
        }
    }
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
