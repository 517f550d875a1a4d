//! The images in a report: the least and the most certain ones, and judged ones.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray;

use super::super::ExportError;
use super::super::annotated::annotate_thumbnail;
use super::super::row::ChosenImage;
use crate::domain::{
    BoundingBox, ModelTask, Prediction, PredictionContent, RgbImage, Sample, SampleUri, Verdict, ViewSettings,
};
use crate::image::decode::{DecodeLimits, encode_jpeg, thumbnail};
use crate::image::source::Source;
use crate::review::{VerdictKind, margin};

/// The number of images per section.
const LEN: usize = 12;
/// The longer side of a thumbnail, in pixels.
const THUMBNAIL_SIDE: u32 = 480;
const JPEG_QUALITY: u8 = 82;
/// More boxes would only cover the thumbnail.
const MAX_BOXES: usize = 60;

/// The verdicts with a section each, its title and its explanation, in order.
const JUDGED: [(VerdictKind, &str, &str); VerdictKind::VARIANTS.len()] = [
    (VerdictKind::Reject, "Rejected", "Rejected by a person."),
    (VerdictKind::WrongClass, "Wrong class", "A person chose another class."),
    (VerdictKind::Moved, "Moved", "A person corrected the position of a box."),
    (VerdictKind::Added, "Added", "A person added a box that the model did not find."),
    (VerdictKind::Returned, "Back to labeler", "A person found that the labels must be made again."),
    (VerdictKind::Unsure, "Unsure", "A person could not decide."),
    (VerdictKind::Accept, "Accepted", "Accepted by a person."),
    (VerdictKind::Complete, "Complete", "A person found no missing object."),
];

/// One image with the selected part of its prediction.
#[derive(Debug, Clone)]
pub(super) struct Example {
    pub sample: Sample,
    pub prediction: Prediction,
    pub verdict: Option<Verdict>,
    /// The verdicts on boxes, with the label of each box.
    pub box_verdicts: Vec<(String, Verdict)>,
    pub note: Option<String>,
    pub tags: BTreeSet<String>,
}

/// A JPEG.
#[derive(Debug)]
pub(super) struct Thumbnail {
    pub width: u32,
    pub height: u32,
    pub jpeg: Vec<u8>,
}

pub(super) struct Section<P> {
    pub title: &'static str,
    pub explanation: &'static str,
    /// The examples, each with its image if it could be drawn.
    pub examples: Vec<(Example, P)>,
}

/// A bounded selection of each kind.
#[derive(Debug, Default)]
pub(super) struct Examples {
    /// The number of images with a best score.
    ranked: usize,
    least_certain: Best,
    most_certain: Best,
    judged: [Best; JUDGED.len()],
}

/// The examples with the lowest ranks; on a tie, the earlier one.
#[derive(Debug, Default)]
struct Best(Vec<(f32, Example)>);

impl Best {
    fn offer(&mut self, rank: f32, example: impl FnOnce() -> Example) {
        let place = self.0.partition_point(|(other, _)| other.total_cmp(&rank) != Ordering::Greater);
        if place < LEN {
            self.0.insert(place, (rank, example()));
            self.0.truncate(LEN);
        }
    }

    fn has(&self, wanted: &Example) -> bool {
        let mut examples = self.0.iter();
        examples.any(|(_, example)| example.sample.uri == wanted.sample.uri)
    }

    fn into_examples(self) -> Vec<(Example, ())> {
        self.0.into_iter().map(|(_, example)| (example, ())).collect()
    }
}

impl Examples {
    pub(super) fn consider(&mut self, image: &ChosenImage, view: &ViewSettings) {
        let (Some(Ok(stored)), Ok(prediction)) = (&image.row.result, &image.prediction) else {
            return;
        };
        let prediction = prediction.to_prediction();
        let margin = margin(stored, view);
        let example = || Example::new(image, prediction.clone());
        if let Some(margin) = margin {
            self.ranked += 1;
            self.least_certain.offer(margin, example);
            self.most_certain.offer(-margin, example);
        }
        for ((kind, ..), best) in JUDGED.iter().zip(&mut self.judged) {
            if has_verdict(image, *kind) {
                best.offer(margin.unwrap_or(1.0), example);
            }
        }
    }

