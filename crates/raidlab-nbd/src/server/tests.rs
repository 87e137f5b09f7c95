//! Servers and clients over real sockets.
use super::*;
use crate::client::{Client, ClientError, Greeted};
use crate::engine::tests::spec;
use crate::store::{Budget, Memory, PAGE, Sparse};
use crate::wire::{Command, RawRequest, SimpleReply, error, option};
use raidlab_sim::fabric::FabricSpec;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Quick in all they do but the time itself.
fn fast() -> FabricSpec {
    spec("nvme", "nvme-ssd", &[1, 1])
}

struct Lab {
    directory: tempfile::TempDir,
    running: Running,
}

fn serve(spec: &FabricSpec, budget: u64) -> Lab {
    let budget = Budget::new(budget);
    serve_with(spec, || Store::Sparse(Sparse::new(&budget)))
}

fn serve_with(spec: &FabricSpec, mut store: impl FnMut() -> Store) -> Lab {
    let directory = tempfile::tempdir().unwrap();
    let fabric = Fabric::new(spec, 1).unwrap();
    let disk = |(number, port): (usize, &PortInfo)| {
        Disk::new(number as u32, port, "a disk", 1 << 30, store())
    };
    let disks = fabric.ports().iter().enumerate().map(disk).collect();
    let mut server = Server::new(fabric, disks, Options::default());
    for (number, export) in server.exports().iter().enumerate() {
        let path = directory.path().join(format!("{}.sock", export.name));
        server.listen(Listener::unix(&path, number).unwrap());
    }
    let running = server.start().unwrap();
    Lab { directory, running }
}

impl Lab {
    fn path(&self, disk: u32) -> PathBuf {
        self.directory.path().join(format!("disk{disk}.sock"))
    }

    fn stream(&self, disk: u32) -> UnixStream {
        let stream = UnixStream::connect(self.path(disk)).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    fn client(&self, disk: u32) -> Client<UnixStream> {
        Client::connect(self.stream(disk), "").unwrap()
    }
}

#[test]
fn content_comes_back() {
    let lab = serve(&fast(), 64 << 20);
    let mut client = lab.client(0);
    let sizes = client.blocks().unwrap();
    assert_eq!((sizes.minimum, sizes.maximum), (512, 32 << 20));
    assert_eq!(client.export().size, 1 << 30);
    let data: Vec<u8> = (0..5_000_192_u32).map(|i| (i % 251) as u8).collect();
    client.write(1 << 20, &data, true).unwrap();
    client.flush().unwrap();
    client.zeroes(2 << 20, 1 << 20).unwrap();
    client.trim(3 << 20, 1 << 20).unwrap();
    let mut wanted = vec![0; 6 << 20];
    wanted[1 << 20..][..data.len()].copy_from_slice(&data);
    wanted[2 << 20..][..2 << 20].fill(0);
    let mut other = lab.client(0);
    let mut found = vec![1; 6 << 20];
    other.read(0, &mut found).unwrap();
    assert!(found == wanted);
    lab.client(1).read(0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 0), "disks are apart");
    client.disconnect().unwrap();

    let path = lab.path(0);
    let report = lab.running.stop().unwrap();
    assert!(!path.exists());
    let disk = &report.disks[0];
    assert_eq!(
        (
            disk.reads,
            disk.writes,
            disk.flushes,
            disk.trims,
            disk.errors
        ),
        (1, 2, 1, 1, 0)
    );
    assert_eq!(disk.bytes_written, data.len() as u64 + (1 << 20));
    assert_eq!(report.lateness.all.count(), 6);
    assert_eq!(report.connections, 3);
}

#[test]
fn a_disk_that_takes_no_writes_past_its_buffer_offers_none() {
    let lab = serve(&spec("ahci", "sata-ssd", &[1]), 16 << 20);
    let mut client = lab.client(0);
    let refused = client.write(0, &[1; 512], true);
    assert!(
        matches!(refused, Err(ClientError::Failed(error::EINVAL))),
        "{refused:?}"
    );
    client.write(0, &[1; 512], false).unwrap();
    client.flush().unwrap();
}

