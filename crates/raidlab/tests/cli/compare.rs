//! `raidlab compare` and its gate.
use crate::lab::{DD, Lab};
use serde_json::Value;

/// A store with the sessions `a…` and `b…`; the second's rates are the first's times `factor`.
fn two_sessions(lab: &Lab, factor: f64) {
    sessions(lab, &[('a', 1.0), ('b', factor)]);
}

/// A store with a session of each letter, of rates times the factor.
fn sessions(lab: &Lab, all: &[(char, f64)]) {
    lab.bench(&format!("-n 8 {DD}"));
    let export = lab.run("export").done().out;
    let mut lines = export
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = lines.next().expect("a header");
    let trials: Vec<Value> = lines.collect();
    for &(session, factor) in all {
        let id = session.to_string().repeat(32);
        let mut header = header.clone();
        header["sessions"][0]["id"] = id.clone().into();
        let mut text = format!("{header}\n");
        for (number, trial) in trials.iter().enumerate() {
            let mut trial = trial.clone();
            trial["id"] = format!("{session}{number:031x}").into();
            trial["session"] = id.clone().into();
            for phase in trial["phases"].as_array_mut().expect("phases") {
                // Steady to half a per cent, whatever this machine was like, and without doubts.
                phase["rate"] = (1e8 * factor * (1.0 + 0.001 * (number % 5) as f64)).into();
                phase["flags"] = Value::Array(Vec::new());
            }
            trial["flags"] = Value::Array(Vec::new());
            text.push_str(&format!("{trial}\n"));
        }
        lab.write("half.jsonl", text);
        lab.run("import half.jsonl --store compared.sqlite").done();
    }
}

#[test]
fn a_gate_fails_what_is_surely_worse() {
    let lab = Lab::new();
    two_sessions(&lab, 0.8);
    lab.run("compare aaaa bbbb --gate 0.95 --store compared.sqlite")
        .code(1)
        .prints(&["worse", "fail", "0.80"]);
    let json = lab
        .run("compare aaaa bbbb --gate 0.95 --json --html c.html --store compared.sqlite")
        .code(1)
        .json();
    assert_eq!(json["overall"], "fail");
    assert_eq!(json["phases"].as_array().expect("phases").len(), 4);
    assert!(lab.path("c.html").is_file());
    lab.run("compare bbbb aaaa --gate 0.95 --store compared.sqlite")
        .done()
        .prints(&["better", "pass"]);
    lab.run("compare aaaa bbbb --store compared.sqlite")
        .done()
        .prints(&["worse"]);
    lab.run("compare aaaa bbbb --gate 0.7 --store compared.sqlite")
        .done();
    lab.run("compare aaaa bbbb --gate 0.95 --require-interval --store compared.sqlite")
        .code(1);
    lab.run("compare aaaa bbbb --gate 0.7 --require-interval --store compared.sqlite")
        .done();
}

#[test]
fn a_gate_passes_what_is_equal() {
    let lab = Lab::new();
    two_sessions(&lab, 1.0);
    lab.run("compare aaaa bbbb --gate 0.95 --store compared.sqlite")
        .done()
        .prints(&["equivalent", "pass"]);
    lab.run("compare aaaa:place bbbb:place --phase read,write --gate 0.95 --store compared.sqlite")
        .done()
        .prints(&["read", "write"]);
    lab.run("compare aaaa bbbb --phase nowhere --store compared.sqlite")
        .refused(2)
        .says(&["'aaaa' has no phase 'nowhere'", "read-first"]);
    lab.run("compare aaaa bbbb --profile bonnie --store compared.sqlite")
        .refused(2)
        .says(&["no profile 'bonnie'", "it has: dd"]);
    lab.run("compare aaaa:nowhere bbbb --store compared.sqlite")
        .refused(2)
        .says(&["no cell 'nowhere'", "place"]);
}

