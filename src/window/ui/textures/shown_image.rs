//! The image on screen, in tiles that workers deliver on demand.

use std::collections::HashMap;

use eframe::egui::{Color32, ColorImage, Context, Painter, Pos2, Rect, pos2, vec2};

use crate::domain::{DisplayImage, Look, SampleId, TILE_SIDE, Tile, TileKey};
use crate::window::state::SourceId;
use crate::window::ui::textures::LookTexture;

/// About 256 MiB of GPU memory; a large screen shows about forty tiles, and twice as many per side between two levels.
/// between two levels.
const MAX_TILES: usize = 256;
/// The ring of tiles around the visible ones that is also requested, so that moving shows no coarse edge.
const RING: u32 = 1;

/// An image, wherever it is drawn: on the canvas and, enlarged, in the magnifier.
pub(crate) struct ShownImage {
    pub(crate) source: SourceId,
    pub(crate) sample: SampleId,
    image: DisplayImage,
    tiles: HashMap<TileKey, Entry>,
    look: Look,
    frame: u64,
    /// The tiles that this frame shows too coarsely, most wanted first; then those around them.
    missing: Vec<TileKey>,
    around: Vec<TileKey>,
    /// The last request.
    asked: Vec<TileKey>,
    /// Whether pixels have been in memory at full size.
    has_known_pixels: bool,
    /// The tile that was requested because its pixels are no longer in memory.
    pixels_asked: Option<TileKey>,
}

struct Entry {
    texture: LookTexture,
    seen: u64,
}

impl ShownImage {
    pub(crate) fn new(source: SourceId, sample: SampleId, image: DisplayImage) -> Self {
        Self {
            source,
            sample,
            image,
            tiles: HashMap::new(),
            look: Look::default(),
            frame: 0,
            missing: Vec::new(),
            around: Vec::new(),
            asked: Vec::new(),
            has_known_pixels: false,
            pixels_asked: None,
        }
    }

    /// Width and height in pixels.
    pub(crate) fn size(&self) -> [u32; 2] {
        self.image.layout.size()
    }

