//! What the levels of Linux md read and write, in known cases.
mod common;
use common::set;
use raidlab_core::units::Sectors;
use raidlab_layout::*;

const CHUNK: u64 = 128;

fn members(n: usize, chunks: u64) -> Vec<Sectors> {
    vec![Sectors(chunks * CHUNK); n]
}

fn raid5(n: usize, algorithm: ParityAlgorithm) -> Layout {
    Layout::raid5(&members(n, 64), Sectors(CHUNK), algorithm).unwrap()
}

fn raid6(n: usize, algorithm: ParityAlgorithm) -> Layout {
    Layout::raid6(&members(n, 64), Sectors(CHUNK), algorithm).unwrap()
}

fn raid10(n: usize, chunks: u64, copies: Copies) -> Layout {
    Layout::raid10(&members(n, chunks), Sectors(CHUNK), copies).unwrap()
}

/// Reads, writes, steps and methods of one write.
fn write(
    layout: &Layout,
    run: Run,
    failed: &[usize],
    policy: WritePolicy,
) -> (usize, usize, usize, Vec<WriteMethod>) {
    let mut plan = Plan::new();
    layout
        .plan_write(run, set(failed), policy, &mut plan)
        .unwrap();
    let methods = plan.decisions().iter().map(|d| d.method).collect();
    (plan.reads(), plan.writes(), plan.steps().len(), methods)
}

/// What one write to a whole array reads and writes.
fn ios(layout: &Layout, run: Run) -> Vec<String> {
    let mut plan = Plan::new();
    layout
        .plan_write(run, MemberSet::EMPTY, WritePolicy::LINUX, &mut plan)
        .unwrap();
    plan.ios()
        .map(|io| format!("{:?} {} {}", io.kind, io.member, io.run))
        .collect()
}

#[test]
fn a_small_write_on_raid5_is_two_reads_and_two_writes() {
    use WriteMethod as M;
    for n in 5..12 {
        for lba in [0, 8, 1000, 4096] {
            let layout = raid5(n, ParityAlgorithm::LeftSymmetric);
            let found = write(&layout, Run::new(lba, 8), &[], WritePolicy::LINUX);
            assert_eq!(found, (2, 2, 2, vec![M::ReadModifyWrite]));
        }
    }
    // On four members both ways need two reads, and md reconstructs; on three it needs one.
    let four = raid5(4, ParityAlgorithm::LeftSymmetric);
    assert_eq!(
        write(&four, Run::new(0, 8), &[], WritePolicy::LINUX),
        (2, 2, 2, vec![M::ReconstructWrite])
    );
    let prefer = WritePolicy {
        rmw: Rmw::Prefer,
        ..WritePolicy::LINUX
    };
    assert_eq!(
        write(&four, Run::new(0, 8), &[], prefer),
        (2, 2, 2, vec![M::ReadModifyWrite])
    );
    let three = raid5(3, ParityAlgorithm::LeftSymmetric);
    assert_eq!(
        write(&three, Run::new(0, 8), &[], WritePolicy::LINUX),
        (1, 2, 2, vec![M::ReconstructWrite])
    );
}

#[test]
fn a_small_write_on_raid6_depends_on_the_kernel() {
    use WriteMethod as M;
    let layout = raid6(8, ParityAlgorithm::LeftSymmetric);
    let run = Run::new(0, 8);
    assert_eq!(
        write(&layout, run, &[], WritePolicy::LINUX),
        (3, 3, 2, vec![M::ReadModifyWrite])
    );
    let before = write(&layout, run, &[], WritePolicy::LINUX_BEFORE_4_1);
    assert_eq!(before, (5, 3, 2, vec![M::ReconstructWrite]));
}

#[test]
fn a_full_stripe_is_written_without_a_read() {
    use WriteMethod as M;
    let layout = raid5(5, ParityAlgorithm::LeftSymmetric);
    let stripe = 4 * CHUNK;
    assert_eq!(
        write(&layout, Run::new(stripe, stripe), &[], WritePolicy::LINUX),
        (0, 5, 1, vec![M::FullStripe])
    );
    // Five stripes: each member is written once, data and parity in one run.
    let found = write(&layout, Run::new(0, 5 * stripe), &[], WritePolicy::LINUX);
    assert_eq!(found, (0, 5, 1, vec![M::FullStripe; 5]));
    assert_eq!(
        write(&layout, Run::new(0, stripe), &[2], WritePolicy::LINUX),
        (0, 4, 1, vec![M::FullStripe])
    );
}

