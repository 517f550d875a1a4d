//! JSON Lines: one object per image, with keys in a fixed order. The format of `spotcheck predict --out`, plus the
//! verdicts.

use std::io::Write;

use serde::Serialize;

use super::row::{ChosenBox, ChosenContent, ChosenImage, ExportContext, right_box};
use super::tally::Tally;
use super::target::{ExportTarget, WholeFile};
use super::{ExportError, Writer};
use crate::domain::{
    BoundingBox, ClassScore, Detection, DrawnBox, ModelCard, Prediction, PredictionContent, Problem, SampleUri, Verdict,
};
use crate::project::export::options::ExportOptions;

/// Unknown values have no key.
#[derive(Serialize)]
struct Line<'r> {
    uri: &'r SampleUri,
    status: &'static str,
    /// All classes of corrected labels, on the first line: also those without an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_classes: Option<serde_json::Value>,
    #[serde(flatten)]
    predicted: Option<PredictedLine<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(flatten)]
    judgment: Judgment<'r>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    wrong_labels: &'r [DrawnBox],
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'r str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'r str>,
}

#[derive(Serialize)]
struct PredictedLine<'r> {
    width: u32,
    height: u32,
    model: &'r str,
    task: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<&'r [ClassScore]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detections: Option<Vec<JudgedBox<'r>>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'r [String],
}

#[derive(Serialize)]
struct JudgedBox<'r> {
    /// Counts the stored boxes of the image, including those that overlaps hide.
    index: usize,
    #[serde(rename = "box")]
    bounds: BoundingBox,
    class_id: u32,
    label: &'r str,
    score: f32,
    /// `model` or `person`, for boxes that a person judged or corrected; the others are the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'static str>,
    #[serde(flatten)]
    judgment: Judgment<'r>,
}

/// A verdict's word, and what a person corrected. The box of the verdict `added` is a person's.
#[derive(Serialize)]
struct Judgment<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_class: Option<&'r str>,
    /// `x1, y1, x2, y2` in pixels, where a person moved the box.
    #[serde(skip_serializing_if = "Option::is_none")]
    right_box: Option<BoundingBox>,
}

impl<'r> Judgment<'r> {
    fn new(verdict: Option<&'r Verdict>) -> Self {
        Self {
            verdict: verdict.map(Verdict::into_str),
            right_class: verdict.and_then(Verdict::right_class),
            right_box: right_box(verdict),
        }
    }
}

impl<'r> JudgedBox<'r> {
    fn new(index: usize, detection: &'r Detection, verdict: Option<&'r Verdict>) -> Self {
        Self {
            index,
            bounds: detection.bounds,
            class_id: detection.class_id,
            label: &detection.label,
            score: detection.score,
            author: None,
            judgment: Judgment::new(verdict),
        }
    }

    fn chosen(chosen: &'r ChosenBox<'_>) -> Self {
        let is_judged = chosen.verdict.is_some() || chosen.is_by_person;
        let author = is_judged.then(|| chosen.author_of_detection());
        Self { author, ..Self::new(chosen.index, &chosen.detection, chosen.verdict) }
    }
}

impl<'r> Line<'r> {
    /// A line without verdicts, note and tags.
    fn new(uri: &'r SampleUri, status: &'static str) -> Self {
        Self {
            uri,
            status,
            all_classes: None,
            predicted: None,
            error: None,
            judgment: Judgment::new(None),
            wrong_labels: &[],
            note: None,
            tags: Vec::new(),
        }
    }

    fn from_image(image: &'r ChosenImage<'_>, model: &'r ModelCard) -> Self {
        let row = image.row;
        let uri = &row.sample.uri;
        let line = match &image.prediction {
            Err(unpredicted) => Self { error: unpredicted.reason(), ..Self::new(uri, unpredicted.status()) },
            Ok(prediction) => {
                let predicted = PredictedLine::new(prediction.size, row.warnings(), model);
                let predicted = match &prediction.content {
                    ChosenContent::Boxes(boxes) => predicted.with_boxes(boxes.iter().map(JudgedBox::chosen)),
                    ChosenContent::Classes(classes) => PredictedLine { classes: Some(&**classes), ..predicted },
                };
                Self { predicted: Some(predicted), ..Self::new(uri, "ok") }
            }
        };
        Self {
            judgment: Judgment::new(row.verdict.as_ref()),
            wrong_labels: &row.wrong_labels,
            note: row.note.as_deref(),
            tags: row.tags.iter().map(String::as_str).collect(),
            ..line
        }
    }

    fn into_text(self) -> String {
        serde_json::to_string(&self).expect("numbers, strings and lists always serialize")
    }
}

impl<'r> PredictedLine<'r> {
    fn new([width, height]: [u32; 2], warnings: &'r [String], model: &'r ModelCard) -> Self {
        let task = model.task.into_str();
        Self { width, height, model: &model.id, task, classes: None, detections: None, warnings }
    }

