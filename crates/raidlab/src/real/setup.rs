//! `raidlab vm setup`: what a guest is made of, and whether it boots.
use super::guests::{self, Patience};
use super::job::{Job, Wrong};
use super::view::Waiting;
use super::zfs;
use crate::args::{Misbehave, SetupArgs};
use crate::commands::{output, print_json};
use crate::exit::{Failure, MISSING, Outcome};
use crate::predict::told;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_results::report::document::{Block, Cell, Column, Document, Table};
use raidlab_vm::channel::Hello;
use raidlab_vm::image::{Content, EXTRA, TOOLS};
use raidlab_vm::vm::Boot;
use raidlab_vm::{Cache, Image, Kernel, Machine, Vm, Zfs};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory of the guest that is booted for a test.
const MEMORY: Bytes = Bytes::mib(512);
/// A guest that says nothing for so long is given up; for a test that it is noticed, sooner.
const SILENCE: Duration = Duration::from_secs(60);

/// What a boot took.
struct Booted {
    hello: Hello,
    /// Until the first word, by this machine's clock.
    after: Duration,
}

pub(super) fn run(cache: Option<&Path>, args: &SetupArgs) -> Result<Outcome, Failure> {
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let cache = guests::cache(cache)?;
    let kernel = kernel(&cache, args)?;
    let zfs = match args.zfs {
        false => None,
        true => match zfs::built(&cache, &kernel, args.refresh, &stop)? {
            Some(zfs) => Some(zfs),
            None => return Ok(Outcome::Interrupted),
        },
    };
    let image = guests::image(&cache, &kernel, &["busybox"], zfs.as_ref())?;
    let booted = if args.no_boot {
        None
    } else {
        match boot(&kernel, &image, args.misbehave, &stop)? {
            Some(booted) => Some(booted),
            None => return Ok(Outcome::Interrupted),
        }
    };
    if args.json {
        print_json(&as_json(&kernel, zfs.as_ref(), &image, booted.as_ref()))?;
    } else {
        output::print_document(&document(&kernel, zfs.as_ref(), &image, booted.as_ref()))?;
    }
    Ok(Outcome::Done)
}

fn kernel(cache: &Cache, args: &SetupArgs) -> Result<Kernel, Failure> {
    let flavour = args.kernel.into();
    let found = match &args.package {
        Some(deb) => Kernel::from_package(cache, flavour, deb),
        None if args.refresh => Kernel::fetch(cache, flavour, &mut talk::note),
        None => Kernel::find(cache, flavour, &mut talk::note),
    };
    found.map_err(|error| guests::failure(&error))
}

/// Boots, waits for the guest's first word, and lets it end; `None` when interrupted.
fn boot(
    kernel: &Kernel,
    image: &Image,
    misbehave: Option<Misbehave>,
    stop: &Stop,
) -> Result<Option<Booted>, Failure> {
    let runs = guests::runs()?;
    let _waiting = Waiting::new("booting the guest");
    let machine = Machine::virtual_time(memory(image), Bytes(0));
    let begun = Instant::now();
    let boot = Boot {
        kernel,
        image,
        machine: &machine,
        person: false,
    };
    let mut vm = Vm::start(&boot, &runs).map_err(|error| guests::failure(&error))?;
    let Some(hello) = guests::hello(&mut vm, stop)? else {
        return Ok(None);
    };
    let after = begun.elapsed();
    let (job, silence) = asked(misbehave);
    let patience = Patience {
        silence,
        limit: None,
    };
    let word = guests::hear(vm, &job, patience, stop, &mut |_| Ok(()))?;
    Ok(word.map(|_| Booted { hello, after }))
}

/// What the guest is to do, and how long it may say nothing.
fn asked(misbehave: Option<Misbehave>) -> (Job, Duration) {
    let Some(how) = misbehave else {
        return (Job::Greet, SILENCE);
    };
    let silence = match how {
        Misbehave::Hang => SILENCE / 10,
        // A guest that has no memory left says nothing for a while before its kernel does something about it.
        Misbehave::Panic | Misbehave::Memory => 3 * SILENCE,
    };
    (Job::Misbehave { how: how.into() }, silence)
}

impl From<Misbehave> for Wrong {
    fn from(how: Misbehave) -> Self {
        match how {
            Misbehave::Panic => Self::Panic,
            Misbehave::Hang => Self::Hang,
            Misbehave::Memory => Self::Memory,
        }
    }
}

