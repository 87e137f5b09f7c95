//! What may be stored: records that come back as they were given, and belong to something.
use super::{Bundle, StoreError};
use crate::id;
use crate::record::{PhaseRecord, Session, TrialRecord};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// The digest of an environment record: what [`TrialRecord::environment`] refers to.
#[must_use]
pub fn environment_digest(environment: &Value) -> String {
    id::of_json("raidlab environment", environment)
}

/// A record in the form in which it is stored.
pub(crate) struct Checked {
    /// The whole record as JSON.
    pub(crate) text: String,
    /// When it began, in microseconds since 1970.
    pub(crate) started_us: Option<i64>,
}

/// Checks a trial and gives its stored form.
pub(crate) fn check_trial(trial: &TrialRecord) -> Result<Checked, StoreError> {
    let name = format!("trial {}", id::short(&trial.id));
    check_id(&format!("{name}: id"), &trial.id)?;
    check_id(&format!("{name}: session"), &trial.session)?;
    if let Some(digest) = &trial.environment {
        check_id(&format!("{name}: environment"), digest)?;
    }
    let started_us = match &trial.started {
        Some(text) => Some(microseconds(&format!("{name}: started"), text)?),
        None => None,
    };
    for phase in &trial.phases {
        check_phase(&format!("{name}: phase '{}'", phase.phase), phase)?;
    }
    let text = stored_form(&name, trial)?;
    Ok(Checked { text, started_us })
}

fn check_phase(name: &str, phase: &PhaseRecord) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    for figure in &phase.figures {
        if !seen.insert(&figure.name) {
            return Err(bad(name, format!("two figures '{}'", figure.name)));
        }
    }
    let fixed = [
        ("rate", phase.rate),
        ("cpu_percent", phase.cpu_percent),
        ("mean_in_flight", phase.mean_in_flight),
    ];
    let fixed = fixed
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let all = fixed.chain(phase.figures.iter().map(|f| (f.name.as_str(), f.value)));
    for (figure, value) in all {
        if !value.is_finite() {
            return Err(bad(
                name,
                format!("'{figure}' is {value}; a missing figure has no value at all"),
            ));
        }
    }
    Ok(())
}

/// Checks of a trial that was read what holds of every one that was ever written: how it may have been altered since.
pub(crate) fn check_possible(trial: &TrialRecord) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    for phase in &trial.phases {
        let name = format!("trial {}: phase '{}'", id::short(&trial.id), phase.phase);
        if !seen.insert(&phase.phase) {
            return Err(bad(&name, "is there twice"));
        }
        for (figure, value) in [
            ("rate", phase.rate),
            ("mean_in_flight", phase.mean_in_flight),
        ] {
            if let Some(value) = value.filter(|value| *value < 0.0) {
                return Err(bad(
                    &name,
                    format!("'{figure}' is {value:?}, which is below 0"),
                ));
            }
        }
        if phase
            .latency
            .as_ref()
            .is_some_and(|l| !l.has_possible_max())
        {
            let reason = "'max_ns' of 'latency' is below what its buckets count";
            return Err(bad(&name, reason));
        }
        let (bytes, ops) = (phase.series_bytes.len(), phase.series_ops.len());
        if bytes > 0 && ops > 0 && bytes != ops {
            let reason = format!("'series_bytes' has {bytes} windows and 'series_ops' {ops}");
            return Err(bad(&name, reason));
        }
        if bytes + ops > 0 && phase.series_width_ns == 0 {
            return Err(bad(&name, "its series has windows of 'series_width_ns' 0"));
        }
    }
    Ok(())
}

/// Checks a session; its beginning in microseconds since 1970 and its plan as JSON.
pub(crate) fn check_session(session: &Session) -> Result<(i64, Option<String>), StoreError> {
    let name = format!("session {}", id::short(&session.id));
    check_id(&format!("{name}: id"), &session.id)?;
    let created = microseconds(&format!("{name}: created"), &session.created)?;
    stored_form(&name, session)?;
    let plan = session.plan.as_ref().map(Value::to_string);
    Ok((created, plan))
}

