//! Time and rate of resync and rebuild.
use super::tool_table::join_figure;
use crate::record::{Provenance, TrialRecord};
use crate::report::analysis::{Judging, join, summarise};
use crate::report::columns::REBUILD;
use crate::report::document::{Cell, Column, Table, Value};
use crate::report::format;
use crate::report::group::Group;
use raidlab_core::time::Span;
use raidlab_core::units::{GIB, KIB, MIB};
use std::collections::{BTreeMap, BTreeSet};

/// Why a resync of raid10 takes so much longer than its members are large (`md.c:md_do_sync`, `raid10.c:raid10_size`).
const BY_ARRAY: &str = "a resync of raid10 by md is counted in sectors of the array, not of a member, and its speed limits are limits of that: \
                        the members, each of which gets a share of it, could do more";

/// Why a load seems to leave more than there is.
const OUTER: &str = "of the part that it got through beside the load, which lies further out, where the disks are faster than on the whole; \
                     the time it would take is its time by itself, longer by what the load took from it there";

/// Why a measured resync has no time by itself.
const NOT_ALONE: &str = "on real devices a rebuild is carried out again by itself, after the phases, and a resync is not";

/// What a short load makes of the rate beside it (`md.c:md_do_sync`: ten marks, three seconds apart).
const BRIEF: &str = "beside a load of less than half a minute, which is as far as md looks back: it does not give way at once, and a longer \
                     load may leave it much less";
/// So far md looks back.
const LOOKS_BACK: Span = Span::from_secs(30);

/// The load of the phases ended before md's speed control had seen as much of it as it looks back at.
fn is_brief(group: &Group<'_>) -> bool {
    let md = group.cell.factors.get("engine").map(String::as_str) == Some("md");
    let load = |trial: &&TrialRecord| -> Option<u64> {
        let phases = trial.phases.iter().filter(|phase| phase.phase != REBUILD);
        phases.map(|phase| phase.elapsed_ns).sum()
    };
    let shortest = group.trials.iter().filter_map(load).min();
    md && shortest.is_some_and(|load| load < LOOKS_BACK.0)
}

/// Whether md counts what there is to do in sectors of the array.
fn by_array(group: &Group<'_>) -> bool {
    let factor = |name: &str| group.cell.factors.get(name).map(String::as_str);
    // Mirrors below stripes, such as `raid10 2x2` or `raid1+0`, are of that level, too, and arrays of their own.
    let nested = factor("layout").is_some_and(|layout| layout.contains([' ', '+']));
    factor("level") == Some("raid10")
        && !nested
        && factor("engine") == Some("md")
        && matches!(group.array_state(), "resyncing" | "initial-sync")
}

/// A line for each cell that was in its initial sync, resyncing or rebuilding; `None` when there is none.
pub(crate) fn rebuilds(groups: &[Group<'_>], judging: &Judging) -> Option<Table> {
    let columns = vec![
        Column::text("cell"),
        Column::text("state"),
        Column::number("GiB").under("to do"),
        Column::number("MiB/s").under("by itself"),
        Column::text("takes").under("by itself"),
        Column::number("MiB/s").under("beside the load"),
        Column::text("would take").under("beside the load"),
    ];
    let caption = "Resync and rebuild of the whole array, of ZFS and btrfs of what is allocated: with nothing else going \
                   on, and at the rate that the load of the phases leaves. Counted is what one member gets, of several \
                   arrays or vdevs at a time the sum";
    let how = match groups.iter().any(|group| group.runs(REBUILD).len() > 1) {
        true => format!("; {}", judging.how()),
        false => String::new(),
    };
    let mut table = Table::new("rebuild", format!("{caption}{how}"), columns);
    for group in groups {
        let rate = summarise(group, REBUILD, judging).map(|rate| rate.headline.value);
        let runs = group.told_runs(REBUILD);
        if runs.is_empty() {
            continue;
        }
        let figure = |name: &str| join_figure(&runs, name, judging);
        let time = |name: &str| {
            let found = figure(name);
            found.map_or_else(Cell::absent, |seconds| Cell::text(duration(seconds)))
        };
        let state = group.told_state();
        let plain = |value: f64| -> Cell {
            let decimals = format::decimals(value);
            Value::Number { value, decimals }.into()
        };
        let number = |rate: f64| plain(rate / MIB as f64);
        let bytes = runs.iter().filter_map(|run| run.phase.bytes);
        let bytes = join(bytes.map(|bytes| bytes as f64), judging);
        let loaded = figure("rebuild-rate-loaded");
        let alone = rate.filter(|_| figure("rebuild-time").is_some());
        let measured = !matches!(group.provenance, Provenance::Simulated);
        let to_do = bytes.map_or_else(Cell::absent, |bytes| plain(bytes / GIB as f64));
        let to_do = match by_array(group) {
            true => to_do.mark(table.footnote(BY_ARRAY)),
            false => to_do,
        };
        let beside = match loaded {
            Some(loaded) if alone.is_some_and(|alone| loaded > alone) => {
                number(loaded).mark(table.footnote(OUTER))
            }
            loaded => loaded.map_or_else(Cell::absent, number),
        };
        let beside = match loaded.is_some() && is_brief(group) {
            true => beside.mark(table.footnote(BRIEF)),
            false => beside,
        };
        let by_itself = match alone {
            Some(alone) => number(alone),
            None if measured => Cell::absent().mark(table.footnote(NOT_ALONE)),
            None => Cell::absent(),
        };
        table.rows.push(vec![
            Cell::text(group.label.clone()),
            state.map_or_else(Cell::absent, Cell::text),
            to_do,
            by_itself,
            time("rebuild-time"),
            beside,
            time("rebuild-time-loaded"),
        ]);
    }
    table.drop_empty_columns();
    (!table.rows.is_empty()).then_some(table)
}

/// A load leaves less than this share of what a resync or rebuild does by itself: told why.
const LITTLE: f64 = 0.25;
/// With less than this share of its floor it is not md that holds a resync or rebuild back: below the floor md waits for
/// nobody.
const AT_FLOOR: f64 = 0.8;
/// So many cells are named; of more the number is told.
const NAMED: usize = 6;

/// What md's speed control makes of a resync or rebuild beside others (`md.c:md_do_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncFloor {
    /// `sync_speed_min`, bytes a second: below it md waits for nobody.
    pub least: u64,
    /// What it does above.
    pub way: GivesWay,
}

