//! Lines with points and error bars over a linear, logarithmic or named axis.
use super::canvas::{
    Anchor, BELOW_TITLE, Canvas, Drawing, GRID, INK, Legend, MUTED, PAD, SMALL, WIDTH, colour,
    sheet, text_width, tick_decimals, ticks,
};
use crate::report::document::{Axis, LineChart, Point, Scale};
use crate::report::format;
use crate::report::render::images::ImageError;
use raidlab_core::units::Bytes;

const HEIGHT: f64 = 320.0;
const AXIS: f64 = 48.0;
/// Points of a line that are marked one by one; more make a smear.
const MARKED: usize = 40;

/// An axis with its range and ticks, on a stretch of the sheet.
struct Placed {
    log: Option<f64>,
    from: f64,
    to: f64,
    ticks: Vec<(f64, String)>,
}

impl Placed {
    /// The place of a value, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let of = |x: f64| match self.log {
            Some(base) => x.max(f64::MIN_POSITIVE).log(base),
            None => x,
        };
        let (from, to) = (of(self.from), of(self.to));
        if to > from {
            (of(value) - from) / (to - from)
        } else {
            0.5
        }
    }

    fn new(axis: &Axis, values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        match &axis.scale {
            Scale::Linear => Self::linear(high.max(f64::MIN_POSITIVE)),
            Scale::Log2 => Self::log2(low.max(1.0), high.max(1.0), |n| Bytes(n).to_string()),
            Scale::Log2Count => Self::log2(low.max(1.0), high.max(1.0), |n| n.to_string()),
            Scale::Log10 => Self::log10(low.max(1e-12), high.max(1e-12)),
            Scale::Named(names) => Self {
                log: None,
                from: -0.3,
                to: names.len() as f64 - 0.7,
                ticks: names
                    .iter()
                    .zip(0..)
                    .map(|(name, place)| (f64::from(place), name.clone()))
                    .collect(),
            },
        }
    }

    fn linear(high: f64) -> Self {
        let ticks = ticks(high, 7);
        let decimals = tick_decimals(&ticks);
        Self {
            log: None,
            from: 0.0,
            to: ticks.last().copied().unwrap_or(high),
            ticks: ticks
                .into_iter()
                .map(|t| (t, format::number(t, decimals)))
                .collect(),
        }
    }

    /// Every power of two in the range; half a step of room on both sides.
    fn log2(low: f64, high: f64, name: impl Fn(u64) -> String) -> Self {
        let (first, last) = (low.log2().round() as i32, high.log2().round() as i32);
        let step = ((last - first) / 12 + 1) as usize;
        Self {
            log: Some(2.0),
            from: low / 1.5,
            to: high * 1.5,
            ticks: (first..=last)
                .step_by(step)
                .map(|power| (2_f64.powi(power), name(1 << power.clamp(0, 62))))
                .collect(),
        }
    }

    /// From and to 1, 2 or 5 of a decade; ticks at these, or at whole decades when there are many.
    fn log10(low: f64, high: f64) -> Self {
        let steps: Vec<(i32, f64)> = (-13..=7)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (power, digit)))
            .collect();
        let value = |(power, digit): (i32, f64)| digit * 10_f64.powi(power);
        let slack = 1.0 + 1e-9;
        let first = steps.iter().rposition(|s| value(*s) <= low * slack);
        let first = first.unwrap_or(0);
        let last = steps.iter().position(|s| value(*s) * slack >= high);
        let last = last.unwrap_or(steps.len() - 1).max(first + 1);
        let used = &steps[first..=last.min(steps.len() - 1)];
        let all = used.len() <= 10;
        Self {
            log: Some(10.0),
            from: value(used[0]),
            to: value(used[used.len() - 1]),
            ticks: used
                .iter()
                .filter(|(_, digit)| all || *digit < 1.5)
                .map(|step| (value(*step), time(*step)))
                .collect(),
        }
    }
}

/// `200 µs`, without needless digits.
fn time((power, digit): (i32, f64)) -> String {
    let (unit, base) = match power {
        ..-6 => ("ns", -9),
        -6..-3 => ("µs", -6),
        -3..0 => ("ms", -3),
        _ => ("s", 0),
    };
    let value = digit * 10_f64.powi(power - base);
    let decimals = usize::from(value < 1.0) * (base - power).max(0) as usize;
    format!("{} {unit}", format::number(value, decimals))
}

struct Frame {
    top: f64,
    bottom: f64,
    left: f64,
    right: f64,
    x: Placed,
    y: Placed,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + (self.right - self.left) * self.x.share(x),
            self.bottom - (self.bottom - self.top) * self.y.share(y).clamp(0.0, 1.0),
        )
    }
}

