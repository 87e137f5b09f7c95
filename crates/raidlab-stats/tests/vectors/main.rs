//! Every vector of `stats_vectors.json` (made with scipy, numpy and statsmodels, see its `meta`),
//! each to the tolerance it states. An unknown `fn` is a failure, and so is a result field that
//! the vector expects and the evaluation does not give.

mod series;
mod two_samples;

use raidlab_stats::bootstrap::{Bootstrap, Statistic, bootstrap_bca, bootstrap_exact};
use raidlab_stats::describe::t_ci;
use raidlab_stats::drift::drift;
use raidlab_stats::median::{median_ci_ranks, quantile_ci_ranks};
use raidlab_stats::outlier::outliers;
use raidlab_stats::prng::Stream;
use raidlab_stats::special;
use raidlab_stats::trimmed::trimmed_mean_ci;
use raidlab_stats::{Confidence, Estimate, Sample};
use serde_json::{Value, json};

/// Below this an expected value is the rounding of zero (a jackknife skewness of 1e-14, say), and
/// only its being that small is checked. The smallest p value of the vectors is 7e-12.
const ROUNDING: f64 = 1e-13;

/// Fields that only comment on the expectation: other random numbers, or a restatement.
fn is_informative(name: &str) -> bool {
    name.starts_with("scipy_")
}

struct Case<'a> {
    data: &'a Value,
    input: &'a Value,
}

impl Case<'_> {
    fn number(&self, name: &str) -> f64 {
        self.input[name]
            .as_f64()
            .unwrap_or_else(|| panic!("no number {name}"))
    }

    fn whole(&self, name: &str) -> u64 {
        self.input[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no whole number {name}"))
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.resolve(&self.input[name])
    }

    fn sample(&self, name: &str) -> Sample {
        Sample::new(self.numbers(name)).unwrap()
    }

    fn confidence(&self) -> Confidence {
        self.input["conf"]
            .as_f64()
            .map_or(Confidence::P95, |c| Confidence::new(c).unwrap())
    }

    fn statistic(&self) -> Statistic {
        match self.input["stat"].as_str() {
            Some("mean") => Statistic::Mean,
            Some("trim1") => Statistic::TrimmedMean(1),
            Some("median") => Statistic::Median,
            other => panic!("unknown statistic {other:?}"),
        }
    }

    /// A list, the name of a data set, `name[:k]`, `name in time order` or `name reversed*factor`.
    fn resolve(&self, value: &Value) -> Vec<f64> {
        let Some(text) = value.as_str() else {
            return floats(value);
        };
        let set = |name: &str| floats(&self.data[name]);
        if let Some(name) = text.strip_suffix(" in time order") {
            return set(name);
        }
        if let Some((name, rest)) = text.split_once("[:") {
            let count: usize = rest.trim_end_matches(']').parse().unwrap();
            return set(name)[..count].to_vec();
        }
        if let Some((name, factor)) = text.split_once(" reversed*") {
            let factor: f64 = factor.parse().unwrap();
            return set(name).into_iter().rev().map(|x| x * factor).collect();
        }
        set(text)
    }
}