#[test]
fn what_is_shown_begins_where_it_is_said() {
    let fabric = Fabric::new(&fast(), 1).unwrap();
    let budget = Budget::new(1 << 20);
    let store = Store::Sparse(Sparse::new(&budget));
    let disk = Disk::new(0, &fabric.ports()[0], "a part", 1 << 20, store).from(64 << 20);
    let mut server = Server::new(fabric, vec![disk], Options::default());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("part.sock");
    server.listen(Listener::unix(&path, 0).unwrap());
    let running = server.start().unwrap();
    let unreadable = |lba| Fault::Unreadable {
        lba,
        sectors: 8,
        retries: 0,
    };
    // The first is not shown, the second is the second page of what is.
    running.inject(0, unreadable(8));
    running.inject(0, unreadable((64 << 11) + 8));
    let mut client = Client::connect(UnixStream::connect(&path).unwrap(), "").unwrap();
    let mut page = [0; 4096];
    // Before its neighbours, with which a drive reads it ahead.
    let bad = client.read(4096, &mut page);
    assert!(
        matches!(bad, Err(ClientError::Failed(error::EIO))),
        "{bad:?}"
    );
    client.write(0, &[7; 4096], true).unwrap();
    client.read(0, &mut page).unwrap();
    assert_eq!(page, [7; 4096]);
    client.read(8192, &mut page).unwrap();
    running.stop().unwrap();
}

#[test]
fn replies_leave_in_the_models_time() {
    let lab = serve(&spec("ahci", "ST3250624AS", &[1]), 1 << 20);
    let mut client = lab.client(0);
    let begun = Instant::now();
    let mut byte = [0; 512];
    let mut engine = Engine::new(Fabric::new(&spec("ahci", "ST3250624AS", &[1]), 1).unwrap());
    let reads = 20;
    for i in 0..reads {
        client.read((i * 7919 % 2048) * 524_288, &mut byte).unwrap();
    }
    let took = begun.elapsed();
    // The same reads, one after the other, on the model alone; the angle differs.
    let (mut now, mut done) = (raidlab_core::time::Instant::ZERO, Vec::new());
    for i in 0..reads {
        let offset = (i * 7919 % 2048) * 524_288;
        let action = crate::session::Action::Read;
        let job = crate::engine::Job::of(0, action, offset, 512, false).unwrap();
        engine.submit(now, 0, job);
        while done.is_empty() {
            let next = engine.next_event().unwrap();
            engine.advance(next, &mut done);
        }
        now = done.remove(0).at;
    }
    let model = Duration::from_nanos(now.0);
    let turn = Duration::from_micros(8_334);
    assert!(took > model / 2, "{took:?} against {model:?}");
    let report = lab.running.report().unwrap();
    let late = report.lateness.all.sum() as u64 + 50_000_000;
    let most = 2 * model + turn * reads as u32 + Duration::from_nanos(late);
    assert!(took < most, "{took:?} against {model:?}");
}

#[test]
fn what_cannot_be_done_is_answered() {
    let lab = serve(&fast(), 2 * PAGE as u64);
    let mut client = lab.client(0);
    let failed = |result: Result<(), ClientError>| match result {
        Err(ClientError::Failed(error)) => error,
        other => panic!("{other:?}"),
    };
    let mut two = [0; 1024];
    let size = client.export().size;
    assert_eq!(failed(client.read(size - 512, &mut two)), error::EINVAL);
    assert_eq!(failed(client.read(3, &mut two)), error::EINVAL);
    assert_eq!(failed(client.write(size, &two, false)), error::ENOSPC);
    // No memory for so much; the connection goes on.
    let most = vec![1; 3 * PAGE];
    assert_eq!(failed(client.write(0, &most, false)), error::ENOSPC);
    client.write(0, &most[..PAGE], false).unwrap();
    client.flush().unwrap();

    lab.running.inject(0, Fault::Dead);
    assert_eq!(failed(client.read(0, &mut two)), error::EIO);
    lab.client(1).read(0, &mut two).unwrap();
    let report = lab.running.report().unwrap();
    assert_eq!(report.disks[0].errors, 2);
}

