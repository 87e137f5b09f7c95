//! What is to be known of a replay beside its figures: what was left out or put together, why it came to nothing.
use super::{Found, named};
use crate::args::ReplayArgs;
use crate::exit::{Failure, TRIAL_FAILED};
use crate::talk;
use raidlab_core::words::count;
use raidlab_sim::trace::{Format, LeftOut, Misfit, NoDevice, Reader, ReplayError};
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
    if left_out.failed > 0 {
        talk::note(&format!(
            "{trace}: {} failed when the trace was recorded and {} replayed without {} measured time",
            count(left_out.failed, "request"),
            if left_out.failed == 1 { "was" } else { "were" },
            if left_out.failed == 1 { "its" } else { "their" }
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
pub(super) fn tell(args: &ReplayArgs, found: &Found, moved: u64) {
    let trace = args.trace.display();
    if !found.has_times && args.depth.is_none() {
        talk::note(&format!(
            "{trace}: the log has no times (fio before 3.31 writes none): each request was issued when the one before \
             had ended; --depth N keeps N in flight, as fio's iodepth did"
        ));
    }
    if found.late_times && args.depth.is_none() {
        talk::warn(&format!(
            "{trace}: lines of 'wait' came when the log had been taken for one without times, and were not heeded"
        ));
    }
    if moved > 0 {
        talk::note(&format!(
            "{trace}: {} beyond the end {} moved inside (column moved_to)",
            count(moved, "request"),
            if moved == 1 { "was" } else { "were" }
        ));
    }
    if found.sorted > 0 {
        talk::note(&format!(
            "{trace}: {} stood after younger ones and {} by time",
            count(found.sorted, "request"),
            if found.sorted == 1 {
                "was put in its place"
            } else {
                "were put in their place"
            }
        ));
    }
    if found.devices.len() > 1 {
        talk::note(&together(args, &found.devices));
    }
}

/// Devices that are told by name.
const MOST_DEVICES: usize = 4;
/// The same where one of them is to be chosen.
const MOST_CHOICES: usize = 20;

/// Devices with their requests, as far as they are told by name.
fn listed(devices: &[(String, u64)], most: usize) -> String {
    let named = devices.iter().take(most);
    let mut named: Vec<String> = named
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    if devices.len() > most {
        named.push("...".to_owned());
    }
    named.join(", ")
}

/// That requests of several devices were put to one, whose response times no device of the trace has had.
fn together(args: &ReplayArgs, devices: &[(String, u64)]) -> String {
    format!(
        "{}: requests of {} devices were put to one: {}; --device {} replays one of them alone",
        args.trace.display(),
        devices.len(),
        listed(devices, MOST_DEVICES),
        devices[0].0
    )
}

/// A replay of nothing is a mistake: an empty trace, or a device that is not in it.
pub(super) fn nothing(args: &ReplayArgs, format: Format, others: &[(String, u64)]) -> Failure {
    let trace = args.trace.display();
    match &args.device {
        Some(name) if !others.is_empty() => {
            let skipped: u64 = others.iter().map(|(_, count)| count).sum();
            Failure::bad_request(format!(
                "{trace} has no request of device {name}, and {skipped} of others: {}",
                listed(others, MOST_CHOICES)
            ))
            .remedy("leave --device out to replay all, or name another")
        }
        _ => nowhere(&trace.to_string(), format),
    }
}

/// A name that no device of such a trace has, with the names of those that are in it as far as it can be read.
pub(super) fn no_device<L, S>(error: &NoDevice, mut records: Reader<L>) -> Failure
where
    L: Iterator<Item = S>,
    S: AsRef<str>,
{
    let mut devices = BTreeMap::new();
    while let Some(Ok(record)) = records.next() {
        *devices.entry(record.device).or_default() += 1;
    }
    let failure = Failure::bad_request(format!("--device: {error}"));
    if devices.is_empty() {
        return failure;
    }
    let devices = listed(&named(&records, &devices), MOST_CHOICES);
    failure.remedy(format!("devices of this trace are {devices}"))
}

fn nowhere(trace: &str, format: Format) -> Failure {
    let failure = Failure::bad_request(format!("{trace} has no request"));
    match format {
        Format::Blkparse => failure.remedy(
            "requests are lines of the action Q in blkparse's own format: trace and print them without -a, -f and -F",
        ),
        _ => failure,
    }
}

pub(super) fn failure(path: &Path, error: &ReplayError) -> Failure {
    let trace = path.display();
    match error {
        ReplayError::Trace(wrong) => Failure::bad_request(format!("{trace}:{wrong}")),
        ReplayError::Request { misfit, .. } => {
            let message = format!("{trace}:{error}");
            match misfit {
                Misfit::Beyond { .. } => Failure::bad_request(message)
                    .remedy("--wrap moves such requests inside; --disk names a larger model"),
                Misfit::Unaligned { .. } => Failure::bad_request(message).remedy(
                    "replay on disks whose logical sectors have 512 bytes ('sector-logical' of the experiment's \
                     disks), or leave such requests out of the trace",
                ),
                Misfit::TooLarge(_) | Misfit::TooLate(_) => Failure::bad_request(message),
                Misfit::Failed(_) => Failure::new(TRIAL_FAILED, message),
            }
        }
        ReplayError::Drive(_) => Failure::from_error(TRIAL_FAILED, error),
    }
}
