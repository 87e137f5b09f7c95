//! The gates' tests as a program, to be run in a guest.
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that has the tests of `raidlab-host`, built with these words of cargo's: built already where all tests
/// are run.
pub(crate) fn tests(words: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target directory");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .arg("test")
        .args(words)
        .args(["--lib", "--no-run", "--locked", "--message-format=json"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("CARGO_TARGET_DIR", target);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.output().expect("cargo runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let said = String::from_utf8_lossy(&built.stdout).into_owned();
    let program = said.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let of_gates = message["target"]["name"] == "raidlab_host";
        message["executable"]
            .as_str()
            .filter(|_| of_gates)
            .map(PathBuf::from)
    });
    program.expect("cargo tells where the tests are")
}
