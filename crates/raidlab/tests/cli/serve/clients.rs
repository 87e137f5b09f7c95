//! Clients of many kinds: qemu-img, qemu-io, nbdinfo, and some that behave badly.
use super::{SSD, Serving, may, ran, works};
use crate::lab::Lab;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

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
        "can_trim",
        "can_zero",
        "can_multi_conn",
    ] {
        assert_eq!(export[flag], true, "{flag}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["can_fua"], false, "a SATA disk behind libata");
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
fn a_disk_of_nvme_takes_writes_past_its_buffer() {
    if !may("a_disk_of_nvme_takes_writes_past_its_buffer", &["nbdinfo"]) {
        return;
    }
    let lab = Lab::new();
    let serving = Serving::start(&lab, "nvme-ssd --size 1GiB --unix sockets");
    let info: Value =
        serde_json::from_str(&works("nbdinfo", &["--json", serving.uri(0)])).expect("JSON");
    assert_eq!(info["exports"][0]["can_fua"], true);
    serving.end();
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