    /// Sections with at least one example.
    pub(super) fn into_sections(self, task: ModelTask) -> Vec<Section<()>> {
        let Self { ranked, mut least_certain, mut most_certain, judged } = self;
        // With few images, none is in both.
        least_certain.0.truncate(ranked.div_ceil(2));
        most_certain.0.retain(|(_, example)| !least_certain.has(example));
        let hesitation = match task {
            ModelTask::Classification => "Small margin between the top two classes. Check these first.",
            ModelTask::Detection => "A box just above or below its threshold. Check these first.",
        };
        let sections = [
            ("Least certain", hesitation, least_certain),
            ("Most certain", "The model is confident. A threshold does not filter out mistakes here.", most_certain),
        ];
        let judged = JUDGED.iter().zip(judged).map(|(&(_, title, explanation), best)| (title, explanation, best));
        let sections = sections.into_iter().chain(judged).map(|(title, explanation, best)| Section {
            title,
            explanation,
            examples: best.into_examples(),
        });
        sections.filter(|section| !section.examples.is_empty()).collect()
    }
}

impl Section<()> {
    pub(super) fn drawn<P>(
        self,
        draw: &mut dyn FnMut(&Example) -> Result<P, ExportError>,
    ) -> Result<Section<P>, ExportError> {
        let examples = self.examples.into_iter().map(|(example, ())| {
            let image = draw(&example)?;
            Ok((example, image))
        });
        Ok(Section {
            title: self.title,
            explanation: self.explanation,
            examples: examples.collect::<Result<_, ExportError>>()?,
        })
    }
}

impl Example {
    fn new(image: &ChosenImage, mut prediction: Prediction) -> Self {
        let row = image.row;
        let judged = image.boxes().iter();
        let judged = judged.filter_map(|chosen| Some((chosen.detection.label.clone(), chosen.verdict?.clone())));
        if let PredictionContent::Detections(detections) = &mut prediction.content {
            detections.truncate(MAX_BOXES);
        }
        Self {
            sample: row.sample.clone(),
            prediction,
            verdict: row.verdict.clone(),
            box_verdicts: judged.collect(),
            note: row.note.clone(),
            tags: row.tags.clone(),
        }
    }

    /// A small image with boxes or classes drawn on it.
    pub(super) fn thumbnail(&self, source: &dyn Source, limits: &DecodeLimits) -> Result<Thumbnail, String> {
        let everything = ViewSettings { min_score: 0.0, top_k: 3, ..ViewSettings::default() };
        Thumbnail::new(source, &self.sample.uri, limits, |image, _| {
            let prediction = scaled(&self.prediction, image.width(), image.height());
            annotate_thumbnail(image, &prediction, &everything, None)
        })
    }
}

impl Thumbnail {
    /// A small image, drawn by `draw` from the small image and the bytes of the original.
    pub(super) fn new(
        source: &dyn Source,
        uri: &SampleUri,
        limits: &DecodeLimits,
        draw: impl FnOnce(&RgbImage, &[u8]) -> RgbImage,
    ) -> Result<Self, String> {
        let bytes = source.read(uri).map_err(|error| error.to_string())?;
        let image = thumbnail(&bytes, THUMBNAIL_SIDE, limits).map_err(|error| error.to_string())?;
        let drawn = draw(&image, &bytes);
        let jpeg = encode_jpeg(&drawn, JPEG_QUALITY).map_err(|error| error.to_string())?;
        Ok(Self { width: drawn.width(), height: drawn.height(), jpeg })
    }
}

/// The same boxes on a smaller image.
pub(super) fn scaled(prediction: &Prediction, width: u32, height: u32) -> Prediction {
    let mut scaled = prediction.clone();
    let x = width as f32 / prediction.width.max(1) as f32;
    let y = height as f32 / prediction.height.max(1) as f32;
    if let PredictionContent::Detections(detections) = &mut scaled.content {
        for detection in detections {
            let BoundingBox { x1, y1, x2, y2 } = detection.bounds;
            detection.bounds = BoundingBox::new(x1 * x, y1 * y, x2 * x, y2 * y);
        }
    }
    Prediction { width, height, ..scaled }
}

/// Whether the image or one of its boxes has this verdict.
fn has_verdict(image: &ChosenImage, kind: VerdictKind) -> bool {
    let is = |verdict: &Verdict| VerdictKind::from(verdict) == kind;
    image.boxes().iter().any(|chosen| chosen.verdict.is_some_and(is)) || image.row.verdict.as_ref().is_some_and(is)
}

/// The number of each verdict on boxes of a class, for captions: `cat: reject`.
pub(super) fn box_verdict_texts(example: &Example) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (label, verdict) in &example.box_verdicts {
        let text = match verdict {
            Verdict::WrongClass(right) => format!("{label}: is {right}"),
            verdict => format!("{label}: {}", verdict.into_str()),
        };
        *counts.entry(text).or_default() += 1;
    }
    let texts = counts.into_iter().map(|(text, count)| match count {
        1 => text,
        count => format!("{text} ×{count}"),
    });
    texts.collect()
}
