//! The rows for the input of a model.

use std::mem::discriminant;

use eframe::egui::Ui;
use strum::VariantArray;

use super::help::AUXILIARY;
use super::rows::{
    CONTROL_WIDTH, Rows, SIDES, combo, decimal, heading_ui, menu, number, optional_number, port, tick, word_of,
};
use crate::domain::{
    AuxiliaryInput, AuxiliaryValue, CenterCrop, ChannelOrder, ElementType, ImageInput, Layout, ResizeRule, Rounding,
};
use crate::window::state::{ImportPort, ImportStart};

/// The width of the number of images next to its menu.
const BATCH_WIDTH: f32 = 40.0;
/// The default number of images that a call is padded to.
const USUAL_BATCH: u32 = 4;

/// `beside` draws what is next to the heading.
pub(crate) fn input_ui(
    ui: &mut Ui,
    rows: &mut Rows<'_>,
    input: &mut ImageInput,
    start: &ImportStart,
    beside: impl FnOnce(&mut Ui),
) {
    heading_ui(ui, "Input", beside);
    if start.inputs.len() > 1 {
        rows.row(ui, "input.name", "Image", |ui, field| port(ui, field, &mut input.name, &start.inputs, None));
    }
    resize_ui(ui, rows, &mut input.resize);
    rows.menu_row(ui, "input.square", "Make square", &mut input.square);
    rows.menu_row(ui, "input.interpolation", "Interpolation", &mut input.interpolation);
    rows.menu_row(ui, "input.channels", "Channels", &mut input.channels);
    if input.element_type != ElementType::Uint8 {
        pixels_ui(ui, rows, input);
    }
    let image = start.image_port(input);
    let because = image.map_or_else(String::new, |port| format!("the graph declares {}", port.shape));
    layout_ui(ui, rows, input, image, &because);
    rows.fixed_row(ui, "input.type", "Type", input.element_type.into_str(), &because);
    batch_ui(ui, rows, input, image, &because);
    auxiliary_ui(ui, rows, input, &start.inputs);
}

/// `(pixel / divide_by - mean) / std`
fn pixels_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput) {
    rows.row(ui, "input.divide_by", "Divide by", |ui, field| decimal(ui, field, &mut input.divide_by));
    let colors = match input.channels {
        ChannelOrder::Rgb => &["red", "green", "blue"][..],
        ChannelOrder::Bgr => &["blue", "green", "red"],
        ChannelOrder::Gray => &["gray"],
    };
    for (path, name, values) in [("input.mean", "Mean", &mut input.mean), ("input.std", "Std", &mut input.std)] {
        rows.row(ui, path, name, |ui, field| {
            ui.spacing_mut().item_spacing.x = 4.0;
            for (value, color) in values.iter_mut().zip(colors) {
                decimal(ui, &field.part(color), value);
            }
        });
    }
}

/// A menu if the dimensions allow several layouts.
fn layout_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput, image: Option<&ImportPort>, because: &str) {
    let mut layouts = image.map_or_else(Vec::new, |port| port.layouts.clone());
    if !layouts.contains(&input.layout) {
        layouts.push(input.layout);
    }
    if layouts.len() == 1 {
        rows.fixed_row(ui, "input.layout", "Layout", word_of(input.layout), because);
    } else {
        rows.row(ui, "input.layout", "Layout", |ui, field| menu(ui, field, &mut input.layout, &layouts));
    }
}

/// A menu if the graph does not fix the batch size.
fn batch_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput, image: Option<&ImportPort>, because: &str) {
    const PATHS: [&str; 2] = ["input.batches", "input.fixed_batch"];
    let (one, any, always) = ("One", "Any number", "Always the same number");
    if matches!(input.layout, Layout::Chw | Layout::Hwc) {
        return rows.fixed_row(ui, PATHS[0], "Images per call", one, because);
    }
    let declared = image.and_then(|port| port.declared_batch);
    if declared.is_some() && declared == Some(input.fixed_batch.unwrap_or(1)) && !input.batches {
        let images = input.fixed_batch.map_or_else(|| one.to_owned(), |images| images.to_string());
        return rows.fixed_row(ui, PATHS[1], "Images per call", &images, because);
    }
    rows.row_of(ui, &PATHS, "Images per call", |ui, field| {
        let now = match input.fixed_batch {
            Some(_) => always,
            None if input.batches => any,
            None => one,
        };
        let width = CONTROL_WIDTH - if input.fixed_batch.is_some() { BATCH_WIDTH } else { 0.0 };
        combo(ui, field, now, width, |ui| {
            let fixed = declared.filter(|images| *images > 1).unwrap_or(USUAL_BATCH);
            for (text, batches, fixed_batch) in [(one, false, None), (any, true, None), (always, false, Some(fixed))] {
                if ui.selectable_label(text == now, text).clicked() && text != now {
                    (input.batches, input.fixed_batch) = (batches, fixed_batch);
                }
            }
        });
        if let Some(images) = &mut input.fixed_batch {
            number(ui, &field.part("number"), images, 2..=1024, "");
        }
    });
}

