//! Settings of queues, drives and arrays.
use super::plan::{Draft, PlanError};
use super::step::{Node, Step};
use raidlab_experiment::kernel::Scheduler;

/// What the members' queues and caches are set to.
pub(super) fn members(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    for number in 0..draft.members.len() {
        queue(draft, number)?;
        write_cache(draft, number);
    }
    Ok(())
}

/// The queue before a member, and the drive's own.
fn queue(draft: &mut Draft<'_>, number: usize) -> Result<(), PlanError> {
    let host = &draft.setup.host;
    let member = &draft.members[number];
    let mut settings: Vec<(&'static str, String)> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    if let Some(wanted) = host.scheduler {
        match scheduler(wanted, &member.schedulers) {
            Some(there) => {
                if there != wanted.name() {
                    notes.push(format!(
                        "this kernel has no scheduler {wanted}; {there}, which came after it, is set"
                    ));
                }
                settings.push(("queue/scheduler", there.to_owned()));
                // bfq switches that off by itself, but not where it was set by hand, as of modelled disks it was.
                if there == "bfq" && member.throttles && draft.options.modelled {
                    settings.push(("queue/wbt_lat_usec", "0".to_owned()));
                }
            }
            None if member.schedulers.is_empty() => {
                let name = &member.identity.name;
                notes.push(format!("{name} has no scheduler to set"));
            }
            None => {
                return Err(PlanError(format!(
                    "{} has no scheduler {wanted}: this kernel has {}",
                    member.identity.name,
                    member.schedulers.join(", ")
                )));
            }
        }
    }
    if let Some(size) = host.request_size {
        settings.push(("queue/max_sectors_kb", (size.0 / 1024).to_string()));
    }
    // After the scheduler, which brings a number of its own.
    if let Some(requests) = host.queue_requests {
        settings.push(("queue/nr_requests", requests.to_string()));
    }
    match host.drive_queue {
        Some(depth) if member.has_queue_depth => {
            settings.push(("device/queue_depth", depth.to_string()));
        }
        Some(_) => notes.push("the depth of the drives' own queue cannot be set here".to_owned()),
        None => {}
    }
    let name = member.identity.name.clone();
    let steps = settings.into_iter().map(|(attribute, value)| Step::Set {
        node: Node::Member(number),
        name: name.clone(),
        attribute,
        value,
    });
    draft.steps.extend(steps);
    // What is said of the first goes for all.
    if number == 0 {
        draft.notes.extend(notes);
    }
    Ok(())
}

/// The drive's own cache.
fn write_cache(draft: &mut Draft<'_>, number: usize) {
    let member = &draft.members[number];
    let on = draft.setup.host.write_cache;
    if member.write_cache == Some(on) {
        return;
    }
    if member.ata {
        let switch = if on { "-W1" } else { "-W0" };
        let path = member.path.display().to_string();
        let words = ["hdparm", switch, &path].map(str::to_owned).to_vec();
        draft.steps.push(Step::WriteCache {
            member: number,
            words,
            on,
        });
    } else if number == 0 {
        let wanted = if on { "on" } else { "off" };
        let name = &member.identity.name;
        draft.notes.push(format!(
            "the write cache of {name} cannot be switched {wanted}: it is no ATA drive"
        ));
    }
}

/// The scheduler, or the one that took its place when the single-queue block layer went (Linux 5.0): noop is none,
/// deadline is mq-deadline, and bfq was made from cfq. The anticipatory one went with Linux 2.6.33, because cfq, which waits
/// for the next request of a reader as well, did all that it did.
fn scheduler(wanted: Scheduler, there: &[String]) -> Option<&'static str> {
    let heir = match wanted {
        Scheduler::Noop => "none",
        Scheduler::Deadline => "mq-deadline",
        Scheduler::Cfq | Scheduler::Anticipatory => "bfq",
        other => other.name(),
    };
    let names = [wanted.name(), heir];
    names
        .into_iter()
        .find(|name| there.iter().any(|has| has == name))
}

/// What an array is set to before it is used.
pub(super) fn array(draft: &mut Draft<'_>, number: u32) {
    let array = &draft.setup.array;
    let settings = [
        ("md/stripe_cache_size", array.stripe_cache),
        ("md/group_thread_cnt", array.group_threads),
    ];
    // Of a nested array the inner ones have the cache and the threads.
    let parity: Vec<u32> = draft.steps.iter().filter_map(parity_array).collect();
    for (setting, value) in settings {
        let Some(value) = value else {
            continue;
        };
        for number in &parity {
            set(draft, *number, setting, value.to_string());
        }
    }
    if let Some(size) = draft.setup.host.read_ahead {
        set(
            draft,
            number,
            "queue/read_ahead_kb",
            (size.0 / 1024).to_string(),
        );
    }
}

fn parity_array(step: &Step) -> Option<u32> {
    let Step::Array { words, number, .. } = step else {
        return None;
    };
    let parity = ["--level=4", "--level=5", "--level=6"];
    words
        .iter()
        .any(|word| parity.contains(&word.as_str()))
        .then_some(*number)
}

/// What the system may keep of what is written: after all that building writes.
pub(super) fn system(draft: &mut Draft<'_>) {
    let settings = draft.setup.host.write_back.settings().into_iter();
    let steps = settings.map(|(name, value)| Step::System { name, value });
    draft.steps.extend(steps);
}

/// Limits of resync and rebuild: at the start of the phases, so that they do not hold up what is before.
pub(super) fn sync_speeds(draft: &mut Draft<'_>, number: u32) {
    let array = &draft.setup.array;
    let limits = [
        ("md/sync_speed_max", array.sync_speed_max),
        ("md/sync_speed_min", array.sync_speed_min),
    ];
    for (attribute, limit) in limits {
        if let Some(limit) = limit {
            let value = (limit / 1024).to_string();
            draft.start.push(Step::Set {
                node: Node::Array(number),
                name: format!("md{number}"),
                attribute,
                value,
            });
        }
    }
}

fn set(draft: &mut Draft<'_>, number: u32, attribute: &'static str, value: String) {
    draft.steps.push(Step::Set {
        node: Node::Array(number),
        name: format!("md{number}"),
        attribute,
        value,
    });
}
