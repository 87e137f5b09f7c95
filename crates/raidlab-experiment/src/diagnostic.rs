//! What is wrong with a file: all of it, each with its place and its remedy.
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use raidlab_core::suggest::nearest;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

/// So many problems of one file are told; a file with more has one cause for most of them.
pub const MOST: usize = 100;

/// One thing wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The bytes of the file that are wrong.
    pub span: Range<usize>,
    /// What stands under them; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Other bytes that matter, and why.
    pub others: Vec<(Range<usize>, String)>,
    /// Of a text of several lines, the one that is wrong, from 1.
    pub line: Option<usize>,
}

/// A longer message quotes more of a file than anybody reads.
const LONGEST: usize = 2000;

/// Without the middle of what is too long to be read.
fn cut(message: String) -> String {
    let Some((from, _)) = message.char_indices().nth(LONGEST / 2) else {
        return message;
    };
    match message.char_indices().rev().nth(LONGEST / 2) {
        Some((to, _)) if message.len() > LONGEST && from < to => {
            format!("{}…{}", &message[..from], &message[to..])
        }
        _ => message,
    }
}

impl Diagnostic {
    /// A problem with the bytes `span`.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            message: cut(message.into()),
            span,
            label: String::new(),
            help: None,
            others: Vec::new(),
            line: None,
        }
    }

    /// From an error of the project's own crates, which put the remedy after a colon.
    pub(crate) fn from_error(span: Range<usize>, error: &str) -> Self {
        match error.rsplit_once(": ") {
            Some((wrong, remedy)) => Self::new(span, wrong).help(remedy),
            None => Self::new(span, error),
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Of a text of several lines, the one that is wrong, from 1.
    pub(crate) fn line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Other bytes that matter; those that are the problem's own are not repeated.
    pub(crate) fn also(mut self, span: Range<usize>, why: impl Into<String>) -> Self {
        if span != self.span && !span.is_empty() {
            self.others.push((span, why.into()));
        }
        self
    }
}

/// All that is wrong with one file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    file: String,
    source: String,
    items: Vec<Diagnostic>,
    left_out: usize,
}

impl Diagnostics {
    /// The problems; at least one.
    #[must_use]
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// Line and column (in characters) of a problem, both from 1.
    #[must_use]
    pub fn place(&self, problem: &Diagnostic) -> (usize, usize) {
        let start = inside(&self.source, &problem.span).start;
        let before = &self.source[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, column)
    }

    /// The problems for a reader: each with file, line and the text underlined, and how many there
    /// are. With `colour`, ANSI sequences and box characters are used.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled().decor_style(DecorStyle::Unicode)
        } else {
            Renderer::plain()
        };
        let mut out = String::new();
        for problem in &self.items {
            out.push_str(&renderer.render(&[self.group(problem)]));
            out.push_str("\n\n");
        }
        let all = self.items.len() + self.left_out;
        let told = match self.left_out {
            0 => String::new(),
            _ => format!(", the first {} are shown", self.items.len()),
        };
        let plural = if all == 1 { "" } else { "s" };
        out.push_str(&format!("{all} error{plural} in {}{told}\n", self.file));
        out
    }

    fn group<'a>(&'a self, problem: &'a Diagnostic) -> annotate_snippets::Group<'a> {
        let primary = AnnotationKind::Primary
            .span(inside(&self.source, &problem.span))
            .label(Some(problem.label.as_str()).filter(|label| !label.is_empty()));
        let context = problem.others.iter().map(|(span, why)| {
            AnnotationKind::Context
                .span(inside(&self.source, span))
                .label(why.as_str())
        });
        let snippet = Snippet::source(self.source.as_str())
            .path(self.file.as_str())
            .annotation(primary)
            .annotations(context);
        let group = Level::ERROR
            .primary_title(problem.message.as_str())
            .element(snippet);
        match &problem.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }
}

