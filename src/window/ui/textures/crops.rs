//! Boxes cut out of their images; the least recently seen are dropped first.

use std::collections::HashMap;

use eframe::egui::{Context, TextureHandle};

use crate::domain::{RgbImage, RunId, SampleId};
use crate::review::{FilmBox, FilmFrame};
use crate::window::state::SourceId;
use crate::window::ui::textures::{color_image, upload};

/// At most about 60 MiB.
const MAX_CROPS: usize = 400;

#[derive(Default)]
pub(crate) struct Crops {
    of: Option<(SourceId, RunId)>,
    entries: HashMap<(SampleId, FilmBox), Entry>,
    frame: u64,
    asked: Vec<(SampleId, FilmBox)>,
}

struct Entry {
    /// The pixels, or why there are none.
    texture: Result<TextureHandle, String>,
    seen: u64,
}

impl Crops {
    /// Clears everything if another run is shown now.
    pub(crate) fn begin_frame(&mut self, source: SourceId, run: RunId) {
        self.frame += 1;
        if self.of != Some((source, run)) {
            *self = Self { of: Some((source, run)), ..Self::default() };
        }
    }

    pub(crate) fn add(
        &mut self,
        ctx: &Context,
        of: (SourceId, RunId),
        key: (SampleId, FilmBox),
        result: Result<&RgbImage, String>,
    ) {
        if self.of != Some(of) {
            return;
        }
        let texture = result.map(|image| upload(ctx, "box", color_image(image), false));
        let seen = self.frame;
        self.entries.insert(key, Entry { texture, seen });
        if self.entries.len() > MAX_CROPS {
            self.drop_oldest();
        }
    }

    /// The box's pixels, or why there are none; `None` until they arrive.
    pub(crate) fn get(&mut self, frame: &FilmFrame) -> Option<Result<&TextureHandle, &str>> {
        let entry = self.entries.get_mut(&(frame.sample, frame.shows))?;
        entry.seen = self.frame;
        Some(entry.texture.as_ref().map_err(String::as_str))
    }

    /// Whether everything that was requested has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        !self.asked.is_empty() && self.asked.iter().all(|key| self.entries.contains_key(key))
    }

    /// Returns the new request, if it differs from the last one.
    pub(crate) fn changed_request(&mut self, missing: Vec<FilmFrame>) -> Option<Vec<FilmFrame>> {
        let key = |frame: &FilmFrame| (frame.sample, frame.shows);
        if missing.iter().all(|frame| self.asked.contains(&key(frame))) {
            return None;
        }
        self.asked = missing.iter().map(key).collect();
        Some(missing)
    }

    /// Down to three quarters, so that this is rare.
    fn drop_oldest(&mut self) {
        let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.seen).collect();
        ages.sort_unstable();
        let oldest_kept = ages[ages.len() - MAX_CROPS / 4 * 3].min(self.frame);
        self.entries.retain(|_, entry| entry.seen >= oldest_kept);
        self.asked.clear();
    }
}
