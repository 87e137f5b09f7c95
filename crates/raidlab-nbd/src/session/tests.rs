//! The session against the client and against damage.
use super::*;
use crate::wire::{
    HandshakeFlags, InfoRequest, OptionReply, REPLY_HEAD, ReplyKind, command, error, flag, info,
    option,
};
use proptest::prelude::*;

fn exports() -> Arc<[Export]> {
    let export = |name: &str, flags| Export {
        name: name.to_owned(),
        description: format!("a disk called {name}"),
        size: 1 << 20,
        flags,
        blocks: BlockSizes {
            minimum: 512,
            preferred: 4096,
            maximum: 1 << 16,
        },
    };
    let all = flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES;
    let read_only = flag::HAS_FLAGS | flag::READ_ONLY;
    Arc::new([export("disk0", all), export("disk1", read_only)])
}

fn opt(option: u32, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u32;
    [&OptionHead { option, len }.encode()[..], data].concat()
}

fn go(number: u32, name: &str, wanted: &[u16]) -> Vec<u8> {
    let request = InfoRequest {
        name: name.to_owned(),
        wanted: wanted.to_vec(),
    };
    opt(number, &request.encode())
}

fn ask(command: Command, flags: u16, offset: u64, len: u32) -> Vec<u8> {
    let request = RawRequest {
        flags,
        command,
        cookie: 7,
        offset,
        len,
    };
    request.encode().to_vec()
}

/// An event that owns its bytes.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Opened(usize),
    Request(Request),
    Data(Vec<u8>),
    Closed(Ending),
}

/// Everything that comes of these bytes, given in pieces of this size; data that follow each other
/// are joined.
fn feed(session: &mut Session, bytes: &[u8], piece: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for mut input in bytes.chunks(piece.max(1)) {
        while let Some(event) = session.take(&mut input) {
            match (event, seen.last_mut()) {
                (Event::Data(more), Some(Seen::Data(data))) => data.extend(more),
                (Event::Data(data), _) => seen.push(Seen::Data(data.to_vec())),
                (Event::Opened(index), _) => seen.push(Seen::Opened(index)),
                (Event::Request(request), _) => seen.push(Seen::Request(request)),
                (Event::Closed(ending), _) => seen.push(Seen::Closed(ending)),
            }
        }
        assert!(input.is_empty(), "all is taken");
    }
    seen
}

/// Kinds of the replies to options in the output.
fn replies(mut output: &[u8]) -> Vec<ReplyKind> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = output.split_first_chunk::<REPLY_HEAD>() {
        let head = OptionReply::parse(head).expect("a reply");
        kinds.push(head.kind);
        output = &rest[head.len as usize..];
    }
    assert!(output.is_empty());
    kinds
}

fn negotiated(after: &[u8]) -> (Session, Vec<Seen>) {
    let mut session = Session::new(exports());
    let greeting: [u8; 18] = std::mem::take(session.output()).try_into().unwrap();
    assert!(HandshakeFlags::parse(&greeting).unwrap().fixed_newstyle);
    let seen = feed(&mut session, &[&[0, 0, 0, 3], after].concat(), 1000);
    (session, seen)
}

#[test]
fn every_option_is_answered() {
    let bytes = [
        opt(option::LIST, b""),
        opt(option::LIST, b"x"),
        opt(option::STRUCTURED_REPLY, b""),
        opt(option::STARTTLS, b""),
        opt(9, b"meta"),
        opt(99, &[0; 100_000]),
        opt(option::INFO, b"bad"),
        go(option::INFO, "nowhere", &[]),
        go(
            option::INFO,
            "disk1",
            &[info::NAME, info::DESCRIPTION, info::BLOCK_SIZE, 77],
        ),
        go(option::GO, "", &[]),
        opt(option::ABORT, b""),
        opt(option::LIST, b""),
    ];
    let (mut session, seen) = negotiated(&bytes.concat());
    assert_eq!(seen, [Seen::Closed(Ending::Orderly)]);
    use ReplyKind::{Ack, Info, Invalid, Server, TooBig, UnknownExport, Unsupported};
    assert_eq!(
        replies(session.output()),
        [
            Server,
            Server,
            Ack,
            Invalid,
            Unsupported,
            Unsupported,
            Unsupported,
            TooBig,
            Invalid,
            UnknownExport,
            Info,
            Info,
            Info,
            Info,
            Ack,
            // No name with two exports is no name.
            UnknownExport,
            Ack,
        ]
    );
}

