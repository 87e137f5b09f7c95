use super::*;

fn pool(text: &str, members: usize) -> Pool {
    let spec: PoolSpec = text.parse().unwrap();
    spec.build(&vec![Bytes::gib(1); members], 12).unwrap()
}

#[test]
fn a_text_is_read_and_told_again() {
    for (text, told) in [
        ("zfs-mirror", "zfs-mirror"),
        ("raidz", "raidz1"),
        ("RAIDZ3", "raidz3"),
        ("zfs-mirror 2x2", "zfs-mirror 2x2"),
        ("ZFS-stripe", "zfs-stripe"),
        (" raidz2  2 x 6", "raidz2 2x6"),
    ] {
        assert_eq!(text.parse::<PoolSpec>().unwrap().to_string(), told);
    }
    for text in [
        "mirror",
        "raidz4",
        "zfs",
        "raidz1 2",
        "zfs-mirror two",
        "zfs-stripe 2x2",
    ] {
        assert!(text.parse::<PoolSpec>().is_err(), "{text}");
    }
}

#[test]
fn striped_mirrors_survive_one_of_each() {
    let pool = pool("zfs-mirror 2x2", 4);
    let of = |members: &[usize]| {
        let failed: MemberSet = members.iter().copied().map(Member::new).collect();
        pool.survives(failed)
    };
    assert_eq!(of(&[]), Survival::Intact);
    assert_eq!(of(&[0, 3]), Survival::Degraded);
    assert_eq!(of(&[2, 3]), Survival::Lost);
    assert_eq!(pool.guaranteed(), 1);
    // Of six pairs, the two that are a mirror are fatal.
    assert_eq!(pool.second_failures(), Some(4.0 / 6.0));
    assert_eq!(pool.capacity(), Bytes::gib(2));
}

/// All patterns of failures, one by one.
#[test]
fn the_patterns_that_are_survived_are_counted() {
    for (text, members) in [
        ("zfs-stripe", 3),
        ("zfs-mirror 2x2", 4),
        ("zfs-mirror 2x3", 6),
        ("raidz1 3x3", 9),
        ("raidz2 2x4", 8),
        ("raidz3", 6),
    ] {
        let pool = pool(text, members);
        let mut survived = vec![0_u128; members + 1];
        for bits in 0..1_u32 << members {
            let failed = (0..members).filter(|member| bits >> member & 1 == 1);
            if pool.survives(failed.map(Member::new).collect()) != Survival::Lost {
                survived[bits.count_ones() as usize] += 1;
            }
        }
        let tolerance = pool.tolerance();
        assert_eq!(tolerance.members(), members);
        let counted: Vec<u128> = (0..=members).map(|k| tolerance.survived(k)).collect();
        assert_eq!(counted, survived, "{text}");
        assert_eq!(tolerance.guaranteed(), pool.guaranteed(), "{text}");
    }
}

#[test]
fn a_stripe_uses_all_of_each_disk_and_survives_nothing() {
    let spec: PoolSpec = "zfs-stripe".parse().unwrap();
    let sizes = [Bytes::gib(1), Bytes::gib(3), Bytes::gib(2)];
    let pool = spec.build(&sizes, 12).unwrap();
    assert_eq!(
        pool.vdevs().map(Vdev::children).collect::<Vec<_>>(),
        [1, 1, 1]
    );
    assert!(pool.vdevs().map(Vdev::of_child).eq(sizes));
    assert_eq!(pool.capacity(), Bytes::gib(6));
    assert_eq!((pool.guaranteed(), pool.second_failures()), (0, None));
    assert_eq!(
        pool.survives(MemberSet::one(Member::new(1))),
        Survival::Lost
    );
    // One disk alone is a pool, too; none is not.
    assert!(spec.build(&sizes[..1], 12).is_ok());
    assert!(spec.build(&[], 12).is_err());
    let told = spec
        .build(&[Bytes::gib(1), Bytes::mib(63)], 12)
        .unwrap_err();
    assert!(told.to_string().contains("member 1 has 63 MiB"), "{told}");
}

#[test]
fn a_shape_fixes_the_number_of_members() {
    let of = |text: &str| text.parse::<PoolSpec>().unwrap().shape_members();
    assert_eq!(of("raidz2 2x6"), Some(12));
    assert_eq!(of("raidz2"), None);
}

#[test]
fn room_is_what_slop_and_pointers_leave_of_whole_metaslabs() {
    // Of 1019.5 MiB fifteen metaslabs of 64 MiB; a record of 128 KiB has two copies of a 1024th of a block of pointers.
    let whole = Bytes::mib(15 * 64).0;
    let left = whole - whole / 32;
    let pool = pool("zfs-mirror", 2);
    assert_eq!(pool.room(Bytes::kib(128), true), Bytes(left * 512 / 513));
    // Of small records the pointers are a larger part.
    assert_eq!(pool.room(Bytes::kib(4), true), Bytes(left * 16 / 17));
}

#[test]
fn parities_and_filling_are_taken_off() {
    assert_eq!(pool("raidz1", 5).capacity(), Bytes::gib(4));
    // 32 units of data take 44.
    let four = pool("raidz1", 4).capacity().0 as f64 / Bytes::gib(1).0 as f64;
    assert!((four - 4.0 * 32.0 / 44.0).abs() < 1e-6, "{four}");
    assert_eq!(pool("raidz2", 6).second_failures(), Some(1.0));
    assert_eq!(pool("raidz1", 4).second_failures(), Some(0.0));
    assert_eq!(pool("raidz3 2x4", 8).guaranteed(), 3);
    assert_eq!(pool("raidz3 2x4", 8).vdevs().count(), 2);
    for vdev in [pool("raidz2", 5), pool("zfs-mirror", 2)] {
        assert!(vdev.vdevs().all(|vdev| vdev.of_child() == Bytes::gib(1)));
    }
}

#[test]
fn another_number_of_members_is_refused() {
    let spec: PoolSpec = "zfs-mirror 2x2".parse().unwrap();
    let told = spec.build(&[Bytes::gib(1); 3], 12).unwrap_err().to_string();
    assert!(
        told.contains("2x2 has 4 members and 3 were given"),
        "{told}"
    );
    let spec: PoolSpec = "raidz1".parse().unwrap();
    assert!(spec.build(&[], 12).is_err());
}

#[test]
fn a_small_member_is_told_with_its_number_in_the_pool() {
    let spec: PoolSpec = "zfs-mirror 2x2".parse().unwrap();
    let (gib, small) = (Bytes::gib(1), Bytes::mib(63));
    let told = spec.build(&[gib, gib, gib, small], 12).unwrap_err();
    assert!(told.to_string().contains("member 3 has 63 MiB"), "{told}");
}
