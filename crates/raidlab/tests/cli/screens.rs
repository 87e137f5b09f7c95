//! Text as the user's screen can show it: its width and its signs.
use crate::lab::{Lab, Ran, ended};

/// A line in this environment.
fn run(lab: &Lab, line: &str, environment: &[(&str, &str)]) -> Ran {
    let mut command = lab.command(line);
    command.envs(environment.iter().copied());
    ended(command).done()
}

/// A lab with an experiment of wide arrays, a session with a long title and one with a short one.
fn furnished() -> Lab {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = \"An experiment whose title tells at length what it is that is compared with what\"\n\
         question = \"Which of these is the one to be had, and how sure is it that it is the one?\"\n\
         disks = { model = \"sata-ssd\", count = 8 }\n\
         profile = { name = \"random\", time = \"20ms\", size = \"16MiB\" }\n[factors]\nlayout = [\"raid5\", \"raid6\"]\n[design]\nrepeats = 2\n",
    );
    lab.run("run lab.toml --on sim").done();
    lab
}

#[track_caller]
fn assert_fits(text: &str, width: usize, line: &str) {
    let too_long = |line: &&str| line.chars().count() > width;
    let long: Vec<&str> = text.lines().filter(too_long).collect();
    assert!(long.is_empty(), "{line}: {long:#?}");
}

#[test]
fn lists_and_plans_fit_eighty_columns() {
    let lab = furnished();
    for line in [
        "list",
        "reference list",
        "plan lab.toml",
        "doctor place",
        "layout raid10-f3 -n 9",
        "layout raid50 2x3 --member-size 24TB --read-errors 1e15",
        "layout raidz2 -n 6",
        "layout btrfs-raid6 --member-size 8TB,8TB,4TB,2TB --read-errors 1e15",
        "layout btrfs-raid1 -n 60",
    ] {
        let piped = run(&lab, line, &[]);
        assert_fits(&piped.out, 80, line);
        let narrow = run(&lab, line, &[("COLUMNS", "60")]);
        assert_fits(&narrow.out, 60, line);
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        if line != "doctor place" {
            assert_eq!(words(&narrow.out), words(&piped.out), "{line}");
        }
    }
    assert_fits(
        &run(&lab, "disk list", &[("COLUMNS", "80")]).out,
        80,
        "disk list",
    );
    insta::assert_snapshot!("reference-list", run(&lab, "reference list", &[]).out);
    insta::assert_snapshot!(
        "plan",
        run(&lab, "plan lab.toml --seed 7", &[])
            .out
            .split("\nWith --on sim")
            .next()
            .unwrap()
    );
}

/// Commands are there to be copied, and stay whole.
#[test]
fn what_is_shown_of_a_session_fits_but_for_its_commands() {
    let lab = furnished();
    let shown = run(&lab, "show", &[("COLUMNS", "60")]).out;
    let is_command = |line: &&str| {
        let word = line.split_whitespace().next();
        matches!(word, Some("command" | "repeat"))
    };
    let (commands, rest): (Vec<&str>, Vec<&str>) = shown.lines().partition(is_command);
    assert_fits(&rest.join("\n"), 60, "show");
    assert!(
        commands.iter().any(|line| line.chars().count() > 60),
        "{commands:#?}"
    );
    let wide = run(&lab, "show", &[("COLUMNS", "1000")]).out;
    assert!(wide.lines().count() < shown.lines().count(), "{shown}");
}

/// On a wide screen a session is a line.
#[test]
fn a_session_is_a_line_where_there_is_room() {
    let lab = furnished();
    assert!(run(&lab, "list", &[]).out.lines().count() > 1);
    assert_eq!(
        run(&lab, "list", &[("COLUMNS", "160")]).out.lines().count(),
        1
    );
}

/// What is printed for people has no sign that the locale does not know; what programs read does not change.
#[test]
fn a_locale_without_utf8_gets_ascii() {
    let lab = furnished();
    let c = [("LC_ALL", "C")];
    for line in [
        "list",
        "show",
        "report",
        "reference list",
        "reference report scsi-hdbench",
        "plan lab.toml --all",
        "run lab.toml --on sim --fresh",
        "bench place --profile random --size 4MiB --read 100 --runtime 100ms",
        "compare last~1 last --allow-different",
        "disk list",
        "disk show nvme-ssd",
        "layout raid6 --members 6",
        "layout raidz2 --members 6",
        "doctor place",
        "--help",
        "run --help",
        "report --help",
        "disk new --help",
    ] {
        let mut command = lab.command(line);
        command.envs(c);
        let ran = ended(command);
        for (stream, text) in [("out", &ran.out), ("err", &ran.err)] {
            let odd: String = text.chars().filter(|c| !c.is_ascii()).collect();
            assert!(odd.is_empty(), "{line}, {stream}: {odd}\n{text}");
        }
    }
    // A label of the user's is not lost on its way into a file.
    lab.write(
        "gruen.toml",
        "title = \"Grün\"\ndisks = { model = \"sata-ssd\", count = 3 }\nprofile = \"random\"\n[factors]\nlayout = [\"raid5\"]\n",
    );
    assert!(run(&lab, "plan gruen.toml", &c).out.contains("Grün"));
    let json = run(&lab, "plan gruen.toml --json", &c).out;
    assert_eq!(json, run(&lab, "plan gruen.toml --json", &[]).out);
}
