//! Selects the model, and downloads others.

use eframe::egui::{Align, Button, ComboBox, Label, Layout, RichText, Ui};

use crate::domain::{CardTask, ModelCard, capitalized, human_bytes};
use crate::window::remote_inference::ui::panel::{remote_engine_ui, where_ui};
use crate::window::state::{
    Action, Command, Commands, FileRequest, InferenceCommand, ModelEntry, ModelsCommand, Offer, State,
};
use crate::window::ui::widgets::{
    Tone, action_button_ui, action_menu_ui, banner_ui, command_button_ui, copy_command_ui, ends_ui, line_banner_ui,
    message_ui, note_ui, strong,
};

pub(crate) fn model_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    where_ui(ui, state, commands);
    if let Some(remote) = &state.inference.remote {
        remote_engine_ui(ui, state, remote, commands);
        engine_failure_ui(ui, state, commands);
        return;
    }
    if !state.models.is_listed() {
        ui.weak("Looking for models…");
        return;
    }
    picker_ui(ui, state, commands);
    for entry in state.models.entries() {
        fetch_failure_ui(ui, state, entry, commands);
    }
    if let Some(chosen) = state.models.chosen() {
        chosen_ui(ui, state, chosen, commands);
    }
    engine_failure_ui(ui, state, commands);
    let better = state.offered_upgrade();
    if let Some(better) = better.filter(|better| !has_failed(state, better)) {
        upgrade_ui(ui, state, better, commands);
    }
    ui.collapsing("All models", |ui| {
        for entry in state.models.entries() {
            entry_ui(ui, state, entry, commands);
        }
        action_button_ui(ui, state, Action::AddModel, commands);
        let bytes = state.models.disk_bytes();
        ui.weak(format!("Downloads use {} on this disk", human_bytes(bytes)));
    });
}

fn picker_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let chosen = state.models.chosen();
    let name = chosen.map_or("Choose a model", |entry| entry.card.name.as_str());
    let was_open = ComboBox::is_open(ui.ctx(), ui.make_persistent_id("model"));
    let combo =
        ComboBox::from_id_salt("model").selected_text(name).width(ui.available_width()).truncate().show_ui(ui, |ui| {
            let tasks = [
                ("Detectors", CardTask::Detection),
                ("Classifiers", CardTask::Classification),
                ("Encoders (embeddings only)", CardTask::Embedding),
            ];
            for (title, task) in tasks {
                let of_task = |entry: &&ModelEntry| entry.card.task == task && (entry.is_ready || entry.can_fetch);
                if !state.models.entries().iter().any(|entry| of_task(&entry)) {
                    continue;
                }
                ui.weak(title);
                for entry in state.models.ready(task) {
                    let is_chosen = state.models.chosen_id() == Some(&entry.card.id);
                    let choice = ui.selectable_label(is_chosen, &entry.card.name);
                    if is_chosen && !was_open {
                        choice.scroll_to_me(None);
                    }
                    if choice.clicked() {
                        commands.push(ModelsCommand::Choose(entry.card.id.clone()));
                    }
                }
                let missing = |entry: &&ModelEntry| of_task(entry) && !entry.is_ready;
                for entry in state.models.entries().iter().filter(missing) {
                    let bytes = human_bytes(entry.card.file.bytes);
                    let label = format!("{} (download {bytes})", entry.card.name);
                    if ui.selectable_label(false, RichText::new(label).weak()).clicked() {
                        commands.push(ModelsCommand::Fetch(entry.card.id.clone()));
                    }
                }
            }
            ui.separator();
            action_menu_ui(ui, state, &[&[Action::AddModel]], commands);
        });
    combo.response.accessible_name("Model");
}

