//! The fields of a form, each with a caption.

use std::collections::BTreeMap;

use eframe::egui::containers::menu::MenuButton;

use crate::domain::{Credentials, ModelTask, S3Link};
use crate::sagemaker::spec::transform::{EcrImage, Network, Vpc, known_images, known_instance_types};
use crate::window::state::{ModelDraft, ModelFrom};
use crate::window::ui::prelude::*;

const CHOICE_WIDTH: f32 = 200.0;
const IMAGES_WIDTH: f32 = 640.0;
const IMAGE: &str = "Container image";
/// The width of the button next to the field.
const CONTAINERS_WIDTH: f32 = 130.0;

/// An amount above zero while it is typed. An empty field means unknown: no amount is ever suggested.
#[derive(Default)]
pub(crate) struct AmountMemory {
    text: String,
    /// The value of the text when it was last parsed.
    amount: Option<f64>,
}

impl AmountMemory {
    pub(crate) fn field_ui(&mut self, ui: &mut Ui, amount: &mut Option<f64>, name: &str, otherwise: &str) {
        if *amount != self.amount {
            // The amount was set or cleared outside the field.
            self.text = amount.map_or_else(String::new, |amount| amount.to_string());
        }
        text_ui(ui, &mut self.text, name, otherwise);
        let typed = self.text.trim();
        *amount = typed.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
        self.amount = *amount;
        if amount.is_none() && !typed.is_empty() {
            problem_ui(ui, format!("Enter a positive number, not {typed}"));
        }
    }
}

/// Lines of `NAME=value` while they are typed.
#[derive(Default)]
pub(crate) struct PairsMemory {
    text: String,
    /// The value of the text when it was last parsed.
    pairs: BTreeMap<String, String>,
    /// The first line that is not a NAME=value pair.
    mistake: Option<String>,
}

impl PairsMemory {
    fn take_over(&mut self, pairs: &BTreeMap<String, String>) {
        let lines = pairs.iter().map(|(name, value)| format!("{name}={value}\n"));
        self.text = lines.collect();
        self.pairs.clone_from(pairs);
        self.mistake = None;
    }

    /// The valid pairs.
    fn read(&mut self) -> BTreeMap<String, String> {
        self.mistake = None;
        let mut pairs = BTreeMap::new();
        let lines = self.text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            match line.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    pairs.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                _ => self.mistake = self.mistake.take().or_else(|| Some(line.to_owned())),
            }
        }
        pairs
    }
}

/// Which model: initially one from the library, or one that is already packed or in SageMaker. `from` names the choice
/// between those, and `name` that of a model in the library.
pub(crate) fn model_ui(ui: &mut Ui, state: &State, draft: &mut ModelDraft, (from, name): (&str, &str)) {
    ui.label(strong("Model"));
    let choices = [
        (ModelFrom::Library, "Spotcheck model"),
        (ModelFrom::Archive, "Archive (model.tar.gz)"),
        (ModelFrom::SavedModel, "TensorFlow SavedModel"),
        (ModelFrom::SageMaker, "Existing SageMaker model"),
    ];
    ui.horizontal_wrapped(|ui| choice_ui(ui, from, &mut draft.from, &choices));
    let (text, name, hint) = match draft.from {
        ModelFrom::Library => return library_ui(ui, state, &mut draft.library, name),
        ModelFrom::Archive => (
            &mut draft.archive,
            "Archive path or address",
            "model.tar.gz on this computer, or s3://bucket/model.tar.gz",
        ),
        ModelFrom::SavedModel => {
            (&mut draft.saved_model, "SavedModel folder", "contains saved_model.pb or 1/saved_model.pb")
        }
        ModelFrom::SageMaker => (&mut draft.existing, "SageMaker model name", "ModelName"),
    };
    text_ui(ui, text, name, hint);
}

fn library_ui(ui: &mut Ui, state: &State, model: &mut Option<String>, name: &str) {
    let chosen = model.as_deref().and_then(|id| state.models.get(id));
    let text = chosen.map_or("Choose a model", |entry| entry.card.name.as_str());
    Field::new(name).width(ui.available_width()).list_ui(ui, text, |ui| {
        for task in [ModelTask::Classification, ModelTask::Detection] {
            for entry in state.models.ready(task.into()) {
                let id = Some(entry.card.id.clone());
                ui.selectable_value(model, id, &entry.card.name);
            }
        }
    });
}

