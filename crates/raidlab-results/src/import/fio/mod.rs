//! fio: JSON, JSON+ and client mode, terse version 3; the report for people is refused.
mod check;
mod jobs;
mod json;
mod latency;
mod model;
mod objects;
mod progress;
mod row;
mod servers;
mod terse;

pub(super) use json::read_json;
use json::tell_earlier;
pub(super) use objects::first_object;
pub(super) use terse::read_terse;

use super::Reading;
use super::text::Text;

/// The report for people rounds everything and changes from version to version.
pub(super) fn refuse_normal(text: &Text<'_>) -> Reading {
    let line = text
        .lines()
        .find(|line| line.text.contains("groupid=") || line.text.contains("ioengine="))
        .or_else(|| text.lines().next());
    let fault = match line {
        Some(line) => line.fault(0, "fio's report for people, which rounds its figures"),
        None => text.end(),
    };
    Err(fault
        .expected("fio's JSON")
        .remedy("Run fio with --output-format=json+ (or json) and import that"))
}
