//! The other end of a connection, over anything that reads and writes.
//!
//! One request at a time is enough for what it is used for: checks of a server, and tests. Requests
//! that overlap can be sent by hand with [`Client::send`] and [`Client::receive`].
use crate::wire::{
    BlockSizes, ChosenExport, ClientFlags, Command, GREETING, HandshakeFlags, InfoRequest,
    MAX_BLOCK, MAX_NAME, OptionHead, OptionReply, REPLY, REPLY_HEAD, RawRequest, ReplyKind,
    SimpleReply, WireError, command, info, option,
};
use std::io::{Read, Write};

/// Longest data of a reply to an option that a client here takes.
const LONGEST: u32 = MAX_NAME as u32 + 1024;

/// Why a client could not get what it wanted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection.
    #[error("the connection to the NBD server failed: {0}")]
    Io(#[from] std::io::Error),
    /// What the server sent.
    #[error("the NBD server sent nonsense: {0}")]
    Wire(#[from] WireError),
    /// The server refused an option.
    #[error("the NBD server refused ({0:?}): {1}")]
    Refused(ReplyKind, String),
    /// A request failed, with its error number.
    #[error("the NBD server answered error {0}")]
    Failed(u32),
    /// A reply to something else.
    #[error("a reply to a request that was not made")]
    Stray,
}

/// A connection with an export in use.
#[derive(Debug)]
pub struct Client<S> {
    stream: S,
    export: ChosenExport,
    blocks: Option<BlockSizes>,
    cookie: u64,
}

/// A connection that is being negotiated.
#[derive(Debug)]
pub struct Greeted<S> {
    stream: S,
}

impl<S: Read + Write> Greeted<S> {
    /// Exchanges greetings.
    ///
    /// # Errors
    /// When the other end is no newstyle server.
    pub fn new(mut stream: S) -> Result<Self, ClientError> {
        let mut greeting = [0; GREETING];
        stream.read_exact(&mut greeting)?;
        let offered = HandshakeFlags::parse(&greeting)?;
        let flags = ClientFlags {
            fixed_newstyle: offered.fixed_newstyle,
            no_zeroes: offered.no_zeroes,
        };
        stream.write_all(&flags.encode())?;
        Ok(Self { stream })
    }

    fn send(&mut self, option: u32, data: &[u8]) -> Result<(), ClientError> {
        let len = data.len() as u32;
        let mut bytes = OptionHead { option, len }.encode().to_vec();
        bytes.extend(data);
        Ok(self.stream.write_all(&bytes)?)
    }

    fn reply(&mut self) -> Result<(ReplyKind, Vec<u8>), ClientError> {
        let mut head = [0; REPLY_HEAD];
        self.stream.read_exact(&mut head)?;
        let head = OptionReply::parse(&head)?;
        if head.len > LONGEST {
            return Err(WireError::Length.into());
        }
        let mut data = vec![0; head.len as usize];
        self.stream.read_exact(&mut data)?;
        if head.kind.is_error() {
            let text = String::from_utf8_lossy(&data).into_owned();
            return Err(ClientError::Refused(head.kind, text));
        }
        Ok((head.kind, data))
    }

    /// Names of the exports.
    ///
    /// # Errors
    /// What the server refuses or sends wrongly.
    pub fn list(&mut self) -> Result<Vec<String>, ClientError> {
        self.send(option::LIST, &[])?;
        let mut names = Vec::new();
        loop {
            let (kind, data) = self.reply()?;
            if kind == ReplyKind::Ack {
                return Ok(names);
            }
            let name = data.get(4..).ok_or(WireError::Length)?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Sends an option with any data; what is answered first. For tests of servers.
    ///
    /// # Errors
    /// What the server refuses or sends wrongly.
    pub fn option(
        &mut self,
        option: u32,
        data: &[u8],
    ) -> Result<(ReplyKind, Vec<u8>), ClientError> {
        self.send(option, data)?;
        self.reply()
    }

    /// Ends the negotiation.
    ///
    /// # Errors
    /// What the server refuses or sends wrongly.
    pub fn abort(mut self) -> Result<(), ClientError> {
        self.send(option::ABORT, &[])?;
        self.reply().map(drop)
    }

    /// Uses an export.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn go(mut self, name: &str) -> Result<Client<S>, ClientError> {
        let request = InfoRequest {
            name: name.to_owned(),
            wanted: vec![info::BLOCK_SIZE],
        };
        self.send(option::GO, &request.encode())?;
        let (mut export, mut blocks) = (None, None);
        loop {
            let (kind, data) = self.reply()?;
            if kind == ReplyKind::Ack {
                break;
            }
            let (number, rest) = data.split_first_chunk().ok_or(WireError::Length)?;
            match u16::from_be_bytes(*number) {
                info::EXPORT => export = Some(ChosenExport::parse(rest)?),
                info::BLOCK_SIZE => blocks = Some(BlockSizes::parse(&data)?),
                _ => {}
            }
        }
        Ok(Client {
            stream: self.stream,
            export: export.ok_or(WireError::Length)?,
            blocks,
            cookie: 0,
        })
    }

    /// Uses an export in the way of old clients, which tells no block sizes.
    ///
    /// # Errors
    /// The connection ends when there is none of that name.
    pub fn export_name(mut self, name: &str) -> Result<Client<S>, ClientError> {
        self.send(option::EXPORT_NAME, name.as_bytes())?;
        let mut bytes = [0; ChosenExport::LEN];
        self.stream.read_exact(&mut bytes)?;
        Ok(Client {
            stream: self.stream,
            export: ChosenExport::parse(&bytes)?,
            blocks: None,
            cookie: 0,
        })
    }
}

impl<S: Read + Write> Client<S> {
    /// Connects to an export.
    ///
    /// # Errors
    /// When the other end is no NBD server, or has no such export.
    pub fn connect(stream: S, name: &str) -> Result<Self, ClientError> {
        Greeted::new(stream)?.go(name)
    }

    /// Size and flags.
    #[must_use]
    pub const fn export(&self) -> ChosenExport {
        self.export
    }

    /// Block sizes, where the server told them.
    #[must_use]
    pub const fn blocks(&self) -> Option<BlockSizes> {
        self.blocks
    }

    /// The stream, to be used otherwise.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends a request; its cookie.
    ///
    /// # Errors
    /// The connection.
    pub fn send(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        len: u32,
        data: &[u8],
    ) -> Result<u64, ClientError> {
        self.cookie += 1;
        let request = RawRequest {
            flags,
            command,
            cookie: self.cookie,
            offset,
            len,
        };
        self.stream.write_all(&request.encode())?;
        self.stream.write_all(data)?;
        Ok(self.cookie)
    }

    /// The next reply, without its data.
    ///
    /// # Errors
    /// The connection, or no reply.
    pub fn receive(&mut self) -> Result<SimpleReply, ClientError> {
        let mut bytes = [0; REPLY];
        self.stream.read_exact(&mut bytes)?;
        Ok(SimpleReply::parse(&bytes)?)
    }

    fn ask(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        len: u32,
        data: &[u8],
    ) -> Result<(), ClientError> {
        let cookie = self.send(command, flags, offset, len, data)?;
        let reply = self.receive()?;
        match reply {
            _ if reply.cookie != cookie => Err(ClientError::Stray),
            SimpleReply { error: 0, .. } => Ok(()),
            SimpleReply { error, .. } => Err(ClientError::Failed(error)),
        }
    }

    /// Reads.
    ///
    /// # Errors
    /// The connection, or what the server answers.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ClientError> {
        let mut at = offset;
        for part in buffer.chunks_mut(MAX_BLOCK as usize) {
            self.ask(Command::Read, 0, at, part.len() as u32, &[])?;
            self.stream.read_exact(part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Writes; with `fua` the data are durable when it returns.
    ///
    /// # Errors
    /// The connection, or what the server answers.
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), ClientError> {
        let (mut at, flags) = (offset, if fua { command::FUA } else { 0 });
        for part in data.chunks(MAX_BLOCK as usize) {
            self.ask(Command::Write, flags, at, part.len() as u32, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The connection, or what the server answers.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.ask(Command::Flush, 0, 0, 0, &[])
    }

    /// Says that content is not needed any more.
    ///
    /// # Errors
    /// The connection, or what the server answers.
    pub fn trim(&mut self, offset: u64, len: u32) -> Result<(), ClientError> {
        self.ask(Command::Trim, 0, offset, len, &[])
    }

    /// Writes zeroes.
    ///
    /// # Errors
    /// The connection, or what the server answers.
    pub fn zeroes(&mut self, offset: u64, len: u32) -> Result<(), ClientError> {
        self.ask(Command::WriteZeroes, 0, offset, len, &[])
    }

    /// Ends the connection in order.
    ///
    /// # Errors
    /// The connection.
    pub fn disconnect(mut self) -> Result<(), ClientError> {
        self.send(Command::Disconnect, 0, 0, 0, &[])?;
        Ok(self.stream.flush()?)
    }
}
