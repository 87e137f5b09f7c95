//! What must hold between the phases of a tool's profile, and between two runs of it. The laws of two runs compare phase
//! by phase.
mod beside;
mod disks;
mod within;

use crate::draw::{MODELS, Point, Tool, Topology};
use crate::lab::{Came, Lab};
use raidlab_core::units::SECTOR;
use raidlab_sim::catalogue;
use raidlab_sim::disk::DiskModel;

/// What a law says of each phase that it is about: that it holds, or what is wrong.
pub(crate) type Verdicts = Vec<Result<(), String>>;
type Law = fn(&mut Lab, &Point, &Tool, &[Came]) -> Verdicts;

/// What no model may break.
pub(crate) const LAWS: &[(&str, Law)] = &[
    (
        "all that is asked is done",
        within::all_that_is_asked_is_done,
    ),
    (
        "shares are no more than all",
        within::shares_are_no_more_than_all,
    ),
    (
        "what is cold comes from disks",
        within::what_is_cold_comes_from_disks,
    ),
    ("no faster than the media", within::no_faster_than_the_media),
    ("characters cost", within::characters_cost),
    ("rewriting reads", within::rewriting_reads),
    ("copying reads", within::copying_reads),
    (
        "looking is no slower than making",
        within::looking_is_no_slower_than_making,
    ),
    (
        "memory is faster than disks",
        within::memory_is_faster_than_disks,
    ),
    ("the same twice", beside::the_same_twice),
    ("cold is not faster", beside::cold_is_not_faster),
    ("durable is not faster", beside::durable_is_not_faster),
    (
        "copies are not written faster",
        disks::copies_are_not_written_faster,
    ),
    ("degraded is not faster", disks::degraded_is_not_faster),
];

/// Laws of thumb. The benchmark tells of them.
pub(crate) const THUMB: &[(&str, Law)] = &[
    (
        "the sentence names the busiest",
        within::the_sentence_names_the_busiest,
    ),
    ("nobody waits for ever", within::nobody_waits_for_ever),
    (
        "written no faster than the media",
        within::written_no_faster_than_the_media,
    ),
    ("rewriting writes", within::rewriting_writes),
    ("copying writes", within::copying_writes),
    ("the second pass is alike", within::the_second_pass_is_alike),
    ("random is not faster", within::random_is_not_faster),
    (
        "a faster processor is not slower",
        beside::a_faster_processor_is_not_slower,
    ),
    (
        "more cores are not slower",
        beside::more_cores_are_not_slower,
    ),
    (
        "more memory is not slower",
        beside::more_memory_is_not_slower,
    ),
    (
        "a write cache is not slower",
        beside::a_write_cache_is_not_slower,
    ),
    ("write-back is not slower", beside::write_back_is_not_slower),
    (
        "a faster bus is not slower",
        beside::a_faster_bus_is_not_slower,
    ),
    (
        "a channel each is not slower",
        beside::a_channel_each_is_not_slower,
    ),
    (
        "larger calls are not slower",
        beside::larger_calls_are_not_slower,
    ),
    (
        "more seekers are not slower",
        beside::more_seekers_are_not_slower,
    ),
    (
        "empty files are not slower",
        beside::empty_files_are_not_slower,
    ),
    ("larger files go on alike", beside::larger_files_go_on_alike),
    (
        "no more than so many disks",
        disks::no_more_than_so_many_disks,
    ),
    (
        "stripes are no slower than a disk",
        disks::stripes_are_no_slower_than_a_disk,
    ),
    (
        "another disk is not slower",
        disks::another_disk_is_not_slower,
    ),
    (
        "a better disk is not slower",
        disks::a_better_disk_is_not_slower,
    ),
    ("solid is not slower", disks::solid_is_not_slower),
    (
        "streams of a degraded array are not faster",
        disks::streams_of_a_degraded_array_are_not_faster,
    ),
    ("resyncing is not faster", disks::resyncing_is_not_faster),
];

/// What the phases of a point break, in words.
pub(crate) fn broken(lab: &mut Lab, point: &Point, all: &[Came]) -> Vec<String> {
    let Some(tool) = &point.tool else {
        return Vec::new();
    };
    let mut told = Vec::new();
    for (name, law) in LAWS {
        let wrong = law(lab, point, tool, all)
            .into_iter()
            .filter_map(Result::err);
        told.extend(wrong.map(|what| format!("{name}: {what}")));
    }
    told
}

/// What a phase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Reads a file from its begin on.
    Reads,
    /// Makes a file or fills one.
    Writes,
    /// Reads and writes: `rewrite`, `copy`.
    Both,
    /// Reads anywhere in a file, and writes one block of ten.
    Seeks,
    ReadsAnywhere,
    WritesAnywhere,
    /// The same 2 MiB again and again.
    ReadsAgain,
    /// Makes, finds, removes small files.
    Names,
}

fn does(came: &Came) -> Does {
    match came.phase.id.as_str() {
        "rewrite" => Does::Both,
        "seeks" => Does::Seeks,
        "random-read" => Does::ReadsAnywhere,
        "random-write" => Does::WritesAnywhere,
        "cached-read" | "direct-cached-read" => Does::ReadsAgain,
        id if id.starts_with("copy") => Does::Both,
        id if id.starts_with("seq-") || id.starts_with("ran-") => Does::Names,
        id if id.starts_with("write") || id == "putc" || id == "block-write" => Does::Writes,
        _ => Does::Reads,
    }
}

