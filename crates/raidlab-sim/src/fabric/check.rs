//! What a fabric must be for it to be built.
use super::build::on_channel;
use super::spec::{FabricError, FabricSpec, VolumeSpec};
use raidlab_experiment::hardware::Link;
use raidlab_layout::{Layout, Member};

pub(super) fn check(spec: &FabricSpec) -> Result<(), FabricError> {
    if let Some(bus) = spec.buses.iter().find(|bus| bus.rate < 100_000) {
        return Err(FabricError::TooLittle {
            what: "the rate",
            name: bus.name.clone(),
        });
    }
    for (number, controller) in spec.controllers.iter().enumerate() {
        if let Some(bus) = controller
            .bus
            .filter(|bus| *bus as usize >= spec.buses.len())
        {
            return Err(FabricError::NoBus {
                controller: controller.name.clone(),
                bus,
                buses: spec.buses.len(),
            });
        }
        let (rate, cache) = (controller.rate, controller.cache);
        let least = controller
            .model
            .cache
            .as_ref()
            .map_or(0, |c| c.firmware + 16 * c.line);
        for (bad, what) in [
            (rate.is_some_and(|rate| rate < 100_000), "the rate"),
            (cache.is_some_and(|sectors| sectors < least), "the cache"),
        ] {
            if bad {
                let name = controller.name.clone();
                return Err(FabricError::TooLittle { what, name });
            }
        }
        let most = match controller.link {
            Link::Pata => 2,
            Link::Scsi => 15,
            Link::Sata | Link::Nvme => usize::MAX,
        };
        for channel in 0..controller.channels {
            let disks = on_channel(spec, number as u32, channel).len();
            if disks > most {
                return Err(FabricError::Crowded {
                    controller: controller.name.clone(),
                    channel,
                    disks,
                    most,
                });
            }
        }
    }
    for slot in &spec.disks {
        let controller = spec.controllers.get(slot.controller as usize);
        if controller.is_none_or(|controller| slot.channel >= controller.channels) {
            return Err(FabricError::NoPlace {
                disk: slot.name.clone(),
                controller: slot.controller,
                channel: slot.channel,
            });
        }
    }
    check_volumes(spec)
}

fn check_volumes(spec: &FabricSpec) -> Result<(), FabricError> {
    let mut used = vec![false; spec.disks.len()];
    for volume in &spec.volumes {
        let name = || volume.name.clone();
        for disk in &volume.disks {
            let free = used.get_mut(*disk as usize);
            if free.is_none_or(|used| std::mem::replace(used, true)) {
                let (volume, disk) = (name(), *disk);
                return Err(FabricError::NoDisk { volume, disk });
            }
        }
        let (members, disks) = (volume.layout.members(), volume.disks.len());
        if members != disks {
            let volume = name();
            return Err(FabricError::Members {
                volume,
                members,
                disks,
            });
        }
        for (role, disk) in volume.disks.iter().enumerate() {
            let slot = &spec.disks[*disk as usize];
            let (used, has) = (
                volume.layout.used(Member::new(role)).0,
                slot.model.sectors(),
            );
            if used > has {
                let (volume, disk) = (name(), slot.name.clone());
                return Err(FabricError::TooSmall {
                    volume,
                    disk,
                    used,
                    has,
                });
            }
        }
        check_controller(spec, volume)?;
    }
    Ok(())
}

fn check_controller(spec: &FabricSpec, volume: &VolumeSpec) -> Result<(), FabricError> {
    let numbers = volume
        .disks
        .iter()
        .map(|d| spec.disks[*d as usize].controller);
    let number = volume_controller(spec, volume);
    if numbers.into_iter().any(|other| other != number) {
        return Err(FabricError::Scattered(volume.name.clone()));
    }
    let controller = &spec.controllers[number as usize];
    let (volume_name, controller_name) = (volume.name.clone(), controller.name.clone());
    if controller.model.cache.is_none() {
        if controller.model.firmware.is_none() {
            return Err(FabricError::NoRaid {
                volume: volume_name,
                controller: controller_name,
            });
        }
        if has_parity(&volume.layout) {
            return Err(FabricError::NoParity {
                volume: volume_name,
                controller: controller_name,
            });
        }
    }
    Ok(())
}

/// The controller of a volume's first disk; a layout has at least one member.
pub(super) fn volume_controller(spec: &FabricSpec, volume: &VolumeSpec) -> u32 {
    spec.disks[volume.disks[0] as usize].controller
}

fn has_parity(layout: &Layout) -> bool {
    match layout {
        Layout::Parity(_) => true,
        Layout::Nested(nested) => {
            has_parity(nested.outer()) || nested.inner().iter().any(has_parity)
        }
        _ => false,
    }
}
