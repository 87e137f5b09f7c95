//! A document as GitHub-flavoured Markdown.
use super::{commands, marks, text_chart};
use crate::report::document::{Block, Cell, Chart, Document, Table, Tone, Value};

/// Columns of charts drawn in text.
const TEXT_WIDTH: usize = 100;

/// The document as Markdown. `images` is the directory in which the SVG images of
/// [`render_images`](super::render_images) are found, as seen from the Markdown file; without it charts are drawn in
/// text.
#[must_use]
pub fn render_markdown(document: &Document, images: Option<&str>) -> String {
    let mut out = format!("# {}\n", escape(&document.title));
    for block in &document.blocks {
        out.push('\n');
        match block {
            Block::Heading { text } => out.push_str(&format!("## {}\n", escape(text))),
            Block::Paragraph { text } => out.push_str(&format!("{}\n", escape(text))),
            Block::Warning { text } => {
                out.push_str(&format!("> **Note:** {}\n", escape(text)));
            }
            Block::List { items } => {
                for item in items {
                    out.push_str(&format!("- {}\n", escape(item)));
                }
            }
            Block::Commands { lines } => code(&mut out, "sh", &commands(lines)),
            Block::Table(table) => render_table(&mut out, &table.read_by_rows()),
            Block::Chart(chart) => render_chart(&mut out, chart, images),
        }
    }
    out
}

fn render_chart(out: &mut String, chart: &Chart, images: Option<&str>) {
    match images {
        Some(directory) => {
            let alt = escape(chart.description());
            let target = target(directory, chart.id());
            out.push_str(&format!("![{alt}]({target})\n"));
        }
        None => {
            let text = text_chart::render(chart, TEXT_WIDTH, false);
            if text.is_empty() {
                // The table before it says the same; leave one blank line only.
                out.pop();
            } else {
                code(out, "text", text.trim_end());
            }
        }
    }
}

/// The target of an image. Spaces and brackets would end it, so they are written as in addresses.
fn target(directory: &str, id: &str) -> String {
    let mut target = String::new();
    for c in directory.trim_end_matches('/').chars() {
        match c {
            ' ' | '(' | ')' | '<' | '>' | '%' => target += &format!("%{:02X}", u32::from(c)),
            _ if c.is_control() => {}
            _ => target.push(c),
        }
    }
    if !directory.is_empty() {
        target.push('/');
    }
    target + id + ".svg"
}

/// A fence longer than any in the text.
fn code(out: &mut String, language: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text: String = text
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    out.push_str(&format!("{fence}{language}\n{text}\n{fence}\n"));
}

fn render_table(out: &mut String, table: &Table) {
    out.push_str(&format!("**{}**\n\n", escape(&table.caption)));
    let titles: Vec<String> = table
        .columns
        .iter()
        .map(|column| match &column.group {
            Some(group) => format!("{} {}", escape(group), escape(&column.title)),
            None => escape(&column.title),
        })
        .collect();
    line(out, &titles);
    let rules = table
        .columns
        .iter()
        .map(|c| if c.right { "---:" } else { "---" });
    line(out, &rules.map(str::to_owned).collect::<Vec<_>>());
    for row in &table.rows {
        line(out, &row.iter().map(cell).collect::<Vec<_>>());
    }
    if !table.footnotes.is_empty() {
        out.push('\n');
        for (number, note) in (1..).zip(&table.footnotes) {
            let mark = marks(&Cell::absent().mark(number), false);
            out.push_str(&format!("{mark} {}  \n", escape(note)));
        }
    }
}

fn line(out: &mut String, cells: &[String]) {
    out.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn cell(cell: &Cell) -> String {
    let text = match &cell.value {
        Value::Absent => "-".to_owned(),
        value => escape(&value.text()),
    };
    let text = match cell.tone {
        Tone::Strong => format!("**{text}**"),
        Tone::Muted if cell.value != Value::Absent => format!("*{text}*"),
        _ => text,
    };
    if cell.marks.is_empty() {
        text
    } else {
        format!("{text} {}", marks(cell, false))
    }
}

/// Text that means nothing to Markdown but itself.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '|' | '<' | '>' | '*' | '`' | '_' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escape("a|b <c> *d* `e`\n"),
            "a\\|b \\<c\\> \\*d\\* \\`e\\` "
        );
        assert_eq!(target("a b/(c)/", "x"), "a%20b/%28c%29/x.svg");
        assert_eq!(
            (target("i", "x"), target("", "x")),
            ("i/x.svg".into(), "x.svg".into())
        );
        assert_eq!(target("/", "x"), "/x.svg");
        let mut out = String::new();
        code(&mut out, "sh", "echo ```` x");
        assert_eq!(out, "`````sh\necho ```` x\n`````\n");
        // What steers a terminal does so from a file that is shown there, too.
        out.clear();
        code(&mut out, "sh", "ls \u{1b}[31mred\nls");
        assert_eq!(out, "```sh\nls \u{fffd}[31mred\nls\n```\n");
    }
}
