//! From declarations to an experiment: hardware in its places, every cell resolved and checked.
mod array;
mod btrfs;
mod design;
mod engine;
mod form;
mod host;
mod idle;
mod members;
mod place;
mod product;
mod profile;
mod refer;
mod sizes;
mod state;
mod view;
mod write_back;
mod zfs;

pub(crate) use array::{NO_CHUNK, share};
pub(crate) use btrfs::capacity as btrfs_capacity;

use crate::Known;
use crate::diagnostic::{Diagnostic, Problems};
use crate::experiment::{Cell, EXPERIMENT_VERSION, Experiment, Factor};
use crate::hardware::Disk;
use crate::prices::{self, Prices};
use crate::read::Draft;
use crate::read::factors::DraftFactor;
use crate::read::key::Key;
use crate::read::setting::{Bound, What};
use crate::setup::{Array, Setup};
use place::Hardware;
use product::Combination;
use raidlab_core::units::{Bytes, SECTOR};
use refer::Words;
use std::collections::{BTreeMap, BTreeSet};
use view::{Used, View};

/// The experiment, or nothing when something is wrong with it, which is told.
pub(crate) fn check(problems: &Problems, draft: Draft, known: &Known<'_>) -> Option<Experiment> {
    let (hardware, prices) = match (draft.groups, draft.topology) {
        (Some(groups), Some(topology)) => {
            let prices = prices::prices(problems, &groups, &topology);
            (place::place(problems, &groups, topology, known), prices)
        }
        _ => (None, Prices::default()),
    };
    let used = Used::default();
    let words = Words::new(
        problems,
        &draft.factors,
        &draft.fixed,
        &draft.only,
        &draft.exclude,
    );
    overruled(problems, &draft.factors, &draft.fixed);
    let (combinations, excluded) =
        product::product(problems, &draft.factors, &draft.fixed, &words, &used)?;
    let mut cells = Vec::new();
    let mut whole = true;
    for combination in &combinations {
        if problems.enough() {
            return None;
        }
        match resolve(problems, hardware.as_ref(), &combination.view) {
            Some(setup) => cells.push(Cell {
                label: combination.label.clone(),
                levels: combination.levels.clone(),
                setup,
            }),
            None => whole = false,
        }
    }
    if whole {
        unused(problems, &draft.factors, &draft.fixed, &used, &combinations);
        duplicates(problems, &draft.factors, &combinations, &cells);
    }
    let cells = whole.then_some(cells);
    let parts = design::Parts {
        words: &words,
        named: &combinations,
        cells: cells.as_deref(),
    };
    let design = parts.design(problems, &draft.design);
    let expected = parts.expected(problems, draft.expected.as_ref(), known);
    let has = design::Has {
        // One that is wrong has been told.
        baseline: draft.design.baseline.is_some(),
        published: draft.expected.is_some(),
    };
    let report = parts.report(problems, draft.report, has);
    let hardware = hardware?;
    Some(Experiment {
        experiment_version: EXPERIMENT_VERSION,
        title: draft.title,
        question: draft.question,
        design,
        report,
        expected,
        factors: draft.factors.iter().map(factor).collect(),
        excluded,
        disks: hardware.disks,
        buses: hardware.buses,
        controllers: hardware.controllers,
        prices,
        cells: cells?,
    })
}

fn factor(draft: &DraftFactor) -> Factor {
    let levels = draft.levels.iter().map(|level| level.label.value.clone());
    Factor {
        name: draft.name.value.clone(),
        levels: levels.collect(),
    }
}

