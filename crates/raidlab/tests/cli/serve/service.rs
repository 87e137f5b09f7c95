//! What a server promises: its sockets, its content, its pace, its words when it cannot serve.
use super::{SSD, Serving, may, works};
use crate::lab::{Lab, until};
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// What an experiment says of its disks' sectors is what clients are told.
#[test]
fn disks_of_an_experiment_have_the_sectors_that_it_says() {
    if !may(
        "disks_of_an_experiment_have_the_sectors_that_it_says",
        &["nbdinfo"],
    ) {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "large.toml",
        "title = \"t\"\nprofile = \"hdparm\"\n[disks.large]\nmodel = \"nearline-24tb\"\n\
         override = { sector-logical = \"4KiB\" }\n[disks.small]\nmodel = \"ST3250624AS\"\n\
         [factors]\nlayout = [\"raid1\"]\n",
    );
    let serving = Serving::start(&lab, "--topology large.toml --size 1000000B --unix sockets");
    for (disk, sector) in [(0, 4096), (1, 512)] {
        let told = works("nbdinfo", &[serving.uri(disk)]);
        let minimum = format!("block_size_minimum: {sector}");
        assert!(told.contains(&minimum), "{told}");
        let size = format!("({})", 1_000_000 / sector * sector);
        let exact = format!("export-size: {}", 1_000_000 / sector * sector);
        assert!(told.contains(&exact) || told.contains(&size), "{told}");
    }
    serving.end();
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

/// One directory for the sockets is made, and taken away in the end; what it is to be in must be there.
#[test]
fn the_directory_of_the_sockets_must_be_in_one_that_is_there() {
    let lab = Lab::new();
    lab.run("disk serve nvme-ssd --size 1MiB --unix nowhere/deep/sockets")
        .refused(4)
        .says(&["there is no directory nowhere/deep", "make it first"]);
    assert!(!lab.path("nowhere").exists());
    let serving = Serving::start(&lab, "nvme-ssd --size 1MiB --unix sockets");
    assert!(lab.path("sockets").exists());
    serving.end();
    assert!(!lab.path("sockets").exists());
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
