//! What is done in the guest: the array built, written, and its members read underneath.
use super::Order;
use super::cases::Case;
use super::check::{Checked, Pattern, SECTOR, check};
use crate::exit::{Failure, MISSING, REFUSED, TRIAL_FAILED};
use crate::real::host_failure;
use raidlab_core::units::Sectors;
use raidlab_experiment::setup::ArrayLayout;
use raidlab_host::claim::{Claim, Right};
use raidlab_host::inventory::device_at;
use raidlab_host::journal::Journal;
use raidlab_host::loops::{LoopDisk, make_disks};
use raidlab_host::provision::{
    Built, Context, InitialSync, Options, build, claimed_member, free_arrays, plan,
};
use raidlab_io::observe::Roots;
use raidlab_layout::{Geometry, Layout};
use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Where disks and journal are; it goes with the guest.
const PLACE: &str = "/run/raidlab/maps";
/// Bytes of one write.
const BLOCK: usize = 1 << 20;

/// Loads what all cases need.
pub(super) fn prepare() -> Result<(), Failure> {
    let failed = raidlab_vm::guest::load(&["loop", "md_mod"]);
    match failed.into_iter().next() {
        Some(said) => Err(Failure::new(MISSING, said)),
        None => Ok(()),
    }
}

/// Builds a case, writes all of it, compares, and takes it apart.
pub(super) fn one(case: &Case, order: &Order, stop: &AtomicBool) -> Result<Checked, Failure> {
    let roots = Roots::system();
    let mut journal =
        Journal::begin(&Path::new(PLACE).join("journal"), "vm maps").map_err(of_host)?;
    let came = with_disks(case, order, stop, &roots, &mut journal);
    let report = journal.finish(&roots).map_err(of_host)?;
    let checked = came?;
    nothing_left(&report.left)?;
    Ok(checked)
}

fn of_host(error: raidlab_host::HostError) -> Failure {
    host_failure(&error)
}

fn nothing_left(left: &[String]) -> Result<(), Failure> {
    match left {
        [] => Ok(()),
        left => Err(trouble(format!(
            "not all could be undone: {}",
            left.join("; ")
        ))),
    }
}

fn trouble(message: impl Into<String>) -> Failure {
    Failure::new(TRIAL_FAILED, message)
}

fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let what = format!("cannot {what} {}", path.display());
    move |error| trouble(format!("{what}: {error}"))
}

/// A disk of the guest, with the file that it shows.
struct Disk {
    shown: LoopDisk,
    file: PathBuf,
}

fn with_disks(
    case: &Case,
    order: &Order,
    stop: &AtomicBool,
    roots: &Roots,
    journal: &mut Journal,
) -> Result<Checked, Failure> {
    let mut disks = Vec::new();
    for (number, size) in case.sizes.iter().enumerate() {
        // Disks of one directory are of one size.
        let parent = Path::new(PLACE).join(number.to_string());
        std::fs::create_dir_all(&parent).map_err(io("make", &parent))?;
        let made = make_disks(&parent, 1, *size, journal).map_err(of_host)?;
        let file = parent.join(format!("raidlab-loop-{}/disk0", journal.id()));
        disks.extend(made.into_iter().map(|shown| Disk {
            shown,
            file: file.clone(),
        }));
    }
    let claim = |disk: &Disk| {
        let device = device_at(roots, disk.shown.path())?;
        Claim::take(roots, &device, Right::Own(&disk.shown.own()))
    };
    let claims: Result<Vec<Claim>, _> = disks.iter().map(claim).collect();
    let mut claims = claims.map_err(of_host)?;
    let members: Vec<_> = claims
        .iter()
        .map(|claim| claimed_member(roots, claim))
        .collect();
    let options = Options {
        verify: false,
        mount: Path::new(PLACE).join("mount"),
        arrays: free_arrays(roots),
        initial_sync: InitialSync::Real,
        modelled: true,
        adds_to_ddf: false,
    };
    let planned = plan(&case.setup, &members, &options)
        .map_err(|error| Failure::bad_request(error.to_string()))?;
    let mut monitor = |_: &_| ControlFlow::Continue(());
    let mut context = Context {
        roots,
        cancel: stop,
        monitor: &mut monitor,
    };
    let built = build(&planned, &mut claims, journal, &mut context).map_err(of_host)?;
    let came = compared(case, order, roots, &built, &claims, &disks);
    let report = built.undo(&mut claims, journal, roots).map_err(of_host)?;
    let checked = came?;
    nothing_left(&report.left)?;
    Ok(checked)
}

