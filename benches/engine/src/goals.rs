//! The goals, each judged by its interval.
use crate::configs::{Figures, Measured};
use raidlab_stats::describe::t_ci;
use raidlab_stats::ratio::paired_log_ratio;
use raidlab_stats::{Confidence, Estimate, Sample};

/// A goal and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) id: &'static str,
    pub(crate) what: String,
    /// The figure and its 95 % interval.
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// `<= 0.65`, or nothing for what is only reported.
    pub(crate) goal: String,
    /// `None`: not judged.
    pub(crate) met: Option<bool>,
    /// Why it is not judged, or how it is not met.
    pub(crate) note: &'static str,
}

#[derive(Clone, Copy)]
enum Limit {
    /// The upper end of the interval must not exceed it.
    AtMost(f64),
    /// The lower end must reach it.
    AtLeast(f64),
    Report,
}

/// Which figure of a measurement.
type Pick = fn(&Figures) -> Option<f64>;

const CPU: Pick = |f| Some(f.cpu_ns);
const IOPS: Pick = |f| Some(f.iops);
const USER: Pick = |f| f.user_ns;
const IN_FLIGHT: Pick = |f| f.in_flight;

const CONTENDED: &str = "not judged: contended";

/// Half of the rounds or more were contended.
pub(crate) fn is_contended(measured: &[Measured]) -> bool {
    let contended = measured.iter().filter(|m| m.contended).count();
    2 * contended >= measured.len().max(1)
}

/// All goals whose configurations were measured.
pub(crate) fn judge(measured: &[Measured]) -> Vec<Verdict> {
    let busy = is_contended(measured);
    let goals = Goals { measured, busy };
    let mut all = goals.of_zero();
    all.extend(goals.of_cache());
    for (target, depth) in [("direct", 1), ("direct", 32), ("loop", 32)] {
        all.push(goals.device(target, depth));
    }
    for target in ["direct", "loop"] {
        let name = format!("{target}/raidlab/q32");
        let what = format!("mean in flight over the depth of 32, {target}");
        all.push(goals.figure(
            "P8",
            &what,
            &name,
            IN_FLIGHT,
            1.0 / 32.0,
            Limit::AtLeast(0.9),
        ));
    }
    all.into_iter().flatten().collect()
}

struct Goals<'a> {
    measured: &'a [Measured],
    busy: bool,
}

