//! Standard output that cannot be written to, and readers that have gone.
use crate::lab::{DD, Lab, ended};
use std::fs::File;
use std::process::Stdio;

/// Commands that print, with nothing but a finished session in the store.
const PRINTING: [&str; 18] = [
    "--help",
    "--version",
    "bench --help",
    "list",
    "list --json",
    "show",
    "report",
    "report --json",
    "report --markdown",
    "export",
    "export --format csv",
    "plan lab.toml",
    "plan lab.toml --json",
    "disk list",
    "disk show ST340015A",
    "layout raid5 -n 4",
    "layout raidz1 -n 4 --json",
    "reference list",
];

const LAB: &str = "title = 'one'\ndisks = { model = 'nvme-ssd', count = 2 }\nprofile = 'random'\n\
                   [factors]\nlayout = ['raid0', 'raid1']\n";

fn measured() -> Lab {
    let lab = Lab::new();
    lab.bench(&format!("-n 2 {DD}"));
    lab.write("lab.toml", LAB);
    lab
}

/// How a command ends that prints to `out`, and what it says.
fn printing_to(lab: &Lab, line: &str, out: impl Into<Stdio>) -> (Option<i32>, String) {
    let mut command = lab.command(line);
    let output = command
        .stdout(out)
        .stderr(Stdio::piped())
        .output()
        .expect("raidlab runs");
    let said = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), said)
}

#[test]
fn a_full_device_is_told() {
    let lab = measured();
    for line in PRINTING {
        let full = File::options().write(true).open("/dev/full");
        let (code, said) = printing_to(&lab, line, full.expect("it is on every Linux"));
        assert_eq!(code, Some(4), "{line}: {said}");
        assert!(
            said.contains("error: cannot write to standard output: No space left"),
            "{line}: {said}"
        );
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let lab = measured();
    for line in PRINTING {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (code, said) = printing_to(&lab, line, writer);
        assert_eq!(code, Some(0), "{line}: {said}");
        assert!(
            !said.contains("panic") && !said.contains("roken pipe"),
            "{line}: {said}"
        );
    }
}

#[test]
fn the_store_is_an_option_where_there_is_one() {
    let lab = measured();
    for line in ["list", "show", "report", "export", "compare a b", "plan"] {
        let command = line.split(' ').next().unwrap_or_default();
        lab.run(&format!("{command} --help"))
            .done()
            .prints(&["--store"]);
    }
    for line in [
        "layout",
        "disk list",
        "disk show",
        "doctor",
        "replay",
        "devices",
        "vm",
    ] {
        let help = lab.run(&format!("{line} --help")).done().out;
        assert!(!help.contains("--store"), "{line}: {help}");
    }
    // Before the command it is the same, and what is nearer to the command counts.
    let of = |line: &str| lab.run(line).done().out;
    let listed = of("list");
    assert_eq!(
        of(&format!("--store {} list", lab.store().display())),
        listed
    );
    assert_eq!(
        of(&format!(
            "--store nowhere list --store {}",
            lab.store().display()
        )),
        listed
    );
    lab.run("--store nowhere list")
        .refused(4)
        .says(&["nowhere"]);
    for line in [
        "layout raid5 --store x",
        "reference run pata-raid0 --store x",
    ] {
        lab.run(line).refused(2).says(&["--store"]);
    }
    // Where it means nothing it does not hide what is wrong with the command, nor what it prints.
    lab.run("--store x disk show no-such-disk")
        .refused(2)
        .says(&["--store means nothing", "no-such-disk"]);
    let drawn = of("layout raid5 --members 4");
    let told = lab.run("--store x layout raid5 --members 4").done();
    assert_eq!(told.out, drawn);
    told.says(&["--store means nothing"]);
}

#[test]
fn to_list_nothing_nothing_is_made() {
    let lab = Lab::new();
    let mut command = lab.command("list");
    command
        .env_remove("RAIDLAB_STORE")
        .env("XDG_DATA_HOME", "/proc/nowhere");
    ended(command).done().says(&["no sessions"]);
    let mut command = lab.command("report");
    command
        .env_remove("RAIDLAB_STORE")
        .env("XDG_DATA_HOME", lab.path("data"));
    ended(command).refused(4).says(&["there is no store"]);
    lab.assert_untouched();
}
