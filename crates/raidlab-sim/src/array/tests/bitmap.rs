//! What a write-intent bitmap costs, and when.
use super::toy::{Asked, Toy};
use super::*;
use crate::array::bitmap::{picked as picked_by, room};
use BlockKind::{Flush, Read, Write};
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::Layout;

/// Sectors of a bit in these tests.
const BIT: u64 = 1 << 11;
/// The bitmap begins so far before the data.
const BEFORE: u64 = 2032;

fn noted(layout: Layout) -> ArraySpec {
    let mut spec = ArraySpec::new(ArrayKind::Md(layout));
    spec.bitmap = Some(BitmapSpec {
        chunk: Some(BIT),
        at: -(BEFORE as i64),
        block: 1,
        room: 64 << 10,
        coarse: true,
        by_submitter: true,
    });
    spec
}

fn layouts() -> [(&'static str, Layout); 3] {
    ["raid1", "raid10", "raid5"].map(|level| (level, resync::layout(level, 4, 1 << 16)))
}

/// Writes of pages so far.
fn pages(toy: &Toy) -> Vec<Asked> {
    let page = |asked: &&Asked| asked.bio.kind == Write && asked.bio.lba.0 < BEFORE;
    toy.log.iter().filter(page).copied().collect()
}

/// Writes 8 sectors at `lba`; how many pages were written for that.
fn write(toy: &mut Toy, id: u64, lba: u64) -> usize {
    let (before, ends) = (pages(toy).len(), toy.ended.len());
    toy.submit(bio(id, Write, lba, 8));
    toy.unplug();
    while toy.ended.len() == ends {
        assert!(toy.step());
    }
    pages(toy).len() - before
}

/// Lets time pass in which nobody does anything.
fn wait(toy: &mut Toy, time: Span) {
    let until = toy.now + time;
    // What waits for members has no time of its own.
    while toy.array.next_event().is_none_or(|at| at <= until) && toy.step() {}
    toy.now = until;
}

#[test]
fn the_first_write_to_a_stretch_is_noted_on_all_members_before_it_is_done() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        assert_eq!(write(&mut toy, 0, 0), 4, "{level}");
        // After a flush, past the caches, before any data.
        let of = |a: &Asked| (a.bio.kind, a.bio.fua);
        let kinds: Vec<_> = toy.log[..8].iter().map(of).collect();
        assert_eq!(kinds[..4], [(Flush, false); 4], "{level}");
        assert_eq!(kinds[4..], [(Write, true); 4], "{level}");
        let last = toy.log[4..8].iter().map(|a| a.at).max().unwrap();
        let data = |a: &&Asked| a.bio.lba.0 >= BEFORE && a.bio.kind != Flush;
        assert!(toy.log.iter().filter(data).all(|a| a.at > last), "{level}");
        // The superblock's 256 bytes and some for the bits.
        assert_eq!((toy.log[4].bio.lba.0, toy.log[4].bio.sectors), (0, 1));
        for lba in [8, 64, BIT - 8] {
            assert_eq!(write(&mut toy, 1, lba), 0, "{level} {lba}");
        }
        assert_eq!(write(&mut toy, 2, 3 * BIT), 4, "{level}: another stretch");
    }
}

#[test]
fn parity_levels_note_sectors_of_the_members_and_mirrors_those_of_the_array() {
    let second = |level: &str| {
        let mut toy = Toy::new(&noted(resync::layout(level, 4, 1 << 16)), 0);
        write(&mut toy, 0, 0);
        [BIT, 2 * BIT, 3 * BIT].map(|lba| write(&mut toy, 1, lba))
    };
    assert_eq!(second("raid1"), [4, 4, 4]);
    assert_eq!(second("raid10"), [4, 4, 4]);
    // Three members' worth of data for each stretch of theirs.
    assert_eq!(second("raid5"), [0, 0, 4]);
}

