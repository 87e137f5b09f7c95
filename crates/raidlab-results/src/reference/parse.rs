//! From a study's file to a [`Study`].
use super::rows::{Shape, fill_withheld};
use super::tree::{Node, ProblemKind, Reader, StudyError};
use super::{Fact, Finding, Plan, Row, Study};
use raidlab_core::units::Bytes;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys of `[study]` that describe the experiment beside its figures, and what a report calls them.
const PLANS: [(&str, &str); 7] = [
    ("layouts", "Layouts"),
    ("block_sizes", "Block sizes"),
    ("schedulers", "I/O schedulers"),
    ("procedure", "Procedure"),
    ("arrays", "Arrays"),
    ("create", "Created by"),
    ("report", "Reported as"),
];

/// Keys of `[study]` and tables of the file that describe machine and disks.
const FACTS: [&str; 7] = [
    "os",
    "machine",
    "controller",
    "disks",
    "partition",
    "chunk",
    "files",
];

impl Study {
    /// Reads a study's file. `file` is what errors call it.
    ///
    /// # Errors
    /// All that is wrong with the file, each with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let reader = Reader::new(file, text);
        let (document, syntax) = DeTable::parse_recoverable(text);
        for error in &syntax {
            let at = error.span().unwrap_or(0..0);
            reader.report(&at, ProblemKind::Syntax(error.message().to_owned()));
        }
        let study = if syntax.is_empty() {
            let root = Node::new(&reader, document.get_ref(), 0..0);
            lower(&reader, &root, text)
        } else {
            None
        };
        reader.finish(study)
    }
}

fn lower(reader: &Reader<'_>, root: &Node<'_, '_>, text: &str) -> Option<Study> {
    let head = root.needed("study", root.table("study"))?;
    let id = head.needed("id", head.string("id"));
    let date = head.needed("date", head.string("date"));
    let title = title_of(reader, text);
    let either = |one: &str, many: &str| {
        let mut all = head.strings(many);
        all.extend(head.strings(one));
        all
    };
    let tools = either("tool", "tools");
    if tools.is_empty() {
        reader.report(&head.at, ProblemKind::Missing("tool".into()));
    }
    let commands = either("command", "commands");
    let setup = setup_of(&head, root);
    let plans = PLANS
        .iter()
        .filter(|(key, _)| head.has(key))
        .map(|(key, name)| Plan {
            name: (*name).to_owned(),
            items: head.strings(key),
        })
        .collect();
    let profile = tools.first().and_then(|tool| profile_of(tool));
    let rows = rows_of(reader, &head, root, profile);
    let closing = root
        .table("summary")
        .and_then(|summary| summary_of(reader, &summary, &rows));
    let (runs, aggregate) = (head.count("runs"), head.string("aggregate"));
    let file_size = size_of(reader, &head);
    let findings = findings(reader, root);
    head.deny_unknown();
    root.deny_unknown();
    Some(Study {
        id: id?,
        title: title?,
        date: date?,
        profile: profile.map(str::to_owned),
        runs,
        aggregate,
        findings,
        tools,
        commands,
        file_size,
        setup,
        plans,
        rows,
        closing,
    })
}

/// The comment in the first line, without its full stop.
fn title_of(reader: &Reader<'_>, text: &str) -> Option<String> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("# "));
    if line.is_none() {
        let why = "the first line must be a comment that says what was compared";
        reader.invalid(&(0..0), "title", why);
    }
    line.map(|line| line.trim().trim_end_matches('.').to_owned())
}

fn size_of(reader: &Reader<'_>, head: &Node<'_, '_>) -> Option<Bytes> {
    let size: Result<Bytes, _> = head.string("file_size")?.parse();
    size.map_err(|why| reader.invalid(&head.at, "file_size", why.to_string()))
        .ok()
}

fn setup_of(head: &Node<'_, '_>, root: &Node<'_, '_>) -> Vec<Fact> {
    let mut setup: Vec<Fact> = FACTS.iter().filter_map(|key| fact(head, key)).collect();
    for section in ["machine", "disk", "settings"] {
        setup.extend(section_facts(root, section));
    }
    setup
}

