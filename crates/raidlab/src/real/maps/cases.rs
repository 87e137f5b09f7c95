//! Which arrays are looked at: every level and layout of md, over members and chunks.
use crate::exit::Failure;
use crate::predict::catalogue;
use raidlab_experiment::setup::Setup;
use serde::{Deserialize, Serialize};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Of each member that can be limited: enough for every rotation at the larger chunk, several times.
const USED: u64 = 3;

/// An array to look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Case {
    /// Level, members, chunk, metadata: what it is called.
    pub(super) label: String,
    /// As an experiment would have it.
    pub(super) setup: Setup,
    /// Bytes of each disk.
    pub(super) sizes: Vec<u64>,
}

/// A row of the matrix.
struct Row<'a> {
    layout: &'a str,
    members: u64,
    /// In KiB; 0 where there is none.
    chunk: u64,
    metadata: &'a str,
    /// Members of different sizes.
    unequal: bool,
}

impl Row<'_> {
    /// Md takes all of each member where nothing is redundant.
    fn is_whole(&self) -> bool {
        self.layout.starts_with("raid0") || self.layout == "linear"
    }

    fn label(&self) -> String {
        let sizes = if self.unequal { " unequal" } else { "" };
        let chunk = match self.chunk {
            0 => String::new(),
            chunk => format!(" {chunk}KiB"),
        };
        let Self {
            layout,
            members,
            metadata,
            ..
        } = self;
        format!("{layout} on {members}{sizes}{chunk} {metadata}")
    }

    fn sizes(&self) -> Vec<u64> {
        // Metadata of BIOS RAIDs takes 32 MiB of the end of a disk, and more.
        let least = match self.metadata {
            "ddf" | "imsm" => 40,
            _ => 8,
        };
        let more = |member: u64| match self.unequal {
            true => (member * 5 % 3) * MIB + member % 2 * 192 * 1024,
            false => 0,
        };
        (0..self.members)
            .map(|member| least * MIB + more(member))
            .collect()
    }

    fn case(&self) -> Result<Case, Failure> {
        let chunk = match self.chunk {
            0 => String::new(),
            chunk => format!("chunk = \"{chunk}KiB\"\n"),
        };
        let size = match (self.is_whole(), self.metadata) {
            (true, _) => String::new(),
            (false, "imsm" | "ddf") => format!("member-size = \"{}MiB\"\n", 2 * USED),
            (false, _) => format!("member-size = \"{USED}MiB\"\n"),
        };
        let text = format!(
            "title = \"maps\"\ndisks = {{ model = \"ST3250624AS\", count = {} }}\nprofile = \"hdparm\"\n\n[array]\n\
             metadata = \"{}\"\n{chunk}{size}\n[factors]\nlayout = [\"{}\"]\n",
            self.members, self.metadata, self.layout
        );
        let label = self.label();
        let experiment = catalogue::read(&text, &label, Path::new(""))?;
        Ok(Case {
            label,
            setup: experiment.cells[0].setup.clone(),
            sizes: self.sizes(),
        })
    }
}

/// Two chunk sizes, in KiB.
const CHUNKS: [u64; 2] = [16, 64];

/// Those with any of these texts in their names; all of them where none is given.
pub(super) fn with(texts: &[String]) -> Result<Vec<Case>, Failure> {
    let mut rows = rows();
    let wanted = |label: &str| texts.iter().any(|text| label.contains(text.as_str()));
    rows.retain(|row| texts.is_empty() || wanted(&row.label()));
    rows.iter().map(Row::case).collect()
}

fn rows() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    plain(&mut rows);
    redundant(&mut rows);
    formats(&mut rows);
    nested(&mut rows);
    rows
}

fn row(layout: &str, members: u64, chunk: u64) -> Row<'_> {
    Row {
        layout,
        members,
        chunk,
        metadata: "1.2",
        unequal: false,
    }
}

fn plain(rows: &mut Vec<Row<'_>>) {
    for members in 2..=6 {
        for unequal in [false, true] {
            rows.push(Row {
                unequal,
                ..row("linear", members, 0)
            });
            for chunk in CHUNKS {
                rows.push(Row {
                    unequal,
                    ..row("raid0", members, chunk)
                });
            }
        }
        // Older kernels' order of unequal members.
        rows.push(Row {
            unequal: true,
            ..row("raid0-original", members, CHUNKS[1])
        });
        rows.push(row("raid1", members, 0));
    }
}