#[test]
fn odd_clients_harm_nobody() {
    let lab = serve(&fast(), 16 << 20);
    let mut steady = lab.client(0);
    // Garbage, in place of the flags and of a request.
    let mut stream = lab.stream(0);
    stream.write_all(&[0xff; 500]).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let mut client = lab.client(0);
    client.stream().write_all(&[b'x'; 100]).unwrap();
    assert!(client.receive().is_err());
    // An export that is not there, both ways.
    let greeted = Greeted::new(lab.stream(0)).unwrap();
    assert!(matches!(
        greeted.go("nowhere"),
        Err(ClientError::Refused(..))
    ));
    let greeted = Greeted::new(lab.stream(0)).unwrap();
    assert!(greeted.export_name("nowhere").is_err());
    // The list has what this socket has.
    let mut greeted = Greeted::new(lab.stream(1)).unwrap();
    assert_eq!(greeted.list().unwrap(), ["disk1"]);
    assert!(greeted.option(option::STRUCTURED_REPLY, &[]).is_err());
    greeted.abort().unwrap();
    // Gone in the middle of a write: whole sectors alone are there.
    let mut client = lab.client(0);
    steady.write(0, &[2; 4096], false).unwrap();
    client.send(Command::Write, 0, 0, 4096, &[1; 1000]).unwrap();
    drop(client);
    let mut found = [0; 4096];
    let deadline = Instant::now() + Duration::from_secs(30);
    while found[0] != 1 {
        assert!(Instant::now() < deadline, "the first sector never came");
        steady.read(0, &mut found).unwrap();
    }
    assert!(found[..512].iter().all(|byte| *byte == 1));
    assert!(
        found[512..].iter().all(|byte| *byte == 2),
        "no part of a sector"
    );
    // A half-closed connection gets its answers.
    let mut client = lab.client(0);
    for _ in 0..3 {
        client.send(Command::Read, 0, 0, 512, &[]).unwrap();
    }
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.stream().read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 3 * (16 + 512));
    steady.flush().unwrap();
}

/// Each client that is killed in the middle of a write gives its place back: there is room for 256 at a time.
#[test]
fn clients_that_are_gone_in_the_middle_of_a_write_keep_nobody_out() {
    let lab = serve(&fast(), 16 << 20);
    for _ in 0..300 {
        let mut client = lab.client(0);
        client.send(Command::Write, 0, 0, 4096, &[1; 1000]).unwrap();
    }
    lab.client(0).flush().unwrap();
}

#[test]
fn requests_overlap_and_replies_find_their_way() {
    let lab = serve(&fast(), 64 << 20);
    let mut client = lab.client(0);
    let n = 200_u64;
    for i in 0..n {
        let data = vec![i as u8 + 1; 4096];
        client
            .send(Command::Write, 0, i * 4096, 4096, &data)
            .unwrap();
    }
    let mut seen: Vec<u64> = Vec::new();
    for _ in 0..n {
        let SimpleReply { error, cookie } = client.receive().unwrap();
        assert_eq!(error, 0);
        seen.push(cookie);
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=n).collect::<Vec<_>>());
    let mut all = vec![0; n as usize * 4096];
    client.read(0, &mut all).unwrap();
    for (i, part) in all.chunks(4096).enumerate() {
        assert!(part.iter().all(|byte| *byte == i as u8 + 1));
    }
}

