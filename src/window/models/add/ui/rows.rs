//! The rows of the form: a name, a control, and how the value was determined.

use std::ops::RangeInclusive;

use eframe::egui::{
    Align, ComboBox, Context, Event, Id, Key, Label, Layout, Popup, PopupCloseBehavior, Response, RichText, TextEdit,
    Tooltip, Ui, emath::Numeric, vec2,
};
use strum::VariantArray;

use super::help::help_of;
use crate::domain::{Columns, ModelCard};
use crate::window::state::{Evidence, ImportForm, ImportPort, ImportProblem, LabelChoice};
use crate::window::ui::widgets::{checkbox_ui, fitting, number_field, strong};

const NAME_WIDTH: f32 = 108.0;
pub(crate) const CONTROL_WIDTH: f32 = 204.0;
const COLUMN_WIDTH: f32 = 64.0;
/// The width of the arrow and margins of a menu.
const ARROW_WIDTH: f32 = 42.0;
const SEVERAL_OUTPUTS: &str =
    "Select several outputs if each contains the candidates of one level, in the order of selection";
/// Maximum side of an input, in pixels.
pub(crate) const SIDES: RangeInclusive<u32> = 1..=16_384;

pub(crate) struct Rows<'f> {
    evidence: &'f Evidence<'f>,
    problems: &'f [ImportProblem],
    undone: Option<(ModelCard, LabelChoice)>,
}

impl<'f> Rows<'f> {
    pub(crate) fn new(form: &'f ImportForm, evidence: &'f Evidence<'f>) -> Self {
        Self { evidence, problems: form.problems(), undone: None }
    }

    /// The card and labels that the user restored in this frame, if any.
    pub(crate) fn undone(self) -> Option<(ModelCard, LabelChoice)> {
        self.undone
    }

    /// A row for the card field at `path`.
    pub(crate) fn row(&mut self, ui: &mut Ui, path: &str, name: &str, control: impl FnOnce(&mut Ui, &Field)) {
        self.row_of(ui, &[path], name, control);
    }

    /// A row with a menu of all values.
    pub(crate) fn menu_row<T>(&mut self, ui: &mut Ui, path: &str, name: &str, value: &mut T)
    where
        T: Copy + PartialEq + Into<&'static str> + VariantArray,
    {
        self.row(ui, path, name, |ui, field| menu(ui, field, value, T::VARIANTS));
    }

    /// A row for several card fields, which are explained like the first.
    pub(crate) fn row_of(&mut self, ui: &mut Ui, paths: &[&str], name: &str, control: impl FnOnce(&mut Ui, &Field)) {
        let is_changed = paths.iter().any(|path| self.evidence.is_changed(path));
        self.row_with(ui, paths, name, is_changed, None, control);
    }

    /// A row for a choice between tables of the card.
    pub(crate) fn choice_row(&mut self, ui: &mut Ui, path: &str, name: &str, control: impl FnOnce(&mut Ui, &Field)) {
        let is_changed = self.evidence.is_other_choice(path);
        self.row_with(ui, &[path], name, is_changed, None, control);
    }

    /// A row for a field that the graph determines; `because` is a clause.
    pub(crate) fn fixed_row(&mut self, ui: &mut Ui, path: &str, name: &str, value: &str, because: &str) {
        self.row_with(ui, &[path], name, false, Some(because), |ui, field| {
            field.explain(ui.add(Label::new(value).truncate()));
        });
    }

    fn row_with(
        &mut self,
        ui: &mut Ui,
        paths: &[&str],
        name: &str,
        is_changed: bool,
        fixed_because: Option<&str>,
        control: impl FnOnce(&mut Ui, &Field),
    ) {
        let field = Field { name: name.to_owned(), help: help_of(paths.first().copied().unwrap_or_default()) };
        ui.horizontal(|ui| {
            name_ui(ui, &field);
            let height = ui.spacing().interact_size.y;
            ui.allocate_ui_with_layout(vec2(CONTROL_WIDTH, height), Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(CONTROL_WIDTH);
                control(ui, &field);
            });
            if is_changed {
                self.undo_ui(ui, paths, name);
            } else if let Some(finding) = paths.iter().find_map(|path| self.evidence.finding(path)) {
                evidence_ui(ui, &finding.basis, &finding.because, finding.is_assumed);
            } else if let Some(because) = fixed_because {
                evidence_ui(ui, "fixed", because, false);
            }
        });
        let problems = self.problems.iter().filter(|problem| paths.contains(&problem.field.as_str()));
        for problem in problems {
            let visuals = ui.visuals();
            let color = if problem.is_fatal { visuals.error_fg_color } else { visuals.warn_fg_color };
            let text = RichText::new(format!("⚠ {}", problem.text)).small().color(color);
            ui.horizontal_top(|ui| {
                // Below the control.
                ui.add_space(NAME_WIDTH + ui.spacing().item_spacing.x);
                ui.add(Label::new(text).wrap());
            });
        }
    }

    fn undo_ui(&mut self, ui: &mut Ui, paths: &[&str], name: &str) {
        ui.add(Label::new(RichText::new("set by you").small()).truncate());
        if let Some(before) = self.evidence.undone(paths) {
            let undo = ui.small_button("Undo");
            if undo.clicked() {
                self.undone = Some(before);
            }
            undo.accessible_name(format!("Undo: {name}"));
        }
    }
}

