//! The keys of the language: the words, help and test of each in one row.

use std::sync::Arc;

use super::box_term::{BoxTerm, OutcomeWord};
use super::capture_term::{Circle, Period};
use super::{ClassChanges, Span};
use crate::domain::{LabelSet, SampleId, SampleSet};
use crate::review::VerdictKind;
use crate::review::candidate::Candidate;
use crate::review::outcomes::OutcomeClass;

#[derive(Debug)]
pub struct Key {
    /// The word to type, then alternative spellings.
    pub words: &'static [&'static str],
    /// A valid use, for messages. While typing, its key and operator complete the word.
    pub example: &'static str,
    /// The explanation next to the completion; a key without one is not suggested.
    pub meaning: &'static str,
    /// Examples and what they find.
    pub help: &'static [(&'static str, &'static str)],
    pub takes: Takes,
    test: fn(&Candidate<'_>, &Value) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Text; without a value, whether there is any.
    OptionalText,
    OptionalVerdict,
    /// A count; without a value, at least one.
    OptionalCount,
    Nothing,
    Text,
    /// From 0 to 1, or in percent.
    Score,
    /// As [`Self::Score`], or the name of an image.
    Similarity,
    Class,
    TruthClass,
    /// Nothing: the key is a word about ground truth.
    Outcome(OutcomeWord),
    Error,
    /// The kind of a suspicious label; without a value, any.
    OptionalSuspect,
    /// From 0 to 1, for boxes.
    Iou,
    /// A class change between two runs; without a value, any difference.
    OptionalChange,
    /// A date or a range of dates; without a value, any.
    OptionalPeriod,
    /// A location and a distance; without a value, any.
    OptionalCircle,
}

impl Takes {
    /// Whether it is a number from 0 to 1.
    pub fn is_share(self) -> bool {
        matches!(self, Self::Score | Self::Similarity | Self::Iou)
    }
}

/// A condition on an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    pub key: &'static Key,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The key without a value.
    Any,
    /// Lowercase text.
    Text(String),
    Number(Span),
    Verdict(VerdictKind),
    Boxes(BoxTerm),
    /// The change as in [`super::change_key`], empty for any difference; once prepared, also the images with it, lowest
    /// id first.
    Change(String, Arc<[SampleId]>),
    Period(Period),
    Circle(Circle),
}

