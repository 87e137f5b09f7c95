//! The handshake: greeting, options and their replies.
use super::{Reader, WireError};

/// `NBDMAGIC`.
const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`.
const OPTION: u64 = 0x4948_4156_454f_5054;
/// What a reply to an option begins with.
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;

/// Bytes of the server's greeting.
pub const GREETING: usize = 18;
/// Bytes of a reply to an option before its data.
pub const REPLY_HEAD: usize = 20;

/// What the server offers in its greeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeFlags {
    /// Options that it does not know are answered instead of ending the connection.
    pub fixed_newstyle: bool,
    /// It can leave out the zeroes after the answer to `EXPORT_NAME`.
    pub no_zeroes: bool,
}

impl HandshakeFlags {
    fn bits(self) -> u16 {
        u16::from(self.fixed_newstyle) | u16::from(self.no_zeroes) << 1
    }

    /// The greeting with these flags.
    #[must_use]
    pub fn greeting(self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&OPTION.to_be_bytes());
        bytes[16..].copy_from_slice(&self.bits().to_be_bytes());
        bytes
    }

    /// Reads a greeting.
    ///
    /// # Errors
    /// When it is none of a newstyle server.
    pub fn parse(bytes: &[u8; GREETING]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        for wanted in [MAGIC, OPTION] {
            let magic = reader.u64()?;
            if magic != wanted {
                return Err(WireError::Magic(magic));
            }
        }
        let bits = reader.u16()?;
        Ok(Self {
            fixed_newstyle: bits & 1 != 0,
            no_zeroes: bits & 2 != 0,
        })
    }
}

/// What the client answers the greeting with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFlags {
    /// It knows that options are answered.
    pub fixed_newstyle: bool,
    /// It wants no zeroes after the answer to `EXPORT_NAME`.
    pub no_zeroes: bool,
}

impl ClientFlags {
    /// As sent.
    #[must_use]
    pub fn encode(self) -> [u8; 4] {
        (u32::from(self.fixed_newstyle) | u32::from(self.no_zeroes) << 1).to_be_bytes()
    }

    /// As received.
    ///
    /// # Errors
    /// Flags that the server did not offer; the protocol has it close the connection then.
    pub fn parse(bytes: [u8; 4]) -> Result<Self, WireError> {
        let bits = u32::from_be_bytes(bytes);
        if bits & !3 != 0 {
            return Err(WireError::Unknown(u64::from(bits), "set of client flags"));
        }
        Ok(Self {
            fixed_newstyle: bits & 1 != 0,
            no_zeroes: bits & 2 != 0,
        })
    }
}

/// Numbers of options.
pub mod option {
    /// Use this export, without an answer that could say no.
    pub const EXPORT_NAME: u32 = 1;
    /// End the negotiation.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// TLS.
    pub const STARTTLS: u32 = 5;
    /// What would be said of an export.
    pub const INFO: u32 = 6;
    /// Use this export.
    pub const GO: u32 = 7;
    /// Structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
}

/// Kinds of information about an export.
pub mod info {
    /// Size and transmission flags; always given.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// What it is, in words.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, preferred and largest request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an option begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHead {
    /// Which option.
    pub option: u32,
    /// Bytes of data after it.
    pub len: u32,
}

impl OptionHead {
    /// Bytes.
    pub const LEN: usize = 16;

    /// As sent.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&OPTION.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.option.to_be_bytes());
        bytes[12..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// As received.
    ///
    /// # Errors
    /// When it does not begin with the magic number.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let magic = reader.u64()?;
        if magic != OPTION {
            return Err(WireError::Magic(magic));
        }
        Ok(Self {
            option: reader.u32()?,
            len: reader.u32()?,
        })
    }
}

/// Data of `INFO` and `GO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest {
    /// Name of the export; empty for the default one.
    pub name: String,
    /// Kinds of information that are wanted.
    pub wanted: Vec<u16>,
}

impl InfoRequest {
    /// As sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = (self.name.len() as u32).to_be_bytes().to_vec();
        bytes.extend(self.name.as_bytes());
        bytes.extend((self.wanted.len() as u16).to_be_bytes());
        bytes.extend(self.wanted.iter().flat_map(|kind| kind.to_be_bytes()));
        bytes
    }

    /// As received.
    ///
    /// # Errors
    /// When lengths do not fit, or the name is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let len = reader.u32()?;
        let name = reader.name(len as usize)?.to_owned();
        let count = reader.u16()?;
        let wanted = (0..count).map(|_| reader.u16()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { name, wanted })
    }
}