/// Memory of a guest with this image: what is left of it is the same for all.
pub(super) fn memory(image: &Image) -> Bytes {
    guests::memory(MEMORY, image)
}

fn as_json(
    kernel: &Kernel,
    zfs: Option<&Zfs>,
    image: &Image,
    booted: Option<&Booted>,
) -> serde_json::Value {
    let missing = image.content.missing.iter();
    json!({
        "kernel": kernel,
        "zfs": zfs,
        "image": {
            "path": image.path,
            "sha256": image.sha256,
            "bytes": image.bytes,
            "programs": image.content.programs,
            "missing": missing.map(|missing| json!({ "program": missing.name, "package": missing.package })).collect::<Vec<_>>(),
            "modules": image.content.modules,
            "libraries": image.content.libraries,
        },
        "boot": booted.map(|b| json!({
            "kernel": b.hello.kernel,
            "real_seconds": b.after.as_secs_f64(),
            "guest_seconds": b.hello.uptime_ns as f64 / 1e9,
            "guest_memory": b.hello.memory,
        })),
    })
}

fn document(
    kernel: &Kernel,
    zfs: Option<&Zfs>,
    image: &Image,
    booted: Option<&Booted>,
) -> Document {
    let mut document = Document::new("The guest");
    document
        .blocks
        .push(Block::Table(parts(kernel, zfs, image, booted)));
    document.blocks.push(Block::Table(programs(&image.content)));
    document
}

/// What the guest is made of.
fn parts(kernel: &Kernel, zfs: Option<&Zfs>, image: &Image, booted: Option<&Booted>) -> Table {
    let mut lines = of_kernel(kernel);
    lines.extend(of_image(image));
    lines.extend(zfs.map(of_zfs));
    lines.push(("boot", of_boot(booted)));
    let mut table = Table::new(
        "guest",
        "What it is made of",
        vec![Column::text(""), Column::text("")],
    );
    for (name, text) in lines {
        table.rows.push(vec![Cell::text(name), Cell::text(text)]);
    }
    table
}

fn of_kernel(kernel: &Kernel) -> Vec<(&'static str, String)> {
    let mut lines = vec![("kernel", kernel.describe())];
    if let Some(package) = &kernel.package {
        let told = format!(
            "{} {}, SHA-256 {}",
            package.name, package.version, package.sha256
        );
        lines.push(("package", told));
    }
    let file = kernel.vmlinuz.display();
    lines.push(("its file", format!("{file}, SHA-256 {}", kernel.sha256)));
    lines
}

fn of_image(image: &Image) -> [(&'static str, String); 2] {
    let content = &image.content;
    let file = format!(
        "{}, {:.1} MB, SHA-256 {}",
        image.path.display(),
        image.bytes as f64 / 1e6,
        image.sha256
    );
    let inside = format!(
        "{} programs, {} libraries, {} kernel modules",
        content.programs.len(),
        content.libraries,
        content.modules
    );
    [("image", file), ("in it", inside)]
}

fn of_zfs(zfs: &Zfs) -> (&'static str, String) {
    let built = format!(
        "{} for {}, built here in {}; {}",
        zfs.version,
        zfs.release,
        told(zfs.seconds),
        zfs.modules.display()
    );
    ("ZFS", built)
}

fn of_boot(booted: Option<&Booted>) -> String {
    booted.map_or_else(
        || "not tried".to_owned(),
        |booted| {
            format!(
                "says hello after {:.1} s, {:.1} s by its own clock",
                booted.after.as_secs_f64(),
                booted.hello.uptime_ns as f64 / 1e9
            )
        },
    )
}

/// The programs a guest may have, and whether this one has them.
fn programs(content: &Content) -> Table {
    let columns = vec![
        Column::text("program"),
        Column::text("what it is for"),
        Column::text("here"),
    ];
    let mut table = Table::new("programs", "Programs", columns);
    for tool in TOOLS.iter().chain(&EXTRA) {
        let missing = content
            .missing
            .iter()
            .any(|missing| missing.name == tool.name);
        let there = content.programs.iter().any(|name| name == tool.name);
        let here = match (there, missing) {
            (true, _) => "yes".to_owned(),
            (false, true) => format!("no; it is in the package {}", tool.package),
            (false, false) => "in images that need it".to_owned(),
        };
        table.rows.push(vec![
            Cell::text(tool.name),
            Cell::text(tool.what),
            Cell::text(here),
        ]);
    }
    table
}