/// In the order of the help. The first key applies to words without a key, the second to all conditions on boxes.
#[rustfmt::skip]
pub(super) static KEYS: [Key; 36] = [
    Key { words: &["name"], example: "name:beach", meaning: "with this in its name", takes: Takes::Text, help: &[
        ("beach", "“beach” in the name, ignoring case"),
        ("\"two words\"", "Both words, including the space, in the name"),
    ], test: |image, value| value.is_text(|part| contains(&image.sample.name, part)) },
    Key { words: &["class"], example: "class:cat", meaning: "with this class", takes: Takes::Class, help: &[
        ("class:cat", "A visible cat; for a classifier: the top class"),
        ("class:\"traffic light\"", "A name with a space"),
        ("class:*light*", "Any class with “light” in its name"),
        ("class:cat score>0.8", "The best cat scores above 0.8, regardless of the threshold"),
        ("class:cat boxes>=3", "At least three visible cats"),
    ], test: on_boxes },
    Key { words: &["folder"], example: "folder:holidays/2024", meaning: "in this folder", takes: Takes::Text, help: &[
        ("folder:holidays/2024", "In this folder of the opened one, or in a folder inside it"),
    ], test: |image, value| value.is_text(|path| is_in(&image.sample.name, path)) },
    Key { words: &["score"], example: "score>0.8", meaning: "best score", takes: Takes::Score, help: &[
        ("score:0.4..0.6", "The best score is between the two"),
    ], test: |image, value| value.is_number(image.facts().and_then(|facts| facts.best)) },
    Key { words: &["boxes", "box"], example: "boxes>3", meaning: "number of boxes", help: &[
        ("boxes:0", "No visible boxes"),
    ], takes: Takes::OptionalCount, test: |image, value| value.is_number(image.boxes().map(|boxes| boxes as f32)) },
    Key { words: &["margin"], example: "margin<0.1", meaning: "least certain predictions", takes: Takes::Score, help: &[
        ("margin<0.1", "The least certain predictions; see the sort menu"),
    ], test: |image, value| value.is_number(image.facts().and_then(|facts| facts.margin)) },
    Key { words: &["alike"], example: "alike>0.8", meaning: "similar to one image", takes: Takes::Similarity, help: &[
        ("alike:cat.jpg", "Compares all images with this one, by its file name or path, and shows the most similar first"),
        ("alike>0.8", "Similarity above 0.8 to that image, or to the one that “Find similar images” started from"),
    ], test: |image, value| match value {
        Value::Text(_) => image.similarity.is_some_and(|similarity| !similarity.is_nan()),
        _ => value.is_number(image.similarity),
    } },
    Key { words: &["duplicate"], example: "duplicate", meaning: "in a group of duplicates", help: &[
        ("duplicate", "In a group of “Find duplicates”"),
    ], takes: Takes::Nothing, test: |image, _| image.duplicate.is_some() },
    Key { words: &["copy"], example: "copy", meaning: "duplicate of an earlier image", help: &[
        ("!copy", "Not a duplicate, or the first image of its group"),
    ], takes: Takes::Nothing, test: |image, _| image.duplicate.is_some_and(|place| !place.is_first) },
    Key { words: &["verdict"], example: "verdict:accept", meaning: "with this verdict", help: &[
        ("!verdict", "Not judged: neither the image nor every visible box has a verdict"),
        ("verdict:reject", "On the image or a box: accept, reject, unsure, wrong, moved, added, complete"),
        ("verdict:returned", "Back to labeler: the labels must be made again"),
    ], takes: Takes::OptionalVerdict, test: |image, value| match value {
        Value::Verdict(kind) => image.mark.is_some_and(|mark| mark.has(*kind)),
        _ => image.verdict.is_some(),
    } },
    Key { words: &["complete", "judged"], example: "complete", meaning: "judged, or marked complete", help: &[
        ("complete", "The image or every visible box has a verdict, or the image is marked complete; not back to labeler"),
    ], takes: Takes::Nothing, test: |image, _| {
        image.verdict.is_some_and(|verdict| verdict != VerdictKind::Returned)
    } },
    Key { words: &["mislabeled"], example: "mislabeled", meaning: "with a wrong ground-truth label", help: &[
        ("mislabeled", "An undetected object (false negative) whose label was rejected"),
    ], takes: Takes::Nothing, test: |image, _| image.mark.is_some_and(|mark| mark.has_wrong_label) },
    Key { words: &["tag", "tags"], example: "tag:night", meaning: "with this tag", takes: Takes::OptionalText, help: &[
        ("tag:night", "Has this tag; tag alone: any tag"),
    ], test: |image, value| image.tags().any(|tag| value.is_text(|text| tag.to_lowercase() == text)) },
    Key { words: &["note"], example: "note:blurry", meaning: "with this text in the note", help: &[
        ("note:blurry", "Has this text in its note; note alone: any note"),
    ], takes: Takes::OptionalText, test: |image, value| {
        image.note().is_some_and(|note| value.is_text(|part| contains(note, part)))
    } },
    Key { words: &["problem", "problems"], example: "problem", meaning: "could not be shown or predicted", help: &[
        ("problem", "Could not be shown or predicted"),
    ], takes: Takes::Nothing, test: |image, _| image.has_problem },
    Key { words: &["predicted", "answered"], example: "predicted", meaning: "has a prediction", help: &[
        ("!predicted", "No prediction yet"),
    ], takes: Takes::Nothing, test: |image, _| image.summary.is_some() },
    Key { words: &["damaged"], example: "damaged", meaning: "predicted, but the file is or may be damaged", help: &[
        ("damaged", "Predicted, but the file is or may be damaged"),
    ], takes: Takes::Nothing, test: |image, _| image.is_damaged },
    Key { words: &["outdated"], example: "outdated", meaning: "the file changed after it was predicted", help: &[
        ("outdated", "The file changed after it was predicted"),
    ], takes: Takes::Nothing, test: |image, _| image.is_outdated },
    Key { words: &["sampled"], example: "sampled", meaning: "in the sample to judge", help: &[
        ("sampled", "In the random sample of the run; see “Spot-check a sample…” in the Judge menu"),
    ], takes: Takes::Nothing, test: |image, _| image.is_sampled },
    Key { words: &["picked"], example: "picked", meaning: "selected on the map", help: &[
        ("picked", "Among the images that were selected last on the map"),
    ], takes: Takes::Nothing, test: |image, _| image.is_picked },
    Key { words: &["taken"], example: "taken:2024-05", meaning: "with this EXIF date", help: &[
        ("taken:2024-05", "Taken in May 2024, by the date in its EXIF data; taken alone: any date"),
        ("taken>=2024-05-17", "Taken on or after this day; also 2024-05-17T14:30 and 2023..2024"),
    ], takes: Takes::OptionalPeriod, test: |image, value| {
        let taken = image.capture().and_then(|capture| capture.taken);
        taken.is_some_and(|taken| *value == Value::Any || matches!(value, Value::Period(period) if period.contains(taken)))
    } },
    Key { words: &["camera"], example: "camera:canon", meaning: "taken with this camera", help: &[
        ("camera:\"canon eos\"", "This text in the make and model of its EXIF data; camera alone: any camera"),
    ], takes: Takes::OptionalText, test: |image, value| {
        let camera = image.capture().and_then(|capture| capture.camera.as_deref());
        camera.is_some_and(|camera| value.is_text(|part| contains(camera, part)))
    } },
    Key { words: &["near", "gps"], example: "near:48.137,11.575~10km", meaning: "taken near this location", help: &[
        ("near:48.137,11.575~10km", "Taken within 10 km, by the location in its EXIF data; near alone: any location"),
    ], takes: Takes::OptionalCircle, test: |image, value| {
        let location = image.capture().and_then(|capture| capture.location);
        location.is_some_and(|point| *value == Value::Any || matches!(value, Value::Circle(circle) if circle.contains(point)))
    } },
    Key { words: &["fp"], example: "fp", meaning: "false positive: an incorrect box", help: &[
        ("fp", "A visible false positive; needs ground truth"),
        ("fp class:cat score>0.8", "A false positive of class cat above 0.8"),
    ], takes: Takes::Outcome(OutcomeWord::Wrong), test: on_boxes },
    Key { words: &["tp"], example: "tp", meaning: "true positive: a correct box", help: &[
        ("tp", "A visible true positive"),
    ], takes: Takes::Outcome(OutcomeWord::Right), test: on_boxes },
    Key { words: &["fn"], example: "fn", meaning: "false negative: an undetected object", help: &[
        ("fn truth:cat", "An undetected cat (false negative)"),
    ], takes: Takes::Outcome(OutcomeWord::NotFound), test: on_boxes },
    Key { words: &["error"], example: "error:class", meaning: "with this kind of error", takes: Takes::Error, help: &[
        ("error:class", "A kind of error: class, location, both, duplicate, background, or missed (no box of any \
            class)"),
        ("error:unmatched", "Any kind except a wrong class: location, both, duplicate or background"),
    ], test: on_boxes },
    Key { words: &["suspicious"], example: "suspicious", meaning: "with a label that may be wrong", help: &[
        ("suspicious", "A ground-truth label that may be wrong, ranked in the filmstrip by the AP that a fix would gain"),
        ("suspicious:class", "A kind of suspicious label: class, missing, misplaced or spurious"),
    ], takes: Takes::OptionalSuspect, test: on_boxes },
    Key { words: &["pattern"], example: "pattern:1", meaning: "with the error of an error pattern", help: &[
        ("pattern:1", "With the error of this row of “Error patterns” in the Evaluation panel; pattern alone: of any row"),
    ], takes: Takes::OptionalCount, test: |image, value| {
        let number = |(set, number): (&SampleSet, u16)| set.contains(image.id).then(|| f32::from(number));
        image.patterns.iter().zip(1..).any(|pattern| value.is_number(number(pattern)))
    } },
    Key { words: &["truth"], example: "truth:cat", meaning: "with this class in the ground truth", help: &[
        ("truth:cat class:dog", "A dog box on a ground-truth cat"),
    ], takes: Takes::TruthClass, test: on_boxes },
    Key { words: &["iou"], example: "iou<0.7", meaning: "overlap with the ground truth", takes: Takes::Iou, help: &[
        ("tp iou<0.7", "A correct box with IoU below 0.7"),
    ], test: on_boxes },
    Key { words: &["better"], example: "better", meaning: "fewer errors than in the other run", help: &[
        ("better", "While two runs are compared against ground truth: fewer errors in the run on screen"),
    ], takes: Takes::Nothing, test: |image, _| image.gain().is_some_and(|gain| gain > 0) },
    Key { words: &["worse"], example: "worse", meaning: "more errors than in the other run", help: &[
        ("worse", "While two runs are compared against ground truth: more errors in the run on screen"),
    ], takes: Takes::Nothing, test: |image, _| image.gain().is_some_and(|gain| gain < 0) },
    Key { words: &["fixed"], example: "fixed", meaning: "errors in the other run only", help: &[
        ("fixed", "While two runs are compared: errors in the other run, but none in the run on screen"),
    ], takes: Takes::Nothing, test: |image, _| image.has_errors() == Some([false, true]) },
    Key { words: &["regressed"], example: "regressed", meaning: "errors in the run on screen only", help: &[
        ("regressed", "While two runs are compared: errors in the run on screen, but none in the other run"),
    ], takes: Takes::Nothing, test: |image, _| image.has_errors() == Some([true, false]) },
    Key { words: &["changed"], example: "changed:cat>dog", meaning: "", takes: Takes::OptionalChange, help: &[
        ("changed", "While two runs are compared: another top class, or boxes in only one run"),
        ("changed:cat>dog", "While two runs are compared: cat in the first, dog in the second"),
    ], test: |image, value| matches!(value, Value::Change(_, ids) if ids.binary_search(&image.id).is_ok()) },
];

