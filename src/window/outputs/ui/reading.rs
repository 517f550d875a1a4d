//! How predictions from other tools are read: as detected, or with a mapping that is made, tried and saved here. Part
//! of the dialogs that need it.

mod fields;
mod preview;

use std::path::PathBuf;

use eframe::egui::ComboBox;
use eframe::egui::containers::menu::MenuButton;

use crate::sagemaker::spec::output_mapping::{MappingDraft, MappingFault, MappingField, ReadingRequest};
use crate::window::state::{FileRequest, OutputsCommand, SavedMapping};
use crate::window::ui::prelude::*;

pub(crate) use preview::examples_ui;

/// The built-in label sets: the name in fields and on the command line, and the title.
pub(crate) const LABEL_SETS: [(&str, &str); 4] =
    [("imagenet", "ImageNet (1000)"), ("coco-80", "COCO (80)"), ("coco-91", "COCO (91 ids)"), ("cifar-10", "CIFAR-10")];
/// The width of the buttons on the right of fields, in points.
pub(crate) const BUTTON_WIDTH: f32 = 92.0;
const LOAD_WIDTH: f32 = 60.0;
const RECOGNIZED: &str = "Automatically";
const OWN: &str = "With a mapping";

#[derive(Default)]
pub(crate) struct ReadingMemory {
    has_mapping: bool,
    draft: MappingDraft,
    labels: String,
    /// A file to load a mapping from.
    file: String,
    /// The loaded mapping that was used last.
    taken_over: u64,
    /// A saved mapping whose deletion waits for confirmation.
    doomed: Option<PathBuf>,
}

impl ReadingMemory {
    /// The reading that the fields describe.
    ///
    /// # Errors
    /// The first invalid field.
    pub(crate) fn request(&self) -> Result<ReadingRequest, MappingFault> {
        let mapping = self.has_mapping.then(|| self.draft.mapping()).transpose()?;
        Ok(ReadingRequest { mapping: mapping.map(Box::new), labels: self.labels.trim().to_owned() })
    }

    /// [`Self::request`] for a button that needs it.
    ///
    /// # Errors
    /// Why the button is disabled: the fields are not complete, or a mapping is about to fill them.
    pub(crate) fn final_request(&self, state: &State) -> Result<ReadingRequest, String> {
        if state.remote.reading.is_loading {
            return Err("The mapping is being read".to_owned());
        }
        self.request().map_err(|fault| format!("The mapping is not complete: {}", fault.reason))
    }

    /// Starts with the reading in `request`. What was loaded for another dialog is ignored.
    pub(crate) fn beginning_with(request: &ReadingRequest, state: &State) -> Self {
        let mapping = request.mapping.as_deref();
        let loaded = state.remote.reading.loaded.as_ref();
        Self {
            has_mapping: mapping.is_some(),
            draft: mapping.map_or_else(MappingDraft::default, MappingDraft::from),
            labels: request.labels.clone(),
            taken_over: loaded.map_or(0, |(number, _)| *number),
            ..Self::default()
        }
    }

    fn take_over(&mut self, saved: &SavedMapping) {
        self.has_mapping = true;
        self.draft = MappingDraft::from(&saved.mapping);
        self.labels.clone_from(&saved.labels);
    }

    /// A mapping that is guessed from the first example, or from the detected format.
    fn begin_mapping(&mut self, state: &State) {
        self.has_mapping = true;
        let reading = &state.remote.reading;
        let recognized = reading.trial.as_ref();
        let recognized = recognized.and_then(|trial| trial.recognized.as_ref());
        self.draft = match (recognized, reading.examples()) {
            (Some(mapping), _) => MappingDraft { id: String::new(), ..MappingDraft::from(mapping) },
            (None, Some(examples)) => MappingDraft::from_places(&examples.places),
            (None, None) => MappingDraft::default(),
        };
        if let (true, Some(labels)) = (self.labels.is_empty(), recognized.and_then(|mapping| mapping.labels.as_ref())) {
            self.labels.clone_from(labels);
        }
    }
}

