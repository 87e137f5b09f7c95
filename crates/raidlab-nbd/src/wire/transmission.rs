//! Requests and simple replies.
use super::{Reader, WireError};

/// What a request begins with.
const REQUEST_MAGIC: u32 = 0x2560_9513;
/// What a simple reply begins with.
const REPLY_MAGIC: u32 = 0x6744_6698;

/// Bytes of a request before its data.
pub const REQUEST: usize = 28;
/// Bytes of a simple reply before its data.
pub const REPLY: usize = 16;

/// Flags of an export.
pub mod flag {
    /// There are flags.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Flush is known.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Writes that are durable when they end are known.
    pub const SEND_FUA: u16 = 1 << 3;
    /// It turns.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// Trim is known.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Writing of zeroes without sending them is known.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A flush holds for writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Flags of a request.
pub mod command {
    /// Durable when it ends.
    pub const FUA: u16 = 1;
    /// Zeroes take space.
    pub const NO_HOLE: u16 = 1 << 1;
}

/// Numbers of errors, as in errno.h of Linux.
pub mod error {
    /// Not allowed: a write to what is read-only.
    pub const EPERM: u32 = 1;
    /// The disk failed.
    pub const EIO: u32 = 5;
    /// A request that makes no sense.
    pub const EINVAL: u32 = 22;
    /// Beyond the end, or no room for the data.
    pub const ENOSPC: u32 = 28;
    /// Longer than allowed.
    pub const EOVERFLOW: u32 = 75;
    /// Not known here.
    pub const ENOTSUP: u32 = 95;
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read,
    /// Write; the data follow.
    Write,
    /// End the connection.
    Disconnect,
    /// Make all writes that have ended durable.
    Flush,
    /// Content is not needed any more.
    Trim,
    /// Write zeroes.
    WriteZeroes,
    /// Another one, by its number.
    Other(u16),
}

/// Commands and their numbers.
const COMMANDS: [(Command, u16); 6] = [
    (Command::Read, 0),
    (Command::Write, 1),
    (Command::Disconnect, 2),
    (Command::Flush, 3),
    (Command::Trim, 4),
    (Command::WriteZeroes, 6),
];

impl Command {
    pub(super) fn number(self) -> u16 {
        let known = COMMANDS.iter().find(|(command, _)| *command == self);
        match (self, known) {
            (_, Some((_, number))) => *number,
            (Self::Other(number), None) => number,
            _ => u16::MAX,
        }
    }

    pub(super) fn of(number: u16) -> Self {
        let known = COMMANDS.iter().find(|(_, known)| *known == number);
        known.map_or(Self::Other(number), |(command, _)| *command)
    }
}

/// A request as it is on the wire; nothing of it has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRequest {
    /// See [`command`].
    pub flags: u16,
    /// What is asked for.
    pub command: Command,
    /// Given back with the reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

impl RawRequest {
    /// As sent.
    #[must_use]
    pub fn encode(self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// As received.
    ///
    /// # Errors
    /// When it does not begin with the magic number.
    pub fn parse(bytes: &[u8; REQUEST]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let magic = reader.u32()?;
        if magic != REQUEST_MAGIC {
            return Err(WireError::Magic(u64::from(magic)));
        }
        Ok(Self {
            flags: reader.u16()?,
            command: Command::of(reader.u16()?),
            cookie: reader.u64()?,
            offset: reader.u64()?,
            len: reader.u32()?,
        })
    }
}

/// A simple reply without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleReply {
    /// 0, or one of [`error`].
    pub error: u32,
    /// That of the request.
    pub cookie: u64,
}

impl SimpleReply {
    /// As sent.
    #[must_use]
    pub fn encode(self) -> [u8; REPLY] {
        let mut bytes = [0; REPLY];
        bytes[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_be_bytes());
        bytes
    }

    /// As received.
    ///
    /// # Errors
    /// When it does not begin with the magic number.
    pub fn parse(bytes: &[u8; REPLY]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let magic = reader.u32()?;
        if magic != REPLY_MAGIC {
            return Err(WireError::Magic(u64::from(magic)));
        }
        Ok(Self {
            error: reader.u32()?,
            cookie: reader.u64()?,
        })
    }
}
