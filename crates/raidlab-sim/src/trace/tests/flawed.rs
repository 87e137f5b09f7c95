//! What a trace has beside requests that can be compared: commands, failures, and another trace below it.
use super::*;

/// The message of the first line that ends the reading.
fn refused(format: Format, text: &str) -> String {
    read(format, text).unwrap_err().to_string()
}

fn left_out(text: &str) -> LeftOut {
    let mut reader = Reader::new(Format::Blkparse, text.lines());
    assert!(reader.by_ref().all(|record| record.is_ok()));
    reader.left_out()
}

/// SG_IO of smartctl and the like: inserted, issued, and ended with their bytes, or without them on newer kernels. They move
/// nothing of what is modelled, and end no flush.
#[test]
fn commands_of_programs_are_left_out_and_counted_once() {
    let text = "\
  8,0    1        1     0.000000000   123  Q FWS [a]
  8,0    1        2     0.000100000   123  I   R 36 (12 00 00 00 24 00 ..) [smartctl]
  8,0    1        3     0.000200000   123  D   R 36 (12 00 00 00 24 00 ..) [smartctl]
  8,0    1        4     0.000500000   123  C   R (12 00 00 00 24 00 ..) [0]
  8,0    1        5     0.000600000   123  I   N 0 (35 00 ..) [smartd]
  8,0    1        6     0.000700000   123  C   N (35 00 ..) [0]
  8,0    1        7     0.000800000   123  C   N [0]
  8,16   1        1     0.000850000   123  C   N [0]
  8,0    1        8     0.000900000   123  Q   R 100 + 8 [dd]
  8,0    1        9     0.001000000     0  C  WS 0 [0]
  8,0    1       10     0.002000000     0  C   R 100 + 8 [0]
";
    let all = shown(Format::Blkparse, text);
    assert_eq!(
        all,
        ["0 8388608 Flush 0 0 1000", "900 8388608 Read 100 8 1100"]
    );
    assert_eq!(
        left_out(text),
        LeftOut {
            others: 4,
            ..LeftOut::default()
        }
    );
    let mut one = Reader::new(Format::Blkparse, text.lines());
    one.only(&"8,0".parse().unwrap()).unwrap();
    assert_eq!(one.by_ref().count(), 2);
    assert_eq!(
        one.left_out().others,
        3,
        "those of another device are left out with it"
    );
}

/// blkparse -t adds the time that a request took, in parentheses.
#[test]
fn times_in_parentheses_are_no_commands() {
    let text = "\
  8,0    1        1     0.000000000   123  Q FWS [a]
  8,0    1        2     0.000100000   123  Q   R 100 + 8 [dd]
  8,0    1        3     0.001000000     0  C  WS 0 (     900) [0]
  8,0    1        4     0.002000000     0  C   R 100 + 8 (    1900) [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        ["0 8388608 Flush 0 0 1000", "100 8388608 Read 100 8 1900"]
    );
    assert_eq!(left_out(text), LeftOut::default());
}

/// The time until an error is not that of the request: of a part of a split one neither. blkparse prints -5 (EIO) as 65531.
#[test]
fn failed_requests_have_no_measured_time() {
    let text = "\
  8,0    1        1     0.000000000   123  Q   R 100 + 8 [dd]
  8,0    1        2     0.000001000   123  Q   R 200 + 8 [dd]
  8,0    1        3     0.000002000   123  Q   W 4096 + 2048 [dd]
  8,0    1        4     0.000003000   123  Q FWS [dd]
  8,0    1        5     0.000004000   123  Q   R 300 + 8 [dd]
  8,0    1        6     0.000005000   123  Q   R 308 + 8 [dd]
  8,0    1        7     0.000006000   123  Q   R 400 + 8 [dd]
  8,16   1        7     0.000006500   123  Q   R 400 + 8 [dd]
  8,0    1        8     0.001000000     0  C   R 100 + 8 [65531]
  8,0    1        9     0.002000000     0  C   R 200 + 8 [-5]
  8,0    1       10     0.003000000     0  C   W 4096 + 1280 [65531]
  8,0    1       11     0.004000000     0  C   W 5376 + 768 [0]
  8,0    1       12     0.005000000     0  C FWS 0 [65531]
  8,0    1       13     0.006000000     0  C   R 300 + 16 [5]
  8,0    1       14     0.007006000     0  C   R 400 + 8 (   7000) [0]
  8,16   1       15     0.007006500     0  C   R 400 + 8 [5]
";
    let times: Vec<String> = shown(Format::Blkparse, text)
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(times, ["-", "-", "-", "-", "-", "-", "7000", "-"]);
    assert_eq!(
        left_out(text),
        LeftOut {
            failed: 7,
            ..LeftOut::default()
        }
    );
    let mut one = Reader::new(Format::Blkparse, text.lines());
    one.only(&"8,0".parse().unwrap()).unwrap();
    assert_eq!(one.by_ref().count(), 7);
    assert_eq!(one.left_out().failed, 6);
}

