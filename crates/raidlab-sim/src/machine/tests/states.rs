//! Every layout in every state builds, and does what it is asked.
use super::super::totals::Totals;
use super::*;
use raidlab_core::flag::FlagKind;

/// Six disks of 2 GB, every layout in every state that it has; a few random operations.
fn text(state: &str, layouts: &str) -> String {
    format!(
        r#"
title = "All layouts"
disks = {{ model = "ST3250624AS", count = 6, override = {{ capacity = "2000007168B" }} }}
array.state = "{state}"

[profile]
name = "random"
time = "1s"
depth = 4
read-percent = 50

[factors]
layout = [{layouts}]
"#
    )
}

fn all(state: &str, layouts: &str) {
    all_of(&text(state, layouts), state);
}

/// The same of a controller with a cache.
fn all_of_a_controller(state: &str, layouts: &str) {
    let card = "\n[topology.controllers.card]\nkind = \"hardware-raid\"\nchannels = 6\n\n[profile]";
    let text = text(state, layouts).replace("\n[profile]", card);
    all_of(&text, state);
}

fn all_of(text: &str, state: &str) {
    let experiment = experiment(text);
    for cell in &experiment.cells {
        let mut machine = machine(&experiment, cell);
        for run in run(&mut machine) {
            let (outcome, label) = (&run.outcome, &cell.label);
            assert!(outcome.ops > 10, "{label} {state}: {}", outcome.ops);
            let sum: u128 = outcome.latencies.iter().map(|(_, l)| l.sum()).sum();
            let area = outcome.mean_in_flight * outcome.elapsed.0 as f64;
            // Little: what waited, added over all, is what was in flight, added over time.
            assert!(
                (sum as f64 / area - 1.0).abs() < 0.02,
                "{label} {state}: {sum} {area}"
            );
            assert!(!run.why.sentence.is_empty() && run.why.shares.len() > 1);
            // What else the disks do is told, and only where they do.
            let refill = match state {
                "resyncing" | "initial-sync" => Some("are the resync's"),
                _ if state.starts_with("rebuilding") => Some("are the rebuild's"),
                _ => None,
            };
            let sentence = &run.why.sentence;
            assert!(
                refill.map_or(!sentence.contains("'s"), |told| sentence.ends_with(told)),
                "{label} {state}: {sentence}"
            );
            assert!(run.why.shares.iter().all(|s| (0.0..=1.0).contains(&s.busy)));
        }
    }
}

const OF_CONTROLLERS: &str =
    r#""raid1", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3", "raid01 2x3", "raid10 3x2""#;

#[test]
fn controllers_fill_and_compare_theirs_beside_the_host() {
    for state in ["resyncing", "initial-sync", "rebuilding 1"] {
        all_of_a_controller(state, OF_CONTROLLERS);
    }
}

#[test]
fn clean() {
    all(
        "clean",
        r#""single", "linear", "raid0", "raid1", "raid10", "raid10-f2", "raid10-o2", "raid10-n3", "raid01 2x3", "raid1+0 3x2""#,
    );
}

#[test]
fn clean_with_parity() {
    all(
        "clean",
        r#""raid4", "raid5", "raid5-la", "raid6", "raid50 2x3""#,
    );
}

