//! Paths that go by an open file of this process, and not by a name that others may change meanwhile.
use std::path::{Path, PathBuf};

/// Descriptors of this process, by which a path can begin.
pub(crate) const DESCRIPTORS: &str = "/proc/self/fd";

/// A path as users know it, where it goes by a descriptor of this process.
pub(crate) fn by_name(path: &Path) -> PathBuf {
    let by_name = || {
        let rest = path.strip_prefix(DESCRIPTORS).ok()?;
        let mut parts = rest.components();
        let directory = std::fs::read_link(Path::new(DESCRIPTORS).join(parts.next()?)).ok()?;
        let rest = parts.as_path();
        Some(match rest.as_os_str().is_empty() {
            true => directory,
            false => directory.join(rest),
        })
    };
    by_name().unwrap_or_else(|| path.to_owned())
}