    /// The color of a pixel; `None` while it is not in memory at full size.
    pub(crate) fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        self.image.pixels.pixel(x, y)
    }

    /// Requests the color of a pixel. Pixels that were dropped from memory for a model are requested once more; those
    /// of an image that is only known coarsely wait until the user zooms in that far.
    pub(crate) fn request_pixel(&mut self, x: u32, y: u32) {
        if self.pixel(x, y).is_some() {
            self.has_known_pixels = true;
            self.pixels_asked = None;
            return;
        }
        let key = TileKey { level: 0, column: x / TILE_SIDE, row: y / TILE_SIDE };
        if self.has_known_pixels && self.pixels_asked != Some(key) {
            self.pixels_asked = Some(key);
            self.asked.retain(|asked| *asked != key);
            self.missing.push(key);
        }
    }

    /// Tiles that were drawn with another look stay until they are drawn anew.
    pub(crate) fn begin_frame(&mut self, look: Look) {
        if self.look != look {
            self.look = look;
            self.asked.clear();
        }
        self.frame += 1;
        self.missing.clear();
        self.around.clear();
    }

    pub(crate) fn add(&mut self, ctx: &Context, key: TileKey, tile: &Tile) {
        let size = [tile.width as usize, tile.height as usize];
        let image = ColorImage::from_rgba_premultiplied(size, &tile.rgba);
        // Its pixels can be dropped from memory before the first color is needed.
        self.has_known_pixels |= key.level == 0;
        // Beyond 1:1, a pixel is a square; a coarse tile in place of finer ones is smoothed.
        let texture = LookTexture::new(ctx, "picture", image, self.look, key.level == 0);
        self.tiles.insert(key, Entry { texture, seen: self.frame });
        if self.tiles.len() > MAX_TILES {
            self.drop_oldest();
        }
    }

    /// The tiles to request, if they differ from the last request.
    pub(crate) fn changed_request(&mut self) -> Option<Vec<TileKey>> {
        let is_asked = |key: &TileKey| self.asked.contains(key);
        if self.missing.iter().all(is_asked) && self.around.iter().all(is_asked) {
            return None;
        }
        self.asked = [self.missing.as_slice(), &self.around].concat();
        Some(self.asked.clone())
    }

    /// Whether the last frame showed every part in full detail.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty() && !self.tiles.is_empty()
    }

    /// Whether there is something to paint for every part of the image, fine or coarse.
    pub(crate) fn covers_all(&self) -> bool {
        let layout = self.image.layout;
        let level = layout.coarsest();
        let [columns, rows] = layout.tiles(level);
        (0..rows).all(|row| (0..columns).all(|column| self.tiles.contains_key(&TileKey { level, column, row })))
    }

    /// Paints the image into `on_screen` (the rectangle of the whole image, in points), clipped by `painter`. A coarser
    /// tile is drawn until the right one is ready.
    pub(crate) fn paint(&mut self, painter: &Painter, on_screen: Rect) {
        let visible = painter.clip_rect().intersect(on_screen);
        if !visible.is_positive() {
            return;
        }
        let layout = self.image.layout;
        let pixels_per_point = painter.ctx().pixels_per_point();
        let scale = on_screen.width() * pixels_per_point / layout.size()[0] as f32;
        let level = layout.level_for(scale);
        let [columns, rows] = self.tiles_in(visible, on_screen, level);
        let [column_count, row_count] = layout.tiles(level);
        let ring =
            |span: &std::ops::Range<u32>, count: u32| span.start.saturating_sub(RING)..(span.end + RING).min(count);
        let missing_before = self.missing.len();
        for row in ring(&rows, row_count) {
            for column in ring(&columns, column_count) {
                let key = TileKey { level, column, row };
                if rows.contains(&row) && columns.contains(&column) {
                    self.paint_tile(painter, on_screen, key);
                } else if !self.tiles.contains_key(&key) {
                    self.around.push(key);
                }
            }
        }
        let mut missing = self.missing.split_off(missing_before);
        let center = visible.center();
        let distance = |key: &TileKey| self.screen_rect(on_screen, *key).center().distance_sq(center);
        missing.sort_by(|left, right| distance(left).total_cmp(&distance(right)));
        self.missing.append(&mut missing);
    }

    fn paint_tile(&mut self, painter: &Painter, on_screen: Rect, key: TileKey) {
        let layout = self.image.layout;
        if !self.tiles.get_mut(&key).is_some_and(|entry| entry.texture.follow(self.look)) {
            self.missing.push(key);
        }
        let place = self.screen_rect(on_screen, key);
        let span = self.inner_extent(key);
        let mut from = key;
        let mut covered = 1.0;
        while !self.tiles.contains_key(&from) {
            if from.level >= layout.coarsest() {
                return;
            }
            from = from.parent();
            covered *= 2.0;
        }
        let Some(entry) = self.tiles.get_mut(&from) else {
            return;
        };
        entry.texture.follow(self.look);
        entry.seen = self.frame;
        let [outer_columns, outer_rows] = layout.outer(from);
        let [width, height] = entry.texture.handle().size();
        let uv = |pixel: Pos2| {
            pos2(
                (pixel.x / covered - outer_columns.start as f32) / width as f32,
                (pixel.y / covered - outer_rows.start as f32) / height as f32,
            )
        };
        let part = Rect::from_min_max(uv(span.min), uv(span.max));
        painter.image(entry.texture.handle().id(), place, part, Color32::WHITE);
    }

    /// Columns and rows of the tiles that a part of the screen shows.
    fn tiles_in(&self, visible: Rect, on_screen: Rect, level: usize) -> [std::ops::Range<u32>; 2] {
        let [columns, rows] = self.image.layout.tiles(level);
        let size = self.level_extent(level);
        let span = |from: f32, to: f32, start: f32, extent: f32, pixels: f32, count: u32| {
            let tile = |at: f32| (at - start) / extent * pixels / TILE_SIDE as f32;
            (tile(from).floor().max(0.0) as u32).min(count)..(tile(to).ceil() as u32).min(count)
        };
        [
            span(visible.left(), visible.right(), on_screen.left(), on_screen.width(), size[0], columns),
            span(visible.top(), visible.bottom(), on_screen.top(), on_screen.height(), size[1], rows),
        ]
    }

    /// The image's width and height in pixels of a level: fractional if the level's size was rounded up.
    fn level_extent(&self, level: usize) -> [f32; 2] {
        self.size().map(|side| side as f32 / (1_u64 << level) as f32)
    }

    /// The part of the image in a tile, in pixels of its level: fractional at the image's right and lower edge.
    fn inner_extent(&self, key: TileKey) -> Rect {
        let [columns, rows] = self.image.layout.inner(key);
        let [width, height] = self.level_extent(key.level);
        Rect::from_min_max(
            pos2(columns.start as f32, rows.start as f32),
            pos2((columns.end as f32).min(width), (rows.end as f32).min(height)),
        )
    }

    fn screen_rect(&self, on_screen: Rect, key: TileKey) -> Rect {
        let span = self.inner_extent(key);
        let [width, height] = self.level_extent(key.level);
        let point = |pixel: Pos2| {
            let part = vec2(pixel.x / width, pixel.y / height);
            on_screen.min + part * on_screen.size()
        };
        Rect::from_min_max(point(span.min), point(span.max))
    }

    /// Down to three quarters, so that this is rare. The coarsest level is kept, because it replaces any missing tile.
    fn drop_oldest(&mut self) {
        let coarsest = self.image.layout.coarsest();
        let mut by_age: Vec<(u64, TileKey)> =
            self.tiles.iter().filter(|(key, _)| key.level != coarsest).map(|(key, entry)| (entry.seen, *key)).collect();
        by_age.sort_unstable_by_key(|(seen, _)| *seen);
        for (seen, key) in by_age {
            if self.tiles.len() <= MAX_TILES / 4 * 3 || seen >= self.frame {
                break;
            }
            self.tiles.remove(&key);
        }
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use eframe::egui;

    use super::*;
    use crate::domain::{PixelSource, TileLayout};

    struct NoPixels;

    impl PixelSource for NoPixels {
        fn pixel(&self, _: u32, _: u32) -> Option<[u8; 3]> {
            None
        }
    }

    fn shown(size: [u32; 2]) -> ShownImage {
        let image = DisplayImage { layout: TileLayout::new(size), pixels: Arc::new(NoPixels) };
        ShownImage::new(SourceId(1), SampleId(0), image)
    }

    fn tile(level: usize, column: u32, row: u32) -> (TileKey, Tile) {
        let key = TileKey { level, column, row };
        let tile = Tile { width: 1, height: 1, rgba: vec![255; 4] };
        (key, tile)
    }

    /// One frame with a canvas of 1000 x 800 points.
    fn frame(ctx: &egui::Context, shown: &mut ShownImage, on_screen: Rect) -> Option<Vec<TileKey>> {
        let mut request = None;
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let canvas = Rect::from_min_size(Pos2::ZERO, vec2(1000.0, 800.0));
            shown.begin_frame(Look::default());
            shown.paint(&ui.painter().with_clip_rect(canvas), on_screen);
            request = shown.changed_request();
        });
        output.textures_delta.clear();
        request
    }

    fn at(left: f32, top: f32, width: f32, height: f32) -> Rect {
        Rect::from_min_size(pos2(left, top), vec2(width, height))
    }

    #[test]
    fn visible_and_nearby_tiles_are_requested_once() {
        let ctx = egui::Context::default();
        let mut shown = shown([20_000, 15_000]);
        let place = at(-9000.0, -9000.0, 20_000.0, 15_000.0);
        let request = frame(&ctx, &mut shown, place).unwrap();
        assert!(request.iter().all(|key| key.level == 0));
        // 9000..10000 x 9000..9800 shows columns 17..=19 and rows 17..=19.
        assert_eq!(request[0], tile(0, 18, 18).0, "the middle comes first");
        assert_eq!(request.len(), 25);
        assert_eq!(frame(&ctx, &mut shown, place), None);
    }

    #[test]
    fn hidden_tiles_are_dropped_except_the_coarsest() {
        let ctx = egui::Context::default();
        let mut shown = shown([200_000, 600]);
        let coarsest = shown.image.layout.coarsest();
        let (key, pixels) = tile(coarsest, 0, 0);
        shown.add(&ctx, key, &pixels);
        for column in 0..MAX_TILES as u32 {
            let (key, pixels) = tile(0, column, 0);
            shown.add(&ctx, key, &pixels);
            shown.begin_frame(Look::default());
        }
        assert!(shown.tiles.len() <= MAX_TILES / 4 * 3 + 1, "{}", shown.tiles.len());
        assert!(shown.tiles.contains_key(&key));
        assert!(shown.tiles.contains_key(&tile(0, MAX_TILES as u32 - 1, 0).0));
    }

    /// Gray, as long as it is in memory.
    struct Lent(AtomicBool);

    impl PixelSource for Lent {
        fn pixel(&self, _: u32, _: u32) -> Option<[u8; 3]> {
            self.0.load(Ordering::Relaxed).then_some([128; 3])
        }
    }

    #[test]
    fn dropped_pixels_are_requested_once_for_their_color() {
        let ctx = egui::Context::default();
        let lent = Arc::new(Lent(AtomicBool::new(false)));
        let pixels = Arc::clone(&lent) as Arc<dyn PixelSource>;
        let mut shown = shown([600, 400]);
        shown.image.pixels = pixels;
        let place = at(0.0, 0.0, 600.0, 400.0);
        let hover = |shown: &mut ShownImage, is_there| {
            lent.0.store(is_there, Ordering::Relaxed);
            shown.begin_frame(Look::default());
            shown.request_pixel(550, 10);
            shown.changed_request()
        };
        assert_eq!(hover(&mut shown, false), None, "not enlarged that far yet");
        for column in 0..2 {
            let (key, pixels) = tile(0, column, 0);
            shown.add(&ctx, key, &pixels);
        }
        frame(&ctx, &mut shown, place);
        let request = hover(&mut shown, false).unwrap();
        assert_eq!(request, [tile(0, 1, 0).0], "dropped before the first color was wanted");
        assert_eq!(hover(&mut shown, false), None, "already requested");
        assert_eq!(hover(&mut shown, true), None);
        assert!(hover(&mut shown, false).is_some(), "dropped once more");
    }

    #[test]
    fn image_is_complete_without_coarse_tiles() {
        let ctx = egui::Context::default();
        let mut shown = shown([600, 400]);
        let place = at(0.0, 0.0, 600.0, 400.0);
        frame(&ctx, &mut shown, place);
        assert!(!shown.is_complete() && !shown.covers_all());
        for column in 0..2 {
            let (key, pixels) = tile(0, column, 0);
            shown.add(&ctx, key, &pixels);
        }
        frame(&ctx, &mut shown, place);
        assert!(shown.is_complete() && shown.covers_all());
    }

    #[test]
    fn look_needs_the_pixels_of_a_tile_once() {
        let ctx = egui::Context::default();
        let mut shown = shown([500, 400]);
        let (key, pixels) = tile(0, 0, 0);
        let place = at(0.0, 0.0, 500.0, 400.0);
        let requests = |shown: &mut ShownImage, contrast| {
            let mut request = None;
            let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
                shown.begin_frame(Look { contrast, ..Look::default() });
                shown.paint(ui.painter(), place);
                request = shown.changed_request();
            });
            output.textures_delta.clear();
            request
        };
        shown.add(&ctx, key, &pixels);
        assert_eq!(requests(&mut shown, 1.0), None);
        assert_eq!(requests(&mut shown, 1.5), Some(vec![key]));
        assert!(shown.covers_all(), "the tile stays meanwhile");
        shown.add(&ctx, key, &pixels);
        for contrast in [1.5, 2.0, 1.0] {
            assert_eq!(requests(&mut shown, contrast), None, "{contrast}");
        }
    }
}
