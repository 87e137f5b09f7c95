mod blkparse;
mod devices;
mod flawed;
mod replays;

use super::*;
use proptest::prelude::*;

fn read(format: Format, text: &str) -> Result<Vec<Record>, TraceError> {
    Reader::new(format, text.lines()).collect()
}

/// Time in µs, device, kind, first sector, sectors, response in µs.
fn shown(format: Format, text: &str) -> Vec<String> {
    let show = |r: Record| {
        let response = r
            .response
            .map_or("-".to_owned(), |r| (r.0 / 1000).to_string());
        format!(
            "{} {} {:?} {} {} {response}",
            r.at.0 / 1000,
            r.device,
            r.kind,
            r.lba,
            r.sectors
        )
    };
    assert_eq!(Format::detect(text.lines().next().unwrap()), Some(format));
    read(format, text).unwrap().into_iter().map(show).collect()
}

#[test]
fn fio_logs_are_read() {
    let version_3 = "fio version 3 iolog\n2 a add\n872 a open\n878 a write 0 16384\n888 b read 4096 100\n\
        891 a sync 0 0\n900 a trim 0 4096\n10001677 a close\n";
    assert_eq!(
        shown(Format::Fio, version_3),
        ["0 0 Write 0 32 -", "10 1 Read 8 1 -", "13 0 Flush 0 0 -"]
    );
    let version_2 = "fio version 2 iolog\na add\na open\na read 512 1024\na wait 250 0\na write 1000 100\na close\n";
    assert_eq!(
        shown(Format::Fio, version_2),
        ["0 0 Read 1 2 -", "250 0 Write 1 2 -"]
    );
}

/// What another program wrote between the lines, and half of a line, are counted; the summary is not, and discards are told apart.
#[test]
fn what_is_no_request_is_counted() {
    let of = |format, text: &str| {
        let mut reader = Reader::new(format, text.lines());
        let records = reader.by_ref().filter(Result::is_ok).count();
        (records, reader.left_out())
    };
    let text = "\
  8,0    3        1     1.000000000   697  Q   W 223490 + 8 [dd]
WARNING: dropped events
697  Q   R 8 + 8 [dd]
  8,0    3        2     1.000000500   697  Q   D 0 + 64 [fstrim]
  8,0    3        3     1.000000700   697  C   D 0 + 64 [0]
  8,0    3        4     1.000001000   697  Q   R 16 + 8 [dd]
CPU3 (8,0):
 Reads Queued:           3,       12KiB
Throughput (R/W): 1KiB/s / 2KiB/s
";
    let left_out = LeftOut {
        unread: 2,
        first: Some(2),
        discards: 1,
        ..LeftOut::default()
    };
    assert_eq!(of(Format::Blkparse, text), (2, left_out));
    let log = "fio version 3 iolog\n2 a add\n3 a trim 0 4096\n4 a read 0 4096\n5 a close\n";
    let left_out = LeftOut {
        discards: 1,
        ..LeftOut::default()
    };
    assert_eq!(of(Format::Fio, log), (1, left_out));
    let rows = "5 0 1 8 1\n5 0 2 8 1\n";
    assert_eq!(of(Format::DiskSim, rows), (2, LeftOut::default()));
}

#[test]
fn rows_are_read() {
    assert_eq!(
        shown(
            Format::Spc,
            "0,20941264,8192,W,0.551706\n1,20939840,512,r,0.554041,x\n"
        ),
        ["0 0 Write 20941264 16 -", "2335 1 Read 20939840 1 -"]
    );
    let msr = "128166372003061629,hm,1,Read,383496192,32768,113736\n128166372013061629,hm,0,Write,512,1,5\n";
    assert_eq!(
        shown(Format::Msr, msr),
        ["0 1 Read 749016 64 11373", "1000000 0 Write 1 1 0"]
    );
    assert_eq!(
        shown(
            Format::DiskSim,
            "5.25 0 1000 8 1\n 10.5 2 2000 16 0 12.125\n"
        ),
        ["0 0 Read 1000 8 -", "5250 2 Write 2000 16 12125"]
    );
}

#[test]
fn requests_are_put_into_the_order_of_their_times() {
    // The first line is not the first request; two at the same time stay as they were.
    let text = "7.0 0 7 8 1\n5.0 0 5 8 1\n9.0 0 9 8 1\n8.0 0 80 8 1\n8.0 0 81 8 1\n";
    let mut reader = Reader::new(Format::DiskSim, text.lines());
    let records: Vec<Record> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let seen: Vec<(u64, u64)> = records.iter().map(|r| (r.at.0 / 1000, r.lba)).collect();
    assert_eq!(seen, [(0, 5), (2000, 7), (3000, 80), (3000, 81), (4000, 9)]);
    assert_eq!(reader.out_of_order(), 3);
    let mut in_order = Reader::new(Format::DiskSim, "5 0 1 8 1\n5 0 2 8 1\n6 0 3 8 1\n".lines());
    assert_eq!(in_order.by_ref().count(), 3);
    assert_eq!(in_order.out_of_order(), 0);
    // What is before an error is given first.
    let broken = Reader::new(Format::DiskSim, "5 0 1 8 1\n4 0 2 8 1\n6 0\n".lines());
    let given: Vec<bool> = broken.map(|record| record.is_ok()).collect();
    assert_eq!(given, [true, true, false]);
}

