//! Disk models as they are behind a line: with another link, or with the write cache off.
use crate::disk::DiskModel;
use crate::disk::ssd::SsdModel;
use std::sync::Arc;

/// Models with another link or without a write cache, each made once.
#[derive(Default)]
pub(super) struct Models {
    made: Vec<(DiskModel, u64, DiskModel)>,
}

impl Models {
    pub(super) fn get(&mut self, model: &DiskModel, link: u64, cache_off: bool) -> DiskModel {
        let same = |other: &DiskModel| match (model, other) {
            (DiskModel::Hdd(a), DiskModel::Hdd(b)) => Arc::ptr_eq(a, b),
            (DiskModel::Ssd(a), DiskModel::Ssd(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let found = self
            .made
            .iter()
            .find(|(of, rate, _)| *rate == link && same(of));
        if let Some((_, _, made)) = found {
            return made.clone();
        }
        let made = with_link(model, link, cache_off);
        self.made.push((model.clone(), link, made.clone()));
        made
    }
}

/// The model with a link of this rate and, for a hard disk, its write cache turned off.
fn with_link(model: &DiskModel, link: u64, cache_off: bool) -> DiskModel {
    match model {
        DiskModel::Hdd(hdd) => {
            let write_back = hdd.spec.cache.write_back && !cache_off;
            if hdd.spec.link == link && hdd.spec.cache.write_back == write_back {
                return model.clone();
            }
            DiskModel::Hdd(Arc::new(hdd.behind(link, cache_off)))
        }
        DiskModel::Ssd(ssd) if ssd.spec.link == link => model.clone(),
        DiskModel::Ssd(ssd) => {
            let mut spec = SsdModel::clone(ssd).spec;
            spec.link = link;
            spec.build()
                .map_or_else(|_| model.clone(), |ssd| DiskModel::Ssd(Arc::new(ssd)))
        }
    }
}
