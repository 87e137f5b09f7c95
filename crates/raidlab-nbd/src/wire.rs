//! Messages of the NBD protocol, to and from bytes.
//!
//! Names and numbers are those of the protocol's specification (doc/proto.md of the NBD project): the
//! fixed newstyle handshake, then requests and simple replies. All numbers are big-endian.
mod negotiation;
mod transmission;

pub use negotiation::{
    BlockSizes, ChosenExport, ClientFlags, GREETING, HandshakeFlags, InfoRequest, OptionHead,
    OptionReply, REPLY_HEAD, ReplyKind, info, option,
};
pub use transmission::{Command, REPLY, REQUEST, RawRequest, SimpleReply, command, error, flag};

/// Longest name of an export in bytes, as the protocol has it for strings.
pub const MAX_NAME: usize = 4096;

/// Bytes of a read or write that need no negotiation; servers and clients here allow no more.
pub const MAX_BLOCK: u32 = 32 << 20;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It does not begin as it must.
    #[error("the other end does not speak NBD: {0:#x} where a magic number is due")]
    Magic(u64),
    /// Its length does not fit what it says.
    #[error("a message of the wrong length")]
    Length,
    /// A name that is no UTF-8, or longer than the protocol allows.
    #[error("a name that is too long or no UTF-8")]
    Name,
    /// A number that the protocol does not have.
    #[error("{0} is no {1} of the protocol")]
    Unknown(u64, &'static str),
}

/// Takes big-endian numbers off the front of a message.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, n: usize) -> Result<&'b [u8], WireError> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(WireError::Length)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| WireError::Length)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A name of so many bytes.
    fn name(&mut self, len: usize) -> Result<&'b str, WireError> {
        if len > MAX_NAME {
            return Err(WireError::Name);
        }
        std::str::from_utf8(self.bytes(len)?).map_err(|_| WireError::Name)
    }

    fn end(&self) -> Result<(), WireError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(WireError::Length)
        }
    }
}

#[cfg(test)]
mod tests;