#[test]
fn degraded() {
    all(
        "degraded 1",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
    all("degraded 2", r#""raid1", "raid6""#);
}

#[test]
fn resyncing() {
    all(
        "resyncing",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
}

#[test]
fn initial_sync() {
    all(
        "initial-sync",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
}

/// What is to be synced of 128 MiB of each of four disks, by itself: at how many bytes a second, and MiB that the disks read and
/// were given to write.
fn synced(array: &str) -> (f64, [u64; 2]) {
    let experiment = experiment(&format!(
        "title = \"t\"\ndisks = {{ model = \"ST3250624AS\", count = 4 }}\nprofile = \"random\"\nhost.kernel = \"3.10\"\n\
         [array]\nmember-size = \"128MiB\"\n{array}\n"
    ));
    let mut machine = machine(&experiment, &experiment.cells[0]);
    machine.set_fast_forward(false);
    let resynced = machine.run_resync(|_| std::ops::ControlFlow::Continue(()));
    let resynced = resynced.expect("something to sync");
    let totals = Totals::of(&machine.host);
    let mib = [totals.moved - totals.written, totals.written].map(|bytes| bytes >> 20);
    (resynced.rate(), mib)
}

#[test]
fn an_initial_sync_writes_what_a_resync_finds_to_agree() {
    let of =
        |layout: &str, state: &str| synced(&format!("layout = \"{layout}\"\nstate = \"{state}\""));
    for (layout, moved, wrote) in [
        ("raid6", [512, 0], [512, 256]),
        ("raid10", [512, 0], [512, 256]),
        ("raid1", [128, 384], [128, 384]),
        ("raid4", [512, 0], [384, 128]),
        ("raid5", [512, 0], [384, 128]),
    ] {
        assert_eq!(of(layout, "resyncing").1, moved, "{layout}");
        assert_eq!(of(layout, "initial-sync").1, wrote, "{layout}");
    }
    // mdadm leaves the last member of a raid5 to be filled: a rebuild by another name.
    let rebuilt = synced("layout = \"raid5\"\nstate = \"rebuilding 1\"\nfailed = [3]");
    assert_eq!(of("raid5", "initial-sync"), rebuilt);
}

/// A resync reads as far ahead of what it writes as the stripe cache lets it, and the arm goes back and forth less often.
#[test]
fn more_stripes_make_the_initial_sync_of_a_raid6_faster() {
    let of = |stripes: u32, state: &str| {
        let array = format!(
            "layout = \"raid6\"\nstate = \"{state}\"\nstripe-cache = {stripes}\nmember-start = \"1MiB\""
        );
        synced(&array).0 / f64::from(1 << 20)
    };
    let [few, many] = [256, 8192].map(|stripes| of(stripes, "initial-sync"));
    assert!(few < many, "{few} and {many} MiB/s");
    assert!(1.5 * many < of(8192, "resyncing"), "{many} MiB/s");
}

#[test]
fn rebuilding() {
    all(
        "rebuilding 1",
        r#""raid1", "raid4", "raid5", "raid6", "raid10", "raid10-f2", "raid50 2x3""#,
    );
}

/// A card acknowledges at the speed of its memory what disks need minutes for.
#[test]
fn what_is_left_in_the_cache_of_a_card_is_told() {
    let flags = |seconds: u32| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"ST3000DM001\", count = 4 }}\nhost.write-cache = false\n\
             [array]\nlayout = \"raid5\"\nengine = \"controller\"\n\
             [topology.controllers.card]\nkind = \"hardware-raid\"\n\
             [profile]\nname = \"random\"\nread-percent = 0\nsize = \"1GiB\"\ntime = \"{seconds}s\"\n"
        );
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let flags = runs.iter().flat_map(|run| run.outcome.flags.clone());
        let mut of = flags.filter(|flag| flag.kind == FlagKind::Unflushed);
        of.next().map(|flag| (flag.reason, flag.voids))
    };
    let Some((reason, false)) = flags(2) else {
        panic!("nothing is told");
    };
    assert!(
        reason.ends_with("were still in the controller's cache when the clock stopped"),
        "{reason}"
    );
}

/// What a drive's cache took is not written: a short phase is faster than the media, and that is told of the writes.
#[test]
fn what_is_left_in_the_caches_of_disks_is_told() {
    let flags = |cache: &str, seconds: u32| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 1 }}\narray.layout = \"single\"\n\
             host.write-cache = {cache}\n[profile]\nname = \"sequential\"\ntime = \"{seconds}s\"\n"
        );
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let kept = |run: &PhaseRun| {
            let flags = run.outcome.flags.iter();
            let mut of = flags.filter(|flag| flag.kind == FlagKind::Unflushed);
            of.next().map(|flag| (flag.reason.clone(), flag.voids))
        };
        runs.iter().map(kept).collect::<Vec<_>>()
    };
    let told = flags("true", 4);
    let [None, Some((reason, false))] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        reason.ends_with("still in their caches when the clock stopped"),
        "{reason}"
    );
    // Of a minute it is no great share, and without the cache nothing is.
    assert_eq!(flags("true", 60), [None, None]);
    assert_eq!(flags("false", 4), [None, None]);
}