#[test]
fn a_request_too_far_from_its_place_is_refused_with_its_line() {
    let mut lines: Vec<String> = (0..140_000)
        .map(|i| format!("{}.0 0 {i} 8 1", 100 + i))
        .collect();
    lines.push("3.0 0 1 8 1".to_owned());
    lines.push("200000.0 0 1 8 1".to_owned());
    let given: Result<Vec<Record>, _> = Reader::new(Format::DiskSim, lines.iter()).collect();
    assert_eq!(
        given.unwrap_err().to_string(),
        "140001:1: this request came before others that are far above it: sort the trace by time, or split the file where a \
         second trace begins"
    );
    // Near enough it is put where it belongs.
    let late = lines.remove(140_000);
    lines.insert(50_000, late);
    let given: Result<Vec<Record>, _> = Reader::new(Format::DiskSim, lines.iter()).collect();
    let given = given.unwrap();
    assert_eq!((given[0].at.0, given[0].lba), (0, 1));
    assert_eq!(given.len(), 140_002);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        (Format::Fio, "fio version 4 iolog\n"),
        (Format::Fio, "fio version 3 iolog\n10 a wait 5 5\n"),
        (Format::Fio, "fio version 3 iolog\n10 a read 5\n"),
        (Format::Blkparse, "hello world\n"),
        (Format::Blkparse, "8,0 1 1 abc 5 Q R 5 + 5 [x]\n"),
        (Format::Spc, "0,1,512,R,1.0\n0,1,512,X,1.0\n"),
        (Format::Spc, "0,1,0,R,1.0\n"),
        (Format::Msr, "1,h,0,Read,0,512\n"),
        (Format::Msr, "1,h,0,Peek,0,512,1\n"),
        (Format::DiskSim, "-1 0 0 8 1\n"),
        (Format::DiskSim, "1 0 99999999999999999999 8 1\n"),
        (Format::DiskSim, "1 0 0 8 zz\n"),
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|(format, text)| read(*format, text).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    1:13: '4' is not the heading 'fio version 2 iolog' or 'fio version 3 iolog': correct or remove the line
    2:6: 'wait' is not an action of fio's log: correct or remove the line
    2:12: the length is missing at the end of the line: correct or remove the line
    1:1: 'hello' is not a device such as 8,0: correct or remove the line
    1:9: 'abc' is not a time in seconds, a decimal number that is not negative: correct or remove the line
    2:9: 'X' is not an opcode, R or W: correct or remove the line
    1:5: '0' is not a size that a request can have: correct or remove the line
    1:17: the response time is missing at the end of the line: correct or remove the line
    1:7: 'Peek' is not a type, Read or Write: correct or remove the line
    1:1: '-1' is not a time in milliseconds, a decimal number that is not negative: correct or remove the line
    1:5: '99999999999999999999' is not a block, a whole number: correct or remove the line
    1:9: 'zz' is not flags in hexadecimal, 1 for a read: correct or remove the line
    ");
}

#[test]
fn demerit_is_the_distance_of_the_distributions() {
    // All a tenth longer: every quantile is off by a tenth of itself.
    let mut measured: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
    let mut predicted: Vec<u64> = measured.iter().rev().map(|t| t * 11 / 10).collect();
    let demerit = Demerit::of(&mut measured, &mut predicted).unwrap();
    let rms = (measured
        .iter()
        .map(|t| (*t as f64 / 10.0).powi(2))
        .sum::<f64>()
        / 1000.0)
        .sqrt();
    assert!((demerit.rms / rms - 1.0).abs() < 1e-9);
    assert!((demerit.predicted_mean / demerit.measured_mean - 1.1).abs() < 1e-9);
    assert_eq!(Demerit::of(&mut [], &mut []), None);
    assert_eq!(Demerit::of(&mut [1], &mut [1, 2]), None);
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,60}(\n\\PC{0,60}){0,3}", number in 0_usize..5) {
        let _ = read(Format::ALL[number].1, &text);
        let _ = text.lines().next().and_then(Format::detect);
    }

    #[test]
    fn nearly_right_text_makes_no_reader_panic(
        text in "((fio version [0-9] iolog|[0-9]{1,20},?[0-9.]{0,9}|[RWQCDF+,. \\[-]|read|write|wait|sync|\n){1,2}[ ,]?){1,40}",
        number in 0_usize..5,
    ) {
        let _ = read(Format::ALL[number].1, &text);
    }

    #[test]
    fn disksim_rows_come_back(rows in prop::collection::vec((0_u64..1 << 40, 0_u32..9, 0_u64..1 << 40, 1_u32..4096, any::<bool>()), 1..30)) {
        let mut rows = rows;
        rows.sort_unstable();
        let line = |(at, device, lba, sectors, is_read): &(u64, u32, u64, u32, bool)| {
            format!("{}.{:06} {device} {lba} {sectors} {}\n", at / 1_000_000, at % 1_000_000, u8::from(*is_read))
        };
        let text: String = rows.iter().map(line).collect();
        let records = read(Format::DiskSim, &text).unwrap();
        let got: Vec<_> = records
            .iter()
            .map(|r| (r.at.0 + rows[0].0, r.device, r.lba, r.sectors, r.kind == BlockKind::Read))
            .collect();
        prop_assert_eq!(got, rows);
    }
}