#[test]
fn a_run_over_most_of_a_stripe_reads_the_rest() {
    let layout = raid5(5, ParityAlgorithm::LeftSymmetric);
    let found = write(&layout, Run::new(0, 3 * CHUNK), &[], WritePolicy::LINUX);
    assert_eq!(found, (1, 4, 2, vec![WriteMethod::ReconstructWrite]));
    // Rows are decided one by one: half a chunk more covers the upper half wholly.
    let found = write(
        &layout,
        Run::new(0, 3 * CHUNK + CHUNK / 2),
        &[],
        WritePolicy::LINUX,
    );
    assert_eq!(
        found.3,
        [WriteMethod::FullStripe, WriteMethod::ReconstructWrite]
    );
    assert_eq!(found.0, 1);
}

#[test]
fn a_partly_covered_block_is_read_before() {
    // One sector of a block: the block itself and parity are read, both are written whole.
    let layout = raid5(8, ParityAlgorithm::LeftSymmetric);
    assert_eq!(
        ios(&layout, Run::new(3, 1)),
        ["Read m0 0+8", "Read m7 0+8", "Write m0 0+8", "Write m7 0+8"]
    );
}

#[test]
fn only_the_last_row_of_a_run_is_partly_covered() {
    // D0 D1 P: two rows and a half of D0. Whole rows need D1, the half one needs its old self too.
    let layout = raid5(3, ParityAlgorithm::LeftSymmetric);
    assert_eq!(
        ios(&layout, Run::new(0, 20)),
        [
            "Read m1 0+24",
            "Read m0 16+8",
            "Write m0 0+24",
            "Write m2 0+24"
        ]
    );
}

#[test]
fn degraded_writes_go_where_they_can() {
    use WriteMethod as M;
    let layout = raid5(6, ParityAlgorithm::LeftSymmetric);
    let run = Run::new(0, 8);
    let linux = WritePolicy::LINUX;
    // Stripe 0 is D0 D1 D2 D3 D4 P. The written block's member: the other data, and only P.
    assert_eq!(
        write(&layout, run, &[0], linux),
        (4, 1, 2, vec![M::ReconstructWrite])
    );
    // Another data member: old data and parity.
    assert_eq!(
        write(&layout, run, &[3], linux),
        (2, 2, 2, vec![M::ReadModifyWrite])
    );
    // Parity: md reconstructs a parity that it cannot write.
    assert_eq!(
        write(&layout, run, &[5], linux),
        (4, 1, 2, vec![M::ReconstructWrite])
    );
    // Part of a block on the failed member: all others.
    assert_eq!(
        write(&layout, Run::new(0, 4), &[0], linux),
        (5, 1, 2, vec![M::ReconstructWrite])
    );
    let six = raid6(6, ParityAlgorithm::ParityLast);
    // D0 D1 D2 D3 P Q with the written block and another one gone: all four survivors.
    assert_eq!(
        write(&six, run, &[0, 1], linux),
        (4, 2, 2, vec![M::ReconstructWrite])
    );
    assert_eq!(
        write(&six, run, &[1, 2], linux),
        (3, 3, 2, vec![M::ReadModifyWrite])
    );
    assert_eq!(
        write(&six, run, &[1, 2], WritePolicy::LINUX_BEFORE_4_1),
        (4, 3, 2, vec![M::ReconstructWrite])
    );
}

#[test]
fn a_degraded_read_reads_the_row() {
    let mut plan = Plan::new();
    let reads = |layout: &Layout, run, failed: &[usize], plan: &mut Plan| {
        layout.map_read(run, set(failed), plan).unwrap();
        plan.ios()
            .map(|io| (io.member.0, io.run.start.0, io.run.len.0))
            .collect::<Vec<_>>()
    };
    let layout = raid5(4, ParityAlgorithm::LeftSymmetric);
    // Sector 3 alone; then its row of 4 KiB from the others.
    assert_eq!(reads(&layout, Run::new(3, 1), &[], &mut plan), [(0, 3, 1)]);
    assert_eq!(
        reads(&layout, Run::new(3, 1), &[0], &mut plan),
        [(1, 0, 8), (2, 0, 8), (3, 0, 8)]
    );
    assert_eq!(reads(&layout, Run::new(3, 1), &[1], &mut plan), [(0, 0, 8)]);
    // A whole stripe with one member gone: each survivor once.
    let whole = reads(&layout, Run::new(0, 3 * CHUNK), &[1], &mut plan);
    assert_eq!(whole, [(0, 0, CHUNK), (2, 0, CHUNK), (3, 0, CHUNK)]);
    // md reads both parities of raid6 even when one member is gone.
    let six = raid6(6, ParityAlgorithm::ParityLast);
    assert_eq!(reads(&six, Run::new(0, 8), &[0], &mut plan).len(), 5);
    assert_eq!(reads(&six, Run::new(0, 8), &[0, 5], &mut plan).len(), 4);
}

