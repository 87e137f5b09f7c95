//! The laws of a layout, for every level.
mod common;
use common::{any_layout, run_in};
use proptest::prelude::*;
use raidlab_core::units::{Lba, Sectors};
use raidlab_layout::survival::{fatal_patterns, second_failures};
use raidlab_layout::*;
use std::collections::{BTreeMap, BTreeSet};

/// Every sector that the I/Os of one kind touch, and how often.
fn touched(plan: &Plan, kind: IoKind) -> BTreeMap<Place, usize> {
    let mut sectors = BTreeMap::new();
    for io in plan.ios().filter(|io| io.kind == kind) {
        for sector in io.run.start.0..io.run.end() {
            *sectors
                .entry(Place {
                    member: io.member,
                    sector: Lba(sector),
                })
                .or_default() += 1;
        }
    }
    sectors
}

fn failed_from(layout: &Layout, bits: u64) -> MemberSet {
    (0..layout.members())
        .filter(|m| bits >> m & 1 == 1)
        .map(Member::new)
        .collect()
}

/// A failure pattern that is survived: as many of the given members as go.
fn survivable(layout: &Layout, order: &[usize]) -> MemberSet {
    let mut failed = MemberSet::EMPTY;
    for m in order {
        let mut more = failed;
        more.insert(Member::new(m % layout.members()));
        if layout.survives(more) != Survival::Lost {
            failed = more;
        }
    }
    failed
}

fn is_nested(layout: &Layout) -> bool {
    matches!(layout, Layout::Nested(_))
}

fn has_outer_parity(layout: &Layout) -> bool {
    let Layout::Nested(nested) = layout else {
        return false;
    };
    matches!(nested.outer(), Layout::Parity(_)) || nested.inner().iter().any(has_outer_parity)
}

/// The array of disks that a member is in, and the number of its first member.
fn array_of(layout: &Layout, member: Member) -> (usize, &Layout) {
    let Layout::Nested(nested) = layout else {
        return (0, layout);
    };
    let mut base = 0;
    for inner in nested.inner() {
        if member.index() < base + inner.members() {
            let (further, array) = array_of(inner, Member::new(member.index() - base));
            return (base + further, array);
        }
        base += inner.members();
    }
    unreachable!("{member} is no member")
}

/// Is the row of `place`, in an array with parity, read from all surviving members?
fn row_is_read(
    layout: &Layout,
    place: Place,
    failed: MemberSet,
    read: &BTreeMap<Place, usize>,
) -> bool {
    let (base, array) = array_of(layout, place.member);
    let members = base..base + array.members();
    let alive = members
        .map(Member::new)
        .filter(|member| !failed.contains(*member));
    matches!(array, Layout::Parity(_))
        && array.survives(failed.slice(base, array.members())) != Survival::Lost
        && alive
            .into_iter()
            .all(|member| read.contains_key(&Place { member, ..place }))
}

