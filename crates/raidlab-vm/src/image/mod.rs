//! The guest's image: raidlab itself as the first process, the tools that build and measure arrays, and
//! the kernel's modules, in one archive that is the same bytes each time.
mod cpio;
mod elf;
mod kernel_modules;
mod libraries;
mod wanted;

pub use cpio::Tree;
pub use elf::{Elf, ElfError};
pub use wanted::{EXTRA, EXTRA_MODULES, MODULES, TOOLS, Tool};

use crate::cache::{Cache, hex};
use crate::error::VmError;
use crate::guest;
use crate::kernel::Kernel;
use crate::modules::{self, Module, Table, plain};
use crate::tools;
use crate::zfs::Zfs;
pub(crate) use kernel_modules::has_modules;
use kernel_modules::{builtin, files_in, modinfo, module, module_files};
use libraries::Libraries;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wanted::BUSYBOX;

/// What goes into an image.
#[derive(Clone, Debug)]
pub struct Recipe<'k> {
    /// The kernel whose modules are taken.
    pub kernel: &'k Kernel,
    /// The program that runs as the first process.
    pub init: PathBuf,
    /// Programs besides [`TOOLS`]: of this machine by name, or any by the path of its file, which the guest has in
    /// `/usr/bin`.
    pub also: Vec<String>,
    /// Modules of the kernel besides [`MODULES`].
    pub load: Vec<String>,
    /// ZFS that was built for the kernel, if the guest is to have it: its modules, and its programs instead of this
    /// machine's.
    pub zfs: Option<&'k Zfs>,
}

/// An image in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The archive.
    pub path: PathBuf,
    /// SHA-256 of it.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// What is in it.
    pub content: Content,
}

/// What is in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Programs, by name.
    pub programs: Vec<String>,
    /// Programs that were wanted and are not in it.
    pub missing: Vec<Missing>,
    /// Libraries.
    pub libraries: usize,
    /// Kernel modules.
    pub modules: usize,
    /// Modules that were wanted and that the kernel does not have.
    pub no_modules: Vec<String>,
}

/// A program that an image was to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name, or the path of its file.
    pub name: String,
    /// The package that has it, where that is known.
    pub package: Option<&'static str>,
    /// It is on this machine, but no program that a kernel starts by itself: a script, mostly.
    pub script: bool,
}

/// Directories that stand for others in a merged tree.
const MERGED: [(&str, &str); 4] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
];
/// Where the guest's loader looks without a configuration.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Images that are kept; others are older than any run that is under way.
const KEPT: usize = 6;
const KEPT_FOR: Duration = Duration::from_secs(900);

