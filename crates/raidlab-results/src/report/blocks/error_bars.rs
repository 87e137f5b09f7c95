//! What the error bars of a chart are: of few runs an interval has the confidence it has, not the one asked for.
use raidlab_stats::{Estimate, Flag};

/// The figures that a chart shows.
#[derive(Default)]
pub(crate) struct ErrorBars {
    /// The least and the greatest confidence of an interval.
    confidence: Option<(f64, f64)>,
    /// Whether a figure is of more than one run.
    repeats: bool,
}

impl ErrorBars {
    /// With another figure.
    pub(crate) fn add(&mut self, estimate: &Estimate) {
        self.repeats |= !estimate.flags.contains(&Flag::SingleValue);
        if let Some(interval) = estimate.interval {
            let confidence = interval.confidence;
            let (least, most) = self.confidence.unwrap_or((confidence, confidence));
            self.confidence = Some((least.min(confidence), most.max(confidence)));
        }
    }

    /// `95 % intervals`; none where there is no interval.
    pub(crate) fn intervals(&self) -> Option<String> {
        let (least, most) = self.confidence?;
        let (least, most) = (percent(least), percent(most));
        Some(match least == most {
            true => format!("{least} % intervals"),
            false => format!("intervals of {least} to {most} % confidence"),
        })
    }

    /// The same, or why there are none.
    pub(crate) fn told(&self) -> String {
        match (self.intervals(), self.repeats) {
            (Some(intervals), _) => format!("error bars: {intervals}"),
            (None, false) => "n=1, no interval".to_owned(),
            (None, true) => "no finite interval".to_owned(),
        }
    }
}

/// A digit behind the point where it says something.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
