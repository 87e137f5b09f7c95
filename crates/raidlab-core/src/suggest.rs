//! What was most likely meant by a name that nothing has.

/// What mdadm, fio, zpool, the kernel and people call what has another name here, and the names that it may have here,
/// the likeliest first.
const ELSEWHERE: [(&[&str], &[&str]); 29] = [
    (
        &[
            "level",
            "levels",
            "raid",
            "raid-level",
            "raidlevel",
            "raid-type",
            "array-type",
        ],
        &["layout"],
    ),
    (
        &[
            "raid-devices",
            "devices",
            "disks",
            "drives",
            "disk-count",
            "drive-count",
            "num-disks",
            "ndisks",
            "width",
        ],
        &["members"],
    ),
    (
        &[
            "chunk-size",
            "chunksize",
            "stripe",
            "stripe-size",
            "stripe-unit",
            "strip",
            "strip-size",
        ],
        &["chunk"],
    ),
    (
        &[
            "bs",
            "blocksize",
            "block-size",
            "iosize",
            "io-size",
            "transfer-size",
        ],
        &["call-size", "block", "bs", "call", "chunk", "block-size"],
    ),
    (
        &[
            "iodepth",
            "io-depth",
            "qd",
            "queuedepth",
            "queue-depth",
            "outstanding",
        ],
        &["queue-depth", "depth"],
    ),
    (
        &[
            "numjobs",
            "num-jobs",
            "workers",
            "processes",
            "threads",
            "clients",
        ],
        &["jobs", "threads"],
    ),
    (&["filesize", "file-size", "size"], &["file-size", "size"]),
    (
        &[
            "runtime",
            "run-time",
            "duration",
            "seconds",
            "time-limit",
            "timeout",
            "time",
        ],
        &["time", "runtime"],
    ),
    (&["io-limit", "io-total", "bytes"], &["total"]),
    (
        &[
            "rwmixread",
            "rwmix",
            "mix",
            "read-share",
            "reads",
            "read-percent",
        ],
        &["read-percent", "read"],
    ),
    (&["o-direct", "odirect", "oflag", "iflag"], &["direct"]),
    (
        &[
            "runs",
            "trials",
            "repetitions",
            "reps",
            "iterations",
            "loops",
            "rounds",
            "times",
            "samples",
            "replicates",
            "n",
        ],
        &["repeats"],
    ),
    (&["health", "status", "condition"], &["state"]),
    (
        &["elevator", "iosched", "io-scheduler", "ioscheduler"],
        &["scheduler"],
    ),
    (&["os", "linux", "kernel-version", "era"], &["kernel"]),
    (&["ram", "mem"], &["memory"]),
    (&["cpus", "processors", "nproc", "vcpus"], &["cores"]),
    (&["ra", "setra", "read-ahead-kb"], &["read-ahead"]),
    (&["fs", "fstype", "fs-type"], &["filesystem"]),
    (
        &["max-sectors-kb", "max-sectors", "max-request"],
        &["request-size"],
    ),
    (&["nr-requests"], &["queue-requests"]),
    (&["ncq", "tcq", "tags"], &["drive-queue"]),
    (&["recordsize", "volblocksize"], &["record-size"]),
    (&["speed-limit-min", "resync-min"], &["sync-speed-min"]),
    (&["speed-limit-max", "resync-max"], &["sync-speed-max"]),
    (&["dirty-ratio", "dirty-bytes"], &["dirty-limit"]),
    (
        &["dirty-background-ratio", "dirty-background-bytes"],
        &["dirty-background"],
    ),
    (&["dirty-expire-centisecs"], &["dirty-expire"]),
    (
        &["dirty-writeback-centisecs", "writeback", "flush-interval"],
        &["dirty-writeback"],
    ),
];

/// The known name that was most likely meant: what is called so elsewhere, else the one most like what was typed, when
/// one is like it.
#[must_use]
pub fn nearest<'k>(
    typed: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    // A text as long as this is no slip of the pen, and comparing it takes long.
    if typed.len() > 64 {
        return None;
    }
    let typed = typed.trim().to_lowercase().replace('_', "-");
    called_elsewhere(&typed, known.clone()).or_else(|| spelt_alike(&typed, known))
}

fn called_elsewhere<'k>(
    typed: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    let mut here = named_here(typed).iter();
    here.find_map(|name| known.clone().into_iter().find(|known| known == name))
}

/// The names that a word of other tools may have here, the likeliest first; none for a word that none is known for.
#[must_use]
pub fn named_here(typed: &str) -> &'static [&'static str] {
    let typed = typed.trim().to_lowercase().replace('_', "-");
    let found = ELSEWHERE
        .iter()
        .find(|(words, _)| words.contains(&typed.as_str()));
    found.map_or(&[], |(_, here)| here)
}

fn spelt_alike<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .map(|name| {
            let (near, edits) = far(typed, &name.to_lowercase());
            (near, edits, name)
        })
        .filter(|(near, _, name)| *near <= 1 + name.chars().count() / 4)
        .min()
        .map(|(.., name)| name)
}

/// Edit distance with swaps of neighbours, where a word that the other begins with is near; and that distance
/// as it is, to choose among several such.
fn far(typed: &str, name: &str) -> (usize, usize) {
    let edits = strsim::osa_distance(typed, name);
    let begins = typed.len() >= 3 && (name.starts_with(typed) || typed.starts_with(name));
    let near = if begins && !name.is_empty() { 1 } else { edits };
    (near, edits)
}

/// The nearest name as a remark within a sentence, ` (did you mean 'noop'?)`; nothing when none is near.
#[must_use]
pub fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
}

/// Names for a sentence: at most twenty of them.
#[must_use]
pub fn list<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(20);
    names.truncate(20);
    let text = names.join(", ");
    match more {
        0 => text,
        _ => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_seen_and_other_words_are_not() {
        let known = ["deadline", "noop", "cfq", "read-ahead"];
        assert_eq!(nearest("deadlin", known), Some("deadline"));
        assert_eq!(nearest("nopo", known), Some("noop"));
        assert_eq!(nearest("read_ahead", known), Some("read-ahead"));
        assert_eq!(nearest("bicycle", known), None);
        assert_eq!(nearest("", known), None);
        let known = ["size", "chunk", "seekers", "seeks"];
        assert_eq!(nearest("seek", known), Some("seeks"));
        assert_eq!(nearest("chunks", known), Some("chunk"));
        assert_eq!(list(["a", "b"]), "a, b");
    }

    #[test]
    fn words_of_other_tools_are_understood() {
        let known = ["layout", "ramp", "members", "chunk", "depth", "block"];
        assert_eq!(
            nearest("raid", known),
            Some("layout"),
            "not ramp, as it is spelt"
        );
        assert_eq!(nearest("iodepth", known), Some("depth"));
        assert_eq!(nearest("Stripe_Size", known), Some("chunk"));
        assert_eq!(
            nearest("bs", known),
            Some("block"),
            "call-size is not known here"
        );
        assert_eq!(nearest("bs", ["block", "call-size"]), Some("call-size"));
        assert_eq!(nearest("elevator", known), None);
        for (words, here) in ELSEWHERE {
            for word in words {
                let others = ELSEWHERE.iter().filter(|(words, _)| words.contains(word));
                assert_eq!(others.count(), 1, "{word} has one meaning");
                assert!(nearest(word, here.iter().copied()).is_some(), "{word}");
            }
        }
    }
}
