//! Text of blkparse.
use super::*;

/// The message of the first line that ends the reading.
fn refused(text: &str) -> String {
    read(Format::Blkparse, text).unwrap_err().to_string()
}

/// Requests, and what was left out.
fn left_out(text: &str) -> (usize, LeftOut) {
    let mut reader = Reader::new(Format::Blkparse, text.lines());
    let records = reader.by_ref().filter(Result::is_ok).count();
    (records, reader.left_out())
}

#[test]
fn blkparse_text_is_read_and_completions_are_paired() {
    let text = "\
  8,0    3        1     1.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     1.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     1.000002197   697  P   N [kjournald]
  8,0    3        4     1.000004000   697  Q   R 100 + 8 [dd]
  8,0    3        5     1.000005000   697  Q   R 108 + 8 [dd]
  8,0    3        6     1.000006000   697  M   R 108 + 8 [dd]
  8,16   3        7     1.000007000   697  Q FWS [fsync]
  8,0    3        8     1.002000000     0  C   R 100 + 16 [0]
  8,0    3        9     1.005000000     0  C   W 223490 + 8 [0]
  8,0    3       10     1.006000000   697  Q   R 500 + 8 [dd]
CPU3 (8,0):
 Reads Queued:           3,       12KiB
";
    assert_eq!(
        shown(Format::Blkparse, text),
        [
            "0 8388608 Write 223490 8 5000",
            "4 8388608 Read 100 8 1996",
            "5 8388608 Read 108 8 1995",
            "7 8388624 Flush 0 0 -",
            "6000 8388608 Read 500 8 -",
        ]
    );
}

/// The first letter of a write's kind is an `F` when a flush goes before it; one behind the `W` makes it durable.
#[test]
fn what_a_write_flushes_is_read() {
    let text = "\
  8,0    0        1     0.000000000   697  Q  WS 0 + 8 [dd]
  8,0    0        2     0.000001000   697  Q FWS 8 + 8 [dd]
  8,0    0        3     0.000002000   697  Q WFS 16 + 8 [dd]
  8,0    0        4     0.000003000   697  Q FWFSM 24 + 8 [jbd2/sda1-8]
  8,0    0        5     0.000004000   697  Q  RA 32 + 8 [dd]
  8,0    0        6     0.000005000   697  Q FN [fsync]
";
    let flushes = |r: Record| (r.kind, r.preflush, r.fua);
    let all: Vec<_> = read(Format::Blkparse, text)
        .unwrap()
        .into_iter()
        .map(flushes)
        .collect();
    assert_eq!(
        all,
        [
            (BlockKind::Write, false, false),
            (BlockKind::Write, true, false),
            (BlockKind::Write, false, true),
            (BlockKind::Write, true, true),
            (BlockKind::Read, false, false),
            (BlockKind::Flush, false, false),
        ]
    );
}

/// The kernel splits what is larger than a device takes at a time (`X`), and each part has a completion of its own, in any order: the
/// request has ended with the last of them.
#[test]
fn a_split_request_ends_with_its_last_part() {
    let text = "\
  8,0    1        1     0.000000000   697  Q   W 4096 + 2048 [dd]
  8,0    1        2     0.000001000   697  X   W 4096 / 5376 [dd]
  8,0    1        3     0.000002000   697  Q   W 6144 + 8 [dd]
  8,0    1        4     0.005000000     0  C   W 5376 + 776 [0]
  8,0    1        5     0.008000000     0  C   W 4096 + 1280 [0]
  8,0    1        6     0.010000000   697  Q   R 0 + 2048 [dd]
  8,0    1        7     0.012000000     0  C   R 0 + 1280 [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        [
            "0 8388608 Write 4096 2048 8000",
            "2 8388608 Write 6144 8 4998",
            "10000 8388608 Read 0 2048 -",
        ]
    );
}

