//! What ZFS says of its pools, as it says it.
use super::*;

const INTACT: &str = "  pool: tank\n state: ONLINE\n  scan: scrub repaired 0B in 00:00:03 with 0 errors on Sun Nov 22 10:00:00 2026\n\
config:\n\n\tNAME          STATE     READ WRITE CKSUM\n\ttank          ONLINE       0     0     0\n\t  raidz1-0    ONLINE       0     \
0     0\n\t    nbd0p1    ONLINE       0     0     0\n\t    nbd1p1    ONLINE       0     0     0\n\nerrors: No known data errors\n";

#[test]
fn a_pool_that_is_intact_is_told_so() {
    let status = Status::parse(INTACT);
    assert!(status.scan.starts_with("scrub repaired 0B"));
    assert_eq!(status.devices.len(), 4, "{:?}", status.devices);
    assert_eq!(status.found(), None);
}

#[test]
fn errors_of_a_device_are_told_although_they_were_mended() {
    let text = INTACT
        .replace(
            "nbd1p1    ONLINE       0     0     0",
            "nbd1p1    ONLINE       0     0    12  (repairing)",
        )
        .replace("repaired 0B", "repaired 1536000");
    let found = Status::parse(&text).found().expect("found");
    assert!(!found.may_be_benign);
    assert!(
        found.what.contains("nbd1p1 12 checksum errors"),
        "{}",
        found.what
    );
}

#[test]
fn what_could_not_be_mended_is_told() {
    let text = INTACT
        .replace("with 0 errors", "with 3 errors")
        .replace("No known data errors", "1 data errors, use '-v' for a list");
    let found = Status::parse(&text).found().expect("found");
    assert!(found.what.contains("1 data errors"), "{}", found.what);
}

#[test]
fn a_scrub_under_way_tells_how_far_it_is() {
    let text = "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Sun Nov 22 10:00:00 2026\n\t1288490188 / 2147483648 \
scanned, 715827882 / 2147483648 issued at 104857600/s\n\t0 repaired, 33.33% done, 00:00:13 to go\nconfig:\n\n\tNAME  STATE  READ \
WRITE CKSUM\n\ttank  ONLINE  0  0  0\n\nerrors: No known data errors\n";
    let status = Status::parse(text);
    assert!(status.scan.starts_with("scrub in progress"));
    assert_eq!(status.done, Some(3333));
    assert_eq!(status.amounts, ["1288490188", "715827882"]);
    let old = text.replace(
        "1288490188 / 2147483648 scanned, 715827882 / 2147483648 issued at 104857600/s",
        "1.20G scanned at 3M/s, 0B issued at 0B/s, 2G total",
    );
    assert_eq!(Status::parse(&old).amounts, ["1.20G", "0B", "2G"]);
}

/// As `zpool status -p` of ZFS 2.1 prints it: amounts to three digits.
const RESILVER: &str = "  pool: tank\n state: DEGRADED\nstatus: One or more devices is currently being resilvered.  The pool will\n\t\
continue to function, possibly in a degraded state.\naction: Wait for the resilver to complete.\n  scan: resilver in progress since Mon Nov \
30 02:00:00 2026\n\t802M scanned at 200M/s, 401M issued at 100M/s, 802M total\n\t398M resilvered, 50.02% done, 00:00:04 to \
go\nconfig:\n\n\tNAME             STATE     READ WRITE CKSUM\n\ttank             DEGRADED     0     0     0\n\t  raidz2-0       \
DEGRADED     0     0     0\n\t    replacing-0  DEGRADED     0     0     0\n\t      old        OFFLINE      0     0     0\n\t      \
nbd0p1     ONLINE       0     0     0  (resilvering)\n\t    replacing-1  DEGRADED     0     0     0\n\t      old        OFFLINE      \
0     0     0\n\t      nbd1p1     ONLINE       0     0     0  (awaiting resilver)\n\t    nbd2p1       ONLINE       0     0     \
0\n\nerrors: No known data errors\n";

#[test]
fn a_resilver_under_way_tells_how_far_it_is_and_who_waits() {
    let status = Status::parse(RESILVER);
    assert_eq!(status.state, "DEGRADED");
    assert!(status.resilvers() && status.deferred && !status.is_whole());
    assert_eq!(status.done, Some(5002));
    assert_eq!(status.resilvered, Some(398 << 20));
    assert_eq!(status.amounts, ["802M", "401M", "802M"]);
    let both = RESILVER.replace("(awaiting resilver)", "(resilvering)");
    assert!(!Status::parse(&both).deferred);
}

/// The old member goes a moment after the resilver has ended.
#[test]
fn a_pool_is_whole_when_its_resilver_has_ended_and_nothing_is_missing() {
    let ended = "resilvered 1.20G in 00:00:08 with 0 errors on Mon Nov 30 02:00:08 2026";
    let text = INTACT.replace(
        "scrub repaired 0B in 00:00:03 with 0 errors on Sun Nov 22 10:00:00 2026",
        ended,
    );
    let status = Status::parse(&text);
    assert_eq!(status.scan, ended);
    assert!(status.is_whole());
    assert_eq!(status.resilvered, Some(1_288_490_188));
    let still = text.replace("state: ONLINE", "state: DEGRADED");
    assert!(!Status::parse(&still).is_whole());
}

#[test]
fn amounts_are_in_powers_of_1024_and_bytes_without_a_letter() {
    for (text, bytes) in [
        ("0B", Some(0)),
        ("512B", Some(512)),
        ("12.5K", Some(12_800)),
        ("801M", Some(801 << 20)),
        ("2T", Some(2 << 40)),
        ("1288490188", Some(1_288_490_188)),
        ("M", None),
        ("", None),
        ("-1M", None),
        ("nanM", None),
        ("x", None),
    ] {
        assert_eq!(amount(text), bytes, "{text}");
    }
}
