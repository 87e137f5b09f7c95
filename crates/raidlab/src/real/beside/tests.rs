use super::*;
use raidlab_results::record::{Figure, PhaseRecord, Place, Provenance, Status};
use raidlab_results::reference::study;

fn trial(label: &str, round: u32, rates: &[(&str, f64)]) -> TrialRecord {
    let cell = raidlab_results::record::Cell {
        label: label.to_owned(),
        factors: Default::default(),
    };
    let phase =
        |(name, rate): &(&str, f64)| PhaseRecord::bare(name, Some(*rate), Unit::BytesPerSecond);
    TrialRecord {
        id: format!("{label}{round}"),
        session: String::new(),
        order: round,
        round,
        cell,
        cell_digest: None,
        profile: "dd".to_owned(),
        settings: Default::default(),
        provenance: Provenance::Measured { place: Place::Vm },
        started: None,
        elapsed_ns: None,
        seed: None,
        digest: None,
        environment: None,
        command: None,
        phases: rates.iter().map(phase).collect(),
        checks: Vec::new(),
        status: Status::Complete,
        flags: Vec::new(),
    }
}

fn cells(block: &Block) -> Vec<Vec<String>> {
    let Block::Table(table) = block else {
        panic!("a table");
    };
    let row = |row: &Vec<Cell>| row.iter().map(|cell| cell.value.text()).collect();
    table.rows.iter().map(row).collect()
}

#[test]
fn a_rebuild_under_load_is_a_figure_of_its_own() {
    let loaded = |value| {
        let mut trial = trial("raid5", 0, &[("write", 50e6), ("rebuild", 60e6)]);
        trial.phases[1].figures.push(Figure {
            name: "rebuild-rate-loaded".to_owned(),
            value,
            unit: Unit::BytesPerSecond,
        });
        trial
    };
    let pairs = pairs(&[loaded(10e6)], &[loaded(12e6)], None);
    let names: Vec<&str> = pairs.iter().map(|pair| pair.phase.as_str()).collect();
    assert_eq!(names, ["write", "rebuild", LOADED]);
    assert_eq!((pairs[2].measured[0], pairs[2].predicted[0]), (10e6, 12e6));
}

/// A tenth of a megabyte a second is a tenth of what a disk reads at random.
#[test]
fn small_figures_have_more_digits() {
    let of = |rate| trial("single", 0, &[("read", rate)]);
    let blocks = blocks(&[of(1.246e6)], &[of(1.258e6)], None);
    let row = &cells(&blocks[0])[0];
    assert_eq!(
        [&row[3], &row[4], &row[7], &row[9]],
        ["1.25", "1.25", "1.26", "+1.0"]
    );
}

#[test]
fn each_figure_has_both_means_and_the_error() {
    let mut doubtful = trial("raid0", 2, &[("read", 1e9)]);
    doubtful.phases[0].flags = vec![Flag::new(FlagKind::ServedFromCache, "memory answered")];
    let measured = [
        trial("raid0", 0, &[("read", 100e6), ("write", 50e6)]),
        trial("raid0", 1, &[("read", 120e6), ("write", 50e6)]),
        doubtful,
    ];
    let predicted = [
        trial("raid0", 0, &[("read", 121e6), ("rebuild", 1.0)]),
        trial("raid1", 0, &[("read", 1.0)]),
    ];
    let blocks = blocks(&measured, &predicted, None);
    let rows = cells(&blocks[0]);
    assert_eq!(
        rows[0],
        [
            "raid0", "read", "MB/s", "110.0", "100.0", "120.0", "2", "121.0", "1", "+10.0"
        ]
    );
    assert_eq!(rows[1][7], rows[1][9], "nothing was predicted");
    assert_eq!(rows.len(), 2);
    let doubts = format!("{:?}", blocks.last());
    assert!(
        doubts.contains("raid0, read, round 3: served-from-cache: memory answered"),
        "{doubts}"
    );
    assert!(super::blocks(&[], &predicted, None).is_empty());
}

#[test]
fn a_study_has_what_was_published_and_its_findings_on_both() {
    let study = study("pata-raid0")
        .expect("it is read")
        .expect("it is there");
    let names = ["md raid0 1 disk", "md raid0 2 disks, 2 channels"];
    let rows = names.map(|name| (name.to_owned(), format!("cell {name}")));
    let published = Published {
        study,
        rows: rows.into_iter().collect(),
        second: BTreeMap::new(),
    };
    let one = |rate| trial("cell md raid0 1 disk", 0, &[("block-write", rate)]);
    let two = |rate| {
        trial(
            "cell md raid0 2 disks, 2 channels",
            0,
            &[("block-write", rate)],
        )
    };
    let mut late = one(1e3);
    late.phases[0].flags = vec![Flag::new(FlagKind::Late, "a busy machine")];
    let mut cached = two(80e6);
    cached.phases[0].flags = vec![Flag::new(
        FlagKind::ServedFromCache,
        "as the tool prints it",
    )];
    let measured = [one(40e6), late, cached];
    let predicted = [one(38e6), two(60e6)];
    let blocks = blocks(&measured, &predicted, Some(&published));
    let told = cells(&blocks[0]);
    // 37720 KiB/s were published of one disk, 75696 of two.
    assert_eq!(
        told[0][3..],
        [
            "40.0", "40.0", "40.0", "1", "38.0", "1", "-5.0", "38.6", "+3.6", "-1.6"
        ]
    );
    assert_eq!(
        told[1][3..],
        [
            "80.0", "80.0", "80.0", "1", "60.0", "1", "-25.0", "77.5", "+3.2", "-22.6"
        ]
    );
    let findings = cells(blocks.last().expect("findings"));
    let first = &findings[0];
    assert_eq!(first[1], "two disks on two channels write 2.0x one");
    assert_eq!(
        (first[3].as_str(), first[5].as_str()),
        ("holds", "does not hold")
    );
    assert!(first[4].ends_with("= 1.58"), "{first:?}");
}
