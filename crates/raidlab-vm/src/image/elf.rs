//! As much of ELF as an image needs: which libraries a program loads, what of a file is loaded at run
//! time, and the section in which kernel modules tell about themselves. 64 bits, little-endian.
//! Names and numbers: System V ABI, chapters 4 and 5; `elf(5)`.

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Another format.
    #[error("no ELF file")]
    Other,
    /// 32 bits or big-endian.
    #[error("not for a 64-bit little-endian machine")]
    Foreign,
    /// A table lies beyond the end.
    #[error("cut short or damaged")]
    Damaged,
}

/// A file in that format.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'b> {
    bytes: &'b [u8],
}

/// What a program loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// The program that loads it.
    pub interpreter: Option<String>,
    /// Names of libraries.
    pub needed: Vec<String>,
    /// Directories to look in first; may have `$ORIGIN`.
    pub paths: Vec<String>,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// A program header.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl<'b> Elf<'b> {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn parse(bytes: &'b [u8]) -> Result<Self, ElfError> {
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err(ElfError::Other);
        }
        // EI_CLASS 2: 64 bits; EI_DATA 1: little-endian.
        if bytes.get(4..6) != Some(&[2, 1]) {
            return Err(ElfError::Foreign);
        }
        let elf = Self { bytes };
        elf.number::<8>(0x20)?;
        elf.number::<2>(0x3e)?;
        Ok(elf)
    }

    fn at(&self, offset: u64, size: u64) -> Result<&'b [u8], ElfError> {
        let begin = usize::try_from(offset).map_err(|_| ElfError::Damaged)?;
        let end = offset.checked_add(size).ok_or(ElfError::Damaged)?;
        let end = usize::try_from(end).map_err(|_| ElfError::Damaged)?;
        self.bytes.get(begin..end).ok_or(ElfError::Damaged)
    }

    fn number<const N: usize>(&self, offset: u64) -> Result<u64, ElfError> {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(self.at(offset, N as u64)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// Text up to a NUL.
    fn text(&self, offset: u64) -> Result<String, ElfError> {
        let begin = usize::try_from(offset).map_err(|_| ElfError::Damaged)?;
        let rest = self.bytes.get(begin..).ok_or(ElfError::Damaged)?;
        let end = rest.iter().position(|b| *b == 0).ok_or(ElfError::Damaged)?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    fn segments(&self) -> Result<Vec<Segment>, ElfError> {
        let (table, size, count) = (
            self.number::<8>(0x20)?,
            self.number::<2>(0x36)?,
            self.number::<2>(0x38)?,
        );
        let one = |n: u64| {
            let at = table.checked_add(n * size).ok_or(ElfError::Damaged)?;
            let field = |skip: u64| at.checked_add(skip).ok_or(ElfError::Damaged);
            Ok(Segment {
                kind: self.number::<4>(at)? as u32,
                offset: self.number::<8>(field(8)?)?,
                address: self.number::<8>(field(16)?)?,
                size: self.number::<8>(field(32)?)?,
            })
        };
        (0..count).map(one).collect()
    }

    /// What it loads; nothing for a static program.
    ///
    /// # Errors
    /// [`ElfError::Damaged`].
    pub fn dynamic(&self) -> Result<Dynamic, ElfError> {
        let segments = self.segments()?;
        let mut found = Dynamic::default();
        if let Some(segment) = segments.iter().find(|s| s.kind == PT_INTERP) {
            found.interpreter = Some(self.text(segment.offset)?);
        }
        let Some(table) = segments.iter().find(|s| s.kind == PT_DYNAMIC) else {
            return Ok(found);
        };
        let mut tags = Vec::new();
        for n in 0..table.size / 16 {
            let at = table.offset.checked_add(16 * n).ok_or(ElfError::Damaged)?;
            let value = at.checked_add(8).ok_or(ElfError::Damaged)?;
            match (self.number::<8>(at)?, self.number::<8>(value)?) {
                (DT_NULL, _) => break,
                tag => tags.push(tag),
            }
        }
        let Some((_, strings)) = tags.iter().find(|(tag, _)| *tag == DT_STRTAB) else {
            return Ok(found);
        };
        // The table of strings is given by its address in memory.
        let of_file = |address: u64| {
            let mut holds = segments.iter().filter(|s| s.kind == PT_LOAD);
            let held = |s: &&Segment| address.checked_sub(s.address).is_some_and(|d| d < s.size);
            let segment = holds.find(held).ok_or(ElfError::Damaged)?;
            Ok(segment.offset.wrapping_add(address - segment.address))
        };
        let strings = of_file(*strings)?;
        for (tag, value) in tags {
            let place = strings.checked_add(value).ok_or(ElfError::Damaged);
            match tag {
                DT_NEEDED => found.needed.push(self.text(place?)?),
                DT_RPATH | DT_RUNPATH => {
                    let paths = self.text(place?)?;
                    found.paths.extend(paths.split(':').map(str::to_owned));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The file without what is not loaded at run time: names and lines for debuggers, which are most of
    /// a program that was built with them. As it is when the segments cannot be told.
    #[must_use]
    pub fn loaded(&self) -> Vec<u8> {
        let whole = || self.bytes.to_vec();
        let Ok(segments) = self.segments() else {
            return whole();
        };
        let ends = segments.iter().map(|s| s.offset.saturating_add(s.size));
        let end = ends.max().unwrap_or(0);
        let Some(kept) = usize::try_from(end)
            .ok()
            .and_then(|end| self.bytes.get(..end))
        else {
            return whole();
        };
        if kept.len() < 0x40 {
            return whole();
        }
        let mut kept = kept.to_vec();
        // The table of sections (e_shoff, e_shnum, e_shstrndx) is gone.
        kept[0x28..0x30].fill(0);
        kept[0x3c..0x40].fill(0);
        kept
    }

    /// The bytes of a section.
    ///
    /// # Errors
    /// [`ElfError::Damaged`].
    pub fn section(&self, name: &str) -> Result<Option<&'b [u8]>, ElfError> {
        let (table, size, count, names) = (
            self.number::<8>(0x28)?,
            self.number::<2>(0x3a)?,
            self.number::<2>(0x3c)?,
            self.number::<2>(0x3e)?,
        );
        let place = |n: u64, skip: u64| {
            let at = table.checked_add(n * size + skip);
            at.ok_or(ElfError::Damaged)
        };
        if names >= count {
            return Ok(None);
        }
        let strings = self.number::<8>(place(names, 0x18)?)?;
        for n in 0..count {
            let named = self.number::<4>(place(n, 0)?)?;
            let named = strings.checked_add(named).ok_or(ElfError::Damaged)?;
            if self.text(named)? == name {
                let (offset, size) = (
                    self.number::<8>(place(n, 0x18)?)?,
                    self.number::<8>(place(n, 0x20)?)?,
                );
                return self.at(offset, size).map(Some);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a path")).expect("a readable program")
    }

    #[test]
    fn this_program_needs_the_c_library() {
        let bytes = own();
        let dynamic = Elf::parse(&bytes).unwrap().dynamic().unwrap();
        assert!(
            dynamic.needed.iter().any(|n| n.starts_with("libc.so")),
            "{dynamic:?}"
        );
        assert!(dynamic.interpreter.unwrap().contains("ld-linux"));
    }

    #[test]
    fn a_program_runs_without_what_is_not_loaded() {
        let bytes = std::fs::read("/bin/true").unwrap();
        let short = Elf::parse(&bytes).unwrap().loaded();
        assert!(short.len() < bytes.len());
        let directory = tempfile::tempdir().unwrap();
        let [written, path] = ["written", "true"].map(|name| directory.path().join(name));
        std::fs::write(&written, &short).unwrap();
        // What was open for writing here may be so still in a program that another test is just starting, and is not run then.
        let mut install = std::process::Command::new("install");
        let installed = install.args(["-m", "755"]).args([&written, &path]).status();
        assert!(installed.unwrap().success());
        let ran = std::process::Command::new(&path).status();
        assert!(ran.unwrap().success());
        // What is loaded says the same.
        let elf = Elf::parse(&short).unwrap();
        assert_eq!(elf.dynamic(), Elf::parse(&bytes).unwrap().dynamic());
        assert_eq!(elf.section(".modinfo"), Ok(None));
    }

    #[test]
    fn sections_are_found_by_name() {
        let bytes = own();
        let elf = Elf::parse(&bytes).unwrap();
        let interpreter = elf.section(".interp").unwrap().expect("a dynamic program");
        assert!(interpreter.starts_with(b"/lib"));
        assert_eq!(elf.section(".no-such-section"), Ok(None));
    }

    fn exercise(bytes: &[u8]) {
        if let Ok(elf) = Elf::parse(bytes) {
            let _ = elf.dynamic();
            let _ = elf.section(".modinfo");
            let _ = elf.loaded();
        }
    }

    proptest! {
        #[test]
        fn damaged_files_are_refused_not_believed(
            at in 0_usize..4096, value: u8, cut in 0_usize..70_000
        ) {
            let mut bytes = std::fs::read("/bin/true").unwrap();
            bytes.truncate(cut);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            exercise(&bytes);
        }

        #[test]
        fn any_bytes_are_refused_not_believed(mut bytes in proptest::collection::vec(any::<u8>(), 6..400)) {
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            exercise(&bytes);
        }
    }
}
