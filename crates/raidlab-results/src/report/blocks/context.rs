//! Where the figures came from, what was kept out, and how to repeat them.
use crate::record::{Place, Provenance, Status, TrialRecord};
use crate::report::analysis::same_streams;
use crate::report::document::Block;
use crate::report::format;
use crate::report::group::{Group, exclusions, provenance_kind};
use raidlab_core::flag::FlagKind;
use raidlab_core::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Most command lines that are listed.
const MOST_COMMANDS: usize = 12;

/// Most sources that a line names.
const MOST_SOURCES: usize = 6;

/// Provenance in full: `imported from bonnie++ 1.03e × results.txt`.
fn provenance_line(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Measured { place: Place::Host } => "measured by raidlab on a host".to_owned(),
        Provenance::Measured { place: Place::Vm } => {
            "measured by raidlab in a virtual machine on modelled disks".to_owned()
        }
        Provenance::Simulated => "simulated on modelled disks".to_owned(),
        Provenance::Imported {
            tool,
            tool_version,
            file,
        } => {
            let version = tool_version.as_deref().unwrap_or("of unknown version");
            format!("imported from {tool} {version}, file {file}")
        }
        Provenance::Published { study, date } => format!("published, study {study} ({date})"),
    }
}

/// A line for every group of figures of one provenance, and a warning when they are mixed.
pub(crate) fn provenance(groups: &[Group<'_>]) -> Vec<Block> {
    let mut lines: Vec<(String, usize, usize)> = Vec::new();
    let mut kinds: BTreeMap<String, ()> = BTreeMap::new();
    for group in groups {
        kinds.insert(sort_of(group.provenance).to_owned(), ());
        let mut seen: Vec<String> = Vec::new();
        for trial in &group.trials {
            let line = provenance_line(&trial.provenance);
            let new_cell = !seen.contains(&line);
            match lines.iter_mut().find(|(known, ..)| *known == line) {
                Some((_, cells, trials)) => {
                    *cells += usize::from(new_cell);
                    *trials += 1;
                }
                None => lines.push((line.clone(), 1, 1)),
            }
            seen.push(line);
        }
    }
    let items = lines
        .into_iter()
        .map(|(line, cells, trials)| {
            let (cells, trials) = (
                format::plural(cells, "cell"),
                format::plural(trials, "trial"),
            );
            format!("{line}: {cells}, {trials}")
        })
        .collect();
    let mut blocks = vec![Block::List { items }];
    blocks.extend(groups.iter().filter_map(joined_sessions));
    if kinds.len() > 1 {
        let all: Vec<_> = kinds.into_keys().collect();
        blocks.push(Block::warning(format!(
            "This report puts figures of different provenance side by side ({}). They are never \
             averaged together; a difference between them may lie in how they were obtained.",
            all.join(", ")
        )));
    }
    blocks
}

/// Whether arrays were still consistent after the phases, where that was looked at: what was not looked at is told.
pub(crate) fn verified(groups: &[Group<'_>]) -> Option<Block> {
    let trials = || {
        let all = groups.iter().flat_map(|group| &group.trials);
        all.filter(|trial| trial.status == Status::Complete)
    };
    let checked = || {
        trials().filter(|trial| !trial.checks.is_empty() || has_flag(trial, FlagKind::Unverified))
    };
    let consistent = |trial: &&TrialRecord| {
        let agrees = trial.checks.iter().all(|check| check.consistent);
        agrees && !has_flag(trial, FlagKind::Unverified)
    };
    let (all, looked, good) = (
        trials().count(),
        checked().count(),
        checked().copied().filter(consistent).count(),
    );
    let untold = trials().filter(|trial| has_flag(trial, FlagKind::Unverified));
    let untold = untold.count();
    if looked == 0 {
        return None;
    }
    let spent: u64 = checked()
        .flat_map(|trial| &trial.checks)
        .map(|check| check.elapsed_ns)
        .sum();
    let mut ways: Vec<&str> = checked()
        .flat_map(|trial| &trial.checks)
        .map(|check| check.by.as_str())
        .collect();
    ways.sort_unstable();
    ways.dedup();
    let ways = match ways.is_empty() {
        true => String::new(),
        false => format!(" ({}, {} in all)", ways.join(", "), Span(spent)),
    };
    let mut line = format!(
        "Verified after the phases{ways}: the array was consistent in {good} of {}",
        format::plural(looked, "trial"),
    );
    if untold > 0 {
        let _ = write!(line, "; in {untold} that could not be told (unverified)");
    }
    if looked < all {
        let _ = write!(line, "; of {} more it was not looked at", all - looked);
    }
    line.push('.');
    Some(match good == looked {
        true => Block::paragraph(line),
        false => Block::warning(line),
    })
}

fn has_flag(trial: &TrialRecord, kind: FlagKind) -> bool {
    trial.flags.iter().any(|flag| flag.kind == kind)
}

/// Runs of several sessions that stand behind one figure: machine and day may differ between them.
fn joined_sessions(group: &Group<'_>) -> Option<Block> {
    let distinct = |of: &dyn Fn(&TrialRecord) -> Option<String>| {
        let all: BTreeSet<String> = group.trials.iter().filter_map(|t| of(t)).collect();
        all.len()
    };
    let sessions = distinct(&|t| Some(t.session.clone()));
    let environments = distinct(&|t| t.environment.clone());
    (sessions > 1).then(|| {
        let places = if environments > 1 {
            format!(", in {environments} environments that differ")
        } else {
            String::new()
        };
        Block::warning(format!(
            "{} of {}: runs of {sessions} sessions are taken together{places}. Report on one \
             session, or compare them with each other, if they are not repeats.",
            group.profile, group.label
        ))
    })
}

fn sort_of(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Measured { place: Place::Host } => "measured",
        Provenance::Measured { place: Place::Vm } => "measured in a VM",
        Provenance::Simulated => "simulated",
        Provenance::Imported { .. } => "imported",
        Provenance::Published { .. } => "published",
    }
}

/// Where the figures of a profile came from.
pub(crate) fn sources(groups: &[Group<'_>]) -> Block {
    let mut lines: Vec<String> = Vec::new();
    for trial in groups.iter().flat_map(|g| &g.trials) {
        let line = provenance_line(&trial.provenance);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.len() > MOST_SOURCES {
        let more = lines.len() - MOST_SOURCES;
        lines.truncate(MOST_SOURCES);
        lines.push(format!("and {more} more"));
    }
    Block::paragraph(format!("Source: {}.", lines.join("; ")))
}

/// Different operation streams within a profile, and whether they are compared all the same.
pub(crate) fn streams(groups: &[Group<'_>], allowed: bool) -> Option<Block> {
    let differ = groups.iter().enumerate().any(|(i, a)| {
        groups[i + 1..]
            .iter()
            .any(|b| a.profile == b.profile && !same_streams(a, b))
    });
    differ.then(|| told_of_streams(allowed))
}

/// That operation streams of what is compared differ, and whether it is compared all the same.
pub(crate) fn told_of_streams(allowed: bool) -> Block {
    Block::warning(if allowed {
        "Some cells ran different operation streams (other seed or settings); they are compared \
         because mixed streams were allowed."
    } else {
        "Some cells ran different operation streams (other seed or settings); ratios between \
         them are refused. --allow-different-streams compares them anyway."
    })
}

/// What was kept out of the aggregates and why.
pub(crate) fn kept_out(groups: &[Group<'_>]) -> Vec<Block> {
    let items = exclusions(groups);
    if items.is_empty() {
        return Vec::new();
    }
    vec![
        Block::heading("Kept out of the figures"),
        Block::paragraph("Kept in the store with their reasons, but in no aggregate:"),
        Block::List { items },
    ]
}

/// The settings that all groups of a profile share.
pub(crate) fn settings(groups: &[Group<'_>]) -> Option<Block> {
    let first = groups.first()?;
    let shared: Vec<String> = first
        .settings
        .iter()
        .filter(|(name, value)| groups.iter().all(|g| g.settings.get(*name) == Some(value)))
        .map(|(name, value)| format!("{name} {}", setting(name, value)))
        .collect();
    (!shared.is_empty()).then(|| Block::paragraph(format!("Settings: {}.", shared.join(", "))))
}

/// Sizes are kept in bytes and shown with a unit.
pub(crate) fn setting(name: &str, value: &str) -> String {
    let is_size = name.ends_with("size") || name.ends_with("chunk");
    match value.parse() {
        Ok(bytes) if is_size => raidlab_core::units::Bytes(bytes).to_string(),
        _ => value.to_owned(),
    }
}

/// What the line after the last of many command lines begins with.
const MORE: &str = "# … and";

/// Whether a shell does nothing with a line but call raidlab: outside of single quotes are only the signs that raidlab leaves
/// there itself.
fn is_own(line: &str) -> bool {
    let Some(words) = line.strip_prefix("raidlab ") else {
        return line.starts_with(MORE);
    };
    let (mut quoted, mut escaped) = (None, false);
    for (at, c) in words.char_indices() {
        match quoted {
            _ if escaped => escaped = false,
            // `$'...'` alone knows escapes.
            Some(dollar) => match c {
                '\'' => quoted = None,
                '\\' => escaped = dollar,
                _ => {}
            },
            None => match c {
                '\'' => quoted = Some(words[..at].ends_with('$')),
                '\\' => escaped = true,
                '$' if words[at + 1..].starts_with('\'') => {}
                c if c.is_ascii_alphanumeric() || "-_./:=,%+@ ".contains(c) => {}
                _ => return false,
            },
        }
    }
    quoted.is_none() && !escaped
}

/// The command lines that repeat the trials, each once.
pub(crate) fn repeat(groups: &[Group<'_>]) -> Vec<Block> {
    let mut lines: Vec<String> = Vec::new();
    for trial in groups.iter().flat_map(|g| &g.trials) {
        if let Some(command) = &trial.command
            && !lines.contains(command)
        {
            lines.push(command.clone());
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    if lines.len() > MOST_COMMANDS {
        let more = lines.len() - MOST_COMMANDS;
        lines.truncate(MOST_COMMANDS);
        lines.push(format!("{MORE} {more} more, one with each trial"));
    }
    let published = groups
        .iter()
        .all(|g| provenance_kind(g.provenance).starts_with("published"));
    let title = if published {
        "As it was measured"
    } else if lines.iter().all(|line| is_own(line)) {
        "How to repeat"
    } else {
        // Of a file that was imported, and no command of raidlab's making.
        "As it was measured, by a file that was imported: read a command before you run it"
    };
    vec![Block::heading(title), Block::Commands { lines }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_another_is_known_from_one_that_raidlab_has_made() {
        let own = [
            "raidlab bench /mnt/a --profile dd --seed 7",
            r"raidlab bench '/mnt/it'\''s; here' --seed 7",
            r"raidlab bench $'/mnt/it\'s \xff' --seed 7",
            // One word: between these quotes an escaped one ends nothing.
            r"raidlab bench $'\' ; rm -rf / #'",
            "# … and 3 more, one with each trial",
        ];
        for line in own {
            assert!(is_own(line), "{line}");
        }
        let others = [
            "dd if=/dev/zero of=/dev/sda",
            "raidlab bench /mnt/a; rm -rf /",
            r"raidlab bench \' ; rm -rf / #'",
            r"raidlab bench '\' ; rm -rf / #'",
            "raidlab bench $(rm -rf /)",
            "raidlab bench \"$(rm -rf /)\"",
            "raidlab bench /mnt/a\nrm -rf /",
            "raidlab bench 'not closed",
        ];
        for line in others {
            assert!(!is_own(line), "{line}");
        }
    }
}