/// Checks that all of a bundle fits together: unknown or doubled identifiers, digests that are not
/// those of their environments. The trials themselves are not checked.
pub(crate) fn check_bundle(bundle: &Bundle) -> Result<(), StoreError> {
    let mut sessions = BTreeSet::new();
    for session in &bundle.sessions {
        check_session(session)?;
        if !sessions.insert(&session.id) {
            return Err(bad(&format!("session {}", session.id), "given twice"));
        }
    }
    for (digest, environment) in &bundle.environments {
        let name = format!("environment {digest}");
        let true_digest = environment_digest(environment);
        if *digest != true_digest {
            let reason = format!("the digest of its content is {true_digest}");
            return Err(bad(&name, reason));
        }
        stored_form(&name, environment)?;
    }
    Ok(())
}

/// The JSON text of a record, which is certain to be read back as the same record.
pub(super) fn stored_form<T>(name: &str, record: &T) -> Result<String, StoreError>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq,
{
    let failed = |e: serde_json::Error| bad(name, format!("cannot be written as JSON: {e}"));
    let text = serde_json::to_string(record).map_err(failed)?;
    let back: T = serde_json::from_str(&text).map_err(failed)?;
    if back == *record {
        Ok(text)
    } else {
        Err(bad(name, "would not be read back from JSON as it is"))
    }
}

fn check_id(what: &str, text: &str) -> Result<(), StoreError> {
    if id::is_id(text) {
        Ok(())
    } else {
        Err(bad(
            what,
            format!("'{text}' is not 32 lower-case hexadecimal digits"),
        ))
    }
}

fn microseconds(what: &str, text: &str) -> Result<i64, StoreError> {
    let wrong = |why: String| bad(what, format!("'{text}' is not an RFC 3339 time{why}"));
    if !has_rfc3339_form(text) {
        return Err(wrong(", such as 2026-11-21T08:30:00Z".to_owned()));
    }
    let time: Timestamp = text.parse().map_err(|e| wrong(format!(": {e}")))?;
    Ok(time.as_microsecond())
}

/// Whether a text has the form of RFC 3339, section 5.6; jiff reads other forms of ISO 8601 too.
fn has_rfc3339_form(text: &str) -> bool {
    let fits = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(b, f)| match f {
                b'0' => b.is_ascii_digit(),
                b'T' => matches!(b, b'T' | b't' | b' '),
                _ => b == f,
            })
    };
    let Some((time, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => match fraction.find(|c: char| !c.is_ascii_digit()) {
            None | Some(0) => return false,
            Some(end) => &fraction[end..],
        },
    };
    let zones = ["Z", "z", "+00:00", "-00:00"];
    fits(time, "0000-00-00T00:00:00") && zones.iter().any(|form| fits(zone, form))
}

pub(super) fn bad(what: &str, reason: impl Into<String>) -> StoreError {
    StoreError::BadRecord {
        what: what.to_owned(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rfc_3339_is_a_time() {
        for (text, seconds) in [
            ("1970-01-01T00:00:01Z", 1),
            ("1970-01-01t00:00:01.000z", 1),
            ("1970-01-01 01:00:01+01:00", 1),
            ("1969-12-31T23:59:59-00:00", -1),
        ] {
            assert_eq!(
                microseconds("x", text).unwrap(),
                seconds * 1_000_000,
                "{text}"
            );
        }
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:01",
            "1970-01-01T00:00Z",
            "19700101T000001Z",
            "1970-01-01T00:00:01.Z",
            "1970-01-01T00:00:01+01",
            "1970-01-01T01:00:01+01:00[Europe/Berlin]",
            "1970-13-01T00:00:00Z",
            "+001970-01-01T00:00:01Z",
            "1970-01-01T00:00:0é",
        ] {
            assert!(microseconds("x", text).is_err(), "{text}");
        }
    }
}
