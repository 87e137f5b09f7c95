//! `raidlab replay`: what does not fit, has no times, or is no trace.
use crate::lab::Lab;
use crate::models::DISK;
use crate::traces::rows;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("small.toml", DISK);
    lab
}

/// The disk has 20000000 sectors, 9765 whole MiB.
#[test]
fn moved_requests_keep_their_place_and_are_told() {
    let lab = lab();
    let whole = 9765 * 2048;
    let stream = format!(
        "0.0 0 {} 8 1\n1.0 0 {} 248 1\n2.0 0 {} 8 1\n3.0 0 64 8 1\n",
        5 * whole,
        5 * whole + 8,
        5 * whole + 256
    );
    lab.write("far", stream);
    let ran = lab
        .run("replay far --disk small.toml --wrap")
        .done()
        .says(&[
            "far: 3 requests beyond the end were moved inside (column moved_to)",
            "4 requests in",
            ", 3 moved inside",
        ]);
    let mut all = rows(&ran.out);
    all.sort();
    let of = |column: usize| {
        all.iter()
            .map(|row| row[column].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(9), ["0", "8", "256", ""]);
    assert_eq!(of(4)[0], (5 * whole).to_string(), "as recorded");
    let json = lab
        .run("replay far --disk small.toml --wrap --json")
        .done()
        .json();
    assert_eq!(json["moved"], 3);
}

/// The flushes of a journal's commit are no requests of the trace, but are waited for.
#[test]
fn a_commit_is_one_request() {
    let lab = lab();
    let line = |ms: u32, kind: &str, lba: u32| {
        format!("  8,0    0    1     0.{ms:03}000000   697  Q {kind} {lba} + 8 [jbd2/sda1-8]\n")
    };
    let writes = line(0, "WS", 1000) + &line(1, "WS", 9_000_000);
    lab.write("commit", format!("{writes}{}", line(2, "FWFSM", 2000)));
    let ran = lab.run("replay commit --disk small.toml").done();
    let ran = ran.says(&["3 requests in"]);
    let all = rows(&ran.out);
    let commit = all.iter().find(|row| row[0] == "2").expect("the third");
    let response: f64 = commit[6].parse().expect("a time");
    assert!(response > 1.0, "{commit:?}");
    let json = lab
        .run("replay commit --disk small.toml --json")
        .done()
        .json();
    assert_eq!(json["requests"], 3);
}

/// fio before 3.31 writes no times. The requests are made as fio makes them: so many at a time.
#[test]
fn a_log_without_times_is_replayed_by_depth() {
    let lab = lab();
    let reads: String = (0..20)
        .map(|i| format!("/dev/sda read {} 4096\n", 4096 * (i * 7919 % 1_000_000)))
        .collect();
    lab.write(
        "log",
        format!("fio version 2 iolog\n/dev/sda add\n/dev/sda open\n{reads}/dev/sda close\n"),
    );
    let ran = lab.run("replay log --disk small.toml").done().says(&[
        "log: the log has no times (fio before 3.31 writes none): each request was issued when the one before had ended",
        "--depth N",
        "20 requests in",
        ", one after the other",
        "1.00 in flight",
    ]);
    let all = rows(&ran.out);
    let time = |row: &[String], column: usize| row[column].parse::<f64>().expect("a time");
    for pair in all.windows(2) {
        let ended = time(&pair[0], 1) + time(&pair[0], 6);
        assert!((time(&pair[1], 1) - ended).abs() < 1e-5, "{pair:?}");
    }
    let json = lab.run("replay log --disk small.toml --json").done().json();
    assert_eq!(
        (&json["has_times"], &json["depth"]),
        (&false.into(), &1.into())
    );
    let deep = lab
        .run("replay log --disk small.toml --depth 4")
        .done()
        .says(&[", 4 in flight at a time"]);
    assert!(!deep.err.contains("no times"), "{}", deep.err);
    // A depth serves traces with times, too.
    lab.write("trace", "0.0 0 1000 8 1\n60000.0 0 9000000 8 1\n");
    lab.run("replay trace --disk small.toml --depth 1")
        .done()
        .says(&["2 requests in", " ms, one after the other"]);
    let json = lab
        .run("replay trace --disk small.toml --json")
        .done()
        .json();
    assert_eq!(
        (&json["has_times"], &json["depth"]),
        (&true.into(), &serde_json::Value::Null)
    );
    lab.run("replay trace --disk small.toml --depth 0")
        .refused(2);
}

#[test]
fn disks_of_several_hosts_are_several_devices() {
    let lab = lab();
    lab.write(
        "msr.csv",
        "128166372003061629,usr,0,Read,0,4096,1000\n128166372013061629,prn,0,Write,8192,4096,1000\n",
    );
    let ran = lab.run("replay msr.csv --disk small.toml").done().says(&[
        "requests of 2 devices were put to one: usr:0 (1), prn:0 (1); --device usr:0 replays",
    ]);
    let names: Vec<String> = rows(&ran.out)
        .into_iter()
        .map(|row| row[2].clone())
        .collect();
    assert_eq!(names, ["usr:0", "prn:0"]);
    lab.run("replay msr.csv --disk small.toml --device prn:0")
        .done()
        .says(&["1 request in", "1 of other devices left out"]);
    lab.run("replay msr.csv --disk small.toml --device 0")
        .code(2)
        .says(&["msr.csv:2:20: host 'prn' has a disk 0, too", "'usr:0'"]);
}

/// A file without lines is neither read to its end nor quoted.
#[test]
fn lines_are_bounded() {
    let lab = lab();
    lab.run("replay /dev/zero --disk small.toml")
        .refused(2)
        .says(&["/dev/zero:1: this line has more than 64 KiB", "blkparse -i"]);
    lab.write("long", format!("0.0 0 1000 8 1\n{}\n", "9".repeat(1 << 17)));
    lab.run("replay long --disk small.toml")
        .code(2)
        .says(&["long:2: this line has more than 64 KiB"]);
    lab.write(
        "word",
        format!("0.0 0 1000 8 1\n{} 0 0 8 1\n", "x".repeat(60_000)),
    );
    let ran = lab
        .run("replay word --disk small.toml")
        .code(2)
        .says(&["word:2:1: 'xxx"]);
    assert!(ran.err.len() < 400, "{}", ran.err.len());
}

#[test]
fn a_pool_of_zfs_is_no_device() {
    let lab = lab();
    lab.write(
        "lab.toml",
        "title = 't'\nprofile = 'bonnie'\ndisks = { model = 'ST3250624AS', count = 2 }\n[array]\n[factors]\nlayout = ['zfs-mirror', 'raid1']\n",
    );
    lab.write("trace", "0.0 0 1000 8 1\n");
    for wrap in ["", " --wrap"] {
        lab.run(&format!(
            "replay trace --experiment lab.toml --cell zfs-mirror{wrap}"
        ))
        .refused(2)
        .says(&[
            "cell 'zfs-mirror' is a pool of ZFS, which is no block device",
            "--disk",
            "--cell from: raid1",
        ]);
    }
    lab.run("replay trace --experiment lab.toml --cell raid1")
        .done();
}

#[test]
fn disks_of_4_kib_sectors_refuse_other_requests() {
    let lab = lab();
    lab.write(
        "lab.toml",
        "title = 't'\nprofile = 'random'\n[array]\nchunk = '64KiB'\nlayout = 'raid5'\n[disks]\nmodel = 'nearline-24tb'\ncount = 4\n\
         override = { sector-logical = '4KiB' }\n",
    );
    lab.write("whole.csv", "0,8,4096,R,0\n0,16,8192,W,1\n");
    lab.run("replay whole.csv --experiment lab.toml").done();
    lab.write("parts.csv", "0,8,4096,R,0\n0,3,512,W,1\n");
    lab.run("replay parts.csv --experiment lab.toml").code(2).says(&[
        "parts.csv:2: this request of 1 sector from sector 3 on is not of whole logical sectors, which have 4096 bytes",
        "EINVAL",
        "sector-logical",
    ]);
}