    fn with_boxes(self, boxes: impl Iterator<Item = JudgedBox<'r>>) -> Self {
        Self { detections: Some(boxes.collect()), ..self }
    }
}

/// One line without its line break. Boxes are xyxy in pixels of the upright image, not clipped; scores are `0.0..=1.0`,
/// with the fewest digits that restore the same 32-bit float. Boxes that overlap a better one by more than `nms_iou` are
/// left out.
pub fn jsonl_line(
    uri: &SampleUri,
    model: &ModelCard,
    result: &Result<Prediction, Problem>,
    nms_iou: Option<f32>,
) -> String {
    let line = match result {
        Err(problem) => Line { error: Some(&problem.message), ..Line::new(uri, "failed") },
        Ok(prediction) => {
            let size = [prediction.width, prediction.height];
            let predicted = PredictedLine::new(size, &prediction.warnings, model);
            let predicted = match &prediction.content {
                PredictionContent::Classes(classes) => PredictedLine { classes: Some(classes), ..predicted },
                PredictionContent::Detections(boxes) => {
                    let kept = prediction.kept_without_overlaps(nms_iou).into_iter();
                    predicted.with_boxes(kept.map(|index| JudgedBox::new(index, &boxes[index], None)))
                }
            };
            Line { predicted: Some(predicted), ..Line::new(uri, "ok") }
        }
    };
    line.into_text()
}

/// Writes one line per image, including those without a prediction.
pub(super) struct JsonlWriter<'c> {
    file: WholeFile,
    model: &'c ModelCard,
    /// For the first line.
    all_classes: Option<serde_json::Value>,
}

impl<'c> JsonlWriter<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let file = WholeFile::create(target)?;
        Ok(Self { file, model: &context.run.card, all_classes: context.all_classes(options) })
    }
}

impl Writer for JsonlWriter<'_> {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let line = Line { all_classes: self.all_classes.take(), ..Line::from_image(image, self.model) }.into_text();
        writeln!(self.file, "{line}").map_err(ExportError::write(self.file.path()))?;
        tally.images += 1;
        tally.boxes += image.prediction.as_ref().map_or(0, |prediction| prediction.len() as u64);
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut Tally) -> Result<(), ExportError> {
        self.file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::export::options::ExportFormat;
    use crate::project::export::sampler;
    use crate::project::export::sampler::Sampled;

    #[test]
    fn judgments_follow_the_prediction_if_present() {
        let mut rows = vec![sampler::row("a.jpg", &[(1, 0.9, [-1.0, 2.0, 30.5, 40.0])]), sampler::row("b.jpg", &[])];
        let plain = Sampled::new(ExportFormat::Jsonl, rows.clone());
        let card = sampler::run().card;
        let expected: String = rows
            .iter()
            .map(|row| {
                let result = row.result.clone().unwrap();
                let result = result.map_err(Problem::general);
                jsonl_line(&row.sample.uri, &card, &result, None) + "\n"
            })
            .collect();
        assert_eq!(plain.text, expected);
        rows[0].verdict = Some(Verdict::Unsure);
        rows[0].box_verdicts.insert(0, Verdict::WrongClass("dog".to_owned()));
        rows[0].note = Some("line\nbreak".to_owned());
        rows[1].tags = ["night".to_owned(), "blurred".to_owned()].into();
        let judged = Sampled::new(ExportFormat::Jsonl, rows);
        let lines: Vec<&str> = judged.text.lines().collect();
        assert!(
            lines[0].ends_with(
                r#"{"index":0,"box":[-1.0,2.0,30.5,40.0],"class_id":1,"label":"cat","score":0.9,"author":"model","verdict":"wrong","right_class":"dog"}],"verdict":"unsure","note":"line\nbreak"}"#
            ),
            "{}",
            lines[0]
        );
        assert!(lines[1].ends_with(r#""detections":[],"tags":["blurred","night"]}"#), "{}", lines[1]);
    }

    #[test]
    fn unpredicted_images_have_a_line() {
        let mut failed = sampler::row("bad.jpg", &[]);
        failed.result = Some(Err("truncated".to_owned()));
        let mut unasked = sampler::row("new.jpg", &[]);
        unasked.result = None;
        unasked.verdict = Some(Verdict::Accept);
        let written = Sampled::new(ExportFormat::Jsonl, vec![failed, unasked]);
        assert_eq!(
            written.text,
            "{\"uri\":\"/photos/bad.jpg\",\"status\":\"failed\",\"error\":\"truncated\"}\n\
             {\"uri\":\"/photos/new.jpg\",\"status\":\"unasked\",\"verdict\":\"accept\"}\n"
        );
    }
}