/// How a resync or rebuild above its least speed gives way to others that use the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivesWay {
    /// It sleeps for half a second and looks again, until it is no faster than the least (before Linux 4.1).
    Sleeps,
    /// It waits until its own requests have ended, and goes on (since 4.1, "md: allow resync to go faster when there is competing IO").
    Drains,
    /// The same, with as many of its own in flight as `sync_io_depth` alone (since 6.16, "md: add a new api sync_io_depth").
    Queues,
}

impl GivesWay {
    /// The kernels that do it.
    const fn kernels(self) -> &'static str {
        match self {
            Self::Sleeps => "before Linux 4.1",
            Self::Drains => "from Linux 4.1 on",
            Self::Queues => "from Linux 6.16 on",
        }
    }

    /// What comes of it, for a floor of `least`.
    fn told(self, least: &str) -> String {
        match self {
            Self::Sleeps => format!(
                "while anything else uses the members, a resync or rebuild gets sync_speed_min, here {least}, and what pauses of the \
                 load leave"
            ),
            Self::Drains => format!(
                "above sync_speed_min, here {least}, a resync or rebuild that sees others use the members waits until all that it has \
                 in flight has ended before it sends the next 128 KiB of a member"
            ),
            Self::Queues => format!(
                "above sync_speed_min, here {least}, a resync or rebuild that sees others use the array waits, each time that it has \
                 sync_io_depth requests in flight (32), until they have all ended"
            ),
        }
    }
}

