//! What is said of experiments that are wrong.
use crate::experiments::GOOD;
use crate::lab::{Lab, ended};

/// One slip of the pen is one problem: what follows from it is not told beside.
#[test]
fn a_misspelt_key_is_one_problem() {
    let lab = Lab::new();
    let head = "title = \"Wrong\"\ndisks = { model = \"ST3250624AS\", count = 4 }\n";
    for (more, meant) in [
        (
            "profile = \"random\"\n[array]\nlayuot = \"raid5\"\n",
            "layout",
        ),
        (
            "profile = \"random\"\n[factors]\nlayuot = [\"raid5\"]\n",
            "layout",
        ),
        (
            "profle = \"random\"\n[array]\nlayout = \"raid5\"\n",
            "profile",
        ),
    ] {
        lab.write("lab.toml", format!("{head}{more}"));
        lab.run("plan lab.toml")
            .refused(2)
            .says(&[&format!("did you mean '{meant}'?"), "1 error in lab.toml"]);
    }
    // In the wrong place it is still missing in the right one, and both are told.
    lab.write(
        "lab.toml",
        format!("{head}profile = \"random\"\nlayout = \"raid5\"\n"),
    );
    lab.run("plan lab.toml")
        .refused(2)
        .says(&["unknown key 'layout'", "a cell has no layout"]);
    // Every section is known by its name, also those that the file does not have.
    lab.write("lab.toml", format!("{head}whatever = 1\n"));
    lab.run("plan lab.toml").refused(2).says(&[
        "array",
        "design",
        "disks",
        "exclude",
        "expected",
        "factors",
        "filesystem",
        "host",
        "only",
        "profile",
        "question",
        "report",
        "title",
        "topology",
    ]);
}

/// Each is refused with exit 2 by every command that reads it, with the line and what is wrong.
#[test]
fn wrong_files_are_refused_with_their_lines() {
    let cases: [(&str, &[&str]); 8] = [
        (
            "[factors]\nlayout = [\"raid5\"]\nmembers = [1]\n",
            &["lab.toml:", "members", "raid5"],
        ),
        (
            "[array]\nlayout = \"raid0\"\nchunk = \"0B\"\n",
            &["lab.toml:6:9", "chunk"],
        ),
        (
            "[array]\nlayout = \"raid5\"\nchunk = \"48KiB\"\n",
            &["lab.toml:6:9", "power of two"],
        ),
        (
            "[topology.controllers.card]\nkind = \"sata\"\nchannels = 2\n[array]\nlayout = \"raid5\"\n",
            &[
                "lab.toml:4:23",
                "2 disks on channel 0 of 'card', which has 1 port",
            ],
        ),
        (
            "[host]\nscheduler = \"deadlin\"\n[array]\nlayout = \"raid5\"\n",
            &[
                "lab.toml:5:13",
                "unknown I/O scheduler 'deadlin'",
                "did you mean 'deadline'",
            ],
        ),
        (
            "[array]\nlayout = \"raid55\"\n",
            &["lab.toml:5:10", "raid55"],
        ),
        (
            "[array]\nlayout = \"raid5\"\n[array]\n",
            &["lab.toml:6", "not TOML"],
        ),
        (
            "[array]\nlayuot = \"raid5\"\n",
            &["lab.toml:5:1", "layuot", "did you mean 'layout'"],
        ),
    ];
    let lab = Lab::new();
    for (more, parts) in cases {
        let head = "title = \"Wrong\"\ndisks = { model = \"ST3250624AS\", count = 4 }\nprofile = \"random\"\n";
        lab.write("lab.toml", format!("{head}{more}"));
        for line in ["plan lab.toml", "run lab.toml --on sim"] {
            lab.run(line).refused(2).says(parts).says(&["error"]);
        }
        lab.assert_nothing_but(&["lab.toml"]);
    }
}

/// What only the model can tell: by the line of the experiment, before anything runs, be it of the catalogue or a file.
#[test]
fn overrides_that_make_no_disk_are_refused_with_their_line() {
    let lab = Lab::new();
    let model = lab.run("disk show nearline-24tb --file").done().out;
    lab.write("own.toml", model);
    for name in ["nearline-24tb", "own.toml"] {
        for (values, reason) in [
            (
                "seek-average = '0.1ms'",
                "with its override it is no disk: track-to-track ",
            ),
            (
                "capacity = '1GB', cache = '2GiB'",
                "its 'cache' of 2 GiB holds more than the disk",
            ),
        ] {
            lab.write(
                "lab.toml",
                format!(
                    "title = 't'\ndisks = {{ model = '{name}', override = {{ {values} }} }}\n\
                     profile = 'random'\n[arr]\nlayout = 'raid0'\n"
                ),
            );
            lab.run("plan lab.toml").refused(2).says(&[
                "lab.toml:2:",
                &format!("disk model '{name}': {reason}"),
                "unknown key 'arr'",
            ]);
        }
    }
    // One range, whoever tells it.
    for rpm in ["0", "299", "20001", "100000"] {
        let disks = format!("{{ model = 'nearline-24tb', override = {{ rpm = {rpm} }} }}");
        lab.write(
            "lab.toml",
            format!("title = 't'\ndisks = {disks}\nprofile = 'random'\n"),
        );
        let told = format!("'rpm' is from 300 to 20000, not {rpm}");
        lab.run("plan lab.toml")
            .refused(2)
            .says(&["lab.toml:2:", &told]);
    }
    lab.write(
        "lab.toml",
        "title = 't'\ndisks = { model = 'nvme-ssd', override = { rpm = 7200 } }\nprofile = 'random'\n",
    );
    lab.run("plan lab.toml")
        .refused(2)
        .says(&["lab.toml:2:", "'rpm' says nothing about a solid-state disk"]);
}

/// All of it at once, underlined; without colours where there is no terminal.
#[test]
fn everything_wrong_is_told_at_once() {
    let lab = Lab::new();
    let text = GOOD
        .replace("\"raid10\"", "\"raid11x\"")
        .replace("count = 4", "count = 4, modle = 1")
        .replace("repeats = 2", "repeats = 0");
    lab.write("lab.toml", text);
    let mut command = lab.command("plan lab.toml");
    command.env_remove("NO_COLOR");
    let ran = ended(command).refused(2);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    insta::assert_snapshot!(ran.err);
}

#[test]
fn a_file_cannot_command_the_terminal() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        GOOD.replace("raid10", "\\u001b[2J")
            .replace("Two", "\u{1b}[2J"),
    );
    let ran = lab.run("plan lab.toml").refused(2);
    assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
    // Nor one with which nothing is wrong.
    lab.write(
        "lab.toml",
        "title = \"a\\u001b[31m\\nb\"\ndisks = { model = 'sata-ssd', count = 2 }\n\
         profile = { name = 'random', time = '20ms', size = '16MiB' }\narray = { layout = 'raid0' }\n[factors]\n\
         q = [{ name = \"\\u001b]0;x\\u0007r\\ned\", queue-requests = 64 }, { name = 'b', queue-requests = 128 }]\n",
    );
    for line in [
        "plan lab.toml",
        "run lab.toml --on sim -n 1",
        "show",
        "list",
    ] {
        let ran = lab.run(line).done();
        for text in [&ran.out, &ran.err] {
            let odd = |c: char| c.is_control() && c != '\n';
            assert!(!text.contains(odd), "{line}: {text:?}");
            assert!(
                !text.contains("r\ned") && !text.contains("m\nb"),
                "{line}: {text:?}"
            );
        }
    }
}
