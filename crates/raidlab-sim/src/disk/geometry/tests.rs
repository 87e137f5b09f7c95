use super::*;
use proptest::prelude::*;

fn zone() -> impl Strategy<Value = ZoneSpec> {
    let sizes = (1_u32..40, 20_u32..200, 0_u32..30, 0_u32..30);
    let spares = (
        0_u32..5,
        0_u32..9,
        0_u32..15,
        prop::collection::vec(20_u32..400, 0..6),
    );
    (sizes, spares).prop_map(
        |((cylinders, sectors, track, cylinder), (per_track, per_cylinder, unused, slipped))| {
            let mut slipped = slipped;
            slipped.sort_unstable();
            slipped.dedup();
            ZoneSpec {
                cylinders: cylinders + 8,
                sectors_per_track: sectors,
                track_skew: track,
                cylinder_skew: cylinder,
                spare_per_track: per_track,
                spare_per_cylinder: per_cylinder,
                unused,
                first_lba: None,
                slipped,
            }
        },
    )
}

/// The same disk sector by sector: angle passed since the first physical sector of the disk, for
/// each logical sector in order.
fn walk(zones: &[ZoneSpec], heads: u32) -> Vec<(u64, u32, u32)> {
    let (mut places, mut origin, mut cylinder) = (Vec::new(), 0_u64, 0);
    for zone in zones {
        let angle = |n: u32| {
            (u64::from(n) * ((REVOLUTION << WIDTH_BITS) / u64::from(zone.sectors_per_track)))
                >> WIDTH_BITS
        };
        let mut usable = 0;
        for _ in 0..zone.cylinders {
            for head in 0..heads {
                let last = head + 1 == heads;
                for sector in 0..zone.usable_per_track() {
                    if last && sector >= zone.usable_per_track() - zone.spare_per_cylinder {
                        continue;
                    }
                    let wanted = usable >= zone.unused && !zone.slipped.contains(&usable);
                    if wanted {
                        places.push((origin + angle(sector), cylinder, head));
                    }
                    usable += 1;
                }
                let skew = if last {
                    zone.cylinder_skew
                } else {
                    zone.track_skew
                };
                origin += REVOLUTION + angle(skew);
            }
            cylinder += 1;
        }
    }
    places
}

const NO_SWITCH: Switches = Switches {
    head: 0,
    cylinder: 0,
};

/// The spare sectors of a cylinder pass while the arm moves on, as those of a track do while heads switch: with one head
/// both are the same.
#[test]
fn spare_sectors_of_a_cylinder_pass_while_the_arm_moves_on() {
    let zone = |of_track, of_cylinder| ZoneSpec {
        cylinders: 100,
        sectors_per_track: 1000,
        track_skew: 0,
        cylinder_skew: 0,
        spare_per_track: of_track,
        spare_per_cylinder: of_cylinder,
        unused: 0,
        first_lba: None,
        slipped: Vec::new(),
    };
    let switches = Switches {
        head: REVOLUTION / 10,
        cylinder: REVOLUTION / 10,
    };
    let end = |zone, heads| {
        let geometry = Geometry::new(&[zone], heads, 8000, switches).unwrap();
        geometry.locate(7999).x / REVOLUTION
    };
    // A fifth of a turn is spare, a tenth is what the switch takes: nobody waits for a turn.
    assert_eq!(end(zone(200, 0), 1), 9);
    assert_eq!(end(zone(0, 200), 1), 9);
    assert_eq!(end(zone(100, 100), 1), 9);
    // With two heads the first has no spare sectors: a turn is lost there.
    assert_eq!(end(zone(0, 200), 2), end(zone(200, 0), 2) + 3);
}

