//! What fio's JSON means depends on its version: read from its sources, 2.1.3 to 3.42.
use super::*;
use crate::says;

/// A read job as a version of fio writes it: `members` of the direction beside its times, the name and
/// unit (in nanoseconds) of those, and what stands with a completion latency.
fn written(version: &str, members: &str, ns: bool, beside: &str) -> String {
    let (slat, clat, lat, scale) = match ns {
        true => ("slat_ns", "clat_ns", "lat_ns", 1000),
        false => ("slat", "clat", "lat", 1),
    };
    let times = |name: &str, max: u64, mean: f64, more: &str| {
        let (max, mean) = (max * scale, mean * scale as f64);
        format!(
            "\"{name}\" : {{ \"min\" : 1, \"max\" : {max}, \"mean\" : {mean:.6}, \"stddev\" : 1.000000{more} }}"
        )
    };
    let percentiles = format!(
        ",\n\"percentile\" : {{ \"50.000000\" : {}, \"99.000000\" : {}, \"0.00\" : 0 }}{beside}",
        96 * scale,
        310 * scale
    );
    format!(
        "{{\n  \"fio version\" : \"{version}\",\n  \"jobs\" : [\n{{\n\"jobname\" : \"a\",\n\"groupid\" : 0,\n\
         \"error\" : 0,\n\"read\" : {{\n{members},\n\"runtime\" : 10000,\n{},\n{},\n{},\n\"bw_min\" : 0\n}},\n\
         \"usr_cpu\" : 5.000000,\n\"sys_cpu\" : 10.000000\n}}\n]\n}}\n",
        times(slat, 90, 2.0, ""),
        times(clat, 9000, 100.0, &percentiles),
        times(lat, 9010, 102.0, ""),
    )
}

/// 100 000 reads of 4 KiB in 10 s.
const UP_TO_2_20: &str = "\"io_bytes\" : 400000,\n\"bw\" : 40000,\n\"iops\" : 10000";
const OF_2_21: &str = "\"io_bytes\" : 409600000,\n\"io_kbytes\" : 400000,\n\"bw\" : 40000,\n\
                       \"iops\" : 10000.000000,\n\"total_ios\" : 100000";

#[test]
fn io_bytes_are_kib_and_times_microseconds_up_to_2_20() {
    let imported = taken(&written("fio-2.1.3", UP_TO_2_20, false, ""));
    let read = phase(&imported.trials[0], "read");
    assert_eq!(read.bytes, Some(409_600_000));
    // It does not count operations.
    assert_eq!(read.ops, None);
    same(rate(&imported.trials[0], "read"), 40_960_000.0);
    same(figure(read, "iops"), 10_000.0);
    same(figure(read, "latency-p50"), 0.000_096);
    same(figure(read, "latency-p99"), 0.000_310);
    same(figure(read, "latency-max"), 0.009);
    same(figure(read, "latency-mean"), 0.0001);
    assert_eq!(imported.trials[0].elapsed_ns, Some(10_000_000_000));
    assert!(says(&imported, "io_bytes in KiB"));
    assert!(says(&imported, "completion latencies (clat)"));
    assert!(says(&imported, "microseconds"));
    assert!(!says(&imported, "bw_bytes"));
}

#[test]
fn io_bytes_are_bytes_in_2_21_and_times_still_microseconds() {
    let imported = taken(&written("fio-2.21", OF_2_21, false, ""));
    let read = phase(&imported.trials[0], "read");
    assert_eq!((read.bytes, read.ops), (Some(409_600_000), Some(100_000)));
    same(figure(read, "latency-p99"), 0.000_310);
    assert!(says(&imported, "before 3.2"));
    assert!(!says(&imported, "io_bytes in KiB"));
}

/// A latency's `N` came with 3.18: without it, there is a time of every operation.
#[test]
fn times_that_are_not_counted_are_not_dropped() {
    let imported = taken(&written("fio-3.1", OF_2_21, true, ""));
    let read = phase(&imported.trials[0], "read");
    same(figure(read, "latency-p99"), 0.000_310);
    same(figure(read, "latency-mean"), 0.0001);
    assert!(!says(&imported, "microseconds"));
}

