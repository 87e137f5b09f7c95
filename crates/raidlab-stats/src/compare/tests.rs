use super::*;
use crate::verdict::{Gate, gate, gates};

const A: [f64; 10] = [
    101.2, 99.8, 100.5, 102.1, 98.9, 100.0, 101.7, 99.3, 100.9, 100.4,
];
const B: [f64; 10] = [
    104.0, 102.9, 103.1, 105.2, 101.8, 103.6, 104.9, 102.2, 103.3, 100.7,
];

fn rates(pairing: Pairing) -> Criteria {
    Criteria::new(pairing, Direction::HigherIsBetter)
}

#[test]
fn paired_rounds_give_a_verdict_and_its_reason() {
    let c = compare(&A, &B, &rates(Pairing::Paired)).unwrap();
    assert_eq!(c.verdict, Verdict::Better);
    assert_eq!(c.why, "the whole interval is better by more than 2 %");
    assert!((c.ratio.value - 1.026_737).abs() < 1e-6);
    assert_eq!(c.ratio.n, 10);
    assert!(c.tests.t.unwrap() < 1e-5 && c.tests.permutation.unwrap() < 0.01);
    assert_eq!(c.tests.rank, Some(0.001_953_125));
    assert!(c.tests.a12.unwrap() > 0.9);
    assert!((0.008..0.012).contains(&c.minimum_detectable.unwrap()));
    assert_eq!(c.fieller, None);
    let wide = rates(Pairing::Paired).with_margin(0.05);
    assert_eq!(compare(&A, &B, &wide).unwrap().verdict, Verdict::Equivalent);
    let middle = rates(Pairing::Paired).with_margin(0.025);
    assert_eq!(
        compare(&A, &B, &middle).unwrap().verdict,
        Verdict::DifferentButSmall
    );
}

#[test]
fn more_confidence_is_a_wider_interval() {
    let sure = Confidence::new(0.999).unwrap();
    for pairing in [Pairing::Paired, Pairing::Unpaired] {
        let usual = compare(&A, &B, &rates(pairing)).unwrap();
        let wide = compare(&A, &B, &rates(pairing).with_confidence(sure)).unwrap();
        let (usual, wide) = (usual.ratio.interval.unwrap(), wide.ratio.interval.unwrap());
        assert_eq!(wide.confidence, 0.999);
        assert!(
            wide.lo < usual.lo && usual.hi < wide.hi,
            "{usual:?} {wide:?}"
        );
    }
}

#[test]
fn unpaired_sides_may_differ_in_number_and_carry_fieller() {
    let c = compare(&A, &B[..9], &rates(Pairing::Unpaired)).unwrap();
    assert_eq!((c.baseline_n, c.candidate_n, c.ratio.n), (10, 9, 19));
    let fieller = c.fieller.unwrap();
    assert!((fieller.value / c.ratio.value - 1.0).abs() < 1e-3);
    assert!(c.ratio.interval.unwrap().half_width() > 0.005);
    assert!(compare(&A, &B[..9], &rates(Pairing::Paired)).is_err());
}

#[test]
fn a_rate_and_its_time_get_the_same_verdict() {
    let times = |v: &[f64]| v.iter().map(|x| 1.0 / x).collect::<Vec<_>>();
    for margin in [0.001, 0.02, 0.022, 0.025, 0.05] {
        let by_rate = compare(&A, &B, &rates(Pairing::Paired).with_margin(margin)).unwrap();
        let lower = Criteria::new(Pairing::Paired, Direction::LowerIsBetter).with_margin(margin);
        let by_time = compare(&times(&A), &times(&B), &lower).unwrap();
        assert_eq!(by_rate.verdict, by_time.verdict);
        assert!(by_time.ratio.value < 1.0 && by_time.gain().unwrap().value > 1.0);
    }
}

#[test]
fn one_run_is_a_bare_ratio() {
    for pairing in [Pairing::Paired, Pairing::Unpaired] {
        let c = compare(&[50.0], &[25.0], &rates(pairing)).unwrap();
        assert_eq!((c.ratio.value, c.ratio.interval), (0.5, None));
        assert_eq!(c.why, "n=1, no interval");
        assert_eq!(c.verdict, Verdict::Inconclusive { more_rounds: None });
        assert_eq!(c.tests, Tests::default());
        assert_eq!(gate(&c, 0.95).unwrap(), Gate::Warn);
    }
    let c = compare(&A, &[25.0], &rates(Pairing::Unpaired)).unwrap();
    assert_eq!(c.why, "n=1, no interval");
}

