//! What somebody meets who uses the program for the first time.
use crate::lab::{Lab, ended, until};
use rustix::process::Signal;

/// The order of execution is drawn by lot: neither the order of the cells nor the baseline may be.
#[test]
fn a_report_has_the_places_as_they_were_named() {
    for seed in 1..=3 {
        let lab = Lab::new();
        for place in ["new", "old"] {
            std::fs::create_dir(lab.path(place)).expect("a directory");
        }
        let what =
            "-n 2 --profile dd,random --size 1MiB --block-size 4KiB --count 16 --runtime 20ms";
        let report = lab
            .run(&format!("bench old new {what} --seed {seed}"))
            .done();
        let ratios = report.out.matches("ratio to ").count();
        assert_eq!(ratios, 2, "{}", report.out);
        assert_eq!(
            report.out.matches("ratio to old ").count(),
            2,
            "{}",
            report.out
        );
        let rows: Vec<&str> = report
            .out
            .lines()
            .filter_map(|line| {
                ["old", "new"]
                    .into_iter()
                    .find(|name| line.starts_with(&format!(" {name} ")))
            })
            .collect();
        assert_eq!(rows[0], "old", "{}", report.out);
    }
}

/// 'raid50 2x3' is two words of a shell that nobody told otherwise.
#[test]
fn the_shape_of_a_nested_level_needs_no_quotes() {
    let lab = Lab::new();
    let plain = lab.run("layout raid50 2x3 --members 6").done();
    assert_eq!(plain.out, lab.run("layout 'raid50 2x3'").done().out);
}

/// RAID5 of two members is a mirror, which shows nothing of RAID5.
#[test]
fn a_level_is_drawn_with_members_enough_to_be_seen() {
    let lab = Lab::new();
    for (level, first, note) in [
        ("raid5", "raid5 left-symmetric, 3 members", "told for 3"),
        ("raid6", "raid6 left-symmetric, 4 members", "told for 4"),
        ("raid10", "raid10 2 near copies, 4 members", "told for 4"),
        ("raidz2", "raidz2, 4 members", "told for 4"),
        ("raid50", "", "drawn as 'raid50 2x3'"),
    ] {
        let told = lab.run(&format!("layout {level}")).done();
        assert!(told.out.starts_with(first), "{}", told.out);
        told.says(&[note]);
    }
    let same = lab.run("layout 'raid50 2x3'").done();
    assert_eq!(lab.run("layout raid50").done().out, same.out);
    // Whoever says how many is not told.
    assert_eq!(lab.run("layout raid5 -n 3").done().err, "");
    assert_eq!(lab.run("layout raid0 --member-size 1TB,2TB").done().err, "");
    // Nor is a script, whose answer has the number.
    let json = lab
        .run("layout raid5 --json")
        .done()
        .prints(&["\"members\": 3"]);
    assert_eq!(json.err, "");
    // What is wrong is said alone.
    let wrong = lab.run("layout raid1 --chunk 64KiB").code(2);
    assert!(!wrong.err.contains("told for"), "{}", wrong.err);
    lab.run("layout raid50 -n 6")
        .code(2)
        .says(&["'raid50 2x3'"]);
}

#[test]
fn an_empty_store_says_what_fills_it() {
    let lab = Lab::new();
    let mut command = lab.command("list");
    command.env_remove("RAIDLAB_STORE");
    ended(command)
        .refused(0)
        .says(&["raidlab bench", "raidlab run", "raidlab import"]);
}

const LAB: &str = "title = 'x'\ndisks = { model = 'sata-ssd', count = 2 }\n\
                   profile = { name = 'random', time = '20ms', size = '16MiB' }\n[design]\nrepeats = 2\n";

