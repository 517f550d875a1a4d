//! What the check of the form says, point by point.

use eframe::egui::{Button, CollapsingHeader, Label, RichText, ScrollArea, TextEdit, Ui};

use super::super::super::widgets::{Tone, banner_ui, strong};
use crate::domain::{Check, CheckGrade};
use crate::state::{Command, RehearsalReport, SendCheck, SendStage, State, TaskSignal};

pub(super) fn checks_ui(
    ui: &mut Ui,
    state: &State,
    python: &mut String,
    commands: &mut Vec<Command>,
) {
    let sending = &state.remote.sending;
    ui.horizontal(|ui| {
        ui.label(strong("Check"));
        if sending.check.is_running() {
            ui.spinner();
            ui.weak("Asking AWS…");
        }
    });
    match &sending.check {
        SendStage::Done(check) => {
            found_ui(ui, check, commands);
            rehearsal_ui(ui, &sending.rehearsal, python, commands);
        }
        SendStage::Failed(why) => banner_ui(ui, Tone::Error, why, |ui| {
            if ui.button("Check again").clicked() {
                commands.push(Command::CheckJob(Box::new(sending.draft.clone())));
            }
        }),
        SendStage::Running(_) => {}
        SendStage::NotYet => {
            if let Some(missing) = &sending.missing {
                banner_ui(ui, Tone::Hint, missing, |_| {});
            }
        }
    }
}

/// Before anything is paid for: the very archive, with some of the images, on this machine.
fn rehearsal_ui(
    ui: &mut Ui,
    rehearsal: &SendStage<RehearsalReport>,
    python: &mut String,
    commands: &mut Vec<Command>,
) {
    ui.add_space(8.0);
    ui.label(strong("Rehearse before paying"));
    ui.weak("Runs the very archive on this machine and holds its answers to the first images against those of the model here");
    ui.horizontal_wrapped(|ui| {
        ui.label("Python");
        let field = TextEdit::singleline(python).desired_width(150.0);
        ui.add(field).accessible_name("Python that rehearses");
        let is_ready = !rehearsal.is_running() && !python.trim().is_empty();
        if ui
            .add_enabled(is_ready, Button::new("Try it here"))
            .clicked()
        {
            let python = python.trim().to_owned();
            commands.push(Command::Rehearse { python });
        }
        if let SendStage::Running(task) = rehearsal {
            ui.spinner();
            if ui.button("Stop the rehearsal").clicked() {
                commands.push(Command::SignalTask(*task, TaskSignal::Cancel));
            }
        }
    });
    match rehearsal {
        SendStage::Done(report) => {
            let (sign, tone) = if report.is_well {
                ("✓ ", Tone::Hint)
            } else {
                ("", Tone::Warning)
            };
            banner_ui(ui, tone, &format!("{sign}{}", report.summary), |ui| {
                for note in &report.notes {
                    ui.add(Label::new(RichText::new(note).weak()).wrap());
                }
            });
        }
        SendStage::Failed(why) => banner_ui(ui, Tone::Error, why, |_| {}),
        SendStage::NotYet | SendStage::Running(_) => {}
    }
}

fn found_ui(ui: &mut Ui, check: &SendCheck, commands: &mut Vec<Command>) {
    let preflight = &check.preflight;
    let problems = preflight.count(CheckGrade::Problem);
    let warnings = preflight.count(CheckGrade::Warning);
    ui.weak(match (problems, warnings) {
        (0, 0) => "Nothing speaks against it".to_owned(),
        (0, 1) => "Nothing speaks against it; one point to know".to_owned(),
        (0, more) => format!("Nothing speaks against it; {more} points to know"),
        (1, _) => "One point would make the job fail".to_owned(),
        (more, _) => format!("{more} points would make the job fail"),
    });
    ui.add_space(4.0);
    for point in &preflight.checks {
        point_ui(ui, point);
    }
    ui.add_space(6.0);
    CollapsingHeader::new("The same with the aws command line")
        .default_open(false)
        .show(ui, |ui| {
            if ui.button("Copy commands").clicked() {
                commands.push(Command::CopyCommand(check.commands.clone()));
            }
            ScrollArea::both()
                .id_salt("aws commands")
                .max_height(220.0)
                .show(ui, |ui| {
                    let text = RichText::new(&check.commands).monospace().small();
                    ui.add(Label::new(text).extend());
                });
        });
}

/// The verdict as a sign and as a colour, then what was found and what to do.
fn point_ui(ui: &mut Ui, check: &Check) {
    let visuals = ui.visuals();
    let (sign, color) = match check.grade {
        CheckGrade::Ok => ("✓", visuals.text_color()),
        CheckGrade::Warning => ("⚠", visuals.warn_fg_color),
        CheckGrade::Problem => ("✗", visuals.error_fg_color),
    };
    let title = format!("{sign} {}", check.point.label());
    ui.horizontal_top(|ui| {
        ui.allocate_ui_with_layout(
            eframe::egui::vec2(128.0, 0.0),
            eframe::egui::Layout::left_to_right(eframe::egui::Align::Min),
            |ui| {
                ui.set_min_width(128.0);
                ui.label(strong(title).color(color));
            },
        );
        ui.vertical(|ui| {
            ui.add(Label::new(&check.finding).wrap());
            if !check.advice.is_empty() {
                ui.add(Label::new(RichText::new(&check.advice).weak()).wrap());
            }
        });
    });
    ui.add_space(2.0);
}