fn chosen_ui(ui: &mut Ui, state: &State, chosen: &ModelEntry, commands: &mut Commands) {
    let card = &chosen.card;
    let labels = match (card.is_encoder(), chosen.labels.len()) {
        (true, _) => "predicts nothing".to_owned(),
        (false, 0) => "class numbers only".to_owned(),
        (false, count) => format!("{count} classes"),
    };
    let license = match card.license.as_str() {
        ModelCard::UNKNOWN_LICENSE => "license unknown".to_owned(),
        license => license.to_owned(),
    };
    let mut facts = vec![capitalized(card.task.into_str()), labels, license];
    facts.extend(card.accuracy.clone());
    note_ui(ui, facts.join(" · "));
    assumed_ui(ui, state, card, commands);
    if let Some(not_shown) = &card.not_shown {
        message_ui(ui, Tone::Hint, &capitalized(not_shown));
    }
    nothing_found_ui(ui, state, chosen, commands);
    if let Some(problem) = &chosen.problem {
        message_ui(ui, Tone::Error, problem);
    }
    if !chosen.is_ready && !has_failed(state, chosen) {
        let bytes = human_bytes(card.file.bytes);
        let message = format!("{} is not on this computer yet", card.name);
        banner_ui(ui, Tone::Hint, &message, |ui| {
            if chosen.can_fetch {
                fetch_button_ui(ui, state, chosen, &format!("Download {bytes}"), commands);
            }
        });
    }
}

/// A detector that has found nothing so far may have the wrong preprocessing.
fn nothing_found_ui(ui: &mut Ui, state: &State, chosen: &ModelEntry, commands: &mut Commands) {
    let run = state.runs.current().filter(|run| run.info.card.id == chosen.card.id);
    let Some(found) = run.and_then(|run| run.predictions.nothing_found()).filter(|found| found.is_suspicious()) else {
        return;
    };
    banner_ui(ui, Tone::Warning, &found.message(), |ui| {
        let button = ui.add_enabled(chosen.can_edit && chosen.is_ready, Button::new("Check preprocessing…"));
        let button = button.on_disabled_hover_text("This model is built in and cannot be edited");
        if button.clicked() {
            commands.push(ModelsCommand::Edit(chosen.card.id.clone()));
        }
    });
}

/// The number of assumed model settings, until the user confirms them.
pub(crate) fn assumed_ui(ui: &mut Ui, state: &State, card: &ModelCard, commands: &mut Commands) {
    if card.assumed.is_empty() || state.settings.has_confirmed_assumptions(card) {
        return;
    }
    let message = match card.assumed.len() {
        1 => "1 setting of this model was assumed".to_owned(),
        count => format!("{count} settings of this model were assumed"),
    };
    let all = card.assumed.join("\n");
    line_banner_ui(ui, Tone::Warning, &message, |ui| {
        ui.horizontal_wrapped(|ui| {
            let can_edit = state.models.get(&card.id).is_some_and(|entry| entry.can_edit && entry.is_ready);
            if can_edit && ui.button("Check…").on_hover_text(&all).clicked() {
                commands.push(ModelsCommand::Edit(card.id.clone()));
            }
            let tooltip = format!("Hides this message until these settings change:\n{all}");
            if ui.button("Looks right").on_hover_text(tooltip).clicked() {
                commands.push(ModelsCommand::ConfirmAssumptions(Box::new(card.clone())));
            }
        });
    });
}

fn engine_failure_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let Some(failure) = state.inference.failure() else {
        return;
    };
    banner_ui(ui, Tone::Error, &failure.message, |ui| {
        ui.horizontal_wrapped(|ui| match failure.offer {
            Offer::UseAutomaticDevice => {
                command_button_ui(ui, "Choose the device automatically", commands, || {
                    InferenceCommand::ChooseDevice(crate::domain::DeviceChoice::Auto)
                });
            }
            Offer::SetResponseMapping => {
                if let Some(chosen) = state.inference.remote_model()
                    && ui.button("Set up a mapping…").clicked()
                {
                    commands.push(InferenceCommand::EditRemoteModel(Box::new(chosen.clone())));
                }
            }
            Offer::TryAgain => {
                command_button_ui(ui, "Retry", commands, || InferenceCommand::TryAgain);
                let remote = state.inference.remote.as_ref();
                if let Some(command) = remote.and_then(|remote| remote.renewal.as_ref()) {
                    copy_command_ui(ui, command, commands);
                }
            }
        });
    });
}

