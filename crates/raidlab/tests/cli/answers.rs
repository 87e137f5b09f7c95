//! What scripts ask: the answers, and that they are as `docs/schema` says.
use crate::lab::{DD, Lab};
use serde_json::Value;

/// Holds a value against one of the schema's definitions, and that against the version of the document that describes it.
fn assert_is(definition: &str, value: &Value) {
    let mut schema: Value = serde_json::from_str(include_str!(
        "../../../../docs/schema/answers-v1.schema.json"
    ))
    .expect("JSON");
    jsonschema::meta::validate(&schema).expect("a schema");
    let map = schema.as_object_mut().expect("an object");
    map.remove("oneOf").expect("one of three");
    map.insert("$ref".to_owned(), format!("#/$defs/{definition}").into());
    // What is written here is described there; readers are told to ignore what is new to them.
    for definition in map["$defs"]
        .as_object_mut()
        .expect("definitions")
        .values_mut()
    {
        if definition.get("properties").is_some() {
            definition["additionalProperties"] = false.into();
        }
    }
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{definition}: {errors:#?}");
}

/// Fields that the schema requires are those that the document tells of.
#[test]
fn every_field_is_described() {
    let document = include_str!("../../../../docs/schema/answers-v1.md");
    let schema: Value = serde_json::from_str(include_str!(
        "../../../../docs/schema/answers-v1.schema.json"
    ))
    .expect("JSON");
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        for field in definition["required"].as_array().into_iter().flatten() {
            let field = field.as_str().expect("a name");
            assert!(document.contains(&format!("`{field}`")), "{name}: {field}");
        }
    }
}

const TIMED: &str = "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 2 }\n[profile]\nname = \"random\"\nsize = \"1GiB\"\ntime = \
    \"10s\"\n[design]\nrepeats = 4\nbaseline = \"one\"\n[factors]\narray = [{ name = \"one\", layout = \"single\" }, { name = \
    \"two\", layout = \"raid0\", members = 2 }]\n";

#[test]
fn response_times_are_as_described() {
    let lab = Lab::new();
    lab.write("timed.toml", TIMED);
    lab.run("run timed.toml --on sim").done();
    let answers = lab.run("report --answers").done().json();
    assert_is("answers", &answers);
    let told = answers["response_times"].as_array().expect("a list");
    assert!(!told.is_empty());
    let verdict = |percentile: &str| {
        let mut of = told.iter();
        of.find(|t| t["percentile"] == percentile).expect("there")["verdict"].clone()
    };
    assert_eq!(
        (verdict("p50"), verdict("p99.9")),
        ("better".into(), "not-judged".into())
    );
    let compared = lab
        .run("compare last:one last:two --json --gate-latency p50=1.1,p99.9=2")
        .done()
        .json();
    assert_is("comparison", &compared);
    assert_eq!(compared["overall"], "not-judged");
    assert_eq!(compared["response_times"][0]["gate"], "pass");
}

/// A RAID5 whose stripe cache is full after some seconds has another rate from then on.
const CHANGES: &str = "title = \"t\"\ndisks = { model = \"nearline-24tb\", count = 4 }\n[profile]\nname = \"random\"\n\
    depth = 16\ntime = \"20s\"\n[array]\nlayout = \"raid5\"\n[design]\nrepeats = 2\n";

#[test]
fn courses_are_as_described_and_those_of_the_report() {
    let lab = Lab::new();
    lab.write("changes.toml", CHANGES);
    lab.run("run changes.toml --on sim").done();
    let answers = lab.run("report --answers").done().json();
    assert_is("answers", &answers);
    let [told] = &answers["courses"].as_array().expect("a list")[..] else {
        panic!("{:#}", answers["courses"]);
    };
    assert_eq!(
        (&told["phase"], &told["course"]),
        (&"write".into(), &"steps".into())
    );
    assert_eq!(
        (&told["runs"], &told["changed"], &told["alike"]),
        (&2.into(), &2.into(), &2.into())
    );
    let levels = told["levels"].as_array().expect("a list");
    let of = |level: &Value, name: &str| level[name].as_f64().expect("a number");
    assert_eq!(of(&levels[0], "from_seconds").to_bits(), 0.0_f64.to_bits());
    assert!(of(&levels[1], "from_seconds") > 0.0);
    assert!(of(&levels[1], "rate") < of(&levels[0], "rate"));
    let words = told["words"].as_str().expect("words");
    lab.run("report").done().prints(&[words]);
}

