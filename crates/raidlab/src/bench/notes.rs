//! Where `bench` has a working directory, noted beside the journals: a run that is killed says no more where it was, and
//! `raidlab clean` finds it by that.
use raidlab_io::observe::{Roots, resolve};
use raidlab_io::run::WorkDir;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What `clean` did with what was noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Working directories that were removed.
    pub(crate) removed: Vec<PathBuf>,
    /// Why others whose owner is gone stay, each with its path.
    pub(crate) left: Vec<String>,
    /// Places where another file system is now than when a run worked there, and the notes that say so.
    pub(crate) elsewhere: Vec<(PathBuf, PathBuf)>,
}

/// One note for a place, whoever works there.
fn note_of(notes: &Path, place: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    notes.join(format!("{:016x}", hasher.finish()))
}

/// A place that is noted as long as this is there.
#[derive(Debug)]
pub(crate) struct Noted {
    notes: PathBuf,
    place: PathBuf,
    /// Of the file system; `None` of one in memory, which is gone for good when it is gone.
    device: Option<u64>,
}

impl Noted {
    /// Notes that there will be working directories in a place; `None` of what is no directory. That it cannot be noted is no
    /// reason not to measure.
    pub(crate) fn write(notes: &Path, place: &Path) -> Option<Self> {
        let place = place.canonicalize().ok().filter(|place| place.is_dir())?;
        std::fs::create_dir_all(notes).ok()?;
        let in_memory =
            resolve(&Roots::system(), &place).is_ok_and(|resolved| resolved.in_memory());
        let noted = Self {
            notes: notes.to_owned(),
            device: device_of(&place).filter(|_| !in_memory),
            place,
        };
        let mut text = noted.place.as_os_str().as_bytes().to_vec();
        if let Some(device) = noted.device {
            // No path has a zero in it.
            text.extend(format!("\0{device}").into_bytes());
        }
        let _ = put(&note_of(notes, &noted.place), &text);
        Some(noted)
    }
}

/// Writes a note in place of whatever has its name, a link to a file of another's included.
fn put(note: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let notes = note.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(notes)?;
    new.write_all(text)?;
    new.persist(note).map(drop).map_err(|error| error.error)
}

impl Drop for Noted {
    fn drop(&mut self) {
        // Another raidlab may have a working directory there, and this one what it could not remove: because it is on a file system
        // that was unmounted meanwhile, say.
        if !any_in(&self.place) && !is_elsewhere(&self.place, self.device) {
            let _ = std::fs::remove_file(note_of(&self.notes, &self.place));
            // When it was the last.
            let _ = std::fs::remove_dir(&self.notes);
        }
    }
}

