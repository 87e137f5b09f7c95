//! Settings in sysfs: read, set, and read back.
use crate::error::{HostError, Result};
use std::path::Path;

/// Trimmed text of an attribute; `None` when it cannot be read.
pub(crate) fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A number of an attribute.
pub(crate) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The value of an attribute: the bracketed word where it lists choices.
pub(crate) fn chosen(path: &Path) -> Option<String> {
    let text = text(path)?;
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    Some(bracketed.map_or(text.clone(), |(word, _)| word.to_owned()))
}

/// Sorted names in a directory; empty when it cannot be listed.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Sets an attribute without looking at what came of it.
pub(crate) fn set(path: &Path, value: &str) -> Result<()> {
    std::fs::write(path, value).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => HostError::BadRequest(format!(
            "{} does not take '{value}'{}",
            path.display(),
            text(path).map_or_else(String::new, |now| format!("; it has: {now}"))
        )),
        _ => HostError::call("set", path)(error),
    })
}

/// Sets an attribute and makes sure that it has the value.
pub(crate) fn set_verified(path: &Path, value: &str) -> Result<()> {
    if chosen(path).as_deref() == Some(value) {
        return Ok(());
    }
    set(path, value)?;
    match chosen(path) {
        Some(now) if now == value => Ok(()),
        now => Err(HostError::Unexpected(format!(
            "{} was set to {value} and reads {}",
            path.display(),
            now.as_deref().unwrap_or("nothing")
        ))),
    }
}

/// Sets an attribute that tells its value with a word more (`1000 (local)`, as limits of md do).
pub(crate) fn set_verified_loosely(path: &Path, value: &str) -> Result<()> {
    set(path, value)?;
    let now = text(path).unwrap_or_default();
    if now.split_whitespace().next() == Some(value) {
        return Ok(());
    }
    Err(HostError::Unexpected(format!(
        "{} was set to {value} and reads {now}",
        path.display()
    )))
}
