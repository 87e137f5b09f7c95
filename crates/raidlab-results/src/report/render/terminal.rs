//! A document for a terminal.
use super::command::broken;
use super::{BOUND, bound, marks, printable, text_chart};
use crate::report::document::{Block, Cell, Document, Table, Tone, Value};
use comfy_table::{
    Attribute, Cell as ScreenCell, CellAlignment, Color, ColumnConstraint, ContentArrangement,
    LineStyle, Table as Screen, TableStyle, Width,
};

/// How a terminal shows a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal.
    pub width: u16,
    /// Colours and bold face.
    pub colour: bool,
    /// Signs are spelled in ASCII; letters of labels stay as they are.
    pub ascii: bool,
}

impl TerminalOptions {
    /// For a terminal that shows UTF-8.
    #[must_use]
    pub const fn new(width: u16, colour: bool) -> Self {
        Self {
            width,
            colour,
            ascii: false,
        }
    }
}

/// Narrower than this, tables are as wide as they must be.
const NARROWEST: u16 = 40;
/// A column of words may be wrapped down to this.
const WORDS: usize = 24;
/// Columns of the screen between two columns of a table.
const GAP: usize = 3;
/// Before command lines.
const INDENT: &str = "  ";

/// A command line, broken as a shell has it where it is longer than the screen.
fn command_line(line: &str, options: TerminalOptions) -> String {
    let line = broken(&printable(line), usize::from(options.width) - INDENT.len());
    let lines = line.lines().map(|line| format!("{INDENT}{line}\n"));
    lines.collect()
}

/// The document as text for a terminal.
#[must_use]
pub fn render_terminal(document: &Document, options: TerminalOptions) -> String {
    let options = TerminalOptions {
        width: options.width.max(NARROWEST),
        ..options
    };
    let mut out = String::new();
    heading(&mut out, &document.title, '=', options);
    let mut after_heading = true;
    for block in &document.blocks {
        let running = matches!(block, Block::Paragraph { .. } | Block::Warning { .. });
        if running && !after_heading {
            out.push('\n');
        }
        after_heading = matches!(block, Block::Heading { .. });
        let text = match block {
            Block::Heading { text } => {
                out.push('\n');
                heading(&mut out, text, '-', options);
                continue;
            }
            Block::Paragraph { text } => wrap(text, "", "", options),
            Block::Warning { text } => {
                let text = wrap(text, "! ", "  ", options);
                paint(&text, Tone::Bad, options)
            }
            Block::List { items } => items
                .iter()
                .map(|item| wrap(item, "  - ", "    ", options))
                .collect(),
            Block::Commands { lines } => lines
                .iter()
                .map(|line| command_line(line, options))
                .collect(),
            Block::Table(table) => {
                out.push('\n');
                render_table(table, options)
            }
            Block::Chart(chart) => {
                let text = text_chart::render(chart, usize::from(options.width), options.ascii);
                if text.is_empty() {
                    continue;
                }
                out.push('\n');
                text
            }
        };
        out.push_str(&text);
    }
    if options.ascii { spelled(&out) } else { out }
}

fn heading(out: &mut String, text: &str, rule: char, options: TerminalOptions) {
    let text = wrap(text, "", "", options);
    let longest = text.lines().map(width_of).max().unwrap_or(0);
    out.push_str(&paint(&text, Tone::Strong, options));
    out.extend(std::iter::repeat_n(rule, longest));
    out.push('\n');
}

/// Screen columns of a text.
fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// Wraps at spaces; the first line begins with `first`, the others with `rest`.
fn wrap(text: &str, first: &str, rest: &str, options: TerminalOptions) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in printable(text).split_whitespace() {
        if !empty && width_of(&line) + 1 + width_of(word) > usize::from(options.width) {
            out.push_str(&line);
            out.push('\n');
            rest.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

fn paint(text: &str, tone: Tone, options: TerminalOptions) -> String {
    let code = match tone {
        _ if !options.colour => return text.to_owned(),
        Tone::Plain => return text.to_owned(),
        Tone::Strong => "1",
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Muted => "2",
    };
    let body = text.trim_end_matches('\n');
    format!("\u{1b}[{code}m{body}\u{1b}[0m{}", &text[body.len()..])
}

fn render_table(table: &Table, options: TerminalOptions) -> String {
    let mut out = wrap(&table.caption, "", "", options);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| natural_width(table, column, options.ascii))
        .collect();
    // A part is read to its end before the next one.
    let parts = parts(table, &widths, options);
    let rows = 0..table.rows.len();
    let places = parts.iter().flat_map(|part| {
        let row_of = |row| part.iter().map(move |column| (row, *column));
        rows.clone().flat_map(row_of)
    });
    let table = &table.read_in(places);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.push_str(&screen(table, part, &widths, options));
        out.push('\n');
    }
    for (number, note) in (1..).zip(&table.footnotes) {
        let mark = marks(&Cell::absent().mark(number), options.ascii);
        out.push_str(&wrap(note, &format!("  {mark} "), "    ", options));
    }
    out
}

