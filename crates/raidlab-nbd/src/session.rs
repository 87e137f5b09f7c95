//! One connection of a server as a state machine.
//!
//! Bytes go in by [`Session::take`], what they ask for comes out as [`Event`]s, and what the session has
//! to say by itself (the handshake, refusals of requests) gathers in [`Session::output`]. Data of writes
//! may also go round the session, straight to their place: [`Session::payload`] says how many bytes are
//! still due, [`Session::payload_taken`] that some have been read.
//!
//! TLS and structured replies are refused, as the protocol allows: servers here listen on UNIX sockets
//! and loopback addresses alone, and modelled disks have no holes to tell of.
mod check;
mod negotiation;

use crate::wire::{
    BlockSizes, ClientFlags, Command, OptionHead, REPLY, REQUEST, RawRequest, SimpleReply,
    WireError,
};
use std::sync::Arc;

/// Bytes of output with which nothing more is taken.
const MOST_OUTPUT: usize = 64 << 10;

/// An export as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients ask for.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Bytes.
    pub size: u64,
    /// Transmission flags, see [`flag`](crate::wire::flag).
    pub flags: u16,
    /// Sizes of requests. The minimum is enforced once a client has asked for them.
    pub blocks: BlockSizes,
}

/// What a client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read.
    Read,
    /// Write; the data follow.
    Write,
    /// Make durable what has ended.
    Flush,
    /// Content is not needed any more.
    Trim,
    /// Write zeroes; with `hole` they need not take space.
    Zeroes {
        /// They need not take space.
        hole: bool,
    },
}

/// A request that has been checked: it lies within the export and has a length where it needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is wanted.
    pub action: Action,
    /// To be given back with the reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub len: u32,
    /// Durable when it ends.
    pub fua: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As the protocol has it, or between two requests.
    Orderly,
    /// In the middle of a message.
    Cut,
    /// Because of what the client sent.
    Bad(WireError),
    /// The client wanted an export that is not there, in the way that has no answer for it.
    UnknownExport,
}

/// What has come of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// The client has chosen an export, by its number; requests follow.
    Opened(usize),
    /// A request. Data of a write follow.
    Request(Request),
    /// Data of the last write, in order; more may follow.
    Data(&'b [u8]),
    /// The connection has ended; replies that are due may still be sent.
    Closed(Ending),
}

/// Where in the protocol it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's answer to the greeting.
    Flags,
    /// The head of an option.
    Head,
    /// The data of an option.
    Data(OptionHead),
    /// The data of an option that is too long to be looked at.
    Skip(OptionHead, u64),
    /// Requests on an export.
    Requests,
    /// Data of a write: bytes still to come.
    Payload(u64),
    /// Data of a write that is refused: bytes still to come, and the refusal.
    Refused(u64, SimpleReply),
    /// Nothing more is taken.
    Closed,
}

/// The server's side of a connection.
#[derive(Clone, Debug)]
pub struct Session {
    exports: Arc<[Export]>,
    phase: Phase,
    client: ClientFlags,
    /// Bytes of a message that is not whole yet.
    partial: Vec<u8>,
    output: Vec<u8>,
    /// The export in use.
    export: usize,
    /// The client knows the block sizes.
    knows_blocks: bool,
}

impl Session {
    /// A new connection; the greeting is in its output.
    #[must_use]
    pub fn new(exports: Arc<[Export]>) -> Self {
        let greeting = negotiation::OFFER.greeting();
        Self {
            output: greeting.to_vec(),
            ..Self::at(exports, Phase::Flags)
        }
    }

    /// A connection that has been negotiated elsewhere: requests on the export of this number.
    #[must_use]
    pub fn transmitting(exports: Arc<[Export]>, export: usize) -> Self {
        Self {
            export,
            knows_blocks: true,
            ..Self::at(exports, Phase::Requests)
        }
    }

    fn at(exports: Arc<[Export]>, phase: Phase) -> Self {
        Self {
            exports,
            phase,
            client: ClientFlags::default(),
            partial: Vec::new(),
            output: Vec::new(),
            export: 0,
            knows_blocks: false,
        }
    }

    /// What is to be sent before anything else; to be drained by the caller.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The export in use, once there is one.
    #[must_use]
    pub fn export(&self) -> Option<usize> {
        match self.phase {
            Phase::Requests | Phase::Payload(_) | Phase::Refused(..) => Some(self.export),
            _ => None,
        }
    }

    /// Bytes of the last write that are still to come and may go straight to their place.
    #[must_use]
    pub fn payload(&self) -> u64 {
        match self.phase {
            Phase::Payload(left) => left,
            _ => 0,
        }
    }