impl Recipe<'_> {
    /// Writes the image into the cache, unless it is there.
    ///
    /// # Errors
    /// When raidlab itself or a needed module cannot be put into it.
    pub fn build(&self, cache: &Cache) -> Result<Image, VmError> {
        let (tree, content) = self.tree()?;
        let directory = cache.directory("images")?;
        let mut file = tempfile::NamedTempFile::new_in(&directory)
            .map_err(VmError::path("write in", &directory))?;
        let (sha256, bytes) =
            hashed(&tree, file.as_file_mut()).map_err(VmError::path("write in", &directory))?;
        let path = directory.join(format!("{}.cpio", &sha256[..32]));
        file.persist(&path)
            .map_err(|error| VmError::path("write", &path)(error.error))?;
        sweep(&directory, &path);
        Ok(Image {
            path,
            sha256,
            bytes,
            content,
        })
    }

    /// What the image holds.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn tree(&self) -> Result<(Tree, Content), VmError> {
        let mut tree = Tree::new();
        for name in [
            "dev", "proc", "sys", "run", "tmp", "mnt", "root", "etc", "var/tmp",
        ] {
            tree.directory(name);
        }
        for (name, target) in MERGED {
            tree.link(name, target);
        }
        tree.character("dev/console", 5, 1);
        tree.character("dev/null", 1, 3);
        tree.link("etc/mtab", "/proc/self/mounts");
        tree.file(
            "etc/passwd",
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\n".to_vec(),
        );
        tree.file("etc/group", 0o644, b"root:x:0:\n".to_vec());
        tree.file(guest::MARK, 0o644, b"A guest of raidlab's.\n".to_vec());
        let mut content = Content::default();
        self.programs(&mut tree, &mut content)?;
        self.modules(&mut tree, &mut content)?;
        Ok((tree, content))
    }

    /// Programs that the image is to have, each with its package where that is known.
    fn wanted(&self) -> Vec<(&str, Option<&'static str>)> {
        let usual = TOOLS.iter().map(|tool| (tool.name, Some(tool.package)));
        let also = self.also.iter().map(|name| {
            let known = EXTRA.iter().find(|tool| tool.name == name);
            (name.as_str(), known.map(|tool| tool.package))
        });
        let mut wanted: Vec<(&str, Option<&'static str>)> = usual.collect();
        for one in also {
            if !wanted.iter().any(|(name, _)| *name == one.0) {
                wanted.push(one);
            }
        }
        wanted
    }

    /// Modules that the image is to have, by the names that the kernel has for them.
    fn wanted_modules(&self) -> Vec<String> {
        let has = |program: &str| self.also.iter().any(|name| name == program);
        let extra = EXTRA_MODULES.iter().filter(|(program, _)| has(program));
        let all = MODULES.iter().chain(extra.flat_map(|(_, names)| *names));
        let asked = self.load.iter().map(String::as_str);
        all.copied().chain(asked).map(plain).collect()
    }

    fn programs(&self, tree: &mut Tree, content: &mut Content) -> Result<(), VmError> {
        let libraries = Libraries::of_this_machine();
        let mut loaded = BTreeMap::new();
        let init = fs::read(&self.init).map_err(VmError::path("read", &self.init))?;
        libraries.collect(&self.init, &init, &mut loaded)?;
        tree.file("init", 0o755, short(&init));
        // The kernel asks for modules through this.
        tree.link("usr/sbin/modprobe", "/init");
        tree.link("usr/bin/raidlab", "/init");
        let of_zfs = self.zfs.map(|zfs| Libraries::under(&zfs.root));
        for (name, package) in self.wanted() {
            let (found, bytes) = self.found(name)?;
            // A script needs an interpreter, which is more than a small guest has.
            let script = found.is_some();
            let (Some(path), Ok(_)) = (found, Elf::parse(&bytes)) else {
                content.missing.push(Missing {
                    name: name.to_owned(),
                    package,
                    script,
                });
                continue;
            };
            let built = self.zfs.is_some_and(|zfs| path.starts_with(&zfs.root));
            let its_own = of_zfs.as_ref().filter(|_| built);
            let libraries = its_own.unwrap_or(&libraries);
            libraries.collect(&path, &bytes, &mut loaded)?;
            let place = match path.file_name() {
                Some(file) if name.contains('/') => format!("usr/bin/{}", file.to_string_lossy()),
                _ => self.inside(&path),
            };
            tree.file(&place, 0o755, short(&bytes));
            content.programs.push(name.to_owned());
        }
        other_names(tree, &content.programs);
        for name in ["etc/mke2fs.conf"] {
            if let Ok(bytes) = fs::read(Path::new("/").join(name)) {
                tree.file(name, 0o644, bytes);
            }
        }
        content.libraries = loaded.len();
        self.libraries(tree, loaded);
        Ok(())
    }

    /// Where a program is, and what is in its file: by the path of it, as ZFS has built it, or one of this machine's.
    fn found(&self, name: &str) -> Result<(Option<PathBuf>, Vec<u8>), VmError> {
        let found = if name.contains('/') {
            Some(PathBuf::from(name))
        } else {
            let built = self.zfs.and_then(|zfs| zfs.program(name));
            built.or_else(|| tools::find(name))
        };
        let bytes = match &found {
            Some(path) => fs::read(path).map_err(VmError::path("read", path))?,
            None => Vec::new(),
        };
        Ok((found, bytes))
    }

    /// Puts libraries where they are on this machine, and where every loader looks.
    fn libraries(&self, tree: &mut Tree, loaded: BTreeMap<PathBuf, Vec<u8>>) {
        for (path, bytes) in loaded {
            let name = self.inside(&path);
            if let Some(file) = path.file_name() {
                let usual = format!("{LIBRARIES}/{}", file.to_string_lossy());
                if usual != name && !tree.contains(&usual) {
                    tree.link(&usual, &format!("/{name}"));
                }
            }
            tree.file(&name, 0o755, short(&bytes));
        }
    }

    /// Where a file of this machine, or of ZFS as it was built, is in the guest.
    fn inside(&self, path: &Path) -> String {
        let of_zfs = self.zfs.and_then(|zfs| path.strip_prefix(&zfs.root).ok());
        of_zfs.map_or_else(|| inside(path), |path| inside(&Path::new("/").join(path)))
    }

    fn modules(&self, tree: &mut Tree, content: &mut Content) -> Result<(), VmError> {
        let mut files = module_files(&self.kernel.modules);
        if let Some(zfs) = self.zfs {
            files.extend(files_in(&zfs.modules));
        }
        let builtin = builtin(&self.kernel.modules);
        let mut table = Table::default();
        let wanted = self.wanted_modules();
        let mut left = wanted.clone();
        let mut known = BTreeSet::new();
        while let Some(name) = left.pop() {
            if !known.insert(name.clone()) {
                continue;
            }
            let Some(file) = files.get(&name) else {
                if !builtin.contains(&name) && wanted.contains(&name) {
                    content.no_modules.push(name);
                }
                continue;
            };
            let bytes = module(file)?;
            let said = modinfo(file, &bytes)?;
            left.extend(said.depends.iter().cloned());
            let path = format!("lib/modules/{}/{name}.ko", self.kernel.release);
            tree.file(&inside(Path::new(&path)), 0o644, bytes);
            let mut needs = said.depends;
            needs.extend(said.before);
            table.insert(Module {
                name,
                path,
                needs,
                aliases: said.aliases,
            });
        }
        content.no_modules.sort();
        content.modules = table.modules().count();
        tree.file(
            &inside(Path::new(modules::TABLE)),
            0o644,
            table.to_text().into_bytes(),
        );
        Ok(())
    }
}

