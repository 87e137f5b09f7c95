//! Files of text that a user writes: experiments, models, job files.
use crate::exit::Failure;
use std::io::Read as _;
use std::path::Path;

/// More than any text that somebody writes: what is longer is something else, such as a disk.
const MOST: u64 = 16 << 20;

/// Files of a directory that are named.
const MOST_NAMES: usize = 5;

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is too long or is not UTF-8; the message says where.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    told(path).map_err(|why| {
        let failure = Failure::bad_request(format!("cannot read {}: {why}", path.display()));
        match instead(path) {
            Some(remedy) => failure.remedy(remedy),
            None => failure,
        }
    })
}

/// What may have been meant: a file of a similar name beside one that is not there, or those in a directory.
fn instead(path: &Path) -> Option<String> {
    let is_directory = path.is_dir();
    let folder = match path.parent() {
        _ if is_directory => path,
        Some(parent) if !path.exists() && !parent.as_os_str().is_empty() => parent,
        Some(_) if !path.exists() => Path::new("."),
        _ => return None,
    };
    let extension = path.extension().unwrap_or("toml".as_ref());
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension() == Some(extension))
        .collect();
    names.sort_unstable();
    let there = |name: &str| match path.parent() {
        _ if is_directory => path.join(name),
        Some(parent) => parent.join(name),
        None => name.into(),
    };
    if is_directory {
        let more = names.len().saturating_sub(MOST_NAMES);
        names.truncate(MOST_NAMES);
        let named = names.join(", ");
        return match (named.is_empty(), more) {
            (true, _) => Some("name a file in it".to_owned()),
            (false, 0) => Some(format!("name a file; in it are {named}")),
            (false, more) => Some(format!("name a file; in it are {named} and {more} more")),
        };
    }
    let wanted = path.file_name()?.to_str()?;
    let near = raidlab_core::suggest::nearest(wanted, names.iter().map(String::as_str))?;
    Some(format!("did you mean {}?", there(near).display()))
}

/// As [`text`], with the reason alone.
///
/// # Errors
/// As [`text`].
pub(crate) fn told(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    super::files::open(path)
        .and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST {
        return Err(format!("it is longer than {} MiB", MOST >> 20));
    }
    String::from_utf8(bytes)
        .map_err(|error| not_text(error.as_bytes(), error.utf8_error().valid_up_to()))
}

/// Where the first byte is that is no text, as editors count: lines and characters from 1.
fn not_text(bytes: &[u8], at: usize) -> String {
    let (before, odd) = bytes.split_at(at);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let begun = before
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let column = 1 + String::from_utf8_lossy(begun).chars().count();
    let byte = odd.first().copied().unwrap_or_default();
    format!(
        "line {line}, column {column}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_odd_byte_has_a_line_and_a_column() {
        let told = not_text(b"a = 1\nb = \"\xc3\xbc\xff\"\n", 13);
        assert_eq!(
            told,
            "line 2, column 7: the byte 0xff is not UTF-8; save the file as UTF-8"
        );
    }

    #[test]
    fn a_disk_is_no_text() {
        assert_eq!(
            told(Path::new("/dev/zero")).unwrap_err(),
            "it is longer than 16 MiB"
        );
    }
}
