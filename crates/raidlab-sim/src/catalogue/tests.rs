mod absurd;

use super::*;
use crate::disk::{Disk, Request};
use proptest::prelude::*;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;

fn text_of(name: &str) -> &'static str {
    MODELS.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn every_model_of_the_catalogue_can_be_made() {
    for (name, text) in MODELS {
        let model = parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(model.disk.name(), *name);
        assert!(!model.facts.is_empty());
        assert_eq!(find(&name.to_lowercase()).unwrap().disk.name(), *name);
    }
}

fn wrong(name: &str, changes: &[(&str, &str)]) -> String {
    let mut text = MODELS
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
        .to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the file");
        text = text.replacen(from, to, 1);
    }
    parse("disk.toml", &text).unwrap_err().to_string()
}

#[test]
fn all_that_is_wrong_with_a_datasheet_is_said_at_once() {
    let message = wrong(
        "ST3250624AS",
        &[
            ("value = 7200", "value = -7200"),
            ("value = 488397168", "value = \"250 GB\""),
            ("value = 11, source = \"S: review\"", "value = 11"),
            ("source = \"K-low: datasheet\"", "source = \"somewhere\""),
            ("kind = { value = \"SATA\"", "kind = { value = \"SATAN\""),
            ("[queue]", "[queue]\ndeepness = 3"),
        ],
    );
    insta::assert_snapshot!(message, @r#"
    disk.toml:6:8: 'interface.kind' is 'SATAN': write PATA or SATA or SCSI or SAS
    disk.toml:10:17: 'geometry.rpm' is -7200: write a number that is neither negative nor beyond all bounds
    disk.toml:12:21: 'geometry.sectors' is a value of type string, but a number is needed
    disk.toml:21:14: 'seek.average_ms' has no source: write { value = ..., source = "S: ..." }, or a source for its whole table
    disk.toml:22:11: the source of 'seek.full_ms' is 'somewhere': begin it with M:, S:, K:, K-low:, D:, fitted: or assumed:
    disk.toml:36:1: 'queue.deepness' is not known here: known are depth, max_age_ms, window
    "#);
}

/// What a file may say is written down: every key that any form of a model file has.
#[test]
fn the_keys_of_model_files_are_described() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
    let described = std::fs::read_to_string(path).unwrap();
    let extracted = text_of("HP-C3323A")
        .lines()
        .filter(|line| !line.starts_with("long") && !line.starts_with("knee"));
    let extracted: Vec<_> = extracted
        .map(|line| {
            line.replace(
                "short = [[1.107, 0.3619]]",
                "table = [[1, 1.5], [4000, 18]]",
            )
        })
        .collect();
    let dense = text_of("ST3250624AS")
        .replace("outer_mb_s", "outer_sectors_per_track")
        .replace("inner_mb_s", "inner_sectors_per_track");
    let texts = ["ST3250624AS", "HP-C3323A", "nvme-ssd"].map(|name| text_of(name).to_owned());
    let mut keys = std::collections::BTreeSet::new();
    for text in texts.into_iter().chain([extracted.join("\n"), dense]) {
        // Of an unknown key in each table it is told which are known there.
        let lines = text.lines().map(|line| {
            if line.starts_with('[') {
                format!("{line}\nnone_such = 1")
            } else {
                line.to_owned()
            }
        });
        let text: Vec<_> = lines.collect();
        let error = parse("disk.toml", &text.join("\n"))
            .unwrap_err()
            .to_string();
        let known = error
            .lines()
            .filter_map(|line| line.split_once("known are "));
        keys.extend(
            known
                .flat_map(|(_, keys)| keys.split(", "))
                .map(str::to_owned),
        );
    }
    for key in [
        "table",
        "knee",
        "slipped",
        "outer_sectors_per_track",
        "average_write_ms",
        "suspend_us",
        "zero_latency",
    ] {
        assert!(keys.contains(key), "{key} is not among {keys:?}");
    }
    let missing: Vec<_> = keys
        .iter()
        .filter(|key| !described.contains(&format!("`{key}`")))
        .collect();
    assert!(missing.is_empty(), "not in docs/models.md: {missing:?}");
}

