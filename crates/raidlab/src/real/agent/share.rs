//! How busy the guest's processor was: where it was always busy, it was the limit, and not the disks.
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_results::record::{Figure, PhaseRecord, Unit};

/// The share of its time from which on a processor is the limit.
const BUSY: f64 = 0.9;

/// Processor time since the guest began, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spent {
    busy: u64,
    all: u64,
}

impl Spent {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; the last two are in the first.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .map_while(|n| n.parse().ok())
            .collect();
        let all = numbers.iter().sum();
        let idle = numbers.get(3)? + numbers.get(4)?;
        Some(Self {
            busy: all - idle,
            all,
        })
    }
}

/// How busy it was in each phase, while the phase ran.
#[derive(Debug, Default)]
pub(super) struct Shares {
    phases: Vec<(usize, Spent, Spent)>,
    now: usize,
    said: String,
}

impl Shares {
    /// Whether these words have not just been said.
    pub(super) fn is_new(&mut self, what: &str) -> bool {
        let new = self.said != what;
        what.clone_into(&mut self.said);
        new
    }

    /// A phase begins.
    pub(super) fn phase(&mut self, number: usize) {
        self.now = number;
    }

    /// It runs.
    pub(super) fn tick(&mut self) {
        let Some(spent) = Spent::now() else { return };
        match self.phases.last_mut() {
            Some((number, _, last)) if *number == self.now => *last = spent,
            _ => self.phases.push((self.now, spent, spent)),
        }
    }

    /// Notes it with the phases' records. Nothing but the trial runs in a guest: what looks like the load of others is the
    /// trial's own tasks, which wait for the one processor, and how busy that was tells what it cost.
    pub(super) fn note(&self, records: &mut [PhaseRecord]) {
        for record in &mut *records {
            record.flags.retain(|flag| flag.kind != FlagKind::OtherLoad);
        }
        for (number, first, last) in &self.phases {
            // The kernel's time of waiting may go backwards.
            let all = last.all.saturating_sub(first.all);
            let Some(record) = records.get_mut(*number).filter(|_| all > 0) else {
                continue;
            };
            let share = last.busy.saturating_sub(first.busy) as f64 / all as f64;
            record.figures.push(Figure {
                name: "guest-cpu".to_owned(),
                value: 100.0 * share,
                unit: Unit::Percent,
            });
            if share >= BUSY {
                let reason = format!(
                    "the guest's processor, of 1000 million instructions a second, was busy {:.0} % of the time: it \
                     is the limit, and not the disks",
                    100.0 * share
                );
                record
                    .flags
                    .push(Flag::new(FlagKind::GeneratorBound, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_being_busy() {
        let stat = "cpu  10 0 20 60 5 1 4 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(Spent::parse(stat), Some(Spent { busy: 35, all: 100 }));
        assert_eq!(Spent::parse("intr 1\n"), None);
    }

    #[test]
    fn a_busy_processor_is_a_doubt() {
        let spent = |busy, all| Spent { busy, all };
        let shares = Shares {
            phases: vec![
                (0, spent(0, 0), spent(95, 100)),
                (1, spent(95, 100), spent(100, 200)),
            ],
            ..Shares::default()
        };
        let bare = |name| PhaseRecord::bare(name, Some(1.0), Unit::BytesPerSecond);
        let mut records = [bare("write"), bare("read")];
        shares.note(&mut records);
        assert_eq!(records[0].flags[0].kind, FlagKind::GeneratorBound);
        assert!(records[0].is_valid(), "a doubt, not a deletion");
        assert!(records[1].flags.is_empty());
        assert!((records[1].figures[0].value - 5.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_else_is_in_a_guest() {
        let mut record = PhaseRecord::bare("read", Some(1.0), Unit::BytesPerSecond);
        record.flags = [FlagKind::OtherLoad, FlagKind::TooShort]
            .map(|kind| Flag::new(kind, "seen"))
            .into();
        let mut records = [record];
        Shares::default().note(&mut records);
        let kinds: Vec<FlagKind> = records[0].flags.iter().map(|flag| flag.kind).collect();
        assert_eq!(kinds, [FlagKind::TooShort]);
    }

    #[test]
    fn a_clock_that_goes_backwards_is_no_figure() {
        let spent = |busy, all| Spent { busy, all };
        let shares = Shares {
            phases: vec![
                (0, spent(50, 100), spent(50, 99)),
                (1, spent(50, 99), spent(49, 150)),
            ],
            ..Shares::default()
        };
        let mut records =
            ["write", "read"].map(|name| PhaseRecord::bare(name, None, Unit::PerSecond));
        shares.note(&mut records);
        assert!(records[0].figures.is_empty());
        assert_eq!(records[1].figures[0].value, 0.0);
    }

    #[test]
    fn words_are_said_once() {
        let mut shares = Shares::default();
        assert!(
            shares.is_new("a") && !shares.is_new("a") && shares.is_new("b") && shares.is_new("a")
        );
    }
}
