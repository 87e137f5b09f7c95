//! What a shell and a reader of manuals get.
use crate::lab::Lab;
use std::process::Command;

/// What bash offers after these words, the last one begun.
fn offered(lab: &Lab, words: &[&str]) -> Vec<String> {
    let asked = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                 _raidlab raidlab \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
                 printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
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
