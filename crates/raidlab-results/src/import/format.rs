//! The formats and how they are told apart.
use super::fio;
use super::text::Text;
use std::fmt;
use std::str::FromStr;

/// A format that can be imported, or that is recognised in order to be refused with advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// bonnie++ 1.03, 1.9x and 2.00: text tables and CSV lines, alone or together.
    Bonnie,
    /// tiotest's table.
    Tiotest,
    /// tiotest's terse lines (`-T`).
    TiotestTerse,
    /// The lines of tiobench.pl 0.3.3.
    TiobenchLines,
    /// The four sections of tiobench.pl 0.3.5 to 0.4.
    TiobenchSections,
    /// `hdparm -tT`, also with `--direct`.
    Hdparm,
    /// What dd says on standard error.
    Dd,
    /// fio's JSON and JSON+, also of client mode.
    FioJson,
    /// fio's terse version 3 (`--minimal`).
    FioTerse,
    /// fio's report for people: recognised, but refused in favour of JSON.
    FioNormal,
    /// iozone's table.
    Iozone,
    /// HDBENCH clone, its text and its tab-separated "CSV".
    HdbenchClone,
    /// elbencho's CSV file.
    Elbencho,
    /// vdbench's flatfile.html.
    Vdbench,
    /// `sysbench fileio` 1.0.
    Sysbench,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 15] = [
        Self::Bonnie,
        Self::Tiotest,
        Self::TiotestTerse,
        Self::TiobenchLines,
        Self::TiobenchSections,
        Self::Hdparm,
        Self::Dd,
        Self::FioJson,
        Self::FioTerse,
        Self::FioNormal,
        Self::Iozone,
        Self::HdbenchClone,
        Self::Elbencho,
        Self::Vdbench,
        Self::Sysbench,
    ];

    /// The name to force it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bonnie => "bonnie",
            Self::Tiotest => "tiotest",
            Self::TiotestTerse => "tiotest-terse",
            Self::TiobenchLines => "tiobench-0.3.3",
            Self::TiobenchSections => "tiobench-0.4",
            Self::Hdparm => "hdparm",
            Self::Dd => "dd",
            Self::FioJson => "fio-json",
            Self::FioTerse => "fio-terse",
            Self::FioNormal => "fio-normal",
            Self::Iozone => "iozone",
            Self::HdbenchClone => "hdbench-clone",
            Self::Elbencho => "elbencho",
            Self::Vdbench => "vdbench",
            Self::Sysbench => "sysbench",
        }
    }

    /// The tool that writes it.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Bonnie => "bonnie++",
            Self::Tiotest | Self::TiotestTerse => "tiotest",
            Self::TiobenchLines | Self::TiobenchSections => "tiobench",
            Self::Hdparm => "hdparm",
            Self::Dd => "dd",
            Self::FioJson | Self::FioTerse | Self::FioNormal => "fio",
            Self::Iozone => "iozone",
            Self::HdbenchClone => "HDBENCH clone",
            Self::Elbencho => "elbencho",
            Self::Vdbench => "vdbench",
            Self::Sysbench => "sysbench",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| {
                let all: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
                format!(
                    "'{text}' is no import format: write one of {}, or fio or tiobench",
                    all.join(", ")
                )
            })
    }
}

/// What a user says a file is: a format, or a tool, of whose formats the content tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One format.
    Format(Format),
    /// A tool by [`Format::tool`].
    Tool(&'static str),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_tool = |format: &Format| {
            // HDBENCH clone is called HDBENCH for short.
            let tool = format.tool();
            tool.eq_ignore_ascii_case(text) || tool.split(' ').any(|t| t.eq_ignore_ascii_case(text))
        };
        match text.parse() {
            Ok(format) => Ok(Self::Format(format)),
            Err(message) => match Format::ALL.iter().find(|format| is_tool(format)) {
                Some(format) => Ok(Self::Tool(format.tool())),
                None => Err(message),
            },
        }
    }
}

/// The format that a text looks like, `None` when it looks like none.
///
/// The first line that only one tool writes decides; the text may begin with the tool's chatter.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    detect_among(text, |_| true)
}

/// The same of the formats that pass.
pub(super) fn detect_among(text: &str, passes: impl Fn(Format) -> bool) -> Option<Format> {
    let mut found = text
        .lines()
        .filter_map(|line| {
            Some((
                of_line(line)?,
                line.as_ptr() as usize - text.as_ptr() as usize,
            ))
        })
        .filter(|(format, _)| passes(*format));
    // JSON has no line of its own, and `--output-format=normal,json` prints both, `terse,json`, too.
    let json = fio::first_object(text).filter(|_| passes(Format::FioJson));
    match (found.next(), json) {
        (Some((format, at)), Some(json))
            if at < json && !matches!(format, Format::FioNormal | Format::FioTerse) =>
        {
            Some(format)
        }
        (_, Some(_)) => Some(Format::FioJson),
        (found, None) => found.map(|(format, _)| format),
    }
}

/// Tools of which a text has output, too, and the line that each begins in.
pub(super) fn others(text: &Text<'_>, format: Format) -> Vec<(usize, Format)> {
    let mut found: Vec<(usize, Format)> = Vec::new();
    for line in text.lines() {
        let other = of_line(line.text).filter(|other| other.tool() != format.tool());
        if let Some(other) = other
            && found.iter().all(|(_, known)| known.tool() != other.tool())
        {
            found.push((line.number, other));
        }
    }
    let json = fio::first_object(text.as_str()).filter(|_| format.tool() != Format::FioJson.tool());
    let known = found
        .iter()
        .any(|(_, known)| known.tool() == Format::FioJson.tool());
    if let Some(at) = json.filter(|_| !known) {
        let line = text.as_str()[..at].matches('\n').count() + 1;
        found.push((line, Format::FioJson));
    }
    found
}

