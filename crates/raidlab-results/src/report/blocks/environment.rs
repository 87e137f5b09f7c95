//! What the trials ran on, and what differs between the environments of one report.
use crate::report::document::{Block, Cell, Column, Table};
use crate::report::group::Group;
use raidlab_core::units::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;

/// Values that change from minute to minute, or that the system gives out anew at every mount, and
/// that say nothing about comparability.
const VOLATILE: [&str; 8] = [
    "memory.available",
    "memory.dirty",
    "memory.swap_free",
    "target.filesystem.space.free",
    "target.filesystem.space.available",
    "target.filesystem.space.files_free",
    "target.mount.id",
    "target.mount.parent",
];

/// What a summary shows, by path; `*` stands for the name of a device.
const SUMMARY: [(&str, &str); 26] = [
    ("simulator.version", "simulated by raidlab"),
    ("simulator.models.*.digest", "model, digest"),
    ("disks.*.model", "model"),
    ("buses.*.kind", "bus"),
    ("controllers.*.kind", "controller"),
    ("controllers.*.model", "controller model"),
    ("controllers.*.mode", "mode"),
    ("kernel.release", "kernel"),
    ("kernel.machine", "architecture"),
    ("cpu.model", "processor"),
    ("cpu.online", "processors"),
    ("memory.total", "memory"),
    ("virtualisation", "virtual machine"),
    ("target.path", "measured"),
    ("target.mount.fs_type", "file system"),
    ("target.mount.source", "mounted from"),
    ("target.mount.options", "mount options"),
    ("target.devices.*.model", "device"),
    ("target.devices.*.size", "size"),
    ("target.devices.*.transport", "transport"),
    ("target.devices.*.queue.scheduler", "scheduler"),
    ("target.devices.*.queue.read_ahead_kib", "read-ahead, KiB"),
    ("target.devices.*.queue.write_cache", "write cache"),
    ("target.devices.*.md.level", "md level"),
    ("target.devices.*.md.chunk", "md chunk"),
    ("target.devices.*.md.members", "md members"),
];

/// Most differences that are listed.
const MOST: usize = 40;
/// Where the state of each flaw of the processor stands.
const MITIGATIONS: &str = "cpu.mitigations.";

type Flat = BTreeMap<String, String>;

