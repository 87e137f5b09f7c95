//! Ratios and tests of two samples.

use crate::{Case, ends};
use raidlab_stats::Sample;
use raidlab_stats::bootstrap::bootstrap_ratio;
use raidlab_stats::mann_whitney::{hodges_lehmann, mann_whitney, min_two_sided_p};
use raidlab_stats::permutation::{permutation_test, sign_flip_test};
use raidlab_stats::ratio::{fieller_ratio, log_ratios, paired_log_ratio, unpaired_log_ratio};
use raidlab_stats::welch::welch_t;
use raidlab_stats::wilcoxon::wilcoxon_signed_rank;
use serde_json::{Value, json};

use crate::floats;
pub(crate) fn ratios(function: &str, case: &Case) -> Option<Value> {
    let confidence = case.confidence();
    let pair = || (case.sample("a"), case.sample("b"));
    Some(match function {
        "paired_log_ratio_ci" => {
            let (a, b) = pair();
            let r = paired_log_ratio(&a, &b, confidence).unwrap();
            let sd = log_ratios(&a, &b).unwrap().sd();
            json!({ "ratio": r.ratio.value, "ci": ends(&r.ratio), "t": r.t, "p": r.p, "sd_log": sd })
        }
        "unpaired_log_ratio_ci" => {
            let (a, b) = pair();
            let r = unpaired_log_ratio(&a, &b, confidence).unwrap();
            json!({ "ratio": r.ratio.value, "df": r.df, "ci": ends(&r.ratio) })
        }
        "fieller_ratio_ci" => {
            let (a, b) = pair();
            let r = fieller_ratio(&a, &b, confidence).unwrap();
            let bounded = r.ratio.interval.is_some();
            json!({
                "ratio": r.ratio.value, "g": r.g, "df": r.df, "ci": ends(&r.ratio),
                "bounded": bounded,
            })
        }
        "log_ratio_bootstrap" => {
            let (a, b) = pair();
            let resamples = usize::try_from(case.whole("B")).unwrap();
            let seed = case.whole("seed");
            let r = bootstrap_ratio(&a, &b, case.statistic(), resamples, seed, confidence).unwrap();
            json!({ "ratio": r.value, "percentile_ci": ends(&r) })
        }
        _ => return None,
    })
}

pub(crate) fn tests(function: &str, case: &Case) -> Option<Value> {
    let confidence = case.confidence();
    let pair = || (case.sample("a"), case.sample("b"));
    Some(match function {
        "welch_t" => {
            let (a, b) = pair();
            let r = welch_t(&a, &b, confidence).unwrap();
            json!({ "t": r.t, "df": r.df, "p": r.p, "diff": r.difference, "ci_diff": r.ci })
        }
        "mann_whitney" => {
            let (a, b) = pair();
            let r = mann_whitney(&a, &b);
            assert_eq!(
                r.exact,
                case.input["method"] == "exact",
                "which distribution was used"
            );
            json!({ "U": r.u, "p": r.p, "a12": r.a12, "cliffs_delta": r.cliffs_delta })
        }
        "hodges_lehmann_shift" => {
            let (a, b) = pair();
            let r = hodges_lehmann(&a, &b, confidence).unwrap();
            let reached = r.shift.interval.map(|i| i.confidence);
            json!({ "shift": r.shift.value, "k": r.k, "ci": ends(&r.shift), "conf": reached })
        }
        "mann_whitney_min_two_sided_p" => {
            let pairs = case.input["n"].as_array().unwrap().iter().map(floats);
            let p: Vec<f64> = pairs
                .map(|n| min_two_sided_p(n[0] as usize, n[1] as usize))
                .collect();
            json!({ "p": p })
        }
        "permutation_test_mean_diff" => {
            let (a, b) = pair();
            let r = permutation_test(&a, &b).unwrap();
            assert_eq!(
                (r.arrangements, r.seed),
                (252, None),
                "every arrangement was looked at"
            );
            json!({ "diff": r.statistic, "p": r.p })
        }
        "sign_flip_test" => {
            let (a, b) = pair();
            let r = sign_flip_test(&log_ratios(&a, &b).unwrap()).unwrap();
            assert_eq!(
                (r.arrangements, r.seed),
                (256, None),
                "every arrangement was looked at"
            );
            json!({ "stat": r.statistic, "p": r.p })
        }
        "wilcoxon_signed_rank" => {
            assert_eq!(case.input["d"], "ln(B10/A10)");
            let a = Sample::new(case.resolve(&json!("A10"))).unwrap();
            let b = Sample::new(case.resolve(&json!("B10"))).unwrap();
            let r = wilcoxon_signed_rank(&log_ratios(&a, &b).unwrap());
            json!({ "W": r.w, "p": r.p })
        }
        _ => return None,
    })
}
