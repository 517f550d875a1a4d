//! The evaluation of the run on screen against ground truth, in place of the image. Every number leads to its boxes.

pub(crate) mod coverage;
pub(crate) mod curves;
mod head;
mod matching;
mod matrix;
pub(crate) mod open_annotations;
mod overview;
mod patterns;
pub(crate) mod suspicious;
mod table;

use std::sync::Arc;

use eframe::egui::CentralPanel;
use strum::{IntoStaticStr, VariantArray};

use crate::domain::LabelSet;
use crate::evaluation::{Evaluated, Metrics};
use crate::review::{BoxQuery, BoxTerm, ClassName, OutcomeCounts, OutcomeKind, OutcomeWord, Outcomes, Statistics};
use crate::window::ui::prelude::*;

/// The panel's state between frames.
#[derive(Default)]
pub(crate) struct EvaluationMemory {
    part: Part,
    /// The openings of the panel after which a tab had the focus.
    openings: u32,
    /// The searches for error patterns after which their tab was shown.
    pattern_searches: u32,
    table: table::TableMemory,
    matrix: matrix::MatrixMemory,
    matching: matching::MatchingMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
enum Part {
    #[default]
    Overview,
    Classes,
    #[strum(serialize = "Confusion matrix")]
    Confusion,
    #[strum(serialize = "Error patterns")]
    Patterns,
    #[strum(serialize = "Class matching")]
    Matching,
}

/// The metrics of the run on screen, and its outcomes with the current filters.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'s> {
    state: &'s State,
    labels: &'s LabelSet,
    evaluated: &'s Arc<Evaluated>,
    outcomes: &'s Outcomes,
    statistics: &'s Arc<Statistics>,
    counts: &'s OutcomeCounts,
}

impl<'s> Shown<'s> {
    /// `None` before the first evaluation, and while boxes are counted for the first time.
    fn new(state: &'s State) -> Option<Self> {
        let run = state.evaluated()?;
        let statistics = state.arranging.statistics()?;
        Some(Self {
            state,
            labels: state.run()?.labels(),
            evaluated: &run.evaluated,
            outcomes: &run.outcomes,
            statistics,
            counts: statistics.outcomes.as_ref()?,
        })
    }

    fn is_detection(&self) -> bool {
        matches!(self.evaluated.metrics, Metrics::Detection { .. })
    }

    /// The name of a ground-truth class.
    fn name(&self, place: u32) -> &'s str {
        self.outcomes.classes.get(place as usize).map_or("", |class| class.name.as_str())
    }

    /// Everything with this outcome and ground-truth class.
    fn of_class(&self, outcome: OutcomeWord, index: u32) -> BoxQuery {
        match outcome {
            OutcomeWord::Wrong => self.of_model(&outcome.into(), index),
            _ => BoxTerm { truth: self.truth(index), ..outcome.into() }.into(),
        }
    }

    /// Correct and wrong boxes of a ground-truth class, or of all.
    fn compared(&self, index: Option<u32>) -> BoxQuery {
        let boxes = [OutcomeWord::Right, OutcomeWord::Wrong].map(|outcome| match index {
            Some(index) => self.of_class(outcome, index).0,
            None => vec![outcome.into()],
        });
        BoxQuery(boxes.concat())
    }

    /// A cell of the confusion matrix; `None` is the background, or the column of missed objects.
    fn cell(&self, truth: Option<u32>, predicted: Option<u32>) -> BoxQuery {
        match (truth, predicted) {
            (Some(truth), Some(predicted)) if truth == predicted => self.of_class(OutcomeWord::Right, truth),
            (Some(truth), Some(predicted)) => {
                let confused = BoxTerm::from(OutcomeWord::Error(OutcomeKind::Class));
                self.of_model(&BoxTerm { truth: self.truth(truth), ..confused }, predicted)
            }
            (None, Some(predicted)) => self.of_model(&OutcomeWord::Unmatched.into(), predicted),
            (Some(truth), None) => self.of_class(OutcomeWord::Missed, truth),
            (None, None) => BoxQuery::default(),
        }
    }

    fn truth(&self, index: u32) -> Option<ClassName> {
        ClassName::exact_truth(&self.outcomes.classes, index)
    }

    /// Several classes of the model can match one ground-truth class.
    fn of_model(&self, term: &BoxTerm, index: u32) -> BoxQuery {
        let classes = self.outcomes.model_classes(index).map(|class| Some(ClassName::exact(self.labels, class)));
        BoxQuery(classes.map(|class| BoxTerm { class, ..term.clone() }).collect())
    }
}

pub(crate) fn evaluation_ui(ui: &mut Ui, state: &State, memory: &mut EvaluationMemory, commands: &mut Commands) {
    let Some(evaluating) = &state.evaluating else {
        return;
    };
    CentralPanel::default().show(ui, |ui| {
        ui.add_space(6.0);
        head::head_ui(ui, state, evaluating, commands);
        // The last numbers stay while the ground truth is read again.
        let has_truth = evaluating.truth.ready().is_some() || evaluating.truth.is_loading();
        let Some(evaluation) = state.evaluation().filter(|_| has_truth) else {
            return;
        };
        let shown = Shown::new(state);
        if shown.is_some() {
            let takes_keyboard = std::mem::replace(&mut memory.openings, evaluating.openings) < evaluating.openings;
            parts_ui(ui, &mut memory.part, takes_keyboard);
        } else if evaluation.classes.matches.rows.is_empty() {
            return;
        } else if evaluation.status.failure().is_none() {
            ui.weak("Counting boxes…");
            return;
        }
        if std::mem::replace(&mut memory.pattern_searches, evaluating.pattern_searches) < evaluating.pattern_searches {
            memory.part = Part::Patterns;
        }
        if shown.is_none() {
            memory.part = Part::Matching;
        }
        match (memory.part, &shown) {
            (Part::Overview, Some(shown)) => overview::overview_ui(ui, shown, commands),
            (Part::Classes, Some(shown)) => table::classes_ui(ui, shown, &mut memory.table, commands),
            (Part::Patterns, Some(shown)) => patterns::patterns_ui(ui, shown, evaluation, commands),
            (Part::Confusion, Some(shown)) => matrix::matrix_ui(ui, shown, &mut memory.matrix, commands),
            _ => matching::matching_ui(ui, state, evaluation, &mut memory.matching, commands),
        }
    });
}

fn parts_ui(ui: &mut Ui, part: &mut Part, takes_keyboard: bool) {
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        for choice in Part::VARIANTS {
            let tab = ui.selectable_label(*part == *choice, choice.into_str());
            if takes_keyboard && *part == *choice {
                tab.request_focus();
            }
            if tab.clicked() {
                *part = *choice;
            }
        }
    });
    ui.separator();
}

/// A count that leads to its boxes.
fn count_button_ui(
    ui: &mut Ui,
    (count, what): (u64, &str),
    meaning: &str,
    outcome: OutcomeWord,
    commands: &mut Commands,
) {
    let text = format!("{} {what}", grouped(count as usize));
    let button = ui.add_enabled(count > 0, Button::new(text));
    if button.on_hover_text(format!("{meaning}; click to show them")).clicked() {
        commands.push(SearchCommand::ShowBoxes(outcome.into()));
    }
}

/// A fraction or an average as written in papers: `0.452`.
pub(crate) fn decimals(number: Option<f64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| format!("{number:.3}"))
}
