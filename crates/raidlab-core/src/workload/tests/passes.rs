//! Passes, scans and copies.
use super::*;
use crate::units::Extent;
use crate::workload::spec::{CopySpec, PassAction, PassSpec, ScanSpec};

const ACTIONS: [PassAction; 5] = [
    PassAction::Write,
    PassAction::Read,
    PassAction::Rewrite,
    PassAction::PutChars,
    PassAction::GetChars,
];
const DURABLE: [Durable; 4] = [
    Durable::Never,
    Durable::AtEnd,
    Durable::DataAtEnd,
    Durable::EveryWrite,
];

fn pass(action: PassAction, start: u64, size: u64, call: u32, durable: Durable) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: handle(),
        action,
        start: Bytes(start),
        size: Bytes(size),
        call,
        durable,
    })
}

fn piece(op: &FileOp) -> Option<(u64, u64)> {
    match *op {
        FileOp::Read { offset, len, .. }
        | FileOp::Scan { offset, len, .. }
        | FileOp::Write { offset, len, .. }
        | FileOp::PutChars { offset, len, .. }
        | FileOp::GetChars { offset, len, .. } => Some((offset, u64::from(len))),
        _ => None,
    }
}

proptest! {
    #[test]
    fn a_pass_covers_each_byte_once(
        action in 0_usize..5, durable in 0_usize..4, start in 0_u64..5000, size in 0_u64..20_000, call in 1_u32..4096,
    ) {
        let (action, durable) = (ACTIONS[action], DURABLE[durable]);
        let spec = pass(action, start, size, call, durable);
        let all = file_ops(spec);
        framed(&all, 0);
        let mut at = start;
        for (op, counted) in &all {
            prop_assert_eq!(*counted, piece(op).is_some() && !(action == PassAction::Rewrite && matches!(op, FileOp::Read { .. })));
            if let (Some((offset, len)), true) = (piece(op), counted) {
                prop_assert_eq!(offset, at);
                prop_assert!(len == u64::from(call) || offset + len == start + size);
                at += len;
            }
        }
        prop_assert_eq!(at, start + size);
        let counted = all.iter().filter(|(_, counted)| *counted).count() as u64;
        prop_assert_eq!(spec.expected().ops, Some(counted));
        prop_assert_eq!(spec.expected().bytes, Some(size));
        let syncs = all.iter().filter(|(op, _)| matches!(op, FileOp::Sync { .. })).count() as u64;
        let writes = !matches!(action, PassAction::Read | PassAction::GetChars);
        prop_assert_eq!(syncs, match durable {
            Durable::Never => 0,
            Durable::EveryWrite if writes => counted + 1,
            _ => 1,
        });
    }

    #[test]
    fn a_rewrite_writes_back_what_it_has_just_read(size in 1_u64..9000, call in 1_u32..2000) {
        let all = file_ops(pass(PassAction::Rewrite, 0, size, call, Durable::Never));
        let pieces: Vec<_> = all.iter().filter_map(|(op, counted)| Some((piece(op)?, *counted, *op))).collect();
        for pair in pieces.chunks(2) {
            prop_assert_eq!(pair[0].0, pair[1].0);
            let read = matches!(pair[0].2, FileOp::Read { .. }) && !pair[0].1;
            let written = matches!(pair[1].2, FileOp::Write { .. }) && pair[1].1;
            prop_assert!(read && written);
        }
    }

    #[test]
    fn a_copy_writes_what_it_has_just_read(size in 0_u64..9000, call in 1_u32..2000, durable in 0_usize..4) {
        let spec = WorkloadSpec::Copy(CopySpec {
            from: Handle::new(4, OpenMode::Read),
            to: Handle::new(7, OpenMode::Create),
            size: Bytes(size),
            call,
            durable: DURABLE[durable],
        });
        let all = file_ops(spec);
        framed(&all, 4);
        framed(&all, 7);
        let mut at = 0;
        let mut last = None;
        for (op, counted) in &all {
            match *op {
                FileOp::Read { file, offset, len } => {
                    prop_assert!(file == 4 && offset == at && !counted);
                    last = Some((offset, len));
                }
                FileOp::Write { file, offset, len } => {
                    prop_assert!(file == 7 && Some((offset, len)) == last && *counted);
                    at += u64::from(len);
                }
                _ => prop_assert!(!counted),
            }
        }
        prop_assert_eq!(at, size);
        prop_assert_eq!(spec.expected().bytes, Some(size));
    }
}

#[test]
fn a_process_never_has_two_calls_in_flight() {
    let spec = pass(PassAction::Rewrite, 0, 64 * 512, 512, Durable::EveryWrite);
    let (driven, model) = run(spec, 16, Span(10));
    assert_eq!(model.most, 1);
    assert_eq!(
        (driven.tallies[0].ops, driven.tallies[0].bytes),
        (64, 64 * 512)
    );
    // Open and close, 64 reads, writes and syncs, and the sync at the end.
    assert_eq!(driven.tallies[0].all_ops, 2 + 3 * 64 + 1);
    assert_eq!(driven.tallies[0].elapsed(), Span(10 * (2 + 3 * 64 + 1)));
}

fn scan(len: u64, window: Span, at_least: u64, wrap: bool) -> WorkloadSpec {
    WorkloadSpec::Scan(ScanSpec {
        handle: Handle::new(0, OpenMode::Read),
        region: Extent::new(4096, len),
        call: 1024,
        window,
        at_least,
        wrap,
    })
}

fn scanned(spec: WorkloadSpec) -> Vec<u64> {
    let (_, model) = run(spec, 1, Span::from_millis(10));
    let reads = model.log.into_iter().filter_map(|(_, op)| match op {
        Op::File(FileOp::Scan { offset, len, .. }) => {
            assert_eq!(len, 1024);
            Some(offset)
        }
        _ => None,
    });
    reads.collect()
}

#[test]
fn a_scan_ends_with_its_window() {
    // Reads begin at 0, 10, 20, 30 and 40 ms after the first.
    let offsets = scanned(scan(1 << 20, Span::from_millis(45), 1, false));
    assert_eq!(offsets, [4096, 5120, 6144, 7168, 8192]);
}

#[test]
fn a_scan_ends_with_its_region_unless_it_wraps() {
    let long = Span::from_millis(45);
    assert_eq!(scanned(scan(2048, long, 1, false)), [4096, 5120]);
    assert_eq!(
        scanned(scan(2048, long, 1, true)),
        [4096, 5120, 4096, 5120, 4096]
    );
    assert_eq!(scanned(scan(1023, long, 1, true)), [0_u64; 0]);
}

#[test]
fn a_scan_does_its_least_however_long_it_takes() {
    assert_eq!(scanned(scan(1 << 20, Span(1), 4, false)).len(), 4);
}