/// One cell with all defaults.
fn resolve(problems: &Problems, hardware: Option<&Hardware>, view: &View<'_>) -> Option<Setup> {
    let kernel = host::kernel(view);
    array::chunks(problems, view);
    let built = match hardware {
        Some(hardware) if !view.lacks(&array::NEEDED) => {
            array::array(problems, hardware, view, kernel)
        }
        _ => None,
    };
    // One of which something could not be read is as good as told, and none to go on with.
    let built = built.filter(|_| !view.is_broken("array"));
    let room = built.as_ref().and_then(|built| built.room);
    let array = built.map(|built| built.array);
    let host_known = !view.is_broken("host");
    let system_known = !view.lacks(&[Key::Kernel]);
    let chosen = profile::profile(problems, view);
    let idle = chosen.as_ref().map_or_else(Vec::new, |chosen| {
        idle::of_host(&chosen.profile, view, array.as_ref())
    });
    let of_host = view.without(&idle);
    let host =
        system_known.then(|| host::host(problems, &of_host, hardware, array.as_ref(), kernel));
    let host = host.filter(|_| host_known);
    let makes_files = chosen.as_ref().map(|c| profile::makes_files(&c.profile));
    let filesystem = match (view.is_broken("filesystem") || !system_known, makes_files) {
        (false, Some(makes_files)) => {
            let sector = array
                .as_ref()
                .map_or(Bytes(SECTOR), |a| sector(a, hardware));
            let finds = (makes_files, sector);
            host::filesystem(problems, view, array.as_ref(), kernel, finds)?
        }
        _ => None,
    };
    let (host, array, chosen) = (host??, array?, chosen?);
    if view.is_broken("filesystem") {
        return None;
    }
    let on = profile::On {
        array: &array,
        host: &host,
        filesystem: filesystem.as_ref(),
        sector: sector(&array, hardware),
        room,
    };
    let (settings, phases) = profile::planned(problems, view, &chosen, on)?;
    Some(Setup {
        array,
        host,
        filesystem,
        profile: chosen.profile,
        settings,
        phases,
    })
}

/// Bytes of the largest logical sectors among an array's members, which are its own.
fn sector(array: &Array, hardware: Option<&Hardware>) -> Bytes {
    let disks = hardware.into_iter().flat_map(|hardware| &hardware.disks);
    let members = disks.filter(|disk| array.members.contains(&disk.name));
    let largest = members.map(Disk::logical_sector).max();
    largest.unwrap_or(Bytes(SECTOR))
}

/// A fixed value that a factor of plain values overrules in every cell.
fn overruled(problems: &Problems, factors: &[DraftFactor], fixed: &[Bound]) {
    for factor in factors.iter().filter(|f| !f.named) {
        let varied = factor.levels.first().and_then(|l| l.bounds.first());
        for bound in fixed
            .iter()
            .filter(|b| varied.is_some_and(|v| v.what == b.what))
        {
            let message = format!("'{}' is both fixed and varied", bound.name);
            let problem = Diagnostic::new(bound.key_at.clone(), message);
            let problem = problem.also(factor.name.at.clone(), "varied here");
            problems.push(problem.help("drop one of them"));
        }
    }
}

