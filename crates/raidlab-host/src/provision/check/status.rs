//! What ZFS says of a pool, and of a scrub or resilver that goes on in it.
use super::Found;
use raidlab_core::words::count;
use std::collections::BTreeMap;

/// Ten thousandths, of which `zpool status` tells how many are done.
pub(in super::super) const WHOLE: u64 = 10_000;

/// What `zpool status -p` says of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Status {
    /// What follows `state:` of the pool.
    pub(in super::super) state: String,
    /// What follows `scan:` in its line.
    pub(in super::super) scan: String,
    /// Ten thousandths of a scrub or resilver under way that are done.
    pub(in super::super) done: Option<u64>,
    /// Bytes that the last resilver wrote, or the one under way has: three digits are told.
    pub(in super::super) resilvered: Option<u64>,
    /// A new member waits for another's resilver to end.
    pub(in super::super) deferred: bool,
    /// How much of it has been scanned and issued, as it is printed: nothing is done as long as ZFS only gathers what it is to read,
    /// which takes minutes in large pools.
    pub(in super::super) amounts: Vec<String>,
    /// What follows `errors:`.
    pub(in super::super) errors: String,
    /// Name of each device and of what is made of them, with its read, write and checksum errors.
    pub(in super::super) devices: Vec<(String, [u64; 3])>,
}

const KINDS: [&str; 3] = ["read", "write", "checksum"];

impl Status {
    pub(in super::super) fn parse(text: &str) -> Self {
        let mut status = Self::default();
        let mut in_config = false;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["state:", ..] => status.state = after(line, "state:"),
                ["scan:", rest @ ..] => {
                    status.scan = after(line, "scan:");
                    if let ["resilvered", bytes, ..] = rest {
                        status.resilvered = amount(bytes);
                    }
                }
                ["errors:", ..] => {
                    in_config = false;
                    status.errors = after(line, "errors:");
                }
                ["config:"] => in_config = true,
                [name, _, numbers @ ..] if in_config => {
                    status.deferred |= line.contains("(awaiting resilver)");
                    status.devices.extend(device(name, numbers));
                }
                _ if !in_config && line.contains("% done") => {
                    status.done = share(&words);
                    if let [bytes, "resilvered,", ..] = words.as_slice() {
                        status.resilvered = amount(bytes);
                    }
                }
                _ if !in_config && line.contains(" scanned") => status.amounts = amounts(line),
                _ => {}
            }
        }
        status
    }

    /// Whether a resilver goes on.
    pub(in super::super) fn resilvers(&self) -> bool {
        self.scan.starts_with("resilver in progress")
    }

    /// Whether nothing is missing: what is replaced is a part of its pool until its successor is whole.
    pub(in super::super) fn is_whole(&self) -> bool {
        self.state == "ONLINE" && !self.resilvers()
    }

    /// Errors that each device had, and the pool for good. A pool has those of its devices only where they could not be
    /// mended, so that nothing is counted twice.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
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

    pub(in super::super) fn found(&self) -> Option<Found> {
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

/// `801M`, `1.20G`, `512B`: in powers of 1024, as ZFS prints them; bytes without a letter.
fn amount(text: &str) -> Option<u64> {
    let letters = "BKMGTPEZ";
    let (number, power) = match text.char_indices().last()? {
        (at, letter) if letters.contains(letter) => (&text[..at], letters.find(letter)? as i32),
        _ => (text, 0),
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number * 1024_f64.powi(power)) as u64)
}

#[cfg(test)]
mod tests;
