//! GNU dd.
use super::*;
use raidlab_results::import::{Imported, detect};

const REPORT: &str = "3+0 records in\n3+0 records out\n";

#[test]
fn the_rate_is_computed_and_units_are_decimal() {
    let imported = taken(&text_of("raw/dd-coreutils-9.1.txt"));
    same(
        rate(&imported.trials[3], "copy"),
        3_145_728.0 / 0.000_460_682,
    );
    let old = taken(&text_of("samples/dd-older.txt"));
    // 51.9 MB/s are 51.9 times 10^6.
    same(rate(&old.trials[0], "write"), 41_943_040.0 / 0.807_441);
}

/// As coreutils prints it, up to 9.1.
#[test]
fn reports_in_any_language_are_read() {
    let chinese = "记录了1024+0 的读入\n记录了1024+0 的写出\n";
    let later = "输入了 1024+0 块记录\n输出了 1024+0 块记录\n";
    for (records, end) in [
        (
            chinese,
            "1073741824字节(1.1 GB，1.0 GiB)已复制，2.34567 s，458 MB/s",
        ),
        (
            chinese,
            "1073741824字节(1.1 GB)已复制，2.34567 秒，458 MB/秒",
        ),
        (
            later,
            "1073741824 字节 (1.1 GB, 1.0 GiB) 已复制，2.34567 s，458 MB/s",
        ),
        (
            "1024+0 Datensätze ein\n1024+0 Datensätze aus\n",
            "1073741824 Bytes (1,1 GB, 1,0 GiB) kopiert, 2,34567 s, 458 MB/s",
        ),
        (
            "1024+0 enregistrements lus\n1024+0 enregistrements écrits\n",
            "1073741824 octets (1,1 GB, 1,0 GiB) copiés, 2,34567 s, 458 MB/s",
        ),
        (
            "1024+0 записів прочитано\n1024+0 записів записано\n",
            "скопійовано 1073741824 байтів (1,1 GB, 1,0 GiB), 2,34567 s, 458 MB/s",
        ),
        (
            "1024+0 records gelezen\n1024+0 records geschreven\n",
            "1073741824 bytes (1,1 GB, 1,0 GiB) gekopieerd, 2,34567 s, 458 MB/s",
        ),
        (
            "1024+0 records in\n1024+0 records out\n",
            "1073741824 bytes (1,1 GB, 1,0 GiB) copied, 2,34567 s, 458 MB/s",
        ),
    ] {
        let report = format!("{records}{end}\n");
        assert_eq!(detect(&report), Some(Format::Dd), "{report}");
        let imported = taken(&report);
        assert_eq!(imported.trials.len(), 1);
        same(
            rate(&imported.trials[0], "copy"),
            1_073_741_824.0 / 2.345_67,
        );
        // `status=progress` in the same language is no result.
        let progress = end.replace("2.34567", "1").replace("2,34567", "1");
        assert_eq!(
            taken(&format!("\r{progress}\r{progress}\n{report}"))
                .trials
                .len(),
            1
        );
        // What does not fit together was not understood.
        let wrong = refused(&report.replace("458 MB", "45,8 MB"));
        assert!(
            wrong.starts_with("sample:3:") && wrong.contains("LC_ALL=C"),
            "{wrong}"
        );
    }
    let short = "3+0 enregistrements lus\n3+0 enregistrements écrits\n2997 octets (3,0 kB, 2,9 KiB) copiés, 3,2217e-05 s, 93,0 MB/s\n";
    same(rate(&taken(short).trials[0], "copy"), 2997.0 / 3.2217e-05);
}

#[test]
fn what_no_language_says_is_refused_with_the_remedy() {
    let cut = refused("3+0 Datensätze ein\n3+0 Datensätze aus\n");
    assert!(cut.contains("status=noxfer"), "{cut}");
    let grouped = "1024+0 Datensätze ein\n1024+0 Datensätze aus\n1.073.741.824 Bytes (1,1 GB) kopiert, 2,34567 s, 458 MB/s\n";
    let message = refused(grouped);
    assert!(
        message.starts_with("sample:3:") && message.contains("LC_ALL=C"),
        "{message}"
    );
}

/// Runs of one command each, which took as long as each other.
fn runs(commands: &[&str]) -> Imported {
    let report = "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.34567 s, 458 MB/s\n";
    let runs = commands
        .iter()
        .map(|command| format!("+ {command}\n{report}"));
    taken(&runs.collect::<String>())
}

