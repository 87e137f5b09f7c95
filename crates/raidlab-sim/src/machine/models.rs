//! Disk models, each read and built once.
use super::error::MachineError;
use super::overrides;
use crate::catalogue::{self, UnknownModel};
use crate::disk::DiskModel;
use raidlab_experiment::hardware::Disk;

/// Disk models, for whoever builds many machines of the same disks: to read a model and solve its seek curve takes milliseconds,
/// more than some trials.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// Each with a disk that is one of it.
    made: Vec<(Disk, DiskModel)>,
}

impl Models {
    /// Those of these disks. What makes no model is told when a machine wants it.
    pub fn of<'d>(disks: impl IntoIterator<Item = &'d Disk>) -> Self {
        let mut models = Self::default();
        for disk in disks {
            if models.known(disk).is_none()
                && let Ok(made) = model(disk)
            {
                models.made.push((disk.clone(), made));
            }
        }
        models
    }

    fn known(&self, disk: &Disk) -> Option<&DiskModel> {
        let same = |known: &Disk| {
            known.model == disk.model
                && known.model_text == disk.model_text
                && known.overrides == disk.overrides
        };
        let mut made = self.made.iter();
        made.find_map(|(known, made)| same(known).then_some(made))
    }

    /// The model of a disk.
    pub(super) fn get(&self, disk: &Disk) -> Result<DiskModel, MachineError> {
        self.known(disk)
            .map_or_else(|| model(disk), |made| Ok(made.clone()))
    }
}

fn model(disk: &Disk) -> Result<DiskModel, MachineError> {
    let mut known = catalogue::MODELS.iter().copied();
    let own = disk.model_text.as_deref();
    let own = own.map(|text| (disk.model.as_str(), text));
    let of_catalogue = || known.find(|(name, _)| name.eq_ignore_ascii_case(&disk.model));
    let Some((name, text)) = own.or_else(of_catalogue) else {
        return Err(MachineError::UnknownModel {
            disk: disk.name.clone(),
            source: UnknownModel {
                name: disk.model.clone(),
            },
        });
    };
    overrides::model(name, text, &disk.overrides).map_err(|source| MachineError::Override {
        disk: disk.name.clone(),
        model: disk.model.clone(),
        source,
    })
}
