//! Thumbnails of the open source, many per texture: a grid then takes few draw calls, and memory is bounded.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use eframe::egui::{Color32, ColorImage, Context, Rect, TextureHandle, TextureId, TextureOptions, Vec2, pos2, vec2};

use crate::domain::{RgbImage, SampleId};
use crate::window::state::SourceId;
use crate::window::ui::textures::color_image;

/// The side of a page in pixels: 4 MiB, small enough to be created within a frame.
const PAGE_SIDE: u32 = 1024;
/// 64 MiB: 1024 small thumbnails, 256 of the usual size, 64 large ones. More only if more are visible together.
const MAX_PAGES: usize = 16;
/// The possible longer sides of a thumbnail, in pixels.
const SIDES: [u32; 3] = [128, 256, 512];
/// The factor by which a thumbnail may be enlarged without being visible.
const ENLARGED: f32 = 1.1;

/// A thumbnail made by a worker.
pub struct NewThumbnail {
    pub sample: SampleId,
    pub version: u32,
    /// The requested longer side, in pixels.
    pub side: u32,
    pub image: RgbImage,
}

/// A thumbnail ready to be painted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thumbnail {
    pub(crate) texture: TextureId,
    /// Its part of the texture.
    pub(crate) uv: Rect,
    /// In pixels.
    pub(crate) size: Vec2,
}

pub(crate) struct Thumbnails {
    source: Option<SourceId>,
    /// One of [`SIDES`].
    side: u32,
    pages: Vec<TextureHandle>,
    slots: Slots,
    frame: u64,
    /// What was requested and has not arrived yet, with the version of its file.
    asked: HashSet<(SampleId, u32)>,
    /// A thumbnail outside the grid that is needed first.
    wanted: Option<(SampleId, u32)>,
    /// The indices that were visible at the time of the request.
    asked_for_places: Range<usize>,
}

impl Default for Thumbnails {
    fn default() -> Self {
        Self {
            source: None,
            side: SIDES[0],
            pages: Vec::new(),
            slots: Slots::default(),
            frame: 0,
            asked: HashSet::new(),
            wanted: None,
            asked_for_places: 0..0,
        }
    }
}

impl Thumbnails {
    pub(crate) fn add(&mut self, ctx: &Context, source: SourceId, thumbnail: &NewThumbnail) {
        self.open(source);
        let size = [thumbnail.image.width(), thumbnail.image.height()];
        if thumbnail.side != self.side || size.iter().any(|side| *side > self.side) {
            // Requested before the thumbnail size changed.
            return;
        }
        let (sample, version) = (thumbnail.sample, thumbnail.version);
        self.asked.remove(&(sample, version));
        let max = MAX_PAGES * self.slots_a_page();
        let slot = self.slots.put(sample, version, size, self.frame, max);
        let page = slot / self.slots_a_page();
        if page >= self.pages.len() {
            self.pages.push(new_page(ctx));
        }
        let corner = self.corner(slot).map(|at| at as usize);
        let image = color_image(&thumbnail.image);
        self.pages[page].set_partial(corner, image, TextureOptions::LINEAR);
    }

    /// Clears everything if another source is open now.
    pub(crate) fn open(&mut self, source: SourceId) {
        if self.source != Some(source) {
            *self = Self { source: Some(source), side: self.side, ..Self::default() };
        }
    }

    /// `wanted_side` is the size of a thumbnail on screen, in screen pixels.
    pub(crate) fn begin_frame(&mut self, wanted_side: f32) {
        self.frame += 1;
        let is_enough = |side: &u32| *side as f32 * ENLARGED >= wanted_side;
        let largest = SIDES[SIDES.len() - 1];
        let side = SIDES.into_iter().find(is_enough).unwrap_or(largest);
        if side != self.side {
            *self = Self { source: self.source, side, frame: self.frame, ..Self::default() };
        }
    }

    /// The side of the thumbnails to make, in pixels.
    pub(crate) fn side(&self) -> u32 {
        self.side
    }

    /// The thumbnail of a visible sample, perhaps of an earlier version of its file.
    pub(crate) fn get(&mut self, sample: SampleId) -> Option<Thumbnail> {
        let (index, slot) = self.slots.see(sample, self.frame)?;
        let texture = self.pages.get(index / self.slots_a_page())?.id();
        let [x, y] = self.corner(index).map(|at| at as f32);
        let size = vec2(slot.size[0] as f32, slot.size[1] as f32);
        // Half a pixel inside, so that neighbors do not bleed in when scaled.
        let inset = Vec2::splat(0.5).min(size / 2.0);
        let in_page = Rect::from_min_size(pos2(x, y), size).shrink2(inset);
        let scale = 1.0 / PAGE_SIDE as f32;
        let uv =
            Rect::from_min_max((in_page.min.to_vec2() * scale).to_pos2(), (in_page.max.to_vec2() * scale).to_pos2());
        Some(Thumbnail { texture, uv, size })
    }

