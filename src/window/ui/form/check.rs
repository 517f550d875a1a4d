//! The results of a form's check.

use std::cmp::Reverse;

use eframe::egui::{self, Align, CollapsingHeader, Label, Layout, RichText, Ui};

use crate::sagemaker::spec::transform::{Check, CheckGrade, CheckPoint, Preflight};
use crate::window::state::{Form, Loadable};
use crate::window::ui::widgets::{Tone, banner_ui, strong};

/// The half of a form with its check. Returns true if a new check is requested. `what` is what would fail: “the job”.
pub(crate) fn check_ui<D, P>(ui: &mut Ui, form: &Form<D, P>, what: &str) -> bool {
    if let Loadable::Failed(why) = &form.start {
        banner_ui(ui, Tone::Error, why.message(), |_| {});
        ui.add_space(6.0);
    }
    ui.horizontal(|ui| {
        ui.label(strong("Check"));
        if form.check.is_loading() {
            ui.spinner();
            ui.weak("Checking with AWS…");
        }
    });
    let mut is_again = false;
    match &form.check {
        Loadable::Ready(check) => preflight_ui(ui, &check.preflight, what),
        Loadable::Failed(why) => banner_ui(ui, Tone::Error, why.message(), |ui| {
            is_again = ui.button("Check again").clicked();
        }),
        Loadable::Loading(_) => {}
        Loadable::NotLoaded => {
            if let Some(missing) = &form.missing {
                banner_ui(ui, Tone::Hint, missing, |_| {});
            }
        }
    }
    is_again
}

/// The results of a check: a one-line summary, then the results that need attention, worst first, then the cost; passed
/// checks are collapsed. `what` is what would fail: “the job”.
pub(crate) fn preflight_ui(ui: &mut Ui, preflight: &Preflight, what: &str) {
    let problems = preflight.count(CheckGrade::Problem);
    let warnings = preflight.count(CheckGrade::Warning);
    ui.weak(match (problems, warnings) {
        (0, 0) => "No problems found".to_owned(),
        (0, 1) => "No problems found; 1 warning".to_owned(),
        (0, more) => format!("No problems found; {more} warnings"),
        (1, _) => format!("1 problem would make {what} fail"),
        (more, _) => format!("{more} problems would make {what} fail"),
    });
    ui.add_space(4.0);
    let (mut shown, passed): (Vec<&Check>, Vec<&Check>) = preflight.checks.iter().partition(|check| is_shown(check));
    shown.sort_by_key(|check| Reverse(check.grade));
    for point in shown {
        point_ui(ui, point);
    }
    let title = match passed.len() {
        0 => return,
        1 => "✓ 1 check passed".to_owned(),
        count => format!("✓ {count} checks passed"),
    };
    let fold = CollapsingHeader::new(title).id_salt(("passed points", what));
    fold.show(ui, |ui| {
        for point in passed {
            point_ui(ui, point);
        }
    });
}

/// The cost and the deletion time are always shown, because they should be read before paying.
fn is_shown(check: &Check) -> bool {
    let is_about_money = matches!(check.point, CheckPoint::Cost | CheckPoint::Deletion);
    check.grade != CheckGrade::Ok || is_about_money
}

/// The grade as a sign and a color, then what was found and what to do.
fn point_ui(ui: &mut Ui, check: &Check) {
    let visuals = ui.visuals();
    let (sign, color) = match check.grade {
        CheckGrade::Ok => ("✓", visuals.text_color()),
        CheckGrade::Warning => ("⚠", visuals.warn_fg_color),
        CheckGrade::Problem => ("✗", visuals.error_fg_color),
    };
    let title = format!("{sign} {}", check.point.into_str());
    ui.horizontal_top(|ui| {
        ui.allocate_ui_with_layout(egui::vec2(128.0, 0.0), Layout::left_to_right(Align::Min), |ui| {
            ui.set_min_width(128.0);
            ui.label(strong(title).color(color));
        });
        ui.vertical(|ui| {
            ui.add(Label::new(&check.finding).wrap());
            if !check.advice.is_empty() {
                ui.add(Label::new(RichText::new(&check.advice).weak()).wrap());
            }
        });
    });
    ui.add_space(2.0);
}
