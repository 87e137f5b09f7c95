//! Which devices of this machine are the disks of an experiment.
use super::{fit, host_failure, places};
use crate::exit::{BAD_REQUEST, Failure, MISSING, REFUSED};
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_core::words::count;
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::allow::{AllowError, AllowList, Allowed, Word};
use raidlab_host::claim::{Claim, Own, Right};
use raidlab_host::identity::Identity;
use raidlab_host::inventory::{Device, device_at, inventory};
use raidlab_host::journal::Journal;
use raidlab_host::loops::{make_disks, place};
use raidlab_host::ownership::Ownership;
use raidlab_host::provision::{MemberDevice, member};
use raidlab_host::volume::Volume;
use raidlab_io::observe::{DeviceNumber, Roots};
use std::path::{Path, PathBuf};

/// Where members come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Files of raidlab's own in a directory, each of so many bytes.
    Loops { directory: PathBuf, size: u64 },
    /// The devices that the user allows to be overwritten.
    Allowed,
}

impl Source {
    /// In a few words, for the session: trials on other members are other trials.
    pub(crate) fn told(&self, devices: &[Device]) -> String {
        match self {
            Self::Loops { size, .. } => format!("loop files of {}", Bytes(*size)),
            Self::Allowed => {
                let serial = |device: &Device| device.identity.serial.clone().unwrap_or_default();
                devices.iter().map(serial).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// What one device of this machine stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A disk of the experiment, by name.
    Disk(String),
    /// An array that a controller made and shows as one device; of these disks.
    Volume(Volume, Vec<String>),
}

/// What devices the cells need: the disks in the order of the experiment, then the controllers' arrays in that of the
/// cells.
pub(crate) fn parts(experiment: &Experiment) -> Vec<Part> {
    let used = |name: &String| {
        let mut cells = experiment.cells.iter();
        cells.any(|cell| {
            let array = &cell.setup.array;
            Volume::of(array).is_none() && array.members.contains(name)
        })
    };
    let names = experiment.disks.iter().map(|disk| disk.name.clone());
    let mut parts: Vec<Part> = names.filter(used).map(Part::Disk).collect();
    for cell in &experiment.cells {
        let array = &cell.setup.array;
        if let Some(volume) = Volume::of(array)
            && place_of(&parts, &volume, &array.members).is_none()
        {
            parts.push(Part::Volume(volume, array.members.clone()));
        }
    }
    parts
}

fn place_of(parts: &[Part], wanted: &Volume, disks: &[String]) -> Option<usize> {
    let is = |part: &Part| matches!(part, Part::Volume(volume, of) if volume.is_same(wanted) && of == disks);
    parts.iter().position(is)
}

/// Places of a cell's members among [`parts`], in role order.
pub(crate) fn roles(cell: &Cell, parts: &[Part]) -> Vec<usize> {
    let array = &cell.setup.array;
    if let Some(volume) = Volume::of(array) {
        return place_of(parts, &volume, &array.members)
            .into_iter()
            .collect();
    }
    let disk = |name: &String| {
        let is = |part: &Part| matches!(part, Part::Disk(disk) if disk == name);
        parts.iter().position(is)
    };
    array.members.iter().filter_map(disk).collect()
}

/// A device with the right to use it.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) device: Device,
    right: Held,
}

#[derive(Debug)]
enum Held {
    Own(Own),
    Allowed(Allowed),
}

impl Chosen {
    /// What a controller made it of, as the user says.
    pub(crate) fn array(&self) -> Option<&Volume> {
        match &self.right {
            Held::Own(_) => None,
            Held::Allowed(entry) => entry.array.as_ref(),
        }
    }

    /// Claims it.
    pub(crate) fn claim(&self, roots: &Roots) -> Result<Claim, Failure> {
        let right = match &self.right {
            Held::Own(own) => Right::Own(own),
            Held::Allowed(entry) => Right::Allowed(entry),
        };
        Claim::take(roots, &self.device, right).map_err(|error| host_failure(&error))
    }
}

/// Files stand for disks, not for what a controller makes of them.
pub(crate) fn only_disks(parts: &[Part]) -> Result<(), Failure> {
    let volume = parts.iter().find_map(|part| match part {
        Part::Disk(_) => None,
        Part::Volume(volume, _) => Some(volume),
    });
    match volume {
        None => Ok(()),
        Some(volume) => {
            let message = format!("a {volume} is made by its controller, and loop files have none");
            Err(Failure::new(BAD_REQUEST, message).remedy(
                "say who is to make it instead (engine = \"md\" in [array]), leave the cell out ([[exclude]]), or \
                 predict it with --on sim",
            ))
        }
    }
}

/// Whether devices begin on their disks where a cell says that its members do. A real device is used from its first byte
/// on: a partition that begins there is such a member.
pub(crate) fn begin_there(
    roots: &Roots,
    cell: &Cell,
    devices: &[MemberDevice],
) -> Result<(), Failure> {
    let Some(wanted) = cell.setup.array.member_start else {
        return Ok(());
    };
    for device in devices {
        // Whole disks, and loop devices that are yet to come, have no such file.
        let start = roots.block(&device.identity.name).join("start");
        let start = std::fs::read_to_string(start).ok();
        let start = start.and_then(|text| text.trim().parse::<u64>().ok());
        let start = Bytes(start.unwrap_or(0) * SECTOR);
        if start != wanted {
            let message = format!(
                "cell '{}': its members begin at {wanted} of their disks ('member-start'), and {} begins at {start}",
                cell.label,
                device.path.display()
            );
            return Err(Failure::new(BAD_REQUEST, message).remedy(
                "allow partitions that begin there, leave 'member-start' out, or predict it with --on sim",
            ));
        }
    }
    Ok(())
}

/// Loop devices over files of raidlab's own.
pub(crate) fn loops(
    roots: &Roots,
    directory: &Path,
    count: usize,
    size: u64,
    journal: &mut Journal,
) -> Result<Vec<Chosen>, Failure> {
    let failed = |error| host_failure(&error);
    let disks = make_disks(directory, count, size, journal).map_err(failed)?;
    let chosen = disks.iter().map(|disk| {
        Ok(Chosen {
            device: device_at(roots, disk.path()).map_err(failed)?,
            right: Held::Own(disk.own()),
        })
    });
    chosen.collect()
}

/// Whether loop files could be made in a directory, before anything is.
pub(crate) fn check_place(directory: &Path) -> Result<(), Failure> {
    let found = place(directory).map_err(|error| host_failure(&error));
    found
        .map(drop)
        .map_err(|failure| failure.remedy("make it, or name another with --loop-dir"))
}

/// As members of a plan, before the loop files are there.
pub(crate) fn loops_to_come(roots: &Roots, count: usize, size: u64) -> Vec<MemberDevice> {
    // Their queues are those of any loop device.
    let like = device_at(roots, &roots.dev.join("loop0")).ok();
    let like = like.map(|device| member(roots, &device));
    let schedulers = like.map(|like| like.schedulers).unwrap_or_default();
    let one = |number: usize| to_come(format!("loopN{number}"), 7, size, &schedulers);
    (0..count).map(one).collect()
}

/// A device that is not there yet, as a plan sees it; `major` is that of its driver.
fn to_come(name: String, major: u32, size: u64, schedulers: &[String]) -> MemberDevice {
    MemberDevice {
        path: PathBuf::from(format!("/dev/{name}")),
        identity: Identity {
            name,
            number: DeviceNumber { major, minor: 0 },
            size,
            serial: None,
            backing: None,
        },
        schedulers: schedulers.to_vec(),
        write_cache: Some(true),
        ata: false,
        has_queue_depth: false,
        throttles: false,
    }
}

/// A cell's disks as members of a plan, before there is a guest: in virtual time, where nbd serves them.
pub(crate) fn of_guest(experiment: &Experiment, cell: &Cell) -> Vec<MemberDevice> {
    // What Debian's kernels have: the first is set, the others are modules that come when asked for.
    const SCHEDULERS: [&str; 4] = ["mq-deadline", "kyber", "bfq", "none"];
    let schedulers = SCHEDULERS.map(str::to_owned);
    let sizes = fit::sizes(experiment, cell).into_iter().enumerate();
    sizes
        .map(|(number, size)| to_come(format!("nbd{number}"), 43, size, &schedulers))
        .collect()
}

/// The allow-list of this machine.
pub(crate) fn allow_list() -> Result<(PathBuf, AllowList), Failure> {
    let path = places::allow_list()?;
    match AllowList::read(&path) {
        Ok(list) => Ok((path, list)),
        Err(error @ AllowError::Wrong { .. }) => Err(Failure::bad_file(error.to_string())),
        Err(error @ (AllowError::Loose(_) | AllowError::Foreign(_))) => {
            Err(Failure::from_error(REFUSED, &error))
        }
        Err(error @ AllowError::Read { .. }) => Err(Failure::from_error(MISSING, &error)),
    }
}

/// For each part a device of the allow-list that may be used: for disks the first ones, for controllers' arrays the
/// first that is said to be such an array.
pub(crate) fn allowed(roots: &Roots, parts: &[Part]) -> Result<Vec<Chosen>, Failure> {
    let (path, list) = allow_list()?;
    let devices = inventory(roots).map_err(|error| host_failure(&error))?;
    let (mut free, not) = usable(&list, &devices);
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut lacking: Vec<&Volume> = Vec::new();
    for part in parts {
        let fits = |(entry, _): &(&Allowed, &Device)| match (part, &entry.array) {
            (Part::Disk(_), None) => true,
            (Part::Volume(wanted, _), Some(array)) => array.is_same(wanted),
            _ => false,
        };
        if let Some(place) = free.iter().position(fits) {
            let (entry, device) = free.remove(place);
            chosen.push(Chosen {
                device: device.clone(),
                right: Held::Allowed(entry.clone()),
            });
        } else if let Part::Volume(volume, _) = part {
            lacking.push(volume);
        }
    }
    if chosen.len() == parts.len() {
        return Ok(chosen);
    }
    Err(too_few(&path, parts, &chosen, &lacking, &not))
}

/// Entries with their devices, as far as those are here and free; and what is wrong with the others.
fn usable<'l>(
    list: &'l AllowList,
    devices: &'l [Device],
) -> (Vec<(&'l Allowed, &'l Device)>, Vec<String>) {
    let mut free: Vec<(&Allowed, &Device)> = Vec::new();
    let mut not: Vec<String> = Vec::new();
    for entry in &list.devices {
        let Some(device) = devices.iter().find(|one| one.ids.contains(&entry.id)) else {
            not.push(format!("{} is not here", entry.id));
            continue;
        };
        let path = device.path.display();
        let number = device.identity.number;
        // A disk has several names that stay.
        let before = free.iter().find(|(_, one)| one.identity.number == number);
        match (before, why_not(device, list)) {
            (Some((first, _)), _) => not.push(format!(
                "{path}: lines {} and {} of the allow-list both name it, and it is one device",
                first.line, entry.line
            )),
            (None, Some(why)) => not.push(format!("{path}: {why}")),
            (None, None) => free.push((entry, device)),
        }
    }
    (free, not)
}

fn too_few(
    path: &Path,
    parts: &[Part],
    chosen: &[Chosen],
    lacking: &[&Volume],
    not: &[String],
) -> Failure {
    let disks = |part: &&Part| matches!(part, Part::Disk(_));
    let wanted = parts.iter().filter(disks).count();
    let have = wanted + lacking.len() + chosen.len() - parts.len();
    let mut message = String::new();
    if have < wanted {
        let have = match have {
            0 => "none".to_owned(),
            n => count(n, "device"),
        };
        message = format!(
            "the experiment needs {}, and {} allows {have} that can be used",
            count(wanted, "device"),
            path.display()
        );
    }
    for volume in lacking {
        if !message.is_empty() {
            message.push('\n');
        }
        message.push_str(&format!(
            "the experiment needs a {volume} made by its controller, and {} has none that can be used",
            path.display()
        ));
    }
    for why in not {
        message.push_str(&format!("\n  {why}"));
    }
    // An entry that must not be used is a refusal; too few entries is something missing.
    let code = if not.is_empty() { MISSING } else { REFUSED };
    let failure = Failure::new(code, message);
    match lacking.first() {
        Some(volume) => failure.remedy(format!(
            "make it in the controller, and tell what it is in its entry: {}",
            written(volume)
        )),
        None => failure.remedy(
            "'raidlab devices' tells which can be allowed; --loop-dir DIR runs on files instead",
        ),
    }
}

/// As the allow-list has it.
fn written(volume: &Volume) -> String {
    let Volume {
        layout,
        disks,
        chunk,
    } = volume;
    let chunk = chunk.map_or(String::new(), |chunk| format!(", chunk = \"{chunk}\""));
    format!("array = {{ layout = \"{layout}\", disks = {disks}{chunk} }}")
}

/// Why a device may not be used; `None` when it may.
pub(crate) fn why_not(device: &Device, list: &AllowList) -> Option<String> {
    if device.witnesses.ownership() == Ownership::Theirs {
        return Some(device.witnesses.told());
    }
    match list.word_on(device) {
        Word::Yes(_) => None,
        Word::Mismatch(why) => Some(why),
        Word::Silent if device.identity.serial.is_none() => {
            Some("it has no serial number, so that it could be any".to_owned())
        }
        Word::Silent => Some("it is free, but the allow-list does not name it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_host::ownership::Witnesses;
    use raidlab_io::observe::stack::DeviceKind;

    #[test]
    fn a_disk_that_the_list_names_twice_is_one_device() {
        let ids = ["ata-A_1", "wwn-0x1"].map(str::to_owned);
        let device = Device {
            path: PathBuf::from("/dev/sdb"),
            identity: Identity {
                name: "sdb".to_owned(),
                number: DeviceNumber {
                    major: 8,
                    minor: 16,
                },
                size: 512,
                serial: Some("1".to_owned()),
                backing: None,
            },
            kind: DeviceKind::Disk,
            model: None,
            wwn: None,
            ids: ids.to_vec(),
            below: Vec::new(),
            above: Vec::new(),
            witnesses: Witnesses::default(),
        };
        let entry =
            |id: &String| format!("[[device]]\nid = \"{id}\"\nserial = \"1\"\nsize = 512\n");
        let list = AllowList::parse(&ids.each_ref().map(entry).concat()).expect("a list");
        let devices = [device];
        let (free, not) = usable(&list, &devices);
        assert_eq!(free.len(), 1);
        assert!(
            not[0].contains("lines 1 and 5 of the allow-list"),
            "{not:?}"
        );
    }
}
