//! What a shell and a reader of manuals get.
use crate::lab::{Lab, program};
use std::process::Command;

/// The shell finds the program, and the program this lab's store.
fn with_program(lab: &Lab, shell: &mut Command) {
    lab.settle(shell);
    let directory = program().parent().expect("a directory").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory).chain(std::env::split_paths(&path));
    shell.env("PATH", std::env::join_paths(all).expect("a path"));
}

/// Whether the shell is here; its script is not run where it is not, and that is said.
fn is_here(shell: &str) -> bool {
    let here = Command::new(shell).arg("-c").arg("exit").output().is_ok();
    if !here {
        let message = format!("SKIPPED {shell}_completes_sessions_and_experiments: needs {shell}");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
    }
    here
}

/// A lab with a session, an experiment and another file.
fn with_a_session() -> Lab {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = 'Raid: \"one\"'\ndisks = { model = 'sata-ssd', count = 2 }\n\
         profile = { name = 'random', time = '20ms', size = '16MiB' }\n[factors]\nlayout = ['raid0']\n[design]\nrepeats = 1\n",
    );
    lab.write("other.txt", "");
    lab.run("run lab.toml --on sim").done();
    lab
}

/// What bash offers after these words, the last one begun.
fn offered(lab: &Lab, words: &[&str]) -> Vec<String> {
    let asked = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                 _raidlab_asking raidlab \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
                 printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    with_program(lab, &mut bash);
    bash.args(["--norc", "-c", asked, "bash"])
        .arg(lab.path("completions"))
        .args(words);
    let output = bash.output().expect("bash runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut offered: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    offered.sort_unstable();
    offered
}

#[test]
fn bash_completes_commands_options_and_names() {
    let lab = Lab::new();
    lab.write("completions", lab.run("completions bash").done().out);
    let offered = |words: &[&str]| offered(&lab, words);
    assert_eq!(
        offered(&["raidlab", "re"]),
        ["reference", "remove", "replay", "report"]
    );
    assert_eq!(offered(&["raidlab", "bench", "--prof"]), ["--profile"]);
    assert_eq!(offered(&["raidlab", "bench", "--profile", "b"]), ["bonnie"]);
    assert_eq!(
        offered(&["raidlab", "disk", "show", "near"]),
        ["nearline-24tb"]
    );
    assert_eq!(
        offered(&["raidlab", "reference", "report", "pata"]),
        ["pata-blocksize", "pata-raid0"]
    );
    assert_eq!(
        offered(&["raidlab", "run", "x.toml", "--on", ""]),
        ["host", "sim", "vm"]
    );
    let levels = offered(&["raidlab", "layout", "raid5"]);
    assert!(levels.contains(&"raid50".to_owned()), "{levels:?}");
}

#[test]
fn other_shells_get_scripts_with_names() {
    let lab = Lab::new();
    lab.run("completions zsh").done().prints(&[
        "#compdef raidlab",
        "nearline-24tb",
        "sata-md-levels",
    ]);
    lab.run("completions fish").done().prints(&[
        "complete -c raidlab",
        "nearline-24tb",
        "sata-md-levels",
    ]);
    lab.run("completions cmd").refused(2).says(&["bash", "zsh"]);
}

#[test]
fn bash_completes_sessions_and_experiments() {
    let lab = with_a_session();
    lab.write("completions", lab.run("completions bash").done().out);
    let names = lab.run("list --names").done().out;
    let id = names
        .lines()
        .nth(1)
        .and_then(|line| line.split('\t').next());
    let id = id.expect("an id");
    assert_eq!(names, format!("last\tRaid: \"one\"\n{id}\tRaid: \"one\"\n"));
    let offered = |words: &[&str]| offered(&lab, words);
    for command in ["show", "report", "export", "remove"] {
        assert_eq!(offered(&["raidlab", command, "la"]), ["last"], "{command}");
    }
    let mut all = [id, "last"];
    all.sort_unstable();
    assert_eq!(offered(&["raidlab", "compare", "last", ""]), all);
    assert_eq!(offered(&["raidlab", "show", "--js"]), ["--json"]);
    let files = offered(&["raidlab", "plan", ""]);
    assert!(files.contains(&"lab.toml".to_owned()), "{files:?}");
    assert!(!files.contains(&"other.txt".to_owned()), "{files:?}");
}

#[test]
fn fish_completes_sessions_and_experiments() {
    if !is_here("fish") {
        return;
    }
    let lab = with_a_session();
    lab.write("completions", lab.run("completions fish").done().out);
    let offered = |line: &str| {
        let mut fish = Command::new("fish");
        with_program(&lab, &mut fish);
        let asked = format!("source completions; complete -C '{line}'");
        let output = fish.args(["-N", "-c", &asked]).output().expect("fish runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(offered("raidlab show la"), "last\tRaid: \"one\"\n");
    assert!(offered("raidlab plan ").starts_with("lab.toml"));
    assert!(offered("raidlab disk show near").contains("nearline-24tb"));
    assert!(!offered("raidlab disk show ").contains("last"));
    assert!(offered("raidlab import --format fio").contains("fio-json"));
}

/// zsh completes where it believes that somebody types.
#[test]
fn zsh_completes_sessions_and_experiments() {
    if !is_here("zsh") {
        return;
    }
    let lab = with_a_session();
    lab.write("_raidlab", lab.run("completions zsh").done().out);
    let script = r#"zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D'
        zpty -w z 'tell() { print -r -- "TOLD:$BUFFER:"; BUFFER=; zle accept-line }; zle -N tell; bindkey "^X" tell; print R""EADY'
        zpty -r z heard '*READY*'
        for words in 'show las' 'plan la' 'disk show near'; do
            zpty -w -n z "raidlab $words"$'\t\x18'
            zpty -r z heard '*TOLD:*:*'
            print -r -- $heard
        done"#;
    let mut zsh = Command::new("zsh");
    with_program(&lab, &mut zsh);
    let output = zsh.args(["-f", "-c", script]).output().expect("zsh runs");
    let text = String::from_utf8_lossy(&output.stdout);
    for whole in [
        "TOLD:raidlab show last",
        "TOLD:raidlab plan lab.toml",
        "TOLD:raidlab disk show nearline-24tb",
    ] {
        assert!(text.contains(whole), "{whole}: {text}");
    }
}

/// Examples are laid out by hand: a manual that fills lines would run them together.
#[test]
fn every_command_has_a_manual_page() {
    let lab = Lab::new();
    lab.run("man")
        .done()
        .prints(&[".TH raidlab 1", ".nf\nStart here:", "raidlab\\-bench(1)"]);
    lab.run("man --dir pages")
        .done()
        .says(&["pages into pages"]);
    let page = std::fs::read_to_string(lab.path("pages/raidlab-disk-serve.1")).expect("a page");
    assert!(
        page.contains("\n.nf\n") && page.contains("topology"),
        "{page}"
    );
    assert!(!lab.path("pages/raidlab-help.1").exists());
}