    /// Whether there is one for this version of the file.
    pub(crate) fn is_current(&self, sample: SampleId, version: u32) -> bool {
        self.slots.has(sample, version)
    }

    /// Adds a thumbnail outside the grid to the next request.
    pub(crate) fn want(&mut self, sample: SampleId, version: u32) {
        self.wanted = Some((sample, version));
    }

    /// The number of useful thumbnails in addition to those on screen.
    pub(crate) fn spare(&self, on_screen: usize) -> usize {
        (MAX_PAGES * self.slots_a_page() / 4 * 3).saturating_sub(on_screen)
    }

    /// Returns the new request, most wanted first, if it differs from the last one. `places` are the visible ones.
    pub(crate) fn changed_request(
        &mut self,
        places: Range<usize>,
        mut missing: Vec<(SampleId, u32)>,
    ) -> Option<Vec<SampleId>> {
        if let Some((sample, version)) =
            self.wanted.take().filter(|(sample, version)| !self.is_current(*sample, *version))
        {
            missing.insert(0, (sample, version));
        }
        let has_moved = self.asked_for_places != places;
        let is_on_its_way = missing.iter().all(|request| self.asked.contains(request));
        let drops_something = has_moved && !self.asked.is_empty();
        if is_on_its_way && !drops_something {
            return None;
        }
        self.asked_for_places = places;
        self.asked = missing.iter().copied().collect();
        Some(missing.into_iter().map(|(sample, _)| sample).collect())
    }

    fn slots_a_row(&self) -> u32 {
        PAGE_SIDE / self.side
    }

    fn slots_a_page(&self) -> usize {
        (self.slots_a_row() * self.slots_a_row()) as usize
    }

    /// The position of a slot in its page, in pixels.
    fn corner(&self, slot: usize) -> [u32; 2] {
        let in_page = (slot % self.slots_a_page()) as u32;
        let (column, row) = (in_page % self.slots_a_row(), in_page / self.slots_a_row());
        [column * self.side, row * self.side]
    }
}

fn new_page(ctx: &Context) -> TextureHandle {
    let side = PAGE_SIDE as usize;
    let empty = ColorImage::filled([side, side], Color32::TRANSPARENT);
    ctx.load_texture("thumbnails", empty, TextureOptions::LINEAR)
}

/// Slots of one size, numbered from zero. Their number is bounded, unless more are visible together.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    by_sample: HashMap<SampleId, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) sample: SampleId,
    /// The version of the thumbnail's file.
    pub(crate) version: u32,
    /// Width and height of the thumbnail in pixels.
    pub(crate) size: [u32; 2],
    /// The last frame in which it was visible.
    seen: u64,
}

impl Slots {
    /// The slot of a thumbnail that is visible in this frame.
    pub(crate) fn see(&mut self, sample: SampleId, frame: u64) -> Option<(usize, Slot)> {
        let index = *self.by_sample.get(&sample)?;
        let slot = &mut self.slots[index];
        slot.seen = frame;
        Some((index, *slot))
    }

    pub(crate) fn has(&self, sample: SampleId, version: u32) -> bool {
        let index = self.by_sample.get(&sample);
        index.is_some_and(|&index| self.slots[index].version == version)
    }

    /// Returns the slot of a thumbnail: its own, a new one while there are fewer than `max`, or that of the least
    /// recently seen thumbnail.
    pub(crate) fn put(&mut self, sample: SampleId, version: u32, size: [u32; 2], frame: u64, max: usize) -> usize {
        let slot = Slot { sample, version, size, seen: frame };
        let known = self.by_sample.get(&sample).copied();
        let index = known.or_else(|| self.replaceable(frame, max));
        let index = index.unwrap_or(self.slots.len());
        if let Some(place) = self.slots.get_mut(index) {
            let old = std::mem::replace(place, slot);
            self.by_sample.remove(&old.sample);
        } else {
            self.slots.push(slot);
        }
        self.by_sample.insert(sample, index);
        index
    }

