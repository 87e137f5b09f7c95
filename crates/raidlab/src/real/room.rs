//! Whether what a run makes has room: loop files in their directory, and a profile's data on the arrays that would be made. All of it is
//! known before anything is built, but for what a file system keeps for itself.
use super::members::{self, Part, Source};
use super::{host_failure, own_memory};
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use raidlab_core::profile::{Place, Plan, ProfileContext, ProfileError};
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::loops::place;
use raidlab_host::provision::MemberDevice;
use raidlab_io::observe::environment::space_at;

/// Something that has no room, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) message: String,
    pub(super) remedy: String,
    /// The experiment asks for it; else it is this machine that lacks it.
    asked: bool,
}

impl Lack {
    /// What a run ends with that has not begun.
    pub(super) fn failure(lacks: &[Self]) -> Option<Failure> {
        let first = lacks.first()?;
        let messages: Vec<&str> = lacks.iter().map(|lack| &lack.message[..]).collect();
        let code = if first.asked { BAD_REQUEST } else { MISSING };
        Some(Failure::new(code, messages.join("\n")).remedy(first.remedy.clone()))
    }
}

/// What of an experiment lacks room on the devices of its parts: loop files that are yet to come, and then each cell's data.
///
/// # Errors
/// When the directory of loop files cannot be looked at.
pub(super) fn lacks(
    experiment: &Experiment,
    source: &Source,
    parts: &[Part],
    devices: &[MemberDevice],
) -> Result<Vec<Lack>, Failure> {
    let files = parts.len();
    let mut lacks = Vec::new();
    if let Source::Loops { directory, size } = source {
        let whole = place(directory).map_err(|error| host_failure(&error))?;
        let free = space_at(&whole).map_err(|error| Failure::from_error(MISSING, &error))?;
        let wanted = size.saturating_mul(files as u64);
        if wanted > free.available {
            lacks.push(Lack {
                message: format!(
                    "there is no room for {} of {} ({}): {} has {} free",
                    count(files, "loop file"),
                    Bytes(*size),
                    Bytes(wanted),
                    directory.display(),
                    Bytes(free.available)
                ),
                remedy: "give a smaller --loop-size, or another --loop-dir".to_owned(),
                asked: false,
            });
        }
    }
    let larger = match source {
        Source::Loops { .. } => "larger members (--loop-size)",
        Source::Allowed => "larger devices",
    };
    let memory = own_memory();
    lacks.extend(experiment.cells.iter().filter_map(|cell| {
        let roles = members::roles(cell, parts).into_iter();
        let own: Vec<&MemberDevice> = roles.map(|role| &devices[role]).collect();
        of_cell(cell, &own, memory, larger)
    }));
    Ok(lacks)
}

fn of_cell(
    cell: &Cell,
    devices: &[&MemberDevice],
    memory: Option<Bytes>,
    larger: &str,
) -> Option<Lack> {
    let setup = &cell.setup;
    let room = at_most(cell, devices)?;
    let mut context = setup.context(512);
    context.memory = memory.unwrap_or(context.memory);
    let within = |room: Bytes| ProfileContext {
        place: match context.place {
            Place::Directory { .. } => Place::Directory { free: room },
            Place::File { .. } => Place::File { size: room },
            Place::Device { .. } => Place::Device { size: room },
        },
        ..context
    };
    let error = match setup.profile.plan(&within(room)) {
        Ok(plan) => return of_files(cell, &plan, room, larger),
        Err(error) => error,
    };
    // What is wrong wherever it runs is told by whoever runs it.
    setup.profile.plan(&within(Bytes(1 << 50))).ok()?;
    let (message, smaller) = match &error {
        ProfileError::Space {
            needed, setting, ..
        } => (
            format!(
                "cell '{}': the profile needs {needed} of free space, and what is made of these devices holds {room} at most",
                cell.label
            ),
            format!("a smaller '{setting}' in [profile]"),
        ),
        other => (
            format!(
                "cell '{}': on what holds {room} at most, {other}",
                cell.label
            ),
            "less in [profile]".to_owned(),
        ),
    };
    Some(Lack {
        message,
        remedy: format!("choose {smaller}, or {larger}"),
        asked: true,
    })
}

/// What lies in an array whose members are replaced, beside what the profile takes.
fn of_files(cell: &Cell, plan: &Plan, room: Bytes, larger: &str) -> Option<Lack> {
    let array = &cell.setup.array;
    // Known of arrays that rebuild by what is in use alone; else it is the profile's own.
    let beside = plan.filler(Some(array.allocated?));
    let wanted = Bytes(beside.0.saturating_add(plan.space_needed.0));
    (wanted > room).then(|| Lack {
        message: format!(
            "cell '{}': {beside} of other files ('allocated') and the profile's {} need {wanted} of free space, and what is made of these \
             devices holds {room} at most",
            cell.label, plan.space_needed
        ),
        remedy: format!("choose a smaller 'allocated' in [array], or {larger}"),
        asked: true,
    })
}

/// Bytes that an array of these devices holds at most: its members' worth of data, each as large as the largest of them, or as much as is
/// used of one.
fn at_most(cell: &Cell, devices: &[&MemberDevice]) -> Option<Bytes> {
    let array = &cell.setup.array;
    let largest = devices.iter().map(|device| device.identity.size).max()?;
    // A controller's own array is one device.
    if devices.len() < array.members.len() {
        return Some(Bytes(largest));
    }
    let used = array
        .member_size
        .map_or(largest, |used| used.0.min(largest));
    // It is told to two decimals.
    let members = array.capacity_disks.parse::<f64>().ok()? + 0.01;
    Some(Bytes(
        (used as f64 * members.min(devices.len() as f64)) as u64,
    ))
}
