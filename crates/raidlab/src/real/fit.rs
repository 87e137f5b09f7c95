//! What of an experiment a guest can be given: sizes of disks and memory, or why it cannot.
use super::driver::Driver;
use crate::args::{GuestTime, RunArgs};
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::hardware::Disk;
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_experiment::setup::{Array, ArrayState, Engine};
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::provision::MemberDevice;
use raidlab_io::observe::Roots;
use raidlab_nbd::guest::Shown;
use raidlab_sim::machine::RunError;
use raidlab_vm::Image;

/// What md and partitions keep of a member beside the data that is asked for.
const BESIDE: u64 = 160 << 20;
/// The share of this machine's free memory that the content of disks may come to.
const SHARE: f64 = 0.7;

/// Sizes of a cell's disks in bytes, in the order of its members: what is used of each, or all of it. Arrays that
/// are told how much of each member to use keep their own description beside it; the others take a disk whole.
pub(super) fn sizes(experiment: &Experiment, cell: &Cell) -> Vec<u64> {
    let array = &cell.setup.array;
    let level = array.layout.level();
    let whole =
        ["single", "linear", "jbod"].contains(&level.as_str()) || level.starts_with("raid0");
    let beside = if array.engine == Engine::Md && !whole {
        BESIDE
    } else {
        0
    };
    let size = |name: &String| {
        let has = experiment.disk(name).and_then(|disk| disk.capacity);
        let has = has.map_or(u64::MAX, |capacity| capacity.0 - start(cell));
        let used = array.member_size.map_or(has, |used| used.0 + beside);
        used.min(has).next_multiple_of(1 << 20).min(has)
    };
    array.members.iter().map(size).collect()
}

/// Where on its disks what a cell uses begins: at their first byte, as guests have no partitions, unless it is said.
fn start(cell: &Cell) -> u64 {
    cell.setup.array.member_start.unwrap_or_default().0
}

/// What a guest is shown of a cell's disks, in the order of its members.
pub(super) fn shown(experiment: &Experiment, cell: &Cell) -> Vec<Shown> {
    let members = cell.setup.array.members.iter();
    let pages = has_stripe_cache(&cell.setup.array);
    let disks = sizes(experiment, cell).into_iter().zip(members);
    let disks = disks.map(|(bytes, name)| Shown {
        start: start(cell),
        bytes,
        sector: sector(experiment, name),
        unlike: cell.setup.array.state == ArrayState::InitialSync,
        pages,
    });
    disks.collect()
}

/// Whether md keeps stripes of single pages, those of parity levels or of parts that have one.
fn has_stripe_cache(array: &Array) -> bool {
    let level = array.layout.level();
    array.engine == Engine::Md
        && ["raid4", "raid5", "raid6"]
            .iter()
            .any(|l| level.starts_with(l))
}

/// Bytes of a disk's logical sectors.
pub(super) fn sector(experiment: &Experiment, disk: &str) -> u32 {
    let sector = experiment.disk(disk).map(Disk::logical_sector);
    sector.map_or(SECTOR as u32, |sector| sector.0 as u32)
}

