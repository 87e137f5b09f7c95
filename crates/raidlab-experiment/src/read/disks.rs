//! `[disks]`: models by the names of the catalogue or by their files, what differs from them, how many.
use super::tree::{At, Node};
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::Overrides;
use crate::{Known, KnownDisk};
use raidlab_core::price::Price;
use raidlab_core::units::Bytes;
use raidlab_core::words;
use toml::de::DeTable;

/// Disks of one model and place.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: At<String>,
    pub(crate) model: At<String>,
    pub(crate) names: Vec<String>,
    pub(crate) overrides: Overrides,
    /// Of one of them.
    pub(crate) price: Option<At<Price>>,
}

/// The most disks of one experiment.
const MOST: u64 = 1024;

/// The groups; `None` when one could not be read.
pub(crate) fn read(root: &Node<'_, '_>, known: &Known<'_>) -> Option<Vec<Group>> {
    let node = root.node("disks")?;
    let single = node.has("model") || node.has("count") || node.has("labels");
    let mut groups = Vec::new();
    let mut whole = true;
    if single {
        let name = At::new("disk".to_owned(), node.at.clone());
        match group(&node, name, known) {
            Some(group) => groups.push(group),
            None => whole = false,
        }
        node.close();
    } else {
        let pairs = node.pairs();
        if pairs.is_empty() {
            node.missing("model", "give it a model and a count");
            whole = false;
        }
        for (name, entry) in pairs {
            let Some(table) = entry.get_ref().as_table() else {
                let known = ["model", "count", "labels", "override", "price"];
                root.problems.unknown_of(
                    &name.at,
                    "key",
                    &name.value,
                    "in [disks]",
                    known.iter().copied(),
                );
                whole = false;
                continue;
            };
            let child = node.child(&format!("disks.{}", name.value), table, name.at.clone());
            match group(&child, name, known) {
                Some(group) => groups.push(group),
                None => whole = false,
            }
            child.close();
        }
    }
    let all: usize = groups.iter().map(|group| group.names.len()).sum();
    if all as u64 > MOST {
        let message = format!("{all} disks are too many");
        let help = format!("an experiment has at most {MOST}");
        root.problems.wrong(&root.key_at("disks"), message, &help);
        return None;
    }
    whole &= distinct(root, &groups);
    whole.then_some(groups)
}

fn group(node: &Node<'_, '_>, name: At<String>, known: &Known<'_>) -> Option<Group> {
    let problems = node.problems;
    node.missing("model", "name a disk model of the catalogue");
    let mut model = node.entry("model").and_then(|e| problems.text("model", e));
    if let Some(model) = &mut model
        && !is_known(problems, model, known)
    {
        // What else is wrong here is told before giving up.
        rest(node, &name);
        return None;
    }
    let before = problems.len();
    let (names, overrides, price) = rest(node, &name);
    let model = model?;
    // Of values that are wrong by themselves nothing more is said.
    if problems.len() == before {
        make_a_disk(node, &model, &overrides, known);
    }
    Some(Group {
        name,
        model,
        names: names?,
        overrides,
        price,
    })
}

/// Tells of values that the model cannot have: a speed that no disk turns at, seeks that lie on no curve.
fn make_a_disk(node: &Node<'_, '_>, model: &At<String>, overrides: &Overrides, known: &Known<'_>) {
    let Some(check) = known.override_check.filter(|_| node.has("override")) else {
        return;
    };
    let text = known.own(&model.value).map(|own| own.text);
    if let Err(reason) = check(&model.value, text, overrides) {
        let message = format!("disk model '{}': {reason}", model.value);
        let help = format!(
            "'raidlab disk show {}' prints what the model has",
            model.value
        );
        node.problems
            .wrong(&node.key_at("override"), message, &help);
    }
}