#[test]
fn a_stretch_is_clear_again_when_it_was_left_alone_for_two_looks() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        assert_eq!(write(&mut toy, 0, 0), 4);
        // Written on and on, it stays set.
        for second in 1..20 {
            wait(&mut toy, Span::from_secs(1));
            assert_eq!(write(&mut toy, second, 0), 0, "{level} {second}");
        }
        let before = pages(&toy).len();
        wait(&mut toy, Span::from_secs(4));
        assert_eq!(write(&mut toy, 30, 0), 0, "{level}: one look");
        wait(&mut toy, Span::from_secs(11));
        // Clear in memory, and not yet on the members.
        assert_eq!(pages(&toy).len(), before, "{level}");
        assert_eq!(write(&mut toy, 31, 0), 4, "{level}: two looks");
        let before = pages(&toy).len();
        wait(&mut toy, Span::from_secs(60));
        assert_eq!(pages(&toy).len() - before, 4, "{level}: cleared once");
        assert_eq!(toy.array.next_event(), None, "{level}: at rest");
    }
}

#[test]
fn what_a_missing_member_lacks_is_never_cleared() {
    for level in ["raid1", "raid5"] {
        let mut spec = noted(resync::layout(level, 4, 1 << 16));
        (spec.state, spec.failed) = (ArrayState::Degraded(1), vec![2]);
        let mut toy = Toy::new(&spec, 0);
        // The members that are there.
        assert_eq!(write(&mut toy, 0, 64 * 3 * 2), 3, "{level}");
        wait(&mut toy, Span::from_secs(60));
        assert_eq!(write(&mut toy, 1, 64 * 3 * 2), 0, "{level}");
    }
}

#[test]
fn all_that_is_submitted_together_is_noted_together() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        for i in 0..10 {
            toy.submit(bio(i, Write, i * 3 * BIT, 8));
        }
        toy.unplug();
        while toy.ended.len() < 10 {
            assert!(toy.step());
        }
        assert_eq!(pages(&toy).len(), 4, "{level}");
    }
}

#[test]
fn writes_wait_while_a_page_is_written_and_reads_do_not() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        write(&mut toy, 0, 0);
        let from = toy.log.len();
        toy.submit(bio(1, Write, 3 * BIT, 8));
        toy.unplug();
        // Where it is noted already; and a read.
        toy.submit(bio(2, Write, 256, 8));
        toy.submit(bio(3, Read, 9 * BIT, 8));
        toy.unplug();
        let asked: Vec<_> = toy.log[from..].iter().map(|a| a.bio.kind).collect();
        assert_eq!(asked, [Flush, Flush, Flush, Flush, Read], "{level}");
        while toy.ended.len() < 4 {
            assert!(toy.step());
        }
    }
}

#[test]
fn more_is_noted_in_one_go_for_those_that_came_meanwhile() {
    let mut toy = Toy::new(&noted(resync::layout("raid1", 2, 1 << 16)), 0);
    for i in 0..6 {
        // Of six processes: each of them waits for himself.
        let mut write = bio(i, Write, i * BIT, 8);
        write.origin.task = i as u16 + 1;
        toy.submit(write);
        toy.unplug();
    }
    while toy.ended.len() < 6 {
        assert!(toy.step());
    }
    assert_eq!(pages(&toy).len(), 4, "two rounds on two members");
}

#[test]
fn whatever_is_written_ends_and_is_where_it_belongs() {
    for (number, (_, layout)) in layouts().into_iter().enumerate() {
        for seed in 1..12 {
            let mut spec = noted(layout.clone());
            // Behind the data, so that the toy can look into its members.
            spec.bitmap = spec.bitmap.map(|bitmap| BitmapSpec {
                at: 1 << 16,
                chunk: Some(64),
                ..bitmap
            });
            let mut toy = Toy::new(&spec, seed * 16 + number as u64);
            let (draw, mut ids) = (Stream::new(seed), 0..);
            for round in 0..120 {
                let at = |n: u64, below: u64| draw.below(round * 8 + n, below);
                let id = ids.next().unwrap();
                let lba = at(0, 1 << 12) * 8;
                let kind = if at(1, 4) == 0 { Read } else { Write };
                toy.submit(bio(id, kind, lba, 8 * (1 + at(2, 40) as u32)));
                if at(3, 2) == 0 {
                    toy.unplug();
                }
                for _ in 0..at(4, 6) {
                    toy.step();
                }
            }
            toy.settle();
            assert_eq!(toy.ended.len(), 120);
            assert!(toy.ended.iter().all(|end| end.result.is_ok()));
            toy.check(&[]).unwrap();
        }
    }
}

