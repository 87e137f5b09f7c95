//! A drawing in CSS pixels, its colours, and what bar and line charts share.
use crate::report::render::images::ImageError;
use crate::report::render::printable;
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Polygon, RGBColor, Rectangle,
    SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoTextStyle, register_font};
use std::sync::OnceLock;

/// plotters places things on whole units; so many make a CSS pixel.
pub(super) const SCALE: f64 = 4.0;
/// plotters writes a font size divided by this.
const FONT_SCALE: f64 = 1.24;
/// Width of every chart in CSS pixels.
pub(super) const WIDTH: u32 = 860;
/// Family name in the SVG; browsers choose, the PNG images embed DejaVu Sans.
pub(in crate::report::render) const FONT: &str = "sans-serif";

pub(in crate::report::render) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(in crate::report::render) const INK: RGBColor = RGBColor(0x1f, 0x29, 0x37);
pub(in crate::report::render) const MUTED: RGBColor = RGBColor(0x6b, 0x72, 0x80);
pub(in crate::report::render) const GRID: RGBColor = RGBColor(0xe2, 0xe5, 0xea);

/// Told apart by colour-blind readers, too; neighbours differ in lightness.
pub(in crate::report::render) const SERIES: [RGBColor; 8] = [
    RGBColor(0x1f, 0x5f, 0xa8),
    RGBColor(0xe0, 0x8e, 0x1b),
    RGBColor(0x2a, 0x9d, 0x8f),
    RGBColor(0xb5, 0x3a, 0x5e),
    RGBColor(0x7a, 0x5c, 0xc2),
    RGBColor(0x6f, 0xa8, 0xdc),
    RGBColor(0x8c, 0x6d, 0x31),
    RGBColor(0x4b, 0x55, 0x63),
];

/// Whether a series has the colour of an earlier one and is dashed instead, where lines are.
pub(super) fn is_dashed(index: usize) -> bool {
    index >= SERIES.len()
}

