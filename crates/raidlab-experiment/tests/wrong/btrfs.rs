//! Arrays of btrfs: their layouts, states and kernels.
use super::{known, parse};

const STATES_OF_BTRFS: &str = r#"
title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "bonnie"
[array]
engine = "btrfs"
state = "STATE"
[factors]
layout = ["LAYOUT"]
"#;

/// Three and four copies are of btrfs alone, since Linux 5.5, on as many members at least.
#[test]
fn copies_of_three_and_four_are_of_btrfs() {
    let of = |rest: &str| {
        let text = format!(
            "title = 't'\ndisks = {{ model = 'nearline-24tb', count = 6 }}\nprofile = 'bonnie'\n{rest}\n[factors]\nlayout = ['raid1c3', 'raid1c4']\n"
        );
        let read = parse(&text, "lab.toml", &known());
        read.map(|experiment| {
            let cell = |cell: &raidlab_experiment::Cell| {
                let array = &cell.setup.array;
                (
                    array.engine,
                    array.capacity_disks.clone(),
                    array.failed.clone(),
                )
            };
            experiment.cells.iter().map(cell).collect::<Vec<_>>()
        })
        .map_err(|report| report.to_string())
    };
    let engine = raidlab_experiment::setup::Engine::Btrfs;
    let all = of("").unwrap();
    assert_eq!(all[0], (engine, "2".to_owned(), vec![]));
    assert_eq!(all[1], (engine, "1.5".to_owned(), vec![]));
    let two = of("[array]\nstate = 'degraded 2'").unwrap();
    // Of six disks the first files are on the last three.
    assert_eq!(two[0].2, [3, 4]);
    for (rest, told) in [
        (
            "[array]\nengine = 'md'",
            "an array of btrfs, not of engine 'md'",
        ),
        (
            "[array]\nstate = 'degraded 3'",
            "raid1c3 does not survive 3",
        ),
        ("[array]\nmembers = 3", "raid1c4 needs at least 4 members"),
        ("[host]\nkernel = '5.4'", "has no raid1c3"),
        ("filesystem = 'xfs'", "btrfs is both"),
    ] {
        let said = of(rest).unwrap_err();
        assert!(said.contains(told), "{said}");
    }
}

/// Parity is there since Linux 3.9, and what metadata of `raid6` are kept as since 5.5.
#[test]
fn parity_of_btrfs_has_not_always_been_there() {
    let of = |layout: &str, kernel: &str| {
        let text = STATES_OF_BTRFS
            .replace("LAYOUT", layout)
            .replace("STATE", "clean");
        let text = format!("{text}[host]\nkernel = '{kernel}'\n");
        let read = parse(&text, "lab.toml", &known());
        read.map(|experiment| experiment.cells.len())
            .map_err(|report| report.to_string())
    };
    assert_eq!(of("raid5", "3.9"), Ok(1));
    assert_eq!(of("raid6", "5.5"), Ok(1));
    for (layout, kernel, told) in [
        ("raid5", "3.8", "kernel 3.8 has no raid5 of btrfs"),
        ("raid6", "5.4", "kernel 5.4 has no raid6 of btrfs"),
    ] {
        let said = of(layout, kernel).unwrap_err();
        assert!(said.contains(told), "{said}");
    }
}

