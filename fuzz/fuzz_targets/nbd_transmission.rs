//! Requests to the NBD server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| raidlab_fuzz::nbd_session(bytes, true));
