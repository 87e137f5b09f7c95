//! Programs of this machine: found on the path, run with what they said kept.
use crate::error::VmError;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directories that a user's path may lack.
const ALSO: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The file of a program.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::split_paths(&path);
    let mut all = given.chain(ALSO.iter().map(PathBuf::from));
    all.find_map(|directory| {
        let file = directory.join(name);
        file.is_file().then_some(file)
    })
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
/// [`VmError::Command`] with what it said.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    directory: Option<&Path>,
) -> Result<Vec<u8>, VmError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let failed = |said: String| VmError::Command {
        command: command(),
        said,
    };
    let file = find(program).ok_or_else(|| failed("it is not installed".to_owned()))?;
    let mut process = Command::new(file);
    process
        .args(arguments)
        .stdin(Stdio::null())
        .env("LC_ALL", "C");
    if let Some(directory) = directory {
        process.current_dir(directory);
    }
    let output = process
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(failed(if said.is_empty() {
        output.status.to_string()
    } else {
        said.to_owned()
    }))
}