const FIRST: &str = "\
  8,0    0        1     0.000000000   123  Q   R 100 + 8 [dd]
  8,0    1        1     0.000500000   123  Q   R 200 + 8 [dd]
  8,0    0        2     0.001000000     0  C   R 100 + 8 [0]
  8,0    0        3     0.900000000   123  Q   R 300 + 8 [dd]
";
const SUMMARY: &str = "\
CPU0 (8,0):
 Reads Queued:           3,       12KiB
Total (8,0):
Events (8,0): 4 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn a_second_trace_is_not_laid_over_the_first() {
    // What blkparse says of its input comes through another buffer, wherever that is emptied.
    let input = "Input file sda.blktrace.0 added\n";
    let once = format!("{input}{FIRST}{input}{SUMMARY}{input}");
    assert_eq!(read(Format::Blkparse, &once).unwrap().len(), 3);
    let twice = format!("{FIRST}{SUMMARY}{FIRST}{SUMMARY}");
    insta::assert_snapshot!(refused(Format::Blkparse, &twice), @"10:1: a second trace begins here, below the summary of the one above, and its times begin again: split the file and replay each by itself");
    // Without a summary (-q) the processors' numbers tell.
    let twice = format!("{FIRST}{FIRST}");
    insta::assert_snapshot!(refused(Format::Blkparse, &twice), @"5:1: a second trace begins here, where number and time of this processor go back, and its times begin again: split the file and replay each by itself");
    let log = "fio version 3 iolog\n2 a add\n872 a open\n878 a write 0 16384\n900 a close\n";
    insta::assert_snapshot!(refused(Format::Fio, &format!("{log}{log}")), @"6:1: a second log begins here, and its times begin again (fio adds to the file that write_iolog names): split the file and replay each by itself; jobs that run together need a file each");
    let log = "fio version 2 iolog\na add\na open\na write 0 16384\na close\n";
    insta::assert_snapshot!(refused(Format::Fio, &format!("{log}{log}")), @"6:1: a second log begins here, and its times begin again (fio adds to the file that write_iolog names): split the file and replay each by itself; jobs that run together need a file each");
}

/// Each device has its own numbers, and events of several processors come a little out of order; a number may be one of a notice.
#[test]
fn devices_and_processors_of_one_trace_are_one_trace() {
    let text = "\
  8,0    0        7     0.100000000   123  Q   R 100 + 8 [dd]
  8,16   0        1     0.100100000   123  Q   R 100 + 8 [dd]
  8,0    1        3     0.100050000   123  Q   R 200 + 8 [dd]
  8,16   1        1     0.000900000   123  Q   R 300 + 8 [dd]
  8,0    0        0     0.200000000   123  m   N cfq123 insert_request
  8,0    0        8     0.200000000   123  Q   R 500 + 8 [dd]
  8,16   0        2     0.200100000   123  Q   R 500 + 8 [dd]
";
    let mut reader = Reader::new(Format::Blkparse, text.lines());
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 6);
    assert_eq!(reader.out_of_order(), 2);
    let log = "fio version 3 iolog\n2 a add\n3 fio add\n4 a open\n5 fio open\n6 a write 0 512\n7 fio read 0 512\n8 fio sync_file_range 0 512\n\
               9 a close\n10 a open\n11 a syncfs 0 0\n12 a close\n13 fio close\n";
    let mut reader = Reader::new(Format::Fio, log.lines());
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 3);
    assert_eq!(reader.left_out().others, 1);
}

/// Arrivals of a device that has no completions wait until there are many younger ones, and are not looked through for each of another.
#[test]
fn a_device_without_completions_holds_nothing_up() {
    let line = |at: u64, device: &str, rest: String| format!("{device} 0 {at} 0.{at:09} 1 {rest}");
    let lines = (0..150_000_u64).flat_map(|i| {
        [
            line(3 * i, "9,0", format!("Q R {} + 8 [a]", 8 * i)),
            line(3 * i + 1, "8,0", format!("Q R {} + 8 [a]", 8 * i)),
            line(3 * i + 2, "8,0", format!("C R {} + 8 [0]", 8 * i)),
        ]
    });
    let records: Vec<Record> = Reader::new(Format::Blkparse, lines)
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(records.len(), 300_000);
    let known = records.iter().filter(|record| record.response.is_some());
    assert_eq!(known.count(), 150_000);
}
