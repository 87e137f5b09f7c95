//! tiobench.pl: the one-line report of 0.3.3 and the four sections of 0.3.5 to 0.4.x.
use super::draft::{Draft, Harvest, bytes_phase, no_figure};
use super::error::Fault;
use super::scan::{number, whole};
use super::text::{Line, Text, quoted};
use super::tiotest::{add_latency, credit};
use super::{Reading, Source};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::MIB;
use raidlab_core::words::count;
use std::collections::BTreeMap;

/// Phases in the order of the profile.
const PHASES: [&str; 4] = ["write", "random-write", "read", "random-read"];
/// Phases of the four pairs of columns of 0.3.3, as indices of [`PHASES`].
const COLUMNS: [usize; 4] = [2, 3, 0, 1];
/// Columns that 0.3.3 cuts a value to.
const CUT: usize = 5;
/// Values of a row of a section, after the identifier.
const VALUES: usize = 10;

pub(super) fn read_lines(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    for line in text.lines() {
        // Progress is written over with backspaces; the row is what follows the last one.
        let row = line.text.rsplit('\u{8}').next().unwrap_or("");
        let progress = &line.text[..line.text.len() - row.len()];
        let words: Vec<&str> = row.split_whitespace().collect();
        let is_title =
            row.contains("Seq Read") || row.contains("Rate (CPU%)") || row.contains("--");
        if words.is_empty() && progress.is_empty() || is_title {
            continue;
        }
        if words.len() != 12 {
            return Err(line
                .fault_at(words.first().unwrap_or(&&row[row.len()..]), quoted(row))
                .expected("directory, size, block, threads and four rates, each with a CPU%"));
        }
        harvest.drafts.push(lines_row(line, &words, progress)?);
    }
    text.whole_last_line()?;
    if !harvest.drafts.is_empty() {
        harvest.remark_once(
            "tiobench.pl 0.3.3 cuts values at five characters, and directories at seven",
        );
        harvest.remark_once("tiotest writes zeros: not to be compared on compressing storage");
    }
    Ok(harvest)
}

fn lines_row(line: Line<'_>, words: &[&str], progress: &str) -> Result<Draft, Fault> {
    let mut draft = Draft::new("tiobench", "tiobench.pl", words[0]);
    let size = megabytes(line, words[1])?;
    let block = whole(line, words[2], "the block size in bytes")?;
    let threads = whole(line, words[3], "the number of threads")?;
    draft.factor("file-size", size);
    draft.factor("block-size", block);
    draft.factor("threads", threads);
    let command = Command::of(progress);
    let mut phases: Vec<(usize, PhaseRecord)> = Vec::new();
    for (pair, which) in words[4..].chunks(2).zip(COLUMNS) {
        let rate = number(line, pair[0], "a rate in MB/s")? * MIB as f64;
        let percent = percent(line, pair[1])?;
        let mut phase = bytes_phase(PHASES[which], rate);
        if threads > 1 {
            phase.flags.push(Flag::new(
                FlagKind::ToolDefect,
                "tiotest adds the processor use of the whole process once a thread: left out",
            ));
        } else {
            phase.cpu_percent = Some(percent);
        }
        let random = which % 2 == 1;
        // `-r` is a number of operations per thread; tiobench.pl's own `--random` is the total.
        phase.ops = command
            .random_per_thread
            .filter(|_| random)
            .and_then(|ops| ops.checked_mul(threads));
        phase.bytes = if random {
            phase.ops.and_then(|ops| ops.checked_mul(block))
        } else {
            Some(size)
        };
        if pair[0].len() > CUT {
            return Err(line
                .fault_at(pair[0], quoted(pair[0]))
                .expected("a rate of at most five characters"));
        }
        phases.push((which, phase));
    }
    phases.sort_by_key(|(which, _)| *which);
    draft.phases = phases.into_iter().map(|(_, phase)| phase).collect();
    if let Some(directory) = command.directory {
        draft.label = directory;
    }
    draft.command = command.text;
    Ok(draft)
}

/// The tiotest call that tiobench.pl shows as its progress.
#[derive(Default)]
struct Command {
    text: Option<String>,
    random_per_thread: Option<u64>,
    directory: Option<String>,
}

