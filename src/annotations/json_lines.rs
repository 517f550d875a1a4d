//! JSON Lines with one image per line, as written by `spotcheck predict --out` and exports.

use std::io::{self, Read};

use serde::Deserialize;

use super::collect::{Category, Collector, Refusal, Tally, checked_box, checked_score, unreadable};
use super::json::{Element, FourNumbers, Scalar};
use super::rows::each_line;
use super::{AnnotationFormat, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedLabel, AnnotationProblemKind as Kind, BoxRole, BoxUnit, ExactBox, PredictionStatus,
};

/// Keys for the name of a line's image; the first one present is used.
pub(super) const NAME_KEYS: [&str; 3] = ["uri", "image", "file_name"];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    uri: Scalar,
    image: Scalar,
    file_name: Scalar,
    status: Scalar,
    error: Scalar,
    width: Scalar,
    height: Scalar,
    /// All classes, on the first line of corrected labels.
    all_classes: Vec<Element<Category>>,
    classes: Vec<Element<Entry>>,
    detections: Vec<Element<Entry>>,
}

/// A class or a box.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// Left, top, right and bottom.
    #[serde(rename = "box")]
    bounds: FourNumbers,
    /// For a class of a classifier.
    index: Scalar,
    class_id: Scalar,
    label: Scalar,
    score: Scalar,
    verdict: Scalar,
}

pub(super) fn read(reader: impl Read) -> io::Result<Found> {
    let mut lines = Lines::default();
    each_line(reader, |number, text| {
        let place = format!("line {number}");
        lines.collector.entries += 1;
        if let Err((kind, reason)) = text.map_err(unreadable).and_then(|text| lines.take(text.trim(), &place)) {
            lines.collector.problem(kind, place, reason);
        }
    })?;
    let Lines { mut collector, judged } = lines;
    collector.files = 1;
    collector.notes.extend(judged.unread_verdicts());
    Ok(collector.finish(AnnotationFormat::JsonLines))
}

#[derive(Default)]
struct Lines {
    collector: Collector,
    judged: Tally,
}

impl Lines {
    fn take(&mut self, text: &str, place: &str) -> Result<(), Refusal> {
        // Otherwise, a list would be read as an object with its fields in order.
        if !text.starts_with('{') {
            return Err(unreadable("is not a JSON object"));
        }
        let line: Line = serde_json::from_str(text).map_err(|error| {
            // The location already contains the line number in the file.
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            unreadable(format!("cannot be read: {message} at column {}", error.column()))
        })?;
        self.collector.categories(line.all_classes.into_iter().filter_map(|Element(category)| category));
        let names = [line.uri, line.image, line.file_name].map(Scalar::into_text);
        let name = names.into_iter().flatten().find(|name| !name.is_empty());
        let name = name.ok_or_else(|| unreadable("has no uri"))?;
        if let Some(status) = line.status.into_text().filter(|status| status != "ok") {
            let error = line.error.into_text().unwrap_or_default();
            self.collector.add_unpredicted(&name, &status, &error, || place.to_owned());
            return Ok(());
        }
        if self.collector.known_image(&name).is_some_and(|image| image.status == PredictionStatus::Predicted) {
            let reason = format!("repeats an image; the first entry is used: {name}");
            self.collector.problem(Kind::Duplicate, place, reason);
            return Ok(());
        }
        let image = self.collector.image(&name);
        image.status = PredictionStatus::Predicted;
        image.size = super::coco::size(&line.width, &line.height);
        for (index, Element(entry)) in line.classes.into_iter().enumerate() {
            let place = || format!("{place}, classes[{index}]");
            if let Err(refusal) = self.class(&name, entry) {
                let (kind, reason) = self.collector.refuse_label(&name, refusal);
                self.collector.problem(kind, place(), reason);
            }
        }
        for (index, Element(entry)) in line.detections.into_iter().enumerate() {
            let place = || format!("{place}, detections[{index}]");
            if let Err((kind, reason)) = self.detection(&name, entry, place) {
                self.collector.problem(kind, place(), reason);
            }
        }
        Ok(())
    }

    fn class(&mut self, image: &str, entry: Option<Entry>) -> Result<(), Refusal> {
        let entry = entry.ok_or_else(|| unreadable("is not an object"))?;
        let number = if entry.index.is_missing() { entry.class_id } else { entry.index };
        let score = score(&entry.score)?;
        let class = self.class_of(&number, entry.label)?;
        self.collector.add_label_once(image, AnnotatedLabel { class, score })
    }

    fn detection(&mut self, image: &str, entry: Option<Entry>, place: impl Fn() -> String) -> Result<(), Refusal> {
        let entry = entry.ok_or_else(|| unreadable("is not an object"))?;
        let FourNumbers::Numbers(edges) = entry.bounds else {
            return Err((Kind::BrokenBox, "has no box of four numbers".to_owned()));
        };
        let bounds = checked_box(ExactBox::from_edges(edges), BoxUnit::Pixels)?;
        let score = score(&entry.score)?;
        let class = self.class_of(&entry.class_id, entry.label)?;
        if !entry.verdict.is_missing() {
            self.judged.add(&place);
        }
        let found = AnnotatedBox { bounds, unit: BoxUnit::Pixels, class, score, area: None, role: BoxRole::Object };
        self.collector.add_box(image, found, place);
        Ok(())
    }

    fn class_of(&mut self, number: &Scalar, label: Scalar) -> Result<u32, Refusal> {
        let number = match number {
            Scalar::Integer(number) => Some(*number),
            Scalar::Missing => None,
            other => {
                return Err(unreadable(format!("has the class number {other}, which is not a 64-bit integer")));
            }
        };
        let name = label.into_text().filter(|name| !name.is_empty());
        if number.is_none() && name.is_none() {
            return Err((Kind::UnknownClass, "has no class".to_owned()));
        }
        Ok(self.collector.class(number, name.as_deref()))
    }
}

fn score(score: &Scalar) -> Result<Option<f64>, Refusal> {
    match (score, score.number()) {
        (Scalar::Missing, _) => Ok(None),
        (_, Some(score)) => checked_score(score).map(Some),
        (told, None) => Err((Kind::BrokenScore, format!("has the score {told}; scores must be 0 to 1"))),
    }
}
