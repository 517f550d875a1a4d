//! Textures on the GPU, found by key: boxes cut out of their images here, and the image and thumbnails below. Uploads
//! are spread over frames, and memory is bounded.

mod shown_image;
mod thumbnails;

use std::collections::HashMap;

use eframe::egui::{Color32, ColorImage, Context, TextureFilter, TextureHandle, TextureOptions, TextureWrapMode};

use crate::domain::{DisplayImage, Look, RgbImage, RunId, SampleId, Tile, TileKey};
use crate::review::{FilmBox, FilmFrame};
use crate::window::state::{SourceId, TaskId};

pub(crate) use shown_image::ShownImage;
pub use thumbnails::NewThumbnail;
pub(crate) use thumbnails::{Thumbnail, Thumbnails};

#[derive(Default)]
pub struct Textures {
    pub(crate) thumbnails: Thumbnails,
    pub(crate) image: Option<ShownImage>,
    import_preview: Option<TextureHandle>,
    pub(crate) crops: Crops,
    heat: Option<(TaskId, TextureHandle)>,
}

impl Textures {
    /// Sets the preview of the input of the user's own model.
    pub fn set_import_preview(&mut self, ctx: &Context, image: &RgbImage) {
        self.import_preview = Some(upload(ctx, "model input", color_image(image), false));
    }

    /// The last preview; the form knows whether it belongs to it.
    pub(crate) fn import_preview(&self) -> Option<&TextureHandle> {
        self.import_preview.as_ref()
    }

    /// Sets the image for the canvas, whose tiles follow one by one.
    pub fn set_image(&mut self, source: SourceId, sample: SampleId, image: DisplayImage) {
        self.image = Some(ShownImage::new(source, sample, image));
    }

    /// Adds a tile of the image on screen; one of another image is dropped.
    pub fn add_tile(&mut self, ctx: &Context, source: SourceId, sample: SampleId, key: TileKey, tile: &Tile) {
        if let Some(shown) = self.image_of(source, sample) {
            shown.add(ctx, key, tile);
        }
    }

    /// Whether the last frame showed the image in full detail.
    pub fn image_is_complete(&self) -> bool {
        self.image.as_ref().is_some_and(ShownImage::is_complete)
    }

    /// Whether the filmstrip shows every requested box.
    pub fn filmstrip_is_complete(&self) -> bool {
        self.crops.is_complete()
    }

    /// The image on screen, if it is that of the sample.
    pub(crate) fn image_of(&mut self, source: SourceId, sample: SampleId) -> Option<&mut ShownImage> {
        let of = |shown: &&mut ShownImage| (shown.source, shown.sample) == (source, sample);
        self.image.as_mut().filter(of)
    }

    /// An explanation in colors, one pixel per cell; the task that created it identifies it.
    pub(crate) fn heat(&mut self, ctx: &Context, task: TaskId, make: impl FnOnce() -> ColorImage) -> &TextureHandle {
        let (_, texture) = match self.heat.take() {
            Some(heat) if heat.0 == task => self.heat.insert(heat),
            _ => {
                let texture = upload(ctx, "explanation", make(), false);
                self.heat.insert((task, texture))
            }
        };
        texture
    }

    /// Called before anything paints the image.
    pub(crate) fn begin_frame(&mut self, look: Look) {
        if let Some(shown) = &mut self.image {
            shown.begin_frame(look);
        }
        // Crops that were drawn with another look stay until they are drawn anew.
        self.crops.look = look;
    }

    /// Called after everything has painted: the tiles to request, unless they are already requested.
    pub(crate) fn changed_request(&mut self) -> Option<Vec<TileKey>> {
        self.image.as_mut()?.changed_request()
    }
}

fn upload(ctx: &Context, name: &str, image: ColorImage, crisp: bool) -> TextureHandle {
    ctx.load_texture(name, image, options(crisp))
}

fn options(crisp: bool) -> TextureOptions {
    TextureOptions {
        magnification: if crisp { TextureFilter::Nearest } else { TextureFilter::Linear },
        minification: TextureFilter::Linear,
        wrap_mode: TextureWrapMode::ClampToEdge,
        mipmap_mode: None,
    }
}

/// A texture that is drawn with brightness and contrast.
struct LookTexture {
    handle: TextureHandle,
    look: Look,
    /// The pixels as they are, if they are drawn differently: then the next change needs no request.
    original: Option<ColorImage>,
    is_crisp: bool,
}

