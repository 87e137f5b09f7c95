//! Trials of one cell taken together, and what was kept out.
mod apart;
mod once;

use super::incidental::deciding;
use super::select::Named;
use crate::record::{Cell, Figure, PhaseRecord, Provenance, Status, TrialRecord, Unit};
use crate::reference::WITHHELD;
use apart::tell_apart;
use once::{drawn_again, once_each};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::histogram::Latencies;
use std::collections::{BTreeMap, BTreeSet};

/// The repeats of one cell: same profile, factors, settings, kind of provenance, and units of their phases.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// Unique among the groups of a profile.
    pub(crate) label: String,
    pub(crate) cell: &'a Cell,
    /// The state of the array, where an experiment tells it: one that all cells have is no factor.
    pub(crate) state: Option<&'a str>,
    pub(crate) profile: &'a str,
    pub(crate) provenance: &'a Provenance,
    /// Those that make the cell.
    pub(crate) settings: BTreeMap<String, String>,
    /// In the order of execution.
    pub(crate) trials: Vec<&'a TrialRecord>,
    /// What other sessions drew once more, each with the session that had it before: no further measurement.
    pub(crate) again: Vec<(&'a str, &'a TrialRecord)>,
}

/// One valid run of a phase.
#[derive(Clone, Debug)]
pub(crate) struct RunValue<'a> {
    pub(crate) session: &'a str,
    pub(crate) round: u32,
    /// What a simulated run was drawn from: its seed, and what operations that gave. Runs of models that have both in common
    /// are of one round, whichever session they are in.
    pub(crate) drawn: Option<(u64, u64)>,
    pub(crate) value: f64,
    pub(crate) phase: &'a PhaseRecord,
}

/// What there is of one phase of a group.
#[derive(Clone, Debug)]
pub(crate) enum State<'a> {
    /// Nobody measured it.
    Absent,
    /// Measured, but the figure is not given.
    Withheld,
    /// Over before the tool could time it.
    TooFast,
    /// No run may enter an aggregate.
    Invalid,
    /// The valid runs, at least one.
    Runs(Vec<RunValue<'a>>),
}

impl Named for Group<'_> {
    fn cell(&self) -> &Cell {
        self.cell
    }

    fn label(&self) -> &str {
        &self.label
    }
}