/// How a value was determined.
fn evidence_ui(ui: &mut Ui, basis: &str, because: &str, is_assumed: bool) {
    let (mark, color) =
        if is_assumed { ("⚠ ", ui.visuals().warn_fg_color) } else { ("", ui.visuals().weak_text_color()) };
    let basis = format!("{mark}{basis}:");
    let whole = format!("{basis} {because}");
    ui.spacing_mut().item_spacing.x = 4.0;
    ui.add(Label::new(RichText::new(basis).small().color(color)).extend()).on_hover_text(&whole);
    let because = Label::new(RichText::new(because).small().weak());
    ui.add(because.wrap()).on_hover_text(whole);
}

/// A heading as high as a row; `beside` draws what is next to it.
pub(crate) fn heading_ui(ui: &mut Ui, text: &str, beside: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.label(strong(text));
        beside(ui);
    });
}

/// A row without a card field.
pub(crate) fn plain_row(ui: &mut Ui, path: &str, name: &str, control: impl FnOnce(&mut Ui, &Field)) {
    let field = Field { name: name.to_owned(), help: help_of(path) };
    ui.horizontal(|ui| {
        name_ui(ui, &field);
        control(ui, &field);
    });
}

fn name_ui(ui: &mut Ui, field: &Field) {
    let height = ui.spacing().interact_size.y;
    ui.allocate_ui_with_layout(vec2(NAME_WIDTH, height), Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(NAME_WIDTH);
        ui.add(Label::new(&field.name).truncate()).on_hover_text(field.help);
    });
}

/// The meaning of a control, visible and for screen readers.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    name: String,
    help: &'static str,
}

impl Field {
    /// One of several controls of the field.
    pub(crate) fn part(&self, name: &str) -> Self {
        Self { name: format!("{}, {name}", self.name), help: self.help }
    }

    /// Names a control and explains it: to the pointer, on keyboard focus, and to screen readers.
    pub(crate) fn explain(&self, control: Response) -> Response {
        let control = control.accessible_name(&self.name);
        if self.help.is_empty() {
            return control;
        }
        control.ctx.accesskit_node_builder(control.id, |node| node.set_description(self.help));
        if control.gained_focus() {
            control.scroll_to_me(None);
        }
        if control.has_focus() && is_led_by_tab(&control.ctx) && !Popup::is_any_open(&control.ctx) {
            Tooltip::for_widget(&control).show(|ui| ui.label(self.help));
            return control;
        }
        control.on_hover_text(self.help)
    }
}

fn led_by_tab() -> Id {
    Id::unique("import form: the focus was moved by Tab")
}

/// Whether Tab was the last key or click.
fn is_led_by_tab(ctx: &Context) -> bool {
    ctx.data(|data| data.get_temp(led_by_tab())).unwrap_or(false)
}

/// Records whether the user navigates with the keyboard; called once per frame.
pub(crate) fn note_tab(ctx: &Context) {
    let last = ctx.input(|input| {
        input.events.iter().rev().find_map(|event| match event {
            Event::Key { key, pressed: true, .. } => Some(*key == Key::Tab),
            Event::PointerButton { pressed: true, .. } | Event::Text(_) => Some(false),
            _ => None,
        })
    });
    if let Some(is_tab) = last {
        ctx.data_mut(|data| data.insert_temp(led_by_tab(), is_tab));
    }
}

pub(crate) fn text_field(ui: &mut Ui, field: &Field, text: &mut String) {
    field.explain(ui.add(TextEdit::singleline(text).desired_width(CONTROL_WIDTH)));
}

/// A check box.
pub(crate) fn tick(ui: &mut Ui, field: &Field, is_on: &mut bool, text: &str) {
    field.explain(checkbox_ui(ui, is_on, text));
}