/// Bytes of the largest logical sectors among devices; those of devices that are yet to come are not known.
pub(super) fn largest_sector(devices: &[MemberDevice]) -> u32 {
    let roots = Roots::system();
    let sector = |device: &MemberDevice| {
        let file = roots
            .block(&device.identity.name)
            .join("queue/logical_block_size");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    devices.iter().filter_map(sector).max().unwrap_or(0)
}

/// Bytes of memory that the disks of any cell need.
pub(super) fn store(experiment: &Experiment) -> Bytes {
    let of = |cell: &Cell| {
        sizes(experiment, cell)
            .iter()
            .fold(0_u64, |a, b| a.saturating_add(*b))
    };
    let most = experiment.cells.iter().map(of).max().unwrap_or(0);
    Bytes(most.saturating_add((1 << 20) - 1) >> 20 << 20)
}

/// Bytes of this machine's memory that the content of disks may take.
pub(super) fn room() -> u64 {
    (available() as f64 * SHARE) as u64
}

/// Whether guests can carry it out.
///
/// # Errors
/// What is in the way, with the cell.
pub(super) fn check(experiment: &Experiment, time: GuestTime) -> Result<(), Failure> {
    for cell in &experiment.cells {
        let members = cell.setup.array.members.iter();
        let sectors = members.map(|name| sector(experiment, name));
        direct_calls(cell, sectors.max().unwrap_or(SECTOR as u32))?;
        something_allocated(cell)?;
        if cell.setup.array.engine == Engine::Controller {
            let message = format!(
                "{}: a controller's own RAID has no kernel to run it",
                cell.label
            );
            return Err(Failure::new(BAD_REQUEST, message)
                .remedy("leave the cell out ([[exclude]]), or predict it with --on sim"));
        }
        if time == GuestTime::Real && compares(&cell.setup.array) {
            let message = format!(
                "{}: what the initial sync of {} writes is what does not agree, and the disks of a guest in real time hold zeroes, \
                 which do",
                cell.label, cell.setup.array.layout
            );
            return Err(Failure::new(BAD_REQUEST, message)
                .remedy("leave --time real out, or predict it with --on sim"));
        }
        if time == GuestTime::Real && start(cell) > 0 {
            let message = format!(
                "{}: 'member-start' is a place on a modelled disk, and those of a guest in real time are files",
                cell.label
            );
            return Err(Failure::new(BAD_REQUEST, message)
                .remedy("leave --time real out, or predict it with --on sim"));
        }
    }
    if time == GuestTime::Real {
        return Ok(());
    }
    let (store, room) = (store(experiment), room());
    if store.0 <= room {
        return Ok(());
    }
    let message = format!(
        "the disks of a cell hold {store} together, and their content is kept in memory, of which {} can be spared",
        Bytes(room >> 20 << 20)
    );
    Err(Failure::new(MISSING, message)
        .remedy("say in [array] how much of each disk is used: member-size = \"1GiB\""))
}

/// Whether an array is in an initial sync that depends on what is on its members: that of raid1 copies, and that of raid4 and
/// raid5 fills the last one, whatever is there.
fn compares(array: &Array) -> bool {
    let level = array.layout.level();
    array.state == ArrayState::InitialSync
        && (level.contains('6') || (level == "raid10" && !array.layout.is_nested()))
}

/// Whether direct calls of a cell's profile fit where they go: each is a whole number of the members' logical sectors, which
/// are of `sector` bytes at the most. What the file system wants was looked at when the file was read.
///
/// # Errors
/// What does not fit, with the cell.
pub(super) fn direct_calls(cell: &Cell, sector: u32) -> Result<(), Failure> {
    let setup = &cell.setup;
    // Whatever else is the matter, memory and room among it, is known better when it is built.
    if setup.profile.plan(&setup.context(SECTOR as u32)).is_err() {
        return Ok(());
    }
    match setup.profile.plan(&setup.context(sector)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("cell '{}': {error}", cell.label);
            Err(Failure::new(BAD_REQUEST, message))
        }
    }
}

/// Whether anything lies in an array whose new members get what is in use, and no more.
///
/// # Errors
/// That nothing does, with the cell.
pub(super) fn something_allocated(cell: &Cell) -> Result<(), Failure> {
    let (setup, array) = (&cell.setup, &cell.setup.array);
    let by_use = matches!(array.engine, Engine::Btrfs | Engine::Zfs);
    if !by_use || !matches!(array.state, ArrayState::Rebuilding(_)) {
        return Ok(());
    }
    let plan = setup.profile.plan(&setup.context(SECTOR as u32));
    if plan.is_ok_and(|plan| plan.allocated(array.allocated).0 == 0) {
        let message = format!("cell '{}': {}", cell.label, RunError::NothingAllocated);
        return Err(Failure::new(BAD_REQUEST, message));
    }
    Ok(())
}

/// Whether disks can be made to fail as is asked for.
///
/// # Errors
/// What is in the way.
pub(super) fn deaths(experiment: &Experiment, args: &RunArgs) -> Result<(), Failure> {
    for death in &args.vm.fail {
        let cells = experiment.cells.iter();
        let mut members = cells.flat_map(|cell| &cell.setup.array.members);
        if !members.any(|name| *name == death.disk) {
            let message = format!("no cell has a member '{}' that could fail", death.disk);
            return Err(Failure::bad_request(message).remedy(format!(
                "'raidlab plan {} --resolved' tells the names of the disks",
                args.file.display()
            )));
        }
    }
    if !args.vm.fail.is_empty() && args.vm.time == GuestTime::Real {
        return Err(
            Failure::bad_request("disks fail by the guest's clock alone").remedy(
                "leave --time real out, or serve the disks with 'raidlab disk serve --fail'",
            ),
        );
    }
    if !args.vm.fail.is_empty() && args.real.driver == Driver::Tool {
        return Err(Failure::bad_request(
            "disks fail while raidlab's own phases run, not while a tool does",
        )
        .remedy("leave --driver tool out"));
    }
    Ok(())
}

