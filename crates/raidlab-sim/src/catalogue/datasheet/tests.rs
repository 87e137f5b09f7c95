use super::*;
use crate::catalogue::{Mark, parse};
use insta::assert_snapshot;

fn interface(of: &[Interface], name: &str) -> Interface {
    *of.iter().find(|interface| interface.name == name).unwrap()
}

fn hdd() -> HddSheet {
    HddSheet {
        name: "my \"8\" TB".to_owned(),
        capacity: Bytes(8 * TB),
        rpm: 5640.0,
        outer_rate: 215e6,
        inner_rate: None,
        seek_average: None,
        seek_average_write: None,
        seek_track: None,
        seek_full: None,
        cache: Some(Bytes(256 << 20)),
        interface: interface(HDD_INTERFACES, "sata-6"),
        heads: None,
        sector_physical: None,
        queue: None,
        read_iops: None,
        read_iops_depth: None,
    }
}

fn ssd() -> SsdSheet {
    SsdSheet {
        name: "nvme".to_owned(),
        capacity: Bytes(4 * TB),
        read_rate: 7000e6,
        write_rate: 6500e6,
        sustained_write: Some(1500e6),
        read_iops: 1e6,
        write_iops: None,
        sustained_write_iops: None,
        cache: None,
        interface: interface(SSD_INTERFACES, "pcie-4x4"),
        protected: false,
        sector_physical: None,
        queue: None,
    }
}

fn wrong(problems: Result<String, Vec<SheetProblem>>) -> String {
    let lines: Vec<_> = problems
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.join("\n")
}

#[test]
fn a_hard_disks_file() {
    let text = hdd().file().unwrap();
    assert_snapshot!(text);
    let model = parse("made", &text).unwrap();
    // 8 TB drives have these sectors, whoever makes them.
    assert_eq!(model.disk.sectors(), 15_628_053_168);
    assert_eq!(model.disk.name(), "my \"8\" TB");
}

#[test]
fn a_solid_state_disks_file() {
    let text = ssd().file().unwrap();
    assert_snapshot!(text);
    parse("made", &text).unwrap();
}

/// What was not on the sheet is never marked as if it had been.
#[test]
fn what_was_not_given_is_assumed_or_derived() {
    let facts = parse("made", &hdd().file().unwrap()).unwrap().facts;
    let mark = |key: &str| facts.iter().find(|fact| fact.key == key).unwrap().mark;
    for key in [
        "seek.average_ms",
        "seek.full_ms",
        "rate.inner_mb_s",
        "geometry.heads",
        "queue.depth",
    ] {
        assert_eq!(mark(key), Mark::Assumed, "{key}");
    }
    let told = HddSheet {
        seek_average: Some(9.0),
        heads: Some(8),
        ..hdd()
    };
    let facts = parse("made", &told.file().unwrap()).unwrap().facts;
    for (key, value) in [("seek.average_ms", "9"), ("geometry.heads", "8")] {
        let fact = facts.iter().find(|fact| fact.key == key).unwrap();
        assert_eq!((fact.mark, fact.value.as_str()), (Mark::Known, value));
    }
}

#[test]
fn capacities_are_counted_as_makers_count_them() {
    let of = |bytes| sectors(Bytes(bytes)).0;
    assert_eq!(of(250 * GB), 488_397_168);
    assert_eq!(of(960 * GB), 1_875_385_008);
    assert_eq!(of(2 * TB), 3_907_029_168);
    assert_eq!(of(24 * TB), 46_875_541_504);
    // Told to the byte.
    assert_eq!(of(40_020_664_320), 78_165_360);
}

