//! Filled rectangles and text on RGB pixels.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};

use crate::domain::RgbImage;

/// Pixels to draw on. Everything is clipped to the image.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

/// In whole pixels: left and top are inside, right and bottom are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub left: i64,
    pub top: i64,
    pub right: i64,
    pub bottom: i64,
}

impl Area {
    /// The area grown by `margin` on each side; a negative margin shrinks it.
    pub(super) fn grown(self, margin: i64) -> Self {
        Self {
            left: self.left - margin,
            top: self.top - margin,
            right: self.right + margin,
            bottom: self.bottom + margin,
        }
    }
}

/// A color and its opacity, `0.0..=1.0`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub color: [u8; 3],
    pub opacity: f32,
}

impl Paint {
    pub(super) fn opaque(color: [u8; 3]) -> Self {
        Self { color, opacity: 1.0 }
    }
}

impl Canvas {
    pub(super) fn new(image: &RgbImage) -> Self {
        Self { width: image.width(), height: image.height(), rgb: image.rgb().to_vec() }
    }

    pub(super) fn width(&self) -> i64 {
        i64::from(self.width)
    }

    pub(super) fn height(&self) -> i64 {
        i64::from(self.height)
    }

    pub(super) fn into_image(self) -> RgbImage {
        RgbImage::new(self.width, self.height, self.rgb).expect("a canvas keeps the size of the image it was made from")
    }

    pub(super) fn fill(&mut self, area: Area, paint: Paint) {
        for y in area.top.max(0)..area.bottom.min(self.height()) {
            for x in area.left.max(0)..area.right.min(self.width()) {
                self.blend(x, y, paint);
            }
        }
    }

    /// As [`Self::frame`], dashed with gaps as long as the dashes.
    pub(super) fn dashed_frame(&mut self, area: Area, thickness: i64, dash: i64, paint: Paint) {
        let Area { left, top, right, bottom } = area;
        let dash = dash.max(1);
        for x in (left..right).step_by(2 * dash as usize) {
            let end = (x + dash).min(right);
            self.fill(Area { left: x, top, right: end, bottom: (top + thickness).min(bottom) }, paint);
            self.fill(Area { left: x, top: (bottom - thickness).max(top), right: end, bottom }, paint);
        }
        for y in (top..bottom).step_by(2 * dash as usize) {
            let end = (y + dash).min(bottom);
            self.fill(Area { left, top: y, right: (left + thickness).min(right), bottom: end }, paint);
            self.fill(Area { left: (right - thickness).max(left), top: y, right, bottom: end }, paint);
        }
    }

    /// A frame inside `area`; a thick frame of a small area fills it.
    pub(super) fn frame(&mut self, area: Area, thickness: i64, paint: Paint) {
        let Area { left, top, right, bottom } = area;
        let upper_end = (top + thickness).min(bottom);
        let lower_start = (bottom - thickness).max(upper_end);
        let left_end = (left + thickness).min(right);
        let right_start = (right - thickness).max(left_end);
        self.fill(Area { bottom: upper_end, ..area }, paint);
        self.fill(Area { top: lower_start, ..area }, paint);
        let sides = Area { top: upper_end, bottom: lower_start, ..area };
        self.fill(Area { right: left_end, ..sides }, paint);
        self.fill(Area { left: right_start, ..sides }, paint);
    }

    /// Draws one line whose baseline starts at (`x`, `baseline`).
    pub(super) fn text(&mut self, text: &str, x: f32, baseline: f32, size: TextSize, paint: Paint) {
        for glyph in size.glyphs(text, x, baseline) {
            let Some(outline) = FONT.outline_glyph(glyph) else {
                continue;
            };
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i64, bounds.min.y as i64);
            outline.draw(|column, row, coverage| {
                // The font is light; more coverage makes small text firmer.
                let opacity = (coverage * 1.35).min(1.0) * paint.opacity;
                self.blend(left + i64::from(column), top + i64::from(row), Paint { opacity, ..paint });
            });
        }
    }

    fn blend(&mut self, x: i64, y: i64, paint: Paint) {
        if x < 0 || y < 0 || x >= self.width() || y >= self.height() {
            return;
        }
        let start = (y as usize * self.width as usize + x as usize) * 3;
        for (below, above) in self.rgb[start..start + 3].iter_mut().zip(paint.color) {
            let mixed = f32::from(*below) * (1.0 - paint.opacity) + f32::from(above) * paint.opacity;
            *below = mixed.round() as u8;
        }
    }
}

/// The window's font, so that exported images look like the window.
static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).expect("the font is part of the program")
});

/// The line height of text, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextSize(pub f32);

impl TextSize {
    /// For text in SVG and HTML, whose size is that of an em.
    pub(super) fn from_em(pixels: f32) -> Self {
        let em = FONT.units_per_em().unwrap_or(1000.0);
        Self(pixels * FONT.height_unscaled() / em)
    }

    pub(super) fn width_of(self, text: &str) -> f32 {
        let last = self.glyphs(text, 0.0, 0.0).pop();
        last.map_or(0.0, |last| last.position.x + FONT.as_scaled(last.scale).h_advance(last.id))
    }

    /// The height from the baseline to the top of the tallest letters.
    pub(super) fn ascent(self) -> f32 {
        FONT.as_scaled(PxScale::from(self.0)).ascent()
    }

    /// The text, or its beginning with “…” if it is wider than `max_width`; `None` if not even that fits.
    pub(super) fn fitted(self, text: &str, max_width: f32) -> Option<String> {
        if self.width_of(text) <= max_width {
            return Some(text.to_owned());
        }
        let letters: Vec<char> = text.chars().collect();
        (1..letters.len()).rev().find_map(|count| {
            let start: String = letters[..count].iter().collect();
            let shortened = format!("{}…", start.trim_end());
            (self.width_of(&shortened) <= max_width).then_some(shortened)
        })
    }

    fn glyphs(self, text: &str, x: f32, baseline: f32) -> Vec<Glyph> {
        let scale = PxScale::from(self.0);
        let font = FONT.as_scaled(scale);
        let mut cursor = x;
        let mut previous = None;
        let mut glyphs = Vec::new();
        for letter in text.chars() {
            let id = font.glyph_id(letter);
            if let Some(previous) = previous {
                cursor += font.kern(previous, id);
            }
            glyphs.push(id.with_scale_and_position(scale, point(cursor, baseline)));
            cursor += font.h_advance(id);
            previous = Some(id);
        }
        glyphs
    }
}
