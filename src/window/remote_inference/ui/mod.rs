//! The dialog for a remote model: its address, which is checked while typing, the request format, and how responses are
//! read.

pub(crate) mod panel;

use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel, RequestForm};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::window::outputs::ui::reading::{ReadingMemory, examples_ui, reading_ui};
use crate::window::remote::state::text_of;
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Failure, InferenceCommand};
use crate::window::ui::dialog::{dialog, is_closed};
use crate::window::ui::form::two_columns_ui;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const WIDTH: f32 = 1000.0;
const FOOTER_HEIGHT: f32 = 92.0;
const TITLE_HEIGHT: f32 = 60.0;
/// The pause without changes before the address is checked, in seconds.
const PAUSE_S: f64 = 0.6;
const IN_JSON: [(RequestForm, &str); 2] =
    [(RequestForm::Instances, "{\"instances\": [{\"b64\": …}]}"), (RequestForm::Inputs, "{\"inputs\": {\"b64\": …}}")];
const NOTHING_SEEN: &str = "“Preview a prediction” sends the image in view, then shows the response and how it is \
    read";

#[derive(Default)]
pub(crate) struct RemoteModelMemory {
    /// The serial of the request that was used last.
    taken_over: u64,
    kind: Kind,
    /// The name of the endpoint, or the address of TensorFlow Serving.
    address: String,
    form: RequestForm,
    signature: String,
    reading: ReadingMemory,
    access: AccessMemory,
    /// The last state of the model, and since when it is unchanged, in seconds of the window's clock.
    seen: Option<RemoteModel>,
    seen_since: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Endpoint,
    TfServing,
}

impl RemoteModelMemory {
    fn take_over(&mut self, serial: u64, draft: &RemoteModel, state: &State) {
        let (kind, address) = match &draft.at {
            RemoteAddress::Endpoint { name, .. } => (Kind::Endpoint, name),
            RemoteAddress::TfServing { address } => (Kind::TfServing, address),
        };
        *self = Self {
            taken_over: serial,
            kind,
            address: address.clone(),
            form: draft.form,
            signature: draft.signature.clone().unwrap_or_default(),
            reading: ReadingMemory::beginning_with(&draft.reading, state),
            ..Self::default()
        };
    }

    /// `None` while there is no address, or the mapping is incomplete.
    fn model(&self, state: &State) -> Option<RemoteModel> {
        let address = self.address.trim();
        if address.is_empty() {
            return None;
        }
        let at = match self.kind {
            Kind::Endpoint => {
                let access = self.access.with_drafts(state.s3.access.clone());
                RemoteAddress::Endpoint { name: address.to_owned(), access: SageMakerAccess::from(&access) }
            }
            Kind::TfServing => RemoteAddress::TfServing { address: address.to_owned() },
        };
        let signature = text_of(&self.signature);
        Some(RemoteModel {
            at,
            form: self.form,
            signature: signature.filter(|_| self.form != RequestForm::Image),
            reading: self.reading.request().unwrap_or_default(),
        })
    }
}

pub(crate) fn remote_model_ui(
    ctx: &Context,
    state: &State,
    memory: &mut RemoteModelMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let form = &state.remote.remote_model;
    let (true, Some(draft)) = (state.overlay == Overlay::RemoteInference, &form.draft) else {
        return;
    };
    let is_new = memory.taken_over != form.serial;
    if is_new {
        memory.take_over(form.serial, draft, state);
    }
    let modal = dialog(ctx, "predict remotely").show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
        ui.set_width(WIDTH.min(room.x));
        let is_entered = contents_ui(ui, state, memory, textures, (is_new, room.y), commands);
        footer_ui(ui, state, memory, is_entered, commands);
    });
    look_after_a_pause(ctx, state, memory, commands);
    if is_closed(ctx, &modal) {
        commands.push(Command::CLOSE_OVERLAY);
    }
}

