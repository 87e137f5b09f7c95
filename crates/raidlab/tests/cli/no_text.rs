//! Names of files that are no text: the kernel takes any bytes, and what the user typed is kept as a shell takes it back.
use crate::lab::{Lab, Ran, ended, samples};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

const SMALL: &str = "title = 'x'\ndisks = { model = 'sata-ssd', count = 3 }\narray = { layout = 'raid5' }\n\
                     profile = { name = 'random', time = '20ms', size = '16MiB' }\n";

/// Runs a line and these words, which need not be text.
fn run(lab: &Lab, line: &str, more: &[&[u8]]) -> Ran {
    let mut command = lab.command(line);
    command.args(more.iter().map(|word| OsStr::from_bytes(word)));
    ended(command)
}

fn command_of_last(lab: &Lab) -> String {
    let sessions = lab.sessions();
    let last = sessions.first().expect("a session");
    let id = last["id"].as_str().expect("an id");
    let shown = lab.run(&format!("show {id} --json")).done().json();
    let command = shown["session"]["command"].as_str();
    command.expect("a command").to_owned()
}

#[test]
fn an_experiment_is_run_whatever_its_files_are_called() {
    let lab = Lab::new();
    lab.write("lab.toml", SMALL);
    run(&lab, "run lab.toml --on sim --html", &[b"p\xff.html"]).done();
    assert!(
        lab.path("")
            .join(OsStr::from_bytes(b"p\xff.html"))
            .is_file()
    );
    assert_eq!(
        command_of_last(&lab),
        r"raidlab run lab.toml --on sim --html $'p\xff.html'"
    );
    std::fs::write(lab.path("").join(OsStr::from_bytes(b"b\xffd.toml")), SMALL).expect("a file");
    run(&lab, "plan", &[b"b\xffd.toml"]).done();
    run(&lab, "run --on sim -n 1", &[b"b\xffd.toml"]).done();
    run(
        &lab,
        "run --on sim -n 1 lab.toml --store",
        &[b"s\xff.sqlite"],
    )
    .done();
    run(&lab, "list --store", &[b"s\xff.sqlite"]).done();
    run(&lab, "report --from-export", &[b"nothing\xff"]).refused(2);
    // Something else is wrong behind it.
    let behind: &[&[u8]] = &[b"s\xff.sqlite", b"run", b"--runs", b"4"];
    run(&lab, "--store", behind)
        .refused(2)
        .says(&["it is called --repeats here"]);
    // Those of machines say what they lack, and come to no panic before.
    for on in ["host", "vm"] {
        run(&lab, &format!("plan --on {on}"), &[b"b\xffd.toml"]);
    }
}

#[test]
fn a_place_is_measured_whatever_the_report_is_called() {
    let lab = Lab::new();
    let line = format!("bench place -n 1 {} --html", crate::lab::DD);
    run(&lab, &line, &[b"p\xff.html"]).done();
    assert!(command_of_last(&lab).ends_with(r"--html $'p\xff.html'"));
    run(&lab, "bench", &[b"pl\xffce"]).refused(2);
}

#[test]
fn output_is_imported_whatever_its_file_is_called() {
    let lab = Lab::new();
    let name = OsStr::from_bytes(b"dd\xff.txt");
    std::fs::copy(samples().join("hdparm-tT.txt"), lab.path("").join(name)).expect("a copy");
    run(&lab, "import", &[name.as_bytes()]).done();
    assert_eq!(command_of_last(&lab), r"raidlab import $'dd\xff.txt'");
    run(&lab, "export -o", &[b"x\xff.jsonl"]).done();
    run(&lab, "import", &[b"x\xff.jsonl"]).done();
}
