//! `raidlab devices`: every block device, whether raidlab may overwrite it, and if not why not.
use super::{print_folded, print_json, print_text};
use crate::args::DevicesArgs;
use crate::exit::{Failure, Outcome};
use crate::real::host_failure;
use crate::real::members::{allow_list, why_not};
use crate::talk;
use raidlab_core::units::Bytes;
use raidlab_host::allow::{AllowList, Word, entry_for};
use raidlab_host::inventory::{Device, inventory};
use raidlab_host::ownership::Ownership;
use raidlab_io::observe::Roots;
use serde_json::json;
use std::fmt::Write as _;

pub(crate) fn run(args: &DevicesArgs) -> Result<Outcome, Failure> {
    let roots = Roots::system();
    let (path, list) = allow_list()?;
    let devices = inventory(&roots).map_err(|error| host_failure(&error))?;
    if args.json {
        let all = devices.iter().map(|device| {
            let why = why_not(device, &list);
            json!({ "device": device, "usable": why.is_none(), "why_not": why, "entry": entry(device, &list) })
        });
        print_json(&all.collect::<Vec<_>>())?;
        return Ok(Outcome::Done);
    }
    if devices.is_empty() {
        talk::note("this machine shows no block devices");
        return Ok(Outcome::Done);
    }
    let mut out = String::new();
    for device in &devices {
        out.push_str(&told(device, &list));
    }
    print_folded(&talk::plain(&out))?;
    // What is to be copied stays as it is.
    out.clear();
    let entries: Vec<String> = devices.iter().filter_map(|d| entry(d, &list)).collect();
    if !entries.is_empty() {
        let _ = write!(
            out,
            "\nTo let raidlab overwrite ALL of a free device, add its lines to {}:\n\n{}",
            path.display(),
            entries.join("\n")
        );
    }
    print_text(&talk::plain(&out))?;
    Ok(Outcome::Done)
}

/// The lines that would allow it, where that is all that is missing.
fn entry(device: &Device, list: &AllowList) -> Option<String> {
    let free = device.witnesses.ownership() == Ownership::Unowned;
    (free && list.word_on(device) == Word::Silent).then(|| entry_for(device))?
}

fn told(device: &Device, list: &AllowList) -> String {
    let mut out = format!(
        "{}  {}  {}",
        device.path.display(),
        Bytes(device.identity.size),
        device.kind
    );
    if let Some(model) = &device.model {
        let _ = write!(out, "  {model}");
    }
    if let Some(serial) = &device.identity.serial {
        let _ = write!(out, "  serial {serial}");
    }
    out.push('\n');
    if !device.above.is_empty() {
        let _ = writeln!(out, "    below {}", device.above.join(", "));
    }
    match why_not(device, list) {
        None => {
            out.push_str("    may be overwritten");
            if let Word::Yes(entry) = list.word_on(device)
                && let Some(array) = &entry.array
            {
                let _ = write!(out, ", as a controller's {array}");
            }
            out.push('\n');
        }
        Some(why) => {
            let _ = writeln!(out, "    not used: {why}");
        }
    }
    out
}
