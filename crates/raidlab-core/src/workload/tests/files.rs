//! Small files.
use super::*;
use crate::op::Entry;
use crate::workload::spec::{FilesAction, FilesSpec};
use std::collections::BTreeMap;

fn spec(action: FilesAction, ordered: bool) -> FilesSpec {
    FilesSpec {
        action,
        ordered,
        count: 100,
        directories: 7,
        size_min: 10,
        size_max: 20,
        size_seed: 5,
        sync_each: false,
        sync_end: true,
    }
}

fn entries(spec: FilesSpec) -> Vec<(Entry, u32)> {
    file_ops(WorkloadSpec::Files(spec))
        .into_iter()
        .filter_map(|(op, _)| match op {
            FileOp::Create { entry, size, .. } | FileOp::Stat { entry, size } => {
                Some((entry, size))
            }
            FileOp::Unlink { entry } => Some((entry, spec.size_of(entry.index))),
            _ => None,
        })
        .collect()
}

proptest! {
    #[test]
    fn every_pass_visits_the_files_that_were_made(
        count in 1_u32..400, directories in 1_u32..20, size_min in 0_u32..50, spread in 0_u32..50, ordered: bool,
    ) {
        let of = |action| FilesSpec {
            count, directories, size_min, size_max: size_min + spread, ..spec(action, ordered)
        };
        let made: BTreeMap<_, _> = entries(of(FilesAction::Create)).into_iter().map(|(e, size)| (e.index, (e, size))).collect();
        prop_assert_eq!(made.len() as u32, count);
        for (entry, size) in made.values() {
            prop_assert!(entry.directory < directories && entry.ordered == ordered);
            prop_assert!((size_min..=size_min + spread).contains(size));
        }
        for action in [FilesAction::Stat, FilesAction::Delete] {
            let visited = entries(of(action));
            prop_assert_eq!(visited.len() as u32, count);
            let visited: BTreeMap<_, _> = visited.into_iter().map(|(e, size)| (e.index, (e, size))).collect();
            prop_assert_eq!(&visited, &made);
        }
        let bytes: u64 = made.values().map(|(_, size)| u64::from(*size)).sum();
        prop_assert_eq!(WorkloadSpec::Files(of(FilesAction::Create)).expected().bytes, Some(bytes));
    }
}

#[test]
fn creation_is_in_order_and_random_visits_are_not() {
    let order = |action, ordered| -> Vec<u32> {
        let all = entries(spec(action, ordered)).into_iter();
        all.map(|(entry, _)| entry.index).collect()
    };
    let ascending: Vec<u32> = (0..100).collect();
    assert_eq!(order(FilesAction::Create, true), ascending);
    assert_eq!(order(FilesAction::Create, false), ascending);
    assert_eq!(order(FilesAction::Stat, true), ascending);
    assert_eq!(order(FilesAction::Delete, true), ascending);
    assert_ne!(order(FilesAction::Stat, false), ascending);
}

#[test]
fn directories_frame_the_files_and_only_files_count() {
    let all = file_ops(WorkloadSpec::Files(spec(FilesAction::Create, true)));
    assert!(all[..7].iter().enumerate().all(
        |(i, (op, _))| matches!(op, FileOp::MakeDirectory { directory } if *directory == i as u32)
    ));
    assert_eq!(all.last(), Some(&(FileOp::SyncAll, false)));
    assert_eq!(all.iter().filter(|(_, counted)| *counted).count(), 100);
    let all = file_ops(WorkloadSpec::Files(spec(FilesAction::Delete, true)));
    let (tail, removed) = (&all[100..], FileOp::RemoveDirectory { directory: 6 });
    assert_eq!(tail.len(), 8);
    assert_eq!(tail[6..], [(removed, false), (FileOp::SyncAll, false)]);
    let stats = file_ops(WorkloadSpec::Files(spec(FilesAction::Stat, true)));
    assert!(
        stats
            .iter()
            .all(|(op, counted)| *counted && matches!(op, FileOp::Stat { .. }))
    );
}

#[test]
fn files_are_spread_in_runs_as_bonnie_does() {
    // bonnie++ -n 1:0:0:3 puts 342, 342 and 340 of its 1024 files in the three directories.
    let spec = FilesSpec {
        count: 1024,
        directories: 3,
        ..spec(FilesAction::Create, true)
    };
    let in_directory = |d| (0..1024).filter(|i| spec.directory_of(*i) == d).count();
    assert_eq!([0, 1, 2].map(in_directory), [342, 342, 340]);
}

#[test]
fn each_file_and_its_directory_are_made_durable_when_asked() {
    let made = FilesSpec {
        sync_each: true,
        ..spec(FilesAction::Create, true)
    };
    let all = file_ops(WorkloadSpec::Files(made));
    for pair in all[7..207].chunks(2) {
        let (FileOp::Create { entry, sync, .. }, true) = pair[0] else {
            panic!("{pair:?}");
        };
        assert!(sync);
        let directory = entry.directory;
        assert_eq!(pair[1], (FileOp::SyncDirectory { directory }, false));
    }
    let stat = FilesSpec {
        action: FilesAction::Stat,
        ..made
    };
    assert_eq!(ops(WorkloadSpec::Files(stat)).len(), 100);
}