proptest! {
    #[test]
    fn no_sectors_within_a_span_lie_further_apart(
        zones in prop::collection::vec(zone(), 1..4), heads in 1_u32..5, sectors in 0_u64..3000, cut in 0_u64..100) {
        let all = walk(&zones, heads).len() as u64;
        let count = all - all * cut / 200;
        let geometry = Geometry::new(&zones, heads, count, NO_SWITCH).unwrap();
        let cylinder = |lba: u64| geometry.locate(lba.min(count - 1)).cylinder;
        let most = (0..count).map(|lba| cylinder(lba + sectors) - cylinder(lba)).max().unwrap();
        let span = geometry.span(sectors);
        prop_assert!(most <= span, "{most} > {span}");
    }

    #[test]
    fn closed_form_places_are_those_of_a_walk(zones in prop::collection::vec(zone(), 1..4), heads in 1_u32..5) {
        let walked = walk(&zones, heads);
        // Slipped sectors are counted from the first usable one, unused ones included.
        let geometry = Geometry::new(&zones, heads, walked.len() as u64, NO_SWITCH).unwrap();
        for (lba, &(x, cylinder, head)) in walked.iter().enumerate() {
            let place = geometry.locate(lba as u64);
            prop_assert_eq!((place.x, place.cylinder, place.head), (x, cylinder, head), "sector {}", lba);
            prop_assert_eq!(geometry.track_at(place.x), (cylinder, head));
            for before in [0, lba / 2, lba.saturating_sub(30), lba] {
                prop_assert_eq!(geometry.track_after(before as u64, place.x), (cylinder, head));
                prop_assert_eq!(geometry.track_after(before as u64, place.end()), geometry.track_at(place.end()));
            }
            prop_assert_eq!(geometry.sector_at(place.end()), lba as u64 + 1);
            prop_assert_eq!(geometry.sector_at(place.end() - 1), lba as u64);
        }
    }

    #[test]
    fn the_end_of_a_run_is_the_end_of_its_last_sector(zones in prop::collection::vec(zone(), 1..4), heads in 1_u32..5, at: u64, n in 1_u64..600) {
        let total = walk(&zones, heads).len() as u64;
        let geometry = Geometry::new(&zones, heads, total, NO_SWITCH).unwrap();
        let lba = at % total;
        let n = n.min(total - lba);
        let place = geometry.locate(lba);
        prop_assert_eq!(geometry.end_of(&place, lba, n), geometry.locate(lba + n - 1).end());
    }

    #[test]
    fn dividing_by_multiplying_is_exact(n: u32, by in 1_u32..) {
        prop_assert_eq!(Divisor::new(by).split(n), (n / by, n % by));
    }

    #[test]
    fn dividing_by_strides_is_exact(n: u64, by in 1_u64.., near in -2_i64..=2, times: u16, bits in 0_u32..63) {
        let by = (by >> bits).max(1);
        for n in [n, by.wrapping_mul(u64::from(times)).wrapping_add_signed(near), u64::MAX] {
            prop_assert_eq!(Stride::new(by).split(n), (n / by, n % by));
        }
    }
}

/// What is said of the start of a zone is said of it once, however many parts it is kept in.
#[test]
fn a_zone_of_many_sectors_is_one_zone() {
    let (before, track) = (1000, 2000);
    let zones = [
        ZoneSpec {
            cylinders: 1,
            sectors_per_track: before,
            ..ZoneSpec::default()
        },
        ZoneSpec {
            cylinders: 3_000_000,
            sectors_per_track: track,
            unused: 15,
            first_lba: Some(u64::from(before)),
            ..ZoneSpec::default()
        },
    ];
    let large = 3_000_000 * u64::from(track) - 15;
    assert!(large > u64::from(u32::MAX));
    let sectors = u64::from(before) + large;
    let geometry = Geometry::new(&zones, 1, sectors, NO_SWITCH).unwrap();
    assert_eq!(geometry.locate(999).cylinder, 0);
    for at in [0, 1984, 1985, 1 << 31, 1 << 32, 5_000_000_000, large - 1] {
        let cylinder = 1 + (at + 15) / u64::from(track);
        let place = geometry.locate(u64::from(before) + at);
        assert_eq!(
            u64::from(place.cylinder),
            cylinder,
            "sector {at} of the zone"
        );
    }
}

#[test]
fn a_skew_too_short_for_the_switch_costs_a_turn() {
    let zone = ZoneSpec {
        cylinders: 10,
        sectors_per_track: 100,
        track_skew: 5,
        cylinder_skew: 5,
        ..ZoneSpec::default()
    };
    let build = |head| {
        let switches = Switches { head, cylinder: 0 };
        Geometry::new(std::slice::from_ref(&zone), 2, 2000, switches).unwrap()
    };
    let slot = REVOLUTION / 100;
    let crossing = |geometry: &Geometry| geometry.locate(100).x - geometry.locate(99).end();
    assert_eq!(crossing(&build(5 * slot)), 5 * slot);
    assert_eq!(crossing(&build(5 * slot + 1)), REVOLUTION + 5 * slot);
}
