//! Which die of a solid-state disk a page is on.
use super::*;

/// Reads of so many sectors at these places, so many under way at all times: how many a second.
fn deep(disk: &mut Disk, depth: u64, sectors: u32, lbas: impl Iterator<Item = u64>) -> f64 {
    let (mut now, mut done) = (Instant(1_000_000_000), Vec::new());
    let (begin, mut begun, mut ended) = (now, 0, 0);
    let mut lbas = lbas.fuse();
    loop {
        for lba in lbas.by_ref().take((depth - (begun - ended)) as usize) {
            disk.submit(now, request(begun, BlockKind::Read, lba, sectors));
            begun += 1;
        }
        let Some(next) = disk.next_event() else {
            return ended as f64 / now.since(begin).as_secs_f64();
        };
        now = next;
        disk.advance(now, &mut done);
        ended += done.drain(..).count() as u64;
    }
}

/// Random reads of 4 KiB from so many pages, of those that are kept.
fn random(pages: u64, kept: impl Fn(u64) -> bool) -> f64 {
    let numbers = Stream::new(5);
    let draws = (0..).map(|i| numbers.below(i, pages));
    let lbas = draws.filter(|page| kept(*page)).map(|page| 32 * page);
    deep(
        &mut Disk::new(&model("nvme-ssd"), 1),
        128,
        8,
        lbas.take(40_000),
    )
}

/// md does not read the parity of a member, which is a regular part of its pages: dies know nothing of chunks.
#[test]
fn what_is_left_out_in_a_regular_way_leaves_no_die_idle() {
    // A file of 256 MiB on each member, and one of 64 GiB.
    for pages in [1 << 14, 1 << 22] {
        let all = random(pages, |_| true);
        // Chunks of 32 to 512 KiB: two of four in a row are parity (RAID6 of four), or one of eight (RAID5).
        for chunk in [2, 4, 8, 16, 32] {
            close(random(pages, |page| page / chunk % 4 < 2), all, 0.03);
            close(random(pages, |page| page / chunk % 8 > 0), all, 0.03);
        }
    }
}

/// Of regular places no fewer dies are read than of random ones.
#[test]
fn strides_meet_all_dies() {
    let pages = 1 << 22;
    let all = random(pages, |_| true);
    // Of 1 MiB, the dies' own; of numbers of disks; of what comes near the rows.
    for stride in [3, 5, 7, 12, 28, 63, 64, 65, 128, 960] {
        close(random(pages, |page| page % stride == 0), all, 0.03);
    }
}

/// Readers that are as far from each other as the parts of a file, and keep step.
#[test]
fn readers_that_keep_step_do_not_meet_at_a_die() {
    let beside = |apart: u64| {
        let places = |i: u64| (0..64).map(move |reader| 32 * (reader * apart + 8 * i));
        let lbas = (0..500).flat_map(places);
        deep(&mut Disk::new(&model("nvme-ssd"), 1), 64, 8, lbas)
    };
    let anywhere = beside(98_765);
    for apart in [1 << 12, 1 << 14, 1 << 20] {
        close(beside(apart), anywhere, 0.3);
    }
}

/// What was written in a row lies on all dies in turn: three quarters of them have a page each of as many in a row.
#[test]
fn pages_in_a_row_are_on_as_many_dies() {
    let mut disk = Disk::new(&model("nvme-ssd"), 1);
    let mut now = Instant(1_000_000_000);
    let mut took: Vec<u64> = Vec::new();
    for i in 0..2_000 {
        // From any page on, and with time enough between them.
        now += Span::from_millis(10);
        let read = request(i, BlockKind::Read, 32 * 1013 * i, 32 * 48);
        took.push(one(&mut disk, now, read).at.since(now).0);
    }
    took.sort_unstable();
    // But for the few across the end of a block of each die.
    let (least, most) = (took[0] as f64, took[1_900] as f64);
    close(most, least, 0.05);
}
