//! The written schema against what is written.
use super::bundle;
use crate::export::csv::COLUMNS;
use crate::export::write_jsonl;
use crate::record::SCHEMA_VERSION;
use crate::store::Bundle;
use crate::store::tests::samples::{any_trial, check, session};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../../docs/schema/results-v1.md");
const SCHEMA: &str = include_str!("../../../../../docs/schema/results-v1.schema.json");

/// A validator of one of the schema's definitions.
fn validator(definition: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let map = schema.as_object_mut().unwrap();
    if !definition.is_empty() {
        map.remove("oneOf").expect("one of header and trial");
        map.insert("$ref".to_owned(), format!("#/$defs/{definition}").into());
    }
    jsonschema::validator_for(&schema).unwrap()
}

fn lines(bundle: &Bundle) -> Vec<Value> {
    let mut out = Vec::new();
    write_jsonl(&mut out, bundle).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn assert_valid(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_documents_are_of_this_version() {
    assert!(DOCUMENT.starts_with(&format!("# Exported results, version {SCHEMA_VERSION}\n")));
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(
        schema["$defs"]["header"]["properties"]["version"]["const"],
        SCHEMA_VERSION
    );
    jsonschema::meta::validate(&schema).unwrap();
}

#[test]
fn exported_lines_are_valid() {
    let (header, trial, either) = (validator("header"), validator("trial"), validator(""));
    for (i, line) in lines(&bundle()).iter().enumerate() {
        assert_valid(if i == 0 { &header } else { &trial }, line);
        assert_valid(&either, line);
        // The two kinds of line are told apart.
        assert!(!if i == 0 { &trial } else { &header }.is_valid(line));
    }
}

#[test]
fn every_record_is_valid() {
    let validator = validator("trial");
    proptest!(ProptestConfig::with_cases(128), |(trial in any_trial("s"))| {
        let bundle = Bundle { sessions: vec![session("s")], trials: vec![trial], ..Bundle::default() };
        assert_valid(&validator, &lines(&bundle)[1]);
    });
}

#[test]
fn the_schema_notices_every_change_of_a_check() {
    let validator = validator("trial");
    let mut bundle = bundle();
    bundle.trials[0].checks = vec![check()];
    let full = lines(&bundle)[1].clone();
    assert_valid(&validator, &full);
    let names = ["of", "by", "elapsed_ns", "bytes", "counts", "consistent"];
    assert_eq!(full["checks"][0].as_object().unwrap().len(), names.len());
    for name in names {
        let mut changed = full.clone();
        changed["checks"][0][name] = Value::from(-1.5);
        assert!(!validator.is_valid(&changed), "{name}");
        changed["checks"][0].as_object_mut().unwrap().remove(name);
        assert!(!validator.is_valid(&changed), "{name}");
    }
    let mut changed = full;
    changed["checks"][0]["counts"]["mismatch_cnt"] = Value::from("many");
    assert!(!validator.is_valid(&changed));
}

/// Removes each field in turn, adds one, and spoils each: the schema must notice.
#[test]
fn the_schema_notices_every_change() {
    let lines = lines(&bundle());
    let validator = validator("trial");
    let (full, failed) = (&lines[1], &lines[3]);
    let mut paths = Vec::new();
    collect_objects(full, String::new(), &mut paths);
    assert!(paths.len() > 8, "{paths:?}");
    for path in paths {
        // These have keys of the user's choice.
        if path.ends_with("/factors") || path.ends_with("/settings") {
            continue;
        }
        let names: Vec<String> = full
            .pointer(&path)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for name in &names {
            for spoil in [None, Some(Value::from(-1.5)), Some(Value::from("+++++"))] {
                let free = matches!(spoil, Some(Value::String(_)))
                    && full.pointer(&format!("{path}/{name}")).unwrap().is_string();
                let number = matches!(spoil, Some(Value::Number(_)))
                    && ["rate", "cpu_percent", "mean_in_flight", "value"].contains(&name.as_str());
                let free_text =
                    free || (spoil.as_ref().is_some_and(Value::is_string) && name == "command");
                if free_text || number {
                    continue;
                }
                let mut changed = full.clone();
                let object = changed.pointer_mut(&path).unwrap().as_object_mut().unwrap();
                match &spoil {
                    None => object.remove(name),
                    Some(value) => object.insert(name.clone(), value.clone()),
                };
                assert!(!validator.is_valid(&changed), "{path}/{name} {spoil:?}");
            }
        }
        let mut changed = full.clone();
        let object = changed.pointer_mut(&path).unwrap().as_object_mut().unwrap();
        object.insert("colour".to_owned(), Value::Null);
        assert!(!validator.is_valid(&changed), "{path}/colour");
    }
    let mut silent = failed.clone();
    silent.as_object_mut().unwrap().remove("reason");
    assert!(!validator.is_valid(&silent));
}

fn collect_objects(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, item) in map {
                collect_objects(item, format!("{path}/{name}"), found);
            }
            found.push(path);
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                collect_objects(item, format!("{path}/{i}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut names = BTreeSet::new();
    properties(&schema, &mut names);
    assert!(names.len() > 50, "{names:?}");
    let (json, _) = DOCUMENT.split_once("\n## CSV\n").unwrap();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !json.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                names.extend(properties.keys().cloned());
            }
            map.values().for_each(|v| properties(v, names));
        }
        Value::Array(items) => items.iter().for_each(|v| properties(v, names)),
        _ => {}
    }
}

#[test]
fn every_column_is_documented_in_order() {
    let (_, csv) = DOCUMENT.split_once("\n## CSV\n").unwrap();
    let documented: Vec<&str> = csv
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
        .collect();
    let written: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    assert_eq!(documented, written);
}

#[test]
fn every_flag_kind_is_in_the_schema() {
    use raidlab_core::flag::FlagKind;
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let kinds = schema["$defs"]["flag"]["properties"]["kind"]["enum"]
        .as_array()
        .unwrap();
    for kind in kinds {
        let name = kind.as_str().unwrap();
        let read: FlagKind = serde_json::from_value(kind.clone()).unwrap();
        assert_eq!(read.name(), name);
        assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
    }
    // serde tells all that it knows when it is given something else.
    let error = serde_json::from_str::<FlagKind>("\"?\"")
        .unwrap_err()
        .to_string();
    let known = error.matches('`').count() / 2 - 1;
    assert_eq!(known, kinds.len(), "{error}");
}
