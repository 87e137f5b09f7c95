//! Charts as data.
use serde::{Deserialize, Serialize};

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "chart", rename_all = "kebab-case")]
pub enum Chart {
    /// Bars with error bars.
    Bars(BarChart),
    /// Lines with error bars.
    Lines(LineChart),
    /// Cumulative curves of response times.
    Distribution(DistributionChart),
}

impl Chart {
    /// Unique in the document; the name of the image.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Bars(chart) => &chart.id,
            Self::Lines(chart) => &chart.id,
            Self::Distribution(chart) => &chart.id,
        }
    }

    /// What is shown.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Bars(chart) => &chart.title,
            Self::Lines(chart) => &chart.title,
            Self::Distribution(chart) => &chart.title,
        }
    }

    /// For those who cannot see it, and under it for those who can.
    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::Bars(chart) => &chart.description,
            Self::Lines(chart) => &chart.description,
            Self::Distribution(chart) => &chart.description,
        }
    }
}

/// Horizontal bars from zero: one group a cell, one bar a series in each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarChart {
    /// Unique in the document.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// In words.
    pub description: String,
    /// The value axis with its unit.
    pub axis: String,
    /// What the error bars are, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<String>,
    /// Names of the series (phases).
    pub series: Vec<String>,
    /// The groups (cells).
    pub groups: Vec<BarGroup>,
}

/// How many times the least bar the greatest may be, so that both can be read as lengths from zero. Assumed: a bar of a fiftieth is
/// still seen.
const FAR: f64 = 50.0;

impl BarChart {
    /// The powers of ten that all figures and their error bars lie between, where lengths from zero would hide the small ones;
    /// `None` where bars do.
    #[must_use]
    pub fn decades(&self) -> Option<(i32, i32)> {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let values = || bars().filter_map(|bar| bar.value);
        let (least, greatest) = ends(values())?;
        if greatest <= FAR * least {
            return None;
        }
        let intervals = bars().filter_map(|bar| bar.interval);
        let (least, greatest) = ends(values().chain(intervals.flat_map(|(lo, hi)| [lo, hi])))?;
        Some((least.log10().floor() as i32, greatest.log10().ceil() as i32))
    }
}

/// The least and the greatest of those above zero.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let above = values.filter(|value| *value > 0.0);
    above
        .map(|value| (value, value))
        .reduce(|(least, greatest), (value, _)| (least.min(value), greatest.max(value)))
}

/// How far along an axis between two powers of ten a value is, 0 to 1; what is below is at its beginning.
#[must_use]
pub fn along_decades(value: f64, (low, high): (i32, i32)) -> f64 {
    let decades = f64::from((high - low).max(1));
    ((value.log10() - f64::from(low)) / decades).clamp(0.0, 1.0)
}

/// The bars of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarGroup {
    /// Name of the cell.
    pub label: String,
    /// One a series.
    pub bars: Vec<Bar>,
}

impl BarGroup {
    /// Why there is no bar at all, when that is the same for all.
    #[must_use]
    pub fn common_note(&self) -> Option<&str> {
        let (first, rest) = self.bars.split_first()?;
        let note = first.note.as_deref().filter(|_| first.value.is_none())?;
        let same = |bar: &Bar| bar.value.is_none() && bar.note.as_deref() == Some(note);
        rest.iter().all(same).then_some(note)
    }
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its length; `None` when there is no figure.
    pub value: Option<f64>,
    /// Ends of the error bar.
    pub interval: Option<(f64, f64)>,
    /// Why there is no figure.
    pub note: Option<String>,
}

/// Lines over a common axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineChart {
    /// Unique in the document.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// In words.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// One a line.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// With the unit.
    pub label: String,
    /// How values are placed.
    pub scale: Scale,
}

/// How values are placed on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// From zero.
    Linear,
    /// Powers of two; sizes in bytes.
    Log2,
    /// Powers of two; numbers of something, such as of requests in flight.
    Log2Count,
    /// Named places 0, 1, 2 …
    Named(Vec<String>),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points by ascending x.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Ends of the error bar.
    pub interval: Option<(f64, f64)>,
}

/// Empirical cumulative curves of response times, exact as far as histograms are: within 1 % of each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionChart {
    /// Unique in the document.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// In words.
    pub description: String,
    /// One a cell or phase.
    pub curves: Vec<Curve>,
}

/// The response times of all valid runs of a phase together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Operations that were timed.
    pub operations: u64,
    /// One for each filled bucket of the histogram, by ascending time; after the last none is slower.
    pub steps: Vec<Step>,
    /// How far the runs are apart; empty of a single run.
    pub spread: Vec<Spread>,
}

impl Curve {
    /// The share of operations that took no longer than a step's time. The longest one counts as slower than itself, so that
    /// the share stays below 1: of ten thousand it is the 99.99th per cent.
    #[must_use]
    pub fn share(&self, step: &Step) -> f64 {
        1.0 - step.slower.max(1) as f64 / self.operations.max(1) as f64
    }

    /// The time that a share of the operations did not exceed; 0 of no operations.
    #[must_use]
    pub fn seconds_at(&self, share: f64) -> f64 {
        let reached = self.steps.iter().find(|step| self.share(step) >= share);
        reached
            .or(self.steps.last())
            .map_or(0.0, |step| step.seconds)
    }
}

/// A step of a cumulative curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The upper end of a bucket, or the longest time.
    pub seconds: f64,
    /// Operations that took longer.
    pub slower: u64,
}

/// The runs at one share of their operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Share of the operations that took no longer.
    pub share: f64,
    /// Seconds of the fastest run.
    pub least: f64,
    /// Seconds of the slowest run.
    pub greatest: f64,
}
