//! What is to be known of a replay beside its figures: what was left out or put together, why it came to nothing.
use super::Found;
use crate::args::ReplayArgs;
use crate::exit::{BAD_REQUEST, Failure, TRIAL_FAILED};
use crate::talk;
use raidlab_core::words::count;
use raidlab_sim::trace::{Format, LeftOut, ReplayError};
use std::collections::BTreeMap;
use std::path::Path;

/// Nothing of a trace is left out without a word.
pub(super) fn left_out(trace: &Path, left_out: LeftOut) {
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
    if left_out.others > 0 {
        let others = count(left_out.others, "request");
        talk::note(&format!(
            "{trace}: {others} left out that neither read, write nor flush (zeroes without data, commands of programs, \
             zones), which models do not know"
        ));
    }
}

/// What was done with a trace that its figures do not show.
pub(super) fn tell(args: &ReplayArgs, found: &Found) {
    if found.sorted > 0 {
        talk::note(&format!(
            "{}: {} stood after younger ones and {} by time",
            args.trace.display(),
            count(found.sorted, "request"),
            if found.sorted == 1 {
                "was put in its place"
            } else {
                "were put in their place"
            }
        ));
    }
    if found.devices.len() > 1 {
        talk::note(&together(args, found.format, &found.devices));
    }
}

/// Devices that are told by name.
const MOST_DEVICES: usize = 4;

/// A device as the trace calls it.
pub(super) fn device(format: Format, number: u32) -> String {
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
pub(super) fn nothing(args: &ReplayArgs, format: Format, skipped: u64) -> Failure {
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

pub(super) fn failure(path: &Path, error: &ReplayError) -> Failure {
    match error {
        ReplayError::Trace(wrong) => Failure::bad_request(format!("{}:{wrong}", path.display())),
        ReplayError::Beyond { .. } => {
            let failure = Failure::from_error(BAD_REQUEST, error);
            failure.remedy("--wrap moves such requests inside; --disk names a larger model")
        }
        ReplayError::Drive(_) => Failure::from_error(TRIAL_FAILED, error),
    }
}
