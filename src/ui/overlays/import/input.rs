//! The rows about the input of a model.

use std::mem::discriminant;

use eframe::egui::{ComboBox, Ui};
use strum::VariantArray;

use super::super::super::widgets::{checkbox_ui, strong};
use super::rows::{
    CONTROL_WIDTH, Rows, SIDES, decimal, fixed, fixed_word, menu, number, optional_number, port, word_of,
};
use crate::domain::{
    AuxiliaryInput, AuxiliaryValue, BoxesBack, CentreCrop, ChannelOrder, ElementType, ImageInput, Interpolation,
    Layout, Position, ResizeRule, Rounding,
};
use crate::state::{ImportPort, ImportStart};

/// `beside` draws what is beside the heading.
pub(super) fn input_ui(
    ui: &mut Ui,
    rows: &mut Rows<'_>,
    input: &mut ImageInput,
    start: &ImportStart,
    beside: impl FnOnce(&mut Ui),
) {
    ui.horizontal(|ui| {
        ui.label(strong("Input"));
        beside(ui);
    });
    if start.inputs.len() > 1 {
        rows.row(ui, "input.name", "Image", |ui| port(ui, "Image input", &mut input.name, &start.inputs, None));
    }
    resize_ui(ui, rows, &mut input.resize);
    rows.row(ui, "input.interpolation", "Interpolation", |ui| {
        menu(ui, "Interpolation", &mut input.interpolation, Interpolation::VARIANTS);
    });
    rows.row(ui, "input.channels", "Channels", |ui| {
        menu(ui, "Channels", &mut input.channels, ChannelOrder::VARIANTS);
    });
    if input.element_type != ElementType::Uint8 {
        pixels_ui(ui, rows, input);
    }
    rows.row(ui, "input.layout", "Layout", |ui| fixed_word(ui, input.layout));
    rows.row(ui, "input.type", "Type", |ui| fixed_word(ui, input.element_type));
    batch_ui(ui, rows, input);
    auxiliary_ui(ui, rows, input, &start.inputs);
}

/// `(pixel / divide_by - mean) / std`
fn pixels_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput) {
    rows.row(ui, "input.divide_by", "Divide by", |ui| decimal(ui, "Divide by", &mut input.divide_by));
    let letters = match input.channels {
        ChannelOrder::Rgb => ["red", "green", "blue"],
        ChannelOrder::Bgr => ["blue", "green", "red"],
    };
    for (path, name, values) in [("input.mean", "Mean", &mut input.mean), ("input.std", "Std", &mut input.std)] {
        rows.row(ui, path, name, |ui| {
            for (value, letter) in values.iter_mut().zip(letters) {
                decimal(ui, &format!("{name}, {letter}"), value);
            }
        });
    }
}

fn batch_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput) {
    if let Some(images) = input.fixed_batch {
        rows.row(ui, "input.fixed_batch", "Batch", |ui| fixed(ui, format!("{images} images in each call")));
    } else if matches!(input.layout, Layout::Nchw | Layout::Nhwc) {
        rows.row(ui, "input.batches", "Batch", |ui| {
            checkbox_ui(ui, &mut input.batches, "Several images in one call");
        });
    }
}

/// What fills the graph's other inputs.
fn auxiliary_ui(ui: &mut Ui, rows: &mut Rows<'_>, input: &mut ImageInput, ports: &[ImportPort]) {
    let image = input.name.clone();
    let others = ports.iter().filter(|port| ports.len() > 1 && Some(&port.name) != image.as_ref());
    for port in others {
        let name = format!("Input {}", port.name);
        let place = input.auxiliary.iter().position(|known| known.name == port.name);
        let mut chosen = place.map(|place| input.auxiliary[place].value);
        rows.row(ui, "input.auxiliary", &name, |ui| {
            let text = chosen.map_or("Choose one", word_of);
            let combo = ComboBox::from_id_salt(&name).width(CONTROL_WIDTH).selected_text(text).truncate();
            let combo = combo.show_ui(ui, |ui| {
                for &value in AuxiliaryValue::VARIANTS {
                    ui.selectable_value(&mut chosen, Some(value), word_of(value));
                }
            });
            combo.response.on_hover_text(&port.shape).accessible_name(&name);
        });
        match (place, chosen) {
            (Some(place), Some(value)) => input.auxiliary[place].value = value,
            (None, Some(value)) => input.auxiliary.push(AuxiliaryInput { name: port.name.clone(), value }),
            (_, None) => {}
        }
    }
}

