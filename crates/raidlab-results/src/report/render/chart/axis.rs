//! The axes of a chart, and where points are between them.
use super::canvas::{
    Anchor, BELOW_TITLE, Canvas, GRID, INK, MUTED, PAD, SMALL, WIDTH, text_width, tick_decimals,
    ticks,
};
use crate::report::document::{Axis, Scale};
use crate::report::format;
use crate::report::render::images::ImageError;
use raidlab_core::units::Bytes;

const HEIGHT: f64 = 320.0;
const AXIS: f64 = 48.0;

/// How an axis is divided.
#[derive(Clone, Copy)]
enum Division {
    Even,
    Log,
    /// Of shares: the logarithm of odds, so that 1, 10, 90, 99 and 99.9 % are about as far apart from each other.
    BothEnds,
}

/// An axis with its range and ticks, on a stretch of the sheet.
pub(super) struct Placed {
    division: Division,
    from: f64,
    to: f64,
    ticks: Vec<(f64, String)>,
}

impl Placed {
    /// The place of a value, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let of = |x: f64| match self.division {
            Division::Even => x,
            Division::Log => x.max(f64::MIN_POSITIVE).ln(),
            Division::BothEnds => (x / (1.0 - x)).ln(),
        };
        let (from, to) = (of(self.from), of(self.to));
        if to > from {
            (of(value) - from) / (to - from)
        } else {
            0.5
        }
    }

    pub(super) fn new(axis: &Axis, values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        match &axis.scale {
            Scale::Linear => Self::linear(high.max(f64::MIN_POSITIVE)),
            Scale::Log2 => Self::log2(low.max(1.0), high.max(1.0), |n| Bytes(n).to_string()),
            Scale::Log2Count => Self::log2(low.max(1.0), high.max(1.0), |n| n.to_string()),
            Scale::Named(names) => Self {
                division: Division::Even,
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

    /// Shares of a whole above 0 and below 1, spread at both ends.
    pub(super) fn shares(low: f64, high: f64) -> Self {
        let beyond = (2..=12).map(|nines| 1.0 - 10_f64.powi(-nines));
        let ticks = [0.01, 0.1, 0.5, 0.9].into_iter().chain(beyond);
        Self {
            division: Division::BothEnds,
            from: low,
            to: high,
            ticks: ticks
                .filter(|share| (low..=high * (1.0 + 1e-15)).contains(share))
                .map(|share| (share, percent(share)))
                .collect(),
        }
    }

    fn linear(high: f64) -> Self {
        let ticks = ticks(high, 7);
        let decimals = tick_decimals(&ticks);
        Self {
            division: Division::Even,
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
            division: Division::Log,
            from: low / 1.5,
            to: high * 1.5,
            ticks: (first..=last)
                .step_by(step)
                .map(|power| (2_f64.powi(power), name(1 << power.clamp(0, 62))))
                .collect(),
        }
    }

    /// From and to 1, 2 or 5 of a decade; ticks at these, or at whole decades when there are many.
    pub(super) fn log10(low: f64, high: f64) -> Self {
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
            division: Division::Log,
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

/// `99.9 %`, with as many digits as there are nines.
fn percent(share: f64) -> String {
    let nines = (-(1.0 - share).log10()).round();
    format!("{:.*} %", (nines - 2.0).max(0.0) as usize, 100.0 * share)
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

/// The stretch of the sheet between two axes.
pub(super) struct Frame {
    top: f64,
    bottom: f64,
    left: f64,
    right: f64,
    x: Placed,
    y: Placed,
}

impl Frame {
    /// Below the title and a legend of this height.
    pub(super) fn below(legend: f64, x: Placed, y: Placed) -> Result<Self, ImageError> {
        let mut gutter: f64 = 0.0;
        for (_, text) in &y.ticks {
            gutter = gutter.max(text_width(text, SMALL)?);
        }
        // The title of the upright axis stands over it: turned text is hard to read.
        let top = BELOW_TITLE + legend + 24.0;
        Ok(Self {
            top,
            bottom: top + HEIGHT,
            left: PAD + gutter + 10.0,
            right: f64::from(WIDTH) - PAD - 24.0,
            x,
            y,
        })
    }

    /// Height of the sheet, in CSS pixels.
    pub(super) fn whole(&self) -> f64 {
        self.bottom + AXIS
    }

    /// The place of a point on the sheet.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + (self.right - self.left) * self.x.share(x),
            self.bottom - (self.bottom - self.top) * self.y.share(y).clamp(0.0, 1.0),
        )
    }

    /// Ticks and titles, of the horizontal and the upright axis.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        (across, upright): (&str, &str),
    ) -> Result<(), ImageError> {
        let at = (PAD, self.top - 16.0);
        canvas.text(upright, at, (SMALL, INK), Anchor::Start)?;
        for (value, text) in &self.y.ticks {
            let (_, y) = self.at(self.x.from, *value);
            canvas.line(&[(self.left, y), (self.right, y)], GRID, 1.0)?;
            canvas.text(text, (self.left - 8.0, y), (SMALL, MUTED), Anchor::End)?;
        }
        for (value, text) in &self.x.ticks {
            let (x, _) = self.at(*value, self.y.from);
            let tick = [(x, self.bottom), (x, self.bottom + 4.0)];
            canvas.line(&tick, MUTED, 1.0)?;
            canvas.text(text, (x, self.bottom + 7.0), (SMALL, MUTED), Anchor::Below)?;
        }
        let base = [(self.left, self.bottom), (self.right, self.bottom)];
        canvas.line(&base, MUTED, 1.0)?;
        let middle = (0.5 * (self.left + self.right), self.bottom + 26.0);
        canvas.text(across, middle, (SMALL, INK), Anchor::Below)
    }
}
