//! What the forms about SageMaker have in common: fields with a caption, the points of a check, and when a check is due.

use eframe::egui::{
    self, Align, ComboBox, DragValue, Label, Layout, RichText, ScrollArea, TextEdit, Ui,
};

use super::super::widgets::strong;
use super::open_s3::problem_text;
use crate::domain::{Check, CheckGrade, ModelTask, Preflight, S3Link, known_instance_types};
use crate::state::State;

/// How long nothing has changed before a form is checked, in seconds.
const PAUSE_S: f64 = 0.6;

/// Nobody wants a check for each letter that is typed.
#[derive(Default)]
pub(super) struct Pacer<T> {
    /// What was seen last, and since when it has stood so, in seconds of the window's clock.
    seen: T,
    seen_since: f64,
    /// What was sent to be checked last.
    checked: Option<T>,
}

impl<T: PartialEq + Clone> Pacer<T> {
    /// The form begins anew.
    pub(super) fn forget(&mut self) {
        self.checked = None;
    }

    /// Whether this was sent to be checked last.
    pub(super) fn is_checked(&self, now: &T) -> bool {
        self.checked.as_ref() == Some(now)
    }

    /// Whether this is to be checked now; the first at once, and then when nothing has changed for a moment.
    pub(super) fn is_due(&mut self, ctx: &egui::Context, now: &T) -> bool {
        let time = ctx.input(|input| input.time);
        if self.seen != *now {
            self.seen = now.clone();
            self.seen_since = time;
        }
        if self.is_checked(now) {
            return false;
        }
        let left = self.seen_since + PAUSE_S - time;
        if left > 0.0 && self.checked.is_some() {
            ctx.request_repaint_after_secs(left as f32);
            return false;
        }
        self.checked = Some(now.clone());
        true
    }
}

/// An amount above zero, while it is being typed. Nothing typed is nothing known: no amount is ever suggested.
#[derive(Default)]
pub(super) struct AmountMemory {
    text: String,
    /// What was made of the text last.
    amount: Option<f64>,
}

impl AmountMemory {
    pub(super) fn field_ui(
        &mut self,
        ui: &mut Ui,
        amount: &mut Option<f64>,
        name: &str,
        otherwise: &str,
    ) {
        if *amount != self.amount {
            // It was set, or counts no longer.
            self.text = amount.map_or_else(String::new, |amount| amount.to_string());
        }
        text_ui(ui, &mut self.text, name, otherwise);
        let typed = self.text.trim();
        *amount = typed
            .parse()
            .ok()
            .filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
        self.amount = *amount;
        if amount.is_none() && !typed.is_empty() {
            let text = format!("⚠ This is no number above zero: {typed}");
            ui.colored_label(ui.visuals().error_fg_color, text);
        }
    }
}

/// Narrower than this, what would stand on the right lies below.
const TWO_COLUMNS: f32 = 760.0;

/// A form, and beside it what it comes to: two columns of this height where there is room, or one. Each moves by itself, and text is not
/// spread over its width.
pub(super) fn two_columns_ui<M>(
    ui: &mut Ui,
    height: f32,
    memory: &mut M,
    form: impl FnOnce(&mut Ui, &mut M),
    beside: impl FnOnce(&mut Ui, &mut M),
) {
    if ui.available_width() < TWO_COLUMNS {
        ScrollArea::vertical()
            .id_salt("form")
            .max_height(height)
            .show(ui, |ui| {
                form(ui, memory);
                ui.separator();
                beside(ui, memory);
            });
        return;
    }
    ui.columns(2, |columns| {
        column_ui(&mut columns[0], "form", height, |ui| form(ui, memory));
        column_ui(&mut columns[1], "beside", height, |ui| beside(ui, memory));
    });
}

/// Moves by itself. Text is not spread over its width.
fn column_ui(ui: &mut Ui, id: &str, height: f32, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical()
        .id_salt(id)
        .max_height(height)
        .min_scrolled_height(height)
        .show(ui, |ui| {
            ui.with_layout(Layout::top_down(Align::Min), contents);
        });
}

/// Which model of the library.
pub(super) fn model_ui(ui: &mut Ui, state: &State, model: &mut Option<String>, name: &str) {
    ui.label(strong("Model"));
    let chosen = model.as_deref().and_then(|id| state.models.get(id));
    let text = chosen.map_or("Choose a model", |entry| entry.card.name.as_str());
    let combo = ComboBox::from_id_salt(name)
        .width(ui.available_width())
        .selected_text(text)
        .show_ui(ui, |ui| {
            for task in [ModelTask::Classification, ModelTask::Detection] {
                for entry in state.models.ready(task) {
                    let id = Some(entry.card.id.clone());
                    ui.selectable_value(model, id, &entry.card.name);
                }
            }
        });
    combo.response.accessible_name(name);
}

