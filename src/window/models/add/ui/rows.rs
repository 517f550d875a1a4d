//! The rows of the form: a name, a control, and how the value was determined.

mod own;

use std::mem::take;

use eframe::egui::{Align, Label, Layout, PopupCloseBehavior, RichText, Ui, vec2};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::domain::card_fields::{COLUMN, CardField, Edit, Number, set_value};
use crate::domain::{ChannelOrder, Columns, ModelCard};
use crate::window::state::{Evidence, ImportForm, ImportPort, ImportStart, LabelChoice};
use crate::window::ui::field::{Field, NAME_WIDTH};
use crate::window::ui::widgets::{checkbox_ui, fitting, number_field, strong};
use own::own_ui;

pub(crate) const CONTROL_WIDTH: f32 = 204.0;
const COLUMN_WIDTH: f32 = 64.0;
/// The width of the arrow and margins of a menu.
const ARROW_WIDTH: f32 = 42.0;
const SEVERAL_OUTPUTS: &str =
    "Select several outputs if each contains the candidates of one level, in the order of selection";
const COLORS: [&str; 3] = ["red", "green", "blue"];

/// What the rows of a frame change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) card: ModelCard,
    pub(crate) labels: LabelChoice,
}

impl Draft {
    /// Sets the field of the card at `path`, if it can have this value.
    fn set(&mut self, path: &str, value: Value) {
        let mut card = json!(self.card);
        if set_value(&mut card, path, value).is_ok()
            && let Ok(card) = serde_json::from_value(card)
        {
            self.card = card;
        }
    }
}

pub(crate) struct Rows<'f> {
    form: &'f ImportForm,
    evidence: Evidence<'f>,
    is_new: bool,
}

impl<'f> Rows<'f> {
    /// `is_new`: the model is not in the library yet.
    pub(crate) fn new(form: &'f ImportForm, is_new: bool) -> Self {
        Self { form, evidence: form.evidence(), is_new }
    }

