//! Lines with points and error bars over a linear, logarithmic or named axis.
use super::axis::{Frame, Placed};
use super::canvas::{BELOW_TITLE, Canvas, Drawing, INK, Legend, colour, sheet};
use crate::report::document::{LineChart, Point};
use crate::report::render::images::ImageError;

/// Points of a line that are marked one by one; more make a smear.
const MARKED: usize = 40;

pub(super) fn draw(chart: &LineChart) -> Result<Drawing, ImageError> {
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    let legend = Legend::new(&names)?;
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let xs: Vec<f64> = points().map(|p| p.x).collect();
    let ys: Vec<f64> = points()
        .flat_map(|p| [p.y, p.interval.map_or(p.y, |(_, hi)| hi)])
        .collect();
    let (x, y) = (Placed::new(&chart.x, &xs), Placed::new(&chart.y, &ys));
    let frame = Frame::below(legend.height, x, y)?;
    sheet(frame.whole(), |canvas| {
        canvas.title(&chart.title)?;
        legend.draw(canvas, BELOW_TITLE - 6.0)?;
        frame.draw(canvas, (&chart.x.label, &chart.y.label))?;
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
    use crate::report::document::{Axis, Scale, Series};

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
