//! How far a build is, from what its programs say.

/// How far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done, in a few words.
    pub what: String,
    /// Share of the whole that is done, 0 to 1.
    pub done: f64,
}

/// Parts of a build with their shares of its time, in thousandths: of 2.1.11 for 6.1 on two processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Look,
    Fetch,
    Unpack,
    Configure,
    Make,
    Keep,
}

impl Part {
    const ALL: [(Self, &'static str, u32); 6] = [
        (Self::Look, "looking for packages", 20),
        (Self::Fetch, "fetching packages", 10),
        (Self::Unpack, "unpacking", 10),
        (Self::Configure, "looking at what the kernel has", 300),
        (Self::Make, "compiling ZFS", 650),
        (Self::Keep, "keeping what was built", 10),
    ];

    /// The progress when this share of the part is done.
    pub(super) fn at(self, share: f64) -> Progress {
        let sum = |parts: &mut dyn Iterator<Item = &(Self, &str, u32)>| -> f64 {
            parts.map(|(.., weight)| f64::from(*weight)).sum()
        };
        let all = sum(&mut Self::ALL.iter());
        let before = sum(&mut Self::ALL.iter().filter(|(part, ..)| *part < self));
        let own = sum(&mut Self::ALL.iter().filter(|(part, ..)| *part == self));
        let what = Self::ALL.iter().find(|(part, ..)| *part == self);
        Progress {
            what: what.map_or(String::new(), |(_, what, _)| (*what).to_owned()),
            done: (before + own * share.clamp(0.0, 1.0)) / all,
        }
    }
}

/// Share of the trial modules of a `configure` that are compiled, of directories with so many files each: it compiles
/// a module for everything that it wants to know of a kernel, of two objects.
pub(super) fn tried(directories: &[Vec<String>]) -> f64 {
    let objects = directories
        .iter()
        .flatten()
        .filter(|name| name.ends_with(".o"));
    objects.count() as f64 / (2 * directories.len()).max(1) as f64
}

/// Objects that a makefile of the kernel's kind lists: `name-objs += file.o`, and over several lines.
pub(super) fn objects(makefile: &str) -> usize {
    let words = makefile.split_whitespace();
    words
        .filter(|word| word.ends_with(".o") && !word.contains('$'))
        .count()
}

/// Objects that it has compiled.
pub(super) fn compiled(said: &str) -> usize {
    let of = |line: &&str| {
        ["  CC [M]", "  AS [M]"]
            .iter()
            .any(|how| line.starts_with(how))
    };
    said.lines().filter(of).count()
}

/// What of a log tells why it ended: the lines that name an error, else the last ones.
pub(super) fn why(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let named: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("error:") || line.contains("Error "))
        .copied()
        .take(4)
        .collect();
    if named.is_empty() {
        lines[lines.len().saturating_sub(4)..].join("; ")
    } else {
        named.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_go_from_nothing_to_all() {
        let order = [
            Part::Look,
            Part::Fetch,
            Part::Unpack,
            Part::Configure,
            Part::Make,
            Part::Keep,
        ];
        assert!(order.is_sorted());
        let mut before = 0.0;
        for part in order {
            for share in [0.0, 0.5, 1.0] {
                let now = part.at(share);
                assert!(now.done >= before && !now.what.is_empty());
                before = now.done;
            }
        }
        assert!((before - 1.0).abs() < 1e-9);
        assert!((Part::Make.at(7.0).done - Part::Make.at(1.0).done).abs() < 1e-9);
    }

    #[test]
    fn what_programs_say_is_counted() {
        let files = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let built = files(&["a.c", "a.o", "a.mod.c", "a.mod.o", "a.ko"]);
        assert_eq!(
            tried(&[
                built,
                files(&["b.c", "b.o"]),
                files(&["c.c"]),
                files(&["d.c"])
            ]),
            3.0 / 8.0
        );
        assert_eq!(tried(&[]), 0.0);
        let makefile = "obj-m := zfs.o\n$(MODULE)-objs += abd.o\n$(MODULE)-objs += a.o b.o\nZFS_OBJS := \\\n\tc.o \\\nccflags-y += -I\n";
        assert_eq!(objects(makefile), 5);
        assert_eq!(
            compiled("  CC [M]  /a/b.o\n  LD [M]  /a/c.o\nmake[2]: x\n  CC [M]  /a/d.o\n"),
            2
        );
        assert_eq!(
            why("a\nx.c:1: error: no\nmake: *** [x] Error 1\n"),
            "x.c:1: error: no; make: *** [x] Error 1"
        );
        assert_eq!(why("a\nb\n\n"), "a; b");
    }
}
