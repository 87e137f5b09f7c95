//! `zpool scrub`: ZFS reads all that is allocated in a pool, with all copies and parity, and compares checksums.
use super::super::build::{Context, Stage};
use super::progress::{HEARS, Progress, STALLED};
use super::{Checked, Found};
use crate::error::{HostError, Result};
use crate::tool::Tool;
use raidlab_core::words::count;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(200);
/// Ten thousandths, of which `zpool status` tells how many are done.
const WHOLE: u64 = 10_000;

/// Scrubs a pool.
pub(super) fn scrub(context: &mut Context<'_>, name: &str) -> Result<Checked> {
    scrub_by("zpool", context, name, STALLED)
}

/// As [`scrub`], by this program, and given up when it comes no further for so long. That it goes on in the kernel needs no step in
/// the journal: it goes with its pool, which has one.
pub(super) fn scrub_by(
    zpool: &str,
    context: &mut Context<'_>,
    name: &str,
    most: Duration,
) -> Result<Checked> {
    let begun = Instant::now();
    let begin = Tool::new([zpool, "scrub", name]).within(HEARS);
    let status = begin
        .cancelled_by(context.cancel)
        .run()
        .and_then(|_| wait(zpool, context, name, most));
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            let _ = Tool::new([zpool, "scrub", "-s", name]).within(HEARS).run();
            return Err(error);
        }
    };
    let took = begun.elapsed();
    let bytes = Tool::new([zpool, "list", "-Hp", "-o", "alloc", name]);
    let bytes = bytes.within(HEARS).run();
    if !status.scan.starts_with("scrub repaired") {
        return Err(HostError::Unexpected(format!(
            "the scrub of {name} did not come to its end: {}",
            status.scan
        )));
    }
    Ok(Checked {
        of: name.to_owned(),
        by: "zpool scrub",
        took,
        bytes: bytes.ok().and_then(|said| said.out.trim().parse().ok()),
        counts: status.counts(),
        found: status.found(),
    })
}

fn wait(zpool: &str, context: &mut Context<'_>, name: &str, most: Duration) -> Result<Status> {
    const WHAT: &str = "scrub of the pool";
    let mut progress = Progress::new(most);
    loop {
        let asked = Tool::new([zpool, "status", "-p", name]).within(HEARS);
        let said = asked.cancelled_by(context.cancel).run()?.out;
        let status = Status::parse(&said);
        if !status.scan.starts_with("scrub in progress") {
            return Ok(status);
        }
        context.tell(&Stage {
            what: WHAT.to_owned(),
            done: status.done.unwrap_or(0),
            of: status.done.map_or(0, |_| WHOLE),
        })?;
        progress.is_at(WHAT, Some((status.done, status.amounts)))?;
        std::thread::sleep(POLL);
    }
}

/// What `zpool status -p` says of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// What follows `scan:` in its line.
    pub(super) scan: String,
    /// Ten thousandths of a scrub under way that are done.
    pub(super) done: Option<u64>,
    /// How much of it has been scanned and issued, as it is printed: nothing is done as long as ZFS only gathers what it is to read,
    /// which takes minutes in large pools.
    pub(super) amounts: Vec<String>,
    /// What follows `errors:`.
    pub(super) errors: String,
    /// Name of each device and of what is made of them, with its read, write and checksum errors.
    pub(super) devices: Vec<(String, [u64; 3])>,
}

const KINDS: [&str; 3] = ["read", "write", "checksum"];

impl Status {
    pub(super) fn parse(text: &str) -> Self {
        let mut status = Self::default();
        let mut in_config = false;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["scan:", ..] => status.scan = after(line, "scan:"),
                ["errors:", ..] => {
                    in_config = false;
                    status.errors = after(line, "errors:");
                }
                ["config:"] => in_config = true,
                [name, _, numbers @ ..] if in_config => {
                    status.devices.extend(device(name, numbers));
                }
                _ if !in_config && line.contains("% done") => status.done = share(&words),
                _ if !in_config && line.contains(" scanned") => status.amounts = amounts(line),
                _ => {}
            }
        }
        status
    }

    /// Errors that each device had, and the pool for good. A pool has those of its devices only where they could not be
    /// mended, so that nothing is counted twice.
    fn counts(&self) -> BTreeMap<String, u64> {
        let sum = |kind: usize| self.devices.iter().map(|(_, errors)| errors[kind]).sum();
        let each = KINDS.iter().enumerate();
        let mut counts: BTreeMap<String, u64> = each
            .map(|(kind, name)| (format!("{name}_errors"), sum(kind)))
            .collect();
        counts.extend(
            self.unmended()
                .map(|number| ("unrepaired".to_owned(), number)),
        );
        counts
    }

    /// `scrub repaired 0B in 00:00:01 with 0 errors on ...`
    fn unmended(&self) -> Option<u64> {
        let (_, rest) = self.scan.split_once(" with ")?;
        rest.split_whitespace().next()?.parse().ok()
    }

    pub(super) fn found(&self) -> Option<Found> {
        let mut parts: Vec<String> = Vec::new();
        for (name, errors) in &self.devices {
            let told = KINDS.iter().zip(errors).filter(|(_, number)| **number > 0);
            let told: Vec<String> = told
                .map(|(kind, number)| count(number, &format!("{kind} error")))
                .collect();
            if !told.is_empty() {
                parts.push(format!("{name} {}", told.join(", ")));
            }
        }
        if parts.is_empty() && self.is_intact() {
            return None;
        }
        if !self.is_intact() {
            parts.push(format!("'errors: {}'", self.errors));
        }
        Some(Found {
            what: format!(
                "the scrub of the pool found what does not agree with its checksums: {} ({})",
                parts.join("; "),
                self.scan
            ),
            may_be_benign: false,
        })
    }

    fn is_intact(&self) -> bool {
        self.errors == "No known data errors" && self.unmended() == Some(0)
    }
}

fn after(line: &str, word: &str) -> String {
    let rest = line.split_once(word).map_or("", |(_, rest)| rest);
    rest.trim().to_owned()
}

/// A line of the table: numbers are exact with `-p`.
fn device(name: &str, numbers: &[&str]) -> Option<(String, [u64; 3])> {
    let number = |at: usize| numbers.get(at)?.parse::<u64>().ok();
    Some((name.to_owned(), [number(0)?, number(1)?, number(2)?]))
}

/// `1.20G scanned at 300M/s, 500M issued at 100M/s, 2G total`, or `1.20G / 2G scanned, 500M / 2G issued at 100M/s`: without the rates,
/// which fall when nothing comes on.
fn amounts(line: &str) -> Vec<String> {
    let parts = line.split(',');
    let first = parts.filter_map(|part| part.split_whitespace().next());
    first.map(str::to_owned).collect()
}

/// `33.33% done`
fn share(words: &[&str]) -> Option<u64> {
    let percent = words.iter().find_map(|word| word.strip_suffix('%'))?;
    let percent: f64 = percent.parse().ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then_some((percent * 100.0) as u64)
}
