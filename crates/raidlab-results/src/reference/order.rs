//! Whether a model puts the rows of a study in the order that was measured: who chooses a layout asks which is
//! faster before asking by how much.
use super::Prediction;
use serde::{Deserialize, Serialize};

/// Published figures that are less apart are not taken for different: nearly all are single runs, and which of two
/// equal arrays came first by chance is nothing that a model should know.
const APART: f64 = 1.05;
/// Predicted figures that are less apart than this are taken for equal: rounds differ by as much.
const LEVEL: f64 = 1.02;

/// Two rows of which the study found one to be faster, and the model does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misordered {
    /// The phase.
    pub phase: String,
    /// The row with the higher published figure.
    pub higher: String,
    /// The row with the lower one.
    pub lower: String,
    /// Published figure of the one by that of the other, above 1.
    pub published: f64,
    /// The same of the predicted figures.
    pub predicted: f64,
}

impl Misordered {
    /// The model has the two as good as equal; otherwise the other way round.
    #[must_use]
    pub fn level(&self) -> bool {
        self.predicted > 1.0 / LEVEL
    }
}

/// The pairs of rows that a study tells apart, phase by phase, and those of them that the model has otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ordering {
    /// Pairs of rows whose published figures of a phase are more than 5 % apart.
    pub pairs: usize,
    /// Pairs that the model puts in the same order, by 2 % at least.
    pub alike: usize,
    /// The others.
    pub misordered: Vec<Misordered>,
}

impl Ordering {
    /// Kendall's τ of the pairs that are told apart: 1 when the model has all of them in the measured order, -1
    /// when it has all reversed; pairs that it has as equal count as neither. `None` without pairs.
    #[must_use]
    pub fn tau(&self) -> Option<f64> {
        let reversed = self.misordered.iter().filter(|m| !m.level()).count();
        (self.pairs > 0).then(|| (self.alike as f64 - reversed as f64) / self.pairs as f64)
    }

    /// Those of several studies together.
    #[must_use]
    pub fn of_all(all: &[Prediction]) -> Self {
        let mut joined = Self::default();
        for one in all.iter().map(Prediction::ordering) {
            joined.pairs += one.pairs;
            joined.alike += one.alike;
            joined.misordered.extend(one.misordered);
        }
        joined
    }
}

impl Prediction {
    /// Every pair of rows that the study's figures of a phase tell apart, held to the model's figures of the two.
    #[must_use]
    pub fn ordering(&self) -> Ordering {
        let mut ordering = Ordering::default();
        let known = |f: &super::PredictedFigure| f.published.zip(f.predicted);
        for (at, one) in self.figures.iter().enumerate() {
            for other in self.figures[at + 1..]
                .iter()
                .filter(|f| f.phase == one.phase)
            {
                let (Some(a), Some(b)) = (known(one), known(other)) else {
                    continue;
                };
                let ((higher, up), (lower, down)) = if a.0 >= b.0 {
                    ((one, a), (other, b))
                } else {
                    ((other, b), (one, a))
                };
                let (published, predicted) = (up.0 / down.0, up.1 / down.1);
                if published < APART || !predicted.is_finite() {
                    continue;
                }
                ordering.pairs += 1;
                if predicted >= LEVEL {
                    ordering.alike += 1;
                    continue;
                }
                ordering.misordered.push(Misordered {
                    phase: one.phase.clone(),
                    higher: higher.row.clone(),
                    lower: lower.row.clone(),
                    published,
                    predicted,
                });
            }
        }
        ordering
    }
}

#[cfg(test)]
mod tests {
    use super::super::PredictedFigure;
    use super::*;
    use crate::record::Unit;

    fn figure(row: &str, published: Option<f64>, predicted: Option<f64>) -> PredictedFigure {
        PredictedFigure {
            row: row.to_owned(),
            phase: "read".to_owned(),
            unit: Unit::BytesPerSecond,
            predicted,
            published,
            withheld: false,
            error: None,
            cpu_percent: (None, None),
            why: None,
        }
    }

    fn ordering(figures: &[(&str, Option<f64>, Option<f64>)]) -> Ordering {
        let figures = figures.iter();
        let figures =
            figures.map(|(row, published, predicted)| figure(row, *published, *predicted));
        let prediction = Prediction {
            study: "made".to_owned(),
            figures: figures.collect(),
            findings: Vec::new(),
        };
        prediction.ordering()
    }

    #[test]
    fn rows_are_counted_in_pairs_that_the_study_tells_apart() {
        // slow < middle < fast; the twin of the fast one is not told apart from it.
        let told = ordering(&[
            ("slow", Some(50.0), Some(60.0)),
            ("fast", Some(100.0), Some(90.0)),
            ("middle", Some(80.0), Some(91.0)),
            ("twin", Some(103.0), Some(80.0)),
            ("withheld", None, Some(70.0)),
            ("failed", Some(10.0), None),
        ]);
        assert_eq!((told.pairs, told.alike), (5, 3));
        let [level, reversed] = told.misordered.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!(
            (level.higher.as_str(), level.lower.as_str()),
            ("fast", "middle")
        );
        assert!(level.level() && !reversed.level());
        assert_eq!(
            (reversed.higher.as_str(), reversed.lower.as_str()),
            ("twin", "middle")
        );
        // Three alike, one reversed, one as good as equal.
        assert!((told.tau().unwrap() - 2.0 / 5.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_told_apart_has_no_order() {
        assert_eq!(ordering(&[]).tau(), None);
        let equal = ordering(&[("a", Some(100.0), Some(1.0)), ("b", Some(104.0), Some(2.0))]);
        assert_eq!((equal.pairs, equal.tau()), (0, None));
    }

    /// Phases are not compared with each other, and a model that is off by one factor everywhere has every order.
    #[test]
    fn the_studys_own_figures_are_in_its_order() {
        for study in super::super::studies().unwrap() {
            let rows = study.rows.iter().map(|r| (r.name.clone(), r.name.clone()));
            let prediction = study.predicted(
                &rows.collect(),
                &std::collections::BTreeMap::new(),
                &study.trials(),
            );
            let told = prediction.ordering();
            assert_eq!(
                told.alike, told.pairs,
                "{}: {:?}",
                study.id, told.misordered
            );
        }
    }
}
