//! By how much replies of disks in real time leave before the model's time, to make up for the way to the guest and back.
use super::disks::{self, Order};
use crate::exit::{Failure, TRIAL_FAILED};
use crate::signals::Stop;
use crate::talk;
use raidlab_core::time::Span;
use raidlab_nbd::server::{DiskReport, Running};
use raidlab_vm::{Machine, Vm};
use std::fmt;
use std::str::FromStr;

/// A translated guest and QEMU take 0.2 to 1 ms on a machine that does nothing else. What takes twice as long is a
/// machine that does, and no constant makes up for that.
pub(super) const MOST: Span = Span::from_millis(2);
/// Random reads of each disk that tell how long the way is: what it takes differs by half from one to the next.
const READS: u64 = 200;

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Early {
    /// As much as the way is measured to take.
    #[default]
    Measured,
    /// So much.
    Given(Span),
}

impl FromStr for Early {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "auto" {
            return Ok(Self::Measured);
        }
        let span = text
            .parse()
            .map_err(|error| format!("{error}; or 'auto'"))?;
        Ok(Self::Given(span))
    }
}

/// As it is written on a command line.
impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => f.write_str("auto"),
            Self::Given(span) => write!(f, "{}ns", span.0),
        }
    }
}

/// Has a guest read at random from all disks of its machine at the same time, and tells how much longer than their
/// models it waited for each; `None` when the user wants to stop.
pub(super) fn measure(
    vm: Vm,
    machine: &Machine,
    bytes: u64,
    server: &Running,
    stop: &Stop,
) -> Result<Option<Span>, Failure> {
    let order = Order::reading(machine, bytes, READS);
    let mut marks = Vec::new();
    let mut mark = || marks.extend(server.report().map(|report| report.disks));
    let seen = disks::converse(vm, &order, stop, &mut mark)?;
    let Some(seen) = seen else { return Ok(None) };
    // Before the reads, and when all is over.
    let [before, after] = marks.as_slice() else {
        return Err(Failure::new(
            TRIAL_FAILED,
            "the guest did not tell when it began to measure the way to the disks",
        ));
    };
    let guest = seen.first().map_or(0.0, |seen| {
        machine.disks.len() as f64 * 1e9 / seen.rate.max(1.0)
    });
    Ok(Some(told(Span(guest as u64), modelled(before, after))))
}

/// The mean time of a request between two reports, by the models.
fn modelled(before: &[DiskReport], after: &[DiskReport]) -> Span {
    let sum = |disks: &[DiskReport]| {
        disks.iter().fold((0, 0), |(n, waited), disk| {
            (n + disk.reads, waited + disk.waited.0)
        })
    };
    let (before, after) = (sum(before), sum(after));
    Span(after.1.saturating_sub(before.1) / after.0.saturating_sub(before.0).max(1))
}

/// What to make up for, and says so.
fn told(guest: Span, model: Span) -> Span {
    let way = Span(guest.0.saturating_sub(model.0));
    if way > MOST {
        talk::warn(&format!(
            "the way to the disks and back takes {} us: this machine has too much else to do for figures in real time",
            way.0 / 1000
        ));
        return MOST;
    }
    talk::note(&format!(
        "replies leave {} us early, as long as the way to the disks and back takes",
        way.0 / 1000
    ));
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_or_a_time() {
        assert_eq!("auto".parse(), Ok(Early::Measured));
        assert_eq!("500us".parse(), Ok(Early::Given(Span(500_000))));
        assert_eq!("0s".parse(), Ok(Early::Given(Span::ZERO)));
        let wrong = "soon".parse::<Early>().expect_err("no time");
        assert!(wrong.contains("auto"), "{wrong}");
        for early in [Early::Measured, Early::Given(Span(1500))] {
            assert_eq!(early.to_string().parse(), Ok(early));
        }
    }

    #[test]
    fn what_the_models_took_is_between_two_reports() {
        let disk = |reads, waited| DiskReport {
            reads,
            waited: Span(waited),
            ..DiskReport::default()
        };
        let report = |reads, waited| vec![disk(reads, waited); 2];
        let mean = modelled(&report(10, 5_000), &report(210, 1_205_000));
        assert_eq!(mean, Span(6_000));
        assert_eq!(modelled(&report(10, 5), &report(10, 5)), Span::ZERO);
    }

    #[test]
    fn only_what_a_way_can_be_is_made_up_for() {
        let us = |n: u64| Span(n * 1000);
        assert_eq!(told(us(6500), us(5900)), us(600));
        assert_eq!(told(us(5000), us(5900)), Span::ZERO);
        assert_eq!(told(us(20_000), us(5900)), MOST);
    }
}