/// Copies in offset layout over an array that has lost a member: the row that is read for the lost
/// block begins where a piece before it ended on the same member.
#[test]
fn pieces_of_an_outer_array_share_the_rows_of_a_degraded_inner_one() {
    let linear = Layout::linear(&[Sectors(23), Sectors(57)], None).unwrap();
    let parity = Layout::raid4(&[Sectors(576); 3], Sectors(64)).unwrap();
    let layout = Layout::nested(vec![linear, parity], |sizes| {
        Layout::raid10(sizes, Sectors(8), Copies::offset(2))
    })
    .unwrap();
    // Member 1 takes the linear array with it; member 3 holds sectors 64 to 128 of the other.
    let mut plan = Plan::new();
    let run = Run::new(30, 44);
    layout.map_read(run, set(&[1, 3]), &mut plan).unwrap();
    let reads: Vec<_> = plan
        .ios()
        .map(|io| (io.member.0, io.run.start.0, io.run.len.0))
        .collect();
    assert_eq!(reads, [(2, 0, 24), (2, 32, 32), (4, 0, 16)]);
}

#[test]
fn a_far_array_reads_like_raid0_and_near_does_not() {
    let mut plan = Plan::new();
    let n = 4;
    let per_member = |layout: &Layout, plan: &mut Plan| {
        layout
            .map_read(Run::new(0, 8 * CHUNK), MemberSet::EMPTY, plan)
            .unwrap();
        let mut sums = vec![0; n];
        for io in plan.ios() {
            sums[io.member.index()] += io.run.len.0;
        }
        (plan.reads(), sums)
    };
    let far = per_member(&raid10(n, 64, Copies::far(2)), &mut plan);
    let raid0 = Layout::raid0(&members(n, 32), Sectors(CHUNK), Raid0Order::Alternate).unwrap();
    assert_eq!(far, per_member(&raid0, &mut plan));
    assert_eq!(far, (4, vec![2 * CHUNK; 4]));
    let near = per_member(&raid10(n, 64, Copies::near(2)), &mut plan);
    assert_eq!(near.1, [4 * CHUNK, 0, 4 * CHUNK, 0]);
}

#[test]
fn a_stripe_of_raid50_is_written_as_two_full_stripes() {
    let chunk = Sectors(CHUNK);
    let inner = || Layout::raid5(&members(3, 64), chunk, ParityAlgorithm::default()).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid0(sizes, Sectors(2 * CHUNK), Raid0Order::Alternate);
    let layout = Layout::nested(vec![inner(), inner()], outer).unwrap();
    let found = write(&layout, Run::new(0, 4 * CHUNK), &[], WritePolicy::LINUX);
    assert_eq!(found, (0, 6, 1, vec![WriteMethod::FullStripe; 2]));
    let mut plan = Plan::new();
    layout
        .plan_write(
            Run::new(2 * CHUNK, 8),
            set(&[0]),
            WritePolicy::LINUX,
            &mut plan,
        )
        .unwrap();
    // Only the second group is touched, and knows nothing of the failure in the first.
    assert_eq!(plan.decisions()[0].base, Member(3));
    assert_eq!((plan.reads(), plan.writes()), (1, 2));
}