#[test]
fn ranks_are_refused_under_four_and_four() {
    let c = compare(&A[..3], &B[..3], &rates(Pairing::Unpaired)).unwrap();
    assert_eq!((c.tests.rank, c.tests.a12), (None, None));
    let c = compare(&A[..4], &B[..4], &rates(Pairing::Unpaired)).unwrap();
    assert!(c.tests.rank.is_some() && c.tests.a12.is_some());
    let c = compare(&A[..5], &B[..5], &rates(Pairing::Paired)).unwrap();
    assert_eq!(c.tests.rank, None);
}

#[test]
fn inconclusive_names_the_rounds_needed() {
    let noisy = [90.0, 112.0, 95.0, 108.0, 99.0, 104.0];
    let other = [104.0, 97.0, 108.0, 93.0, 101.0, 98.0];
    let c = compare(&noisy, &other, &rates(Pairing::Paired)).unwrap();
    let Verdict::Inconclusive {
        more_rounds: Some(n),
    } = c.verdict
    else {
        panic!("{:?}", c.verdict)
    };
    let half = c.ratio.interval.unwrap().half_width();
    let textbook = 6.0 * (half / 0.02) * (half / 0.02);
    assert!(
        (0.4..1.2).contains(&(n as f64 / textbook)),
        "{n} {textbook}"
    );
}

#[test]
fn a_narrow_interval_across_the_edge_of_the_margin_still_needs_rounds() {
    // About 0.992 to 1.028: the half-width is under the margin, yet neither 1 nor 1.02 is excluded.
    let candidate: Vec<f64> = (0..10)
        .map(|i| libm::exp(if i % 2 == 0 { 0.0339 } else { -0.0139 }))
        .collect();
    let c = compare(&[1.0; 10], &candidate, &rates(Pairing::Paired)).unwrap();
    assert!(c.ratio.interval.unwrap().half_width() < 0.02);
    let Verdict::Inconclusive {
        more_rounds: Some(n),
    } = c.verdict
    else {
        panic!("{:?}", c.verdict)
    };
    // t s/√n ≤ 0.01 at s = 0.0252 takes 27 rounds.
    assert!((16..=18).contains(&n), "{n}");
}

#[test]
fn zeros_and_negatives_fall_back_to_fieller_or_fail() {
    let idle = [0.0, 0.1, 0.2, 0.1, 0.15];
    let busy = [0.5, 0.6, 0.55, 0.5, 0.58];
    let c = compare(&idle, &busy, &rates(Pairing::Unpaired)).unwrap();
    assert_eq!(c.ratio.method, Method::Fieller);
    assert!(c.ratio.value > 4.0);
    let c = compare(&idle, &busy, &rates(Pairing::Paired)).unwrap();
    assert_eq!((c.ratio.method, c.ratio.n), (Method::Fieller, 5));
    // −5 is more than −10, yet the ratio is ½: no verdict from it.
    let c = compare(
        &[-10.0, -10.1, -9.9],
        &[-5.0, -5.1, -4.9],
        &rates(Pairing::Unpaired),
    )
    .unwrap();
    assert_eq!(c.verdict, Verdict::Inconclusive { more_rounds: None });
    assert_eq!(
        c.why,
        "a mean is below zero, or that of the baseline is zero: the ratio orders nothing"
    );
    assert_eq!(gate(&c, 0.95).unwrap(), Gate::Warn);
    assert!(compare(&[0.0, 0.0], &[1.0, 2.0], &rates(Pairing::Unpaired)).is_err());
    assert!(compare(&[0.0], &[1.0], &rates(Pairing::Unpaired)).is_err());
    let noisy = [1.0, 9.0, -3.0, 4.0, 0.5];
    let c = compare(&noisy, &A, &rates(Pairing::Unpaired)).unwrap();
    assert_eq!(c.why, "ratio not estimable: its interval has no bound");
    assert_eq!(gate(&c, 0.95).unwrap(), Gate::Pass);
}

/// Two runs are the fewest with a scatter, zeros among them or not.
#[test]
fn two_runs_with_a_zero_have_an_interval() {
    for pairing in [Pairing::Paired, Pairing::Unpaired] {
        let c = compare(&[10.0, 10.1], &[0.0, 0.2], &rates(pairing)).unwrap();
        assert!((c.ratio.value - 0.2 / 20.1).abs() < 1e-12, "{c:?}");
        assert!(c.ratio.interval.is_some() && c.tests.t.is_some(), "{c:?}");
        assert!(!c.ratio.flags.contains(&Flag::SingleValue));
    }
}