/// The first completion of two requests for the same sectors, or for some of the same, is the older one's.
#[test]
fn a_completion_is_used_up_by_the_oldest_request() {
    let text = "\
  8,0    3        1     0.000000000   697  Q   R 223488 + 8 [a]
  8,0    3        2     0.001000000   698  Q   R 223488 + 8 [b]
  8,0    3        3     0.005000000     0  C   R 223488 + 8 [0]
  8,0    3        4     0.020000000     0  C   R 223488 + 8 [0]
  8,0    3        5     1.000000000   697  Q   R 1000 + 8 [a]
  8,0    3        6     1.001000000   698  Q   R 1004 + 8 [b]
  8,0    3        7     1.005000000     0  C   R 1000 + 8 [0]
  8,0    3        8     1.020000000     0  C   R 1004 + 8 [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        [
            "0 8388608 Read 223488 8 5000",
            "1000 8388608 Read 223488 8 19000",
            "1000000 8388608 Read 1000 8 5000",
            "1001000 8388608 Read 1004 8 19000",
        ]
    );
    // The younger one may be the first to end, and parts may come in any order.
    let text = "\
  8,0    3        1     0.000000000   697  Q   R 1000 + 8 [a]
  8,0    3        2     0.001000000   698  Q   R 1004 + 8 [b]
  8,0    3        3     0.005000000     0  C   R 1004 + 8 [0]
  8,0    3        4     0.020000000     0  C   R 1000 + 8 [0]
  8,0    3        5     1.000000000   697  Q   W 0 + 32 [a]
  8,0    3        6     1.001000000   697  Q   W 16 + 32 [a]
  8,0    3        7     1.002000000     0  C   W 8 + 16 [0]
  8,0    3        8     1.003000000     0  C   W 0 + 8 [0]
  8,0    3        9     1.004000000     0  C   W 24 + 8 [0]
  8,0    3       10     1.005000000     0  C   W 16 + 32 [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        [
            "0 8388608 Read 1000 8 20000",
            "1000 8388608 Read 1004 8 4000",
            "1000000 8388608 Write 0 32 4000",
            "1001000 8388608 Write 16 32 4000",
        ]
    );
}

/// Half of a line is no flush, and neither is a request of nothing that is not marked as one.
#[test]
fn a_request_without_its_extent_is_counted() {
    let text = "\
  8,0 3 1 0.000000000 697 Q R 0 + 8 [a]
  8,0 3 2 0.001000000 697 Q R 80000 8 [a]
  8,0 3 3 0.002000000 697 Q R 80000 / 800 [a]
  8,0 3 4 0.003000000 697 Q R 80000 + 0 [a]
  8,0 3 5 0.004000000 697 Q WS [a]
  8,0 3 6 0.005000000 697 Q FWS [a]
  8,0 3 7 0.006000000 697 Q FN [a]
  8,0 3 8 0.007000000 697 Q F 0 + 0 [a]
  8,0 3 9 0.008000000 697 Q FWS 80000
  8,0 3 10 0.009000000 697 Q q 80000 + 8 [a]
  8,0 3 11 0.01 697 Q R";
    let read = read(Format::Blkparse, text).unwrap();
    let kinds: Vec<BlockKind> = read.iter().map(|record| record.kind).collect();
    let flush = BlockKind::Flush;
    assert_eq!(kinds, [BlockKind::Read, flush, flush, flush]);
    let (_, left_out) = left_out(text);
    assert_eq!((left_out.unread, left_out.first), (7, Some(2)));
}

/// Flushes end with completions of nothing, which newer kernels do not mark.
#[test]
fn completions_of_flushes_are_found() {
    let text = "\
  8,0    3        1     0.000000000   697  Q FWS [a]
  8,0    3        2     0.001000000   697  Q FWS [b]
  8,0    3        3     0.002000000   697  Q FWFS 2000 + 8 [a]
  8,0    3        4     0.003000000     0  C FWS 0 [0]
  8,0    3        5     0.004000000     0  C  WS 0 [0]
  8,0    3        6     0.009000000     0  C  WFS 2000 + 8 [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        [
            "0 8388608 Flush 0 0 3000",
            "1000 8388608 Flush 0 0 3000",
            "2000 8388608 Write 2000 8 7000",
        ]
    );
}

/// What neither reads nor writes nor flushes is told apart from discards: zeroes without data, commands of programs, zones.
#[test]
fn requests_of_other_kinds_are_counted() {
    let text = "\
  8,0 3 1 0.000000000 697 Q R 0 + 8 [a]
  8,0 3 2 0.100000000 697 Q N 1000 + 2048 [a]
  8,0 3 3 0.200000000 0 C N 1000 + 2048 [0]
  8,0 3 4 0.300000000 697 Q DS 0 + 64 [a]
";
    let counted = LeftOut {
        discards: 1,
        others: 1,
        ..LeftOut::default()
    };
    assert_eq!(left_out(text), (1, counted));
}

#[test]
fn a_size_that_no_request_has_is_refused() {
    insta::assert_snapshot!(refused("  8,0 3 1 0.0 697 Q R 100 + 8388609 [a]\n"), @"1:29: '8388609' is not a size below 4 GiB: correct or remove the line");
    insta::assert_snapshot!(refused("  8,0 3 1 0.0 697 Q R 18446744073709551615 + 8 [a]\n"), @"1:23: '18446744073709551615' is not a block below 2^55: correct or remove the line");
}

/// blkparse names its input first, a line for each processor.
#[test]
fn what_blkparse_says_of_its_input_is_no_request() {
    let text = "\
Input file sda.blktrace.0 added
Input file sda.blktrace.1 added
  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [a]
  8,0    3        2     0.005000000     0  C   R 223490 + 8 [0]
";
    assert_eq!(
        shown(Format::Blkparse, text),
        ["0 8388608 Read 223490 8 5000"]
    );
    assert_eq!(left_out(text), (1, LeftOut::default()));
}
