//! Jobs and their options: which ran together, and which options make another cell.
use super::model::Job;
use crate::import::draft::Draft;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::{GIB, KIB, MIB};
use std::collections::{BTreeMap, BTreeSet};

/// Options that are sizes, and the factors they become.
const SIZES: [(&str, &str); 2] = [("bs", "block-size"), ("size", "file-size")];
/// Options that make another cell.
const FACTORS: [&str; 6] = [
    "rw",
    "ioengine",
    "iodepth",
    "numjobs",
    "direct",
    "rwmixread",
];

/// Jobs that ran together as one, and what their phases' names begin with.
pub(super) struct Group<'a> {
    pub(super) prefix: String,
    pub(super) jobs: Vec<&'a Job>,
}

/// Jobs of the same name and group ran together (`numjobs`, several hosts): one phase.
pub(super) fn grouped(jobs: &[Job]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for job in jobs {
        let at = *places
            .entry((&job.jobname, job.groupid))
            .or_insert_with(|| {
                groups.push(Group {
                    prefix: String::new(),
                    jobs: Vec::new(),
                });
                groups.len() - 1
            });
        groups[at].jobs.push(job);
    }
    if groups.len() > 1 {
        for ((name, group), at) in &places {
            let next = places.range((*name, group.saturating_add(1))..).next();
            let before = places.range(..(*name, *group)).next_back();
            let shared = [next, before]
                .into_iter()
                .flatten()
                .any(|((n, _), _)| n == name);
            groups[*at].prefix = if shared {
                format!("{name}#{group}/")
            } else {
                format!("{name}/")
            };
        }
    }
    groups
}

pub(super) type Options = BTreeMap<String, String>;

pub(super) fn settings(draft: &mut Draft, global: &Options, groups: &[Group<'_>]) {
    for (option, value) in global {
        draft.setting(option, value);
    }
    for group in groups {
        let prefix = &group.prefix;
        for (option, value) in &group.jobs[0].options {
            draft.setting(&format!("{prefix}{option}"), value);
        }
    }
    let common = |option: &str| -> Option<String> {
        let own = |job: &Job| {
            job.options
                .get(option)
                .or_else(|| global.get(option))
                .cloned()
        };
        let values: BTreeSet<Option<String>> = groups.iter().map(|g| own(g.jobs[0])).collect();
        (values.len() == 1)
            .then(|| values.into_iter().next().flatten())
            .flatten()
    };
    for option in FACTORS {
        if let Some(value) = common(option) {
            draft.factors.insert(option.to_owned(), value);
        }
    }
    for (option, factor) in SIZES {
        if let Some(bytes) = common(option).as_deref().and_then(size) {
            draft.factor(factor, bytes);
        }
    }
    let hosts: BTreeSet<&str> = groups
        .iter()
        .flat_map(|group| &group.jobs)
        .filter_map(|job| job.hostname.as_deref())
        .collect();
    if !hosts.is_empty() {
        draft.setting("hosts", Vec::from_iter(hosts).join(","));
    }
}

/// A size as fio's options have it; its `k` is 1024 unless `kb_base=1000` was given.
fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// fio's random jobs visit the same offsets in every run unless `randrepeat=0` is given.
pub(super) fn flag_repeated_offsets(draft: &mut Draft, global: &Options, jobs: &[Job]) {
    let get = |job: &Job, option: &str| {
        job.options
            .get(option)
            .or_else(|| global.get(option))
            .cloned()
    };
    let repeated = jobs.iter().find(|job| {
        let random = get(job, "rw").is_some_and(|rw| rw.contains("rand"));
        let off = get(job, "randrepeat").is_some_and(|v| matches!(v.as_str(), "0" | "false"));
        random && !off
    });
    let Some(repeated) = repeated else { return };
    // With a seed of its own a run differs from those of other seeds.
    let reason = match get(repeated, "randseed") {
        Some(_) => {
            "randseed is given: every run of the same seed visits the same offsets, so that a \
             cache can answer a repeated run"
        }
        None => {
            "randrepeat is on: every run visits the same offsets, so that a cache can answer a \
             repeated run"
        }
    };
    draft.flags.push(Flag::new(FlagKind::Other, reason));
}
