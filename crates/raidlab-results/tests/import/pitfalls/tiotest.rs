//! tiotest.
use super::*;

#[test]
fn the_rate_is_the_rate_column_and_never_mb_by_rounded_time() {
    let trial = &taken(&text_of("raw/tiotest-0.3.3.txt")).trials[0];
    // 256 MB in 0.1 s would be 2560 MB/s, and 31 MB in 0.0 s nothing at all.
    same(rate(trial, "read"), 2610.939 * MIB);
    same(rate(trial, "random-read"), 1727.951 * MIB);
    assert_eq!(
        (phase(trial, "read").elapsed_ns, phase(trial, "read").bytes),
        (None, None)
    );
    let terse = &taken(&text_of("raw/tiotest-0.3.3-terse.txt")).trials[0];
    same(rate(terse, "write"), 256.0 * MIB / 0.305_84);
    assert_eq!(phase(terse, "random-write").bytes, Some(32_768_000));
}

#[test]
fn latencies_are_milliseconds_and_shares_per_cent() {
    let trial = &taken(&text_of("raw/tiotest-0.3.3.txt")).trials[0];
    same(figure(phase(trial, "write"), "latency-max"), 0.158_736);
    same(
        figure(phase(trial, "random-write"), "latency-mean"),
        0.000_004,
    );
}

#[test]
fn processor_use_of_several_threads_is_left_out() {
    let text = text_of("raw/tiotest-0.3.3.txt");
    let several = &taken(&text).trials[0];
    let read = phase(several, "read");
    assert_eq!(read.cpu_percent, None);
    assert!(
        read.flags
            .iter()
            .any(|f| f.kind == FlagKind::ToolDefect && !f.voids)
    );
    let one = &taken(&text.replace("for 4 concurrent", "for 1 concurrent")).trials[0];
    same(phase(one, "read").cpu_percent.unwrap(), 242.3);
    same(figure(phase(one, "read"), "cpu-user"), 136.5);
}

#[test]
fn a_random_phase_that_moved_the_whole_file_is_void() {
    // The rate is of the size that is credited.
    let text = text_of("raw/tiotest-0.3.3.txt")
        .replace("31 MBs", "256 MBs")
        .replace("444.081", "3552.648")
        .replace("0.0 s | 1727.951", "0.0 s | 13823.608");
    let imported = taken(&text);
    let trial = &imported.trials[0];
    for name in ["random-write", "random-read"] {
        assert!(!phase(trial, name).is_valid(), "{name}");
    }
    assert!(phase(trial, "write").is_valid() && phase(trial, "read").is_valid());
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("whole file"))
    );
}

#[test]
fn a_latency_table_cut_short_is_refused() {
    let text = text_of("raw/tiotest-0.3.3.txt");
    let cut = text.split("| Read         |").next().unwrap();
    assert!(refused(cut).contains("lower edge of the latency table"));
    let lost = text.replace(
        "| Read         |        0.005 ms |       28.031 ms |  0.00000 |   0.00000 |\n",
        "",
    );
    assert!(
        refused(&lost).contains("a row for Read"),
        "{}",
        refused(&lost)
    );
}

#[test]
fn a_rate_that_is_not_mb_by_time_is_refused() {
    let table = |row: &str| {
        format!(
            "Tiotest results for 1 concurrent io threads:\n\
             ,----------------------------------------------------------------------.\n\
             | Item                  | Time     | Rate         | Usr CPU  | Sys CPU |\n\
             +-----------------------+----------+--------------+----------+---------+\n{row}\n\
             `----------------------------------------------------------------------'\n"
        )
    };
    let row = |size: u32, time: &str, rate: &str| {
        table(&format!(
            "| Write {size:>11} MBs | {time:>6} s | {rate:>7} MB/s |   1.0 %  |   2.0 % |"
        ))
    };
    for (size, time, rate) in [
        (40, "0.1", "400.000"),
        (40, "0.0", "1234.000"),
        (1024, "10.5", "97.971"),
    ] {
        assert_eq!(
            taken(&row(size, time, rate)).trials.len(),
            1,
            "{size} {time} {rate}"
        );
    }
    for (size, time, rate) in [
        (40, "0.1", "40.000"),
        (1024, "10.5", "99.971"),
        (1024, "1.5", "97.971"),
    ] {
        let message = refused(&row(size, time, rate));
        assert!(message.starts_with("sample:5:1:"), "{message}");
        assert!(
            message.contains(&format!("{size} MB by {time} s")),
            "{message}"
        );
    }
}
