//! hdparm.
use super::*;

#[test]
fn mb_is_2_20_bytes_and_kb_1024() {
    let imported = taken(&text_of("raw/hdparm-tT.txt"));
    same(rate(&imported.trials[0], "buffered-read"), 232.87 * MIB);
    same(rate(&imported.trials[0], "cached-read"), 1124.04 * MIB);
    let slow = &taken(&text_of("samples/hdparm-errors.txt")).trials[1];
    same(rate(slow, "buffered-read"), 637.45 * KIB);
}

#[test]
fn direct_reads_are_phases_of_their_own() {
    let trial = &taken(&text_of("raw/hdparm-direct-tT.txt")).trials[0];
    same(rate(trial, "direct-cached-read"), 5614.01 * MIB);
    same(rate(trial, "direct-read"), 4569.47 * MIB);
    assert_eq!(
        phase(trial, "direct-read").flags[0].kind,
        FlagKind::TooShort
    );
}

#[test]
fn errors_within_a_line_are_kept_apart_from_the_figures() {
    let imported = taken(&text_of("samples/hdparm-errors.txt"));
    assert_eq!(phase(&imported.trials[2], "buffered-read").rate, None);
    let reason = &phase(&imported.trials[2], "buffered-read").flags[0].reason;
    assert!(reason.contains("device too small"), "{reason}");
    let split = "/dev/sda:\n Timing buffered disk reads:  BLKFLSBUF failed: Permission denied\n 256 MB in  1.10 seconds = 232.87 MB/sec\n";
    same(rate(&taken(split).trials[0], "buffered-read"), 232.87 * MIB);
}

#[test]
fn figures_that_contradict_each_other_are_refused() {
    let text = text_of("raw/hdparm-tT.txt").replace("232.87", "332.87");
    assert!(
        refused(&text).starts_with("sample:4:30:"),
        "{}",
        refused(&text)
    );
}

#[test]
fn a_repeated_device_is_a_further_round() {
    let text = text_of("raw/hdparm-tT.txt");
    let twice = taken(&format!("{text}{text}"));
    assert_eq!([twice.trials[0].round, twice.trials[1].round], [0, 1]);
    assert_ne!(twice.trials[0].id, twice.trials[1].id);
}

/// Up to 5.x, cached reads were called after the buffer cache, and a rate of three digits follows its sign.
#[test]
fn buffer_cache_reads_of_old_versions_are_cached_reads() {
    let text = "\n/dev/hda:\n Timing buffer-cache reads:   128 MB in  0.44 seconds =290.91 MB/sec\n Timing buffered disk reads:  64 MB in  8.11 seconds =  7.89 MB/sec\n";
    let trial = &taken(text).trials[0];
    same(rate(trial, "cached-read"), 290.91 * MIB);
    same(rate(trial, "buffered-read"), 64.0 / 8.11 * MIB);
    let wrong = text.replace("290.91", "390.91");
    assert!(
        refused(&wrong).starts_with("sample:3:31:"),
        "{}",
        refused(&wrong)
    );
}

/// A rate of three digits is less than seconds of three that begin with a higher one; neither is left
/// for what is less.
#[test]
fn a_slow_disk_has_its_rate_by_the_seconds() {
    for (line, wanted) in [
        ("8 MB in  3.12 seconds =   2.56 MB/sec", 8.0 / 3.12),
        ("2 MB in  2.01 seconds =   1.00 MB/sec", 2.0 / 2.01),
        ("6 MB in  4.00 seconds =   1.50 MB/sec", 1.5),
        ("16 MB in  3.00 seconds =   5.33 MB/sec", 5.33),
        ("4 MB in 31.99 seconds = 128.04 kB/sec", 128.04 / 1024.0),
        ("650 MB in  3.00 seconds = 216.42 MB/sec", 216.42),
    ] {
        let text = format!("/dev/sda:\n Timing buffered disk reads:   {line}\n");
        let found = rate(&taken(&text).trials[0], "buffered-read");
        assert!(
            (found / (wanted * MIB) - 1.0).abs() < 1e-9,
            "{line}: {}",
            found / MIB
        );
    }
}
