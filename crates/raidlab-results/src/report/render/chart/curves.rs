//! Cumulative curves of response times: a logarithmic time axis, and shares spread at both ends, so that both the fast ones (a cache)
//! and the tail are seen.
use super::axis::{Frame, Placed};
use super::canvas::{BELOW_TITLE, Canvas, Drawing, Legend, colour, is_dashed, sheet};
use crate::report::blocks::cumulative::LEAST_SHARE;
use crate::report::document::{Curve, DistributionChart};
use crate::report::render::images::ImageError;

/// Operations beyond a share that make it more than the fate of a few.
const ENOUGH: u64 = 10;
/// Nearer points than this, in CSS pixels, are one.
const NEAR: f64 = 0.5;
/// CSS pixels of a dash and of the gap behind it.
const DASH: (f64, f64) = (9.0, 4.0);
const THICK: f64 = 2.0;
const THIN: f64 = 1.0;

/// The points of a curve on the sheet.
type Path = Vec<(f64, f64)>;

pub(super) fn draw(chart: &DistributionChart) -> Result<Drawing, ImageError> {
    let names: Vec<&str> = chart.curves.iter().map(|c| c.name.as_str()).collect();
    let mut legend = Legend::new(&names)?;
    legend.dashes = true;
    let frame = Frame::below(legend.height, times(chart), shares(chart))?;
    sheet(frame.whole(), |canvas| {
        canvas.title(&chart.title)?;
        legend.draw(canvas, BELOW_TITLE - 6.0)?;
        frame.draw(
            canvas,
            (
                "response time, logarithmic",
                "operations that took no longer",
            ),
        )?;
        for (index, curve) in chart.curves.iter().enumerate() {
            band(canvas, &frame, curve, index)?;
        }
        for (index, curve) in chart.curves.iter().enumerate() {
            let above = chart.curves[index + 1..].iter();
            let covers = above.filter(|other| covers(other, curve)).count();
            let (usual, few) = paths(&frame, curve);
            // A curve that others lie on is wider by each of them, so that it is seen on both sides of theirs.
            let wider = 3.0 * covers as f64;
            stroke(canvas, &usual, index, THICK + wider)?;
            stroke(canvas, &few, index, THIN + wider)?;
        }
        Ok(())
    })
}

/// The time axis: from the first time that is shown to the longest.
fn times(chart: &DistributionChart) -> Placed {
    let mut range = (f64::INFINITY, 0.0_f64);
    let mut reach = |seconds: f64| range = (range.0.min(seconds), range.1.max(seconds));
    for curve in &chart.curves {
        reach(curve.seconds_at(LEAST_SHARE));
        curve.steps.last().iter().for_each(|s| reach(s.seconds));
        for runs in &curve.spread {
            reach(runs.least);
            reach(runs.greatest);
        }
    }
    Placed::log10(range.0, range.1)
}

fn shares(chart: &DistributionChart) -> Placed {
    let ends = chart.curves.iter().filter_map(|curve| {
        let last = curve.steps.last()?;
        Some(curve.share(last))
    });
    Placed::shares(LEAST_SHARE, ends.fold(0.9, f64::max))
}

/// From the fastest to the slowest run, all along.
fn band(canvas: &Canvas<'_>, frame: &Frame, curve: &Curve, index: usize) -> Result<(), ImageError> {
    let fast = curve.spread.iter().map(|s| frame.at(s.least, s.share));
    let slow = curve.spread.iter().map(|s| frame.at(s.greatest, s.share));
    let around: Path = fast.chain(slow.rev()).collect();
    if around.is_empty() {
        return Ok(());
    }
    canvas.area(&around, colour(index))
}

/// The stairs of a curve: as far as enough operations are beyond, and from there on.
fn paths(frame: &Frame, curve: &Curve) -> (Path, Path) {
    let (mut usual, mut few) = (Path::new(), Path::new());
    let mut before = LEAST_SHARE;
    for step in &curve.steps {
        let share = curve.share(step);
        if share < LEAST_SHARE {
            continue;
        }
        let stairs = [before, share].map(|share| frame.at(step.seconds, share));
        before = share;
        if step.slower >= ENOUGH {
            usual.extend(stairs);
        } else {
            if few.is_empty() {
                few.extend(usual.last());
            }
            few.extend(stairs);
        }
    }
    (fewer(usual), fewer(few))
}

/// Without points that are too near to be told apart; the ends stay.
fn fewer(path: Path) -> Path {
    let last = path.last().copied();
    let mut kept: Path = Vec::new();
    for (x, y) in path {
        let near = |(a, b): &(f64, f64)| (x - a).abs() < NEAR && (y - b).abs() < NEAR;
        if !kept.last().is_some_and(near) {
            kept.push((x, y));
        }
    }
    if kept.last() != last.as_ref() {
        kept.extend(last);
    }
    kept
}

fn stroke(canvas: &Canvas<'_>, path: &Path, index: usize, width: f64) -> Result<(), ImageError> {
    if path.len() < 2 {
        return Ok(());
    }
    if !is_dashed(index) {
        return canvas.line(path, colour(index), width);
    }
    for dash in dashes(path) {
        canvas.line(&dash, colour(index), width)?;
    }
    Ok(())
}

/// The pieces of a dashed line.
fn dashes(path: &Path) -> Vec<Path> {
    let mut all = Vec::new();
    let mut now: Path = path.first().copied().into_iter().collect();
    // How far it is to the end of the dash or gap.
    let (mut drawn, mut left) = (true, DASH.0);
    for pair in path.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length <= left {
                left -= length;
                break;
            }
            let part = left / length;
            from = (
                from.0 + part * (to.0 - from.0),
                from.1 + part * (to.1 - from.1),
            );
            now.push(from);
            if drawn {
                all.push(std::mem::take(&mut now));
            }
            drawn = !drawn;
            left = if drawn { DASH.0 } else { DASH.1 };
            now = vec![from];
        }
        now.push(to);
    }
    if drawn && now.len() > 1 {
        all.push(now);
    }
    all
}

/// Whether a curve lies on another one all along, as nearly as one can see.
fn covers(upper: &Curve, lower: &Curve) -> bool {
    let shares = [0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999];
    let end = |curve: &Curve| curve.steps.last().map_or(0.0, |last| curve.share(last));
    let reached = end(upper).min(end(lower));
    let near = |share: &f64| {
        let ratio = upper.seconds_at(*share) / lower.seconds_at(*share);
        (ratio - 1.0).abs() < 0.01
    };
    shares.iter().filter(|share| **share <= reached).all(near)
}
