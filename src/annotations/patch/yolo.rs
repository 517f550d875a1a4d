//! Changes in YOLO's label files: a label is a line.

use std::collections::{HashMap, HashSet};

use super::LabelPatchError;
use super::text::{
    LabelEdit, NewLabel, Output, PlacedLabel, TextFile, TextFormat, TextLabels, line_break, number_of, unnamed,
};
use crate::annotations::dataset_files::yolo_label_text;
use crate::annotations::yolo::{ImagesByLabel, Reader, YoloFiles, label_of_image};
use crate::annotations::{AnnotationsError, yolo};
use crate::domain::{BoxUnit, ExactBox};
use crate::image::source::Files;
use crate::tasks::TaskControl;

pub(super) struct Yolo {
    numbers: HashMap<String, i64>,
    /// The number of values of the keypoints after each box.
    keypoints: Option<usize>,
}

impl TextLabels<Yolo> {
    /// The labels of the images that are `wanted`.
    pub(super) fn open(
        files: &Files,
        found: &YoloFiles,
        wanted: &HashSet<&str>,
        control: &TaskControl,
    ) -> Result<Self, LabelPatchError> {
        let mut reader = yolo::reader(files, found, control)?;
        let images = ImagesByLabel::new(&found.images, &found.listed);
        let mut opened = Self {
            format: Yolo { numbers: HashMap::new(), keypoints: reader.keypoints() },
            files: Vec::new(),
            file_of: HashMap::new(),
            unlisted: None,
            output: Output::Folder,
        };
        for entry in &found.labels {
            let image = images.image_of(&entry.name);
            if !wanted.contains(image.as_str()) {
                continue;
            }
            let content = files.read(entry, control).map_err(AnnotationsError::from)?;
            let file = TextFile::new(entry.name.clone(), &content).map(|file| {
                let labels = placed(&mut reader, &image, file.text());
                file.with_labels(labels)
            });
            opened.add(image, file.map_err(|reason| format!("{} {reason}", entry.name)));
        }
        // An image without a label file has no objects; its first one makes the file.
        for image in &found.images {
            if wanted.contains(image.as_str()) && !opened.file_of.contains_key(image) {
                opened.add(image.clone(), TextFile::new(label_of_image(image), b""));
            }
        }
        opened.format.numbers = reader.numbers_by_name();
        Ok(opened)
    }
}

fn placed(reader: &mut Reader, image: &str, text: &str) -> Vec<PlacedLabel> {
    let mut labels = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = start..start + line.len();
        start = span.end;
        if let Some((class, bounds)) = reader.label(line.trim()) {
            labels.push(PlacedLabel::new(image.to_owned(), class, bounds, span));
        }
    }
    labels
}

impl Yolo {
    fn number(&self, class: &str) -> Result<i64, String> {
        let unnamed = || number_of(class).filter(|_| self.numbers.is_empty());
        self.numbers.get(class).copied().or_else(unnamed).ok_or_else(|| {
            format!("no class is named “{class}”; add it to data.yaml or classes.txt, and apply the changes again")
        })
    }
}

impl TextFormat for Yolo {
    fn unit(&self) -> BoxUnit {
        BoxUnit::Fractions
    }

    /// A class without a name may have got one since the changes were listed.
    fn class_as_read(&self, class: &str) -> String {
        let Some(number) = number_of(class).filter(|_| !self.numbers.contains_key(class)) else {
            return class.to_owned();
        };
        let named = self.numbers.iter().find(|(_, known)| **known == number);
        named.map_or_else(|| unnamed(number), |(name, _)| name.clone())
    }

    fn changed(&self, label: &LabelEdit<'_>) -> Result<(String, bool), String> {
        let LabelEdit { text, class, bounds, .. } = *label;
        let line = text.trim();
        let [before, after] = [&text[..text.len() - text.trim_start().len()], &text[text.trim_end().len()..]];
        let (number, rest) = line.split_once(|letter: char| letter.is_ascii_whitespace()).unwrap_or((line, ""));
        let number = match class {
            Some(class) => self.number(class)?.to_string(),
            None => number.to_owned(),
        };
        let Some(bounds) = bounds else {
            return Ok((format!("{before}{number} {rest}{after}"), false));
        };
        let values: Vec<&str> = rest.split_ascii_whitespace().collect();
        let has_keypoints = self.keypoints.is_some_and(|count| [count + 4, count + 5].contains(&values.len()));
        let (numbers, kept) = if has_keypoints || values.len() <= 5 {
            (center(bounds), values.get(4..).unwrap_or_default())
        } else {
            // A polygon, perhaps with a score.
            (corners(bounds), &values[values.len() - values.len() % 2..])
        };
        let kept: String = kept.iter().flat_map(|value| [" ", value]).collect();
        let is_mask = !has_keypoints && values.len() > 5 && !is_rectangle(&values[..values.len() - values.len() % 2]);
        Ok((format!("{before}{number} {numbers}{kept}{after}"), is_mask))
    }

    fn added(&self, file: &str, label: &NewLabel<'_>) -> Result<(usize, String), String> {
        if self.keypoints.is_some() {
            return Err("a new object needs keypoints, which are not edited here; add it with another tool".to_owned());
        }
        let are_polygons = file.lines().any(|line| line.split_ascii_whitespace().count() > 6);
        let numbers = if are_polygons { corners(label.bounds) } else { center(label.bounds) };
        let score = label.score.map_or(String::new(), |score| format!(" {score}"));
        let line = format!("{} {numbers}{score}", self.number(label.class)?);
        let line_break = line_break(file);
        let is_open = !file.is_empty() && !file.ends_with('\n');
        Ok((file.len(), if is_open { format!("{line_break}{line}") } else { format!("{line}{line_break}") }))
    }
}

fn center(bounds: ExactBox) -> String {
    let ExactBox { left, top, width, height } = bounds;
    yolo_label_text([left + width / 2.0, top + height / 2.0, width, height])
}

/// Whether the points of a polygon are the corners of its bounding box.
fn is_rectangle(points: &[&str]) -> bool {
    let distinct = |from: usize| points[from..].iter().step_by(2).collect::<HashSet<_>>().len();
    let corners: HashSet<&[&str]> = points.chunks(2).collect();
    [distinct(0), distinct(1), corners.len()] == [2, 2, 4]
}

/// A box as a polygon.
fn corners(bounds: ExactBox) -> String {
    let ([left, top], [right, bottom]) = ([bounds.left, bounds.top], [bounds.right(), bounds.bottom()]);
    format!("{left:.7} {top:.7} {right:.7} {top:.7} {right:.7} {bottom:.7} {left:.7} {bottom:.7}")
}