/// The nearest key is told, and what is missing makes nothing else unknown.
#[test]
fn a_misspelt_key_is_told_with_the_nearest() {
    let message = wrong(
        "ST3250624AS",
        &[
            ("average_ms = ", "averag_ms = "),
            ("read_hit_us", "read_hitt_us"),
        ],
    );
    insta::assert_snapshot!(message, @r"
    disk.toml:19:1: 'seek.average_ms' is missing: give the average read seek in ms
    disk.toml:21:1: 'seek.averag_ms' is not known here (did you mean 'average_ms'?): known are average_ms, average_write_ms, full_ms, track_to_track_ms
    disk.toml:31:1: 'overhead.read_hitt_us' is not known here (did you mean 'read_hit_us'?): known are read_hit_us, read_miss_us, write_us
    ");
    // A curve says all; averages beside it would be a second answer to the same question.
    let message = wrong(
        "HP-C3323A",
        &[("knee = 150", "knee = 150\naverage_write_ms = 10")],
    );
    insta::assert_snapshot!(message, @"disk.toml:21:1: 'seek.average_write_ms' is not known here: known are knee, long, short");
}

#[test]
fn what_does_not_fit_together_is_said_at_its_place() {
    let messages = [
        wrong("ST3250624AS", &[("value = 7200", "value = 72000")]),
        // One thing is wrong, not each of the tracks that follow from it.
        wrong("ST3250624AS", &[("value = 7200", "value = 0")]),
        wrong(
            "ST3250624AS",
            &[("average_ms = { value = 11", "average_ms = { value = 30")],
        ),
        wrong(
            "ST3250624AS",
            &[
                ("depth = { value = 32", "depth = { value = 3200"),
                ("segments = { value = 16", "segments = { value = 100"),
            ],
        ),
        wrong(
            "ST3000DM001",
            &[("value = 5860533168", "value = 5860533167")],
        ),
        // That this has more tracks than can be counted follows.
        wrong("nearline-24tb", &[("value = 7200", "value = 56400")]),
        wrong(
            "ST3250624AS",
            &[(
                "inner_mb_s = { value = 33.8",
                "inner_mb_s = { value = 133.8",
            )],
        ),
        wrong(
            "HP-C3323A",
            &[("cylinders = [994, 1134]", "cylinders = [990, 1134]")],
        ),
        wrong("HP-C3323A", &[("first_lba = 917192", "first_lba = 800000")]),
        wrong("HP-C3323A", &[("first_lba = 917192", "first_lba = 999999")]),
        wrong("HP-C3323A", &[("value = 2056008", "value = 2156008")]),
        wrong(
            "HP-C3323A",
            &[("long = [[4.926, 0.004636]]", "long = [[4.926, -0.004636]]")],
        ),
        wrong(
            "sata-ssd",
            &[
                ("dies = 32", "dies = 0"),
                ("spare_permille = 70", "spare_permille = 0"),
            ],
        ),
        wrong("sata-ssd", &[("kind = \"ssd\"", "kind = \"tape\"")]),
        wrong("sata-ssd", &[("[flash]", "[flash")]),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    disk.toml:10:17: 72000 rpm is not a disk's speed: between 300 and 20000 is
    disk.toml:10:17: 0 rpm is not a disk's speed: between 300 and 20000 is
    disk.toml:19:1: track-to-track 800 µs, average 30.0 ms and full stroke 22.0 ms do not lie on one rising curve: the average of a rising curve lies between about a third and two thirds of the way from the first to the last
    disk.toml:27:22: 100 cache segments are not possible: at most 64 are
    disk.toml:36:19: a queue of 3200 commands is not possible: between 1 and 256 are
    disk.toml:12:21: 5860533167 sectors are not whole physical sectors of 4096 bytes: the capacity must be a multiple of 8 sectors
    disk.toml:10:17: 56400 rpm is not a disk's speed: between 300 and 20000 is
    disk.toml:15:1: the inner tracks (133.8) must not be denser than the outer ones (67.5), which must not be 0
    disk.toml:51:13: zone 1 has the cylinders [990, 1134], but must begin at cylinder 994, where the zone before ends, and not end before it begins: zones must neither overlap nor leave gaps
    disk.toml:58:1: zone 2 begins at logical sector 800000, not after the start of the zone before at 806760: zones must not overlap
    disk.toml:67:1: zone 3 begins at logical sector 1052040, but the zones before it hold only 934992 sectors: correct first_lba or add cylinders
    disk.toml:58:1: zone 2 begins at logical sector 999999, but the zones before it hold only 917304 sectors: correct first_lba or add cylinders
    disk.toml:13:21: the zones hold 2056290 sectors, but the disk has 2156008: add cylinders or sectors per track
    disk.toml:19:17: 'seek.long' is -0.004636: write a number that is neither negative nor beyond all bounds
    disk.toml:21:8: number of dies of 0 is not possible: between 1 and 4096 is
    disk.toml:22:12: number of channels of 8 is not possible: between 1 and 1 is
    disk.toml:31:18: spare flash (thousandths) of 0 is not possible: between 10 and 2000 is
    disk.toml:2:8: 'kind' is 'tape': write hdd or ssd
    disk.toml:19:7: unclosed table, expected `]`
    ");
}

#[test]
fn an_unknown_model_names_those_there_are() {
    let near = find("ST3000DM01").unwrap_err().to_string();
    assert!(
        near.contains("'ST3000DM01' (did you mean 'ST3000DM001'?)"),
        "{near}"
    );
    insta::assert_snapshot!(find("ST9999").unwrap_err(), @"there is no disk model 'ST9999': write the path of a model file, or one of ST340015A, ST3250624AS, ST3160812AS, ST3000DM001, u160-10k-2002, ST336706LW, ST336752LW, MAN3367MP, KW036, HP-C3323A, nearline-24tb, sata-ssd, nvme-ssd");
}

#[test]
fn what_a_file_does_not_say_is_listed_as_derived_or_assumed() {
    let model = find("ST340015A").unwrap();
    let later: Vec<String> = model
        .facts
        .iter()
        .skip_while(|fact| fact.key != "queue.depth")
        .skip(1)
        .map(|fact| {
            format!(
                "{} = {} ({}: {})",
                fact.key, fact.value, fact.mark, fact.source
            )
        })
        .collect();
    insta::assert_snapshot!(later.join("\n"), @r"
    geometry.zero_latency = false (assumed: waits for the first sector of a read)
    switch.head_ms = 2.4 (assumed: as long as to the next cylinder: the head has to find its track again)
    switch.write_settle_ms = 1 (D: average write minus average read seek)
    switch.track_skew_ms = 3.400 (D: the switch and the settling of a write, so that no turn is lost)
    switch.cylinder_skew_ms = 3.400 (D: the switch and the settling of a write, so that no turn is lost)
    cache.restart = eager (assumed: reads on as soon as there is room)
    cache.least_ahead_kib = 0 (assumed: writes at once what may be written)
    cache.write_runs = 128 (assumed: separate runs kept track of)
    cache.rounds = 4 (assumed: a run goes first when the buffer was written so often since it came)
    cache.high_percent = 80 (assumed: destaging takes turns with reads)
    cache.low_percent = 50 (assumed: destaging waits for idle time again)
    cache.quiet_ms = 20 (assumed: idle time after the last read before destaging)
    geometry.zones = 16 (assumed: a round number)
    geometry.sectors_per_track = 1318 1274 1230 1186 1143 1099 1055 1011 967 923 880 836 792 748 704 660 (D: rates, turns and skews; a straight line inwards)
    geometry.cylinders = 79040 (D: capacity, heads and sectors per track)
    ");
}

/// Of a solid-state disk, too: all that a prediction rests on is shown.
#[test]
fn what_a_solid_state_disk_does_not_say_is_listed_as_assumed() {
    let text = text_of("sata-ssd");
    let optional = [
        "physical_sector",
        "turn_write_us",
        "filled_percent",
        "fast_mib",
        "program_fast_us",
        "protected",
        "flush_us",
    ];
    let lines = text.lines().filter(|line| {
        let key = line.split(" =").next().unwrap_or_default();
        !optional.contains(&key)
    });
    let lines: Vec<&str> = lines.take_while(|line| *line != "[read_ahead]").collect();
    let model = parse("disk.toml", &lines.join("\n")).unwrap();
    let assumed: Vec<String> = model
        .facts
        .iter()
        .filter(|fact| {
            optional.iter().any(|key| fact.key.ends_with(key)) || fact.key.starts_with("read_ahead")
        })
        .map(|fact| {
            format!(
                "{} = {} ({}: {})",
                fact.key, fact.value, fact.mark, fact.source
            )
        })
        .collect();
    insta::assert_snapshot!(assumed.join("\n"), @r"
    drive.turn_write_us = 10 (assumed: as behind a read)
    flash.fast_mib = 0 (assumed: no fast area)
    read_ahead.size_kib = 0 (assumed: it does not read ahead)
    buffer.protected = false (assumed: a flush waits for the flash)
    buffer.flush_us = 900 (assumed: the map of pages is written, as of the catalogue's drives)
    drive.physical_sector = 512 (assumed: 512 bytes, no emulation)
    drive.filled_percent = 0 (assumed: nothing was written before)
    ");
}

/// Zones of a file have skews of their own; others would be shown beside them, and say nothing.
#[test]
fn skews_that_are_not_used_are_not_shown() {
    let model = find("HP-C3323A").unwrap();
    let shown = |key: &str| model.facts.iter().any(|fact| fact.key.contains(key));
    assert!(shown("switch.head_ms"));
    assert!(!shown("skew_ms"), "{:?}", model.facts);
    let all = MODELS.iter().find(|(name, _)| *name == "HP-C3323A");
    let text = all.unwrap().1.replacen(
        "[switch]",
        "[switch]\ntrack_skew_ms = { value = 1, source = 'M: x' }",
        1,
    );
    insta::assert_snapshot!(parse("disk.toml", &text).unwrap_err().to_string(), @"disk.toml:23:27: 'switch.track_skew_ms' is for zones that are derived, and the file gives its own: write 'track_skew', in sectors, in each [[zone]] instead");
}

#[test]
fn a_seek_table_is_followed_and_checked() {
    let table = |points: &str| {
        let text = MODELS
            .iter()
            .find(|(name, _)| *name == "HP-C3323A")
            .unwrap()
            .1;
        let text = text.replacen("short = [[1.107, 0.3619]]", &format!("table = {points}"), 1);
        let text = text.replacen("long = [[4.926, 0.004636]]\nknee = 150\n", "", 1);
        parse("disk.toml", &text)
    };
    let DiskModel::Hdd(model) = table("[[1, 1.5], [11, 2.5], [2981, 18.0]]").unwrap().disk else {
        unreachable!()
    };
    assert_eq!(
        [0, 1, 6, 11, 2981].map(|d| model.seek.nanos(d)),
        [0, 1_500_000, 2_000_000, 2_500_000, 18_000_000]
    );
    let messages = [
        "[]",
        "[[2, 1.0]]",
        "[[1, 1.5], [10, 1.2], [2981, 18.0]]",
        "[[1, 1.5], [100, 3.0]]",
        "[[1, 1.5, 2]]",
    ]
    .map(|points| table(points).unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"), @r"
    disk.toml:16:1: the seek table is empty: give at least the times to the next cylinder and over all of them
    disk.toml:16:1: the seek table begins at 2 cylinders: its first point must be 1 cylinder, as [1, ms]
    disk.toml:16:1: a seek of 10 cylinders takes 1.20 ms, less than a shorter one: seek times must not fall with the distance
    disk.toml:16:1: the seek table ends at 100 cylinders, but seeks go up to 2981: add the full stroke
    disk.toml:18:10: 'seek.table' is a value of type array, but a pair such as [1, 0.8] is needed
    ");
}

/// The file with its `n`-th number replaced.
fn with_number(text: &str, n: usize, number: &str) -> String {
    let mut places: Vec<(usize, usize)> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && matches!(bytes[at - 1], b' ' | b'[' | b',');
        let end = (at..bytes.len())
            .find(|&i| !matches!(bytes[i], b'0'..=b'9' | b'.'))
            .unwrap_or(bytes.len());
        if begins {
            places.push((at, end));
        }
        at = end.max(at + 1);
    }
    let (from, to) = places[n % places.len()];
    format!("{}{number}{}", &text[..from], &text[to..])
}

const ODD: [&str; 12] = [
    "0",
    "1",
    "2",
    "-1",
    "0.001",
    "7",
    "63",
    "65535",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "1e300",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn odd_numbers_are_refused_or_make_a_disk_that_answers(
        model in 0..MODELS.len(), n in 0_usize..200, odd in 0..ODD.len(), m in 0_usize..200, second in 0..ODD.len(),
    ) {
        let text = with_number(&with_number(MODELS[model].1, n, ODD[odd]), m, ODD[second]);
        match parse("odd.toml", &text) {
            Err(error) => prop_assert!(!error.problems.is_empty()),
            Ok(model) => {
                let mut disk = Disk::new(&model.disk, 1);
                let last = model.disk.sectors() - 1;
                let mut done = Vec::new();
                for (id, kind, lba) in [
                    (0, BlockKind::Read, last), (1, BlockKind::Write, 0), (2, BlockKind::Read, last / 2),
                    (3, BlockKind::Write, last), (4, BlockKind::Flush, 0),
                ] {
                    disk.submit(Instant(id), Request { id, kind, lba: Lba(lba), sectors: 1, fua: false });
                }
                for _ in 0..100 {
                    let Some(next) = disk.next_event() else { break };
                    disk.advance(next, &mut done);
                }
                prop_assert_eq!(done.len(), 5);
            }
        }
    }
}
