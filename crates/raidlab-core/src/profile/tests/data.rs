//! What becomes of data: whose files are removed, what is made durable, what a cache can hold.
use super::*;

#[test]
fn a_file_that_is_written_anew_is_removed_before_and_the_users_own_never() {
    let plan = profile("bonnie", &[]).plan(&directory()).unwrap();
    for phase in &plan.phases {
        let creates = ["putc", "block-write"].contains(&phase.id.as_str());
        assert_eq!(
            phase.fresh.as_slice(),
            if creates { &[0][..] } else { &[] },
            "{}",
            phase.id
        );
    }
    let file = ProfileContext {
        place: Place::File {
            size: Bytes::gib(2),
        },
        ..directory()
    };
    for name in ["dd", "random", "sequential", "hdparm"] {
        for phase in profile(name, &[]).plan(&file).unwrap().phases {
            assert!(phase.fresh.is_empty(), "{name}");
            let mut first = phase.jobs[0].workload.build(phase.stream(0, 0));
            let opened = crate::workload::Workload::next(&mut first, crate::time::Instant(0));
            let crate::workload::Next::Issue { op, .. } = opened else {
                panic!("{opened:?}")
            };
            if let Op::File(FileOp::Open { mode, .. }) = op {
                assert_ne!(mode, crate::op::OpenMode::Create, "{name} {}", phase.id);
            }
        }
    }
}

#[test]
fn writes_without_a_sync_are_flagged_and_not_looked_for_below() {
    let cases = [
        ("dd", ("conv", "none")),
        ("hdbench", ("sync", "no")),
        ("random", ("end-fsync", "no")),
    ];
    for (name, setting) in cases {
        let buffered = profile(name, &[setting, ("direct", "no")]);
        let plan = buffered.plan(&directory()).unwrap();
        assert!(
            plan.flags.iter().any(|f| f.kind == FlagKind::Unflushed),
            "{name}"
        );
        let looks = |p: &Phase| matches!(p.evidence, Evidence::WritesReachDevice | Evidence::Both);
        assert!(!plan.phases.iter().any(looks), "{name}");
        let direct = profile(name, &[setting, ("direct", "yes")]);
        let plan = direct.plan(&directory()).unwrap();
        assert!(
            !plan.flags.iter().any(|f| f.kind == FlagKind::Unflushed),
            "{name}"
        );
        assert!(plan.phases.iter().any(looks), "{name}");
    }
}

#[test]
fn a_set_that_memory_can_hold_is_flagged() {
    let flags = |size| {
        let plan = profile("bonnie", &[("size", size)])
            .plan(&directory())
            .unwrap();
        plan.flags.iter().map(|flag| flag.kind).collect::<Vec<_>>()
    };
    assert_eq!(flags("512MiB"), [FlagKind::FitsInMemory]);
    assert_eq!(flags("2GiB"), []);
}

#[test]
fn direct_calls_do_not_go_through_the_cache() {
    // (profile, what it is told so that its data fits in the memory)
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("bonnie", &[("size", "512MiB")]),
        ("tiobench", &[("size", "512MiB")]),
        ("hdbench", &[("sizes", "512MiB")]),
        ("dd", &[("count", "512")]),
        ("random", &[("size", "512MiB")]),
        ("sequential", &[("size", "512MiB")]),
    ];
    for (name, settings) in cases {
        let fits = |direct| {
            let mut settings = settings.to_vec();
            settings.push(("direct", direct));
            let plan = profile(name, &settings).plan(&directory()).unwrap();
            plan.flags
                .iter()
                .any(|flag| flag.kind == FlagKind::FitsInMemory)
        };
        assert!(fits("no"), "{name}");
        assert!(!fits("yes"), "{name}");
    }
}