/// The environments of the groups in words, and what differs between them.
pub(crate) fn environments(
    groups: &[Group<'_>],
    environments: &BTreeMap<String, Value>,
) -> Vec<Block> {
    let mut used: Vec<(&str, Flat, Vec<&str>)> = Vec::new();
    for group in groups {
        let digests = group.trials.iter().filter_map(|t| t.environment.as_deref());
        for digest in digests {
            let Some(environment) = environments.get(digest) else {
                continue;
            };
            if !used.iter().any(|(known, ..)| *known == digest) {
                used.push((digest, flatten(environment), Vec::new()));
            }
            if let Some((.., labels)) = used.iter_mut().find(|(known, ..)| *known == digest)
                && !labels.contains(&group.label.as_str())
            {
                labels.push(&group.label);
            }
        }
    }
    let mut blocks = Vec::new();
    if used.is_empty() {
        return blocks;
    }
    blocks.push(Block::heading("Environment"));
    blocks.extend(summary(&used).map(Block::Table));
    if used.len() > 1 {
        blocks.extend(differences(&used));
    }
    blocks
}

/// What all environments have in common; nothing when that is nothing.
fn summary(used: &[(&str, Flat, Vec<&str>)]) -> Option<Table> {
    let ((_, first, _), rest) = used.split_first()?;
    let columns = vec![Column::text(""), Column::text("")];
    let mut table = Table::new("environment", "What the trials ran on", columns);
    let mut shared: Vec<(usize, &String, &String)> = first
        .iter()
        .filter(|(path, value)| {
            rest.iter()
                .all(|(_, flat, _)| flat.get(*path) == Some(*value))
        })
        .filter_map(|(path, value)| Some((place_of(path)?, path, value)))
        .collect();
    shared.sort();
    for (_, path, value) in shared {
        table.rows.push(vec![
            Cell::text(name_of(path)),
            Cell::text(shown(path, value)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The place of a path in the summary.
fn place_of(path: &str) -> Option<usize> {
    SUMMARY
        .iter()
        .position(|(pattern, _)| matches(pattern, path))
}

/// What a path is called: as in the summary, where it has a name there.
fn name_of(path: &str) -> String {
    let Some((pattern, name)) = place_of(path).map(|place| SUMMARY[place]) else {
        return path.to_owned();
    };
    match device_of(pattern, path) {
        Some(device) => format!("{device}: {name}"),
        None => name.to_owned(),
    }
}

/// Where a difference stands: what the summary has first, then what says most about the machine.
fn rank(path: &str) -> (usize, usize) {
    const SECTIONS: [&str; 5] = ["kernel", "cpu", "memory", "virtualisation", "target"];
    let section = path.split('.').next().unwrap_or_default();
    let of_section = SECTIONS.iter().position(|known| *known == section);
    (
        place_of(path).unwrap_or(SUMMARY.len()),
        of_section.unwrap_or(SECTIONS.len()),
    )
}

/// Sizes that are stored in bytes.
fn shown(path: &str, value: &str) -> String {
    let is_size = ["memory.total", ".size", ".chunk"]
        .iter()
        .any(|end| path.ends_with(end));
    match value.parse() {
        Ok(bytes) if is_size => Bytes(bytes).to_string(),
        _ => value.to_owned(),
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => {
            let middle = path
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after));
            middle.is_some_and(|name| !name.is_empty() && !name.contains('.'))
        }
    }
}

fn device_of<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    let (before, after) = pattern.split_once('*')?;
    path.strip_prefix(before)?.strip_suffix(after)
}

fn differences(used: &[(&str, Flat, Vec<&str>)]) -> Vec<Block> {
    let mut paths: Vec<&String> = used.iter().flat_map(|(_, flat, _)| flat.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| {
        let first = used[0].1.get(*path);
        !VOLATILE.contains(&path.as_str())
            && used.iter().any(|(_, flat, _)| flat.get(*path) != first)
    });
    if paths.is_empty() {
        let text = "All trials ran in the same environment.";
        return vec![Block::paragraph(text)];
    }
    let used = alike(used, &paths);
    let mut columns = vec![Column::text("")];
    columns.extend(
        used.iter()
            .zip(1..)
            .map(|((.., labels), number)| Column::text(heading(labels, number))),
    );
    let caption = "What differs between the environments";
    let mut table = Table::new("environment-differences", caption, columns);
    // One by one they would fill the table.
    let (mitigations, mut others): (Vec<&String>, Vec<&String>) = paths
        .into_iter()
        .partition(|path| path.starts_with(MITIGATIONS));
    others.sort_by_key(|path| (rank(path), *path));
    for path in others.iter().take(MOST) {
        let mut row = vec![Cell::text(name_of(path))];
        row.extend(used.iter().map(|(_, flat, _)| match flat.get(*path) {
            Some(value) => Cell::text(shown(path, value)),
            None => unsaid(flat, path),
        }));
        table.rows.push(row);
    }
    table.rows.extend(mitigated(&mitigations, &used));
    let mut blocks = vec![Block::Table(table)];
    if others.len() > MOST {
        let more = format!("… and {} more differences.", others.len() - MOST);
        blocks.push(Block::paragraph(more));
    }
    blocks
}

/// What stands for a value that an environment does not have: a simulated one has no kernel whose release could be unknown.
fn unsaid(flat: &Flat, path: &str) -> Cell {
    let section = path.split('.').next().unwrap_or_default();
    let has_section = flat
        .keys()
        .any(|known| known.split('.').next() == Some(section));
    match has_section {
        true => Cell::text("unknown"),
        false => Cell::absent(),
    }
}

/// What the kernel does against flaws of the processor, in one line: of each environment what is left open.
fn mitigated(paths: &[&String], used: &[(&str, Flat, Vec<&str>)]) -> Option<Vec<Cell>> {
    let first = paths.first()?;
    let mut row = vec![Cell::text(format!("mitigations, {} differ", paths.len()))];
    row.extend(used.iter().map(|(_, flat, _)| {
        if paths.iter().all(|path| !flat.contains_key(*path)) {
            return unsaid(flat, first);
        }
        let open = |path: &&&String| {
            let value = flat.get(**path);
            value.is_some_and(|value| value.starts_with("Vulnerable"))
        };
        let open: Vec<&str> = paths
            .iter()
            .filter(open)
            .filter_map(|path| path.strip_prefix(MITIGATIONS))
            .collect();
        Cell::text(match open.is_empty() {
            true => "none of them vulnerable".to_owned(),
            false => format!("vulnerable: {}", open.join(", ")),
        })
    }));
    Some(row)
}

/// The environments, those together that do not differ in what is shown: a trial of ten has its free memory, and no
/// column of its own.
fn alike<'u>(
    used: &[(&'u str, Flat, Vec<&'u str>)],
    paths: &[&String],
) -> Vec<(&'u str, Flat, Vec<&'u str>)> {
    let mut kinds: Vec<(&str, Flat, Vec<&str>)> = Vec::new();
    for (digest, flat, labels) in used {
        let same = |other: &Flat| paths.iter().all(|path| other.get(*path) == flat.get(*path));
        match kinds.iter_mut().find(|(_, other, _)| same(other)) {
            None => kinds.push((digest, flat.clone(), labels.clone())),
            Some((.., known)) => {
                for label in labels {
                    if !known.contains(label) {
                        known.push(label);
                    }
                }
            }
        }
    }
    kinds
}

fn heading(labels: &[&str], number: usize) -> String {
    match labels {
        [one] => (*one).to_owned(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        [] => format!("environment {number}"),
    }
}

/// Every leaf by its path. Objects in lists go by their `name`; lists of plain values are joined.
fn flatten(value: &Value) -> Flat {
    let mut flat = Flat::new();
    descend("", value, &mut flat);
    flat
}

fn descend(path: &str, value: &Value, flat: &mut Flat) {
    let under = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (name, value) in map {
                descend(&under(name), value, flat);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let name = name.map_or_else(|| index.to_string(), str::to_owned);
                descend(&under(&name), item, flat);
            }
        }
        Value::Array(items) => {
            let all: Vec<String> = items.iter().map(plain).collect();
            flat.insert(path.to_owned(), all.join(","));
        }
        leaf => {
            flat.insert(path.to_owned(), plain(leaf));
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::Value as Shown;

    #[test]
    fn devices_go_by_name_and_patterns_match_one_of_them() {
        let flat = flatten(&serde_json::json!({
            "kernel": {"release": "6.1", "version": null},
            "target": {"devices": [{"name": "sda", "queue": {"scheduler": "none"}}],
                       "mount": {"options": ["rw", "noatime"]}}
        }));
        let all: Vec<_> = flat.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            all,
            [
                "kernel.release=6.1",
                "target.devices.sda.name=sda",
                "target.devices.sda.queue.scheduler=none",
                "target.mount.options=rw,noatime"
            ]
        );
        let pattern = "target.devices.*.queue.scheduler";
        assert!(matches(pattern, "target.devices.sda.queue.scheduler"));
        assert!(!matches(pattern, "target.devices.sda.x.queue.scheduler"));
        assert_eq!(
            device_of(pattern, "target.devices.sda.queue.scheduler"),
            Some("sda")
        );
    }

    #[test]
    fn environments_that_differ_in_nothing_shown_share_a_column() {
        let of = |free: u32, path: &str| {
            flatten(&serde_json::json!({"memory": {"available": free}, "target": {"path": path}}))
        };
        let used = [
            ("1", of(1, "/a"), vec!["a"]),
            ("2", of(2, "/a"), vec!["a"]),
            ("3", of(3, "/b"), vec!["b"]),
            ("4", of(4, "/b"), vec!["c"]),
        ];
        let blocks = differences(&used);
        let Some(Block::Table(table)) = blocks.first() else {
            panic!("a table");
        };
        let headings: Vec<&str> = table.columns.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(headings, ["", "a", "b and 1 more"]);
        assert_eq!(table.rows.len(), 1);
    }

    fn rows(table: &Table) -> Vec<String> {
        let text = |cell: &Cell| match &cell.value {
            Shown::Absent => "-".to_owned(),
            value => value.text(),
        };
        let line = |row: &Vec<Cell>| {
            let cells: Vec<String> = row.iter().map(text).collect();
            cells.join(" | ")
        };
        table.rows.iter().map(line).collect()
    }

    /// A machine with as many flaws and buses as real ones have, and a simulated one.
    #[test]
    fn what_is_shared_is_summed_up_and_what_differs_begins_with_what_matters() {
        let machine = |kernel: &str, path: &str, state: &str| {
            let flaws = (0..45).map(|i| (format!("flaw{i:02}"), state.into()));
            let buses = (0..60).map(|i| (format!("bus{i:02}"), state.into()));
            flatten(&serde_json::json!({
                "cpu": {"model": "x", "mitigations": serde_json::Map::from_iter(flaws)},
                "buses": serde_json::Map::from_iter(buses),
                "kernel": {"release": kernel, "command_line": kernel}, "memory": {"total": 1 << 30},
                "target": {"path": path},
            }))
        };
        let measured = [
            ("1", machine("6.1", "/a", "Mitigation: x"), vec!["a"]),
            ("2", machine("6.2", "/b", "Vulnerable"), vec!["b"]),
        ];
        let of_both = summary(&measured).expect("a table");
        assert_eq!(rows(&of_both), ["processor | x", "memory | 1 GiB"]);
        let blocks = differences(&measured);
        let Some(Block::Table(table)) = blocks.first() else {
            panic!("a table");
        };
        let told = rows(table);
        assert_eq!(
            told[..3],
            [
                "kernel | 6.1 | 6.2",
                "measured | /a | /b",
                "kernel.command_line | 6.1 | 6.2"
            ]
        );
        assert_eq!(told.len(), MOST + 1);
        assert!(
            told[MOST].starts_with(
                "mitigations, 45 differ | none of them vulnerable | vulnerable: flaw00, "
            ),
            "{told:?}"
        );
        let simulated = flatten(&serde_json::json!({"simulator": {"version": "0.1"}}));
        let mixed = [
            ("0", simulated, vec!["model"]),
            ("1", machine("6.1", "/a", "x"), vec!["a"]),
        ];
        assert!(summary(&mixed).is_none());
        let blocks = differences(&mixed);
        let Some(Block::Table(table)) = blocks.first() else {
            panic!("a table");
        };
        let told = rows(table);
        assert_eq!(told[0], "simulated by raidlab | 0.1 | -");
        assert!(told.contains(&"kernel | - | 6.1".to_owned()), "{told:?}");
        assert_eq!(
            told[MOST],
            "mitigations, 45 differ | - | none of them vulnerable"
        );
    }
}
