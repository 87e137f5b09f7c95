//! The same figures on every machine, in every build: digests that are kept.
use super::*;
use raidlab_core::rng::mix;

/// Cells whose figures are kept: title, disks, the rest.
const CELLS: &[(&str, &str)] = &[
    (
        "one disk, random",
        r#"
disks = { model = "HP-C3323A", count = 1 }
array.layout = "single"
profile = "random"
"#,
    ),
    (
        "raid5, random",
        r#"
disks = { model = "ST3250624AS", count = 5 }
array = { layout = "raid5", chunk = "64KiB" }
profile = { name = "random", depth = 5, time = "3s" }
"#,
    ),
    (
        "raid6 rebuilding, mixed",
        r#"
disks = { model = "nearline-24tb", count = 5 }
array = { layout = "raid6", state = "rebuilding 1" }
profile = { name = "random", read-percent = 70, time = "2s" }
"#,
    ),
    (
        "raid10 far, sequential",
        r#"
disks = { model = "u160-10k-2002", count = 4 }
array = { layout = "raid10-f2" }
profile = { name = "sequential", time = "3s" }
"#,
    ),
    (
        "two drives on a cable, a file",
        r#"
disks = { model = "ST340015A", count = 2 }
topology.controllers.card = { kind = "pata", disks = [["disk0", "disk1"]] }
array = { layout = "raid0", chunk = "64KiB" }
host = { kernel = "2.6.16", memory = "64MiB" }
filesystem.kind = "ext3"
profile = { name = "dd", count = 96 }
"#,
    ),
    (
        "solid-state mirror, calls",
        r#"
disks = { model = "sata-ssd", count = 2 }
array.layout = "raid1"
host.memory = "64MiB"
profile = { name = "bonnie", size = "64MiB", files = 1 }
"#,
    ),
    (
        "btrfs on three disks, calls made durable",
        r#"
disks = { model = "ST3250624AS", count = 3 }
array = { layout = "raid1", engine = "btrfs", member-size = "4GiB" }
host.memory = "128MiB"
profile = { name = "random", size = "256MiB", direct = true, jobs = 2, depth = 4, fsync = 16, read-percent = 50, total = "4MiB" }
"#,
    ),
    (
        "btrfs without two of three copies, being replaced, mixed",
        r#"
disks = { model = "ST3250624AS", count = 4 }
array = { layout = "raid1c3", member-size = "4GiB", state = "rebuilding 2", failed = [1, 2] }
host = { memory = "128MiB", kernel = "6.12" }
profile = { name = "random", size = "512MiB", depth = 4, read-percent = 70, time = "4s" }
"#,
    ),
    (
        "btrfs with two parities without a member, mixed",
        r#"
disks = { model = "ST3250624AS", count = 5 }
array = { layout = "raid6", engine = "btrfs", member-size = "4GiB", failed = [1] }
host.memory = "128MiB"
profile = { name = "random", size = "512MiB", direct = true, depth = 4, fsync = 16, read-percent = 70, total = "4MiB" }
"#,
    ),
    (
        "btrfs with parity, being replaced as before 6.4, mixed",
        r#"
disks = { model = "ST3250624AS", count = 3 }
array = { layout = "raid5", engine = "btrfs", member-size = "4GiB", state = "rebuilding", failed = [1] }
host = { memory = "128MiB", kernel = "6.1" }
profile = { name = "random", size = "512MiB", direct = true, depth = 4, read-percent = 70, time = "4s" }
"#,
    ),
    (
        "btrfs with two parities, being replaced, mixed",
        r#"
disks = { model = "ST3250624AS", count = 4 }
array = { layout = "raid6", engine = "btrfs", member-size = "4GiB", state = "rebuilding", failed = [1] }
host = { memory = "128MiB", kernel = "6.12" }
profile = { name = "random", size = "512MiB", direct = true, depth = 4, read-percent = 70, time = "4s" }
"#,
    ),
];

/// Everything of an outcome that a record keeps, as one number.
fn digest(run: &PhaseRun) -> u64 {
    let o = &run.outcome;
    let device = o.device.unwrap_or_default();
    let mut words = vec![
        o.ops,
        o.bytes,
        o.elapsed.0,
        o.digest,
        o.cpu.user.0,
        o.cpu.system.0,
        o.cpu.kernel_threads.unwrap_or_default().0,
        device.device_read,
        device.device_written,
    ];
    for (class, latencies) in &o.latencies {
        words.push(*class as u64);
        words.extend(
            latencies
                .buckets()
                .flat_map(|(value, count)| [value, count]),
        );
    }
    let words = words.into_iter();
    words.fold(0, |all, word| mix(all.rotate_left(5) ^ word))
}

#[test]
fn figures_are_the_same_everywhere() {
    let mut lines = Vec::new();
    for (title, text) in CELLS {
        let experiment = experiment(&format!("title = \"{title}\"\n{text}"));
        for _ in 0..2 {
            let mut machine = machine(&experiment, &experiment.cells[0]);
            let line =
                |run: &PhaseRun| format!("{title}, {}: {:016x}", run.outcome.id, digest(run));
            lines.push(run(&mut machine).iter().map(line).collect::<Vec<_>>());
        }
        let (a, b) = (&lines[lines.len() - 2], &lines[lines.len() - 1]);
        assert_eq!(a, b, "the same seed, the same figures");
        lines.pop();
    }
    insta::assert_snapshot!(lines.concat().join("\n"));
}
