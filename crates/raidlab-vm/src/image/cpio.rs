//! The archive that the kernel unpacks into its first file system: cpio in its "newc" form
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`), owner and times all zero and names in
//! order, so that the same content is the same bytes.
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File { mode: u32, content: Vec<u8> },
    Link { target: String },
    Character { major: u32, minor: u32 },
}

/// A tree of files. Directories above a file come by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

/// File types of `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;
/// The form has eight hexadecimal digits for a size.
const MOST: usize = u32::MAX as usize;

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory.
    pub fn directory(&mut self, name: &str) {
        self.insert(name, Entry::Directory);
    }

    /// A file; `mode` is its permission bits.
    pub fn file(&mut self, name: &str, mode: u32, content: Vec<u8>) {
        self.insert(name, Entry::File { mode, content });
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        let target = target.to_owned();
        self.insert(name, Entry::Link { target });
    }

    /// A character device.
    pub fn character(&mut self, name: &str, major: u32, minor: u32) {
        self.insert(name, Entry::Character { major, minor });
    }

    /// Whether something has that name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name.trim_matches('/'))
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.entries.values().map(|entry| match entry {
            Entry::File { content, .. } => content.len() as u64,
            _ => 0,
        });
        sizes.sum()
    }

    /// The files: name and size in bytes, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.entries.iter().filter_map(|(name, entry)| match entry {
            Entry::File { content, .. } => Some((name.as_str(), content.len() as u64)),
            _ => None,
        })
    }

    fn insert(&mut self, name: &str, entry: Entry) {
        let name = name.trim_matches('/');
        for (at, _) in name.match_indices('/') {
            self.entries
                .entry(name[..at].to_owned())
                .or_insert(Entry::Directory);
        }
        self.entries.insert(name.to_owned(), entry);
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// Those of `out`; a file of 4 GiB or more.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = Writer { out, inode: 0 };
        for (name, entry) in &self.entries {
            match entry {
                Entry::Directory => writer.entry(name, DIRECTORY | 0o755, (0, 0), &[])?,
                Entry::File { mode, content } => {
                    writer.entry(name, REGULAR | (mode & 0o7777), (0, 0), content)?;
                }
                Entry::Link { target } => {
                    writer.entry(name, SYMLINK | 0o777, (0, 0), target.as_bytes())?;
                }
                Entry::Character { major, minor } => {
                    writer.entry(name, CHARACTER | 0o600, (*major, *minor), &[])?;
                }
            }
        }
        writer.inode = u32::MAX;
        writer.entry("TRAILER!!!", 0, (0, 0), &[])
    }
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    inode: u32,
}

impl Writer<'_> {
    fn entry(
        &mut self,
        name: &str,
        mode: u32,
        device: (u32, u32),
        content: &[u8],
    ) -> io::Result<()> {
        if content.len() > MOST {
            let error = format!("{name} has 4 GiB or more, which the archive cannot hold");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
        }
        self.inode = self.inode.wrapping_add(1);
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let fields = [
            self.inode,
            mode,
            0, // user
            0, // group
            links,
            0, // time
            content.len() as u32,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // no check sum in this form
        ];
        let mut head = String::from("070701");
        for field in fields {
            head.push_str(&format!("{field:08X}"));
        }
        self.out.write_all(head.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(head.len() + name.len() + 1)?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    /// Everything begins at a multiple of four.
    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.out
            .write_all(&[0; 3][..written.next_multiple_of(4) - written])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(tree: &Tree) -> Vec<u8> {
        let mut out = Vec::new();
        tree.write(&mut out).expect("memory takes all");
        out
    }

    type Read = (String, u32, (u32, u32), Vec<u8>);

    /// Name, mode, device and content of each entry, as the form's description has it.
    fn read(mut bytes: &[u8]) -> Vec<Read> {
        let mut found = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).expect("digits");
                u32::from_str_radix(text, 16).expect("hexadecimal")
            };
            let (size, named) = (field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&bytes[110..110 + named - 1]).expect("text");
            let begin = (110 + named).next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert_eq!(begin, bytes.len(), "the end is the end");
                return found;
            }
            let content = bytes[begin..begin + size].to_vec();
            found.push((name.to_owned(), field(1), (field(9), field(10)), content));
            bytes = &bytes[(begin + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let mut tree = Tree::new();
        tree.file("/usr/bin/tool", 0o755, b"#!".to_vec());
        tree.character("dev/console", 5, 1);
        tree.link("bin", "usr/bin");
        let found = read(&written(&tree));
        let names: Vec<&str> = found.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "bin",
                "dev",
                "dev/console",
                "usr",
                "usr/bin",
                "usr/bin/tool"
            ]
        );
        assert_eq!((found[2].1, found[2].2), (0o020_600, (5, 1)));
        assert_eq!(
            (found[5].1, found[5].3.as_slice()),
            (0o100_755, b"#!".as_slice())
        );
    }

    proptest! {
        #[test]
        fn what_is_put_in_is_in_it_in_any_order(
            files in proptest::collection::btree_map("[a-z]{1,9}(/[a-z]{1,9}){0,2}x", proptest::collection::vec(any::<u8>(), 0..99), 0..20)
        ) {
            let (mut forwards, mut backwards) = (Tree::new(), Tree::new());
            for (name, content) in &files {
                forwards.file(name, 0o644, content.clone());
            }
            for (name, content) in files.iter().rev() {
                backwards.file(name, 0o644, content.clone());
            }
            // A name may be a directory of another; files win over directories only in one of the two.
            let clash = files.keys().any(|a| files.keys().any(|b| b.starts_with(&format!("{a}/"))));
            prop_assume!(!clash);
            let bytes = written(&forwards);
            prop_assert_eq!(&bytes, &written(&backwards));
            let found: BTreeMap<String, Vec<u8>> = read(&bytes)
                .into_iter()
                .filter(|(_, mode, ..)| mode & REGULAR == REGULAR)
                .map(|(name, _, _, content)| (name, content))
                .collect();
            prop_assert_eq!(found, files);
        }
    }
}
