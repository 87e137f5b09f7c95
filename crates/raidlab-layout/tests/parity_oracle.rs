//! Reads and writes of raid4, raid5 and raid6 with bytes: an array in memory whose parity is what
//! the definition of P and Q says, degraded, read and written by following plans and nothing else.
//!
//! A sector is one byte. Each member sector that a plan has read is an equation over the data of
//! its row, and what is wanted (a lost sector, a new parity) must follow from these equations: so
//! a plan that reads too little, the wrong member, or after it should, fails.
mod common;
use common::{parity, run_in};
use proptest::prelude::*;
use raidlab_core::units::{Lba, Sectors};
use raidlab_layout::parity::Parity;
use raidlab_layout::*;
use std::collections::BTreeMap;

fn mul(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|b| mul(a, *b) == 1).unwrap()
}

fn generator_to(exponent: u32) -> u8 {
    (0..exponent).fold(1, |power, _| mul(power, 2))
}

/// Coefficients over the data chunks of a row, and the value of the sum.
type Equation = (Vec<u8>, u8);

/// The value of `wanted` (coefficients), if it follows from what is known.
fn derive(known: &[Equation], wanted: &[u8]) -> Option<u8> {
    let mut rows: Vec<Equation> = Vec::new();
    let reduce = |rows: &[Equation], (mut coefficients, mut value): Equation| {
        for (row, v) in rows {
            let pivot = row.iter().position(|c| *c != 0).unwrap();
            let factor = coefficients[pivot];
            for (c, r) in coefficients.iter_mut().zip(row) {
                *c ^= mul(factor, *r);
            }
            value ^= mul(factor, *v);
        }
        (coefficients, value)
    };
    for equation in known {
        let (mut coefficients, mut value) = reduce(&rows, equation.clone());
        let Some(pivot) = coefficients.iter().find(|c| **c != 0) else {
            continue;
        };
        let scale = inverse(*pivot);
        coefficients.iter_mut().for_each(|c| *c = mul(*c, scale));
        value = mul(value, scale);
        rows.push((coefficients, value));
    }
    let (rest, value) = reduce(&rows, (wanted.to_vec(), 0));
    rest.iter().all(|c| *c == 0).then_some(value)
}

struct Disks<'a> {
    layout: &'a Layout,
    parity: &'a Parity,
    bytes: Vec<Vec<u8>>,
}

impl<'a> Disks<'a> {
    /// The array with `data`, parity by definition.
    fn filled(layout: &'a Layout, data: &[u8]) -> Self {
        let Layout::Parity(parity) = layout else {
            unreachable!()
        };
        let bytes = (0..layout.members()).map(|m| {
            let sectors = 0..layout.used(Member::new(m)).0;
            let byte = |s| match layout.content(Member::new(m), Lba(s)) {
                Content::Data(lba) => data[lba.0 as usize],
                _ => {
                    let coefficients = coefficients(layout, parity, Member::new(m), s);
                    let row = row_data(layout, parity, s);
                    row.iter()
                        .zip(coefficients)
                        .fold(0, |sum, (lba, c)| sum ^ mul(c, data[*lba]))
                }
            };
            sectors.map(byte).collect()
        });
        Self {
            layout,
            parity,
            bytes: bytes.collect(),
        }
    }

    fn equation(&self, place: Place) -> Equation {
        let value = self.bytes[place.member.index()][place.sector.0 as usize];
        (
            coefficients(self.layout, self.parity, place.member, place.sector.0),
            value,
        )
    }
}

/// Array sectors of the data in the row of member sector `sector`, in array order.
fn row_data(layout: &Layout, parity: &Parity, sector: u64) -> Vec<usize> {
    let (chunk, n) = (parity.chunk().0, parity.data_members() as u64);
    let (stripe, offset) = (sector / chunk, sector % chunk);
    let row = (0..n).map(|i| ((stripe * n + i) * chunk + offset) as usize);
    assert!(stripe < layout.used(Member(0)).0 / chunk);
    row.collect()
}

