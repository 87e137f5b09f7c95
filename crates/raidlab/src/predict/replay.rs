//! `raidlab replay`: a recorded trace on a modelled disk or array.
mod figures;
mod lines;
mod notes;
mod place;

use super::catalogue;
use crate::args::ReplayArgs;
use crate::exit::{Failure, Outcome};
use figures::Rows;
use lines::Lines;
use raidlab_core::target::Target;
use raidlab_sim::disk::{Disk, DiskTarget};
use raidlab_sim::trace::{Format, LeftOut, Reader, ReplayOptions, Replayed, grain, replay};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub(crate) fn run(args: &ReplayArgs) -> Result<Outcome, Failure> {
    let format = args.format.as_deref().map(format_of).transpose()?;
    let Some(name) = &args.disk else {
        return place::on_array(args, format);
    };
    let model = catalogue::disk(name)?;
    let target = DiskTarget::new(Disk::new(&model.disk, args.seed));
    let options = ReplayOptions {
        grain: grain(model.disk.sectors(), model.disk.physical(), 0),
        ..ReplayOptions::default()
    };
    on(args, format, target, model.disk.name(), options)
}

fn format_of(name: &str) -> Result<Format, Failure> {
    let found = Format::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
        Failure::bad_request(format!("there is no trace format '{name}'"))
            .remedy(format!("choose from {}", known.join(", ")))
    })
}

/// What a trace turned out to have, beside the figures.
struct Found {
    format: Format,
    /// Requests that stood after younger ones.
    sorted: u64,
    left_out: LeftOut,
    /// Other devices with their requests, those with most first.
    others: Vec<(String, u64)>,
    /// Whether it says when requests came, as far as it was read beforehand.
    has_times: bool,
    /// It did say so from somewhere later on.
    late_times: bool,
    /// Requests that were kept in flight; `None`: each came when the trace says.
    depth: Option<u32>,
    /// Devices that were replayed with their requests, those with most first.
    devices: Vec<(String, u64)>,
}

impl Found {
    /// Requests of other devices.
    fn skipped(&self) -> u64 {
        self.others.iter().map(|(_, count)| count).sum()
    }
}

fn on(
    args: &ReplayArgs,
    format: Option<Format>,
    mut target: impl Target,
    name: &str,
    options: ReplayOptions,
) -> Result<Outcome, Failure> {
    let mut lines = Lines::open(&args.trace)?;
    let format = lines.format(format)?;
    let mut rows = Rows::of(args)?;
    let mut records = Reader::new(format, &mut lines);
    if let Some(name) = &args.device
        && let Err(error) = records.only(name)
    {
        return Err(notes::no_device(&error, records));
    }
    let has_times = records.has_times();
    let options = ReplayOptions {
        depth: args.depth.or((!has_times).then_some(1)),
        wrap: args.wrap,
        ..options
    };
    // Rows have the devices' names, which the reader learns as it reads.
    let records = RefCell::new(records);
    let mut devices: BTreeMap<u32, u64> = BTreeMap::new();
    let each = |replayed: &Replayed| {
        *devices.entry(replayed.record.device).or_default() += 1;
        rows.add(replayed, || records.borrow().device(replayed.record.device));
    };
    let next = std::iter::from_fn(|| records.borrow_mut().next());
    let came = replay(next, &mut target, options, each);
    let mut records = records.into_inner();
    let found = Found {
        format,
        sorted: records.out_of_order(),
        left_out: records.left_out(),
        others: named(&records, records.others()),
        has_times,
        late_times: !has_times && records.has_times(),
        depth: options.depth,
        devices: named(&records, &devices),
    };
    lines.failure()?;
    let came = came.map_err(|error| notes::failure(&args.trace, &error))?;
    notes::left_out(&args.trace, found.left_out);
    if came.tally.ops == 0 {
        return Err(notes::nothing(args, format, &found.others));
    }
    rows.finish()?;
    notes::tell(args, &found, came.moved);
    figures::tell(args, name, &found, &came)?;
    Ok(Outcome::Done)
}

/// Devices with their requests, those with most first.
fn named<L, S>(records: &Reader<L>, devices: &BTreeMap<u32, u64>) -> Vec<(String, u64)>
where
    L: Iterator<Item = S>,
    S: AsRef<str>,
{
    let mut named: Vec<(String, u64)> = devices
        .iter()
        .map(|(number, count)| (records.device(*number), *count))
        .collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    named
}