    /// So many bytes of the last write have been read without [`take`](Self::take).
    ///
    /// # Panics
    /// When that is more than were due.
    pub fn payload_taken(&mut self, bytes: u64) {
        let left = self.payload().checked_sub(bytes);
        let left = left.expect("no more is read than is due");
        self.phase = if left == 0 {
            Phase::Requests
        } else {
            Phase::Payload(left)
        };
    }

    /// Takes bytes off the front of `input` until they make an event. `None`: all have been taken, or there is so much
    /// [`output`](Self::output) that it is to be drained first: a few bytes may ask for a long list.
    pub fn take<'b>(&mut self, input: &mut &'b [u8]) -> Option<Event<'b>> {
        while self.output.len() < MOST_OUTPUT {
            match self.phase.clone() {
                Phase::Closed => {
                    *input = &[];
                    return None;
                }
                Phase::Payload(left) => {
                    let data = split(input, left)?;
                    self.payload_taken(data.len() as u64);
                    return Some(Event::Data(data));
                }
                Phase::Refused(left, reply) => {
                    let taken = split(input, left)?.len() as u64;
                    self.refuse(left - taken, reply);
                }
                Phase::Skip(head, left) => {
                    let left = left - split(input, left)?.len() as u64;
                    self.phase = Phase::Skip(head, left);
                    if left == 0 {
                        self.too_long(head);
                    }
                }
                phase => {
                    let need = match &phase {
                        Phase::Flags => 4,
                        Phase::Head => OptionHead::LEN,
                        Phase::Data(head) => head.len as usize,
                        _ => REQUEST,
                    };
                    let want = need - self.partial.len();
                    let part = split(input, want as u64).unwrap_or_default();
                    self.partial.extend_from_slice(part);
                    if self.partial.len() < need {
                        return None;
                    }
                    let message = std::mem::take(&mut self.partial);
                    let event = self.message(&phase, &message);
                    // The same few bytes of memory for the next message.
                    self.partial = message;
                    self.partial.clear();
                    if let Some(event) = event {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// No more bytes will come.
    pub fn end(&mut self) -> Ending {
        let between = matches!(self.phase, Phase::Head | Phase::Requests | Phase::Closed);
        self.phase = Phase::Closed;
        if between && self.partial.is_empty() {
            Ending::Orderly
        } else {
            Ending::Cut
        }
    }

    /// A whole message.
    fn message<'b>(&mut self, phase: &Phase, message: &[u8]) -> Option<Event<'b>> {
        let result = match phase {
            Phase::Flags => self.client_flags(message),
            Phase::Head => self.option_head(message),
            Phase::Data(head) => self.option(*head, message),
            _ => self.request(message),
        };
        result.unwrap_or_else(|error| Some(self.close(Ending::Bad(error))))
    }

    fn close<'b>(&mut self, ending: Ending) -> Event<'b> {
        self.phase = Phase::Closed;
        Event::Closed(ending)
    }

    /// A request; one that cannot be carried out is answered here.
    fn request<'b>(&mut self, message: &[u8]) -> Result<Option<Event<'b>>, WireError> {
        let bytes = message.try_into().map_err(|_| WireError::Length)?;
        let raw = RawRequest::parse(bytes)?;
        if raw.command == Command::Disconnect {
            return Ok(Some(self.close(Ending::Orderly)));
        }
        let export = &self.exports[self.export];
        match check::check(&raw, export, self.knows_blocks) {
            Ok(request) => {
                if request.action == Action::Write {
                    self.phase = Phase::Payload(u64::from(request.len));
                }
                Ok(Some(Event::Request(request)))
            }
            Err(error) => {
                let reply = SimpleReply {
                    error,
                    cookie: raw.cookie,
                };
                let write = raw.command == Command::Write;
                self.refuse(if write { u64::from(raw.len) } else { 0 }, reply);
                Ok(None)
            }
        }
    }

    /// Answers with an error once the data that come with the request have been passed over.
    fn refuse(&mut self, left: u64, reply: SimpleReply) {
        self.phase = if left == 0 {
            self.output.extend(reply.encode());
            Phase::Requests
        } else {
            Phase::Refused(left, reply)
        };
    }
}

/// The reply to a request, to be followed by its data where it was a read that went well.
#[must_use]
pub fn reply(cookie: u64, error: u32) -> [u8; REPLY] {
    SimpleReply { error, cookie }.encode()
}

/// Takes up to so many bytes off the front; `None` when there are none.
fn split<'b>(input: &mut &'b [u8], most: u64) -> Option<&'b [u8]> {
    let n = most.min(input.len() as u64) as usize;
    let (head, rest) = input.split_at(n);
    *input = rest;
    (n > 0).then_some(head)
}

#[cfg(test)]
mod tests;