impl LookTexture {
    fn new(ctx: &Context, name: &str, image: ColorImage, look: Look, is_crisp: bool) -> Self {
        let original = (look != Look::default()).then(|| image.clone());
        Self { handle: upload(ctx, name, drawn(image, look), is_crisp), look, original, is_crisp }
    }

    fn handle(&self) -> &TextureHandle {
        &self.handle
    }

    /// Draws it with this look; false if its pixels are needed for that.
    fn follow(&mut self, look: Look) -> bool {
        if self.look == look {
            return true;
        }
        let Some(original) = &self.original else {
            return false;
        };
        self.handle.set(drawn(original.clone(), look), options(self.is_crisp));
        self.look = look;
        true
    }
}

fn drawn(mut image: ColorImage, look: Look) -> ColorImage {
    if look != Look::default() {
        let table = look.table();
        for pixel in &mut image.pixels {
            let [red, green, blue, _] = pixel.to_array();
            *pixel = Color32::from_rgb(table[red as usize], table[green as usize], table[blue as usize]);
        }
    }
    image
}

/// For the clipboard.
pub(crate) fn color_image(image: &RgbImage) -> ColorImage {
    let size = [image.width() as usize, image.height() as usize];
    ColorImage::from_rgb(size, image.rgb())
}

/// At most about 60 MiB.
const MAX_CROPS: usize = 400;

#[derive(Default)]
pub(crate) struct Crops {
    of: Option<(SourceId, RunId)>,
    entries: HashMap<(SampleId, FilmBox), Entry>,
    look: Look,
    frame: u64,
    /// The last request, and how its boxes were to be drawn.
    asked: Vec<(SampleId, FilmBox)>,
    asked_look: Look,
}

struct Entry {
    /// The pixels, or why there are none.
    texture: Result<LookTexture, String>,
    seen: u64,
}

/// A box of the filmstrip.
pub(crate) struct Crop<'c> {
    /// Its pixels, or why there are none.
    pub(crate) texture: Result<&'c TextureHandle, &'c str>,
    /// Whether it must be requested to be drawn with the current brightness and contrast.
    pub(crate) is_outdated: bool,
}

impl Crops {
    /// Clears everything if another run is shown now.
    pub(crate) fn begin_frame(&mut self, source: SourceId, run: RunId) {
        self.frame += 1;
        if self.of != Some((source, run)) {
            *self = Self { of: Some((source, run)), look: self.look, ..Self::default() };
        }
    }

    /// Adds a box of the filmstrip, or why it cannot be shown; one of another run is dropped.
    pub(crate) fn add(
        &mut self,
        ctx: &Context,
        of: (SourceId, RunId),
        key: (SampleId, FilmBox),
        result: Result<RgbImage, String>,
    ) {
        if self.of != Some(of) {
            return;
        }
        let texture = result.map(|image| LookTexture::new(ctx, "box", color_image(&image), self.look, false));
        let seen = self.frame;
        self.entries.insert(key, Entry { texture, seen });
        if self.entries.len() > MAX_CROPS {
            self.drop_oldest();
        }
    }

    /// `None` until the box arrives.
    pub(crate) fn get(&mut self, frame: &FilmFrame) -> Option<Crop<'_>> {
        let entry = self.entries.get_mut(&(frame.sample, frame.shows))?;
        entry.seen = self.frame;
        let is_outdated = entry.texture.as_mut().is_ok_and(|texture| !texture.follow(self.look));
        let texture = entry.texture.as_ref().map(LookTexture::handle).map_err(String::as_str);
        Some(Crop { texture, is_outdated })
    }

    /// Whether everything that was requested has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        let is_outdated = |entry: &Entry| entry.texture.as_ref().is_ok_and(|texture| texture.look != self.look);
        let has_arrived = |key| self.entries.get(key).is_some_and(|entry| !is_outdated(entry));
        !self.asked.is_empty() && self.asked.iter().all(has_arrived)
    }

    /// Returns the new request, if it differs from the last one.
    pub(crate) fn changed_request(&mut self, missing: Vec<FilmFrame>) -> Option<Vec<FilmFrame>> {
        let key = |frame: &FilmFrame| (frame.sample, frame.shows);
        let is_same_look = missing.is_empty() || self.asked_look == self.look;
        if is_same_look && missing.iter().all(|frame| self.asked.contains(&key(frame))) {
            return None;
        }
        self.asked_look = self.look;
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
