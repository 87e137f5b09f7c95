//! The layouts that are picked from the closing table, with those that cannot be told from them.
use super::{Counted, Line};
use crate::report::analysis::{Judging, Outcome, compare_phase};
use crate::report::blocks::fastest;
use crate::report::format;

/// What layouts are picked from.
pub(super) struct Picks<'p> {
    pub(super) lines: &'p [Line<'p>],
    pub(super) columns: &'p [(&'static str, String)],
    /// What the cells do, where others do something else.
    pub(super) load: Option<&'p str>,
    pub(super) judging: &'p Judging,
}

impl<'p> Picks<'p> {
    pub(super) fn told(&self, base: &str, counted: Counted) -> Vec<String> {
        let capacity = counted.name();
        let of = self
            .load
            .map_or_else(String::new, |load| format!(" of {load}"));
        let mut items = Vec::new();
        items.extend(self.pick(
            &format!(
                "Best value{of} (geometric mean of the ratios × {capacity} / disks, arrays only)"
            ),
            &|line| line.value(),
        ));
        if let Some(price) = self.lines.iter().find_map(|line| line.price) {
            let title = format!(
                "Best value for money{of} (the same × {capacity} / {}, the best being 1, arrays only)",
                price.currency()
            );
            // Of a whole table, so that the best is 1.
            let all = self.arrays().filter_map(Line::value_for_money);
            let best = all.fold(0.0, f64::max);
            items.extend(self.pick(&title, &|line| Some(line.value_for_money()? / best)));
        }
        items.extend(self.pick(
            &format!("Fastest, cost no object{of} (geometric mean of the ratios, arrays only)"),
            &|line| line.throughput(),
        ));
        let unknown = self.arrays().filter(|line| line.throughput().is_none());
        let unknown = unknown.count();
        if unknown > 0 {
            items.push(format!(
                "{} without figures cannot be ranked by throughput; ratios are to {base}",
                format::plural(unknown, "array")
            ));
        }
        items
    }

    fn arrays(&self) -> impl Iterator<Item = &'p Line<'p>> {
        self.lines.iter().filter(|line| line.disks > 1)
    }

    /// The best of all, and of those that survive a failed disk.
    fn pick(&self, title: &str, key: &dyn Fn(&Line<'_>) -> Option<f64>) -> Option<String> {
        let ranked = |safe: bool| {
            let lines = self.arrays().filter(|line| !safe || line.survives > 0);
            let mut all: Vec<(&Line<'_>, f64)> =
                lines.filter_map(|line| Some((line, key(line)?))).collect();
            // Of equal ones the last is taken.
            all.reverse();
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            all
        };
        let (all, safe) = (ranked(false), ranked(true));
        let mut text = format!("{title}: {}", self.names(&all)?);
        if let Some(best) = safe.first()
            && best.0.label != all[0].0.label
            && let Some(names) = self.names(&safe)
        {
            text += &format!("; of those that survive a failed disk: {names}");
        }
        Some(text)
    }

    /// The first with its score, and those that cannot be told from it.
    fn names(&self, ranked: &[(&Line<'_>, f64)]) -> Option<String> {
        let (best, others) = ranked.split_first()?;
        let named =
            |line: &(&Line<'_>, f64)| format!("{} ({})", line.0.label, format::ratio(line.1));
        let alike = others.iter().filter(|other| !self.is_ahead(best, other));
        let mut names: Vec<String> = alike.map(named).collect();
        let more = names.len().saturating_sub(fastest::NAMES);
        names.truncate(fastest::NAMES);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        Some(match names.is_empty() {
            true => named(best),
            false => format!("{}, not told apart from {}", named(best), names.join(", ")),
        })
    }

    /// Whether a score is better by more than the margin; with repeats for certain: with the lower ends of all ratios at once,
    /// for what disturbs a run disturbs all of its phases.
    fn is_ahead(&self, best: &(&Line<'_>, f64), other: &(&Line<'_>, f64)) -> bool {
        let least = |phase: &String| match compare_phase(
            other.0.group,
            best.0.group,
            phase,
            self.judging,
        ) {
            Outcome::Ratio(comparison) => {
                let gain = comparison.gain()?;
                let end = gain.interval.map_or(gain.value, |interval| interval.lo);
                Some((end / gain.value).ln())
            }
            _ => None,
        };
        let short: Option<f64> = self.columns.iter().map(|(_, phase)| least(phase)).sum();
        // Without a ratio there is nothing to doubt the figures by.
        let short = (short.unwrap_or(0.0) / self.columns.len() as f64).exp();
        best.1 / other.1 * short > 1.0 + self.judging.margin
    }
}