    pub(crate) fn start(&self) -> &'f ImportStart {
        &self.form.start
    }

    /// A row for each field that the card uses.
    pub(crate) fn fields_ui(&self, ui: &mut Ui, fields: &[CardField], draft: &mut Draft) {
        for field in fields.iter().filter(|field| field.is_used(self.evidence.card())) {
            match field.edit {
                Edit::Own => own_ui(self, ui, field, draft),
                // There is nothing to choose.
                Edit::Port(_) if field.path() == "input.name" && self.start().inputs.len() < 2 => {}
                Edit::Text if field.path() == "id" && !self.is_new => {
                    let id = draft.card.id.clone();
                    self.fixed_row(ui, field, &id, "identifies the model in projects", draft);
                }
                _ => self.row(ui, field, draft, |ui, name, draft| self.edit_ui(ui, field, name, draft)),
            }
        }
    }

    /// A row whose control is `control`.
    pub(crate) fn row(
        &self,
        ui: &mut Ui,
        field: &CardField,
        draft: &mut Draft,
        control: impl FnOnce(&mut Ui, &Field<'_>, &mut Draft),
    ) {
        self.row_with(ui, field, &name_of(field), None, draft, control);
    }

    /// A row for a field that the graph determines; `because` is a clause.
    pub(crate) fn fixed_row(&self, ui: &mut Ui, field: &CardField, value: &str, because: &str, draft: &mut Draft) {
        self.row_with(ui, field, &name_of(field), Some(because), draft, |ui, field, _| {
            field.explain(ui.add(Label::new(value).truncate()));
        });
    }

    pub(crate) fn row_with(
        &self,
        ui: &mut Ui,
        field: &CardField,
        name: &Field<'_>,
        fixed_because: Option<&str>,
        draft: &mut Draft,
        control: impl FnOnce(&mut Ui, &Field<'_>, &mut Draft),
    ) {
        name.row_ui(ui, |ui, name| {
            let size = vec2(CONTROL_WIDTH, ui.spacing().interact_size.y);
            ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(CONTROL_WIDTH);
                control(ui, name, draft);
            });
            if fixed_because.is_none() && self.is_changed(field) {
                self.undo_ui(ui, field, name, draft);
            } else if let Some(finding) = field.paths.iter().find_map(|path| self.evidence.finding(path)) {
                evidence_ui(ui, &finding.basis, &finding.because, finding.is_assumed);
            } else if let Some(because) = fixed_because {
                evidence_ui(ui, "fixed", because, false);
            }
        });
        let problems = self.form.problems().iter();
        for problem in problems.filter(|problem| field.paths.contains(&problem.field.as_str())) {
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

    /// The fields of a table have rows of their own.
    fn is_changed(&self, field: &CardField) -> bool {
        match field.path() {
            path @ ("input.resize" | "input.resize.stretch.crop") => self.evidence.is_other_choice(path),
            _ => field.paths.iter().any(|path| self.evidence.is_changed(path)),
        }
    }

    fn undo_ui(&self, ui: &mut Ui, field: &CardField, name: &Field<'_>, draft: &mut Draft) {
        ui.add(Label::new(RichText::new("set by you").small()).truncate());
        if let Some((card, labels)) = self.evidence.undone(field.paths) {
            let undo = ui.small_button("Undo");
            if undo.clicked() {
                *draft = Draft { card, labels };
            }
            undo.accessible_name(format!("Undo: {}", name.name()));
        }
    }

    /// The control of a field without an editor of its own.
    fn edit_ui(&self, ui: &mut Ui, field: &CardField, name: &Field<'_>, draft: &mut Draft) {
        let path = field.path();
        let now = self.evidence.value(path);
        let changed = match &field.edit {
            Edit::Own => None,
            Edit::Text => edited(now, |text| drop(name.text_ui(ui, text))),
            Edit::Words(words) => words_ui(ui, name, now, &words()),
            Edit::Flag(text) => edited(now, |is_on| drop(name.explain(checkbox_ui(ui, is_on, *text)))),
            Edit::Number(number) => number_ui(ui, name, number, now),
            Edit::Size(side) => {
                let sides = field.paths.iter().zip(["width", "height"]);
                for (path, side_name) in sides {
                    let mut side = *side;
                    if side_name == "width" {
                        side.unit = "";
                    } else {
                        ui.label("×");
                    }
                    if let Some(value) = number_ui(ui, &name.part(side_name), &side, self.evidence.value(path)) {
                        draft.set(path, value);
                    }
                }
                None
            }
            Edit::Color(level) => numbers_ui(ui, name, level, now, &COLORS),
            Edit::Channels(number) => {
                let colors = match draft.card.input.channels {
                    ChannelOrder::Rgb => &COLORS[..],
                    ChannelOrder::Bgr => &["blue", "green", "red"],
                    ChannelOrder::Gray => &["gray"],
                };
                numbers_ui(ui, name, number, now, colors)
            }
            Edit::Optional { number, usual, unset } => {
                let mut is_set = now.is_some();
                let text = if is_set { "" } else { *unset };
                name.part("set a number").explain(checkbox_ui(ui, &mut is_set, text));
                match (is_set, now) {
                    (true, Some(_)) => number_ui(ui, name, number, now),
                    (true, None) => Some(json_number(number, *usual)),
                    (false, _) => now.map(|_| Value::Null),
                }
            }
            Edit::List { example, .. } => list_ui(ui, name, now, example),
            Edit::Port(none) => {
                let start = self.start();
                let ports = if path.starts_with("input") { &start.inputs } else { &start.outputs };
                edited(now, |value| port_ui(ui, name, value, ports, *none))
            }
            Edit::Columns(none) => edited(now, |value| columns_ui(ui, name, value, &self.start().outputs, *none)),
        };
        if let Some(value) = changed {
            draft.set(path, value);
        }
    }
}

/// The changed value, if `edit` changes it.
fn edited<T: Clone + Default + DeserializeOwned + PartialEq + Serialize>(
    now: Option<&Value>,
    edit: impl FnOnce(&mut T),
) -> Option<Value> {
    let before = now.and_then(|now| T::deserialize(now).ok()).unwrap_or_default();
    let mut after = before.clone();
    edit(&mut after);
    (after != before).then(|| json!(after))
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

/// A heading as high as a row; `extra` draws what is next to it.
pub(crate) fn heading_ui(ui: &mut Ui, text: &str, extra: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.label(strong(text));
        extra(ui);
    });
}

fn name_of(field: &CardField) -> Field<'static> {
    Field::new(field.label).help(field.help).hint("Choose one").width(CONTROL_WIDTH)
}

/// A menu of words; the key of a table is its word.
fn words_ui(ui: &mut Ui, field: &Field<'_>, now: Option<&Value>, words: &[(&'static str, &str)]) -> Option<Value> {
    let word = match now {
        Some(Value::String(word)) => word,
        Some(Value::Object(table)) => table.keys().next()?,
        _ => words[0].0,
    };
    let mut chosen = word;
    field.choice_ui(ui, &mut chosen, words);
    (chosen != word).then(|| json!(chosen))
}

