//! Resync and rebuild: what is told of them, and why they take so long.
use super::experiments::request;
use super::synthetic;
use crate::record::{Figure, PhaseRecord, TrialRecord, Unit};
use crate::report::analysis::Judging;
use crate::report::blocks::rebuild::{GivesWay, SyncFloor, rebuilds, why_so_long};
use crate::report::experiment::{Joined, judging_of};
use crate::report::group::group;
use raidlab_core::units::MIB;
use std::collections::BTreeMap;

fn judging() -> Judging {
    judging_of(&request(Vec::new())).unwrap()
}

/// md counts a resync of raid10 otherwise than one of the other levels, and that is told.
#[test]
fn a_resync_of_raid10_is_told_to_be_counted_by_the_array() {
    let told = |level: &str, more: &[(&str, &str)], known: Option<&'static str>| {
        let factors: Vec<_> = [("level", level), ("engine", "md")]
            .iter()
            .chain(more)
            .copied()
            .collect();
        let mut trial = synthetic::trial("cell", &factors, "random", 0);
        trial.phases.push(PhaseRecord {
            bytes: Some(1 << 40),
            ..PhaseRecord::bare("rebuild", Some(2e8), Unit::BytesPerSecond)
        });
        let trials = [trial];
        let mut groups = group(&trials);
        groups[0].state = known;
        let table = rebuilds(&groups, &judging()).unwrap();
        table
            .footnotes
            .iter()
            .any(|note| note.contains("in sectors of the array"))
    };
    let state = |state: &'static str| [("state", state)];
    assert!(told("raid10", &state("resyncing"), None));
    // A state that all cells have is no factor.
    assert!(told("raid10", &[], Some("resyncing")));
    assert!(told(
        "raid10",
        &[("layout", "raid10-f2")],
        Some("resyncing")
    ));
    assert!(!told("raid10", &[], Some("rebuilding 1")));
    assert!(!told("raid10", &[], None));
    // Mirrors below stripes are arrays of their own.
    assert!(!told(
        "raid10",
        &[("layout", "raid10 2x2")],
        Some("resyncing")
    ));
    assert!(!told("raid10", &state("rebuilding 1"), None));
    assert!(!told("raid5", &state("resyncing"), None));
}

/// Trials of a rebuild at so many MiB/s by itself and beside the load, one a run.
fn rebuilding(label: &str, runs: &[(f64, f64)]) -> Vec<TrialRecord> {
    let of_run = |(round, (alone, loaded)): (usize, &(f64, f64))| {
        let factors = [
            ("level", label),
            ("engine", "md"),
            ("state", "rebuilding 1"),
        ];
        let mut trial = synthetic::trial(label, &factors, "random", round as u32);
        let figure = |name: &str, value: f64, unit: Unit| Figure {
            name: name.to_owned(),
            value,
            unit,
        };
        trial.phases.push(PhaseRecord {
            bytes: Some(1 << 40),
            figures: vec![
                figure("rebuild-time", f64::from(1 << 20) / alone, Unit::Seconds),
                figure(
                    "rebuild-rate-loaded",
                    loaded * MIB as f64,
                    Unit::BytesPerSecond,
                ),
            ],
            ..PhaseRecord::bare("rebuild", Some(alone * MIB as f64), Unit::BytesPerSecond)
        });
        trial
    };
    runs.iter().enumerate().map(of_run).collect()
}

/// A resync of a real array is not carried out again by itself: what it did beside the load is told all the same.
#[test]
fn a_resync_without_a_time_by_itself_has_its_rate_beside_the_load() {
    let mut trials = rebuilding("raid10", &[(100.0, 20.0)]);
    trials[0].phases.retain(|phase| phase.phase == "rebuild");
    let record = &mut trials[0].phases[0];
    (record.rate, record.bytes) = (None, None);
    record
        .figures
        .retain(|figure| figure.name != "rebuild-time");
    let table = rebuilds(&group(&trials), &judging()).unwrap();
    assert_eq!(table.rows.len(), 1);
    let notes = table.footnotes.join(" ");
    assert!(notes.contains("a resync is not"), "{notes}");
    let told = format!("{:?}", table.rows[0]);
    assert!(told.contains("20.0"), "{told}");
}

/// Why it takes so long, of arrays with a floor of 100 MiB/s, on a kernel since 4.1.
fn why(cells: &[(&str, f64)]) -> Vec<String> {
    why_of(cells, |_| GivesWay::Drains)
}

fn why_of(cells: &[(&str, f64)], way: impl Fn(&str) -> GivesWay) -> Vec<String> {
    let of = |(label, loaded): &(&str, f64)| rebuilding(label, &[(1000.0, *loaded)]);
    let trials: Vec<TrialRecord> = cells.iter().flat_map(of).collect();
    let least = cells.iter().map(|(label, _)| {
        let (least, way) = (100 * MIB, way(label));
        ((*label).to_owned(), SyncFloor { least, way })
    });
    let none = BTreeMap::new();
    why_so_long(&group(&trials), &least.collect(), &none, &judging())
}