/// Why resyncs and rebuilds take so long beside the load, and what to change; nothing where none does. `floors` has the speed
/// control of the cells whose array is md's, `rates` the rebuild rates of those whose array is a controller's own, in per cent.
pub(crate) fn why_so_long(
    groups: &[Group<'_>],
    floors: &BTreeMap<String, SyncFloor>,
    rates: &BTreeMap<String, u32>,
    judging: &Judging,
) -> Vec<String> {
    let mut told = because_of_md(groups, floors, judging);
    told.extend(because_of_rates(groups, rates, judging));
    told
}

/// What the load leaves of the rate that a resync or rebuild has by itself, and its rate then; `None` where that is no little.
fn left_little(group: &Group<'_>, judging: &Judging) -> Option<f64> {
    let runs = group.runs(REBUILD);
    let alone = summarise(group, REBUILD, judging)?.headline.value;
    // Without its time by itself the rate is that beside the load.
    let takes = join_figure(&runs, "rebuild-time", judging)?;
    let loaded = join_figure(&runs, "rebuild-rate-loaded", judging)?;
    // Times are of the whole pass, and rates of the part that it got through.
    let left = match join_figure(&runs, "rebuild-time-loaded", judging) {
        Some(loaded) => takes / loaded,
        None => loaded / alone,
    };
    (left < LITTLE).then_some(loaded)
}

/// The same of controllers.
fn because_of_rates(
    groups: &[Group<'_>],
    rates: &BTreeMap<String, u32>,
    judging: &Judging,
) -> Option<String> {
    let slow = groups.iter().filter_map(|group| {
        let rate = *rates.get(&group.cell.label)?;
        left_little(group, judging).map(|_| (&group.label[..], rate))
    });
    let slow: Vec<(&str, u32)> = slow.filter(|(_, rate)| *rate < 100).collect();
    if slow.is_empty() {
        return None;
    }
    let rates: BTreeSet<u32> = slow.iter().map(|(_, rate)| *rate).collect();
    let rates: Vec<String> = rates.iter().map(|rate| format!("{rate} %")).collect();
    let names: Vec<&str> = slow.iter().map(|(name, _)| *name).collect();
    let takes = match slow.len() == groups.len() {
        true => "it takes".to_owned(),
        false => named(&names, "takes", "take"),
    };
    Some(format!(
        "Beside the load {takes} so long because the controller gives a resync or rebuild no more than its rebuild rate, here {} of \
         the time, while the host wants something; in that time its commands wait for those of the load, too. For less time \
         without redundancy, and a slower load, raise it: rebuild-rate in [array]; on a running machine it is a setting of the \
         controller.",
        rates.join(" or "),
    ))
}

/// The same of md.
fn because_of_md(
    groups: &[Group<'_>],
    floors: &BTreeMap<String, SyncFloor>,
    judging: &Judging,
) -> Vec<String> {
    let slow = groups.iter().filter_map(|group| {
        let floor = *floors.get(&group.cell.label)?;
        let loaded = left_little(group, judging)?;
        let at_floor = loaded >= AT_FLOOR * floor.least as f64;
        Some((&group.label[..], floor, at_floor))
    });
    let names = |cells: &[(&str, SyncFloor, bool)], one: &str, several: &str| {
        let names: Vec<&str> = cells.iter().map(|(name, ..)| *name).collect();
        named(&names, one, several)
    };
    let (held, busy): (Vec<_>, Vec<_>) = slow.partition(|(_, _, at_floor)| *at_floor);
    let mut told = Vec::new();
    if !held.is_empty() {
        let ways: BTreeSet<GivesWay> = held.iter().map(|(_, floor, _)| floor.way).collect();
        let of = |way: GivesWay| {
            let of = held.iter().filter(|(_, floor, _)| floor.way == way);
            let kib: BTreeSet<u64> = of.map(|(_, floor, _)| floor.least / KIB).collect();
            let kib: Vec<String> = kib.iter().map(|kib| format!("{kib} KiB/s")).collect();
            way.told(&kib.join(" or "))
        };
        let does = match &ways.iter().copied().collect::<Vec<_>>()[..] {
            [one] => of(*one),
            several => {
                let each = several
                    .iter()
                    .map(|way| format!("{}, {}", way.kernels(), of(*way)));
                each.collect::<Vec<_>>().join("; ")
            }
        };
        // Which ones is news where it is not all.
        let which = match busy.is_empty() {
            true => "it takes".to_owned(),
            false => names(&held, "takes", "take"),
        };
        told.push(format!(
            "Beside the load {which} so long because md lets others go first: {does}. For less time without redundancy, and a slower \
             load, raise that least speed: sync-speed-min in [array]; on a running machine /proc/sys/dev/raid/speed_limit_min, or \
             md/sync_speed_min of one array.",
        ));
    }
    if !busy.is_empty() {
        told.push(format!(
            "Beside the load {} less than sync_speed_min, below which md lets nobody go first: it is the members that \
             are busy with the load, and raising it changes nothing.",
            names(&busy, "gets", "get")
        ));
    }
    told
}

/// The cells by name, of many their number, with the verb for one or for several.
fn named(names: &[&str], one: &str, several: &str) -> String {
    match names.len() {
        1 => format!("{} {one}", names[0]),
        n if n > NAMED => format!("{n} cells {several}"),
        _ => format!("{} {several}", names.join("; ")),
    }
}

/// Hours where seconds would be many, and days where hours would.
fn duration(seconds: f64) -> String {
    if seconds >= 48.0 * 3600.0 {
        format!("{:.1} days", seconds / 86_400.0)
    } else if seconds >= 5400.0 {
        format!("{:.1} h", seconds / 3600.0)
    } else if seconds >= 120.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        Span((seconds * 1e9) as u64).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_rebuild_is_told_in_days() {
        let told = [30.0, 300.0, 90_000.0, 172_799.0, 1650.0 * 3600.0].map(duration);
        assert_eq!(told, ["30.0 s", "5.0 min", "25.0 h", "48.0 h", "68.8 days"]);
    }
}
