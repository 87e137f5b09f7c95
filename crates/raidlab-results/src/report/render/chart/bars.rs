//! Horizontal bars: long names of layouts stay readable, and any number of them fits. Figures that are far apart are dots
//! along a logarithmic axis, on which a length means nothing.
use super::canvas::{
    Anchor, BELOW_TITLE, Canvas, Drawing, GRID, INK, Legend, MUTED, PAD, SMALL, WIDTH, colour,
    sheet, shortened, text_width, tick_decimals, ticks,
};
use crate::report::document::{Bar, BarChart, BarGroup, along_decades};
use crate::report::format;
use crate::report::render::images::ImageError;

const THICK: f64 = 15.0;
/// Radius of the dots that stand for bars along a logarithmic axis.
const DOT: f64 = 5.0;
const BETWEEN_BARS: f64 = 2.0;
const BETWEEN_GROUPS: f64 = 13.0;
const AXIS: f64 = 46.0;
/// Most of the width that labels may take.
const LABELS: f64 = 300.0;

/// Places on the sheet.
struct Frame {
    top: f64,
    bottom: f64,
    left: f64,
    right: f64,
    full: f64,
    decades: Option<(i32, i32)>,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        let along = match self.decades {
            Some(decades) => along_decades(value, decades),
            None => value / self.full,
        };
        self.left + (self.right - self.left) * along
    }
}

pub(super) fn draw(chart: &BarChart) -> Result<Drawing, ImageError> {
    let names: Vec<&str> = chart.series.iter().map(String::as_str).collect();
    let legend = Legend::new(&names)?;
    let mut labels = Vec::new();
    let mut widest: f64 = 40.0;
    for group in &chart.groups {
        let label = shortened(&group.label, SMALL, LABELS)?;
        widest = widest.max(text_width(&label, SMALL)?);
        labels.push(label);
    }
    let bars = || chart.groups.iter().flat_map(|g| &g.bars);
    let reach = |bar: &Bar| {
        let value = bar.value.unwrap_or(0.0);
        bar.interval.map_or(value, |(_, hi)| value.max(hi))
    };
    let largest = bars().map(reach).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let decades = chart.decades();
    let ticks = match decades {
        Some((low, high)) => (low..=high).map(|power| 10_f64.powi(power)).collect(),
        None => ticks(largest, 7),
    };
    let texts: Vec<String> = bars().map(|bar| figure(bar, decades.is_some())).collect();
    let mut text_room: f64 = 0.0;
    for text in &texts {
        text_room = text_room.max(text_width(text, SMALL)?);
    }
    let body: f64 = chart
        .groups
        .iter()
        .map(|g| height(g) + BETWEEN_GROUPS)
        .sum();
    let top = BELOW_TITLE + legend.height + 4.0;
    let frame = Frame {
        top,
        bottom: top + body,
        left: PAD + widest + 10.0,
        // A figure behind the longest bar must not run over the edge.
        right: f64::from(WIDTH) - PAD - (text_room + 8.0),
        full: ticks.last().copied().unwrap_or(largest).max(largest),
        decades,
    };
    sheet(frame.bottom + AXIS, |canvas| {
        canvas.title(&chart.title)?;
        legend.draw(canvas, BELOW_TITLE - 6.0)?;
        axis(canvas, &frame, &ticks, &chart.axis)?;
        let mut y = frame.top + 0.5 * BETWEEN_GROUPS;
        for (group, label) in chart.groups.iter().zip(&labels) {
            let at = (frame.left - 10.0, y + 0.5 * height(group));
            canvas.text(label, at, (SMALL, INK), Anchor::End)?;
            if let Some(note) = group.common_note() {
                let at = (frame.left + 6.0, at.1);
                canvas.text(note, at, (SMALL, MUTED), Anchor::Start)?;
                y += height(group) + BETWEEN_GROUPS;
                continue;
            }
            for (index, bar) in group.bars.iter().enumerate() {
                one(canvas, &frame, bar, index, y)?;
                y += THICK + BETWEEN_BARS;
            }
            y += BETWEEN_GROUPS;
        }
        let base = [(frame.left, frame.top), (frame.left, frame.bottom)];
        canvas.line(&base, MUTED, 1.0)
    })
}

/// A group without bars takes the place of one.
fn height(group: &BarGroup) -> f64 {
    let bars = match group.common_note() {
        Some(_) => 1,
        None => group.bars.len(),
    };
    bars as f64 * (THICK + BETWEEN_BARS)
}

/// The figure beside a bar; of those that are `far` apart the small ones with digits that count.
fn figure(bar: &Bar, far: bool) -> String {
    match (bar.value, &bar.note) {
        (Some(value), _) if far => format::number(value, format::decimals(value)),
        (Some(value), _) => format::number(value, format::decimals(value).min(1)),
        (None, Some(note)) => note.clone(),
        (None, None) => String::new(),
    }
}

fn axis(canvas: &Canvas<'_>, frame: &Frame, ticks: &[f64], title: &str) -> Result<(), ImageError> {
    let even = tick_decimals(ticks);
    for tick in ticks {
        let decimals = match frame.decades {
            Some(_) => format::decimals(*tick).min((-tick.log10()).max(0.0).round() as usize),
            None => even,
        };
        let x = frame.x(*tick);
        canvas.line(&[(x, frame.top), (x, frame.bottom)], GRID, 1.0)?;
        let text = format::number(*tick, decimals);
        canvas.text(
            &text,
            (x, frame.bottom + 6.0),
            (SMALL, MUTED),
            Anchor::Below,
        )?;
    }
    let middle = 0.5 * (frame.left + frame.right);
    let title = match frame.decades {
        Some(_) => format!("{title}, logarithmic"),
        None => title.to_owned(),
    };
    canvas.text(
        &title,
        (middle, frame.bottom + 24.0),
        (SMALL, INK),
        Anchor::Below,
    )
}

fn one(
    canvas: &Canvas<'_>,
    frame: &Frame,
    bar: &Bar,
    index: usize,
    y: f64,
) -> Result<(), ImageError> {
    let middle = y + 0.5 * THICK;
    let Some(value) = bar.value else {
        let at = (frame.left + 6.0, middle);
        let told = figure(bar, frame.decades.is_some());
        return canvas.text(&told, at, (SMALL, MUTED), Anchor::Start);
    };
    let end = frame.x(value);
    let mut text_from = end;
    match frame.decades {
        Some(_) => {
            canvas.dot((end, middle), DOT, colour(index))?;
            text_from += DOT;
        }
        None => canvas.rect((frame.left, y), (end, y + THICK), colour(index))?,
    }
    if let Some((lo, hi)) = bar.interval {
        let ends = (frame.x(lo.max(0.0)), frame.x(hi));
        canvas.whisker(ends, (middle, 3.0), true, INK)?;
        text_from = text_from.max(ends.1);
    }
    let at = (text_from + 6.0, middle);
    let told = figure(bar, frame.decades.is_some());
    canvas.text(&told, at, (SMALL, INK), Anchor::Start)
}