#[test]
fn what_the_command_line_asks_for_makes_cells() {
    let write = "dd if=/dev/zero of=/mnt/x bs=1M count=1024";
    let others = [
        "conv=fdatasync",
        "conv=fsync",
        "oflag=direct",
        "oflag=dsync",
        "oflag=direct,dsync",
        "conv=notrunc",
        "seek=1024",
        "seek=2048",
        "oflag=nocache",
        "iflag=fullblock",
    ];
    let commands: Vec<String> = others
        .iter()
        .map(|more| format!("{write} {more}"))
        .collect();
    let mut commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    commands.push(write);
    let imported = runs(&commands);
    assert_eq!(imported.trials.len(), commands.len());
    for (trial, command) in imported.trials.iter().zip(&commands) {
        assert_eq!(trial.round, 0, "{command}: {:?}", trial.cell.factors);
    }
    let factor = |at: usize, name: &str| imported.trials[at].cell.factors.get(name).cloned();
    // As the profile of dd names them.
    assert_eq!(factor(0, "conv").as_deref(), Some("fdatasync"));
    assert_eq!(factor(2, "direct").as_deref(), Some("yes"));
    assert_eq!(factor(2, "conv").as_deref(), Some("none"));
    assert_eq!(factor(3, "oflag").as_deref(), Some("dsync"));
    assert_eq!(factor(4, "oflag").as_deref(), Some("dsync"));
    assert_eq!(factor(6, "offset").as_deref(), Some("1073741824"));
    assert_eq!(factor(10, "direct").as_deref(), Some("no"));
    // However it is written.
    let same = runs(&[
        "dd if=/dev/zero of=/mnt/x bs=1M count=1024 oflag=direct,dsync",
        "dd oflag=dsync oflag=direct if=/dev/zero bs=1024k of=/mnt/x count=1024",
    ]);
    assert_eq!(same.trials[1].round, 1);
}