/// The columns of each part of a table that is too wide for the screen: neighbours under a common
/// heading stay together, the columns that name the row come again in each part. Columns of words
/// give way before a table is cut.
fn parts(table: &Table, widths: &[usize], options: TerminalOptions) -> Vec<Vec<usize>> {
    let least = |column: usize| {
        let words = !table.columns[column].right;
        GAP + if words {
            let word = longest_word(table, column, options.ascii);
            widths[column].min(WORDS).max(word)
        } else {
            widths[column]
        }
    };
    let names: Vec<usize> = (0..table.names).collect();
    // Names of rows are not wrapped away as long as they leave half of the screen.
    let wanted: usize = names.iter().map(|n| widths[*n] + GAP).sum();
    let words = |n: &usize| longest_word(table, *n, options.ascii) + GAP;
    let of_names = wanted
        .min(usize::from(options.width) / 2)
        .max(names.iter().map(words).sum());
    let mut parts: Vec<Vec<usize>> = vec![names.clone()];
    let mut used = of_names;
    let mut column = table.names;
    while column < table.columns.len() {
        let group = &table.columns[column].group;
        let mut end = column + 1;
        while end < table.columns.len() && group.is_some() && table.columns[end].group == *group {
            end += 1;
        }
        let mut wanted: usize = (column..end).map(least).sum();
        let mut begins = false;
        // No gap is needed behind the last column.
        let together: usize = (column..end)
            .map(|c| least(c).min(GAP + below_group(table, c, c > column, options.ascii)))
            .sum();
        if of_names + together >= usize::from(options.width) + GAP {
            // Together they fit on no screen: they begin one, and go on in the next.
            begins = column == 0 || table.columns[column - 1].group != *group;
            end = column + 1;
            wanted = least(column);
        }
        let fresh = parts.last().is_some_and(|part| part.len() == table.names);
        if !fresh && (begins || used + wanted > usize::from(options.width)) {
            parts.push(names.clone());
            used = of_names;
        }
        if let Some(part) = parts.last_mut() {
            part.extend(column..end);
        }
        used += wanted;
        column = end;
    }
    parts
}

/// Width of a column; the common heading counts above its first column alone.
fn below_group(table: &Table, column: usize, below: bool, ascii: bool) -> usize {
    let cells = table.rows.iter().map(|row| &row[column]);
    let widest = cells.map(|cell| width_of(&cell_text(cell, ascii))).max();
    let widest = widest
        .unwrap_or(0)
        .max(width_of(&table.columns[column].title));
    if below {
        widest
    } else {
        natural_width(table, column, ascii)
    }
}

fn natural_width(table: &Table, column: usize, ascii: bool) -> usize {
    let heading = &table.columns[column];
    let titles = [heading.group.as_deref().unwrap_or(""), &heading.title];
    let cells = table.rows.iter().map(|row| {
        let cell = &row[column];
        width_of(&cell_text(cell, ascii))
    });
    let titles = titles.iter().map(|title| width_of(title));
    cells.chain(titles).max().unwrap_or(0)
}

/// The longest word of a column, which is as narrow as it can be without a word that is cut.
fn longest_word(table: &Table, column: usize, ascii: bool) -> usize {
    let heading = &table.columns[column];
    let titles = [heading.group.as_deref().unwrap_or(""), &heading.title].map(printable);
    let cells = table.rows.iter().map(|row| cell_text(&row[column], ascii));
    cells
        .chain(titles)
        .map(|text| text.split([' ', '\n']).map(width_of).max().unwrap_or(0))
        .max()
        .unwrap_or(0)
}

fn cell_text(cell: &Cell, ascii: bool) -> String {
    let text = printable(&cell.value.text());
    let text = match (&cell.value, ascii) {
        (Value::Absent, _) => "-".to_owned(),
        _ => text,
    };
    let text = bound(&text);
    if cell.marks.is_empty() {
        text
    } else {
        format!("{text}{BOUND}{}", marks(cell, ascii))
    }
}