impl<'a> Group<'a> {
    /// The state of the array: `clean` where nothing is said.
    pub(crate) fn array_state(&self) -> &'a str {
        self.told_state().unwrap_or("clean")
    }

    /// The state of the array, where it is told.
    pub(crate) fn told_state(&self) -> Option<&'a str> {
        let factor = self.cell.factors.get("state").map(String::as_str);
        factor.or(self.state)
    }

    /// What there is of a phase.
    pub(crate) fn state(&self, phase: &str) -> State<'a> {
        let mut runs = Vec::new();
        let (mut withheld, mut fast, mut seen) = (false, false, false);
        for trial in &self.trials {
            let Some(record) = trial.phases.iter().find(|p| p.phase == phase) else {
                continue;
            };
            seen = true;
            withheld |= record.rate.is_none() && record.flags.iter().any(is_withheld);
            fast |= record.rate.is_none() && has(record, FlagKind::TooShort);
            if let Some(value) = record.rate
                && trial.is_valid()
                && record.is_valid()
                && value.is_finite()
            {
                runs.push(RunValue {
                    session: &trial.session,
                    round: trial.round,
                    drawn: drawn(trial),
                    value,
                    phase: record,
                });
            }
        }
        match (runs.is_empty(), seen) {
            (false, _) => State::Runs(runs),
            (true, false) => State::Absent,
            (true, true) if withheld => State::Withheld,
            (true, true) if fast => State::TooFast,
            (true, true) => State::Invalid,
        }
    }

    /// The valid runs of a phase; empty when there is none.
    pub(crate) fn runs(&self, phase: &str) -> Vec<RunValue<'a>> {
        match self.state(phase) {
            State::Runs(runs) => runs,
            _ => Vec::new(),
        }
    }

    /// The runs of a phase that nothing voids, of which some may have figures and no rate: of those the value is 0.
    pub(crate) fn told_runs(&self, phase: &str) -> Vec<RunValue<'a>> {
        let trials = self.trials.iter().filter(|trial| trial.is_valid());
        let run = |trial: &&'a TrialRecord| {
            let record = trial.phases.iter().find(|p| p.phase == phase)?;
            (!record.flags.iter().any(|flag| flag.voids)).then(|| RunValue {
                session: &trial.session,
                round: trial.round,
                drawn: drawn(trial),
                value: record.rate.unwrap_or_default(),
                phase: record,
            })
        };
        trials.filter_map(run).collect()
    }

    /// The response times of all valid runs of a phase together.
    pub(crate) fn latencies(&self, phase: &str) -> Option<Latencies> {
        let mut all: Option<Latencies> = None;
        for run in self.runs(phase) {
            if let Some(latency) = run.phase.latency.as_ref().filter(|l| !l.is_empty()) {
                all.get_or_insert_with(Latencies::new).merge(latency);
            }
        }
        all
    }

    /// The unit of a phase's rate.
    pub(crate) fn unit(&self, phase: &str) -> Option<Unit> {
        self.trials
            .iter()
            .flat_map(|t| &t.phases)
            .find(|p| p.phase == phase)
            .map(|p| p.unit)
    }

    /// Whether the phases of a trial are counted in what those of this group are: megabytes and operations have no mean.
    fn counts_as(&self, trial: &TrialRecord) -> bool {
        let mut phases = trial.phases.iter();
        phases.all(|p| self.unit(&p.phase).is_none_or(|unit| unit == p.unit))
    }

    /// Whether a phase of both groups is counted in different units.
    pub(crate) fn counts_otherwise(&self, other: &Group<'_>) -> bool {
        other.trials.iter().any(|trial| !self.counts_as(trial))
    }

    /// Remarks on a phase, each with the kind of doubt and the number of runs that earned it;
    /// withheld and `+++++` are not among them, for the cell itself says so.
    pub(crate) fn remarks(&self, phase: &str) -> Vec<(FlagKind, String)> {
        let mut counted: BTreeMap<(FlagKind, &str), (usize, usize)> = BTreeMap::new();
        let runs = self.trials.iter().filter(|t| t.is_valid());
        let mut of = 0;
        for (number, trial) in runs.enumerate() {
            of = number + 1;
            let flags = trial
                .phases
                .iter()
                .filter(|p| p.phase == phase && p.is_valid())
                .flat_map(|p| &p.flags)
                .chain(&trial.flags);
            for flag in flags.filter(|f| !f.voids && !is_withheld(f)) {
                counted
                    .entry((flag.kind, flag.kind.name()))
                    .or_insert((0, number))
                    .0 += 1;
            }
        }
        counted
            .into_iter()
            .map(|((kind, name), (runs, first))| {
                let reason = self.reason(phase, kind, first);
                let share = if of > 1 {
                    format!(" ({runs} of {of} runs)")
                } else {
                    String::new()
                };
                (kind, format!("{name}{share}: {reason}"))
            })
            .collect()
    }

    fn reason(&self, phase: &str, kind: FlagKind, number: usize) -> String {
        let trial = self.trials.iter().filter(|t| t.is_valid()).nth(number);
        trial
            .into_iter()
            .flat_map(|t| {
                let of_phase = t.phases.iter().filter(|p| p.phase == phase);
                of_phase.flat_map(|p| &p.flags).chain(&t.flags)
            })
            .find(|f| f.kind == kind && !f.voids)
            .map(|f| f.reason.clone())
            .unwrap_or_default()
    }

    /// Known digests of the operation streams.
    pub(crate) fn digests(&self) -> BTreeSet<u64> {
        self.trials.iter().filter_map(|t| t.digest).collect()
    }
}

fn drawn(trial: &TrialRecord) -> Option<(u64, u64)> {
    match trial.provenance {
        Provenance::Simulated => trial.seed.zip(trial.digest),
        _ => None,
    }
}

/// The median; `None` of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some(0.5 * (values[half - 1] + values[half])),
    }
}

