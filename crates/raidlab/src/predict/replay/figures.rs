//! The response times as CSV, and their summary.
use super::Found;
use crate::args::ReplayArgs;
use crate::commands::files::{Stream, is_stdout};
use crate::commands::output::give_stdout;
use crate::commands::{print, print_json};
use crate::exit::Failure;
use crate::talk;
use raidlab_core::histogram::Latencies;
use raidlab_core::op::BlockKind;
use raidlab_core::words::count;
use raidlab_sim::trace::{Format, Replay, Replayed};
use serde_json::json;
use std::fmt::Write as _;

/// Percentiles of the summary.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

const HEADER: &str =
    "index,arrival_ms,device,kind,lba,sectors,response_ms,measured_ms,error,moved_to\n";

/// Where the response times go, request by request.
pub(super) struct Rows {
    out: Option<Stream>,
    written: Result<(), Failure>,
    row: String,
    begun: bool,
}

impl Rows {
    pub(super) fn of(args: &ReplayArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.out {
            give_stdout("--out", path, args.json)?;
        }
        let out = match &args.out {
            Some(path) => Some(Stream::to_file(path)?),
            None if args.json => None,
            None => Some(Stream::to_stdout()),
        };
        Ok(Self {
            out,
            written: Ok(()),
            row: String::new(),
            begun: false,
        })
    }

    /// Writes the row of a request to a device of this name, unless one before could not be written.
    pub(super) fn add(&mut self, replayed: &Replayed, device: impl FnOnce() -> String) {
        if let Some(out) = &mut self.out
            && self.written.is_ok()
        {
            self.row.clear();
            // No heading above nothing: what cannot be replayed at all leaves no data.
            if !std::mem::replace(&mut self.begun, true) {
                self.row.push_str(HEADER);
            }
            row_of(&mut self.row, &device(), replayed);
            self.written = out.write(&self.row);
        }
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        self.written?;
        self.out.map_or(Ok(()), Stream::finish)
    }
}

fn row_of(row: &mut String, device: &str, replayed: &Replayed) {
    let record = &replayed.record;
    let kind = match record.kind {
        BlockKind::Read => "read",
        BlockKind::Write => "write",
        BlockKind::Flush | BlockKind::FlushData => "flush",
    };
    let millis = |nanos: u64| format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
    let measured = record
        .response
        .map_or_else(String::new, |span| millis(span.0));
    let error = replayed
        .error
        .map_or_else(String::new, |errno| errno.0.to_string());
    let moved = if replayed.lba == record.lba {
        String::new()
    } else {
        replayed.lba.to_string()
    };
    let _ = writeln!(
        row,
        "{},{},{},{kind},{},{},{},{measured},{error},{moved}",
        replayed.index,
        millis(replayed.came.0),
        // A comma would begin another column.
        device.replace(',', ":"),
        record.lba,
        record.sectors,
        millis(replayed.response.0),
    );
}

pub(super) fn tell(
    args: &ReplayArgs,
    name: &str,
    found: &Found,
    came: &Replay,
) -> Result<(), Failure> {
    let all = &came.responses;
    let format = Format::ALL.iter().find(|(_, known)| *known == found.format);
    let format = format.map_or("", |(name, _)| name);
    let millis = |span: Option<raidlab_core::time::Span>| span.map(|s| s.as_millis_f64());
    if args.json {
        let percentiles: serde_json::Map<_, _> = PERCENTILES
            .iter()
            .map(|p| (format!("p{p}"), json!(millis(all.told_percentile(*p)))))
            .collect();
        return print_json(&json!({
            "trace": args.trace, "format": format, "on": name, "seed": args.seed,
            "requests": came.tally.ops, "skipped": found.skipped(), "moved": came.moved,
            "has_times": found.has_times, "depth": found.depth, "out_of_order": found.sorted,
            "unread_lines": found.left_out.unread, "discards": found.left_out.discards,
            "other_requests": found.left_out.others, "failed_requests": found.left_out.failed,
            "elapsed_ms": came.tally.elapsed().as_millis_f64(),
            "mean_in_flight": came.tally.mean_while_any(),
            "response_ms": {
                "mean": millis(all.mean()), "max": millis(all.max()), "percentiles": percentiles,
            },
            "demerit": came.demerit.map(|d| json!({
                "requests": d.requests, "rms_ms": d.rms / 1e6, "relative": d.relative,
                "measured_mean_ms": d.measured_mean / 1e6, "predicted_mean_ms": d.predicted_mean / 1e6,
            })),
        }));
    }
    let text = summary(args, (name, format), found, came, all);
    match args.out.as_deref().filter(|path| !is_stdout(path)) {
        Some(path) => {
            talk::note(&format!("wrote {}", path.display()));
            print(&text)
        }
        None => {
            talk::note(text.trim_end());
            Ok(())
        }
    }
}

/// What was done otherwise than by the trace alone.
fn how(found: &Found, came: &Replay) -> String {
    let skipped = match found.skipped() {
        0 => String::new(),
        n => format!(", {n} of other devices left out"),
    };
    let depth = match found.depth {
        None => String::new(),
        Some(1) => ", one after the other".to_owned(),
        Some(depth) => format!(", {depth} in flight at a time"),
    };
    let moved = match came.moved {
        0 => String::new(),
        n => format!(", {n} moved inside"),
    };
    depth + &moved + &skipped
}

fn summary(
    args: &ReplayArgs,
    (name, format): (&str, &str),
    found: &Found,
    came: &Replay,
    all: &Latencies,
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({format}) on {name}: {} in {}{}",
        args.trace.display(),
        count(came.tally.ops, "request"),
        came.tally.elapsed(),
        how(found, came)
    );
    let (Some(mean), Some(max)) = (all.mean(), all.max()) else {
        return text;
    };
    let _ = write!(text, "response time: mean {mean}");
    for percent in PERCENTILES {
        if let Some(span) = all.told_percentile(percent) {
            let _ = write!(text, ", p{percent} {span}");
        }
    }
    let _ = writeln!(
        text,
        ", max {max}; {:.2} in flight while there were any",
        came.tally.mean_while_any()
    );
    match came.demerit {
        Some(demerit) => {
            let _ = writeln!(
                text,
                "against {}: mean {:.3} ms, measured {:.3} ms; demerit {:.3} ms, \
                 relative demerit {:.1} %",
                count(demerit.requests, "measured time"),
                demerit.predicted_mean / 1e6,
                demerit.measured_mean / 1e6,
                demerit.rms / 1e6,
                100.0 * demerit.relative
            );
        }
        None => text.push_str("the trace has no response times to compare with\n"),
    }
    text
}
