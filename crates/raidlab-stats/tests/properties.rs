//! Laws that hold for any data.

use proptest::collection::vec;
use proptest::prelude::*;
use raidlab_stats::autocorr::{ljung_box, subsession_ci};
use raidlab_stats::bootstrap::{Statistic, bootstrap, bootstrap_bca};
use raidlab_stats::cache_fit::{fit_cache, two_modes};
use raidlab_stats::changepoint::change_points;
use raidlab_stats::compare::adjust_family;
use raidlab_stats::drift::drift;
use raidlab_stats::friedman::friedman;
use raidlab_stats::mann_whitney::{hodges_lehmann, mann_whitney, rank_verdict};
use raidlab_stats::mser::mser;
use raidlab_stats::multiple::{benjamini_hochberg, holm};
use raidlab_stats::outlier::outliers;
use raidlab_stats::permutation::permutation_test;
use raidlab_stats::permutation::sign_flip_test;
use raidlab_stats::ratio::fieller_ratio;
use raidlab_stats::runs::runs_required;
use raidlab_stats::steady::{SniaRule, first_stable_window};
use raidlab_stats::trimmed::trimmed_mean_ci;
use raidlab_stats::two_level::two_level;
use raidlab_stats::wilcoxon::wilcoxon_signed_rank;
use raidlab_stats::{
    Aggregate, Confidence, Criteria, Direction, Estimate, Gate, Pairing, Sample, StoppingRule,
    Summary, Verdict, compare, gate, summarise,
};

const P95: Confidence = Confidence::P95;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Ends of two intervals agree, the second turned by `map`, relative to their size.
fn same_interval(a: &Estimate, b: &Estimate, map: impl Fn(f64) -> f64) -> bool {
    match (a.interval, b.interval) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let (x, y) = (map(b.lo), map(b.hi));
            let scale = a.lo.abs().max(a.hi.abs());
            let near = |p: f64, q: f64| (p - q).abs() <= 1e-9 * scale;
            near(a.lo, x.min(y)) && near(a.hi, x.max(y))
        }
        _ => false,
    }
}

fn contains_its_value(e: &Estimate) -> bool {
    e.interval
        .is_none_or(|i| i.contains(e.value) && i.lo <= i.hi)
}

/// Rates as disks give them: over orders of magnitude, some of them equal.
fn rates(n: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<f64>> {
    let any_rate = prop_oneof![1.0..1e3_f64, 90.0..110.0_f64, Just(47.0), Just(100.0)];
    vec(any_rate, n)
}

/// Anything at all, hostile values included.
fn hostile() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        any::<f64>(),
        Just(0.0),
        Just(-0.0),
        Just(1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(1e140),
        Just(-1e140),
        Just(1e-140),
        -1e3..1e3_f64,
    ];
    let tame = prop_oneof![
        Just(0.0),
        Just(1.0),
        -5.0..5.0_f64,
        Just(1e140),
        Just(1e-140),
        Just(-1e140)
    ];
    prop_oneof![vec(value, 0..12), vec(tame, 0..12)]
}

fn aggregate() -> impl Strategy<Value = Aggregate> {
    prop_oneof![
        Just(Aggregate::Arithmetic),
        Just(Aggregate::Harmonic),
        Just(Aggregate::Geometric)
    ]
}

