//! On a terminal: the moving line with the time left, and the question whether to go on.
use crate::lab::{Lab, PATIENCE, program};
use std::process::Command;

/// Runs a command line on a pseudo-terminal with so many columns; returns what the terminal showed.
fn on_a_terminal(lab: &Lab, columns: u16, line: &str, typed: &str) -> String {
    on_this_terminal(lab, columns, line, typed, &[("TERM", "xterm")])
}

/// The same with these words in the environment.
fn on_this_terminal(
    lab: &Lab,
    columns: u16,
    line: &str,
    typed: &str,
    environment: &[(&str, &str)],
) -> String {
    let mut script = Command::new("script");
    let program = program().display();
    script.args([
        "-qec",
        &format!("stty rows 24 cols {columns}; '{program}' {line}"),
        "/dev/null",
    ]);
    lab.settle(&mut script);
    script
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied());
    let output = assert_cmd::Command::from_std(script)
        .write_stdin(typed)
        .timeout(PATIENCE)
        .output()
        .expect("script (of util-linux) runs");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
}

#[test]
fn progress_tells_the_time_left() {
    let lab = Lab::new();
    let line = "bench place -n 2 --profile random --size 4MiB --read 100 --runtime 800ms";
    let wide = on_a_terminal(&lab, 160, line, "");
    assert!(wide.contains("[1/2] place random round 1 · "), "{wide}");
    assert!(wide.contains(" left · place random round 2 · "), "{wide}");
    assert!(wide.contains(" MiB/s"), "{wide}");
    assert!(wide.contains("\u{1b}["), "colours on a terminal: {wide}");
    // A narrow terminal cuts the end off, not the time.
    let narrow = on_a_terminal(&lab, 60, line, "");
    assert!(narrow.contains(" left"), "{narrow}");
}

/// No colours where they are unwanted, and nothing at all to steer a terminal that cannot be steered.
#[test]
fn colours_and_moving_lines_are_not_forced_on_anybody() {
    let lab = Lab::new();
    let line = "bench place -n 2 --profile random --size 4MiB --read 100 --runtime 300ms";
    let dumb = on_this_terminal(&lab, 100, line, "", &[("TERM", "dumb")]);
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    assert!(dumb.contains("[2/2]"), "it is told all the same: {dumb}");
    let plain = [("TERM", "xterm"), ("NO_COLOR", "1")];
    let plain = on_this_terminal(&lab, 100, line, "", &plain);
    for sequence in plain.split("\u{1b}[").skip(1) {
        let end = sequence.find(|c: char| c.is_ascii_alphabetic());
        assert_ne!(end.map(|at| &sequence[at..=at]), Some("m"), "{plain:?}");
    }
}

#[test]
fn an_interrupted_session_is_offered() {
    let lab = Lab::new();
    // Not over before the signal comes, however busy the machine is.
    let line = "bench place -n 6 --profile random --size 4MiB --read 100 --runtime 400ms";
    let mut running = lab.start(line);
    running.wait_for("[1/6]");
    running.signal(rustix::process::Signal::KILL);
    running.end();
    let shown = on_a_terminal(&lab, 80, line, "y\n");
    assert!(shown.contains("Go on with it? [Y/n]"), "{shown}");
    assert_eq!(lab.sessions().len(), 1, "it was gone on with: {shown}");
    assert_eq!(lab.trials().len(), 6);
}