fn rows_of(
    reader: &Reader<'_>,
    head: &Node<'_, '_>,
    root: &Node<'_, '_>,
    profile: Option<&str>,
) -> Vec<Row> {
    let shape = Shape {
        reader,
        columns: head.strings("columns"),
        sizes: head.strings("file_sizes"),
        disks: head.table("disks").and_then(|d| d.count("count")),
    };
    let nodes = root.tables("row");
    if profile.is_none() && !nodes.is_empty() {
        let why = "rows are read of bonnie++ and HDBench only";
        reader.invalid(&head.at, "tool", why);
    }
    let mut rows: Vec<Row> = Vec::new();
    for node in &nodes {
        let row = match profile {
            Some("bonnie") => shape.bonnie_row(node),
            Some("hdbench") => shape.hdbench_row(node),
            _ => None,
        };
        let Some(row) = row else { continue };
        if rows.iter().any(|known| known.name == row.name) {
            let why = format!("there is a row '{}' already", row.name);
            reader.invalid(&node.at, "name", why);
        }
        rows.push(row);
    }
    fill_withheld(rows)
}

/// The profile whose phases and columns are those of the tool.
fn profile_of(tool: &str) -> Option<&'static str> {
    match tool.split(' ').next() {
        Some("bonnie++") => Some("bonnie"),
        Some("HDBench") => Some("hdbench"),
        _ => None,
    }
}

fn fact(node: &Node<'_, '_>, key: &str) -> Option<Fact> {
    Some(Fact {
        name: key.replace('_', " "),
        text: node.words(key)?,
    })
}

/// A `[section]` key by key, or a `[[section]]` entry by entry.
fn section_facts(root: &Node<'_, '_>, section: &str) -> Vec<Fact> {
    match root.entry(section).map(Spanned::get_ref) {
        Some(DeValue::Table(_)) => {
            let Some(table) = root.table(section) else {
                return Vec::new();
            };
            let named = |fact: Fact| Fact {
                name: match section {
                    "disk" => format!("disk {}", fact.name),
                    _ => fact.name,
                },
                ..fact
            };
            let keys = table.keys();
            keys.iter()
                .filter_map(|key| fact(&table, key).map(named))
                .collect()
        }
        Some(DeValue::Array(_)) => root
            .tables(section)
            .iter()
            .map(|entry| {
                let parts: Vec<_> = entry
                    .keys()
                    .iter()
                    .filter_map(|key| fact(entry, key))
                    .map(|fact| format!("{} {}", fact.name, fact.text))
                    .collect();
                Fact {
                    name: section.to_owned(),
                    text: parts.join(", "),
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn findings(reader: &Reader<'_>, root: &Node<'_, '_>) -> Vec<Finding> {
    let Some(table) = root.needed("findings", root.table("findings")) else {
        return Vec::new();
    };
    let mut all: Vec<_> = table
        .keys()
        .iter()
        .filter_map(|key| {
            let text = table.string(key)?;
            match key.parse() {
                Ok(number) => Some(Finding { number, text }),
                Err(_) => {
                    reader.invalid(&table.at, key, "findings are numbered 1, 2, 3 …");
                    None
                }
            }
        })
        .collect();
    all.sort_by_key(|finding| finding.number);
    all
}

/// Baseline and size of the study's own closing table.
fn summary_of(reader: &Reader<'_>, node: &Node<'_, '_>, rows: &[Row]) -> Option<(String, String)> {
    // The report makes these columns and picks for every study.
    node.strings("columns");
    node.strings("picks");
    let baseline = node.needed("baseline", node.string("baseline"));
    let at = node.needed("at", node.string("at"));
    node.deny_unknown();
    let baseline = baseline?;
    if !rows.iter().any(|row| row.name == baseline) {
        let why = format!("there is no row '{baseline}'");
        reader.invalid(&node.at, "baseline", why);
    }
    Some((baseline, at?))
}
