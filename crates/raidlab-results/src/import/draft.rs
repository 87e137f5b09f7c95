//! What an importer makes of one run, and how runs become records: identifiers, order and rounds.
use super::error::Remark;
use super::{Format, Imported, Source};
use crate::id;
use crate::record::{Cell, Figure, PhaseRecord, Provenance, Status, TrialRecord, Unit};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::phase::SHORTEST_PHASE;
use raidlab_core::words::count;
use std::collections::{BTreeMap, BTreeSet};

/// One run as an importer found it.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) profile: &'static str,
    pub(super) tool: &'static str,
    pub(super) version: Option<String>,
    /// What the output itself says was measured: a machine, a device, a path. May be empty.
    pub(super) label: String,
    pub(super) factors: BTreeMap<String, String>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) phases: Vec<PhaseRecord>,
    pub(super) flags: Vec<Flag>,
    pub(super) started: Option<String>,
    pub(super) elapsed_ns: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) command: Option<String>,
    pub(super) failed: Option<String>,
    /// The run's own text when it is told apart from those around it, so that a run is known again in
    /// a file that has grown.
    pub(super) identity: Option<String>,
    /// Whether that text can be of one run only, because a time stamp or seed is in it. Without, an
    /// equal one in another file can be a repeat.
    pub(super) is_one_run: bool,
}

impl Draft {
    pub(super) fn new(profile: &'static str, tool: &'static str, label: &str) -> Self {
        Self {
            profile,
            tool,
            version: None,
            label: label.to_owned(),
            factors: BTreeMap::new(),
            settings: BTreeMap::new(),
            phases: Vec::new(),
            flags: Vec::new(),
            started: None,
            elapsed_ns: None,
            seed: None,
            command: None,
            failed: None,
            identity: None,
            is_one_run: false,
        }
    }

    /// A setting that cells do not differ by.
    pub(super) fn setting(&mut self, name: &str, value: impl ToString) {
        self.settings.insert(name.to_owned(), value.to_string());
    }

    /// A setting that makes another cell of the run.
    pub(super) fn factor(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        self.settings.insert(name.to_owned(), value.clone());
        self.factors.insert(name.to_owned(), value);
    }
}

/// What an importer returns.
#[derive(Debug, Default)]
pub(super) struct Harvest {
    pub(super) drafts: Vec<Draft>,
    remarks: Vec<Remark>,
    general: Vec<Remark>,
    /// Remarks beyond [`MOST_REMARKS`].
    untold: usize,
}

/// Most remarks about lines that are kept: a log with one result in it has thousands of others.
const MOST_REMARKS: usize = 100;

impl Harvest {
    pub(super) fn remark(&mut self, line: usize, text: impl Into<String>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(Remark::on(line, text));
        } else {
            self.untold += 1;
        }
    }

    /// A remark about a line that is kept however many there are.
    pub(super) fn remark_first(&mut self, line: usize, text: impl Into<String>) {
        self.remarks.insert(0, Remark::on(line, text));
    }

    /// A remark about the whole file, made once however often it is found.
    pub(super) fn remark_once(&mut self, text: impl Into<String>) {
        let remark = Remark::general(text);
        if !self.general.contains(&remark) {
            self.general.push(remark);
        }
    }

    /// Adds what was found apart.
    pub(super) fn absorb(&mut self, other: Self) {
        self.drafts.extend(other.drafts);
        for remark in other.remarks {
            match remark.line {
                Some(line) => self.remark(line, remark.text),
                None => self.remark_once(remark.text),
            }
        }
        self.untold += other.untold;
        for remark in other.general {
            self.remark_once(remark.text);
        }
    }

    /// All remarks: about lines in their order, then about the whole file.
    fn into_remarks(self) -> (Vec<Draft>, Vec<Remark>) {
        let mut remarks = self.remarks;
        remarks.sort_by_key(|remark| remark.line);
        if self.untold > 0 {
            remarks.push(Remark::general(format!(
                "and {} like these",
                count(self.untold, "more line")
            )));
        }
        remarks.extend(self.general);
        (self.drafts, remarks)
    }
}

/// A rate in bytes a second.
pub(super) fn bytes_phase(name: &str, rate: f64) -> PhaseRecord {
    PhaseRecord::bare(name, Some(rate), Unit::BytesPerSecond)
}

/// A phase without a figure, and why.
pub(super) fn no_figure(name: &str, unit: Unit, kind: FlagKind, reason: &str) -> PhaseRecord {
    let mut phase = PhaseRecord::bare(name, None, unit);
    phase.flags.push(Flag::new(kind, reason));
    phase
}

pub(super) fn figure(phase: &mut PhaseRecord, name: &str, value: f64, unit: Unit) {
    phase.figures.push(Figure {
        name: name.to_owned(),
        value,
        unit,
    });
}

/// Seconds in nanoseconds, rounded; saturates (584 years).
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Flags a phase that was over before it could be timed soundly.
pub(super) fn flag_if_short(phase: &mut PhaseRecord, seconds: f64) {
    if nanoseconds(seconds) < SHORTEST_PHASE.0 {
        let reason = format!("the phase took {seconds} s, less than 0.5 s");
        phase.flags.push(Flag::new(FlagKind::TooShort, reason));
    }
}