pub(crate) fn instances_ui(ui: &mut Ui, count: &mut u32, instance_type: &mut String) {
    small_note_ui(ui, "Instances");
    ui.horizontal_wrapped(|ui| {
        Field::new("Number of instances").number_ui(ui, number_field(count).range(1..=100));
        ui.label("×");
        Field::new("Instance type").width(150.0).text_ui(ui, instance_type);
        ui.menu_button("Known types", |ui| {
            ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                for name in known_instance_types() {
                    if ui.selectable_label(*instance_type == name, &name).clicked() {
                        *instance_type = name;
                        ui.close();
                    }
                }
            });
        });
    });
}

/// The role and container of a model that is created in SageMaker. `checked_image` is the container of the last check.
pub(crate) fn made_model_ui(
    ui: &mut Ui,
    state: &State,
    draft: &mut ModelDraft,
    instance_type: &str,
    checked_image: Option<&str>,
) {
    if !draft.is_made() {
        return;
    }
    let hint = "arn:aws:iam::123456789012:role/…";
    text_ui(ui, &mut draft.role, "Execution role", hint);
    let region = region_of(state, checked_image);
    image_ui(ui, &mut draft.image, region.as_deref(), instance_type);
}

/// The network of a new model's container.
pub(crate) fn network_ui(ui: &mut Ui, network: &mut Network) {
    let mut vpc = network.vpc.take().unwrap_or_default();
    for (ids, name) in [(&mut vpc.subnets, "VPC subnets"), (&mut vpc.security_group_ids, "VPC security groups")] {
        let mut text = ids.join(",");
        text_ui(ui, &mut text, name, "IDs, separated by commas; default: no VPC");
        let parts = text.split(',').map(|id| id.trim().to_owned());
        *ids = if text.is_empty() { Vec::new() } else { parts.collect() };
    }
    network.vpc = (vpc != Vpc::default()).then_some(vpc);
    checkbox_ui(ui, &mut network.is_isolated, "Network isolation: no network calls from the container");
}

/// The region of the request to SageMaker, if known: as selected, from the profile, or from the container of the last
/// check.
fn region_of(state: &State, checked_image: Option<&str>) -> Option<String> {
    let access = &state.s3.access;
    let of_profile = || {
        let Credentials::Profile(name) = &access.credentials else {
            return None;
        };
        let profiles = &state.s3.known_setup()?.profiles;
        let profile = profiles.iter().find(|profile| profile.name == *name)?;
        profile.region.clone()
    };
    let of_image = || Some(EcrImage::parse(checked_image?)?.region.to_owned());
    access.region.clone().or_else(of_profile).or_else(of_image)
}

/// The container; `None` is AWS's container that can serve the archive.
fn image_ui(ui: &mut Ui, image: &mut Option<String>, region: Option<&str>, instance_type: &str) {
    small_note_ui(ui, IMAGE);
    ui.horizontal(|ui| {
        let width = ui.available_width() - CONTAINERS_WIDTH - ui.spacing().item_spacing.x;
        let field = Field::new(IMAGE).hint("default: AWS's container for the model and region").width(width);
        edit_optional(image, |text| field.text_ui(ui, text));
        let button = Button::new("Known containers").min_size(vec2(CONTAINERS_WIDTH, 0.0));
        MenuButton::from_button(button).ui(ui, |ui| {
            containers_ui(ui, image, region, instance_type);
        });
    });
}

fn containers_ui(ui: &mut Ui, image: &mut Option<String>, region: Option<&str>, instance_type: &str) {
    ui.set_min_width(IMAGES_WIDTH);
    let Some(region) = region else {
        ui.weak("Containers depend on the region; choose one under “Server and region” first");
        return;
    };
    for (uri, what) in known_images(region, instance_type.trim()) {
        let name = uri.split_once('/').map_or(uri.as_str(), |(_, name)| name);
        let button = Button::selectable(image.as_deref() == Some(&uri), name).right_text(RichText::new(what).weak());
        if ui.add(button).clicked() {
            *image = Some(uri);
            ui.close();
        }
    }
    if image.is_some() && ui.button("Choose automatically").clicked() {
        *image = None;
        ui.close();
    }
}