#[test]
fn nonsense_is_told_all_at_once() {
    let mut all = Vec::new();
    let sheet = HddSheet {
        capacity: Bytes(3 * 512),
        rpm: -5.0,
        outer_rate: 700e6,
        inner_rate: Some(800e6),
        seek_track: Some(0.0),
        heads: Some(0),
        sector_physical: Some(1024),
        ..hdd()
    };
    all.push(wrong(sheet.file()));
    all.push(wrong(
        HddSheet {
            rpm: f64::NAN,
            ..hdd()
        }
        .file(),
    ));
    all.push(wrong(
        HddSheet {
            outer_rate: 215.0,
            ..hdd()
        }
        .file(),
    ));
    all.push(wrong(
        HddSheet {
            outer_rate: 30e6,
            capacity: Bytes(24 * TB),
            ..hdd()
        }
        .file(),
    ));
    all.push(wrong(
        HddSheet {
            capacity: Bytes(8 * GB),
            ..hdd()
        }
        .file(),
    ));
    all.push(wrong(
        HddSheet {
            seek_full: Some(9.0),
            ..hdd()
        }
        .file(),
    ));
    let sheet = SsdSheet {
        capacity: Bytes(1536),
        read_rate: 8000e6,
        sustained_write: Some(7000e6),
        read_iops: 3e6,
        write_iops: Some(-1.0),
        sustained_write_iops: Some(2e6),
        queue: Some(0),
        ..ssd()
    };
    all.push(wrong(sheet.file()));
    assert_snapshot!(all.join("\n\n"));
}

/// Stated random reads say how far the arm has to go on average: the model that is made reads as many.
#[test]
fn stated_random_reads_make_the_seek() {
    let nearline = HddSheet {
        rpm: 7200.0,
        ..hdd()
    };
    for (reads, depth) in [(80.0, 1), (168.0, 16)] {
        let told = HddSheet {
            read_iops: Some(reads),
            read_iops_depth: Some(depth),
            ..nearline.clone()
        };
        let model = parse("made", &told.file().unwrap()).unwrap();
        let made = crate::disk::asked::random_reads(&model.disk, depth).unwrap();
        assert!((made / reads - 1.0).abs() < 0.01, "{made:.2} for {reads}");
        let seek = |key: &str| model.facts.iter().find(|fact| fact.key == key).unwrap();
        assert_eq!(seek("seek.average_ms").mark, Mark::Derived);
        assert_eq!(seek("seek.full_ms").mark, Mark::Assumed);
        // What was given stays as it is, and the reads that it makes are stated as well as others near them.
        let average: f64 = seek("seek.average_ms").value.parse().unwrap();
        let both = HddSheet {
            seek_average: Some(average),
            read_iops: Some(reads * 1.1),
            ..told
        };
        let facts = parse("made", &both.file().unwrap()).unwrap().facts;
        let fact = facts
            .iter()
            .find(|fact| fact.key == "seek.average_ms")
            .unwrap();
        assert_eq!(fact.mark, Mark::Known);
    }
}

/// What is told as possible is taken.
#[test]
fn the_bounds_of_random_reads_are_in_the_range() {
    for (rpm, depth) in [(5640.0, Some(4)), (7200.0, None), (7200.0, Some(16))] {
        let of = |reads| {
            let sheet = HddSheet {
                rpm,
                read_iops: Some(reads),
                read_iops_depth: depth,
                seek_average: None,
                ..hdd()
            };
            sheet.file()
        };
        let told = wrong(of(9999.0));
        let (_, range) = told.split_once("between ").expect(&told);
        let (range, _) = range.split_once(" is;").expect(&told);
        let (least, most) = range.split_once(" and ").unwrap();
        for bound in [least, most].map(|bound| bound.parse::<f64>().unwrap()) {
            of(bound).unwrap_or_else(|_| panic!("{bound} of {told}"));
        }
        for beyond in [least, most].iter().zip([-1.0, 1.0]) {
            let bound: f64 = beyond.0.parse().unwrap();
            assert!(of(bound + beyond.1).is_err(), "{told}");
        }
    }
}

