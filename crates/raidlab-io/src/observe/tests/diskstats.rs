use proptest::prelude::*;

use super::*;

const REAL: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 30438 5957 2577754 5142 22039 7151 2088184 2475 3 2832 8177 8997 26 859136 521 3472 37
";

#[test]
fn reads_every_field_of_a_current_kernel() {
    let devices = parse(REAL).unwrap();
    let vda = &devices["vda"];
    assert_eq!(
        vda.number,
        DeviceNumber {
            major: 254,
            minor: 0
        }
    );
    assert_eq!(vda.read.completed, 30438);
    assert_eq!(vda.read.bytes(), 2_577_754 * 512);
    assert_eq!(vda.write.merged, 7151);
    assert_eq!(vda.write.sectors, 2_088_184);
    assert_eq!(vda.in_flight, Some(3));
    assert_eq!((vda.busy_ms, vda.weighted_ms), (2832, 8177));
    assert_eq!(vda.discard.unwrap().sectors, 859_136);
    assert_eq!(vda.flush, Some((3472, 37)));
}

#[test]
fn reads_kernels_without_discard_and_flush() {
    let devices =
        parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 3 4 5 6 7 8 0 10 11 12 13 14 15\n")
            .unwrap();
    assert_eq!(devices["sda"].discard, None);
    assert_eq!(devices["sda1"].discard.unwrap().time_ms, 15);
    assert_eq!(devices["sda1"].flush, None);
}

#[test]
fn a_counter_below_zero_in_flight_is_unknown() {
    let devices = parse("9 0 md0 1 2 3 4 5 6 7 8 4294967295 10 11\n").unwrap();
    assert_eq!(devices["md0"].in_flight, None);
}

#[test]
fn names_line_and_fault_of_malformed_text() {
    let problem = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        problem("8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 x 4 5 6 7 8 9 10 11\n"),
        "/proc/diskstats: line 2: device sda1: `x` is not a counter"
    );
    assert_eq!(
        problem("8 0 sda 1 2 3\n"),
        "/proc/diskstats: line 1: device sda has 3 counters, at least 11 are expected"
    );
    assert_eq!(
        problem("8 0\n"),
        "/proc/diskstats: line 1: `8 0` has no device name"
    );
    assert!(problem("-8 0 sda 1 2 3 4 5 6 7 8 9 10 11").contains("`-8:0` is not MAJOR:MINOR"));
}

fn at(text: &str) -> DeviceCounters {
    parse(text).unwrap().remove("sda").unwrap()
}

#[test]
fn ms_counters_wrap_at_32_bits_on_every_kernel() {
    let before = at("8 0 sda 10 0 80 4294967290 5 0 40 0 0 4294967295 4294967000");
    let after = at("8 0 sda 12 0 96 4 5 0 40 0 1 9 704");
    let delta = after.since(&before, CounterWidth::Bits64).unwrap();
    assert_eq!(
        delta.read,
        RequestCounters {
            completed: 2,
            merged: 0,
            sectors: 16,
            time_ms: 10
        }
    );
    assert_eq!(delta.busy, Duration::from_millis(10));
    assert_eq!(delta.weighted, Duration::from_millis(1000));
    assert_eq!(delta.bytes(), 16 * 512);
    assert_eq!(delta.requests(), 2);
}

#[test]
fn a_smaller_count_is_a_wrap_on_32_bits_and_a_new_device_on_64() {
    let before = at("8 0 sda 10 0 4294967288 0 5 0 40 0 0 0 0");
    let after = at("8 0 sda 12 0 8 0 5 0 40 0 0 0 0");
    let delta = after.since(&before, CounterWidth::Bits32).unwrap();
    assert_eq!(delta.read.sectors, 16);
    assert_eq!(after.since(&before, CounterWidth::Bits64), None);
}

#[test]
fn another_device_of_the_same_name_has_no_difference() {
    let before = at("8 0 sda 1 0 8 0 5 0 40 0 0 0 0");
    let after = at("8 16 sda 12 0 80 0 5 0 40 0 0 0 0");
    assert_eq!(after.since(&before, CounterWidth::Bits64), None);
}

#[test]
fn a_sum_over_a_missing_device_is_unknown() {
    let taken = Instant::now();
    let before = Snapshot {
        taken,
        devices: parse(REAL).unwrap(),
    };
    let mut after = Snapshot {
        taken: taken + Duration::from_secs(2),
        devices: parse(REAL).unwrap(),
    };
    let vda = after.devices.get_mut("vda").unwrap();
    vda.read.sectors += 100;
    vda.busy_ms += 1000;
    vda.weighted_ms += 8000;
    after.devices.remove("loop0");
    let delta = after.since(&before);
    assert_eq!(delta.sum(["vda"]), Some((51_200, 0)));
    assert_eq!(delta.sum(["vda", "loop0"]), None);
    assert_eq!(delta.missing(["vda", "loop0"]), ["loop0"]);
    assert_eq!(delta.busy_fraction("vda"), Some(0.5));
    assert_eq!(delta.mean_depth("vda"), Some(4.0));
}

#[test]
fn the_running_kernel_is_understood() {
    let roots = Roots::system();
    let first = Snapshot::take(&roots).unwrap();
    let second = Snapshot::take(&roots).unwrap();
    assert_eq!(second.since(&first).devices.len(), first.devices.len());
}

proptest! {
    #[test]
    fn never_panics(text in "[0-9a-z \n:-]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn huge_counters_do_not_overflow(values in proptest::collection::vec(any::<u64>(), 22)) {
        let line = |values: &[u64]| {
            format!("8 0 sda {}", values.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
        };
        let before = at(&line(&values[..11]));
        let after = at(&line(&values[11..]));
        for width in [CounterWidth::Bits32, CounterWidth::Bits64] {
            if let Some(delta) = after.since(&before, width) {
                prop_assert!(delta.bytes() >= delta.read.bytes());
                prop_assert!(delta.requests() >= delta.write.completed);
            }
        }
    }
}