/// What has vanished has not become faster; who names a label has left the others out.
#[test]
fn a_gate_tells_of_cells_that_the_candidate_lacks() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("other")).expect("a directory");
    for places in ["A=place B=other", "A=place"] {
        lab.run(&format!("bench {places} -n 2 {DD}")).done();
    }
    let gated = |line: &str| lab.run(&format!("compare {line} --gate 0.001"));
    gated("last~1 last --require-interval")
        .code(6)
        .says(&["cannot tell of dd of B: no such cell in the candidate"]);
    gated("last~1 last")
        .done()
        .says(&["does not judge dd of B: no such cell in the candidate"]);
    let told = gated("last~1 last --json").done().json();
    assert_eq!(told["overall"], "warn");
    assert_eq!(told["not_compared"][0]["missing"], true);
    for line in ["last~1:A last", "last~1 last:A", "last last~1"] {
        let ran = gated(&format!("{line} --require-interval")).done();
        assert!(!ran.err.contains("of B"), "{}", ran.err);
    }
}

#[test]
fn nothing_is_compared_with_itself() {
    let lab = Lab::new();
    two_sessions(&lab, 0.8);
    for (line, said) in [
        ("aaaa aaaa", "trials are on both sides"),
        ("aaaa aaaa:place --gate 0.95", "trials are on both sides"),
    ] {
        lab.run(&format!("compare {line} --store compared.sqlite"))
            .refused(2)
            .says(&[said, "name two sessions"]);
    }
    let row = "pata-raid0:'md raid0 1 disk'";
    lab.run(&format!("compare {row} {row}"))
        .refused(2)
        .says(&["both sides"]);
}

/// One session a side looks sure and says what it is not sure of; several of each are compared by their means.
#[test]
fn several_sessions_make_a_side() {
    let lab = Lab::new();
    let factors = [('a', 1.0), ('b', 0.9), ('c', 1.09), ('d', 0.99)];
    sessions(&lab, &factors);
    let compare = |line: &str| lab.run(&format!("compare {line} --store compared.sqlite"));
    compare("aaaa bbbb --gate 0.95")
        .code(1)
        .prints(&["not what another one would add", "A1,A2 B1,B2"]);
    let ran = compare("aaaa,cccc bbbb,dddd --gate 0.95").done();
    assert!(ran.out.contains("the means of 2 sessions"), "{}", ran.out);
    assert!(!ran.out.contains("A1,A2"), "{}", ran.out);
    compare("aaaa,cccc:place bbbb:place").done();
    compare("aaaa,bbbb bbbb")
        .refused(2)
        .says(&["trials are on both sides"]);
    compare("aaaa,aaaa bbbb").refused(2).says(&["twice"]);
    compare("aaaa,cccc:nowhere bbbb")
        .refused(2)
        .says(&["aaaa has no cell 'nowhere'", "place"]);
    compare("aaaa,nonsense bbbb")
        .refused(2)
        .says(&["'nonsense' is neither"]);
}

/// A rate of nothing fails; one of the baseline has no ratio, which is told with its reason and is no pass.
#[test]
fn a_gate_fails_a_candidate_at_zero() {
    let lab = Lab::new();
    two_sessions(&lab, 0.0);
    let compare = |line: &str| {
        lab.run(&format!(
            "compare {line} --gate 0.95 --store compared.sqlite"
        ))
    };
    compare("aaaa bbbb")
        .code(1)
        .prints(&["worse", "fail", "0.00"]);
    compare("bbbb aaaa --phase read,write")
        .done()
        .says(&["the gate could judge nothing"]);
    compare("bbbb aaaa --phase read --require-interval")
        .code(6)
        .says(&["no interval of read of place: mean of the baseline is 0"]);
}

#[test]
fn published_rows_are_compared() {
    let lab = Lab::new();
    lab.run("compare pata-raid0:'md raid0 1 disk' pata-raid0:'md raid0 2 disks, 2 channels'")
        .done()
        .prints(&["block-write", "ratio"]);
    lab.assert_untouched();
}

