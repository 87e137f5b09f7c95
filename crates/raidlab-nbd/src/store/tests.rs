//! Every store is a piece of memory that begins with zeroes.
use super::*;
use proptest::prelude::*;

const SIZE: u64 = 5 * PAGE as u64 + 512;

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Zero(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let extent = (0..SIZE).prop_flat_map(|at| (Just(at), 0..=(SIZE - at)));
    let fill = prop_oneof![Just(0_u8), any::<u8>()];
    prop_oneof![
        (extent.clone(), fill)
            .prop_map(|((at, len), fill)| Step::Write(at, vec![fill; len as usize])),
        extent.prop_map(|(at, len)| Step::Zero(at, len)),
    ]
}

fn all(store: &Store) -> Vec<u8> {
    let mut content = vec![1; SIZE as usize];
    store.read(0, &mut content).unwrap();
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn stores_keep_what_is_written(steps in proptest::collection::vec(step(), 0..12)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let budget = Budget::new(1 << 20);
        let mut memory = Memory::anonymous(1 << 20).unwrap();
        let mapped = memory.divide(&[SIZE]).unwrap().remove(0);
        let mut stores = [
            Store::Sparse(Sparse::new(&budget)),
            Store::Backing(Backing::open(file.path(), SIZE).unwrap()),
            Store::Mapped(mapped),
        ];
        let mut wanted = vec![0_u8; SIZE as usize];
        for step in &steps {
            for store in &mut stores {
                match step {
                    Step::Write(at, data) => store.write(*at, data).unwrap(),
                    Step::Zero(at, len) => store.zero(*at, *len).unwrap(),
                }
            }
            match step {
                Step::Write(at, data) => wanted[*at as usize..][..data.len()].copy_from_slice(data),
                Step::Zero(at, len) => wanted[*at as usize..][..*len as usize].fill(0),
            }
        }
        for store in &stores {
            prop_assert!(all(store) == wanted);
        }
        let held = wanted.chunks(PAGE).filter(|page| page.iter().any(|byte| *byte != 0)).count();
        prop_assert!(stores[0].used() >= (held * PAGE) as u64);
        let used = stores[0].used();
        prop_assert_eq!(budget.left(), (1 << 20) - used);
        drop(stores);
        prop_assert_eq!(budget.left(), 1 << 20);
        // What a disk has left is not seen by the next one.
        let next = Store::Mapped(memory.divide(&[SIZE]).unwrap().remove(0));
        prop_assert!(all(&next).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn zeroes_and_holes_take_no_memory() {
    let budget = Budget::new(10 * PAGE as u64);
    let mut store = Store::Sparse(Sparse::new(&budget));
    store.write(1 << 40, &[0; 3 * PAGE]).unwrap();
    assert_eq!(store.used(), 0);
    store.write((1 << 40) + 5, &[1; 3 * PAGE]).unwrap();
    assert_eq!(store.used(), 4 * PAGE as u64);
    store.zero(0, 1 << 50).unwrap();
    assert_eq!(store.used(), 0);
}

#[test]
fn a_budget_is_not_exceeded() {
    let budget = Budget::new(2 * PAGE as u64);
    let mut one = Store::Sparse(Sparse::new(&budget));
    let mut other = Store::Sparse(Sparse::new(&budget));
    one.write(0, &[1]).unwrap();
    other.write(0, &[1]).unwrap();
    assert!(matches!(
        one.write(PAGE as u64, &[1]),
        Err(StoreError::Full)
    ));
    one.write(1, &[1]).unwrap();
    drop(other);
    one.write(PAGE as u64, &[1]).unwrap();
}

#[test]
fn files_are_sparse_kept_and_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk0.img");
    let size = 1 << 33;
    let mut store = Store::Backing(Backing::open(&path, size).unwrap());
    store.zero(4096, 0).unwrap();
    store.write(size - 4096, &[7; 4096]).unwrap();
    assert!(store.used() < 1 << 20, "{}", store.used());
    assert!(Backing::open(&path, size).is_err(), "it is in use");
    drop(store);
    assert!(Backing::open(&path, size / 2).is_err(), "another size");
    let mut store = Store::Backing(Backing::open(&path, size).unwrap());
    let mut last = [0; 2];
    store.read(size - 2, &mut last).unwrap();
    assert_eq!(last, [7, 7]);
    store.zero(0, size).unwrap();
    store.read(size - 2, &mut last).unwrap();
    assert_eq!(last, [0, 0]);
    assert_eq!(store.used(), 0);
}

#[test]
fn memory_is_divided_once_at_a_time() {
    let mut memory = Memory::anonymous(3 << 20).unwrap();
    let mut parts = memory.divide(&[1 << 20, 1000]).unwrap();
    assert!(memory.divide(&[1]).is_err(), "in use");
    parts[0].slice_mut(0, 1 << 20).fill(1);
    assert!(parts[1].slice(0, 1000).iter().all(|byte| *byte == 0));
    drop(parts);
    assert!(memory.divide(&[3 << 20, 1]).is_err(), "too small");
    assert!(memory.divide(&[3 << 20]).is_ok());
}

#[test]
fn disks_that_are_unlike_agree_in_no_page_and_leave_nothing_behind() {
    let mut memory = Memory::anonymous(8 << 20).unwrap();
    let mut contents = || {
        let mut contents = memory.divide(&[SIZE; 3]).unwrap();
        for (number, content) in contents.iter_mut().enumerate() {
            content.make_unlike(number as u64);
        }
        let stores = contents.into_iter().map(Store::Mapped);
        stores.map(|store| all(&store)).collect::<Vec<_>>()
    };
    let found = contents();
    assert_eq!(found, contents(), "the same each time");
    let pages = |disk: usize| found[disk].chunks(4 << 10).collect::<Vec<_>>();
    for (number, page) in pages(0).iter().enumerate() {
        let [one, other] = [1, 2].map(|disk| pages(disk)[number]);
        assert!(
            *page != one && *page != other && one != other,
            "page {number}"
        );
        let parity = page.iter().zip(one).map(|(a, b)| a ^ b);
        assert!(parity.zip(other).any(|(a, b)| a != *b), "page {number}");
    }
    let next = Store::Mapped(memory.divide(&[SIZE]).unwrap().remove(0));
    assert!(all(&next).iter().all(|byte| *byte == 0));
}