impl Key {
    pub fn find(word: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.words.iter().any(|known| known.eq_ignore_ascii_case(word)))
    }

    pub fn word(&self) -> &'static str {
        self.words[0]
    }

    /// The key with its operator, as in the example.
    pub fn completion(&self) -> &'static str {
        let end = self.example.find([':', '<', '>']);
        end.map_or(self.example, |end| &self.example[..=end])
    }

    /// Whether it is compared with `<` and `>`.
    pub fn has_order(&self) -> bool {
        matches!(
            self.takes,
            Takes::Score | Takes::Similarity | Takes::Iou | Takes::OptionalCount | Takes::OptionalPeriod
        )
    }

    /// The meaning of the key without a value; `None` if it requires one.
    pub fn alone(&'static self) -> Option<Term> {
        let value = match self.takes {
            Takes::OptionalText
            | Takes::OptionalVerdict
            | Takes::OptionalPeriod
            | Takes::OptionalCircle
            | Takes::Nothing => Value::Any,
            Takes::OptionalCount => Value::Number(Span { low: 1.0, ..Span::ANY }),
            Takes::Outcome(word) => Value::Boxes(word.into()),
            Takes::OptionalSuspect => Value::Boxes(OutcomeWord::Suspicious(None).into()),
            Takes::OptionalChange => Value::Change(String::new(), [].into()),
            Takes::Text
            | Takes::Score
            | Takes::Similarity
            | Takes::Iou
            | Takes::Class
            | Takes::TruthClass
            | Takes::Error => return None,
        };
        Some(Term { key: self, value })
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Term {
    pub fn name(part: &str) -> Self {
        let value = Value::Text(part.to_lowercase());
        Self { key: &KEYS[0], value }
    }

    pub fn from_boxes(boxes: BoxTerm) -> Self {
        Self { key: &KEYS[1], value: Value::Boxes(boxes) }
    }

    /// Looks up the classes and the change named by the value.
    pub fn prepare(&mut self, labels: &LabelSet, truth: &[OutcomeClass], changes: &ClassChanges) {
        match &mut self.value {
            Value::Boxes(boxes) => boxes.prepare(labels, truth),
            Value::Change(change, ids) => *ids = changes.get(change).cloned().unwrap_or_default(),
            _ => {}
        }
    }

    pub fn passes(&self, image: &Candidate<'_>) -> bool {
        (self.key.test)(image, &self.value)
    }
}

impl Value {
    fn is_text(&self, test: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Text(text) => test(text),
            _ => true,
        }
    }

    fn is_number(&self, number: Option<f32>) -> bool {
        matches!((self, number), (Self::Number(span), Some(number)) if span.contains(number))
    }
}

