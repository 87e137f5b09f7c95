//! Which libraries a program loads and where they are, without running anything (`ldd` runs the program's
//! loader): by the rules of `ld.so(8)`.
use super::elf::Elf;
use crate::error::VmError;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that the loader looks in.
#[derive(Clone, Debug)]
pub(crate) struct Libraries {
    directories: Vec<PathBuf>,
}

impl Libraries {
    /// Those of this machine: of `/etc/ld.so.conf` and the loader's own.
    pub(crate) fn of_this_machine() -> Self {
        let mut directories = Vec::new();
        configured(Path::new("/etc/ld.so.conf"), &mut directories, 0);
        let own = [
            "/lib/x86_64-linux-gnu",
            "/usr/lib/x86_64-linux-gnu",
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
        ];
        directories.extend(own.map(PathBuf::from));
        Self { directories }
    }

    /// Those of packages unpacked below a directory, then those of this machine.
    pub(crate) fn under(root: &Path) -> Self {
        let own = [
            "usr/lib/x86_64-linux-gnu",
            "lib/x86_64-linux-gnu",
            "usr/lib",
            "lib",
        ];
        let mut directories: Vec<PathBuf> = own.map(|name| root.join(name)).to_vec();
        directories.extend(Self::of_this_machine().directories);
        Self { directories }
    }

    /// Everything that `program` loads, by its path, the program itself and its loader left out.
    /// `seen` has what is known already, and gets what is found.
    ///
    /// # Errors
    /// When a library is not there.
    pub(crate) fn collect(
        &self,
        program: &Path,
        bytes: &[u8],
        seen: &mut BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<(), VmError> {
        let wrong = |why: String| VmError::Image {
            path: program.to_owned(),
            why,
        };
        let elf = Elf::parse(bytes).map_err(|error| wrong(error.to_string()))?;
        let dynamic = elf.dynamic().map_err(|error| wrong(error.to_string()))?;
        let mut found: Vec<PathBuf> = dynamic.interpreter.iter().map(PathBuf::from).collect();
        for name in &dynamic.needed {
            let file = self.find(name, &dynamic.paths, program);
            found.push(
                file.ok_or_else(|| wrong(format!("its library {name} is not on this machine")))?,
            );
        }
        for path in found {
            if seen.contains_key(&path) {
                continue;
            }
            let library = fs::read(&path).map_err(VmError::path("read", &path))?;
            seen.insert(path.clone(), library.clone());
            self.collect(&path, &library, seen)?;
        }
        Ok(())
    }

    fn find(&self, name: &str, first: &[String], program: &Path) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_file());
        }
        let origin = program.canonicalize().ok();
        let origin = origin
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"));
        let origin = origin.to_string_lossy();
        let of_program = first.iter().map(|path| {
            let path = path
                .replace("${ORIGIN}", &origin)
                .replace("$ORIGIN", &origin);
            PathBuf::from(path)
        });
        let mut all = of_program.chain(self.directories.iter().cloned());
        all.find_map(|directory| {
            let file = directory.join(name);
            let bytes = file.is_file().then(|| head(&file)).flatten()?;
            // A library for 32 bits may have the same name.
            Elf::parse(&bytes).is_ok().then_some(file)
        })
    }
}

/// The first bytes of a file.
fn head(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)
        .ok()?
        .take(64)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Directories of a configuration file, and of those that it includes.
fn configured(path: &Path, directories: &mut Vec<PathBuf>, depth: u32) {
    let Ok(text) = fs::read_to_string(path) else {
        return;
    };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include ") {
            None if line.starts_with('/') => directories.push(PathBuf::from(line)),
            // Debian's has one: /etc/ld.so.conf.d/*.conf.
            Some(pattern) if depth < 4 => {
                let Some(directory) = pattern.trim().strip_suffix("/*.conf") else {
                    continue;
                };
                let entries = fs::read_dir(directory).into_iter().flatten();
                let mut files: Vec<PathBuf> =
                    entries.filter_map(|e| Some(e.ok()?.path())).collect();
                files.retain(|file| file.extension().is_some_and(|e| e == "conf"));
                files.sort();
                for file in files {
                    configured(&file, directories, depth + 1);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_libraries_and_theirs() {
        let program = std::env::current_exe().unwrap();
        let bytes = fs::read(&program).unwrap();
        let mut seen = BTreeMap::new();
        Libraries::of_this_machine()
            .collect(&program, &bytes, &mut seen)
            .unwrap();
        let has = |part: &str| {
            seen.keys()
                .any(|path| path.to_string_lossy().contains(part))
        };
        assert!(has("/libc.so") && has("ld-linux"), "{:?}", seen.keys());
    }

    #[test]
    fn configuration_files_include_others() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("conf.d");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("b.conf"), "/b # second\n").unwrap();
        fs::write(inner.join("a.conf"), "# none\n/a\n").unwrap();
        fs::write(inner.join("c.other"), "/c\n").unwrap();
        let top = directory.path().join("top");
        fs::write(&top, format!("include {}/*.conf\n/top\n", inner.display())).unwrap();
        let mut found = Vec::new();
        configured(&top, &mut found, 0);
        assert_eq!(found, ["/a", "/b", "/top"].map(PathBuf::from));
    }
}
