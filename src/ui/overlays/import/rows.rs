//! The rows of the form: a name, a control, and how the value was found.

use std::fmt::Display;
use std::ops::RangeInclusive;

use eframe::egui::{Align, ComboBox, Label, Layout, RichText, TextEdit, Ui, emath::Numeric, vec2};

use super::super::super::widgets::{checkbox_ui, number_field};
use crate::domain::{Columns, ModelCard};
use crate::state::{Evidence, ImportForm, ImportPort, ImportProblem};

const NAME_WIDTH: f32 = 108.0;
pub(super) const CONTROL_WIDTH: f32 = 196.0;
const COLUMN_WIDTH: f32 = 64.0;
/// No side of an input is longer, in pixels.
pub(super) const SIDES: RangeInclusive<u32> = 1..=16_384;

pub(super) struct Rows<'f> {
    evidence: &'f Evidence<'f>,
    problems: &'f [ImportProblem],
    undone: Option<ModelCard>,
}

impl<'f> Rows<'f> {
    pub(super) fn new(form: &'f ImportForm, evidence: &'f Evidence<'f>) -> Self {
        Self { evidence, problems: form.problems(), undone: None }
    }

    /// The card that the user went back to, if they did in this frame.
    pub(super) fn undone(self) -> Option<ModelCard> {
        self.undone
    }

    /// A row about the field of the card at `path`.
    pub(super) fn row(&mut self, ui: &mut Ui, path: &str, name: &str, control: impl FnOnce(&mut Ui)) {
        let is_changed = self.evidence.is_changed(path);
        self.row_with(ui, path, name, is_changed, control);
    }

    /// A row about a choice between tables of the card.
    pub(super) fn choice_row(&mut self, ui: &mut Ui, path: &str, name: &str, control: impl FnOnce(&mut Ui)) {
        let is_changed = self.evidence.is_other_choice(path);
        self.row_with(ui, path, name, is_changed, control);
    }

    fn row_with(&mut self, ui: &mut Ui, path: &str, name: &str, is_changed: bool, control: impl FnOnce(&mut Ui)) {
        ui.horizontal(|ui| {
            name_ui(ui, name);
            let height = ui.spacing().interact_size.y;
            ui.allocate_ui_with_layout(vec2(CONTROL_WIDTH, height), Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(CONTROL_WIDTH);
                control(ui);
            });
            self.evidence_ui(ui, path, name, is_changed);
        });
        let problems = self.problems.iter().filter(|problem| problem.field == path);
        for problem in problems {
            let text = RichText::new(format!("⚠ {}", problem.text)).small().color(ui.visuals().error_fg_color);
            ui.add(Label::new(text).wrap());
        }
    }

    /// How the value was found, or that the user set it.
    fn evidence_ui(&mut self, ui: &mut Ui, path: &str, name: &str, is_changed: bool) {
        if is_changed {
            ui.add(Label::new(RichText::new("set by you").small()).truncate());
            if let Some(before) = self.evidence.undone(path) {
                let undo = ui.small_button("Undo");
                if undo.clicked() {
                    self.undone = Some(before);
                }
                undo.accessible_name(format!("Undo: {name}"));
            }
            return;
        }
        let Some(finding) = self.evidence.finding(path) else {
            return;
        };
        let (mark, color) = if finding.is_assumed {
            ("⚠ ", ui.visuals().warn_fg_color)
        } else {
            ("", ui.visuals().weak_text_color())
        };
        let basis = format!("{mark}{}", finding.basis);
        let whole = format!("{basis}: {}", finding.because);
        let basis = RichText::new(basis).small().color(color);
        ui.spacing_mut().item_spacing.x = 4.0;
        ui.add(Label::new(basis).extend()).on_hover_text(&whole);
        let because = Label::new(RichText::new(&finding.because).small().weak());
        ui.add(because.truncate().show_tooltip_when_elided(false)).on_hover_text(whole);
    }
}

/// A row without a field of the card.
pub(super) fn plain_row(ui: &mut Ui, name: &str, control: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        name_ui(ui, name);
        control(ui);
    });
}

