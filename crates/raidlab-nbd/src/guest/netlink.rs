//! The kernel's generic netlink, as far as its client of NBD speaks it: connecting and disconnecting a device without
//! keeping it open. Message format from linux/netlink.h and linux/genetlink.h, attributes from linux/nbd-netlink.h.
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `NLM_F_REQUEST | NLM_F_ACK`: what is asked, and answered even if there is nothing to say.
const ASK: u16 = 1 | 4;
/// `NLMSG_ERROR`: an errno, 0 for an acknowledgement.
const ERROR: u16 = 2;
/// `NLA_F_NESTED`.
const NESTED: u16 = 1 << 15;
/// What of an attribute's type is its type (`NLA_TYPE_MASK`).
const TYPE: u16 = (1 << 14) - 1;
/// `struct nlmsghdr` and `struct genlmsghdr`.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// Answers are shorter: the longest tells of a family with all its operations.
const ANSWER: usize = 32 << 10;

/// The family that tells of families.
mod control {
    pub(super) const ID: u16 = 0x10;
    /// Of its messages (`CTRL_CMD_GETFAMILY` of version 2).
    pub(super) const VERSION: u8 = 2;
    pub(super) const GET_FAMILY: u8 = 3;
    pub(super) const FAMILY_ID: u16 = 1;
    pub(super) const FAMILY_NAME: u16 = 2;
}

/// The family of NBD, since Linux 4.12.
mod nbd {
    pub(super) const NAME: &[u8] = b"nbd\0";
    pub(super) const VERSION: u8 = 1;
    pub(super) const CONNECT: u8 = 1;
    pub(super) const DISCONNECT: u8 = 2;
    pub(super) const INDEX: u16 = 1;
    pub(super) const SIZE_BYTES: u16 = 2;
    pub(super) const BLOCK_SIZE_BYTES: u16 = 3;
    pub(super) const SERVER_FLAGS: u16 = 5;
    pub(super) const SOCKETS: u16 = 7;
    /// Within [`SOCKETS`].
    pub(super) const SOCKET: u16 = 1;
    /// Within [`SOCKET`].
    pub(super) const SOCKET_FD: u16 = 1;
}

/// What a device is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// N of `/dev/nbdN`.
    pub(super) index: u32,
    /// Its size.
    pub(super) bytes: u64,
    /// Its logical sector in bytes.
    pub(super) sector: u32,
    /// What the server can do, as in NBD's transmission flags.
    pub(super) flags: u16,
}

/// A message under way: a header whose length is put in at the end, then attributes.
struct Message(Vec<u8>);

impl Message {
    fn new(family: u16, command: u8, version: u8, sequence: u32) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(family.to_ne_bytes());
        bytes.extend(ASK.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        // The port is the kernel's to fill in.
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend([command, version, 0, 0]);
        Self(bytes)
    }

    fn attribute(mut self, kind: u16, payload: &[u8]) -> Self {
        self.0.extend(attribute(kind, payload));
        self
    }

