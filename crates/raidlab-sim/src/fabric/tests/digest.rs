//! Same specification, seed and requests: same answers; every request ends exactly once.
use super::volumes::volume;
use super::*;
use proptest::prelude::*;
use raidlab_core::rng::mix;

/// Request `i` of a load with everything in it, for a port of so many sectors.
fn mixed(numbers: &Stream, i: u64, sectors: u64) -> Bio {
    let draw = numbers.at(4 * i);
    let kind = match draw % 100 {
        0..55 => BlockKind::Read,
        55..97 => BlockKind::Write,
        _ => BlockKind::Flush,
    };
    let length = 1 + (draw >> 32) % 255;
    let lba = match (draw >> 16) % 3 {
        0 => numbers.below(4 * i + 1, sectors - 600),
        1 => i * 64,
        _ => i * 64 + numbers.below(4 * i + 2, 2000),
    };
    Bio {
        fua: draw >> 60 == 0,
        ..bio(i, kind, lba, length as u32)
    }
}

/// Ends of a mixed load, folded into one number.
fn digest(spec: &FabricSpec, seed: u64, total: u64, step: Option<u64>) -> u64 {
    let mut fabric = Fabric::new(spec, seed).unwrap();
    let numbers = Stream::new(seed);
    let sizes: Vec<u64> = fabric.ports().iter().map(|p| p.sectors).collect();
    let (mut state, mut now, mut next, mut done) = (0, Instant::ZERO, 0_u64, Vec::new());
    let mut seen = vec![false; total as usize];
    let mut ended = 0;
    while ended < total {
        while next < total && next - ended < 40 {
            let port = next as usize % sizes.len();
            fabric.submit(now, port as u32, mixed(&numbers, next, sizes[port]));
            next += 1;
        }
        // Looking at a fabric between its events must change nothing.
        let event = fabric.next_event().expect("requests are in flight");
        assert!(event >= now);
        if let Some(step) = step {
            let mut at = now.0 + step;
            while at < event.0 {
                fabric.advance(Instant(at), &mut done);
                at += step;
            }
            assert!(done.is_empty());
        }
        now = event;
        fabric.advance(now, &mut done);
        for end in done.drain(..) {
            assert_eq!(end.end.at, now);
            assert!(!std::mem::replace(&mut seen[end.end.id as usize], true));
            ended += 1;
            state = mix(state ^ end.end.id ^ mix(end.end.at.0 ^ u64::from(end.port)));
        }
    }
    assert!(seen.iter().all(|seen| *seen));
    state
}

/// Fabrics of all kinds.
fn kinds() -> Vec<(&'static str, FabricSpec)> {
    let mut shared = on_channels("ahci", "ST3250624AS", &[1, 1, 1]);
    shared.buses.push(BusSpec {
        name: "pci".to_owned(),
        rate: 106_000_000,
        duplex: false,
    });
    shared.controllers[0].bus = Some(0);
    let mut through = volume(on_channels("PERC3/Di", "KW036", &[1, 1]), "raid1", 2);
    through.controllers[0].write_back = Some(false);
    vec![
        ("ata", on_channels("ITE8212", "ST340015A", &[2, 1])),
        ("sata", on_channels("ahci", "ST3000DM001", &[1, 1, 1])),
        ("sata on a bus", shared),
        ("scsi", on_channels("u160", "u160-10k-2002", &[3, 2])),
        ("nvme", on_channels("nvme", "nvme-ssd", &[1, 1])),
        (
            "firmware",
            volume(
                on_channels("ITE8212", "ST340015A", &[2, 2]),
                "raid01 2x2",
                4,
            ),
        ),
        (
            "cache",
            volume(
                on_channels("PERC3/Di", "u160-10k-2002", &[2, 1]),
                "raid5",
                3,
            ),
        ),
        ("write-through", through),
    ]
}

#[test]
fn digests_are_fixed_for_ever() {
    let lines: Vec<String> = kinds()
        .iter()
        .map(|(name, spec)| format!("{name} {:016x}", digest(spec, 42, 1500, None)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    ata 5a4f9fb8dc8e0960
    sata b19d3d7b80bc843d
    sata on a bus 5fc510738aaab18e
    scsi 27c9121f47f4cb9a
    nvme 04b8276b8fd4f207
    firmware ab77a6c3f8bc0a40
    cache dfb8f9008dadf9b0
    write-through 65c5ec6782044182
    ");
}

#[test]
fn the_seed_decides_and_looking_changes_nothing() {
    for (name, spec) in kinds() {
        let expected = digest(&spec, 42, 500, None);
        assert_eq!(expected, digest(&spec, 42, 500, Some(77_777)), "{name}");
        assert_ne!(expected, digest(&spec, 43, 500, None), "{name}");
    }
}

/// A single end of a moment goes another way than several.
#[test]
fn ends_are_the_same_one_by_one_and_all_at_once() {
    for (name, spec) in kinds() {
        let submitted = || {
            let mut fabric = Fabric::new(&spec, 7).unwrap();
            let (numbers, ports) = (Stream::new(7), fabric.ports().len() as u64);
            for i in 0..120 {
                let sectors = fabric.ports()[(i % ports) as usize].sectors;
                let port = (i % ports) as u32;
                fabric.submit(Instant::ZERO, port, mixed(&numbers, i, sectors));
            }
            fabric
        };
        let (mut fabric, mut one_by_one, mut at_once) = (submitted(), Vec::new(), Vec::new());
        while let Some(next) = fabric.next_event() {
            fabric.advance(next, &mut one_by_one);
        }
        submitted().advance(Instant(1 << 50), &mut at_once);
        assert!(one_by_one.len() >= 120, "{name}");
        assert_eq!(one_by_one, at_once, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_request_ends_once(which in 0_usize..8, seed: u64, total in 1_u64..300) {
        let (_, spec) = &kinds()[which];
        digest(spec, seed, total, None);
    }
}