fn upgrade_ui(ui: &mut Ui, state: &State, better: &ModelEntry, commands: &mut Commands) {
    let bytes = human_bytes(better.card.file.bytes);
    let message = format!("{} is larger and more accurate", better.card.name);
    banner_ui(ui, Tone::Hint, &message, |ui| {
        ui.horizontal(|ui| {
            fetch_button_ui(ui, state, better, &format!("Download {bytes}"), commands);
            let dismiss =
                ui.button("Dismiss").on_hover_text("Does not offer this model again; it stays in the model list");
            if dismiss.clicked() {
                commands.push(ModelsCommand::DismissOffer(better.card.id.clone()));
            }
            dismiss.accessible_name(format!("Dismiss the offer of {}", better.card.name));
        });
    });
}

fn fetch_button_ui(ui: &mut Ui, state: &State, entry: &ModelEntry, label: &str, commands: &mut Commands) {
    let is_under_way = state.tasks.fetches(&entry.card.id);
    let label = if is_under_way { "Downloading…" } else { label };
    let button = ui.add_enabled(!is_under_way, Button::new(label));
    if button.clicked() {
        commands.push(ModelsCommand::Fetch(entry.card.id.clone()));
    }
}

fn has_failed(state: &State, entry: &ModelEntry) -> bool {
    state.tasks.fetch_failure(&entry.card.id).is_some()
}

/// Why a download failed, and what to do about it. Replaces the hint that offers the download.
fn fetch_failure_ui(ui: &mut Ui, state: &State, entry: &ModelEntry, commands: &mut Commands) {
    let Some(why) = state.tasks.fetch_failure(&entry.card.id) else {
        return;
    };
    line_banner_ui(ui, Tone::Error, &capitalized(why), |ui| {
        ui.horizontal_wrapped(|ui| {
            let id = &entry.card.id;
            command_button_ui(ui, "Retry", commands, || ModelsCommand::Fetch(id.clone()));
            let file = ui.button("Use a file…").on_hover_text("Uses a local copy of this model's file");
            if file.clicked() {
                commands.push(Command::PickFile(FileRequest::Weights(id.clone())));
            }
            command_button_ui(ui, "Dismiss", commands, || ModelsCommand::DismissFailure(id.clone()));
        });
    });
}

fn entry_ui(ui: &mut Ui, state: &State, entry: &ModelEntry, commands: &mut Commands) {
    let words_ui = |ui: &mut Ui, _: &mut _| {
        ui.with_layout(Layout::top_down(Align::Min), |ui| {
            ui.spacing_mut().item_spacing.y = 1.0;
            ui.add(Label::new(strong(&entry.card.name)).truncate());
            let size = human_bytes(entry.card.file.bytes);
            let mut facts = vec![capitalized(entry.card.task.into_str()), size];
            // For a missing model, a button already shows this.
            facts.extend(entry.is_ready.then(|| entry.origin.clone()));
            let facts = RichText::new(facts.join(" · ")).small().weak();
            let facts = match state.tasks.fetch_failure(&entry.card.id) {
                Some(why) => {
                    let color = ui.visuals().error_fg_color;
                    RichText::new(format!("⚠ {why}")).small().color(color)
                }
                None => facts,
            };
            ui.add(Label::new(facts).truncate());
        });
    };
    ends_ui(ui, ("model", &entry.card.id), commands, words_ui, |ui, commands| {
        entry_buttons_ui(ui, state, entry, commands);
    });
}

fn entry_buttons_ui(ui: &mut Ui, state: &State, entry: &ModelEntry, commands: &mut Commands) {
    if entry.can_remove {
        if entry.can_edit && entry.is_ready {
            let button = ui.button("Edit…").on_hover_text("Changes how images are prepared and how outputs are read");
            if button.clicked() {
                commands.push(ModelsCommand::Edit(entry.card.id.clone()));
            }
            button.accessible_name(format!("Edit {}", entry.card.name));
        }
        let button = ui.button("Remove").on_hover_text(format!("Frees {}", human_bytes(entry.disk_bytes)));
        if button.clicked() {
            commands.push(ModelsCommand::Remove(entry.card.id.clone()));
        }
        button.accessible_name(format!("Remove {}", entry.card.name));
    } else if !entry.is_ready && entry.can_fetch {
        let label = if has_failed(state, entry) { "Retry" } else { "Download" };
        fetch_button_ui(ui, state, entry, label, commands);
    }
}