#[test]
fn random_reads_that_no_disk_makes_are_told() {
    let of = |reads, depth, seek| {
        let sheet = HddSheet {
            rpm: 7200.0,
            read_iops: Some(reads),
            read_iops_depth: depth,
            seek_average: seek,
            ..hdd()
        };
        wrong(sheet.file())
    };
    let all = [
        of(168.0, None, None),
        of(5.0, Some(16), None),
        of(168.0, None, Some(8.0)),
        of(168.0, Some(33), None),
        of(f64::NAN, None, None),
        of(0.0, None, None),
    ];
    assert_snapshot!(all.join("\n"), @r"
    read-iops: 168 with 1 in flight is no disk's of 7200 rpm: between 28 and 121 is; was it with more or fewer (--read-iops-depth), of writes, or of a part of the disk?
    read-iops: 5 with 16 in flight is no disk's of 7200 rpm: between 53 and 262 is; was it with more or fewer (--read-iops-depth), of writes, or of a part of the disk?
    read-iops: at 7200 rpm and with a --seek-average of 8 ms a disk makes about 82 with 1 in flight, not 168: was it with more or fewer (--read-iops-depth), or of a part of the disk? Leave one of the two out
    read-iops-depth: 33 in flight is no disk's: between 1 and 32 is
    read-iops: NaN a second is no disk's: between 1 and 100000 is
    read-iops: 0 a second is no disk's: between 1 and 100000 is
    ");
    // The seek of writes is held against what was derived.
    let sheet = HddSheet {
        rpm: 7200.0,
        read_iops: Some(60.0),
        seek_average_write: Some(9.0),
        ..hdd()
    };
    assert_snapshot!(wrong(sheet.file()), @"seek-average-write: a write waits no less than a read (12.46 ms)");
}

#[test]
fn random_writes_have_figures_of_their_own() {
    let told = SsdSheet {
        write_iops: Some(500e3),
        sustained_write_iops: Some(100e3),
        ..ssd()
    };
    let text = told.file().unwrap();
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let without = lines(&ssd().file().unwrap());
    let own: Vec<_> = lines(&text)
        .into_iter()
        .filter(|line| !without.contains(line))
        .collect();
    assert_snapshot!(own.join("\n"));
    assert!(told.unsaid().is_empty());
    let mut all = Vec::new();
    for (burst, sustained) in [(50e3, 90e3), (1e6, 400e3), (1e6, 1000.0)] {
        all.push(wrong(
            SsdSheet {
                write_iops: Some(burst),
                sustained_write_iops: Some(sustained),
                ..ssd()
            }
            .file(),
        ));
    }
    assert_snapshot!(all.join("\n"));
}

/// Whatever passes the check is a disk that can be built.
mod drawn {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sheet_is_refused_or_a_disk(
            gb in 1_u64..40_000, rpm in 3000.0..15_500_f64, outer in 1.0..600_f64, inner in 0.2..1.0_f64,
            seek in proptest::option::of(1.0..30.0_f64), full in proptest::option::of(1.0..60.0_f64), track in proptest::option::of(0.1..5.0_f64),
            link in 0..HDD_INTERFACES.len(), cache in proptest::option::of(0_u64..2000), heads in proptest::option::of(1_u32..30),
            reads in proptest::option::weighted(0.1, 20.0..250.0_f64),
        ) {
            let sheet = HddSheet {
                capacity: Bytes(gb * GB), rpm, outer_rate: outer * 1e6, inner_rate: Some(outer * inner * 1e6),
                seek_average: seek, seek_full: full, seek_track: track, interface: HDD_INTERFACES[link],
                cache: cache.map(|mib| Bytes(mib << 20)), heads, read_iops: reads, ..hdd()
            };
            if let Ok(text) = sheet.file() {
                let model = parse("made", &text);
                prop_assert!(model.is_ok(), "{}\n{text}", model.unwrap_err());
            }
        }

        #[test]
        fn a_solid_state_sheet_is_refused_or_a_disk(
            gb in 1_u64..40_000, read in 50.0..16_000_f64, write in 10.0..16_000_f64, iops in 200.0..4e6_f64,
            sustained in proptest::option::of(0.01..1.0_f64), writes in proptest::option::of(200.0..4e6_f64),
            steady in proptest::option::of(0.01..1.0_f64), link in 0..SSD_INTERFACES.len(),
        ) {
            let sheet = SsdSheet {
                capacity: Bytes(gb * GB), read_rate: read * 1e6, write_rate: write * 1e6, read_iops: iops,
                write_iops: writes, sustained_write_iops: steady.map(|share| share * write * 1e6 / 4096.0),
                sustained_write: sustained.map(|share| share * write * 1e6), interface: SSD_INTERFACES[link], ..ssd()
            };
            if let Ok(text) = sheet.file() {
                let model = parse("made", &text);
                prop_assert!(model.is_ok(), "{}\n{text}", model.unwrap_err());
            }
        }
    }
}
