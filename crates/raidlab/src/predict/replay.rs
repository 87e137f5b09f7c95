//! `raidlab replay`: a recorded trace on a modelled disk or array.
use super::catalogue;
use crate::args::{DesignArgs, ReplayArgs};
use crate::commands::files::{self, Stream};
use crate::commands::{print, print_json};
use crate::exit::{BAD_REQUEST, Failure, Outcome, TRIAL_FAILED};
use crate::talk;
use raidlab_core::histogram::Latencies;
use raidlab_core::op::BlockKind;
use raidlab_core::target::Target;
use raidlab_core::words::count;
use raidlab_experiment::{Cell, Experiment};
use raidlab_sim::disk::{Disk, DiskTarget};
use raidlab_sim::machine::Machine;
use raidlab_sim::trace::{
    Format, LeftOut, Reader, Replay, ReplayError, ReplayOptions, Replayed, replay,
};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Percentiles of the summary.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

pub(crate) fn run(args: &ReplayArgs) -> Result<Outcome, Failure> {
    let format = args.format.as_deref().map(format_of).transpose()?;
    let Some(name) = &args.disk else {
        return on_array(args, format);
    };
    let model = catalogue::disk(name)?;
    let target = DiskTarget::new(Disk::new(&model.disk, args.seed));
    on(args, format, target, model.disk.name())
}

/// On the array of an experiment's cell, past the host's cache.
fn on_array(args: &ReplayArgs, format: Option<Format>) -> Result<Outcome, Failure> {
    let Some(file) = &args.experiment else {
        return Err(
            Failure::bad_request("a trace is replayed on something, and nothing is named")
                .remedy("name a modelled disk with --disk, or an array with --experiment"),
        );
    };
    let mut experiment = catalogue::experiment(file, &DesignArgs::default())?;
    let mut cell = cell_of(&experiment, args.cell.as_deref())?.clone();
    // A trace has the addresses of a block device.
    cell.setup.filesystem = None;
    experiment.cells.clear();
    let mut machine = Machine::build(&experiment, &cell, args.seed)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    machine.set_direct(true);
    on(args, format, machine, &cell.label)
}

/// The cell that is meant; the only one when none is named.
fn cell_of<'e>(experiment: &'e Experiment, label: Option<&str>) -> Result<&'e Cell, Failure> {
    let labels = || {
        let all: Vec<&str> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
        format!("choose with --cell from: {}", all.join("; "))
    };
    match (label, &experiment.cells[..]) {
        (None, [only]) => Ok(only),
        (None, cells) => {
            let message = format!("the experiment has {} cells", cells.len());
            Err(Failure::bad_request(message).remedy(labels()))
        }
        (Some(label), cells) => cells.iter().find(|c| c.label == label).ok_or_else(|| {
            Failure::bad_request(format!("the experiment has no cell '{label}'")).remedy(labels())
        }),
    }
}

fn format_of(name: &str) -> Result<Format, Failure> {
    let found = Format::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
        Failure::bad_request(format!("there is no trace format '{name}'"))
            .remedy(format!("choose from {}", known.join(", ")))
    })
}

