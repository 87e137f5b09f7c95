//! Which devices of this machine are the disks of an experiment.
use super::{host_failure, places};
use crate::exit::{Failure, MISSING, REFUSED};
use raidlab_core::units::Bytes;
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::allow::{AllowError, AllowList, Allowed, Word};
use raidlab_host::claim::{Claim, Own, Right};
use raidlab_host::identity::Identity;
use raidlab_host::inventory::{Device, device_at, inventory};
use raidlab_host::journal::Journal;
use raidlab_host::loops::make_disks;
use raidlab_host::ownership::Ownership;
use raidlab_host::provision::{MemberDevice, member};
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

/// The disks that the cells use, in the order of the experiment: each stands for one device.
pub(crate) fn disks(experiment: &Experiment) -> Vec<String> {
    let used = |name: &String| {
        let mut cells = experiment.cells.iter();
        cells.any(|cell| cell.setup.array.members.contains(name))
    };
    let names = experiment.disks.iter().map(|disk| disk.name.clone());
    names.filter(used).collect()
}

/// Places of a cell's members among [`disks`], in role order.
pub(crate) fn roles(cell: &Cell, disks: &[String]) -> Vec<usize> {
    let names = cell.setup.array.members.iter();
    names
        .filter_map(|name| disks.iter().position(|disk| disk == name))
        .collect()
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
    /// Claims it.
    pub(crate) fn claim(&self, roots: &Roots) -> Result<Claim, Failure> {
        let right = match &self.right {
            Held::Own(own) => Right::Own(own),
            Held::Allowed(entry) => Right::Allowed(entry),
        };
        Claim::take(roots, &self.device, right).map_err(|error| host_failure(&error))
    }
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

/// As members of a plan, before the loop files are there.
pub(crate) fn loops_to_come(roots: &Roots, count: usize, size: u64) -> Vec<MemberDevice> {
    // Their queues are those of any loop device.
    let like = device_at(roots, &roots.dev.join("loop0")).ok();
    let like = like.map(|device| member(roots, &device));
    let one = |number: usize| {
        let name = format!("loopN{number}");
        MemberDevice {
            path: PathBuf::from(format!("/dev/{name}")),
            identity: Identity {
                name,
                number: DeviceNumber { major: 7, minor: 0 },
                size,
                serial: None,
                backing: None,
            },
            schedulers: like
                .as_ref()
                .map(|like| like.schedulers.clone())
                .unwrap_or_default(),
            write_cache: Some(true),
            ata: false,
            has_queue_depth: false,
        }
    };
    (0..count).map(one).collect()
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

/// The first devices of the allow-list that may be used.
pub(crate) fn allowed(roots: &Roots, count: usize) -> Result<Vec<Chosen>, Failure> {
    let (path, list) = allow_list()?;
    let devices = inventory(roots).map_err(|error| host_failure(&error))?;
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut not: Vec<String> = Vec::new();
    for entry in &list.devices {
        let found = devices.iter().find(|device| device.ids.contains(&entry.id));
        let Some(device) = found else {
            not.push(format!("{} is not here", entry.id));
            continue;
        };
        match why_not(device, &list) {
            Some(why) => not.push(format!("{}: {why}", device.path.display())),
            None => chosen.push(Chosen {
                device: device.clone(),
                right: Held::Allowed(entry.clone()),
            }),
        }
    }
    if chosen.len() < count {
        let have = match chosen.len() {
            0 => "none".to_owned(),
            1 => "1 device".to_owned(),
            n => format!("{n} devices"),
        };
        let mut message = format!(
            "the experiment needs {count} devices, and {} allows {have} that can be used",
            path.display()
        );
        for why in &not {
            message.push_str(&format!("\n  {why}"));
        }
        // An entry that must not be used is a refusal; too few entries is something missing.
        let code = if not.is_empty() { MISSING } else { REFUSED };
        return Err(Failure::new(code, message).remedy(
            "'raidlab devices' tells which can be allowed; --loop-dir DIR runs on files instead",
        ));
    }
    chosen.truncate(count);
    Ok(chosen)
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