/// Data of which the first sector comes in two parts are in their places, in memory that is written straight.
#[test]
fn writes_that_are_cut_anywhere_are_whole_in_memory_in_one_piece() {
    let size = 1 << 30;
    let mut memory = Memory::anonymous(2 * size).unwrap();
    let mut parts = memory.divide(&[size, size]).unwrap();
    let lab = serve_with(&fast(), || Store::Mapped(parts.pop().expect("two disks")));
    let mut client = lab.client(0);
    let data: Vec<u8> = (0..600_064_u32)
        .map(|at| ((at / 7) ^ (at / 512)) as u8)
        .collect();
    let request = RawRequest {
        flags: 0,
        command: Command::Write,
        cookie: 1,
        offset: 0,
        len: data.len() as u32,
    };
    let stream = client.stream();
    stream.write_all(&request.encode()).unwrap();
    stream.write_all(&data[..100]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    stream.write_all(&data[100..]).unwrap();
    assert_eq!(client.receive().unwrap().error, 0);
    let mut found = vec![0; data.len()];
    client.read(0, &mut found).unwrap();
    let wrong = found
        .iter()
        .zip(&data)
        .position(|(found, wanted)| found != wanted);
    assert_eq!(wrong, None, "the first wrong byte");
}

#[test]
fn a_client_that_does_not_read_is_waited_for() {
    let lab = serve(&fast(), 1 << 20);
    let mut lazy = lab.client(0);
    for _ in 0..64 {
        lazy.send(Command::Read, 0, 0, 1 << 20, &[]).unwrap();
    }
    lab.client(0).read(0, &mut [0; 4096]).unwrap();
    let mut part = vec![0; 1 << 20];
    for _ in 0..64 {
        assert_eq!(lazy.receive().unwrap().error, 0);
        lazy.stream().read_exact(&mut part).unwrap();
    }
}

#[test]
fn sockets_of_the_dead_are_replaced_and_those_of_the_living_are_not() {
    let lab = serve(&fast(), 1 << 20);
    let living = lab.path(0);
    assert!(matches!(
        Listener::unix(&living, 0),
        Err(ListenError::InUse(_))
    ));
    lab.client(0).flush().unwrap();

    let dead = lab.directory.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    assert!(dead.exists());
    let listener = Listener::unix(&dead, 0).unwrap();
    let mode = std::fs::symlink_metadata(&dead)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "its owner's alone");
    drop(listener);
    assert!(!dead.exists());

    std::fs::write(&dead, "a letter").unwrap();
    assert!(matches!(
        Listener::unix(&dead, 0),
        Err(ListenError::NotASocket(_))
    ));
    assert_eq!(std::fs::read_to_string(&dead).unwrap(), "a letter");
    let long = lab.directory.path().join("x".repeat(120));
    assert!(matches!(
        Listener::unix(&long, 0),
        Err(ListenError::TooLong(_))
    ));
    assert!(Listener::unix(Path::new("/nowhere/at/all.sock"), 0).is_err());
}

#[test]
fn tcp_stays_on_this_machine() {
    let wide = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(
        Listener::tcp(wide, 1),
        Err(ListenError::NotLoopback(_))
    ));
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let address = listener.address().unwrap();
    assert!(matches!(
        Listener::tcp(address, 1),
        Err(ListenError::InUse(_))
    ));
    let fabric = Fabric::new(&fast(), 1).unwrap();
    let budget = Budget::new(1 << 20);
    let disk = |(number, port): (usize, &PortInfo)| {
        let store = Store::Sparse(Sparse::new(&budget));
        Disk::new(number as u32, port, "a disk", u64::MAX, store)
    };
    let disks = fabric.ports().iter().enumerate().map(disk).collect();
    let mut server = Server::new(fabric, disks, Options::default());
    server.listen(listener);
    let running = server.start().unwrap();
    let stream = std::net::TcpStream::connect(address).unwrap();
    let mut greeted = Greeted::new(stream).unwrap();
    assert_eq!(greeted.list().unwrap(), ["disk0", "disk1"]);
    let mut client = greeted.go("disk1").unwrap();
    client.write(0, &[3; 512], true).unwrap();
    client.read(0, &mut [0; 512]).unwrap();
    assert!(running.is_running());
    drop(running);
    assert!(client.read(0, &mut [0; 512]).is_err());
}
