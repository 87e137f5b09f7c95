//! What of a direct call on an array's own device is collected before it goes to the members.
use super::theory::{first, text};

/// Commands at all members for each call of 256 KiB, which are 64 chunks.
fn commands(layout: &str, members: u32, kernel: &str, read: u32) -> f64 {
    let disks = format!(
        "{{ model = \"nvme-ssd\", count = {members}, override = {{ capacity = \"4GiB\" }} }}"
    );
    let profile = format!(
        "name = \"random\"\nblock = \"256KiB\"\ntotal = \"16MiB\"\ndepth = 1\nread-percent = {read}"
    );
    let array = format!("layout = \"{layout}\"\nchunk = \"4KiB\"\n[host]\nkernel = \"{kernel}\"");
    let (run, disks) = first(&text(&disks, &array, &profile));
    let all: u64 = disks.iter().map(|disk| disk.reads + disk.writes).sum();
    all as f64 / run.outcome.ops as f64
}

/// Whoever writes to the device itself collects what that becomes until Linux 6.5 (`blkdev_write_iter`); a Linux 6.1 in a guest
/// made one request of 256 KiB on each member, and 32 of reads.
#[test]
fn writes_to_an_array_itself_are_collected_until_6_5_and_reads_until_5_16() {
    for (layout, kernel, read, expected) in [
        ("raid0", "5.15", 100, 2.0),
        ("raid0", "5.15", 0, 2.0),
        ("raid0", "6.1", 100, 64.0),
        ("raid0", "6.1", 0, 2.0),
        ("raid0", "6.6", 100, 64.0),
        ("raid0", "6.6", 0, 64.0),
        // md's thread collects what nobody else does.
        ("raid10", "6.6", 0, 4.0),
    ] {
        let members = if layout == "raid0" { 2 } else { 4 };
        let got = commands(layout, members, kernel, read);
        assert!(
            (got - expected).abs() < 0.1,
            "{layout} {kernel} {read}: {got}"
        );
    }
}

/// Where every member has every block md splits nothing at chunks (`raid10.c:raid10_make_request`: `near_copies < raid_disks`). A
/// guest of 6.1 read such an array of two or three disks at 109 MB/s in order with chunks of 64 and of 512 KiB.
#[test]
fn a_raid10_that_has_all_on_every_member_splits_nothing() {
    let of = |members| commands("raid10", members, "6.1", 100);
    assert_eq!((of(2), of(4)), (1.0, 64.0));
}