/// The choice, the fields of a mapping, and the class names. Reads the examples again whenever something changes.
pub(crate) fn reading_ui(ui: &mut Ui, state: &State, memory: &mut ReadingMemory, commands: &mut Commands) {
    let reading = &state.remote.reading;
    if let Some((number, loaded)) = &reading.loaded
        && memory.taken_over != *number
    {
        memory.taken_over = *number;
        memory.take_over(loaded);
    }
    ui.label(strong("Prediction format"));
    choice_ui(ui, state, memory);
    let fault = memory.request().err();
    if memory.has_mapping {
        ui.add_space(4.0);
        let places = reading.examples().map(|examples| &*examples.places);
        fields::fields_ui(ui, &mut memory.draft, places, fault.as_ref());
    }
    ui.add_space(6.0);
    labels_ui(ui, &mut memory.labels);
    if memory.has_mapping {
        ui.add_space(6.0);
        files_ui(ui, state, memory, commands);
    }
    try_when_changed(state, memory, commands);
}

/// One request at a time: what is typed meanwhile is requested next.
fn try_when_changed(state: &State, memory: &ReadingMemory, commands: &mut Commands) {
    let reading = &state.remote.reading;
    if reading.examples().is_none() || reading.is_asking() {
        return;
    }
    if let Ok(request) = memory.request()
        && reading.requested.as_ref() != Some(&request)
    {
        commands.push(OutputsCommand::TryReading(Box::new(request)));
    }
}

fn choice_ui(ui: &mut Ui, state: &State, memory: &mut ReadingMemory) {
    let reading = &state.remote.reading;
    let chosen = if memory.has_mapping { OWN } else { RECOGNIZED };
    let combo = ComboBox::from_id_salt("how predictions are read")
        .width(ui.available_width())
        .selected_text(chosen)
        .show_ui(ui, |ui| {
            if ui.selectable_label(!memory.has_mapping, RECOGNIZED).clicked() {
                memory.has_mapping = false;
            }
            if ui.selectable_label(memory.has_mapping, OWN).clicked() && !memory.has_mapping {
                memory.begin_mapping(state);
            }
            for saved in &reading.saved {
                let name = format!("Saved: {}", saved.mapping.name);
                let line = Button::selectable(false, name).right_text(RichText::new(&saved.mapping.id).weak());
                if ui.add(line).clicked() {
                    memory.take_over(saved);
                }
            }
        });
    combo.response.accessible_name("How predictions are read");
    for problem in &reading.problems {
        warning_ui(ui, format!("A saved mapping was skipped: {problem}"));
    }
}

pub(crate) fn labels_ui(ui: &mut Ui, labels: &mut String) {
    ui.label(strong("Class names"));
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(labels)
            .hint_text("from the predictions or the model")
            .desired_width(width_next_to_button(ui));
        let field = ui.add(field);
        field
            .on_hover_text(
                "A label set, or a file: one name per line, a label map (.pbtxt), a data.yaml or a config.json",
            )
            .accessible_name("Label set or label file");
        menu_ui(ui, "Label sets", |ui| {
            for (name, title) in LABEL_SETS {
                if ui.button(title).clicked() {
                    name.clone_into(labels);
                    ui.close();
                }
            }
        });
    });
}

/// Saves the mapping, and loads another one.
fn files_ui(ui: &mut Ui, state: &State, memory: &mut ReadingMemory, commands: &mut Commands) {
    let reading = &state.remote.reading;
    if let Some(reason) = &reading.failure {
        message_ui(ui, Tone::Error, reason);
    }
    let id = memory.draft.id();
    let same = reading.saved.iter().find(|saved| saved.mapping.id == id);
    save_ui(ui, same, memory, commands);
    if let Some(saved) = same {
        doomed_ui(ui, saved, &mut memory.doomed, commands);
        let path = saved.path.display().to_string();
        small_note_line_ui(ui, path);
    }
    load_ui(ui, memory, commands);
}