#[test]
fn reads_and_blocks_of_either_side_make_cells() {
    let read = "dd if=/dev/sdx of=/dev/null";
    let others = [
        "bs=1M",
        "bs=1M iflag=direct",
        "ibs=1M",
        "ibs=1M obs=64k",
        "bs=1M skip=64",
        "",
    ];
    let commands: Vec<String> = others.iter().map(|more| format!("{read} {more}")).collect();
    let imported = runs(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    let factor = |at: usize, name: &str| imported.trials[at].cell.factors.get(name).cloned();
    assert_eq!(factor(1, "direct").as_deref(), Some("yes"));
    assert_eq!(factor(2, "block-size").as_deref(), Some("1048576"));
    assert_eq!(factor(3, "obs").as_deref(), Some("65536"));
    assert_eq!(factor(4, "offset").as_deref(), Some("67108864"));
    assert_eq!(factor(5, "block-size").as_deref(), Some("512"));
    assert_eq!(factor(0, "conv"), None);
    // `ibs=1M` alone is a read of the blocks of `bs=1M`.
    assert_eq!(imported.trials[2].round, 1);
    assert_eq!(imported.trials[3].round, 0);
    let sent = runs(&[
        "dd if=/dev/sdx bs=1M > /dev/null",
        "dd if=/dev/sdx bs=1M >/dev/null",
    ]);
    assert_eq!(sent.trials[1].round, 1);
    same(rate(&sent.trials[0], "read"), 1_073_741_824.0 / 2.345_67);
}

#[test]
fn a_write_and_a_read_of_one_thing_are_one_trial_whatever_is_of_one_side() {
    let imported = runs(&[
        "dd if=/dev/zero of=/mnt/x bs=1M count=1024 conv=fdatasync oflag=direct",
        "dd if=/mnt/x of=/dev/null bs=1M count=1024 iflag=direct",
        "dd if=/dev/zero of=/mnt/x bs=1M count=1024 conv=fdatasync oflag=direct",
        "dd if=/mnt/x of=/dev/null bs=1M count=1024",
    ]);
    let phases: Vec<usize> = imported.trials.iter().map(|t| t.phases.len()).collect();
    assert_eq!(phases, [2, 1, 1]);
    assert_eq!(imported.trials[0].cell.factors["conv"], "fdatasync");
    assert_eq!(imported.trials[2].cell.factors["direct"], "no");
}

#[test]
fn noxfer_leaves_nothing_to_import() {
    assert!(refused(REPORT).contains("status=noxfer"));
    assert!(refused(&format!("{REPORT}{REPORT}")).contains("status=noxfer"));
}

#[test]
fn progress_lines_are_not_results() {
    let imported = taken(&text_of("samples/dd-progress.txt"));
    assert_eq!(imported.trials.len(), 1);
    same(
        rate(&imported.trials[0], "read"),
        1_073_741_824.0 / 2.001_36,
    );
    let old = taken(&text_of("samples/dd-older.txt"));
    assert!(old.remarks.iter().any(|r| r.text.contains("SIGUSR1")));
    assert_eq!(rate(&old.trials[1], "write").round(), 50_000_048.0);
    // Without the last report, the one on the way is all there is.
    let text = text_of("samples/dd-older.txt");
    let cut = taken(text.split("250+0").next().unwrap());
    assert!(!phase(&cut.trials[1], "write").is_valid());
}

#[test]
fn no_time_is_no_rate() {
    for end in [
        "0 bytes copied, 0.000172 s, 0.0 kB/s",
        "512 bytes copied, 0 s, Infinity B/s",
        "1 byte copied, 0 s, 0.0 kB/s",
    ] {
        let trial = &taken(&format!("{REPORT}{end}\n")).trials[0];
        assert_eq!(phase(trial, "copy").rate, None, "{end}");
        assert_eq!(phase(trial, "copy").flags[0].kind, FlagKind::TooShort);
    }
}

#[test]
fn the_command_line_tells_the_direction_and_pairs_write_and_read() {
    let imported = taken(&text_of("samples/dd-older.txt"));
    let first = &imported.trials[0];
    assert_eq!(first.phases.len(), 2);
    same(rate(first, "read"), 41_943_040.0 / 0.5);
    assert_eq!(first.settings["block-size"], (4096 * 1024).to_string());
    assert_eq!(first.cell.label, "/dev/md0");
}

#[test]
fn truncated_records_and_partial_blocks_are_read() {
    let text =
        "0+3 records in\n0+3 records out\n1 truncated record\n999 bytes copied, 1 s, 1.0 kB/s\n";
    same(rate(&taken(text).trials[0], "copy"), 999.0);
}

#[test]
fn a_rate_that_is_not_bytes_by_seconds_is_refused() {
    let line = |end: &str| format!("{REPORT}1073741824 bytes (1.1 GB, 1.0 GiB) copied, {end}\n");
    for end in [
        "10.5 s, 150 MB/s",
        "10.5 s, 102 kB/s",
        "1.05 s, 102 MB/s",
        "10.5 s, 106 MB/s",
    ] {
        let message = refused(&line(end));
        assert!(message.starts_with("sample:3:1:"), "{message}");
        assert!(
            message.contains("102261126 B/s, which is 1073741824 bytes by 10.5 s")
                || end.starts_with("1.05"),
            "{message}"
        );
        assert!(message.contains("not as dd wrote"), "{message}");
    }
    // Rounded to its last digit; old versions and short times have few of them.
    for (end, seconds) in [
        ("10.5 s, 102 MB/s", 10.5),
        ("10.5 seconds, 102 MB/s", 10.5),
        ("10.4858 s, 102 MB/s", 10.4858),
        ("123.456 s, 8.7 MB/s", 123.456),
        ("1.23457e+06 s, 870 B/s", 1_234_570.0),
        ("0.0335544 s, 32.0 GB/s", 0.033_554_4),
    ] {
        same(
            rate(&taken(&line(end)).trials[0], "copy"),
            1_073_741_824.0 / seconds,
        );
    }
}

#[test]
fn busybox_and_bsd_are_read() {
    let busybox = "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.0GB) copied, 10.500000 seconds, 97.5MB/s\n";
    same(
        rate(&taken(busybox).trials[0], "copy"),
        1_073_741_824.0 / 10.5,
    );
    assert!(refused(&busybox.replace("97.5MB", "97.5 MB")).contains("bytes by"));
    let macos = "+ dd if=/dev/zero of=/tmp/x bs=1m count=1024\n1024+0 records in\n1024+0 records out\n1073741824 bytes transferred in 10.500000 secs (102261126 bytes/sec)\n";
    let imported = taken(macos);
    same(rate(&imported.trials[0], "write"), 1_073_741_824.0 / 10.5);
    assert_eq!(imported.trials[0].settings["block-size"], "1048576");
    assert!(refused(&macos.replace("102261126", "162261126")).starts_with("sample:4:1:"));
}

#[test]
fn a_run_that_ended_with_an_error_is_a_failed_one_and_a_full_device_is_none() {
    let report = "10+0 records in\n10+0 records out\n10485760 bytes (10 MB, 10 MiB) copied, 1 s, 10.5 MB/s\n";
    let after = |line: &str| taken(&format!("+ dd if=/dev/sdx of=/dev/null\n{line}\n{report}"));
    let failed = after("dd: error reading '/dev/sdx': Input/output error");
    assert!(
        matches!(&failed.trials[0].status, Status::Failed { reason } if reason.contains("sdx")),
        "{:?}",
        failed.trials[0].status
    );
    let full = after("dd: error writing '/mnt/x': No space left on device");
    assert_eq!(full.trials[0].status, Status::Complete);
    let flag = &phase(&full.trials[0], "read").flags[0];
    assert!(flag.reason.contains("room") && !flag.voids, "{flag}");
    // One that could not begin has no report, and the next is another's.
    let open = "dd: failed to open '/mnt/x': Permission denied";
    assert_eq!(after(open).trials[0].status, Status::Complete);
}
