use proptest::prelude::*;

use super::*;

fn blank() -> [u8; IDENTIFY_BYTES] {
    [0; IDENTIFY_BYTES]
}

fn set(data: &mut [u8; IDENTIFY_BYTES], word: usize, value: u16) {
    data[2 * word..2 * word + 2].copy_from_slice(&value.to_ne_bytes());
}

fn put(data: &mut [u8; IDENTIFY_BYTES], first: usize, last: usize, text: &str) {
    let field = &mut data[2 * first..2 * (last + 1)];
    field.fill(b' ');
    field[..text.len()].copy_from_slice(text.as_bytes());
}

/// A parallel disk of 2003: `hdparm -i` gives Model=SAMSUNG SP1614N, FwRev=TM100-24, BuffSize=8192kB, udma5.
fn parallel_disk() -> [u8; IDENTIFY_BYTES] {
    let mut data = blank();
    put(&mut data, 27, 46, "SAMSUNG SP1614N");
    put(&mut data, 23, 26, "TM100-24");
    put(&mut data, 10, 19, "S016J10X123456");
    set(&mut data, 21, 16384);
    set(&mut data, 53, 0b111);
    set(&mut data, 59, 0x0110);
    let sectors: u32 = 268_435_455;
    set(&mut data, 60, (sectors & 0xffff) as u16);
    set(&mut data, 61, (sectors >> 16) as u16);
    set(&mut data, 83, 0x4000 | 1 << 10);
    set(&mut data, 85, 1 << 5 | 1 << 6);
    set(&mut data, 87, 0x4000);
    set(&mut data, 88, 0x203f);
    let sectors: u64 = 312_581_808;
    set(&mut data, 100, (sectors & 0xffff) as u16);
    set(&mut data, 101, (sectors >> 16) as u16);
    data
}

#[test]
fn reads_what_hdparm_reads() {
    let identity = parse_identify(&parallel_disk()).unwrap();
    assert_eq!(
        identity,
        Identity {
            model: Some("SAMSUNG SP1614N".to_owned()),
            firmware: Some("TM100-24".to_owned()),
            serial: Some("S016J10X123456".to_owned()),
            sectors: Some(312_581_808),
            write_cache: Some(true),
            look_ahead: Some(true),
            queue_depth: None,
            multiple_sectors: Some(16),
            buffer_kib: Some(8192),
            udma_mode: Some(5),
            udma_supported: Some(5),
            rotation_rpm: None,
        }
    );
}

#[test]
fn words_that_are_not_declared_valid_are_unknown() {
    let mut data = blank();
    put(&mut data, 27, 46, "OLD");
    set(&mut data, 60, 1000);
    set(&mut data, 85, 0xffff);
    set(&mut data, 88, 0xffff);
    let identity = parse_identify(&data).unwrap();
    assert_eq!(identity.sectors, Some(1000));
    assert_eq!((identity.write_cache, identity.look_ahead), (None, None));
    assert_eq!(
        (
            identity.udma_mode,
            identity.queue_depth,
            identity.buffer_kib
        ),
        (None, None, None)
    );
    assert_eq!((identity.serial, identity.firmware), (None, None));
}

#[test]
fn a_serial_disk_tells_queue_depth_and_rotation() {
    let mut data = parallel_disk();
    set(&mut data, 75, 31);
    set(&mut data, 76, 0x0106);
    set(&mut data, 217, 7200);
    let identity = parse_identify(&data).unwrap();
    assert_eq!(
        (identity.queue_depth, identity.rotation_rpm),
        (Some(32), Some(7200))
    );
    set(&mut data, 217, 1);
    assert_eq!(parse_identify(&data).unwrap().rotation_rpm, Some(0));
}

#[test]
fn nothing_is_not_a_disk() {
    assert_eq!(parse_identify(&blank()), None);
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), IDENTIFY_BYTES)) {
        let _ = parse_identify(&bytes.try_into().unwrap());
    }
}
