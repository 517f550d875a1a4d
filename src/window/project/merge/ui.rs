//! The dialog of a merge: what the two projects have in common, and their conflicts one by one.

use eframe::egui::Modifiers;

use crate::domain::{Pair, Prefer};
use crate::window::canvas::ui::boxes::{Line, frame};
use crate::window::canvas::ui::paint_image;
use crate::window::canvas::ui::placement::Placement;
use crate::window::state::{CanvasView, Display, FileRequest, MergeCommand, MergeFindings, Merging, ProjectCommand};
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const WIDTH: f32 = 620.0;
const IMAGE_HEIGHT: f32 = 240.0;
const CLASSES_HEIGHT: f32 = 120.0;

/// The decisions with their keys.
const DECISIONS: [(Prefer, &str, Key); 3] = [
    (Prefer::First, "Keep mine", Key::M),
    (Prefer::Second, "Keep theirs", Key::T),
    (Prefer::None, "Leave unjudged", Key::U),
];

pub(crate) fn merge_ui(ctx: &Context, state: &State, textures: &mut Textures, commands: &mut Commands) {
    let Some(merging) = state.merging.as_ref().filter(|_| state.overlay == Overlay::Merge) else {
        return;
    };
    dialog_ui(ctx, "merge projects", WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let about = format!("Mine: the open project. Theirs: {}", merging.request.other.display());
        heading_ui(ui, "Merge project", &about);
        match &merging.findings {
            Loadable::Loading(task) => running_ui(ui, "Comparing the verdicts…", *task, commands),
            Loadable::Failed(failure) => message_ui(ui, Tone::Error, failure.message()),
            Loadable::NotLoaded => drop(note_ui(ui, "The comparison was canceled")),
            Loadable::Ready(found) => found_ui(ui, state, merging, found, textures, commands),
        }
        ui.add_space(8.0);
        buttons_ui(ui, merging, commands);
    });
}

fn running_ui(ui: &mut Ui, text: &str, task: TaskId, commands: &mut Commands) {
    ui.horizontal(|ui| {
        ui.spinner();
        ui.weak(text);
        command_button_ui(ui, "Cancel", commands, || Command::cancel(task));
    });
}

fn found_ui(
    ui: &mut Ui,
    state: &State,
    merging: &Merging,
    found: &MergeFindings,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let kappa = match found.kappa.kappa {
        _ if found.kappa.pairs == 0 => "Nobody has judged the same boxes or images".to_owned(),
        Some(kappa) => format!("Cohen’s kappa {kappa:.3}"),
        None => "Cohen’s kappa unknown: all verdicts are the same".to_owned(),
    };
    ui.label(strong(kappa).size(15.0));
    note_ui(
        ui,
        format!(
            "{} only theirs, {} of both, {}",
            counted(found.added, "verdict", "verdicts"),
            grouped(found.pairs),
            counted(found.conflicts.len(), "conflict", "conflicts")
        ),
    );
    for note in &found.notes {
        note_ui(ui, note);
    }
    classes_ui(ui, found);
    let Some(pair) = found.conflicts.get(merging.current) else {
        return;
    };
    conflict_ui(ui, state, merging, pair, textures, commands);
}

fn classes_ui(ui: &mut Ui, found: &MergeFindings) {
    if found.classes.is_empty() {
        return;
    }
    section_ui(ui, "Kappa by class", false, |ui| {
        ScrollArea::vertical().max_height(CLASSES_HEIGHT).show(ui, |ui| {
            Grid::new("kappa by class").num_columns(3).spacing(vec2(16.0, 2.0)).show(ui, |ui| {
                for (class, row) in &found.classes {
                    ui.label(class.as_deref().unwrap_or("whole images"));
                    ui.label(row.kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.3}")));
                    ui.weak(counted(row.pairs, "pair", "pairs"));
                    ui.end_row();
                }
            });
        });
    });
}