/// The colour of a series.
pub(super) fn colour(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

/// A finished drawing.
pub(super) struct Drawing {
    pub(super) svg: String,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// How a text stands to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    /// Begins there, centred in height.
    Start,
    /// Centred there, hanging below.
    Below,
    /// Ends there, centred in height.
    End,
}

/// Where drawing goes.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

type Drawn = Result<(), ImageError>;

fn failed(error: impl std::fmt::Display) -> ImageError {
    ImageError::Draw(error.to_string())
}

/// Makes the font known to plotters, once.
fn fonts() -> Drawn {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let done = REGISTERED.get_or_init(|| {
        let add = |style, bytes| register_font(FONT, style, bytes).is_ok();
        add(FontStyle::Normal, dejavu::sans::regular())
            && add(FontStyle::Bold, dejavu::sans::bold())
    });
    done.then_some(()).ok_or(ImageError::Font)
}

/// Draws on a white sheet of [`WIDTH`] by `height` CSS pixels.
pub(super) fn sheet(
    height: f64,
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<Drawing, ImageError> {
    fonts()?;
    let height = height.ceil() as u32;
    let mut svg = String::new();
    {
        let size = (WIDTH * SCALE as u32, height * SCALE as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let canvas = Canvas { area };
        canvas.rect((0.0, 0.0), (f64::from(WIDTH), f64::from(height)), PAPER)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    Ok(Drawing {
        svg,
        width: WIDTH,
        height,
    })
}

/// Width of a text in CSS pixels.
pub(super) fn text_width(text: &str, size: f64) -> Result<f64, ImageError> {
    fonts()?;
    let font = (FONT, size * FONT_SCALE * SCALE).into_font();
    let (width, _) = font.box_size(&printable(text)).map_err(failed)?;
    // plotters measures a little wider than the size it writes; that is room to breathe.
    Ok(f64::from(width) / SCALE / FONT_SCALE * 1.17)
}

/// The text, cut with an ellipsis to the width.
pub(super) fn shortened(text: &str, size: f64, width: f64) -> Result<String, ImageError> {
    let mut kept: String = printable(text);
    if text_width(&kept, size)? <= width {
        return Ok(kept);
    }
    while !kept.is_empty() && text_width(&format!("{kept}…"), size)? > width {
        kept.pop();
    }
    Ok(kept + "…")
}

impl Canvas<'_> {
    fn at(x: f64, y: f64) -> (i32, i32) {
        ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
    }

    pub(super) fn rect(&self, a: (f64, f64), b: (f64, f64), colour: RGBColor) -> Drawn {
        let corners = [Self::at(a.0, a.1), Self::at(b.0, b.1)];
        let shape = Rectangle::new(corners, colour.filled());
        self.area.draw(&shape).map_err(failed)
    }

    pub(super) fn line(&self, points: &[(f64, f64)], colour: RGBColor, width: f64) -> Drawn {
        let points: Vec<_> = points.iter().map(|(x, y)| Self::at(*x, *y)).collect();
        let stroke = colour.stroke_width((width * SCALE).round() as u32);
        self.area
            .draw(&PathElement::new(points, stroke))
            .map_err(failed)
    }

    /// A translucent area.
    pub(super) fn area(&self, points: &[(f64, f64)], colour: RGBColor) -> Drawn {
        let points: Vec<_> = points.iter().map(|(x, y)| Self::at(*x, *y)).collect();
        let shape = Polygon::new(points, colour.mix(0.16));
        self.area.draw(&shape).map_err(failed)
    }

    pub(super) fn dot(&self, (x, y): (f64, f64), radius: f64, colour: RGBColor) -> Drawn {
        let dot = Circle::new(Self::at(x, y), (radius * SCALE) as i32, colour.filled());
        self.area.draw(&dot).map_err(failed)
    }

    pub(super) fn text(
        &self,
        text: &str,
        (x, y): (f64, f64),
        (size, colour): (f64, RGBColor),
        anchor: Anchor,
    ) -> Drawn {
        self.styled(text, (x, y), (size, colour), anchor, FontStyle::Normal)
    }

    fn styled(
        &self,
        text: &str,
        (x, y): (f64, f64),
        (size, colour): (f64, RGBColor),
        anchor: Anchor,
        style: FontStyle,
    ) -> Drawn {
        let pos = match anchor {
            Anchor::Start => Pos::new(HPos::Left, VPos::Center),
            Anchor::Below => Pos::new(HPos::Center, VPos::Top),
            Anchor::End => Pos::new(HPos::Right, VPos::Center),
        };
        let style = (FONT, size * FONT_SCALE * SCALE, style)
            .into_font()
            .into_text_style(&self.area)
            .color(&colour)
            .pos(pos);
        // "Centred" is half of a small x above the base line; capitals and digits are taller.
        let y = match anchor {
            Anchor::Below => y,
            Anchor::Start | Anchor::End => y + 0.09 * size,
        };
        let text = Text::new(printable(text), Self::at(x, y), style);
        self.area.draw(&text).map_err(failed)
    }

    /// The title at the top left.
    pub(super) fn title(&self, text: &str) -> Drawn {
        let at = (PAD, PAD + 8.0);
        self.styled(text, at, (15.0, INK), Anchor::Start, FontStyle::Bold)
    }

    /// An error bar from `lo` to `hi` with caps that reach so far to both sides; along x when
    /// `flat`.
    pub(super) fn whisker(
        &self,
        (lo, hi): (f64, f64),
        (across, cap): (f64, f64),
        flat: bool,
        ink: RGBColor,
    ) -> Drawn {
        let point = |along: f64, off: f64| {
            if flat {
                (along, across + off)
            } else {
                (across + off, along)
            }
        };
        self.line(&[point(lo, 0.0), point(hi, 0.0)], ink, 1.25)?;
        for end in [lo, hi] {
            self.line(&[point(end, -cap), point(end, cap)], ink, 1.25)?;
        }
        Ok(())
    }
}

/// Space around everything.
pub(super) const PAD: f64 = 14.0;
/// Where what follows the title begins.
pub(super) const BELOW_TITLE: f64 = 40.0;
/// Size of axis and legend texts.
pub(super) const SMALL: f64 = 11.5;
const LEGEND_LINE: f64 = 19.0;

/// The rows of a legend: names with their places.
pub(super) struct Legend {
    entries: Vec<(usize, String, f64, f64)>,
    /// Lines are dashed where colours come again.
    pub(super) dashes: bool,
    /// Height in CSS pixels; 0 when one series needs no legend.
    pub(super) height: f64,
}

impl Legend {
    pub(super) fn new(names: &[&str]) -> Result<Self, ImageError> {
        let mut entries = Vec::new();
        if names.len() < 2 {
            return Ok(Self {
                entries,
                dashes: false,
                height: 0.0,
            });
        }
        let (mut x, mut row) = (PAD, 0.0);
        for (index, name) in names.iter().enumerate() {
            let name = shortened(name, SMALL, f64::from(WIDTH) - 2.0 * PAD - 30.0)?;
            let width = 18.0 + text_width(&name, SMALL)? + 20.0;
            if x > PAD && x + width > f64::from(WIDTH) - PAD {
                x = PAD;
                row += 1.0;
            }
            entries.push((index, name, x, row * LEGEND_LINE));
            x += width;
        }
        let height = (row + 1.0) * LEGEND_LINE + 6.0;
        Ok(Self {
            entries,
            dashes: false,
            height,
        })
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, top: f64) -> Drawn {
        for (index, name, x, y) in &self.entries {
            let middle = top + y + 0.5 * LEGEND_LINE;
            let (from, to) = ((*x, middle - 5.5), (x + 11.0, middle + 5.5));
            canvas.rect(from, to, colour(*index))?;
            if self.dashes && is_dashed(*index) {
                let gap = ((x + 4.0, from.1), (x + 7.0, to.1));
                canvas.rect(gap.0, gap.1, PAPER)?;
            }
            canvas.text(name, (x + 17.0, middle), (SMALL, INK), Anchor::Start)?;
        }
        Ok(())
    }
}

/// Round ticks from 0, about so many; the last one is not below `largest`.
pub(super) fn ticks(largest: f64, about: usize) -> Vec<f64> {
    let points = |top: f64| RangedCoordf64::from(0.0..top).key_points(about);
    let mut ticks = points(largest);
    if let [.., before, last] = ticks[..]
        && last < largest
    {
        ticks.push(last + (last - before));
    }
    if ticks.len() < 2 {
        ticks = vec![0.0, largest];
    }
    ticks
}

/// Digits that tell ticks of this step apart.
pub(super) fn tick_decimals(ticks: &[f64]) -> usize {
    let step = ticks.get(1).copied().unwrap_or(1.0) - ticks.first().copied().unwrap_or(0.0);
    (0..6)
        .find(|digits| {
            let scaled = step * 10_f64.powi(*digits);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
        })
        .unwrap_or(6) as usize
}