/// A kernel without flushes leaves much of a file in a drive's cache, and then writes the file over: what was there first never goes to the
/// media. It was taken for written, which made up for what is there at the end.
#[test]
fn what_is_written_over_in_the_caches_of_disks_does_not_make_up_for_what_is_left_there() {
    let text = "title = \"t\"\ndisks = { model = \"nearline-24tb\", count = 1 }\narray.layout = \"single\"\n\
                host = { kernel = \"windows-2000\", memory = \"128MiB\", cpu = \"server-2011\" }\nfilesystem = \"ntfs\"\n\
                [profile]\nname = \"bonnie\"\nfile-size = \"256MiB\"\nfiles = 0\n";
    let experiment = experiment(text);
    let runs = run(&mut machine(&experiment, &experiment.cells[0]));
    let left = |id: &str| {
        let run = runs.iter().find(|run| run.outcome.id == *id);
        let flags = &run.expect("it is run").outcome.flags;
        flags.iter().any(|flag| {
            flag.kind == FlagKind::Unflushed && flag.reason.ends_with("when the clock stopped")
        })
    };
    assert_eq!(["block-write", "rewrite"].map(left), [true; 2]);
}

/// A processor that is slow for whoever waits for a resync is as slow for the resync that builds its next request.
#[test]
fn a_resync_takes_turns_with_whoever_waits_on_a_slow_processor_as_well() {
    let done = |state: &str, clock: u32| {
        let text = format!(
            r#"
title = "Turns"
disks = {{ model = "ST3250624AS", count = 4, override = {{ capacity = "2000007168B" }} }}
array = {{ layout = "raid10", state = "{state}" }}
host = {{ cpu-mhz = {clock} }}
[profile]
name = "random"
depth = 1
read-percent = 100
time = "4s"
"#
        );
        let experiment = experiment(&text);
        let mut machine = machine(&experiment, &experiment.cells[0]);
        run(&mut machine);
        machine.resync().map_or(u64::MAX, |progress| progress.done)
    };
    for state in ["rebuilding 1", "resyncing"] {
        let (slow, fast) = (done(state, 100), done(state, 3500));
        assert!(slow < 2 * fast, "{state}: {slow} {fast}");
    }
}

/// What mkfs makes on all four is read from two pairs, and the kernel's chunks from the pair that is left. dd's second file has the place
/// of the first, which is removed before and is off the device when the clock starts: behind it, it went at a pair's pace.
#[test]
fn btrfs_without_a_member_has_stripes_of_two_pairs_and_of_one() {
    let text = |failed: &str, mib: u32| {
        format!(
            "title = 't'\ndisks = {{ model = 'ST3250624AS', count = 4 }}\nhost.memory = '256MiB'\n[array]\nlayout = 'raid10'\n\
             engine = 'btrfs'\nmember-size = '3GiB'\n{failed}\n[profile]\nname = 'dd'\ncount = {mib}\n"
        )
    };
    let rates = |failed: &str, mib: u32| {
        let experiment = experiment(&text(failed, mib));
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let rate = |run: &PhaseRun| run.outcome.bytes as f64 / run.outcome.elapsed.as_secs_f64();
        runs.iter().map(rate).collect::<Vec<f64>>()
    };
    let [first, read_first, second, read] = rates("failed = [1]", 1200)[..] else {
        panic!("dd has four phases")
    };
    assert!((second / first - 1.0).abs() < 0.05, "{second} of {first}");
    assert!(
        (read / read_first - 1.0).abs() < 0.05,
        "{read} of {read_first}"
    );
    let (whole, within) = (rates("", 1200)[3], rates("failed = [1]", 400)[3]);
    assert!((within / whole - 1.0).abs() < 0.1, "{within} of {whole}");
    assert!((0.5..0.8).contains(&(read / whole)), "{read} of {whole}");
}
