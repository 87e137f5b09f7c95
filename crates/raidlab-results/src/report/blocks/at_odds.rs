//! Where a ratio and the figures of its two cells say different things, and why they can.
use crate::report::analysis::{Judging, summarise};
use crate::report::group::Group;
use raidlab_stats::Comparison;

/// What is shown as another number than one, with two decimals.
const SEEN: f64 = 0.005;

/// What is to be said of a ratio that the figures of its cells contradict; `None` where they do not. Figures leave the best and the worst
/// run out, or are medians; the ratio with its interval is of the geometric means of all runs, as the rounds of both sides
/// belong together. A single run far from the others moves one and not the other, even to the other side of one.
pub(super) fn at_odds(
    base: &Group<'_>,
    candidate: &Group<'_>,
    phase: &str,
    comparison: &Comparison,
    judging: &Judging,
) -> Option<String> {
    let ratio = comparison.ratio.value;
    let [a, b] = [base, candidate].map(|group| summarise(group, phase, judging));
    let (a, b) = a.zip(b)?;
    let figures = b.headline.value / a.headline.value;
    let medians = b.median.value / a.median.value;
    let told = [ratio, figures, medians]
        .iter()
        .all(|q| q.is_finite() && *q > 0.0);
    if !told {
        return None;
    }
    let (of_ratio, of_figures) = (ratio.ln(), figures.ln());
    let other_side = of_ratio * of_figures < 0.0 && of_ratio.abs().min(of_figures.abs()) > SEEN;
    let far = (of_ratio - of_figures).abs() > judging.margin.max(SEEN);
    (other_side || far).then(|| {
        format!(
            "the figures are {figures:.3} to 1 and the medians {medians:.3} to 1, where the ratio is {ratio:.3}: a figure is the {}, and \
             the ratio is of the geometric means of the runs with the best and the worst, which a run far from the others moves",
            judging.how()
        )
    })
}
