//! What can be wrong with a request for a statistic.

/// Why a statistic could not be computed. Every public function that can fail says so with this.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// No value at all.
    #[error("no values: a statistic needs at least one finished run")]
    Empty,
    /// A NaN or an infinity among the values.
    #[error(
        "value {index} is {value}: only finite numbers can be summarised; drop or repeat that run"
    )]
    NotFinite {
        /// Position in run order, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A magnitude at which squares would over- or underflow.
    #[error(
        "value {index} is {value:e}: magnitudes outside 1e-140 to 1e140 cannot be computed with; \
         use another unit"
    )]
    OutOfRange {
        /// Position in run order, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A zero or negative value where a logarithm, reciprocal or ratio is needed.
    #[error("value {index} is {value}: {purpose} needs values above zero")]
    NotPositive {
        /// Position in run order, from 0.
        index: usize,
        /// The offending value.
        value: f64,
        /// What needed it to be positive.
        purpose: &'static str,
    },
    /// Fewer values than the method can work with.
    #[error("{purpose} needs at least {needed} values, got {got}: make more runs")]
    TooFew {
        /// What was asked for.
        purpose: &'static str,
        /// Smallest number that will do.
        needed: usize,
        /// Number given.
        got: usize,
    },
    /// More values than a method of quadratic (or worse) cost accepts.
    #[error("{purpose} accepts at most {limit} values, got {got}: average neighbours first")]
    TooMany {
        /// What was asked for.
        purpose: &'static str,
        /// Largest number accepted.
        limit: usize,
        /// Number given.
        got: usize,
    },
    /// Paired data of different lengths, or rows of a table that do not match.
    #[error("paired values must come in equal numbers: {left} against {right}")]
    UnequalLengths {
        /// Length of the first series.
        left: usize,
        /// Length of the second series.
        right: usize,
    },
    /// A parameter outside its domain.
    #[error("{name} is {value}: {allowed}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: f64,
        /// What would have been accepted.
        allowed: &'static str,
    },
}

/// `Ok(value)` when it is finite and above zero, else a [`StatsError::Parameter`] naming it.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, StatsError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(StatsError::Parameter {
            name,
            value,
            allowed: "it must be a finite number above zero",
        })
    }
}

/// Fails unless `got >= needed`.
pub(crate) fn at_least(purpose: &'static str, needed: usize, got: usize) -> Result<(), StatsError> {
    if got >= needed {
        Ok(())
    } else {
        Err(StatsError::TooFew {
            purpose,
            needed,
            got,
        })
    }
}

/// Fails unless `got <= limit`.
pub(crate) fn at_most(purpose: &'static str, limit: usize, got: usize) -> Result<(), StatsError> {
    if got <= limit {
        Ok(())
    } else {
        Err(StatsError::TooMany {
            purpose,
            limit,
            got,
        })
    }
}