/// The rule, then its own fields.
fn resize_ui(ui: &mut Ui, rows: &mut Rows<'_>, rule: &mut ResizeRule) {
    rows.choice_row(ui, "input.resize", "Resize", |ui| {
        let combo = ComboBox::from_id_salt("resize").width(CONTROL_WIDTH).selected_text(rule_text(rule)).truncate();
        let combo = combo.show_ui(ui, |ui| {
            for other in rules_of_size(rule) {
                let is_chosen = discriminant(&other) == discriminant(rule);
                if ui.selectable_label(is_chosen, rule_text(&other)).clicked() && !is_chosen {
                    *rule = other;
                }
            }
        });
        combo.response.accessible_name("Resize");
    });
    match rule {
        ResizeRule::Keep {} => {}
        ResizeRule::Stretch { width, height, crop } => {
            size_ui(ui, rows, "input.resize.stretch.width", "Size", [width, height]);
            let mut crops = crop.is_some();
            rows.row(ui, "input.resize.stretch.crop", "Crop", |ui| {
                checkbox_ui(ui, &mut crops, "Only the middle of it");
            });
            let whole = || CentreCrop { width: *width, height: *height, offset: Rounding::HalfEven };
            *crop = crops.then(|| crop.unwrap_or_else(whole));
            if let Some(CentreCrop { width, height, offset }) = crop {
                let path = |field| format!("input.resize.stretch.crop.{field}");
                size_ui(ui, rows, &path("width"), "Crop size", [width, height]);
                rounding_ui(ui, rows, &path("offset"), "Crop offset", offset);
            }
        }
        ResizeRule::ShortSideCrop { short_side, long_side, crop_width, crop_height, crop_offset } => {
            let path = |field| format!("input.resize.short-side-crop.{field}");
            rows.row(ui, &path("short_side"), "Short side", |ui| number(ui, "Short side", short_side, SIDES, " px"));
            size_ui(ui, rows, &path("crop_width"), "Crop", [crop_width, crop_height]);
            rounding_ui(ui, rows, &path("long_side"), "Long side", long_side);
            rounding_ui(ui, rows, &path("crop_offset"), "Crop offset", crop_offset);
        }
        ResizeRule::Letterbox { width, height, fill, position, rounding, stride, boxes_back } => {
            let path = |field| format!("input.resize.letterbox.{field}");
            size_ui(ui, rows, &path("width"), "Size", [width, height]);
            rows.row(ui, &path("fill"), "Fill", |ui| {
                for (level, color) in fill.0.iter_mut().zip(["red", "green", "blue"]) {
                    number(ui, &format!("Fill, {color}"), level, 0..=255, "");
                }
            });
            rows.row(ui, &path("position"), "Position", |ui| menu(ui, "Position", position, Position::VARIANTS));
            rounding_ui(ui, rows, &path("rounding"), "Side rounding", rounding);
            rows.row(ui, &path("stride"), "Cut to stride", |ui| {
                optional_number(ui, "Cut to stride", stride, 32, SIDES, "always the whole size");
            });
            rows.row(ui, &path("boxes_back"), "Boxes back", |ui| {
                menu(ui, "Boxes back", boxes_back, BoxesBack::VARIANTS);
            });
        }
        ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, cut_to_multiple } => {
            let path = |field| format!("input.resize.short-side-pad.{field}");
            rows.row(ui, &path("short_side"), "Short side", |ui| number(ui, "Short side", short_side, SIDES, " px"));
            rows.row(ui, &path("max_long_side"), "Long side up to", |ui| {
                number(ui, "Long side up to", max_long_side, SIDES, " px");
            });
            rows.row(ui, &path("pad_to_multiple"), "Pad to multiple", |ui| {
                number(ui, "Pad to multiple", pad_to_multiple, SIDES, " px");
            });
            rows.row(ui, &path("cut_to_multiple"), "Cut to multiple", |ui| {
                number(ui, "Cut to multiple", cut_to_multiple, SIDES, " px");
            });
        }
    }
}

fn size_ui(ui: &mut Ui, rows: &mut Rows<'_>, path: &str, name: &str, [width, height]: [&mut u32; 2]) {
    rows.row(ui, path, name, |ui| {
        number(ui, &format!("{name}: width"), width, SIDES, "");
        ui.label("×");
        number(ui, &format!("{name}: height"), height, SIDES, " px");
    });
}

fn rounding_ui(ui: &mut Ui, rows: &mut Rows<'_>, path: &str, name: &str, rounding: &mut Rounding) {
    rows.row(ui, path, name, |ui| menu(ui, &format!("{name}: rounding"), rounding, Rounding::VARIANTS));
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

/// Every rule, for an input of the same size as `rule` gives.
fn rules_of_size(rule: &ResizeRule) -> [ResizeRule; 5] {
    let [width, height] = match *rule {
        ResizeRule::ShortSidePad { short_side, .. } => [short_side, short_side],
        _ => rule.tensor_size().unwrap_or([640, 640]),
    };
    let (short, long) = (width.min(height), width.max(height));
    [
        ResizeRule::stretch(width, height),
        ResizeRule::letterbox(width, height),
        ResizeRule::ShortSideCrop {
            // Seven eighths are the most common crop.
            short_side: (u64::from(long) * 8 / 7).min(u64::from(*SIDES.end())) as u32,
            long_side: Rounding::Down,
            crop_width: width,
            crop_height: height,
            crop_offset: Rounding::HalfEven,
        },
        ResizeRule::ShortSidePad {
            short_side: short,
            max_long_side: (u64::from(short) * 5 / 3).min(u64::from(*SIDES.end())) as u32,
            pad_to_multiple: 32,
            cut_to_multiple: 1,
        },
        ResizeRule::Keep {},
    ]
}
