//! From the rows of a study's file to [`Row`]s: factors, and figures by phase.
use super::tree::{Node, ProblemKind, Reader};
use super::{Published, PublishedFigure, Row};
use crate::record::Unit;
use raidlab_core::units::KIB;
use raidlab_core::words::count;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeValue;

/// Row key, phase and unit of bonnie++'s columns. Its K is 1024 bytes.
const BONNIE: [(&str, &str, Unit); 12] = [
    ("putc", "putc", Unit::BytesPerSecond),
    ("write", "block-write", Unit::BytesPerSecond),
    ("rewrite", "rewrite", Unit::BytesPerSecond),
    ("getc", "getc", Unit::BytesPerSecond),
    ("read", "block-read", Unit::BytesPerSecond),
    ("seeks", "seeks", Unit::PerSecond),
    ("seq_create", "seq-create", Unit::PerSecond),
    ("seq_stat", "seq-stat", Unit::PerSecond),
    ("seq_delete", "seq-delete", Unit::PerSecond),
    ("ran_create", "ran-create", Unit::PerSecond),
    ("ran_stat", "ran-stat", Unit::PerSecond),
    ("ran_delete", "ran-delete", Unit::PerSecond),
];

/// A row that was wholly withheld has the phases that its fellows have figures of.
pub(super) fn fill_withheld(mut rows: Vec<Row>) -> Vec<Row> {
    let mut phases: Vec<(String, Unit)> = Vec::new();
    for figure in rows.iter().flat_map(|row| &row.figures) {
        if !phases.iter().any(|(phase, _)| *phase == figure.phase) {
            phases.push((figure.phase.clone(), figure.unit));
        }
    }
    for row in rows.iter_mut().filter(|row| row.withheld) {
        row.figures = phases
            .iter()
            .map(|(phase, unit)| PublishedFigure {
                phase: phase.clone(),
                unit: *unit,
                value: Published::Withheld,
                cpu_percent: None,
            })
            .collect();
    }
    rows
}

/// What is common to all rows of a file.
pub(super) struct Shape<'r> {
    pub(super) reader: &'r Reader<'r>,
    pub(super) columns: Vec<String>,
    pub(super) sizes: Vec<String>,
    pub(super) disks: Option<u32>,
}

impl Shape<'_> {
    /// Name, factors and whether the whole row is withheld.
    fn row(&self, node: &Node<'_, '_>) -> Option<Row> {
        let name = node.needed("name", node.string("name"))?;
        let mut factors = BTreeMap::new();
        let mut disks = node.count("disks").or(self.disks);
        for key in ["engine", "enclosure"] {
            node.string(key)
                .map(|value| factors.insert(key.to_owned(), value));
        }
        if let Some(channels) = node.items("channels") {
            let on: Vec<u32> = channels
                .iter()
                .filter_map(|n| node.count_of("channels", n))
                .collect();
            let text: Vec<_> = on.iter().map(u32::to_string).collect();
            factors.insert("channels".to_owned(), text.join("+"));
            disks = Some(on.iter().fold(0, |all: u32, n| all.saturating_add(*n)));
        }
        let ashift = node.count("ashift");
        let level = match ashift {
            // The one ZFS layout that a study has: a mirror, which is what raid1 is.
            Some(ashift) => {
                factors.insert("ashift".to_owned(), ashift.to_string());
                factors.insert("engine".to_owned(), "zfs".to_owned());
                Some("raid1".to_owned())
            }
            None => node.needed("level", node.string("level")),
        }?;
        if let Some(disks) = disks {
            match crate::report::capacity::usable_disks(&level, disks) {
                Some(usable) => {
                    factors.insert("capacity-disks".to_owned(), usable.to_string());
                }
                None => {
                    let why = format!("{level} of {disks} disks is no array");
                    self.reader.invalid(&node.at, "level", why);
                }
            }
            factors.insert("disks".to_owned(), disks.to_string());
        } else if !node.has("disks") {
            let missing = ProblemKind::Missing("disks".to_owned());
            self.reader.report(&node.at, missing);
        }
        factors.insert("level".to_owned(), level);
        let withheld = matches!(
            node.entry("withheld").map(Spanned::get_ref),
            Some(DeValue::Boolean(true))
        );
        Some(Row {
            name,
            factors,
            withheld,
            figures: Vec::new(),
        })
    }

    pub(super) fn bonnie_row(&self, node: &Node<'_, '_>) -> Option<Row> {
        let mut row = self.row(node)?;
        let held: Vec<String> = match node.entry("withheld").map(Spanned::get_ref) {
            Some(DeValue::Array(_)) => node.strings("withheld"),
            _ => Vec::new(),
        };
        let cpu = node.table("cpu");
        for (key, phase, unit) in BONNIE {
            let scale = match unit {
                Unit::BytesPerSecond => KIB as f64,
                _ => 1.0,
            };
            let value = match node.entry(key).map(Spanned::get_ref) {
                Some(DeValue::String(text)) if text == "+" => Published::TooFast,
                Some(_) => match node.number(key) {
                    Some(n) => Published::Value(n * scale),
                    None => continue,
                },
                None if held.iter().any(|held| held == key) => Published::Withheld,
                None => continue,
            };
            row.figures.push(PublishedFigure {
                phase: phase.to_owned(),
                unit,
                value,
                cpu_percent: cpu.as_ref().and_then(|cpu| cpu.number(key)),
            });
        }
        if let Some(unknown) = held.iter().find(|h| BONNIE.iter().all(|b| b.0 != **h)) {
            let why = format!("bonnie++ has no column {unknown}");
            self.reader.invalid(&node.at, "withheld", why);
        }
        if let Some(cpu) = cpu {
            cpu.deny_unknown();
        }
        let given = BONNIE.iter().any(|(key, ..)| node.has(key)) || !held.is_empty();
        self.finish_row(node, row, given)
    }

    pub(super) fn hdbench_row(&self, node: &Node<'_, '_>) -> Option<Row> {
        let mut row = self.row(node)?;
        for size in &self.sizes {
            let Some(items) = node.items(size) else {
                continue;
            };
            if items.len() != self.columns.len() {
                let why = format!(
                    "{} for {}",
                    count(items.len(), "figure"),
                    count(self.columns.len(), "column")
                );
                self.reader.invalid(&node.at, size, why);
            }
            for (column, item) in self.columns.iter().zip(items) {
                let Some(n) = node.number_of(size, item) else {
                    continue;
                };
                row.figures.push(PublishedFigure {
                    phase: format!("{column}-{}", size.to_ascii_lowercase()),
                    unit: Unit::BytesPerSecond,
                    value: Published::Value(n * KIB as f64),
                    cpu_percent: None,
                });
            }
        }
        let given = self.sizes.iter().any(|size| node.has(size));
        self.finish_row(node, row, given)
    }

    fn finish_row(&self, node: &Node<'_, '_>, row: Row, given: bool) -> Option<Row> {
        node.deny_unknown();
        if given == row.withheld {
            let why = "a row has either figures or withheld = true";
            self.reader.invalid(&node.at, &row.name, why);
        }
        Some(row)
    }
}