fn compared(
    case: &Case,
    order: &Order,
    roots: &Roots,
    built: &Built,
    claims: &[Claim],
    disks: &[Disk],
) -> Result<Checked, Failure> {
    let device = built
        .device(claims)
        .ok_or_else(|| Failure::new(REFUSED, "the array that was built is not held"))?;
    let limit = device.identity().size / SECTOR as u64;
    let pattern = Pattern { seed: order.seed };
    write(device.path(), limit, pattern)?;
    let arrays = Arrays::read(roots, built, disks)?;
    let layout = arrays.layout(case, order)?;
    let areas: Vec<Vec<u8>> = arrays
        .parts()
        .enumerate()
        .map(|(role, (disk, part))| {
            let used = layout.used(raidlab_layout::Member::new(role));
            area(&disks[disk].file, part.offset, used)
        })
        .collect::<Result<_, _>>()?;
    let mut checked = check(&layout, limit, pattern, &areas);
    let roles: Vec<usize> = arrays.parts().map(|(disk, _)| disk).collect();
    if !roles.is_sorted() {
        // Members were named in the order of their roles.
        checked.wrong += 1;
        checked.roles = roles;
    }
    // What an outer array keeps for itself of the inner ones is not the layout's matter.
    let nested = matches!(layout, Layout::Nested(_));
    let capacity = layout.capacity().0;
    if capacity != limit && !(nested && capacity > limit) {
        checked.wrong += 1;
        let told = format!("the array has {limit} sectors, not {capacity}");
        checked.told.insert(0, told);
    }
    Ok(checked)
}

/// Writes every sector of the array, and has it all on the members.
fn write(path: &Path, limit: u64, pattern: Pattern) -> Result<(), Failure> {
    let failed = || io("write to", path);
    let mut file = File::options().write(true).open(path).map_err(failed())?;
    let mut block = vec![0; BLOCK];
    let sectors = (BLOCK / SECTOR) as u64;
    let mut lba = 0;
    while lba < limit {
        let count = sectors.min(limit - lba);
        let block = &mut block[..count as usize * SECTOR];
        for (number, sector) in (lba..).zip(block.chunks_exact_mut(SECTOR)) {
            pattern.fill(number, sector);
        }
        file.write_all(block).map_err(failed())?;
        lba += count;
    }
    file.sync_all().map_err(failed())
}

/// The data area of a member, read from the file that the disk shows: past every cache of the array.
fn area(file: &Path, offset: u64, used: Sectors) -> Result<Vec<u8>, Failure> {
    let failed = || io("read", file);
    let mut bytes = vec![0; used.0 as usize * SECTOR];
    let opened = File::open(file).map_err(failed())?;
    opened
        .read_exact_at(&mut bytes, offset * SECTOR as u64)
        .map_err(failed())?;
    Ok(bytes)
}

/// A member as md sees it: where its data begins and how much of it there is, in sectors.
#[derive(Clone, Copy)]
struct Part {
    /// Which of the devices that the array was made of, from 0.
    from: usize,
    offset: u64,
    size: u64,
}

/// An array that was built, with its members in the order of their roles.
struct Array {
    /// What it takes of each member; 0 where it takes all.
    each: u64,
    parts: Vec<Part>,
}

struct Arrays {
    /// Those whose members are the disks.
    inner: Vec<Array>,
    /// The one over them.
    outer: Option<Array>,
}

