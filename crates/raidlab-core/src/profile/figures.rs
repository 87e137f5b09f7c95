//! The columns that the tool of a profile prints, from a phase's outcome: the same for a disk and for
//! a model.
use crate::outcome::PhaseOutcome;
use crate::phase::{Counted, Phase};
use crate::time::Span;
use crate::units::{KIB, MIB};

/// What a figure is, in the unit it is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes a second.
    BytesPerSecond,
    /// Operations a second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Per cent.
    Percent,
}

/// One figure of a phase, as kept and as the tool prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Stable name: `rate` for the primary figure of the phase, `cpu`, `latency-max` …
    pub name: &'static str,
    /// In the unit of `quantity`.
    pub value: f64,
    /// What it is.
    pub quantity: Quantity,
    /// The tool's name of the column.
    pub column: &'static str,
    /// The tool's unit.
    pub unit: &'static str,
    /// How many of `value`'s units one of the tool's is: 1024 for K/sec.
    pub scale: f64,
    /// Decimals that the tool prints.
    pub decimals: u8,
}

impl Figure {
    /// In the tool's unit.
    #[must_use]
    pub fn shown(&self) -> f64 {
        self.value / self.scale
    }

    /// As the tool prints it, without the unit.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{:.*}", usize::from(self.decimals), self.shown())
    }
}

/// How a tool prints a rate in bytes.
struct Rate {
    column: &'static str,
    unit: &'static str,
    scale: f64,
    decimals: u8,
}

const BONNIE: Rate = Rate {
    column: "K/sec",
    unit: "KiB/s",
    scale: KIB as f64,
    decimals: 0,
};
const TIOBENCH: Rate = Rate {
    column: "Rate",
    unit: "MiB/s",
    scale: MIB as f64,
    decimals: 3,
};
const HDBENCH: Rate = Rate {
    column: "K/s",
    unit: "KiB/s",
    scale: KIB as f64,
    decimals: 0,
};
const HDPARM: Rate = Rate {
    column: "MB/sec",
    unit: "MiB/s",
    scale: MIB as f64,
    decimals: 2,
};
const DD: Rate = Rate {
    column: "MB/s",
    unit: "MB/s",
    scale: 1e6,
    decimals: 1,
};
const BANDWIDTH: Rate = Rate {
    column: "bw",
    unit: "MiB/s",
    scale: MIB as f64,
    decimals: 1,
};

const PERCENT: (Quantity, f64) = (Quantity::Percent, 1.0);
const MILLISECONDS: (Quantity, f64) = (Quantity::Seconds, 1e-3);
const MICROSECONDS: (Quantity, f64) = (Quantity::Seconds, 1e-6);
const EACH_SECOND: (Quantity, f64) = (Quantity::PerSecond, 1.0);

struct Columns(Vec<Figure>);

impl Columns {
    fn rate(&mut self, phase: &Phase, outcome: &PhaseOutcome, bytes: &Rate) {
        match phase.counted {
            Counted::Bytes => self.bytes("rate", outcome.bytes_per_second(), bytes),
            Counted::Ops => self.add(
                "rate",
                outcome.ops_per_second(),
                EACH_SECOND,
                ("/sec", "/s", 1),
            ),
        }
    }

    fn bytes(&mut self, name: &'static str, value: Option<f64>, rate: &Rate) {
        let Rate {
            column,
            unit,
            scale,
            decimals,
        } = *rate;
        let kept = (Quantity::BytesPerSecond, scale);
        self.add(name, value, kept, (column, unit, decimals));
    }

    fn add(
        &mut self,
        name: &'static str,
        value: Option<f64>,
        (quantity, scale): (Quantity, f64),
        (column, unit, decimals): (&'static str, &'static str, u8),
    ) {
        if let Some(value) = value {
            self.0.push(Figure {
                name,
                value,
                quantity,
                column,
                unit,
                scale,
                decimals,
            });
        }
    }
}

fn share(part: Span, outcome: &PhaseOutcome) -> Option<f64> {
    (outcome.elapsed > Span::ZERO)
        .then(|| 100.0 * part.as_secs_f64() / outcome.elapsed.as_secs_f64())
}

fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

/// `K/sec` (or `/sec`), `%CP` and the longest call, as bonnie++ 1.96 and later.
pub(super) fn bonnie(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    let mut columns = Columns(Vec::new());
    columns.rate(phase, outcome, &BONNIE);
    let cpu = share(outcome.cpu.user + outcome.cpu.system, outcome);
    columns.add("cpu", cpu, PERCENT, ("%CP", "%", 0));
    let longest = seconds(outcome.latency().max());
    columns.add("latency-max", longest, MICROSECONDS, ("latency", "µs", 0));
    columns.0
}

/// The columns of both tables of tiotest.
pub(super) fn tiobench(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    let mut columns = Columns(Vec::new());
    columns.rate(phase, outcome, &TIOBENCH);
    let (user, system) = (outcome.cpu.user, outcome.cpu.system);
    columns.add(
        "cpu-user",
        share(user, outcome),
        PERCENT,
        ("Usr CPU", "%", 1),
    );
    columns.add(
        "cpu-system",
        share(system, outcome),
        PERCENT,
        ("Sys CPU", "%", 1),
    );
    let latency = outcome.latency();
    let times = [
        ("latency-mean", latency.mean(), "Average latency"),
        ("latency-max", latency.max(), "Maximum latency"),
    ];
    for (name, time, column) in times {
        columns.add(name, seconds(time), MILLISECONDS, (column, "ms", 3));
    }
    let shares = [
        ("share-above-2s", 2, "% >2 sec"),
        ("share-above-10s", 10, "% >10 sec"),
    ];
    for (name, limit, column) in shares {
        let above =
            (!latency.is_empty()).then(|| 100.0 * latency.share_above(Span::from_secs(limit)));
        columns.add(name, above, PERCENT, (column, "%", 5));
    }
    columns.0
}

/// The one column of HDBench.
pub(super) fn hdbench(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    one(phase, outcome, &HDBENCH)
}

/// The one figure of hdparm.
pub(super) fn hdparm(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    one(phase, outcome, &HDPARM)
}

/// The one figure of dd.
pub(super) fn dd(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    one(phase, outcome, &DD)
}

fn one(phase: &Phase, outcome: &PhaseOutcome, rate: &Rate) -> Vec<Figure> {
    let mut columns = Columns(Vec::new());
    columns.rate(phase, outcome, rate);
    columns.0
}

/// `bw`, `iops` and response times, as fio prints them.
pub(super) fn block(phase: &Phase, outcome: &PhaseOutcome) -> Vec<Figure> {
    let mut columns = Columns(Vec::new());
    columns.rate(phase, outcome, &BANDWIDTH);
    columns.add(
        "iops",
        outcome.ops_per_second(),
        EACH_SECOND,
        ("iops", "/s", 0),
    );
    let latency = outcome.latency();
    let times = [
        ("latency-mean", latency.mean(), "lat avg"),
        ("latency-p50", latency.told_percentile(50.0), "lat 50%"),
        ("latency-p90", latency.told_percentile(90.0), "lat 90%"),
        ("latency-p99", latency.told_percentile(99.0), "lat 99%"),
        ("latency-p99.9", latency.told_percentile(99.9), "lat 99.9%"),
        ("latency-max", latency.max(), "lat max"),
    ];
    for (name, time, column) in times {
        columns.add(name, seconds(time), MICROSECONDS, (column, "µs", 1));
    }
    columns.0
}
