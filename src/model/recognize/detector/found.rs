use super::boxes::Row;
use crate::domain::{BoxFormat, BoxSpace, DetectionOutput, LabelChoice};
use crate::model::raw_candidates;
use crate::model::recognize::finding::{Basis, Finding};
use crate::model::recognize::probe::Prober;
use crate::model::recognize::usual::Usual;

pub(super) const NO_MASKS: &str = "masks are not shown, only boxes";
pub(super) const NO_KEY_POINTS: &str = "key points are not shown, only boxes";

/// Graphs that end with a selection of the best return at most this many boxes.
pub(super) const MAX_FINAL_ROWS: usize = 1000;

/// The outputs of a detector as a draft.
#[derive(Debug)]
pub(super) struct Found {
    pub output: DetectionOutput,
    /// Why this is a detector.
    pub because: String,
    pub parts: Vec<Finding>,
    /// The number of classes with a score, without the background.
    pub classes: Option<usize>,
    /// Whether files next to the model or output names identify this reading.
    pub is_identified: bool,
    /// Whether the graph selected the class of each box.
    pub is_final: bool,
    /// The number of unexplained columns.
    pub unknown_columns: usize,
    /// Whether the boxes are near their cells; `None` if they belong to none.
    pub is_in_cells: Option<bool>,
    /// The box format, if the layout alone determines it.
    pub decided_format: Option<(BoxFormat, String)>,
    pub decided_space: Option<(BoxSpace, String)>,
    /// The exporter that writes such outputs, for what the graph does not record.
    pub usual: Option<Usual>,
    /// What is not shown of the prediction.
    pub not_shown: Option<&'static str>,
}

impl Found {
    pub(super) fn new(output: DetectionOutput) -> Self {
        Self {
            output,
            because: String::new(),
            parts: Vec::new(),
            classes: None,
            is_identified: false,
            is_final: false,
            unknown_columns: 0,
            is_in_cells: None,
            decided_format: None,
            decided_space: None,
            usual: None,
            not_shown: None,
        }
    }

    pub(super) fn part(&mut self, field: &str, value: &str, is_known: bool, because: &str) {
        self.parts.push(Finding {
            field: format!("output.detection.{field}"),
            value: value.to_owned(),
            basis: if is_known { Basis::Recognized } else { Basis::Assumed },
            because: because.to_owned(),
        });
    }

    /// Keeps every class of a box, as exporters do that suppress overlaps within each class.
    pub(super) fn keep_all_classes(&mut self) {
        self.output.label_choice = LabelChoice::All;
        let because =
            "the graph does not record this; such exporters keep every class of a box with a sufficient score";
        self.part("label_choice", "all", false, because);
    }

    /// Reads every box once, with its best class, whatever the graph's own suppression keeps: synthetic images rarely
    /// leave a box.
    pub(super) fn every_box(&self) -> DetectionOutput {
        DetectionOutput { selected: None, label_choice: LabelChoice::Best, ..self.output.clone() }
    }

    /// The boxes that count in each run, with their numbers as returned by the graph.
    pub(super) fn rows(&self, prober: &Prober<'_, '_>) -> Vec<Vec<Row>> {
        let output = self.every_box();
        let of_run = |outputs| {
            let candidates = raw_candidates(&output, outputs, prober.size()).unwrap_or_default().into_iter();
            let rows = candidates.map(|candidate| Row {
                edges: candidate.numbers,
                class: candidate.class,
                score: f64::from(candidate.score),
            });
            // Graphs of fixed size pad with zeros.
            rows.filter(|row| row.score > 0.0).collect()
        };
        prober.predictions.iter().map(of_run).collect()
    }
}
