//! Plots as PNG: the SVG rendered by `resvg`, with only the window's font, so that a plot looks the same everywhere.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Pixels of the PNG per pixel of the SVG.
const SCALE: f32 = 2.0;

pub struct PlotImages {
    options: Options<'static>,
}

impl Default for PlotImages {
    fn default() -> Self {
        let mut fonts = Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        let family = fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
        let family = family.unwrap_or_default();
        fonts.set_sans_serif_family(family.clone());
        Self { options: Options { fontdb: Arc::new(fonts), font_family: family, ..Options::default() } }
    }
}

impl PlotImages {
    /// A PNG with two pixels per SVG pixel in each direction.
    ///
    /// # Errors
    /// The SVG cannot be rendered; the text says why.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let side = |length: f32| (length * SCALE).ceil() as u32;
        let (width, height) = (side(tree.size().width()), side(tree.size().height()));
        let mut pixels = Pixmap::new(width, height).ok_or_else(|| format!("{width} × {height} pixels"))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}
