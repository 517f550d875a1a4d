//! The fields with an editor of their own, because they depend on the graph or set other fields.

use std::path::PathBuf;

use eframe::egui::Ui;
use strum::VariantArray;

use super::{CONTROL_WIDTH, Draft, Rows};
use crate::domain::card_fields::{CardField, text_of};
use crate::domain::{
    AuxiliaryInput, AuxiliaryValue, BoxSpace, CardTask, CenterCrop, Grid, GridCoding, ImageInput, Layout,
    OutputConvention, ResizeRule, Rounding,
};
use crate::window::outputs::ui::reading::LABEL_SETS;
use crate::window::state::LabelChoice;
use crate::window::ui::field::Field;
use crate::window::ui::widgets::{checkbox_ui, grouped, number_field};

/// The width of the number of images next to its menu.
const BATCH_WIDTH: f32 = 40.0;
/// The default number of images that a call is padded to.
const USUAL_BATCH: u32 = 4;

pub(crate) fn own_ui(rows: &Rows<'_>, ui: &mut Ui, field: &CardField, draft: &mut Draft) {
    let start = rows.start();
    let image = start.image_port(&draft.card.input);
    let declared = image.map_or_else(String::new, |port| format!("the graph declares {}", port.shape));
    match field.path() {
        "task" => rows.row(ui, field, draft, |ui, name, draft| task_ui(rows, ui, name, draft)),
        "labels" => {
            let found = start.found_labels.len();
            rows.row(ui, field, draft, |ui, name, draft| labels_ui(ui, name, &mut draft.labels, found));
        }
        "input.resize.stretch.crop" => {
            rows.row(ui, field, draft, |ui, name, draft| crop_ui(ui, name, &mut draft.card.input.resize));
        }
        "input.layout" => {
            let mut layouts = image.map_or_else(Vec::new, |port| port.layouts.clone());
            let layout = draft.card.input.layout;
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
            if layouts.len() == 1 {
                return rows.fixed_row(ui, field, text_of(layout), &declared, draft);
            }
            let layouts: Vec<_> = layouts.into_iter().map(|layout| (layout, text_of(layout))).collect();
            rows.row(ui, field, draft, |ui, name, draft| {
                name.choice_ui(ui, &mut draft.card.input.layout, &layouts);
            });
        }
        "input.type" => rows.fixed_row(ui, field, draft.card.input.element_type.into_str(), &declared, draft),
        "input.batches" => batch_ui(rows, ui, field, image.and_then(|port| port.declared_batch), &declared, draft),
        "input.auxiliary" => auxiliary_ui(rows, ui, field, draft),
        "output.detection.grid" => rows.row(ui, field, draft, grid_ui),
        _ => {}
    }
}

/// Another task starts with another way to read the outputs.
fn task_ui(rows: &Rows<'_>, ui: &mut Ui, field: &Field<'_>, draft: &mut Draft) {
    let (card, start) = (&mut draft.card, rows.start());
    let before = card.task;
    let tasks = [
        (CardTask::Classification, "Image classes"),
        (CardTask::Detection, "Object boxes"),
        (CardTask::Embedding, "Embeddings"),
    ];
    field.choice_ui(ui, &mut card.task, &tasks);
    if card.task != before {
        let outputs = std::iter::once(&start.card.output).chain(&start.other_outputs);
        if let Some(output) = outputs.into_iter().find(|output| output.task() == card.task) {
            card.output = output.clone();
        }
    }
}

fn labels_ui(ui: &mut Ui, field: &Field<'_>, labels: &mut LabelChoice, found: usize) {
    let found_text = format!("Found with the model ({})", grouped(found));
    let text = match labels {
        LabelChoice::None => "None: class numbers only",
        LabelChoice::Found => &found_text,
        LabelChoice::BuiltIn(name) => {
            LABEL_SETS.iter().find(|(known, _)| known == name).map_or(name.as_str(), |(_, title)| title)
        }
        LabelChoice::File(_) => "From a file",
    }
    .to_owned();
    field.list_ui(ui, &text, |ui| {
        if found > 0 {
            ui.selectable_value(labels, LabelChoice::Found, &found_text);
        }
        for (name, title) in LABEL_SETS {
            ui.selectable_value(labels, LabelChoice::BuiltIn(name.to_owned()), title);
        }
        let is_file = matches!(labels, LabelChoice::File(_));
        if ui.selectable_label(is_file, "From a file").clicked() && !is_file {
            *labels = LabelChoice::File(PathBuf::new());
        }
        ui.selectable_value(labels, LabelChoice::None, "None: class numbers only");
    });
}

