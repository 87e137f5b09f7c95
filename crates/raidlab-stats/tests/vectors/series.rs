//! Series inside a run, many comparisons, and caches.

use crate::{Case, ends, floats};
use raidlab_stats::autocorr::{autocorrelation, effective_sample_size, ljung_box, subsession_ci};
use raidlab_stats::cache::{CacheEvidence, cache_verdict, cached_read_bandwidth, hit_fraction};
use raidlab_stats::changepoint::{MIN_SEGMENT, change_points};
use raidlab_stats::friedman::friedman;
use raidlab_stats::mser::mser;
use raidlab_stats::multiple::{benjamini_hochberg, holm};
use raidlab_stats::runs::runs_required;
use raidlab_stats::steady::{SniaOutcome, SniaRule, SniaWindow};
use raidlab_stats::two_level::two_level;
use raidlab_stats::{Confidence, Sample};
use serde_json::{Value, json};

pub(crate) fn series(function: &str, case: &Case) -> Option<Value> {
    let window = |w: &SniaWindow| {
        json!({
            "avg": w.average, "range_excursion": w.range_excursion, "slope": w.slope,
            "slope_excursion": w.slope_excursion, "steady": w.steady,
        })
    };
    Some(match function {
        "autocorrelation" => {
            let x = case.sample("x");
            let lags: Vec<usize> = case.numbers("lags").iter().map(|&k| k as usize).collect();
            let r: Vec<Option<f64>> = lags.iter().map(|&k| autocorrelation(&x, k)).collect();
            let test = ljung_box(&x, lags.len()).unwrap();
            let ess = effective_sample_size(&x);
            json!({ "r": r, "ljung_box_Q5": test.q, "p": test.p, "ess_ar1": ess })
        }
        "subsession_ci" => {
            let limit = case.number("ac_limit");
            let groups = usize::try_from(case.whole("min_subsessions")).unwrap();
            let r = subsession_ci(&case.sample("x"), limit, groups, case.confidence()).unwrap();
            let trace: Vec<Value> = r.trace.iter().map(|s| json!([s.q, s.m, s.r1])).collect();
            let last = r.trace.last().unwrap();
            json!({
                "q": last.q, "m": last.m, "r1": last.r1, "mean": r.estimate.value,
                "ci": ends(&r.estimate), "naive_ci": ends(&r.naive), "converged": r.converged,
                "trace": trace,
            })
        }
        "snia_window" => {
            let rule = SniaRule {
                range_limit: case.number("range_limit"),
                slope_limit: case.number("slope_limit"),
                ..SniaRule::default()
            };
            window(&rule.window(&case.numbers("y")).unwrap())
        }
        "snia_first_steady" => {
            let rule = SniaRule {
                window: usize::try_from(case.whole("window")).unwrap(),
                max_rounds: usize::try_from(case.whole("max_rounds")).unwrap(),
                ..SniaRule::default()
            };
            let SniaOutcome::Steady(found) = rule.first_steady(&case.numbers("y")).unwrap() else {
                panic!("no steady window")
            };
            let mut fields = window(&found);
            fields["first_steady_round_1based"] = json!(found.start + rule.window);
            fields["window_start_1based"] = json!(found.start + 1);
            fields
        }
        "mser" => {
            let r = mser(
                &case.numbers("x"),
                usize::try_from(case.whole("m")).unwrap(),
            )
            .unwrap();
            json!({
                "batches": r.batches, "d_batches": r.drop_batches, "drop_samples": r.drop_samples,
                "value": r.value, "mean_after": r.mean_after, "valid": r.steady,
            })
        }
        "optimal_partition_l2" => {
            assert_eq!(case.whole("min_segment"), MIN_SEGMENT as u64);
            let r = change_points(&case.numbers("x"), MIN_SEGMENT).unwrap();
            json!({
                "sigma": r.sigma, "beta": r.penalty, "changepoints": r.at,
                "segment_means": r.segment_means,
            })
        }
        _ => return None,
    })
}

pub(crate) fn many_and_cache(function: &str, case: &Case) -> Option<Value> {
    Some(match function {
        "runs_needed" => {
            let widths = case.numbers("half_width");
            let row = |cv: f64| -> Vec<u64> {
                widths
                    .iter()
                    .map(|&w| runs_required(cv, w, Confidence::P95).unwrap())
                    .collect()
            };
            json!({ "n": case.numbers("cv").into_iter().map(row).collect::<Vec<_>>() })
        }
        "holm" => json!({ "adj": holm(&case.numbers("p")).unwrap() }),
        "benjamini_hochberg" => json!({ "adj": benjamini_hochberg(&case.numbers("p")).unwrap() }),
        "friedman" => {
            let names = case.input["groups"].as_array().unwrap();
            let groups: Vec<Sample> = names
                .iter()
                .map(|g| Sample::new(case.resolve(g)).unwrap())
                .collect();
            let r = friedman(&groups).unwrap();
            json!({ "chi2": r.chi_squared, "p": r.p })
        }
        "two_level_ci" => {
            let rows = case.input["y"].as_array().unwrap().iter().map(floats);
            let sessions: Vec<Sample> = rows.map(|r| Sample::new(r).unwrap()).collect();
            let (run, session) = (case.number("c1"), case.number("c2"));
            let r = two_level(&sessions, run, session, Confidence::P95).unwrap();
            json!({
                "mean": r.estimate.value, "S1": r.s1_squared, "S2": r.s2_squared,
                "T1": r.s1_squared, "T2": r.t2_squared, "ci": ends(&r.estimate),
                "r1_opt": r.best_runs,
            })
        }
        "cached_read_bandwidth" => {
            let (size, cache, disk) = (
                case.number("cache_MB"),
                case.number("cache_MBps"),
                case.number("disk_MBps"),
            );
            let of = |s: f64| cached_read_bandwidth(s, size, cache, disk).unwrap();
            json!({ "MBps": case.numbers("size_MB").into_iter().map(of).collect::<Vec<_>>() })
        }
        "hit_fraction_from_bandwidth" => {
            let (cache, disk) = (case.number("cache_MBps"), case.number("disk_MBps"));
            let of = |bw: f64| hit_fraction(bw, cache, disk).unwrap();
            json!({ "h": case.numbers("bw").into_iter().map(of).collect::<Vec<_>>() })
        }
        "cache_verdict" => {
            let of = |c: &Value| {
                let evidence = CacheEvidence {
                    bandwidth: c["bw"].as_f64().unwrap(),
                    media_limit: c["limit"].as_f64(),
                    link_limit: None,
                    app_bytes: c["app_bytes"].as_f64().unwrap(),
                    device_bytes: c["dev_bytes"].as_f64().unwrap(),
                    tolerance: case.number("tol"),
                };
                cache_verdict(&evidence).unwrap().to_string()
            };
            let cases = case.input["cases"].as_array().unwrap();
            json!({ "verdict": cases.iter().map(of).collect::<Vec<_>>() })
        }
        _ => return None,
    })
}
