//! Rows of btrfs with parity: what is read and written of them, and when.
use super::*;
use raidlab_core::units::{Bytes, MIB};
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Btrfs, BtrfsProfile, Member};

const STRIPE: u32 = 128;
const NEW: Kernel = Kernel::Linux(6, 12, 0);
const OF_6_1: Kernel = Kernel::Linux(6, 1, 0);
const OLD: Kernel = Kernel::Linux(5, 10, 0);

/// An array of btrfs, the place of its first row of data, and what goes to its members.
struct Rig {
    array: Array,
    begin: u64,
    wanted: Vec<MemberBio>,
    done: Vec<u64>,
}

/// What a member is asked: whether to write, which one, where from the beginning of its part of the first row, and sectors.
type Asked = (bool, u16, u64, u32);

impl Rig {
    fn new(profile: BtrfsProfile, members: usize, kernel: Kernel, missing: &[u16]) -> Self {
        Self::costing(ParityCost::default(), (profile, members), kernel, missing)
    }

    fn costing(
        cost: ParityCost,
        (profile, members): (BtrfsProfile, usize),
        kernel: Kernel,
        missing: &[u16],
    ) -> Self {
        let sizes = vec![Bytes::gib(8).to_sectors(); members];
        let gone = missing.iter().map(|role| Member(*role)).collect();
        let meta = Bytes(256 * MIB);
        // It was made whole.
        let later = (gone, Lba(u64::MAX));
        let built = Btrfs::degraded_later(profile, &sizes, meta, true, later).unwrap();
        let begin = built.begins().next().unwrap().0;
        let mut spec = ArraySpec::new(ArrayKind::Btrfs(built));
        spec.era = Era::of(kernel);
        spec.cost = cost;
        if !missing.is_empty() {
            spec.state = ArrayState::Degraded(missing.len() as u16);
            spec.failed = missing.to_vec();
        }
        Self {
            array: Array::new(&spec).unwrap(),
            begin,
            wanted: Vec::new(),
            done: Vec::new(),
        }
    }

    fn submit(&mut self, id: u64, kind: BlockKind, at: u64, sectors: u32) {
        let bio = bio(id, kind, self.begin + at, sectors);
        self.array.submit(Instant::ZERO, bio);
    }

    fn write(&mut self, id: u64, at: u64, sectors: u32) {
        self.submit(id, BlockKind::Write, at, sectors);
    }

    fn unplug(&mut self) {
        self.array.unplug(Instant::ZERO);
    }

    /// What is wanted now.
    fn asked(&mut self) -> Vec<Asked> {
        let new = self.wanted.len();
        self.array.take(&mut self.wanted);
        let base = |member: u16| {
            let chunk = |at: u64| match &self.array.nodes[0].shape {
                node::Shape::Btrfs(chunks) => chunks.map.row(Lba(at)).unwrap(),
                _ => unreachable!(),
            };
            let row = chunk(self.begin);
            let place = row.pieces.iter().find(|place| place.member.0 == member);
            place.unwrap().sector.0
        };
        let told = |w: &MemberBio| {
            let writes = w.bio.kind == BlockKind::Write;
            (
                writes,
                w.member,
                w.bio.lba.0 - base(w.member),
                w.bio.sectors,
            )
        };
        let mut asked: Vec<Asked> = self.wanted[new..].iter().map(told).collect();
        asked.sort_unstable();
        asked
    }

    /// All that members were asked ends.
    fn end(&mut self) {
        for MemberBio { member, bio } in std::mem::take(&mut self.wanted) {
            self.array
                .member_ended(Instant::ZERO, member, bio.id, Ok(()));
        }
        let mut done = Vec::new();
        self.array.advance(Instant::ZERO, &mut done);
        assert!(done.iter().all(|end| end.result == Ok(())));
        self.done.extend(done.iter().map(|end| end.id));
    }

    /// One write by itself, from its first requests to its last.
    fn alone(&mut self, kind: BlockKind, at: u64, sectors: u32) -> Vec<Vec<Asked>> {
        self.submit(9, kind, at, sectors);
        self.unplug();
        let mut phases = Vec::new();
        while self.array.in_flight() > 0 {
            phases.push(self.asked());
            self.end();
        }
        phases
    }
}

