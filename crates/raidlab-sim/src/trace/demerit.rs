//! How far two distributions of response times lie apart.

/// The demerit of a prediction (Ruemmler and Wilkes, An introduction to disk drive modeling, IEEE
/// Computer 27(3), 1994): the root mean square of the horizontal distance between the two
/// distribution functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demerit {
    /// Root mean square of the distance in nanoseconds.
    pub rms: f64,
    /// The same over the mean of the measured times.
    pub relative: f64,
    /// Mean of the measured times in nanoseconds.
    pub measured_mean: f64,
    /// Mean of the predicted times in nanoseconds.
    pub predicted_mean: f64,
    /// Requests compared.
    pub requests: u64,
}

impl Demerit {
    /// Compares as many measured as predicted times in nanoseconds; sorts both. `None` when there are
    /// none, when the numbers differ, or when all measured times are 0.
    #[must_use]
    pub fn of(measured: &mut [u64], predicted: &mut [u64]) -> Option<Self> {
        if measured.len() != predicted.len() || measured.is_empty() {
            return None;
        }
        measured.sort_unstable();
        predicted.sort_unstable();
        let count = measured.len() as f64;
        let mean =
            |times: &[u64]| times.iter().map(|t| u128::from(*t)).sum::<u128>() as f64 / count;
        let pairs = measured.iter().zip(predicted.iter());
        let squares: f64 = pairs
            .map(|(m, p)| {
                let distance = m.abs_diff(*p) as f64;
                distance * distance
            })
            .sum();
        let rms = libm::sqrt(squares / count);
        let measured_mean = mean(measured);
        (measured_mean > 0.0).then(|| Self {
            rms,
            relative: rms / measured_mean,
            measured_mean,
            predicted_mean: mean(predicted),
            requests: measured.len() as u64,
        })
    }
}
