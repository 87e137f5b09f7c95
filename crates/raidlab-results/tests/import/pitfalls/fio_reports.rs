//! fio: several reports of one run, and several runs in one file.
use super::*;
use crate::says;
use serde_json::Value;

/// The objects of a file.
fn objects(text: &str) -> Vec<Value> {
    let objects = serde_json::Deserializer::from_str(text).into_iter();
    objects.map(|object| object.expect("an object")).collect()
}

fn text(objects: &[Value]) -> String {
    let texts = objects
        .iter()
        .map(|o| serde_json::to_string_pretty(o).unwrap() + "\n");
    texts.collect()
}

/// Sets what the only job has written by when.
fn wrote(object: &mut Value, bytes: u64, milliseconds: u64) {
    let by_time = |n: u64| (n * 1000).checked_div(milliseconds).unwrap_or(0);
    let write = &mut object["jobs"][0]["write"];
    write["io_bytes"] = bytes.into();
    write["io_kbytes"] = (bytes / 1024).into();
    write["total_ios"] = (bytes / 16384).into();
    write["runtime"] = milliseconds.into();
    write["bw_bytes"] = by_time(bytes).into();
    write["bw"] = by_time(bytes / 1024).into();
    write["iops"] = by_time(bytes / 16384).into();
    object["jobs"][0]["job_runtime"] = milliseconds.into();
}

#[test]
fn reports_on_the_way_are_no_repeats() {
    let file = text_of("reports/fio-3.33-interval.json");
    assert_eq!(objects(&file).len(), 3);
    let imported = taken(&file);
    assert_eq!(imported.trials.len(), 1);
    assert_eq!(phase(&imported.trials[0], "write").bytes, Some(2_555_904));
    assert!(
        says(&imported, "2 earlier reports"),
        "{:?}",
        imported.remarks
    );
    // Of a run that was ended early, the last report is all there is.
    assert_eq!(taken(&text(&objects(&file)[..2])).trials.len(), 1);
}

#[test]
fn reports_before_any_io_are_left_out_with_the_others() {
    let mut all = objects(&text_of("reports/fio-3.33-interval.json"));
    wrote(&mut all[0], 0, 0);
    assert_eq!(taken(&text(&all)).trials.len(), 1);
    // fio's time begins anew when files are laid out.
    all[0]["jobs"][0]["elapsed"] = 60.into();
    assert_eq!(taken(&text(&all)).trials.len(), 1);
    let message = refused(&text(&all[..1]));
    assert!(message.contains("a job that read, wrote"), "{message}");
    // One that failed before any I/O is a run.
    all[0]["jobs"][0]["error"] = 5.into();
    assert_eq!(taken(&text(&all)).trials.len(), 2);
}

#[test]
fn runs_one_after_the_other_are_repeats_however_they_grow() {
    // The figures of reports on the way, but each run began when the last had ended.
    let mut all = objects(&text_of("reports/fio-3.33-interval.json"));
    for (object, seconds) in all.iter_mut().zip(1_795_000_000_u64..) {
        object["timestamp"] = (seconds * 10).into();
        object["timestamp_ms"] = (seconds * 10_000).into();
    }
    assert_eq!(taken(&text(&all)).trials.len(), 3);
}

/// Runs that are over in less than a second have beginnings that lie as near as the seconds told.
#[test]
fn short_runs_in_turn_are_repeats() {
    let all = objects(&text_of("reports/fio-3.33-interval.json"));
    let mut two = [all[0].clone(), all[0].clone()];
    for (object, (bytes, ms)) in two.iter_mut().zip([(163_840, 300), (180_224, 310)]) {
        wrote(object, bytes, ms);
        object["jobs"][0]["elapsed"] = 1.into();
    }
    let told = two[0]["timestamp_ms"].as_u64().unwrap();
    two[1]["timestamp_ms"] = (told + 350).into();
    assert_eq!(taken(&text(&two)).trials.len(), 2);
    // What had run for longer than since the first report is of the same run.
    wrote(&mut two[1], 327_680, 650);
    assert_eq!(taken(&text(&two)).trials.len(), 1);
}

/// Two hosts' runs at once, of which one moved a little more.
#[test]
fn runs_at_once_are_two() {
    let all = objects(&text_of("reports/fio-3.33-interval.json"));
    let mut two = [all[2].clone(), all[2].clone()];
    let ms = two[0]["jobs"][0]["write"]["runtime"].as_u64().unwrap();
    wrote(&mut two[1], 2_703_360, ms + 3);
    let told = two[0]["timestamp_ms"].as_u64().unwrap();
    two[1]["timestamp_ms"] = (told + 3).into();
    assert_eq!(taken(&text(&two)).trials.len(), 2);
}

