//! CSV: one phase a row, units in the column names.
use super::{ExportError, Stored, Trials};
use crate::record::{PhaseRecord, Status, TrialRecord, Unit};
use crate::store::{Bundle, Origin, Store, TrialFilter, check_bundle, check_trial};
use raidlab_core::flag::Flag;
use raidlab_core::outcome::CpuTime;
use raidlab_core::time::Span;
use raidlab_core::words::steers;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// A row: the trial with one of its phases, or without one when it has none.
pub(super) struct Row<'a> {
    title: &'a str,
    trial: &'a TrialRecord,
    origin: Origin<'a>,
    number: usize,
    phase: Option<&'a PhaseRecord>,
}

/// What a cell holds; `None` becomes an empty cell.
pub(super) type Cell = Option<String>;

/// Name and content of a column.
pub(super) type Column = (&'static str, fn(&Row<'_>) -> Cell);

/// The columns of every export; those of factors, settings and figures follow.
pub(super) const COLUMNS: [Column; 51] = [
    ("trial", |r| text(&r.trial.id)),
    ("session", |r| text(&r.trial.session)),
    ("session_title", |r| text(r.title)),
    ("order", |r| any(Some(r.trial.order))),
    ("round", |r| any(Some(r.trial.round))),
    ("label", |r| text(&r.trial.cell.label)),
    ("profile", |r| text(&r.trial.profile)),
    ("source", |r| text(r.origin.source)),
    ("place", |r| any(r.origin.place)),
    ("tool", |r| any(r.origin.tool)),
    ("tool_version", |r| any(r.origin.tool_version)),
    ("file", |r| any(r.origin.file)),
    ("study", |r| any(r.origin.study)),
    ("study_date", |r| any(r.origin.study_date)),
    ("started", |r| any(r.trial.started.as_ref())),
    ("trial_elapsed_ns", |r| any(r.trial.elapsed_ns)),
    ("seed", |r| any(r.trial.seed)),
    ("digest", |r| r.trial.digest.map(|d| format!("{d:016x}"))),
    ("environment", |r| any(r.trial.environment.as_ref())),
    ("command", |r| any(r.trial.command.as_ref())),
    ("status", |r| text(status(r.trial).0)),
    ("reason", |r| any(status(r.trial).1)),
    ("valid", |r| {
        let phase = r.phase.is_some_and(PhaseRecord::is_valid);
        any(Some(r.trial.is_valid() && phase))
    }),
    ("trial_flags", |r| kinds(&r.trial.flags)),
    ("trial_flag_reasons", |r| reasons(&r.trial.flags)),
    ("phase_number", |r| any(r.phase.map(|_| r.number))),
    ("phase", |r| any(r.phase.map(|p| &p.phase))),
    ("rate_bytes_per_second", |r| rate(r, Unit::BytesPerSecond)),
    ("rate_per_second", |r| rate(r, Unit::PerSecond)),
    ("rate_seconds", |r| rate(r, Unit::Seconds)),
    ("rate_percent", |r| rate(r, Unit::Percent)),
    ("bytes", |r| any(r.phase?.bytes)),
    ("ops", |r| any(r.phase?.ops)),
    ("elapsed_ns", |r| any(r.phase?.elapsed_ns)),
    ("cpu_percent", |r| any(r.phase?.cpu_percent)),
    ("cpu_user_ns", |r| cpu(r, |c| Some(c.user))),
    ("cpu_system_ns", |r| cpu(r, |c| Some(c.system))),
    ("cpu_kernel_threads_ns", |r| cpu(r, |c| c.kernel_threads)),
    ("latency_count", |r| {
        any(r.phase?.latency.as_ref().map(|l| l.count()))
    }),
    ("latency_mean_ns", |r| {
        span(r.phase?.latency.as_ref()?.mean())
    }),
    ("latency_p50_ns", |r| percentile(r, 50.0)),
    ("latency_p90_ns", |r| percentile(r, 90.0)),
    ("latency_p99_ns", |r| percentile(r, 99.0)),
    ("latency_max_ns", |r| span(r.phase?.latency.as_ref()?.max())),
    ("mean_in_flight_ops", |r| any(r.phase?.mean_in_flight)),
    ("claimed_read_bytes", |r| {
        any(Some(r.phase?.device?.claimed_read))
    }),
    ("claimed_written_bytes", |r| {
        any(Some(r.phase?.device?.claimed_written))
    }),
    ("device_read_bytes", |r| {
        any(Some(r.phase?.device?.device_read))
    }),
    ("device_written_bytes", |r| {
        any(Some(r.phase?.device?.device_written))
    }),
    ("phase_flags", |r| kinds(&r.phase?.flags)),
    ("phase_flag_reasons", |r| reasons(&r.phase?.flags)),
];

/// Writes a bundle as CSV (RFC 4180 with line feeds, UTF-8). A text that a spreadsheet would take for a formula has an apostrophe
/// before it, and what would steer a terminal is shown as a sign: names and commands may be of foreign files.
///
/// # Errors
/// When a record must not be exported (then nothing is written) or the output cannot be written.
pub fn write_csv(out: impl Write, bundle: &Bundle) -> Result<(), ExportError> {
    write_rows(out, bundle, bundle.trials.as_slice()).map(drop)
}

/// Writes the trials of a store that pass `filter` as CSV, with one of them in memory at a time;
/// returns how many.
///
/// # Errors
/// As [`write_csv`], and when the store cannot be read.
pub fn export_csv(
    out: impl Write,
    store: &mut Store,
    filter: &TrialFilter,
) -> Result<u64, ExportError> {
    store.in_one_view(|store| write_rows(out, &store.references(filter)?, &Stored(store, filter)))
}