#[test]
fn a_whole_row_is_written_with_its_parity_and_nothing_read() {
    for (profile, members, data) in [(BtrfsProfile::Raid5, 3, 2), (BtrfsProfile::Raid6, 5, 3)] {
        let mut rig = Rig::new(profile, members, OF_6_1, &[]);
        rig.write(1, 0, data * STRIPE);
        // Nobody has to wait for it.
        let all: Vec<Asked> = (0..members as u16).map(|m| (true, m, 0, STRIPE)).collect();
        assert_eq!(rig.asked(), all);
        rig.end();
        assert_eq!(rig.done, [1]);
        // Rows that follow each other, and of each another member has parity.
        let rows = rig.alone(BlockKind::Write, 0, 2 * data * STRIPE);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].len(), 2 * members);
    }
}

#[test]
fn parts_of_a_row_wait_for_whoever_submits_and_go_as_one() {
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, OF_6_1, &[]);
    rig.write(1, 100, 156);
    rig.write(2, 0, 100);
    assert_eq!(rig.asked(), []);
    rig.unplug();
    let all = [(true, 0, 0, 128), (true, 1, 0, 128), (true, 2, 0, 128)];
    assert_eq!(rig.asked(), all);
    rig.end();
    assert_eq!(rig.done, [2, 1]);
}

/// Whoever writes 4 KiB reads the rest of the data, or since 6.2 all of the row, and writes its parity, once all of it.
#[test]
fn a_part_of_a_row_is_written_when_the_rest_has_been_read() {
    let data_read = vec![(false, 0, 0, 8), (false, 0, 16, 112), (false, 1, 0, 128)];
    let row_read = vec![(false, 0, 0, 128), (false, 1, 0, 128), (false, 2, 0, 128)];
    let narrow = vec![(true, 0, 8, 8), (true, 2, 8, 8)];
    let wide = vec![(true, 0, 8, 8), (true, 2, 0, 128)];
    for (kernel, phases) in [
        (OLD, [data_read.clone(), wide]),
        (OF_6_1, [data_read, narrow.clone()]),
        (NEW, [row_read, narrow]),
    ] {
        let mut rig = Rig::new(BtrfsProfile::Raid5, 3, kernel, &[]);
        assert_eq!(rig.alone(BlockKind::Write, 8, 8), phases, "{kernel}");
    }
    let mut rig = Rig::new(BtrfsProfile::Raid6, 4, NEW, &[]);
    let [read, written] = &rig.alone(BlockKind::Write, 128, 16)[..] else {
        panic!("two phases")
    };
    assert_eq!(read.len(), 4);
    assert_eq!(
        written[..],
        [(true, 1, 0, 16), (true, 2, 0, 16), (true, 3, 0, 16)]
    );
}

#[test]
fn rows_that_were_written_in_part_are_known() {
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, NEW, &[]);
    assert_eq!(rig.alone(BlockKind::Write, 0, 8).len(), 2);
    assert_eq!(rig.alone(BlockKind::Write, 64, 8).len(), 1, "it is known");
    // What is written whole is not kept.
    rig.alone(BlockKind::Write, 0, 256);
    assert_eq!(rig.alone(BlockKind::Write, 0, 8).len(), 2);
    // And of many rows the last 1024.
    for row in 1..=1024 {
        rig.alone(BlockKind::Write, 256 * row, 8);
    }
    assert_eq!(rig.alone(BlockKind::Write, 256, 8).len(), 1);
    assert_eq!(rig.alone(BlockKind::Write, 0, 8).len(), 2);
}

#[test]
fn one_turn_at_a_row_is_under_way() {
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, OF_6_1, &[]);
    rig.write(1, 0, 8);
    rig.unplug();
    assert!(rig.asked().iter().all(|asked| !asked.0));
    // It reads yet: this goes with it.
    rig.write(2, 8, 8);
    rig.unplug();
    assert_eq!(rig.asked(), []);
    rig.end();
    assert_eq!(rig.asked(), [(true, 0, 0, 16), (true, 2, 0, 16)]);
    // It writes: these wait, and are one when they come.
    rig.write(3, 16, 8);
    rig.unplug();
    rig.write(4, 128, 8);
    rig.unplug();
    assert_eq!(rig.asked(), []);
    rig.end();
    assert_eq!(rig.done, [1, 2]);
    let both = [
        (true, 0, 16, 8),
        (true, 1, 0, 8),
        (true, 2, 0, 8),
        (true, 2, 16, 8),
    ];
    assert_eq!(rig.asked(), both, "nothing is read again");
    rig.end();
    assert_eq!(rig.done, [1, 2, 3, 4]);
    assert_eq!(rig.array.in_flight(), 0);
}