#[test]
fn exports_are_opened_both_ways() {
    let (mut session, seen) = negotiated(&go(option::GO, "disk1", &[info::BLOCK_SIZE]));
    assert_eq!(seen, [Seen::Opened(1)]);
    assert_eq!(session.export(), Some(1));
    assert_eq!(replies(session.output()).len(), 3);

    let (mut session, seen) = negotiated(&opt(option::EXPORT_NAME, b"disk0"));
    assert_eq!(seen, [Seen::Opened(0)]);
    assert_eq!(session.output().len(), 10, "no zeroes were asked for");
    let (mut session, seen) = negotiated(&opt(option::EXPORT_NAME, b"disk9"));
    assert_eq!(seen, [Seen::Closed(Ending::UnknownExport)]);
    assert!(session.output().is_empty());

    let mut session = Session::new(exports());
    session.output().clear();
    let bytes = [&[0, 0, 0, 1][..], &opt(option::EXPORT_NAME, b"disk0")].concat();
    feed(&mut session, &bytes, 1);
    assert_eq!(session.output().len(), 10 + 124);
}

/// What a request on this export is answered with at once; `None`: it is handed on.
fn refused(export: usize, bytes: &[u8]) -> Option<u32> {
    let mut session = Session::transmitting(exports(), export);
    let seen = feed(&mut session, bytes, 7);
    if !seen.is_empty() {
        assert!(session.output().is_empty());
        return None;
    }
    let reply: [u8; REPLY] = session.output()[..].try_into().expect("one reply");
    let reply = SimpleReply::parse(&reply).unwrap();
    assert_eq!(reply.cookie, 7);
    assert_eq!(session.payload(), 0);
    Some(reply.error)
}

#[test]
fn requests_are_checked() {
    let write = |offset, len: u32, data: usize| {
        [ask(Command::Write, 0, offset, len), vec![1; data]].concat()
    };
    let cases = [
        (0, ask(Command::Read, 0, 0, 512), None),
        (0, ask(Command::Read, command::FUA, 0, 512), None),
        (0, ask(Command::Read, 0, 0, 0), Some(error::EINVAL)),
        (0, ask(Command::Read, 0, 1, 512), Some(error::EINVAL)),
        (0, ask(Command::Read, 0, 0, 513), Some(error::EINVAL)),
        (0, ask(Command::Read, 0, 1 << 20, 512), Some(error::EINVAL)),
        (0, ask(Command::Read, 0, u64::MAX, 512), Some(error::EINVAL)),
        (0, ask(Command::Read, 0, 0, 1 << 17), Some(error::EOVERFLOW)),
        (
            0,
            ask(Command::Read, command::NO_HOLE, 0, 512),
            Some(error::EINVAL),
        ),
        (0, write((1 << 20) - 512, 1024, 1024), Some(error::ENOSPC)),
        (1, write(0, 512, 512), Some(error::EPERM)),
        (0, ask(Command::WriteZeroes, 0, 0, 1 << 20), None),
        (
            0,
            ask(Command::WriteZeroes, 0, 512, 1 << 20),
            Some(error::ENOSPC),
        ),
        (0, ask(Command::Trim, 0, 512, 1 << 20), Some(error::EINVAL)),
        (1, ask(Command::Trim, 0, 0, 512), Some(error::EINVAL)),
        (1, ask(Command::Flush, 0, 0, 0), Some(error::EINVAL)),
        (0, ask(Command::Flush, 0, 0, 0), None),
        (0, ask(Command::Other(5), 0, 0, 512), Some(error::EINVAL)),
    ];
    for (export, bytes, wanted) in cases {
        assert_eq!(refused(export, &bytes), wanted, "{:?}", &bytes[..28]);
    }
}