fn conflict_ui(
    ui: &mut Ui,
    state: &State,
    merging: &Merging,
    pair: &Pair,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let count = merging.choices.len();
    ui.horizontal(|ui| {
        ui.label(strong(format!("Conflict {} of {}", merging.current + 1, grouped(count))));
        let undecided = merging.undecided();
        ui.weak(if undecided == 0 { "all decided".to_owned() } else { format!("{} undecided", grouped(undecided)) });
        let go = |by: usize| ProjectCommand::Merge(MergeCommand::Go((merging.current + by) % count));
        let steps = [("<", "Previous conflict", Key::ArrowLeft, count - 1), (">", "Next conflict", Key::ArrowRight, 1)];
        for (text, name, key, by) in steps {
            let button = ui.button(text).on_hover_text(name);
            if button.clicked() || ui.input_mut(|input| input.consume_key(Modifiers::NONE, key)) {
                commands.push(go(by));
            }
            button.accessible_name(name);
        }
    });
    wrapped_ui(ui, about(state, pair));
    image_ui(ui, state, pair, textures);
    Grid::new("both verdicts").num_columns(2).spacing(vec2(16.0, 3.0)).show(ui, |ui| {
        for (side, whose) in ["Mine", "Theirs"].into_iter().enumerate() {
            ui.weak(whose);
            let of_image = if pair.are_of_image[side] { " (whole image)" } else { "" };
            let by = pair.reviewers[side].as_ref().map_or_else(String::new, |name| format!(", {name}"));
            ui.label(format!("{}{of_image}{by}", verdict_text(&pair.verdicts[side])));
            ui.end_row();
        }
    });
    ui.horizontal_wrapped(|ui| {
        for (prefer, label, key) in DECISIONS {
            let is_chosen = merging.choices.get(merging.current) == Some(&Some(prefer));
            let button = ui.selectable_label(is_chosen, format!("{label} ({})", key.name()));
            if button.clicked() || ui.input_mut(|input| input.consume_key(Modifiers::NONE, key)) {
                commands.push(ProjectCommand::Merge(MergeCommand::Decide(prefer)));
            }
        }
    });
}

/// “beach.jpg, box 4: cup”
fn about(state: &State, pair: &Pair) -> String {
    let sample = state.samples.find(&pair.sample).and_then(|sample| state.samples.get(sample));
    let name = sample.map_or_else(|| pair.sample.to_string(), |sample| sample.name.clone());
    match (pair.box_index, &pair.class) {
        (Some(index), Some(class)) => format!("{name}, box {}: {class}", index + 1),
        (Some(index), None) => format!("{name}, box {}", index + 1),
        (None, Some(class)) => format!("{name}: {class}"),
        (None, None) => format!("{name}, the whole image"),
    }
}

/// The image with the box, if it is open and read.
fn image_ui(ui: &mut Ui, state: &State, pair: &Pair, textures: &mut Textures) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), IMAGE_HEIGHT), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Image of the conflict"));
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, 4.0, theme::sunken_fill(ui.visuals()));
    let is_shown = state.samples.find(&pair.sample).is_some_and(|sample| state.shown_sample() == Some(sample));
    let Display::Ready(info) = &state.shown.display else {
        return;
    };
    if !is_shown {
        return;
    }
    let size = vec2(info.size[0] as f32, info.size[1] as f32);
    let placement = Placement::new(rect, size, CanvasView::Fit);
    paint_image(state, textures, &painter, placement.on_screen);
    let drawn = pair.verdicts.iter().filter_map(|verdict| verdict.drawn()).map(|drawn| (drawn.bounds(), drawn.class()));
    let predicted = pair.box_index.and_then(|index| {
        let found = state.shown.prediction.as_ref()?.detections().get(index as usize)?;
        Some((found.bounds, found.label.as_str()))
    });
    for (bounds, class) in predicted.into_iter().chain(drawn) {
        frame(&painter, placement.screen_from_image(bounds), theme::class_color(class), 1.0, true, Line::Solid);
    }
}

fn buttons_ui(ui: &mut Ui, merging: &Merging, commands: &mut Commands) {
    match &merging.saving {
        Loadable::Loading(task) => return running_ui(ui, "Writing the merged project…", *task, commands),
        Loadable::Failed(failure) => message_ui(ui, Tone::Error, failure.message()),
        Loadable::NotLoaded | Loadable::Ready(_) => {}
    }
    let undecided = merging.undecided();
    if undecided > 0 {
        let conflicts = counted(undecided, "undecided conflict becomes", "undecided conflicts become");
        note_ui(ui, format!("{conflicts} unjudged: search for !verdict"));
    }
    ui.horizontal_wrapped(|ui| {
        let missing = merging.findings.ready().is_none().then_some("Compare two projects first");
        primary_button_ui(ui, "Save merged project…", missing)
            .on_click(commands, || ProjectCommand::Merge(MergeCommand::PickTarget));
        command_button_ui(ui, "Other project…", commands, || Command::PickFile(FileRequest::MergedProject));
        command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
    });
}
