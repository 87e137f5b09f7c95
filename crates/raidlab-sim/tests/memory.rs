//! Memory does not grow with the bytes or the requests that are simulated: the most that was allocated at a
//! time is the same for a short run and for one that is many times as long.
use raidlab_core::units::Bytes;
use raidlab_experiment::parse;
use raidlab_sim::catalogue;
use raidlab_sim::machine::Machine;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
struct Counted;

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call goes on to the system's allocator as it is; counting touches two atomics only.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// The array and the host of an experiment, and its profile but for how much it does.
const CASES: &[(&str, &str, &str)] = &[
    (
        "random requests, raid5 past the page cache",
        r#"array.layout = "raid5""#,
        r#"name = "random", depth = 5, read-percent = 67, time = "100000s""#,
    ),
    (
        "reading through the page cache, raid6",
        "array.layout = \"raid6\"\nhost.memory = \"64MiB\"",
        r#"name = "sequential", block = "256KiB", depth = 4, read-percent = 100, direct = "no", time = "100000s""#,
    ),
    (
        "writing through the page cache, raid10",
        "array.layout = \"raid10\"\nhost.memory = \"64MiB\"",
        r#"name = "sequential", block = "256KiB", depth = 2, read-percent = 0, direct = "no", time = "100000s""#,
    ),
    (
        "rewriting a file at random, ext4",
        "array.layout = \"raid0\"\nfilesystem = \"ext4\"\nhost.memory = \"64MiB\"",
        r#"name = "random", size = "64MiB", read-percent = 0, direct = "no", time = "100000s""#,
    ),
    (
        "rewriting a file at random, xfs",
        "array.layout = \"raid0\"\nfilesystem = \"xfs\"\nhost.memory = \"64MiB\"",
        r#"name = "random", size = "64MiB", read-percent = 0, direct = "no", time = "100000s""#,
    ),
];

/// The most that was allocated at a time, beside what was there before, while a machine was built and `total`
/// was moved on it; and how many operations that were.
fn most(case: &(&str, &str, &str), total: Bytes) -> (usize, u64) {
    let (title, machine, profile) = case;
    let total = total.0 >> 20;
    let text = format!(
        r#"
title = "{title}"
disks = {{ model = "ST3250624AS", count = 4 }}
{machine}
profile = {{ {profile}, total = "{total}MiB" }}
"#
    );
    let experiment = parse(&text, "memory.toml", &catalogue::known())
        .unwrap_or_else(|e| panic!("{}", e.render(false)));
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut machine = Machine::build(&experiment, &experiment.cells[0], 1).expect("a machine");
    // All of it is run.
    machine.set_fast_forward(false);
    let plan = machine.plan().expect("the profile fits");
    let run = machine.run_phase(&plan.phases[0], &mut ());
    let outcome = run.expect("it runs").outcome;
    assert_eq!(outcome.bytes, total << 20, "{title}");
    (MOST.load(Ordering::Relaxed) - before, outcome.ops)
}

// One test, so that no other allocates meanwhile.
#[test]
fn does_not_grow_with_what_is_simulated() {
    for case in CASES {
        let random = case.2.contains("random");
        let (short, long) = if random { (16, 160) } else { (256, 2560) };
        let (short, few) = most(case, Bytes::mib(short));
        let (long, many) = most(case, Bytes::mib(long));
        assert!(many >= 10 * few && few > 100, "{few} and {many} operations");
        assert!(short > 10_000, "it was counted: {short}");
        // A second of the run is a point of its series: 16 bytes, doubled when there is no room.
        assert!(
            long <= short + 16 * 1024 + short / 50,
            "{}: {short} bytes for {few} operations, {long} for {many}",
            case.0
        );
    }
}