/// The hourly price of an instance, if the user knows it.
pub(crate) fn price_ui(ui: &mut Ui, memory: &mut AmountMemory, usd_per_hour: &mut Option<f64>) {
    let name = "Price per instance (USD per hour)";
    memory.field_ui(ui, usd_per_hour, name, "default: from the price table");
}

/// Shows why the typed text is not an S3 address.
pub(crate) fn address_problem_ui(ui: &mut Ui, text: &str) {
    if let (Err(error), false) = (S3Link::parse(text), text.trim().is_empty()) {
        problem_ui(ui, &error);
    }
}

pub(crate) fn folder_ui(ui: &mut Ui, folder: &mut String, name: &str, is_new: bool) {
    let field = Field::new(name).hint("s3://bucket/folder/").text_ui(ui, folder);
    if is_new && folder.is_empty() {
        field.request_focus();
    }
    address_problem_ui(ui, folder);
}

/// A caption above a field that uses the available width.
pub(crate) fn text_ui(ui: &mut Ui, text: &mut String, name: &str, hint: &str) -> Response {
    Field::new(name).hint(hint).caption_ui(ui).text_ui(ui, text)
}

/// As [`text_ui`], for an optional text.
pub(crate) fn optional_text_ui(ui: &mut Ui, text: &mut Option<String>, name: &str, hint: &str) {
    edit_optional(text, |typed| text_ui(ui, typed, name, hint));
}

/// Empty text is `None`. Trailing spaces are removed once the field is left, because more text may follow.
fn edit_optional(text: &mut Option<String>, field: impl FnOnce(&mut String) -> Response) {
    let mut typed = text.take().unwrap_or_default();
    let has_focus = field(&mut typed).has_focus();
    let typed = if has_focus { typed.trim_start() } else { typed.trim() };
    *text = (!typed.is_empty()).then(|| typed.to_owned());
}

/// A number that is set only if its box is checked.
pub(crate) fn optional_number_ui<N: eframe::emath::Numeric>(
    ui: &mut Ui,
    number: &mut Option<N>,
    name: &str,
    usual: N,
    range: std::ops::RangeInclusive<N>,
    otherwise: &str,
) {
    ui.horizontal_wrapped(|ui| {
        let mut is_set = number.is_some();
        checkbox_ui(ui, &mut is_set, name);
        match (is_set, number.as_mut()) {
            (true, Some(value)) => {
                Field::new(name).part("number").number_ui(ui, number_field(value).range(range));
            }
            (true, None) => *number = Some(usual),
            (false, _) => {
                *number = None;
                ui.weak(otherwise);
            }
        }
    });
}

pub(crate) fn folded_ui(ui: &mut Ui, title: &str, contents: impl FnOnce(&mut Ui)) {
    CollapsingHeader::new(title).default_open(false).show(ui, contents);
}

/// A choice of a few values, after its name; a row of the grid if drawn in one.
pub(crate) fn choice_ui<T: PartialEq + Copy>(ui: &mut Ui, name: &str, value: &mut T, choices: &[(T, &str)]) {
    ui.label(name);
    Field::new(name).width(CHOICE_WIDTH).choice_ui(ui, value, choices);
    ui.end_row();
}

pub(crate) fn pairs_ui(
    ui: &mut Ui,
    memory: &mut PairsMemory,
    pairs: &mut BTreeMap<String, String>,
    name: &str,
    rows: usize,
) {
    if *pairs != memory.pairs {
        // The pairs were changed outside this field.
        memory.take_over(pairs);
    }
    small_note_ui(ui, name);
    let field = TextEdit::multiline(&mut memory.text)
        .hint_text("NAME=value, one per line")
        .desired_rows(rows)
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    if field.changed() {
        *pairs = memory.read();
        memory.pairs.clone_from(pairs);
    }
    field.accessible_name(name);
    if let Some(line) = &memory.mistake {
        problem_ui(ui, format!("Not a NAME=value line: {line}"));
    }
}
