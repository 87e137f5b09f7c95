//! The modules of a kernel as its package has them: files, packed or not, and what is built in.
use super::elf::{Elf, ElfError};
use crate::error::VmError;
use crate::modules::{self, plain};
use crate::tools;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn modinfo(file: &Path, bytes: &[u8]) -> Result<modules::Said, VmError> {
    let wrong = |error: ElfError| VmError::Image {
        path: file.to_owned(),
        why: error.to_string(),
    };
    let section = Elf::parse(bytes).and_then(|elf| elf.section(".modinfo"));
    Ok(modules::said(section.map_err(wrong)?.unwrap_or_default()))
}

/// Endings of module files, with the program that unpacks each.
const PACKED: [(&str, &str); 3] = [(".ko.xz", "xz"), (".ko.zst", "zstd"), (".ko.gz", "gzip")];

/// A module, unpacked.
pub(super) fn module(file: &Path) -> Result<Vec<u8>, VmError> {
    let name = file.to_string_lossy();
    match PACKED.iter().find(|(ending, _)| name.ends_with(ending)) {
        Some((_, program)) => tools::run(program, &["-dc", &name], None),
        None => fs::read(file).map_err(VmError::path("read", file)),
    }
}

/// Module files of a kernel, by the modules' names.
pub(super) fn module_files(directory: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = files_in(&directory.join("kernel"));
    found.extend(files_in(&directory.join("updates")));
    found
}

/// Module files below a directory, by the modules' names.
pub(super) fn files_in(directory: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path);
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let endings = PACKED.iter().map(|(ending, _)| *ending).chain([".ko"]);
            if let Some(stem) = endings.filter_map(|e| name.strip_suffix(e)).next() {
                found.insert(plain(stem), path);
            }
        }
    }
    found
}

/// Names of what is built into the kernel.
pub(super) fn builtin(modules: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(modules.join("modules.builtin")).unwrap_or_default();
    let stem = |line: &str| Some(plain(Path::new(line).file_stem()?.to_str()?));
    text.lines().filter_map(stem).collect()
}

/// Whether a kernel has all these, built in or as modules.
pub(crate) fn has_modules(modules: &Path, names: &[&str]) -> bool {
    let (files, builtin) = (module_files(modules), builtin(modules));
    names
        .iter()
        .all(|name| files.contains_key(*name) || builtin.contains(*name))
}
