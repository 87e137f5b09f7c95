//! Block traces in every form: what is read is in the order of time and has places that can be counted in bytes.
#![no_main]
use raidlab_core::units::SECTOR;
use raidlab_sim::trace::{DeviceName, Format, Reader};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let first = text.lines().find(|line| !line.is_empty());
    let detected = first.and_then(Format::detect);
    // What is like no form may be given by name, and be of any.
    let formats = detected.map_or(Format::ALL.map(|(_, format)| format).to_vec(), |format| {
        vec![format]
    });
    for format in formats {
        let mut reader = Reader::new(format, text.lines());
        let (mut last, mut devices) = (None, Vec::new());
        let _ = reader.has_times();
        while let Some(Ok(record)) = reader.next() {
            assert!(last <= Some(record.at), "{record:?} is before {last:?}");
            let end = record.lba.checked_add(u64::from(record.sectors));
            assert!(
                end.and_then(|end| end.checked_mul(SECTOR)).is_some(),
                "{record:?}"
            );
            assert!(
                (1..=text.lines().count()).contains(&record.line),
                "{record:?}"
            );
            last = Some(record.at);
            devices.push(record.device);
        }
        let _ = reader.left_out();
        // Each device can be asked for by the name that it is told by.
        for device in devices.into_iter().take(4) {
            let name = reader.device(device);
            let name: DeviceName = name.parse().expect("a name");
            let mut one = Reader::new(format, text.lines());
            if one.only(&name).is_ok() {
                assert!(one.next().is_some(), "no request of {name}");
            }
        }
    }
});
