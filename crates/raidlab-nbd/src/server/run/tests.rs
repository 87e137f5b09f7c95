//! The loop, turn by turn and without its thread.
use super::*;
use crate::engine::tests::spec;
use crate::store::{Backing, Budget, Memory, Sparse, Store};
use crate::wire::{Command, OptionHead, REPLY, RawRequest, SimpleReply, error, option};
use raidlab_sim::disk::Fault;
use raidlab_sim::fabric::Fabric;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;

struct Turns {
    it: Loop,
    controls: Controls,
    exports: Arc<[Export]>,
}

impl Turns {
    fn new(card: &str, disk: &str, store: Store) -> Self {
        let fabric = Fabric::new(&spec(card, disk, &[1]), 1).unwrap();
        let disk = Disk::new(0, &fabric.ports()[0], "a disk", 1 << 30, store);
        let server = Server::new(fabric, vec![disk], Options::default());
        let exports = server.exports().into();
        let (_, requests) = channel();
        let flags = rustix::event::EventfdFlags::NONBLOCK;
        let wake = Arc::new(rustix::event::eventfd(0, flags).unwrap());
        Self {
            it: Loop::new(server, true),
            controls: Controls { requests, wake },
            exports,
        }
    }

    fn sparse(card: &str, disk: &str) -> Self {
        let store = Sparse::new(&Budget::new(64 << 20));
        Self::new(card, disk, Store::Sparse(store))
    }

    /// What the thread does in one turn; with nothing to be done it goes on.
    fn turn(&mut self) {
        self.it.shared.turn();
        self.it.answer();
        self.look();
    }

    /// The half of it in which sockets are looked at.
    fn look(&mut self) {
        let mut descriptors = Vec::new();
        rustix::io::write(&*self.controls.wake, &1_u64.to_ne_bytes()).unwrap();
        self.it.poll(&self.controls, &mut descriptors);
        self.it.shared.turn();
        self.it.take(&descriptors);
    }

    /// A client that has sent this before the server looks at it.
    fn client(&mut self, session: Session, bytes: &[u8]) -> UnixStream {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        client.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        self.it.add(server.into(), session, 0);
        client
    }

    /// A client that need not be told of its export.
    fn told(&mut self, bytes: &[u8]) -> UnixStream {
        let exports = Arc::clone(&self.exports);
        self.client(Session::transmitting(exports, 0), bytes)
    }

    /// Turns until the client has got so many bytes.
    fn read(&mut self, client: &mut UnixStream, len: usize) -> Vec<u8> {
        let (mut found, mut got) = (vec![0; len], 0);
        for _ in 0..20_000 {
            match client.read(&mut found[got..]) {
                Ok(n) => got += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("{error}"),
            }
            if got == len {
                return found;
            }
            self.turn();
        }
        panic!("{got} of {len} bytes came");
    }

    fn reply(&mut self, client: &mut UnixStream) -> (u64, u32) {
        let bytes = self.read(client, REPLY).try_into().unwrap();
        let SimpleReply { error, cookie } = SimpleReply::parse(&bytes).unwrap();
        (cookie, error)
    }

    /// Until the models have nothing to do and the loop knows it.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.turn();
            if self.it.shared.engine.in_flight() == 0 {
                return self.turn();
            }
        }
        panic!("the model has not ended");
    }

    fn content(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut found = vec![0xee; len];
        let store = &self.it.shared.disks[0].store;
        store.read(offset, &mut found).unwrap();
        found
    }
}

fn ask(command: Command, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let request = RawRequest {
        flags: 0,
        command,
        cookie,
        offset,
        len,
    };
    request.encode().to_vec()
}

/// Its write is whole and ended, and it is gone, in one and the same look at its socket; its place in the table goes to
/// the next who asks.
#[test]
fn what_is_left_of_a_client_that_has_gone_hits_no_other() {
    let mut turns = Turns::sparse("ahci", "ST3250624AS");
    let mut gone = turns.told(&ask(Command::Write, 1, 0, 4096));
    turns.settle();
    gone.write_all(&[1; 4096]).unwrap();
    // Refused at once: the answer finds nobody.
    gone.write_all(&ask(Command::Read, 2, 0, 0)).unwrap();
    drop(gone);
    turns.look();
    assert!(turns.it.conns.is_empty());
    // A quarter of a second: not over when the loop comes to what was left.
    let len = 16 << 20;
    let mut other = turns.told(&ask(Command::Read, 77, 0, len));
    assert_eq!(turns.reply(&mut other), (77, 0));
    assert_eq!(turns.read(&mut other, len as usize)[..4096], [1; 4096]);
    let mut third = turns.told(&ask(Command::Flush, 78, 0, 0));
    assert_eq!(turns.reply(&mut third), (78, 0));
}

