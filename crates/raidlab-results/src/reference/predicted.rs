//! Predicted figures of a study's rows beside the published ones: how far the model is off, and whether
//! what the study found holds in it.
use super::checks::SECOND_FAILURES;
use super::{Checked, Published, Study};
use crate::record::{Status, TrialRecord, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure of the model, beside the published one where there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedFigure {
    /// The study's row, or the cell where the study has no rows.
    pub row: String,
    /// The phase.
    pub phase: String,
    /// Unit of both values.
    pub unit: Unit,
    /// The model's figure: the mean of its trials. `None` when it has none.
    pub predicted: Option<f64>,
    /// The published figure; `None` when it is withheld or was too fast to be timed.
    pub published: Option<f64>,
    /// It was measured, but is not given.
    pub withheld: bool,
    /// predicted / published - 1.
    pub error: Option<f64>,
    /// Share of a processor in per cent as predicted and as published.
    pub cpu_percent: (Option<f64>, Option<f64>),
    /// What limits the phase in the model.
    pub why: Option<String>,
}

/// All predicted figures of a study, and its findings checked on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Id of the study.
    pub study: String,
    /// Row by row, phase by phase.
    pub figures: Vec<PredictedFigure>,
    /// The findings on the predicted figures alone.
    pub findings: Vec<Checked>,
}

impl Prediction {
    /// The figures that are off by most, worst first: those with a published value.
    #[must_use]
    pub fn errors(&self) -> Vec<&PredictedFigure> {
        let mut all: Vec<&PredictedFigure> =
            self.figures.iter().filter(|f| f.error.is_some()).collect();
        let size = |f: &PredictedFigure| f.error.map_or(0.0, f64::abs);
        all.sort_by(|a, b| size(b).total_cmp(&size(a)));
        all
    }

    /// Median of the absolute errors; `None` when nothing can be compared.
    #[must_use]
    pub fn median_error(&self) -> Option<f64> {
        median_error(std::slice::from_ref(self))
    }

    /// Largest absolute error.
    #[must_use]
    pub fn worst_error(&self) -> Option<f64> {
        self.errors().first()?.error.map(f64::abs)
    }
}

/// Median of the absolute errors of several studies together.
#[must_use]
pub fn median_error(all: &[Prediction]) -> Option<f64> {
    let errors = all.iter().flat_map(|p| &p.figures).filter_map(|f| f.error);
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let n = errors.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(errors[n / 2]),
        _ => Some(0.5 * (errors[n / 2 - 1] + errors[n / 2])),
    }
}

impl Study {
    /// Sets what a model made of the study's experiment beside what was published. `rows` has the label
    /// of the cell by the name of the row; cells that are no row go by their label. `second` has the
    /// share of second failures that the array of a cell survives, by the cell's label.
    #[must_use]
    pub fn predicted(
        &self,
        rows: &BTreeMap<String, String>,
        second: &BTreeMap<String, f64>,
        trials: &[TrialRecord],
    ) -> Prediction {
        let mut labels: Vec<&str> = Vec::new();
        for trial in trials {
            if !labels.contains(&trial.cell.label.as_str()) {
                labels.push(&trial.cell.label);
            }
        }
        let row_of = |label: &str| {
            let row = rows.iter().find(|(_, cell)| *cell == label);
            row.map_or_else(|| label.to_owned(), |(row, _)| row.clone())
        };
        let cells: Vec<(String, Vec<&TrialRecord>)> = labels
            .into_iter()
            .map(|label| {
                let of_cell = trials.iter().filter(|t| t.cell.label == label);
                (row_of(label), of_cell.collect())
            })
            .collect();
        let figures: Vec<PredictedFigure> = cells
            .iter()
            .flat_map(|(row, trials)| self.figures_of(row, trials))
            .collect();
        let value = |row: &str, phase: &str| {
            if phase == SECOND_FAILURES {
                let label = rows.get(row).map_or(row, String::as_str);
                return second.get(label).copied().map(Published::Value);
            }
            let found = figures.iter().find(|f| f.row == row && f.phase == phase);
            found.and_then(|f| f.predicted).map(Published::Value)
        };
        let names: Vec<&str> = cells.iter().map(|(row, _)| row.as_str()).collect();
        Prediction {
            study: self.id.clone(),
            findings: self.check_predicted(&names, &value),
            figures,
        }
    }