/// A list that opens below `text` and closes with a choice.
pub(crate) fn combo(ui: &mut Ui, field: &Field, text: &str, width: f32, contents: impl FnOnce(&mut Ui)) {
    combo_until(PopupCloseBehavior::CloseOnClick, ui, field, text, width, contents);
}

fn combo_until(
    close: PopupCloseBehavior,
    ui: &mut Ui,
    field: &Field,
    text: &str,
    width: f32,
    contents: impl FnOnce(&mut Ui),
) {
    // Otherwise, its text would take the whole row.
    let size = vec2(width, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        let combo = ComboBox::from_id_salt(&field.name).width(width).selected_text(text).truncate();
        field.explain(combo.close_behavior(close).show_ui(ui, contents).response);
    });
}

/// A menu of all values of a choice in the card.
pub(crate) fn menu<T>(ui: &mut Ui, field: &Field, value: &mut T, choices: &[T])
where
    T: Copy + PartialEq + Into<&'static str>,
{
    combo(ui, field, word_of(*value), CONTROL_WIDTH, |ui| {
        for &choice in choices {
            ui.selectable_value(value, choice, word_of(choice));
        }
    });
}

/// A value of a choice in the card, for display.
pub(crate) fn word_of(value: impl Into<&'static str>) -> &'static str {
    words(value.into())
}

/// A word of the card, for display.
fn words(word: &'static str) -> &'static str {
    match word {
        "nchw" => "batch, channel, row, column",
        "nhwc" => "batch, row, column, channel",
        "chw" => "channel, row, column",
        "hwc" => "row, column, channel",
        "rgb" => "RGB",
        "bgr" => "BGR",
        "gray" => "Grayscale",
        "pillow-bilinear" => "Pillow bilinear",
        "pillow-bicubic" => "Pillow bicubic",
        "pillow-lanczos" => "Pillow Lanczos",
        "pillow-nearest" => "Pillow nearest",
        "opencv-linear" => "OpenCV linear",
        "opencv-cubic" => "OpenCV cubic",
        "opencv-warp" => "OpenCV warp",
        "no" => "No",
        "crop" => "Crop to the central square",
        "fit" => "Crop as Pillow's ImageOps.fit",
        "pad-white" => "Pad with white",
        "pad-black" => "Pad with black",
        "center" => "In the middle",
        "top-left" => "Top left",
        "down" => "Down",
        "by-padding" => "By padding: down, or as in DETR",
        "half-even" => "Nearest, halves to even",
        "half-up" => "Nearest, halves up",
        "scale-factor" => "Scale: height, width",
        "input-height-width" => "Input height, width",
        "image-height-width" => "Image height, width",
        "image-width-height" => "Image width, height",
        "pixel-mask" => "Mask of the image's pixels",
        "logits" => "Logits (softmax follows)",
        "second-probability" => "One probability, of the second of two classes",
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
        "cxcywh" => "Center x, y, width, height",
        "model-pixels" => "Pixels of the input",
        "normalized" => "0 to 1 of the input",
        "image-pixels" => "Pixels of the image",
        other => other,
    }
}

/// A number and its unit.
pub(crate) fn number<N: Numeric>(ui: &mut Ui, field: &Field, value: &mut N, range: RangeInclusive<N>, unit: &str) {
    field.explain(ui.add(number_field(value).range(range).suffix(unit)));
}

/// Any decimal number.
pub(crate) fn decimal(ui: &mut Ui, field: &Field, value: &mut f32) {
    field.explain(ui.add(number_field(value).speed(0.01).max_decimals(6)));
}

/// A number that is set only if its box is checked; otherwise, `otherwise` states what applies.
pub(crate) fn optional_number<N: Numeric>(
    ui: &mut Ui,
    field: &Field,
    value: &mut Option<N>,
    usual: N,
    range: RangeInclusive<N>,
    otherwise: &str,
) {
    let mut is_set = value.is_some();
    let text = if is_set { "" } else { otherwise };
    tick(ui, &field.part("set a number"), &mut is_set, text);
    *value = is_set.then(|| value.unwrap_or(usual));
    if let Some(value) = value {
        field.explain(ui.add(number_field(value).range(range).speed(0.01)));
    }
}

/// Which of the graph's inputs or outputs; `None` is also an option.
pub(crate) fn port(ui: &mut Ui, field: &Field, value: &mut Option<String>, ports: &[ImportPort], none: Option<&str>) {
    let text = value.as_deref().or(none).unwrap_or("Choose one").to_owned();
    combo(ui, field, &text, CONTROL_WIDTH, |ui| {
        for port in ports {
            ui.selectable_value(value, Some(port.name.clone()), port.to_string());
        }
        if let Some(none) = none {
            ui.selectable_value(value, None, none);
        }
    });
}

/// Which outputs, and the first of their columns.
pub(crate) fn columns(ui: &mut Ui, field: &Field, value: &mut Columns, ports: &[ImportPort]) {
    let mut optional = Some(value.clone());
    optional_columns(ui, field, &mut optional, ports, None);
    if let Some(columns) = optional {
        *value = columns;
    }
}

/// As [`columns`], for what a model may not have: `none` is the text for that.
pub(crate) fn optional_columns(
    ui: &mut Ui,
    field: &Field,
    value: &mut Option<Columns>,
    ports: &[ImportPort],
    none: Option<&str>,
) {
    let beside = if value.is_some() { COLUMN_WIDTH + ui.spacing().item_spacing.x } else { 0.0 };
    let width = CONTROL_WIDTH - beside;
    let text = match value {
        Some(columns) => outputs_text(ui, &columns.outputs, width),
        None => none.unwrap_or("Choose one").to_owned(),
    };
    // It stays open while outputs are checked.
    combo_until(PopupCloseBehavior::CloseOnClickOutside, ui, field, &text, width, |ui| {
        outputs_ui(ui, value, ports, none);
    });
    if let Some(columns) = value {
        let column = number_field(&mut columns.column).range(0..=100_000).prefix("col ");
        let column = ui.add_sized([COLUMN_WIDTH, ui.spacing().interact_size.y], column);
        Field { help: "First output column to read, counted from 0", ..field.part("first column") }.explain(column);
    }
}

/// Their names, or their number if the names are too long.
fn outputs_text(ui: &Ui, outputs: &[String], width: f32) -> String {
    let names = outputs.join(" + ");
    if outputs.len() < 2 {
        return names;
    }
    let texts = [names, format!("{} outputs", outputs.len())];
    fitting(ui, texts, width - ARROW_WIDTH).unwrap_or_default()
}

/// The outputs to choose from: one, or several that are read one after another.
fn outputs_ui(ui: &mut Ui, value: &mut Option<Columns>, ports: &[ImportPort], none: Option<&str>) {
    let column = value.as_ref().map_or(0, |columns| columns.column);
    let chosen = value.as_ref().map_or(&[][..], |columns| &columns.outputs).to_vec();
    for port in ports {
        let place = chosen.iter().position(|name| *name == port.name);
        ui.horizontal(|ui| {
            if ports.len() > 1 {
                let mut is_part = place.is_some();
                let number = place.filter(|_| chosen.len() > 1).map_or_else(String::new, |at| (at + 1).to_string());
                let tick = checkbox_ui(ui, &mut is_part, number).on_hover_text(SEVERAL_OUTPUTS);
                if tick.changed() {
                    let others = chosen.iter().filter(|name| **name != port.name).cloned();
                    let outputs: Vec<String> = others.chain(is_part.then(|| port.name.clone())).collect();
                    if !outputs.is_empty() {
                        *value = Some(Columns { outputs, column });
                    }
                }
                tick.accessible_name(format!("Also {}", port.name));
            }
            if ui.selectable_label(place.is_some() && chosen.len() == 1, port.to_string()).clicked() {
                *value = Some(Columns::at(&port.name, column));
                ui.close();
            }
        });
    }
    if let Some(none) = none
        && ui.selectable_label(value.is_none(), none).clicked()
    {
        *value = None;
        ui.close();
    }
}

/// A list on one line; invalid text is ignored.
pub(crate) fn list<T: PartialEq>(
    ui: &mut Ui,
    field: &Field,
    values: &mut Vec<T>,
    hint: &str,
    write: impl Fn(&T) -> String,
    read: impl Fn(&str) -> Option<T>,
) {
    let id = ui.make_persistent_id(&field.name);
    let written = values.iter().map(write).collect::<Vec<_>>().join(", ");
    let mut text = ui.data(|data| data.get_temp::<String>(id)).unwrap_or(written);
    let edit = ui.add(TextEdit::singleline(&mut text).hint_text(hint).desired_width(CONTROL_WIDTH));
    if edit.changed() {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        if let Some(read) = parts.map(read).collect::<Option<Vec<T>>>() {
            *values = read;
        }
    }
    // While it is typed, the text stays unchanged.
    let is_typed = edit.has_focus();
    ui.data_mut(|data| {
        if is_typed {
            data.insert_temp(id, text);
        } else {
            data.remove_temp::<String>(id);
        }
    });
    field.explain(edit);
}
