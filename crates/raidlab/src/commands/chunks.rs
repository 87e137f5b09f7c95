//! `raidlab layout` of arrays of btrfs: the chunks of a full one, what they hold and survive, and what has no room in them.
use super::{layout, print_json, print_text};
use crate::args::LayoutArgs;
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::screen;
use raidlab_core::units::{Bytes, Sectors};
use raidlab_layout::btrfs::Group;
use raidlab_layout::{BtrfsProfile, Dealt, Member};
use serde_json::{Value, json};

/// Lines of chunks that are drawn.
const ROWS: usize = 12;

/// What the level begins with.
const BTRFS: &str = "btrfs";

/// Whether a level is one of btrfs.
pub(super) fn is_of_btrfs(level: &str) -> bool {
    level.trim().to_ascii_lowercase().starts_with(BTRFS)
}

pub(super) fn run(args: &LayoutArgs) -> Result<Outcome, Failure> {
    let profile = profile(&args.level)?;
    refused(args)?;
    // One more than the least, so that members take turns.
    let takes = profile.takes(true);
    let telling = (takes.least.max(2) + 1).next_multiple_of(takes.multiple);
    let members = layout::members(args, None, telling)?;
    let sizes: Vec<Sectors> = layout::sizes(args, members)
        .map(Bytes::to_sectors)
        .collect();
    let dealt = Dealt::new(profile, &sizes, true)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    layout::say(args, layout::told_for(args, None, members));
    if args.json {
        print_json(&told(args, &dealt))?;
    } else {
        let words = screen::folded(&text(args, &dealt), screen::width());
        // What is drawn cannot be folded.
        print_text(&(words + "\n" + &dealt.drawn(ROWS).join("\n") + "\n"))?;
    }
    Ok(Outcome::Done)
}

/// All levels of it.
pub(super) fn levels() -> String {
    let name = |profile: BtrfsProfile| format!("{BTRFS}-{}", profile.name());
    BtrfsProfile::ALL.map(name).join(", ")
}

/// `btrfs-raid1c3`.
fn profile(level: &str) -> Result<BtrfsProfile, Failure> {
    let level = level.trim().to_ascii_lowercase();
    let named = level
        .strip_prefix(BTRFS)
        .and_then(|rest| rest.strip_prefix('-'));
    named.and_then(BtrfsProfile::named).ok_or_else(|| {
        Failure::bad_request(format!("'{level}' is no level of btrfs"))
            .remedy(format!("there are {}", levels()))
    })
}

/// What only other arrays have.
fn refused(args: &LayoutArgs) -> Result<(), Failure> {
    let level = &args.level;
    if args.chunk.is_some() {
        return Err(Failure::bad_request(format!(
            "'{level}' has no chunk to choose: btrfs deals out 64 KiB to each member in turn, and makes chunks of up to 1 GiB of each"
        ))
        .remedy("leave --chunk out"));
    }
    if args.ashift.is_some() {
        return Err(Failure::bad_request(format!(
            "--ashift is of ZFS, and '{level}' is no level of ZFS"
        ))
        .remedy("leave --ashift out"));
    }
    if args.sector.is_some() {
        return Err(Failure::bad_request(format!(
            "'{level}' has no fixed places: which chunk a file lies in depends on what was written when"
        ))
        .remedy(
            "leave --sector out; 'btrfs inspect-internal dump-tree -t chunk' tells where the chunks of a real one are",
        ));
    }
    Ok(())
}

fn text(args: &LayoutArgs, dealt: &Dealt) -> String {
    let mut lines = vec![dealt.name(), format!("capacity: {}", dealt.capacity_told())];
    let labelled = |label: &'static str| move |line: String| format!("{label}: {line}");
    lines.extend(dealt.left_told().into_iter().map(labelled("left over")));
    lines.extend(dealt.kernels_told().into_iter().map(labelled("kernel")));
    lines.extend(dealt.tolerance().into_iter().map(labelled("failures")));
    lines.extend(dealt.without_one_told().map(labelled("after a failure")));
    lines.extend(layout::told(args, &dealt.rebuilds()));
    lines.extend(dealt.warning().map(labelled("warning")));
    lines.join("\n") + "\n"
}

fn told(args: &LayoutArgs, dealt: &Dealt) -> Value {
    let left = dealt.left_over().into_iter();
    let left =
        left.map(|(member, left)| json!({"member": member.index(), "bytes": left.to_bytes()}));
    let before = dealt.before_5_15();
    let (out, others) = dealt.without_one();
    json!({
        "layout": format!("{BTRFS}-{}", dealt.profile().name()),
        "members": dealt.members(),
        "capacity_bytes": dealt.capacity().to_bytes(),
        "capacity_before_5_15_bytes": before.map(|capacity| capacity.unwrap_or_default().to_bytes()),
        "left_over": left.collect::<Vec<_>>(),
        "tolerance": dealt.tolerance(),
        "without_one": {
            "member": out.index(),
            "capacity_bytes": others.map(Sectors::to_bytes),
        },
        "survives": survives(dealt),
        "rebuilds": layout::of_rebuilds(args, &dealt.rebuilds()),
        "warning": dealt.warning(),
        "metadata": chunks(dealt.metadata()),
        "chunks": dealt.groups().iter().map(chunks).collect::<Vec<_>>(),
    })
}

/// As of other arrays, but of one failure more than is survived for certain alone: with more, all depends on the chunks.
fn survives(dealt: &Dealt) -> Value {
    let any = dealt.profile().survives();
    let all = dealt.patterns(any + 1);
    let survived = all.saturating_sub(dealt.fatal().len() as u64);
    let by_luck = (survived > 0).then(|| {
        json!({"failures": any + 1, "survived": survived, "of": all, "share": survived as f64 / all as f64})
    });
    json!({
        "any": any,
        "at_most": (survived == 0).then_some(any),
        "by_luck": by_luck.into_iter().collect::<Vec<_>>(),
    })
}

fn chunks(group: &Group) -> Value {
    let numbers = |set: &[Member]| {
        set.iter()
            .map(|member| member.index())
            .collect::<Vec<usize>>()
    };
    json!({
        "members": group.sets().map(numbers).collect::<Vec<_>>(),
        "chunks": group.chunks,
        "each_bytes": group.each.to_bytes(),
        "data_bytes": group.data.to_bytes(),
    })
}