/// One published value a side proves nothing: the gate says so and does not fail.
#[test]
fn a_gate_without_repeats_judges_nothing() {
    let lab = Lab::new();
    let ran = lab
        .run("compare pata-raid0:'md raid0 2 disks, 2 channels' pata-raid0:'md raid0 1 disk' --gate 0.95")
        .done();
    assert!(ran.err.contains("warning:"), "{}", ran.err);
    // Unless one must: not the code of what is worse, nor that of success.
    let line = "compare pata-raid0:'md raid0 2 disks, 2 channels' pata-raid0:'md raid0 1 disk'";
    lab.run(&format!("{line} --gate 0.95 --require-interval"))
        .code(6)
        .says(&[
            "warning: the gate cannot tell: no interval of ",
            "1 more figure: two valid trials are needed on each side",
        ]);
    lab.run(&format!("{line} --require-interval"))
        .refused(2)
        .says(&["--gate"]);
    for help in ["compare --help", "--help"] {
        lab.run(help).done().prints(&["--require-interval"]);
    }
}

/// A fixed load on modelled disks, whose response times are judged; two disks wait less than one.
const LOADED: &str = "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 2 }\n[profile]\nname = \"random\"\nsize = \"1GiB\"\n\
    time = \"10s\"\n[design]\nrepeats = 5\n[factors]\narray = [{ name = \"one\", layout = \"single\" }, { name = \"two\", layout = \
    \"raid0\", members = 2 }]\n";

#[test]
fn a_gate_of_response_times_has_the_exit_codes_of_the_other() {
    let lab = Lab::new();
    lab.write("loaded.toml", LOADED);
    lab.run("run loaded.toml --on sim").done();
    let compare = |line: &str| lab.run(&format!("compare {line} --phase read"));
    compare("last:two last:one --gate-latency 1.10")
        .code(1)
        .prints(&["ratio of response times", "p99 at 1.1: fail", "worse"]);
    compare("last:one last:two --gate-latency p50=1.05,p99=1.10 --require-interval")
        .done()
        .prints(&["p50 at 1.05: pass; p99 at 1.1: pass"]);
    // Both gates count, whichever fails.
    compare("last:two last:one --gate 0.01 --gate-latency 1.10").code(1);
    // Too few reads for one in a thousand.
    compare("last:one last:two --gate-latency p99.9=1.5")
        .done()
        .says(&["warning: the gate of response times could judge nothing"]);
    compare("last:one last:two --gate-latency p99.9=1.5 --require-interval")
        .code(6)
        .says(&["no interval of p99.9 of read of two: p99.9 wants 10000"]);
    compare("last:one last:two --gate-latency 1.1,p99=1.2")
        .refused(2)
        .says(&["names p99 twice"]);
    compare("last:one last:two --gate-latency 0.9")
        .refused(2)
        .says(&["only what is faster", "1.10"]);
    let json = compare("last:two last:one --gate-latency 1.10 --json")
        .code(1)
        .json();
    assert_eq!(json["gate_latency"]["p99"], 1.1);
    assert_eq!(json["overall"], "fail");
    let answers = lab
        .run("report last --answers --baseline one")
        .done()
        .json();
    let told = answers["response_times"].as_array().expect("a list");
    assert_eq!(told[0]["percentile"], "p50");
    assert_eq!(told[0]["verdict"], "better");
}

/// Of a run that was killed, the cells and rounds that it did not come to are not in what a gate passes.
#[test]
fn a_side_that_is_unfinished_is_told() {
    let lab = Lab::new();
    two_sessions(&lab, 1.0);
    let export = lab.run("export bbbb --store compared.sqlite").done().out;
    let cut = export
        .replacen("\"finished\":true", "\"finished\":false", 1)
        .replacen("\"planned\":8", "\"planned\":80", 1);
    assert_ne!(cut, export);
    lab.write(
        "cut.jsonl",
        cut.replace("bbbbbbbb", "cccccccc")
            .replace("\"b000", "\"c000"),
    );
    lab.run("import cut.jsonl --store compared.sqlite").done();
    let told = "is unfinished: not all of its 80 trials were run";
    let ran = lab.run("compare aaaa cccc --gate 0.95 --store compared.sqlite");
    ran.done().prints(&[told]).says(&[told]);
    let ran = lab.run("compare aaaa bbbb --gate 0.95 --store compared.sqlite");
    assert!(!ran.done().out.contains("unfinished"));
    let json = lab
        .run("compare cccc aaaa --json --store compared.sqlite")
        .done()
        .json();
    assert_eq!(json["unfinished"].as_array().map(Vec::len), Some(1));
}
