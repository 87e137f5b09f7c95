//! Charts as SVG, drawn with plotters and measured with the font that the PNG images embed.
mod axis;
mod bars;
mod canvas;
mod curves;
mod lines;

pub(super) use canvas::{FONT, GRID, INK, MUTED, PAPER, SERIES};

use super::images::ImageError;
use crate::report::document::Chart;

/// The chart as a whole SVG document. The text below `<title>` and `<desc>` is for those who cannot
/// see it.
pub(super) fn svg(chart: &Chart) -> Result<String, ImageError> {
    let body = match chart {
        Chart::Bars(chart) => bars::draw(chart)?,
        Chart::Lines(chart) => lines::draw(chart)?,
        Chart::Distribution(chart) => curves::draw(chart)?,
    };
    let escape = |text: &str| {
        super::printable(text)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    // The tag is plotters' own: `<svg width="…" height="…" viewBox="…" xmlns="…">`.
    let (_, rest) = body
        .svg
        .split_once('>')
        .ok_or_else(|| ImageError::Draw("no svg element".to_owned()))?;
    let canvas::Drawing { width, height, .. } = body;
    let scale = canvas::SCALE as u32;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{}",
        width * scale,
        height * scale,
        escape(chart.title()),
        escape(chart.description()),
        rest.trim_start(),
        id = crate::report::format::slug(chart.id()),
    ))
}
