//! Transaction groups of ZFS under calls that touch parts of records.
use super::files::asked;
use super::*;
use raidlab_core::op::BlockKind;

/// So many calls of 8 KiB at random places of a file of 128 MiB, each of which is read and written back.
fn rewrites(kernel: Kernel, count: u64) -> Host<Toy> {
    let mut host = host(kernel, 256, FilesystemKind::Zfs, Toy::new());
    host.provide(0, 128 * MIB).unwrap();
    // So that calls wait for what they read, as those of a pool that was imported.
    host.drop_caches();
    let calls = CallsSpec {
        handle: Handle::new(0, OpenMode::Update),
        action: CallAction::Seek { rewrite_one_in: 1 },
        size: Bytes(128 * MIB),
        call: 8192,
        count,
        at_least: Span::ZERO,
        at_most: 0,
        durable: Durable::Never,
    };
    run(&mut host, &[(WorkloadSpec::Calls(calls), 1)]);
    host
}

/// Whole records that were written before each time the disk emptied its buffer, in order.
fn groups(host: &Host<Toy>) -> Vec<u64> {
    let mut groups = vec![0];
    for (kind, sectors) in asked(host, 0) {
        match kind {
            BlockKind::Write if sectors == 256 => *groups.last_mut().unwrap() += 1,
            BlockKind::Flush | BlockKind::FlushData => groups.push(0),
            _ => {}
        }
    }
    groups.retain(|records| *records > 0);
    groups
}

#[test]
fn a_group_writes_each_record_that_was_touched() {
    // Before 0.6.3 `sync` waits for nothing.
    for kernel in [Kernel::Linux(3, 12, 0), Kernel::DEFAULT] {
        let mut host = rewrites(kernel, 30);
        host.sync().unwrap();
        assert!(host.is_clean(), "{kernel}");
        let records: u64 = groups(&host).iter().sum();
        // Of 1024 records 30 calls meet hardly one twice.
        assert!((25..=30).contains(&records), "{kernel}: {records}");
    }
}

#[test]
fn a_group_ends_when_the_records_touched_are_so_many_bytes() {
    // Dirty data may be a tenth of 256 MiB. Since 0.8 a group ends with a fifth of that, before with half: each of the two that
    // there are at a time has its share.
    let tenth = 256 * MIB / 10 / (128 << 10);
    for (kernel, share) in [(Kernel::DEFAULT, 5), (Kernel::Linux(4, 13, 0), 2)] {
        let most = tenth / share;
        let groups = groups(&rewrites(kernel, 500));
        // The last one may not have ended.
        let whole = &groups[..groups.len() - 1];
        assert!(whole.len() > 2, "{kernel}: {groups:?}");
        // While a group is written the next one goes on.
        assert!(
            whole.iter().all(|g| (most - 2..=most * 3 / 2).contains(g)),
            "{kernel}: {groups:?} of {most}"
        );
    }
}
