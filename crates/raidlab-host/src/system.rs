//! Settings of the whole system, under `/proc/sys/vm`.
use crate::error::{HostError, Result};
use crate::journal::{Journal, Setting, Undo, Undone};
use crate::sysfs;
use raidlab_io::observe::Roots;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

fn file(roots: &Roots, name: &str) -> PathBuf {
    roots.proc.join("sys/vm").join(name)
}

/// The file that says the same in another unit, and reads 0 while this one holds.
fn other_unit(name: &str) -> Option<String> {
    let share = name.strip_suffix("_ratio").map(|of| format!("{of}_bytes"));
    share.or_else(|| name.strip_suffix("_bytes").map(|of| format!("{of}_ratio")))
}

/// What holds now where `name` is set.
fn holding(roots: &Roots, name: &str) -> Option<Setting> {
    let of = |name: String| {
        let value = sysfs::text(&file(roots, &name))?;
        Some(Setting { name, value })
    };
    let own = of(name.to_owned())?;
    let other = other_unit(name).and_then(of);
    Some(other.filter(|other| other.value != "0").unwrap_or(own))
}

/// Makes sure that there is one of that name, and that it can be written.
///
/// # Errors
/// [`HostError::Missing`] with the remedy.
pub(crate) fn can_be_set(roots: &Roots, name: &str) -> Result<()> {
    let file = file(roots, name);
    // Opened and nothing written: that of a container is often mounted for reading alone.
    let Err(error) = fs::OpenOptions::new().write(true).open(&file) else {
        return Ok(());
    };
    let told = match error.kind() {
        ErrorKind::NotFound => format!("this kernel has no {}", file.display()),
        _ => format!("{} cannot be written: {error}", file.display()),
    };
    Err(HostError::missing(
        told,
        "drop the setting, or run the experiment with --on vm or --on sim",
    ))
}

/// Sets one, and makes sure of it; what it was is in the journal before.
pub(crate) fn set(roots: &Roots, name: &str, value: &str, journal: &mut Journal) -> Result<()> {
    let Some(was) = holding(roots, name) else {
        let missing = file(roots, name);
        return Err(HostError::BadRequest(format!(
            "this system has no {}",
            missing.display()
        )));
    };
    let set = Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    if was == set {
        return Ok(());
    }
    let undo = Undo::System {
        set: set.clone(),
        was,
    };
    let step = journal.intend(&format!("set vm.{name}"), &[undo])?;
    put(roots, &set)?;
    journal.done(step)
}

fn put(roots: &Roots, setting: &Setting) -> Result<()> {
    let path = file(roots, &setting.name);
    sysfs::set(&path, &setting.value)?;
    match sysfs::text(&path) {
        Some(now) if now == setting.value => Ok(()),
        now => Err(HostError::Unexpected(format!(
            "{} was set to {} and reads {}",
            path.display(),
            setting.value,
            now.as_deref().unwrap_or("nothing")
        ))),
    }
}

/// Puts back what was there, unless it is no longer as it was set.
pub(crate) fn restore(roots: &Roots, set: &Setting, was: &Setting) -> Result<Undone> {
    if holding(roots, &set.name).as_ref() != Some(set) {
        return Ok(Undone::Nothing);
    }
    put(roots, was)?;
    Ok(Undone::Done(format!(
        "set vm.{} back to {}",
        was.name, was.value
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct System {
        _tree: tempfile::TempDir,
        roots: Roots,
        journal: Journal,
    }

    impl System {
        fn with(files: &[(&str, &str)]) -> Self {
            let tree = tempfile::tempdir().expect("a directory");
            let roots = Roots::under(tree.path());
            fs::create_dir_all(file(&roots, "")).expect("made");
            for (name, value) in files {
                fs::write(file(&roots, name), format!("{value}\n")).expect("written");
            }
            let journals = tree.path().join("journals");
            let journal = Journal::begin(&journals, "raidlab run").expect("a journal");
            Self {
                _tree: tree,
                roots,
                journal,
            }
        }

        fn set(&mut self, name: &str, value: &str) -> Result<()> {
            set(&self.roots, name, value, &mut self.journal)
        }

        /// As the kernel does where the one or the other is set.
        fn zero(&self, name: &str) {
            fs::write(file(&self.roots, name), "0\n").expect("written");
        }

        fn now(&self, name: &str) -> String {
            sysfs::text(&file(&self.roots, name)).expect("there")
        }

        fn undone(&mut self) -> Vec<String> {
            let report = self.journal.undo_since(&self.roots, 0).expect("undone");
            assert_eq!(report.left, Vec::<String>::new());
            report.undone
        }
    }

    const SHARE: [(&str, &str); 2] = [("dirty_ratio", "20"), ("dirty_bytes", "0")];

    #[test]
    fn a_size_in_place_of_a_share_ends_with_the_share() {
        let mut system = System::with(&SHARE);
        system.set("dirty_bytes", "8192").expect("set");
        system.zero("dirty_ratio");
        assert_eq!(system.now("dirty_bytes"), "8192");
        assert_eq!(system.undone(), ["set vm.dirty_ratio back to 20"]);
        assert_eq!(system.now("dirty_ratio"), "20");
        assert_eq!(system.undone(), Vec::<String>::new());
    }

    #[test]
    fn what_is_so_already_is_left_alone() {
        let mut system = System::with(&SHARE);
        system.set("dirty_ratio", "20").expect("nothing to do");
        assert_eq!(system.undone(), Vec::<String>::new());
        // A share that only looks like it.
        system.zero("dirty_ratio");
        fs::write(file(&system.roots, "dirty_bytes"), "9000\n").expect("written");
        system.set("dirty_ratio", "0").expect("set");
        system.zero("dirty_bytes");
        assert_eq!(system.undone(), ["set vm.dirty_bytes back to 9000"]);
    }

    #[test]
    fn what_somebody_has_set_since_stays() {
        let mut system = System::with(&[("dirty_expire_centisecs", "3000")]);
        system.set("dirty_expire_centisecs", "100").expect("set");
        fs::write(file(&system.roots, "dirty_expire_centisecs"), "500\n").expect("written");
        assert_eq!(system.undone(), Vec::<String>::new());
        assert_eq!(system.now("dirty_expire_centisecs"), "500");
    }

    #[test]
    fn a_system_without_it_is_told() {
        let mut system = System::with(&[]);
        let refused = system.set("dirty_bytes", "8192").expect_err("not there");
        assert!(
            refused.to_string().contains("sys/vm/dirty_bytes"),
            "{refused}"
        );
        let refused = can_be_set(&system.roots, "dirty_bytes").expect_err("not there");
        assert!(
            refused.to_string().contains("this kernel has no"),
            "{refused}"
        );
        let system = System::with(&SHARE);
        can_be_set(&system.roots, "dirty_bytes").expect("there");
        assert_eq!(system.now("dirty_bytes"), "0");
    }
}