impl Arrays {
    fn read(roots: &Roots, built: &Built, disks: &[Disk]) -> Result<Self, Failure> {
        let mut names = disks
            .iter()
            .map(|disk| disk.shown.path())
            .filter_map(|path| path.file_name()?.to_str())
            .map(str::to_owned);
        let numbers = built.arrays();
        let mut inner = Vec::new();
        let mut outer = None;
        let mut below: Vec<String> = names.by_ref().collect();
        for number in &numbers {
            let directory = roots.block(&format!("md{number}")).join("md");
            let level = text(&directory.join("level"))?;
            // A container is no array: its volumes are.
            if !level.starts_with("raid") && level != "linear" {
                continue;
            }
            let (array, used) = Array::read(&directory, &below)?;
            match used {
                Some(count) => {
                    below.drain(..count);
                    inner.push(array);
                }
                None => {
                    let over = numbers.iter().map(|number| format!("md{number}"));
                    let over: Vec<String> = over.take(inner.len()).collect();
                    let (array, _) = Array::read(&directory, &over)?;
                    outer = Some(array);
                }
            }
        }
        if inner.is_empty() {
            return Err(trouble("no array was built"));
        }
        Ok(Self { inner, outer })
    }

    /// The members in the order of their roles, each with the number of its disk.
    fn parts(&self) -> impl Iterator<Item = (usize, Part)> {
        let mut base = 0;
        self.inner.iter().flat_map(move |array| {
            let first = base;
            base += array.parts.len();
            array
                .parts
                .iter()
                .map(move |part| (first + part.from, *part))
        })
    }

    /// The layout over what md takes of each member.
    fn layout(&self, case: &Case, order: &Order) -> Result<Layout, Failure> {
        let array = &case.setup.array;
        let ArrayLayout::Fixed(spec, _) = order.against.as_ref().unwrap_or(&array.layout) else {
            return Err(trouble("a layout without fixed places"));
        };
        let parts = self
            .inner
            .iter()
            .flat_map(|array| array.parts.iter().map(|part| (array.each, part)));
        let sizes = parts.map(|(each, part)| Sectors(if each > 0 { each } else { part.size }));
        let geometry = Geometry {
            sizes: sizes.collect(),
            chunk: array.chunk.map_or(Sectors(8), |chunk| chunk.to_sectors()),
            outer_chunk: None,
        };
        if let Some(outer) = &self.outer
            && let Some(part) = outer.parts.iter().find(|part| part.offset != 0)
        {
            let at = part.offset;
            return Err(trouble(format!(
                "the outer array begins at sector {at} of the inner ones"
            )));
        }
        if let Some(outer) = &self.outer
            && !outer.parts.is_sorted_by_key(|part| part.from)
        {
            return Err(trouble("the inner arrays have other roles than were given"));
        }
        spec.build(&geometry)
            .map_err(|error| trouble(error.to_string()))
    }
}

impl Array {
    /// An array by its directory in sysfs. `below`: names of devices that it may be on, in order; with how many of them it
    /// is on, or `None` when it is on others.
    fn read(directory: &Path, below: &[String]) -> Result<(Self, Option<usize>), Failure> {
        let number = |path: PathBuf| -> Result<u64, Failure> {
            let text = text(&path)?;
            text.parse()
                .map_err(|_| trouble(format!("{}: '{text}' is no number", path.display())))
        };
        let members = number(directory.join("raid_disks"))? as usize;
        let mut parts = Vec::new();
        for role in 0..members {
            let member = directory.join(format!("rd{role}"));
            let link = member.join("block");
            let device = std::fs::read_link(&link).map_err(io("read", &link))?;
            let name = device.file_name().and_then(|name| name.to_str());
            let place = below.iter().position(|below| Some(below.as_str()) == name);
            let Some(from) = place else {
                return Ok((Self { each: 0, parts }, None));
            };
            if from >= members {
                return Err(trouble(format!("role {role} is with another array's disk")));
            }
            parts.push(Part {
                from,
                offset: number(member.join("offset"))?,
                size: 2 * number(member.join("size"))?,
            });
        }
        let level = text(&directory.join("level"))?;
        let whole = matches!(level.as_str(), "linear" | "raid0");
        let each = match whole {
            true => 0,
            false => 2 * number(directory.join("component_size"))?,
        };
        Ok((Self { each, parts }, Some(members)))
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(io("read", path))?;
    Ok(text.trim().to_owned())
}
