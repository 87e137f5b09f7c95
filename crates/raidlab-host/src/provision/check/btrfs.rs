//! `btrfs scrub`: btrfs reads all that is allocated, with all copies, and compares checksums.
use super::super::build::{Context, Stage};
use super::progress::{HEARS, Progress, STALLED};
use super::{Checked, Found};
use crate::error::{HostError, Result};
use crate::journal::{Journal, Undo};
use crate::tool::{Output, Tool};
use raidlab_core::words::count;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// How far it is, is asked of a tool.
const ASKED: Duration = Duration::from_secs(1);
/// Ten thousandths, of which the tool tells how many are done.
const WHOLE: u64 = 10_000;

/// What of a scrub's figures tells of something wrong.
const WRONG: [&str; 6] = [
    "read_errors",
    "csum_errors",
    "verify_errors",
    "super_errors",
    "uncorrectable_errors",
    "corrected_errors",
];

/// Scrubs a file system that is mounted there, without so many of its members.
pub(super) fn scrub(
    context: &mut Context<'_>,
    journal: &mut Journal,
    (point, uuid): (&Path, &str),
    missing: usize,
) -> Result<Checked> {
    // The tool keeps notes of its scrubs for good: they go with the file system.
    let undo = Undo::Scrub {
        point: point.to_owned(),
        uuid: uuid.to_owned(),
    };
    let step = journal.intend("scrub of btrfs", &[undo])?;
    let begun = Instant::now();
    let said = watched(context, point)?;
    let took = begun.elapsed();
    journal.done(step)?;
    let figures = figures(&said.out);
    if !is_through(&said, missing) {
        return Err(HostError::Unexpected(format!(
            "the scrub of btrfs did not come to its end: {} {}",
            said.out.trim(),
            said.error.trim()
        )));
    }
    let stats = Tool::new(["btrfs", "device", "stats", &point.display().to_string()]);
    let devices = devices(&stats.within(HEARS).run()?.out, missing);
    let bytes = ["data_bytes_scrubbed", "tree_bytes_scrubbed"];
    let bytes = bytes.iter().filter_map(|name| figures.get(*name));
    Ok(Checked {
        of: "btrfs".to_owned(),
        by: "btrfs scrub",
        took,
        bytes: Some(bytes.sum()),
        found: found(&figures, &devices),
        counts: counts(&figures, &devices),
    })
}

/// Runs the tool, tells how far it is, and stops the scrub when it is not to go on: the kernel does not end it with the tool.
fn watched(context: &mut Context<'_>, point: &Path) -> Result<Output> {
    const WHAT: &str = "scrub of btrfs";
    let path = point.display().to_string();
    let scrub = ["btrfs", "scrub", "start", "-B", "-R", &path].map(str::to_owned);
    // No scoped one: what a dead disk holds is left behind.
    let scrub = std::thread::spawn(move || Tool::new(scrub).run_any());
    let mut progress = Progress::new(STALLED);
    let mut asked = Instant::now();
    let (mut done, mut at) = (None, None);
    let mut told = Ok(());
    let mut ending = None;
    while !scrub.is_finished() {
        if told.is_ok() {
            if asked.elapsed() >= ASKED {
                let said = Tool::new(["btrfs", "scrub", "status", &path]).within(HEARS);
                if let Ok(said) = said.cancelled_by(context.cancel).run() {
                    (done, at) = (share(&said.out).or(done), Some(scrubbed(&said.out)));
                }
                asked = Instant::now();
            }
            let stage = Stage {
                what: WHAT.to_owned(),
                done: done.unwrap_or(0),
                of: done.map_or(0, |_| WHOLE),
            };
            told = context
                .tell(&stage)
                .and_then(|()| progress.is_at(WHAT, at.clone()));
        } else if ending.get_or_insert_with(Instant::now).elapsed() > HEARS {
            break;
        } else {
            // It fails before the scrub has begun: then again.
            let cancel = Tool::new(["btrfs", "scrub", "cancel", &path]);
            let _ = cancel.within(HEARS).run();
        }
        std::thread::sleep(POLL);
    }
    told?;
    let lost = |_| HostError::Unexpected("the scrub was lost".to_owned());
    let (_, said) = scrub.join().map_err(lost)??;
    Ok(said)
}