/// Saves the mapping, or replaces the saved one with the same id.
fn save_ui(ui: &mut Ui, same: Option<&SavedMapping>, memory: &mut ReadingMemory, commands: &mut Commands) {
    let id = memory.draft.id();
    ui.horizontal_wrapped(|ui| {
        let request = memory.request();
        let is_kept = request.as_ref().is_ok_and(|request| {
            same.is_some_and(|saved| {
                request.mapping.as_deref() == Some(&saved.mapping) && request.labels == saved.labels
            })
        });
        let text = match same {
            Some(_) if !is_kept => "Replace the saved mapping",
            _ => "Save the mapping",
        };
        let save = ui.add_enabled(request.is_ok() && !is_kept, Button::new(text));
        let save = save.on_hover_text(format!(
            "Saves {id}.toml with your mappings, for reuse here and on the command line (--mapping {id})"
        ));
        let save = save.on_disabled_hover_text(match &request {
            Ok(_) => "No unsaved changes",
            Err(fault) => &fault.reason,
        });
        if let (true, Ok(request)) = (save.clicked(), request) {
            commands.push(OutputsCommand::SaveMapping(Box::new(request)));
        }
        if is_kept {
            ui.weak("✓ saved");
        }
        if let Some(saved) = same
            && memory.doomed.as_ref() != Some(&saved.path)
            && ui
                .button("Delete the saved mapping…")
                .on_hover_text("Deletes the file; runs read with it are kept")
                .clicked()
        {
            memory.doomed = Some(saved.path.clone());
        }
    });
}

fn load_ui(ui: &mut Ui, memory: &mut ReadingMemory, commands: &mut Commands) {
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(&mut memory.file)
            .hint_text("or load one: path to a .toml file")
            .desired_width(width_next_to_button(ui) - LOAD_WIDTH - ui.spacing().item_spacing.x);
        let field = ui.add(field);
        let is_entered = enter_pressed(&field);
        field.accessible_name("Mapping file");
        let path = memory.file.trim();
        let load = Button::new("Load").min_size(vec2(LOAD_WIDTH, 0.0));
        let load = ui.add_enabled(!path.is_empty(), load);
        let load = load.on_disabled_hover_text("Enter the path of a mapping first");
        if (load.clicked() || is_entered) && !path.is_empty() {
            commands.push(OutputsCommand::LoadMapping(PathBuf::from(path)));
        }
        let browse = Button::new("Browse…").min_size(vec2(BUTTON_WIDTH, 0.0));
        ui.add(browse).on_click(commands, || Command::PickFile(FileRequest::Mapping));
    });
}

/// Asks for confirmation before a mapping is deleted.
fn doomed_ui(ui: &mut Ui, saved: &SavedMapping, doomed: &mut Option<PathBuf>, commands: &mut Commands) {
    if doomed.as_ref() != Some(&saved.path) {
        return;
    }
    let question = format!("Delete the saved mapping {}?", saved.mapping.name);
    banner_ui(ui, Tone::Warning, &question, |ui| {
        ui.horizontal_wrapped(|ui| {
            if ui.button("Delete it").clicked() {
                commands.push(OutputsCommand::DeleteMapping(saved.path.clone()));
                *doomed = None;
            }
            if ui.button("Keep it").clicked() {
                *doomed = None;
            }
        });
    });
}

/// The width of a field with a button of [`BUTTON_WIDTH`] on its right.
pub(crate) fn width_next_to_button(ui: &Ui) -> f32 {
    ui.available_width() - BUTTON_WIDTH - ui.spacing().item_spacing.x
}

/// A button as wide as the others that opens a menu.
fn menu_ui(ui: &mut Ui, text: &str, contents: impl FnOnce(&mut Ui)) -> Response {
    let button = Button::new(text).min_size(vec2(BUTTON_WIDTH, 0.0));
    MenuButton::from_button(button).ui(ui, contents).0
}

/// A problem, below its field.
fn fault_ui(ui: &mut Ui, fault: Option<&MappingFault>, field: MappingField) {
    if let Some(fault) = fault.filter(|fault| fault.field == field) {
        let text = format!("⚠ {}", fault.reason);
        let text = RichText::new(text).small().color(ui.visuals().error_fg_color);
        wrapped_ui(ui, text);
    }
}
