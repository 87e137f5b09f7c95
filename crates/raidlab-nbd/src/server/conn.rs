//! One client: its socket, its session, and what is to be sent to it.
use super::run::Shared;
use crate::session::{Action, Ending, Event, Request, Session, reply};
use crate::wire::{REPLY, error};
use raidlab_core::time::Instant;
use raidlab_core::units::SECTOR;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Requests of one client that are carried out or wait to be answered; more are left in its socket, or where they have
/// been read.
const MOST_REQUESTS: usize = 512;
/// Bytes of words that one client does not take; nothing more is made of what it has sent then.
const MOST_QUEUED: usize = 256 << 10;
/// Parts of replies that go out in one system call.
const MOST_PARTS: usize = 16;
/// Bytes that are read behind the data of a write: the headers that follow it.
const BEHIND: usize = 512;
/// Nanoseconds of the shortest nap and of the longest, see [`Options`](super::Options::nap_per_kib).
const SHORTEST_NAP: u64 = 10_000;
const LONGEST_NAP: u64 = 2_000_000;
/// Reads from one socket before the others have their turn.
const ROUNDS: u32 = 8;

/// The client has gone, or is to be let go.
#[derive(Debug)]
pub(super) struct Gone;

/// Something to be sent.
#[derive(Debug)]
enum Out {
    /// What the session says by itself.
    Words(Vec<u8>, usize),
    /// The head of a reply.
    Head([u8; REPLY], usize),
    /// Data of a read, taken from the store as it goes.
    Data { disk: usize, at: u64, left: u64 },
}

/// A write whose data are coming.
#[derive(Debug)]
struct Landing {
    number: u64,
    disk: usize,
    /// Its disk was there as it came; otherwise they are passed over.
    keep: bool,
    /// Where the next byte goes.
    at: u64,
    /// The beginning of a sector that is not whole yet: a disk writes whole ones only.
    tail: Vec<u8>,
}

/// A client.
#[derive(Debug)]
pub(super) struct Conn {
    id: u64,
    socket: OwnedFd,
    session: Session,
    /// Number of the first export of its session.
    first: usize,
    landing: Option<Landing>,
    /// What has been read and not taken, and how much of that has been meanwhile.
    kept: (Vec<u8>, usize),
    out: VecDeque<Out>,
    /// Requests that have not been answered.
    pub(super) waiting: usize,
    /// Bytes of words that have not been sent.
    pub(super) queued: usize,
    /// Nothing more is read.
    closing: bool,
    /// The socket takes no more for now.
    blocked: bool,
    /// Not to be looked at until then.
    pub(super) nap: Option<Instant>,
    /// How long the last nap was that nothing has come in, in nanoseconds.
    dozed: u64,
}

