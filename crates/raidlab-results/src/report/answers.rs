//! What a report comes to, for programs: the figure of each cell, the best of each phase, and which cells others beat.
//! Made by what makes the tables, so that both say the same. `docs/schema/answers-v1.md` describes it.
mod course;

pub use course::{CourseAnswer, CourseKind, LevelAnswer};

use super::analysis::{Judging, Outcome, summarise};
use super::blocks::{fastest, tails, worth};
use super::experiment::{ArrayFacts, ExperimentRequest, judging_of};
use super::group::{self, Group, phases, provenance_kind};
use super::percentile::Percentile;
use super::select::Baseline;
use super::{ReportError, ReportRequest, by_profile, check_baseline};
use crate::record::{Better, Unit};
use raidlab_core::flag::FlagKind;
use raidlab_stats::Verdict;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the answers' form.
pub const ANSWERS_VERSION: u32 = 1;

/// The answers of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answers {
    /// `raidlab-answers`.
    pub format: &'static str,
    /// [`ANSWERS_VERSION`].
    pub version: u32,
    /// The report's title.
    pub title: String,
    /// Share within which figures are equivalent.
    pub margin: f64,
    /// Confidence that is asked of the intervals, a share: those of ratios have it, those of figures their own.
    pub confidence: f64,
    /// Every cell of every profile.
    pub cells: Vec<CellAnswer>,
    /// The best cell of each phase, where there is something to choose from.
    pub best: Vec<BestAnswer>,
    /// Of an experiment whose arrays are rivals: which cells others beat.
    pub worth: Vec<WorthAnswer>,
    /// Response times of each cell against its baseline: of each phase that was timed on both sides, each percentile.
    pub response_times: Vec<TailAnswer>,
    /// Phases whose rate changed within runs: their figure is a mean of different paces.
    pub courses: Vec<CourseAnswer>,
}

/// A cell with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellAnswer {
    /// What was run.
    pub profile: String,
    /// Its label.
    pub cell: String,
    /// Where its figures come from: `simulated`, `measured`, `measured in a VM`, a tool.
    pub source: String,
    /// Factors with their levels, sizes in bytes.
    pub factors: BTreeMap<String, String>,
    /// Trials that there are, valid or not.
    pub trials: usize,
    /// The array, where an experiment tells of it.
    pub array: Option<ArrayAnswer>,
    /// By phase; phases without a figure are not among them.
    pub figures: BTreeMap<String, FigureAnswer>,
}

/// What an array costs, holds and survives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayAnswer {
    /// Disks.
    pub disks: usize,
    /// Its price and the currency, where it is known.
    pub price: Option<f64>,
    /// Letters of the currency.
    pub currency: Option<String>,
    /// Usable bytes, where they are known.
    pub capacity_bytes: Option<u64>,
    /// Failures that are survived whichever they are.
    pub survives: usize,
}

/// A figure over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureAnswer {
    /// In `unit`.
    pub value: f64,
    /// Lower end of its interval; none of a single trial.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What confidence the interval has: that of two to four trials goes from the least to the greatest of them, which holds
    /// the median less often than is asked for.
    pub confidence: Option<f64>,
    /// Of value, low and high.
    pub unit: Unit,
    /// `higher` or `lower` is better.
    pub better: &'static str,
    /// Valid trials it is made of.
    pub trials: usize,
    /// Kinds of doubt about some of them.
    pub flags: BTreeSet<FlagKind>,
}

/// How a phase came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestAnswer {
    /// What was run.
    pub profile: String,
    /// The phase.
    pub phase: String,
    /// What the cells have in common where there are others: their source, the state of their arrays, what they do.
    pub among: Vec<String>,
    /// Whether it was decided.
    pub verdict: BestVerdict,
    /// The cell with the best figure, decided or not.
    pub cell: String,
    /// Its figure, in `unit`.
    pub value: f64,
    /// Of `value`.
    pub unit: Unit,
    /// Cells that it is not for certain better than by more than the margin, the best first.
    pub not_told_apart: Vec<String>,
    /// Cells that it is not compared with: they decide nothing.
    pub not_compared: Vec<NotCompared>,
    /// The best of those that it is better than.
    pub next: Option<NextAnswer>,
}

