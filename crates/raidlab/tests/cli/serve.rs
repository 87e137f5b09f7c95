//! `disk serve` as others use it: qemu-img, qemu-io, nbdinfo, clients that behave badly.
use crate::lab::{Lab, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Whether the programs of others are here. Where they are not, the test says so; in CI that fails.
fn may(name: &str, programs: &[&str]) -> bool {
    let there = |program: &&&str| {
        let places = ["/usr/bin", "/usr/local/bin", "/bin"];
        !places
            .iter()
            .any(|place| Path::new(place).join(program).exists())
    };
    let Some(missing) = programs.iter().find(there) else {
        return true;
    };
    let message = format!("SKIPPED {name}: needs {missing}");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// A server under way.
pub(crate) struct Serving {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    /// Where its disks are, as it has told.
    disks: Vec<Value>,
}

impl Serving {
    /// Starts it and waits until it has told where the disks are.
    pub(crate) fn start(lab: &Lab, line: &str) -> Self {
        let mut command = lab.command(&format!("disk serve {line} --json"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("raidlab starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let told = value(&mut out);
        let disks = told["disks"].as_array().expect("disks").clone();
        Self { child, out, disks }
    }

    pub(crate) fn uri(&self, disk: usize) -> &str {
        self.disks[disk]["uri"].as_str().expect("a URI")
    }

    pub(crate) fn socket(&self, disk: usize) -> PathBuf {
        PathBuf::from(self.disks[disk]["socket"].as_str().expect("a socket"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(id, signal).expect("a living process");
    }

    /// Ends it as a user does; what it told last.
    pub(crate) fn end(mut self) -> Value {
        self.signal(Signal::INT);
        let last = value(&mut self.out);
        let status = self.child.wait().expect("an end");
        assert_eq!(status.code(), Some(0));
        last
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next JSON value, which ends with a line of a brace alone.
fn value(out: &mut impl BufRead) -> Value {
    let mut text = String::new();
    while !text.ends_with("\n}\n") {
        let n = out.read_line(&mut text).expect("text");
        assert!(n > 0, "its output ended: {text}");
    }
    serde_json::from_str(&text).expect("JSON")
}

fn ran(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("it runs")
}

#[track_caller]
fn works(program: &str, args: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = ran(program, args);
    let (out, err) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{program} {args:?}: {out}{err}");
    assert!(
        !out.contains("Pattern verification failed"),
        "{args:?}: {out}"
    );
    out.into_owned()
}

/// One disk that takes little time, in a directory that is made for it.
const SSD: &str = "nvme-ssd --size 64MiB --unix sockets";

#[test]
fn others_know_it_for_what_it_is() {
    if !may("others_know_it_for_what_it_is", &["nbdinfo", "qemu-img"]) {
        return;
    }
    let lab = Lab::new();
    let serving = Serving::start(&lab, "ST3000DM001 ST3250624AS --size 1GiB --unix sockets");
    let info: Value =
        serde_json::from_str(&works("nbdinfo", &["--json", serving.uri(0)])).expect("JSON");
    let export = &info["exports"][0];
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(export["export-size"], 1 << 30);
    assert_eq!(export["description"], "ST3000DM001");
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["block_size_preferred"], 4096);
    assert_eq!(export["block_size_maximum"], 32 << 20);
    for flag in [
        "is_rotational",
        "can_flush",
        "can_fua",
        "can_trim",
        "can_zero",
        "can_multi_conn",
    ] {
        assert_eq!(export[flag], true, "{flag}");
    }
    assert_eq!(export["is_read_only"], false);
    let other: Value =
        serde_json::from_str(&works("nbdinfo", &["--json", serving.uri(1)])).expect("JSON");
    assert_eq!(other["exports"][0]["block_size_preferred"], 512);
    let info = works(
        "qemu-img",
        &["info", "--output=json", "-f", "raw", serving.uri(0)],
    );
    let info: Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!(info["virtual-size"], 1 << 30);
    let last = serving.end();
    assert!(last["connections"].as_u64().expect("a number") >= 3);
    assert!(
        !lab.path("sockets").exists(),
        "sockets and their directory are gone"
    );
}

#[test]
fn images_come_back_as_they_went() {
    if !may("images_come_back_as_they_went", &["qemu-img"]) {
        return;
    }
    let lab = Lab::new();
    let size = 24_u32 << 20;
    let mut seed = 1_u32;
    let mut noise = |i: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Holes among the data.
        if i >> 20 & 1 == 0 {
            (seed >> 24) as u8
        } else {
            0
        }
    };
    let image: Vec<u8> = (0..size).map(&mut noise).collect();
    let path = lab.write("image", &image);
    let path = path.to_str().expect("text");
    let serving = Serving::start(&lab, "nvme-ssd --size 24MiB --unix sockets");
    let uri = serving.uri(0);
    works(
        "qemu-img",
        &["convert", "-n", "-f", "raw", "-O", "raw", path, uri],
    );
    works(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", path, uri],
    );
    let back = lab.path("back");
    let back = back.to_str().expect("text");
    works(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "raw", uri, back],
    );
    assert!(std::fs::read(back).expect("an image") == image);
    let last = serving.end();
    let stored = last["disks"][0]["bytes_stored"].as_u64().expect("a number");
    assert!(stored <= 13 << 20, "holes take no memory: {stored}");
    assert_eq!(last["disks"][0]["errors"], 0);
}

#[test]
fn patterns_flushes_discards_and_zeroes() {
    if !may("patterns_flushes_discards_and_zeroes", &["qemu-io"]) {
        return;
    }
    let lab = Lab::new();
    let serving = Serving::start(&lab, SSD);
    let io = |commands: &[&str]| {
        let mut args = vec!["-f", "raw", "-d", "unmap"];
        commands
            .iter()
            .for_each(|command| args.extend(["-c", command]));
        args.push(serving.uri(0));
        works("qemu-io", &args)
    };
    io(&[
        "write -P 0x11 0 1M",
        "write -f -P 0x22 1M 64k",
        "flush",
        "aio_write -P 0x33 2M 4M",
        "aio_write -P 0x44 8M 4M",
        "aio_flush",
        "write -z 256k 128k",
        "write -z -u 512k 64k",
        "discard 2M 1M",
        "write -P 0x55 1000 24",
    ]);
    io(&[
        "read -P 0x11 0 1000",
        "read -P 0x55 1000 24",
        "read -P 0x11 1024 261120",
        "read -P 0 256k 128k",
        "read -P 0x11 384k 128k",
        "read -P 0 512k 64k",
        "read -P 0x11 576k 448k",
        "read -P 0x22 1M 64k",
        "read -P 0 2M 1M",
        "read -P 0x33 3M 3M",
        "read -P 0x44 8M 4M",
        "read -P 0 60M 4M",
    ]);
    let beyond = ran(
        "qemu-io",
        &["-f", "raw", "-c", "read 64M 512", serving.uri(0)],
    );
    let said = String::from_utf8_lossy(&beyond.stdout).into_owned()
        + &String::from_utf8_lossy(&beyond.stderr);
    assert!(
        said.contains("failed") || !beyond.status.success(),
        "{said}"
    );
    let last = serving.end();
    assert!(last["disks"][0]["flushes"].as_u64().expect("a number") >= 1);
    assert!(last["disks"][0]["trims"].as_u64().expect("a number") >= 1);
}

#[test]
fn many_clients_share_a_disk() {
    if !may("many_clients_share_a_disk", &["qemu-io"]) {
        return;
    }
    let lab = Lab::new();
    let serving = Serving::start(&lab, SSD);
    let each = |verb: &str| {
        let clients: Vec<Child> = (1..=6)
            .map(|n| {
                let command = format!("{verb} -P {n} {n}M 1M");
                let mut it = Command::new("qemu-io");
                it.args(["-f", "raw", "-c", &command, serving.uri(0)]);
                it.stdout(Stdio::piped()).spawn().expect("it runs")
            })
            .collect();
        for client in clients {
            let output = client.wait_with_output().expect("an end");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && !said.contains("failed"),
                "{said}"
            );
        }
    };
    each("write");
    each("read");
    let last = serving.end();
    assert_eq!(last["disks"][0]["bytes_written"], 6 << 20);
}

#[test]
fn loopback_tcp_serves_all_disks_by_name() {
    let lab = Lab::new();
    let serving = Serving::start(&lab, "nvme-ssd -n 2 --size 16MiB --tcp 127.0.0.1:0");
    assert!(serving.uri(1).starts_with("nbd://127.0.0.1:") && serving.uri(1).ends_with("/disk1"));
    if may(
        "loopback_tcp_serves_all_disks_by_name",
        &["nbdinfo", "qemu-io"],
    ) {
        let all = serving.uri(0).trim_end_matches("disk0");
        let listed = works("nbdinfo", &["--list", "--json", all]);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let exports = listed["exports"].as_array().expect("exports").iter();
        let names: Vec<_> = exports
            .map(|e| e["export-name"].as_str().expect("a name"))
            .collect();
        assert_eq!(names, ["disk0", "disk1"]);
        let nowhere = format!("{all}nowhere");
        let refused = ran("nbdinfo", &[&nowhere]);
        assert!(!refused.status.success());
        works(
            "qemu-io",
            &["-f", "raw", "-c", "write -P 7 0 1M", serving.uri(1)],
        );
        works(
            "qemu-io",
            &["-f", "raw", "-c", "read -P 0 0 1M", serving.uri(0)],
        );
    }
    serving.end();
    lab.run("disk serve nvme-ssd --tcp 0.0.0.0:0")
        .refused(3)
        .says(&["can be reached from other machines", "127.0.0.1"]);
}

/// Garbage, half-closed connections, and a client killed in the middle of a write.
#[test]
fn bad_clients_harm_nobody() {
    let lab = Lab::new();
    let serving = Serving::start(&lab, SSD);
    let connect = || UnixStream::connect(serving.socket(0)).expect("a connection");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 300], &[0xff; 3]] {
        let mut stream = connect();
        stream.write_all(garbage).expect("bytes go");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("half closed");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("an end");
        assert!(rest.starts_with(b"NBDMAGIC"));
    }
    drop(connect());
    if may("bad_clients_harm_nobody", &["qemu-io"]) {
        let uri = serving.uri(0);
        works("qemu-io", &["-f", "raw", "-c", "write -P 1 0 32M", uri]);
        let mut client = Command::new("qemu-io")
            .args([
                "-f",
                "raw",
                "-c",
                "write -P 2 0 32M",
                "-c",
                "write -P 3 0 32M",
                uri,
            ])
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        std::thread::sleep(std::time::Duration::from_millis(30));
        client.kill().expect("killed");
        client.wait().expect("an end");
        // The next client finds a disk that works, with one or the other in each sector.
        works(
            "qemu-io",
            &[
                "-f",
                "raw",
                "-c",
                "read 0 32M",
                "-c",
                "write -P 4 0 1M",
                "-c",
                "read -P 4 0 1M",
                uri,
            ],
        );
    }
    let last = serving.end();
    assert_eq!(last["disks"][0]["errors"], 0);
}

#[test]
fn a_dead_servers_socket_is_replaced_and_a_living_ones_is_not() {
    let lab = Lab::new();
    let mut serving = Serving::start(&lab, SSD);
    let socket = serving.socket(0);
    lab.run(&format!("disk serve {SSD}"))
        .refused(3)
        .says(&["already listening", "stop it first"]);
    assert!(socket.exists(), "the refused one has removed nothing");
    serving.signal(Signal::KILL);
    serving.child.wait().expect("an end");
    assert!(socket.exists(), "killed, it could not clean up");
    let again = Serving::start(&lab, SSD);
    assert_eq!(again.socket(0), socket);
    drop(UnixStream::connect(&socket).expect("it answers"));
    again.end();
    assert!(!socket.exists());
    std::fs::create_dir_all(lab.path("sockets")).expect("a directory");
    lab.write("sockets/disk0.sock", "a letter");
    lab.run(&format!("disk serve {SSD}"))
        .refused(3)
        .says(&["is no socket"]);
    until("the letter to be there", || {
        lab.path("sockets/disk0.sock").is_file()
    });
}

#[test]
fn content_in_files_is_there_again() {
    let lab = Lab::new();
    let line = "nvme-ssd -n 2 --size 16MiB --unix sockets --backing content";
    let serving = Serving::start(&lab, line);
    let may = may("content_in_files_is_there_again", &["qemu-io"]);
    if may {
        works(
            "qemu-io",
            &["-f", "raw", "-c", "write -P 9 4M 64k", serving.uri(1)],
        );
    }
    lab.run("disk serve nvme-ssd --size 16MiB --unix others --backing content")
        .refused(3)
        .says(&["disk0.img", "holds its lock"]);
    serving.end();
    let serving = Serving::start(&lab, line);
    if may {
        works(
            "qemu-io",
            &["-f", "raw", "-c", "read -P 9 4M 64k", serving.uri(1)],
        );
    }
    serving.end();
    assert_eq!(
        std::fs::metadata(lab.path("content/disk1.img"))
            .expect("a file")
            .len(),
        16 << 20
    );
    lab.run("disk serve nvme-ssd --size 8MiB --unix sockets --backing content")
        .refused(3)
        .says(&["it has 16777216 bytes, but the disk has 8388608"]);
    assert!(!lab.path("sockets").exists());
}

#[test]
fn replies_come_as_late_as_the_disk_is_slow() {
    if !may("replies_come_as_late_as_the_disk_is_slow", &["qemu-io"]) {
        return;
    }
    let lab = Lab::new();
    let serving = Serving::start(&lab, "ST340015A -n 2 --topology pata:2 --unix sockets");
    let reads: Vec<String> = (1..20)
        .map(|n| format!("read {}G 4k", n * 17 % 37))
        .collect();
    let mut args = vec!["-f", "raw", "-n"];
    reads.iter().for_each(|read| args.extend(["-c", read]));
    let begun = std::time::Instant::now();
    let both: Vec<Child> = (0..2)
        .map(|disk| {
            let mut it = Command::new("qemu-io");
            it.args(&args).arg(serving.uri(disk)).stdout(Stdio::null());
            it.spawn().expect("it runs")
        })
        .collect();
    for mut client in both {
        assert!(client.wait().expect("an end").success());
    }
    let took = begun.elapsed().as_secs_f64();
    let last = serving.end();
    // 38 reads that take turns on one channel, each with a seek and half a turn of 5400 a minute.
    assert!(took > 38.0 * 0.008, "{took}");
    let replies = last["lateness"]["replies"].as_u64().expect("a number");
    assert!(replies >= 38, "{replies}");
}

#[test]
fn what_cannot_be_served_is_told() {
    let lab = Lab::new();
    for (line, parts) in [
        ("nvme-ssd", &["--unix"][..]),
        ("--unix s", &["no disk is named"]),
        ("nowhere --unix s", &["nowhere"]),
        ("nvme-ssd --unix s --topology sata", &["is a nvme disk"]),
        (
            "nvme-ssd --unix s --topology nvme:2",
            &["places for 2 disks"],
        ),
        ("nvme-ssd --unix s --size 100TiB", &["are to be shown"]),
        ("nvme-ssd --unix s --topology lab.toml", &["without others"]),
    ] {
        lab.run(&format!("disk serve {line}"))
            .refused(2)
            .says(parts);
    }
    assert!(!lab.path("s").exists());
}

/// Disks of an experiment's file, behind its controllers.
#[test]
fn an_experiments_disks_are_served() {
    let lab = Lab::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pata-raid0.toml");
    let line = format!("--topology {} --unix sockets", file.display());
    let serving = Serving::start(&lab, &line);
    let disks = serving.disks.iter();
    let told: Vec<_> = disks
        .map(|d| (d["name"].as_str(), d["behind"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("disk0"), Some("channel 0 of card")),
            (Some("disk1"), Some("channel 0 of card")),
            (Some("disk2"), Some("channel 1 of card")),
            (Some("disk3"), Some("channel 1 of card")),
        ]
    );
    let last = serving.end();
    assert_eq!(last["lateness"]["replies"], 0);
}
