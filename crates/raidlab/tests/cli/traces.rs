//! `raidlab replay`.
use crate::lab::{Lab, ended, program};
use crate::models::DISK;
use std::process::Command;

/// Arrivals in ms, device, block, blocks, 1 for a read, measured ms.
const DISKSIM: &str = "\
0.0 0 1000 8 1 9.5
20.0 0 9000000 8 1 12.0
40.0 1 500 8 0 1.0
60.0 0 15000000 16 1 14.0
";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("small.toml", DISK);
    lab.write("trace", DISKSIM);
    lab
}

/// Rows of the response times without the header.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("index,arrival_ms,device,kind,lba,sectors,response_ms,measured_ms,error,moved_to")
    );
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    lines.map(cells).collect()
}

#[test]
fn response_times_go_to_standard_output() {
    let lab = lab();
    let ran = lab.run("replay trace --disk small.toml").done().says(&[
        "trace (disksim) on small: 4 requests",
        "1.00 in flight while there were any",
        "relative demerit",
    ]);
    let rows = rows(&ran.out);
    assert_eq!(rows.len(), 4);
    let kinds: Vec<&str> = rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(kinds, ["read", "read", "write", "read"]);
    for row in &rows {
        let response: f64 = row[6].parse().expect("a time");
        assert!((0.01..40.0).contains(&response), "{row:?}");
        assert_eq!(row[8], "", "no error");
    }
    assert_eq!(rows[1][7], "12.000000", "the measured time is beside it");
    // The same seed gives the same times, another one others.
    let again = lab.run("replay trace --disk small.toml").done();
    assert_eq!(again.out, ran.out);
    let other = lab.run("replay trace --disk small.toml --seed 2").done();
    assert_ne!(other.out, ran.out);
    assert!(!lab.store().exists());
}

#[test]
fn response_times_go_to_a_file() {
    let lab = lab();
    lab.run("replay trace --disk small.toml --out times.csv --device 0")
        .done()
        .says(&["wrote times.csv"])
        .prints(&["3 requests", "1 of other devices left out"]);
    let text = std::fs::read_to_string(lab.path("times.csv")).expect("the file");
    assert_eq!(rows(&text).len(), 3);
    let json = lab
        .run("replay trace --disk small.toml --json")
        .done()
        .json();
    assert_eq!(json["requests"], 4);
    assert_eq!(json["demerit"]["requests"], 4);
    assert!(json["response_ms"]["percentiles"]["p50"].is_number());
}

#[test]
fn requests_out_of_order_are_sorted_and_said() {
    let lab = lab();
    let mut lines: Vec<&str> = DISKSIM.lines().collect();
    let sorted = lab.run("replay trace --disk small.toml").done();
    lines.swap(0, 2);
    lab.write("mixed", lines.join("\n") + "\n");
    let mixed = lab
        .run("replay mixed --disk small.toml")
        .done()
        .says(&["mixed: 2 requests stood after younger ones and were put in their place by time"]);
    assert_eq!(mixed.out, sorted.out, "the same requests at the same times");
    let json = lab
        .run("replay mixed --disk small.toml --json")
        .done()
        .json();
    assert_eq!(json["out_of_order"], 2);
    assert!(!sorted.err.contains("younger"));
}

#[test]
fn a_trace_may_come_from_standard_input() {
    let lab = lab();
    lab.write("spc", "0,100,4096,r,0.0\n0,5000,4096,W,0.5\n");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "exec \"$0\" replay - --disk small.toml --format spc < spc",
    ]);
    shell.arg(program());
    lab.settle(&mut shell);
    let ran = ended(shell).done();
    assert_eq!(rows(&ran.out).len(), 2);
    assert!(ran.err.contains("no response times to compare with"));
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_line() {
    let lab = lab();
    lab.write("bad", format!("\n{DISKSIM}80.0 0 x 8 1 1.0\n"));
    lab.run("replay bad --disk small.toml")
        .code(2)
        .says(&["bad:6:8: 'x' is not"]);
    lab.write("far", "0.0 0 19999999 8 1\n");
    lab.run("replay far --disk small.toml").code(2).says(&[
        "far:1: this request reaches sector 20000007",
        "20000000",
        "--wrap",
    ]);
    lab.run("replay far --disk small.toml --wrap").done();
    lab.write("prose", "it was a dark and stormy night\n");
    lab.run("replay prose --disk small.toml")
        .refused(2)
        .says(&["no known trace begins like this", "--format"]);
    lab.write("empty", "\n\n");
    lab.run("replay empty --disk small.toml")
        .refused(2)
        .says(&["empty: there is nothing in it"]);
    lab.run("replay . --disk small.toml")
        .refused(2)
        .says(&["cannot read .", "directory"]);
    lab.run("replay trace --disk small.toml --format tape")
        .refused(2)
        .says(&["no trace format 'tape'", "disksim"]);
    lab.run("replay nowhere --disk small.toml")
        .refused(2)
        .says(&["cannot read nowhere"]);
    lab.run("replay trace --disk ITE8212")
        .refused(2)
        .says(&["is a controller"]);
    lab.run("replay trace").refused(2).says(&["--disk"]);
    // A file that was there before stays as it was when nothing comes of it.
    lab.write("old.csv", "mine");
    lab.run("replay far --disk small.toml --out old.csv")
        .refused(2);
    assert_eq!(
        std::fs::read_to_string(lab.path("old.csv")).expect("it"),
        "mine"
    );
}

