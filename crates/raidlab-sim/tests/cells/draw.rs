//! Experiments of one cell, as text. Some are refused, as what a kernel lacks; the rest are run.
#[path = "../shared/draws.rs"]
mod draws;

use draws::{Draws, schedulers};
use raidlab_core::rng::Stream;
use raidlab_experiment::kernel::Kernel;

const MODELS: &[&str] = &[
    "ST340015A",
    "ST3160812AS",
    "ST3250624AS",
    "ST3000DM001",
    "nearline-24tb",
    "nvme-ssd",
];
const KERNELS: &[&str] = &[
    "2.4.27", "2.6.8", "2.6.16", "2.6.22", "2.6.31", "2.6.38", "3.2", "3.16", "4.1", "4.9", "4.19",
    "5.4", "5.13", "5.15", "6.0", "6.1", "6.4", "6.6", "6.12", "6.16", "6.18",
];
/// Layouts of md with the fewest members, and how many may fail.
const MD: &[(&str, u64, u64)] = &[
    ("single", 1, 0),
    ("linear", 2, 0),
    ("raid0", 2, 0),
    ("raid1", 2, 1),
    ("raid4", 3, 1),
    ("raid5", 3, 1),
    ("raid5-la", 3, 1),
    ("raid6", 4, 2),
    ("raid10", 2, 1),
    ("raid10-f2", 3, 1),
    ("raid10-o2", 2, 1),
    ("raid10-n3", 3, 2),
    ("raid50 2x3", 6, 1),
    ("raid01 2x2", 4, 1),
];
const ZFS: &[(&str, u64, u64)] = &[
    ("zfs-stripe", 1, 0),
    ("zfs-mirror", 2, 1),
    ("zfs-mirror 2x2", 4, 1),
    ("raidz1", 3, 1),
    ("raidz2", 4, 2),
    ("raidz3", 5, 2),
    ("raidz1 2x3", 6, 1),
];
/// Of `raid6` two new members are refused.
const BTRFS: &[(&str, u64, u64)] = &[
    ("linear", 1, 0),
    ("raid0", 2, 0),
    ("raid1", 2, 1),
    ("raid10", 4, 1),
    ("raid1c3", 3, 2),
    ("raid1c4", 4, 2),
    ("raid5", 3, 1),
    ("raid6", 4, 1),
];

#[derive(Clone, Copy, PartialEq)]
enum Engine {
    Md,
    Zfs,
    Btrfs,
    Controller,
}

/// One of these values as a line, once in so many times.
fn line<T: Copy + std::fmt::Display>(d: &mut Draws, times: u64, key: &str, all: &[T]) -> String {
    let value = d.of(all);
    match d.once_in(times) {
        true => format!("{key} = {value}\n"),
        false => String::new(),
    }
}

/// Experiment `number` of a seed.
pub(crate) fn text(seed: u64, number: u64) -> String {
    let mut d = Draws::new(Stream::new(seed).child(number));
    let engine = [
        Engine::Md,
        Engine::Md,
        Engine::Zfs,
        Engine::Btrfs,
        Engine::Controller,
    ][(number % 5) as usize];
    let kernel = d.of(KERNELS);
    let (array, members, filesystem) = array(&mut d, engine, kernel);
    let mut profile = profile(&mut d, engine, !filesystem.is_empty());
    let host = host(&mut d, kernel, profile.contains("direct = false"), engine);
    let model = d.of(MODELS);
    let topology = match engine {
        Engine::Controller => controller(&mut d, model),
        _ => String::new(),
    };
    // Whatever comes of itself after five minutes. Arms do not do much until then.
    let slow = ["\"random\"", "direct = true", "read-percent = 100"];
    let small = profile.contains("\"16MiB\"") || model == "nvme-ssd";
    if !small && slow.iter().all(|part| profile.contains(part)) {
        let brief = profile.lines().find(|line| line.starts_with("time = "));
        profile = profile.replace(brief.unwrap_or_default(), "time = \"310s\"");
    }
    format!(
        "title = \"drawn\"\ndisks = {{ model = \"{model}\", count = {members} }}\n{filesystem}\n{topology}\n[array]\n{array}\n[host]\n{host}\n{profile}\n[design]\nseed = {}\n",
        d.below(1000)
    )
}

/// A card with RAID of its own, for disks of this model.
fn controller(d: &mut Draws, model: &str) -> String {
    let link = match model {
        "ST340015A" => "pata",
        "nvme-ssd" => "nvme",
        _ => "sata",
    };
    let mut text = "[topology.controllers.card]\nkind = \"hardware-raid\"\n".to_owned();
    if link == "pata" && d.once_in(2) {
        return text + "link = \"pata\"\nmodel = \"ITE8212\"\nchannels = 2\n";
    }
    text += &format!("link = \"{link}\"\nchannels = 8\n");
    text += &line(d, 2, "cache", &["\"16MiB\"", "\"256MiB\""]);
    text + &line(d, 3, "cache-mode", &["\"write-through\""])
}

