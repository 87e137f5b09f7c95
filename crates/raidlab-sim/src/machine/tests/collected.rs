//! What of a direct call on an array's own device is collected before it goes to the members.
use super::theory::{first, text};

/// Commands at the two members for each call of 256 KiB, of which each of two stripes has 32 chunks.
fn commands(layout: &str, kernel: &str, read: u32) -> f64 {
    let members = if layout == "raid0" { 2 } else { 4 };
    let disks = r#"{ model = "nvme-ssd", count = COUNT, override = { capacity = "4GiB" } }"#
        .replace("COUNT", &members.to_string());
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
        let got = commands(layout, kernel, read);
        assert!(
            (got - expected).abs() < 0.1,
            "{layout} {kernel} {read}: {got}"
        );
    }
}