/// What has no logarithm is flipped by its differences: no difference is no evidence, one in each round is.
#[test]
fn sign_flips_of_rounds_with_a_zero_are_of_their_differences() {
    let mut stalled = A;
    stalled[4] = 0.0;
    let same = compare(&A, &stalled, &rates(Pairing::Paired)).unwrap();
    assert_eq!(
        (same.ratio.method, same.tests.permutation),
        (Method::Fieller, Some(1.0))
    );
    let less = A.map(|x| if x == A[4] { 0.0 } else { x - 50.0 });
    let less = compare(&A, &less, &rates(Pairing::Paired)).unwrap();
    assert_eq!(less.tests.permutation, Some(2.0 / 1024.0));
}

/// A rate of nothing is worse than any, and no time better than any; a zero among others is scatter.
#[test]
fn a_candidate_at_zero_is_judged() {
    let slower = |lower| Criteria {
        direction: if lower {
            Direction::LowerIsBetter
        } else {
            Direction::HigherIsBetter
        },
        ..rates(Pairing::Paired)
    };
    for pairing in [Pairing::Paired, Pairing::Unpaired] {
        let of = |lower, a: &[f64], b: &[f64]| {
            let criteria = Criteria {
                pairing,
                ..slower(lower)
            };
            compare(a, b, &criteria).unwrap()
        };
        let zero = [0.0; 10];
        let stalled = of(false, &A, &zero);
        assert_eq!(stalled.verdict, Verdict::Worse);
        assert_eq!(gate(&stalled, 0.95).unwrap(), Gate::Fail);
        let mut family = [stalled, of(false, &A, &A)];
        adjust_family(&mut family, Confidence::P95).unwrap();
        assert_eq!(family[0].verdict, Verdict::Worse);
        let instant = of(true, &A, &zero);
        assert_eq!(instant.verdict, Verdict::Better);
        assert_eq!(gate(&instant, 0.95).unwrap(), Gate::Pass);
        assert_eq!(instant.gain().unwrap().value, f64::INFINITY);
        // One stall in ten is not certain to make it slower, but looks so.
        let mut once = A;
        once[3] = 0.0;
        let c = of(false, &A, &once);
        assert!(matches!(c.verdict, Verdict::Inconclusive { .. }), "{c:?}");
        assert_eq!(gate(&c, 0.95).unwrap(), Gate::Warn);
        let c = of(true, &A, &once);
        assert_eq!(gate(&c, 0.95).unwrap(), Gate::Pass);
        // Not even a gate that is passed by ten times as long is failed by it.
        assert_eq!(gate(&of(false, &A, &once), 0.1).unwrap(), Gate::Pass);
        let c = compare(
            &[5.0],
            &[0.0],
            &Criteria {
                pairing,
                ..slower(false)
            },
        )
        .unwrap();
        assert_eq!(gate(&c, 0.95).unwrap(), Gate::Warn);
    }
}

/// Forty figures without a difference: one that is below by chance alone does not fail, one that surely is does.
#[test]
fn a_gate_of_many_figures_is_one_decision() {
    let criteria = rates(Pairing::Unpaired);
    let scaled = |by: f64, spread: f64| -> Vec<f64> {
        let centre = 100.64;
        A[..5]
            .iter()
            .map(|x| by * (centre + spread * (x - centre)))
            .collect()
    };
    let of = |by: f64| compare(&A[..5], &scaled(by, 1.0), &criteria).unwrap();
    let (even, chance, sure) = (of(1.0), of(0.93), of(0.8));
    assert_eq!(gate(&chance, 0.95).unwrap(), Gate::Fail);
    assert_eq!(gates(&[(&chance, 0.95)]).unwrap(), [Gate::Fail]);
    let single = compare(&[1.0], &[0.5], &criteria).unwrap();
    let mut family = vec![(&single, 0.95), (&chance, 0.95), (&sure, 0.95)];
    family.resize(40, (&even, 0.95));
    let said = gates(&family).unwrap();
    assert_eq!(said[..4], [Gate::Warn, Gate::Warn, Gate::Fail, Gate::Pass]);
    // What fails for certain makes the family smaller for the others.
    let most = [(&sure, 0.95), (&chance, 0.95), (&sure, 0.95)];
    assert_eq!(gates(&most).unwrap(), [Gate::Fail; 3]);
    // Longer times are the same matter.
    let times = Criteria::new(Pairing::Unpaired, Direction::LowerIsBetter);
    let longer = compare(&A[..5], &scaled(1.25, 1.0), &times).unwrap();
    assert!(longer.p_of_less(0.95).unwrap() < 1e-6);
    assert!(longer.p_of_less(0.7).unwrap() > 0.999);
    assert!(gates(&[(&even, 0.0)]).is_err());
}