/// What a missing member has is computed from all that is there; what nobody misses is read as ever.
#[test]
fn a_row_without_a_member_is_read_whole() {
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, OF_6_1, &[0]);
    let others = vec![(false, 1, 0, 128), (false, 2, 0, 128)];
    let read = rig.alone(BlockKind::Read, 8, 8);
    assert_eq!(read, std::slice::from_ref(&others));
    assert_eq!(rig.alone(BlockKind::Read, 128, 8), [[(false, 1, 0, 8)]]);
    // Of what is missing parity alone tells.
    let written = vec![(true, 2, 8, 8)];
    assert_eq!(rig.alone(BlockKind::Write, 8, 8), [others, written]);
    // Without parity data are written as they are.
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, OF_6_1, &[2]);
    let read = vec![(false, 0, 0, 8), (false, 0, 16, 112), (false, 1, 0, 128)];
    assert_eq!(
        rig.alone(BlockKind::Write, 8, 8),
        [read, vec![(true, 0, 8, 8)]]
    );
    // Two are missed of raid6.
    let mut rig = Rig::new(BtrfsProfile::Raid6, 4, OF_6_1, &[0, 3]);
    let others = vec![(false, 1, 0, 128), (false, 2, 0, 128)];
    assert_eq!(rig.alone(BlockKind::Read, 8, 8), [others]);
}

/// Reads and writes of one row that have to take turns.
#[test]
fn a_read_that_computes_waits_for_whoever_writes() {
    let mut rig = Rig::new(BtrfsProfile::Raid5, 3, OF_6_1, &[0]);
    rig.write(1, 0, 256);
    rig.submit(2, BlockKind::Read, 0, 8);
    assert!(rig.asked().iter().all(|asked| asked.0));
    rig.end();
    assert_eq!(rig.done, [1]);
    assert!(rig.asked().iter().all(|asked| !asked.0));
    // A write does not join a read.
    rig.write(3, 0, 8);
    rig.unplug();
    assert_eq!(rig.asked(), []);
    rig.end();
    assert_eq!(rig.done, [1, 2]);
    assert_eq!(rig.asked().len(), 2);
    rig.end();
    assert_eq!(rig.asked(), [(true, 2, 0, 8)]);
    rig.end();
    assert_eq!((rig.done, rig.array.in_flight()), (vec![1, 2, 3], 0));
}

/// Until a worker has come to a row what comes goes with it; before 6.2 what is whole, and what a missing member has, waits for none.
#[test]
fn parts_of_a_row_wait_for_a_worker() {
    let cost = ParityCost {
        submit: 1000,
        ..ParityCost::default()
    };
    let raid5 = (BtrfsProfile::Raid5, 3);
    let mut rig = Rig::costing(cost, raid5, OF_6_1, &[]);
    rig.write(1, 0, 8);
    rig.unplug();
    assert_eq!(rig.asked(), []);
    rig.write(2, 8, 248);
    rig.unplug();
    assert_eq!(rig.asked(), []);
    let comes = Instant(1000);
    assert_eq!(rig.array.next_event(), Some(comes));
    rig.array.advance(comes, &mut Vec::new());
    let all = [(true, 0, 0, 128), (true, 1, 0, 128), (true, 2, 0, 128)];
    assert_eq!(rig.asked(), all, "it has become whole");
    for (kernel, at_once) in [(OF_6_1, 2), (NEW, 0)] {
        let mut rig = Rig::costing(cost, raid5, kernel, &[]);
        rig.write(1, 0, 256);
        let computes = if at_once > 0 { Instant::ZERO } else { comes };
        assert_eq!(rig.array.next_event(), Some(computes), "{kernel}");
        let mut rig = Rig::costing(cost, raid5, kernel, &[0]);
        rig.submit(1, BlockKind::Read, 0, 8);
        assert_eq!(rig.asked().len(), at_once, "{kernel}");
        rig.array.advance(comes, &mut Vec::new());
        assert_eq!(rig.asked().len(), 2 - at_once, "{kernel}");
    }
}

/// Metadata have copies, whatever data have.
#[test]
fn metadata_of_rows_is_copied() {
    let mut rig = Rig::new(BtrfsProfile::Raid6, 4, OF_6_1, &[]);
    let begin = rig.begin;
    rig.begin = 0;
    rig.submit(1, BlockKind::Write, begin - 32, 32);
    rig.array.take(&mut rig.wanted);
    let members: Vec<u16> = rig.wanted.iter().map(|wanted| wanted.member).collect();
    assert_eq!(members, [1, 2, 3]);
}
