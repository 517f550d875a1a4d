//! Face detectors: `YuNet` and `SCRFD`, with separate outputs for each level, and `RetinaFace`.

use super::columns::{CellGrid, Column, Table};
use super::{Found, NO_KEY_POINTS};
use crate::domain::{
    Activation, Background, BoxFormat, BoxSpace, CellPoint, Columns, DetectionOutput, Grid, GridCoding,
};
use crate::model::recognize::RecognitionRequest;
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::Port;
use crate::model::recognize::usual::Usual;

const STRIDES: [u32; 3] = [8, 16, 32];
/// The columns of boxes and of five keypoints.
const BOX: usize = 4;
const KEY_POINTS: usize = 10;

/// The outputs as tables.
struct Tables<'g>(Vec<(&'g Port, Table)>);

/// A box, scores, and possibly keypoints for each candidate.
pub(super) fn find(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let outputs = model.graph.outputs.iter();
    let tables = outputs.map(|port| Some((port, Table::from_port(port, prober, false)?))).collect::<Option<_>>()?;
    let tables = Tables(tables);
    let size = prober.size();
    tables.retina_face(size).or_else(|| [1, 2].into_iter().find_map(|anchors| tables.find_levels(anchors, size)))
}

impl Tables<'_> {
    /// The output with these rows and columns, after `skipped` others.
    fn find(&self, rows: usize, width: usize, skipped: usize) -> Option<&(&Port, Table)> {
        let fits = |(_, table): &&(&Port, Table)| table.rows == rows && table.columns.len() == width;
        self.0.iter().filter(fits).nth(skipped)
    }

    /// The outputs with this many columns, one per level in order, after the outputs of `skipped` levels.
    fn levels(&self, grid: &CellGrid, size: [u32; 2], width: usize, skipped: usize) -> Option<Columns> {
        let levels = grid.level_rows(size).into_iter();
        let outputs =
            levels.map(|rows| Some(self.find(rows, width, skipped)?.0.name.clone())).collect::<Option<_>>()?;
        Some(Columns { outputs, column: 0 })
    }

    /// `YuNet` has one candidate per cell and an objectness, `SCRFD` two candidates.
    fn find_levels(&self, anchors: usize, size: [u32; 2]) -> Option<Found> {
        let is_score = |table: &Table| table.columns.len() == 1 && table.columns.iter().all(Column::is_share);
        let is_known = |table: &Table| is_score(table) || [BOX, KEY_POINTS].contains(&table.columns.len());
        let grid = CellGrid { strides: STRIDES.to_vec(), anchors };
        let objectness = self.levels(&grid, size, 1, 1);
        let is_yunet = objectness.is_some();
        if is_yunet != (anchors == 1) || !self.0.iter().all(|(_, table)| is_known(table)) {
            return None;
        }
        let mut output = DetectionOutput {
            boxes: self.levels(&grid, size, BOX, 0)?,
            labels: None,
            scores: self.levels(&grid, size, 1, 0)?,
            objectness,
            ..DetectionOutput::separate("", "", "")
        };
        let has_key_points = self.levels(&grid, size, KEY_POINTS, 0).is_some();
        let expected = STRIDES.len() * (2 + usize::from(is_yunet) + usize::from(has_key_points));
        if self.0.len() != expected {
            return None;
        }
        let (coding, usual, format, nms_iou) = if is_yunet {
            output.activation = Activation::SquareRoot;
            (GridCoding::Offsets {}, Usual::YuNet, BoxFormat::Cxcywh, 0.3)
        } else {
            (GridCoding::Distances { anchors: 2, point: CellPoint::TopLeft }, Usual::Scrfd, BoxFormat::Xyxy, 0.4)
        };
        let because = format!(
            "{expected} outputs with a box and scores for each cell of three levels match {}",
            if is_yunet { "YuNet" } else { "SCRFD" }
        );
        let mut found = cell_detector(output, coding, usual, format, &because);
        found.output.nms_iou = Some(nms_iou);
        found.part("scores", &found.output.scores.to_string(), true, "a number from 0 to 1 per cell");
        found.not_shown = has_key_points.then_some(NO_KEY_POINTS);
        Some(found)
    }

    /// Offsets from two priors per cell, two probabilities and keypoints (`convert_to_onnx.py`, `PriorBox` and `decode`
    /// of `biubug6/Pytorch_Retinaface`).
    fn retina_face(&self, size: [u32; 2]) -> Option<Found> {
        let rows = CellGrid { strides: STRIDES.to_vec(), anchors: 2 }.level_rows(size).into_iter().sum();
        let [boxes, scores, _] = [BOX, 2, KEY_POINTS].map(|width| self.find(rows, width, 0));
        let ((boxes, _), (scores, probabilities)) = (boxes?, scores?);
        if self.0.len() != 3 || self.find(rows, KEY_POINTS, 0).is_none() || !probabilities.has_rows_of_probabilities {
            return None;
        }
        let mut output = DetectionOutput { labels: None, ..DetectionOutput::separate(&boxes.name, "", &scores.name) };
        output.background = Background::First;
        output.nms_iou = Some(0.4);
        let coding = GridCoding::Priors { sizes: GridCoding::RETINA_FACE_PRIORS.to_vec() };
        let because = format!(
            "{rows} rows of 4 numbers, 2 probabilities and 10 numbers match RetinaFace with two priors per cell of three \
             levels"
        );
        let mut found = cell_detector(output, coding, Usual::RetinaFace, BoxFormat::Cxcywh, &because);
        found.part("scores", &scores.name, true, "two numbers from 0 to 1 that sum to 1");
        found.part("background", Background::First.into_str(), true, "the second number is the face's");
        found.not_shown = Some(NO_KEY_POINTS);
        Some(found)
    }
}

/// Faces whose boxes are relative to the cells of [`STRIDES`].
fn cell_detector(output: DetectionOutput, coding: GridCoding, usual: Usual, format: BoxFormat, because: &str) -> Found {
    let mut found = Found::new(output);
    because.clone_into(&mut found.because);
    found.part("boxes", &found.output.boxes.to_string(), true, "four numbers per cell");
    let word = match coding {
        GridCoding::Offsets {} => "offsets",
        GridCoding::Priors { .. } => "priors",
        _ => "distances",
    };
    found.part("grid", word, true, because);
    found.output.grid = Some(Grid { strides: STRIDES.to_vec(), coding });
    found.decided_format = Some((format, because.to_owned()));
    found.decided_space = Some((BoxSpace::ModelPixels, because.to_owned()));
    found.classes = Some(1);
    found.is_identified = true;
    found.usual = Some(usual);
    found
}