pub(crate) fn number_ui(ui: &mut Ui, field: &Field<'_>, number: &Number, now: Option<&Value>) -> Option<Value> {
    let mut value = now.and_then(Value::as_f64).unwrap_or(number.min);
    let drag = number_field(&mut value).range(number.min..=number.max).suffix(number.unit);
    let drag = if number.is_whole { drag.speed(0.25).max_decimals(0) } else { drag.speed(0.01).max_decimals(6) };
    field.number_ui(ui, drag).changed().then(|| json_number(number, value))
}

fn json_number(number: &Number, value: f64) -> Value {
    if number.is_whole { json!(value.round() as i64) } else { json!(value) }
}

/// Numbers next to each other. If the card has one, it stands for all.
fn numbers_ui(ui: &mut Ui, field: &Field<'_>, number: &Number, now: Option<&Value>, names: &[&str]) -> Option<Value> {
    ui.spacing_mut().item_spacing.x = 4.0;
    let mut values = match now? {
        Value::Array(values) => values.clone(),
        value => vec![value.clone(); names.len()],
    };
    let mut is_changed = false;
    for (value, name) in values.iter_mut().zip(names) {
        if let Some(new) = number_ui(ui, &field.part(name), number, Some(value)) {
            *value = new;
            is_changed = true;
        }
    }
    is_changed.then_some(Value::Array(values))
}

/// Which of the graph's inputs or outputs; `None` is also an option if it has a text.
fn port_ui(ui: &mut Ui, field: &Field<'_>, value: &mut Option<String>, ports: &[ImportPort], none: Option<&str>) {
    let text = value.as_deref().or(none).unwrap_or("Choose one").to_owned();
    field.list_ui(ui, &text, |ui| {
        for port in ports {
            ui.selectable_value(value, Some(port.name.clone()), port.to_string());
        }
        if let Some(none) = none {
            ui.selectable_value(value, None, none);
        }
    });
}

/// Which outputs, and the first of their columns. `none` is the text for what a model may not have.
fn columns_ui(ui: &mut Ui, field: &Field<'_>, value: &mut Option<Columns>, ports: &[ImportPort], none: Option<&str>) {
    let reset_width = if value.is_some() { COLUMN_WIDTH + ui.spacing().item_spacing.x } else { 0.0 };
    let width = CONTROL_WIDTH - reset_width;
    let text = match value {
        Some(columns) => outputs_text(ui, &columns.outputs, width),
        None => none.unwrap_or("Choose one").to_owned(),
    };
    // It stays open while outputs are checked.
    field.clone().width(width).list_until(PopupCloseBehavior::CloseOnClickOutside, ui, &text, |ui| {
        outputs_ui(ui, value, ports, none);
    });
    if let Some(columns) = value {
        let column = number_field(&mut columns.column).range(0..=COLUMN.max as u32).prefix("col ");
        let column = ui.add_sized([COLUMN_WIDTH, ui.spacing().interact_size.y], column);
        field.part("first column").help("First output column to read, counted from 0").explain(column);
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

/// Numbers, or sizes such as `10x13`, on one line; invalid text is ignored.
fn list_ui(ui: &mut Ui, field: &Field<'_>, now: Option<&Value>, example: &str) -> Option<Value> {
    let id = ui.make_persistent_id(field.name());
    let written = |value: &Value| match value {
        Value::Array(sides) => sides.iter().map(number_text).collect::<Vec<_>>().join("x"),
        value => number_text(value),
    };
    let typed = ui.data_mut(|data| data.get_temp::<String>(id));
    let mut text = typed.unwrap_or_else(|| {
        let values = now.and_then(Value::as_array).into_iter().flatten();
        values.map(written).collect::<Vec<_>>().join(", ")
    });
    let edit = field.clone().hint(example).text_ui(ui, &mut text);
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let values = parts.map(read_value).collect::<Option<Vec<_>>>();
    // While it is typed, the text stays unchanged.
    let has_focus = edit.has_focus();
    ui.data_mut(|data| {
        if has_focus {
            data.insert_temp(id, take(&mut text));
        } else {
            data.remove_temp::<String>(id);
        }
    });
    values.filter(|_| edit.changed()).map(Value::Array)
}

/// Numbers of a card have 32 bits, those of JSON 64.
fn number_text(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |number| (number as f32).to_string())
}

fn read_value(text: &str) -> Option<Value> {
    match text.split_once('x') {
        Some((width, height)) => Some(json!([read_value(width.trim())?, read_value(height.trim())?])),
        None => serde_json::from_str(text).ok().filter(Value::is_number),
    }
}
