//! How far leaps over steady stretches are off: random sequential passes, each run to its end and with
//! leaps.
//!
//! `cargo bench -p raidlab-sim --bench leaps -- COUNT [SEED [FIRST]]`; with `--any-size` leaps also where
//! machines do not make them, with `--large` passes over tens of gibibytes, with `--chance` random calls on arrays of solid-state disks,
//! whose rates are compared, with `--series` the megabytes of each second, run to its end and with leaps. The name of a file
//! in place of the count: the first phase of the first cell of that experiment.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::rng::Stream;
use raidlab_core::target::Target;
use raidlab_core::units::Bytes;
use raidlab_experiment::parse;
use raidlab_sim::catalogue;
use raidlab_sim::machine::Machine;
use shared::on_processor;
use std::time::Instant;

const LAYOUTS: &[&str] = &[
    "linear",
    "raid0",
    "raid1",
    "raid10",
    "raid10-f2",
    "raid5",
    "raid6",
];
const DISKS: &[&str] = &["ST3250624AS", "nearline-24tb", "ST340015A"];
const BLOCKS: &[&str] = &["128KiB", "256KiB", "1MiB", "4MiB"];

/// What passes go over.
#[derive(Clone, Copy)]
enum Size {
    Small,
    Large,
    Huge,
    /// Not a pass at all: so many seconds of random calls.
    Chance,
}

impl Size {
    fn asked_for() -> Self {
        let is = |flag: &str| std::env::args().any(|a| a == flag);
        match (is("--huge"), is("--large")) {
            _ if is("--chance") => Self::Chance,
            (true, _) => Self::Huge,
            (false, true) => Self::Large,
            (false, false) => Self::Small,
        }
    }

    /// The least in GiB, and how many more there may be.
    const fn gib(self) -> (u64, u64) {
        match self {
            Self::Small => (3, 14),
            Self::Large => (30, 50),
            Self::Huge => (300, 700),
            Self::Chance => (5, 20),
        }
    }

    const fn disks(self) -> &'static [&'static str] {
        match self {
            Self::Huge => &["ST3000DM001", "nearline-24tb"],
            _ => DISKS,
        }
    }
}

