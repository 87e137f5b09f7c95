//! What an initial sync leaves behind.
use super::*;

/// Rows of the stripe caches of an array of four disks of 250 GB.
fn rows(array: &str, kernel: &str) -> Vec<u32> {
    let text = format!(
        "title = \"t\"\ndisks = {{ model = \"ST3250624AS\", count = 8 }}\n[profile]\nname = \"sequential\"\n\
         [array]\nchunk = \"64KiB\"\n{array}\n[host]\nkernel = \"{kernel}\"\n"
    );
    let experiment = experiment(&text);
    let machine = machine(&experiment, &experiment.cells[0]);
    let array = machine.host().device().array().expect("an array");
    array.stripe_caches().map(|(rows, _)| rows).collect()
}

/// A guest of 6.1 whose disks took requests of 672 KiB, as AHCI takes pages, had 571 to 589 and 552 to 570 rows after it
/// (`/proc/slabinfo`, slabs of 19); with requests of 1280 KiB it had 457 to 475 of both.
#[test]
fn stripe_caches_have_grown_in_the_initial_sync() {
    let synced = |level: &str| {
        format!("layout = \"{level}\"\nmembers = 4\nmember-size = \"256MiB\"\ninitial-sync = true")
    };
    for (level, measured) in [("raid5", 580), ("raid6", 561)] {
        let rows = rows(&synced(level), "6.1")[0];
        let off = (f64::from(rows) / f64::from(measured) - 1.0).abs();
        assert!(off < 0.1, "{level}: {rows} of {measured} rows");
    }
    // They do not grow.
    assert_eq!(rows(&synced("raid5"), "4.0"), [256]);
    // With a bitmap it is the same sync.
    let noted = format!("{}\nbitmap = \"internal\"", synced("raid6"));
    assert_eq!(rows(&noted, "6.1"), rows(&synced("raid6"), "6.1"));
}

#[test]
fn without_a_sync_or_with_a_size_that_is_set_they_have_not() {
    let array = "layout = \"raid5\"\nmembers = 4\nmember-size = \"256MiB\"";
    assert_eq!(rows(array, "6.1"), [256]);
    // Set after the sync, it makes md drop what is above.
    let set = format!("{array}\ninitial-sync = true\nstripe-cache = 300");
    assert_eq!(rows(&set, "6.1"), [300]);
}

#[test]
fn a_sync_of_large_members_ends_where_the_caches_do() {
    let array = "layout = \"raid50 2x4\"\ninitial-sync = true";
    assert_eq!(rows(array, "6.1"), [1024, 1024]);
    // The state comes after the sync.
    let array = "layout = \"raid6\"\nmembers = 4\nstate = \"degraded 2\"\ninitial-sync = true";
    assert_eq!(rows(array, "6.1"), [1024]);
}
