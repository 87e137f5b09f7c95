//! Disks on controllers, as the command line says it: `pata:1+1`, `sata`, a controller's model, or the
//! topology of an experiment's file.
use super::catalogue;
use crate::args::DesignArgs;
use crate::exit::{BAD_REQUEST, Failure};
use raidlab_core::words::count;
use raidlab_experiment::hardware::Link;
use raidlab_sim::catalogue::Model;
use raidlab_sim::catalogue::controller::{self, ControllerModel};
use raidlab_sim::fabric::{ControllerSpec, DiskSlot, FabricSpec};
use std::path::Path;
use std::sync::Arc;

/// Kinds of controllers, with the model that stands for each.
const KINDS: [(&str, &str); 4] = [
    ("pata", "pata"),
    ("sata", "ahci"),
    ("scsi", "u160"),
    ("nvme", "nvme"),
];

/// What is said when a topology is none.
const REMEDY: &str = "write KIND or KIND:DISKS+DISKS with the disks of each channel, such as pata:2+2; a \
                      KIND is pata, sata, scsi, nvme or a controller of 'raidlab disk list'";

/// The disks, named `disk0` and so on, behind what the topology says; without one, behind a controller
/// of their kind, each on a channel of its own where the kind has several.
pub(crate) fn fabric(models: &[Model], topology: Option<&str>) -> Result<FabricSpec, Failure> {
    let mut spec = FabricSpec::default();
    match topology {
        Some(text) => {
            let (card, channels) = controller_and_channels(text, models.len())?;
            for model in models {
                fits(model, &card)?;
            }
            let all: Vec<usize> = (0..models.len()).collect();
            add(&mut spec, models, &all, card, &channels);
        }
        None => {
            for (kind, card) in KINDS {
                let of_kind = |index: &usize| kind_of(&models[*index]) == kind;
                let here: Vec<usize> = (0..models.len()).filter(of_kind).collect();
                if !here.is_empty() {
                    let card = find(card)?;
                    let channels = alone(&card, here.len());
                    add(&mut spec, models, &here, card, &channels);
                }
            }
        }
    }
    Ok(spec)
}

/// All disks of an experiment, as its topology has them, and the bytes of each one's logical sectors.
pub(crate) fn of_experiment(path: &Path) -> Result<(FabricSpec, Vec<u32>), Failure> {
    let experiment = catalogue::experiment(path, &DesignArgs::default())?;
    let names: Vec<String> = experiment.disks.iter().map(|d| d.name.clone()).collect();
    let spec = raidlab_sim::machine::fabric(&experiment, &names, true)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    let disks = experiment.disks.iter();
    let sectors = disks.map(|disk| disk.logical_sector().0 as u32);
    Ok((spec, sectors.collect()))
}

/// Whether a topology is the path of an experiment.
pub(crate) fn is_file(text: &str) -> bool {
    text.ends_with(".toml") || (text.contains('/') && Path::new(text).exists())
}

fn find(name: &str) -> Result<ControllerModel, Failure> {
    let model = controller::find(name);
    Ok(model
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error).remedy(REMEDY))?
        .controller)
}

fn kind_of(model: &Model) -> &'static str {
    match catalogue::link(model) {
        Some(Link::Pata) => "pata",
        Some(Link::Scsi) => "scsi",
        Some(Link::Nvme) => "nvme",
        Some(Link::Sata) | None => "sata",
    }
}

fn fits(model: &Model, card: &ControllerModel) -> Result<(), Failure> {
    match catalogue::link(model) {
        Some(link) if link != card.link => Err(Failure::bad_request(format!(
            "{} is a {link} disk, and the controller {} connects {} disks",
            model.disk.name(),
            card.name,
            card.link
        ))
        .remedy("leave --topology out, and each disk gets a controller of its kind")),
        _ => Ok(()),
    }
}

/// Each disk on a channel of its own; on a parallel SCSI bus, which is one, all of them.
fn alone(card: &ControllerModel, disks: usize) -> Vec<u32> {
    match card.link {
        Link::Scsi => vec![disks as u32],
        _ => vec![1; disks],
    }
}

