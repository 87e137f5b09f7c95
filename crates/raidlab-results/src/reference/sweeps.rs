//! The findings of the block-size study on predicted figures: claims on whole sweeps, of which the
//! study gives no figures.
use super::Published;
use super::checks::{Checked, Figures, Must, Told, judge};
use raidlab_core::units::{Bytes, KIB};
use std::collections::BTreeMap;

/// Phases of one stream, by tool: what is written, what is read.
const STREAMS: [(&str, &str); 4] = [
    ("bonnie", "block-write"),
    ("bonnie", "block-read"),
    ("tiobench", "write"),
    ("tiobench", "read"),
];
/// Calls of a page and more.
const PAGE: u64 = 4 * KIB;
const ONE_DISK: &str = "raid0 1 disk";

/// A cell of the sweep, from its label: tool, layout, scheduler and call size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'c> {
    tool: &'c str,
    layout: &'c str,
    scheduler: &'c str,
    call: u64,
}

fn place(label: &str) -> Option<Place<'_>> {
    let parts: Vec<&str> = label.split(", ").collect();
    let [tool, layout, scheduler, call] = parts[..] else {
        return None;
    };
    let call: Bytes = call.strip_prefix("call-size ")?.parse().ok()?;
    Some(Place {
        tool,
        layout,
        scheduler,
        call: call.0,
    })
}

/// Rates by call size of one tool, layout and scheduler.
type Lines<'c> = BTreeMap<(&'c str, &'c str), BTreeMap<u64, f64>>;

fn lines<'c>(cells: &[&'c str], tool: &str, phase: &str, figures: Figures<'_>) -> Lines<'c> {
    let mut lines = Lines::new();
    for cell in cells {
        let Some(at) = place(cell).filter(|at| at.tool == tool) else {
            continue;
        };
        if let Some(Published::Value(rate)) = figures(cell, phase) {
            let line = lines.entry((at.layout, at.scheduler)).or_default();
            line.insert(at.call, rate);
        }
    }
    lines
}

/// The findings of the study that predictions can tell of.
pub(super) fn check(cells: &[&str], figures: Figures<'_>) -> Vec<Checked> {
    let mut all = Vec::new();
    for (tool, phase) in STREAMS {
        all.push(flat(tool, phase, &lines(cells, tool, phase, figures)));
    }
    for (tool, phase) in &STREAMS[2..] {
        all.push(small(phase, &lines(cells, tool, phase, figures)));
    }
    let seeks = lines(cells, "bonnie", "seeks", figures);
    all.push(anticipatory(&seeks, true));
    all.push(anticipatory(&seeks, false));
    all
}

fn told(finding: u32, claim: String, found: Option<(Told, String)>) -> Checked {
    let (told, evidence) = found.unwrap_or((Told::NoFigures, "no figure".to_owned()));
    Checked {
        finding,
        claim,
        evidence,
        told,
        own: None,
    }
}

