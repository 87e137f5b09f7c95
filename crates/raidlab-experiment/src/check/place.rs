//! Which disk sits on which channel of which controller.
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::{Bus, Controller, ControllerKind, Disk, Link};
use crate::read::disks::Group;
use crate::read::topology::{DraftController, DraftTopology, Seats};
use crate::read::tree::At;
use crate::{Known, KnownDisk};
use raidlab_core::words::count;

/// All hardware, every disk in its place.
pub(super) struct Hardware {
    pub(super) disks: Vec<Disk>,
    pub(super) buses: Vec<Bus>,
    pub(super) controllers: Vec<Controller>,
}

/// A disk that has no place yet.
struct Loose<'d> {
    name: &'d str,
    group: &'d Group,
    known: Option<&'d KnownDisk<'d>>,
    place: Option<(usize, u32)>,
}

/// Seats every disk; `None` when one has no place, which is told.
pub(super) fn place(
    problems: &Problems,
    groups: &[Group],
    topology: DraftTopology,
    known: &Known<'_>,
) -> Option<Hardware> {
    let mut disks: Vec<Loose<'_>> = Vec::new();
    for group in groups {
        let known = known.disk(&group.model.value);
        disks.extend(group.names.iter().map(|name| Loose {
            name,
            group,
            known,
            place: None,
        }));
    }
    let DraftTopology { buses, controllers } = topology;
    let controllers = if controllers.is_empty() {
        plain(&mut disks)
    } else {
        let mut whole = true;
        let only = controllers.len() == 1;
        let mut all = Vec::new();
        for (index, draft) in controllers.into_iter().enumerate() {
            match seat(problems, draft, index, &mut disks, only) {
                Some(controller) => all.push(controller),
                None => whole = false,
            }
        }
        if !whole {
            return None;
        }
        all
    };
    let mut whole = true;
    let mut placed = Vec::new();
    for disk in disks {
        let Some((controller, channel)) = disk.place else {
            let message = format!("disk '{}' sits on no controller", disk.name);
            let help = "name it, or its group, in the 'disks' of a controller";
            problems.wrong(&disk.group.name.at, message, help);
            whole = false;
            continue;
        };
        let overrides = disk.group.overrides.clone();
        placed.push(Disk {
            name: disk.name.to_owned(),
            group: disk.group.name.value.clone(),
            model: disk.group.model.value.clone(),
            model_text: known
                .own(&disk.group.model.value)
                .map(|own| own.text.to_owned()),
            capacity: overrides.capacity.or(disk.known.and_then(|k| k.capacity)),
            controller: controllers[controller].name.clone(),
            channel,
            overrides,
        });
    }
    whole.then_some(Hardware {
        disks: placed,
        buses,
        controllers,
    })
}