impl Goals<'_> {
    /// A figure of a configuration, round by round.
    fn values(&self, name: &str, pick: Pick) -> Vec<f64> {
        let mut rows: Vec<&Measured> = self.measured.iter().filter(|m| m.name == name).collect();
        rows.sort_by_key(|m| m.round);
        rows.iter().filter_map(|m| pick(&m.figures)).collect()
    }

    /// What generators cost where the kernel does next to nothing: `/dev/zero` at depth 32.
    fn of_zero(&self) -> Vec<Option<Verdict>> {
        vec![
            self.ratio(
                "P1",
                "CPU an I/O over tuned fio, /dev/zero, depth 32",
                ("null/raidlab/q32", "null/fio-tuned/q32"),
                CPU,
                Limit::AtMost(0.65),
            ),
            // The same by turns: of what disturbs the machine nothing is left in it.
            self.ratio(
                "P1c",
                "CPU an I/O over tuned fio, at the same time",
                ("null/raidlab-beside/q32", "null/fio-tuned-beside/q32"),
                CPU,
                Limit::AtMost(0.65),
            ),
            // What a generator would have that takes no time of its own.
            self.ratio(
                "P1f",
                "CPU an I/O of a bare loop over tuned fio, at the same time",
                ("null/bare-beside/q32", "null/fio-tuned-beside/q32"),
                CPU,
                Limit::Report,
            ),
            self.ratio(
                "P1b",
                "CPU an I/O over a bare loop, at the same time",
                ("null/raidlab-beside/q32", "null/bare-beside/q32"),
                CPU,
                Limit::Report,
            ),
            self.ratio(
                "P2",
                "CPU an I/O over default fio, /dev/zero, depth 32",
                ("null/raidlab/q32", "null/fio-uring/q32"),
                CPU,
                Limit::AtMost(0.35),
            ),
            self.figure(
                "P5",
                "user time an I/O, ns, /dev/zero, depth 32",
                "null/raidlab/q32",
                USER,
                1.0,
                Limit::AtMost(25.0),
            ),
            self.difference(
                "P6",
                "CPU an I/O above the NOP floor, ns",
                ("null/raidlab/q32", "null/nop/q32"),
            ),
        ]
    }

    /// On a cached file beside t/io_uring, and one system call an I/O beside fio.
    fn of_cache(&self) -> Vec<Option<Verdict>> {
        vec![
            self.rate(
                "P3",
                "IOPS over t/io_uring, cached file, depth 32",
                ("hot/raidlab/q32", "hot/tio/q32"),
                Limit::AtLeast(0.95),
            ),
            // The same by CPU time, which other load disturbs least, and by turns: 1 / 0.95.
            self.ratio(
                "P3c",
                "CPU an I/O over t/io_uring, at the same time",
                ("hot/raidlab-beside/q32", "hot/tio-beside/q32"),
                CPU,
                Limit::AtMost(1.0 / 0.95),
            ),
            self.ratio(
                "P3a",
                "CPU an I/O over t/io_uring, one after the other",
                ("hot/raidlab/q32", "hot/tio/q32"),
                CPU,
                Limit::Report,
            ),
            self.ratio(
                "P4",
                "CPU an I/O over fio psync, cached file",
                ("hot/raidlab/q1", "hot/fio-psync/q1"),
                CPU,
                Limit::AtMost(0.75),
            ),
            self.ratio(
                "P4",
                "CPU an I/O over fio psync, /dev/zero",
                ("null/raidlab/q1", "null/fio-psync/q1"),
                CPU,
                Limit::AtMost(0.60),
            ),
        ]
    }

    fn ratio(
        &self,
        id: &'static str,
        what: &str,
        (ours, theirs): (&str, &str),
        pick: Pick,
        limit: Limit,
    ) -> Option<Verdict> {
        let candidate = Sample::new(self.values(ours, pick)).ok()?;
        let baseline = Sample::new(self.values(theirs, pick)).ok()?;
        let ratio = paired_log_ratio(&baseline, &candidate, Confidence::P95)
            .ok()?
            .ratio;
        Some(verdict(id, what, &ratio, limit))
    }

    /// A ratio of rates, which other load makes worthless.
    fn rate(
        &self,
        id: &'static str,
        what: &str,
        names: (&str, &str),
        limit: Limit,
    ) -> Option<Verdict> {
        let limit_now = if self.busy { Limit::Report } else { limit };
        let mut verdict = self.ratio(id, what, names, IOPS, limit_now)?;
        if self.busy {
            verdict.goal = text(limit);
            verdict.note = CONTENDED;
        }
        Some(verdict)
    }

    /// On a device: over the best of the other generators, by the median.
    fn device(&self, target: &str, depth: u32) -> Option<Verdict> {
        let best = ["fio-psync", "fio-uring", "fio-tuned"]
            .into_iter()
            .map(|generator| format!("{target}/{generator}/q{depth}"))
            .filter(|name| !self.values(name, IOPS).is_empty())
            .max_by(|a, b| median(self.values(a, IOPS)).total_cmp(&median(self.values(b, IOPS))))?;
        let ours = format!("{target}/raidlab/q{depth}");
        let what = format!("IOPS over {best}");
        self.rate("P7", &what, (&ours, &best), Limit::AtLeast(0.95))
    }

    /// The mean of a figure with its interval.
    fn figure(
        &self,
        id: &'static str,
        what: &str,
        name: &str,
        pick: Pick,
        scale: f64,
        limit: Limit,
    ) -> Option<Verdict> {
        let values = self
            .values(name, pick)
            .into_iter()
            .map(|value| value * scale)
            .collect();
        mean_verdict(id, what, values, limit)
    }

    fn difference(
        &self,
        id: &'static str,
        what: &str,
        (ours, floor): (&str, &str),
    ) -> Option<Verdict> {
        let (ours, floor) = (self.values(ours, CPU), self.values(floor, CPU));
        let differences = ours.iter().zip(&floor).map(|(a, b)| a - b).collect();
        mean_verdict(id, what, differences, Limit::Report)
    }
}

