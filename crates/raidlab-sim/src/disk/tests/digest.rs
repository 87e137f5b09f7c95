//! Same specification, seed and requests: same answers, to the nanosecond, however they are asked
//! for, in debug and in release builds.
use super::*;
use raidlab_core::rng::mix;

/// Ends of a mixed load on a model, folded into one number.
fn digest(name: &str, seed: u64, step: Option<u64>) -> u64 {
    let model = model(name);
    let mut disk = Disk::new(&model, seed);
    let numbers = Stream::new(seed);
    let (mut state, mut now, mut next, mut done) = (0, Instant::ZERO, 0_u64, Vec::new());
    let mut ended = 0;
    while ended < 3000 {
        while next < 3000 && next - ended < 24 {
            disk.submit(now, mixed(&numbers, next, model.sectors()));
            next += 1;
        }
        // Looking at a disk between its events must change nothing.
        let event = disk.next_event().unwrap();
        if let Some(step) = step {
            let mut at = now.0 + step;
            while at < event.0 {
                disk.advance(Instant(at), &mut done);
                at += step;
            }
            assert!(done.is_empty());
        }
        now = event;
        disk.advance(now, &mut done);
        for end in done.drain(..) {
            assert!(end.at == now);
            ended += 1;
            state = mix(state ^ end.id ^ mix(end.at.0));
        }
    }
    mix(state ^ disk.counters().seek.0 ^ mix(disk.counters().rotation.0))
}

/// Request `i` of a load with everything in it.
fn mixed(numbers: &Stream, i: u64, sectors: u64) -> Request {
    let draw = numbers.at(4 * i);
    let kind = match draw % 100 {
        0..60 => BlockKind::Read,
        60..98 => BlockKind::Write,
        _ => BlockKind::Flush,
    };
    let length = 1 + (draw >> 32) % 300;
    // A third each: anywhere, in a stream, near it.
    let lba = match (draw >> 16) % 3 {
        0 => numbers.below(4 * i + 1, sectors - 600),
        1 => i * 256,
        _ => i * 256 + numbers.below(4 * i + 2, 2000),
    };
    Request {
        fua: draw >> 60 == 0,
        ..request(i, kind, lba, length as u32)
    }
}

#[test]
fn digests_are_fixed_for_ever() {
    let names = catalogue::MODELS.iter().map(|(name, _)| *name);
    let lines: Vec<String> = names
        .map(|name| format!("{name} {:016x}", digest(name, 42, None)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    ST340015A 5a8a7fc713e99dc7
    ST3250624AS 4f8784ec648cc944
    ST3160812AS 27b745198b87833a
    ST3000DM001 819d9a1bb8c38852
    u160-10k-2002 cadd2258a11b0b80
    ST336706LW 3cfe2c3a19b7c337
    ST336752LW 7f07f69751c2930f
    MAN3367MP 5c7a5f2f26c3280a
    KW036 f97b62cb8d2d0355
    HP-C3323A bc0dcfe997e3bd52
    nearline-24tb efd72f7d5cac0924
    sata-ssd e07f75b00f44cc62
    nvme-ssd e4c855fbfcfe6a9e
    ");
}

#[test]
fn the_seed_decides_and_looking_changes_nothing() {
    for name in ["ST3000DM001", "u160-10k-2002", "nvme-ssd"] {
        let expected = digest(name, 42, None);
        assert_eq!(expected, digest(name, 42, None));
        assert_eq!(expected, digest(name, 42, Some(777_777)));
        assert_ne!(expected, digest(name, 43, None));
    }
}