/// Returns true if Enter was pressed in the address.
fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut RemoteModelMemory,
    textures: &mut Textures,
    (is_new, height): (bool, f32),
    commands: &mut Commands,
) -> bool {
    let (title, about, field, hint) = match memory.kind {
        Kind::Endpoint => (
            "Predict at a SageMaker endpoint",
            "Sends the image in view to a model behind a real-time endpoint",
            "Endpoint name",
            "the name, not the ARN",
        ),
        Kind::TfServing => (
            "Predict in TensorFlow Serving",
            "Sends the image in view to a model behind its REST API",
            "Model address",
            "http://127.0.0.1:8501/v1/models/resnet:predict",
        ),
    };
    heading_ui(ui, title, about);
    let mut is_entered = false;
    two_columns_ui(
        ui,
        height - TITLE_HEIGHT,
        &mut (memory, commands),
        |ui, (memory, commands)| {
            is_entered = address_ui(ui, state, memory, (field, hint), is_new, commands);
            ui.add_space(6.0);
            form_ui(ui, state, memory);
            ui.add_space(6.0);
            reading_ui(ui, state, &mut memory.reading, commands);
        },
        |ui, (memory, commands)| prediction_ui(ui, state, memory, textures, commands),
    );
    is_entered
}

/// Returns true if Enter was pressed in it.
fn address_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut RemoteModelMemory,
    (field, hint): (&str, &str),
    is_new: bool,
    commands: &mut Commands,
) -> bool {
    ui.label(strong(field));
    let address = TextEdit::singleline(&mut memory.address).id_salt("address").hint_text(hint);
    let address = Field::new(field).explain(ui.add(address.desired_width(f32::INFINITY)));
    if is_new {
        address.request_focus();
    }
    let is_entered = enter_pressed(&address);
    if memory.kind == Kind::Endpoint {
        ui.push_id("access", |ui| {
            access_ui(ui, state, &mut memory.access, commands);
        });
    }
    ui.add_space(4.0);
    // The check changes its height while a field below it is edited.
    ui.push_id("check", |ui| check_ui(ui, state, memory, commands));
    is_entered
}

/// A prediction by the model, and how it is read.
fn prediction_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut RemoteModelMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let form = &state.remote.remote_model;
    let model = memory.model(state);
    ui.horizontal_wrapped(|ui| {
        let is_shown = state.shown_sample().is_some();
        let is_ready = model.is_some() && is_shown && !form.response.is_loading();
        let look = ui.add_enabled(is_ready, Button::new("Preview a prediction"));
        let look = look.on_hover_text("Sends only the image in view");
        let look = look.on_disabled_hover_text(if is_shown {
            "Enter the address of the model first"
        } else {
            "Open an image first"
        });
        if let (true, Some(model)) = (look.clicked(), &model) {
            commands.push(InferenceCommand::ShowResponse(Box::new(model.clone())));
        }
        if let Some(task) = form.response.task() {
            ui.spinner();
            command_button_ui(ui, "Stop", commands, || Command::cancel(task));
        }
    });
    if let Some(failure @ Failure::Failed { message, .. }) = form.response.failure() {
        banner_ui(ui, Tone::Error, message, |ui| {
            copy_sign_in_ui(ui, Some(failure), commands);
        });
    }
    ui.add_space(4.0);
    let at = model.map(|model| model.at);
    if state.remote.reading.examples_of == at {
        examples_ui(ui, state, &mut memory.reading, textures, NOTHING_SEEN);
    } else {
        note_ui(ui, NOTHING_SEEN);
    }
}

