//! What differs between two environments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Environment;

/// One thing that differs. A side that is `None` did not have or know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Where, as a path of names: `target.devices.sda.queue.scheduler`.
    pub what: String,
    /// The value in the first.
    pub before: Option<String>,
    /// The value in the second.
    pub after: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(unknown)".to_owned());
        write!(
            f,
            "{}: {} -> {}",
            self.what,
            side(&self.before),
            side(&self.after)
        )
    }
}

/// Values that change by themselves from minute to minute and say nothing about comparability.
const VOLATILE: [&str; 6] = [
    "memory.available",
    "memory.dirty",
    "memory.swap_free",
    "target.filesystem.space.free",
    "target.filesystem.space.available",
    "target.filesystem.space.files_free",
];

/// Ids that the system gives out anew at every mount or boot.
const ACCIDENTAL: [&str; 2] = ["target.mount.id", "target.mount.parent"];

/// Lists what differs, in order of the names. Free space, available memory and mount ids are left out.
pub fn diff(a: &Environment, b: &Environment) -> Vec<Difference> {
    let (a, b) = (flatten(a), flatten(b));
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter(|key| !VOLATILE.contains(&key.as_str()) && !ACCIDENTAL.contains(&key.as_str()))
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Difference {
            what: key.clone(),
            before: a.get(key).cloned(),
            after: b.get(key).cloned(),
        })
        .collect()
}

fn flatten(environment: &Environment) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    // The record holds only maps with string keys, so this cannot fail; if it did, all would show as unknown.
    if let Ok(value) = serde_json::to_value(environment) {
        walk("", &value, &mut out);
    }
    out
}

fn walk(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Value::Null => {}
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| walk(&below(key), value, out)),
        // Devices are compared by name, so that an additional one does not shift the rest.
        Value::Array(items) if items.iter().any(|item| item.get("name").is_some()) => {
            for item in items {
                let name = item.get("name").and_then(Value::as_str).unwrap_or("?");
                walk(&below(name), item, out);
            }
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(plain).collect();
            out.insert(path.to_owned(), words.join(","));
        }
        value => {
            out.insert(path.to_owned(), plain(value));
        }
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
