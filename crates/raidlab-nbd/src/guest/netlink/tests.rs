//! Bytes by hand, from the kernel's headers.
use super::*;
use proptest::prelude::*;

const WANTED: Wanted = Wanted {
    index: 3,
    bytes: 1 << 30,
    sector: 4096,
    flags: 0x0d,
};

#[test]
#[cfg(target_endian = "little")]
fn a_device_is_connected_by_these_bytes() {
    let bytes = connect(0x1c, WANTED, 9, 2);
    #[rustfmt::skip]
    let wanted: &[u8] = &[
        // struct nlmsghdr: length 80, family, REQUEST | ACK, sequence, port
        80, 0, 0, 0,  0x1c, 0,  5, 0,  2, 0, 0, 0,  0, 0, 0, 0,
        // struct genlmsghdr: NBD_CMD_CONNECT, version 1
        1, 1, 0, 0,
        // NBD_ATTR_INDEX, u32
        8, 0, 1, 0,  3, 0, 0, 0,
        // NBD_ATTR_SIZE_BYTES, u64
        12, 0, 2, 0,  0, 0, 0, 0x40, 0, 0, 0, 0,
        // NBD_ATTR_BLOCK_SIZE_BYTES, u64
        12, 0, 3, 0,  0, 0x10, 0, 0, 0, 0, 0, 0,
        // NBD_ATTR_SERVER_FLAGS, u64
        12, 0, 5, 0,  0x0d, 0, 0, 0, 0, 0, 0, 0,
        // NBD_ATTR_SOCKETS, nested: NBD_SOCK_ITEM, nested: NBD_SOCK_FD, u32
        16, 0, 7, 0x80,  12, 0, 1, 0x80,  8, 0, 1, 0,  9, 0, 0, 0,
    ];
    assert_eq!(bytes, wanted);
}

#[test]
#[cfg(target_endian = "little")]
fn an_attribute_is_filled_up_to_four_bytes_and_does_not_count_that() {
    let wanted = [9, 0, 2, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
    assert_eq!(attribute(2, b"hello"), wanted);
}

/// A message of the kernel's.
fn message(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + payload.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn error(sequence: u32, errno: i32) -> Vec<u8> {
    // The header of the question comes back behind it.
    let payload = [&(-errno).to_ne_bytes()[..], &[0; HEADER]].concat();
    message(ERROR, sequence, &payload)
}

#[test]
fn the_answer_on_a_family_is_its_number() {
    let mut payload = vec![1, 2, 0, 0];
    payload.extend(attribute(control::FAMILY_NAME, nbd::NAME));
    payload.extend(attribute(control::FAMILY_ID, &0x1c_u16.to_ne_bytes()));
    let mut found = Vec::new();
    let answer = message(control::ID, 1, &payload);
    assert!(read(&answer, 1, &mut found).is_none(), "it is not all");
    let end = read(&error(1, 0), 1, &mut found).expect("that is all");
    end.expect("acknowledged");
    assert_eq!(family_id(&found), Some(0x1c));
}

#[test]
fn what_the_kernel_refuses_has_its_number_and_answers_to_others_are_passed_over() {
    let mut found = Vec::new();
    let both = [error(7, libc::EINVAL), error(2, libc::EBUSY)].concat();
    let end = read(&both, 2, &mut found).expect("an end");
    let refused = end.expect_err("refused");
    assert_eq!(refused.raw_os_error(), Some(libc::EBUSY));
    assert!(read(&error(7, 0), 2, &mut found).is_none());
}

fn attributes() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let content = prop::collection::vec(any::<u8>(), 0..9);
    prop::collection::vec((2_u16..9, content), 0..6)
}

proptest! {
    #[test]
    fn no_datagram_makes_it_fall(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        length in 0_u32..220,
    ) {
        let mut bytes = bytes;
        if let Some(first) = bytes.get_mut(..4) {
            first.copy_from_slice(&length.to_ne_bytes());
        }
        let sequence = u32_at(&bytes, 8).unwrap_or(0);
        let mut found = Vec::new();
        let _ = read(&bytes, sequence, &mut found);
        prop_assert!(found.len() <= bytes.len());
        let _ = family_id(&bytes);
    }

    #[test]
    fn a_familys_number_is_found_behind_whatever_is_before_it(before in attributes(), id: u16) {
        let one = |(kind, content): &(u16, Vec<u8>)| attribute(*kind, content);
        let mut bytes: Vec<u8> = before.iter().flat_map(one).collect();
        prop_assert_eq!(family_id(&bytes), None);
        bytes.extend(attribute(control::FAMILY_ID, &id.to_ne_bytes()));
        prop_assert_eq!(family_id(&bytes), Some(id));
    }
}
