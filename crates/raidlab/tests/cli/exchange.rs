//! Import and export.
use crate::lab::{DD, Lab, ended, samples};
use std::process::Stdio;

/// Samples that hold no results by themselves, with what is said of them.
const NOT_RESULTS: [(&str, &str); 3] = [
    ("bonnie-1.03e.stderr", "Using uid"),
    ("bonnie-2.00a.stderr", "Using uid"),
    ("fio-3.33-normal.txt", "--output-format=json"),
];

fn results() -> Vec<String> {
    let mut names = crate::lab::names(&samples());
    names.retain(|name| NOT_RESULTS.iter().all(|(other, _)| name != other));
    assert!(names.len() >= 15, "the samples are there");
    names
}

fn count(lab: &Lab) -> u64 {
    lab.sessions()
        .iter()
        .filter_map(|session| session["trials"].as_u64())
        .sum()
}

#[test]
fn every_sample_once_and_again() {
    let lab = Lab::new();
    let files: Vec<String> = results()
        .iter()
        .map(|name| samples().join(name).display().to_string())
        .collect();
    let line = format!("import --json {}", files.join(" "));
    lab.run(&line.replacen("import", "import --dry-run", 1))
        .done()
        .says(&["would import"]);
    lab.assert_untouched();
    let first = lab.run(&line).done().json();
    let first = first.as_array().expect("a list");
    assert_eq!(first.len(), files.len());
    let added: u64 = first
        .iter()
        .filter_map(|file| file["trials"].as_u64())
        .sum();
    assert!(
        first.iter().all(|file| file["trials"].as_u64() > Some(0)),
        "{first:?}"
    );
    assert_eq!(count(&lab), added);
    let again = lab
        .run(&line)
        .done()
        .says(&["imported 0 trials", "were there before"])
        .json();
    assert!(
        again
            .as_array()
            .expect("a list")
            .iter()
            .all(|file| file["trials"] == 0)
    );
    assert_eq!(count(&lab), added);
    for session in lab.sessions() {
        let id = session["id"].as_str().expect("an id");
        lab.run(&format!("report {id}")).done();
        lab.run(&format!("show {id}")).done();
    }
}

#[test]
fn what_holds_no_results_says_what_does() {
    for (name, says) in NOT_RESULTS {
        let lab = Lab::new();
        let path = samples().join(name);
        lab.run(&format!("import {}", path.display()))
            .refused(2)
            .says(&[name, ":1:1: ", says]);
        lab.assert_untouched();
    }
}

/// Cut anywhere within its figures, a file imports nothing.
#[test]
fn truncated_files_import_nothing() {
    for name in results() {
        let lab = Lab::new();
        let whole = std::fs::read(samples().join(&name)).expect("a sample");
        lab.write("cut", &whole[..whole.len() * 2 / 3]);
        let good = samples().join("hdparm-tT.txt");
        // A good file before it is not imported either: the list is taken whole or not at all.
        let ran = lab
            .run(&format!("import {} cut", good.display()))
            .refused(2);
        let place = ran.err.split("cut:").nth(1).unwrap_or_default();
        let mut numbers = place.split(':').map(str::parse::<u32>);
        assert!(
            matches!((numbers.next(), numbers.next()), (Some(Ok(_)), Some(Ok(_)))),
            "{name}: line and column: {}",
            ran.err
        );
        assert!(!lab.store().exists(), "{name}");
    }
}

#[test]
fn from_standard_input_with_a_label() {
    let lab = Lab::new();
    let sample = std::fs::File::open(samples().join("hdparm-tT.txt")).expect("a sample");
    let mut command = lab.command("import - --label sdx");
    command.stdin(Stdio::from(sample));
    // `ended` hands no input of its own on.
    let output = command.output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("standard input"), "{error}");
    assert_eq!(lab.trials()[0]["cell"]["label"], "sdx");
    let mut empty = lab.command("import -");
    empty.stdin(Stdio::null());
    ended(empty).refused(2).says(&["standard input"]);
}

