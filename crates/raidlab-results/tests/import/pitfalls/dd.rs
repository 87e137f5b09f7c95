//! GNU dd.
use super::*;

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

#[test]
fn another_locale_is_refused_with_the_remedy() {
    for (text, line) in [
        (
            "3+0 enregistrements lus\n3+0 enregistrements écrits\n2997 octets (3,0 kB, 2,9 KiB) copiés, 3,2217e-05 s, 93,0 MB/s\n",
            1,
        ),
        ("3+0 Datensätze ein\n3+0 Datensätze aus\n", 1),
        (
            "3+0 records in\n3+0 records out\n2997 bytes (3,0 kB, 2,9 KiB) copied, 3,2217e-05 s, 93,0 MB/s\n",
            3,
        ),
    ] {
        let message = refused(text);
        assert!(message.contains("LC_ALL=C"), "{message}");
        assert!(message.starts_with(&format!("sample:{line}:")), "{message}");
    }
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
