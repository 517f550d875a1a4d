//! The comparison of two runs: a page with what differs, and both predictions for the shown image.

pub(crate) mod canvas;
mod page;
mod truth;

use crate::domain::ModelTask;
use crate::evaluation::ImageAgreement;
use crate::window::state::{CompareLayout, Comparing};
use crate::window::ui::prelude::*;

pub(crate) use page::{ComparisonMemory, page_ui};

/// From this width on, parts of the page are next to each other, in points.
const TWO_COLUMNS: f32 = 560.0;

/// The section of the inspector: the layout of the image, and what differs on it.
pub(crate) fn section_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let (Some(comparing), Some(task)) = (&state.comparing, state.task()) else {
        return;
    };
    layout_ui(ui, state, commands);
    shown_ui(ui, state, comparing, task);
    if !comparing.is_shown {
        ui.add_space(2.0);
        ui.horizontal_wrapped(|ui| {
            command_button_ui(ui, "Show comparison", commands, || Action::Comparison);
            end_ui(ui, commands);
        });
    }
}

fn end_ui(ui: &mut Ui, commands: &mut Commands) {
    ui.button("End comparison").on_hover_text("Shows only one run").on_click(commands, || ReviewCommand::StopComparing);
}

fn layout_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        for layout in state.layouts() {
            let is_chosen = !state.shows_comparison() && state.settings.compare_layout == layout;
            let label = match layout {
                CompareLayout::Overlaid => "Overlaid",
                CompareLayout::SideBySide => "Side by side",
                CompareLayout::Slider => "Slider",
                CompareLayout::TruthSlider => "Slider to ground truth",
            };
            ui.selectable_label(is_chosen, label).on_click(commands, || ReviewCommand::SetCompareLayout(layout));
        }
    });
}

fn shown_ui(ui: &mut Ui, state: &State, comparing: &Comparing, task: ModelTask) {
    ui.add_space(4.0);
    ui.weak("This image");
    let image = state.shown_sample().and_then(|sample| comparing.agreement()?.image(sample));
    let Some(image) = image else {
        ui.label("Not predicted by both runs");
        return;
    };
    match task {
        ModelTask::Classification => classes_ui(ui, state, image),
        ModelTask::Detection => {
            let (only_a, only_b) = (image.only_left, image.only_right);
            let text = format!("{} matched, {only_a} only in A, {only_b} only in B", image.matched);
            wrapped_ui(ui, text);
        }
    }
    key_value_ui(ui, "Disagreement", &format!("{:.3}", image.disagreement));
}

fn classes_ui(ui: &mut Ui, state: &State, image: &ImageAgreement) {
    let text = if image.is_flip { "Different top class" } else { "Same top class" };
    ui.label(text);
    let predictions = [state.shown.prediction.as_deref(), state.compared_prediction()];
    for (letter, prediction) in ["A", "B"].into_iter().zip(predictions) {
        let top = prediction.and_then(|prediction| prediction.classes().first());
        if let Some(top) = top {
            let text = format!("{letter}: {} {:.1}%", top.label, top.score * 100.0);
            truncated_ui(ui, text);
        }
    }
}

/// Two parts next to each other, or below each other if there is not enough space.
fn halves_ui(
    ui: &mut Ui,
    commands: &mut Commands,
    left_ui: impl FnOnce(&mut Ui, &mut Commands),
    right_ui: impl FnOnce(&mut Ui, &mut Commands),
) {
    if ui.available_width() < TWO_COLUMNS {
        left_ui(ui, commands);
        right_ui(ui, commands);
        return;
    }
    ui.columns(2, |columns| {
        let [left, right] = columns else { return };
        // Columns would justify the text.
        left.with_layout(Layout::top_down(Align::Min), |ui| left_ui(ui, commands));
        right.with_layout(Layout::top_down(Align::Min), |ui| right_ui(ui, commands));
    });
}
