//! Thumbnails of the open source, the least recently seen dropped first.

use std::collections::HashMap;

use eframe::egui::{self, TextureHandle};

use super::{color_image, upload};
use crate::domain::Picture;
use crate::domain::SampleId;
use crate::state::SourceId;

/// About 500 thumbnails of 256 x 192.
const MAX_BYTES: usize = 96 << 20;

#[derive(Default)]
pub(crate) struct Thumbnails {
    source: Option<SourceId>,
    entries: HashMap<SampleId, Entry>,
    bytes: usize,
    frame: u64,
    /// What was asked for last, most wanted first.
    asked: Vec<SampleId>,
}

struct Entry {
    texture: TextureHandle,
    bytes: usize,
    seen: u64,
}

impl Thumbnails {
    pub(super) fn add(
        &mut self,
        ctx: &egui::Context,
        source: SourceId,
        sample: SampleId,
        picture: &Picture,
    ) {
        self.open(source);
        let bytes = picture.width() as usize * picture.height() as usize * 4;
        let texture = upload(ctx, "thumbnail", color_image(picture), false);
        let entry = Entry {
            texture,
            bytes,
            seen: self.frame,
        };
        if let Some(old) = self.entries.insert(sample, entry) {
            self.bytes -= old.bytes;
        }
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            self.drop_oldest();
        }
    }

    /// Forgets everything where another source is open now.
    pub(crate) fn open(&mut self, source: SourceId) {
        if self.source != Some(source) {
            *self = Self {
                source: Some(source),
                ..Self::default()
            };
        }
    }

    pub(crate) fn begin_frame(&mut self) {
        self.frame += 1;
    }

    /// The texture of a thumbnail on screen.
    pub(crate) fn get(&mut self, sample: SampleId) -> Option<&TextureHandle> {
        let entry = self.entries.get_mut(&sample)?;
        entry.seen = self.frame;
        Some(&entry.texture)
    }

    /// Gives back what is to be asked for, where it is not what was asked for last.
    pub(crate) fn changed_wish(&mut self, missing: Vec<SampleId>) -> Option<Vec<SampleId>> {
        // Nothing new is wanted while fewer are missing of the same ones: they are on their way.
        let is_on_its_way = missing.iter().all(|sample| self.asked.contains(sample));
        if is_on_its_way {
            return None;
        }
        self.asked.clone_from(&missing);
        Some(missing)
    }

    /// Down to three quarters, so that this is done seldom.
    fn drop_oldest(&mut self) {
        let mut by_age: Vec<(u64, SampleId)> = self
            .entries
            .iter()
            .map(|(sample, entry)| (entry.seen, *sample))
            .collect();
        by_age.sort_unstable();
        for (seen, sample) in by_age {
            if self.bytes <= MAX_BYTES / 4 * 3 || seen == self.frame {
                break;
            }
            if let Some(entry) = self.entries.remove(&sample) {
                self.bytes -= entry.bytes;
            }
        }
        self.asked.clear();
    }
}