#[test]
fn a_replay_of_nothing_is_a_mistake() {
    let lab = lab();
    lab.write("one", "0.0 3 100 8 1\n");
    lab.run("replay one --disk small.toml --device 7")
        .code(2)
        .says(&["no request of device 7", "1 of others", "--device"]);
    lab.run("replay one --disk small.toml --device 3").done();
    lab.write("empty", "");
    lab.run("replay empty --disk small.toml --format disksim")
        .code(2)
        .says(&["empty has no request"]);
}

/// Two disks of a trace on one modelled disk are neither of them.
#[test]
fn requests_of_several_devices_are_told() {
    let lab = lab();
    lab.run("replay trace --disk small.toml").done().says(&[
        "trace: requests of 2 devices were put to one: 0 (3), 1 (1); --device 0 replays one of them alone",
        "against 4 measured times",
    ]);
    lab.write(
        "blk",
        "  8,16   1  1  0.000000000  697  Q   R 223490 + 8 [x]\n\
         \x20 8,16   1  2  0.004000000  697  C   R 223490 + 8 [0]\n\
         \x20 8,0    1  3  0.010000000  697  Q   R 100 + 8 [x]\n",
    );
    lab.run("replay blk --disk small.toml").done().says(&[
        "requests of 2 devices were put to one: 8,0 (1), 8,16 (1); --device 8,0 replays",
        "against 1 measured time:",
    ]);
    // A device is called the same in the response times, but for the comma, and can be asked for like that.
    let all = lab.run("replay blk --disk small.toml").done();
    assert!(
        all.out.contains("\n1,10.000000,8:0,read,100,8,"),
        "{}",
        all.out
    );
    let one = lab.run("replay blk --disk small.toml --device 8:0").done();
    assert!(
        one.out.contains("\n0,10.000000,8:0,read,100,8,"),
        "{}",
        one.out
    );
    lab.run("replay blk --disk small.toml --device 9,0")
        .refused(2)
        .says(&["no request of device 9,0, and 2 of others: 8,0 (1), 8,16 (1)"]);
    lab.run("replay trace --disk small.toml --device 8,16")
        .refused(2)
        .says(&[
            "'8,16' is no device of a trace like this",
            "a number",
            "devices of this trace are 0 (3), 1 (1)",
        ]);
    let ran = lab.run("replay blk --disk small.toml --device 8,16").done();
    assert_eq!(rows(&ran.out).len(), 1);
    assert!(!ran.err.contains("were put to one"), "{}", ran.err);
    for wrong in ["8,x", "8;16", "4096,0", "-1"] {
        lab.run(&format!("replay blk --disk small.toml --device {wrong}"))
            .refused(2);
    }
}

/// fio's log calls devices by the names of their files, and so does who replays it.
#[test]
fn a_device_of_fios_log_is_named() {
    let lab = lab();
    let log = "fio version 3 iolog\n0 /dev/sdb open\n0 /dev/sdb read 0 4096\n10 /dev/sdc read 8192 4096\n";
    lab.write("fio.log", log);
    lab.run("replay fio.log --disk small.toml").done().says(&[
        "requests of 2 devices were put to one: /dev/sdb (1), /dev/sdc (1); --device /dev/sdb replays",
    ]);
    let ran = lab.run("replay fio.log --disk small.toml --device /dev/sdc");
    let ran = ran.done().says(&["1 of other devices left out"]);
    assert!(ran.out.contains(",/dev/sdc,read,16,8,"), "{}", ran.out);
    lab.run("replay fio.log --disk small.toml --device /dev/sda")
        .refused(2)
        .says(&["no request of device /dev/sda, and 2 of others: /dev/sdb (1), /dev/sdc (1)"]);
}