/// The same work on two hosts at once, of which one took a little longer; unless that can be a flush.
#[test]
fn the_same_work_at_once_is_of_two_runs() {
    let all = objects(&text_of("reports/fio-3.33-interval.json"));
    let mut two = [all[2].clone(), all[2].clone()];
    let ms = two[0]["jobs"][0]["write"]["runtime"].as_u64().unwrap();
    wrote(&mut two[1], 2_555_904, ms + 30);
    let told = two[0]["timestamp_ms"].as_u64().unwrap();
    two[1]["timestamp_ms"] = (told + 30).into();
    assert_eq!(taken(&text(&two)).trials.len(), 2);
    for object in &mut two {
        object["jobs"][0]["job options"]["end_fsync"] = "1".into();
    }
    assert_eq!(taken(&text(&two)).trials.len(), 1);
}

#[test]
fn groups_run_one_after_the_other() {
    let imported = taken(&text_of("reports/fio-3.33-interval-groups.json"));
    assert_eq!(imported.trials.len(), 1);
    let trial = &imported.trials[0];
    let [w, r] = ["w/write", "r/read"].map(|name| phase(trial, name).elapsed_ns.unwrap());
    let elapsed = trial.elapsed_ns.unwrap();
    assert!(
        elapsed.abs_diff(w + r) < 10_000_000,
        "{elapsed} is not {w} and {r}"
    );
    // Groups that are only told apart run at once, which this version does not tell: they cannot have
    // taken longer than all.
    let mut all = objects(&text_of("reports/fio-3.33-interval-groups.json"));
    let last = all.len() - 1;
    let jobs = all[last]["jobs"].as_array_mut().unwrap();
    for job in jobs {
        job["elapsed"] = 3.into();
    }
    let at_once = |all: &[Value]| taken(&text(&all[last..])).trials[0].elapsed_ns.unwrap();
    assert_eq!(at_once(&all), 3_000_000_000);
    all[last]["jobs"][1]["job options"]["new_group"] = "".into();
    assert!(
        at_once(&all).abs_diff(w.max(r)) < 10_000_000,
        "{}",
        at_once(&all)
    );
}

#[test]
fn a_client_lists_the_reports_on_the_way_as_jobs() {
    let imported = taken(&text_of("reports/fio-3.33-interval-client.json"));
    let write = phase(&imported.trials[0], "write");
    assert_eq!(write.bytes, Some(2_555_904));
    let rate = write.rate.unwrap();
    assert!((900e3..1100e3).contains(&rate), "{rate}");
    assert!(
        says(&imported, "2 rows of reports on the way"),
        "{:?}",
        imported.remarks
    );
}

#[test]
fn clones_of_terse_output_are_added_up_and_runs_are_repeats() {
    let text = text_of("reports/fio-3.33-repeated-clones.terse");
    assert_eq!(text.lines().count(), 6);
    let imported = taken(&text);
    assert_eq!(imported.trials.len(), 3);
    for trial in &imported.trials {
        assert_eq!(trial.cell.factors["numjobs"], "2");
        let write = phase(trial, "write");
        assert_eq!(write.bytes, Some(2 * 1200 * 1024));
        let rate = write.rate.unwrap();
        assert!((1.8e6..2.3e6).contains(&rate), "{rate}");
        assert!(write.figures.iter().all(|f| !f.name.contains("-p")));
        assert!(figure(write, "latency-max") >= figure(write, "latency-mean"));
    }
    assert_eq!(imported.trials[2].round, 2);
    // Whatever the disks say: their share in the group's rate tells.
    let without = |line: &str| line.split(';').take(121).collect::<Vec<_>>().join(";") + "\n";
    let text: String = text.lines().map(without).collect();
    assert_eq!(taken(&text).trials.len(), 3);
    // One job has all of its group's rate.
    let alone: String = text
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(';').collect();
            fields[46 + 38] = "100.000000%";
            fields.join(";") + "\n"
        })
        .collect();
    assert_eq!(taken(&alone).trials.len(), 6);
}

#[test]
fn reports_on_the_way_of_terse_clones_are_no_repeats() {
    let text = text_of("reports/fio-3.33-interval-clones.terse");
    assert_eq!(text.lines().count(), 6);
    let imported = taken(&text);
    assert_eq!(imported.trials.len(), 1, "{:?}", imported.remarks);
    assert_eq!(phase(&imported.trials[0], "write").bytes, Some(5_111_808));
    assert!(
        says(&imported, "2 earlier reports"),
        "{:?}",
        imported.remarks
    );
    // A run of its own after it.
    let again: Vec<&str> = text.lines().skip(4).collect();
    let twice = format!("{text}{}\n", again.join("\n").replace(";w;", ";v;"));
    assert_eq!(taken(&twice).trials.len(), 2);
}