impl fmt::Display for Diagnostics {
    /// One line a problem: `file:line:column: message`, with the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.items.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let (line, column) = self.place(problem);
            write!(f, "{}:{line}:{column}: {}", self.file, problem.message)?;
            if let Some(help) = &problem.help {
                write!(f, " ({help})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The span within the text and on whole characters, whatever it was.
fn inside(source: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// The bytes of a line of a text that is written between `\"\"\"` or `'''`; all of it where its lines are not those of the file.
fn of_line(source: &str, span: &Range<usize>, line: usize) -> Range<usize> {
    let span = inside(source, span);
    let whole = &source[span.clone()];
    let is_plain = whole.starts_with("'''") || whole.starts_with("\"\"\"") && !whole.contains('\\');
    let Some(text) = whole
        .get(3..whole.len().saturating_sub(3))
        .filter(|_| is_plain)
    else {
        return span;
    };
    // TOML leaves out an end of line right behind the quotes.
    let cut = ["\r\n", "\n"]
        .into_iter()
        .find(|end| text.starts_with(end))
        .map_or(0, str::len);
    let mut from = span.start + 3 + cut;
    for (number, text) in (1..).zip(text[cut..].split_inclusive('\n')) {
        if number == line {
            let blank = text.len() - text.trim_start().len();
            return from + blank..from + text.trim_end().len().max(blank);
        }
        from += text.len();
    }
    span
}

/// Collects what is wrong while a file is read.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    items: RefCell<Vec<Diagnostic>>,
    /// Problems beyond [`KEPT`], counted alone.
    more: Cell<usize>,
    /// Words that were told to be unknown, as they were typed.
    unknown: RefCell<Vec<String>>,
}

/// So many problems are compared and sorted; what is beyond is a flood.
const KEPT: usize = 10 * MOST;

impl Problems {
    /// Adds one. The same problem is met once a cell and told once.
    pub(crate) fn push(&self, problem: Diagnostic) {
        let mut items = self.items.borrow_mut();
        if items.len() >= KEPT {
            self.more.set(self.more.get() + 1);
            return;
        }
        let known = |p: &Diagnostic| {
            (&p.span, p.line, &p.message) == (&problem.span, problem.line, &problem.message)
        };
        if !items.iter().any(known) {
            items.push(problem);
        }
    }

    /// Adds one without more than a message and a remedy.
    pub(crate) fn wrong(&self, at: &Range<usize>, message: impl Into<String>, help: &str) {
        self.push(Diagnostic::new(at.clone(), message).help(help));
    }

    /// Remembers a word that is told to be unknown.
    pub(crate) fn not_known(&self, typed: &str) {
        let mut unknown = self.unknown.borrow_mut();
        if unknown.len() < KEPT {
            unknown.push(typed.to_owned());
        }
    }

    /// Whether `key` was most likely meant by a word that was told to be unknown: that it is missing follows from
    /// that, and is no second problem. The key itself in a wrong place is no slip of the pen.
    pub(crate) fn misspelt(&self, key: &str) -> bool {
        let unknown = self.unknown.borrow();
        unknown
            .iter()
            .any(|typed| typed != key && nearest(typed, [key]).is_some())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    /// How many have been told.
    pub(crate) fn len(&self) -> usize {
        self.items.borrow().len()
    }

    /// Enough has been found; looking on would only take time.
    pub(crate) fn enough(&self) -> bool {
        self.items.borrow().len() >= MOST
    }

    pub(crate) fn into_diagnostics(self, file: &str, source: &str) -> Diagnostics {
        let mut items = self.items.into_inner();
        for problem in &mut items {
            if let Some(line) = problem.line {
                problem.span = of_line(source, &problem.span, line);
            }
        }
        items.sort_by_key(|p| (p.span.start, p.span.end));
        let left_out = items.len().saturating_sub(MOST) + self.more.get();
        items.truncate(MOST);
        Diagnostics {
            file: file.to_owned(),
            source: source.to_owned(),
            items,
            left_out,
        }
    }
}