/// The values of the graph's other inputs.
fn auxiliary_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput, ports: &[ImportPort]) {
    let image = input.name.clone();
    let others = ports.iter().filter(|port| ports.len() > 1 && Some(&port.name) != image.as_ref());
    for port in others {
        let place = input.auxiliary.iter().position(|known| known.name == port.name);
        let mut chosen = place.map(|place| input.auxiliary[place].value);
        rows.row(ui, AUXILIARY, &format!("Input {}", port.name), |ui, field| {
            combo(ui, field, chosen.map_or("Choose one", word_of), CONTROL_WIDTH, |ui| {
                for &value in AuxiliaryValue::VARIANTS {
                    ui.selectable_value(&mut chosen, Some(value), word_of(value));
                }
            });
        });
        match (place, chosen) {
            (Some(place), Some(value)) => input.auxiliary[place].value = value,
            (None, Some(value)) => input.auxiliary.push(AuxiliaryInput::new(&port.name, value)),
            (_, None) => {}
        }
    }
}

/// The rule, then its own fields.
fn resize_ui(ui: &mut Ui, rows: &mut Rows<'_>, rule: &mut ResizeRule) {
    rows.choice_row(ui, "input.resize", "Resize", |ui, field| {
        combo(ui, field, rule_text(rule), CONTROL_WIDTH, |ui| {
            for other in rule.of_each_kind() {
                let is_chosen = discriminant(&other) == discriminant(rule);
                if ui.selectable_label(is_chosen, rule_text(&other)).clicked() && !is_chosen {
                    *rule = other;
                }
            }
        });
    });
    match rule {
        ResizeRule::Keep {} => {}
        ResizeRule::Stretch { width, height, crop } => {
            size_ui(ui, rows, "input.resize.stretch", ["width", "height"], "Size", [width, height]);
            let mut crops = crop.is_some();
            rows.choice_row(ui, "input.resize.stretch.crop", "Crop", |ui, field| {
                tick(ui, field, &mut crops, "Center crop only");
            });
            let whole = || CenterCrop { width: *width, height: *height, offset: Rounding::HalfEven };
            *crop = crops.then(|| crop.unwrap_or_else(whole));
            if let Some(CenterCrop { width, height, offset }) = crop {
                let table = "input.resize.stretch.crop";
                size_ui(ui, rows, table, ["width", "height"], "Crop size", [width, height]);
                rows.menu_row(ui, &format!("{table}.offset"), "Crop rounding", offset);
            }
        }
        ResizeRule::ShortSideCrop { short_side, long_side, crop_width, crop_height, crop_offset } => {
            let table = "input.resize.short-side-crop";
            let path = |field| format!("{table}.{field}");
            rows.row(ui, &path("short_side"), "Short side", |ui, field| number(ui, field, short_side, SIDES, " px"));
            size_ui(ui, rows, table, ["crop_width", "crop_height"], "Crop", [crop_width, crop_height]);
            rows.menu_row(ui, &path("long_side"), "Side rounding", long_side);
            rows.menu_row(ui, &path("crop_offset"), "Crop rounding", crop_offset);
        }
        ResizeRule::Letterbox { width, height, fill, position, rounding, stride, boxes_back } => {
            let table = "input.resize.letterbox";
            let path = |field| format!("{table}.{field}");
            size_ui(ui, rows, table, ["width", "height"], "Size", [width, height]);
            rows.row(ui, &path("fill"), "Fill", |ui, field| {
                for (level, color) in fill.0.iter_mut().zip(["red", "green", "blue"]) {
                    number(ui, &field.part(color), level, 0..=255, "");
                }
            });
            rows.menu_row(ui, &path("position"), "Position", position);
            rows.menu_row(ui, &path("rounding"), "Side rounding", rounding);
            rows.row(ui, &path("stride"), "Pad to stride", |ui, field| {
                optional_number(ui, field, stride, 32, SIDES, "off: full size");
            });
            rows.menu_row(ui, &path("boxes_back"), "Map boxes back", boxes_back);
        }
        ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, cut_to_multiple, rounding } => {
            let path = |field| format!("input.resize.short-side-pad.{field}");
            for (key, name, side) in [
                ("short_side", "Short side", short_side),
                ("max_long_side", "Maximum long side", max_long_side),
                ("pad_to_multiple", "Pad to multiple", pad_to_multiple),
                ("cut_to_multiple", "Round down to multiple", cut_to_multiple),
            ] {
                rows.row(ui, &path(key), name, |ui, field| number(ui, field, side, SIDES, " px"));
            }
            rows.menu_row(ui, &path("rounding"), "Side rounding", rounding);
        }
    }
}

fn size_ui(ui: &mut Ui, rows: &mut Rows<'_>, table: &str, keys: [&str; 2], name: &str, [width, height]: [&mut u32; 2]) {
    let paths = keys.map(|key| format!("{table}.{key}"));
    rows.row_of(ui, &[&paths[0], &paths[1]], name, |ui, field| {
        number(ui, &field.part("width"), width, SIDES, "");
        ui.label("×");
        number(ui, &field.part("height"), height, SIDES, " px");
    });
}

fn rule_text(rule: &ResizeRule) -> &'static str {
    match rule {
        ResizeRule::Keep {} => "None: any size",
        ResizeRule::Stretch { .. } => "Stretch",
        ResizeRule::ShortSideCrop { .. } => "Short side, then crop",
        ResizeRule::Letterbox { .. } => "Letterbox",
        ResizeRule::ShortSidePad { .. } => "Short side, then pad",
    }
}
