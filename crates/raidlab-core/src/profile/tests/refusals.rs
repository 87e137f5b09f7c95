//! What a user is told when something cannot be done.
use super::*;

fn refused(name: &str, settings: &[(&str, &str)], context: &ProfileContext) -> String {
    let mut profile = Profile::named(name).unwrap();
    for (setting, value) in settings {
        if let Err(error) = profile.set(setting, value) {
            return error.to_string();
        }
    }
    profile.plan(context).unwrap_err().to_string()
}

#[test]
fn unknown_names_offer_the_nearest() {
    insta::assert_snapshot!(Profile::named("bonny").unwrap_err());
    insta::assert_snapshot!(Profile::named("crystaldiskmark").unwrap_err());
    insta::assert_snapshot!(refused("hdparm", &[("cached-tim", "1s")], &directory()));
}

#[test]
fn values_are_refused_with_the_remedy() {
    let cases: [(&str, &[(&str, &str)]); 19] = [
        ("bonnie", &[("chunk", "64K")]),
        ("bonnie", &[("chunk", "0")]),
        ("bonnie", &[("size", "4KiB")]),
        ("bonnie", &[("seekers", "0")]),
        ("bonnie", &[("seeks", "3")]),
        ("bonnie", &[("fast", "perhaps")]),
        ("bonnie", &[("file-size-min", "9")]),
        ("bonnie", &[("characters-size", "0")]),
        ("bonnie", &[("chunk", "512"), ("direct", "yes")]),
        ("tiobench", &[("threads", "2000")]),
        ("tiobench", &[("size", "8KiB")]),
        ("hdbench", &[("sizes", "1GB,1GB")]),
        ("hdparm", &[("read-time", "0")]),
        ("dd", &[("count", "0")]),
        ("dd", &[("conv", "sync")]),
        ("random", &[("read-percent", "101")]),
        ("random", &[("rate", "2"), ("jobs", "4")]),
        ("random", &[("time", "10")]),
        ("random", &[("ramp", "30s")]),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(name, settings)| refused(name, settings, &directory()))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn places_are_refused_with_the_remedy() {
    let full = ProfileContext {
        place: Place::Directory {
            free: Bytes::mib(10),
        },
        ..directory()
    };
    let read_only = ProfileContext {
        writable: false,
        ..directory()
    };
    let tiny = ProfileContext {
        place: Place::File { size: Bytes(100) },
        ..directory()
    };
    let told = [
        refused("bonnie", &[], &device(true)),
        refused("bonnie", &[], &full),
        refused("bonnie", &[], &read_only),
        refused("tiobench", &[], &device(true)),
        refused("hdbench", &[], &read_only),
        refused("hdparm", &[], &tiny),
        refused("hdparm", &[], &read_only),
        refused("dd", &[], &tiny),
        refused("dd", &[], &read_only),
        refused("random", &[], &tiny),
        refused("random", &[("read-percent", "0")], &device(false)),
        refused("random", &[("offset", "8GiB")], &device(true)),
        refused("random", &[("offset", "100")], &device(true)),
        refused("sequential", &[("size", "9GiB")], &device(true)),
    ];
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn space_that_the_small_files_need_is_told_with_their_number() {
    let ten = ProfileContext {
        place: Place::Directory {
            free: Bytes::mib(10),
        },
        ..directory()
    };
    let told = |files| refused("bonnie", &[("size", "64MiB"), ("files", files)], &ten);
    assert!(
        told("0").ends_with("choose a smaller 'size'"),
        "{}",
        told("0")
    );
    assert!(
        told("128").ends_with("choose a smaller 'files'"),
        "{}",
        told("128")
    );
}