/// How many instances of which type.
pub(super) fn instances_ui(ui: &mut Ui, count: &mut u32, instance_type: &mut String) {
    ui.label(RichText::new("Instances").small().weak());
    ui.horizontal_wrapped(|ui| {
        ui.add(DragValue::new(count).range(1..=100))
            .accessible_name("Number of instances");
        ui.label("×");
        let field = TextEdit::singleline(instance_type).desired_width(150.0);
        ui.add(field).accessible_name("Instance type");
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

/// What an hour of an instance costs, where the user says so.
pub(super) fn price_ui(ui: &mut Ui, memory: &mut AmountMemory, usd_per_hour: &mut Option<f64>) {
    let name = "US dollars an hour for an instance";
    memory.field_ui(ui, usd_per_hour, name, "as the price table says");
}

/// Says why what was typed is no address in S3.
pub(super) fn address_problem_ui(ui: &mut Ui, text: &str) {
    if let (Err(error), false) = (S3Link::parse(text), text.trim().is_empty()) {
        ui.label(problem_text(ui, &error));
    }
}

/// A caption above a field as wide as there is room.
pub(super) fn text_ui(ui: &mut Ui, text: &mut String, name: &str, hint: &str) {
    ui.label(RichText::new(name).small().weak());
    let field = TextEdit::singleline(text)
        .hint_text(hint)
        .desired_width(f32::INFINITY);
    ui.add(field).accessible_name(name);
}

pub(super) fn optional_text_ui(ui: &mut Ui, text: &mut Option<String>, name: &str, hint: &str) {
    let mut typed = text.clone().unwrap_or_default();
    text_ui(ui, &mut typed, name, hint);
    *text = (!typed.is_empty()).then_some(typed);
}

/// A number that is chosen only where it is ticked.
pub(super) fn optional_number_ui<N: eframe::emath::Numeric>(
    ui: &mut Ui,
    number: &mut Option<N>,
    name: &str,
    usual: N,
    range: std::ops::RangeInclusive<N>,
    otherwise: &str,
) {
    ui.horizontal_wrapped(|ui| {
        let mut is_set = number.is_some();
        ui.checkbox(&mut is_set, name);
        match (is_set, number.as_mut()) {
            (true, Some(value)) => {
                ui.add(DragValue::new(value).range(range))
                    .accessible_name(format!("{name}, number"));
            }
            (true, None) => *number = Some(usual),
            (false, _) => {
                *number = None;
                ui.weak(otherwise);
            }
        }
    });
}

/// What was found, the worst in one line and then point by point. `what` is what would fail: “the job”.
pub(super) fn preflight_ui(ui: &mut Ui, preflight: &Preflight, what: &str) {
    let problems = preflight.count(CheckGrade::Problem);
    let warnings = preflight.count(CheckGrade::Warning);
    ui.weak(match (problems, warnings) {
        (0, 0) => "Nothing speaks against it".to_owned(),
        (0, 1) => "Nothing speaks against it; one point to know".to_owned(),
        (0, more) => format!("Nothing speaks against it; {more} points to know"),
        (1, _) => format!("One point would make {what} fail"),
        (more, _) => format!("{more} points would make {what} fail"),
    });
    ui.add_space(4.0);
    for point in &preflight.checks {
        point_ui(ui, point);
    }
}

/// The verdict as a sign and as a colour, then what was found and what to do.
fn point_ui(ui: &mut Ui, check: &Check) {
    let visuals = ui.visuals();
    let (sign, color) = match check.grade {
        CheckGrade::Ok => ("✓", visuals.text_color()),
        CheckGrade::Warning => ("⚠", visuals.warn_fg_color),
        CheckGrade::Problem => ("✗", visuals.error_fg_color),
    };
    let title = format!("{sign} {}", check.point.label());
    ui.horizontal_top(|ui| {
        ui.allocate_ui_with_layout(
            egui::vec2(128.0, 0.0),
            Layout::left_to_right(Align::Min),
            |ui| {
                ui.set_min_width(128.0);
                ui.label(strong(title).color(color));
            },
        );
        ui.vertical(|ui| {
            ui.add(Label::new(&check.finding).wrap());
            if !check.advice.is_empty() {
                ui.add(Label::new(RichText::new(&check.advice).weak()).wrap());
            }
        });
    });
    ui.add_space(2.0);
}
