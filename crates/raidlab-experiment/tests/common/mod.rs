//! What the program would know: a catalogue and the published studies.
#![allow(dead_code, reason = "each test uses its part")]
use raidlab_core::units::Bytes;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::{Known, KnownDisk, KnownStudy};
use std::path::{Path, PathBuf};

pub(crate) const STUDIES: [(&str, &str); 5] = [
    (
        "pata-raid0",
        include_str!("../../../../reference/pata-raid0.toml"),
    ),
    (
        "pata-blocksize",
        include_str!("../../../../reference/pata-blocksize.toml"),
    ),
    (
        "scsi-hdbench",
        include_str!("../../../../reference/scsi-hdbench.toml"),
    ),
    (
        "sata-md-levels",
        include_str!("../../../../reference/sata-md-levels.toml"),
    ),
    (
        "zfs-ashift",
        include_str!("../../../../reference/zfs-ashift.toml"),
    ),
];

/// The names of a study's rows, in the order of its file.
pub(crate) fn rows(text: &str) -> Vec<&str> {
    let mut in_row = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        in_row = line == "[[row]]" || in_row && !line.starts_with('[');
        if let Some(name) = line.strip_prefix("name = ").filter(|_| in_row) {
            rows.push(name.trim_matches('"'));
        }
    }
    rows
}

pub(crate) fn known() -> Known<'static> {
    let disk = |name, gigabytes: u64, link| KnownDisk {
        name,
        capacity: Some(Bytes(gigabytes * 1_000_000_000)),
        link: Some(link),
    };
    Known {
        disks: vec![
            disk("ST340015A", 40, Link::Pata),
            disk("ST3250624AS", 250, Link::Sata),
            disk("ST3160812AS", 160, Link::Sata),
            disk("ST3000DM001", 3000, Link::Sata),
            disk("u160-10k-2002", 36, Link::Scsi),
            disk("KW036", 36, Link::Scsi),
            disk("ST336706LW", 36, Link::Scsi),
            disk("ST336752LW", 36, Link::Scsi),
            disk("nearline-24tb", 24_000, Link::Sata),
            disk("nvme-ssd", 1000, Link::Nvme),
        ],
        controllers: vec!["ITE8212", "PERC3/Di"],
        studies: STUDIES
            .iter()
            .map(|(id, text)| KnownStudy {
                id,
                rows: rows(text),
            })
            .collect(),
        ..Known::default()
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