#[test]
fn an_export_is_reported_from_standard_input() {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    let exported = lab.run("export").done().out;
    lab.write("results.jsonl", &exported);
    let reported = |from: &str| {
        let mut command = lab.command(&format!("report --title same --from-export {from}"));
        let input = std::fs::File::open(lab.path("results.jsonl")).expect("the export");
        command.stdin(Stdio::from(input));
        let output = command.output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(reported("-"), reported("results.jsonl"));
    lab.run("report --from-export -")
        .refused(2)
        .says(&["standard input:1", "not an export"]);
}

/// Its title named it twice.
#[test]
fn a_session_that_is_named_twice_is_reported_once() {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    let once = lab.run("report last").done().out;
    assert_eq!(lab.run("report last last").done().out, once);
}

#[test]
fn an_export_comes_back_as_it_was() {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    let sample = samples().join("bonnie-1.03-pata.txt");
    lab.run(&format!("import {}", sample.display())).done();
    let first = lab.run("export").done().out;
    lab.run("export -o all.jsonl")
        .refused(0)
        .says(&["wrote 7 trials to all.jsonl"]);
    assert_eq!(
        std::fs::read_to_string(lab.path("all.jsonl")).expect("the export"),
        first
    );
    lab.run("import all.jsonl --store second.sqlite")
        .done()
        .says(&["imported 7 trials"]);
    let second = lab.run("export --store second.sqlite").done().out;
    assert_eq!(first, second);
    lab.run("import all.jsonl --store second.sqlite")
        .done()
        .says(&["imported 0 trials"]);
    let report = lab
        .run("report --from-export all.jsonl --profile dd")
        .done();
    report.prints(&["dd:", "place"]);
}

#[test]
fn a_cut_export_imports_nothing() {
    let lab = Lab::new();
    lab.bench(&format!("-n 3 {DD}"));
    let whole = lab.run("export").done().out;
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at).collect();
    let within = "the line ends before what is written on it is complete";
    for (keep, line, why) in [
        (whole.len() - 2, 4, within),
        (ends[1] + 50, 3, within),
        (40, 1, within),
        (
            ends[0] + 1,
            2,
            "the header announces 3 trials, but 0 follow",
        ),
    ] {
        lab.write("cut.jsonl", &whole[..keep]);
        let place = format!("error: cut.jsonl:{line}:");
        lab.run("import cut.jsonl --store second.sqlite")
            .refused(2)
            .says(&[&place, why]);
        assert!(!lab.path("second.sqlite").exists());
        lab.run("report --from-export cut.jsonl")
            .refused(2)
            .says(&[&place, why]);
    }
}

#[test]
fn a_table_for_spreadsheets_has_a_header() {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    let table = lab.run("export --format csv").done().out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 4, "a header and a row a phase");
    let header: Vec<&str> = lines[0].split(',').collect();
    for column in [
        "session",
        "profile",
        "phase",
        "rate_bytes_per_second",
        "valid",
    ] {
        assert!(header.contains(&column), "no {column} in {header:?}");
    }
}

/// A file that is there is not lost when the new one cannot be written whole.
#[test]
fn an_export_to_nowhere() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    lab.run("export -o nowhere/x.jsonl")
        .refused(4)
        .says(&["cannot write nowhere/x.jsonl", "help:"]);
    lab.run("export -o place")
        .refused(4)
        .says(&["cannot write place"]);
    lab.assert_clean();
}

/// An export has the session with its plan: the experiment's own report can be made of it, as of an import of it.
#[test]
fn the_report_of_an_export_is_that_of_its_session() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 'x'\ndisks = { model = 'sata-ssd', count = 4, price = '80 EUR' }\n\
         profile = { name = 'random', time = '20ms', size = '16MiB' }\n[factors]\nlayout = ['raid0', 'raid5']\n\
         [design]\nrepeats = 3\naggregate = 'median'\nbaseline = { layout = 'raid5' }\n",
    );
    lab.run("run lab.toml --on sim").done();
    lab.run("export last -o x.jsonl").done();
    for options in ["", " --answers", " --margin 30%"] {
        let of_store = lab.run(&format!("report{options}")).done().out;
        let of_file = lab.run(&format!("report --from-export x.jsonl{options}"));
        assert_eq!(of_file.done().out, of_store, "{options}");
    }
    // What is asked for otherwise changes that alone: the figures are joined and judged as the file says.
    let plain = lab.run("report").done().out;
    let answers = lab.run("report --answers").done().out;
    for from in ["", " --from-export x.jsonl"] {
        let report = |options: &str| lab.run(&format!("report{from}{options}")).done().out;
        assert_eq!(report(" --profile random --title x"), plain, "{from}");
        assert_eq!(report(" --profile random --answers"), answers, "{from}");
        let titled = report(" --title 'Of my own'").replacen("Of my own", "x", 1);
        let but_for_title = |text: &str| text.lines().skip(2).collect::<Vec<_>>().join("\n");
        assert_eq!(but_for_title(&titled), but_for_title(&plain), "{from}");
        let to_raid0 = report(" --baseline raid0");
        assert!(to_raid0.contains("ratio to raid0"), "{to_raid0}");
        assert!(to_raid0.contains("Seed "), "{to_raid0}");
        assert!(!to_raid0.contains("without best and worst"), "{to_raid0}");
        lab.run(&format!("report{from} --profile dd"))
            .refused(2)
            .says(&["no trials of profile 'dd' in 'x'", "it has random"]);
        lab.run(&format!("report{from} --baseline raid9"))
            .refused(2)
            .says(&["the baseline 'raid9' is none of the cells"]);
    }
}