/// Lines of a file until one cannot be read, which is kept.
struct Lines<R> {
    input: R,
    failed: RefCell<Option<std::io::Error>>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                while line.last().is_some_and(|end| matches!(end, b'\n' | b'\r')) {
                    line.pop();
                }
                // What is not text is no number either, and is told with its place.
                Some(String::from_utf8_lossy(&line).into_owned())
            }
            Err(error) => {
                *self.failed.borrow_mut() = Some(error);
                None
            }
        }
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = files::open(path).map_err(|error| cannot_read(path, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_request(format!("cannot read {}: {error}", path.display()))
}

fn on(
    args: &ReplayArgs,
    format: Option<Format>,
    mut target: impl Target,
    name: &str,
) -> Result<Outcome, Failure> {
    let mut lines = Lines {
        input: open(&args.trace)?,
        failed: RefCell::new(None),
    };
    // Lines before the first that says something are kept, for the numbers in messages.
    let mut head = Vec::new();
    while let Some(line) = lines.next() {
        let empty = line.trim().is_empty();
        head.push(line);
        if !empty {
            break;
        }
    }
    if let Some(error) = lines.failed.borrow_mut().take() {
        return Err(cannot_read(&args.trace, &error));
    }
    let first = head.last().map_or("", String::as_str);
    let format = format.or_else(|| Format::detect(first)).ok_or_else(|| {
        if first.trim().is_empty() {
            let nothing = format!("{}: there is nothing in it", args.trace.display());
            return Failure::bad_request(nothing);
        }
        Failure::bad_request(format!(
            "{}: no known trace begins like this",
            args.trace.display()
        ))
        .remedy("name the format with --format: fio, blkparse, spc, msr or disksim")
    })?;
    let mut out = match &args.out {
        Some(path) => Some(Stream::to_file(path)?),
        None if args.json => None,
        None => Some(Stream::to_stdout()),
    };
    let mut written = Ok(());
    let (mut row, mut begun) = (String::new(), false);
    let mut devices: BTreeMap<u32, u64> = BTreeMap::new();
    let each = |replayed: &Replayed| {
        *devices.entry(replayed.record.device).or_default() += 1;
        if let Some(out) = &mut out
            && written.is_ok()
        {
            row.clear();
            // No heading above nothing: what cannot be replayed at all leaves no data.
            if !std::mem::replace(&mut begun, true) {
                row.push_str(HEADER);
            }
            row_of(&mut row, format, replayed);
            written = out.write(&row);
        }
    };
    let options = ReplayOptions {
        device: args.device,
        wrap: args.wrap,
    };
    let (came, sorted, left_out) = {
        let rest = std::iter::from_fn(|| lines.next());
        let mut records = Reader::new(format, head.into_iter().chain(rest));
        let came = replay(&mut records, &mut target, options, each);
        (came, records.out_of_order(), records.left_out())
    };
    if let Some(error) = lines.failed.borrow_mut().take() {
        return Err(cannot_read(&args.trace, &error));
    }
    let came = came.map_err(|error| failure(&args.trace, &error))?;
    warn_of(&args.trace, left_out);
    if came.tally.all_ops == 0 {
        return Err(nothing(args, format, came.skipped));
    }
    written?;
    if let Some(out) = out {
        out.finish()?;
    }
    if sorted > 0 {
        talk::note(&format!(
            "{}: {} stood after younger ones and {} by time",
            args.trace.display(),
            count(sorted, "request"),
            if sorted == 1 {
                "was put in its place"
            } else {
                "were put in their place"
            }
        ));
    }
    if devices.len() > 1 {
        talk::note(&together(args, format, &devices));
    }
    tell(args, name, format, &came, sorted, left_out)?;
    Ok(Outcome::Done)
}

/// Nothing of a trace is left out without a word.
fn warn_of(trace: &Path, left_out: LeftOut) {
    let trace = trace.display();
    if let Some(first) = left_out.first {
        talk::warn(&format!(
            "{trace}: {} could not be read and {} left out, first line {first}",
            count(left_out.unread, "line"),
            if left_out.unread == 1 { "was" } else { "were" }
        ));
    }
    if left_out.discards > 0 {
        let discards = count(left_out.discards, "discard");
        talk::note(&format!(
            "{trace}: {discards} left out, which models do not know"
        ));
    }
}

/// Devices that are told by name.
const MOST_DEVICES: usize = 4;

/// A device as the trace calls it.
fn device(format: Format, number: u32) -> String {
    match format {
        Format::Blkparse => format!("{},{}", number >> 20, number & 0xf_ffff),
        _ => number.to_string(),
    }
}

/// That requests of several devices were put to one, whose response times no device of the trace has had.
fn together(args: &ReplayArgs, format: Format, devices: &BTreeMap<u32, u64>) -> String {
    let mut by_count: Vec<(&u32, &u64)> = devices.iter().collect();
    by_count.sort_by_key(|(number, count)| (std::cmp::Reverse(**count), **number));
    let named = by_count.iter().take(MOST_DEVICES);
    let named: Vec<String> = named
        .map(|(number, count)| format!("{} ({count})", device(format, **number)))
        .collect();
    let more = match devices.len().saturating_sub(MOST_DEVICES) {
        0 => "",
        _ => " ...",
    };
    format!(
        "{}: requests of {} devices were put to one: {}{more}; --device {} replays one of them alone",
        args.trace.display(),
        devices.len(),
        named.join(", "),
        device(format, *by_count[0].0)
    )
}

/// A replay of nothing is a mistake: an empty trace, or a device that is not in it.
fn nothing(args: &ReplayArgs, format: Format, skipped: u64) -> Failure {
    let trace = args.trace.display();
    match args.device {
        Some(number) if skipped > 0 => Failure::bad_request(format!(
            "{trace} has no request of device {}, and {skipped} of others",
            device(format, number)
        ))
        .remedy("leave --device out to replay all, or name another"),
        _ => Failure::bad_request(format!("{trace} has no request")),
    }
}

fn failure(path: &Path, error: &ReplayError) -> Failure {
    match error {
        ReplayError::Trace(wrong) => Failure::bad_request(format!("{}:{wrong}", path.display())),
        ReplayError::Beyond { .. } => {
            let failure = Failure::from_error(BAD_REQUEST, error);
            failure.remedy("--wrap moves such requests inside; --disk names a larger model")
        }
        ReplayError::Drive(_) => Failure::from_error(TRIAL_FAILED, error),
    }
}

const HEADER: &str = "index,arrival_ms,device,kind,lba,sectors,response_ms,measured_ms,error\n";

fn row_of(row: &mut String, format: Format, replayed: &Replayed) {
    let record = &replayed.record;
    let kind = match record.kind {
        BlockKind::Read => "read",
        BlockKind::Write => "write",
        BlockKind::Flush => "flush",
    };
    let millis = |nanos: u64| format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
    let measured = record
        .response
        .map_or_else(String::new, |span| millis(span.0));
    let error = replayed
        .error
        .map_or_else(String::new, |errno| errno.0.to_string());
    let _ = writeln!(
        row,
        "{},{},{},{kind},{},{},{},{measured},{error}",
        replayed.index,
        millis(record.at.0),
        // A comma would begin another column.
        device(format, record.device).replace(',', ":"),
        record.lba,
        record.sectors,
        millis(replayed.response.0),
    );
}

/// The response times of all requests together.
fn responses(came: &Replay) -> Latencies {
    let mut all = Latencies::new();
    for latencies in came.tally.response.iter().flatten() {
        all.merge(latencies);
    }
    all
}

fn tell(
    args: &ReplayArgs,
    name: &str,
    format: Format,
    came: &Replay,
    sorted: u64,
    left_out: LeftOut,
) -> Result<(), Failure> {
    let all = responses(came);
    let format = Format::ALL.iter().find(|(_, known)| *known == format);
    let format = format.map_or("", |(name, _)| name);
    let millis = |span: Option<raidlab_core::time::Span>| span.map(|s| s.as_millis_f64());
    if args.json {
        let percentiles: serde_json::Map<_, _> = PERCENTILES
            .iter()
            .map(|p| (format!("p{p}"), json!(millis(all.percentile(*p)))))
            .collect();
        return print_json(&json!({
            "trace": args.trace, "format": format, "on": name, "seed": args.seed,
            "requests": came.tally.all_ops, "skipped": came.skipped, "out_of_order": sorted,
            "unread_lines": left_out.unread, "discards": left_out.discards,
            "elapsed_ms": came.tally.elapsed().as_millis_f64(),
            "mean_in_flight": came.tally.mean_in_flight(),
            "response_ms": {
                "mean": millis(all.mean()), "max": millis(all.max()), "percentiles": percentiles,
            },
            "demerit": came.demerit.map(|d| json!({
                "requests": d.requests, "rms_ms": d.rms / 1e6, "relative": d.relative,
                "measured_mean_ms": d.measured_mean / 1e6, "predicted_mean_ms": d.predicted_mean / 1e6,
            })),
        }));
    }
    let text = summary(args, name, format, came, &all);
    match &args.out {
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

fn summary(args: &ReplayArgs, name: &str, format: &str, came: &Replay, all: &Latencies) -> String {
    let mut text = String::new();
    let skipped = match came.skipped {
        0 => String::new(),
        n => format!(", {n} of other devices left out"),
    };
    let _ = writeln!(
        text,
        "{} ({format}) on {name}: {} in {}{skipped}",
        args.trace.display(),
        count(came.tally.all_ops, "request"),
        came.tally.elapsed()
    );
    let (Some(mean), Some(max)) = (all.mean(), all.max()) else {
        return text;
    };
    let _ = write!(text, "response time: mean {mean}");
    for percent in PERCENTILES {
        // A percentile needs a request beyond it to be more than the maximum in disguise.
        let beyond = all.count() as f64 * (1.0 - percent / 100.0);
        if let Some(span) = all.percentile(percent).filter(|_| beyond >= 1.0) {
            let _ = write!(text, ", p{percent} {span}");
        }
    }
    let _ = writeln!(
        text,
        ", max {max}; {:.2} in flight while there were any",
        came.tally.mean_in_flight()
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
