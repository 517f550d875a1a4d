//! Labels of boxes on an image: each next to its box, without overlaps.

use std::sync::Arc;

use eframe::egui::Galley;

use crate::domain::{BoundingBox, LabelPlaces};
use crate::window::ui::prelude::*;

/// Places the labels on one image. The best box comes first and gets the best position.
pub(crate) struct Labels<'p> {
    painter: &'p Painter,
    places: LabelPlaces,
    font: FontId,
    padding: Vec2,
    /// To be painted above all boxes.
    added: Vec<(Label, Color32)>,
}

/// Sizes of labels on the canvas, in points.
const FONT_SIZE: f32 = 12.0;
const PADDING: Vec2 = vec2(4.0, 1.5);

pub(crate) struct Label {
    pub(crate) plate: Rect,
    pub(crate) galley: Arc<Galley>,
    /// Where the text starts.
    pub(crate) at: Pos2,
}

impl<'p> Labels<'p> {
    pub(crate) fn on_canvas(painter: &'p Painter, canvas: Rect) -> Self {
        Self::new(painter, canvas, FONT_SIZE, PADDING)
    }

    pub(crate) fn new(painter: &'p Painter, canvas: Rect, font_size: f32, padding: Vec2) -> Self {
        Self {
            painter,
            places: LabelPlaces::new(bounds_of(canvas)),
            font: FontId::new(font_size, theme::strong_family()),
            padding,
            added: Vec::new(),
        }
    }

    /// Keeps labels off this rectangle.
    pub(crate) fn reserve(&mut self, place: Rect) {
        self.places.reserve(bounds_of(place));
    }

    /// To be painted on this color.
    pub(crate) fn add(&mut self, label: Label, background: Color32) {
        self.added.push((label, background));
    }

    /// Paints the added labels, the last one on top.
    pub(crate) fn paint(self) {
        let edge = Stroke::new(1.0, Color32::from_black_alpha(150));
        for (Label { plate, galley, at }, background) in self.added {
            self.painter.rect(plate, 3.0, background, edge, StrokeKind::Outside);
            self.painter.galley(at, galley, Color32::PLACEHOLDER);
        }
    }

    /// The first of `texts` (longest first) that fits at the box.
    pub(crate) fn place(&mut self, around: Rect, texts: &[String], ink: Color32) -> Option<Label> {
        let Self { painter, places, font, padding, .. } = self;
        let galleys = texts.iter().map(|text| painter.layout_no_wrap(text.clone(), font.clone(), ink));
        let size_of = |galley: &Arc<Galley>| <[f32; 2]>::from(galley.size() + 2.0 * *padding);
        let (galley, place) = places.take(bounds_of(around), galleys, size_of)?;
        Some(self.label(galley, place))
    }

    /// A label that must be visible, even over others.
    pub(crate) fn insist(&self, around: Rect, text: &str, ink: Color32) -> Option<Label> {
        let galley = self.painter.layout_no_wrap(text.to_owned(), self.font.clone(), ink);
        let size = galley.size() + 2.0 * self.padding;
        let place = self.places.insist(bounds_of(around), size.into())?;
        Some(self.label(galley, place))
    }

    fn label(&self, galley: Arc<Galley>, place: BoundingBox) -> Label {
        let plate = Rect::from_min_max(pos2(place.x1, place.y1), pos2(place.x2, place.y2));
        Label { plate, galley, at: plate.min + self.padding }
    }
}

fn bounds_of(rect: Rect) -> BoundingBox {
    BoundingBox::new(rect.left(), rect.top(), rect.right(), rect.bottom())
}