#[test]
fn a_decision_of_an_array_of_arrays_within_another_is_told_by_its_first_disk() {
    // A mirror, and beside it a raid5 over three mirrors.
    let chunk = Sectors(CHUNK);
    let mirror = || Layout::raid1(&members(2, 64)).unwrap();
    let parity = |sizes: &[Sectors]| Layout::raid5(sizes, chunk, ParityAlgorithm::default());
    let inner = Layout::nested(vec![mirror(), mirror(), mirror()], parity).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid0(sizes, chunk, Raid0Order::Alternate);
    let layout = Layout::nested(vec![mirror(), inner], outer).unwrap();
    let mut plan = Plan::new();
    layout
        .plan_write(
            Run::new(CHUNK, 8),
            MemberSet::EMPTY,
            WritePolicy::LINUX,
            &mut plan,
        )
        .unwrap();
    let bases: Vec<Member> = plan.decisions().iter().map(|d| d.base).collect();
    assert_eq!(bases, [Member(2)]);
    let written: Vec<Member> = plan
        .ios()
        .filter(|io| io.kind == IoKind::Write)
        .map(|io| io.member)
        .collect();
    // The first block is of the first mirror, its parity on the last one.
    assert_eq!(written, [2, 3, 6, 7].map(Member));
}

#[test]
fn what_two_pieces_of_an_outer_array_want_of_a_degraded_one_is_read_once() {
    // Blocks 1 and 4 of the outer raid5 are blocks 0 and 2 of one row of its second array, whose block 0 is lost.
    let chunk = Sectors(8);
    let inner = || Layout::raid5(&members(4, 64), chunk, ParityAlgorithm::default()).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid5(sizes, chunk, ParityAlgorithm::default());
    let layout = Layout::nested(vec![inner(), inner(), inner()], outer).unwrap();
    let mut plan = Plan::new();
    layout
        .map_read(Run::new(8, 32), set(&[4]), &mut plan)
        .unwrap();
    let mut of_row: Vec<(Member, Run)> = plan
        .ios()
        .filter(|io| (4..8).contains(&io.member.index()))
        .map(|io| (io.member, io.run))
        .collect();
    of_row.sort_unstable();
    assert_eq!(of_row, [5, 6, 7].map(|m| (Member(m), Run::new(0, 8))));
}

#[test]
fn an_old_kernel_reads_all_of_a_degraded_raid6_before_it_writes_a_part() {
    let layout = raid6(6, ParityAlgorithm::ParityLast);
    let (block, stripe) = (Run::new(0, 8), Run::new(0, 4 * CHUNK));
    let old = WritePolicy::LINUX_BEFORE_4_1;
    assert_eq!(write(&layout, block, &[], old).0, 3);
    assert_eq!(write(&layout, block, &[5], old).0, 5);
    assert_eq!(write(&layout, block, &[5], WritePolicy::LINUX).0, 3);
    assert_eq!(write(&layout, stripe, &[5], old).0, 0);
}

#[test]
fn an_outer_parity_waits_for_the_inner_steps() {
    // Raid5 over three raid5: outer pre-reads, then inner pre-reads, then inner writes.
    let chunk = Sectors(CHUNK);
    let inner = || Layout::raid5(&members(5, 64), chunk, ParityAlgorithm::default()).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid5(sizes, chunk, ParityAlgorithm::default());
    let layout = Layout::nested(vec![inner(), inner(), inner()], outer).unwrap();
    let found = write(&layout, Run::new(0, 8), &[], WritePolicy::LINUX);
    use WriteMethod as M;
    // Outer: 1 read, 2 writes. Each inner write: 2 reads, 2 writes.
    assert_eq!(
        found,
        (
            5,
            4,
            3,
            vec![M::ReconstructWrite, M::ReadModifyWrite, M::ReadModifyWrite]
        )
    );
}

#[test]
fn an_outer_step_waits_for_all_inner_steps_of_the_one_before() {
    // One outer stripe whole and a row of the next: the whole one is written in the outer step 0,
    // which takes an inner pre-read and an inner write; only then comes the outer step 1.
    let chunk = Sectors(CHUNK);
    let inner = || Layout::raid5(&members(5, 64), chunk, ParityAlgorithm::default()).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid5(sizes, chunk, ParityAlgorithm::default());
    let layout = Layout::nested(vec![inner(), inner(), inner()], outer).unwrap();
    let mut plan = Plan::new();
    layout
        .plan_write(
            Run::new(0, 2 * CHUNK + 8),
            MemberSet::EMPTY,
            WritePolicy::LINUX,
            &mut plan,
        )
        .unwrap();
    let counts: Vec<(usize, usize)> = plan
        .steps()
        .map(|ios| {
            let reads = ios.iter().filter(|io| io.kind == IoKind::Read).count();
            (reads, ios.len() - reads)
        })
        .collect();
    // Reads: two for each of three inner writes, and one of the outer pre-read; then two for each
    // of two.
    assert_eq!(counts, [(7, 0), (0, 6), (4, 0), (0, 4)]);
}
