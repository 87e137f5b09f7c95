//! Labels that tell cells apart.
use super::{Group, phases, provenance_kind};
use crate::record::Unit;

/// Gives groups of one profile and label different labels: by provenance, then by settings.
pub(super) fn tell_apart(groups: &mut [Group<'_>]) {
    let suffixes: Vec<String> = groups
        .iter()
        .map(|group| {
            let twins: Vec<&Group<'_>> = groups
                .iter()
                .filter(|g| g.profile == group.profile && g.label == group.label)
                .collect();
            let mut parts = Vec::new();
            let kind = provenance_kind(group.provenance);
            if twins.iter().any(|g| provenance_kind(g.provenance) != kind) {
                parts.push(kind);
            }
            let differing = |name: &String| {
                twins
                    .iter()
                    .any(|g| g.settings.get(name) != group.settings.get(name))
            };
            let settings = group.settings.iter().filter(|(name, _)| differing(name));
            parts.extend(settings.map(|(name, value)| format!("{name}={value}")));
            let factors = group.cell.factors.iter().filter(|(name, _)| {
                twins
                    .iter()
                    .any(|g| g.cell.factors.get(*name) != group.cell.factors.get(*name))
            });
            // Importers keep what a factor says as a setting, too.
            for (name, value) in factors {
                let part = format!("{name}={value}");
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            // What is the same in all that makes a cell differs in what it was counted in.
            if parts.is_empty() && twins.iter().any(|g| g.counts_otherwise(group)) {
                parts.extend(counted_otherwise(group, &twins));
            }
            if parts.is_empty() {
                String::new()
            } else {
                format!(" ({})", parts.join(", "))
            }
        })
        .collect();
    for (group, suffix) in groups.iter_mut().zip(suffixes) {
        group.label.push_str(&suffix);
    }
}

/// The phases of a group that a twin counts in another unit, with the unit that they are counted in here.
fn counted_otherwise(group: &Group<'_>, twins: &[&Group<'_>]) -> Vec<String> {
    let told = |phase: &str| {
        let unit = group.unit(phase)?;
        let other = |twin: &&Group<'_>| twin.unit(phase).is_some_and(|its| its != unit);
        let name = match unit {
            Unit::BytesPerSecond => "bytes/s",
            unit => crate::report::format::suited(unit, 1.0).name,
        };
        twins
            .iter()
            .any(other)
            .then(|| format!("{phase} in {name}"))
    };
    let phases = phases(std::slice::from_ref(group));
    phases.into_iter().filter_map(told).collect()
}
