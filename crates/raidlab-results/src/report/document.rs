//! A report as blocks with typed cells: what the four renderers and `--json` are made from.
mod chart;

pub use chart::{
    Axis, Bar, BarChart, BarGroup, Chart, Curve, DistributionChart, LineChart, Point, Scale,
    Series, Spread, Step, along_decades,
};

use super::format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Version of the JSON form of a document.
pub const DOCUMENT_VERSION: u32 = 1;

/// A whole report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`DOCUMENT_VERSION`].
    pub document_version: u32,
    /// Its title.
    pub title: String,
    /// Its parts in order.
    pub blocks: Vec<Block>,
}

impl Document {
    /// A document without blocks.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            document_version: DOCUMENT_VERSION,
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Makes the ids of tables and charts what they promise to be: letters, digits and dashes, each
    /// once. They are made from names of profiles and phases, which may be another tool's words.
    pub(crate) fn settle_ids(&mut self) {
        let mut known = BTreeSet::new();
        for block in &mut self.blocks {
            let id = match block {
                Block::Table(table) => &mut table.id,
                Block::Chart(Chart::Bars(chart)) => &mut chart.id,
                Block::Chart(Chart::Lines(chart)) => &mut chart.id,
                Block::Chart(Chart::Distribution(chart)) => &mut chart.id,
                _ => continue,
            };
            let wanted = format::slug(id);
            *id = wanted.clone();
            for number in 2.. {
                if known.insert(id.clone()) {
                    break;
                }
                *id = format!("{wanted}-{number}");
            }
        }
    }

    /// The charts in order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    }

    /// The tables in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }
}

/// One part of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "block", rename_all = "kebab-case")]
pub enum Block {
    /// A section begins.
    Heading {
        /// Its title.
        text: String,
    },
    /// Running text.
    Paragraph {
        /// The text.
        text: String,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<String>,
    },
    /// Something the reader must not overlook.
    Warning {
        /// The text.
        text: String,
    },
    /// Command lines.
    Commands {
        /// One a line.
        lines: Vec<String>,
    },
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
}

impl Block {
    /// A heading.
    pub fn heading(text: impl Into<String>) -> Self {
        Self::Heading { text: text.into() }
    }

    /// A paragraph.
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph { text: text.into() }
    }

    /// A warning.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::Warning { text: text.into() }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Unique in the document: letters, digits and dashes.
    pub id: String,
    /// What it shows, with units that the columns do not name.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// How many of them, from the left, name the row.
    pub names: usize,
    /// The rows, as many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Numbered from 1; cells refer to them.
    pub footnotes: Vec<String>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(id: impl Into<String>, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id: id.into(),
            caption: caption.into(),
            columns,
            names: 1,
            rows: Vec::new(),
            footnotes: Vec::new(),
        }
    }

    /// The same with the first columns naming the row.
    #[must_use]
    pub fn named_by(mut self, names: usize) -> Self {
        self.names = names;
        self
    }

    /// The number of a footnote, which is added when it is new.
    pub fn footnote(&mut self, text: &str) -> u32 {
        let place = self.footnotes.iter().position(|known| known == text);
        let index = place.unwrap_or_else(|| {
            self.footnotes.push(text.to_owned());
            self.footnotes.len() - 1
        });
        index as u32 + 1
    }

    /// The same table with its footnotes numbered in the order in which a reader meets them, who reads the
    /// cells at these places (row, column).
    pub(crate) fn read_in(&self, places: impl Iterator<Item = (usize, usize)>) -> Self {
        let all = 1..=self.footnotes.len() as u32;
        let met = places.flat_map(|(row, column)| self.rows[row][column].marks.iter().copied());
        let mut order: Vec<u32> = Vec::new();
        for mark in met.chain(all.clone()) {
            // A mark without a note stays what it is.
            if all.contains(&mark) && !order.contains(&mark) {
                order.push(mark);
            }
        }
        let number = |mark: &u32| {
            let place = order.iter().position(|old| old == mark);
            place.map_or(*mark, |place| place as u32 + 1)
        };
        let mut table = self.clone();
        let notes = order
            .iter()
            .map(|old| self.footnotes[*old as usize - 1].clone());
        table.footnotes = notes.collect();
        for cell in table.rows.iter_mut().flatten() {
            cell.marks = cell.marks.iter().map(number).collect();
            cell.marks.sort_unstable();
        }
        table
    }

    /// [`read_in`](Self::read_in) row by row.
    pub(crate) fn read_by_rows(&self) -> Self {
        let columns = self.columns.len();
        self.read_in(
            (0..self.rows.len()).flat_map(|row| (0..columns).map(move |column| (row, column))),
        )
    }

    /// Leaves out the columns (those that name the row excepted) that no row has anything in.
    pub fn drop_empty_columns(&mut self) {
        let keep: Vec<bool> = (0..self.columns.len())
            .map(|i| i < self.names || self.rows.iter().any(|row| row[i].value != Value::Absent))
            .collect();
        let mut kept = keep.iter();
        self.columns.retain(|_| *kept.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().unwrap_or(&true));
        }
    }
}