/// Without a topology: a controller for each kind of link, with room for all and no limits.
fn plain(disks: &mut [Loose<'_>]) -> Vec<Controller> {
    let mut controllers: Vec<Controller> = Vec::new();
    for link in Link::ALL {
        let of_link = |d: &Loose<'_>| link_of(d) == *link;
        let count = disks.iter().filter(|d| of_link(d)).count() as u32;
        if count == 0 {
            continue;
        }
        let kind = match link {
            Link::Pata => ControllerKind::Pata,
            Link::Sata => ControllerKind::Sata,
            Link::Scsi => ControllerKind::Scsi,
            Link::Nvme => ControllerKind::Nvme,
        };
        let index = controllers.len();
        let channels = count.div_ceil(kind.ports());
        let mine = disks.iter_mut().filter(|d| link_of(d) == *link);
        for (i, disk) in mine.enumerate() {
            disk.place = Some((index, i as u32 % channels));
        }
        controllers.push(Controller {
            name: link.name().to_owned(),
            kind,
            link: *link,
            model: None,
            model_text: None,
            bus: None,
            channels,
            ports: kind.ports(),
            mode: None,
            rate: None,
            cache: None,
            cache_mode: None,
            own_raid: false,
        });
    }
    controllers
}

/// SATA where the catalogue does not say.
fn link_of(disk: &Loose<'_>) -> Link {
    disk.known.and_then(|k| k.link).unwrap_or(Link::Sata)
}

/// The disks that a controller is to have, as places among all: by channel, or to be dealt; and
/// whether all that it names are there.
fn wanted(
    problems: &Problems,
    seats: &Seats,
    disks: &[Loose<'_>],
    only: bool,
) -> (bool, Option<Vec<Vec<usize>>>, Vec<usize>) {
    let mut whole = true;
    let mut taken: Vec<usize> = Vec::new();
    let mut find = |names: &[At<String>]| {
        let mut all = Vec::new();
        for name in names {
            match named(problems, name, disks, &mut taken) {
                Some(found) => all.extend(found),
                None => whole = false,
            }
        }
        all
    };
    let (by_channel, dealt) = match seats {
        Seats::Channels(channels) => {
            let lists = channels.iter().map(|names| find(names));
            (Some(lists.collect()), Vec::new())
        }
        Seats::Dealt(names) => (None, find(names)),
        Seats::Unsaid if only => (None, (0..disks.len()).collect()),
        Seats::Unsaid => (None, Vec::new()),
    };
    (whole, by_channel, dealt)
}

/// Seats the disks of one controller.
fn seat(
    problems: &Problems,
    draft: DraftController,
    index: usize,
    disks: &mut [Loose<'_>],
    only: bool,
) -> Option<Controller> {
    let (mut whole, by_channel, dealt) = wanted(problems, &draft.disks, disks, only);
    let own = match draft.kind {
        ControllerKind::Pata => 2,
        ControllerKind::Sata | ControllerKind::Nvme => dealt.len().max(1),
        ControllerKind::Scsi | ControllerKind::HardwareRaid => 1,
    };
    let listed = by_channel.as_ref().map(Vec::len);
    let channels = draft
        .channels
        .as_ref()
        .map_or(listed.unwrap_or(own), |c| c.value as usize);
    if let Some(listed) = listed.filter(|listed| *listed > channels) {
        let message = format!(
            "'{}' has {}, and disks are given for {listed}",
            draft.name.value,
            count(channels, "channel")
        );
        let at = draft.channels.as_ref().map_or(&draft.name.at, |c| &c.at);
        problems.wrong(at, message, "give as many lists of disks as channels");
        return None;
    }
    let by_channel = by_channel.unwrap_or_else(|| {
        let mut all = vec![Vec::new(); channels.max(1)];
        for (i, disk) in dealt.into_iter().enumerate() {
            all[i % channels.max(1)].push(disk);
        }
        all
    });
    let first = by_channel.iter().flatten().next();
    let link = draft
        .link
        .unwrap_or_else(|| first.map_or(Link::Sata, |disk| link_of(&disks[*disk])));
    let ports = draft.ports.unwrap_or(draft.kind.ports());
    for (channel, on_it) in by_channel.iter().enumerate() {
        if on_it.len() > ports as usize {
            let message = format!(
                "{} on channel {channel} of '{}', which has {}",
                count(on_it.len(), "disk"),
                draft.name.value,
                count(ports, "port"),
            );
            let help = "add channels or ports, or put fewer disks on it";
            problems.wrong(&draft.name.at, message, help);
            whole = false;
        }
        for &disk in on_it {
            disks[disk].place = Some((index, channel as u32));
            whole &= fits(problems, &draft, link, &disks[disk]);
        }
    }
    whole.then(|| controller(draft, link, channels as u32, ports))
}

fn controller(draft: DraftController, link: Link, channels: u32, ports: u32) -> Controller {
    let cached = draft.cache.is_some_and(|cache| cache.0 > 0);
    let mode = crate::hardware::CacheMode::WriteBack;
    Controller {
        name: draft.name.value,
        kind: draft.kind,
        link,
        model: draft.model,
        model_text: draft.model_text,
        bus: draft.bus,
        channels,
        ports,
        mode: draft.mode,
        rate: draft.rate,
        cache: draft.cache,
        cache_mode: draft.cache_mode.or(cached.then_some(mode)),
        own_raid: draft.own_raid,
    }
}

/// The disks of a name: one, or all of a group.
fn named(
    problems: &Problems,
    name: &At<String>,
    disks: &[Loose<'_>],
    taken: &mut Vec<usize>,
) -> Option<Vec<usize>> {
    let all = || 0..disks.len();
    let mut found: Vec<usize> = all().filter(|i| disks[*i].name == name.value).collect();
    if found.is_empty() {
        let of_group = |i: &usize| disks[*i].group.name.value == name.value;
        found = all().filter(of_group).collect();
    }
    if found.is_empty() {
        let mut known: Vec<&str> = disks.iter().map(|d| d.group.name.value.as_str()).collect();
        known.dedup();
        let known = known.into_iter().chain(disks.iter().map(|d| d.name));
        problems.unknown(&name.at, "disk", &name.value, known);
        return None;
    }
    let twice = found
        .iter()
        .find(|i| disks[**i].place.is_some() || taken.contains(i));
    if let Some(twice) = twice {
        let message = format!("disk '{}' is given two places", disks[*twice].name);
        problems.wrong(&name.at, message, "a disk sits on one channel");
        return None;
    }
    taken.extend(&found);
    Some(found)
}

/// Whether the disk's plug goes into the controller.
fn fits(problems: &Problems, draft: &DraftController, link: Link, disk: &Loose<'_>) -> bool {
    let Some(own) = disk.known.and_then(|k| k.link).filter(|own| *own != link) else {
        return true;
    };
    let message = format!(
        "'{}' has {link} links, and {} is a {own} disk",
        draft.name.value, disk.group.model.value
    );
    let problem = Diagnostic::new(draft.name.at.clone(), message);
    let problem = problem.also(disk.group.model.at.clone(), format!("a {own} disk"));
    problems.push(problem.help("use a controller of the disk's kind, or another disk"));
    false
}
