//! An experiment with all defaults filled: what is stored, expanded and run.
use crate::hardware::{Bus, Controller, Disk};
use crate::prices::Prices;
use crate::setup::Setup;
use crate::words::words;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Version of the stored form. A change of meaning is a new one.
pub const EXPERIMENT_VERSION: u32 = 1;

/// An experiment with all defaults filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Experiment {
    /// [`EXPERIMENT_VERSION`].
    pub experiment_version: u32,
    /// Its title.
    pub title: String,
    /// What is to be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Repeats, order, and how trials are joined and judged.
    pub design: Design,
    /// What is to be shown.
    pub report: Report,
    /// Published figures to show beside the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// What is varied, in the order of the file.
    pub factors: Vec<Factor>,
    /// Combinations of levels that the file left out.
    pub excluded: u64,
    /// The disks, in the order of the file.
    pub disks: Vec<Disk>,
    /// The buses.
    pub buses: Vec<Bus>,
    /// The controllers.
    pub controllers: Vec<Controller>,
    /// What disks and controllers cost.
    #[serde(default, skip_serializing_if = "Prices::is_empty")]
    pub prices: Prices,
    /// The combinations, the first factor varying slowest.
    pub cells: Vec<Cell>,
}

/// One thing that is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels, as labels.
    pub levels: Vec<String>,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cell {
    /// What reports call it; unique.
    pub label: String,
    /// The level of each factor, and of each setting that a named level varies.
    pub levels: BTreeMap<String, String>,
    /// All that makes it.
    pub setup: Setup,
}

impl Cell {
    /// The factors by the names that stored trials and published studies have: `level`, `disks`,
    /// `engine`, `channels`, `capacity-disks` always; sizes in bytes; and all that is varied.
    #[must_use]
    pub fn factors(&self) -> BTreeMap<String, String> {
        let array = &self.setup.array;
        let mut factors = self.levels.clone();
        let sizes = [
            ("chunk", array.chunk),
            ("record-size", array.record_size),
            ("bitmap-chunk", array.bitmap_chunk),
            ("member-size", array.member_size),
            ("member-start", array.member_start),
            ("read-ahead", self.setup.host.read_ahead),
            ("memory", Some(self.setup.host.memory)),
        ];
        for (name, size) in sizes {
            if let (Some(shown), Some(size)) = (factors.get_mut(name), size) {
                *shown = size.0.to_string();
            }
        }
        for name in ["call-size", "file-size"] {
            if let Some(text) = factors.remove(name) {
                let bytes = text.parse::<raidlab_core::units::Bytes>();
                let text = bytes.map_or(text, |b| b.0.to_string());
                factors.insert(stored_name(name).to_owned(), text);
            }
        }
        let always = [
            ("level", array.layout.level()),
            ("disks", array.members.len().to_string()),
            ("engine", array.engine.to_string()),
            ("channels", array.channels.clone()),
            ("capacity-disks", array.capacity_disks.clone()),
        ];
        factors.extend(always.map(|(name, value)| (name.to_owned(), value)));
        factors
    }

    fn setup_json(&self) -> String {
        serde_json::to_string(&self.setup).unwrap_or_default()
    }
}

words! {
    /// In which order the trials of a round run.
    Order: "order" {
        /// Each round a permutation of the cells, so that drift favours none.
        Randomised = "randomised",
        /// Each round as the file has the cells.
        Declared = "declared",
    }
}

words! {
    /// How the trials of a cell become one figure.
    Aggregate: "aggregation" {
        /// The mean.
        Mean = "mean",
        /// The median.
        Median = "median",
        /// The mean without the best and the worst.
        Trimmed = "trimmed",
    }
}

/// Repeats, order, and how trials are joined and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Design {
    /// Trials of each cell.
    pub repeats: u32,
    /// Order of the trials of a round.
    pub order: Order,
    /// How the trials of a cell become one figure.
    pub aggregate: Aggregate,
    /// Trials dropped at each end by [`Aggregate::Trimmed`], else 0.
    pub trim: u32,
    /// Differences within this share are equivalent.
    pub margin: f64,
    /// Of orders, operations and models. At most 2^63 - 1.
    pub seed: u64,
    /// Whether real arrays are checked after the phases of each trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
    /// What the cells are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// What the cells are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// One cell, by its label.
    Cell(String),
    /// Each cell with the one that has these levels and is else the same, by names as
    /// [`Cell::levels`] has them.
    Levels(BTreeMap<String, String>),
}

words! {
    /// A table of the report.
    TableKind: "table" {
        /// The tool's own columns, one row a cell.
        Figures = "figures",
        /// Each cell as a ratio to its baseline, with verdicts.
        Ratios = "ratios",
        /// Trials joined to one figure with its interval.
        Aggregate = "aggregate",
        /// Latency percentiles.
        Distribution = "distribution",
        /// Ratios, cost and capacity in disks, champions.
        Capacity = "capacity",
        /// Which cells another one beats in everything, and what each gives for its price.
        Worth = "worth",
        /// Which failures are survived.
        Survival = "survival",
        /// What limited each cell: the busiest resource.
        Limits = "limits",
        /// Results beside published figures, with errors.
        Published = "published",
        /// Time and rate of resync and rebuild.
        Rebuild = "rebuild",
        /// Machine and settings.
        Environment = "environment",
    }
}