/// Whether there is a best cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BestVerdict {
    /// Some are surely worse than the best one.
    Decided,
    /// All that have a figure are shown to be equivalent.
    NoDifference,
    /// Too few trials, or too far spread, or nothing that it can be compared with.
    CannotBeTold,
}

/// A cell that the best one is not compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotCompared {
    /// Its label.
    pub cell: String,
    /// Why there is no ratio: different streams, no valid run.
    pub why: String,
}

/// The next one, with the best one's figure over its.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextAnswer {
    /// Its label.
    pub cell: String,
    /// The best one's figure over this one's: below 1 where lower is better.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Whether another cell beats one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorthAnswer {
    /// What was run.
    pub profile: String,
    /// The cell.
    pub cell: String,
    /// One that costs no more, holds and survives no less, is slower in no phase that decides, and better in something;
    /// none: it is worth a look.
    pub beaten_by: Option<String>,
    /// What that one is better in, the most first.
    pub better_in: Vec<String>,
}

/// A percentile of a cell's response times against its baseline's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TailAnswer {
    /// What was run.
    pub profile: String,
    /// The phase.
    pub phase: String,
    /// The cell.
    pub cell: String,
    /// Its baseline.
    pub baseline: String,
    /// Which percentile.
    pub percentile: Percentile,
    /// Whether it is better, worse or none of that; [`TailVerdict::NotJudged`] where the runs do not permit one.
    pub verdict: TailVerdict,
    /// The cell's over the baseline's: below 1 is faster.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The reason in a sentence.
    pub why: String,
}

/// How a percentile compares with its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TailVerdict {
    /// Surely faster by more than the margin.
    Better,
    /// Surely slower by more than the margin.
    Worse,
    /// Surely within the margin.
    Equivalent,
    /// Surely different, but perhaps by less than the margin.
    DifferentButSmall,
    /// Too few runs, or too far spread.
    Inconclusive,
    /// There is no ratio.
    NotJudged,
}

/// The answers of any set of trials.
///
/// # Errors
/// As [`report`](super::report()).
pub fn answers(request: &ReportRequest) -> Result<Answers, ReportError> {
    let judging = request.judging()?;
    of(request, &judging, &[])
}

/// The answers of an experiment.
///
/// # Errors
/// As [`experiment_report`](super::experiment_report).
pub fn experiment_answers(request: &ExperimentRequest) -> Result<Answers, ReportError> {
    of(&request.base, &judging_of(request)?, &request.arrays)
}

fn of(
    request: &ReportRequest,
    judging: &Judging,
    arrays: &[ArrayFacts],
) -> Result<Answers, ReportError> {
    if request.trials.is_empty() {
        return Err(ReportError::NoTrials);
    }
    let mut answers = Answers {
        format: "raidlab-answers",
        version: ANSWERS_VERSION,
        title: request.title.clone(),
        margin: judging.margin,
        confidence: judging.confidence.level(),
        cells: Vec::new(),
        best: Vec::new(),
        worth: Vec::new(),
        response_times: Vec::new(),
        courses: Vec::new(),
    };
    let groups = group::group(&request.trials);
    check_baseline(request.baseline.as_ref(), &groups)?;
    for groups in by_profile(&groups) {
        let profile = groups[0].profile;
        let cells = groups.iter().map(|group| cell(group, arrays, judging));
        answers.cells.extend(cells);
        answers.best.extend(best(profile, &groups, arrays, judging));
        let beaten = worth::who_beats(&groups, arrays, judging).into_iter();
        answers.worth.extend(beaten.map(|told| WorthAnswer {
            profile: profile.to_owned(),
            cell: told.cell,
            beaten_by: told.by,
            better_in: told.reasons,
        }));
        answers.courses.extend(course::courses(profile, &groups));
        if let Some(baseline) = &request.baseline {
            let tails = response_times(profile, baseline, &groups, judging);
            answers.response_times.extend(tails);
        }
    }
    Ok(answers)
}

