//! Messages of a guest: what is read is what was written, however the bytes were cut.
#![no_main]
use raidlab_vm::channel::exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.first().map_or(0, |byte| usize::from(*byte));
    exercise(bytes, cut);
});
