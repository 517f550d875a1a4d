//! Pixels on the graphics card, found by key. Uploads are spread over frames, and memory has a bound.

mod picture;
mod thumbnails;

use eframe::egui::{self, ColorImage, TextureHandle};

pub(super) use picture::{PaintedPicture, ShownPicture};
pub(super) use thumbnails::Thumbnails;

use crate::domain::SampleId;
use crate::domain::{DisplayPicture, Picture};
use crate::state::{ImportId, SourceId};

/// Every texture of the window.
#[derive(Default)]
pub struct Textures {
    pub(super) thumbnails: Thumbnails,
    pub(super) picture: Option<ShownPicture>,
    import_preview: Option<(ImportId, TextureHandle)>,
}

impl Textures {
    /// Takes a thumbnail of the given source; those of another source are forgotten.
    pub fn add_thumbnail(
        &mut self,
        ctx: &egui::Context,
        source: SourceId,
        sample: SampleId,
        picture: &Picture,
    ) {
        self.thumbnails.add(ctx, source, sample, picture);
    }

    /// Takes what a model of the user's own gets to see.
    pub fn set_import_preview(&mut self, ctx: &egui::Context, import: ImportId, picture: &Picture) {
        let texture = upload(ctx, "model input", color_image(picture), false);
        self.import_preview = Some((import, texture));
    }

    pub(super) fn import_preview(&self, import: ImportId) -> Option<&TextureHandle> {
        let (of, texture) = self.import_preview.as_ref()?;
        (*of == import).then_some(texture)
    }

    /// Takes the picture for the canvas.
    pub fn set_picture(&mut self, source: SourceId, sample: SampleId, picture: DisplayPicture) {
        self.picture = Some(ShownPicture::new(source, sample, picture));
    }
}

fn upload(ctx: &egui::Context, name: &str, image: ColorImage, crisp: bool) -> TextureHandle {
    let options = egui::TextureOptions {
        magnification: if crisp {
            egui::TextureFilter::Nearest
        } else {
            egui::TextureFilter::Linear
        },
        minification: egui::TextureFilter::Linear,
        wrap_mode: egui::TextureWrapMode::ClampToEdge,
        mipmap_mode: None,
    };
    ctx.load_texture(name, image, options)
}

/// For the clipboard.
pub(crate) fn color_image(picture: &Picture) -> ColorImage {
    let size = [picture.width() as usize, picture.height() as usize];
    ColorImage::from_rgb(size, picture.rgb())
}