/// Kinds of replies to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// Done.
    Ack,
    /// One export of a list.
    Server,
    /// Information on an export.
    Info,
    /// Not known here.
    Unsupported,
    /// Forbidden.
    Policy,
    /// Malformed.
    Invalid,
    /// No such export.
    UnknownExport,
    /// Block sizes must be asked for.
    BlockSizeRequired,
    /// More data than is looked at.
    TooBig,
    /// Another one, by its number.
    Other(u32),
}

/// Replies and their numbers.
const KINDS: [(ReplyKind, u32); 9] = [
    (ReplyKind::Ack, 1),
    (ReplyKind::Server, 2),
    (ReplyKind::Info, 3),
    (ReplyKind::Unsupported, 1 << 31 | 1),
    (ReplyKind::Policy, 1 << 31 | 2),
    (ReplyKind::Invalid, 1 << 31 | 3),
    (ReplyKind::UnknownExport, 1 << 31 | 6),
    (ReplyKind::BlockSizeRequired, 1 << 31 | 8),
    (ReplyKind::TooBig, 1 << 31 | 9),
];

impl ReplyKind {
    fn number(self) -> u32 {
        let known = KINDS.iter().find(|(kind, _)| *kind == self);
        match (self, known) {
            (_, Some((_, number))) => *number,
            (Self::Other(number), None) => number,
            _ => 0,
        }
    }

    pub(super) fn of(number: u32) -> Self {
        let known = KINDS.iter().find(|(_, known)| *known == number);
        known.map_or(Self::Other(number), |(kind, _)| *kind)
    }

    /// Whether it says no.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.number() >> 31 != 0
    }
}

/// What a reply to an option begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionReply {
    /// The option it is to.
    pub option: u32,
    /// What it is.
    pub kind: ReplyKind,
    /// Bytes of data after it.
    pub len: u32,
}

impl OptionReply {
    /// Appends a reply with its data.
    pub fn put(out: &mut Vec<u8>, option: u32, kind: ReplyKind, data: &[u8]) {
        out.extend(OPTION_REPLY.to_be_bytes());
        out.extend(option.to_be_bytes());
        out.extend(kind.number().to_be_bytes());
        out.extend((data.len() as u32).to_be_bytes());
        out.extend(data);
    }

    /// As received.
    ///
    /// # Errors
    /// When it does not begin with the magic number.
    pub fn parse(bytes: &[u8; REPLY_HEAD]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let magic = reader.u64()?;
        if magic != OPTION_REPLY {
            return Err(WireError::Magic(magic));
        }
        Ok(Self {
            option: reader.u32()?,
            kind: ReplyKind::of(reader.u32()?),
            len: reader.u32()?,
        })
    }
}

/// Smallest, preferred and largest request in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of this.
    pub minimum: u32,
    /// Offsets and lengths had better be multiples of this.
    pub preferred: u32,
    /// No read or write is longer.
    pub maximum: u32,
}

impl BlockSizes {
    /// Data of an information reply.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [self.minimum, self.preferred, self.maximum] {
            bytes.extend(size.to_be_bytes());
        }
        bytes
    }

    /// From the data of an information reply, its kind included.
    ///
    /// # Errors
    /// Another kind or length.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let kind = reader.u16()?;
        if kind != info::BLOCK_SIZE {
            return Err(WireError::Unknown(u64::from(kind), "block size"));
        }
        let sizes = Self {
            minimum: reader.u32()?,
            preferred: reader.u32()?,
            maximum: reader.u32()?,
        };
        reader.end()?;
        Ok(sizes)
    }
}

/// Size and flags of the export that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenExport {
    /// Bytes.
    pub size: u64,
    /// Transmission flags, see [`flag`](super::flag).
    pub flags: u16,
}

impl ChosenExport {
    /// Bytes, as the answer to `EXPORT_NAME` has them.
    pub const LEN: usize = 10;
    /// Zeroes after that answer, for those who did not ask to be spared.
    pub const ZEROES: usize = 124;

    /// The answer to `EXPORT_NAME`, without zeroes.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.size.to_be_bytes());
        bytes[8..].copy_from_slice(&self.flags.to_be_bytes());
        bytes
    }

    /// Data of an information reply.
    #[must_use]
    pub fn encode_info(self) -> Vec<u8> {
        let mut bytes = info::EXPORT.to_be_bytes().to_vec();
        bytes.extend(self.encode());
        bytes
    }

    /// From the answer to `EXPORT_NAME`, or the data of an information reply after its kind.
    ///
    /// # Errors
    /// Another length.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let export = Self {
            size: reader.u64()?,
            flags: reader.u16()?,
        };
        reader.end()?;
        Ok(export)
    }
}