words! {
    /// A chart of the report.
    ChartKind: "chart" {
        /// A bar a cell.
        Bars = "bars",
        /// A line a level, against a factor.
        Lines = "lines",
        /// Cumulative curves of response times.
        Distribution = "distribution",
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Chart {
    /// What it is.
    pub kind: ChartKind,
    /// Its title; made from the rest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The factor along the horizontal axis, of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The phase shown; every phase has a chart of its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// The factor whose levels are the lines or the colours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// The factor that has a chart for each of its levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
}

/// What is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Report {
    /// Tables, in order.
    pub tables: Vec<TableKind>,
    /// Charts, in order.
    pub charts: Vec<Chart>,
}

/// Published figures to show beside the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Expected {
    /// The study.
    pub study: String,
    /// Label of the cell by name of the study's row.
    pub rows: BTreeMap<String, String>,
}

/// A stored form that cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Not written: a number beyond what the format has.
    #[error("the experiment cannot be stored: {0}")]
    Write(String),
    /// Not read.
    #[error("the stored experiment cannot be read: {0}")]
    Read(String),
    /// Of another version.
    #[error(
        "the stored experiment has version {found} and this program reads version {EXPERIMENT_VERSION}: use the raidlab that wrote it"
    )]
    Version {
        /// The version found.
        found: u32,
    },
}

impl Experiment {
    /// As JSON, on one line.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn to_json(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|e| StoreError::Write(e.to_string()))
    }

    /// From [`Self::to_json`].
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Version`].
    pub fn from_json(text: &str) -> Result<Self, StoreError> {
        let read: Self = serde_json::from_str(text).map_err(|e| StoreError::Read(e.to_string()))?;
        read.of_this_version()
    }

    /// As TOML.
    ///
    /// # Errors
    /// [`StoreError::Write`] when a number is above 2^63 - 1.
    pub fn to_toml(&self) -> Result<String, StoreError> {
        toml::to_string(self).map_err(|e| StoreError::Write(e.to_string()))
    }

    /// From [`Self::to_toml`].
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Version`].
    pub fn from_toml(text: &str) -> Result<Self, StoreError> {
        let read: Self = toml::from_str(text).map_err(|e| StoreError::Read(e.to_string()))?;
        read.of_this_version()
    }

    fn of_this_version(self) -> Result<Self, StoreError> {
        match self.experiment_version {
            EXPERIMENT_VERSION => Ok(self),
            found => Err(StoreError::Version { found }),
        }
    }

    /// SHA-256 of the stored form, as 64 hexadecimal digits.
    ///
    /// # Errors
    /// As [`Self::to_json`].
    pub fn digest(&self) -> Result<String, StoreError> {
        Ok(hex(&self.to_json()?))
    }

    /// SHA-256 of what a cell does and on what, whatever it and the factors are called: trials of it
    /// can be found again after words of the file, the design or other cells have changed.
    #[must_use]
    pub fn cell_digest(&self, cell: &Cell) -> String {
        let hardware = (&self.disks, &self.buses, &self.controllers);
        let hardware = serde_json::to_string(&hardware).unwrap_or_default();
        hex(&format!(
            "{EXPERIMENT_VERSION}\n{hardware}\n{}",
            cell.setup_json()
        ))
    }

    /// The baseline in terms of [`Cell::factors`], for choosing each cell's fellow among stored trials:
    /// the levels that it names, and whatever follows from them in all cells that have them. `None`
    /// without a baseline, or when it is one cell by its label.
    #[must_use]
    pub fn baseline_factors(&self) -> Option<BTreeMap<String, String>> {
        let Some(Baseline::Levels(levels)) = &self.design.baseline else {
            return None;
        };
        let has = |cell: &&Cell| levels.iter().all(|(k, v)| cell.levels.get(k) == Some(v));
        let all: Vec<_> = self.cells.iter().filter(has).map(Cell::factors).collect();
        let mut factors = all.first()?.clone();
        let named = |name: &str| levels.keys().any(|k| stored_name(k) == name);
        let varied = |name: &str| self.factors.iter().any(|f| stored_name(&f.name) == name);
        factors.retain(|name, value| {
            let same = || all.iter().all(|f| f.get(name) == Some(value));
            named(name) || (!varied(name) && same())
        });
        Some(factors)
    }

    /// The disk of that name.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

/// What stored trials call a factor.
fn stored_name(name: &str) -> &str {
    match name {
        "call-size" => "block-size",
        other => other,
    }
}

fn hex(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cell(label) => f.write_str(label),
            Self::Levels(levels) => {
                let all: Vec<_> = levels.iter().map(|(k, v)| format!("{k} = {v}")).collect();
                f.write_str(&all.join(", "))
            }
        }
    }
}