/// Whether there is such a model, which then has the name that the catalogue has; tells when not.
fn is_known(problems: &Problems, model: &mut At<String>, known: &Known<'_>) -> bool {
    // Model names are known in any case, as the catalogue knows them.
    let same = |disk: &&KnownDisk<'_>| disk.name.eq_ignore_ascii_case(&model.value);
    if let Some(disk) = known.disks.iter().find(same) {
        model.value = disk.name.to_owned();
        return true;
    }
    let file = known.files.iter().find(|file| file.path == model.value);
    if let Some(file) = file {
        if let Err(reason) = &file.model {
            let message = format!("the model file '{}' cannot be used: {reason}", file.path);
            problems.wrong(&model.at, message, ABOUT_FILES);
        }
        return file.model.is_ok();
    }
    let names = known.disks.iter().map(|disk: &KnownDisk<'_>| disk.name);
    problems.unknown_or(&model.at, "disk model", &model.value, names, NEW_MODEL);
    false
}

/// What there is for a disk that the catalogue does not have.
const NEW_MODEL: &str = "any other disk by the path of a model file (\"./my.toml\"), which 'raidlab disk new' makes \
    from a data sheet";

/// What helps with a model file that cannot be used.
pub(super) const ABOUT_FILES: &str = "a path is taken from the folder of this file; 'raidlab disk show \
    PATH' prints a model file, or all that is wrong with it";

/// What a model is when it is no name of the catalogue.
fn is_path(model: &str) -> bool {
    let toml = |end: &str| end.eq_ignore_ascii_case("toml");
    model.contains('/') || model.rsplit_once('.').is_some_and(|(_, end)| toml(end))
}

/// See [`crate::model_files`].
pub(crate) fn model_files(root: &DeTable<'_>) -> Vec<String> {
    let Some(disks) = root.get("disks").and_then(|d| d.get_ref().as_table()) else {
        return Vec::new();
    };
    let groups = disks
        .values()
        .filter_map(|group| group.get_ref().as_table());
    paths(std::iter::once(disks).chain(groups))
}

/// The values of `model` in these tables that look like a path, each once.
pub(super) fn paths<'a, 'i: 'a>(tables: impl Iterator<Item = &'a DeTable<'i>>) -> Vec<String> {
    let models = tables.filter_map(|table| table.get("model")?.get_ref().as_str());
    let mut files: Vec<String> = models
        .map(|model| model.trim().to_owned())
        .filter(|model| is_path(model))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn rest(
    node: &Node<'_, '_>,
    name: &At<String>,
) -> (Option<Vec<String>>, Overrides, Option<At<Price>>) {
    let overrides = node.node("override").map(|n| overrides(&n));
    let names = names(node, &name.value);
    (names, overrides.unwrap_or_default(), node.price())
}

/// Labels when given, else the group's name with a number.
fn names(node: &Node<'_, '_>, group: &str) -> Option<Vec<String>> {
    let problems = node.problems;
    let labels = node.entry("labels").map(|e| problems.texts("labels", e));
    let entry = node.entry("count");
    let count = match (entry, &labels) {
        (Some(entry), _) => problems.count("count", entry, 1..=MOST)?,
        (None, Some(labels)) => labels.len() as u64,
        (None, None) => 1,
    };
    match labels {
        Some(labels) if labels.len() as u64 == count => {
            Some(labels.into_iter().map(|l| l.value).collect())
        }
        Some(labels) => {
            let message = format!(
                "{} for {}",
                words::count(labels.len(), "label"),
                words::count(count, "disk")
            );
            let problem = Diagnostic::new(node.key_at("labels"), message);
            problems.push(problem.help("give each disk one label, or drop 'count'"));
            None
        }
        None => Some((0..count).map(|i| format!("{group}{i}")).collect()),
    }
}

/// A disk has whole sectors: 10 MB are none of 512 bytes. What is told is not told again of what comes of it.
fn whole_sectors(node: &Node<'_, '_>, overrides: &mut Overrides) {
    let sector = overrides.sector_logical.unwrap_or(Bytes(512)).0;
    let Some(Bytes(capacity)) = overrides.capacity.filter(|c| !c.0.is_multiple_of(sector)) else {
        return;
    };
    let below = capacity / sector * sector;
    let message =
        format!("'capacity' of {capacity} bytes is no whole number of sectors of {sector} bytes");
    let above = below.saturating_add(sector);
    let help = match below {
        0 => format!("write \"{above}B\", or more"),
        _ => format!("write \"{below}B\" or \"{above}B\""),
    };
    node.problems
        .wrong(&node.key_at("capacity"), message, &help);
    overrides.capacity = None;
}

fn overrides(node: &Node<'_, '_>) -> Overrides {
    let problems = node.problems;
    let size = |key: &str| {
        let size = problems.size(key, node.entry(key)?)?;
        if size.0 == 0 {
            let message = format!("'{key}' must not be 0");
            problems.wrong(&node.key_at(key), message, "drop it to keep the model's");
            return None;
        }
        Some(size)
    };
    let span = |key: &str| problems.span(key, node.entry(key)?);
    let rate = |key: &str| problems.rate(key, node.entry(key)?);
    let count = |key: &str, range| problems.count32(key, node.entry(key)?, range);
    let sector = |key: &str| {
        let size = size(key)?;
        if ![Bytes(512), Bytes(4096)].contains(&size) {
            let message = format!("no disk has sectors of {size}");
            let help = "write \"512B\" or \"4KiB\"";
            problems.wrong(&node.key_at(key), message, help);
            return None;
        }
        Some(size)
    };
    let mut overrides = Overrides {
        capacity: size("capacity"),
        // As any model of a hard disk.
        rpm: count("rpm", 300..=20_000),
        cache: size("cache"),
        seek_average: span("seek-average"),
        seek_track: span("seek-track"),
        seek_full: span("seek-full"),
        outer_rate: rate("outer-rate"),
        inner_rate: rate("inner-rate"),
        sector_physical: sector("sector-physical"),
        sector_logical: sector("sector-logical"),
        queue: count("queue", 1..=65_536),
    };
    node.close();
    whole_sectors(node, &mut overrides);
    seeks_in_order(node, &overrides);
    if overrides.sector_physical < overrides.sector_logical && overrides.sector_physical.is_some() {
        let help = "a drive reports sectors of at most the size it has";
        let message = "the logical sector is larger than the physical one";
        problems.wrong(&node.key_at("sector-logical"), message, help);
    }
    overrides
}

/// Track to track is at most the average, and that at most the full stroke; the same for the rates.
fn seeks_in_order(node: &Node<'_, '_>, given: &Overrides) {
    let pairs = [
        (
            "seek-track",
            given.seek_track,
            "seek-average",
            given.seek_average,
        ),
        ("seek-track", given.seek_track, "seek-full", given.seek_full),
        (
            "seek-average",
            given.seek_average,
            "seek-full",
            given.seek_full,
        ),
    ];
    for (low, low_value, high, high_value) in pairs {
        if let (Some(a), Some(b)) = (low_value, high_value)
            && a > b
        {
            let message = format!("'{low}' is longer than '{high}'");
            let problem = Diagnostic::new(node.key_at(low), message);
            let problem = problem.also(node.key_at(high), format!("{b}"));
            node.problems.push(problem.help("were the two exchanged?"));
        }
    }
    if let (Some(inner), Some(outer)) = (given.inner_rate, given.outer_rate)
        && inner > outer
    {
        let message = "'inner-rate' is above 'outer-rate'";
        let problem = Diagnostic::new(node.key_at("inner-rate"), message);
        node.problems.push(
            problem.help("outer tracks hold more, so they are faster: were the two exchanged?"),
        );
    }
}

/// Tells of names that two disks have.
fn distinct(root: &Node<'_, '_>, groups: &[Group]) -> bool {
    let mut seen: Vec<(&str, &At<String>)> = Vec::new();
    let mut whole = true;
    for group in groups {
        for name in &group.names {
            match seen.iter().find(|(known, _)| known == name) {
                Some((_, other)) => {
                    let message = format!("two disks are named '{name}'");
                    let problem = Diagnostic::new(group.name.at.clone(), message);
                    let problem = problem.also(other.at.clone(), "the other one");
                    root.problems
                        .push(problem.help("give the groups or labels names of their own"));
                    whole = false;
                    break;
                }
                None => seen.push((name, &group.name)),
            }
        }
    }
    whole
}
