//! Where a command writes: files, standard output, and what must not be replaced.
use crate::lab::{DD, Lab};
use std::process::Stdio;

/// A place with an experiment and a trace.
fn somebodys() -> Lab {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 't'\ndisks = { model = 'nvme-ssd', count = 2 }\nprofile = { name = 'dd', count = 1 }\n\
         [array]\nlayout = 'raid0'\n",
    );
    lab.write("trace", "0.0 0 1000 8 1\n");
    lab
}

/// An experiment, a trace, an export: what a command reads is somebody's work.
#[test]
fn what_is_read_is_not_replaced() {
    let lab = somebodys();
    std::os::unix::fs::symlink("lab.toml", lab.path("link")).expect("a link");
    lab.bench(&format!("-n 1 {DD}"));
    lab.run("export -o all.jsonl").done();
    for (line, file) in [
        ("run lab.toml --on sim --html lab.toml", "lab.toml"),
        ("run link --on sim --out lab.toml", "lab.toml"),
        ("run lab.toml --on sim --html link", "link"),
        ("replay trace --disk nvme-ssd --out trace", "trace"),
        (
            "report --from-export all.jsonl --html all.jsonl",
            "all.jsonl",
        ),
    ] {
        let before = std::fs::read(lab.path(file)).expect("a file");
        lab.run(line)
            .code(3)
            .says(&["is a file that this command reads", "name another file"]);
        assert!(
            std::fs::read(lab.path(file)).expect("a file") == before,
            "{line}"
        );
    }
    // What was written before may be written again.
    lab.run("export -o all.jsonl").done();
    lab.run("replay trace --disk nvme-ssd --out out.csv").done();
    lab.run("replay trace --disk nvme-ssd --out out.csv").done();
}

/// A command, what it tells on standard error, and whether standard output has its file.
type Dashed<'a> = (&'a str, &'a str, &'a dyn Fn(&str) -> bool);

/// `-` is standard output, which is for the file alone then.
#[test]
fn a_file_called_dash_is_standard_output() {
    let lab = somebodys();
    lab.bench(&format!("-n 1 {DD}"));
    let page = |out: &str| out.starts_with("<!") && out.trim_end().ends_with("</html>");
    let lines = |out: &str| {
        let mut lines = out.lines();
        lines.all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    };
    let rows = |out: &str| out.starts_with("index,") && out.lines().count() == 2;
    let run = "run lab.toml --on sim --fresh";
    let cases: [Dashed<'_>; 5] = [
        ("export -o -", "", &lines),
        (&format!("{run} -o -"), "read", &lines),
        (&format!("{run} --html -"), "read", &page),
        ("report --html -", "read", &page),
        ("replay trace --disk nvme-ssd -o -", "1 request in", &rows),
    ];
    for (line, told, is_data) in cases {
        let ran = lab.run(line).done();
        assert!(
            is_data(&ran.out) && !ran.out.is_empty(),
            "{line}: {}",
            ran.out
        );
        assert!(
            ran.err.contains(told) && !ran.err.contains("wrote"),
            "{line}: {}",
            ran.err
        );
    }
    for line in [
        &format!("{run} -o - --json"),
        &format!("{run} -o - --html -"),
        &format!("{run} --images -"),
        "report --html - --json",
        "report --images -",
        &format!("bench place -n 1 {DD} --csv --html -"),
        "replay trace --disk nvme-ssd -o - --json",
    ] {
        lab.run(line).refused(2);
    }
    assert!(!lab.path("-").exists());
}

/// A directory of no images was left.
#[test]
fn without_charts_there_is_no_directory_of_them() {
    let lab = Lab::new();
    let text = "title = 't'\ndisks = { model = 'nearline-24tb', count = 1 }\nprofile = 'hdparm'\n[array]\nlayout = 'single'\n\
                [report]\ncharts = []\n";
    lab.write("lab.toml", text);
    lab.run("run lab.toml --on sim -n 1 --images charts")
        .done()
        .says(&["no image was written"]);
    assert!(!lab.path("charts").exists());
}

/// What would be lost is not replaced, and a device file stays one.
#[test]
fn files_that_must_not_be_replaced() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let before = std::fs::read(lab.store()).expect("a store");
    for line in [
        "export -o store.sqlite",
        "report --html store.sqlite",
        &format!("bench place -n 1 {DD} --html store.sqlite"),
    ] {
        lab.run(line)
            .code(3)
            .says(&["store.sqlite is an SQLite database", "name another file"]);
    }
    assert!(std::fs::read(lab.store()).expect("a store") == before);
    lab.run("report --html /dev/null").done();
    lab.run("export -o /dev/null").done();
    let null = std::fs::metadata("/dev/null").expect("/dev/null");
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(
        &null.file_type()
    ));
    // A link stays a link, and leads to the new content.
    lab.write("r.html", "old");
    std::os::unix::fs::symlink("r.html", lab.path("link.html")).expect("a link");
    lab.run("report --html link.html").done();
    assert!(lab.path("link.html").is_symlink());
    assert!(
        std::fs::read_to_string(lab.path("r.html"))
            .expect("a report")
            .contains("</html>")
    );
}

/// A reader that has gone is no error, and no panic.
#[test]
fn standard_output_may_be_closed() {
    let lab = Lab::new();
    for line in [
        "reference report pata-raid0",
        "reference list",
        "--help",
        "layout raid6 --json",
    ] {
        let mut command = lab.command(line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        assert_eq!(error, "", "{line}");
    }
}

#[test]
fn standard_output_may_be_full() {
    let lab = Lab::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut command = lab.command("reference list");
    let output = command.stdout(full).output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("cannot write to standard output"), "{error}");
}