/// A line that is none, and a discard, are not left out without a word.
#[test]
fn what_is_left_out_of_a_trace_is_told() {
    let lab = lab();
    let trace = "  8,0 1 1 0.000000000 697 Q R 100 + 8 [x]\nlost 3 events\n  8,0 1 2 0.001000000 697 Q D 0 + 64 [x]\n  \
        8,0 1 3 0.010000000 697 Q W 200 + 8 [x]\nCPU1 (8,0):\n Reads Queued: 1, 4KiB\n";
    lab.write("blk", trace);
    lab.run("replay blk --disk small.toml").done().says(&[
        "warning: blk: 1 line could not be read and was left out, first line 2",
        "blk: 1 discard left out",
    ]);
    let json = lab.run("replay blk --disk small.toml --json").done().json();
    assert_eq!(
        (&json["unread_lines"], &json["requests"]),
        (&1.into(), &2.into())
    );
    // A file that was cut short, zeroes without data, and what blkparse says first of its input.
    let cut = "Input file sda.blktrace.0 added\n  8,0 1 1 0.000000000 697 Q R 100 + 8 [x]\n  \
        8,0 1 2 0.001000000 697 Q N 0 + 64 [x]\n  8,0 1 3 0.010000000 697 Q R";
    lab.write("cut", cut);
    let ran = lab.run("replay cut --disk small.toml").done().says(&[
        "warning: cut: 1 line could not be read and was left out, first line 4",
        "cut: 1 request left out that neither read, write nor flush",
    ]);
    assert_eq!(rows(&ran.out).len(), 1, "{}", ran.out);
    let json = lab.run("replay cut --disk small.toml --json").done().json();
    assert_eq!(json["other_requests"], 1);
}

/// The time until a request failed is in no column of measured times.
#[test]
fn commands_and_failures_of_a_trace_are_told() {
    let lab = lab();
    let trace = "  8,0 1 1 0.000000000 697 Q R 100 + 8 [x]\n  8,0 1 2 0.001000000 5 C R (12 00 00 00 24 00 ..) [0]\n  \
        8,0 1 3 0.010000000 697 Q W 200 + 8 [x]\n  8,0 1 4 0.012000000 0 C R 100 + 8 [65531]\n  \
        8,0 1 5 0.015000000 0 C W 200 + 8 [0]\n";
    lab.write("blk", trace);
    let ran = lab.run("replay blk --disk small.toml").done().says(&[
        "blk: 1 request left out that neither read, write nor flush",
        "blk: 1 request failed when the trace was recorded and was replayed without its measured time",
        "against 1 measured time",
    ]);
    let measured: Vec<String> = rows(&ran.out).iter().map(|row| row[7].clone()).collect();
    assert_eq!(measured, ["", "5.000000"]);
    let json = lab.run("replay blk --disk small.toml --json").done().json();
    assert_eq!(
        (&json["failed_requests"], &json["other_requests"]),
        (&1.into(), &1.into())
    );
    lab.write("twice", format!("{trace}{trace}"));
    lab.run("replay twice --disk small.toml")
        .code(2)
        .says(&["twice:6:3: a second trace begins here", "split the file"]);
    lab.write("issued", "  8,0 1 1 0.000000000 697 D R 100 + 8 [x]\n");
    lab.run("replay issued --disk small.toml")
        .code(2)
        .says(&["issued has no request", "action Q"]);
}

/// Traces come compressed, in the encoding of another system, or as blktrace writes them.
#[test]
fn a_trace_that_is_no_text_is_told_as_what_it_is() {
    let lab = lab();
    for (bytes, what, remedy) in [
        (
            &b"\x1F\x8B\x08\x00\x12"[..],
            "compressed by gzip",
            "gunzip -c",
        ),
        (b"BZh91AY", "compressed by bzip2", "bunzip2 -c"),
        (b"\xFF\xFE1\x00", "UTF-16", "iconv"),
        (b"\x07tae\x01\x00", "what blktrace writes", "blkparse -i"),
    ] {
        lab.write("other", bytes);
        lab.run("replay other --disk small.toml")
            .refused(2)
            .says(&[what, remedy]);
    }
    let plain = lab.run("replay trace --disk small.toml").done();
    lab.write(
        "marked",
        format!("\u{feff}{}", DISKSIM.replace('\n', "\r\n")),
    );
    let marked = lab.run("replay marked --disk small.toml").done();
    assert_eq!(marked.out, plain.out);
}
