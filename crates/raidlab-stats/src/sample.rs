//! Validated values, in run order.

use crate::error::StatsError;
use serde::{Deserialize, Serialize};

/// Largest magnitude accepted: squares and their sums stay finite.
const LARGEST: f64 = 1e140;
/// Smallest nonzero magnitude accepted: squares do not underflow.
const SMALLEST: f64 = 1e-140;

/// One number per run, in the order the runs were made: at least one value, all finite.
///
/// The run is the unit of replication (Kalibera & Jones 2013): thousands of I/Os or one-second
/// samples inside one run are not independent replicates and belong in [`crate::autocorr`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Sample {
    values: Vec<f64>,
    sorted: Vec<f64>,
}

impl Sample {
    /// Takes the values in run order.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::OutOfRange`].
    pub fn new(values: impl Into<Vec<f64>>) -> Result<Self, StatsError> {
        let values: Vec<f64> = values.into();
        if values.is_empty() {
            return Err(StatsError::Empty);
        }
        for (index, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                return Err(StatsError::NotFinite { index, value });
            }
            if value != 0.0 && !(SMALLEST..=LARGEST).contains(&value.abs()) {
                return Err(StatsError::OutOfRange { index, value });
            }
        }
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { values, sorted })
    }

    /// Number of values; never 0.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a sample is never empty
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values in run order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values in ascending order.
    #[must_use]
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Smallest value.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// Largest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// The natural logarithms, in run order.
    ///
    /// # Errors
    /// [`StatsError::NotPositive`] for a value ≤ 0.
    pub fn ln(&self) -> Result<Self, StatsError> {
        self.require_positive("a logarithm")?;
        Self::new(
            self.values
                .iter()
                .map(|&x| clean(libm::log(x)))
                .collect::<Vec<_>>(),
        )
    }

    /// The reciprocals, in run order: rates of a fixed amount of work become times.
    ///
    /// # Errors
    /// [`StatsError::NotPositive`] for a value ≤ 0.
    pub fn reciprocals(&self) -> Result<Self, StatsError> {
        self.require_positive("a harmonic mean")?;
        Self::new(self.values.iter().map(|&x| 1.0 / x).collect::<Vec<_>>())
    }

    /// Fails with the first value that is not above zero.
    pub(crate) fn require_positive(&self, purpose: &'static str) -> Result<(), StatsError> {
        match self.values.iter().position(|&x| x <= 0.0) {
            None => Ok(()),
            Some(index) => Err(StatsError::NotPositive {
                index,
                value: self.values[index],
                purpose,
            }),
        }
    }
}

/// A difference or logarithm that underflowed below the accepted range is a zero.
pub(crate) fn clean(value: f64) -> f64 {
    if value.abs() < SMALLEST { 0.0 } else { value }
}

impl TryFrom<Vec<f64>> for Sample {
    type Error = StatsError;

    fn try_from(values: Vec<f64>) -> Result<Self, StatsError> {
        Self::new(values)
    }
}

impl From<Sample> for Vec<f64> {
    fn from(sample: Sample) -> Self {
        sample.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_cannot_be_summarised() {
        assert_eq!(Sample::new([]), Err(StatsError::Empty));
        assert!(matches!(
            Sample::new([1.0, f64::NAN]),
            Err(StatsError::NotFinite { index: 1, .. })
        ));
        assert!(matches!(
            Sample::new([f64::INFINITY]),
            Err(StatsError::NotFinite { .. })
        ));
        assert!(matches!(
            Sample::new([1e200]),
            Err(StatsError::OutOfRange { index: 0, .. })
        ));
        assert!(matches!(
            Sample::new([5e-324]),
            Err(StatsError::OutOfRange { .. })
        ));
        assert!(Sample::new([0.0, -0.0, -3.0]).is_ok());
    }

    #[test]
    fn logarithms_name_the_bad_value() {
        let sample = Sample::new([1.0, 0.0]).unwrap();
        let error = sample.ln().unwrap_err();
        assert_eq!(
            error.to_string(),
            "value 1 is 0: a logarithm needs values above zero"
        );
        assert_eq!(Sample::new([1.0]).unwrap().ln().unwrap().values(), [0.0]);
    }

    #[test]
    fn json_is_the_bare_list_and_is_validated() {
        let sample: Sample = serde_json::from_str("[3.0, 1.0]").unwrap();
        assert_eq!(sample.sorted(), [1.0, 3.0]);
        assert_eq!(serde_json::to_string(&sample).unwrap(), "[3.0,1.0]");
        assert!(serde_json::from_str::<Sample>("[]").is_err());
    }
}
