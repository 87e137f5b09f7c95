//! `raidlab disk new`: a model file from what a datasheet says.
use super::figures::Derived;
use crate::args::{NewArgs, NewDisk, NewHdd, NewSsd};
use crate::commands::print;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::talk;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_sim::catalogue::datasheet::{HddSheet, SheetProblem, SsdSheet};
use raidlab_sim::catalogue::{self, Model};

pub(super) fn run(args: &NewArgs) -> Result<Outcome, Failure> {
    let (text, unsaid) = match &args.kind {
        NewDisk::Hdd(args) => (hdd(args).file().map_err(told)?, Vec::new()),
        NewDisk::Ssd(args) => {
            let sheet = ssd(args);
            (sheet.file().map_err(told)?, sheet.unsaid())
        }
    };
    // What 'disk show' will say of it; a file that is printed can be read.
    let model = catalogue::parse("the model", &text)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    print(&text)?;
    talk::note(&comes_to(&model));
    for unsaid in unsaid {
        talk::note(&unsaid);
    }
    Ok(Outcome::Done)
}

/// All that is wrong, each with its option.
fn told(problems: Vec<SheetProblem>) -> Failure {
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| format!("--{}: {}", problem.figure, problem.message))
        .collect();
    Failure::bad_request(lines.join("\n       "))
}

/// What the model makes of the figures, to hold beside the sheet.
fn comes_to(model: &Model) -> String {
    let of = Derived::of(&model.disk);
    let mb = |rate: f64| format!("{:.0} MB/s", rate / 1e6);
    let sequential = if of.rotation_half_ms.is_some() {
        format!(
            "{} to {} in sequence",
            mb(of.outer_bytes_per_second),
            mb(of.inner_bytes_per_second)
        )
    } else {
        format!("{} in sequence", mb(of.outer_bytes_per_second))
    };
    let random =
        |rate: Option<f64>| rate.map_or_else(|| "no".to_owned(), |rate| format!("{rate:.0}"));
    let writes = of.queued_write_iops.map_or_else(String::new, |rate| {
        let full = match of.full {
            true => ", full and written at random for long",
            false => "",
        };
        format!("; it writes {rate:.0} random 4 KiB a second{full}")
    });
    format!(
        "the model reads {sequential}, and {} random 4 KiB a second one at a time, {} with {} in flight{writes}; 'raidlab disk show ./FILE' tells the rest",
        random(of.random_read_iops),
        random(of.queued_read_iops),
        of.queue
    )
}

fn millis(span: Option<Span>) -> Option<f64> {
    span.map(|span| span.as_millis_f64())
}

/// A capacity without blanks, for names.
fn short(capacity: Bytes) -> String {
    let (tb, gb) = (capacity.0 as f64 / 1e12, capacity.0 as f64 / 1e9);
    if tb >= 1.0 {
        format!("{}tb", (tb * 100.0).round() / 100.0)
    } else {
        format!("{}gb", gb.round())
    }
}

fn sector(size: Option<Bytes>) -> Option<u32> {
    size.map(|size| u32::try_from(size.0).unwrap_or(u32::MAX))
}

fn hdd(args: &NewHdd) -> HddSheet {
    let name = args.name.clone();
    HddSheet {
        name: name.unwrap_or_else(|| format!("hdd-{}-{}rpm", short(args.capacity), args.rpm)),
        capacity: args.capacity,
        rpm: args.rpm,
        outer_rate: args.outer_rate as f64,
        inner_rate: args.inner_rate.map(|rate| rate as f64),
        seek_average: millis(args.seek_average),
        seek_average_write: millis(args.seek_average_write),
        seek_track: millis(args.seek_track),
        seek_full: millis(args.seek_full),
        cache: args.cache,
        interface: args.interface,
        heads: args.heads,
        sector_physical: sector(args.sector_physical),
        queue: args.queue,
        read_iops: args.read_iops,
        read_iops_depth: args.read_iops_depth,
    }
}

fn ssd(args: &NewSsd) -> SsdSheet {
    let name = args.name.clone();
    SsdSheet {
        name: name
            .unwrap_or_else(|| format!("ssd-{}-{}", short(args.capacity), args.interface.name)),
        capacity: args.capacity,
        read_rate: args.read_rate as f64,
        write_rate: args.write_rate as f64,
        sustained_write: args.sustained_write.map(|rate| rate as f64),
        read_iops: args.read_iops,
        write_iops: args.write_iops,
        sustained_write_iops: args.sustained_write_iops,
        cache: args.cache,
        interface: args.interface,
        protected: args.protected,
        sector_physical: sector(args.sector_physical),
        queue: args.queue,
    }
}

#[cfg(test)]
mod tests;