fn mean_verdict(id: &'static str, what: &str, values: Vec<f64>, limit: Limit) -> Option<Verdict> {
    let sample = Sample::new(values).ok()?;
    Some(verdict(id, what, &t_ci(&sample, Confidence::P95), limit))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn text(limit: Limit) -> String {
    match limit {
        Limit::AtMost(most) => format!("<= {most:.2}"),
        Limit::AtLeast(least) => format!(">= {least:.2}"),
        Limit::Report => String::new(),
    }
}

/// Of a goal that is not met: whether the interval holds it all the same, or misses it altogether.
fn shown(may_be: bool) -> &'static str {
    if may_be { "NOT SHOWN" } else { "MISSED" }
}

fn verdict(id: &'static str, what: &str, estimate: &Estimate, limit: Limit) -> Verdict {
    let interval = estimate.lo().zip(estimate.hi());
    let (met, note) = match (limit, interval) {
        (_, None) => (None, "not judged: one round has no interval"),
        (Limit::AtMost(most), Some((low, high))) => (Some(high <= most), shown(low <= most)),
        (Limit::AtLeast(least), Some((low, high))) => (Some(low >= least), shown(high >= least)),
        (Limit::Report, Some(_)) => (None, ""),
    };
    Verdict {
        id,
        what: what.to_owned(),
        value: estimate.value,
        interval,
        goal: text(limit),
        met,
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, round: u32, cpu_ns: f64, contended: bool) -> Measured {
        let figures = Figures {
            iops: 1e9 / cpu_ns,
            cpu_ns,
            user_ns: Some(10.0),
            in_flight: Some(31.5),
        };
        Measured {
            round,
            name: name.to_owned(),
            figures,
            foreign: 0.0,
            contended,
        }
    }

    fn rounds(contended: bool, ours: f64) -> Vec<Measured> {
        (0..10)
            .flat_map(|round| {
                let noise = f64::from(round % 3);
                [
                    measured("null/raidlab/q32", round, ours + noise, contended),
                    measured("null/fio-tuned/q32", round, 240.0 + noise, contended),
                    measured("hot/raidlab/q32", round, 400.0 - noise, contended),
                    measured("hot/tio/q32", round, 390.0, contended),
                    measured("hot/raidlab-beside/q32", round, 402.0 - noise, contended),
                    measured("hot/tio-beside/q32", round, 395.0, contended),
                ]
            })
            .collect()
    }

    fn of<'a>(verdicts: &'a [Verdict], id: &str) -> &'a Verdict {
        verdicts.iter().find(|verdict| verdict.id == id).unwrap()
    }

    #[test]
    fn a_goal_is_met_when_the_whole_interval_is() {
        let good = judge(&rounds(false, 140.0));
        assert_eq!(of(&good, "P1").met, Some(true));
        assert_eq!(of(&good, "P3").met, Some(true));
        assert_eq!(of(&good, "P3c").met, Some(true));
        assert_eq!(of(&good, "P3a").met, None);
        assert!(
            good.iter().all(|verdict| verdict.id != "P2"),
            "fio's default was not measured"
        );
        // The middle is just within, the upper end is not.
        let close = judge(&rounds(false, 155.5));
        let verdict = of(&close, "P1");
        assert!(
            verdict.value < 0.66 && verdict.met == Some(false) && verdict.note == "NOT SHOWN",
            "{verdict:?}"
        );
        let far = judge(&rounds(false, 190.0));
        assert_eq!(
            (of(&far, "P1").met, of(&far, "P1").note),
            (Some(false), "MISSED")
        );
    }

    #[test]
    fn rates_are_not_judged_on_a_busy_machine() {
        let busy = judge(&rounds(true, 140.0));
        let rate = of(&busy, "P3");
        assert_eq!(
            (rate.met, rate.note, rate.goal.as_str()),
            (None, CONTENDED, ">= 0.95")
        );
        assert_eq!(of(&busy, "P1").met, Some(true));
        assert_eq!(of(&busy, "P3c").met, Some(true));
    }
}
