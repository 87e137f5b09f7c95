//! Settings of queues, drives and arrays.
use super::plan::{Draft, PlanError};
use super::step::{Node, Step};
use raidlab_experiment::kernel::Scheduler;

/// What the members' queues and caches are set to.
pub(super) fn members(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    let host = &draft.setup.host;
    for (number, member) in draft.members.iter().enumerate() {
        let node = Node::Member(number);
        let mut set = |attribute: &'static str, value: String| {
            draft.steps.push(Step::Set {
                node: node.clone(),
                name: member.identity.name.clone(),
                attribute,
                value,
            });
        };
        let first = number == 0;
        let mut note = |text: String| {
            if first {
                draft.notes.push(text);
            }
        };
        if let Some(wanted) = host.scheduler {
            match scheduler(wanted, &member.schedulers) {
                Some(there) => {
                    if there != wanted.name() {
                        note(format!(
                            "this kernel has no scheduler {wanted}; {there}, which came after it, is set"
                        ));
                    }
                    set("queue/scheduler", there.to_owned());
                }
                None if member.schedulers.is_empty() => {
                    note(format!("{} has no scheduler to set", member.identity.name));
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
            set("queue/max_sectors_kb", (size.0 / 1024).to_string());
        }
        // After the scheduler, which brings a number of its own.
        if let Some(requests) = host.queue_requests {
            set("queue/nr_requests", requests.to_string());
        }
        match host.drive_queue {
            Some(depth) if member.has_queue_depth => set("device/queue_depth", depth.to_string()),
            Some(_) => note("the depth of the drives' own queue cannot be set here".to_owned()),
            None => {}
        }
        if member.write_cache == Some(host.write_cache) {
            continue;
        }
        if member.ata {
            let switch = if host.write_cache { "-W1" } else { "-W0" };
            let path = member.path.display().to_string();
            let words = ["hdparm", switch, &path].map(str::to_owned).to_vec();
            draft.steps.push(Step::WriteCache {
                member: number,
                words,
                on: host.write_cache,
            });
        } else if first {
            let wanted = if host.write_cache { "on" } else { "off" };
            draft.notes.push(format!(
                "the write cache of {} cannot be switched {wanted}: it is no ATA drive",
                member.identity.name
            ));
        }
    }
    Ok(())
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
    if let Some(stripes) = draft.setup.array.stripe_cache {
        // Of a nested array the inner ones have the cache.
        let parity: Vec<u32> = draft.steps.iter().filter_map(parity_array).collect();
        for number in parity {
            set(draft, number, "md/stripe_cache_size", stripes.to_string());
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