fn name_ui(ui: &mut Ui, name: &str) {
    let height = ui.spacing().interact_size.y;
    ui.allocate_ui_with_layout(vec2(NAME_WIDTH, height), Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(NAME_WIDTH);
        ui.add(Label::new(name).truncate());
    });
}

pub(super) fn text_field(ui: &mut Ui, name: &str, text: &mut String) {
    ui.add(TextEdit::singleline(text).desired_width(CONTROL_WIDTH)).accessible_name(name);
}

/// A menu of all values of a choice of the card.
pub(super) fn menu<T>(ui: &mut Ui, name: &str, value: &mut T, choices: &[T])
where
    T: Copy + PartialEq + Into<&'static str>,
{
    let text = |choice: T| word_of(choice);
    let combo = ComboBox::from_id_salt(name).width(CONTROL_WIDTH).selected_text(text(*value)).truncate();
    let combo = combo.show_ui(ui, |ui| {
        for &choice in choices {
            ui.selectable_value(value, choice, text(choice));
        }
    });
    combo.response.accessible_name(name);
}

/// A value of a choice of the card as people read it.
pub(super) fn word_of(value: impl Into<&'static str>) -> &'static str {
    words(value.into())
}

/// A word of the card as people read it.
fn words(word: &'static str) -> &'static str {
    match word {
        "nchw" => "batch, channel, row, column",
        "nhwc" => "batch, row, column, channel",
        "chw" => "channel, row, column",
        "hwc" => "row, column, channel",
        "rgb" => "RGB",
        "bgr" => "BGR",
        "pillow-bilinear" => "Pillow bilinear",
        "pillow-bicubic" => "Pillow bicubic",
        "pillow-nearest" => "Pillow nearest",
        "opencv-linear" => "OpenCV linear",
        "opencv-cubic" => "OpenCV cubic",
        "opencv-warp" => "OpenCV warp",
        "centre" => "In the middle",
        "top-left" => "Top left",
        "down" => "Down",
        "half-even" => "Nearest, halves to even",
        "half-up" => "Nearest, halves up",
        "scale-factor" => "Scale: height, width",
        "input-height-width" => "Input height, width",
        "image-height-width" => "Image height, width",
        "image-width-height" => "Image width, height",
        "pixel-mask" => "Mask of the image's pixels",
        "logits" => "Logits (softmax follows)",
        "sigmoid-logits" => "Logits (sigmoid follows)",
        "probabilities" => "Probabilities",
        "arg-max" => "Number of the best class",
        "none" => "None",
        "each-axis" => "Ratio of each axis",
        "one-ratio" => "One ratio",
        "rounded-padding" => "One ratio, rounded padding",
        "exact-padding" => "One ratio, exact padding",
        "first" => "First class",
        "last" => "Last class",
        "sigmoid" => "Sigmoid",
        "softmax" => "Softmax",
        "best" => "Best class only",
        "all" => "Every class",
        "xyxy" => "Left, top, right, bottom",
        "yxyx" => "Top, left, bottom, right",
        "cxcywh" => "Centre x, y, width, height",
        "model-pixels" => "Pixels of the input",
        "normalised" => "0 to 1 of the input",
        "image-pixels" => "Pixels of the image",
        other => other,
    }
}

/// A number and its unit.
pub(super) fn number<N: Numeric>(ui: &mut Ui, name: &str, value: &mut N, range: RangeInclusive<N>, unit: &str) {
    ui.add(number_field(value).range(range).suffix(unit)).accessible_name(name);
}

/// Any decimal number.
pub(super) fn decimal(ui: &mut Ui, name: &str, value: &mut f32) {
    ui.add(number_field(value).speed(0.01).max_decimals(6)).accessible_name(name);
}

/// A number that is only set if its box is ticked; otherwise `otherwise` says what holds.
pub(super) fn optional_number<N: Numeric>(
    ui: &mut Ui,
    name: &str,
    value: &mut Option<N>,
    usual: N,
    range: RangeInclusive<N>,
    otherwise: &str,
) {
    let mut is_set = value.is_some();
    let text = if is_set { "" } else { otherwise };
    checkbox_ui(ui, &mut is_set, text).accessible_name(format!("{name}: set a number"));
    *value = is_set.then(|| value.unwrap_or(usual));
    if let Some(value) = value {
        ui.add(number_field(value).range(range).speed(0.01)).accessible_name(name);
    }
}

/// Which of the graph's inputs or outputs; `None` if that may be chosen, too.
pub(super) fn port(ui: &mut Ui, name: &str, value: &mut Option<String>, ports: &[ImportPort], none: Option<&str>) {
    port_of_width(ui, name, value, ports, none, CONTROL_WIDTH);
}

fn port_of_width(
    ui: &mut Ui,
    name: &str,
    value: &mut Option<String>,
    ports: &[ImportPort],
    none: Option<&str>,
    width: f32,
) {
    let text = value.as_deref().or(none).unwrap_or("Choose one").to_owned();
    let size = vec2(width, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        let combo = ComboBox::from_id_salt(name).width(width).selected_text(text).truncate();
        let combo = combo.show_ui(ui, |ui| {
            for port in ports {
                let text = format!("{}  {}", port.name, port.shape);
                ui.selectable_value(value, Some(port.name.clone()), text);
            }
            if let Some(none) = none {
                ui.selectable_value(value, None, none);
            }
        });
        combo.response.accessible_name(name);
    });
}

/// Which output, and the first of its columns.
pub(super) fn columns(ui: &mut Ui, name: &str, value: &mut Columns, ports: &[ImportPort]) {
    let mut optional = Some(value.clone());
    optional_columns(ui, name, &mut optional, ports, None);
    if let Some(columns) = optional {
        *value = columns;
    }
}

/// As [`columns`], for what a model may not have: `none` says so.
pub(super) fn optional_columns(
    ui: &mut Ui,
    name: &str,
    value: &mut Option<Columns>,
    ports: &[ImportPort],
    none: Option<&str>,
) {
    let before = value.as_ref().map(|columns| columns.outputs.join(", "));
    let mut output = before.clone();
    let width = CONTROL_WIDTH - if value.is_some() { COLUMN_WIDTH + ui.spacing().item_spacing.x } else { 0.0 };
    port_of_width(ui, name, &mut output, ports, none, width);
    if output != before {
        let column = value.as_ref().map_or(0, |columns| columns.column);
        *value = output.map(|output| Columns::at(&output, column));
    }
    if let Some(columns) = value {
        let column = number_field(&mut columns.column).range(0..=100_000).prefix("col ");
        let column = ui.add_sized([COLUMN_WIDTH, ui.spacing().interact_size.y], column);
        column.on_hover_text("The first column, counted from 0").accessible_name(format!("{name}: first column"));
    }
}

/// A list on one line; a text that cannot be read is not taken over.
pub(super) fn list<T: PartialEq>(
    ui: &mut Ui,
    name: &str,
    values: &mut Vec<T>,
    hint: &str,
    write: impl Fn(&T) -> String,
    read: impl Fn(&str) -> Option<T>,
) {
    let id = ui.make_persistent_id(name);
    let written = values.iter().map(write).collect::<Vec<_>>().join(", ");
    let mut text = ui.data(|data| data.get_temp::<String>(id)).unwrap_or(written);
    let field = ui.add(TextEdit::singleline(&mut text).hint_text(hint).desired_width(CONTROL_WIDTH));
    if field.changed() {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        if let Some(read) = parts.map(read).collect::<Option<Vec<T>>>() {
            *values = read;
        }
    }
    // While it is being typed the text stays as it is.
    ui.data_mut(|data| {
        if field.has_focus() {
            data.insert_temp(id, text);
        } else {
            data.remove_temp::<String>(id);
        }
    });
    field.accessible_name(name);
}

/// A value that the graph fixes.
pub(super) fn fixed(ui: &mut Ui, text: impl Display) {
    ui.add(Label::new(text.to_string()).truncate());
}

/// As [`fixed`], for a choice of the card.
pub(super) fn fixed_word(ui: &mut Ui, word: impl Into<&'static str>) {
    fixed(ui, word_of(word));
}