fn no_two_contiguous(plan: &Plan) -> bool {
    plan.steps().all(|ios| {
        ios.iter().all(|a| {
            let joins =
                |b: &MemberIo| (b.kind, b.member, b.run.start.0) == (a.kind, a.member, a.run.end());
            !ios.iter().any(joins)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_located_is_there(layout in any_layout()) {
        for lba in 0..layout.capacity().0 {
            let places = layout.locate(Lba(lba)).unwrap();
            let members: BTreeSet<Member> = places.iter().map(|p| p.member).collect();
            prop_assert_eq!(members.len(), places.len(), "copies of {} share a member", lba);
            for p in places {
                prop_assert!(p.sector.0 < layout.used(p.member).0);
                prop_assert_eq!(layout.content(p.member, p.sector), Content::Data(Lba(lba)));
            }
        }
        prop_assert_eq!(layout.locate(Lba(layout.capacity().0)), None);
    }

    #[test]
    fn every_member_sector_has_one_content(layout in any_layout()) {
        let mut copies: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
        for member in (0..layout.members()).map(Member::new) {
            let used = layout.used(member).0;
            for sector in (0..used).map(Lba) {
                if let Content::Data(lba) = layout.content(member, sector) {
                    copies.entry(lba.0).or_default().push(Place { member, sector });
                }
            }
            for beyond in [used, used + 1, used + 1000, u64::MAX / 2] {
                prop_assert_eq!(layout.content(member, Lba(beyond)), Content::Unused);
            }
        }
        // No data beyond the end, none missing, and exactly the places that `locate` names.
        prop_assert_eq!(copies.len() as u64, layout.capacity().0);
        for (lba, found) in copies {
            let mut places = layout.locate(Lba(lba)).unwrap().to_vec();
            places.sort_unstable();
            prop_assert_eq!(found, places);
        }
        let past = Member::new(layout.members());
        prop_assert_eq!(layout.content(past, Lba(0)), Content::Unused);
    }

    #[test]
    fn a_read_covers_its_run_and_no_failed_member(
        layout in any_layout(), from: u64, len: u64, order in proptest::collection::vec(0..64_usize, 0..6)
    ) {
        let (run, failed) = (run_in(&layout, from, len), survivable(&layout, &order));
        let mut plan = Plan::new();
        layout.map_read(run, failed, &mut plan).unwrap();
        prop_assert_eq!(plan.writes(), 0);
        prop_assert!(plan.ios().all(|io| !failed.contains(io.member)));
        prop_assert!(no_two_contiguous(&plan), "{plan:?}");
        let read = touched(&plan, IoKind::Read);
        for lba in run.start.0..run.end() {
            let places = layout.locate(Lba(lba)).unwrap();
            let alive = places.iter().filter(|p| !failed.contains(p.member)).count();
            // A sector of which a copy is left is read from a copy, or reconstructed when that is
            // in an inner array that a mirror did not choose.
            let hit = places.iter().any(|p| read.contains_key(p));
            prop_assert!(hit || alive == 0 || is_nested(&layout), "{lba} of {run} is not read");
            let rebuilt = places.iter().any(|p| row_is_read(&layout, *p, failed, &read));
            prop_assert!(hit || rebuilt || has_outer_parity(&layout), "{lba} does not follow");
        }
        // What several of the wanted are reconstructed from, too, is read once.
        prop_assert!(read.values().all(|n| *n == 1), "read twice: {plan:?}");
        if failed.is_empty() {
            let wanted = run.len.0 as usize;
            prop_assert_eq!(read.len(), wanted);
        }
    }

    #[test]
    fn a_write_covers_its_run_and_no_failed_member(
        layout in any_layout(), from: u64, len: u64, order in proptest::collection::vec(0..64_usize, 0..6)
    ) {
        let (run, failed) = (run_in(&layout, from, len), survivable(&layout, &order));
        let mut plan = Plan::new();
        for policy in [WritePolicy::LINUX, WritePolicy::LINUX_BEFORE_4_1] {
            layout.plan_write(run, failed, policy, &mut plan).unwrap();
            prop_assert!(plan.steps().all(|step| !step.is_empty()));
            prop_assert!(plan.ios().all(|io| !failed.contains(io.member)));
            let written = touched(&plan, IoKind::Write);
            // Outer rows over inner parity may share an inner stripe, so only data is asked there.
            let nested = matches!(layout, Layout::Nested(_));
            let is_data = |p: &Place| matches!(layout.content(p.member, p.sector), Content::Data(_));
            // ... and a row of 4 KiB may reach beyond what the outer array uses of an inner one.
            let used = written.keys().all(|p| layout.content(p.member, p.sector) != Content::Unused);
            prop_assert!(used || nested, "writes what is unused: {plan:?}");
            let once = written.iter().all(|(p, n)| *n == 1 || (nested && !is_data(p)));
            prop_assert!(once, "written twice: {plan:?}");
            let has_parity = !plan.decisions().is_empty();
            let data: BTreeSet<u64> = written.keys().filter_map(|p| {
                match layout.content(p.member, p.sector) { Content::Data(l) => Some(l.0), _ => None }
            }).collect();
            let asked: BTreeSet<u64> = (run.start.0..run.end()).collect();
            if has_parity {
                // Whole rows of 4 KiB around the run; blocks of failed members are only in parity.
                let around = run.start.0 / 8 * 8..run.end().next_multiple_of(8);
                if !matches!(layout, Layout::Nested(_)) {
                    prop_assert!(data.iter().all(|l| around.contains(l)), "{data:?} for {run}");
                }
                if failed.is_empty() {
                    prop_assert!(data.is_superset(&asked));
                }
            } else {
                prop_assert!(no_two_contiguous(&plan), "{plan:?}");
                prop_assert_eq!(data, asked);
                prop_assert_eq!((plan.steps().len(), plan.reads()), (1, 0));
                if !matches!(layout, Layout::Nested(_)) {
                    for lba in run.start.0..run.end() {
                        let places = layout.locate(Lba(lba)).unwrap();
                        let alive = places.iter().filter(|p| !failed.contains(p.member));
                        prop_assert!(alive.clone().all(|p| written.contains_key(p)));
                    }
                }
            }
        }
    }

    #[test]
    fn no_data_is_out_of_reach_before_the_array_is_lost(layout in any_layout(), bits: u64) {
        let failed = failed_from(&layout, bits);
        let mut plan = Plan::new();
        let whole = Run::new(0, layout.capacity().0);
        let survival = layout.survives(failed);
        prop_assert_eq!(survival == Survival::Intact, failed.is_empty());
        let read = layout.map_read(whole, failed, &mut plan);
        prop_assert_eq!(read.is_err(), survival == Survival::Lost);
        let read = layout.plan_write(whole, failed, WritePolicy::default(), &mut plan);
        prop_assert_eq!(read.is_err(), survival == Survival::Lost);
        // More failures never help.
        for m in (0..layout.members()).map(Member::new) {
            prop_assert!(layout.survives(failed.union(MemberSet::one(m))) >= survival);
        }
    }

    #[test]
    fn copies_decide_survival_without_parity(
        layout in prop_oneof![common::linear(), common::raid0(), common::raid1(), common::raid10()],
        bits: u64
    ) {
        // Here a pattern is fatal exactly when all copies of some sector are gone.
        let failed = failed_from(&layout, bits);
        let gone = |lba: u64| {
            layout.locate(Lba(lba)).unwrap().iter().all(|p| failed.contains(p.member))
        };
        let lost = (0..layout.capacity().0).any(gone);
        prop_assert_eq!(lost, layout.survives(failed) == Survival::Lost);
    }

    #[test]
    fn counts_are_those_of_enumeration(layout in any_layout()) {
        let n = layout.members();
        prop_assume!(n <= 14);
        let tolerance = layout.tolerance();
        let mut counts = vec![0_u128; n + 1];
        for bits in 0..1_u64 << n {
            if layout.survives(failed_from(&layout, bits)) != Survival::Lost {
                counts[bits.count_ones() as usize] += 1;
            }
        }
        for (k, count) in counts.iter().enumerate() {
            prop_assert_eq!(tolerance.survived(k), *count, "{} failures", k);
        }
        let sure = tolerance.guaranteed();
        prop_assert!(tolerance.survived(sure + 1) < tolerance.patterns(sure + 1));
        let (fatal, more) = fatal_patterns(&layout, sure + 1, usize::MAX);
        prop_assert!(!more);
        let lost = tolerance.patterns(sure + 1) - tolerance.survived(sure + 1);
        prop_assert_eq!(fatal.len() as u128, lost);
        if let Some((least, most)) = second_failures(&layout) {
            let pairs = 2 * tolerance.survived(2);
            prop_assert!(least as u128 * n as u128 <= pairs && pairs <= most as u128 * n as u128);
        }
    }

    #[test]
    fn members_of_a_stripe_are_distinct(layout in common::parity()) {
        let Layout::Parity(parity) = &layout else { unreachable!() };
        let chunk = parity.chunk().0;
        for stripe in 0..parity.stripes() {
            let at = Lba(stripe * chunk);
            let contents: Vec<Content> =
                (0..layout.members()).map(|m| layout.content(Member::new(m), at)).collect();
            let parities = contents.iter().filter(|c| matches!(c, Content::Parity { stripe: s, .. } if *s == stripe));
            prop_assert_eq!(parities.count(), parity.level().parities());
            let data: BTreeSet<u64> = contents.iter().filter_map(|c| match c {
                Content::Data(lba) => Some(lba.0 / chunk), _ => None,
            }).collect();
            let first = stripe * parity.data_members() as u64;
            prop_assert_eq!(data, (first..first + parity.data_members() as u64).collect());
        }
    }

    #[test]
    fn the_chooser_gets_its_way(layout in any_layout(), from: u64, len: u64, pick: usize) {
        let run = run_in(&layout, from, len);
        let mut plan = Plan::new();
        let mut offered = Vec::new();
        let mut choose = |places: &[Place], _| {
            let choice = pick % places.len();
            offered.push(places[choice]);
            choice
        };
        layout.map_read_choosing(run, MemberSet::EMPTY, &mut choose, &mut plan).unwrap();
        let read = touched(&plan, IoKind::Read);
        prop_assert_eq!(read.len() as u64, run.len.0);
        if !matches!(layout, Layout::Nested(_)) {
            prop_assert!(offered.iter().all(|p| read.contains_key(p)));
        }
    }

    #[test]
    fn a_plan_is_the_same_however_often_it_is_reused(
        a in any_layout(), b in any_layout(), from: u64, len: u64
    ) {
        let mut used = Plan::new();
        a.plan_write(run_in(&a, len, from), MemberSet::EMPTY, WritePolicy::LINUX, &mut used).unwrap();
        let mut fresh = Plan::new();
        for plan in [&mut used, &mut fresh] {
            b.plan_write(run_in(&b, from, len), MemberSet::EMPTY, WritePolicy::LINUX, plan).unwrap();
        }
        prop_assert!(used.steps().eq(fresh.steps()));
        prop_assert_eq!(used.decisions(), fresh.decisions());
    }
}

#[test]
fn a_run_beyond_the_end_is_refused() {
    let layout = Layout::raid1(&common::sectors(&[100, 100])).unwrap();
    let mut plan = Plan::new();
    for run in [
        Run::new(100, 1),
        Run::new(0, 101),
        Run::new(u64::MAX, u64::MAX),
    ] {
        let error = layout
            .map_read(run, MemberSet::EMPTY, &mut plan)
            .unwrap_err();
        assert_eq!(error, PlanError::OutOfRange { run, capacity: 100 });
    }
    layout
        .map_read(Run::new(100, 0), MemberSet::EMPTY, &mut plan)
        .unwrap();
    assert_eq!(plan.steps().len(), 0);
}

/// What a table of roles by stripe rests on.
#[test]
fn the_roles_of_stripes_repeat() {
    let sizes = common::sectors(&[80_000; 7]);
    for algorithm in ParityAlgorithm::ALL {
        let Layout::Parity(array) = Layout::raid6(&sizes, Sectors(8), algorithm).unwrap() else {
            panic!("a parity array");
        };
        let period = array.period() as u64;
        assert!((0..200).all(|s| array.roles(s) == array.roles(s % period)));
        let moves = (1..period).any(|s| array.roles(s) != array.roles(0));
        assert!(moves || period == 1, "{algorithm:?}");
    }
}