/// The text without what a mail or a Markdown file has put before the lines of that format.
pub(super) fn without_margin(text: Text<'_>, format: Format) -> Text<'_> {
    // Their lines are told apart by how they begin, or their values by columns from there on. Those of
    // others begin with spaces of their own, which do not matter or tell columns, as iozone's do.
    let flush = matches!(
        format,
        Format::Bonnie
            | Format::Tiotest
            | Format::TiotestTerse
            | Format::FioTerse
            | Format::Elbencho
    );
    text.without_margin(|line| of_line(line) == Some(format), flush)
}

fn of_line(line: &str) -> Option<Format> {
    // As quoted in a mail.
    let trimmed = line.trim().trim_start_matches(['>', ' ', '\t']);
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| trimmed.starts_with(p));
    let all = |parts: &[&str]| parts.iter().all(|p| trimmed.contains(p));
    if trimmed.is_empty() {
        None
    } else if (starts(&["Version "]) && trimmed.contains("------Sequential "))
        || starts(&["name,file_size,putc", "format_version,bonnie_version"])
        || is_bonnie_row(trimmed)
    {
        Some(Format::Bonnie)
    } else if starts(&["Tiotest results for "]) {
        Some(Format::Tiotest)
    } else if ["write:", "rwrite:", "read:", "rread:"]
        .iter()
        .filter_map(|name| trimmed.strip_prefix(name))
        .any(|rest| rest.split(',').count() == 8)
    {
        Some(Format::TiotestTerse)
    } else if all(&["Run #", "tiotest -t"])
        || all(&["File", "Block", "Num", "Seq Read", "Rand Read"])
    {
        Some(Format::TiobenchLines)
    } else if trimmed == "Unit information" || all(&["Identifier", "Size", "Thr", "Rate", "(CPU%)"])
    {
        Some(Format::TiobenchSections)
    } else if trimmed.contains("Timing ") && all(&[" reads"]) {
        Some(Format::Hdparm)
    } else if dd_records(trimmed).is_some() || all(&[" bytes", " copied, ", "/s"]) {
        Some(Format::Dd)
    } else {
        of_later_tools(trimmed)
    }
}

fn of_later_tools(trimmed: &str) -> Option<Format> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| trimmed.starts_with(p));
    let all = |parts: &[&str]| parts.iter().all(|p| trimmed.contains(p));
    if trimmed
        .split(';')
        .nth(1)
        .is_some_and(|f| f.starts_with("fio-"))
    {
        Some(Format::FioTerse)
    } else if all(&[": (groupid=", "jobs=", "err="]) || all(&["): rw=", "ioengine=", "iodepth="]) {
        Some(Format::FioNormal)
    } else if starts(&["Iozone: Performance Test", "iozone test complete"])
        || all(&["reclen", "rewrite", "reread"])
    {
        Some(Format::Iozone)
    } else if trimmed.contains("HDBENCH clone")
        || (all(&["FLOAT", "READ", "WRITE", "DRIVE"]))
        || all(&["RECT", "SCR", "READ", "WRITE", "DRIVE"])
    {
        Some(Format::HdbenchClone)
    } else if starts(&["ISO date,"]) {
        Some(Format::Elbencho)
    } else if all(&["Run", "Interval", "reqrate", "MB/sec"])
        || trimmed.to_lowercase().contains("vdbench flatfile")
    {
        Some(Format::Vdbench)
    } else if starts(&["sysbench "]) || trimmed.contains("Extra file open flags:") {
        Some(Format::Sysbench)
    } else {
        None
    }
}

/// `3+0 records in`, in whatever language: how many whole records, and whether they were read where that
/// is told in English. Words may stand before the numbers, as in Chinese, but no other number.
pub(super) fn dd_records(trimmed: &str) -> Option<(u64, Option<bool>)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let start = trimmed.find(is_digit)?;
    let (full, rest) = trimmed[start..].split_once('+')?;
    let partial = rest.split(|c| !is_digit(c)).next().unwrap_or("");
    let (before, after) = (&trimmed[..start], &rest[partial.len()..]);
    let digits = |s: &str| !s.is_empty() && s.chars().all(is_digit);
    let is_word = |c: char| c.is_alphabetic() || c.is_whitespace() || !c.is_ascii();
    let words = |s: &str| s.chars().all(is_word);
    let has_words = !before.trim().is_empty() || !after.trim().is_empty();
    let is_short = trimmed.chars().count() <= 80;
    if !digits(full) || !digits(partial) || !has_words || !is_short {
        return None;
    }
    if !words(before) || !words(after) {
        return None;
    }
    let is_in = match after {
        " records in" => Some(true),
        " records out" => Some(false),
        _ => None,
    };
    Some((full.parse().ok()?, is_in))
}

/// A CSV line of bonnie++: 27 fields or more, with a size (or nothing) where the size belongs.
pub(super) fn is_bonnie_row(trimmed: &str) -> bool {
    let fields = trimmed.split(',').count();
    let first = trimmed.split(',').next().unwrap_or("");
    if first.starts_with("1.9") {
        return fields >= 20;
    }
    // A comma in the machine name shifts the size, which is the 26th field from the end.
    (20..=64).contains(&fields)
        && !trimmed.starts_with("ISO date")
        && trimmed.rsplit(',').take(26).all(|field| {
            field.is_empty() || field.starts_with(|c: char| c == '+' || c.is_ascii_digit())
        })
}