/// From 2.2.12 to 2.19 JSON+ numbers the buckets, and says how they are laid out among them.
#[test]
fn numbered_buckets_are_turned_into_times() {
    let beside = ",\n\"bins\" : { \"0\" : 0, \"96\" : 99000, \"191\" : 999, \"515\" : 1, \"FIO_IO_U_PLAT_BITS\" : 6, \
                  \"FIO_IO_U_PLAT_VAL\" : 64, \"FIO_IO_U_PLAT_NR\" : 1216 }";
    let members = format!("{UP_TO_2_20},\n\"total_ios\" : 100000");
    let imported = taken(&written("fio-2.18", &members, false, beside));
    let latency = phase(&imported.trials[0], "read").latency.as_ref().unwrap();
    assert_eq!(latency.count(), 100_000);
    // Number 96 is 96 µs, number 191 the middle of 254 to 256 µs; the largest is told exactly.
    let near = |percent: f64, us: f64| {
        let told = latency.percentile(percent).unwrap().0 as f64 / 1e3;
        assert!((told / us - 1.0).abs() < 0.02, "{told} is not {us}");
    };
    near(50.0, 96.0);
    near(99.5, 255.0);
    assert_eq!(latency.max().unwrap().0, 9_000_000);
    assert!(!says(&imported, "the histogram"));
    // Of a fio that was built with other buckets, percentiles remain.
    let other = beside.replace("BITS\" : 6", "BITS\" : 8");
    let imported = taken(&written("fio-2.18", &members, false, &other));
    let read = phase(&imported.trials[0], "read");
    assert!(read.latency.is_none());
    same(figure(read, "latency-p99"), 0.000_310);
}

#[test]
fn what_is_not_there_is_not_claimed() {
    let without = written("fio-2.1.3", UP_TO_2_20, false, "")
        .replace("\"clat\"", "\"x\"")
        .replace("\"lat\"", "\"y\"");
    let imported = taken(&without);
    assert!(says(&imported, "no response times"));
    assert!(!says(&imported, "completion latencies"));
    // disable_clat=1: the whole operation's, without percentiles.
    let whole = written("fio-3.1", OF_2_21, true, "").replace("\"clat_ns\"", "\"x\"");
    let imported = taken(&whole);
    same(
        figure(phase(&imported.trials[0], "read"), "latency-mean"),
        0.000_102,
    );
    assert!(!says(&imported, "clat"));
}

/// `unified_rw_reporting`: 1 has mixed instead of the directions, both beside them.
#[test]
fn mixed_is_a_phase_unless_it_sums_others() {
    let text = written("fio-3.1", OF_2_21, true, "");
    let mixed = taken(&text.replace("\"read\" :", "\"mixed\" :"));
    same(rate(&mixed.trials[0], "mixed"), 40_960_000.0);
    let end = ",\n\"usr_cpu\"";
    let both = text.replace(
        end,
        &format!(",\n\"mixed\" : {{ {OF_2_21}, \"runtime\" : 10000 }}{end}"),
    );
    let imported = taken(&both);
    assert_eq!(imported.trials[0].phases.len(), 1);
    assert!(says(&imported, "mixed is a sum"));
}

#[test]
fn rates_that_contradict_bytes_operations_and_time_are_refused() {
    let text = text_of("raw/fio-3.33-jsonplus.json");
    for (from, to, line, should) in [
        (
            "\"bw_bytes\" : 46650195",
            "\"bw_bytes\" : 1",
            27,
            "46650195",
        ),
        ("\"bw\" : 45497", "\"bw\" : 4549", 448, "45497"),
        (
            "\"iops\" : 11389.2",
            "\"iops\" : 1138.2",
            29,
            "9920 operations",
        ),
        (
            "\"io_bytes\" : 40579072",
            "\"io_bytes\" : 4057907",
            447,
            "871 ms",
        ),
    ] {
        let message = refused(&text.replacen(from, to, 1));
        assert!(message.starts_with(&format!("sample:{line}:")), "{message}");
        assert!(message.contains(should), "{message}");
        assert!(message.contains("by the runtime"), "{message}");
    }
    // Also on one line, and where an option is called like the direction.
    let line = text
        .replace("\"bw\" : 45497", "\"bw\" : 4549")
        .replace('\n', "")
        .replace(" : ", ":");
    let line = line.replace("\"rw\":\"randrw\"", "\"rw\":\"write\"");
    let column = line.find("\"bw\":4549,").unwrap() + 1;
    let message = refused(&line);
    assert!(
        message.starts_with(&format!("sample:1:{column}:")),
        "{message}"
    );
    let old = written("fio-2.1.3", UP_TO_2_20, false, "").replace("40000,", "39000,");
    assert!(refused(&old).contains("about 40000"), "{}", refused(&old));
    let terse = text_of("raw/fio-3.33-terse-v3.txt").replacen("862315", "962315", 1);
    let message = refused(&terse);
    assert!(
        message.starts_with("sample:1:24: 962315 KiB/s"),
        "{message}"
    );
    assert!(message.contains("862316"), "{message}");
}