#[test]
fn a_member_that_fails_meanwhile_is_left_out() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        toy.broken = vec![1];
        for i in 0..20 {
            toy.submit(bio(i, Write, i * BIT / 2, 8));
            toy.unplug();
            toy.step();
        }
        toy.settle();
        assert!(toy.ended.iter().all(|end| end.result.is_ok()), "{level}");
        let asked = toy.log.iter().filter(|a| a.member == 1).count();
        assert!(asked <= 4, "{level}: member 1 was asked {asked} times");
    }
}

#[test]
fn arrays_in_an_array_have_bitmaps_of_their_own() {
    let spec = noted(resync::layout("raid1+0 2x2", 4, 1 << 16));
    let mut toy = Toy::new(&spec, 0);
    // The mirror that is written.
    assert_eq!(write(&mut toy, 0, 0), 2);
    assert_eq!(write(&mut toy, 1, 64), 2, "the other mirror");
    assert_eq!(write(&mut toy, 2, 0), 0);
}

#[test]
fn a_resync_with_a_bitmap_is_refused() {
    let mut spec = noted(resync::layout("raid1", 2, 1 << 16));
    spec.state = ArrayState::Resyncing;
    assert_eq!(Array::new(&spec).unwrap_err(), ArrayError::NotedResync);
}

#[test]
fn mdadm_picks_64_mib_until_the_bits_have_no_room() {
    let picked = |gib: u64, room: u64, coarse: bool| {
        let spec = BitmapSpec {
            chunk: None,
            at: 0,
            block: 1,
            room,
            coarse,
            by_submitter: true,
        };
        picked_by(&spec, gib << 21) / 2
    };
    const MIB: u64 = 1024;
    // `mdadm -X` of a member of 4 TB: 29808 bits of 64 MiB.
    assert_eq!(picked(3726, room(3726 << 21), true), 64 * MIB);
    assert_eq!(picked(22_352, room(22_352 << 21), true), 64 * MIB);
    assert_eq!(picked(1 << 20, room(1 << 31), true), 2048 * MIB);
    assert_eq!(picked(1, room(1 << 21), true), 64 * MIB);
    // Before 3.1.1: as fine as 60 KiB hold, 512 KiB for 232 GiB.
    assert_eq!(picked(232, 60 << 10, false), 512);
}

/// Whoever submits to a mirror waits for the pages of each of his turns; the thread of parity does so for all that has come meanwhile.
#[test]
fn each_turn_of_a_process_has_pages_of_its_own_on_mirrors() {
    for (level, layout) in layouts() {
        let mut toy = Toy::new(&noted(layout), 0);
        for i in 0..4 {
            toy.submit(bio(i, Write, 6 * i * BIT, 8));
            toy.unplug();
        }
        while toy.ended.len() < 4 {
            assert!(toy.step());
        }
        let rounds = pages(&toy).len() / 4;
        assert_eq!(rounds, if level == "raid5" { 2 } else { 4 }, "{level}");
    }
    // Before 3.6 md's thread did that for mirrors, too.
    let mut spec = noted(resync::layout("raid1", 4, 1 << 16));
    spec.bitmap = spec.bitmap.map(|bitmap| BitmapSpec {
        by_submitter: false,
        ..bitmap
    });
    let mut toy = Toy::new(&spec, 0);
    for i in 0..4 {
        toy.submit(bio(i, Write, 6 * i * BIT, 8));
        toy.unplug();
    }
    while toy.ended.len() < 4 {
        assert!(toy.step());
    }
    assert_eq!(pages(&toy).len() / 4, 2);
}

#[test]
fn a_bitmap_that_has_no_room_is_refused_as_mdadm_does() {
    let mut spec = noted(resync::layout("raid1", 2, 1 << 24));
    let with = |spec: &mut ArraySpec, chunk, room| {
        spec.bitmap = spec.bitmap.map(|bitmap| BitmapSpec {
            chunk,
            room,
            ..bitmap
        });
        Array::new(spec).err()
    };
    // 4 KiB of room, of which the superblock of the bitmap has 256 bytes.
    assert_eq!(with(&mut spec, Some(1 << 10), 4096), None);
    assert_eq!(
        with(&mut spec, Some(8), 4096),
        Some(ArrayError::BitmapRoom(1 << 21, 30_720))
    );
    assert_eq!(with(&mut spec, None, 4096), None);
}
