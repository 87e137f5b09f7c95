//! Files that are written side by side: how much of each at a time.
use super::throttle::write;
use super::*;
use raidlab_core::op::BlockKind;

/// Sectors that the flusher writes of one file before another one has its turn, at the most: nobody dirties so
/// much that he is held back.
fn turn(kernel: Kernel, kind: FilesystemKind, memory: u64) -> u64 {
    let mut host = host(kernel, memory, kind, Toy::new());
    let job = |file, mode, durable| {
        let WorkloadSpec::Pass(pass) = write(65_536, 40 * MIB) else {
            panic!("a pass")
        };
        let handle = Handle::new(file, mode);
        let pass = PassSpec {
            handle,
            durable,
            ..pass
        };
        (WorkloadSpec::Pass(pass), 1)
    };
    for file in 0..2 {
        let _ = run(&mut host, &[job(file, OpenMode::Create, Durable::AtEnd)]);
    }
    let before = host.device().asked.len();
    let again = |file| job(file, OpenMode::Update, Durable::Never);
    let _ = run(&mut host, &[again(0), again(1)]);
    let mut turns: Vec<u64> = Vec::new();
    let mut next = 0;
    for (_, bio) in &host.device().asked[before..] {
        // Metadata between the data is no turn.
        if bio.kind != BlockKind::Write || bio.sectors < 64 {
            continue;
        }
        match turns.last_mut() {
            Some(turn) if bio.lba.0 == next => *turn += u64::from(bio.sectors),
            _ => turns.push(u64::from(bio.sectors)),
        }
        next = bio.end();
    }
    turns.into_iter().max().unwrap()
}

/// 4 MiB of a file until 3.1, then an eighth of what may be dirty, or half of what the device writes in a second, and 4 MiB:
/// with 512 MiB of memory 12 or 16 MiB.
#[test]
fn a_file_has_its_turn_for_longer_since_3_1() {
    let old = turn(Kernel::Linux(3, 0, 0), FilesystemKind::Xfs, 512);
    let new = turn(Kernel::Linux(3, 1, 0), FilesystemKind::Xfs, 512);
    assert_eq!(old, 8192);
    assert!((24_576..=32_768).contains(&new), "{new}");
}

/// ext4 went on to the end of a run of dirty pages for a while.
#[test]
fn ext4_wrote_runs_whole_from_2_6_32_to_3_10() {
    let of = |minor| turn(Kernel::Linux(2, 6, minor), FilesystemKind::Ext4, 512);
    assert!(of(32) > 2 * of(31));
    // Little memory, so that chunks are short.
    let of = |minor| turn(Kernel::Linux(3, minor, 0), FilesystemKind::Ext4, 128);
    assert!(of(10) > of(11));
}