/// What is known about the current address.
fn check_ui(ui: &mut Ui, state: &State, memory: &RemoteModelMemory, commands: &mut Commands) {
    let form = &state.remote.remote_model;
    let model = memory.model(state);
    if model.is_none() {
        ui.weak("Checked as you type; no image is sent");
        return;
    }
    if !is_same_look(form.checked.as_ref(), model.as_ref()) {
        ui.weak("Checking in a moment…");
        return;
    }
    match &form.check {
        Loadable::NotLoaded => {}
        Loadable::Loading(_) => {
            waiting_ui(ui, "Checking…");
        }
        Loadable::Ready(check) if check.is_available => {
            for (number, line) in check.found.iter().enumerate() {
                let mark = if number == 0 { "✓ " } else { "" };
                note_ui(ui, format!("{mark}{line}"));
            }
        }
        Loadable::Ready(check) => {
            message_ui(ui, Tone::Warning, &check.found.join(". "));
        }
        Loadable::Failed(failure) => {
            banner_ui(ui, Tone::Warning, failure.message(), |ui| {
                copy_sign_in_ui(ui, Some(failure), commands);
            });
        }
    }
}

/// Whether a check of both would find the same.
fn is_same_look(one: Option<&RemoteModel>, other: Option<&RemoteModel>) -> bool {
    let look = |model: &RemoteModel| (model.at.clone(), model.signature.clone());
    one.map(look) == other.map(look)
}

fn form_ui(ui: &mut Ui, state: &State, memory: &mut RemoteModelMemory) {
    ui.label(strong("Request format"));
    if memory.kind == Kind::Endpoint {
        radio_ui(ui, &mut memory.form, RequestForm::Image, "Image file (application/x-image)");
    }
    for (form, name) in IN_JSON {
        let name = format!("JSON: {name}");
        radio_ui(ui, &mut memory.form, form, name);
    }
    if memory.form == RequestForm::Image {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.label("Signature");
        let signature = TextEdit::singleline(&mut memory.signature).id_salt("signature");
        let signature = ui.add(signature.hint_text("the model's default").desired_width(260.0));
        Field::new("Signature").help("For a TensorFlow model with several signatures").explain(signature);
        let Loadable::Ready(check) = &state.remote.remote_model.check else {
            return;
        };
        if check.signatures.is_empty() {
            return;
        }
        ui.menu_button("Signatures", |ui| {
            for name in &check.signatures {
                if ui.button(name).clicked() {
                    name.clone_into(&mut memory.signature);
                    ui.close();
                }
            }
        });
    });
}

fn footer_ui(ui: &mut Ui, state: &State, memory: &RemoteModelMemory, is_entered: bool, commands: &mut Commands) {
    ui.add_space(8.0);
    let note = "Only the image in view and images that you predict are sent; neighbors and thumbnails are not";
    small_note_ui(ui, note);
    ui.horizontal(|ui| {
        let fault = memory.reading.final_request(state).err();
        let model = memory.model(state).filter(|_| fault.is_none());
        let missing = match (&fault, memory.kind) {
            (Some(fault), _) => fault.clone(),
            (None, Kind::Endpoint) => "Enter the endpoint name".to_owned(),
            (None, Kind::TfServing) => "Enter the model address".to_owned(),
        };
        let predict = primary_button_ui(ui, "Connect", model.is_none().then_some(&missing));
        if let (true, Some(model)) = (predict.clicked() || is_entered, model) {
            commands.push(InferenceCommand::PredictAt(Some(Box::new(model))));
        }
        command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
    });
}

/// Checks the model after a pause in typing, so that not every letter starts a check.
fn look_after_a_pause(ctx: &Context, state: &State, memory: &mut RemoteModelMemory, commands: &mut Commands) {
    let now = memory.model(state);
    let time = ctx.input(|input| input.time);
    if !is_same_look(memory.seen.as_ref(), now.as_ref()) {
        memory.seen.clone_from(&now);
        memory.seen_since = time;
    }
    let checked = state.remote.remote_model.checked.as_ref();
    let Some(model) = now.filter(|now| !is_same_look(checked, Some(now))) else {
        return;
    };
    let left = memory.seen_since + PAUSE_S - time;
    if left > 0.0 {
        ctx.request_repaint_after_secs(left as f32);
        return;
    }
    commands.push(InferenceCommand::CheckRemoteModel(Box::new(model)));
}
