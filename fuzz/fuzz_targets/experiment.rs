//! The experiment language: what is refused is told, what is sound is stored and expanded.
#![no_main]
use raidlab_core::units::Bytes;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::{Known, KnownDisk, KnownStudy, exercise};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let disk = |name, gigabytes: u64, link| KnownDisk {
        name,
        capacity: Some(Bytes(gigabytes * 1_000_000_000)),
        link: Some(link),
    };
    let known = Known {
        disks: vec![
            disk("ST340015A", 40, Link::Pata),
            disk("u160-10k-2002", 36, Link::Scsi),
            disk("nearline-24tb", 24_000, Link::Sata),
            disk("nvme-ssd", 1000, Link::Nvme),
        ],
        controllers: vec!["ITE8212", "PERC3/Di"],
        studies: vec![KnownStudy {
            id: "pata-raid0",
            rows: vec!["md raid0 1 disk"],
        }],
        ..Known::default()
    };
    exercise(text, &known);
});
