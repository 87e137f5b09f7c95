//! `disk serve` when things break: disks that die because it was asked for, and a server that is killed.
use crate::lab::{Lab, until};
use crate::serve::Serving;
use raidlab_nbd::client::{Client, ClientError};
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// `EIO`, as a server of disks says it.
const FAILED: u32 = 5;
const BLOCK: usize = 4096;

fn connect(socket: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(socket).expect("it listens");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a time limit");
    Client::connect(stream, "").expect("it speaks NBD")
}

fn read(client: &mut Client<UnixStream>, block: u64) -> Result<Vec<u8>, ClientError> {
    let mut buffer = vec![0; BLOCK];
    client.read(block * BLOCK as u64, &mut buffer)?;
    Ok(buffer)
}

#[test]
fn a_disk_that_is_to_fail_fails_then_and_the_others_go_on() {
    let lab = Lab::new();
    let line = "nvme-ssd -n 2 --size 16MiB --unix sockets --fail disk1@400ms";
    let begun = Instant::now();
    let serving = Serving::start(&lab, line);
    let (mut first, mut second) = (connect(&serving.socket(0)), connect(&serving.socket(1)));
    if begun.elapsed() < Duration::from_millis(200) {
        read(&mut second, 0).expect("it lives still");
    }
    until("the disk's death", || match read(&mut second, 0) {
        Ok(_) => false,
        Err(ClientError::Failed(error)) => {
            assert_eq!(error, FAILED);
            true
        }
        Err(other) => panic!("{other}"),
    });
    assert!(begun.elapsed() >= Duration::from_millis(400));
    let write = second.write(0, &[1; BLOCK], false);
    assert!(
        matches!(write, Err(ClientError::Failed(FAILED))),
        "{write:?}"
    );
    first
        .write(0, &[1; BLOCK], true)
        .expect("the other disk works");
    assert_eq!(read(&mut first, 0).expect("readable"), [1; BLOCK]);
    let last = serving.end();
    assert!(
        last["disks"][1]["errors"].as_u64().expect("a number") >= 2,
        "{last}"
    );
    assert_eq!(last["disks"][0]["errors"], 0);
    lab.run("disk serve nvme-ssd --unix sockets --fail disk3@1s")
        .refused(2)
        .says(&["no disk 'disk3'", "the disks are disk0"]);
    lab.run("disk serve nvme-ssd --unix sockets --fail disk0@1")
        .refused(2)
        .says(&["has no unit"]);
}

/// What block `n` holds after its write of that round.
fn content(round: u64, block: u64) -> Vec<u8> {
    let words =
        (0..BLOCK as u64 / 8).flat_map(|word| (round << 48 ^ block << 24 ^ word).to_le_bytes());
    words.collect()
}

/// Killed at ten moments in the middle of writes: the next server takes the sockets and the files over, and whatever was
/// acknowledged is there.
#[test]
fn a_server_killed_at_ten_moments_loses_nothing_that_it_has_acknowledged() {
    let lab = Lab::new();
    let line = "nvme-ssd --size 64MiB --unix sockets --backing content";
    let blocks = (64 << 20) / BLOCK as u64;
    let mut known: Vec<(u64, u64)> = Vec::new();
    let mut state = 7_u64;
    for round in 1..=10_u64 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let moment = Duration::from_millis(state >> 32 & 255);
        let serving = Serving::start(&lab, line);
        let mut client = connect(&serving.socket(0));
        for (block, of) in &known {
            let found = read(&mut client, *block).expect("readable");
            assert!(
                found == content(*of, *block),
                "block {block} of round {of} is lost"
            );
        }
        let kill = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(moment);
                serving.signal(Signal::KILL);
            });
            for number in 0.. {
                let block = (round * 1_000 + number * 7) % blocks;
                if client
                    .write(block * BLOCK as u64, &content(round, block), true)
                    .is_err()
                {
                    // Old or new, perhaps some of both: nobody has said that it is there.
                    known.retain(|(known, _)| *known != block);
                    break;
                }
                known.retain(|(known, _)| *known != block);
                known.push((block, round));
            }
            killer.join()
        });
        assert!(kill.is_ok());
        drop(serving);
        assert!(
            lab.path("sockets/disk0.sock").exists(),
            "killed, it could not clean up"
        );
    }
    assert!(!known.is_empty());
    let serving = Serving::start(&lab, line);
    let mut client = connect(&serving.socket(0));
    for (block, of) in &known {
        assert!(read(&mut client, *block).expect("readable") == content(*of, *block));
    }
    drop(client);
    serving.end();
    assert!(
        !lab.path("sockets/disk0.sock").exists(),
        "the last one has cleaned up"
    );
}
