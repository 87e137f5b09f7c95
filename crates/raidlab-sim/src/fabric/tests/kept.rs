//! What a caching controller keeps: commands at its disks, lines of its cache, and what a channel passes.
use super::volumes::{copy, volume, write_and_read};
use super::*;
use crate::catalogue::controller::ControllerModel;

/// A volume of disks that write behind, on these channels, with changes to the controller.
fn with(channels: &[u32], layout: &str, change: impl FnOnce(&mut ControllerModel)) -> FabricSpec {
    let disks = channels.iter().sum::<u32>() as usize;
    let spec = volume(
        on_channels("PERC3/Di", "ST336752LW", channels),
        layout,
        disks,
    );
    with_model(spec, change)
}

/// The requests one after the other; when the last has ended.
fn one_by_one(
    fabric: &mut Fabric,
    start: Instant,
    kind: BlockKind,
    count: u64,
    at: impl Fn(u64) -> (u64, u32),
) -> Instant {
    let (mut now, mut done) = (start, Vec::new());
    for i in 0..count {
        let (lba, sectors) = at(i);
        fabric.submit(now, 0, bio(i, kind, lba, sectors));
        while done.is_empty() {
            now = fabric.next_event().expect("a request is in flight");
            assert!(now.0 - start.0 < 60_000_000_000, "request {i} hangs");
            fabric.advance(now, &mut done);
        }
        assert_eq!(done.pop().unwrap().end.result, Ok(()));
    }
    now
}

#[test]
fn one_command_at_a_time_shows_the_disks_latency() {
    let rates = |most| {
        let spec = with(&[0, 1], "linear", |model| {
            model.cache.as_mut().unwrap().at_disk = most;
        });
        write_and_read(&spec, 400_000_000)
    };
    let (write, read) = rates(1);
    let (write_many, read_many) = rates(0);
    // The way passes 128 KiB in 2.26 ms; a command costs 0.37 ms beside that.
    let expected = 131_072.0 / (131_072.0 / 58.0 + 372.0);
    close(read, expected, 0.03);
    assert!((57.0..58.5).contains(&read_many), "{read_many}");
    assert!(write < 0.95 * write_many, "{write} {write_many}");
    // Each direction has its own: more is moved both ways than in one.
    let spec = with(&[0, 1], "linear", |_| ());
    let copied = copy(&spec, 300_000_000);
    assert!(2.0 * copied > 1.05 * read, "{copied} {read}");
}

#[test]
fn what_the_first_channel_passes_in_both_directions_is_one() {
    let size = 300_000_000;
    let both = with(&[2, 0], "raid1", |_| ());
    let limit = both.controllers[0].model.channel.first_both as f64 / 1e6;
    // One read and two writes of each byte; what is still in the cache in the end is not out yet.
    let first = copy(&both, size);
    assert!(
        (0.95 * limit / 3.0..1.08 * limit / 3.0).contains(&first),
        "{first} {limit}"
    );
    for free in [
        with(&[0, 2], "raid1", |_| ()),
        with(&[2, 0], "raid1", |model| model.channel.first_both = 0),
    ] {
        let other = copy(&free, size);
        assert!(other > 1.08 * first, "{other} {first}");
    }
}

#[test]
fn a_stream_that_begins_off_the_blocks_leaves_no_lines_behind() {
    let spec = with(&[0, 2], "raid0", |_| ());
    let mut fabric = Fabric::new(&spec, 1).unwrap();
    let write = |i| (127 + i * 128, 128);
    let now = one_by_one(&mut fabric, Instant::ZERO, BlockKind::Write, 8192, write);
    // More reads than there are lines, none of them of what was written.
    let read = |i| (20_000_127 + i * 128, 128);
    let end = one_by_one(&mut fabric, now, BlockKind::Read, 4096, read);
    let rate = 4096.0 * 65_536.0 / (end.0 - now.0) as f64 * 1e3;
    assert!(rate > 50.0, "{rate}");
}

#[test]
fn a_read_that_finds_no_line_has_one_made_free() {
    let spec = with(&[0, 2], "raid0", |_| ());
    let lines = spec.controllers[0].model.cache.unwrap();
    let mut fabric = Fabric::new(&spec, 1).unwrap();
    // A block in every line: too little to be written, and no line is left.
    let count = lines.sectors / lines.line;
    let line = lines.line;
    let now = one_by_one(&mut fabric, Instant::ZERO, BlockKind::Write, count, |i| {
        (i * line, 8)
    });
    let end = one_by_one(&mut fabric, now, BlockKind::Read, 16, |i| {
        (20_000_000 + i * 128, 128)
    });
    assert!(end.0 - now.0 < 1_000_000_000, "{}", end.0 - now.0);
}
