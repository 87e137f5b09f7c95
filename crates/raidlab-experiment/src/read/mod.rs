//! From the tree of a file to declarations: every value read, nothing joined yet.
pub(crate) mod design;
pub(crate) mod disks;
pub(crate) mod factors;
pub(crate) mod key;
pub(crate) mod members;
pub(crate) mod setting;
pub(crate) mod topology;
pub(crate) mod tree;
pub(crate) mod value;
mod wanted;

use crate::Known;
use crate::diagnostic::Problems;
use design::{DraftDesign, DraftExpected, DraftReport};
use disks::Group;
use factors::{DraftFactor, Selection};
use setting::Bound;
use toml::de::DeTable;
use topology::DraftTopology;
use tree::Node;

/// A file as declared.
pub(crate) struct Draft {
    pub(crate) title: String,
    pub(crate) question: Option<String>,
    /// `None` when they could not be read.
    pub(crate) groups: Option<Vec<Group>>,
    /// `None` when it could not be read.
    pub(crate) topology: Option<DraftTopology>,
    pub(crate) fixed: Vec<Bound>,
    pub(crate) factors: Vec<DraftFactor>,
    pub(crate) only: Vec<Selection>,
    pub(crate) exclude: Vec<Selection>,
    pub(crate) design: DraftDesign,
    pub(crate) report: DraftReport,
    pub(crate) expected: Option<DraftExpected>,
}

/// Reads a file; `None` when it is not TOML throughout, since what is missing may be in the part that
/// could not be read.
pub(crate) fn read(
    problems: &Problems,
    table: &DeTable<'_>,
    known: &Known<'_>,
    whole: bool,
) -> Option<Draft> {
    let root = Node::new(problems, table, 0..0, "the file", whole);
    root.missing("title", "begin with title = \"what is compared\"");
    root.missing(
        "disks",
        "say which and how many: disks = { model = \"…\", count = 4 }",
    );
    let text = |key: &str| {
        let entry = root.entry(key)?;
        problems.text(key, entry).map(|t| t.value)
    };
    let title = text("title");
    let question = text("question");
    let groups = disks::read(&root, known);
    let topology = topology::read(&root, known);
    let fixed = setting::fixed(&root);
    let factors = factors::read(&root);
    let (only, exclude) = (
        factors::selections(&root, "only"),
        factors::selections(&root, "exclude"),
    );
    let design = design::design(&root);
    let report = design::report(&root);
    let expected = design::expected(&root, known);
    root.close();
    whole.then(|| Draft {
        title: title.unwrap_or_default(),
        question,
        groups,
        topology,
        fixed,
        factors,
        only,
        exclude,
        design,
        report,
        expected,
    })
}
