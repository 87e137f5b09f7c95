//! `raidlab doctor`: is this machine fit to measure, and what is under a path?
use super::{print_folded, print_json};
use crate::args::DoctorArgs;
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome};
use crate::patience;
use raidlab_core::units::Bytes;
use raidlab_io::observe::environment::{DeviceRecord, Environment, TargetRecord};
use raidlab_io::observe::fitness::{Audit, Intent, audit, observe};
use raidlab_io::observe::{Backing, Resolved, Roots, resolve};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(args: &DoctorArgs) -> Result<Outcome, Failure> {
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() {
        &here[..]
    } else {
        &args.paths
    };
    let mut all = Vec::new();
    for path in paths {
        let (environment, resolved, audit) = patience::asking(path, || look(path))?;
        if args.json {
            all.push(json!({ "environment": environment, "warnings": audit.warnings, "fit": audit.is_clean() }));
        } else {
            print_folded(&text(&environment, &resolved, &audit))?;
        }
    }
    if args.json {
        print_json(&all)?;
    }
    Ok(Outcome::Done)
}

fn look(path: &Path) -> Result<(Environment, Resolved, Audit), Failure> {
    let roots = Roots::system();
    let resolved =
        resolve(&roots, path).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    let environment = Environment::capture(&roots, Some(&resolved))
        .map_err(|error| Failure::from_error(MISSING, &error))?;
    let intent = Intent {
        needed: 0,
        writes: false,
        sample: Duration::from_secs(1),
    };
    let seen =
        observe(&roots, &resolved, intent).map_err(|error| Failure::from_error(MISSING, &error))?;
    Ok((environment, resolved, audit(&seen)))
}

fn text(environment: &Environment, resolved: &Resolved, audit: &Audit) -> String {
    let mut out = String::new();
    let cpu = &environment.cpu;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let _ = writeln!(
        out,
        "machine   {}",
        environment
            .virtualisation
            .as_deref()
            .unwrap_or("no sign of a hypervisor")
    );
    let _ = writeln!(
        out,
        "kernel    {}",
        environment.kernel.release.as_deref().unwrap_or("unknown")
    );
    let processors = cpu.online.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let _ = writeln!(
        out,
        "cpu       {processors} x {}",
        cpu.model.as_deref().unwrap_or("unknown")
    );
    let _ = writeln!(out, "memory    {:.1} GiB", gib(environment.memory.total));
    let _ = writeln!(out, "path      {}", resolved.path.display());
    if let Some(target) = &environment.target {
        under(&mut out, target);
    }
    if let Backing::None { reason, .. } = &resolved.backing {
        let _ = writeln!(out, "device    {reason}");
    }
    if audit.is_clean() {
        out.push_str("\nfit to measure: nothing was found that would spoil a figure\n");
    } else {
        out.push_str("\nbefore you measure:\n");
        for warning in &audit.warnings {
            let _ = writeln!(out, "  - {}\n    {}", warning.text, warning.remedy);
        }
    }
    out
}

fn under(out: &mut String, target: &TargetRecord) {
    if let Some(mount) = &target.mount {
        let _ = writeln!(
            out,
            "mount     {} on {} ({})",
            mount.fs_type,
            mount.point.display(),
            mount.options.join(",")
        );
    }
    if let Some(space) = target
        .filesystem
        .as_ref()
        .and_then(|filesystem| filesystem.space)
    {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let _ = writeln!(
            out,
            "space     {:.1} GiB of {:.1} GiB free",
            gib(space.available),
            gib(space.total)
        );
    }
    for record in &target.devices {
        device(out, record);
    }
}

/// One line for a device of the stack, with what matters for its speed.
fn device(out: &mut String, record: &DeviceRecord) {
    let queue = &record.queue;
    let parts = [
        record.size.map(|size| Bytes(size).to_string()),
        record.transport.clone(),
        record.model.clone(),
        record
            .serial
            .as_ref()
            .map(|serial| format!("serial {serial}")),
        queue
            .rotational
            .map(|turns| if turns { "rotating" } else { "not rotating" }.to_owned()),
        queue
            .logical_sector
            .zip(queue.physical_sector)
            .map(|(l, p)| format!("sectors {l}/{p}")),
        queue
            .scheduler
            .as_ref()
            .map(|name| format!("scheduler {name}")),
        queue
            .read_ahead_kib
            .map(|kib| format!("read-ahead {kib} KiB")),
        queue.write_cache.clone(),
        record.md.as_ref().and_then(|md| md.level.clone()),
        record
            .md
            .as_ref()
            .and_then(|md| md.sync_action.clone())
            .filter(|action| action != "idle"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let _ = writeln!(out, "device    {}: {}", record.name, parts.join(", "));
}