/// From a page up the call size does not matter; the line that strays most is named.
fn flat(tool: &str, phase: &str, lines: &Lines<'_>) -> Checked {
    let spread = |line: &BTreeMap<u64, f64>| {
        let rates = || line.range(PAGE..).map(|(_, rate)| *rate);
        let low = rates().fold(f64::INFINITY, f64::min);
        let high = rates().fold(0.0, f64::max);
        (line.range(PAGE..).count() > 1).then_some(high / low)
    };
    let widest = lines
        .iter()
        .filter_map(|(name, line)| Some((name, spread(line)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let claim = format!("{tool} {phase}: calls of 4 KiB to 1 MiB agree (within 10 %)");
    told(
        1,
        claim,
        widest.map(|((layout, scheduler), ratio)| {
            let evidence = format!("farthest apart: {layout}, {scheduler}, {ratio:.2}x");
            (judge(Must::Below(1.1), ratio), evidence)
        }),
    )
}

/// Calls of 1 KiB cost throughput: over all layouts and schedulers.
fn small(phase: &str, lines: &Lines<'_>) -> Checked {
    let ratio = |line: &BTreeMap<u64, f64>| Some(line.get(&KIB)? / line.get(&PAGE)?);
    let ratios = lines.values().filter_map(ratio);
    let claim = format!("tiobench {phase}: calls of 1 KiB are slower than of 4 KiB");
    told(
        2,
        claim,
        median(ratios).map(|middle| {
            let evidence = format!("median of all layouts and schedulers: {middle:.3}x");
            (judge(Must::Below(0.99), middle), evidence)
        }),
    )
}

/// Random reads of several processes under the anticipatory scheduler, against the best other one.
fn anticipatory(lines: &Lines<'_>, one: bool) -> Checked {
    let ratios = lines.iter().filter_map(|((layout, scheduler), line)| {
        let meant = (*layout == ONE_DISK) == one && !layout.starts_with("linear");
        if !meant || *scheduler != "anticipatory" {
            return None;
        }
        let others = lines
            .iter()
            .filter(|((l, s), _)| l == layout && s != scheduler);
        let best = |call: &u64| {
            let rates = others.clone().filter_map(|(_, other)| other.get(call));
            rates.copied().max_by(f64::total_cmp)
        };
        median(
            line.iter()
                .filter_map(|(call, rate)| Some(rate / best(call)?)),
        )
    });
    let (claim, must) = if one {
        let claim = "one disk seeks under anticipatory as well as under the best other scheduler";
        (claim, Must::Above(0.95))
    } else {
        (
            "… but RAID0 on several disks seeks slower",
            Must::Below(1.0),
        )
    };
    told(
        3,
        claim.to_owned(),
        median(ratios).map(|middle| {
            (
                judge(must, middle),
                format!("median {middle:.2}x the best other"),
            )
        }),
    )
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let n = all.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(all[n / 2]),
        _ => Some(0.5 * (all[n / 2 - 1] + all[n / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<String> {
        let mut cells = Vec::new();
        for tool in ["bonnie", "tiobench"] {
            for layout in [ONE_DISK, "raid0 4 disks"] {
                for scheduler in ["noop", "anticipatory"] {
                    for call in ["1KiB", "4KiB", "64KiB"] {
                        cells.push(format!("{tool}, {layout}, {scheduler}, call-size {call}"));
                    }
                }
            }
        }
        cells
    }

    fn checked(figures: Figures<'_>) -> Vec<(u32, Told)> {
        let cells = cells();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let all = check(&cells, figures);
        all.into_iter().map(|c| (c.finding, c.told)).collect()
    }

    #[test]
    fn what_the_study_found_is_recognised() {
        let as_found = |cell: &str, phase: &str| {
            let at = place(cell)?;
            let small = if at.call < PAGE && at.tool == "tiobench" {
                0.8
            } else {
                1.0
            };
            let waits = phase == "seeks" && at.scheduler == "anticipatory" && at.layout != ONE_DISK;
            Some(Published::Value(
                1e6 * small * if waits { 0.8 } else { 1.0 },
            ))
        };
        assert!(
            checked(&as_found)
                .iter()
                .all(|(_, told)| *told == Told::Holds)
        );
        assert_eq!(checked(&as_found).len(), 8);
    }

    #[test]
    fn the_contrary_is_noticed() {
        let contrary = |cell: &str, phase: &str| {
            let at = place(cell)?;
            let seeks = phase == "seeks" && at.scheduler == "anticipatory";
            let worse = seeks == (at.layout == ONE_DISK);
            Some(Published::Value(
                at.call as f64 * if worse { 0.5 } else { 1.0 },
            ))
        };
        let told = checked(&contrary);
        let of = |finding| told.iter().filter(move |c| c.0 == finding).map(|c| c.1);
        assert!(of(1).all(|told| told == Told::DoesNot), "{told:?}");
        assert!(of(3).all(|told| told == Told::DoesNot), "{told:?}");
        assert!(checked(&|_, _| None).iter().all(|c| c.1 == Told::NoFigures));
    }
}
