//! What the cells of an experiment are beyond their factors, as the plan of their session tells: array, host, file system and
//! hardware. What was changed between two sessions is in no label.
use crate::record::Session;
use crate::report::group::Group;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What follows from the rest.
const DERIVED: [&str; 3] = ["capacity", "capacity-disks", "channels"];

/// What is kept in bytes.
const SIZES: [&str; 16] = [
    "allocated",
    "bitmap-chunk",
    "block",
    "cache",
    "capacity",
    "chunk",
    "journal",
    "member-size",
    "member-start",
    "memory",
    "outer-chunk",
    "read-ahead",
    "record-size",
    "request-size",
    "sector-logical",
    "sector-physical",
];

/// Values by name.
pub(super) type Setup = BTreeMap<String, String>;

/// Those of all cells, by session and label.
#[derive(Default)]
pub(super) struct Setups(BTreeMap<String, BTreeMap<String, Setup>>);

impl Setups {
    pub(super) fn of(sessions: &[Session]) -> Self {
        let mut all: BTreeMap<String, BTreeMap<String, Setup>> = BTreeMap::new();
        for session in sessions {
            let Some(experiment) = session.plan.as_ref().and_then(|p| p.get("experiment")) else {
                continue;
            };
            for cell in list(experiment, "cells") {
                if let Some(label) = cell["label"].as_str() {
                    let of_session = all.entry(session.id.clone()).or_default();
                    of_session.insert(label.to_owned(), of_cell(experiment, cell));
                }
            }
        }
        Self(all)
    }

    /// That of a cell, where its session tells.
    pub(super) fn get(&self, group: &Group<'_>) -> Option<&Setup> {
        let session = &group.trials.first()?.session;
        self.0.get(session)?.get(&group.cell.label)
    }
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn of_cell(experiment: &Value, cell: &Value) -> Setup {
    let (setup, mut out) = (&cell["setup"], Setup::new());
    add(&mut out, "", &setup["array"]);
    out.retain(|name, _| !DERIVED.contains(&name.as_str()));
    add(&mut out, "", &setup["host"]);
    // The language calls them so.
    for name in ["limit", "background", "expire", "writeback"] {
        if let Some(value) = out.remove(&format!("write-back-{name}")) {
            out.insert(format!("dirty-{name}"), value);
        }
    }
    add(&mut out, "filesystem-", &setup["filesystem"]);
    for (from, to) in [
        ("filesystem-kind", "filesystem"),
        ("filesystem-mount-options", "mount-options"),
    ] {
        if let Some(value) = out.remove(from) {
            out.insert(to.to_owned(), value);
        }
    }
    hardware(&mut out, experiment, list(&setup["array"], "members"));
    out
}

/// The members' disks, their controllers and buses.
fn hardware(out: &mut Setup, experiment: &Value, members: &[Value]) {
    let mut above = Vec::new();
    for disk in list(experiment, "disks") {
        if members.contains(&disk["name"]) {
            let group = disk["group"].as_str().unwrap_or("disks");
            for what in ["model", "override"] {
                let name = if what == "model" { ": model" } else { ": " };
                add(out, &format!("{group}{name}"), &disk[what]);
            }
            above.push(&disk["controller"]);
        }
    }
    for kind in ["controllers", "buses"] {
        let used = |one: &&Value| above.contains(&&one["name"]);
        let of_kind: Vec<&Value> = list(experiment, kind).iter().filter(used).collect();
        for one in &of_kind {
            let name = one["name"].as_str().unwrap_or(kind);
            add(out, &format!("{name}: "), one);
        }
        above = of_kind.iter().map(|one| &one["bus"]).collect();
    }
}

/// Adds a value under its name, one of several under the names of each behind that.
fn add(out: &mut Setup, name: &str, value: &Value) {
    let told = match value {
        Value::Null => return,
        Value::Object(all) => return add_all(out, name, all),
        Value::Array(all) if all.is_empty() => return,
        Value::Array(all) => {
            let words: Vec<String> = all.iter().map(|one| word(name, one)).collect();
            words.join(" ")
        }
        one => word(name, one),
    };
    out.insert(name.to_owned(), told);
}

fn add_all(out: &mut Setup, name: &str, all: &Map<String, Value>) {
    for (key, value) in all {
        match value {
            Value::Object(_) => add(out, &format!("{name}{key}-"), value),
            _ => add(out, &format!("{name}{key}"), value),
        }
    }
}

/// A value as a report tells it.
fn word(name: &str, value: &Value) -> String {
    let key = name.rsplit(' ').next().unwrap_or(name);
    let key = key.strip_prefix("filesystem-").unwrap_or(key);
    let bytes_of = |text: &str| text.strip_suffix('B')?.parse().ok().map(Bytes);
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => bytes_of(text).map_or_else(|| text.clone(), |b| b.to_string()),
        Value::Number(number) => match number.as_u64() {
            Some(bytes) if SIZES.contains(&key) => Bytes(bytes).to_string(),
            Some(nanos) if key.starts_with("seek-") => Span(nanos).to_string(),
            Some(rate) if key.ends_with("rate") => format!("{} MB/s", rate as f64 / 1e6),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
