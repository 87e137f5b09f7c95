//! What makes no machine is told with its place.
use super::*;
use raidlab_core::flag::FlagKind;

const PLAIN: &str = r#"
title = "Plain"
disks = { model = "ST3250624AS", count = 2 }

[array]
layout = "raid1"

[profile]
name = "random"
time = "1s"
"#;

/// The message when the experiment is changed after it was read.
fn told(change: impl FnOnce(&mut Experiment)) -> String {
    let mut experiment = experiment(PLAIN);
    change(&mut experiment);
    let built = Machine::build(&experiment, &experiment.cells[0], 1);
    built.expect_err("it is refused").to_string()
}

#[test]
fn models_are_named() {
    let told = told(|e| e.disks[1].model = "ST9999".to_owned());
    assert!(
        told.starts_with("disk 'disk1': there is no disk model 'ST9999': write"),
        "{told}"
    );
}

#[test]
fn overrides_are_named() {
    assert_eq!(
        told(|e| e.disks[1].overrides.rpm = Some(99_999)),
        "disk 'disk1', model 'ST3250624AS': with its override it is no disk: 99999 rpm is not a disk's speed: between 300 and 20000 is"
    );
}

#[test]
fn places_are_named() {
    assert_eq!(
        told(|e| e.disks[0].controller = "card".to_owned()),
        "disk 'disk0' is on controller 'card', which the experiment does not have"
    );
    assert_eq!(
        told(|e| e.controllers[0].bus = Some("isa".to_owned())),
        "controller 'sata' is on bus 'isa', which the experiment does not have"
    );
    assert_eq!(
        told(|e| e.cells[0].setup.array.members[1] = "disk9".to_owned()),
        "member 'disk9' is no disk of the experiment"
    );
}

#[test]
fn a_resync_with_a_bitmap_is_told() {
    let text = told(|e| {
        let array = &mut e.cells[0].setup.array;
        array.state = raidlab_experiment::setup::ArrayState::Resyncing;
        array.bitmap = Some(raidlab_experiment::setup::Bitmap::Internal);
    });
    let begins = "a resync of an array with a bitmap goes through what was being written";
    assert!(text.starts_with(begins), "{text}");
}

#[test]
fn layouts_are_named() {
    let text = told(|e| e.cells[0].setup.array.members.truncate(1));
    assert!(text.starts_with("layout 'raid1' of 1 members: "), "{text}");
    assert_eq!(
        told(|e| e.disks[0].overrides.capacity = Some(Bytes(512 * 64))),
        "disk 'disk0' of 32 KiB is too small: nothing is left of it for data"
    );
}

#[test]
fn a_rate_that_the_model_cannot_keep_is_flagged() {
    let rate = |per_second: u32| {
        let text = format!("{PLAIN}read-percent = 100\nrate = {per_second}\n");
        let experiment = experiment(&text);
        let runs = run(&mut machine(&experiment, &experiment.cells[0]));
        let flags = runs[0].outcome.flags.clone();
        let mut missed = flags
            .into_iter()
            .filter(|flag| flag.kind == FlagKind::RateNotReached);
        missed.next().map(|flag| flag.reason)
    };
    assert_eq!(rate(50), None);
    let told = rate(50_000).expect("two disks that turn do less");
    assert!(
        told.contains(" operations a second of 50000 asked for"),
        "{told}"
    );
}

#[test]
fn a_phase_that_ends_within_its_ramp_has_no_figure() {
    let text = PLAIN.replace(
        "time = \"1s\"",
        "ramp = \"1s\"\ntotal = \"64KiB\"\nread-percent = 100",
    );
    let experiment = experiment(&text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    let plan = machine.plan().expect("the profile fits");
    let error = machine.run_phase(&plan.phases[0], &mut ());
    let told = error.expect_err("nothing was counted").to_string();
    assert!(
        told.starts_with("phase 'read' ended within its ramp of 1.00 s: nothing was counted"),
        "{told}"
    );
}

/// What the ramp took of the processor is no part of a shorter time's.
#[test]
fn the_processor_is_used_no_more_than_it_is_there_whatever_the_ramp() {
    let share = |profile: &str| {
        let text = format!(
            "title = \"t\"\ndisks = {{ model = \"nvme-ssd\", count = 1 }}\n[array]\nlayout = \"single\"\n[profile]\n{profile}\n"
        );
        let experiment = experiment(&text);
        let mut machine = machine(&experiment, &experiment.cells[0]);
        let outcome = run(&mut machine).remove(0).outcome;
        let threads = outcome.cpu.kernel_threads.unwrap_or_default();
        outcome.cpu.percent(outcome.elapsed)
            + 100.0 * threads.as_secs_f64() / outcome.elapsed.as_secs_f64()
    };
    let random = "name = \"random\"\nsize = \"64MiB\"\nblock = \"64KiB\"\nread-percent = 100\ndirect = false";
    for profile in [
        &format!("{random}\ntime = \"1s\""),
        &format!("{random}\ntime = \"3s\"\nramp = \"2s\""),
        "name = \"hdparm\"",
    ] {
        let share = share(profile);
        assert!((90.0..100.5).contains(&share), "{profile}: {share}");
    }
}

/// A rebuild in pieces of 4 KiB, beside one job, asks a slow core for more than it has, and goes as fast as that lets it: nothing piles up,
/// and the job has its share. It had 2 MiB/s, and waited for eight seconds.
#[test]
fn a_rebuild_of_a_mirror_goes_no_faster_than_its_thread() {
    let text = r#"
title = "t"
disks = { model = "nvme-ssd", count = 5 }
[array]
layout = "raid10"
chunk = "4KiB"
member-size = "1GiB"
state = "rebuilding 1"
bitmap = "internal"
[host]
kernel = "5.15"
memory = "4GiB"
scheduler = "kyber"
cpu-mhz = 150
[profile]
name = "random"
size = "64MiB"
direct = true
call-size = "1MiB"
depth = 8
read-percent = 50
time = "500ms"
[design]
seed = 363
"#;
    let experiment = experiment(text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    let outcome = run(&mut machine).remove(0).outcome;
    let mib = outcome.bytes as f64 / f64::from(1 << 20);
    assert!(mib > 50.0, "{mib} MiB");
    let booked = machine.host().booked();
    assert!(booked < Span::from_millis(100), "{booked} to come");
}
