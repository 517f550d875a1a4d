//! Going to an image by its name, typing a path if the desktop has no file dialog, and files dropped on the window.

use std::path::PathBuf;

use eframe::egui::{Align2, Area, Color32, Context, FontId, Frame, Id, LayerId, Order, Stroke, StrokeKind, vec2};

use crate::window::state::{BrowseCommand, Command, Commands, FileRequest, Overlay, PathQuestion, State};
use crate::window::ui::dialog::{dialog_ui, heading_ui};
use crate::window::ui::field::Field;
use crate::window::ui::theme;
use crate::window::ui::typing::Typing;
use crate::window::ui::widgets::{command_button_ui, enter_pressed, focus_whole_text, primary_button_ui};

const WIDTH: f32 = 340.0;

#[derive(Default)]
pub(crate) struct GoToMemory(Typing);

/// A small field above the window, which does not cover the image.
pub(crate) fn go_to_ui(ctx: &Context, state: &State, memory: &mut GoToMemory, commands: &mut Commands) {
    let GoToMemory(typing) = memory;
    if !typing.follow(state.overlay == Overlay::GoTo) {
        return;
    }
    let area = Area::new(Id::unique("go to"))
        .order(Order::Foreground)
        .anchor(Align2::CENTER_TOP, vec2(0.0, 80.0))
        .show(ctx, |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(WIDTH);
                let what = "Image name or number";
                let typed = typing.field_ui(ui, what, what);
                let text = || typing.text().to_owned();
                if typed.is_changed {
                    commands.push(BrowseCommand::GoTo(text()));
                }
                if typed.enter {
                    commands.push(BrowseCommand::GoToNext(text()));
                }
                ui.weak(if state.go_to_missed {
                    "No matching image on screen"
                } else {
                    "Enter: next match. Escape: close"
                });
            });
        });
    if area.response.clicked_elsewhere() && !typing.is_new() {
        commands.push(Command::CLOSE_OVERLAY);
    }
}

#[derive(Default)]
pub(crate) struct TypePathMemory {
    path: String,
    /// The current question, to notice another one.
    question: Option<PathQuestion>,
}

pub(crate) fn type_path_ui(ctx: &Context, state: &State, memory: &mut TypePathMemory, commands: &mut Commands) {
    let is_new = memory.question != state.path_question;
    memory.question.clone_from(&state.path_question);
    let Some(PathQuestion { request, reason }) = &state.path_question else {
        return;
    };
    if is_new {
        memory.path = match request {
            FileRequest::ProjectTarget { name } | FileRequest::ExportTarget { name } => name.clone(),
            _ => String::new(),
        };
    }
    dialog_ui(ctx, "type a path", 460.0, BrowseCommand::CancelPath, commands, |ui, commands| {
        heading_ui(ui, request.title(), reason);
        let field = Field::new("Path").text_ui(ui, &mut memory.path);
        if is_new {
            focus_whole_text(&field, &memory.path);
        }
        let is_entered = enter_pressed(&field);
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            let path = memory.path.trim();
            let ok = primary_button_ui(ui, "OK", path.is_empty().then_some("Enter a path"));
            if (ok.clicked() || is_entered) && !path.is_empty() {
                commands.push(BrowseCommand::TypePath(PathBuf::from(path)));
            }
            command_button_ui(ui, "Cancel", commands, || BrowseCommand::CancelPath);
        });
    });
}

pub(crate) fn drop_target_ui(ctx: &Context, commands: &mut Commands) {
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

fn paint_invitation(ctx: &Context) {
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