fn on_boxes(image: &Candidate<'_>, value: &Value) -> bool {
    matches!(value, Value::Boxes(boxes) if boxes.passes(image))
}

/// Whether the folder with a lowercase path contains an image of this name, ignoring case.
fn is_in(name: &str, path: &str) -> bool {
    let (folder, path) = (name.rsplit_once('/').map_or("", |(folder, _)| folder), path.trim_end_matches('/'));
    let ends = |end: Option<&u8>| matches!(end, None | Some(b'/'));
    if folder.is_ascii() && path.is_ascii() {
        let start = folder.as_bytes().get(..path.len());
        let starts = start.is_some_and(|start| start.eq_ignore_ascii_case(path.as_bytes()));
        return starts && ends(folder.as_bytes().get(path.len()));
    }
    let folder = folder.to_lowercase();
    folder.starts_with(path) && ends(folder.as_bytes().get(path.len()))
}

/// Whether a text contains a lowercase part, ignoring case.
fn contains(text: &str, part: &str) -> bool {
    if !text.is_ascii() || !part.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_contain_the_images_of_folders_inside() {
        for (name, path, expected) in [
            ("Summer/2024/a.jpg", "summer", true),
            ("Summer/2024/a.jpg", "summer/2024", true),
            ("Summer/2024/a.jpg", "summer/2024/", true),
            ("Summer/2024/a.jpg", "sum", false),
            ("Summer/2024/a.jpg", "2024", false),
            ("Summer/2024/a.jpg", "summer/2024/a.jpg", false),
            ("ÉTÉ/a.jpg", "été", true),
            ("ete/a.jpg", "été", false),
            ("a.jpg", "a.jpg", false),
        ] {
            assert_eq!(is_in(name, path), expected, "{name} {path}");
        }
    }

    #[test]
    fn case_is_ignored_in_every_script() {
        for (text, part, expected) in [
            ("Beach/IMG_1.JPG", "img_1", true),
            ("Beach/IMG_1.JPG", "img_2", false),
            ("ÉTÉ.png", "été", true),
            ("a", "ab", false),
            ("a", "", true),
        ] {
            assert_eq!(contains(text, part), expected, "{text} {part}");
        }
    }
}
