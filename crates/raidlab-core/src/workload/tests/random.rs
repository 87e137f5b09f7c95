//! Random calls: seekers and random reads and writes.
use super::*;
use crate::workload::spec::{CallAction, CallsSpec};

fn calls(action: CallAction, size: u64, call: u32, count: u64) -> CallsSpec {
    CallsSpec {
        handle: handle(),
        action,
        size: Bytes(size),
        call,
        count,
        at_least: Span::ZERO,
        at_most: 0,
        durable: Durable::AtEnd,
    }
}

proptest! {
    #[test]
    fn calls_stay_inside_and_come_to_their_number(
        size in 1_u64..1 << 40, call in 1_u32..100_000, count in 0_u64..300, kind in 0_usize..3,
    ) {
        prop_assume!(size >= u64::from(call));
        let action = [CallAction::Read, CallAction::Write, CallAction::Seek { rewrite_one_in: 3 }][kind];
        let spec = WorkloadSpec::Calls(calls(action, size, call, count));
        let all = file_ops(spec);
        framed(&all, 0);
        for (op, _) in &all {
            if let FileOp::Read { offset, len, .. } | FileOp::Write { offset, len, .. } = *op {
                prop_assert!(offset.is_multiple_of(u64::from(call)) && len == call);
                prop_assert!(offset + u64::from(len) <= size);
            }
        }
        prop_assert_eq!(all.iter().filter(|(_, counted)| *counted).count() as u64, count);
        prop_assert_eq!(spec.expected().ops, Some(count));
    }
}

#[test]
fn a_tenth_of_the_seeks_is_written_back_and_only_the_seek_counts() {
    let seek = CallAction::Seek { rewrite_one_in: 10 };
    let all = file_ops(WorkloadSpec::Calls(calls(seek, 1 << 30, 8192, 10_000)));
    let mut rewrites = 0;
    for pair in all.windows(2) {
        if let (FileOp::Write { offset, .. }, counted) = pair[1] {
            assert!(!counted);
            assert!(matches!(pair[0], (FileOp::Read { offset: read, .. }, true) if read == offset));
            rewrites += 1;
        }
    }
    // 10 000 draws of one in ten: mean 1000, standard deviation 30.
    assert!((880..1120).contains(&rewrites), "{rewrites}");
    let none = CallAction::Seek { rewrite_one_in: 0 };
    let all = file_ops(WorkloadSpec::Calls(calls(none, 1 << 30, 8192, 1000)));
    assert!(!all.iter().any(|(op, _)| matches!(op, FileOp::Write { .. })));
}

#[test]
fn seeking_goes_on_for_its_least_time_and_no_longer_than_its_most_calls() {
    let seeks = |at_least, at_most| {
        let spec = CallsSpec {
            at_least,
            at_most,
            ..calls(CallAction::Read, 1 << 20, 512, 10)
        };
        let (driven, _) = run(WorkloadSpec::Calls(spec), 1, Span::from_millis(1));
        driven.tallies[0].ops
    };
    assert_eq!(seeks(Span::ZERO, 0), 10);
    assert_eq!(seeks(Span::from_millis(5), 1000), 10);
    assert_eq!(seeks(Span::from_millis(100), 1000), 100);
    assert_eq!(seeks(Span::from_millis(100), 40), 40);
}

#[test]
fn a_file_smaller_than_a_call_is_not_read() {
    let all = file_ops(WorkloadSpec::Calls(calls(CallAction::Read, 511, 512, 10)));
    assert!(!all.iter().any(|(op, _)| matches!(op, FileOp::Read { .. })));
}