fn screen(table: &Table, part: &[usize], widths: &[usize], options: TerminalOptions) -> String {
    let mut screen = Screen::new();
    let rule = if options.ascii { '-' } else { '─' };
    let below_heading = LineStyle::none().fill(rule).junction(rule);
    screen.load_style(TableStyle::new().header_separator(below_heading));
    screen.force_no_tty();
    if options.colour {
        screen.enforce_styling();
    }
    let groups = part.iter().any(|c| table.columns[*c].group.is_some());
    let titles: Vec<String> = part
        .iter()
        .zip(std::iter::once(&0).chain(part))
        .map(|(column, before)| {
            let heading = &table.columns[*column];
            // A common heading stands over the first of its columns.
            let group = heading.group.as_deref().unwrap_or("");
            let repeated = column != before && table.columns[*before].group == heading.group;
            match (groups, repeated) {
                (false, _) => printable(&heading.title),
                (true, true) => format!("\n{}", printable(&heading.title)),
                (true, false) => format!("{}\n{}", printable(group), printable(&heading.title)),
            }
        })
        .collect();
    if titles.iter().any(|title| !title.trim().is_empty()) {
        screen.set_header(titles);
    }
    for row in &table.rows {
        let cells = part
            .iter()
            .map(|column| screen_cell(&row[*column], options));
        screen.add_row(cells.collect::<Vec<_>>());
    }
    fit(&mut screen, table, part, widths, options);
    // The blanks that hold words together have done so.
    let plain = |line: String| line.replace(BOUND, " ").trim_end().to_owned();
    // The rule is drawn below the blank behind the last column, too, for which there may be no room.
    let ruled = |line: String| match line.chars().all(|c| c == rule) {
        true => line.chars().take(usize::from(options.width)).collect(),
        false => line,
    };
    let lines: Vec<String> = screen.lines().map(plain).map(ruled).collect();
    lines.join("\n")
}

fn screen_cell(cell: &Cell, options: TerminalOptions) -> ScreenCell {
    let shown = ScreenCell::new(cell_text(cell, options.ascii));
    match cell.tone {
        Tone::Plain => shown,
        Tone::Strong => shown.add_attribute(Attribute::Bold),
        Tone::Good => shown.fg(Color::Green),
        Tone::Bad => shown.fg(Color::Red),
        Tone::Muted => shown.add_attribute(Attribute::Dim),
    }
}

/// Sets numbers to the right and lets columns of words wrap when the table is too wide.
fn fit(
    screen: &mut Screen,
    table: &Table,
    part: &[usize],
    widths: &[usize],
    options: TerminalOptions,
) {
    let wanted: usize = part.iter().map(|c| widths[*c] + GAP).sum();
    let narrow = wanted > usize::from(options.width);
    let names = part.iter().filter(|c| **c < table.names);
    let of_names: usize = names.map(|c| widths[*c] + GAP).sum();
    let names_stay = narrow && of_names * 2 <= usize::from(options.width);
    if narrow {
        screen.set_content_arrangement(ContentArrangement::Dynamic);
        screen.set_width(options.width);
    } else {
        screen.set_content_arrangement(ContentArrangement::Disabled);
    }
    let whole = |column: usize| table.columns[column].right || (column < table.names && names_stay);
    let least = |column: usize| match whole(column) {
        true => widths[column],
        false => longest_word(table, column, options.ascii),
    };
    // No word is cut where all of them have room.
    let words_stay =
        part.iter().map(|c| least(*c) + GAP).sum::<usize>() <= usize::from(options.width) + 1;
    for (place, column) in part.iter().enumerate() {
        let Some(shown) = screen.column_mut(place) else {
            continue;
        };
        if table.columns[*column].right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
        if whole(*column) {
            shown.set_constraint(ColumnConstraint::ContentWidth);
        } else if words_stay {
            // A boundary counts the blanks on both sides.
            let least = (least(*column) + GAP - 1) as u16;
            shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
}

/// Text whose signs are spelled in ASCII, as far as they have a spelling; letters of labels stay as they are.
#[must_use]
pub fn spelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '×' => out.push('x'),
            '±' => out.push_str("+-"),
            'µ' => out.push('u'),
            '–' | '—' | '·' | '─' => out.push('-'),
            '…' => out.push_str("..."),
            '²' => out.push('2'),
            '†' => out.push('!'),
            '€' => out.push_str("EUR"),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            '\u{fffd}' => out.push('?'),
            _ => out.push(c),
        }
    }
    out
}
