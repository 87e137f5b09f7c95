//! The charts of a document as images for a blog: SVG, and PNG made from it.
use super::chart::{FONT, svg};
use super::shown;
use crate::report::document::Document;
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Why an image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The embedded font cannot be read.
    #[error("the embedded font cannot be read")]
    Font,
    /// The chart could not be drawn.
    #[error("a chart could not be drawn: {0}")]
    Draw(String),
    /// The drawing could not be turned into pixels.
    #[error("the chart '{id}' could not be turned into a PNG image: {why}")]
    Png {
        /// The chart.
        id: String,
        /// Why.
        why: String,
    },
}

/// An image of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedImage {
    /// Name without ending; unique in the document.
    pub name: String,
    /// The whole SVG document.
    pub svg: String,
    /// The PNG file, twice the size in pixels.
    pub png: Vec<u8>,
}

/// Pixels of the PNG image to one of the drawing, for sharp screens.
const DENSITY: f32 = 2.0;

/// All charts of a document.
///
/// # Errors
/// [`ImageError`].
pub fn render_images(document: &Document) -> Result<Vec<RenderedImage>, ImageError> {
    let mut options = usvg::Options {
        font_family: FONT.to_owned(),
        ..usvg::Options::default()
    };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    document
        .charts()
        .map(|chart| {
            let svg = shown(&svg(chart)?);
            Ok(RenderedImage {
                name: chart.id().to_owned(),
                png: png(chart.id(), &svg, &options)?,
                svg,
            })
        })
        .collect()
}

fn png(id: &str, svg: &str, options: &usvg::Options<'_>) -> Result<Vec<u8>, ImageError> {
    let failed = |why: String| ImageError::Png {
        id: id.to_owned(),
        why,
    };
    let tree = usvg::Tree::from_str(svg, options).map_err(|e| failed(e.to_string()))?;
    let size = tree.size();
    let pixels = |length: f32| (length * DENSITY).ceil() as u32;
    let mut map = tiny_skia::Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| failed("the image is empty or too large".to_owned()))?;
    let scale = tiny_skia::Transform::from_scale(DENSITY, DENSITY);
    resvg::render(&tree, scale, &mut map.as_mut());
    map.encode_png().map_err(|e| failed(e.to_string()))
}
