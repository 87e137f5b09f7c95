//! Messages come back as they went, and their bytes are those of the specification.
use super::*;
use proptest::prelude::*;

#[test]
fn bytes_are_those_of_the_specification() {
    let flags = HandshakeFlags {
        fixed_newstyle: true,
        no_zeroes: true,
    };
    assert_eq!(&flags.greeting(), b"NBDMAGICIHAVEOPT\0\x03");
    let head = OptionHead {
        option: option::GO,
        len: 6,
    };
    assert_eq!(&head.encode(), b"IHAVEOPT\0\0\0\x07\0\0\0\x06");
    let mut out = Vec::new();
    OptionReply::put(&mut out, option::LIST, ReplyKind::Unsupported, b"no");
    assert_eq!(
        out,
        [
            0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 3, 0x80, 0, 0, 1, 0, 0, 0, 2, b'n',
            b'o'
        ]
    );
    let request = RawRequest {
        flags: command::FUA,
        command: Command::WriteZeroes,
        cookie: 1,
        offset: 2,
        len: 3,
    };
    assert_eq!(
        request.encode(),
        [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0,
            0, 0, 3
        ]
    );
    let reply = SimpleReply {
        error: error::EIO,
        cookie: 7,
    };
    assert_eq!(
        reply.encode(),
        [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7]
    );
}

#[test]
fn what_is_no_message_is_refused() {
    // An oldstyle server.
    assert_eq!(
        HandshakeFlags::parse(b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53\0\0"),
        Err(WireError::Magic(0x0000_4202_8186_1253))
    );
    assert!(ClientFlags::parse([0, 0, 0, 4]).is_err());
    assert_eq!(
        OptionHead::parse(b"GET / HTTP/1.1\r\n"),
        Err(WireError::Magic(u64::from_be_bytes(*b"GET / HT")))
    );
    for bad in [
        &b"\0\0\0\x05abc\0\0"[..],
        b"\0\0\0\x01a\0\x02\0\0",
        b"\0\0\0\x01a\0\0more",
        b"\0\0\0\x01\xff\0\0",
        b"\xff\xff\xff\xff",
        b"",
    ] {
        assert!(InfoRequest::parse(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn requests_come_back(flags: u16, number: u16, cookie: u64, offset: u64, len: u32) {
        let request = RawRequest { flags, command: Command::of(number), cookie, offset, len };
        prop_assert_eq!(request.command.number(), number);
        prop_assert_eq!(RawRequest::parse(&request.encode()), Ok(request));
        let reply = SimpleReply { error: len, cookie };
        prop_assert_eq!(SimpleReply::parse(&reply.encode()), Ok(reply));
    }

    #[test]
    fn options_come_back(option: u32, number: u32, name in ".{0,40}", wanted in proptest::collection::vec(any::<u16>(), 0..9)) {
        let request = InfoRequest { name, wanted };
        let data = request.encode();
        prop_assert_eq!(InfoRequest::parse(&data), Ok(request));
        let head = OptionHead { option, len: data.len() as u32 };
        prop_assert_eq!(OptionHead::parse(&head.encode()), Ok(head));
        let (kind, mut out) = (ReplyKind::of(number), Vec::new());
        OptionReply::put(&mut out, option, kind, &data);
        let head = out[..REPLY_HEAD].try_into().expect("a head");
        prop_assert_eq!(OptionReply::parse(&head), Ok(OptionReply { option, kind, len: data.len() as u32 }));
        prop_assert_eq!(kind.is_error(), number >> 31 != 0);
    }

    #[test]
    fn exports_come_back(size: u64, flags: u16, minimum: u32, preferred: u32, maximum: u32) {
        let export = ChosenExport { size, flags };
        prop_assert_eq!(ChosenExport::parse(&export.encode()), Ok(export));
        prop_assert_eq!(ChosenExport::parse(&export.encode_info()[2..]), Ok(export));
        let sizes = BlockSizes { minimum, preferred, maximum };
        prop_assert_eq!(BlockSizes::parse(&sizes.encode()), Ok(sizes));
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = InfoRequest::parse(&bytes);
        let _ = BlockSizes::parse(&bytes);
        let _ = ChosenExport::parse(&bytes);
    }
}
