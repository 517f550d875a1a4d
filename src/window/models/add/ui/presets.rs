//! Common ways to prepare images, side by side, to find the one that a model was trained with.

use eframe::egui::{Button, Color32, Grid, Label, ProgressBar, RichText, ScrollArea, Sense, Ui, vec2};

use crate::domain::SampleId;
use crate::window::state::{
    Command, Commands, ImportForm, Loadable, ModelsCommand, PresetRow, PresetTable, State, TaskId, TaskSignal,
};
use crate::window::ui::textures::Textures;
use crate::window::ui::widgets::{
    Tone, command_button_ui, image_count, message_ui, note_ui, small_note_line_ui, small_note_ui, strong,
};

const THUMBNAIL_HEIGHT: f32 = 44.0;
const IMAGE_WIDTH: f32 = 132.0;
const NAME_WIDTH: f32 = 170.0;

/// Opens the comparison.
pub(crate) fn button_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let button = ui.add_enabled(!state.samples.is_empty(), Button::new("Find preprocessing…"));
    let button = button.on_hover_text("Runs the model on the images on screen with each common preprocessing");
    if button.on_disabled_hover_text("Open images first").clicked() {
        commands.push(ModelsCommand::FindPreprocessing);
    }
}

pub(crate) fn presets_ui(
    ui: &mut Ui,
    state: &State,
    form: &ImportForm,
    textures: &mut Textures,
    height: f32,
    commands: &mut Commands,
) {
    ui.horizontal(|ui| {
        command_button_ui(ui, "Back to the form", commands, || ModelsCommand::ClosePresets);
        ui.label(strong("Find preprocessing"));
    });
    match &form.presets {
        Loadable::NotLoaded => {}
        Loadable::Loading(task) => progress_ui(ui, state, *task, commands),
        Loadable::Failed(why) => message_ui(ui, Tone::Error, why.message()),
        Loadable::Ready(table) => {
            let hint = format!(
                "{} with each common preprocessing. The correct one usually has the highest score and the lowest \
                 entropy, but only accuracy proves it, which requires folders named after the classes",
                image_count(table.images.len())
            );
            note_ui(ui, hint);
            if let Some(undecided) = &table.undecided {
                message_ui(ui, Tone::Hint, undecided);
            }
            ui.add_space(4.0);
            ScrollArea::both().id_salt("presets").max_height(height - 70.0).auto_shrink([false, true]).show(ui, |ui| {
                table_ui(ui, form, table, textures, commands);
            });
        }
    }
}

fn progress_ui(ui: &mut Ui, state: &State, task: TaskId, commands: &mut Commands) {
    let progress = state.tasks.get(task).map(|task| task.control.progress());
    let (done, total) = progress.map_or((0, None), |progress| (progress.done, progress.total));
    let share = total.map_or(0.0, |total| done as f32 / total.max(1) as f32);
    let text = total.map_or_else(|| "Reading the images…".to_owned(), |total| format!("{done} of {total} predictions"));
    ui.add(ProgressBar::new(share).text(text));
    command_button_ui(ui, "Cancel the comparison", commands, || Command::SignalTask(task, TaskSignal::Cancel));
}

fn table_ui(ui: &mut Ui, form: &ImportForm, table: &PresetTable, textures: &mut Textures, commands: &mut Commands) {
    let has_entropy = table.rows.iter().any(|row| row.mean_entropy.is_some());
    let has_accuracy = table.rows.iter().any(|row| row.accuracy.is_some());
    let grid = Grid::new("presets").striped(true).spacing(vec2(12.0, 6.0));
    grid.show(ui, |ui| {
        ui.label("");
        ui.label(strong("Preprocessing"));
        ui.label(strong("Top score"));
        if has_entropy {
            ui.label(strong("Entropy"));
        }
        if has_accuracy {
            ui.label(strong("Accuracy"));
        }
        for (sample, name) in &table.images {
            image_ui(ui, *sample, name, textures);
        }
        ui.end_row();
        for row in &table.rows {
            row_ui(ui, form, row, [has_entropy, has_accuracy], commands);
            ui.end_row();
        }
    });
}

fn image_ui(ui: &mut Ui, sample: SampleId, name: &str, textures: &mut Textures) {
    ui.vertical(|ui| {
        ui.set_width(IMAGE_WIDTH);
        if let Some(thumbnail) = textures.thumbnails.get(sample) {
            let size = thumbnail.size * (THUMBNAIL_HEIGHT / thumbnail.size.y.max(1.0));
            let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
            ui.painter().image(thumbnail.texture, rect, thumbnail.uv, Color32::WHITE);
        }
        small_note_line_ui(ui, name);
    });
}

fn row_ui(
    ui: &mut Ui,
    form: &ImportForm,
    row: &PresetRow,
    [has_entropy, has_accuracy]: [bool; 2],
    commands: &mut Commands,
) {
    if row.input == form.card.input {
        ui.label("✓ in use");
    } else {
        let take = ui.button("Use");
        if take.clicked() {
            let mut card = form.card.clone();
            card.input = row.input.clone();
            commands.push(ModelsCommand::ChangeImport { card: Box::new(card), labels: form.labels.clone() });
        }
        take.accessible_name(format!("Use {}", row.name));
    }
    ui.vertical(|ui| {
        ui.set_width(NAME_WIDTH);
        ui.add(Label::new(&row.name).truncate());
        small_note_ui(ui, &row.about);
    });
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    ui.label(percent(row.mean_top_score));
    if has_entropy {
        ui.label(row.mean_entropy.map_or_else(String::new, |entropy| format!("{entropy:.2}")));
    }
    if has_accuracy {
        ui.label(row.accuracy.map_or_else(String::new, percent));
    }
    for best in &row.best {
        ui.horizontal(|ui| {
            ui.set_width(IMAGE_WIDTH);
            ui.add(Label::new(RichText::new(best).small()).truncate()).on_hover_text(best);
        });
    }
}