#[test]
fn nonsense_is_refused() {
    let criteria = rates(Pairing::Paired);
    assert!(compare(&[], &[], &criteria).is_err());
    assert!(compare(&[f64::NAN], &[1.0], &criteria).is_err());
    for margin in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert!(compare(&A, &B, &criteria.with_margin(margin)).is_err());
    }
    let c = compare(&A, &B, &criteria).unwrap();
    for threshold in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(gate(&c, threshold).is_err());
    }
}

#[test]
fn the_gate_fails_only_on_proof() {
    let criteria = rates(Pairing::Paired);
    let scaled = |by: f64| A.iter().map(|x| x * by).collect::<Vec<_>>();
    let of = |candidate: &[f64]| gate(&compare(&A, candidate, &criteria).unwrap(), 0.95).unwrap();
    assert_eq!(of(&scaled(0.90)), Gate::Fail);
    assert_eq!(of(&scaled(0.96)), Gate::Pass);
    let noisy: Vec<f64> = A
        .iter()
        .enumerate()
        .map(|(i, x)| x * if i % 2 == 0 { 0.8 } else { 1.05 })
        .collect();
    assert_eq!(of(&noisy), Gate::Warn);
    // Lower is better: ten per cent more time is what fails.
    let times = Criteria::new(Pairing::Paired, Direction::LowerIsBetter);
    let slower = compare(&A, &scaled(1.1), &times).unwrap();
    assert_eq!(gate(&slower, 0.95).unwrap(), Gate::Fail);
    let faster = compare(&A, &scaled(0.5), &times).unwrap();
    assert_eq!(gate(&faster, 0.95).unwrap(), Gate::Pass);
}

#[test]
fn a_family_takes_back_what_may_be_chance() {
    // p ≈ .03 alone; among five it is not to be believed.
    let weak: Vec<f64> = A
        .iter()
        .zip([3.0, -1.0, 2.5, 0.5, -0.5, 4.0, 1.0, -0.5, 3.5, 2.0])
        .map(|(a, d)| a + d)
        .collect();
    let one = compare(&A, &weak, &rates(Pairing::Paired)).unwrap();
    assert_eq!(one.verdict, Verdict::DifferentButSmall);
    let same = compare(&A, &A, &rates(Pairing::Paired)).unwrap();
    assert_eq!(same.verdict, Verdict::Equivalent);
    let single = compare(&[1.0], &[2.0], &rates(Pairing::Paired)).unwrap();
    let mut family = vec![one, same.clone(), same.clone(), same, single];
    family.push(compare(&A, &B, &rates(Pairing::Paired)).unwrap());
    adjust_family(&mut family, Confidence::P95).unwrap();
    let Verdict::Inconclusive {
        more_rounds: Some(more),
    } = family[0].verdict
    else {
        panic!("{:?}", family[0].verdict);
    };
    let why = &family[0].why;
    assert!(
        why.contains("different, small") && why.contains("5 comparisons"),
        "{why}"
    );
    // As many again of the same kind do hold, and one more does not.
    assert!((2..=10).contains(&more), "{more}");
    let longer = |rounds: usize| {
        let repeated = |values: &[f64]| values.iter().copied().cycle().take(rounds).collect();
        let (a, b): (Vec<f64>, Vec<f64>) = (repeated(&A), repeated(&weak));
        let mut family = family.clone();
        family[0] = compare(&a, &b, &rates(Pairing::Paired)).unwrap();
        adjust_family(&mut family, Confidence::P95).unwrap();
        family[0].verdict
    };
    assert_eq!(longer(20), Verdict::DifferentButSmall);
    assert_ne!(longer(11), Verdict::DifferentButSmall);
    assert_eq!(family[1].verdict, Verdict::Equivalent);
    assert_eq!(family[4].p_adjusted, None);
    assert_eq!(family[5].verdict, Verdict::Better);
    adjust_family(&mut [], Confidence::P95).unwrap();
}

#[test]
fn a_comparison_survives_json() {
    let c = compare(&A, &B, &rates(Pairing::Unpaired)).unwrap();
    let json = serde_json::to_string(&c).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), c);
}

#[test]
fn percentages_are_short() {
    assert_eq!(percent(0.07), "7 %");
    assert_eq!(percent(0.005), "0.5 %");
    assert_eq!(percent(0.2), "20 %");
}