/// In whichever way its content is kept; what has begun to come before it fails may be there, in part.
#[test]
fn a_disk_that_has_failed_changes_nothing_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("content");
    let mut memory = Memory::anonymous(1 << 30).unwrap();
    for store in [
        Store::Sparse(Sparse::new(&Budget::new(1 << 20))),
        Store::Backing(Backing::open(&file, 1 << 30).unwrap()),
        Store::Mapped(memory.divide(&[1 << 30]).unwrap().remove(0)),
    ] {
        let mut turns = Turns::new("nvme", "nvme-ssd", store);
        let mut client = turns.told(&ask(Command::Write, 1, 0, 16_384));
        client.write_all(&[1; 16_384]).unwrap();
        assert_eq!(turns.reply(&mut client), (1, 0));

        let shared = &mut turns.it.shared;
        shared.engine.inject(shared.now, 0, Fault::Dead);
        let mut write = ask(Command::Write, 2, 0, 4096);
        write.extend([2; 4096]);
        client.write_all(&write).unwrap();
        assert_eq!(turns.reply(&mut client), (2, error::EIO));
        // The same in pieces that end within sectors.
        for part in write.chunks(700) {
            client.write_all(part).unwrap();
            turns.turn();
        }
        assert_eq!(turns.reply(&mut client), (2, error::EIO));
        let others = [
            (Command::Trim, 4096, 4096),
            (Command::WriteZeroes, 8192, 4096),
            (Command::Flush, 0, 0),
            (Command::Read, 0, 4096),
        ];
        for (command, offset, len) in others {
            client.write_all(&ask(command, 3, offset, len)).unwrap();
            assert_eq!(turns.reply(&mut client), (3, error::EIO), "{command:?}");
        }
        assert!(turns.content(0, 16_384) == [1; 16_384]);
        let report = turns.it.report();
        let disk = &report.disks[0];
        assert_eq!((disk.errors, disk.writes, disk.trims), (6, 1, 0));
    }
}

/// Turns until the client has sent as much as the server takes from it without being read from.
fn flood(turns: &mut Turns, client: &mut UnixStream, bytes: &[u8], look: impl Fn(&Conn)) -> usize {
    let (mut sent, mut refused) = (0, 0);
    while sent < bytes.len() && refused < 100 {
        match client.write(&bytes[sent..]) {
            Ok(n) => (sent, refused) = (sent + n, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
            Err(error) => panic!("{error}"),
        }
        turns.turn();
        turns.it.conns.values().for_each(&look);
    }
    sent
}

/// What one asks for with 16 bytes is fifty times as much, and nobody reads them.
#[test]
fn a_client_that_asks_and_does_not_read_is_not_answered_without_end() {
    let mut turns = Turns::sparse("nvme", "nvme-ssd");
    let model = turns.exports[0].clone();
    let export = |number: u32| Export {
        name: format!("a disk with a long name, {number:03}"),
        ..model.clone()
    };
    let exports: Arc<[Export]> = (0..16).map(export).collect();
    let each = exports.iter().map(|export| 20 + 4 + export.name.len());
    let each = each.sum::<usize>() + 20;
    let mut client = turns.client(Session::new(exports), &1_u32.to_be_bytes());
    let ask = OptionHead {
        option: option::LIST,
        len: 0,
    };
    let asks = ask.encode().repeat(200_000);
    let sent = flood(&mut turns, &mut client, &asks, |conn| {
        assert!(conn.queued < 1 << 20, "{} bytes", conn.queued);
    });
    assert!(sent < asks.len(), "all of it was taken");
    // Whoever reads gets all of it.
    turns.read(&mut client, 18);
    let mut last = Vec::new();
    for _ in 0..sent / OptionHead::LEN {
        last = turns.read(&mut client, each);
    }
    assert!(last.ends_with(&[0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0]));
}

#[test]
fn a_client_has_so_many_requests_under_way_and_no_more() {
    let mut turns = Turns::sparse("nvme", "nvme-ssd");
    let mut client = turns.told(&[]);
    let asks = |from: u64| -> Vec<u8> {
        let ask = |cookie| match cookie % 20 {
            // Refused, passed over, and answered by the loop itself.
            1 => ask(Command::Read, cookie, 0, 0),
            2 => [ask(Command::Write, cookie, 1 << 30, 600), vec![1; 600]].concat(),
            3 => ask(Command::Trim, cookie, 0, 512),
            4 => [ask(Command::Write, cookie, 0, 512), vec![2; 512]].concat(),
            _ => ask(Command::Read, cookie, 8192, 512),
        };
        (from..from + 1000).flat_map(ask).collect()
    };
    let mut cookies = Vec::new();
    for from in [0, 1000, 2000, 3000] {
        let asks = asks(from);
        let sent = flood(&mut turns, &mut client, &asks, |conn| {
            assert!(conn.waiting <= 512, "{} requests", conn.waiting);
        });
        assert_eq!(sent, asks.len());
        for _ in 0..1000 {
            let (cookie, error) = turns.reply(&mut client);
            assert_eq!(
                error != 0,
                matches!(cookie % 20, 1 | 2),
                "{cookie}: {error}"
            );
            if !(1..5).contains(&(cookie % 20)) {
                turns.read(&mut client, 512);
            }
            cookies.push(cookie);
        }
    }
    cookies.sort_unstable();
    assert!(cookies.into_iter().eq(0..4000));
}
