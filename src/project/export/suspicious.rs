//! The suspicious labels of an evaluation as a table.

use super::ExportError;
use super::csv_table::{Table, escape_formula};
use super::target::ExportTarget;
use crate::evaluation::{ErrorSide, Evaluated, SuspiciousLabel};

const COLUMNS: [&str; 20] = [
    "image",
    "kind",
    "class",
    "x1",
    "y1",
    "x2",
    "y2",
    "right_class",
    "right_x1",
    "right_y1",
    "right_x2",
    "right_y2",
    "score",
    "iou",
    "gain",
    "mistakenness",
    "label_quality",
    "image_quality",
    "normalized_margin",
    "label_issue",
];

/// Writes a header and one row per label, in their order. `class` to `y2` are the label, `right_class` to `right_y2`
/// the label after the fix; a missing, removed or unmeasured one is empty. Boxes are in pixels.
pub(super) fn write_suspicious(evaluated: &Evaluated, target: &ExportTarget) -> Result<(), ExportError> {
    let classes: Vec<&str> = evaluated.metrics.classes().into_iter().map(|class| class.name.as_str()).collect();
    let mut table = Table::create(target, &COLUMNS)?;
    let mut labels = evaluated.suspicious.iter().flat_map(|suspicious| &suspicious.labels);
    labels.try_for_each(|label| table.row(&cells(label, &classes)))?;
    table.commit()
}

fn cells(label: &SuspiciousLabel, classes: &[&str]) -> [String; COLUMNS.len()] {
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let side = |side: Option<ErrorSide>| -> [String; 5] {
        let class = side.and_then(|side| classes.get(side.class as usize)).map(|name| escape_formula(name));
        let bounds = side.and_then(|side| side.bounds);
        let edges = bounds.map(|bounds| [bounds.left, bounds.top, bounds.right(), bounds.bottom()]);
        let [x1, y1, x2, y2] = edges.map(|edges| edges.map(Some)).unwrap_or_default().map(number);
        [class.unwrap_or_default(), x1, y1, x2, y2]
    };
    let [class, x1, y1, x2, y2] = side(label.label);
    let [right_class, right_x1, right_y1, right_x2, right_y2] = side(label.fixed);
    [
        escape_formula(&label.image),
        label.kind.into_str().to_owned(),
        class,
        x1,
        y1,
        x2,
        y2,
        right_class,
        right_x1,
        right_y1,
        right_x2,
        right_y2,
        number(label.score),
        number(label.iou),
        label.gain.to_string(),
        number(label.mistakenness),
        number(label.quality),
        number(label.image_quality),
        number(label.margin),
        label.is_issue.map(|is_issue| is_issue.to_string()).unwrap_or_default(),
    ]
}
