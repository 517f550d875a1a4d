//! Face detectors with separate outputs for each level: `YuNet` and `SCRFD`.

use super::columns::{Column, Table};
use super::found::{Found, NO_KEY_POINTS};
use super::grids::CellGrid;
use crate::domain::{Activation, BoxFormat, BoxSpace, CellPoint, Columns, DetectionOutput, Grid, GridCoding};
use crate::model::recognize::RecognitionRequest;
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::Port;
use crate::model::recognize::usual::Usual;

const STRIDES: [u32; 3] = [8, 16, 32];
/// The columns of boxes and of five keypoints.
const BOX: usize = 4;
const KEY_POINTS: usize = 10;

/// A box, one or two scores, and possibly keypoints for each cell of each level.
pub(crate) fn find(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let outputs = model.graph.outputs.iter();
    let tables: Vec<(&Port, Table)> =
        outputs.map(|port| Some((port, Table::from_port(port, prober, false)?))).collect::<Option<_>>()?;
    let is_score = |table: &Table| table.columns.len() == 1 && table.columns.iter().all(Column::is_share);
    let is_known = |table: &Table| is_score(table) || [BOX, KEY_POINTS].contains(&table.columns.len());
    if !tables.iter().all(|(_, table)| is_known(table)) {
        return None;
    }
    // The outputs with this many columns, one per level in order, after the outputs of `skipped` levels.
    let levels = |grid: &CellGrid, width: usize, skipped: usize| -> Option<Columns> {
        let of_level = |rows: usize| {
            let fits = |(_, table): &&(&Port, Table)| table.rows == rows && table.columns.len() == width;
            tables.iter().filter(fits).nth(skipped).map(|(port, _)| port.name.clone())
        };
        let outputs = grid.level_rows(prober.size()).into_iter().map(of_level).collect::<Option<_>>()?;
        Some(Columns { outputs, column: 0 })
    };
    [1, 2].into_iter().find_map(|anchors| {
        let grid = CellGrid { strides: STRIDES.to_vec(), anchors };
        let objectness = levels(&grid, 1, 1);
        let is_yunet = objectness.is_some();
        if is_yunet != (anchors == 1) {
            return None;
        }
        let mut found = Found::new(DetectionOutput {
            boxes: levels(&grid, BOX, 0)?,
            labels: None,
            scores: levels(&grid, 1, 0)?,
            objectness,
            ..DetectionOutput::separate("", "", "")
        });
        let has_key_points = levels(&grid, KEY_POINTS, 0).is_some();
        let expected = STRIDES.len() * (2 + usize::from(is_yunet) + usize::from(has_key_points));
        if tables.len() != expected {
            return None;
        }
        let (coding, exporter, format, nms_iou) = if is_yunet {
            found.output.activation = Activation::SquareRoot;
            found.usual = Some(Usual::YuNet);
            (GridCoding::Offsets {}, "YuNet", BoxFormat::Cxcywh, 0.3)
        } else {
            found.usual = Some(Usual::Scrfd);
            (GridCoding::Distances { anchors: 2, point: CellPoint::TopLeft }, "SCRFD", BoxFormat::Xyxy, 0.4)
        };
        let because =
            format!("{expected} outputs with a box and scores for each cell of three levels match {exporter}");
        found.because.clone_from(&because);
        found.part("boxes", &found.output.boxes.to_string(), true, "four numbers per cell");
        found.part("scores", &found.output.scores.to_string(), true, "a number from 0 to 1 per cell");
        found.part("grid", if is_yunet { "offsets" } else { "distances" }, true, &because);
        found.output.grid = Some(Grid { strides: STRIDES.to_vec(), coding });
        found.output.nms_iou = Some(nms_iou);
        found.decided_format = Some((format, because.clone()));
        found.decided_space = Some((BoxSpace::ModelPixels, because));
        found.classes = Some(1);
        found.is_identified = true;
        found.not_shown = has_key_points.then_some(NO_KEY_POINTS);
        Some(found)
    })
}
