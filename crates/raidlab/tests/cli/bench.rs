//! `raidlab bench` on every kind of place, with every profile and output.
use crate::lab::{DD, Lab, ended, names};
use crate::root::{self, Loop, Mounted};
use serde_json::Value;
use std::path::Path;

/// Phases of the one trial in a lab's store.
fn phases(lab: &Lab) -> Vec<String> {
    let trials = lab.trials();
    assert_eq!(trials.len(), 1);
    let phases = trials[0]["phases"].as_array().expect("phases");
    for phase in phases {
        let rate = phase["rate"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 0.0), "no figure: {phase}");
    }
    phases
        .iter()
        .map(|phase| phase["phase"].as_str().expect("a name").to_owned())
        .collect()
}

#[track_caller]
fn profile_runs(options: &str, expected: &[&str]) {
    let lab = Lab::new();
    let ran = lab.bench(&format!("-n 1 --profile {options} --json"));
    assert!(ran.json()["blocks"].is_array(), "a report");
    assert_eq!(phases(&lab), expected);
    lab.assert_clean();
}

#[test]
fn bonnie() {
    profile_runs(
        "bonnie --size 4MiB --files 0 --set seeks=200",
        &[
            "putc",
            "block-write",
            "rewrite",
            "getc",
            "block-read",
            "seeks",
        ],
    );
}

#[test]
fn bonnie_with_small_files() {
    profile_runs(
        "bonnie --size 4MiB --fast --files 1:4KiB:1KiB:2 --set seeks=200",
        &[
            "block-write",
            "rewrite",
            "block-read",
            "seeks",
            "seq-create",
            "seq-stat",
            "seq-delete",
            "ran-create",
            "ran-stat",
            "ran-delete",
        ],
    );
}

#[test]
fn tiobench() {
    profile_runs(
        "tiobench --size 4MiB --threads 2 --count 20",
        &["write", "random-write", "read", "random-read"],
    );
}

#[test]
fn hdbench() {
    profile_runs(
        "hdbench --size 4MiB",
        &["write-4mib", "read-4mib", "copy-4mib"],
    );
}

#[test]
fn dd() {
    profile_runs(
        "dd --block-size 64KiB --count 64",
        &["write-first", "read-first", "write", "read"],
    );
}

#[test]
fn random() {
    profile_runs(
        "random --size 8MiB --runtime 200ms --depth 4 --jobs 2",
        &["read", "write"],
    );
    profile_runs(
        "random --size 8MiB --runtime 200ms --read 70% --fsync-every 8 --rate 500",
        &["mixed", "mixed: read", "mixed: write"],
    );
}

#[test]
fn sequential() {
    profile_runs(
        "sequential --size 16MiB --runtime 200ms --buffered",
        &["read", "write"],
    );
}

#[test]
fn a_place_under_another_name_is_told() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("place", lab.path("link")).expect("a link");
    lab.run(&format!("bench place link -n 1 {DD}"))
        .done()
        .says(&["'link' and 'place' are one place: what they differ by is chance"]);
    std::fs::create_dir(lab.path("other")).expect("a directory");
    let ran = lab.run(&format!("bench place other -n 1 {DD}")).done();
    assert!(!ran.err.contains("one place"), "{}", ran.err);
}

#[test]
fn every_output_at_once() {
    let lab = Lab::new();
    lab.bench(&format!(
        "-n 2 {DD} --markdown --html r.html --images charts"
    ))
    .says(&["wrote r.html", "wrote charts/"])
    .prints(&["# dd on place", "| "]);
    let html = std::fs::read_to_string(lab.path("r.html")).expect("a report");
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("</html>"),
        "a whole page"
    );
    for outside in [
        "src=\"http",
        "href=\"http",
        "<script src",
        "<link ",
        "@import",
        "url(http",
    ] {
        assert!(!html.contains(outside), "not self-contained: {outside}");
    }
    let images = names(&lab.path("charts"));
    let of = |ext: &str| images.iter().filter(|name| name.ends_with(ext)).count();
    assert!(of(".svg") > 0 && of(".svg") == of(".png"), "{images:?}");
    for image in images.iter().filter(|name| name.ends_with(".png")) {
        let bytes = std::fs::read(lab.path("charts").join(image)).expect("an image");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{image}");
    }
    lab.assert_clean();
}

#[test]
fn a_file_is_only_read() {
    let lab = Lab::new();
    let content: Vec<u8> = (0..2_u32 << 20).map(|i| (i % 251) as u8).collect();
    let file = lab.write("data", &content);
    lab.run("bench data -n 1 --profile random --runtime 200ms")
        .done();
    assert_eq!(phases(&lab), ["read"], "and nothing is written");
    lab.run("bench data -n 1 --profile dd --block-size 64KiB --count 4")
        .done();
    assert!(phases(&lab).iter().all(|phase| phase.starts_with("read")));
    assert!(
        std::fs::read(file).expect("the file") == content,
        "it was changed"
    );
}

#[test]
fn a_character_device_stands_for_no_storage() {
    let lab = Lab::new();
    let line = "bench /dev/zero -n 1 --profile random --size 16MiB --runtime 200ms";
    lab.run(&format!("{line} --buffered")).done();
    assert_eq!(phases(&lab), ["read"]);
    lab.run(line)
        .refused(4)
        .says(&["/dev/zero", "direct I/O is not supported", "--buffered"]);
}

