//! Programs and kernel modules: damaged ones are refused, not believed.
#![no_main]
use raidlab_vm::image::Elf;
use raidlab_vm::modules;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(elf) = Elf::parse(bytes) {
        let _ = elf.dynamic();
        assert!(elf.loaded().len() <= bytes.len());
        if let Ok(Some(section)) = elf.section(".modinfo") {
            let _ = modules::said(section);
        }
    }
});
