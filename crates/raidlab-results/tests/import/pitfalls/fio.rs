//! fio.
use super::*;

#[test]
fn bandwidth_is_bw_bytes_and_not_bw() {
    let trial = &taken(&text_of("raw/fio-3.33-jsonplus.json")).trials[0];
    same(rate(trial, "read"), 46_650_195.0);
    // Without it (before 3.2) bw is whole KiB/s, and bytes by time have more digits.
    let old = text_of("raw/fio-3.33-jsonplus.json").replace("\"bw_bytes\"", "\"x\"");
    let imported = taken(&old);
    same(rate(&imported.trials[0], "read"), 40_632_320.0 / 0.871);
    assert!(imported.remarks.iter().any(|r| r.text.contains("bw_bytes")));
}

#[test]
fn the_sum_of_all_clients_is_not_counted_again() {
    let imported = taken(&text_of("raw/fio-3.33-client.json"));
    let trial = &imported.trials[0];
    let names: Vec<_> = trial.phases.iter().map(|p| p.phase.as_str()).collect();
    assert_eq!(names, ["a/write", "b/read"]);
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("All clients"))
    );
}

#[test]
fn notes_before_the_object_are_skipped_and_told() {
    let text = format!(
        "note: both iodepth >= 1 and synchronous I/O engine are selected\n{}trailing words\n",
        text_of("raw/fio-3.33-jsonplus.json")
    );
    let imported = taken(&text);
    assert_eq!(imported.trials.len(), 1);
    assert_eq!(imported.remarks[0].line, Some(1));
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("trailing words"))
    );
}

#[test]
fn histograms_are_kept_so_that_percentiles_merge() {
    let trial = &taken(&text_of("raw/fio-3.33-jsonplus.json")).trials[0];
    let read = phase(trial, "read").latency.as_ref().unwrap();
    let write = phase(trial, "write").latency.as_ref().unwrap();
    assert_eq!((read.count(), write.count()), (9920, 9907));
    // The whole operation (lat_ns), as lat_percentiles=1 gives it; the maximum is exact.
    assert_eq!(read.max().unwrap().0, 53_333_747);
    let p50 = read.percentile(50.0).unwrap().0 as f64;
    assert!((p50 / 70_656.0 - 1.0).abs() < 0.02, "{p50}");
    let mut both = read.clone();
    both.merge(write);
    assert_eq!(both.count(), 19_827);
    assert!(
        phase(trial, "read")
            .figures
            .iter()
            .all(|f| f.name == "iops")
    );
}

#[test]
fn percentiles_without_histogram_are_figures_of_completion_latency() {
    let imported = taken(&text_of("raw/fio-3.33-client.json"));
    let read = phase(&imported.trials[0], "b/read");
    same(figure(read, "latency-p99"), 0.000_411_648);
    same(figure(read, "latency-max"), 0.004_254_673);
    same(figure(read, "iops"), 18_533.936_652);
    assert!(imported.remarks.iter().any(|r| r.text.contains("clat")));
}

#[test]
fn repeated_offsets_are_told() {
    let text = text_of("raw/fio-3.33-jsonplus.json");
    let trial = &taken(&text).trials[0];
    assert!(
        trial
            .flags
            .iter()
            .any(|f| f.reason.contains("randrepeat") && !f.voids)
    );
    let off = text.replace(
        "\"bs\" : \"4k\"",
        "\"bs\" : \"4k\",\n\"randrepeat\" : \"0\"",
    );
    assert!(taken(&off).trials[0].flags.is_empty());
    let seeded = text.replace("\"bs\" : \"4k\"", "\"bs\" : \"4k\",\n\"randseed\" : \"7\"");
    let told = &taken(&seeded).trials[0].flags[0].reason;
    assert!(told.contains("of the same seed"), "{told}");
    let sequential = text.replace("randrw", "rw");
    assert!(taken(&sequential).trials[0].flags.is_empty());
}

#[test]
fn jobs_of_one_name_ran_together_and_objects_one_after_the_other() {
    let client = text_of("raw/fio-3.33-client.json")
        .replace(
            "\"jobname\" : \"b\",\n      \"groupid\" : 1",
            "\"jobname\" : \"a\",\n      \"groupid\" : 0",
        )
        .replace("\"rw\" : \"write\"", "\"rw\" : \"rw\"");
    let merged = &taken(&client).trials[0];
    let names: Vec<_> = merged.phases.iter().map(|p| p.phase.as_str()).collect();
    assert_eq!(names, ["read", "write"]);
    let text = text_of("raw/fio-3.33-jsonplus.json");
    let again = text.replace("1795197128", "1795197999");
    let twice = taken(&format!("{text}{again}"));
    assert_eq!([twice.trials[0].round, twice.trials[1].round], [0, 1]);
}

#[test]
fn a_failed_job_is_a_failed_trial() {
    let text = text_of("raw/fio-3.33-jsonplus.json").replace("\"error\" : 0", "\"error\" : 5");
    let trial = &taken(&text).trials[0];
    assert!(matches!(&trial.status, Status::Failed { reason } if reason.contains("error 5")));
    assert!(!trial.is_valid());
}

#[test]
fn broken_json_is_told_with_its_line_in_the_file() {
    let text = text_of("raw/fio-3.33-client.json").replacen("\"bw\" : 0,", "\"bw\" : ,", 1);
    let line = text.lines().position(|l| l.contains("\"bw\" : ,")).unwrap() + 1;
    let message = refused(&text);
    assert!(message.starts_with(&format!("sample:{line}:")), "{message}");
    assert!(message.contains("--output=FILE"), "{message}");
}

#[test]
fn terse_is_kib_and_microseconds_and_other_versions_are_refused() {
    let text = text_of("raw/fio-3.33-terse-v3.txt");
    let trial = &taken(&text).trials[0];
    same(rate(trial, "read"), 862_315.0 * KIB);
    same(figure(phase(trial, "read"), "latency-p99.9"), 0.000_444);
    assert_eq!(trial.phases.len(), 1);
    assert!(refused(&text.replacen("3;fio", "5;fio", 1)).contains("terse version 3"));
}

#[test]
fn the_report_for_people_is_refused_in_favour_of_json() {
    let message = refused(&text_of("raw/fio-3.33-normal.txt"));
    assert!(message.contains("--output-format=json"), "{message}");
}

#[test]
fn one_job_name_in_two_groups_stays_two_phases() {
    let client =
        text_of("raw/fio-3.33-client.json").replace("\"jobname\" : \"b\"", "\"jobname\" : \"a\"");
    let trial = &taken(&client).trials[0];
    let names: Vec<_> = trial.phases.iter().map(|p| p.phase.as_str()).collect();
    assert_eq!(names, ["a#0/write", "a#1/read"]);
    same(rate(trial, "a#1/read"), 75_915_004.0);
}