fn redundant(rows: &mut Vec<Row<'_>>) {
    let raid5 = ["la", "ra", "ls", "rs", "parity-first", "parity-last"];
    let raid5 = raid5.map(|rotation| (2, format!("raid5-{rotation}")));
    let raid6 = [
        "la",
        "ra",
        "ls",
        "rs",
        "parity-first",
        "parity-last",
        "ddf-zero-restart",
        "ddf-N-restart",
        "ddf-N-continue",
        "la-6",
        "ra-6",
        "ls-6",
        "rs-6",
        "parity-first-6",
    ];
    let raid6 = raid6.map(|rotation| (4, format!("raid6-{rotation}")));
    let raid10 = [
        (2, "n2"),
        (3, "n3"),
        (2, "f2"),
        (3, "f3"),
        (2, "o2"),
        (3, "o3"),
    ];
    let raid10 = raid10.map(|(least, copies)| (least, format!("raid10-{copies}")));
    let all = [(2, "raid4".to_owned())]
        .into_iter()
        .chain(raid5)
        .chain(raid6)
        .chain(raid10);
    for (least, layout) in all {
        // A few dozen names, for as long as the program runs.
        let layout: &'static str = layout.leak();
        for members in least..=6 {
            rows.extend(CHUNKS.map(|chunk| row(layout, members, chunk)));
        }
    }
}

fn formats(rows: &mut Vec<Row<'_>>) {
    for metadata in ["0.90", "1.0", "1.1"] {
        for (layout, members, chunk) in [
            ("linear", 3, 0),
            ("raid0", 3, 64),
            ("raid1", 2, 0),
            ("raid4", 4, 64),
            ("raid5-ls", 4, 64),
            ("raid6-ls", 5, 64),
            ("raid10-n2", 3, 64),
            ("raid10-f2", 4, 64),
        ] {
            // mdadm makes none: the old format has no place for the order of chunks.
            if (layout, metadata) == ("raid0", "0.90") {
                continue;
            }
            rows.push(Row {
                metadata,
                ..row(layout, members, chunk)
            });
        }
    }
    let imsm = [
        ("raid0", 2),
        ("raid0", 3),
        ("raid1", 2),
        ("raid5-la", 3),
        ("raid5-la", 4),
        ("raid10", 4),
    ];
    let ddf = [
        ("raid0", 2),
        ("raid0", 3),
        ("raid1", 2),
        ("raid5-la", 3),
        ("raid5-ls", 4),
        ("raid6-ddf-N-continue", 4),
        ("raid6-ddf-N-continue", 5),
        ("raid10", 4),
    ];
    let of = |metadata: &'static str| move |(layout, members)| (metadata, layout, members);
    // As much of each disk is used, whatever it has more.
    for metadata in ["imsm", "ddf"] {
        rows.extend([2, 3, 4].map(|members| Row {
            metadata,
            unequal: true,
            ..row("raid0", members, 64)
        }));
    }
    for (metadata, layout, members) in imsm.map(of("imsm")).into_iter().chain(ddf.map(of("ddf"))) {
        let chunks: &[u64] = match layout {
            "raid1" => &[0],
            _ => &[64, 128],
        };
        rows.extend(chunks.iter().map(|chunk| Row {
            metadata,
            ..row(layout, members, *chunk)
        }));
    }
}

/// With their superblocks at the end, so that the outer array's data begins where the inner one's does.
fn nested(rows: &mut Vec<Row<'_>>) {
    for (layout, members) in [
        ("raid0+1 2x2", 4),
        ("raid0+1 2x3", 6),
        ("raid1+0 2x2", 4),
        ("raid1+0 3x2", 6),
        ("raid5+0 2x3", 6),
        ("raid5-la+0 2x3", 6),
    ] {
        rows.extend(CHUNKS.map(|chunk| Row {
            metadata: "1.0",
            ..row(layout, members, chunk)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_there_at_every_number_of_members() {
        let all = with(&[]).unwrap_or_else(|failure| panic!("{}", failure.message));
        let mut labels: Vec<&str> = all.iter().map(|case| case.label.as_str()).collect();
        for level in ["linear", "raid0", "raid1", "raid4", "raid5-rs", "raid10-o2"] {
            for members in 2..=6 {
                let name = format!("{level} on {members} ");
                assert!(
                    labels.iter().any(|label| label.starts_with(&name)),
                    "{name}"
                );
            }
        }
        let count = labels.len();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), count, "no name twice");
        assert!(count > 200);
        for case in &all {
            assert_eq!(
                case.sizes.len(),
                case.setup.array.members.len(),
                "{}",
                case.label
            );
        }
    }
}