/// A phase by its name, or what its name begins with.
fn phase<'c>(all: &'c [Came], id: &str) -> Option<&'c Came> {
    let exact = all.iter().find(|c| c.phase.id == id);
    exact.or_else(|| all.iter().find(|c| c.phase.id.starts_with(id)))
}

fn hardware(point: &Point) -> bool {
    matches!(point.topology, Topology::Hardware { .. })
}

fn told(one: &Came, what: &str, figure: f64, word: &str, share: f64, other: f64) -> String {
    format!(
        "{} is {:.3} of {what} ({:.4} against {:.4} MB/s or /s), {word} {share:.2}",
        one.phase.id,
        figure / other,
        figure / 1e6,
        other / 1e6
    )
}

/// The figure of a phase is at least `share` of `other`.
fn least(one: &Came, what: &str, share: f64, other: f64) -> Result<(), String> {
    let figure = one.figure();
    let tell = || told(one, what, figure, "at least", share, other);
    (figure >= share * other).then_some(()).ok_or_else(tell)
}

/// The figure of a phase is at most `share` of `other`.
fn most(one: &Came, what: &str, share: f64, other: f64) -> Result<(), String> {
    let figure = one.figure();
    let tell = || told(one, what, figure, "at most", share, other);
    (figure <= share * other).then_some(()).ok_or_else(tell)
}

/// Nothing to say.
const fn nothing() -> Verdicts {
    Vec::new()
}

/// The phases that `about` picks, each with the same of `other`; none when that cannot be built.
fn pairs<'c>(
    lab: &mut Lab,
    other: &Point,
    all: &'c [Came],
    about: impl Fn(&Came) -> bool,
) -> Vec<(&'c Came, Came)> {
    let Ok(others) = lab.phases(other) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for one in all.iter().filter(|one| about(one)) {
        // A size that is in the name differs.
        let short = one.phase.id.rsplit_once('-').map_or("", |(first, _)| first);
        let sized = ["write", "read", "copy"].contains(&short)
            && one.phase.id != "read-first"
            && one.phase.id != "write-first";
        let found = match sized {
            true => others
                .iter()
                .find(|o| o.phase.id.starts_with(&format!("{short}-"))),
            false => others.iter().find(|o| o.phase.id == one.phase.id),
        };
        pairs.extend(found.map(|found| (one, found.clone())));
    }
    pairs
}

/// A phase that is long enough to be compared: where the arms are in a few turns is chance.
fn counts(came: &Came) -> bool {
    came.outcome.elapsed.as_secs_f64() > 0.5
}

/// Disks without an arm under a scheduler that keeps a disk idle for a process: what several disks do then depends on
/// how long each process stays away from one of them.
fn kept_idle(point: &Point) -> bool {
    let plain = ["noop", "none", "deadline", "mq-deadline", "kyber"];
    !point.rotates() && !point.scheduler.is_some_and(|s| plain.contains(&s))
}

/// Drives take what is written into buffers, and put it on the media while the next phase has begun.
fn put_off(point: &Point) -> bool {
    point.write_cache && point.rotates()
}

/// All drives together may hold back more than an eighth of what a phase reads: what they were given by the phases before,
/// they put on the media while it reads. One ST3000DM001 reads an ext2 file of 128 MiB that was just made at 92 MB/s, without
/// a write cache at 206.
fn carried(point: &Point, came: &Came) -> bool {
    let reads = !matches!(does(came), Does::Writes | Does::WritesAnywhere);
    let (Some(tool), true) = (&point.tool, put_off(point) && reads) else {
        return false;
    };
    let disk = catalogue::find(MODELS[point.model].0).map(|model| model.disk);
    let held = match &disk {
        Ok(DiskModel::Hdd(model)) => model.spec.cache.write_sectors * SECTOR,
        _ => 0,
    };
    8 * point.disks as u64 * held > tool.size
}

/// md chooses which copy is read.
fn copies(point: &Point) -> bool {
    let same = ["raid1", "raid01 2x2", "raid01 2x3"];
    same.contains(&point.layout) || point.layout.starts_with("raid10")
}

/// Several that read at once from copies: each stays with the one that it came to first, so that the same experiment has
/// rates of its own for each seed (eight on a raid1 of two ST336706LW, direct, in calls of 4 KiB: 3.9, 4.1, 5.4 and 14.7 MB/s).
fn apart_by_chance(point: &Point, came: &Came) -> bool {
    let several = point.tool.as_ref().is_some_and(|t| t.threads > 1);
    let reads = matches!(does(came), Does::Reads | Does::ReadsAnywhere | Does::Seeks);
    // bonnie reads a file alone.
    copies(point) && several && reads && (does(came) != Does::Reads || came.phase.jobs.len() > 1)
}

/// `other` is not slower than the point, phase by phase.
fn not_slower(
    lab: &mut Lab,
    other: &Point,
    all: &[Came],
    what: &str,
    about: impl Fn(&Came) -> bool,
) -> Verdicts {
    let fair = |c: &Came| counts(c) && !carried(other, c) && !apart_by_chance(other, c);
    let pairs = pairs(lab, other, all, |c| fair(c) && about(c));
    let each = pairs
        .iter()
        .map(|(one, other)| least(other, what, 0.93, one.figure()));
    each.collect()
}
