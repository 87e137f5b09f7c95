//! `raidlab disk serve`: modelled disks as block devices, for anybody who speaks NBD.
pub(crate) mod told;

use super::{catalogue, topology};
use crate::args::ServeArgs;
use crate::commands::{files, output, print, print_json};
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome, REFUSED};
use crate::real::death::Death;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::units::SECTOR;
use raidlab_nbd::server::{Disk, ListenError, Listener, Options, Running, Server};
use raidlab_nbd::store::{Backing, Budget, Sparse, Store};
use raidlab_sim::catalogue::Model;
use raidlab_sim::disk::Fault;
use raidlab_sim::fabric::{Fabric, FabricSpec, PortInfo};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use told::{Address, Place};

pub(super) fn run(args: &ServeArgs) -> Result<Outcome, Failure> {
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let (mut spec, sectors) = fabric(args)?;
    spec.write_cache_off |= args.no_write_cache;
    let fabric =
        Fabric::new(&spec, args.seed).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    let budget = Budget::new(args.memory.map_or_else(half_of_memory, |bytes| bytes.0));
    let disks = disks(args, &spec, &sectors, &fabric, &budget)?;
    let deaths = deaths(args, &spec)?;
    let options = Options {
        tolerance: args.tolerance,
        early: args.early,
        ..Options::default()
    };
    let mut server = Server::new(fabric, disks, options);
    let (places, made) = listen(args, &spec, &mut server)?;
    let running = server
        .start()
        .map_err(|error| Failure::new(MISSING, format!("cannot start the server: {error}")))?;
    if args.json {
        print_json(&told::places_json(&places))?;
    } else {
        output::print_document(&told::places(&places))?;
        talk::note("serving until Ctrl-C");
    }
    let ended = serve(running, &stop, deaths);
    drop(made);
    let report = ended.ok_or_else(|| Failure::new(MISSING, "the server of the disks has died"))?;
    if args.json {
        print_json(&told::report_json(&report))?;
    } else {
        print(&told::report(&report))?;
    }
    if !report.scheduled {
        talk::note(
            "the server had no real-time scheduling (it needs root or CAP_SYS_NICE): replies may be later \
             on a busy machine",
        );
    }
    Ok(Outcome::Done)
}

/// Disks of the fabric that are to fail, each with its time.
fn deaths(args: &ServeArgs, spec: &FabricSpec) -> Result<Vec<(Duration, u32, String)>, Failure> {
    let one = |death: &Death| {
        let place = spec.disks.iter().position(|slot| slot.name == death.disk);
        let place = place.ok_or_else(|| {
            let names: Vec<&str> = spec.disks.iter().map(|slot| slot.name.as_str()).collect();
            Failure::bad_request(format!("there is no disk '{}' that could fail", death.disk))
                .remedy(format!("the disks are {}", names.join(", ")))
        })?;
        Ok((death.after.to_std(), place as u32, death.disk.clone()))
    };
    let mut all: Vec<_> = args.fail.iter().map(one).collect::<Result<_, _>>()?;
    all.sort();
    Ok(all)
}

