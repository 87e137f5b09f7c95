//! The handshake, from the server's side.
use super::{Ending, Event, Phase, Session};
use crate::wire::{
    ChosenExport, ClientFlags, HandshakeFlags, InfoRequest, MAX_NAME, OptionHead, OptionReply,
    ReplyKind, WireError, info, option,
};

/// What the greeting offers.
pub(super) const OFFER: HandshakeFlags = HandshakeFlags {
    fixed_newstyle: true,
    no_zeroes: true,
};

/// Longest data of an option that is looked at: a name, and every kind of information.
const LONGEST: u32 = MAX_NAME as u32 + 512;

/// What the handshake makes of a message.
type Taken<'b> = Result<Option<Event<'b>>, WireError>;

impl Session {
    pub(super) fn client_flags<'b>(&mut self, message: &[u8]) -> Taken<'b> {
        let bytes = message.try_into().map_err(|_| WireError::Length)?;
        self.client = ClientFlags::parse(bytes)?;
        self.phase = Phase::Head;
        Ok(None)
    }

    pub(super) fn option_head<'b>(&mut self, message: &[u8]) -> Taken<'b> {
        let bytes = message.try_into().map_err(|_| WireError::Length)?;
        let head = OptionHead::parse(bytes)?;
        if head.len == 0 {
            return self.option(head, &[]);
        }
        self.phase = if head.len <= LONGEST {
            Phase::Data(head)
        } else {
            Phase::Skip(head, u64::from(head.len))
        };
        Ok(None)
    }

    /// The data of an option were passed over.
    pub(super) fn too_long(&mut self, head: OptionHead) {
        self.phase = Phase::Head;
        self.answer(head.option, ReplyKind::TooBig, "too long to be looked at");
    }

    /// An option with its data.
    pub(super) fn option<'b>(&mut self, head: OptionHead, data: &[u8]) -> Taken<'b> {
        self.phase = Phase::Head;
        let number = head.option;
        match number {
            option::EXPORT_NAME => return self.export_name(data),
            option::ABORT => {
                self.answer(number, ReplyKind::Ack, "");
                return Ok(Some(self.close(Ending::Orderly)));
            }
            option::LIST if data.is_empty() => self.list(),
            option::LIST | option::STRUCTURED_REPLY | option::STARTTLS if !data.is_empty() => {
                self.answer(number, ReplyKind::Invalid, "this option has no data");
            }
            option::INFO | option::GO => return Ok(self.info(number, data)),
            _ => self.answer(number, ReplyKind::Unsupported, "not supported here"),
        }
        Ok(None)
    }

    fn answer(&mut self, option: u32, kind: ReplyKind, text: &str) {
        OptionReply::put(&mut self.output, option, kind, text.as_bytes());
    }

    fn list(&mut self) {
        for export in self.exports.iter() {
            let mut data = (export.name.len() as u32).to_be_bytes().to_vec();
            data.extend(export.name.as_bytes());
            OptionReply::put(&mut self.output, option::LIST, ReplyKind::Server, &data);
        }
        self.answer(option::LIST, ReplyKind::Ack, "");
    }

    /// The export of this name; no name means the only one.
    fn find(&self, name: &str) -> Option<usize> {
        if name.is_empty() && self.exports.len() == 1 {
            return Some(0);
        }
        self.exports.iter().position(|export| export.name == name)
    }

    fn chosen(&self, index: usize) -> ChosenExport {
        let export = &self.exports[index];
        ChosenExport {
            size: export.size,
            flags: export.flags,
        }
    }

    fn export_name<'b>(&mut self, data: &[u8]) -> Taken<'b> {
        let name = std::str::from_utf8(data).map_err(|_| WireError::Name)?;
        let Some(index) = self.find(name) else {
            return Ok(Some(self.close(Ending::UnknownExport)));
        };
        let chosen = self.chosen(index).encode();
        self.output.extend(chosen);
        if !self.client.no_zeroes {
            self.output.extend([0; ChosenExport::ZEROES]);
        }
        Ok(Some(self.open(index)))
    }

    fn open<'b>(&mut self, index: usize) -> Event<'b> {
        (self.phase, self.export) = (Phase::Requests, index);
        Event::Opened(index)
    }

    fn info<'b>(&mut self, number: u32, data: &[u8]) -> Option<Event<'b>> {
        let Ok(asked) = InfoRequest::parse(data) else {
            self.answer(number, ReplyKind::Invalid, "malformed");
            return None;
        };
        let Some(index) = self.find(&asked.name) else {
            self.answer(number, ReplyKind::UnknownExport, "there is no such export");
            return None;
        };
        let chosen = self.chosen(index).encode_info();
        self.tell(number, &chosen);
        let wants = |kind| asked.wanted.contains(&kind);
        let exports = std::sync::Arc::clone(&self.exports);
        let export = &exports[index];
        for (kind, text) in [
            (info::NAME, &export.name),
            (info::DESCRIPTION, &export.description),
        ] {
            if wants(kind) {
                let mut data = kind.to_be_bytes().to_vec();
                data.extend(text.as_bytes());
                self.tell(number, &data);
            }
        }
        if wants(info::BLOCK_SIZE) {
            self.tell(number, &export.blocks.encode());
        }
        self.answer(number, ReplyKind::Ack, "");
        // What was asked in an INFO holds for the GO after it only when asked again.
        self.knows_blocks = wants(info::BLOCK_SIZE);
        (number == option::GO).then(|| self.open(index))
    }

    fn tell(&mut self, number: u32, data: &[u8]) {
        OptionReply::put(&mut self.output, number, ReplyKind::Info, data);
    }
}