/// Before 5.15 stripes are over two members, or two pairs.
#[test]
fn stripes_of_btrfs_over_one_member_have_not_always_been_there() {
    let of = |layout: &str, members: u32, kernel: &str| {
        let text = STATES_OF_BTRFS
            .replace("LAYOUT", layout)
            .replace("state = \"STATE\"", &format!("members = {members}"));
        let text = format!("{text}[host]\nkernel = '{kernel}'\n");
        let read = parse(&text, "lab.toml", &known());
        read.map(|experiment| experiment.cells.len())
            .map_err(|report| report.to_string())
    };
    for (layout, fewest, then) in [("raid0", 1, 2), ("raid10", 2, 4)] {
        assert_eq!(of(layout, fewest, "5.15"), Ok(1));
        assert_eq!(of(layout, then, "5.14"), Ok(1));
        let said = of(layout, fewest, "5.14").unwrap_err();
        let told = format!(
            "{layout} of btrfs has at least {then} members with kernel 5.14, and was given {fewest}"
        );
        assert!(said.contains(&told), "{said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
}

/// `raidlab layout` calls them so.
#[test]
fn arrays_of_btrfs_are_named_by_layout_and_engine() {
    for (text, layout) in [("btrfs-single", "linear"), ("BTRFS-raid1c3", "raid1c3")] {
        let text = format!(
            "title = 't'\ndisks = {{ model = 'nearline-24tb', count = 4 }}\nprofile = 'bonnie'\n[array]\nlayout = '{text}'\n"
        );
        let said = parse(&text, "lab.toml", &known()).unwrap_err().to_string();
        let wanted = format!("write '{layout}', and engine = \"btrfs\" beside it");
        assert!(said.contains(&wanted), "{said}");
    }
}

/// One of two copies may be missing, of however many members, or be replaced; nothing of it is synced.
#[test]
fn btrfs_is_clean_or_lacks_one_member() {
    let of = |layout: &str, state: &str| {
        let text = STATES_OF_BTRFS
            .replace("LAYOUT", layout)
            .replace("STATE", state);
        let read = parse(&text, "lab.toml", &known());
        let failed = |cell: &raidlab_experiment::Cell| cell.setup.array.failed.clone();
        read.map(|experiment| failed(&experiment.cells[0]))
            .map_err(|report| report.to_string())
    };
    // Of a mirror of four the first files are on the last two.
    for (layout, first) in [("raid1", 2), ("raid10", 0)] {
        assert_eq!(of(layout, "degraded"), Ok(vec![first]));
        let told = of(layout, "degraded 2").unwrap_err();
        assert!(told.contains("does not survive 2 failed members"), "{told}");
        assert_eq!(of(layout, "rebuilding"), Ok(vec![first]));
        let told = of(layout, "resyncing").unwrap_err();
        assert!(told.contains("nothing to sync"), "{told}");
    }
    let told = of("raid0", "degraded").unwrap_err();
    assert!(told.contains("does not survive"), "{told}");
    for (layout, survives) in [("raid5", 1), ("raid6", 2)] {
        assert_eq!(of(layout, "degraded"), Ok(vec![0]));
        let told = of(layout, &format!("degraded {}", survives + 1)).unwrap_err();
        assert!(told.contains("does not survive"), "{told}");
        assert_eq!(of(layout, "rebuilding"), Ok(vec![0]));
        let told = of(layout, "resyncing").unwrap_err();
        assert!(told.contains("nothing to sync"), "{told}");
    }
    let told = of("raid6", "rebuilding 2").unwrap_err();
    assert!(
        told.contains("fills two lost members of raid6 of btrfs wrongly"),
        "{told}"
    );
    // Three members are enough for two parities there, and one for none.
    let of = |layout: &str, members: usize| {
        let text = format!(
            "title = 't'\ndisks = {{ model = 'nearline-24tb', count = {members} }}\nprofile = 'bonnie'\n[array]\nengine = 'btrfs'\nlayout = '{layout}'\n"
        );
        let read = parse(&text, "lab.toml", &known());
        read.map(|experiment| experiment.cells[0].setup.array.capacity_disks.clone())
            .map_err(|report| report.to_string())
    };
    assert_eq!(of("raid6", 3), Ok("1".to_owned()));
    assert_eq!(of("raid5", 2), Ok("1".to_owned()));
    for (layout, members, least) in [("raid6", 2, 3), ("raid5", 1, 2)] {
        let told = of(layout, members).unwrap_err();
        let wanted = format!("{layout} needs at least {least} members");
        assert!(told.contains(&wanted), "{told}");
    }
    // Any of all members may be named.
    let text = STATES_OF_BTRFS
        .replace("LAYOUT", "raid1")
        .replace("state = \"STATE\"", "failed = [3]");
    let read = parse(&text, "lab.toml", &known()).unwrap();
    assert_eq!(read.cells[0].setup.array.failed, [3]);
}

/// Members of btrfs are replaced with what is in use on them, since Linux 3.8, and where that takes parity since 4.3.
#[test]
fn a_rebuilding_array_of_btrfs_has_files() {
    let with = |layout: &str, allocated: &str, host: &str| {
        let text = STATES_OF_BTRFS.replace("LAYOUT", layout).replace(
            "state = \"STATE\"",
            &format!("state = \"rebuilding\"\nallocated = \"{allocated}\""),
        );
        parse(&format!("{text}\n{host}"), "lab.toml", &known())
            .map(|experiment| experiment.cells[0].setup.array.allocated)
            .map_err(|report| report.to_string())
    };
    let of = |allocated: &str, host: &str| with("raid1", allocated, host);
    assert_eq!(
        of("32GiB", ""),
        Ok(Some(raidlab_core::units::Bytes::gib(32)))
    );
    let told = of("32GiB", "[host]\nkernel = \"3.7\"").unwrap_err();
    assert!(told.contains("since Linux 3.8"), "{told}");
    let told = with("raid5", "32GiB", "[host]\nkernel = \"4.2\"").unwrap_err();
    assert!(told.contains("since Linux 4.3"), "{told}");
    let told = of("900TiB", "").unwrap_err();
    assert!(
        told.contains("is more than the array has room for"),
        "{told}"
    );
}
