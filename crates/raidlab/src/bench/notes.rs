//! Where `bench` has a working directory, noted beside the journals: a run that is killed says no more where it was, and
//! `raidlab clean` finds it by that.
use raidlab_io::run::WorkDir;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What `clean` did with what was noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Working directories that were removed.
    pub(crate) removed: Vec<PathBuf>,
    /// Those whose owner is gone, and that could not be removed.
    pub(crate) left: Vec<PathBuf>,
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
}

impl Noted {
    /// Notes that there will be working directories in a place; `None` of what is no directory. That it cannot be noted is no
    /// reason not to measure.
    pub(crate) fn write(notes: &Path, place: &Path) -> Option<Self> {
        let place = place.canonicalize().ok().filter(|place| place.is_dir())?;
        std::fs::create_dir_all(notes).ok()?;
        let noted = Self {
            notes: notes.to_owned(),
            place,
        };
        let _ = std::fs::write(
            note_of(notes, &noted.place),
            noted.place.as_os_str().as_bytes(),
        );
        Some(noted)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // Another raidlab may have a working directory there, and this one what it could not remove.
        if !any_in(&self.place) {
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
        let place = PathBuf::from(std::ffi::OsString::from_vec(text));
        // Half written, or of someone else: what it names is looked at by no other rule than that of every run there.
        if !place.is_absolute() {
            continue;
        }
        cleaned.removed.extend(WorkDir::remove_stale(&place));
        cleaned.left.extend(WorkDir::stale(&place));
        if !any_in(&place) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(notes);
    cleaned
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
}