/// What a member sector is, as a sum over the data of its row.
fn coefficients(layout: &Layout, parity: &Parity, member: Member, sector: u64) -> Vec<u8> {
    let row = row_data(layout, parity, sector);
    let holder = |lba: usize| layout.locate(Lba(lba as u64)).unwrap()[0].member;
    match layout.content(member, Lba(sector)) {
        Content::Data(own) => row
            .iter()
            .map(|lba| u8::from(*lba == own.0 as usize))
            .collect(),
        Content::Parity {
            kind: ParityKind::P,
            ..
        } => vec![1; row.len()],
        Content::Parity {
            stripe,
            kind: ParityKind::Q,
        } => {
            let exponents = row
                .iter()
                .map(|lba| parity.q_exponent(stripe, holder(*lba)).unwrap());
            exponents.map(generator_to).collect()
        }
        Content::Unused => unreachable!(),
    }
}

/// Equations by row, from the sectors read.
type Known = BTreeMap<u64, Vec<Equation>>;

fn read_into(known: &mut Known, disks: &Disks<'_>, io: &MemberIo) {
    for sector in io.run.start.0..io.run.end() {
        let place = Place {
            member: io.member,
            sector: Lba(sector),
        };
        known.entry(sector).or_default().push(disks.equation(place));
    }
}

/// What a read of `run` returns, from the sectors that the plan reads.
fn read(disks: &Disks<'_>, run: Run, failed: MemberSet) -> Vec<Option<u8>> {
    let mut plan = Plan::new();
    disks.layout.map_read(run, failed, &mut plan).unwrap();
    let mut known = Known::new();
    plan.ios().for_each(|io| read_into(&mut known, disks, io));
    let sectors = run.start.0..run.end();
    let value = |lba| {
        let place = disks.layout.locate(Lba(lba)).unwrap()[0];
        let wanted = coefficients(disks.layout, disks.parity, place.member, place.sector.0);
        derive(known.get(&place.sector.0)?, &wanted)
    };
    sectors.map(value).collect()
}

/// Carry out a write plan: every byte written must follow from `new` and what earlier steps read.
fn write(disks: &mut Disks<'_>, run: Run, new: &[u8], failed: MemberSet, policy: WritePolicy) {
    let mut plan = Plan::new();
    disks
        .layout
        .plan_write(run, failed, policy, &mut plan)
        .unwrap();
    let mut known = Known::new();
    for step in plan.steps() {
        let mut read_now = Known::new();
        for io in step.iter().filter(|io| io.kind == IoKind::Read) {
            read_into(&mut read_now, disks, io);
        }
        let mut written = Vec::new();
        for io in step.iter().filter(|io| io.kind == IoKind::Write) {
            for sector in io.run.start.0..io.run.end() {
                let row = row_data(disks.layout, disks.parity, sector);
                let mut wanted = coefficients(disks.layout, disks.parity, io.member, sector);
                let mut value = 0;
                // New data is at hand; what is left of the sum must come from what was read.
                for (lba, c) in row.iter().zip(&mut wanted) {
                    if (run.start.0..run.end()).contains(&(*lba as u64)) {
                        value ^= mul(std::mem::take(c), new[*lba - run.start.0 as usize]);
                    }
                }
                let known = known.get(&sector).map_or(&[][..], Vec::as_slice);
                let old = derive(known, &wanted);
                let place = format!(
                    "{} sector {sector} with {failed} failed: {plan:?}",
                    io.member
                );
                value ^= old.unwrap_or_else(|| panic!("too little is read to write {place}"));
                written.push((io.member.index(), sector as usize, value));
            }
        }
        for (sector, equations) in read_now {
            known.entry(sector).or_default().extend(equations);
        }
        for (member, sector, value) in written {
            disks.bytes[member][sector] = value;
        }
    }
}

fn garble(disks: &mut Disks<'_>, failed: MemberSet) {
    for member in failed.iter() {
        disks.bytes[member.index()]
            .iter_mut()
            .for_each(|byte| *byte ^= 0xa5);
    }
}

fn data_of(layout: &Layout, seed: u64) -> Vec<u8> {
    let byte = |i: u64| {
        (seed ^ i)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23) as u8
    };
    (0..layout.capacity().0).map(byte).collect()
}

