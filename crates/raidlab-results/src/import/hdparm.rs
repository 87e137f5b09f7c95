//! `hdparm -t` and `-T`, also with `--direct` and `--offset`. MB are 2^20 bytes.
use super::Reading;
use super::draft::{Draft, Harvest, bytes_phase, flag_if_short, no_figure};
use super::error::Fault;
use super::scan::{decimal, expected, integer, parse_part, words};
use super::text::{Line, Text, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::flag::FlagKind;
use raidlab_core::units::{KIB, MIB};
use std::ops::RangeInclusive;
use winnow::combinator::{alt, opt, preceded, terminated};
use winnow::prelude::*;

/// What a line of timing says before its figures.
#[derive(Debug, PartialEq, Eq)]
struct Title {
    phase: &'static str,
    offset: Option<u64>,
}

/// Its figures: MB, seconds and bytes a second, the latter with the step it was rounded to.
#[derive(Debug)]
struct Figures {
    megabytes: u64,
    seconds: f64,
    rate: f64,
    unit: u64,
}

pub(super) fn read(text: &Text<'_>) -> Reading {
    let mut harvest = Harvest::default();
    let mut draft: Option<Draft> = None;
    // A title whose figures an error message has pushed to another line.
    let mut waiting: Option<(Line<'_>, Title, String)> = None;
    for line in text.lines() {
        let trimmed = line.text.trim();
        if trimmed.is_empty() {
            continue;
        }
        let timing = line.text.find("Timing ");
        if timing.is_some() || is_device(trimmed) {
            give_up(&mut waiting, &mut draft)?;
        }
        if let Some(at) = timing {
            if at > 0 && !line.text[..at].trim().is_empty() {
                harvest.remark(
                    line.number,
                    format!("{} is left out", quoted(&line.text[..at])),
                );
            }
            take_timing(line, &line.text[at..], &mut draft, &mut waiting)?;
        } else if is_device(trimmed) {
            harvest
                .drafts
                .extend(draft.take().filter(|d| !d.phases.is_empty()));
            let device = trimmed.trim_end_matches(':');
            draft = Some(Draft::new("hdparm", "hdparm", device));
        } else if let Some((begun, title, _)) =
            waiting.as_ref().filter(|_| trimmed.contains(" MB in "))
        {
            let at = line.text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
            let phase = measured(line, &line.text[at..], title)?;
            let number = begun.number;
            add(&mut draft, phase, title.offset, line)?;
            harvest.remark(
                number,
                "the figures are on a later line, after an error message",
            );
            waiting = None;
        } else {
            if let Some((_, _, reasons)) = &mut waiting {
                reasons.push_str("; ");
                reasons.push_str(trimmed);
            }
            harvest.remark(line.number, format!("hdparm said {}", line.quoted()));
        }
    }
    text.whole_last_line()?;
    give_up(&mut waiting, &mut draft)?;
    harvest
        .drafts
        .extend(draft.filter(|d| !d.phases.is_empty()));
    Ok(harvest)
}

fn is_device(trimmed: &str) -> bool {
    trimmed.starts_with('/') && trimmed.ends_with(':') && !trimmed.contains(' ')
}

fn take_timing<'a>(
    line: Line<'a>,
    part: &'a str,
    draft: &mut Option<Draft>,
    waiting: &mut Option<(Line<'a>, Title, String)>,
) -> Result<(), Fault> {
    let Some(colon) = part.find(':') else {
        return Err(line
            .cut("the line ends")
            .expected("'Timing … reads:' and its figures"));
    };
    let (head, rest) = part.split_at(colon + 1);
    let title = parse_part(line, head, "'Timing … reads:'", title)?;
    let rest = rest.trim_start();
    if rest.starts_with(|c: char| c.is_ascii_digit()) || rest.is_empty() {
        let phase = measured(line, rest, &title)?;
        return add(draft, phase, title.offset, line);
    }
    // `read() hit EOF - device too small` and its like take the place of the figures.
    *waiting = Some((line, title, rest.to_owned()));
    Ok(())
}

/// A title that no figures followed: the reading failed, and hdparm said why.
fn give_up(
    waiting: &mut Option<(Line<'_>, Title, String)>,
    draft: &mut Option<Draft>,
) -> Result<(), Fault> {
    let Some((line, title, reason)) = waiting.take() else {
        return Ok(());
    };
    let reason = format!("hdparm gave no figure: {reason}");
    let phase = no_figure(title.phase, Unit::BytesPerSecond, FlagKind::Other, &reason);
    add(draft, phase, title.offset, line)
}

fn add(
    draft: &mut Option<Draft>,
    phase: PhaseRecord,
    offset: Option<u64>,
    line: Line<'_>,
) -> Result<(), Fault> {
    let Some(draft) = draft else {
        return Err(line
            .fault(0, line.quoted())
            .expected("the device on a line of its own above, such as /dev/sda:"));
    };
    if draft.phases.iter().any(|other| other.phase == phase.phase) {
        return Err(line
            .fault(0, format!("{} twice for {}", phase.phase, draft.label))
            .expected("the device named again before a repeat"));
    }
    if let Some(gigabytes) = offset {
        draft.factor("offset-gb", gigabytes);
    }
    draft.phases.push(phase);
    Ok(())
}

fn title(input: &mut &str) -> winnow::Result<Title> {
    words("Timing").parse_next(input)?;
    let direct = opt(terminated("O_DIRECT", ' '))
        .parse_next(input)?
        .is_some();
    let cached = alt((
        // As versions up to 5.x call it.
        alt(("cached", "buffer-cache")).value(true),
        "buffered disk".value(false),
        "disk".value(false),
    ))
    .context(expected("cached, buffered disk or disk"))
    .parse_next(input)?;
    words("reads").parse_next(input)?;
    let offset = opt(preceded(
        words("(offset"),
        terminated(integer, words("GB)")),
    ))
    .parse_next(input)?;
    ':'.parse_next(input)?;
    let phase = match (direct, cached) {
        (false, true) => "cached-read",
        (false, false) => "buffered-read",
        (true, true) => "direct-cached-read",
        (true, false) => "direct-read",
    };
    Ok(Title { phase, offset })
}

fn figures(input: &mut &str) -> winnow::Result<Figures> {
    let megabytes = integer.parse_next(input)?;
    words("MB in").parse_next(input)?;
    let seconds = decimal.parse_next(input)?;
    words("seconds =").parse_next(input)?;
    let rate = decimal.parse_next(input)?;
    let unit = preceded(' ', alt(("MB/sec".value(MIB), "kB/sec".value(KIB))))
        .context(expected("MB/sec or kB/sec"))
        .parse_next(input)?;
    Ok(Figures {
        megabytes,
        seconds,
        rate,
        unit,
    })
}

impl Figures {
    /// Bytes a second as near as they are told: the printed rate, or bytes by seconds of a disk so slow
    /// that its seconds have more digits than its rate. What is outside of the other's rounding is moved
    /// to its edge.
    fn precise(&self, bytes: u64) -> f64 {
        const HALF: f64 = 0.005;
        let (unit, bytes) = (self.unit as f64, bytes as f64);
        let printed = (self.rate - HALF).max(0.0) * unit..=(self.rate + HALF) * unit;
        let shortest = (self.seconds - HALF).max(0.0);
        if shortest <= 0.0 {
            return self.rate * unit;
        }
        let quotient = bytes / (self.seconds + HALF)..=bytes / shortest;
        let width = |range: &RangeInclusive<f64>| range.end() - range.start();
        let (nearest, other) = if width(&quotient) < width(&printed) {
            (bytes / self.seconds, printed)
        } else {
            (self.rate * unit, quotient)
        };
        nearest.max(*other.start()).min(*other.end())
    }
}

fn measured(line: Line<'_>, part: &str, title: &Title) -> Result<PhaseRecord, Fault> {
    let what = "N MB in N seconds = N MB/sec";
    let told = parse_part(line, part.trim_end(), what, figures)?;
    let unit = told.unit as f64;
    let bytes = told
        .megabytes
        .checked_mul(MIB)
        .ok_or_else(|| line.fault_at(part, "too many MB").expected(what))?;
    // MB are whole, seconds and rate rounded to 0.01: what they leave open, with one step to spare.
    let (least, most) = (told.seconds - 0.011, told.seconds + 0.011);
    let slack = 0.011 * unit;
    let too_low = told.rate * unit + slack < bytes as f64 / most;
    let too_high = least > 0.0 && told.rate * unit - slack > bytes as f64 / least;
    if too_low || too_high || told.rate <= 0.0 {
        return Err(line
            .fault_at(part, quoted(part))
            .expected("a rate that is MB by seconds"));
    }
    let rate = told.precise(bytes);
    let mut phase = bytes_phase(title.phase, rate);
    phase.bytes = Some(bytes);
    // More digits than the printed seconds have.
    phase.elapsed_ns = Some(super::draft::nanoseconds(bytes as f64 / rate));
    flag_if_short(&mut phase, told.seconds);
    Ok(phase)
}