#[test]
fn a_block_device_is_only_read() {
    if !root::may("a_block_device_is_only_read") {
        return;
    }
    let lab = Lab::new();
    let content: Vec<u8> = (0..8_u32 << 20).map(|i| (i % 253) as u8).collect();
    let file = lab.write("disk", &content);
    let device = Loop::on(&file);
    let path = device.path.display();
    lab.run(&format!(
        "bench {path} -n 1 --profile hdparm --size 4MiB --runtime 200ms --set cached-time=200ms"
    ))
    .done();
    assert!(phases(&lab).contains(&"buffered-read".to_owned()));
    lab.run(&format!(
        "bench {path} -n 1 --profile random --runtime 200ms"
    ))
    .done();
    assert_eq!(phases(&lab), ["read"]);
    lab.run(&format!("reference report pata-raid0 --html {path}"))
        .code(3)
        .says(&["is a block device"]);
    lab.run(&format!("bench {path} --profile tiobench"))
        .refused(2)
        .says(&["needs a directory"]);
    assert!(
        std::fs::read(&file).expect("the file") == content,
        "the device was written to"
    );
}

#[test]
fn memory_is_named_as_such() {
    if !root::may("memory_is_named_as_such") {
        return;
    }
    let lab = Lab::new();
    let tmpfs = Mounted::tmpfs(&lab.path("memory"), "64m");
    lab.run("bench memory -n 1 --profile dd --block-size 64KiB --count 64")
        .done()
        .says(&["the target is in memory (tmpfs)"]);
    crate::lab::assert_empty(&tmpfs.path);
}

#[test]
fn a_plan_does_nothing() {
    let lab = Lab::new();
    lab.run("bench place --profile random,dd --plan")
        .refused(0)
        .says(&[
            "2 arms to measure, 5 rounds",
            "place · random: 2 phases",
            "place · dd: 4 phases",
        ]);
    lab.assert_untouched();
}

#[test]
fn the_default_store_is_in_the_data_directory() {
    let lab = Lab::new();
    let mut command = lab.command(&format!("bench place -n 1 {DD}"));
    command.env_remove("RAIDLAB_STORE");
    ended(command).done();
    assert!(lab.path("data/raidlab/results.sqlite").is_file());
    assert!(!lab.store().exists());
}

/// What a trial says can be given to a shell again, and does the same operations.
#[test]
fn the_command_of_a_trial_repeats_it() {
    let lab = Lab::new();
    lab.bench(
        "-n 1 --profile random --size 8MiB --block-size 16KiB --runtime 100ms --depth 3 --seed 9",
    );
    let first = lab.trials().remove(0);
    let repeat = first["command"].as_str().expect("a command");
    let line = repeat.strip_prefix("raidlab ").expect("this program");
    lab.run(line).done();
    assert_eq!(lab.sessions().len(), 2);
    let second = lab.trials().remove(0);
    assert_ne!(first["id"], second["id"]);
    for same in ["digest", "seed", "settings", "profile"] {
        assert_eq!(first[same], second[same], "{same}");
    }
}

#[test]
fn a_fio_job_file_is_carried_out() {
    let lab = Lab::new();
    lab.write(
        "job.fio",
        "[global]\nsize=4m\nbs=4k\nruntime=1\n[one]\nrw=randread\niodepth=4\nioengine=io_uring\ndirect=1\nio_size=1m\n",
    );
    lab.bench("-n 1 --profile fio --job-file job.fio");
    assert_eq!(phases(&lab).len(), 1);
    let trial = lab.trials().remove(0);
    let repeat = trial["command"].as_str().expect("a command");
    assert!(
        repeat.contains(&lab.path("job.fio").display().to_string()),
        "{repeat}"
    );
    lab.assert_clean();
}

#[test]
fn records_tell_all_that_was_measured() {
    let lab = Lab::new();
    lab.bench("-n 1 --profile random --size 8MiB --runtime 200ms --depth 2 --read 50");
    let shown = lab.run("show --json").done().json();
    let trial = &shown["trials"][0];
    let digest = trial["environment"].as_str().expect("an environment");
    let environment = &shown["environments"][digest];
    assert!(environment["kernel"]["release"].is_string());
    assert!(environment["target"]["path"].is_string() || environment["target"].is_object());
    let phase = &trial["phases"][0];
    for field in [
        "bytes",
        "ops",
        "elapsed_ns",
        "cpu_percent",
        "mean_in_flight",
    ] {
        assert!(
            phase[field].as_f64().is_some_and(|v| v > 0.0),
            "{field}: {}",
            phase[field]
        );
    }
    assert!(!phase["latency"].is_null());
    let sum = |of: &str| {
        phase[of]
            .as_array()
            .expect(of)
            .iter()
            .filter_map(Value::as_u64)
            .sum::<u64>()
    };
    assert_eq!(
        Some(sum("series_bytes")),
        phase["bytes"].as_u64(),
        "the series adds up"
    );
    assert!(Path::new(trial["cell"]["factors"]["place"].as_str().expect("a place")).is_absolute());
}