/// Where a file of this machine is in the guest.
fn inside(path: &Path) -> String {
    // The directory may be a link; the file's own name is what is asked for.
    let directory = path
        .parent()
        .and_then(|d| d.canonicalize().ok().filter(|_| d.is_absolute()));
    let path = match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    };
    let name = path.to_string_lossy().trim_start_matches('/').to_owned();
    for (from, to) in MERGED {
        if let Some(rest) = name.strip_prefix(&format!("{from}/")) {
            return format!("{to}/{rest}");
        }
    }
    name
}

/// Programs that are several, by the name that they are called by.
fn other_names(tree: &mut Tree, programs: &[String]) {
    let has = |program: &str| programs.iter().any(|name| name == program);
    if has("busybox") {
        for name in BUSYBOX {
            let name = format!("usr/bin/{name}");
            if !tree.contains(&name) {
                tree.link(&name, "busybox");
            }
        }
    }
    if has("mke2fs") {
        for name in ["mkfs.ext2", "mkfs.ext3", "mkfs.ext4"] {
            tree.link(&format!("usr/sbin/{name}"), "mke2fs");
        }
    }
}

/// A program without what only a debugger reads.
fn short(bytes: &[u8]) -> Vec<u8> {
    Elf::parse(bytes).map_or_else(|_| bytes.to_vec(), |elf| elf.loaded())
}

/// Writes the archive; its SHA-256 and size.
fn hashed(tree: &Tree, file: &mut fs::File) -> io::Result<(String, u64)> {
    let mut writer = Hashed {
        out: io::BufWriter::with_capacity(1 << 20, file),
        digest: Sha256::new(),
        bytes: 0,
    };
    tree.write(&mut writer)?;
    writer.flush()?;
    Ok((hex(&writer.digest.finalize_reset()), writer.bytes))
}

/// Writes and hashes.
struct Hashed<W> {
    out: W,
    digest: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Removes images that nobody has made for a while, but for the newest few.
fn sweep(directory: &Path, keep: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut all: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| path != keep)
        .collect();
    all.sort();
    all.reverse();
    for (made, path) in all.into_iter().skip(KEPT) {
        if made.elapsed().is_ok_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