fn crop_ui(ui: &mut Ui, field: &Field<'_>, rule: &mut ResizeRule) {
    if let ResizeRule::Stretch { width, height, crop } = rule {
        let mut crops = crop.is_some();
        field.explain(checkbox_ui(ui, &mut crops, "Center crop only"));
        let whole = CenterCrop { width: *width, height: *height, offset: Rounding::HalfEven };
        *crop = crops.then(|| crop.unwrap_or(whole));
    }
}

/// A menu if the graph does not fix the batch size.
fn batch_ui(rows: &Rows<'_>, ui: &mut Ui, field: &CardField, declared: Option<u32>, because: &str, draft: &mut Draft) {
    let (one, any, always) = ("One", "Any number", "Always the same number");
    let &mut ImageInput { layout, batches, fixed_batch, .. } = &mut draft.card.input;
    if matches!(layout, Layout::Chw | Layout::Hwc) {
        return rows.fixed_row(ui, field, one, because, draft);
    }
    if declared.is_some() && declared == Some(fixed_batch.unwrap_or(1)) && !batches {
        let images = fixed_batch.map_or_else(|| one.to_owned(), |images| images.to_string());
        return rows.fixed_row(ui, field, &images, because, draft);
    }
    rows.row(ui, field, draft, |ui, name, draft| {
        let input = &mut draft.card.input;
        let now = match fixed_batch {
            Some(_) => always,
            None if batches => any,
            None => one,
        };
        let width = CONTROL_WIDTH - if fixed_batch.is_some() { BATCH_WIDTH } else { 0.0 };
        name.clone().width(width).list_ui(ui, now, |ui| {
            let fixed = declared.filter(|images| *images > 1).unwrap_or(USUAL_BATCH);
            for (text, batches, fixed_batch) in [(one, false, None), (any, true, None), (always, false, Some(fixed))] {
                if ui.selectable_label(text == now, text).clicked() && text != now {
                    (input.batches, input.fixed_batch) = (batches, fixed_batch);
                }
            }
        });
        if let Some(images) = &mut input.fixed_batch {
            name.part("number").number_ui(ui, number_field(images).range(2..=1024));
        }
    });
}

/// The values of the graph's other inputs.
fn auxiliary_ui(rows: &Rows<'_>, ui: &mut Ui, field: &CardField, draft: &mut Draft) {
    let ports = &rows.start().inputs;
    let image = draft.card.input.name.clone();
    let values: Vec<_> = AuxiliaryValue::VARIANTS.iter().map(|&value| (Some(value), text_of(value))).collect();
    for port in ports.iter().filter(|port| ports.len() > 1 && Some(&port.name) != image.as_ref()) {
        let name = Field::new(format!("{} {}", field.label, port.name));
        let name = name.help(field.help).hint("Choose one").width(CONTROL_WIDTH);
        rows.row_with(ui, field, &name, None, draft, |ui, name, draft| {
            let auxiliary = &mut draft.card.input.auxiliary;
            let known = auxiliary.iter().position(|known| known.name == port.name);
            let mut chosen = known.map(|known| auxiliary[known].value);
            name.choice_ui(ui, &mut chosen, &values);
            match (known, chosen) {
                (Some(known), Some(value)) => auxiliary[known].value = value,
                (None, Some(value)) => auxiliary.push(AuxiliaryInput::new(&port.name, value)),
                (_, None) => {}
            }
        });
    }
}

/// Whether boxes are relative to the cells of a grid, and how.
fn grid_ui(ui: &mut Ui, field: &Field<'_>, draft: &mut Draft) {
    let OutputConvention::Detection(output) = &mut draft.card.output else {
        return;
    };
    let text = |grid: Option<&Grid>| match grid.map(|grid| &grid.coding) {
        None => "None: boxes are decoded",
        Some(GridCoding::Offsets {}) => "Offsets (YOLOX)",
        Some(GridCoding::DistanceBins { .. }) => "Distance bins (NanoDet)",
        Some(GridCoding::Distances { .. }) => "Distances (SCRFD)",
        Some(GridCoding::Anchors { .. }) => "Anchors (YOLOv5)",
        Some(GridCoding::Priors { .. }) => "Priors (RetinaFace)",
    };
    let chosen = text(output.grid.as_ref());
    let strides = output.grid.as_ref().map_or_else(|| vec![8, 16, 32], |grid| grid.strides.clone());
    field.list_ui(ui, chosen, |ui| {
        for coding in [None].into_iter().chain(GridCoding::one_per_kind().map(Some)) {
            let grid = coding.map(|coding| Grid { strides: strides.clone(), coding });
            let name = text(grid.as_ref());
            if ui.selectable_label(name == chosen, name).clicked() && name != chosen {
                output.box_format = grid.as_ref().map_or(output.box_format, |grid| grid.coding.box_format());
                output.box_space = BoxSpace::ModelPixels;
                output.grid = grid;
            }
        }
    });
}