    fn figures_of(&self, row: &str, trials: &[&TrialRecord]) -> Vec<PredictedFigure> {
        let mut phases: Vec<(&str, Unit)> = Vec::new();
        for phase in trials.iter().flat_map(|t| &t.phases) {
            if !phases.iter().any(|(name, _)| *name == phase.phase) {
                phases.push((&phase.phase, phase.unit));
            }
        }
        let known = self.rows.iter().find(|r| r.name == row);
        let one = |(phase, unit): (&str, Unit)| {
            let given = known.and_then(|r| r.figures.iter().find(|f| f.phase == phase));
            let records = || {
                let complete = trials.iter().filter(|t| t.status == Status::Complete);
                complete.flat_map(move |t| t.phases.iter().filter(move |p| p.phase == phase))
            };
            // The published figures were taken as the tool printed them, caches and all.
            let predicted = mean(records().filter_map(|p| p.rate));
            let published = given.and_then(|f| match f.value {
                Published::Value(value) => Some(value),
                Published::TooFast | Published::Withheld => None,
            });
            let why = records().find_map(|p| p.explained.as_ref());
            PredictedFigure {
                row: row.to_owned(),
                phase: phase.to_owned(),
                unit,
                predicted,
                published,
                withheld: given.is_some_and(|f| f.value == Published::Withheld),
                error: predicted.zip(published).map(|(p, m)| p / m - 1.0),
                cpu_percent: (
                    mean(records().filter_map(|p| p.cpu_percent)),
                    given.and_then(|f| f.cpu_percent),
                ),
                why: why.map(|explained| explained.why.clone()),
            }
        };
        phases.into_iter().map(one).collect()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0_u32, 0.0), |(n, sum), value| (n + 1, sum + value));
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::super::{Told, study};
    use super::*;

    /// A model that is right to `factor`.
    fn made(id: &str, factor: f64) -> Prediction {
        let study = study(id).unwrap().unwrap();
        let mut trials = study.trials();
        for phase in trials.iter_mut().flat_map(|t| &mut t.phases) {
            // What is withheld, the model has all the same.
            phase.flags.clear();
            phase.rate = Some(phase.rate.unwrap_or(1e6) * factor);
        }
        let rows = study.rows.iter().map(|r| (r.name.clone(), r.name.clone()));
        study.predicted(&rows.collect(), &BTreeMap::new(), &trials)
    }

    #[test]
    fn errors_are_those_of_the_figures_that_are_given() {
        let prediction = made("pata-raid0", 1.1);
        assert_eq!(prediction.errors().len(), 5 * 4);
        assert!((prediction.median_error().unwrap() - 0.1).abs() < 1e-9);
        assert!((prediction.worst_error().unwrap() - 0.1).abs() < 1e-9);
        let withheld = prediction.figures.iter().filter(|f| f.withheld);
        assert!(withheld.clone().count() > 0);
        assert!(
            withheld
                .clone()
                .all(|f| f.error.is_none() && f.predicted.is_some())
        );
    }

    /// Half of the figures within 5 %, the worst within 15 %: else it is told as bad.
    #[test]
    fn accuracy_is_told_as_good_or_bad() {
        use crate::report::document::Tone;
        let tones = |factor: f64| {
            let document = crate::report::predictions_report(&[made("pata-raid0", factor)], "");
            let mut tables = document.tables();
            let row = tables.next().unwrap().rows[0].clone();
            [row[2].tone, row[3].tone]
        };
        assert_eq!(tones(1.01), [Tone::Good; 2]);
        assert_eq!(tones(1.1), [Tone::Bad, Tone::Good]);
        assert_eq!(tones(0.7), [Tone::Bad; 2]);
    }

    #[test]
    fn findings_are_checked_on_predictions() {
        let prediction = made("scsi-hdbench", 1.0);
        let of = |told| {
            prediction
                .findings
                .iter()
                .filter(|c| c.told == told)
                .count()
        };
        assert_eq!(of(Told::Withheld), 0, "a model withholds nothing");
        assert!(of(Told::Holds) > 10);
        let blocksize = study("pata-blocksize").unwrap().unwrap();
        let none = blocksize.predicted(&BTreeMap::new(), &BTreeMap::new(), &[]);
        assert!(none.findings.iter().all(|c| c.told == Told::NoFigures));
        assert_eq!(none.median_error(), None);
    }

    /// Parts of a finding that go by the same words ("… rewrite") have their own figures.
    #[test]
    fn the_studys_own_figures_stand_beside_each_claim() {
        for id in ["pata-raid0", "scsi-hdbench", "zfs-ashift"] {
            let own = study(id).unwrap().unwrap().check_findings();
            let findings = made(id, 1.3).findings;
            assert_eq!(own.len(), findings.len());
            for (own, checked) in own.iter().zip(&findings) {
                assert_eq!(own.claim, checked.claim);
                let beside = checked.own.as_ref();
                let told = beside.map_or(Told::NoFigures, |o| o.told);
                assert_eq!(told, own.told, "{id}: {}", own.claim);
                assert!(beside.is_none_or(|o| o.evidence == own.evidence));
            }
        }
        let pata = made("pata-raid0", 1.0);
        let against = pata.findings.iter().filter_map(|c| c.own.as_ref());
        let against = against.filter(|own| own.told == Told::DoesNot);
        let evidence: Vec<&str> = against.map(|own| own.evidence.as_str()).collect();
        assert_eq!(
            evidence,
            ["33420 / 36289 = 0.92", "28919 / 30567 = 0.95"],
            "the rows that contradict finding 4"
        );
        let sata = study("sata-md-levels").unwrap().unwrap();
        let none = sata.predicted(&BTreeMap::new(), &BTreeMap::new(), &[]);
        assert!(none.findings.iter().all(|c| c.own.is_none()));
    }

    #[test]
    fn what_is_survived_is_checked_on_the_share_that_is_given() {
        let study = study("sata-md-levels").unwrap().unwrap();
        let told = |raid6: f64, raid10: f64| {
            let second = [("raid6 4 disks", raid6), ("raid10 n2 4 disks", raid10)];
            let label = |(row, share)| (format!("{row}, hdparm -t"), share);
            let second = second.into_iter().map(label).collect();
            let prediction = study.predicted(&BTreeMap::new(), &second, &[]);
            let fifth = prediction.findings.into_iter().filter(|c| c.finding == 5);
            fifth.map(|c| c.told).collect::<Vec<_>>()
        };
        assert_eq!(told(1.0, 2.0 / 3.0), [Told::Holds, Told::Holds]);
        assert_eq!(told(0.5, 1.0), [Told::DoesNot, Told::DoesNot]);
        let none = study.predicted(&BTreeMap::new(), &BTreeMap::new(), &[]);
        assert!(none.findings.iter().all(|c| c.told == Told::NoFigures));
    }
}
