//! The cache against a plain table of pages.
use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Page {
    present: bool,
    dirty: bool,
    reading: bool,
    blank: bool,
    writing: bool,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Read,
    Came(Left),
    Drop,
    Dirty,
    Write,
    Went,
    Clean,
    Forget(bool),
}

fn acts() -> impl Strategy<Value = Vec<(Act, u32, u64, u64)>> {
    let act = prop_oneof![
        Just(Act::Read),
        prop_oneof![Just(Left::Content), Just(Left::Blank), Just(Left::Nothing)]
            .prop_map(Act::Came),
        Just(Act::Drop),
        Just(Act::Dirty),
        Just(Act::Write),
        Just(Act::Went),
        Just(Act::Clean),
        any::<bool>().prop_map(Act::Forget),
    ];
    proptest::collection::vec((act, 0..3_u32, 0..100_u64, 1..140_u64), 1..40)
}

fn apply(cache: &mut Cache, act: Act, file: u32, page: u64, pages: u64) {
    match act {
        Act::Read => cache.begin_read(file, page, pages),
        Act::Came(left) => cache.end_read(file, page, pages, left),
        Act::Drop => cache.drop_blank(file, page, pages),
        Act::Dirty => {
            cache.make_dirty(file, page, pages);
        }
        Act::Write => cache.begin_write(file, page, pages),
        Act::Went => cache.end_write(file, page, pages),
        Act::Clean => cache.make_clean(file, page, pages),
        Act::Forget(dirty) => cache.forget(file, page, pages, dirty),
    }
}

fn expect(page: &mut Page, act: Act) {
    match act {
        Act::Read => {
            page.reading |= !page.present;
            page.blank &= !page.reading;
        }
        Act::Came(left) => {
            page.present |= page.reading && left == Left::Content;
            page.blank |= page.reading && !page.present && left == Left::Blank;
            page.reading = false;
        }
        Act::Drop => page.blank = false,
        Act::Dirty => (page.present, page.dirty, page.blank) = (true, true, false),
        Act::Write => {
            page.writing |= page.present;
            page.dirty = false;
        }
        Act::Went => page.writing = false,
        Act::Clean => page.dirty = false,
        Act::Forget(dirty) => {
            page.dirty &= !dirty;
            page.present &= page.dirty || page.writing;
            page.blank = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn it_agrees_with_a_table_of_pages(acts in acts()) {
        let mut cache = Cache::new(1 << 20, Balance::Half, true);
        let mut table = vec![[Page::default(); 256]; 3];
        for (act, file, page, pages) in acts {
            apply(&mut cache, act, file, page, pages);
            for at in page..page + pages {
                expect(&mut table[file as usize][at as usize], act);
            }
        }
        let count = |pick: &dyn Fn(&Page) -> bool| table.iter().flatten().filter(|p| pick(p)).count() as u64;
        prop_assert_eq!(cache.dirty(), count(&|p| p.dirty));
        prop_assert_eq!(cache.writing(), count(&|p| p.writing));
        prop_assert_eq!(cache.pages(), count(&|p| p.present || p.reading || p.blank));
        for file in 0..3 {
            let of = |at: u64| table[file as usize][at as usize];
            for at in (0..256).step_by(5) {
                let run = (at..256).take_while(|p| of(*p).present).count() as u64;
                prop_assert_eq!(cache.present_run(file, at, 256 - at), run);
                prop_assert_eq!(cache.is_blank(file, at), of(at).blank);
                let held = |p: u64| of(p).present || of(p).reading || of(p).blank;
                let gap = (at..256).find(|p| !held(*p));
                let gap = gap.map(|g| (g, (g..256).take_while(|p| !held(*p)).count() as u64));
                prop_assert_eq!(cache.next_missing(file, at, 256), gap);
                let ready = |p: u64| of(p).dirty && !of(p).writing;
                let dirty = (at..256).find(|p| ready(*p));
                let dirty = dirty.map(|d| (d, (d..256).take_while(|p| ready(*p)).count() as u64));
                prop_assert_eq!(cache.next_dirty(file, at, 1000), dirty);
            }
        }
    }

    #[test]
    fn it_never_grows_beyond_its_size_when_all_is_clean(runs in proptest::collection::vec((0..3_u32, 0..4000_u64, 1..200_u64), 1..100)) {
        for balance in [Balance::Half, Balance::Proportional] {
            let mut cache = Cache::new(500, balance, true);
            for &(file, page, pages) in &runs {
                cache.fill(file, page, pages);
                cache.touch_run(file, page, pages);
                cache.shrink();
                prop_assert!(cache.pages() <= 500);
            }
        }
    }
}

#[test]
fn what_was_used_twice_outlives_a_stream() {
    let mut cache = Cache::new(1024, Balance::Half, true);
    cache.fill(0, 0, 256);
    cache.touch_run(0, 0, 256);
    cache.touch_run(0, 0, 256);
    for page in (0..64_000).step_by(64) {
        cache.fill(1, page, 64);
        cache.touch_run(1, page, 64);
        cache.shrink();
    }
    assert_eq!(cache.pages_of(0), 256);
    // A stream of pages that are used once goes through the rest.
    assert_eq!(cache.pages_of(1), 768);
}

#[test]
fn what_was_read_and_rewritten_outlives_a_stream_where_writing_is_use() {
    let left = |writes_use: bool| {
        let mut cache = Cache::new(1024, Balance::Half, writes_use);
        cache.fill(0, 0, 256);
        cache.touch_run(0, 0, 256);
        cache.make_dirty(0, 0, 256);
        cache.make_clean(0, 0, 256);
        for page in (0..64_000).step_by(64) {
            cache.fill(1, page, 64);
            cache.touch_run(1, page, 64);
            cache.shrink();
        }
        cache.pages_of(0)
    };
    assert_eq!(left(true), 256);
    assert_eq!(left(false), 0);
}

#[test]
fn a_long_stream_takes_no_more_memory_than_the_cache_is_large() {
    let mut cache = Cache::new(4096, Balance::Proportional, true);
    for page in (0..1 << 24).step_by(32) {
        cache.begin_read(0, page, 32);
        cache.end_read(0, page, 32, Left::Content);
        cache.shrink();
    }
    assert!(cache.nodes.len() <= 4096 / 64 + 2, "{}", cache.nodes.len());
}
