//! What cells do: nobody chooses between an array with one request in flight and another one with 32.
use super::experiment::ArrayFacts;
use super::group::Group;
use std::collections::{BTreeMap, BTreeSet};

/// What a region holds of its array, at the least, that is all of the array: the rest is rounding.
const WHOLE: f64 = 0.99;

/// What a cell does, by the names of the settings.
pub(crate) type Work = BTreeMap<String, String>;

/// Cells that do the same.
pub(crate) struct Load<'r> {
    /// What they do, as the labels of the cells or the settings of the profile have it; `None` where all do the same.
    pub(crate) name: Option<String>,
    /// In the order in which they come.
    pub(crate) groups: Vec<Group<'r>>,
}

/// The cells of a profile by what they do. Where each does something of its own, that is what is compared, and all are together.
pub(crate) fn loads<'r>(groups: &[Group<'r>], arrays: &[ArrayFacts]) -> Vec<Load<'r>> {
    let mut works: Vec<Work> = Vec::new();
    let mut parts: Vec<Vec<Group<'r>>> = Vec::new();
    for group in groups {
        let work = work(group, arrays);
        match works.iter().position(|known| *known == work) {
            Some(place) => parts[place].push(group.clone()),
            None => {
                works.push(work);
                parts.push(vec![group.clone()]);
            }
        }
    }
    if parts.len() == 1 || parts.iter().all(|part| part.len() == 1) {
        let groups = groups.to_vec();
        return vec![Load { name: None, groups }];
    }
    let names = names(&parts, &works);
    names
        .into_iter()
        .zip(parts)
        .map(|(name, groups)| Load {
            name: Some(name),
            groups,
        })
        .collect()
}

/// The settings of the profile. A region that ends with its array is the same on all, however large these are.
pub(crate) fn work(group: &Group<'_>, arrays: &[ArrayFacts]) -> Work {
    let mut work = group.settings.clone();
    let number = |name: &str| work.get(name).and_then(|text| text.parse::<u64>().ok());
    let mut of_cell = arrays.iter();
    let facts = of_cell.find(|facts| facts.cells.contains(&group.cell.label));
    if let Some(capacity) = facts.and_then(|facts| facts.capacity)
        && let Some(size) = number("size")
    {
        let end = number("offset").unwrap_or(0).saturating_add(size);
        if end as f64 >= WHOLE * capacity as f64 {
            work.insert("size".to_owned(), "all".to_owned());
        }
    }
    work
}

/// What each part is called: by what the labels of its cells have in common, else by the settings that are not the same for all.
fn names(parts: &[Vec<Group<'_>>], works: &[Work]) -> Vec<String> {
    let of_labels: Vec<String> = common_levels(parts);
    let distinct: BTreeSet<&String> = of_labels.iter().filter(|name| !name.is_empty()).collect();
    if distinct.len() == parts.len() {
        return of_labels;
    }
    let settings: BTreeSet<&String> = works.iter().flat_map(BTreeMap::keys).collect();
    let differing: Vec<&String> = settings
        .into_iter()
        .filter(|name| works.iter().any(|w| w.get(*name) != works[0].get(*name)))
        .collect();
    let name = |work: &Work| {
        let told = differing.iter().filter_map(|name| {
            let value = super::blocks::context::setting(name, work.get(*name)?);
            Some(format!("{name} {value}"))
        });
        told.collect::<Vec<_>>().join(", ")
    };
    works.iter().map(name).collect()
}

/// The levels in the labels (`rand32` of `raid6, rand32`) that all cells of a part have, and not all of all parts.
fn common_levels(parts: &[Vec<Group<'_>>]) -> Vec<String> {
    let has = |group: &Group<'_>, level: &str| group.cell.label.split(", ").any(|l| l == level);
    let all_have = |part: &[Group<'_>], level: &str| part.iter().all(|group| has(group, level));
    let name = |part: &Vec<Group<'_>>| {
        let levels = part[0].cell.label.split(", ");
        let own = levels.filter(|level| {
            all_have(part, level) && !parts.iter().all(|part| all_have(part, level))
        });
        own.collect::<Vec<_>>().join(", ")
    };
    parts.iter().map(name).collect()
}