fn cell(group: &Group<'_>, arrays: &[ArrayFacts], judging: &Judging) -> CellAnswer {
    let mut of_cell = arrays.iter();
    let facts = of_cell.find(|facts| facts.cells.contains(&group.cell.label));
    let phases = phases(std::slice::from_ref(group));
    let figure = |phase: &str| Some((phase.to_owned(), figure(group, phase, judging)?));
    CellAnswer {
        profile: group.profile.to_owned(),
        cell: group.label.clone(),
        source: provenance_kind(group.provenance),
        factors: group.cell.factors.clone(),
        trials: group.trials.len(),
        array: facts.map(|facts| ArrayAnswer {
            disks: facts.disks,
            price: facts.price.map(|price| price.amount()),
            currency: facts.price.map(|price| price.currency().to_owned()),
            capacity_bytes: facts.capacity,
            survives: facts.survives,
        }),
        figures: phases.into_iter().filter_map(figure).collect(),
    }
}

fn figure(group: &Group<'_>, phase: &str, judging: &Judging) -> Option<FigureAnswer> {
    let summary = summarise(group, phase, judging)?;
    let unit = group.unit(phase)?;
    let interval = summary.headline.interval;
    let remarks = group.remarks(phase).into_iter();
    Some(FigureAnswer {
        value: summary.headline.value,
        low: interval.map(|interval| interval.lo),
        high: interval.map(|interval| interval.hi),
        confidence: interval.map(|interval| interval.confidence),
        unit,
        better: match unit.better() {
            Better::Higher => "higher",
            Better::Lower => "lower",
        },
        trials: summary.n,
        flags: remarks.map(|(kind, _)| kind).collect(),
    })
}

fn best(
    profile: &str,
    groups: &[Group<'_>],
    arrays: &[ArrayFacts],
    judging: &Judging,
) -> Vec<BestAnswer> {
    let mut all = Vec::new();
    for rivals in fastest::rivals(groups, arrays) {
        let part = &rivals.groups;
        let among = rivals.among.iter().chain(&rivals.load);
        for phase in phases(part) {
            let Some(contest) = fastest::contest(part, phase, judging) else {
                continue;
            };
            let label = |place: usize| part[place].label.clone();
            all.push(BestAnswer {
                profile: profile.to_owned(),
                phase: phase.to_owned(),
                among: among.clone().cloned().collect(),
                verdict: contest.verdict(),
                cell: label(contest.winner),
                value: contest.figure,
                unit: contest.unit,
                not_told_apart: contest.alike.iter().map(|place| label(*place)).collect(),
                not_compared: contest
                    .apart
                    .iter()
                    .map(|(place, why)| NotCompared {
                        cell: label(*place),
                        why: why.clone(),
                    })
                    .collect(),
                next: contest.next.as_ref().map(|(place, ahead)| NextAnswer {
                    cell: label(*place),
                    ratio: ahead.ratio.value,
                    low: ahead.ratio.interval.map(|interval| interval.lo),
                    high: ahead.ratio.interval.map(|interval| interval.hi),
                }),
            });
        }
    }
    all
}

fn response_times(
    profile: &str,
    baseline: &Baseline,
    groups: &[Group<'_>],
    judging: &Judging,
) -> Vec<TailAnswer> {
    let mut all = Vec::new();
    for line in tails::judged(baseline, groups, judging) {
        for (percentile, outcome) in Percentile::ALL.into_iter().zip(&line.outcomes) {
            let compared = match outcome {
                Outcome::Ratio(compared) => Some(compared),
                _ => None,
            };
            let interval = compared.and_then(|compared| compared.ratio.interval);
            all.push(TailAnswer {
                profile: profile.to_owned(),
                phase: line.phase.to_owned(),
                cell: groups[line.group].label.clone(),
                baseline: groups[line.base].label.clone(),
                percentile,
                verdict: TailVerdict::of(outcome),
                ratio: compared.map(|compared| compared.ratio.value),
                low: interval.map(|interval| interval.lo),
                high: interval.map(|interval| interval.hi),
                why: match outcome {
                    Outcome::Ratio(compared) => compared.why.clone(),
                    other => other.why_none().to_owned(),
                },
            });
        }
    }
    all
}

impl TailVerdict {
    fn of(outcome: &Outcome) -> Self {
        let Outcome::Ratio(compared) = outcome else {
            return Self::NotJudged;
        };
        match compared.verdict {
            Verdict::Better => Self::Better,
            Verdict::Worse => Self::Worse,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::DifferentButSmall => Self::DifferentButSmall,
            Verdict::Inconclusive { .. } => Self::Inconclusive,
        }
    }
}
