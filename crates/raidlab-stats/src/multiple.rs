//! Many comparisons at once.

use crate::error::StatsError;

/// Holm's (1979) step-down adjusted p values, in the order given: compare each with α to keep the
/// chance of *any* false finding in the family below α. For verdicts.
///
/// # Errors
/// [`StatsError::Parameter`] for a p outside [0, 1]. An empty family is no error.
pub fn holm(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut floor = 0.0_f64;
    for (place, &i) in order.iter().enumerate() {
        floor = floor.max((p.len() - place) as f64 * p[i]).min(1.0);
        adjusted[i] = floor;
    }
    Ok(adjusted)
}

/// Benjamini & Hochberg's (1995) adjusted p values ("q"), in the order given: compare each with
/// the share of false findings one will bear. For dashboards.
///
/// # Errors
/// As [`holm`].
pub fn benjamini_hochberg(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut ceiling = 1.0_f64;
    for (place, &i) in order.iter().enumerate().rev() {
        ceiling = ceiling.min(p.len() as f64 / (place + 1) as f64 * p[i]);
        adjusted[i] = ceiling;
    }
    Ok(adjusted)
}

fn ascending(p: &[f64]) -> Result<Vec<usize>, StatsError> {
    if let Some(&value) = p.iter().find(|v| !(0.0..=1.0).contains(*v)) {
        let allowed = "a p value lies between 0 and 1";
        return Err(StatsError::Parameter {
            name: "p",
            value,
            allowed,
        });
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_nonsense_refused() {
        assert_eq!(holm(&[0.04, 0.01]).unwrap(), [0.04, 0.02]);
        assert_eq!(benjamini_hochberg(&[0.04, 0.01]).unwrap(), [0.04, 0.02]);
        assert!(holm(&[]).unwrap().is_empty());
        assert_eq!(holm(&[0.9, 0.8]).unwrap(), [1.0, 1.0]);
        assert!(holm(&[f64::NAN]).is_err() && benjamini_hochberg(&[1.1]).is_err());
    }
}