fn floats(value: &Value) -> Vec<f64> {
    let list = value
        .as_array()
        .unwrap_or_else(|| panic!("not a list or data set: {value}"));
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn ends(estimate: &Estimate) -> Value {
    estimate
        .interval
        .map_or(Value::Null, |i| json!([i.lo, i.hi]))
}

/// Results in the vector's own field names.
fn evaluate(function: &str, case: &Case) -> Option<Value> {
    random_and_special(function, case)
        .or_else(|| one_sample(function, case))
        .or_else(|| two_samples::ratios(function, case))
        .or_else(|| two_samples::tests(function, case))
        .or_else(|| series::series(function, case))
        .or_else(|| series::many_and_cache(function, case))
}

fn random_and_special(function: &str, case: &Case) -> Option<Value> {
    let each = |name: &str, f: &dyn Fn(f64) -> f64| {
        case.numbers(name).into_iter().map(f).collect::<Vec<f64>>()
    };
    let rows = |name: &str| -> Vec<Vec<f64>> {
        case.input[name]
            .as_array()
            .unwrap()
            .iter()
            .map(floats)
            .collect()
    };
    Some(match function {
        "xoshiro256starstar" => {
            let mut stream = Stream::new(case.whole("seed"));
            let hex: Vec<String> = (0..4)
                .map(|_| format!("{:016x}", stream.next_u64()))
                .collect();
            json!({ "first4_hex": hex })
        }
        "bounded_index" => {
            let mut stream = Stream::new(case.whole("seed"));
            let n = u32::try_from(case.whole("n")).unwrap();
            let idx: Vec<usize> = (0..case.whole("count")).map(|_| stream.index(n)).collect();
            json!({ "idx": idx })
        }
        "norm_ppf" => json!({ "z": each("p", &special::norm_ppf) }),
        "norm_cdf" => json!({ "p": each("z", &special::norm_cdf) }),
        "t_ppf" => json!({ "t": each_df(case, "p", &special::t_ppf) }),
        "t_cdf" => json!({ "p": each_df(case, "t", &special::t_cdf) }),
        "betainc_regularized" => {
            let values: Vec<f64> = rows("abx")
                .iter()
                .map(|r| special::beta_inc(r[0], r[1], r[2]))
                .collect();
            json!({ "I": values })
        }
        "gammainc_regularized_upper" => {
            let values: Vec<f64> = rows("ax")
                .iter()
                .map(|r| special::gamma_inc_upper(r[0], r[1]))
                .collect();
            json!({ "Q": values })
        }
        _ => return None,
    })
}

fn each_df(case: &Case, name: &str, f: &dyn Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
    let values = case.numbers(name);
    case.numbers("df")
        .iter()
        .map(|&df| values.iter().map(|&v| f(v, df)).collect())
        .collect()
}

fn one_sample(function: &str, case: &Case) -> Option<Value> {
    let confidence = case.confidence();
    Some(match function {
        "describe" => {
            let x = case.sample("x");
            let quantiles: serde_json::Map<String, Value> =
                ["0.05", "0.25", "0.75", "0.95", "0.99"]
                    .iter()
                    .map(|p| ((*p).to_owned(), json!(x.quantile(p.parse().unwrap()))))
                    .collect();
            json!({
                "n": x.len(), "mean": x.mean(), "var": x.variance(), "sd": x.sd(), "cv": x.cv(),
                "sem": x.sem(), "min": x.min(), "max": x.max(), "median": x.median(),
                "mad_raw": x.mad(), "q": quantiles, "gmean": x.geometric_mean().unwrap(),
                "hmean": x.harmonic_mean().unwrap(),
            })
        }
        "trimmed_mean_ci" => {
            let k = usize::try_from(case.whole("k")).unwrap();
            let r = trimmed_mean_ci(&case.sample("x"), k, confidence).unwrap();
            json!({
                "tmean": r.estimate.value, "winsor_mean": r.winsorised_mean,
                "winsor_sd": r.winsorised_sd, "se": r.standard_error, "df": r.df,
                "ci": ends(&r.estimate),
            })
        }
        "t_ci" => json!({ "ci": ends(&t_ci(&case.sample("x"), confidence)) }),
        "median_ci_ranks" => {
            let rows: Vec<Value> = case
                .numbers("n")
                .into_iter()
                .map(|n| median_ci_ranks(n as u64, confidence).unwrap())
                .map(|r| json!([r.lo, r.hi, r.confidence]))
                .collect();
            json!({ "lo_hi_conf": rows })
        }
        "quantile_ci_ranks" => {
            let rows: Vec<Value> = case.input["np"]
                .as_array()
                .unwrap()
                .iter()
                .map(floats)
                .map(|np| quantile_ci_ranks(np[0] as u64, np[1], confidence).unwrap())
                .map(|r| json!([r.lo, r.hi, r.coverage]))
                .collect();
            json!({ "lo_hi_cov": rows })
        }
        "bootstrap_exact_bca" => {
            let x = case.sample("x");
            bootstrap_fields(&bootstrap_exact(&x, case.statistic(), confidence).unwrap())
        }
        "bootstrap_bca" => {
            let resamples = usize::try_from(case.whole("B")).unwrap();
            let seed = case.whole("seed");
            let x = case.sample("x");
            let r = bootstrap_bca(&x, case.statistic(), resamples, seed, confidence).unwrap();
            bootstrap_fields(&r)
        }
        "outlier_flags" => {
            let r = outliers(&case.sample("x"));
            json!({
                "median": r.median, "mad": r.mad, "iglewicz_z": r.scores,
                "iglewicz_flag": r.outliers, "hyperfine_flag": r.severe,
                "tukey_fences": r.tukey_fences, "tukey_flag": r.tukey,
            })
        }
        "drift_test" => {
            let r = drift(&case.sample("x")).unwrap();
            json!({ "tau": r.tau, "p": r.p, "theil_sen_slope": r.slope })
        }
        _ => return None,
    })
}

fn bootstrap_fields(r: &Bootstrap) -> Value {
    json!({
        "z0": r.z0, "a": r.acceleration, "alpha": r.alpha, "ci": ends(&r.estimate),
        "percentile_ci": [r.percentile.lo, r.percentile.hi], "boot_se": r.standard_error,
    })
}

/// Appends one line for each place where `got` differs from `want`.
fn differences(path: &str, want: &Value, got: &Value, rtol: f64, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(fields), _) => {
            for (name, inner) in fields.iter().filter(|(name, _)| !is_informative(name)) {
                match got.get(name) {
                    Some(value) => differences(&format!("{path}.{name}"), inner, value, rtol, out),
                    None => out.push(format!("{path}.{name}: not computed")),
                }
            }
        }
        (Value::Array(wanted), Value::Array(given)) if wanted.len() == given.len() => {
            for (i, (w, g)) in wanted.iter().zip(given).enumerate() {
                differences(&format!("{path}[{i}]"), w, g, rtol, out);
            }
        }
        (Value::Number(w), Value::Number(g)) => {
            let (w, g) = (w.as_f64().unwrap(), g.as_f64().unwrap());
            let allowed = if w.abs() < ROUNDING {
                ROUNDING
            } else {
                rtol * w.abs()
            };
            if (w - g).abs() > allowed {
                out.push(format!("{path}: {g:?}, expected {w:?}"));
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{path}: {got}, expected {want}")),
    }
}

#[test]
fn every_vector_passes_to_its_own_tolerance() {
    let file: Value = serde_json::from_str(include_str!("../stats_vectors.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    let mut failures = Vec::new();
    for vector in vectors {
        let id = vector["id"].as_str().unwrap();
        let function = vector["fn"].as_str().unwrap();
        let rtol = vector["rtol"].as_f64().unwrap();
        let case = Case {
            data: &file["data"],
            input: &vector["input"],
        };
        let outcome = std::panic::catch_unwind(|| evaluate(function, &case));
        match outcome {
            Ok(Some(got)) => differences(id, &vector["expect"], &got, rtol, &mut failures),
            Ok(None) => failures.push(format!("{id}: unknown fn \"{function}\"")),
            Err(_) => failures.push(format!("{id}: panicked")),
        }
    }
    assert_eq!(vectors.len(), 61, "the number of vectors");
    assert!(
        failures.is_empty(),
        "{} differences:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn the_comparison_can_fail() {
    let want = json!({ "p": [0.5, null], "scipy_x": 1.0 });
    let fails = |got: Value| {
        let mut out = Vec::new();
        differences("t", &want, &got, 1e-9, &mut out);
        !out.is_empty()
    };
    assert!(!fails(json!({ "p": [0.5 + 1e-10, null] })));
    assert!(fails(json!({ "p": [0.5 + 1e-8, null] })));
    assert!(fails(json!({ "p": [0.5, 1.0] })));
    assert!(fails(json!({ "p": [0.5] })));
    assert!(fails(json!({})));
    let file = json!({});
    let case = Case {
        data: &file,
        input: &file,
    };
    assert!(evaluate("no such function", &case).is_none());
}
