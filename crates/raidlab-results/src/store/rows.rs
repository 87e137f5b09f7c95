//! The rows of a trial: the record itself, and the tables made from it for queries.
use super::check::{bad, environment_digest};
use super::write::{Appended, Failure, expect_session};
use super::{StoreError, check_trial};
use crate::id;
use crate::record::{PhaseRecord, Place, Provenance, Status, TrialRecord, Unit};
use raidlab_core::flag::Flag;
use raidlab_core::time::Span;
use rusqlite::{OptionalExtension as _, Transaction, named_params, params};
use serde_json::Value;

/// Stores a trial with the environment it refers to.
pub(super) fn append(
    t: &Transaction<'_>,
    trial: &TrialRecord,
    environment: Option<&Value>,
) -> Result<Appended, Failure> {
    let checked = check_trial(trial)?;
    let before: Option<String> = t
        .prepare_cached("SELECT record FROM trials WHERE id = ?")?
        .query_row([&trial.id], |row| row.get(0))
        .optional()?;
    match before {
        None => {}
        Some(before) if before == checked.text => return Ok(Appended::Skipped),
        Some(_) => return Err(StoreError::TrialExists(trial.id.clone()).into()),
    }
    expect_session(t, &trial.session)?;
    if let Some(environment) = environment {
        t.prepare_cached(
            "INSERT INTO environments (digest, environment) VALUES (?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute([
            environment_digest(environment),
            id::canonical_json(environment),
        ])?;
    } else if let Some(digest) = &trial.environment {
        let mut known = t.prepare_cached("SELECT 1 FROM environments WHERE digest = ?")?;
        if !known.exists([digest])? {
            let what = format!("trial {}", id::short(&trial.id));
            let reason = format!("refers to the environment {digest}, which is not known");
            return Err(bad(&what, reason).into());
        }
    }
    insert_trial(t, trial, &checked.text, checked.started_us)?;
    insert_pairs(t, trial)?;
    insert_flags(t, &trial.id, None, &trial.flags)?;
    for (position, phase) in (0_i64..).zip(&trial.phases) {
        insert_phase(t, &trial.id, position, phase)?;
    }
    Ok(Appended::Added)
}

/// The parts of a provenance, each in a column of its own.
#[derive(Default)]
pub(crate) struct Origin<'a> {
    pub(crate) source: &'static str,
    pub(crate) place: Option<&'static str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) tool_version: Option<&'a str>,
    pub(crate) file: Option<&'a str>,
    pub(crate) study: Option<&'a str>,
    pub(crate) study_date: Option<&'a str>,
}

impl<'a> Origin<'a> {
    pub(crate) fn of(provenance: &'a Provenance) -> Self {
        match provenance {
            Provenance::Measured { place } => Self {
                source: "measured",
                place: Some(match place {
                    Place::Host => "host",
                    Place::Vm => "vm",
                }),
                ..Self::default()
            },
            Provenance::Simulated => Self {
                source: "simulated",
                ..Self::default()
            },
            Provenance::Imported {
                tool,
                tool_version,
                file,
            } => Self {
                source: "imported",
                tool: Some(tool),
                tool_version: tool_version.as_deref(),
                file: Some(file),
                ..Self::default()
            },
            Provenance::Published { study, date } => Self {
                source: "published",
                study: Some(study),
                study_date: Some(date),
                ..Self::default()
            },
        }
    }
}

fn insert_trial(
    t: &Transaction<'_>,
    trial: &TrialRecord,
    record: &str,
    started_us: Option<i64>,
) -> rusqlite::Result<()> {
    let origin = Origin::of(&trial.provenance);
    let (status, reason) = match &trial.status {
        Status::Complete => ("complete", None),
        Status::Failed { reason } => ("failed", Some(reason)),
    };
    t.prepare_cached(
        "INSERT INTO trials (id, session, position, round, label, profile, source, place, tool,
             tool_version, file, study, study_date, started, started_us, elapsed_ns, seed, digest,
             environment, command, status, reason, valid, record)
         VALUES (:id, :session, :position, :round, :label, :profile, :source, :place, :tool,
             :tool_version, :file, :study, :study_date, :started, :started_us, :elapsed_ns, :seed,
             :digest, :environment, :command, :status, :reason, :valid, :record)",
    )?
    .execute(named_params! {
        ":id": trial.id,
        ":session": trial.session,
        ":position": trial.order,
        ":round": trial.round,
        ":label": trial.cell.label,
        ":profile": trial.profile,
        ":source": origin.source,
        ":place": origin.place,
        ":tool": origin.tool,
        ":tool_version": origin.tool_version,
        ":file": origin.file,
        ":study": origin.study,
        ":study_date": origin.study_date,
        ":started": trial.started,
        ":started_us": started_us,
        ":elapsed_ns": integer(trial.elapsed_ns),
        ":seed": trial.seed.map(|seed| seed.to_string()),
        ":digest": trial.digest.map(|digest| format!("{digest:016x}")),
        ":environment": trial.environment,
        ":command": trial.command,
        ":status": status,
        ":reason": reason,
        ":valid": trial.is_valid(),
        ":record": record,
    })?;
    Ok(())
}