/// A controller has no least speed but a share of the time, and one that gives all of it has no more to give.
#[test]
fn the_rate_of_a_controller_is_said_to_hold_back_what_it_holds_back() {
    let why = |cells: &[(&str, f64, u32)]| {
        let of = |(label, loaded, _): &(&str, f64, u32)| rebuilding(label, &[(1000.0, *loaded)]);
        let trials: Vec<TrialRecord> = cells.iter().flat_map(of).collect();
        let rates = cells
            .iter()
            .map(|(label, _, rate)| ((*label).to_owned(), *rate));
        why_so_long(
            &group(&trials),
            &BTreeMap::new(),
            &rates.collect(),
            &judging(),
        )
    };
    let [told] = &why(&[
        ("raid1", 104.0, 30),
        ("raid5", 180.0, 10),
        ("raid6", 400.0, 20),
    ])[..] else {
        panic!("one paragraph");
    };
    assert!(told.contains("here 10 % or 30 % of the time"), "{told}");
    assert!(told.contains("raid1; raid5 take so long"), "{told}");
    assert!(told.contains("rebuild-rate in [array]"), "{told}");
    assert_eq!(why(&[("raid1", 104.0, 100)]), Vec::<String>::new());
}

/// Where members are too busy for the floor that md keeps free, a higher one changes nothing.
#[test]
fn md_is_said_to_hold_back_what_it_holds_back() {
    let [held] = &why(&[("raid1", 104.0), ("raid5", 180.0)])[..] else {
        panic!("one paragraph");
    };
    assert!(
        held.starts_with("Beside the load it takes so long because md"),
        "{held}"
    );
    assert!(held.contains("here 102400 KiB/s"), "{held}");
    let [held, busy] = &why(&[("raid1", 104.0), ("raid10", 0.663), ("raid5", 900.0)])[..] else {
        panic!("two paragraphs");
    };
    assert!(
        held.starts_with("Beside the load raid1 takes so long because md"),
        "{held}"
    );
    assert!(
        busy.starts_with("Beside the load raid10 gets less than sync_speed_min"),
        "{busy}"
    );
    let [busy] = &why(&[("raid10", 0.663)])[..] else {
        panic!("one paragraph");
    };
    assert!(!busy.contains("raise it"), "{busy}");
}

/// Up to 4.0 md slept until the resync was down to its least speed; since, it waits for its own requests, since 6.16 for as many as
/// `sync_io_depth` only.
#[test]
fn the_kernel_says_how_md_gives_way() {
    let cells = [("old", 104.0), ("new", 180.0), ("newest", 180.0)];
    let way = |label: &str| match label {
        "old" => GivesWay::Sleeps,
        "new" => GivesWay::Drains,
        _ => GivesWay::Queues,
    };
    let parts = [
        &cells[..1],
        &cells[1..2],
        &cells[2..],
        &cells[..2],
        &cells[..],
    ];
    let [old, new, newest, both, all] = parts.map(|cells| {
        let told = why_of(cells, way);
        assert_eq!(told.len(), 1, "{told:?}");
        told[0].clone()
    });
    let (gets, waits) = (
        "gets sync_speed_min, here 102400 KiB/s",
        "waits until all that it has in flight has ended",
    );
    assert!(old.contains(gets) && !old.contains(waits), "{old}");
    assert!(new.contains(waits) && !new.contains(gets), "{new}");
    let (before, since) = both.split_once("; from Linux 4.1 on, ").expect("both ways");
    assert!(
        before.contains("before Linux 4.1, while") && before.contains(gets),
        "{both}"
    );
    assert!(since.contains(waits), "{both}");
    let queues = "each time that it has sync_io_depth requests in flight (32)";
    assert!(
        newest.contains(queues) && !newest.contains(waits),
        "{newest}"
    );
    assert!(
        all.contains(waits) && all.contains("; from Linux 6.16 on, above"),
        "{all}"
    );
}

/// A rebuild of raid1 on a kernel before 4.1 goes at 28 MiB/s beside two seconds of random reads, at 4 beside twenty and at 1.6 beside a minute of
/// them: md does not give way at once.
#[test]
fn a_load_shorter_than_md_looks_back_is_told() {
    let told = |seconds: u64, engine: &str| {
        let mut trials = rebuilding("raid1", &[(100.0, 10.0)]);
        trials[0]
            .cell
            .factors
            .insert("engine".to_owned(), engine.to_owned());
        trials[0].phases.insert(
            0,
            PhaseRecord {
                elapsed_ns: Some(seconds * 1_000_000_000),
                ..PhaseRecord::bare("read", Some(1e6), Unit::BytesPerSecond)
            },
        );
        let table = rebuilds(&group(&trials), &judging()).unwrap();
        let notes = table.footnotes.iter();
        notes
            .filter(|note| note.contains("less than half a minute"))
            .count()
    };
    assert_eq!(
        [
            told(2, "md"),
            told(29, "md"),
            told(30, "md"),
            told(2, "zfs")
        ],
        [1, 1, 0, 0]
    );
}

/// Other tables have the mean for the same runs.
#[test]
fn a_rebuild_is_joined_as_other_figures_are() {
    let trials = rebuilding("raid5", &[(100.0, 1.0), (110.0, 2.0), (180.0, 6.0)]);
    let row = |joined: Joined| {
        let judging = Judging {
            joined: Some(joined),
            ..judging()
        };
        let table = rebuilds(&group(&trials), &judging).unwrap();
        let row: Vec<String> = table.rows[0].iter().map(|c| c.value.text()).collect();
        (table.caption, row)
    };
    let (caption, mean) = row(Joined::Mean);
    assert!(caption.ends_with("; mean of the runs"), "{caption}");
    assert_eq!((&mean[3][..], &mean[5][..]), ("130.0", "3.00"), "{mean:?}");
    let (caption, median) = row(Joined::Median);
    assert!(caption.ends_with("; median of the runs"), "{caption}");
    assert_eq!(
        (&median[3][..], &median[5][..]),
        ("110.0", "2.00"),
        "{median:?}"
    );
}