/// What a cell is called: what the user said, or what the output says, or the file.
fn label(own: &str, source: &Source<'_>, only: bool) -> String {
    let file = std::path::Path::new(source.file);
    match (source.label, own) {
        (Some(given), own) if only || own.is_empty() => given.to_owned(),
        (Some(given), own) => format!("{given}: {own}"),
        (None, "") => match file.file_stem() {
            Some(stem) => stem.to_string_lossy().into_owned(),
            None => source.file.to_owned(),
        },
        (None, own) => own.to_owned(),
    }
}

/// Records of drafts: the n-th run of the same profile and cell is round n.
pub(super) fn finish(
    harvest: Harvest,
    format: Format,
    bytes: &[u8],
    source: &Source<'_>,
) -> Imported {
    let content = id::of_content("raidlab import session", &[format.name().as_bytes(), bytes]);
    let mut rounds: BTreeMap<(&'static str, Cell), u32> = BTreeMap::new();
    let mut twins: BTreeMap<String, u32> = BTreeMap::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut again = 0;
    let (drafts, mut remarks) = harvest.into_remarks();
    let is_one_run = drafts.iter().all(|draft| draft.is_one_run);
    let mut ids = Ids::default();
    let mut trials = Vec::with_capacity(drafts.len());
    let labels: BTreeSet<String> = drafts.iter().map(|d| d.label.clone()).collect();
    for (number, draft) in drafts.into_iter().enumerate() {
        if draft
            .figures_of_one_run()
            .is_some_and(|own| !seen.insert(own))
        {
            again += 1;
            continue;
        }
        let order = trials.len();
        let cell = Cell {
            label: label(&draft.label, source, labels.len() == 1),
            factors: draft.factors.clone(),
        };
        let next = rounds.entry((draft.profile, cell.clone())).or_default();
        let round = *next;
        *next += 1;
        let of_content = match &draft.identity {
            Some(own) => {
                let twin = twins.entry(own.clone()).or_default();
                *twin += 1;
                [own.clone(), twin.to_string()]
            }
            None => [content.clone(), number.to_string()],
        };
        let id = ids.take(&of_content, &draft, &cell.label, source.repeat);
        trials.push(draft.into_trial(id, order, round, cell, source));
    }
    if again > 0 {
        remarks.push(Remark::general(format!(
            "{} equal to one before in everything that is told, to the last digit: the same output \
             saved again, counted once",
            count(again, "run")
        )));
    }
    let session = ids.session(content, &trials);
    for trial in &mut trials {
        trial.session.clone_from(&session);
    }
    Imported {
        format,
        session,
        title: format!("{}: {}", format.tool(), source.file),
        trials,
        remarks,
        contents: ids.contents,
        is_one_run,
    }
}

/// Different figures from which on two runs that are equal in all of them are one: repeats that came out
/// the same in one or two, such as those of dd or hdparm, are to be expected among many.
const TELLING: usize = 4;

impl Draft {
    /// What only the same run again has in one file, however it is laid out: all that was told of it,
    /// when a time stamp or seed is in that or figures enough.
    fn figures_of_one_run(&self) -> Option<String> {
        let figures = self.phases.iter().flat_map(|phase| {
            let others = phase.figures.iter().map(|figure| figure.value);
            others.chain(phase.rate)
        });
        let different: BTreeSet<u64> = figures.map(f64::to_bits).collect();
        let told = Self {
            identity: None,
            ..self.clone()
        };
        (self.is_one_run || different.len() >= TELLING).then(|| format!("{told:?}"))
    }
}

/// How trials are identified: by content and label, and equal files by their number.
#[derive(Default)]
struct Ids {
    /// Made from the content alone.
    contents: Vec<String>,
    /// Whether those are the trials' own.
    are_other: bool,
}

impl Ids {
    /// The id of a trial: its content's where its label is in the content, too, as it was before labels
    /// had a part in it.
    fn take(&mut self, content: &[String], draft: &Draft, label: &str, repeat: u32) -> String {
        let content = id::of_content("raidlab imported trial", content);
        let repeat = if draft.is_one_run { 0 } else { repeat };
        let id = if label == draft.label && repeat == 0 {
            content.clone()
        } else {
            self.are_other = true;
            let parts = [content.as_str(), label, &repeat.to_string()];
            id::of_content("raidlab imported trial of a label", &parts)
        };
        self.contents.push(content);
        id
    }

    /// The id of the session: the content's as long as the trials' are.
    fn session(&self, content: String, trials: &[TrialRecord]) -> String {
        if !self.are_other {
            return content;
        }
        let mut parts = vec![content.as_str()];
        parts.extend(trials.iter().map(|trial| trial.id.as_str()));
        id::of_content("raidlab import session of a label", &parts)
    }
}

impl Draft {
    /// The record of the run, in no session yet.
    fn into_trial(
        self,
        id: String,
        order: usize,
        round: u32,
        cell: Cell,
        source: &Source<'_>,
    ) -> TrialRecord {
        TrialRecord {
            id,
            session: String::new(),
            order: u32::try_from(order).unwrap_or(u32::MAX),
            round,
            cell,
            cell_digest: None,
            profile: self.profile.to_owned(),
            settings: self.settings,
            provenance: Provenance::Imported {
                tool: self.tool.to_owned(),
                tool_version: self.version,
                file: source.file.to_owned(),
            },
            started: self.started,
            elapsed_ns: self.elapsed_ns,
            seed: self.seed,
            digest: None,
            environment: None,
            command: self.command,
            phases: self.phases,
            checks: Vec::new(),
            status: match self.failed {
                None => Status::Complete,
                Some(reason) => Status::Failed { reason },
            },
            flags: self.flags,
        }
    }
}