#[test]
fn a_client_that_was_told_no_sizes_may_ask_for_any_byte() {
    let (mut session, _) = negotiated(&go(option::GO, "disk0", &[]));
    let seen = feed(&mut session, &ask(Command::Read, 0, 1, 3), 100);
    assert!(matches!(
        seen[..],
        [Seen::Request(Request {
            offset: 1,
            len: 3,
            ..
        })]
    ));
}

#[test]
fn data_may_go_round_the_session() {
    let mut session = Session::transmitting(exports(), 0);
    let bytes = [ask(Command::Write, command::FUA, 512, 1024), vec![9; 24]].concat();
    let seen = feed(&mut session, &bytes, 1000);
    let write = Request {
        action: Action::Write,
        cookie: 7,
        offset: 512,
        len: 1024,
        fua: true,
    };
    assert_eq!(seen, [Seen::Request(write), Seen::Data(vec![9; 24])]);
    assert_eq!(session.payload(), 1000);
    session.payload_taken(1000);
    assert_eq!(session.payload(), 0);
    assert_eq!(session.end(), Ending::Orderly);
}

#[test]
fn endings_are_told_apart() {
    for (bytes, ending) in [
        (vec![], Ending::Orderly),
        (vec![1], Ending::Cut),
        (ask(Command::Write, 0, 0, 512), Ending::Cut),
    ] {
        let mut session = Session::transmitting(exports(), 0);
        feed(&mut session, &bytes, 100);
        assert_eq!(session.end(), ending);
    }
    let mut session = Session::transmitting(exports(), 0);
    let seen = feed(&mut session, &[b'x'; 28], 100);
    assert!(matches!(
        seen[..],
        [Seen::Closed(Ending::Bad(WireError::Magic(_)))]
    ));
    let seen = feed(&mut session, &ask(Command::Read, 0, 0, 512), 100);
    assert_eq!(seen, [], "nothing is taken after that");
}

prop_compose! {
    /// Bytes that look like requests, with some damage.
    fn stream()(parts in proptest::collection::vec((0_u16..8, 0_u16..4, 0_u64..300, 0_u32..300), 0..12), cut in 0_usize..4000, flip in proptest::option::of((0_usize..4000, 0_u8..8))) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, flags, offset, len) in parts {
            let mut raw = ask(Command::Read, flags, offset * 256, len * 256);
            raw[7] = number as u8;
            bytes.extend(raw);
            if number == 1 {
                bytes.extend(vec![3; len as usize * 256]);
            }
        }
        if let Some((at, bit)) = flip && at < bytes.len() {
            bytes[at] ^= 1 << bit;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    }
}

proptest! {
    /// How bytes are cut into pieces makes no difference, and data are of the length that was said.
    #[test]
    fn pieces_make_no_difference(bytes in stream(), piece in 1_usize..64) {
        let (mut one, mut other) = (Session::transmitting(exports(), 0), Session::transmitting(exports(), 0));
        let seen = feed(&mut one, &bytes, usize::MAX);
        prop_assert_eq!(&seen, &feed(&mut other, &bytes, piece));
        prop_assert_eq!(one.output(), other.output());
        for pair in seen.windows(2) {
            if let (Seen::Request(request), Seen::Data(data)) = (&pair[0], &pair[1]) {
                prop_assert_eq!(request.action, Action::Write);
                prop_assert!(data.len() <= request.len as usize);
            }
        }
        prop_assert_eq!(one.end(), other.end());
    }

    #[test]
    fn no_bytes_break_the_handshake(bytes in proptest::collection::vec(any::<u8>(), 0..400), piece in 1_usize..64) {
        let mut session = Session::new(exports());
        feed(&mut session, &bytes, piece);
        let _ = session.end();
    }
}
