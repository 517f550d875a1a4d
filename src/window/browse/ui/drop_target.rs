//! Folders, images, annotations and models dropped on the window.

use std::path::PathBuf;

use eframe::egui::{self, Align2, Color32, FontId, Id, LayerId, Order, Stroke, StrokeKind};

use crate::window::state::{BrowseCommand, Command, Queue};
use crate::window::ui::theme;

pub(crate) fn drop_target_ui(ctx: &egui::Context, commands: &mut Queue<Command>) {
    let is_hovered = ctx.input(|input| !input.raw.hovered_files.is_empty());
    if is_hovered {
        paint_invitation(ctx);
    }
    let dropped: Vec<PathBuf> = ctx.input(|input| {
        let files = input.raw.dropped_files.iter();
        files.map(|file| file.path().to_owned()).collect()
    });
    if !dropped.is_empty() {
        commands.push(BrowseCommand::Drop(dropped));
    }
}

fn paint_invitation(ctx: &egui::Context) {
    let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
    let rect = ctx.content_rect();
    let accent = theme::accent(&ctx.global_style().visuals);
    painter.rect_filled(rect, 0.0, Color32::from_black_alpha(190));
    let frame = rect.shrink(16.0);
    painter.rect_stroke(frame, 12.0, Stroke::new(3.0, accent), StrokeKind::Inside);
    painter.text(
        rect.center(),
        Align2::CENTER_CENTER,
        "Drop folders, images, predictions or ground truth for the open images, or an .onnx file to add a model",
        FontId::new(18.0, theme::strong_family()),
        Color32::WHITE,
    );
}
