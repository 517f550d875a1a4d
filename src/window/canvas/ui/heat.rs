//! Draws which parts of the image a prediction depends on.

use eframe::egui::{Color32, ColorImage, Painter, Rect, pos2};

use crate::domain::Saliency;
use crate::window::state::{Explanation, State};
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;

/// `on_screen` is the rectangle of the whole image.
pub(crate) fn heat_ui(painter: &Painter, state: &State, textures: &mut Textures, on_screen: Rect) {
    let Explanation::Ready { task, saliency, .. } = &state.shown.explanation else {
        return;
    };
    let texture = textures.heat(painter.ctx(), *task, || heat_image(saliency));
    let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
    let opacity = Color32::WHITE.gamma_multiply(state.settings.explanation_opacity);
    painter.image(texture.id(), on_screen, whole, opacity);
}

/// One pixel per cell; the GPU interpolates between them.
fn heat_image(saliency: &Saliency) -> ColorImage {
    let cells = (0..saliency.rows)
        .flat_map(|row| (0..saliency.columns).map(move |column| theme::heat_color(saliency.strength(row, column))));
    ColorImage::new([saliency.columns, saliency.rows], cells.collect())
}