#[test]
fn terse_runs_of_even_length_are_repeats() {
    let text = text_of("raw/fio-3.33-terse-v3.txt");
    let run = |kib: u64, ms: u64, switches: u64| {
        let mut fields: Vec<String> = text.trim_end().split(';').map(str::to_owned).collect();
        let rate = (kib * 1000 / ms).to_string();
        for (at, value) in [(5, kib.to_string()), (6, rate), (8, ms.to_string())] {
            fields[at] = value;
        }
        fields[89] = switches.to_string();
        fields.join(";") + "\n"
    };
    // Every counter goes on, but in a millisecond as much as in a tenth of a second.
    let text = run(6_000_000, 60_000, 100) + &run(6_010_000, 60_001, 101);
    assert_eq!(taken(&text).trials.len(), 2);
    // The same work in another time.
    let text = run(6_000_000, 60_000, 100) + &run(6_000_000, 61_000, 101);
    assert_eq!(taken(&text).trials.len(), 2);
    // Each twice the last.
    let text =
        run(1_000_000, 10_000, 100) + &run(2_000_000, 20_000, 101) + &run(4_000_000, 40_000, 102);
    assert_eq!(taken(&text).trials.len(), 3);
}

#[test]
fn terse_and_json_of_one_run_are_one_and_of_two_runs_two() {
    let text = text_of("reports/fio-3.33-terse-and.json");
    let imported = taken(&text);
    assert_eq!(imported.format, Format::FioJson);
    assert_eq!(imported.trials.len(), 1);
    assert!(
        says(&imported, "1 line of terse output"),
        "{:?}",
        imported.remarks
    );
    let other = text_of("raw/fio-3.33-terse-v3.txt");
    for text in [format!("{other}{text}"), format!("{text}{other}")] {
        let imported = taken(&text);
        assert_eq!(imported.trials.len(), 2, "{:?}", imported.remarks);
        same(rate(&imported.trials[1], "read"), 862_315.0 * KIB);
    }
}

#[test]
fn the_same_output_twice_is_one_run() {
    for sample in [
        "raw/fio-3.33-jsonplus.json",
        "raw/fio-3.33-terse-v3.txt",
        "reports/fio-3.33-interval.json",
        "raw/bonnie-2.00a.stdout",
        "raw/tiotest-0.3.3.txt",
        "raw/sysbench-1.0.20-fileio.txt",
    ] {
        let text = text_of(sample);
        let (once, twice) = (taken(&text), taken(&format!("{text}{text}")));
        assert_eq!(once.trials.len(), twice.trials.len(), "{sample}");
        assert!(says(&twice, "saved again"), "{sample}: {:?}", twice.remarks);
    }
    // However it is laid out.
    let file = text_of("raw/fio-3.33-jsonplus.json");
    let again = text(&objects(&file));
    assert_ne!(file, again);
    assert_eq!(taken(&format!("{file}{again}")).trials.len(), 1);
    // One or two figures can come out the same.
    for sample in ["raw/hdparm-tT.txt", "samples/dd-progress.txt"] {
        let text = text_of(sample);
        assert_eq!(
            taken(&format!("{text}{text}")).trials.len(),
            2 * taken(&text).trials.len()
        );
    }
}

/// `group_reporting` adds up the clones' times, of which there were no more than fio ran.
#[test]
fn the_times_of_clones_are_not_added_up() {
    let mut all = objects(&text_of("reports/fio-3.33-interval.json"));
    let object = &mut all[2];
    let ms = object["jobs"][0]["job_runtime"].as_u64().unwrap();
    object["jobs"][0]["job_runtime"] = (4 * ms).into();
    let trial = &taken(&text(&all[2..])).trials[0];
    let own = phase(trial, "write").elapsed_ns;
    assert_eq!(trial.elapsed_ns, own);
}

/// `ramp_time`: counters begin anew, and before that no response times are kept.
#[test]
fn counters_that_begin_anew_after_a_ramp_are_of_one_run() {
    let mut all = objects(&text_of("reports/fio-3.33-interval.json"));
    for object in &mut all {
        object["jobs"][0]["job options"]["ramp_time"] = "1".into();
    }
    let first = &mut all[0];
    for times in ["clat_ns", "lat_ns"] {
        for key in ["min", "max", "mean", "N"] {
            first["jobs"][0]["write"][times][key] = 0.into();
        }
    }
    wrote(first, 2_000_000, 900);
    assert_eq!(taken(&text(&all)).trials.len(), 1);
    for object in &mut all {
        object["jobs"][0]["job options"]
            .as_object_mut()
            .unwrap()
            .remove("ramp_time");
    }
    assert_eq!(taken(&text(&all)).trials.len(), 2);
}
