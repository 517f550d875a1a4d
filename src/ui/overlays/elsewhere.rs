//! The dialog about a model elsewhere: its address, looked at while it is typed, how images are sent, and how answers are read.

use eframe::egui::{
    self, CollapsingHeader, Id, Key, Label, Modal, RichText, ScrollArea, TextEdit, Ui,
};

use super::super::theme;
use super::super::widgets::{Tone, banner_ui, copy_sign_in_ui, primary_button, strong};
use super::open_s3::access::{AccessMemory, access_ui};
use crate::domain::{RemoteAddress, RemoteModel, RequestForm, SageMakerAccess};
use crate::state::{Command, Overlay, SendStage, State};

const WIDTH: f32 = 620.0;
/// How long nothing has changed before the address is looked at, in seconds.
const PAUSE_S: f64 = 0.6;
const IN_JSON: [(RequestForm, &str); 2] = [
    (RequestForm::Instances, "{\"instances\": [{\"b64\": …}]}"),
    (RequestForm::Inputs, "{\"inputs\": {\"b64\": …}}"),
];
const LABEL_SETS: [&str; 4] = ["imagenet", "coco-80", "coco-91", "cifar-10"];
const MAPPING_HINT: &str = "The text of a mapping, or the id of one that was saved; empty lets Spotcheck recognise the usual answers";

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct ElsewhereMemory {
    /// Which beginning was taken over.
    taken_over: u64,
    kind: Kind,
    /// Name of the endpoint, or address of TensorFlow Serving.
    address: String,
    form: RequestForm,
    signature: String,
    labels: String,
    mapping: String,
    access: AccessMemory,
    /// What was seen last, and since when it has stood so, in seconds of the window's clock.
    seen: Option<RemoteModel>,
    seen_since: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Endpoint,
    TfServing,
}

impl ElsewhereMemory {
    fn take_over(&mut self, serial: u64, draft: &RemoteModel) {
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
            labels: draft.labels.clone().unwrap_or_default(),
            mapping: draft.mapping.clone().unwrap_or_default(),
            ..Self::default()
        };
    }

    /// `None` while there is no address.
    fn model(&self, state: &State) -> Option<RemoteModel> {
        let address = self.address.trim();
        if address.is_empty() {
            return None;
        }
        let at = match self.kind {
            Kind::Endpoint => {
                let access = self.access.with_drafts(state.s3.access.clone());
                RemoteAddress::Endpoint {
                    name: address.to_owned(),
                    access: SageMakerAccess::from(&access),
                }
            }
            Kind::TfServing => RemoteAddress::TfServing {
                address: address.to_owned(),
            },
        };
        let signature = text_of(&self.signature);
        Some(RemoteModel {
            at,
            form: self.form,
            signature: signature.filter(|_| self.form != RequestForm::Image),
            labels: text_of(&self.labels),
            mapping: text_of(&self.mapping),
        })
    }
}

fn text_of(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(in super::super) fn elsewhere_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut ElsewhereMemory,
    commands: &mut Vec<Command>,
) {
    let form = &state.remote.elsewhere.form;
    let (true, Some(draft)) = (state.overlay == Overlay::Elsewhere, &form.draft) else {
        return;
    };
    let is_new = memory.taken_over != form.serial;
    if is_new {
        memory.take_over(form.serial, draft);
    }
    let modal = Modal::new(Id::unique("predict elsewhere"))
        .frame(theme::dialog_frame(ctx))
        .show(ctx, |ui| {
            let room = ctx.content_rect().size();
            ui.set_width(WIDTH.min(room.x - 60.0));
            let is_entered = ScrollArea::vertical()
                .max_height(room.y - 120.0)
                .show(ui, |ui| contents_ui(ui, state, memory, is_new, commands))
                .inner;
            footer_ui(ui, state, memory, is_entered, commands);
        });
    look_after_a_pause(ctx, state, memory, commands);
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

/// True where Enter was pressed in the address.
fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ElsewhereMemory,
    is_new: bool,
    commands: &mut Vec<Command>,
) -> bool {
    let (title, about, field, hint) = match memory.kind {
        Kind::Endpoint => (
            "Predict at a SageMaker endpoint",
            "A model behind a real-time endpoint answers about the picture in view",
            "Name of the endpoint",
            "its name, not its ARN",
        ),
        Kind::TfServing => (
            "Predict in TensorFlow Serving",
            "A model behind its REST API answers about the picture in view",
            "Address of the model",
            "http://127.0.0.1:8501/v1/models/resnet:predict",
        ),
    };
    ui.label(strong(title).size(18.0));
    ui.weak(about);
    ui.add_space(4.0);
    ui.label(strong(field));
    let address = TextEdit::singleline(&mut memory.address)
        .id_salt("address")
        .hint_text(hint)
        .desired_width(f32::INFINITY);
    let address = ui.add(address);
    if is_new {
        address.request_focus();
    }
    let is_entered = address.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    address.accessible_name(field);
    if memory.kind == Kind::Endpoint {
        ui.push_id("access", |ui| {
            access_ui(ui, state, &mut memory.access, commands);
        });
    }
    ui.add_space(4.0);
    // What is found changes while somebody types below it.
    ui.push_id("check", |ui| check_ui(ui, state, memory, commands));
    ui.add_space(6.0);
    form_ui(ui, state, memory);
    ui.add_space(6.0);
    labels_ui(ui, &mut memory.labels);
    ui.add_space(6.0);
    mapping_ui(ui, state, memory, is_new);
    is_entered
}

