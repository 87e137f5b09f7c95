//! New members of arrays of btrfs: how long they take to be filled, from theory, and where data goes meanwhile.
use super::*;
use std::ops::ControlFlow;

/// Disks of 280 MB/s all over, of which one is replaced.
fn text(kernel: &str, members: usize, array: &str, profile: &str) -> String {
    format!(
        "title = \"Replaced\"\n\
         disks = {{ model = \"nearline-24tb\", count = {members}, override = {{ capacity = \"16GiB\", inner-rate = \"280MB/s\" }} }}\n\
         [array]\nengine = \"btrfs\"\n{array}\n[host]\nkernel = \"{kernel}\"\n[profile]\n{profile}\n"
    )
}

const READS: &str = "name = \"random\"\nsize = \"256MiB\"\ntime = \"2s\"";

fn settled(text: &str) -> Machine {
    let experiment = experiment(text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    let plan = machine.plan().expect("the profile fits");
    assert!(machine.awaits_resilver());
    machine.settle(&plan, &mut ()).expect("there is room");
    machine
}

/// By itself.
fn alone(kernel: &str, members: usize, array: &str) -> Resynced {
    let text = text(kernel, members, array, READS);
    let done = settled(&text).run_resync(|_| ControlFlow::Continue(()));
    done.expect("it is rebuilt")
}

/// What is read goes out again at once, or one after the other, which takes twice as long.
#[test]
fn a_member_is_replaced_at_the_rate_of_the_disks_or_half_of_it() {
    let rate = |kernel| {
        let array = "layout = \"raid1\"\nstate = \"rebuilding\"\nallocated = \"4GiB\"";
        let text = text(kernel, 2, array, READS);
        // Drives that take what is written into their caches would hide that nothing is read meanwhile.
        let text = text.replace("[host]\n", "[host]\nwrite-cache = false\n");
        let done = settled(&text).run_resync(|_| ControlFlow::Continue(()));
        let done = done.expect("it is rebuilt");
        (done.rate() / 1e6, done.why.sentence)
    };
    let (rate_61, why) = rate("6.1");
    assert!((230.0..285.0).contains(&rate_61), "{rate_61}: {why}");
    let (rate_612, why) = rate("6.12");
    // Half of it, and what the drive that is read has read ahead meanwhile.
    assert!((135.0..196.0).contains(&rate_612), "{rate_612}: {why}");
    let (rate_64, why) = rate("6.4");
    assert!(rate_64 < rate_612, "{rate_64}: {why}");
}

#[test]
fn it_takes_as_long_as_what_is_in_use_on_the_member() {
    for (members, layout, state, share) in [
        (2, "raid1", "rebuilding", 1.0),
        (4, "raid1", "rebuilding", 0.5),
        (4, "raid10", "rebuilding", 0.5),
        (4, "raid1c3", "rebuilding", 0.75),
        (3, "raid1c3", "rebuilding 2", 1.0),
        (3, "raid5", "rebuilding", 0.5),
        (4, "raid5", "rebuilding", 1.0 / 3.0),
        (4, "raid6", "rebuilding", 0.5),
    ] {
        let done = |gib: u32| {
            let array =
                format!("layout = \"{layout}\"\nstate = \"{state}\"\nallocated = \"{gib}GiB\"");
            alone("6.1", members, &array)
        };
        let (one, two) = (done(4), done(8));
        for (done, allocated) in [(&one, 4.0), (&two, 8.0)] {
            let filled = done.bytes as f64 / f64::from(1 << 30);
            // Chunks of 1 GiB go round, and the last extent begins another one.
            let lumps = if share < 1.0 { 1.2 } else { 0.05 };
            assert!(
                (filled - share * allocated).abs() < lumps,
                "{layout}: {filled}"
            );
        }
        let times = two.elapsed.as_secs_f64() / one.elapsed.as_secs_f64();
        let bytes = two.bytes as f64 / one.bytes as f64;
        assert!(
            (times / bytes - 1.0).abs() < 0.1,
            "{layout}: {times} {bytes}"
        );
    }
}

/// What has room is written to with the new member, and not while it is copied; chunks that are made meanwhile have no part on it, and
/// of a mirror of two no second copy.
#[test]
fn what_is_written_meanwhile_goes_to_chunks_that_are_not_copied() {
    let text = text(
        "6.1",
        2,
        "layout = \"raid1\"\nstate = \"rebuilding\"\nfailed = [1]\nallocated = \"2560MiB\"",
        "name = \"dd\"\nbs = \"1MiB\"\ncount = 2048",
    );
    let mut machine = settled(&text);
    let plan = machine.plan().expect("it fits");
    let written = |machine: &Machine| {
        let disks = machine.host().device().disks();
        let of = disks.map(|disk| (disk.counters().sectors_written * SECTOR) >> 20);
        of.collect::<Vec<u64>>()
    };
    let write = &plan.phases[0];
    machine.run_phase(write, &mut ()).expect("it runs");
    while machine.resync().is_some() {
        let until = machine.host.now() + Span::from_millis(50);
        let _ = machine.host.wait(Some(until), &mut Vec::new());
    }
    let all = written(&machine);
    // All that dd writes is on the disk that was there, once. The other has what lay there before, and of dd the half of the third chunk
    // that was free, but for a rest that nothing whole fits into.
    assert!((2048..2070).contains(&all[0]), "{all:?}");
    assert!((2560 + 380..2560 + 515).contains(&all[1]), "{all:?}");
}

/// Of few files none are on the first of four members, which mkfs's chunks are not on.
#[test]
fn a_member_without_anything_is_told() {
    let of = |failed: u16| {
        let array = format!(
            "layout = \"raid1\"\nstate = \"rebuilding\"\nfailed = [{failed}]\nallocated = \"512MiB\""
        );
        let experiment = experiment(&text("6.1", 4, &array, READS));
        let mut machine = machine(&experiment, &experiment.cells[0]);
        let plan = machine.plan().expect("the profile fits");
        machine
            .settle(&plan, &mut ())
            .map_err(|error| error.to_string())
    };
    let told = of(0).expect_err("nothing is there");
    assert!(told.contains("drop 'failed'"), "{told}");
    assert_eq!(of(3), Ok(()));
}

/// Which members fail when nothing is said: those that the first files are on, of however many.
#[test]
fn members_that_have_something_fail_when_nothing_is_said() {
    for (members, layout, state) in [
        (3, "raid1", "rebuilding"),
        (6, "raid1", "rebuilding"),
        (5, "raid1c3", "rebuilding 2"),
        (6, "raid1c4", "rebuilding 3"),
        (5, "raid10", "rebuilding"),
        (7, "raid5", "rebuilding"),
    ] {
        let array = format!("layout = \"{layout}\"\nstate = \"{state}\"\nallocated = \"1MiB\"");
        let done = alone("6.1", members, &array);
        // What the profile reads lies there, too: 256 MiB.
        assert!(done.bytes > 20 << 20, "{layout}: {}", done.bytes);
    }
}

/// For what a new member gets of rows with parity the others are read as much, and before 6.4 the data of rows whose parity it has once
/// more.
#[test]
fn others_are_read_for_rows_once_or_more() {
    let read = |kernel, members: usize, layout: &str| {
        let array = format!(
            "layout = \"{layout}\"\nstate = \"rebuilding\"\nfailed = [1]\nallocated = \"2GiB\""
        );
        let mut machine = settled(&text(kernel, members, &array, READS));
        let disks = |machine: &Machine| -> Vec<(u64, u64)> {
            let disks = machine.host().device().disks().map(|disk| disk.counters());
            disks
                .map(|of| (of.sectors_read, of.sectors_written))
                .collect()
        };
        let before = disks(&machine);
        machine
            .run_resync(|_| ControlFlow::Continue(()))
            .expect("it is rebuilt");
        let after = disks(&machine);
        let of = |member: usize| {
            let (before, after) = (before[member], after[member]);
            ((after.0 - before.0) as f64, (after.1 - before.1) as f64)
        };
        let others: f64 = (0..members)
            .filter(|member| *member != 1)
            .map(|m| of(m).0)
            .sum();
        (others / (members - 1) as f64, of(1))
    };
    for (kernel, members, layout, times) in [
        ("6.1", 3, "raid5", 4.0 / 3.0),
        ("6.4", 3, "raid5", 1.0),
        ("6.12", 3, "raid5", 1.0),
        ("6.1", 4, "raid5", 5.0 / 4.0),
        ("6.1", 4, "raid6", 4.0 / 3.0),
        ("6.12", 4, "raid6", 1.0),
    ] {
        let (others, (own, written)) = read(kernel, members, layout);
        assert_eq!(own, 0.0, "{layout}");
        let found = others / written;
        assert!((found - times).abs() < 0.02, "{kernel} {layout}: {found}");
    }
}