    /// `None` if there is room for one more, or all are visible.
    fn replaceable(&self, frame: u64, max: usize) -> Option<usize> {
        if self.slots.len() < max {
            return None;
        }
        let slots = self.slots.iter().enumerate();
        let (index, oldest) = slots.min_by_key(|(_, slot)| slot.seen)?;
        // Those of the last frame are still visible: this frame may not have drawn them yet.
        (oldest.seen + 1 < frame).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use eframe::egui;

    use super::*;

    const SOURCE: SourceId = SourceId(1);

    fn thumbnail(sample: u32, side: u32, size: [u32; 2]) -> NewThumbnail {
        let [width, height] = size;
        let rgb = vec![7; (width * height * 3) as usize];
        NewThumbnail { sample: SampleId(sample), version: 0, side, image: RgbImage::new(width, height, rgb).unwrap() }
    }

    #[test]
    fn thumbnails_share_pages_without_overlap() {
        let ctx = egui::Context::default();
        let mut thumbnails = Thumbnails::default();
        for sample in 0..65 {
            thumbnails.add(&ctx, SOURCE, &thumbnail(sample, 128, [128, 96]));
        }
        assert_eq!(thumbnails.pages.len(), 2);
        let (first, second) = (thumbnails.get(SampleId(0)).unwrap(), thumbnails.get(SampleId(1)).unwrap());
        assert_eq!(first.texture, second.texture);
        assert!(first.uv.right() < second.uv.left());
        assert_eq!(first.size, vec2(128.0, 96.0));
        let last = thumbnails.get(SampleId(64)).unwrap();
        assert_ne!(last.texture, first.texture);
        assert!(last.uv.left() < 0.01 && last.uv.top() < 0.01);
    }

    #[test]
    fn memory_stays_bounded_while_scrolling() {
        let ctx = egui::Context::default();
        let mut thumbnails = Thumbnails::default();
        thumbnails.begin_frame(250.0);
        for sample in 0..2000 {
            thumbnails.begin_frame(250.0);
            thumbnails.add(&ctx, SOURCE, &thumbnail(sample, 256, [4, 3]));
        }
        assert_eq!(thumbnails.pages.len(), MAX_PAGES);
        assert!(thumbnails.is_current(SampleId(1999), 0));
        assert!(!thumbnails.is_current(SampleId(0), 0));
    }

    #[test]
    fn new_cell_size_requests_another_thumbnail_size() {
        let ctx = egui::Context::default();
        let mut thumbnails = Thumbnails::default();
        thumbnails.begin_frame(100.0);
        assert_eq!(thumbnails.side(), 128);
        thumbnails.add(&ctx, SOURCE, &thumbnail(1, 128, [128, 96]));
        thumbnails.begin_frame(200.0);
        assert_eq!(thumbnails.side(), 256);
        assert!(thumbnails.get(SampleId(1)).is_none());
        // A late one of the old size is useless.
        thumbnails.add(&ctx, SOURCE, &thumbnail(1, 128, [128, 96]));
        assert!(thumbnails.get(SampleId(1)).is_none());
        thumbnails.begin_frame(10_000.0);
        assert_eq!(thumbnails.side(), 512);
    }

    #[test]
    fn request_is_repeated_only_after_a_change() {
        let mut thumbnails = Thumbnails::default();
        let missing = |samples: &[u32]| samples.iter().map(|id| (SampleId(*id), 0)).collect();
        assert!(thumbnails.changed_request(0..4, missing(&[0, 1])).is_some());
        assert!(thumbnails.changed_request(0..4, missing(&[1])).is_none());
        assert!(thumbnails.changed_request(2..6, missing(&[1])).is_some());
        assert!(thumbnails.changed_request(2..6, missing(&[1, 5])).is_some());
        // After scrolling to thumbnails that are all loaded, the request for the other position is dropped.
        assert_eq!(thumbnails.changed_request(8..12, missing(&[])), Some(Vec::new()));
        assert!(thumbnails.changed_request(9..12, missing(&[])).is_none());
    }

    const SIZE: [u32; 2] = [128, 96];

    fn put(slots: &mut Slots, sample: u32, frame: u64) -> usize {
        slots.put(SampleId(sample), 0, SIZE, frame, 3)
    }

    fn is_there(slots: &Slots, sample: u32) -> bool {
        slots.has(SampleId(sample), 0)
    }

    #[test]
    fn least_recently_seen_slot_is_reused() {
        let mut slots = Slots::default();
        for sample in 0..3 {
            assert_eq!(put(&mut slots, sample, 1), sample as usize);
        }
        slots.see(SampleId(0), 2);
        slots.see(SampleId(2), 3);
        assert_eq!(put(&mut slots, 7, 9), 1);
        assert!(is_there(&slots, 0) && is_there(&slots, 2) && is_there(&slots, 7));
        assert!(!is_there(&slots, 1));
    }

    #[test]
    fn visible_slots_are_never_reused() {
        let mut slots = Slots::default();
        for sample in 0..5 {
            put(&mut slots, sample, 4);
        }
        assert!((0..5).all(|sample| is_there(&slots, sample)));
        // After scrolling away, the slots are reused.
        assert!(put(&mut slots, 9, 8) < 5);
    }

    #[test]
    fn changed_file_keeps_its_thumbnail_until_the_next() {
        let mut slots = Slots::default();
        let index = put(&mut slots, 1, 1);
        assert!(!slots.has(SampleId(1), 1));
        assert!(slots.see(SampleId(1), 2).is_some());
        assert_eq!(slots.put(SampleId(1), 1, SIZE, 3, 3), index);
        assert!(slots.has(SampleId(1), 1));
    }
}
