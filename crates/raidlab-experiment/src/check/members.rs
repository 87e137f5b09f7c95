//! Which disks are the members of a cell's array.
use super::place::Hardware;
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::read::key::Key;
use crate::read::members::MemberChoice;
use crate::read::tree::At;
use crate::setup::ArrayLayout;
use raidlab_core::words::count;
use std::ops::Range;

/// The members of an array.
pub(super) struct Chosen {
    /// Places among the disks, in role order.
    pub(super) disks: Vec<usize>,
    /// Members on each channel: `1+1`.
    pub(super) channels: String,
}

pub(super) fn choose(
    problems: &Problems,
    hardware: &Hardware,
    view: &View<'_>,
    layout: &ArrayLayout,
) -> Option<Chosen> {
    let (disks, at) = if let Some(channels) = view.channels(Key::Channels) {
        (by_channels(problems, hardware, &channels)?, channels.at)
    } else if let Some(choice) = view.members(Key::Members) {
        let at = choice.at.clone();
        (by_choice(problems, hardware, choice)?, at)
    } else {
        unsaid(problems, hardware, view, layout)?
    };
    if *layout == ArrayLayout::Single && disks.len() != 1 {
        let message = format!(
            "'single' is one disk, and there are {}",
            count(disks.len(), "member")
        );
        let problem = Diagnostic::new(at, message).help("choose one member, or a layout");
        problems.push(problem.also(view.place(&[Key::Layout]), "this layout"));
        return None;
    }
    let channels = on_channels(hardware, &disks);
    Some(Chosen { disks, channels })
}

/// As many as the layout's shape has, one for a single disk, else all.
fn unsaid(
    problems: &Problems,
    hardware: &Hardware,
    view: &View<'_>,
    layout: &ArrayLayout,
) -> Option<(Vec<usize>, Range<usize>)> {
    let at = view.place(&[Key::Layout]);
    let has = hardware.disks.len();
    let wanted = layout.shape_members().unwrap_or(has);
    if wanted > has {
        problems.push(too_many(at, &layout.to_string(), wanted, has));
        return None;
    }
    Some(((0..wanted).collect(), at))
}

fn too_many(at: Range<usize>, what: &str, wanted: usize, has: usize) -> Diagnostic {
    let (wanted, has) = (count(wanted, "member"), count(has, "disk"));
    let message = format!("{what} has {wanted}, and there are {has}");
    Diagnostic::new(at, message).help("raise 'count' in [disks], or use fewer members")
}

fn by_choice(
    problems: &Problems,
    hardware: &Hardware,
    choice: At<MemberChoice>,
) -> Option<Vec<usize>> {
    let has = hardware.disks.len();
    match choice.value {
        MemberChoice::First(n) if n as usize > has => {
            problems.push(too_many(choice.at, "the array", n as usize, has));
            None
        }
        MemberChoice::First(n) => Some((0..n as usize).collect()),
        MemberChoice::OfGroups(groups) => by_groups(problems, hardware, &choice.at, &groups),
        MemberChoice::Named(names) => by_names(problems, hardware, &names),
    }
}

fn by_groups(
    problems: &Problems,
    hardware: &Hardware,
    at: &Range<usize>,
    groups: &[(u32, String)],
) -> Option<Vec<usize>> {
    let mut chosen = Vec::new();
    for (wanted, group) in groups {
        let all = 0..hardware.disks.len();
        let of: Vec<usize> = all.filter(|i| hardware.disks[*i].group == *group).collect();
        if of.is_empty() {
            let mut known: Vec<&str> = hardware.disks.iter().map(|d| d.group.as_str()).collect();
            known.dedup();
            problems.unknown(at, "group of disks", group, known);
            return None;
        }
        let of: Vec<usize> = of.into_iter().filter(|i| !chosen.contains(i)).collect();
        if of.len() < *wanted as usize {
            let message = format!(
                "{} of group '{group}', which has {} left",
                count(*wanted, "member"),
                count(of.len(), "disk")
            );
            problems.wrong(at, message, "raise its 'count', or use fewer members");
            return None;
        }
        chosen.extend(of.into_iter().take(*wanted as usize));
    }
    Some(chosen)
}

fn by_names(problems: &Problems, hardware: &Hardware, names: &[At<String>]) -> Option<Vec<usize>> {
    let mut chosen = Vec::new();
    let mut whole = true;
    for name in names {
        let place = hardware.disks.iter().position(|d| d.name == name.value);
        let Some(place) = place else {
            let known = hardware.disks.iter().map(|d| d.name.as_str());
            problems.unknown(&name.at, "disk", &name.value, known);
            whole = false;
            continue;
        };
        if chosen.contains(&place) {
            let message = format!("'{}' is a member twice", name.value);
            problems.wrong(&name.at, message, "name each member once");
            whole = false;
        }
        chosen.push(place);
    }
    whole.then_some(chosen)
}

/// All channels in the order of the controllers: controller, channel, ports.
fn all_channels(hardware: &Hardware) -> impl Iterator<Item = (&str, u32, u32)> {
    hardware
        .controllers
        .iter()
        .flat_map(|c| (0..c.channels).map(|channel| (c.name.as_str(), channel, c.ports)))
}

/// Channel by channel, the first disks of each.
fn by_channels(
    problems: &Problems,
    hardware: &Hardware,
    counts: &At<Vec<u32>>,
) -> Option<Vec<usize>> {
    let channels: Vec<_> = all_channels(hardware).collect();
    if counts.value.len() > channels.len() {
        let message = format!(
            "members on {}, and the topology has {}",
            count(counts.value.len(), "channel"),
            channels.len()
        );
        let help = "give at most one number a channel";
        problems.wrong(&counts.at, message, help);
        return None;
    }
    let mut chosen = Vec::new();
    for (wanted, (controller, channel, ports)) in counts.value.iter().zip(channels) {
        let all = 0..hardware.disks.len();
        let on = |i: &usize| {
            let disk = &hardware.disks[*i];
            disk.controller == controller && disk.channel == channel
        };
        let on: Vec<usize> = all.filter(on).collect();
        if on.len() < *wanted as usize {
            let message = format!(
                "{} on channel {channel} of '{controller}', which has {} and {}",
                count(*wanted, "member"),
                count(on.len(), "disk"),
                count(ports, "port")
            );
            let help = "choose as many members as there are disks on the channel";
            problems.wrong(&counts.at, message, help);
            return None;
        }
        chosen.extend(on.into_iter().take(*wanted as usize));
    }
    Some(chosen)
}

/// Members on each channel of the controllers that have any: `1+1`, `2+0`.
fn on_channels(hardware: &Hardware, disks: &[usize]) -> String {
    let used: Vec<&str> = disks
        .iter()
        .map(|i| hardware.disks[*i].controller.as_str())
        .collect();
    let counts: Vec<String> = all_channels(hardware)
        .filter(|(controller, ..)| used.contains(controller))
        .map(|(controller, channel, _)| {
            let on = |i: &&usize| {
                let disk = &hardware.disks[**i];
                disk.controller == controller && disk.channel == channel
            };
            disks.iter().filter(on).count().to_string()
        })
        .collect();
    counts.join("+")
}
