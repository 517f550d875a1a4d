//! Rows for testing formats, and their exports.

use std::path::PathBuf;
use std::sync::Arc;

use super::row::{ExportContext, ExportRow};
use super::tally::ExportReport;
use super::target::{Existing, ExportTarget};
use super::{ExportError, export};
use crate::domain::{
    Detection, DeviceChoice, InferenceLocation, KeepRule, LabelSet, ModelCard, Prediction, PredictionContent, RunId,
    RunInfo, RunKey, Sample, SampleUri, ViewSettings,
};
use crate::image::decode::DecodeLimits;
use crate::image::source::MemorySource;
use crate::project::export::options::{ExportFormat, ExportOptions};
use crate::review::Target;
use crate::tasks::{ProgressUnit, TaskControl};

pub(super) const LABELS: &str = "1\tcat\n2\tdog\n7\tmouse: \"gray\"\n";

pub(super) fn run() -> RunInfo {
    let card: ModelCard = serde_json::from_value(serde_json::json!({
        "id": "test-detector",
        "name": "Test <detector> & co",
        "task": "detection",
        "license": "MIT",
        "origin": "nowhere",
        "file": {"name": "model.onnx", "bytes": 1000, "sha256": "00"},
        "input": {"layout": "nchw", "type": "float32", "resize": {"keep": {}}},
        "output": {"detection": {
            "boxes": "boxes", "labels": "labels", "scores": "scores", "box_format": "xyxy", "box_space": "normalized"
        }},
    }))
    .unwrap();
    RunInfo {
        id: RunId(1),
        name: "first run".to_owned(),
        key: RunKey {
            model_id: card.id.clone(),
            weights_sha256: "00".to_owned(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: None,
            keep: KeepRule::default(),
            made: InferenceLocation::Here,
        },
        labels: LabelSet::parse(LABELS).unwrap(),
        card,
        created_ms: 0,
    }
}

/// An image of 100 x 80 pixels with boxes: class, score, xyxy.
pub(super) fn row(name: &str, boxes: &[(u32, f32, [f32; 4])]) -> ExportRow {
    let run = run();
    let detections = boxes
        .iter()
        .map(|&(class_id, score, bounds)| Detection::new(bounds, class_id, run.labels.name(class_id), score));
    let prediction = Prediction::new([100, 80], PredictionContent::Detections(detections.collect()));
    let sample = Sample::new(SampleUri::new(format!("/photos/{name}")), name, 0);
    ExportRow { result: Some(Ok(prediction)), ..ExportRow::new(sample) }
}

pub(super) fn context() -> ExportContext {
    ExportContext {
        run: run(),
        view: ViewSettings::default(),
        source_name: "/photos".to_owned(),
        source: Arc::new(MemorySource::default()),
        limits: DecodeLimits::default(),
        evaluation: None,
        truth: None,
        target_precision: Target::USUAL,
        review: None,
        new_classes: vec!["fox".to_owned()],
    }
}

/// An export to its own folder.
pub(super) struct Sampled {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub report: ExportReport,
    /// The content of the file; empty if a folder was written.
    pub text: String,
}

impl Sampled {
    pub(super) fn new(format: ExportFormat, rows: Vec<ExportRow>) -> Self {
        Self::with(ExportOptions::for_format(format), &context(), rows).unwrap()
    }

    pub(super) fn with(
        options: ExportOptions,
        context: &ExportContext,
        rows: Vec<ExportRow>,
    ) -> Result<Self, ExportError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let target = ExportTarget { path: path.clone(), existing: Existing::Keep };
        let control = TaskControl::new(ProgressUnit::Images);
        let rows = &mut rows.into_iter().map(Ok);
        let result = export(rows, context, options, &target, &control);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), usize::from(result.is_ok()), "{left:?}");
        Ok(Self { report: result?, text: std::fs::read_to_string(&path).unwrap_or_default(), _folder: folder, path })
    }

    /// The text of a file in an exported folder.
    pub(super) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path.join(name)).unwrap()
    }
}
