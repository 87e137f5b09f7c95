//! The loop, turn by turn and without its thread.
use super::*;
use crate::engine::tests::spec;
use crate::store::{Backing, Budget, Memory, Sparse, Store};
use crate::wire::{Command, REPLY, RawRequest, SimpleReply, error};
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