impl Conn {
    pub(super) fn new(id: u64, socket: OwnedFd, session: Session, first: usize) -> Self {
        Self {
            id,
            socket,
            session,
            first,
            landing: None,
            kept: (Vec::new(), 0),
            out: VecDeque::new(),
            waiting: 0,
            queued: 0,
            closing: false,
            blocked: false,
            nap: None,
            dozed: 0,
        }
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether there is room for what it may ask for.
    pub(super) fn listens(&self) -> bool {
        let room = self.waiting < MOST_REQUESTS && self.out.len() < 2 * MOST_REQUESTS;
        !self.closing && self.nap.is_none() && room && self.queued < MOST_QUEUED
    }

    /// Whether it goes on with what it has read, without more to come.
    pub(super) fn resumes(&self) -> bool {
        !self.kept.0.is_empty() && self.listens()
    }

    /// Whether it waits for the socket to take more.
    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Reads what has come.
    pub(super) fn receive(&mut self, shared: &mut Shared) -> Result<(), Gone> {
        self.nap = None;
        // The greeting, to begin with.
        self.say();
        for round in 0..ROUNDS {
            if !self.listens() {
                break;
            }
            if round > 0 {
                shared.turn();
            }
            let more = if self.kept.0.is_empty() {
                self.read(shared)?
            } else {
                let (kept, taken) = std::mem::take(&mut self.kept);
                let left = self.digest(&kept[taken..], shared).len();
                if left > 0 {
                    let taken = kept.len() - left;
                    self.kept = (kept, taken);
                }
                true
            };
            self.say();
            if !more {
                break;
            }
        }
        let due = self.session.payload();
        if due > 0 && shared.nap_per_kib > 0 && !self.closing && self.kept.0.is_empty() {
            self.doze(due, shared);
        }
        self.send(shared)
    }

    /// What the session has to say by itself goes behind what is to be sent already.
    fn say(&mut self) {
        let words = self.session.output();
        if !words.is_empty() {
            self.queued += words.len();
            self.out.push_back(Out::Words(std::mem::take(words), 0));
        }
    }

    /// Sleeps until what is due has probably come; longer each time that nothing has, so that whoever
    /// sends it on the same processor gets on.
    fn doze(&mut self, due: u64, shared: &Shared) {
        let due = SHORTEST_NAP + due * shared.nap_per_kib / 1024;
        self.dozed = match self.dozed {
            0 => due,
            before => due.max(2 * before).min(LONGEST_NAP),
        };
        self.nap = Some(Instant(shared.now.0 + self.dozed));
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, shared: &mut Shared) -> Result<bool, Gone> {
        let mut buffer = std::mem::take(&mut shared.buffer);
        let result = self.read_into(shared, &mut buffer);
        shared.buffer = buffer;
        result
    }

    fn read_into(&mut self, shared: &mut Shared, buffer: &mut [u8]) -> Result<bool, Gone> {
        let due = self.session.payload() as usize;
        let landing = self.landing.as_mut();
        let place = landing.filter(|landing| due > 0 && landing.keep);
        let place = place.and_then(|l| shared.disks[l.disk].store.direct_mut(l.at, due));
        let (straight, wanted, got) = match place {
            Some(place) => {
                let straight = place.len();
                let behind = &mut buffer[..BEHIND];
                let parts = &mut [IoSliceMut::new(place), IoSliceMut::new(behind)];
                let got = rustix::io::readv(&self.socket, parts);
                (straight, straight + BEHIND, got)
            }
            None => (
                0,
                buffer.len(),
                rustix::io::read(&self.socket, &mut *buffer),
            ),
        };
        let got = match got {
            Ok(0) => {
                self.closing = true;
                return match self.session.end() {
                    // What it began will never be whole and never be answered: to wait for that would keep the
                    // connection for good.
                    Ending::Cut => Err(Gone),
                    _ => Ok(false),
                };
            }
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(_) => return Err(Gone),
        };
        self.dozed = 0;
        let straight = straight.min(got);
        if straight > 0 {
            self.session.payload_taken(straight as u64);
            if let Some(landing) = &mut self.landing {
                landing.at += straight as u64;
            }
            self.landed(shared);
        }
        let left = self.digest(&buffer[..got - straight], shared);
        self.kept = (left.to_vec(), 0);
        Ok(got == wanted)
    }

    /// Takes what there is room for; the rest.
    fn digest<'b>(&mut self, mut input: &'b [u8], shared: &mut Shared) -> &'b [u8] {
        while !input.is_empty() && self.listens() {
            match self.session.take(&mut input) {
                Some(event) => self.event(event, shared),
                None => self.say(),
            }
        }
        // Nothing follows an end.
        if self.closing { &[] } else { input }
    }

    fn event(&mut self, event: Event<'_>, shared: &mut Shared) {
        match event {
            Event::Opened(_) => {}
            Event::Request(request) => self.request(request, shared),
            Event::Data(data) => {
                self.land(data, shared);
                self.landed(shared);
            }
            Event::Closed(_) => self.closing = true,
        }
    }

    fn request(&mut self, request: Request, shared: &mut Shared) {
        let Some(export) = self.session.export() else {
            return;
        };
        let disk = self.first + export;
        let number = shared.submit(self.id, disk, request);
        self.waiting += 1;
        if request.action == Action::Write {
            self.landing = Some(Landing {
                number,
                disk,
                keep: !shared.is_dead(disk),
                at: request.offset,
                tail: Vec::new(),
            });
        }
    }

    /// Puts data of the last write where they belong, whole sectors at a time.
    fn land(&mut self, mut data: &[u8], shared: &mut Shared) {
        let last = self.session.payload() == 0;
        let Some(landing) = self.landing.as_mut().filter(|landing| landing.keep) else {
            return;
        };
        let mut kept = Ok(());
        let store = &mut shared.disks[landing.disk].store;
        if let Some(place) = store.direct_mut(landing.at, data.len()) {
            // What comes next is read straight into its place, behind this: nothing may be kept back.
            place.copy_from_slice(data);
            landing.at += data.len() as u64;
            return;
        }
        let sector = SECTOR as usize;
        if !landing.tail.is_empty() {
            let within = (landing.at + landing.tail.len() as u64) % SECTOR;
            let (head, rest) = data.split_at(data.len().min(sector - within as usize));
            landing.tail.extend(head);
            data = rest;
            let end = landing.at + landing.tail.len() as u64;
            if end.is_multiple_of(SECTOR) || (last && data.is_empty()) {
                kept = store.write(landing.at, &landing.tail);
                (landing.at, landing.tail) = (end, Vec::new());
            }
        }
        if landing.tail.is_empty() && !data.is_empty() {
            let end = landing.at + data.len() as u64;
            let whole = if last { end } else { end - end % SECTOR };
            let (now, later) = data.split_at(whole.saturating_sub(landing.at) as usize);
            kept = kept.and(store.write(landing.at, now));
            landing.at += now.len() as u64;
            landing.tail.extend(later);
        }
        if kept.is_err() {
            shared.lost(landing.number);
        }
    }

    /// Some data have been put in their place, perhaps the last.
    fn landed(&mut self, shared: &mut Shared) {
        if self.session.payload() == 0
            && let Some(landing) = self.landing.take()
        {
            shared.data_complete(landing.number);
        }
    }

    /// Answers a request: with data, if it was a read that went well.
    pub(super) fn answer(&mut self, disk: usize, request: &Request, error: u32) {
        self.waiting -= 1;
        self.out
            .push_back(Out::Head(reply(request.cookie, error), 0));
        if request.action == Action::Read && error == 0 {
            self.out.push_back(Out::Data {
                disk,
                at: request.offset,
                left: u64::from(request.len),
            });
        }
    }

    /// Sends as much as the socket takes.
    pub(super) fn send(&mut self, shared: &mut Shared) -> Result<(), Gone> {
        self.blocked = false;
        while !self.out.is_empty() {
            let mut copy = std::mem::take(&mut shared.copy);
            let sent = self.send_parts(shared, &mut copy);
            shared.copy = copy;
            match sent? {
                0 => {
                    self.blocked = true;
                    return Ok(());
                }
                sent => self.sent(sent),
            }
        }
        if self.closing && self.waiting == 0 {
            return Err(Gone);
        }
        Ok(())
    }

    /// Offers the socket what is next; how much it took.
    fn send_parts(&self, shared: &Shared, copy: &mut [u8]) -> Result<usize, Gone> {
        let mut parts: Vec<IoSlice<'_>> = Vec::with_capacity(MOST_PARTS);
        let mut copy = Some(copy);
        for out in self.out.iter().take(MOST_PARTS) {
            let part = match out {
                Out::Words(bytes, sent) => &bytes[*sent..],
                Out::Head(bytes, sent) => &bytes[*sent..],
                Out::Data { disk, at, left } => {
                    let store = &shared.disks[*disk].store;
                    if let Some(data) = store.direct(*at, *left as usize) {
                        parts.push(IoSlice::new(data));
                        continue;
                    }
                    let Some(copy) = copy.take() else { break };
                    let n = copy.len().min(*left as usize);
                    // The head has promised data: without them the client must not go on.
                    store.read(*at, &mut copy[..n]).map_err(|_| Gone)?;
                    parts.push(IoSlice::new(&copy[..n]));
                    if (n as u64) < *left {
                        break;
                    }
                    continue;
                }
            };
            parts.push(IoSlice::new(part));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(
            &self.socket,
            &parts,
            &mut SendAncillaryBuffer::default(),
            flags,
        ) {
            Ok(sent) => Ok(sent),
            // The socket is polled, and then it goes on.
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => Err(Gone),
        }
    }

    /// So many bytes have gone.
    fn sent(&mut self, mut sent: usize) {
        while sent > 0
            && let Some(out) = self.out.front_mut()
        {
            let left = match out {
                Out::Words(bytes, done) => bytes.len() - *done,
                Out::Head(bytes, done) => bytes.len() - *done,
                Out::Data { left, .. } => *left as usize,
            };
            if sent >= left {
                if let Some(Out::Words(bytes, _)) = self.out.pop_front() {
                    self.queued -= bytes.len();
                }
                sent -= left;
                continue;
            }
            match out {
                Out::Words(_, done) | Out::Head(_, done) => *done += sent,
                Out::Data { at, left, .. } => {
                    *at += sent as u64;
                    *left -= sent as u64;
                }
            }
            sent = 0;
        }
    }
}

/// The error that a request is answered with.
pub(super) const fn code(failed: bool, lost: bool) -> u32 {
    match (failed, lost) {
        (true, _) => error::EIO,
        (false, true) => error::ENOSPC,
        (false, false) => 0,
    }
}
