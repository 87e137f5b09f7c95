//! The importers of sysbench.
#![no_main]
use raidlab_results::import::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| raidlab_fuzz::import_as(bytes, &[Format::Sysbench]));