/// Up to as many failures as the level survives.
fn tolerated(layout: &Layout, members: &[usize]) -> MemberSet {
    let Layout::Parity(parity) = layout else {
        unreachable!()
    };
    let most = members.iter().take(parity.level().parities());
    most.map(|m| Member::new(m % layout.members())).collect()
}

fn policies() -> impl Strategy<Value = WritePolicy> {
    let rmw = prop_oneof![Just(Rmw::Never), Just(Rmw::FewerReads), Just(Rmw::Prefer)];
    (rmw, any::<bool>()).prop_map(|(rmw, raid6_rmw)| WritePolicy { rmw, raid6_rmw })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_read_is_what_was_stored(
        layout in parity(), seed: u64, from: u64, len: u64,
        members in proptest::collection::vec(0..64_usize, 0..3)
    ) {
        let data = data_of(&layout, seed);
        let failed = tolerated(&layout, &members);
        let mut disks = Disks::filled(&layout, &data);
        garble(&mut disks, failed);
        let run = run_in(&layout, from, len);
        let stored = data[run.start.0 as usize..run.end() as usize].iter().map(|b| Some(*b));
        prop_assert_eq!(read(&disks, run, failed), stored.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_written_is_read_back_with_other_members_failed(
        layout in parity(), seed: u64, from: u64, len: u64, policy in policies(),
        members in proptest::collection::vec(0..64_usize, 0..3),
        later in proptest::collection::vec(0..64_usize, 0..3)
    ) {
        let mut data = data_of(&layout, seed);
        let failed = tolerated(&layout, &members);
        let mut disks = Disks::filled(&layout, &data);
        garble(&mut disks, failed);
        // Small and large runs: most faults are where few sectors are covered.
        let len = if seed.is_multiple_of(2) { len % 200 } else { len };
        let run = run_in(&layout, from, len);
        let new: Vec<u8> = (0..run.len.0).map(|i| ((seed >> 7) ^ (i * 31)) as u8).collect();
        write(&mut disks, run, &new, failed, policy);
        data[run.start.0 as usize..run.end() as usize].copy_from_slice(&new);
        let whole = Run::new(0, layout.capacity().0);
        let stored: Vec<_> = data.iter().map(|b| Some(*b)).collect();
        prop_assert_eq!(read(&disks, whole, failed), stored.clone());
        // Healthy members that fail afterwards are covered by the parity just written.
        if failed.is_empty() {
            let later = tolerated(&layout, &later);
            garble(&mut disks, later);
            prop_assert_eq!(read(&disks, whole, later), stored);
        }
    }
}

#[test]
fn one_failure_more_than_the_level_survives_is_beyond_any_read() {
    // All survivors of one row together do not determine it.
    for (n, level6) in [(4, false), (5, true)] {
        let (sizes, chunk) = (vec![Sectors(64); n], Sectors(8));
        let rotation = ParityAlgorithm::default();
        let layout = if level6 {
            Layout::raid6(&sizes, chunk, rotation).unwrap()
        } else {
            Layout::raid5(&sizes, chunk, rotation).unwrap()
        };
        let disks = Disks::filled(&layout, &data_of(&layout, 7));
        let parities = if level6 { 2 } else { 1 };
        for first in 0..n {
            let failed: MemberSet = (0..=parities)
                .map(|i| Member::new((first + i) % n))
                .collect();
            assert_eq!(layout.survives(failed), Survival::Lost);
            let alive = (0..n).map(Member::new).filter(|m| !failed.contains(*m));
            let known: Vec<Equation> = alive
                .map(|member| {
                    disks.equation(Place {
                        member,
                        sector: Lba(0),
                    })
                })
                .collect();
            let data = failed
                .iter()
                .filter(|m| matches!(layout.content(*m, Lba(0)), Content::Data(_)));
            for member in data {
                let wanted = coefficients(&layout, disks.parity, member, 0);
                assert_eq!(derive(&known, &wanted), None);
            }
        }
    }
}
