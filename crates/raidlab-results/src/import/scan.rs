//! Pieces of grammar that the formats share, and the joining of winnow's errors to line and column.
use super::error::Fault;
use super::text::{Line, quoted};
use winnow::Result;
use winnow::ascii::{digit1, space0, space1};
use winnow::combinator::{alt, opt};
use winnow::error::{ContextError, StrContext, StrContextValue};
use winnow::prelude::*;

/// Largest figure taken: more is damage, and sums of such figures stay finite.
pub(super) const LARGEST: f64 = 1e18;

/// A run of digits that fits.
pub(super) fn integer(input: &mut &str) -> Result<u64> {
    digit1
        .try_map(str::parse)
        .context(expected("a whole number"))
        .parse_next(input)
}

/// Digits, optionally with a fraction (which may be empty) and an exponent; finite, not negative.
pub(super) fn decimal(input: &mut &str) -> Result<f64> {
    let exponent = (alt(('e', 'E')), opt(alt(('+', '-'))), digit1);
    (digit1, opt(('.', opt(digit1))), opt(exponent))
        .take()
        .try_map(str::parse::<f64>)
        .verify(|value| *value <= LARGEST)
        .context(expected("a number"))
        .parse_next(input)
}

/// What a parser was looking for, for the message.
pub(super) fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

/// A parser for words that are separated by any number of spaces, such as `"MB in"`.
pub(super) fn words<'s>(text: &'static str) -> impl Parser<&'s str, (), ContextError> {
    move |input: &mut &'s str| {
        space0.parse_next(input)?;
        for (i, word) in text.split(' ').enumerate() {
            if i > 0 {
                space1.parse_next(input)?;
            }
            word.context(expected(text)).parse_next(input)?;
        }
        space0.void().parse_next(input)
    }
}

/// Runs a parser over a whole line.
pub(super) fn parse_line<'s, O>(
    line: Line<'s>,
    what: &str,
    parser: impl Parser<&'s str, O, ContextError>,
) -> Result<O, Fault> {
    parse_part(line, line.text, what, parser)
}

/// Runs a parser over a part of a line, which it must take whole.
pub(super) fn parse_part<'s, O>(
    line: Line<'s>,
    part: &'s str,
    what: &str,
    mut parser: impl Parser<&'s str, O, ContextError>,
) -> Result<O, Fault> {
    parser.parse(part).map_err(|error| {
        let at = error.offset().min(part.len());
        let mut wanted = what.to_owned();
        let innermost = error.inner().context().find_map(|context| match context {
            StrContext::Expected(StrContextValue::Description(text)) => Some(*text),
            _ => None,
        });
        if let Some(text) = innermost {
            wanted = format!("{text} ({what})");
        }
        let rest = part.get(at..).unwrap_or("");
        let found = if rest.trim().is_empty() {
            "the line ends".to_owned()
        } else {
            quoted(rest)
        };
        line.fault_at(rest, found).expected(wanted)
    })
}

/// A number in a cell of its own.
pub(super) fn number(line: Line<'_>, cell: &str, what: &str) -> Result<f64, Fault> {
    let number = match cell.strip_prefix('-') {
        Some(_) => None,
        None => decimal.parse(cell).ok(),
    };
    number.ok_or_else(|| missing(line, cell, what, "a number"))
}

/// A whole number in a cell of its own.
pub(super) fn whole(line: Line<'_>, cell: &str, what: &str) -> Result<u64, Fault> {
    integer
        .parse(cell)
        .ok()
        .filter(|n| *n as f64 <= LARGEST)
        .ok_or_else(|| missing(line, cell, what, "a whole number"))
}

fn missing(line: Line<'_>, cell: &str, what: &str, kind: &str) -> Fault {
    let found = if cell.is_empty() {
        "an empty cell".to_owned()
    } else {
        quoted(cell)
    };
    line.fault_at(cell, found)
        .expected(format!("{kind} ({what})"))
}

/// The first `n` characters and the rest, or `None` when there are fewer.
pub(super) fn split_chars(text: &str, n: usize) -> Option<(&str, &str)> {
    match text.char_indices().nth(n) {
        Some((at, _)) => Some(text.split_at(at)),
        None => (text.chars().count() == n).then_some((text, "")),
    }
}
