//! What raidlab makes in a working directory, by its name: nothing else is removed with it.
use super::OWNER;
use crate::engine::{is_data_name, is_directory_name, is_entry_name};

/// Which directory a name stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// The working directory.
    Work,
    /// The directory that bonnie++ makes there for all small files.
    Bonnie,
    /// A directory of small files.
    Small,
}

/// What is made under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// What tells the owner.
    Owner,
    /// What NFS and FUSE have for a file that was removed while it was open; it goes when it is closed.
    Renamed,
    File,
    Directory(Within),
}

/// What raidlab, or a tool that it ran, makes under a name; `None` of a name that none of them gives.
pub(super) fn made(within: Within, name: &[u8]) -> Option<Made> {
    if name.starts_with(b".nfs") || name.starts_with(b".fuse_hidden") {
        return Some(Made::Renamed);
    }
    let small_files = || is_directory_name(name).then_some(Made::Directory(Within::Small));
    let small_file = || is_entry_name(name).then_some(Made::File);
    match within {
        Within::Work if name == OWNER.as_bytes() => Some(Made::Owner),
        // Of all profiles, of jobs of fio, and what dd and fio are given to write.
        Within::Work if is_data_name(name) => Some(Made::File),
        Within::Work => small_files().or_else(|| by_tool(name)),
        Within::Bonnie => small_files().or_else(small_file),
        Within::Small => small_file(),
    }
}

/// What bonnie++ (`Bonnie.1234`, `Bonnie.1234.000`) and tiotest (`_1234_tiotest.0`) make where they are told to work.
fn by_tool(name: &[u8]) -> Option<Made> {
    let name = std::str::from_utf8(name).ok()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = name.strip_prefix("Bonnie.") {
        return match rest.split_once('.') {
            None => is_number(rest).then_some(Made::Directory(Within::Bonnie)),
            Some((process, file)) => (is_number(process) && is_number(file)).then_some(Made::File),
        };
    }
    let (process, file) = name.strip_prefix('_')?.split_once("_tiotest.")?;
    (is_number(process) && is_number(file)).then_some(Made::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_make_is_known_and_nothing_like_it() {
        let in_work = |name: &str| made(Within::Work, name.as_bytes());
        for name in ["data-0", "Bonnie.4711.000", "_4711_tiotest.3"] {
            assert_eq!(in_work(name), Some(Made::File), "{name}");
        }
        assert_eq!(in_work("00012"), Some(Made::Directory(Within::Small)));
        assert_eq!(in_work("Bonnie.12"), Some(Made::Directory(Within::Bonnie)));
        assert_eq!(in_work("owner"), Some(Made::Owner));
        assert_eq!(in_work(".nfs0000000000001"), Some(Made::Renamed));
        for name in [
            "dir",
            "precious.txt",
            "data-0~",
            "Bonnie.log",
            "Bonnie.1.x",
            "_1_tiotest.",
            "0000000001",
        ] {
            assert_eq!(in_work(name), None, "{name}");
        }
        assert_eq!(made(Within::Small, b"0000000001Ab"), Some(Made::File));
        for name in [&b"00000"[..], b"owner", b"data-0", b"p"] {
            assert_eq!(made(Within::Small, name), None);
        }
        assert_eq!(
            made(Within::Bonnie, b"00000"),
            Some(Made::Directory(Within::Small))
        );
        assert_eq!(made(Within::Bonnie, b"0000000001"), Some(Made::File));
    }
}
