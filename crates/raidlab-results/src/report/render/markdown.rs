//! A document as GitHub-flavoured Markdown.
use super::{commands, marks, text_chart};
use crate::report::document::{Block, Cell, Chart, Document, Table, Tone, Value};
use raidlab_core::words::steers;

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
            Block::Paragraph { text } => out.push_str(&format!("{}\n", escape_line(text))),
            Block::Warning { text } => {
                out.push_str(&format!("> **Note:** {}\n", escape(text)));
            }
            Block::List { items } => {
                for item in items {
                    out.push_str(&format!("- {}\n", escape_line(item)));
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
            _ if steers(c) => {}
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
            if steers(c) && c != '\n' {
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

/// Text that means nothing to Markdown but itself, within a line.
fn escape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let next = rest.chars().nth(1);
        let means_something = match c {
            '\\' | '|' | '<' | '>' | '*' | '`' | '_' | '#' | '~' | ']' => true,
            '&' => next.is_some_and(|n| n == '#' || n.is_ascii_alphanumeric()),
            '[' => {
                if let Some(interval) = interval(rest) {
                    out.push_str(interval);
                    rest = &rest[interval.len()..];
                    continue;
                }
                true
            }
            _ => false,
        };
        if means_something {
            out.push('\\');
        }
        out.push(if steers(c) { ' ' } else { c });
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// The interval that a text begins with, such as `[1.96, 1.99]`: nothing follows it that makes it a link, and tables
/// full of them are read as text, too.
fn interval(text: &str) -> Option<&str> {
    let end = text.find(']')? + 1;
    let (whole, behind) = text.split_at(end);
    let inside = &whole[1..end - 1];
    let is_number = |part: &str| part.parse::<f64>().is_ok();
    let is_interval = inside
        .split_once(", ")
        .is_some_and(|(low, high)| is_number(low) && is_number(high));
    (is_interval && !behind.starts_with(['(', '[', ':'])).then_some(whole)
}

/// The same for text that begins a line, where some signs begin a list, a rule or code.
fn escape_line(text: &str) -> String {
    let text = escape(text.trim_start());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text[digits..].chars().next() {
        Some('-' | '+' | '=') if digits == 0 => format!("\\{text}"),
        Some('.' | ')')
            if digits > 0 && !text[digits + 1..].starts_with(|c: char| c.is_ascii_digit()) =>
        {
            format!("{}\\{}", &text[..digits], &text[digits..])
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulldown_cmark::{Event, Tag};

    /// What a reader of Markdown sees, with the marks that it takes for more than text.
    fn seen(markdown: &str) -> (String, Vec<String>) {
        use pulldown_cmark::Options;
        // What GitHub has; signs that others put in the place of quotes and dashes it leaves alone.
        let all = Options::all() & !Options::ENABLE_SMART_PUNCTUATION;
        let (mut text, mut marks) = (String::new(), Vec::new());
        for event in pulldown_cmark::Parser::new_ext(markdown, all) {
            match event {
                Event::Text(part) => text.push_str(&part),
                Event::SoftBreak => text.push(' '),
                Event::Start(
                    Tag::Paragraph
                    | Tag::Heading { .. }
                    | Tag::List(None)
                    | Tag::Item
                    | Tag::Table(_)
                    | Tag::TableHead
                    | Tag::TableRow
                    | Tag::TableCell,
                ) => {}
                Event::End(_) => text.push(' '),
                other => marks.push(format!("{other:?}")),
            }
        }
        let text: Vec<&str> = text.split_whitespace().collect();
        (text.join(" "), marks)
    }

    proptest::proptest! {
        #[test]
        fn a_reader_of_markdown_sees_the_text(
            text in r"[]()\[!&;:#a-c1-3. lt<>*_`|~+=/\\-]{1,24}x",
        ) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let table = format!("| a |\n| --- |\n| {} |\n", escape(&text));
            for (what, markdown, before) in [
                ("heading", format!("# {}\n", escape(&text)), ""),
                ("paragraph", format!("{}\n", escape_line(&text)), ""),
                ("item", format!("- {}\n", escape_line(&text)), ""),
                ("table", table, "a "),
            ] {
                let (seen, marks) = seen(&markdown);
                proptest::prop_assert_eq!(seen, format!("{}{}", before, text), "{}: {}", what, markdown);
                proptest::prop_assert_eq!(marks, Vec::<String>::new(), "{}: {}", what, markdown);
            }
            // The same text is the description of an image.
            let image = format!("![{}](x.svg)\n", escape(&text));
            let (seen, marks) = seen(&image);
            proptest::prop_assert_eq!(seen, text, "{}", image);
            proptest::prop_assert!(marks.len() == 1 && marks[0].contains("Image"), "{}: {:?}", image, marks);
        }
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escape("*r1*_x_, [a](b) &lt; R&D & more"),
            r"\*r1\*\_x\_, \[a\](b) \&lt; R\&D & more"
        );
        assert_eq!(
            escape("1.97 [1.96, 1.99] [1, 2](x) [1, 2]: y"),
            r"1.97 [1.96, 1.99] \[1, 2\](x) \[1, 2\]: y"
        );
        assert_eq!(escape_line("- a"), r"\- a");
        assert_eq!(escape_line("  1. a"), r"1\. a");
        assert_eq!(escape_line("1.5 a"), "1.5 a");
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