/// A column's heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Heading over several neighbours (`Per Chr` over `K/sec` and `%CP`).
    pub group: Option<String>,
    /// Its own heading, with the unit.
    pub title: String,
    /// Numbers are set to the right.
    pub right: bool,
}

impl Column {
    /// Of words.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            group: None,
            title: title.into(),
            right: false,
        }
    }

    /// Of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            group: None,
            title: title.into(),
            right: true,
        }
    }

    /// The same under a common heading.
    #[must_use]
    pub fn under(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }
}

/// How a cell is set off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// Best of its column, or the name of the baseline.
    Strong,
    /// A change for the better.
    Good,
    /// A change for the worse.
    Bad,
    /// Nothing was measured or can be said.
    Muted,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What stands in it.
    pub value: Value,
    /// Numbers of footnotes.
    pub marks: Vec<u32>,
    /// How it is set off.
    pub tone: Tone,
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Value {
    /// Not measured, or does not apply.
    Absent,
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A number.
    Number {
        /// In the unit of the column.
        value: f64,
        /// Digits after the point.
        decimals: usize,
    },
    /// An interval.
    Interval {
        /// Lower end in the unit of the column.
        lo: f64,
        /// Upper end.
        hi: f64,
        /// Digits after the point.
        decimals: usize,
    },
    /// A ratio to the baseline, to two decimals.
    Ratio {
        /// The ratio.
        value: f64,
        /// Its interval, when there is one.
        interval: Option<(f64, f64)>,
        /// More digits after the point, where two do not bear out the verdict.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digits: Option<usize>,
    },
    /// Measured, but the figure is not given.
    Withheld,
    /// Over before the tool could time it (bonnie++'s `+++++`).
    TooFast,
    /// All runs were kept out of the aggregate.
    Invalid,
}

impl Value {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Text { text } => text.clone(),
            Self::Number { value, decimals } => format::number(*value, *decimals),
            Self::Interval { lo, hi, decimals } => format::interval(*lo, *hi, *decimals),
            Self::Ratio {
                value,
                interval,
                digits,
            } => match format::ratio_parts(*value, *interval, *digits) {
                (ratio, Some(interval)) => format!("{ratio} {interval}"),
                (ratio, None) => ratio,
            },
            Self::Withheld => "withheld".to_owned(),
            Self::TooFast => "too fast".to_owned(),
            Self::Invalid => "invalid".to_owned(),
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        let tone = match value {
            Value::Withheld | Value::TooFast | Value::Invalid => Tone::Muted,
            _ => Tone::Plain,
        };
        Self {
            value,
            marks: Vec::new(),
            tone,
        }
    }
}

impl Cell {
    /// Nothing.
    #[must_use]
    pub fn absent() -> Self {
        Value::Absent.into()
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text { text: text.into() }.into()
    }

    /// A number with so many digits after the point.
    #[must_use]
    pub fn number(value: f64, decimals: usize) -> Self {
        Value::Number { value, decimals }.into()
    }

    /// The same, set off.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// The same with a reference to a footnote.
    #[must_use]
    pub fn mark(mut self, footnote: u32) -> Self {
        if !self.marks.contains(&footnote) {
            self.marks.push(footnote);
            self.marks.sort_unstable();
        }
        self
    }
}