/// What is known of the address as it stands.
fn check_ui(ui: &mut Ui, state: &State, memory: &ElsewhereMemory, commands: &mut Vec<Command>) {
    let form = &state.remote.elsewhere.form;
    let model = memory.model(state);
    if model.is_none() {
        ui.weak("It is looked at as soon as it is typed; no image is sent for that");
        return;
    }
    if !is_same_look(form.checked.as_ref(), model.as_ref()) {
        ui.weak("Looking at it in a moment…");
        return;
    }
    match &form.check {
        SendStage::NotYet => {}
        SendStage::Running(_) => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.weak("Looking whether it is there…");
            });
        }
        SendStage::Done(check) if check.is_well => {
            for (number, line) in check.found.iter().enumerate() {
                let mark = if number == 0 { "✓ " } else { "" };
                ui.add(Label::new(RichText::new(format!("{mark}{line}")).weak()).wrap());
            }
        }
        SendStage::Done(check) => {
            banner_ui(ui, Tone::Warning, &check.found.join(". "), |_| {});
        }
        SendStage::Failed(message) => {
            banner_ui(ui, Tone::Warning, message, |ui| {
                copy_sign_in_ui(ui, form.failure.as_ref(), commands);
            });
        }
    }
}

/// Whether looking at both would find the same.
fn is_same_look(one: Option<&RemoteModel>, other: Option<&RemoteModel>) -> bool {
    let look = |model: &RemoteModel| (model.at.clone(), model.signature.clone());
    one.map(look) == other.map(look)
}

fn form_ui(ui: &mut Ui, state: &State, memory: &mut ElsewhereMemory) {
    ui.label(strong("How an image is sent"));
    if memory.kind == Kind::Endpoint {
        ui.radio_value(
            &mut memory.form,
            RequestForm::Image,
            "The file as it is (application/x-image)",
        );
    }
    for (form, name) in IN_JSON {
        let name = format!("JSON: {name}");
        ui.radio_value(&mut memory.form, form, name);
    }
    if memory.form == RequestForm::Image {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.label("Signature");
        let field = TextEdit::singleline(&mut memory.signature)
            .id_salt("signature")
            .hint_text("the one that the model uses by itself")
            .desired_width(260.0);
        let field = ui.add(field);
        field
            .on_hover_text("Of a model of TensorFlow with several")
            .accessible_name("Signature");
        let SendStage::Done(check) = &state.remote.elsewhere.form.check else {
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

fn labels_ui(ui: &mut Ui, labels: &mut String) {
    ui.label(strong("Names of the classes"));
    ui.horizontal_wrapped(|ui| {
        let field = TextEdit::singleline(labels)
            .id_salt("labels")
            .hint_text("as the answers or the model say")
            .desired_width(260.0);
        let field = ui.add(field);
        field
            .on_hover_text("A label set, a file with a name a line, or a label map (.pbtxt)")
            .accessible_name("Label set or label file");
        ui.menu_button("Label sets", |ui| {
            for name in LABEL_SETS {
                if ui.button(name).clicked() {
                    name.clone_into(labels);
                    ui.close();
                }
            }
        });
    });
}

fn mapping_ui(ui: &mut Ui, state: &State, memory: &mut ElsewhereMemory, is_new: bool) {
    let raw = state.remote.elsewhere.raw.as_ref();
    CollapsingHeader::new("Mapping for answers that Spotcheck does not know")
        .open((is_new && (raw.is_some() || !memory.mapping.is_empty())).then_some(true))
        .show(ui, |ui| {
            if let Some(raw) = raw {
                ui.label("The answer begins so:");
                ScrollArea::both()
                    .id_salt("raw answer")
                    .max_height(140.0)
                    .show(ui, |ui| {
                        ui.add(Label::new(RichText::new(raw).monospace().small()).wrap());
                    });
            }
            let field = TextEdit::multiline(&mut memory.mapping)
                .code_editor()
                .hint_text(MAPPING_HINT)
                .desired_rows(6)
                .desired_width(f32::INFINITY);
            ui.add(field).accessible_name("Mapping");
        });
}

fn footer_ui(
    ui: &mut Ui,
    state: &State,
    memory: &ElsewhereMemory,
    is_entered: bool,
    commands: &mut Vec<Command>,
) {
    ui.add_space(8.0);
    let note = "A picture that comes into view is sent there, and what you ask for; neighbours and thumbnails are not";
    ui.add(Label::new(RichText::new(note).small().weak()).wrap());
    ui.horizontal(|ui| {
        let model = memory.model(state);
        let is_ready = model.is_some();
        let predict = ui.add_enabled(is_ready, primary_button(ui, "Predict there"));
        let predict = predict.on_disabled_hover_text(match memory.kind {
            Kind::Endpoint => "Name the endpoint",
            Kind::TfServing => "Type the address of the model",
        });
        if let (true, Some(model)) = (predict.clicked() || is_entered, model) {
            commands.push(Command::PredictAt(Some(Box::new(model))));
        }
        if ui.button("Cancel").clicked() {
            commands.push(Command::SetOverlay(Overlay::None));
        }
    });
}

/// Nobody wants a look for each letter that is typed.
fn look_after_a_pause(
    ctx: &egui::Context,
    state: &State,
    memory: &mut ElsewhereMemory,
    commands: &mut Vec<Command>,
) {
    let now = memory.model(state);
    let time = ctx.input(|input| input.time);
    if !is_same_look(memory.seen.as_ref(), now.as_ref()) {
        memory.seen.clone_from(&now);
        memory.seen_since = time;
    }
    let checked = state.remote.elsewhere.form.checked.as_ref();
    let Some(model) = now.filter(|now| !is_same_look(checked, Some(now))) else {
        return;
    };
    let left = memory.seen_since + PAUSE_S - time;
    if left > 0.0 {
        ctx.request_repaint_after_secs(left as f32);
        return;
    }
    commands.push(Command::CheckRemoteModel(Box::new(model)));
}