fn controller_and_channels(
    text: &str,
    disks: usize,
) -> Result<(ControllerModel, Vec<u32>), Failure> {
    let wrong = |why: String| Failure::bad_request(why).remedy(REMEDY);
    let (name, counts) = match text.split_once(':') {
        Some((name, counts)) => (name, Some(counts)),
        None => (text, None),
    };
    let of_kind = KINDS.iter().find(|(kind, _)| *kind == name);
    let card = find(of_kind.map_or(name, |(_, card)| *card))?;
    if card.cache.is_some() {
        return Err(wrong(format!(
            "the controller {name} shows volumes, not disks: it needs an experiment's file"
        )));
    }
    let Some(counts) = counts else {
        let channels = alone(&card, disks);
        return Ok((card, channels));
    };
    let counts: Result<Vec<u32>, _> = counts.split('+').map(str::parse).collect();
    let counts = counts.map_err(|_| wrong(format!("'{text}' is no topology")))?;
    let sum: u64 = counts.iter().map(|n| u64::from(*n)).sum();
    if sum != disks as u64 {
        return Err(wrong(format!(
            "the topology {text} has places for {}, and there are {disks}",
            count(sum, "disk")
        )));
    }
    let point_to_point = matches!(card.link, Link::Sata | Link::Nvme);
    if point_to_point && counts.iter().any(|n| *n > 1) {
        return Err(wrong(format!(
            "in {text} a channel has several disks, and {} has one a channel",
            card.link
        )));
    }
    Ok((card, counts))
}

fn add(
    spec: &mut FabricSpec,
    models: &[Model],
    which: &[usize],
    card: ControllerModel,
    channels: &[u32],
) {
    let controller = spec.controllers.len() as u32;
    spec.controllers.push(ControllerSpec {
        name: card.name.clone(),
        link: card.link,
        model: Arc::new(card),
        bus: None,
        channels: channels.len() as u32,
        rate: None,
        cache: None,
        write_back: None,
    });
    let places = (0..).zip(channels);
    let places = places.flat_map(|(channel, disks)| (0..*disks).map(move |_| channel));
    for (index, channel) in which.iter().zip(places) {
        spec.disks.push(DiskSlot {
            name: format!("disk{index}"),
            model: models[*index].disk.clone(),
            controller,
            channel,
        });
    }
    // Named in the order in which they were given, whatever they are connected by.
    spec.disks.sort_by_key(|slot| {
        let number = slot.name.trim_start_matches("disk");
        number.parse().unwrap_or(usize::MAX)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_sim::fabric::Fabric;

    fn models(names: &[&str]) -> Vec<Model> {
        names.iter().map(|n| catalogue::disk(n).unwrap()).collect()
    }

    fn places(spec: &FabricSpec) -> Vec<(u32, u32)> {
        spec.disks
            .iter()
            .map(|d| (d.controller, d.channel))
            .collect()
    }

    #[test]
    fn disks_are_put_where_the_topology_says() {
        let four = models(&["ST340015A"; 4]);
        let spec = fabric(&four, Some("pata:2+1+1")).unwrap();
        assert_eq!(places(&spec), [(0, 0), (0, 0), (0, 1), (0, 2)]);
        assert_eq!(Fabric::new(&spec, 1).unwrap().ports()[0].tags, 1);
        let spec = fabric(&four, Some("ITE8212:2+2")).unwrap();
        assert_eq!(spec.controllers[0].name, "ITE8212");
        let mixed = models(&["ST3250624AS", "ST340015A", "ST3250624AS"]);
        let spec = fabric(&mixed, None).unwrap();
        assert_eq!(places(&spec), [(1, 0), (0, 0), (1, 1)]);
        let names: Vec<_> = spec.disks.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["disk0", "disk1", "disk2"]);
        let bus = fabric(&models(&["MAN3367MP"; 3]), Some("scsi")).unwrap();
        assert_eq!(places(&bus), [(0, 0); 3]);
    }

    #[test]
    fn what_is_no_topology_is_told() {
        let two = models(&["ST3250624AS"; 2]);
        for (text, part) in [
            ("usb", "no controller model 'usb'"),
            ("sata:1", "places for 1 disk,"),
            ("sata:2", "one a channel"),
            ("sata:1+x", "no topology"),
            ("pata:1+1", "is a sata disk"),
            ("hardware-raid", "shows volumes"),
        ] {
            let failure = fabric(&two, Some(text)).unwrap_err();
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }
}