pub(super) fn draw(chart: &LineChart) -> Result<Drawing, ImageError> {
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    let legend = Legend::new(&names)?;
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let xs: Vec<f64> = points().map(|p| p.x).collect();
    let ys: Vec<f64> = points()
        .flat_map(|p| [p.y, p.interval.map_or(p.y, |(_, hi)| hi)])
        .collect();
    let (x, y) = (Placed::new(&chart.x, &xs), Placed::new(&chart.y, &ys));
    let mut gutter: f64 = 0.0;
    for (_, text) in &y.ticks {
        gutter = gutter.max(text_width(text, SMALL)?);
    }
    // The title of the upright axis stands over it: turned text is hard to read.
    let top = BELOW_TITLE + legend.height + 24.0;
    let frame = Frame {
        top,
        bottom: top + HEIGHT,
        left: PAD + gutter + 10.0,
        right: f64::from(WIDTH) - PAD - 24.0,
        x,
        y,
    };
    sheet(frame.bottom + AXIS, |canvas| {
        canvas.title(&chart.title)?;
        legend.draw(canvas, BELOW_TITLE - 6.0)?;
        axes(canvas, &frame, chart)?;
        let path = |points: &[Point]| points.iter().map(|p| frame.at(p.x, p.y)).collect();
        let paths: Vec<Path> = chart.series.iter().map(|s| path(&s.points)).collect();
        for index in 0..paths.len() {
            let above = paths[index + 1..].iter();
            let covers = above.filter(|path| covers(path, &paths[index])).count();
            line(canvas, &paths[index], (index, covers))?;
        }
        for (index, series) in chart.series.iter().enumerate() {
            whiskers(canvas, &frame, &series.points, (index, chart.series.len()))?;
        }
        Ok(())
    })
}

fn axes(canvas: &Canvas<'_>, frame: &Frame, chart: &LineChart) -> Result<(), ImageError> {
    let at = (PAD, frame.top - 16.0);
    canvas.text(&chart.y.label, at, (SMALL, INK), Anchor::Start)?;
    for (value, text) in &frame.y.ticks {
        let (_, y) = frame.at(frame.x.from, *value);
        canvas.line(&[(frame.left, y), (frame.right, y)], GRID, 1.0)?;
        canvas.text(text, (frame.left - 8.0, y), (SMALL, MUTED), Anchor::End)?;
    }
    for (value, text) in &frame.x.ticks {
        let (x, _) = frame.at(*value, frame.y.from);
        let tick = [(x, frame.bottom), (x, frame.bottom + 4.0)];
        canvas.line(&tick, MUTED, 1.0)?;
        canvas.text(text, (x, frame.bottom + 7.0), (SMALL, MUTED), Anchor::Below)?;
    }
    let base = [(frame.left, frame.bottom), (frame.right, frame.bottom)];
    canvas.line(&base, MUTED, 1.0)?;
    let middle = (0.5 * (frame.left + frame.right), frame.bottom + 26.0);
    canvas.text(&chart.x.label, middle, (SMALL, INK), Anchor::Below)
}

/// The points of a line on the sheet.
type Path = Vec<(f64, f64)>;

/// Whether a line lies on another one all along, as nearly as one can see.
fn covers(upper: &Path, lower: &Path) -> bool {
    let near = |a: &(f64, f64), b: &(f64, f64)| (a.0 - b.0).abs() < 0.5 && (a.1 - b.1).abs() < 2.0;
    !lower.is_empty() && lower.iter().all(|a| upper.iter().any(|b| near(a, b)))
}

/// So far apart, in CSS pixels, are error bars of lines that have a point at the same place.
const BESIDE: f64 = 3.0;

/// A line that others lie on is wider by each of them, so that it is seen on both sides of theirs.
fn line(
    canvas: &Canvas<'_>,
    path: &Path,
    (index, covers): (usize, usize),
) -> Result<(), ImageError> {
    let wider = covers as f64;
    canvas.line(path, colour(index), 2.0 + 3.0 * wider)?;
    if path.len() <= MARKED {
        for at in path {
            canvas.dot(*at, 3.5 + 2.0 * wider, colour(index))?;
        }
    }
    Ok(())
}

/// On top, and wider than a point, so that short ones are seen, too. Those of several lines stand beside each other and
/// have the colours of their lines.
fn whiskers(
    canvas: &Canvas<'_>,
    frame: &Frame,
    points: &[Point],
    (index, of): (usize, usize),
) -> Result<(), ImageError> {
    let aside = BESIDE * (index as f64 - (of as f64 - 1.0) / 2.0);
    let ink = if of > 1 { colour(index) } else { INK };
    for point in points {
        if let Some((lo, hi)) = point.interval {
            let (x, low) = frame.at(point.x, lo);
            let (_, high) = frame.at(point.x, hi);
            canvas.whisker((low, high), (x + aside, 5.5), false, ink)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::Series;

    /// A layout that is as fast as another one used to hide it.
    #[test]
    fn a_line_on_which_others_lie_is_seen_beside_them() {
        let series = |name: &str, ys: [f64; 3]| Series {
            name: name.to_owned(),
            points: std::iter::zip([1.0, 2.0, 3.0], ys)
                .map(|(x, y)| Point {
                    x,
                    y,
                    interval: None,
                })
                .collect(),
        };
        let axis = |label: &str| Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
        };
        let chart = LineChart {
            id: "x".to_owned(),
            title: "t".to_owned(),
            description: String::new(),
            x: axis("x"),
            y: axis("y"),
            series: vec![
                series("hidden twice", [10.0, 20.0, 30.0]),
                series("leaves at the end", [10.0, 20.0, 5.0]),
                series("hidden once", [10.0, 20.01, 30.0]),
                series("on top", [10.0, 20.0, 30.02]),
            ],
        };
        let svg = draw(&chart).unwrap().svg;
        // In units of the drawing: 8, 2, 5 and 2 CSS pixels.
        let widths: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<polyline") && line.matches(',').count() == 3)
            .filter_map(|line| line.split("stroke-width=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(widths, ["32", "8", "20", "8"]);
    }
}
