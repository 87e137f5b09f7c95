//! Names in a working directory.
//!
//! Data file `n` is `data-n` ([`data_name`]). Small files are named as bonnie++ names them, in
//! directories `00000`, `00001` … which must have been made: ten hexadecimal digits of the number
//! followed by 0 to 12 letters and digits for the sequential phases, and the letters first for the
//! random phases, so that sorting tells nothing about the order of creation.
use raidlab_core::op::{Entry, FileId};
use raidlab_core::rng::{Stream, mix};
use std::ffi::CStr;

/// The name of a data file within the working directory.
#[must_use]
pub fn data_name(file: FileId) -> String {
    format!("data-{file}")
}

/// Whether a name is one that raidlab gives to data files.
pub(crate) fn is_data_name(name: &[u8]) -> bool {
    let number = std::str::from_utf8(name).ok();
    let number = number.and_then(|name| name.strip_prefix("data-")?.parse().ok());
    // As it is written, without a sign or zeros before it.
    number.is_some_and(|file| data_name(file).as_bytes() == name)
}

/// Whether a name is one that raidlab, or bonnie++, gives to directories of small files.
pub(crate) fn is_directory_name(name: &[u8]) -> bool {
    // No zeros stand before more than five digits.
    let long = (6..=10).contains(&name.len()) && !name.starts_with(b"0");
    (name.len() == 5 || long) && name.iter().all(u8::is_ascii_digit)
}

/// Whether a name is one that raidlab, or bonnie++, gives to small files, in the order in which they are made or not.
pub(crate) fn is_entry_name(name: &[u8]) -> bool {
    // No index has more than 32 bits.
    let is_index = |part: &[u8]| {
        let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.starts_with(b"00") && part.iter().all(lower)
    };
    let letters = name.len().checked_sub(INDEX);
    letters.is_some_and(|letters| {
        letters <= MOST_LETTERS as usize
            && name.iter().all(u8::is_ascii_alphanumeric)
            && (is_index(&name[..INDEX]) || is_index(&name[letters..]))
    })
}

/// Digits of the number in a small file's name.
const INDEX: usize = 10;
/// Longest random part of a small file's name, as in bonnie++.
const MOST_LETTERS: u64 = 12;
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The name that was made last.
pub(super) fn finished(name: &[u8]) -> &CStr {
    // The names are letters, digits and slashes; the zero byte at the end is the only one.
    CStr::from_bytes_with_nul(name).unwrap_or(c"")
}

/// Makes the name of a small file, with its directory, ended by a zero byte.
pub(super) fn entry_name(name: &mut Vec<u8>, names: Stream, entry: Entry) {
    name.clear();
    digits::<5, 10>(name, entry.directory);
    name.push(b'/');
    let mut draw = names.at(u64::from(entry.index));
    let letters = draw % (MOST_LETTERS + 1);
    if entry.ordered {
        digits::<INDEX, 16>(name, entry.index);
    }
    for _ in 0..letters {
        draw = mix(draw);
        name.push(LETTERS[(draw % LETTERS.len() as u64) as usize]);
    }
    if !entry.ordered {
        digits::<INDEX, 16>(name, entry.index);
    }
    name.push(0);
}

/// Makes the name of a directory, ended by a zero byte.
pub(super) fn directory_name(name: &mut Vec<u8>, directory: u32) {
    name.clear();
    digits::<5, 10>(name, directory);
    name.push(0);
}

/// At least `WIDTH` digits to the base `BASE`, written by hand: formatting would cost as much as the
/// system call it is for on a fast file system.
fn digits<const WIDTH: usize, const BASE: u32>(name: &mut Vec<u8>, mut number: u32) {
    let start = name.len();
    while number > 0 || name.len() < start + WIDTH {
        name.push(b"0123456789abcdef"[(number % BASE) as usize]);
        number /= BASE;
    }
    name[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_named_as_bonnie_names_them() {
        let names = Stream::new(1);
        let mut buffer = Vec::new();
        let mut of = |index, ordered| {
            let entry = Entry {
                index,
                directory: 12,
                ordered,
            };
            entry_name(&mut buffer, names, entry);
            finished(&buffer).to_str().unwrap().to_owned()
        };
        for index in 0..300 {
            let (ordered, shuffled) = (of(index, true), of(index, false));
            let digits = format!("{index:010x}");
            assert!(ordered.starts_with(&format!("00012/{digits}")), "{ordered}");
            assert!(
                shuffled.starts_with("00012/") && shuffled.ends_with(&digits),
                "{shuffled}"
            );
            assert_eq!(ordered.len(), shuffled.len());
            assert!(ordered.len() <= 6 + 10 + 12);
            for name in [ordered, shuffled] {
                let (directory, file) = name.as_bytes().split_at(5);
                assert!(is_directory_name(directory) && is_entry_name(&file[1..]));
            }
        }
        assert!(of(0xffff_ffff, true).contains("00ffffffff"));
    }
    #[test]
    fn what_is_named_otherwise_is_not_raidlabs() {
        for file in [0, 7, 4_294_967_295] {
            assert!(is_data_name(data_name(file).as_bytes()));
        }
        for name in [
            "data",
            "data-",
            "data-01",
            "data-+1",
            "data-0.txt",
            "data-4294967296",
            "precious.txt",
        ] {
            assert!(!is_data_name(name.as_bytes()), "{name}");
        }
        for name in [
            "0000",
            "0000a",
            "000001",
            "0000000001",
            "12345678901",
            "letters",
        ] {
            assert!(!is_directory_name(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "000000001",
            "1234567890",
            "0000000001.txt",
            "0000000001abcdefghijklm",
            "report0000",
        ] {
            assert!(!is_entry_name(name.as_bytes()), "{name}");
        }
    }
}
