//! The figure to quote, whichever is wanted, of one session and of several.

use raidlab_stats::prng::Stream;
use raidlab_stats::special::norm_ppf;
use raidlab_stats::summary::{summarise_at, summarise_sessions};
use raidlab_stats::{Aggregate, Confidence, Flag, Headline, Method, Sample, StatsError, Summary};

const P95: Confidence = Confidence::P95;
const ALL: [Headline; 5] = [
    Headline::Usual,
    Headline::Mean,
    Headline::Median,
    Headline::Trimmed(1),
    Headline::Trimmed(2),
];

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).unwrap()
}

fn of(values: &[f64], aggregate: Aggregate, which: Headline) -> Summary {
    summarise_at(&sample(values), aggregate, which, P95).unwrap()
}

#[test]
fn whichever_figure_is_quoted_says_what_is_to_be_said_of_the_runs() {
    let rising: Vec<f64> = (0..9).map(|i| 40.0 + 10.0 * f64::from(i)).collect();
    let mut slow = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 101.2];
    slow[0] = 10.0;
    for which in ALL {
        let flags = of(&rising, Aggregate::Arithmetic, which).headline.flags;
        assert!(flags.contains(&Flag::Drift), "{which:?}: {flags:?}");
        assert!(
            flags.contains(&Flag::Autocorrelated),
            "{which:?}: {flags:?}"
        );
        let flags = of(&slow, Aggregate::Harmonic, which).headline.flags;
        assert!(
            flags.contains(&Flag::FirstRunDiffers),
            "{which:?}: {flags:?}"
        );
    }
}

/// Of fixed work the times are averaged, however many runs are dropped.
#[test]
fn trimmed_rates_are_trimmed_times() {
    let rates = [40.0, 57.0, 74.0, 91.0, 108.0, 125.0, 142.0, 60.0];
    let times: Vec<f64> = rates.iter().map(|r| 1.0 / r).collect();
    for which in ALL {
        let by_rate = of(&rates, Aggregate::Harmonic, which).headline;
        let by_time = of(&times, Aggregate::Arithmetic, which).headline;
        assert!((by_rate.value * by_time.value - 1.0).abs() < 1e-14);
        assert!((by_rate.lo().unwrap() * by_time.hi().unwrap() - 1.0).abs() < 1e-14);
    }
    // 1 / scipy.stats.trim_mean(1 / x, 2 / 8)
    let two = of(&rates, Aggregate::Harmonic, Headline::Trimmed(2)).headline;
    let kept = [60.0, 74.0, 91.0, 108.0].map(|r: f64| 1.0 / r);
    assert!((two.value - 4.0 / kept.iter().sum::<f64>()).abs() < 1e-12);
    // Too few are left to drop any.
    let few = of(&rates[..5], Aggregate::Harmonic, Headline::Trimmed(2)).headline;
    assert_eq!((few.method, few.value), (Method::OrderStatistic, 74.0));
}

fn in_sessions(sessions: &[&[f64]], aggregate: Aggregate, which: Headline) -> Summary {
    let names = ["a", "b", "c", "d", "e"];
    let (mut values, mut session_of) = (Vec::new(), Vec::new());
    for (runs, name) in sessions.iter().zip(names) {
        values.extend(runs.iter());
        session_of.extend(runs.iter().map(|_| name));
    }
    summarise_sessions(&sample(&values), &session_of, aggregate, which, P95).unwrap()
}

#[test]
fn sessions_that_differ_have_the_interval_between_them() {
    let (one, two) = ([99.0, 100.0, 101.0, 100.0], [119.0, 120.0, 121.0, 120.0]);
    for which in ALL {
        let summary = in_sessions(&[&one, &two], Aggregate::Arithmetic, which);
        let figure = summary.headline;
        assert_eq!((figure.method, figure.n), (Method::TwoLevelT, 8));
        assert!((figure.value - 110.0).abs() < 1e-12, "{which:?}");
        // t of one degree of freedom: 12.706 * 10.
        assert!((figure.hi().unwrap() - 237.062).abs() < 1e-3, "{which:?}");
        assert!(figure.flags.contains(&Flag::Drift), "{which:?}");
        // Its lower end, -17, is of no rate.
        assert_eq!(figure.lo(), Some(0.0));
    }
    // Times are averaged.
    let harmonic = in_sessions(&[&one, &two], Aggregate::Harmonic, Headline::Mean).headline;
    let mean = |runs: &[f64]| runs.iter().map(|r| 1.0 / r).sum::<f64>() / runs.len() as f64;
    assert!((harmonic.value - 2.0 / (mean(&one) + mean(&two))).abs() < 1e-12);
    assert!(harmonic.flags.contains(&Flag::Unbounded), "{harmonic:?}");
}

#[test]
fn sessions_that_do_not_differ_are_one_sample() {
    let (one, two) = ([1.0, 3.0, 2.0, 2.5], [3.0, 1.0, 2.0, 1.5]);
    let together: Vec<f64> = one.iter().chain(&two).copied().collect();
    for which in ALL {
        let summary = in_sessions(&[&one, &two], Aggregate::Arithmetic, which);
        assert_eq!(summary, of(&together, Aggregate::Arithmetic, which));
    }
}

#[test]
fn where_it_cannot_be_known_whether_sessions_differ_that_is_said() {
    let runs = [99.0, 100.0, 101.0, 100.0];
    let mean = |sessions: &[&[f64]]| in_sessions(sessions, Aggregate::Arithmetic, Headline::Mean);
    let some = mean(&[&runs, &[120.0]]).headline;
    assert_eq!(some.method, Method::StudentT);
    assert!(some.flags.contains(&Flag::SessionsIgnored));
    // A session for each run: the runs are as far apart as sessions are.
    let each = mean(&[&[99.0], &[120.0], &[110.0]]).headline;
    assert_eq!(
        each,
        of(&[99.0, 120.0, 110.0], Aggregate::Arithmetic, Headline::Mean).headline
    );
    let unequal = summarise_sessions(
        &sample(&runs),
        &["a"],
        Aggregate::Arithmetic,
        Headline::Mean,
        P95,
    );
    assert!(matches!(unequal, Err(StatsError::UnequalLengths { .. })));
}

/// Share of intervals that hold the truth, of so many sessions of eight runs with 1 % scatter that differ by 5 %.
fn coverage(sessions: u64, seed: u64) -> (f64, f64) {
    const REPEATS: u32 = 2_000;
    let mut source = Stream::new(seed);
    let mut normal = || norm_ppf(((source.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64);
    let (mut between, mut plain) = (0_u32, 0_u32);
    for _ in 0..REPEATS {
        let rows: Vec<Vec<f64>> = (0..sessions)
            .map(|_| {
                let level = 1.0 + 0.05 * normal();
                (0..8).map(|_| level * (1.0 + 0.01 * normal())).collect()
            })
            .collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let told = in_sessions(&rows, Aggregate::Arithmetic, Headline::Mean);
        between += u32::from(told.headline.interval.unwrap().contains(1.0));
        plain += u32::from(told.mean.interval.unwrap().contains(1.0));
    }
    (
        f64::from(between) / f64::from(REPEATS),
        f64::from(plain) / f64::from(REPEATS),
    )
}

#[test]
fn intervals_between_sessions_hold_what_they_promise() {
    for sessions in [2, 4] {
        let (between, plain) = coverage(sessions, sessions);
        assert!((0.93..0.97).contains(&between), "{sessions}: {between}");
        assert!(plain < 0.7, "{sessions}: {plain}");
    }
}