/// Waits for Ctrl-C or its like, and lets disks fail meanwhile, the first of them first.
fn serve(
    running: Running,
    stop: &Stop,
    deaths: Vec<(Duration, u32, String)>,
) -> Option<raidlab_nbd::server::Report> {
    let begun = Instant::now();
    let mut deaths = deaths.into_iter().peekable();
    while !stop.asked() && running.is_running() {
        while let Some((_, disk, name)) = deaths.next_if(|(after, ..)| *after <= begun.elapsed()) {
            running.inject(disk, Fault::Dead);
            talk::note(&format!("{name} has failed, as asked for"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    running.stop()
}

/// The disks behind their controllers, and the bytes of each one's logical sectors.
fn fabric(args: &ServeArgs) -> Result<(FabricSpec, Vec<u32>), Failure> {
    if let Some(path) = args.topology.as_deref().filter(|t| topology::is_file(t)) {
        if !args.models.is_empty() {
            return Err(Failure::bad_request(
                "the disks of an experiment's file are served as they are, without others",
            )
            .remedy("leave the models out, or give a topology such as pata:1+1"));
        }
        return topology::of_experiment(Path::new(path));
    }
    let mut models: Vec<Model> = Vec::new();
    for name in &args.models {
        let model = catalogue::disk(name)?;
        models.extend((0..args.count).map(|_| model.clone()));
    }
    if models.is_empty() {
        return Err(Failure::bad_request("no disk is named")
            .remedy("name one of 'raidlab disk list', or an experiment's file with --topology"));
    }
    let sectors = vec![SECTOR as u32; models.len()];
    Ok((
        topology::fabric(&models, args.topology.as_deref())?,
        sectors,
    ))
}

/// Half of what this machine has: content grows as it is written, and the rest is for others.
fn half_of_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib * 512)
}

fn disks(
    args: &ServeArgs,
    spec: &FabricSpec,
    sectors: &[u32],
    fabric: &Fabric,
    budget: &Budget,
) -> Result<Vec<Disk>, Failure> {
    if let Some(directory) = &args.backing {
        files::directory(directory)?;
    }
    let disk = |(number, port): (usize, &PortInfo)| {
        let bytes = port.sectors * SECTOR;
        let of_disk = port.disk.and_then(|disk| sectors.get(disk as usize));
        let sector = of_disk.copied().unwrap_or(SECTOR as u32);
        let size = match args.size {
            Some(size) if size.0 > bytes => {
                return Err(Failure::bad_request(format!(
                    "{} has {bytes} bytes, and {} are to be shown",
                    port.name, size.0
                ))
                .remedy("a smaller --size shows the beginning of each disk"));
            }
            Some(size) => size.0,
            None => bytes,
        };
        let size = size - size % u64::from(sector);
        if size == 0 {
            return Err(Failure::bad_request("--size is less than a sector"));
        }
        let store = match &args.backing {
            None => Store::Sparse(Sparse::new(budget)),
            Some(directory) => {
                let path = directory.join(format!("{}.img", file_name(&port.name)));
                Store::Backing(Backing::open(&path, size).map_err(|error| {
                    Failure::new(REFUSED, format!("cannot use {}: {error}", path.display()))
                })?)
            }
        };
        let description = port
            .disk
            .map(|disk| spec.disks[disk as usize].model.name().to_owned());
        let description = description.unwrap_or_else(|| "a volume".to_owned());
        Ok(Disk::new(number as u32, port, &description, size, store).with_sector(sector))
    };
    fabric.ports().iter().enumerate().map(disk).collect()
}

/// A label as a file's name.
fn file_name(label: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-_.".contains(c) => c,
        _ => '-',
    };
    label.chars().map(plain).collect()
}

/// A directory that is removed in the end, if it was made here and is empty.
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // With something in it, it is left alone.
            let _ = std::fs::remove_dir(path);
        }
    }
}

fn listen(
    args: &ServeArgs,
    spec: &FabricSpec,
    server: &mut Server,
) -> Result<(Vec<Place>, Made), Failure> {
    let exports = server.exports();
    let place = |number: usize, address: Address| {
        let slot = spec.disks.get(number);
        Place::new(&exports[number], slot, &spec.controllers, address)
    };
    if let Some(address) = args.tcp {
        let listener = Listener::tcp(address, exports.len()).map_err(|e| refused(&e))?;
        let bound: SocketAddr = listener.address().unwrap_or(address);
        server.listen(listener);
        let places = (0..exports.len()).map(|number| place(number, Address::Tcp(bound)));
        return Ok((places.collect(), Made(None)));
    }
    let directory = args.unix.as_deref().unwrap_or_else(|| Path::new("."));
    let made = own_directory(directory)?;
    let mut places = Vec::new();
    for (number, export) in exports.iter().enumerate() {
        let path = directory.join(format!("{}.sock", file_name(&export.name)));
        server.listen(Listener::unix(&path, number).map_err(|error| refused(&error))?);
        let absolute = std::path::absolute(&path).unwrap_or(path);
        places.push(place(number, Address::Unix(absolute)));
    }
    Ok((places, made))
}

/// The directory of the sockets, made if it is not there. What it is to be in must be there: more than one directory
/// would not be taken away in the end, and is more likely a slip of the pen.
fn own_directory(directory: &Path) -> Result<Made, Failure> {
    if directory.exists() {
        files::directory(directory)?;
        return Ok(Made(None));
    }
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.exists() => {
            let message = format!(
                "cannot make {}: there is no directory {}",
                directory.display(),
                parent.display()
            );
            Err(Failure::new(MISSING, message)
                .remedy("make it first, or name a directory in one that exists"))
        }
        _ => {
            files::directory(directory)?;
            Ok(Made(Some(directory.to_owned())))
        }
    }
}

fn refused(error: &ListenError) -> Failure {
    let (code, remedy) = match error {
        ListenError::InUse(_) => (REFUSED, "stop it first, or choose another place"),
        ListenError::NotASocket(_) => (REFUSED, "choose another directory, or move it away"),
        ListenError::NotLoopback(_) => (
            REFUSED,
            "use 127.0.0.1 or [::1]; from elsewhere, through ssh -L",
        ),
        ListenError::TooLong(_) => (BAD_REQUEST, "choose a directory with a shorter path"),
        ListenError::Io { .. } => return Failure::from_error(MISSING, error),
    };
    Failure::from_error(code, error).remedy(remedy)
}