/// Random calls `number` of a seed: what they are called, and their experiment.
fn calls(seed: u64, number: u64) -> (String, String) {
    let draws = Stream::new(seed).child(number);
    let one = |i, of: &[&'static str]| of[draws.below(i, of.len() as u64) as usize];
    let (layout, model) = (one(0, LAYOUTS), one(1, &["sata-ssd", "nvme-ssd"]));
    let (block, kernel) = (
        one(2, &["4KiB", "8KiB", "64KiB"]),
        one(3, &["4.19", "5.10", "6.1"]),
    );
    let (depth, jobs) = (1 + draws.below(4, 48), 1 + draws.below(5, 4));
    let read = [0, 30, 70, 100, 100][draws.below(6, 5) as usize];
    let (least, more) = Size::Chance.gib();
    let time = least + draws.below(7, more);
    let fsync = match draws.below(8, 4) {
        0 if read < 100 => "fsync = 64",
        _ => "",
    };
    let state = match draws.below(9, 4) {
        0 if matches!(layout, "raid1" | "raid10" | "raid5" | "raid6") => "degraded",
        _ => "clean",
    };
    let name = format!(
        "{read} % read, {time} s of {jobs} x {depth} x {block} {fsync}, {layout} {state} of {model}, Linux {kernel}"
    );
    let text = format!(
        r#"
title = "Any calls"
disks = {{ model = "{model}", count = 4 }}
array.layout = "{layout}"
array.state = "{state}"
design.seed = {}

[host]
cores = 8
kernel = "{kernel}"

[profile]
name = "random"
block = "{block}"
time = "{time}s"
depth = {depth}
jobs = {jobs}
{fsync}
read-percent = {read}
"#,
        draws.below(10, 1_000_000)
    );
    (name, text)
}

/// Pass `number` of a seed: what it is called, and its experiment.
fn pass(seed: u64, number: u64, size: Size) -> (String, String) {
    let draws = Stream::new(seed).child(number);
    let one = |i, of: &[&'static str]| of[draws.below(i, of.len() as u64) as usize];
    let (layout, model, block) = (one(0, LAYOUTS), one(1, size.disks()), one(2, BLOCKS));
    let depth = 1 + draws.below(3, 4);
    let read = 100 * draws.below(4, 2);
    let direct = ["yes", "no"][draws.below(5, 2) as usize];
    let (least, more) = size.gib();
    let total = least + draws.below(6, more);
    let capacity = total + 8 + draws.below(7, 20);
    let phase = draws.below(8, 1_000_000);
    let what = if read > 0 { "reads" } else { "writes" };
    let name = format!("{what} {total} GiB direct={direct} {layout} of {model}, {depth} x {block}");
    let text = format!(
        r#"
title = "Any pass"
disks = {{ model = "{model}", count = 4, override = {{ capacity = "{capacity}GiB" }} }}
array.layout = "{layout}"
design.seed = {phase}

[profile]
name = "sequential"
block = "{block}"
time = "100000s"
total = "{total}GiB"
depth = {depth}
read-percent = {read}
direct = "{direct}"
"#
    );
    (name, text)
}

/// The outcome of an experiment's only cell, the simulated time that was run, and the real time it took.
fn run(text: &str, leaps: bool) -> Option<(PhaseOutcome, f64, f64)> {
    let experiment = parse(text, "pass.toml", &catalogue::known())
        .map_err(|e| println!("{}", e.render(false)))
        .ok()?;
    let begin = Instant::now();
    let before = on_processor(begin);
    let mut machine = Machine::build(&experiment, &experiment.cells[0], experiment.design.seed)
        .map_err(|e| println!("{e}"))
        .ok()?;
    machine.set_fast_forward(leaps);
    if std::env::args().any(|a| a == "--any-size") {
        machine.set_fast_forward_from(Bytes(0));
    }
    let plan = machine.plan().map_err(|e| println!("{e}")).ok()?;
    let run = machine.run_phase(plan.phases.first()?, &mut ());
    let run = run.map_err(|e| println!("{e}")).ok()?;
    let simulated = machine.host().now().0 as f64 / 1e9;
    Some((run.outcome, simulated, on_processor(begin) - before))
}

/// The bytes of each second, in megabytes.
fn seconds(outcome: &PhaseOutcome) -> String {
    let windows = outcome.series.windows.iter();
    let rates = windows.map(|w| format!("{:.1}", w.bytes as f64 / 1e6));
    rates.collect::<Vec<_>>().join(" ")
}

/// Runs a pass both ways and prints what came of it: by how many per cent leaps change its time, and
/// the processor's seconds without them and with them.
fn compare(number: u64, name: &str, text: &str, series: bool) -> Option<(f64, [f64; 2])> {
    let (full, fast) = (run(text, false)?, run(text, true)?);
    // Seconds of what has an end of its own, milliseconds a gigabyte of what ends with its time.
    let [a, b] = [&full.0, &fast.0].map(|o| match Size::asked_for() {
        Size::Chance => o.elapsed.as_secs_f64() * 1e12 / o.bytes as f64,
        _ => o.elapsed.as_secs_f64(),
    });
    let error = 100.0 * (b / a - 1.0);
    println!(
        "{number:4} {error:+7.2} %  {a:8.2} s  {b:8.2} s  {:5.1} % run, {:6.3} s and {:6.3} s  {name}",
        100.0 * fast.1 / full.1,
        full.2,
        fast.2
    );
    if series {
        println!("     {}\n     {}", seconds(&full.0), seconds(&fast.0));
    }
    if let Size::Chance = Size::asked_for() {
        for percent in [50.0, 99.0, 99.9] {
            let all = |o: &PhaseOutcome| {
                let of = o
                    .latencies
                    .iter()
                    .filter_map(|(_, l)| l.percentile(percent));
                of.map(|span| format!("{span}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            println!("     p{percent}: {} / {}", all(&full.0), all(&fast.0));
        }
    }
    Some((error.abs(), [full.2, fast.2]))
}

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let series = all.iter().any(|a| a == "--series");
    let size = Size::asked_for();
    let mut words = all.iter().filter(|a| !a.starts_with("--")).peekable();
    if let Some(path) = words.next_if(|word| word.parse::<u64>().is_err()) {
        match std::fs::read_to_string(path) {
            Ok(text) => drop(compare(0, path, &text, series)),
            Err(error) => println!("{path}: {error}"),
        }
        return;
    }
    let mut number = |usual: u64| words.next().and_then(|w| w.parse().ok()).unwrap_or(usual);
    let (count, seed, first) = (number(20), number(1), number(0));
    let passes = (first..first + count).filter_map(|number| {
        let (name, text) = match size {
            Size::Chance => calls(seed, number),
            _ => pass(seed, number, size),
        };
        compare(number, &name, &text, series)
    });
    let (mut off, took): (Vec<f64>, Vec<[f64; 2]>) = passes.unzip();
    off.sort_by(f64::total_cmp);
    let within = off.iter().filter(|e| **e <= 0.5).count();
    let took = |way: usize| took.iter().map(|t| t[way]).sum::<f64>();
    println!(
        "{within} of {} within 0.5 %, at most {:.2} %; {:.1} s without leaps, {:.1} s with them",
        off.len(),
        off.last().copied().unwrap_or(0.0),
        took(0),
        took(1)
    );
}
