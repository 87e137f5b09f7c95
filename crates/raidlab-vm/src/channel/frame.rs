//! What goes over the channel, without a socket: messages as frames with a length, and a decoder that
//! takes bytes as they come.
//!
//! A frame is: `RLVM`, a byte for the kind, three of zero, a number (u32), the length of what follows
//! (u32), all little-endian; then the content. Records and the last word are numbered, and the guest does not
//! go on before the host has acknowledged the number: bytes written to a virtio port just before the
//! machine is switched off are lost.

/// Content of a frame at the most: more is a damaged length.
pub const MOST: usize = 256 << 20;
/// Bytes before the content.
pub const HEAD: usize = 16;
const MAGIC: [u8; 4] = *b"RLVM";

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Guest: here I am; JSON of [`Hello`](super::Hello).
    Hello(String),
    /// Host: do this; the job as raidlab's own JSON.
    Job(String),
    /// Guest: how far it is, in words.
    Progress(String),
    /// Guest: still alive.
    Beat,
    /// Guest: a result, to be acknowledged; JSON.
    Record(u32, String),
    /// Guest: all is done, to be acknowledged; JSON with what there is to say.
    Done(u32, String),
    /// Guest: it cannot go on, to be acknowledged; the reason.
    Failed(u32, String),
    /// Host: the message of that number is kept.
    Ack(u32),
    /// Host: end what you are doing.
    Stop,
}

/// Bytes that are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not the beginning of a frame.
    #[error("what came is no message of raidlab")]
    Magic,
    /// A kind of another version.
    #[error("message of unknown kind {0}")]
    Kind(u8),
    /// Longer than any message.
    #[error("message of {0} bytes")]
    Length(u32),
    /// Content that is no text.
    #[error("message that is no text")]
    Text,
}

impl Message {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, number, text) = match self {
            Self::Hello(text) => (1, 0, text.as_str()),
            Self::Job(text) => (2, 0, text.as_str()),
            Self::Progress(text) => (3, 0, text.as_str()),
            Self::Beat => (4, 0, ""),
            Self::Record(number, text) => (5, *number, text.as_str()),
            Self::Done(number, text) => (6, *number, text.as_str()),
            Self::Failed(number, text) => (7, *number, text.as_str()),
            Self::Ack(number) => (8, *number, ""),
            Self::Stop => (9, 0, ""),
        };
        let mut bytes = Vec::with_capacity(HEAD + text.len());
        bytes.extend(MAGIC);
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(number.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    fn decode(kind: u8, number: u32, text: String) -> Result<Self, FrameError> {
        Ok(match kind {
            1 => Self::Hello(text),
            2 => Self::Job(text),
            3 => Self::Progress(text),
            4 => Self::Beat,
            5 => Self::Record(number, text),
            6 => Self::Done(number, text),
            7 => Self::Failed(number, text),
            8 => Self::Ack(number),
            9 => Self::Stop,
            other => return Err(FrameError::Kind(other)),
        })
    }

    /// The number to acknowledge; `None` for messages that need none.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Record(number, _) | Self::Done(number, _) | Self::Failed(number, _) => {
                Some(*number)
            }
            _ => None,
        }
    }
}

/// Takes bytes and gives messages.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// Bytes that have come.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message; `None` until more bytes have come.
    ///
    /// # Errors
    /// [`FrameError`]: there is no way on from there.
    pub fn take(&mut self) -> Result<Option<Message>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let known = rest.len().min(MAGIC.len());
        if rest[..known] != MAGIC[..known] {
            return Err(FrameError::Magic);
        }
        let Some(head) = rest.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (kind, length) = (head[4], number(12));
        if head[5..8] != [0; 3] {
            return Err(FrameError::Magic);
        }
        if !(1..=9).contains(&kind) {
            return Err(FrameError::Kind(kind));
        }
        if length as usize > MOST {
            return Err(FrameError::Length(length));
        }
        let Some(content) = rest.get(HEAD..HEAD + length as usize) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(content).map_err(|_| FrameError::Text)?;
        let message = Message::decode(kind, number(8), text.to_owned())?;
        self.taken += HEAD + length as usize;
        Ok(Some(message))
    }
}

/// All that can be done with bytes, for fuzzing: what is read is written as the same bytes, however they
/// were cut.
///
/// # Panics
/// When one of the promises of this module does not hold; never for bytes as such.
#[doc(hidden)]
pub fn exercise(bytes: &[u8], cut: usize) {
    let read = |parts: &[&[u8]]| {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        let mut wrong = None;
        for part in parts {
            decoder.feed(part);
            while wrong.is_none() {
                match decoder.take() {
                    Ok(Some(message)) => found.push(message),
                    Ok(None) => break,
                    Err(error) => wrong = Some(error),
                }
            }
        }
        (found, wrong)
    };
    let whole = read(&[bytes]);
    let (a, b) = bytes.split_at(cut.min(bytes.len()));
    assert_eq!(whole, read(&[a, b]), "cutting changed what was read");
    let again: Vec<u8> = whole.0.iter().flat_map(Message::encode).collect();
    // Kinds without text or number may have come with some, which is not kept.
    assert_eq!(
        read(&[&again]).0,
        whole.0,
        "what was read is written otherwise"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let text = "\\PC{0,60}";
        prop_oneof![
            text.prop_map(Message::Hello),
            text.prop_map(Message::Job),
            text.prop_map(Message::Progress),
            Just(Message::Beat),
            (any::<u32>(), text).prop_map(|(n, t)| Message::Record(n, t)),
            (any::<u32>(), text).prop_map(|(n, t)| Message::Done(n, t)),
            (any::<u32>(), text).prop_map(|(n, t)| Message::Failed(n, t)),
            any::<u32>().prop_map(Message::Ack),
            Just(Message::Stop),
        ]
    }

    proptest! {
        #[test]
        fn messages_arrive_however_they_are_cut(
            messages in proptest::collection::vec(any_message(), 0..12), step in 1_usize..50
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in bytes.chunks(step) {
                decoder.feed(part);
                while let Some(message) = decoder.take().unwrap() {
                    found.push(message);
                }
            }
            prop_assert_eq!(found, messages);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 0_usize..80) {
            exercise(&bytes, cut);
        }

        #[test]
        fn damaged_messages_are_refused_or_read(
            messages in proptest::collection::vec(any_message(), 1..4), at: prop::sample::Index, value: u8, cut in 0_usize..200
        ) {
            let mut bytes: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
            let at = at.index(bytes.len());
            bytes[at] = value;
            exercise(&bytes, cut);
        }
    }

    #[test]
    fn what_is_no_message_is_told_at_once() {
        let mut decoder = Decoder::default();
        decoder.feed(b"RL");
        assert_eq!(decoder.take(), Ok(None));
        decoder.feed(b"X");
        assert_eq!(decoder.take(), Err(FrameError::Magic));
        let mut long = Message::Beat.encode();
        long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut decoder = Decoder::default();
        decoder.feed(&long);
        assert_eq!(decoder.take(), Err(FrameError::Length(u32::MAX)));
    }
}