impl Command {
    fn of(progress: &str) -> Self {
        let shown = progress.trim_end_matches('\u{8}');
        let Some(text) = shown.split_once(": ").map(|(_, text)| text.trim()) else {
            return Self::default();
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |option: &str| {
            let at = words.iter().position(|word| *word == option)?;
            words.get(at + 1).copied()
        };
        Self {
            text: Some(text.to_owned()),
            random_per_thread: after("-r").and_then(|n| n.parse().ok()),
            directory: after("-d").map(str::to_owned),
        }
    }
}

fn megabytes(line: Line<'_>, cell: &str) -> Result<u64, Fault> {
    whole(line, cell, "the file size in MB")?
        .checked_mul(MIB)
        .ok_or_else(|| {
            line.fault_at(cell, quoted(cell))
                .expected("a file size in MB")
        })
}

/// `27.7%`, `106.%`.
fn percent(line: Line<'_>, cell: &str) -> Result<f64, Fault> {
    let fault = || {
        line.fault_at(cell, quoted(cell))
            .expected("a CPU use such as 27.7%")
    };
    number(line, cell.strip_suffix('%').ok_or_else(fault)?, "CPU%")
}

/// The titles of the sections and their phases.
const SECTIONS: [(&str, usize); 4] = [
    ("Sequential Reads", 2),
    ("Random Reads", 3),
    ("Sequential Writes", 0),
    ("Random Writes", 1),
];

/// What a row is about: identifier, size, block, threads, and how often these came before.
type Key = (String, u64, u64, u64, u32);

pub(super) fn read_sections(text: &Text<'_>, source: &Source<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut drafts: Vec<(Key, [Option<PhaseRecord>; 4])> = Vec::new();
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    let mut seen: BTreeMap<Key, u32> = BTreeMap::new();
    let mut section: Option<usize> = None;
    let mut in_rows = false;
    let summed = text.lines().any(|line| line.text.contains("Run #2"));
    for line in text.lines() {
        let trimmed = line.text.trim();
        let title = SECTIONS.iter().find(|(title, _)| *title == trimmed);
        if let Some((_, which)) = title {
            (section, in_rows) = (Some(*which), false);
            seen.clear();
        } else if trimmed.starts_with("--------") {
            in_rows = section.is_some();
        } else if trimmed.is_empty() {
            in_rows = false;
        } else if let Some(which) = section.filter(|_| in_rows) {
            let (mut key, phase) = section_row(line, which, source, summed)?;
            let count = seen.entry(key.clone()).or_default();
            key.4 = *count;
            *count += 1;
            let at = *places.entry(key.clone()).or_insert_with(|| {
                drafts.push((key, Default::default()));
                drafts.len() - 1
            });
            drafts[at].1[which] = Some(phase);
        } else if section.is_some() && !is_title(trimmed) {
            return Err(line
                .fault(0, line.quoted())
                .expected("column titles or a row"));
        }
    }
    text.whole_last_line()?;
    for (key, phases) in drafts {
        if let Some(at) = phases.iter().position(Option::is_none) {
            let (title, _) = SECTIONS[COLUMNS.iter().position(|c| *c == at).unwrap_or(0)];
            let fault = text
                .end()
                .expected(format!("a row for {} in '{title}'", key.0));
            return Err(fault);
        }
        harvest
            .drafts
            .push(section_draft(key, phases.into_iter().flatten().collect()));
    }
    if !harvest.drafts.is_empty() {
        remarks(&mut harvest, summed, source);
    }
    Ok(harvest)
}

fn is_title(trimmed: &str) -> bool {
    trimmed.starts_with("====")
        || trimmed.starts_with("Identifier ")
        || trimmed.starts_with("File ")
        || trimmed.starts_with("Run #")
}

fn remarks(harvest: &mut Harvest, summed: bool, source: &Source<'_>) {
    if source.tiotest_random_ops.is_none() {
        harvest.remark_once(
            "tiotest 0.3.5 to 0.4.2 credits random phases with the whole file: their rates are \
             voided; give the number of random operations to have them computed",
        );
    }
    harvest.remark_once(if summed {
        "tiobench.pl sums latencies and shares over its runs: left out"
    } else {
        "tiobench.pl sums latencies and shares over its runs: right only if --numruns was 1"
    });
    harvest.remark_once("tiotest writes zeros: not to be compared on compressing storage");
}

fn section_draft(key: Key, phases: Vec<PhaseRecord>) -> Draft {
    let (identifier, size, block, threads, _) = key;
    let mut draft = Draft::new("tiobench", "tiobench.pl", &identifier);
    draft.factor("file-size", size);
    draft.factor("block-size", block);
    draft.factor("threads", threads);
    draft.phases = phases;
    draft
}

fn section_row(
    line: Line<'_>,
    which: usize,
    source: &Source<'_>,
    summed: bool,
) -> Result<(Key, PhaseRecord), Fault> {
    // The identifier is free text, so values are counted from the end.
    let words: Vec<&str> = line.words().collect();
    let Some(first) = words.len().checked_sub(VALUES).filter(|n| *n > 0) else {
        return Err(line
            .cut(count(words.len(), "value"))
            .expected(format!("an identifier and {VALUES} values")));
    };
    let (identifier, cells) = (words[..first].join(" "), &words[first..]);
    let size = megabytes(line, cells[0])?;
    let block = whole(line, cells[1], "the block size in bytes")?;
    let threads = whole(line, cells[2], "the number of threads")?;
    let random = which % 2 == 1;
    let mut phase = if is_overflow(cells[3]) {
        no_figure(
            PHASES[which],
            Unit::BytesPerSecond,
            FlagKind::ToolDefect,
            "the rate did not fit its column: tiobench.pl printed #####",
        )
    } else {
        bytes_phase(
            PHASES[which],
            number(line, cells[3], "a rate in MB/s")? * MIB as f64,
        )
    };
    if !is_overflow(cells[4]) {
        phase.cpu_percent = Some(percent(line, cells[4])?);
    }
    let mut latency = [None; 4];
    for (value, cell) in latency.iter_mut().zip(&cells[5..9]) {
        *value = (!is_overflow(cell))
            .then(|| number(line, cell, "a latency"))
            .transpose()?;
    }
    if !is_overflow(cells[9]) {
        number(line, cells[9], "CPU Eff")?;
    }
    match latency {
        [Some(a), Some(b), Some(c), Some(d)] if !summed => add_latency(&mut phase, [a, b, c, d]),
        _ => phase.flags.push(Flag::new(
            FlagKind::ToolDefect,
            "the latencies are sums over runs or did not fit their columns: left out",
        )),
    }
    if random && phase.rate.is_some() {
        credit(&mut phase, size as f64, Some(block), source);
    } else if !random {
        phase.bytes = Some(size);
    }
    Ok(((identifier, size, block, threads, 0), phase))
}

fn is_overflow(cell: &str) -> bool {
    cell.starts_with('#')
}
