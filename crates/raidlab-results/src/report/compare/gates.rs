//! What gates say, of each figure and in words.
use super::{CompareRequest, GateResult, TailGate, tails};
use crate::report::analysis::Outcome;
use crate::report::document::Block;
use crate::report::format::plural;
use crate::report::percentile::Percentile;
use raidlab_stats::verdict::gates;
use raidlab_stats::{Comparison, Gate, gate};

/// What the gate says of each figure, with why not what it would say of it alone. `least` is the gain that passes, checked
/// by the caller; a figure that has none is not gated. All that are gated are one decision.
pub(super) fn said(figures: &[(&Outcome, Option<f64>)]) -> Vec<(GateResult, Option<String>)> {
    let family: Vec<(&Comparison, f64)> = figures
        .iter()
        .filter_map(|(outcome, least)| match outcome {
            Outcome::Ratio(comparison) => Some((&**comparison, (*least)?)),
            _ => None,
        })
        .collect();
    let number = family.len();
    let mut together = gates(&family).unwrap_or_default().into_iter();
    let one = |(outcome, least): &(&Outcome, Option<f64>)| {
        let Some(least) = least else {
            return (GateResult::NotAsked, None);
        };
        let Outcome::Ratio(comparison) = outcome else {
            return (GateResult::NotJudged, None);
        };
        match (together.next(), gate(comparison, *least)) {
            (Some(Gate::Warn), Ok(Gate::Fail)) => {
                let why = format!(
                    "alone it would fail, but among the {number} figures of the gate it may be chance"
                );
                (GateResult::Warn, Some(why))
            }
            (Some(said), _) => (result(said), None),
            (None, _) => (GateResult::NotJudged, None),
        }
    };
    figures.iter().map(one).collect()
}

fn result(gate: Gate) -> GateResult {
    match gate {
        Gate::Pass => GateResult::Pass,
        Gate::Warn => GateResult::Warn,
        Gate::Fail => GateResult::Fail,
    }
}

/// The worst of what one gate says. What could not be judged is no pass: beside what was it is a warning, and alone nothing was.
pub(super) fn worst(gates: impl Iterator<Item = GateResult>) -> GateResult {
    let all: Vec<GateResult> = gates.collect();
    let judged = all.iter().filter(|gate| **gate != GateResult::NotJudged);
    match judged.max() {
        None => GateResult::NotJudged,
        Some(worst) if all.contains(&GateResult::NotJudged) => (*worst).max(GateResult::Warn),
        Some(worst) => *worst,
    }
}

/// What the gates that were asked for say. Beside the response times is the number of cells of which none can be told.
pub(super) fn blocks(
    request: &CompareRequest,
    gated: &[GateResult],
    (timed, open): (&[TailGate], usize),
    throughput: GateResult,
    latency: GateResult,
) -> Vec<Block> {
    let told = |text: String, said: GateResult| match said {
        GateResult::Pass => Block::paragraph(text),
        _ => Block::warning(text),
    };
    let mut out = Vec::new();
    if let Some(gate) = request.gate {
        let word = throughput.word();
        let rule = rule(
            gated.iter().copied(),
            "of the gain",
            "below",
            &gate.to_string(),
        );
        out.push(told(format!("Gate at {gate}: {word}. {rule}"), throughput));
    }
    if !request.gate_latency.is_empty() {
        let of = |(of, most): (&Percentile, &f64)| {
            let said = tails::of_percentile(timed, *of).word();
            format!("{of} at {most}: {said}")
        };
        let each: Vec<String> = request.gate_latency.iter().map(of).collect();
        let gated = timed.iter().map(|one| one.gate);
        let open = std::iter::repeat_n(GateResult::NotJudged, open);
        let rule = rule(gated.chain(open), "of the ratio", "above", "that");
        let text = format!("Gate of response times, {}. {rule}", each.join("; "));
        out.push(told(text, latency));
    }
    out
}

/// When a gate fails, and of how many figures it says nothing.
fn rule(
    gated: impl Iterator<Item = GateResult> + Clone,
    of: &str,
    beyond: &str,
    limit: &str,
) -> String {
    let unjudged = gated
        .clone()
        .filter(|g| *g == GateResult::NotJudged)
        .count();
    let all = gated.filter(|gate| *gate != GateResult::NotAsked).count();
    let judged = all - unjudged;
    let mut text = format!("It fails only when a whole interval {of} lies {beyond} {limit}");
    if judged > 1 {
        text.push_str(&format!(
            ", and that would hardly be chance among {judged} figures (Holm's method)"
        ));
    }
    text.push('.');
    if judged > 0 && unjudged > 0 {
        let figures = plural(unjudged, "figure");
        text.push_str(&format!(" {figures} could not be judged."));
    }
    text
}