fn insert_pairs(t: &Transaction<'_>, trial: &TrialRecord) -> rusqlite::Result<()> {
    let mut factor =
        t.prepare_cached("INSERT INTO factors (trial, name, level) VALUES (?, ?, ?)")?;
    for (name, level) in &trial.cell.factors {
        factor.execute([&trial.id, name, level])?;
    }
    let mut setting =
        t.prepare_cached("INSERT INTO settings (trial, name, value) VALUES (?, ?, ?)")?;
    for (name, value) in &trial.settings {
        setting.execute([&trial.id, name, value])?;
    }
    Ok(())
}

fn insert_flags(
    t: &Transaction<'_>,
    trial: &str,
    position: Option<i64>,
    flags: &[Flag],
) -> rusqlite::Result<()> {
    let mut insert = t.prepare_cached(
        "INSERT INTO flags (trial, position, kind, reason, voids) VALUES (?, ?, ?, ?, ?)",
    )?;
    for flag in flags {
        insert.execute(params![
            trial,
            position,
            flag.kind.name(),
            flag.reason,
            flag.voids
        ])?;
    }
    Ok(())
}

fn insert_phase(
    t: &Transaction<'_>,
    trial: &str,
    position: i64,
    phase: &PhaseRecord,
) -> rusqlite::Result<()> {
    let cpu = |pick: fn(&raidlab_core::outcome::CpuTime) -> Option<Span>| {
        phase.cpu.as_ref().and_then(|cpu| span(pick(cpu)))
    };
    let latency = phase.latency.as_ref();
    let percentile = |p| span(latency.and_then(|l| l.percentile(p)));
    let device = phase.device.as_ref();
    t.prepare_cached(
        "INSERT INTO phases (trial, position, phase, rate, unit, bytes, ops, elapsed_ns,
             cpu_percent, cpu_user_ns, cpu_system_ns, cpu_kernel_threads_ns, latency_count,
             latency_mean_ns, latency_p50_ns, latency_p99_ns, latency_max_ns, mean_in_flight,
             claimed_read_bytes, claimed_written_bytes, device_read_bytes, device_written_bytes,
             valid)
         VALUES (:trial, :position, :phase, :rate, :unit, :bytes, :ops, :elapsed, :cpu_percent,
             :cpu_user, :cpu_system, :cpu_kernel, :count, :mean, :p50, :p99, :max, :in_flight,
             :claimed_read, :claimed_written, :device_read, :device_written, :valid)",
    )?
    .execute(named_params! {
        ":trial": trial,
        ":position": position,
        ":phase": phase.phase,
        ":rate": phase.rate,
        ":unit": unit_name(phase.unit),
        ":bytes": integer(phase.bytes),
        ":ops": integer(phase.ops),
        ":elapsed": integer(phase.elapsed_ns),
        ":cpu_percent": phase.cpu_percent,
        ":cpu_user": cpu(|c| Some(c.user)),
        ":cpu_system": cpu(|c| Some(c.system)),
        ":cpu_kernel": cpu(|c| c.kernel_threads),
        ":count": integer(latency.map(|l| l.count())),
        ":mean": span(latency.and_then(|l| l.mean())),
        ":p50": percentile(50.0),
        ":p99": percentile(99.0),
        ":max": span(latency.and_then(|l| l.max())),
        ":in_flight": phase.mean_in_flight,
        ":claimed_read": integer(device.map(|d| d.claimed_read)),
        ":claimed_written": integer(device.map(|d| d.claimed_written)),
        ":device_read": integer(device.map(|d| d.device_read)),
        ":device_written": integer(device.map(|d| d.device_written)),
        ":valid": phase.is_valid(),
    })?;
    let mut figure = t.prepare_cached(
        "INSERT INTO figures (trial, position, name, value, unit) VALUES (?, ?, ?, ?, ?)",
    )?;
    for f in &phase.figures {
        figure.execute(params![trial, position, f.name, f.value, unit_name(f.unit)])?;
    }
    insert_flags(t, trial, Some(position), &phase.flags)
}

/// A number as SQLite keeps it; above 2^63-1 there is none, and only the record has it.
fn integer(value: Option<u64>) -> Option<i64> {
    value.and_then(|value| i64::try_from(value).ok())
}

fn span(value: Option<Span>) -> Option<i64> {
    integer(value.map(|span| span.0))
}

/// The name of a unit in tables and exports.
const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::BytesPerSecond => "bytes-per-second",
        Unit::PerSecond => "per-second",
        Unit::Seconds => "seconds",
        Unit::Percent => "percent",
    }
}