/// A guess by rates may be far off; how long the same cells took is known.
#[test]
fn a_plan_is_told_by_earlier_trials() {
    let lab = Lab::new();
    let two = "[factors]\nlayout = ['raid0', 'raid1']\n";
    lab.write("lab.toml", format!("{LAB}{two}"));
    let plan = lab.run("plan lab.toml").done();
    assert!(!plan.out.contains("in the store"), "{}", plan.out);
    lab.run("run lab.toml --on sim").done();
    lab.run("plan lab.toml")
        .done()
        .prints(&["by the time of 4 earlier trials of these cells in the store"]);
    // The same cells under another title, and one more.
    let three = two.replace("'raid1'", "'raid1', 'single'");
    lab.write("more.toml", format!("{LAB}{three}").replace("'x'", "'y'"));
    lab.run("plan more.toml")
        .done()
        .prints(&["for 2 of 3 cells by the time of 4 earlier trials in the store"]);
    let told = lab.run("plan more.toml --json").done().json();
    assert_eq!(told["estimated_seconds"]["sim_cells_by_earlier_trials"], 2);
    // What it took is no part of a result.
    let first = lab.trials();
    lab.run("run lab.toml --on sim --fresh -j 1").done();
    let both = lab.trials();
    let digest = |trials: &[serde_json::Value]| {
        trials
            .iter()
            .filter_map(|t| t["digest"].as_str().map(str::to_owned))
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(digest(&first), digest(&both));
}

/// Figures of a part of the trials are told to be of a part.
#[test]
fn a_report_of_what_is_unfinished_says_so() {
    let lab = Lab::new();
    let slow = LAB.replace("repeats = 2", "repeats = 5000");
    lab.write(
        "lab.toml",
        format!("{slow}[factors]\nlayout = ['raid0', 'raid1']\n"),
    );
    let mut running = lab.start("run lab.toml --on sim -j 1");
    until("a trial is stored", || lab.complete() > 0);
    running.signal(Signal::INT);
    running.end();
    lab.run("report")
        .done()
        .prints(&["Unfinished: ", " of 10000 trials"]);
}

/// What is paid is told before anything runs, and judged by afterwards.
#[test]
fn prices_are_told_by_plan_and_report() {
    let lab = Lab::new();
    let text = "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 3, price = \"55.50 EUR\" }\n\
        [profile]\nname = \"random\"\nsize = \"1GiB\"\ntime = \"200ms\"\n[design]\nrepeats = 2\n\
        [factors]\narray = [{ name = \"three\", layout = \"raid1\", members = 3 }, { name = \"two\", layout = \"raid1\", \
        members = 2 }, { name = \"none\", layout = \"raid0\", members = 2 }]\n";
    lab.write("buy.toml", text);
    lab.run("plan buy.toml")
        .done()
        .prints(&["holds 232.9 GiB, costs 166.50 EUR", "costs 111 EUR"]);
    lab.run("run buy.toml --on sim").done().prints(&[
        "cost (EUR)",
        "EUR a TiB",
        "random: what 100 EUR give",
        "worth a look",
    ]);
    lab.write("buy.toml", text.replace("55.50 EUR", "55.50"));
    lab.run("plan buy.toml").refused(2).says(&[
        "price without a currency",
        "buy.toml:2",
        "55.50 EUR",
    ]);
}

/// A script has places and survival as numbers, not in sentences alone.
#[test]
fn layouts_are_told_to_scripts() {
    let lab = Lab::new();
    // Left-symmetric: chunk 7 of 64 KiB is the second of stripe 2, whose parity is on the second member.
    let told = lab
        .run("layout raid5 -n 4 --sector 1000 --json")
        .done()
        .json();
    assert_eq!(
        told["places"],
        serde_json::json!([
            {"holds": "data", "member": 3, "sector": 360},
            {"holds": "P", "member": 1, "sector": 360, "stripe": 2},
        ])
    );
    assert_eq!(told["chunk_bytes"], 65536);
    assert_eq!(
        told["survives"],
        serde_json::json!({"any": 1, "at_most": 1, "by_luck": []})
    );
    let told = lab.run("layout raid10 -n 4 --json").done().json();
    assert_eq!(told["places"], serde_json::Value::Null);
    let share = 4.0 / 6.0;
    assert_eq!(
        told["survives"],
        serde_json::json!({"any": 1, "at_most": 2, "by_luck": [
            {"failures": 2, "survived": 4, "of": 6, "share": share},
        ]})
    );
    // Counts that no reader of JSON can hold are left out, not wrong.
    let told = lab.run("layout raid10 -n 128 --json").done().json();
    assert_eq!(told["survives"]["at_most"], 64);
    let last = &told["survives"]["by_luck"][62];
    assert_eq!(
        (&last["failures"], &last["of"]),
        (&64.into(), &serde_json::Value::Null)
    );
}
