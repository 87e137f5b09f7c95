//! From an experiment to its trials in order.
use crate::experiment::{Aggregate, Experiment, Order};
use raidlab_core::rng::{Stream, shuffle};
use raidlab_core::words::count;

/// One run of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its place among all trials, from 0.
    pub order: u32,
    /// Its round, from 0. Each round holds each cell once.
    pub round: u32,
    /// Its cell: a place in [`Experiment::cells`].
    pub cell: usize,
    /// Of its operations and models. All cells of a round have the same one, so that they do the same
    /// operations and differ in what is varied alone.
    pub seed: u64,
}

/// The trials of an experiment in the order in which they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'e> {
    /// The experiment.
    pub experiment: &'e Experiment,
    /// The seed of order and trials.
    pub seed: u64,
    /// The trials.
    pub trials: Vec<Trial>,
}

/// Streams of one seed.
const ORDER: u64 = 1;
const TRIALS: u64 = 2;

/// The trials: for each round all cells once, in an order that depends on the seed and the round
/// alone. `experiment.design.seed` is the seed of the file.
#[must_use]
pub fn expand(experiment: &Experiment, seed: u64) -> Plan<'_> {
    let root = Stream::new(seed);
    let mut trials = Vec::new();
    let mut order = 0;
    for round in 0..experiment.design.repeats {
        let mut cells: Vec<usize> = (0..experiment.cells.len()).collect();
        if experiment.design.order == Order::Randomised {
            shuffle(&mut cells, root.child(ORDER).child(u64::from(round)));
        }
        let trial_seed = root.child(TRIALS).at(u64::from(round));
        for cell in cells {
            trials.push(Trial {
                order,
                round,
                cell,
                seed: trial_seed,
            });
            order += 1;
        }
    }
    Plan {
        experiment,
        seed,
        trials,
    }
}

impl Plan<'_> {
    /// What is to be run, in lines for a reader.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let experiment = self.experiment;
        let mut lines = vec![experiment.title.clone()];
        lines.extend(experiment.question.clone());
        let cells = experiment.cells.len();
        let left_out = match experiment.excluded {
            0 => String::new(),
            n => format!(" ({} left out)", count(n, "combination")),
        };
        let order = match experiment.design.order {
            Order::Randomised => format!("randomised within rounds by seed {}", self.seed),
            Order::Declared => "as declared".to_owned(),
        };
        lines.push(format!(
            "{}{left_out}, {} of each: {}, {order}",
            count(cells, "cell"),
            count(experiment.design.repeats, "trial"),
            count(self.trials.len(), "trial"),
        ));
        let width = experiment.factors.iter().map(|f| f.name.chars().count());
        let width = width.max().unwrap_or(0);
        for factor in &experiment.factors {
            // Names of levels may have commas of their own: "2 disks, 1 channel".
            let between = match factor.levels.iter().any(|level| level.contains(',')) {
                true => "; ",
                false => ", ",
            };
            let levels = factor.levels.join(between);
            lines.push(format!("  {:width$}  {levels}", factor.name));
        }
        lines.push(format!("disks: {}", self.disks()));
        lines.push(format!("profiles: {}", self.profiles()));
        lines.push(format!("judged by: {}", self.judging()));
        if let Some(expected) = &experiment.expected {
            lines.push(format!(
                "beside published figures: study {}, {}",
                expected.study,
                count(expected.rows.len(), "row")
            ));
        }
        lines
    }

    fn disks(&self) -> String {
        let mut models: Vec<(&str, usize)> = Vec::new();
        for disk in &self.experiment.disks {
            match models.iter_mut().find(|(model, _)| *model == disk.model) {
                Some((_, n)) => *n += 1,
                None => models.push((&disk.model, 1)),
            }
        }
        let each: Vec<String> = models.iter().map(|(m, n)| format!("{n} x {m}")).collect();
        each.join(", ")
    }

    fn profiles(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.experiment.cells {
            let name = cell.setup.profile.name();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }

    fn judging(&self) -> String {
        let design = &self.experiment.design;
        let figure = match design.aggregate {
            Aggregate::Mean => "mean".to_owned(),
            Aggregate::Median => "median".to_owned(),
            Aggregate::Trimmed => {
                let ends = match design.trim {
                    1 => "best and worst trial".to_owned(),
                    n => format!("{n} best and {n} worst trials"),
                };
                format!("mean without the {ends} of {}", design.repeats)
            }
        };
        let margin = (design.margin * 1e4).round() / 1e2;
        match &design.baseline {
            Some(baseline) => {
                format!("{figure}, against {baseline}, equivalent within {margin} %")
            }
            None => format!("{figure}, without a baseline"),
        }
    }
}