fn array(d: &mut Draws, engine: Engine, kernel: &str) -> (String, u64, String) {
    let (layout, least, spare) = d.of(match engine {
        Engine::Md | Engine::Controller => MD,
        Engine::Zfs => ZFS,
        Engine::Btrfs => BTRFS,
    });
    let fixed = layout.contains(' ') || layout == "single";
    let members = if fixed { least } else { least + d.below(4) };
    let mut text = format!("layout = \"{layout}\"\n");
    text += &line(d, 1, "member-size", &["\"1GiB\"", "\"3GiB\"", "\"8GiB\""]);
    if spare > 0 {
        let failed = 1 + d.below(spare);
        let synced: &[&str] = match engine {
            Engine::Md | Engine::Controller => &["initial-sync", "resyncing"],
            _ => &["clean"],
        };
        text += &match d.below(5) {
            0 | 1 => String::new(),
            2 => format!("state = \"degraded {failed}\"\n"),
            3 => format!("state = \"rebuilding {failed}\"\n"),
            _ => format!("state = \"{}\"\n", d.of(synced)),
        };
    }
    match engine {
        Engine::Md => {
            if !["single", "linear", "raid1"].contains(&layout) {
                text += &line(d, 3, "chunk", &["\"4KiB\"", "\"64KiB\"", "\"1MiB\""]);
            }
            if spare > 0 && !text.contains("sync") {
                text += &line(d, 4, "bitmap", &["\"internal\""]);
            }
            if ["raid4", "raid5", "raid6"].contains(&layout) {
                text += &line(d, 4, "stripe-cache", &[17, 256, 4096]);
                if kernel
                    .parse::<Kernel>()
                    .is_ok_and(|k| k >= Kernel::Linux(3, 12, 0))
                {
                    text += &line(d, 4, "group-threads", &[1, 4]);
                }
            }
        }
        Engine::Zfs => {
            text += &line(d, 3, "ashift", &[9, 13]);
            text += &line(d, 3, "record-size", &["\"8KiB\"", "\"1MiB\""]);
        }
        Engine::Btrfs => text += "engine = \"btrfs\"\n",
        Engine::Controller => {
            text += "engine = \"controller\"\n";
            if !["single", "linear", "raid1"].contains(&layout) {
                text += &line(d, 3, "chunk", &["\"16KiB\"", "\"64KiB\"", "\"1MiB\""]);
            }
            if text.contains("sync") || text.contains("rebuilding") {
                text += &line(d, 2, "rebuild-rate", &[0, 10, 100]);
            }
        }
    }
    let filesystem = match engine {
        Engine::Md | Engine::Controller => d.of(&["", "", "ext3", "ext4", "xfs", "btrfs"]),
        Engine::Zfs => "zfs",
        Engine::Btrfs => "btrfs",
    };
    let filesystem = match filesystem {
        "" => String::new(),
        kind => format!("filesystem = \"{kind}\"\n"),
    };
    (text, members, filesystem)
}

fn host(d: &mut Draws, kernel: &str, cached: bool, engine: Engine) -> String {
    let mut text = format!("kernel = \"{kernel}\"\n");
    text += &line(d, 1, "memory", &["\"128MiB\"", "\"512MiB\"", "\"4GiB\""]);
    let schedulers = schedulers(kernel);
    if !schedulers.is_empty() && d.once_in(2) {
        text += &format!("scheduler = \"{}\"\n", d.of(&schedulers));
    }
    text += &line(d, 2, "cores", &[2, 4, 16]);
    text += &line(d, 5, "cpu-mhz", &[150, 2000]);
    text += &line(d, 5, "queue-requests", &[4, 64, 1024]);
    text += &line(d, 4, "write-cache", &["false"]);
    text += &line(d, 5, "drive-queue", &[1, 8]);
    text += &line(d, 6, "request-size", &["\"4KiB\"", "\"64KiB\""]);
    if cached && matches!(engine, Engine::Md | Engine::Controller) {
        text += &line(d, 4, "read-ahead", &["\"0B\"", "\"1MiB\""]);
    }
    text
}

fn profile(d: &mut Draws, engine: Engine, file: bool) -> String {
    let size = d.of(&["16MiB", "64MiB", "128MiB"]);
    let tools: &[&str] = match file {
        true => &["bonnie", "tiobench", "hdbench", "dd"],
        false => &["dd", "hdparm"],
    };
    if d.once_in(3) {
        return match d.of(tools) {
            "bonnie" => format!(
                "[profile]\nname = \"bonnie\"\nsize = \"{size}\"\nfiles = {}\nfast = true\n",
                d.below(2)
            ),
            "tiobench" => format!(
                "[profile]\nname = \"tiobench\"\nsize = \"{size}\"\nthreads = {}\n",
                d.of(&[1, 4])
            ),
            "hdbench" => format!("[profile]\nname = \"hdbench\"\nsizes = [\"{size}\"]\n"),
            "hdparm" => {
                "[profile]\nname = \"hdparm\"\nread-time = \"1s\"\ncached-time = \"100ms\"\n"
                    .to_owned()
            }
            _ => format!("[profile]\nname = \"dd\"\ncount = {}\n", d.of(&[64, 300])),
        };
    }
    let random = d.once_in(2);
    let name = if random { "random" } else { "sequential" };
    let mut text = format!("[profile]\nname = \"{name}\"\nsize = \"{size}\"\n");
    let direct = engine != Engine::Zfs && !d.once_in(3);
    text += &format!(
        "direct = {direct}\nread-percent = {}\n",
        d.of(&[0, 50, 100])
    );
    text += &format!(
        "jobs = {}\nqueue-depth = {}\n",
        d.of(&[1, 1, 3]),
        d.of(&[1, 8, 32])
    );
    text += &format!(
        "call-size = \"{}\"\n",
        d.of(&["4KiB", "16KiB", "100KiB", "1MiB"])
    );
    text += &format!("time = \"{}\"\n", d.of(&["200ms", "500ms", "1s"]));
    text += &line(d, 5, "fsync", &[1, 16]);
    text += &line(d, 6, "ramp", &["\"100ms\""]);
    text
}
