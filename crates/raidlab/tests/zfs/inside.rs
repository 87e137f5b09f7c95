//! Tests that this very program runs in a guest with ZFS, where pools are made of files.
use crate::lab::{Lab, Ran};
use std::process::Command;

/// Runs one of this program's ignored tests in a guest that has ZFS.
pub(crate) fn in_guest(lab: &Lab, test: &str) -> Ran {
    let program = std::env::current_exe().expect("this program");
    let line = format!(
        "vm exec '{}' --zfs --env TMPDIR=/tmp --limit 3600s -- {test} --exact --ignored --nocapture --test-threads=1",
        program.display()
    );
    crate::run(lab, &line).done()
}

/// Runs a tool in the guest; what it printed.
#[track_caller]
pub(crate) fn tool(words: &[&str]) -> String {
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{words:?}\n{out}\n{err}");
    out
}