/// Removes working directories of runs that are gone from all places that were noted.
pub(crate) fn clean(notes: &Path) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let Ok(entries) = std::fs::read_dir(notes) else {
        return cleaned;
    };
    for entry in entries.flatten() {
        let Ok(text) = std::fs::read(entry.path()) else {
            continue;
        };
        let (place, device) = read(text);
        // Half written, or of someone else: what it names is looked at by no other rule than that of every run there.
        if !place.is_absolute() {
            continue;
        }
        let stale = WorkDir::remove_stale(&place);
        // A file system may have another number when it is mounted again; what was in it tells that it is the one.
        let elsewhere = stale.removed.is_empty() && is_elsewhere(&place, device);
        cleaned.removed.extend(stale.removed);
        let left = stale.left.iter().map(ToString::to_string);
        cleaned.left.extend(left);
        if any_in(&place) {
            continue;
        }
        if elsewhere {
            cleaned.elsewhere.push((place, entry.path()));
        } else {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(notes);
    cleaned
}

/// The place of a note and the number of the file system that it was on.
fn read(mut text: Vec<u8>) -> (PathBuf, Option<u64>) {
    let zero = text.iter().position(|byte| *byte == 0);
    let device = zero.and_then(|zero| {
        let device = std::str::from_utf8(&text[zero + 1..]).ok()?.parse();
        text.truncate(zero);
        device.ok()
    });
    (PathBuf::from(std::ffi::OsString::from_vec(text)), device)
}

/// The number of the file system that a place is on, or would be if it were there.
fn device_of(place: &Path) -> Option<u64> {
    let mut above = place.ancestors();
    above.find_map(|path| Some(std::fs::metadata(path).ok()?.dev()))
}

/// Whether another file system is at a place than the noted one.
fn is_elsewhere(place: &Path, noted: Option<u64>) -> bool {
    noted.is_some() && device_of(place) != noted
}

/// Whether there is, or may be, a working directory in a place.
fn any_in(place: &Path) -> bool {
    match std::fs::read_dir(place) {
        Ok(mut entries) => {
            entries.any(|entry| entry.is_ok_and(|entry| WorkDir::is_named_so(&entry.file_name())))
        }
        // What cannot be looked at now can later.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_found_by_its_note_and_a_living_ones_is_not_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (notes, place) = (directory.path().join("notes"), directory.path().join("d"));
        std::fs::create_dir(&place).expect("made");
        assert_eq!(clean(&notes), Cleaned::default());
        let noted = Noted::write(&notes, &place).expect("noted");
        let living = WorkDir::create(&place).expect("made");
        let gone = place.join(".raidlab-00000a");
        std::fs::create_dir(&gone).expect("made");
        let mine = place.join(".raidlab-00000b");
        std::fs::create_dir(&mine).expect("made");
        std::fs::write(mine.join("letters"), "mine").expect("written");
        let removed = vec![gone.canonicalize().expect("there")];
        let cleaned = clean(&notes);
        assert_eq!((cleaned.removed, cleaned.left), (removed, Vec::new()));
        assert!(living.path().exists() && mine.exists() && !gone.exists());
        // As long as anything is there the note stays.
        drop(noted);
        assert!(notes.exists());
        drop(living);
        std::fs::remove_dir_all(&mine).expect("removed");
        drop(Noted::write(&notes, &place));
        assert!(!notes.exists());
        // A file has no directory in it.
        std::fs::write(directory.path().join("f"), "").expect("written");
        assert!(Noted::write(&notes, &directory.path().join("f")).is_none());
    }

    #[test]
    fn a_place_whose_file_system_is_not_there_keeps_its_note() {
        let directory = tempfile::tempdir().expect("a directory");
        let (notes, place) = (directory.path().join("notes"), directory.path().join("d"));
        std::fs::create_dir(&place).expect("made");
        let place = place.canonicalize().expect("there");
        let mut noted = Noted::write(&notes, &place).expect("noted");
        let note = note_of(&notes, &place);
        // As it is when it was unmounted in mid-run: what is there now is that on which it was mounted.
        noted.device = Some(u64::MAX);
        drop(noted);
        assert!(note.exists());
        let mut text = place.as_os_str().as_bytes().to_vec();
        text.extend(format!("\0{}", u64::MAX).into_bytes());
        std::fs::write(&note, &text).expect("written");
        let cleaned = clean(&notes);
        assert_eq!(cleaned.elsewhere, [(place.clone(), note.clone())]);
        assert!(note.exists());
        // Mounted again, with another number.
        let left = place.join(".raidlab-00000a");
        std::fs::create_dir(&left).expect("made");
        let cleaned = clean(&notes);
        assert_eq!(
            (cleaned.removed, cleaned.elsewhere),
            (vec![left], Vec::new())
        );
        assert!(!notes.exists());
        // One that was removed is on no other file system.
        let noted = Noted::write(&notes, &place).expect("noted");
        std::fs::remove_dir(&place).expect("removed");
        drop(noted);
        assert!(!notes.exists());
    }

    /// In a directory that others may write to, a note's name can be foreseen.
    #[test]
    fn a_note_takes_the_place_of_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (notes, place) = (
            directory.path().join("notes"),
            directory.path().join("place"),
        );
        for made in [&notes, &place] {
            std::fs::create_dir(made).expect("made");
        }
        let precious = directory.path().join("precious");
        std::fs::write(&precious, "theirs").expect("written");
        let note = note_of(&notes, &place.canonicalize().expect("it is there"));
        std::os::unix::fs::symlink(&precious, &note).expect("linked");
        let _noted = Noted::write(&notes, &place).expect("noted");
        assert_eq!(std::fs::read_to_string(&precious).expect("read"), "theirs");
        assert!(note.symlink_metadata().expect("it is there").is_file());
    }
}
