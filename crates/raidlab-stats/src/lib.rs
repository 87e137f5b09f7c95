//! Sound figures from repeated trials, and verdicts between them.
//!
//! Pure functions on arrays: no clock, file, thread or hidden chance. The same values give the same
//! bits on every machine (software `libm`, a fixed random stream seeded from the data). Nothing
//! panics: bad input is a [`StatsError`] that names the value and the remedy.
//!
//! One number a **run** goes in; the run is the unit of replication. What happened inside a run
//! (one-second series, latencies) has functions of its own.
//!
//! | question | function |
//! |---|---|
//! | How fast is it, and how sure is that? | [`summarise`] (figure, interval, outliers, drift, notes) |
//! | Is B better than A? | [`compare()`], many at once: [`compare::adjust_family`], of several sessions: [`sessions::compare_sessions`] |
//! | Does this pass in CI? | [`gate()`], many at once: [`verdict::gates`] |
//! | Are enough runs made? | [`StoppingRule::decide`], [`runs::runs_required`], [`runs::minimum_detectable`] |
//! | Which runs look wrong? | [`outlier::outliers`], [`outlier::cold_start`], [`drift::drift`] |
//! | Is the device preconditioned? | [`steady::SniaRule`], [`steady::first_stable_window`] |
//! | Where does warm-up end inside a run? | [`mser::mser`] |
//! | Did something switch during the run? | [`course::Course`], of [`changepoint::change_points`] |
//! | What interval has a correlated series? | [`autocorr::subsession_ci`], [`autocorr::ljung_box`] |
//! | Do more than two configurations differ? | [`friedman::friedman`], then [`multiple::holm`] |
//! | What interval have runs of several sessions? | [`summary::summarise_sessions`] |
//! | How to split runs over sessions? | [`two_level::two_level`] |
//! | Was it the disk, or a cache? | [`cache::cache_verdict`], [`cache::hit_fraction`], [`cache_fit::fit_cache`], [`cache_fit::two_modes`] |
//! | What interval has a percentile? | [`median::quantile_ci_ranks`] on the merged histogram |
//! | An interval for another statistic? | [`bootstrap::bootstrap`] (n ≥ 10, smooth statistics) |
//!
//! Choices worth knowing: the headline is the mean without best and worst run (n ≥ 5), its error
//! from the winsorised variance; the median's interval is exact and states its true confidence, and
//! is the one to trust when runs are contaminated. Ratios live on the logarithms, so that B/A and
//! A/B agree. Best-of-n is biased upward and is offered nowhere. Percentiles are never averaged.

#![forbid(unsafe_code)]

pub mod autocorr;
pub mod bootstrap;
pub mod cache;
pub mod cache_fit;
pub mod changepoint;
pub mod compare;
pub mod course;
pub mod describe;
pub mod drift;
mod error;
mod estimate;
pub mod friedman;
pub mod law;
pub mod mann_whitney;
pub mod median;
pub mod mser;
pub mod multiple;
pub mod outlier;
pub mod permutation;
pub mod prng;
mod ranks;
pub mod ratio;
pub mod runs;
mod sample;
pub mod sessions;
pub mod special;
pub mod steady;
pub mod stopping;
pub mod summary;
pub mod trimmed;
pub mod two_level;
pub mod verdict;
pub mod welch;
pub mod wilcoxon;

pub use compare::{Comparison, Criteria, Pairing, compare};
pub use error::StatsError;
pub use estimate::{Confidence, Estimate, Flag, Interval, Method};
pub use sample::Sample;
pub use stopping::{Decision, StopReason, StoppingRule};
pub use summary::{Aggregate, Headline, Summary, summarise};
pub use verdict::{Direction, Gate, Verdict, gate};