/// Values that made no difference in any cell. Levels that are left out everywhere are no cell's.
fn unused(
    problems: &Problems,
    factors: &[DraftFactor],
    fixed: &[Bound],
    used: &Used,
    combinations: &[Combination<'_>],
) {
    let kept: BTreeSet<(&str, &str)> = combinations
        .iter()
        .flat_map(|c| c.levels.iter().map(|(k, v)| (k.as_str(), v.as_str())))
        .collect();
    let levels = factors
        .iter()
        .flat_map(|f| f.levels.iter().map(move |l| (f, l)));
    let varied = levels
        .filter(|(f, l)| kept.contains(&(f.name.value.as_str(), l.label.value.as_str())))
        .flat_map(|(_, l)| &l.bounds);
    let cells = combinations.iter();
    let profiles: BTreeSet<String> = cells
        .filter_map(|c| Some(c.view.text(Key::Profile)?.value))
        .collect();
    let used = used.borrow();
    for bound in fixed.iter().chain(varied) {
        let setters = factors.iter().filter(|f| {
            let mut bounds = f.levels.iter().flat_map(|l| &l.bounds);
            bounds.any(|b| b.what == bound.what)
        });
        let fixed = fixed.iter().any(|b| b.at == bound.at);
        // Set once more by a factor: that has been told, or it is the default of named levels.
        let overruled = setters.clone().any(|f| !f.named) && fixed || setters.count() > 1;
        if overruled || used.contains(&(bound.at.start, bound.at.end)) {
            continue;
        }
        let (message, help) = match &bound.what {
            What::Setting {
                scope: Some(scope), ..
            } if !profiles.contains(*scope) => (
                format!("no cell runs profile '{scope}'"),
                "drop its settings, or add the profile to the factor 'profile'".to_owned(),
            ),
            What::Setting { name, .. } => (
                format!("'{}' makes no difference in any cell", bound.name),
                format!(
                    "drop it, or {}",
                    idle::needs(name).unwrap_or("use a profile that takes it")
                ),
            ),
            What::Key(key) => (
                format!("'{}' makes no difference in any cell", bound.name),
                format!("drop it, or use {}", takes(key.name())),
            ),
        };
        problems.wrong(&bound.key_at, message, &help);
    }
}

/// What a setting needs to make a difference.
fn takes(name: &str) -> &'static str {
    match name {
        "chunk" => "a striped layout",
        "outer-chunk" => "a nested layout such as 'raid50 2x3'",
        "ashift" | "record-size" => "a layout of ZFS such as zfs-mirror or raidz1",
        "allocated" => "a rebuilding pool of ZFS, or array of btrfs",
        "metadata" => "engine md",
        "bitmap-chunk" => "bitmap = \"internal\" with a redundant layout of engine md",
        "bitmap" => "a redundant layout of engine md",
        "initial-sync" => {
            "a redundant layout of engine md that is not in its initial sync or resyncing"
        }
        "stripe-cache" | "group-threads" => "raid4, raid5 or raid6 of engine md",
        "sync-speed-min" | "sync-speed-max" => {
            "an array of engine md in its initial sync, resyncing or rebuilding"
        }
        "rebuild-rate" => {
            "an array of a controller's own RAID in its initial sync, resyncing or rebuilding"
        }
        "dirty-limit" | "dirty-background" | "dirty-expire" | "dirty-writeback" => {
            "it where something is written through the page cache (direct = false), and not by ZFS, which has limits of its own"
        }
        "read-ahead" => {
            "it where calls go through the page cache (direct = false), and not on btrfs or ZFS, which have a read-ahead of their own"
        }
        "filesystem-journal" | "filesystem-mode" => "a file system with a journal",
        "filesystem-block" | "mount-options" => "a file system",
        _ => "it in a cell that is not left out",
    }
}

/// Two cells that come to the same would be one sample taken for two.
fn duplicates(
    problems: &Problems,
    factors: &[DraftFactor],
    combinations: &[Combination<'_>],
    cells: &[Cell],
) {
    let mut seen: BTreeMap<String, &Cell> = BTreeMap::new();
    for (cell, combination) in cells.iter().zip(combinations) {
        let Ok(text) = serde_json::to_string(&cell.setup) else {
            continue;
        };
        let Some(earlier) = seen.get(&text) else {
            seen.insert(text, cell);
            continue;
        };
        let differs = factors.iter().find(|f| {
            let name = &f.name.value;
            earlier.levels.get(name) != combination.levels.get(name)
        });
        let Some(factor) = differs else { continue };
        let name = &factor.name.value;
        let level = combination.levels.get(name).cloned().unwrap_or_default();
        let at = factor.levels.iter().find(|l| l.label.value == level);
        let at = at.map_or(factor.name.at.clone(), |l| l.label.at.clone());
        let message = format!(
            "cells '{}' and '{}' are the same",
            earlier.label, cell.label
        );
        let others = factors
            .iter()
            .filter(|f| f.name.value != *name && f.levels.len() > 1);
        let rest: Vec<String> = others
            .filter_map(|f| Some((&f.name.value, combination.levels.get(&f.name.value)?)))
            .map(|(name, level)| format!("{name} = \"{level}\", "))
            .collect();
        let help = format!(
            "'{name}' makes no difference there: add [[exclude]] with {}{name} = \"{level}\"",
            rest.concat()
        );
        problems.wrong(&at, message, &help);
    }
}