    fn done(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// An attribute: its length without what fills it up to four bytes, its type, its content.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = (4 + payload.len()) as u16;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The message that connects a device. A timeout is not among what it says: the kernel waits for an answer as long as
/// there is a connection, as it does without netlink. When that breaks, requests fail at once (no `DEAD_CONN_TIMEOUT`).
fn connect(family: u16, wanted: Wanted, socket: i32, sequence: u32) -> Vec<u8> {
    let fd = attribute(nbd::SOCKET_FD, &socket.to_ne_bytes());
    let item = attribute(nbd::SOCKET | NESTED, &fd);
    Message::new(family, nbd::CONNECT, nbd::VERSION, sequence)
        .attribute(nbd::INDEX, &wanted.index.to_ne_bytes())
        .attribute(nbd::SIZE_BYTES, &wanted.bytes.to_ne_bytes())
        .attribute(
            nbd::BLOCK_SIZE_BYTES,
            &u64::from(wanted.sector).to_ne_bytes(),
        )
        .attribute(nbd::SERVER_FLAGS, &u64::from(wanted.flags).to_ne_bytes())
        .attribute(nbd::SOCKETS | NESTED, &item)
        .done()
}

/// Parts of a buffer whose first bytes tell their length, each at a multiple of four: messages or attributes.
fn parts(bytes: &[u8], header: usize, length: fn(&[u8]) -> usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let long = (rest.len() >= header).then(|| length(rest))?;
        let part = (long >= header).then(|| rest.get(..long)).flatten()?;
        rest = rest.get(long.next_multiple_of(4)..).unwrap_or_default();
        Some(part)
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(found.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(found.try_into().ok()?))
}

/// What a datagram says on a question: attributes that came of it go into `found`; the end, well or ill, once it is there.
fn read(datagram: &[u8], sequence: u32, found: &mut Vec<u8>) -> Option<io::Result<()>> {
    let long = |bytes: &[u8]| u32_at(bytes, 0).unwrap_or(0) as usize;
    for message in parts(datagram, HEADER, long) {
        if u32_at(message, 8) != Some(sequence) {
            continue;
        }
        if u16_at(message, 4) != Some(ERROR) {
            let said = message.get(HEADER + GENERIC_HEADER..).unwrap_or_default();
            found.extend_from_slice(said);
            continue;
        }
        return Some(match u32_at(message, HEADER) {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error((errno as i32).wrapping_neg())),
            None => Err(io::ErrorKind::InvalidData.into()),
        });
    }
    None
}

/// The number that the kernel has given a family, among attributes.
fn family_id(attributes: &[u8]) -> Option<u16> {
    let long = |bytes: &[u8]| usize::from(u16_at(bytes, 0).unwrap_or(0));
    let mut all = parts(attributes, 4, long);
    let id = all.find(|part| u16_at(part, 2).map(|kind| kind & TYPE) == Some(control::FAMILY_ID));
    u16_at(id?, 4)
}

/// A way to the kernel's client of NBD.
#[derive(Debug)]
pub(super) struct Family {
    socket: OwnedFd,
    id: u16,
}

impl Family {
    /// `None` when this kernel has no such family.
    pub(super) fn find() -> io::Result<Option<Self>> {
        let flags = SocketFlags::CLOEXEC;
        let (netlink, generic) = (AddressFamily::NETLINK, Some(GENERIC));
        let socket = match socket_with(netlink, SocketType::RAW, flags, generic) {
            Ok(socket) => socket,
            // A kernel without netlink, or without the generic one.
            Err(rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::PROTONOSUPPORT) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let question = Message::new(control::ID, control::GET_FAMILY, control::VERSION, 1)
            .attribute(control::FAMILY_NAME, nbd::NAME)
            .done();
        match ask(&socket, &question, 1) {
            Ok(attributes) => {
                let id = family_id(&attributes).ok_or(io::ErrorKind::InvalidData)?;
                Ok(Some(Self { socket, id }))
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Connects a device to a socket, of which the kernel then has its own descriptor.
    ///
    /// # Errors
    /// `EBUSY` when the device is in use, or open; whatever else the kernel says.
    pub(super) fn connect(&self, wanted: Wanted, socket: BorrowedFd<'_>) -> io::Result<()> {
        let question = connect(self.id, wanted, socket.as_raw_fd(), 2);
        ask(&self.socket, &question, 2).map(drop)
    }

    /// Disconnects a device. What is under way on it fails; when this returns nobody receives for it any more.
    ///
    /// # Errors
    /// Whatever the kernel says. That it is not connected is none.
    pub(super) fn disconnect(&self, index: u32) -> io::Result<()> {
        let question = Message::new(self.id, nbd::DISCONNECT, nbd::VERSION, 3)
            .attribute(nbd::INDEX, &index.to_ne_bytes())
            .done();
        ask(&self.socket, &question, 3).map(drop)
    }
}

/// Asks, and gives the attributes of the answer. The kernel has answered when the call that sends returns.
fn ask(socket: &OwnedFd, question: &[u8], sequence: u32) -> io::Result<Vec<u8>> {
    sendto(
        socket,
        question,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut found = Vec::new();
    let mut buffer = vec![0; ANSWER];
    loop {
        let (_, length) = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        if let Some(end) = read(&buffer[..length.min(ANSWER)], sequence, &mut found) {
            return end.map(|()| found);
        }
    }
}

#[cfg(test)]
mod tests;
