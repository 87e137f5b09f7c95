//! Kernel modules: what each needs and answers to, as a table that the image carries and the guest
//! loads from. Written from the modules' own `.modinfo`, for a package that has not been through `depmod`.
use std::collections::{BTreeMap, BTreeSet};

/// Where the table is in the guest.
pub const TABLE: &str = "lib/modules/raidlab.modules";

/// One module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_` for `-`.
    pub name: String,
    /// Its file in the guest.
    pub path: String,
    /// Modules that must be there first.
    pub needs: Vec<String>,
    /// Other names that the kernel asks for it by, such as `fs-xfs`; none with wildcards.
    pub aliases: Vec<String>,
}

/// What a module says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Modules that it cannot be loaded without.
    pub depends: Vec<String>,
    /// Modules or aliases to load before it if they are there.
    pub before: Vec<String>,
    /// Aliases without wildcards.
    pub aliases: Vec<String>,
}

/// The name of a module as tables have it.
#[must_use]
pub fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Reads `.modinfo`: `key=value` divided by NUL.
#[must_use]
pub fn said(modinfo: &[u8]) -> Said {
    let mut said = Said::default();
    for entry in modinfo.split(|b| *b == 0) {
        let entry = String::from_utf8_lossy(entry);
        match entry.split_once('=') {
            Some(("depends", list)) => {
                let names = list.split(',').filter(|n| !n.is_empty());
                said.depends.extend(names.map(plain));
            }
            Some(("softdep", list)) => said.before.extend(before(list)),
            Some(("alias", alias)) if !alias.contains(['*', '?', '[', ' ', '\t']) => {
                said.aliases.push(alias.to_owned());
            }
            _ => {}
        }
    }
    said
}

/// `pre: a b post: c`: a and b.
fn before(list: &str) -> Vec<String> {
    let mut wanted = false;
    let mut found = Vec::new();
    for word in list.split_whitespace() {
        match word {
            "pre:" => wanted = true,
            "post:" => wanted = false,
            word if wanted => found.push(word.to_owned()),
            _ => {}
        }
    }
    found
}

/// Modules by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    modules: BTreeMap<String, Module>,
}

impl Table {
    /// Adds a module.
    pub fn insert(&mut self, module: Module) {
        self.modules.insert(module.name.clone(), module);
    }

    /// All modules, by name.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    /// The modules that a name or an alias stands for: several when more than one answers to it.
    #[must_use]
    pub fn find(&self, wanted: &str) -> Vec<&Module> {
        let name = plain(wanted);
        if let Some(module) = self.modules.get(&name) {
            return vec![module];
        }
        let answers = |module: &&Module| module.aliases.iter().any(|a| plain(a) == name);
        self.modules.values().filter(answers).collect()
    }

    /// The modules to load for the wanted ones (names or aliases) in an order in which each finds what it
    /// needs; unknown ones are left out.
    #[must_use]
    pub fn order(&self, wanted: &[&str]) -> Vec<&Module> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for wanted in wanted {
            for module in self.find(wanted) {
                self.visit(module, &mut seen, &mut order);
            }
        }
        order
    }

    fn visit<'t>(
        &'t self,
        module: &'t Module,
        seen: &mut BTreeSet<&'t str>,
        order: &mut Vec<&'t Module>,
    ) {
        // Marked first, so that modules that name each other end all the same.
        if !seen.insert(&module.name) {
            return;
        }
        for need in &module.needs {
            for needed in self.find(need) {
                self.visit(needed, seen, order);
            }
        }
        order.push(module);
    }

    /// As text: a line a module, fields divided by tabs, lists by commas.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = |m: &Module| {
            let (needs, aliases) = (m.needs.join(","), m.aliases.join(","));
            format!("{}\t{}\t{needs}\t{aliases}\n", m.name, m.path)
        };
        self.modules.values().map(line).collect()
    }

    /// From [`Self::to_text`]; lines that are none of it are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let list = |field: &str| {
            let parts = field.split(',').filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut table = Self::default();
        for line in text.lines() {
            if let [name, path, needs, aliases] = line.split('\t').collect::<Vec<_>>()[..] {
                table.insert(Module {
                    name: name.to_owned(),
                    path: path.to_owned(),
                    needs: list(needs),
                    aliases: list(aliases),
                });
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(modules: &[(&str, &[&str], &[&str])]) -> Table {
        let mut table = Table::default();
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        for (name, needs, aliases) in modules {
            table.insert(Module {
                name: (*name).to_owned(),
                path: format!("lib/modules/{name}.ko"),
                needs: owned(needs),
                aliases: owned(aliases),
            });
        }
        table
    }

    #[test]
    fn modules_tell_what_they_need() {
        let said = said(
            b"alias=fs-btrfs\0alias=pci:v0000*\0depends=raid6_pq,libcrc32c,zstd-compress\0\
              softdep=pre: crc32c post: late pre: sha256\0license=GPL\0nonsense\0",
        );
        assert_eq!(said.aliases, ["fs-btrfs"]);
        assert_eq!(said.depends, ["raid6_pq", "libcrc32c", "zstd_compress"]);
        assert_eq!(said.before, ["crc32c", "sha256"]);
    }

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let table = table(&[
            (
                "raid456",
                &["md_mod", "async_tx"],
                &["md-level-5", "md-raid5"],
            ),
            ("async_tx", &["xor"], &[]),
            ("md_mod", &[], &[]),
            ("xor", &[], &[]),
            ("crc32c_intel", &[], &["crc32c"]),
            ("crc32c_generic", &[], &["crc32c"]),
            ("xfs", &["crc32c"], &["fs-xfs"]),
        ]);
        let names = |wanted: &[&str]| -> Vec<String> {
            let order = table.order(wanted);
            order.iter().map(|m| m.name.clone()).collect()
        };
        assert_eq!(
            names(&["md-level-5", "md-mod"]),
            ["md_mod", "xor", "async_tx", "raid456"]
        );
        assert_eq!(
            names(&["fs-xfs"]),
            ["crc32c_generic", "crc32c_intel", "xfs"]
        );
        assert_eq!(names(&["unknown"]), [""; 0]);
    }

    #[test]
    fn modules_that_need_each_other_do_not_hang() {
        let table = table(&[("a", &["b"], &[]), ("b", &["a"], &[])]);
        assert_eq!(table.order(&["a"]).len(), 2);
    }

    proptest! {
        #[test]
        fn the_text_says_all(modules in proptest::collection::vec(("[a-z_]{1,9}", proptest::collection::vec("[a-z0-9:-]{1,9}", 0..3)), 0..9)) {
            let mut table = Table::default();
            for (name, list) in modules {
                table.insert(Module { path: name.clone(), name, needs: list.clone(), aliases: list });
            }
            prop_assert_eq!(Table::parse(&table.to_text()), table);
        }

        #[test]
        fn any_text_is_read(text in "\\PC*") {
            let _ = Table::parse(&text).order(&["a"]);
            let _ = said(text.as_bytes());
        }
    }
}
