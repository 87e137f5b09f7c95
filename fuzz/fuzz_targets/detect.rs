//! Any file at all, its format guessed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| raidlab_fuzz::import_guessed(bytes));