/// Whether the image has the programs that the experiment needs.
///
/// # Errors
/// [`MISSING`] with the packages that have them.
pub(super) fn tools(experiment: &Experiment, image: &Image) -> Result<(), Failure> {
    let mut wanted: Vec<&str> = Vec::new();
    for cell in &experiment.cells {
        wanted.extend(match cell.setup.array.engine {
            Engine::Md => ["mdadm"].as_slice(),
            // What was made is verified with the other two.
            Engine::Zfs => &["zpool", "zfs", "zdb"],
            _ => &[],
        });
        wanted.extend(match cell.setup.filesystem.as_ref().map(|f| f.kind) {
            Some(FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4) => {
                Some("mke2fs")
            }
            Some(FilesystemKind::Xfs) => Some("mkfs.xfs"),
            Some(FilesystemKind::Btrfs) => Some("mkfs.btrfs"),
            _ => None,
        });
    }
    wanted.sort_unstable();
    wanted.dedup();
    let missing = image.content.missing.iter();
    let missing: Vec<_> = missing
        .filter(|missing| wanted.contains(&missing.name.as_str()))
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let names: Vec<&str> = missing
        .iter()
        .map(|missing| missing.name.as_str())
        .collect();
    let message = format!(
        "the guest needs {}, which this machine does not have",
        names.join(", ")
    );
    let package = first.package.unwrap_or(&first.name);
    Err(Failure::new(MISSING, message).remedy(format!("apt-get install {package}")))
}

/// Memory of this machine that is free, in bytes.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::catalogue;

    fn experiment(array: &str) -> Experiment {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"ST3250624AS\", count = 4 }}\nprofile = \"hdparm\"\n{array}\n\
             [factors]\nlayout = [\"single\", \"raid5\"]\n"
        );
        catalogue::read(&text, "t.toml", std::path::Path::new(""))
            .unwrap_or_else(|error| panic!("{}", error.message))
    }

    #[test]
    fn disks_are_as_large_as_what_is_used_of_them() {
        let small = experiment("[array]\nmember-size = \"1GiB\"");
        assert_eq!(sizes(&small, &small.cells[0]), [1 << 30]);
        assert_eq!(sizes(&small, &small.cells[1]), [1184 << 20; 4]);
        assert_eq!(store(&small), Bytes(4 * (1184 << 20)));
        let large = experiment("");
        assert_eq!(sizes(&large, &large.cells[1]).len(), 4);
        assert!(store(&large).0 > 900_000_000_000);
        let refused = check(&large, GuestTime::Virtual).expect_err("a terabyte in memory");
        assert!(refused.remedy.expect("a remedy").contains("member-size"));
        assert!(check(&large, GuestTime::Real).is_ok());
    }

    #[test]
    fn direct_calls_are_of_whole_sectors() {
        let text = |filesystem: &str| {
            format!(
                "title = 't'\ndisks = {{ model = 'ST3250624AS', count = 2 }}\nfilesystem = '{filesystem}'\n\
                 [profile]\nname = 'random'\nblock = '512B'\nsize = '1MiB'\n[array]\nlayout = 'raid1'\n\
                 member-size = '1GiB'\n[host]\nkernel = '6.1'\n"
            )
        };
        let of = |filesystem: &str| {
            let read = catalogue::read(&text(filesystem), "t.toml", std::path::Path::new(""));
            read.unwrap_or_else(|error| panic!("{}", error.message))
        };
        for filesystem in ["none", "ext4"] {
            let experiment = of(filesystem);
            assert!(
                check(&experiment, GuestTime::Virtual).is_ok(),
                "{filesystem}"
            );
            let refused = direct_calls(&experiment.cells[0], 4096).expect_err("half a page");
            assert!(
                refused.message.contains("a multiple of 4096 bytes"),
                "{}",
                refused.message
            );
        }
    }
}