/// Median of a figure over runs; for what has no histogram to merge.
pub(crate) fn median_figure(runs: &[RunValue<'_>], name: &str) -> Option<(f64, Unit)> {
    let figures: Vec<&Figure> = runs
        .iter()
        .filter_map(|run| run.phase.figures.iter().find(|f| f.name == name))
        .collect();
    let unit = figures.first()?.unit;
    let median = median(figures.iter().map(|f| f.value))?;
    Some((median, unit))
}

fn has(record: &PhaseRecord, kind: FlagKind) -> bool {
    record.flags.iter().any(|flag| flag.kind == kind)
}

fn is_withheld(flag: &Flag) -> bool {
    flag.kind == FlagKind::Other && flag.reason == WITHHELD
}

/// Groups the trials, in the order in which their cells first come.
pub(crate) fn group(trials: &[TrialRecord]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for trial in trials {
        let settings = deciding(trial);
        let fits = |g: &&mut Group<'_>| {
            g.profile == trial.profile
                && *g.cell == trial.cell
                && g.settings == settings
                && provenance_kind(g.provenance) == provenance_kind(&trial.provenance)
                && g.counts_as(trial)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.trials.push(trial),
            None => groups.push(Group {
                label: trial.cell.label.clone(),
                cell: &trial.cell,
                state: None,
                profile: &trial.profile,
                provenance: &trial.provenance,
                settings,
                trials: vec![trial],
                again: Vec::new(),
            }),
        }
    }
    for group in &mut groups {
        // Sessions in the order of their beginning: drift is looked for over the order of the runs.
        let at = |t: &&TrialRecord| (t.started.clone(), t.session.clone(), t.round, t.order);
        group.trials.sort_by_key(at);
        once_each(group);
    }
    tell_apart(&mut groups);
    groups
}

/// The kind of provenance in words: figures of one kind may be averaged, of two never. The file
/// that a figure was imported from does not make a kind.
pub(crate) fn provenance_kind(provenance: &Provenance) -> String {
    use crate::record::Place;
    match provenance {
        Provenance::Measured { place: Place::Host } => "measured".to_owned(),
        Provenance::Measured { place: Place::Vm } => "measured in a VM".to_owned(),
        Provenance::Simulated => "simulated".to_owned(),
        Provenance::Imported {
            tool, tool_version, ..
        } => match tool_version {
            Some(version) => format!("{tool} {version}"),
            None => tool.clone(),
        },
        Provenance::Published { study, .. } => format!("published, {study}"),
    }
}

/// What was kept out of the aggregates, a line for each trial or phase with its reason.
pub(crate) fn exclusions(groups: &[Group<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for group in groups {
        lines.extend(drawn_again(group));
        for (run, trial) in (1..).zip(&group.trials) {
            let name = format!("{}, run {run}", group.label);
            if let Status::Failed { reason } = &trial.status {
                lines.push(format!("{name}: failed: {reason}"));
                continue;
            }
            if let Some(flag) = trial.flags.iter().find(|f| f.voids) {
                lines.push(format!("{name}: {flag}"));
                continue;
            }
            let why = |phase: &'_ PhaseRecord| phase.flags.iter().find(|f| f.voids).cloned();
            for phase in &trial.phases {
                // A part has the doubts of the whole, which tells them.
                let whole = trial
                    .phases
                    .iter()
                    .find(|p| Some(&p.phase[..]) == phase.whole());
                if let Some(flag) = why(phase).filter(|_| whole.and_then(why).is_none()) {
                    lines.push(format!("{name}, {}: {flag}", phase.phase));
                }
            }
        }
    }
    lines
}

/// The phases of a profile's groups in the order in which they come.
pub(crate) fn phases<'a>(groups: &[Group<'a>]) -> Vec<&'a str> {
    let mut phases: Vec<&str> = Vec::new();
    for record in groups
        .iter()
        .flat_map(|g| &g.trials)
        .flat_map(|t| &t.phases)
    {
        if !phases.contains(&record.phase.as_str()) {
            phases.push(&record.phase);
        }
    }
    phases
}
