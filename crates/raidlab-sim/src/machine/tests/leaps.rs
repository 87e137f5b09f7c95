//! Leaping over steady stretches changes nothing but the effort.
use super::*;
use proptest::prelude::*;
use std::ops::ControlFlow;

fn text(layout: &str, state: &str, capacity_gb: u64, profile: &str) -> String {
    format!(
        r#"
title = "Large arrays"
disks = {{ model = "HP-C3323A", count = 4, override = {{ capacity = "{capacity_gb}GB" }} }}

[array]
layout = "{layout}"
state = "{state}"

[profile]
{profile}
"#
    )
}

/// The machine of such an experiment, with leaps or without.
fn built(text: &str, leaps: bool) -> Machine {
    let experiment = experiment(text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    machine.set_fast_forward(leaps);
    machine
}

fn close(a: f64, b: f64, within: f64) -> bool {
    (a / b - 1.0).abs() < within
}

/// A pass over the beginning of an array: the outcome, and the real time of the models alone.
fn pass(text: &str, leaps: bool) -> (PhaseRun, Span) {
    let mut machine = built(text, leaps);
    let run = run(&mut machine).remove(0);
    (run, machine.host().now().since(Instant::ZERO))
}

fn same_pass(layout: &str, depth: u32, read: u32, direct: &str, total_gib: u64) {
    let profile = format!(
        "name = \"sequential\"\nblock = \"1MiB\"\ntime = \"100000s\"\ntotal = \"{total_gib}GiB\"\ndepth = {depth}\nread-percent = {read}\ndirect = \"{direct}\""
    );
    let text = text(layout, "clean", 8, &profile);
    let ((full, whole), (fast, part)) = (pass(&text, false), pass(&text, true));
    let told = format!("{layout} depth {depth} read {read} direct {direct}");
    assert!(
        close(
            whole.as_secs_f64(),
            full.outcome.elapsed.as_secs_f64(),
            0.001
        ),
        "{told}"
    );
    assert!(
        part.0 < whole.0 / 10 * 9,
        "{told}: {part} of {whole} was run"
    );
    let (a, b) = (&full.outcome, &fast.outcome);
    assert_eq!((a.ops, a.bytes), (b.ops, b.bytes), "{told}");
    let seconds = [a, b].map(|o| o.elapsed.as_secs_f64());
    assert!(close(seconds[0], seconds[1], 0.004), "{told}: {seconds:?}");
    assert!(close(a.mean_in_flight, b.mean_in_flight, 0.01), "{told}");
    let device = [a, b].map(|o| o.device.expect("counted"));
    let moved = device.map(|d| (d.device_read + d.device_written) as f64);
    assert!(close(moved[0], moved[1], 0.01), "{told}: {moved:?}");
    let cpu = [a, b].map(|o| (o.cpu.user + o.cpu.system).0 as f64);
    assert!(close(cpu[0], cpu[1], 0.01), "{told}: {cpu:?}");
    for (a, b) in full.why.shares.iter().zip(&fast.why.shares) {
        assert!((a.busy - b.busy).abs() < 0.03, "{told}: {a:?} {b:?}");
    }
}

#[test]
fn reads_past_the_cache() {
    same_pass("raid0", 2, 100, "yes", 4);
}

#[test]
fn writes_past_the_cache() {
    same_pass("raid1", 4, 0, "yes", 2);
}

#[test]
fn reads_through_the_cache() {
    same_pass("linear", 1, 100, "no", 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn any_pass(layout in prop::sample::select(vec!["raid0", "linear", "raid10", "raid10-f2", "raid1"]), depth in 1_u32..5) {
        same_pass(layout, depth, 100, "yes", 3);
    }

    #[test]
    fn any_rebuild(layout in prop::sample::select(vec!["raid1", "raid10", "raid5", "raid6", "raid10-f2"]), resync: bool, capacity in 4_u64..6) {
        let state = if resync { "resyncing" } else { "rebuilding 1" };
        let text = text(layout, state, capacity, "name = \"random\"");
        let of = |leaps| {
            let mut machine = built(&text, leaps);
            let done = machine.run_resync(|_| ControlFlow::Continue(()));
            let run = machine.host().now().since(Instant::ZERO);
            (done.expect("it is resynced"), run)
        };
        let ((full, whole), (fast, part)) = (of(false), of(true));
        prop_assert!(part.0 < whole.0 / 10 * 9, "{layout} {state}: {part} of {whole} was run");
        prop_assert_eq!(full.bytes, fast.bytes);
        prop_assert!(close(full.rate(), fast.rate(), 0.005), "{layout} {state}: {} {}", full.rate(), fast.rate());
        for (a, b) in full.why.shares.iter().zip(&fast.why.shares) {
            prop_assert!((a.busy - b.busy).abs() < 0.03, "{layout} {state}: {a:?} {b:?}");
        }
    }
}

#[test]
fn the_speed_control_is_reckoned_without_running_it() {
    use crate::array::controlled;
    let most = 204_800_000;
    assert_eq!(controlled(150_000_000, most), 150_000_000);
    for rate in [225_000_000, 285_000_000, 500_000_000] {
        let held = controlled(rate, most) as f64;
        assert!(
            (0.93..1.02).contains(&(held / most as f64)),
            "{rate}: {held}"
        );
    }
}