/// Writes `trials`, which refer to what is in `references`.
fn write_rows(
    out: impl Write,
    references: &Bundle,
    trials: &(impl Trials + ?Sized),
) -> Result<u64, ExportError> {
    check_bundle(references)?;
    let mut more = MoreColumns::default();
    let mut count = 0;
    trials.each(&mut |trial| {
        check_trial(trial)?;
        more.add(trial);
        count += 1;
        Ok(())
    })?;
    let titles: BTreeMap<&str, &str> = references
        .sessions
        .iter()
        .map(|s| (s.id.as_str(), s.title.as_str()))
        .collect();
    let mut out = csv::Writer::from_writer(out);
    let fixed = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
    write(&mut out, fixed.chain(more.names()))?;
    trials.each(&mut |trial| {
        let title = titles.get(trial.session.as_str()).copied();
        Ok(write_trial(
            &mut out,
            trial,
            title.unwrap_or_default(),
            &more,
        )?)
    })?;
    out.flush()?;
    Ok(count)
}

fn write_trial(
    out: &mut csv::Writer<impl Write>,
    trial: &TrialRecord,
    title: &str,
    more: &MoreColumns,
) -> io::Result<()> {
    let phases: Vec<_> = if trial.phases.is_empty() {
        // A trial that failed before its first phase is still a trial.
        vec![None]
    } else {
        trial.phases.iter().map(Some).collect()
    };
    for (number, phase) in phases.into_iter().enumerate() {
        let row = Row {
            title,
            trial,
            origin: Origin::of(&trial.provenance),
            number,
            phase,
        };
        let fixed = COLUMNS.iter().map(|(_, cell)| cell(&row));
        let cells = fixed.chain(more.cells(&row));
        write(out, cells.map(Option::unwrap_or_default))?;
    }
    Ok(())
}

fn write(out: &mut csv::Writer<impl Write>, cells: impl Iterator<Item = String>) -> io::Result<()> {
    out.write_record(cells.map(|cell| inert(cell).into_bytes()))
        .map_err(io::Error::from)
}

/// A cell that is read and does nothing: programs that open CSV compute what begins with one of these signs, and a formula may run
/// commands or send what is beside it away (OWASP, "CSV Injection"). Numbers are left alone.
fn inert(cell: String) -> String {
    let computed =
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if !computed && !cell.chars().any(steers) {
        return cell;
    }
    let shown = cell.chars().map(|c| match c {
        '\n' | '\t' => c,
        c if steers(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    let mark = computed.then_some('\'');
    mark.into_iter().chain(shown).collect()
}

/// Columns that depend on the trials: all factors, settings and figures that any of them has.
#[derive(Default)]
struct MoreColumns {
    factors: BTreeSet<String>,
    settings: BTreeSet<String>,
    figures: BTreeSet<(String, Unit)>,
}

impl MoreColumns {
    fn add(&mut self, trial: &TrialRecord) {
        self.factors.extend(trial.cell.factors.keys().cloned());
        self.settings.extend(trial.settings.keys().cloned());
        let figures = trial.phases.iter().flat_map(|phase| &phase.figures);
        self.figures
            .extend(figures.map(|figure| (figure.name.clone(), figure.unit)));
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let factors = self.factors.iter().map(|name| format!("factor.{name}"));
        let settings = self.settings.iter().map(|name| format!("setting.{name}"));
        let figures = self
            .figures
            .iter()
            .map(|(name, unit)| format!("figure.{name}.{}", suffix(*unit)));
        factors.chain(settings).chain(figures)
    }

    fn cells(&self, row: &Row<'_>) -> impl Iterator<Item = Cell> {
        let (trial, phase) = (row.trial, row.phase);
        let factors = self
            .factors
            .iter()
            .map(|name| any(trial.cell.factors.get(name)));
        let settings = self
            .settings
            .iter()
            .map(|name| any(trial.settings.get(name)));
        let figures = self.figures.iter().map(move |(name, unit)| {
            let mut all = phase?.figures.iter();
            let figure = all.find(|f| &f.name == name && f.unit == *unit)?;
            any(Some(figure.value))
        });
        factors.chain(settings).chain(figures)
    }
}

/// A unit at the end of a column name.
const fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::PerSecond => "per_second",
        Unit::Seconds => "seconds",
        Unit::Percent => "percent",
    }
}

fn status(trial: &TrialRecord) -> (&'static str, Option<&String>) {
    match &trial.status {
        Status::Complete => ("complete", None),
        Status::Failed { reason } => ("failed", Some(reason)),
    }
}

fn text(value: &str) -> Cell {
    Some(value.to_owned())
}

/// Numbers in the shortest form that reads back as the same number.
fn any(value: Option<impl ToString>) -> Cell {
    value.map(|value| value.to_string())
}

fn span(value: Option<Span>) -> Cell {
    any(value.map(|span| span.0))
}

fn rate(row: &Row<'_>, unit: Unit) -> Cell {
    let phase = row.phase.filter(|phase| phase.unit == unit)?;
    any(phase.rate)
}

fn cpu(row: &Row<'_>, pick: fn(&CpuTime) -> Option<Span>) -> Cell {
    span(pick(row.phase?.cpu.as_ref()?))
}

fn percentile(row: &Row<'_>, percent: f64) -> Cell {
    span(row.phase?.latency.as_ref()?.percentile(percent))
}

fn kinds(flags: &[Flag]) -> Cell {
    let names: Vec<&str> = flags.iter().map(|flag| flag.kind.name()).collect();
    (!names.is_empty()).then(|| names.join(";"))
}

fn reasons(flags: &[Flag]) -> Cell {
    let reasons: Vec<&str> = flags.iter().map(|flag| flag.reason.as_str()).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
