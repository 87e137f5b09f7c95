//! What is used of each member: how much of it, and from where on.
use super::members::Chosen;
use super::place::Hardware;
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::Disk;
use crate::read::key::Key;
use crate::read::tree::At;
use crate::setup::Engine;
use raidlab_core::units::Bytes;

/// Of a member whose capacity nobody knows: the layout is checked with it, and no capacity told.
pub(super) const NOMINAL: Bytes = Bytes(1 << 40);

/// Bytes used of each member, and whether they are there; told when not.
pub(super) fn sizes(
    problems: &Problems,
    hardware: &Hardware,
    view: &View<'_>,
    chosen: &Chosen,
    engine: Engine,
) -> (Vec<Bytes>, bool) {
    let wanted = view.size(Key::MemberSize);
    let start = view.size(Key::MemberStart);
    let begins = |start: &At<Bytes>| {
        has_start(problems, hardware, chosen, start, engine).then_some(start.value.0)
    };
    let begins = start.as_ref().map_or(Some(0), begins);
    // What begins nowhere is as large as if it began with the disk: of two problems one follows from the other.
    let (mut fit, begins) = (begins.is_some(), begins.unwrap_or(0));
    let mut sizes = Vec::new();
    for &index in &chosen.disks {
        let disk: &Disk = &hardware.disks[index];
        let left = disk.capacity.map(|has| Bytes(has.0.saturating_sub(begins)));
        match (&wanted, left) {
            (Some(wanted), Some(left)) if wanted.value > left => {
                sizes.push(left);
                // Told of the first alone.
                if std::mem::take(&mut fit) {
                    too_much(problems, wanted, start.as_ref(), disk);
                }
            }
            (Some(wanted), _) => sizes.push(wanted.value),
            (None, left) => sizes.push(left.unwrap_or(NOMINAL)),
        }
    }
    (sizes, fit)
}

/// Tells that a disk has less than is wanted of it.
fn too_much(problems: &Problems, wanted: &At<Bytes>, start: Option<&At<Bytes>>, disk: &Disk) {
    let has = disk.capacity.unwrap_or_default();
    let Some(start) = start else {
        let message = format!(
            "'member-size' of {} is more than the {has} of {}",
            wanted.value, disk.name
        );
        problems.wrong(&wanted.at, message, "use less of each disk");
        return;
    };
    let beyond = Bytes(wanted.value.0.saturating_add(start.value.0) - has.0);
    let message = format!(
        "'member-size' of {} from there on goes {beyond} beyond the {has} of {}",
        wanted.value, disk.name
    );
    let problem = Diagnostic::new(wanted.at.clone(), message);
    let problem = problem.help("use less of each disk, or begin earlier");
    problems.push(problem.also(start.at.clone(), "this is where it begins"));
}

/// Whether members can begin at `start`; told when not.
fn has_start(
    problems: &Problems,
    hardware: &Hardware,
    chosen: &Chosen,
    start: &At<Bytes>,
    engine: Engine,
) -> bool {
    let value = start.value;
    if engine == Engine::Controller {
        let message = "a controller's own RAID takes its disks from their first sector on";
        let help = "leave 'member-start' out, or give it to the arrays of others alone, in named levels of a factor";
        problems.wrong(&start.at, message, help);
        return false;
    }
    for &index in &chosen.disks {
        let disk: &Disk = &hardware.disks[index];
        let sector = disk.logical_sector();
        if !value.0.is_multiple_of(sector.0) {
            let message = format!(
                "'member-start' of {} B is no whole number of the {sector} sectors of {}",
                value.0, disk.name
            );
            let help = "partitions begin at sectors: \"1MiB\", or \"31.5KiB\" as the first one did when cylinders of 63 sectors were counted";
            problems.wrong(&start.at, message, help);
            return false;
        }
        if let Some(has) = disk.capacity.filter(|has| *has <= value) {
            let message = format!(
                "'member-start' of {value} is not on {}, which has {has}",
                disk.name
            );
            problems.wrong(&start.at, message, "begin earlier");
            return false;
        }
    }
    true
}