/// Whether a scrub has gone through all that is there. Of a file system that is mounted without some of its members btrfs-progs 6.2 says
/// that these are not present, and that the scrub was aborted, though it has read all of the others.
pub(super) fn is_through(said: &Output, missing: usize) -> bool {
    let is = |line: &str, status: &str| {
        let told = line.split_once(':');
        told.is_some_and(|(key, value)| key.trim() == "Status" && value.trim() == status)
    };
    let lines = || said.out.lines().chain(said.error.lines());
    let absent = || lines().filter(|line| line.trim_end().ends_with(" not present"));
    lines().any(|line| is(line, "finished"))
        || missing > 0 && absent().count() == missing && lines().any(|line| is(line, "aborted"))
}

/// The figures of `btrfs scrub start -R`.
pub(super) fn figures(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (key, value) = line.trim().split_once(':')?;
        let is_name = key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then_some(())?;
        Some((key.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The lines of `btrfs device stats` that count something: `[/dev/loop0].write_io_errs    2`. Those of members that the file system is
/// mounted without, which have no path there, tell nothing: with parity the kernel counts what it would have written to them.
pub(super) fn devices(text: &str, missing: usize) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let (name, number) = line.rsplit_once(char::is_whitespace)?;
        let number: u64 = number.parse().ok()?;
        let name = name.trim().replace(['[', ']'], "");
        let (device, kind) = name.rsplit_once('.')?;
        Some((device.to_owned(), kind.to_owned(), number))
    };
    let lines: Vec<_> = text.lines().filter_map(line).collect();
    let absent: BTreeSet<&str> = lines
        .iter()
        .map(|(device, ..)| device.as_str())
        .filter(|device| !device.starts_with('/'))
        .collect();
    let known = absent.len() <= missing;
    let told = lines
        .iter()
        .filter(|(device, _, number)| *number > 0 && !(known && absent.contains(device.as_str())));
    told.map(|(device, kind, number)| (format!("{device} {kind}"), *number))
        .collect()
}

fn counts(figures: &BTreeMap<String, u64>, devices: &[(String, u64)]) -> BTreeMap<String, u64> {
    let wrong = figures
        .iter()
        .filter(|(name, _)| WRONG.contains(&name.as_str()));
    let wrong = wrong.map(|(name, number)| (name.clone(), *number));
    wrong.chain(devices.iter().cloned()).collect()
}

/// What both say.
pub(super) fn found(figures: &BTreeMap<String, u64>, devices: &[(String, u64)]) -> Option<Found> {
    let told = |name: &&str| {
        let number = figures.get(*name).filter(|number| **number > 0)?;
        let one = name.trim_end_matches('s').replace('_', " ");
        Some(count(number, &one))
    };
    let mut parts: Vec<String> = WRONG.iter().filter_map(told).collect();
    parts.extend(
        devices
            .iter()
            .map(|(name, number)| format!("{name} {number}")),
    );
    (!parts.is_empty()).then(|| Found {
        what: format!(
            "the scrub of btrfs found what does not agree with its checksums: {}",
            parts.join(", ")
        ),
        may_be_benign: false,
    })
}

/// The lines that tell how much has been scrubbed: `Bytes scrubbed:   1.00GiB  (12.34%)`, of old versions `total bytes scrubbed: 1.00GiB
/// with 0 errors`, which have no share of it.
pub(super) fn scrubbed(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::to_lowercase);
    lines
        .filter(|line| line.contains("bytes scrubbed"))
        .collect()
}

/// `Bytes scrubbed:   1.00GiB  (12.34%)`
fn share(text: &str) -> Option<u64> {
    let (before, _) = text.split_once("%)")?;
    let percent: f64 = before.rsplit_once('(')?.1.parse().ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then_some((percent * 100.0) as u64)
}