const BUY: &str = "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 3, price = \"55.50 EUR\" }\n\
    [profile]\nname = \"random\"\nsize = \"1GiB\"\ntime = \"200ms\"\n[design]\nrepeats = 3\n\
    [factors]\narray = [{ name = \"three\", layout = \"raid0\", members = 3 }, { name = \"two\", layout = \"raid0\", \
    members = 2 }, { name = \"mirror\", layout = \"raid1\", members = 2 }]\n";

#[test]
fn a_script_asks_for_the_best_cell_and_the_beaten_ones() {
    let lab = Lab::new();
    lab.write("buy.toml", BUY);
    lab.run("run buy.toml --on sim").done();
    let answers = lab.run("report --answers --html r.html").done().json();
    assert_is("answers", &answers);
    assert!(lab.path("r.html").is_file());
    let best = answers["best"].as_array().expect("a list");
    let write = best
        .iter()
        .find(|best| best["phase"] == "write")
        .expect("a phase");
    assert_eq!(
        (&write["cell"], &write["verdict"]),
        (&"three".into(), &"decided".into())
    );
    assert_eq!(write["next"]["cell"], "two");
    assert!(write["next"]["low"].as_f64() > Some(1.2), "{write}");
    let cells = answers["cells"].as_array().expect("a list");
    assert_eq!(cells[0]["array"]["price"], 166.5);
    assert_eq!(cells[0]["array"]["currency"], "EUR");
    // The report says the same.
    let value = cells[0]["figures"]["write"]["value"]
        .as_f64()
        .expect("a rate");
    let shown = format!("{:.2}", value / f64::from(1 << 20));
    lab.run("report").done().prints(&[&shown]);
    let beaten: Vec<&Value> = answers["worth"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|w| &w["beaten_by"])
        .collect();
    assert_eq!(
        beaten,
        [&Value::Null; 3],
        "each costs less, holds more or survives more"
    );
    lab.run("report --answers --json").refused(2);
}

#[test]
fn sessions_and_comparisons_are_short_and_as_described() {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    lab.write("buy.toml", BUY);
    lab.run("run buy.toml --on sim").done();
    let listed = lab.run("list --json").done();
    assert_is("sessions", &listed.json());
    assert!(
        listed.out.len() < 2000,
        "no experiment in it: {}",
        listed.out
    );
    let places: Vec<Value> = lab
        .sessions()
        .iter()
        .map(|session| session["places"][0].clone())
        .collect();
    assert_eq!(places, ["host", "simulated"]);
    let id = lab.sessions()[1]["id"].as_str().expect("an id").to_owned();
    let compared = lab
        .run(&format!("compare {id}:two {id}:three --json --gate 0.95"))
        .done()
        .json();
    assert_is("comparison", &compared);
    assert_eq!(compared["overall"], "pass");
    assert_eq!(compared["phases"][1]["verdict"], "better");
    let first = lab.sessions()[0]["id"].as_str().expect("an id").to_owned();
    let answers = lab.run(&format!("report {first} --answers")).done().json();
    assert_is("answers", &answers);
    assert_eq!(answers["cells"][0]["array"], Value::Null);
    let comparison =
        lab.run("compare pata-raid0:'md raid0 1 disk' pata-raid0:'md raid0 3 disks' --json");
    assert_is("comparison", &comparison.done().json());
}