/// A baseline that the file has none of brings its ratios along.
#[test]
fn an_experiment_without_a_baseline_is_given_one() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 'x'\ndisks = { model = 'sata-ssd', count = 4 }\n\
         profile = { name = 'random', time = '20ms', size = '16MiB' }\n[factors]\nlayout = ['raid0', 'raid5']\n\
         [design]\nrepeats = 3\naggregate = 'median'\n",
    );
    lab.run("run lab.toml --on sim").done();
    let plain = lab.run("report").done().out;
    assert!(!plain.contains("ratio to"), "{plain}");
    lab.run("report --baseline raid5")
        .done()
        .prints(&["ratio to raid5", "Seed "]);
}

/// What was remarked when the trials were run is no news of the file; what a tool's reader remarks is.
#[test]
fn an_export_is_read_without_the_remarks_of_its_sessions() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 'x'\nquestion = 'An old question?'\ndisks = { model = 'sata-ssd', count = 2 }\n\
         profile = { name = 'random', time = '20ms', size = '16MiB' }\n[design]\nrepeats = 2\n[array]\nlayout = 'raid0'\n",
    );
    lab.run("run lab.toml --on sim --out old.jsonl").done();
    let read = lab.run("import old.jsonl --store other.sqlite").done();
    let session = lab.sessions()[0]["id"].as_str().expect("an id")[..8].to_owned();
    assert_eq!(
        read.err.trim_end(),
        format!("old.jsonl: imported 2 trials, session {session}")
    );
    lab.run("show --store other.sqlite")
        .done()
        .prints(&["An old question?"]);
    let tool = samples().join("tiotest-0.3.3.txt");
    let tool = lab.run(&format!("import {}", tool.display())).done();
    assert!(tool.err.lines().count() > 1, "{}", tool.err);
}

/// What a file says of itself is shown, and does nothing else: it writes no lines, turns no text around, is no formula, and its
/// commands are none that raidlab has made.
#[test]
fn a_file_with_hostile_names_is_shown_and_does_nothing() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let text = lab.run("export").done().out;
    let mut hostile = 0;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            for (path, name) in [
                ("/sessions/0/title", "fine\nlast  2026-01-01 forged"),
                ("/cell/label", "=1+1\u{202e}"),
                ("/command", "raidlab bench /srv; rm -rf /srv"),
                ("/profile", "dd\n  VOID   forged"),
            ] {
                if let Some(at) = value.pointer_mut(path) {
                    *at = name.into();
                    hostile += 1;
                }
            }
            value.to_string()
        })
        .collect();
    assert_eq!(hostile, 4);
    lab.write("hostile.jsonl", &(lines.join("\n") + "\n"));
    lab.run("import hostile.jsonl --store h.sqlite").done();
    for command in [
        "list",
        "show",
        "report",
        "report --html page.html --markdown",
    ] {
        let mut said = lab.run(&format!("{command} --store h.sqlite")).done().out;
        let forged = |line: &str| {
            let line = line.trim_start();
            line.starts_with("last  2026") || line.starts_with("VOID   forged")
        };
        assert!(!said.lines().any(forged), "{command}: {said}");
        // Ends of lines mean nothing on a page.
        said += &std::fs::read_to_string(lab.path("page.html")).unwrap_or_default();
        assert!(!said.contains('\u{202e}'), "{command}: {said}");
        if command.starts_with("report") {
            assert!(
                said.contains("read a command before you run it"),
                "{command}: {said}"
            );
        }
    }
    let table = lab.run("export --format csv --store h.sqlite").done().out;
    assert!(table.contains("'=1+1"), "{table}");
}
