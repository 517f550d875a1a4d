//! The picture on the canvas, cut into tiles that are uploaded when they come into view.

use std::collections::HashMap;

use eframe::egui::{self, Color32, ColorImage, Pos2, Rect, TextureHandle, pos2};

use super::upload;
use crate::domain::SampleId;
use crate::domain::{DisplayPicture, Picture};
use crate::state::SourceId;

/// Without the border.
const TILE_SIDE: u32 = 512;
/// Pixels of the neighbours around each tile, so that no seam shows where two are scaled side by side.
const BORDER: u32 = 1;
/// Uploaded in one frame at most: 8 MiB of pixels.
const TILES_A_FRAME: usize = 8;
/// From here on pixels are shown as squares instead of being smoothed.
const CRISP_FROM: f32 = 3.0;

pub(crate) struct ShownPicture {
    pub(crate) source: SourceId,
    pub(crate) sample: SampleId,
    picture: DisplayPicture,
    tiles: HashMap<TileKey, TextureHandle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TileKey {
    level: usize,
    column: u32,
    row: u32,
    crisp: bool,
}

/// Whether a frame has shown all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaintedPicture {
    Complete,
    /// Some tiles are still to be uploaded; another frame is needed.
    Partly,
}

impl ShownPicture {
    pub(crate) fn new(source: SourceId, sample: SampleId, picture: DisplayPicture) -> Self {
        Self {
            source,
            sample,
            picture,
            tiles: HashMap::new(),
        }
    }

    pub(crate) fn full(&self) -> &Picture {
        self.picture.full()
    }

    /// Paints the picture into `on_screen` (the whole picture's place, in points), as far as `painter`'s clip shows it.
    pub(crate) fn paint(&mut self, painter: &egui::Painter, on_screen: Rect) -> PaintedPicture {
        let pixels_per_point = painter.ctx().pixels_per_point();
        let scale = on_screen.width() * pixels_per_point / self.full().width() as f32;
        let level = self.level_for(scale);
        let crisp = scale >= CRISP_FROM;
        let mut budget = TILES_A_FRAME;
        // The smallest level lies below, for tiles that are still to come.
        let base = self.picture.levels().len() - 1;
        if base != level {
            self.paint_level(painter, on_screen, base, false, &mut budget);
        }
        self.paint_level(painter, on_screen, level, crisp, &mut budget)
    }

    /// The smallest level that has at least one pixel for each of the screen.
    fn level_for(&self, scale: f32) -> usize {
        let halvings = (1.0 / scale.max(f32::EPSILON)).log2().floor().max(0.0);
        (halvings as usize).min(self.picture.levels().len() - 1)
    }

    fn paint_level(
        &mut self,
        painter: &egui::Painter,
        on_screen: Rect,
        level: usize,
        crisp: bool,
        budget: &mut usize,
    ) -> PaintedPicture {
        let size = |picture: &Picture| [picture.width(), picture.height()];
        let [width, height] = size(&self.picture.levels()[level]);
        let visible = painter.clip_rect().intersect(on_screen);
        if !visible.is_positive() {
            return PaintedPicture::Complete;
        }
        let screen_from_level = |x: u32, y: u32| -> Pos2 {
            pos2(
                on_screen.left() + on_screen.width() * x as f32 / width as f32,
                on_screen.top() + on_screen.height() * y as f32 / height as f32,
            )
        };
        let tiles_between = |from: f32, to: f32, start: f32, extent: f32, pixels: u32| {
            let first = ((from - start) / extent * pixels as f32 / TILE_SIDE as f32).floor();
            let last = ((to - start) / extent * pixels as f32 / TILE_SIDE as f32).ceil();
            first.max(0.0) as u32..(last as u32).min(pixels.div_ceil(TILE_SIDE))
        };
        let columns = tiles_between(
            visible.left(),
            visible.right(),
            on_screen.left(),
            on_screen.width(),
            width,
        );
        let rows = tiles_between(
            visible.top(),
            visible.bottom(),
            on_screen.top(),
            on_screen.height(),
            height,
        );
        let mut painted = PaintedPicture::Complete;
        for row in rows {
            for column in columns.clone() {
                let key = TileKey {
                    level,
                    column,
                    row,
                    crisp,
                };
                let (x, y) = (column * TILE_SIDE, row * TILE_SIDE);
                let right = (x + TILE_SIDE).min(width);
                let bottom = (y + TILE_SIDE).min(height);
                let Some(texture) = self.tile(painter.ctx(), key, budget) else {
                    painted = PaintedPicture::Partly;
                    continue;
                };
                let place =
                    Rect::from_min_max(screen_from_level(x, y), screen_from_level(right, bottom));
                let [tile_width, tile_height] = texture.size();
                let uv = |pixel: u32, tile_pixels: usize| pixel as f32 / tile_pixels as f32;
                let (left_border, top_border) = (x.min(BORDER), y.min(BORDER));
                let uv = Rect::from_min_max(
                    pos2(uv(left_border, tile_width), uv(top_border, tile_height)),
                    pos2(
                        uv(left_border + right - x, tile_width),
                        uv(top_border + bottom - y, tile_height),
                    ),
                );
                painter.image(texture.id(), place, uv, Color32::WHITE);
            }
        }
        painted
    }

    fn tile(
        &mut self,
        ctx: &egui::Context,
        key: TileKey,
        budget: &mut usize,
    ) -> Option<&TextureHandle> {
        if !self.tiles.contains_key(&key) {
            *budget = budget.checked_sub(1)?;
            let image = tile_image(&self.picture.levels()[key.level], key.column, key.row);
            self.tiles
                .insert(key, upload(ctx, "picture", image, key.crisp));
        }
        self.tiles.get(&key)
    }
}

/// The pixels of a tile with its border, which is missing at the picture's edges.
fn tile_image(picture: &Picture, column: u32, row: u32) -> ColorImage {
    let span = |index: u32, pixels: u32| {
        let start = index * TILE_SIDE;
        let end = (start + TILE_SIDE + BORDER).min(pixels) as usize;
        start.saturating_sub(BORDER) as usize..end
    };
    let (columns, rows) = (span(column, picture.width()), span(row, picture.height()));
    let stride = picture.width() as usize * 3;
    let mut rgb = Vec::with_capacity(columns.len() * rows.len() * 3);
    for row in rows.clone() {
        let line = &picture.rgb()[row * stride..][..stride];
        rgb.extend_from_slice(&line[columns.start * 3..columns.end * 3]);
    }
    ColorImage::from_rgb([columns.len(), rows.len()], &rgb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_overlap_by_their_borders_and_end_with_the_picture() {
        let picture = Picture::new(1100, 3, vec![0; 1100 * 3 * 3]).unwrap();
        let widths: Vec<usize> = (0..3)
            .map(|column| tile_image(&picture, column, 0).size[0])
            .collect();
        assert_eq!(widths, [513, 514, 77]);
    }

    #[test]
    fn a_small_view_of_a_large_picture_takes_a_small_level() {
        let picture = Picture::new(4096, 4, vec![0; 4096 * 4 * 3]).unwrap();
        let shown = ShownPicture::new(SourceId(1), SampleId(0), DisplayPicture::new(picture));
        assert_eq!(shown.level_for(1.0), 0);
        assert_eq!(shown.level_for(0.3), 1);
        assert_eq!(shown.level_for(0.001), 2);
    }
}