fn pairing() -> impl Strategy<Value = Pairing> {
    prop_oneof![Just(Pairing::Paired), Just(Pairing::Unpaired)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn another_unit_changes_the_unit_only(x in rates(1..15), by in 1e-6..1e6_f64, how in aggregate()) {
        let scaled: Vec<f64> = x.iter().map(|v| v * by).collect();
        let (one, two) = (summarise(&x, how).unwrap(), summarise(&scaled, how).unwrap());
        for (a, b) in [(&one.headline, &two.headline), (&one.mean, &two.mean), (&one.median, &two.median)] {
            prop_assert!(close(a.value * by, b.value));
            prop_assert!(same_interval(b, a, |end| end * by), "{a:?} {b:?}");
        }
        prop_assert_eq!(one.outliers.severe, two.outliers.severe);
    }

    #[test]
    fn the_order_of_runs_does_not_move_the_figures(
        (x, shuffled) in rates(1..15).prop_flat_map(|x| (Just(x.clone()), Just(x).prop_shuffle())),
        how in aggregate(),
    ) {
        let (one, two) = (summarise(&x, how).unwrap(), summarise(&shuffled, how).unwrap());
        // To the last bit: sums run over sorted values.
        prop_assert_eq!(one.headline.value, two.headline.value);
        prop_assert_eq!(one.headline.interval, two.headline.interval);
        prop_assert_eq!((one.mean, one.median), (two.mean, two.median));
        prop_assert_eq!((one.sd, one.mad), (two.sd, two.mad));
    }

    #[test]
    fn an_interval_holds_its_estimate(x in rates(1..20), how in aggregate()) {
        let Summary { headline, mean, median, min, max, .. } = summarise(&x, how).unwrap();
        for e in [&headline, &mean, &median] {
            prop_assert!(contains_its_value(e), "{e:?}");
            prop_assert!(e.value >= min * (1.0 - 1e-12) && e.value <= max * (1.0 + 1e-12), "{e:?}");
        }
    }

    #[test]
    fn wider_confidence_is_a_wider_interval(a in rates(2..9), b in rates(2..9)) {
        let p99 = Confidence::new(0.99).unwrap();
        let of = |c| compare(&a, &b, &Criteria::new(Pairing::Unpaired, Direction::HigherIsBetter).with_confidence(c));
        let (narrow, wide) = (of(P95).unwrap().ratio, of(p99).unwrap().ratio);
        if let (Some(n), Some(w)) = (narrow.interval, wide.interval) {
            prop_assert!(w.lo <= n.lo && n.hi <= w.hi);
        }
    }

    #[test]
    fn the_other_way_round_is_the_reciprocal(
        pairs in vec((1.0..1e3_f64, 1.0..1e3_f64), 1..9), how in pairing(),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let criteria = Criteria::new(how, Direction::HigherIsBetter);
        let forward = compare(&a, &b, &criteria).unwrap();
        let back = compare(&b, &a, &criteria).unwrap();
        prop_assert!(close(forward.ratio.value * back.ratio.value, 1.0));
        if let (Some(f), Some(k)) = (forward.ratio.interval, back.ratio.interval) {
            prop_assert!(close(f.lo * k.hi, 1.0) && close(f.hi * k.lo, 1.0));
        } else {
            prop_assert_eq!(forward.ratio.interval.is_some(), back.ratio.interval.is_some());
        }
        match (forward.tests.t, back.tests.t) {
            (Some(p), Some(q)) => prop_assert!(close(p, q)),
            (p, q) => prop_assert_eq!(p, q),
        }
        // Turning the direction as well turns nothing: the same gain, hence the same verdict.
        let lower = Criteria::new(how, Direction::LowerIsBetter);
        let mirrored = compare(&b, &a, &lower).unwrap();
        prop_assert_eq!(mirrored.verdict.word(), forward.verdict.word());
    }

    #[test]
    fn a_factor_common_to_both_sides_cancels(
        pairs in vec((1.0..1e3_f64, 1.0..1e3_f64), 2..9), by in 1e-3..1e3_f64, how in pairing(),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let criteria = Criteria::new(how, Direction::HigherIsBetter);
        let scale = |v: &[f64]| v.iter().map(|x| x * by).collect::<Vec<_>>();
        let one = compare(&a, &b, &criteria).unwrap().ratio;
        let two = compare(&scale(&a), &scale(&b), &criteria).unwrap().ratio;
        prop_assert!(close(one.value, two.value) && same_interval(&one, &two, |x| x));
    }

    #[test]
    fn the_gate_at_the_margin_fails_what_is_worse(a in rates(1..9), b in rates(1..9)) {
        for direction in [Direction::HigherIsBetter, Direction::LowerIsBetter] {
            let criteria = Criteria::new(Pairing::Unpaired, direction);
            let c = compare(&a, &b, &criteria).unwrap();
            let failed = gate(&c, 1.0 - criteria.margin).unwrap() == Gate::Fail;
            prop_assert_eq!(failed, c.verdict == Verdict::Worse);
        }
    }

    #[test]
    fn tests_are_symmetric_and_probabilities(a in rates(1..8), b in rates(1..8)) {
        let (a, b) = (Sample::new(a).unwrap(), Sample::new(b).unwrap());
        let (one, two) = (mann_whitney(&a, &b), mann_whitney(&b, &a));
        prop_assert!(close(one.p, two.p) && close(one.a12 + two.a12, 1.0));
        prop_assert!((0.0..=1.0).contains(&one.p));
        let (one, two) = (permutation_test(&a, &b).unwrap(), permutation_test(&b, &a).unwrap());
        prop_assert!(close(one.p, two.p) && one.p > 0.0 && one.p <= 1.0);
        let shift = hodges_lehmann(&a, &b, P95).unwrap().shift;
        prop_assert!(contains_its_value(&shift), "{shift:?}");
    }

    #[test]
    fn adjusted_p_values_are_ordered(p in vec(0.0..=1.0_f64, 0..12)) {
        let (holm, q) = (holm(&p).unwrap(), benjamini_hochberg(&p).unwrap());
        for i in 0..p.len() {
            prop_assert!(p[i] <= q[i] && q[i] <= holm[i] && holm[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || holm[i] <= holm[j]);
            }
        }
    }

    #[test]
    fn change_points_respect_the_shortest_segment(x in rates(1..60), min in 1..8_usize) {
        let r = change_points(&x, min).unwrap();
        let mut edges = vec![0];
        edges.extend(&r.at);
        edges.push(x.len());
        prop_assert_eq!(r.segment_means.len(), r.at.len() + 1);
        prop_assert!(r.at.is_empty() || edges.windows(2).all(|w| w[1] - w[0] >= min));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_and_no_figure_is_nan(a in hostile(), b in hostile(), how in aggregate()) {
        if let Ok(s) = summarise(&a, how) {
            prop_assert!(s.headline.value.is_finite() && contains_its_value(&s.headline), "{s:?}");
            let json = serde_json::to_string(&s).unwrap();
            prop_assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), s);
        }
        let rule = StoppingRule::quick(0.02, how).unwrap();
        let _ = rule.decide(&a, true);
        let mut family = Vec::new();
        for pairing in [Pairing::Paired, Pairing::Unpaired] {
            for direction in [Direction::HigherIsBetter, Direction::LowerIsBetter] {
                if let Ok(c) = compare(&a, &b, &Criteria::new(pairing, direction)) {
                    prop_assert!(c.ratio.value.is_finite() && contains_its_value(&c.ratio), "{c:?}");
                    prop_assert!(gate(&c, 0.95).is_ok());
                    prop_assert!(!serde_json::to_string(&c).unwrap().contains("NaN"));
                    family.push(c);
                }
            }
        }
        prop_assert!(adjust_family(&mut family, P95).is_ok());
    }

    #[test]
    fn nothing_panics_on_series_either(x in hostile(), min in 0..4_usize, p in any::<f64>()) {
        let _ = (change_points(&x, min), mser(&x, min), first_stable_window(&x, min, p));
        let _ = (SniaRule::default().first_steady(&x), SniaRule::default().window(&x));
        let _ = (two_modes(&x), runs_required(p, x.first().copied().unwrap_or(p), P95));
        let _ = (holm(&x), Confidence::new(p));
        let points: Vec<(f64, f64)> = x.iter().map(|&v| (v, p)).collect();
        let _ = fit_cache(&points);
        if let Ok(s) = Sample::new(x.clone()) {
            let _ = (subsession_ci(&s, 0.1, min, P95), ljung_box(&s, min), drift(&s), outliers(&s));
            let _ = (wilcoxon_signed_rank(&s), sign_flip_test(&s), trimmed_mean_ci(&s, min, P95));
            for statistic in [Statistic::Mean, Statistic::TrimmedMean(min), Statistic::Median] {
                if let Ok(b) = bootstrap_bca(&s, statistic, 100, 1, P95) {
                    prop_assert!(!b.estimate.value.is_nan() && !b.standard_error.is_nan(), "{b:?}");
                    prop_assert!(!b.acceleration.is_nan(), "{b:?}");
                }
            }
        }
        let grouped: Vec<Sample> = x.chunks(2).filter_map(|c| Sample::new(c).ok()).collect();
        let _ = (friedman(&grouped), two_level(&grouped, p, 1.0, P95));
        if let [a, b, ..] = grouped.as_slice() {
            let _ = (fieller_ratio(a, b, P95), rank_verdict(a, b));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_bootstrap_is_a_function_of_the_set_of_values(
        (x, shuffled) in rates(5..9).prop_flat_map(|x| (Just(x.clone()), Just(x).prop_shuffle())),
    ) {
        let of = |v: &[f64]| bootstrap(&Sample::new(v).unwrap(), Statistic::Median, P95).unwrap();
        prop_assert_eq!(of(&x), of(&shuffled));
    }
}
