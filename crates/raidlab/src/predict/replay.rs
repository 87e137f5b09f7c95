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
use raidlab_sim::trace::{Format, LeftOut, Reader, ReplayOptions, Replayed, replay};
use std::collections::BTreeMap;

pub(crate) fn run(args: &ReplayArgs) -> Result<Outcome, Failure> {
    let format = args.format.as_deref().map(format_of).transpose()?;
    let Some(name) = &args.disk else {
        return place::on_array(args, format);
    };
    let model = catalogue::disk(name)?;
    let target = DiskTarget::new(Disk::new(&model.disk, args.seed));
    on(args, format, target, model.disk.name())
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
    /// Requests of each device that was replayed.
    devices: BTreeMap<u32, u64>,
}

fn on(
    args: &ReplayArgs,
    format: Option<Format>,
    mut target: impl Target,
    name: &str,
) -> Result<Outcome, Failure> {
    let mut lines = Lines::open(&args.trace)?;
    let format = lines.format(format)?;
    let mut rows = Rows::of(args, format)?;
    let mut devices = BTreeMap::new();
    let each = |replayed: &Replayed| {
        *devices.entry(replayed.record.device).or_default() += 1;
        rows.add(replayed);
    };
    let options = ReplayOptions {
        device: args.device,
        wrap: args.wrap,
    };
    let mut records = Reader::new(format, &mut lines);
    let came = replay(&mut records, &mut target, options, each);
    let found = Found {
        format,
        sorted: records.out_of_order(),
        left_out: records.left_out(),
        devices,
    };
    lines.failure()?;
    let came = came.map_err(|error| notes::failure(&args.trace, &error))?;
    notes::left_out(&args.trace, found.left_out);
    if came.tally.all_ops == 0 {
        return Err(notes::nothing(args, format, came.skipped));
    }
    rows.finish()?;
    notes::tell(args, &found);
    figures::tell(args, name, &found, &came)?;
    Ok(Outcome::Done)
}