#[test]
fn json_is_taken_however_it_is_laid_out() {
    let text = text_of("raw/fio-3.33-client.json");
    let phases = |text: &str| {
        let imported = taken(text);
        let first = imported.trials[0].phases.clone();
        assert!(imported.trials.iter().all(|t| t.phases == first));
        (imported.trials.len(), first)
    };
    let (_, wanted) = phases(&text);
    let line = text.replace('\n', " ");
    let later = line.replace("1795197602", "1795197999");
    let with_notes = format!("fio: this is a {{warning}}\nnote: more\n{line}\nand more\n");
    for (many, shape) in [
        (1, line.clone()),
        (1, format!("{line}\n")),
        (1, text.replace('\n', "\r\n")),
        (1, text.replacen('{', "{ ", 1).replacen("\n", "", 2)),
        (1, with_notes.clone()),
        (1, format!("results: {line}\n")),
        (2, format!("{line}\n{later}\n")),
        (2, format!("{line}{later}")),
        (2, format!("{text}{later}")),
        (2, format!("[{text},\n{later}]\n")),
        (2, format!("[ {line}, {later} ]")),
    ] {
        let (trials, found) = phases(&shape);
        assert_eq!((trials, &found), (many, &wanted), "{shape:.200}");
    }
    let remarks = taken(&with_notes).remarks;
    assert_eq!(remarks[0].line, Some(1));
    assert!(remarks[0].text.contains("warning") && remarks[0].text.contains("1 more line"));
    // What stands between the objects of a list is no news.
    let list = taken(&format!("[{line},\n{later}]\n"));
    assert!(!says(&list, "not JSON"), "{:?}", list.remarks);
    // A fault is told with its place in the line.
    let broken = format!("note\n{}", line.replacen("\"bw\" : 0,", "\"bw\" : ,", 1));
    let at = broken.lines().nth(1).unwrap().find("\"bw\" : ,").unwrap() + 8;
    let message = refused(&broken);
    assert!(message.starts_with(&format!("sample:2:{at}:")), "{message}");
}

#[test]
fn a_tool_can_be_named_for_its_formats() {
    let import_as = |text: &str, name: &str| {
        let wanted = name.parse::<Wanted>().unwrap();
        import(text.as_bytes(), &Source::new("sample").wanted(wanted))
    };
    let json = text_of("raw/fio-3.33-client.json");
    let terse = text_of("raw/fio-3.33-terse-v3.txt");
    assert_eq!(import_as(&json, "fio").unwrap().format, Format::FioJson);
    assert_eq!(import_as(&terse, "fio").unwrap().format, Format::FioTerse);
    let lines = text_of("raw/tiobench.pl-0.3.3.txt");
    assert_eq!(
        import_as(&lines, "tiobench").unwrap().format,
        Format::TiobenchLines
    );
    assert_eq!("bonnie++".parse(), Ok(Wanted::Tool("bonnie++")));
    assert_eq!("HDBENCH".parse(), Ok(Wanted::Tool("HDBENCH clone")));
    assert!("fio-".parse::<Wanted>().unwrap_err().contains("or fio"));
    // Nothing of fio's is there: the message says what would be, and nothing of damage.
    let message = import_as("hello\nworld\n", "fio").unwrap_err().to_string();
    assert!(message.starts_with("sample:1:1: 'hello'"), "{message}");
    assert!(message.contains("--output-format=json"), "{message}");
    // It is another's.
    let message = import_as(&terse, "fio-json").unwrap_err().to_string();
    assert!(
        message.contains("looks like the output of fio (fio-terse)"),
        "{message}"
    );
    let dd = import_as(&text_of("raw/dd-coreutils-9.1.txt"), "hdparm").unwrap_err();
    assert!(dd.remedy.contains("dd"), "{dd}");
}
