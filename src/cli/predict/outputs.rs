//! The outputs of `spotcheck predict`: a table or JSON Lines, and annotated images.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

use crate::cli::out_file::{is_stdout, partial_next_to};
use crate::cli::terminal::{raw_stdout, stdout};
use crate::domain::{ModelCard, Prediction, Problem, Sample, ViewSettings, visible};
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::predict::SampleResult;
use crate::project::export::{AnnotatedFolder, jsonl_line};

/// Everything that a run writes.
pub(crate) struct Outputs {
    card: ModelCard,
    lines: Option<Lines>,
    annotated: Option<AnnotatedFolder>,
    /// Overlaps above this are suppressed in everything that is written; `None` writes all boxes.
    nms_iou: Option<f32>,
    view: ViewSettings,
    failures: ImageFailures,
    onlooker: Option<PredictionObserver>,
}

/// The problems of single images.
#[derive(Default)]
pub(crate) struct ImageFailures {
    /// Images without a prediction.
    pub(crate) predicting: Vec<Problem>,
    /// Predicted images whose annotated image was not written.
    pub(crate) drawing: Vec<Problem>,
}

/// A callback for every written prediction.
type PredictionObserver = Box<dyn FnMut(&Sample, &Prediction)>;

/// JSON Lines, on stdout or in a file that appears under its name only when complete.
struct Lines {
    /// For “Could not write …”.
    place: String,
    writer: LineWriter,
}

enum LineWriter {
    /// Stdout, or a pipe or a device, which nothing may replace.
    Stream(BufWriter<Box<dyn Write>>),
    File(BufWriter<tempfile::NamedTempFile>, PathBuf),
}

impl Outputs {
    pub(crate) fn open(
        out: Option<&Path>,
        annotate: Option<&Path>,
        card: ModelCard,
        nms_iou: Option<f32>,
        source: &Arc<dyn Source>,
        limits: &DecodeLimits,
    ) -> anyhow::Result<Self> {
        let view = ViewSettings::default();
        let annotated = annotate.map(|folder| {
            AnnotatedFolder::create(folder, source, limits, &view)
                .with_context(|| format!("Could not use {} for annotated images", folder.display()))
        });
        let lines = out.map(|path| Lines::open(path).with_context(|| format!("Could not write {}", path.display())));
        Ok(Self {
            card,
            lines: lines.transpose()?,
            annotated: annotated.transpose()?,
            nms_iou,
            view,
            failures: ImageFailures::default(),
            onlooker: None,
        })
    }

    /// Calls `see` with every written prediction.
    pub(crate) fn observe(&mut self, see: impl FnMut(&Sample, &Prediction) + 'static) {
        self.onlooker = Some(Box::new(see));
    }

    pub(crate) fn write(&mut self, sample: &Sample, result: SampleResult) -> anyhow::Result<()> {
        let line = self.lines.as_ref().map(|_| jsonl_line(&sample.uri, &self.card, &result, self.nms_iou));
        let result = result.map(|prediction| prediction.without_overlaps(self.nms_iou));
        match self.lines.as_mut().zip(line) {
            Some((lines, line)) => lines.write(&line)?,
            None => print_row(sample, &result, &self.card, &self.view)?,
        }
        match result {
            Ok(prediction) => {
                if let Some(see) = &mut self.onlooker {
                    see(sample, &prediction);
                }
                if let Some(annotated) = &mut self.annotated {
                    annotated.add(sample, prediction);
                }
            }
            Err(problem) => self.failures.predicting.push(problem),
        }
        Ok(())
    }

    /// Waits for everything that is still being written.
    pub(crate) fn finish(mut self) -> anyhow::Result<ImageFailures> {
        if let Some(lines) = self.lines {
            lines.finish()?;
        }
        if let Some(annotated) = self.annotated {
            self.failures.drawing = annotated.finish();
        }
        Ok(self.failures)
    }
}

impl Lines {
    fn open(path: &Path) -> anyhow::Result<Self> {
        if is_stdout(path) {
            let stdout: Box<dyn Write> = Box::new(raw_stdout());
            return Ok(Self { place: "to stdout".to_owned(), writer: LineWriter::Stream(BufWriter::new(stdout)) });
        }
        let path = std::path::absolute(path)?;
        let place = path.display().to_string();
        let writer = if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            LineWriter::Stream(BufWriter::new(Box::new(std::fs::OpenOptions::new().write(true).open(&path)?)))
        } else {
            LineWriter::File(BufWriter::new(partial_next_to(&path)?), path)
        };
        Ok(Self { place, writer })
    }

    fn write(&mut self, line: &str) -> anyhow::Result<()> {
        let written = match &mut self.writer {
            LineWriter::Stream(writer) => writeln!(writer, "{line}"),
            LineWriter::File(writer, _) => writeln!(writer, "{line}"),
        };
        written.with_context(|| format!("Could not write {}", self.place))
    }

    fn finish(self) -> anyhow::Result<()> {
        let finished = match self.writer {
            LineWriter::Stream(mut writer) => writer.flush(),
            LineWriter::File(writer, path) => {
                let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error);
                file.and_then(|file| Ok(file.persist(path).map(drop)?))
            }
        };
        finished.with_context(|| format!("Could not write {}", self.place))
    }
}

/// `chelsea.png            tiger cat 0.38, Egyptian cat 0.37`
fn print_row(sample: &Sample, result: &SampleResult, card: &ModelCard, view: &ViewSettings) -> anyhow::Result<()> {
    let seen = match result {
        Ok(prediction) => {
            let is_damaged = !prediction.warnings.is_empty();
            let mark = if is_damaged { "possibly damaged; " } else { "" };
            let seen = if card.is_encoder() { "embedding".to_owned() } else { describe(prediction, view) };
            format!("{mark}{seen}")
        }
        Err(problem) => format!("failed: {}", visible(&problem.message)),
    };
    let name = visible(&sample.name);
    writeln!(stdout(), "{name:<28} {seen}").context("Could not write to stdout")
}

fn describe(prediction: &Prediction, view: &ViewSettings) -> String {
    let classes = view.visible_classes(prediction).iter().map(|class| (&class.label, class.score));
    let visible = view.visible_detections(prediction, &[]);
    let detections = visible.iter().map(|&index| &prediction.detections()[index]);
    let boxes = detections.map(|detection| (&detection.label, detection.score));
    let seen: Vec<String> = classes.chain(boxes).map(|(label, score)| format!("{label} {score:.2}")).collect();
    if seen.is_empty() { format!("no box above score {}", view.min_score) } else { seen.join(", ") }
}
