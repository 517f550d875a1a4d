//! Changes in text files: labels are found by their class and position, and only their text is rewritten.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::contained::{Step, steps};
use super::{Applied, Corrected, Label, LabelChange, LabelPatchError, Labels, class_name, in_pixels};
use crate::annotations::BOM;
use crate::domain::{BoxUnit, ExactBox, TruthLabel};

/// A text format of labels.
pub(super) trait TextFormat {
    fn unit(&self) -> BoxUnit;

    /// A box as the format stores it.
    fn stored(&self, bbox: [f64; 4]) -> [f64; 4] {
        bbox
    }

    /// The name that a class has when it is read again.
    fn class_as_read(&self, class: &str) -> String {
        class.to_owned()
    }

    /// The new text of a label, and whether it loses a mask.
    ///
    /// # Errors
    /// The format cannot represent it.
    fn changed(&self, label: &LabelEdit<'_>) -> Result<(String, bool), String>;

    /// The position in a file, and the text, of a new label.
    ///
    /// # Errors
    /// The format cannot represent it.
    fn added(&self, file: &str, label: &NewLabel<'_>) -> Result<(usize, String), String>;

    /// What remains of the text of a deleted label. `is_last`: the image has no other label.
    fn deleted(&self, _text: &str, _is_last: bool) -> String {
        String::new()
    }
}

/// A label to change: what is `None` stays.
pub(super) struct LabelEdit<'l> {
    /// The text of its file.
    pub file: &'l str,
    /// Its own text.
    pub text: &'l str,
    pub class: Option<&'l str>,
    pub bounds: Option<ExactBox>,
}

/// A label to add.
pub(super) struct NewLabel<'l> {
    pub image: &'l str,
    pub class: &'l str,
    pub bounds: ExactBox,
    /// The size of the image, if known.
    pub size: Option<[u32; 2]>,
    /// If the other labels have one.
    pub score: Option<f64>,
}

/// A label in the text of a file.
pub(super) struct PlacedLabel {
    pub image: String,
    pub class: String,
    pub bounds: ExactBox,
    /// Its whole text, including the line break.
    pub span: Range<usize>,
    state: State,
}

enum State {
    AsInFile,
    Changed(String),
    Deleted(String),
}

/// A file with labels that may change.
pub(super) struct TextFile {
    /// The path in the opened folder.
    name: String,
    text: String,
    has_bom: bool,
    labels: Vec<PlacedLabel>,
    /// The positions of the labels of each image.
    of_image: HashMap<String, Vec<usize>>,
}

/// Labels in text files.
pub(super) struct TextLabels<F> {
    pub format: F,
    pub files: Vec<TextFile>,
    /// The position of the file of each image that may change, or why it cannot be read.
    pub file_of: HashMap<String, Result<usize, String>>,
    /// The position of the file for images that no file lists, if it need not list them.
    pub unlisted: Option<usize>,
    pub output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    File,
    Folder,
}

impl<F> TextLabels<F> {
    /// Whether the file of an image is known and can be read.
    pub(super) fn has_file(&self, image: &str) -> bool {
        self.file_of.get(image).is_some_and(Result::is_ok)
    }

    /// Adds the file of an image, or why it cannot be read.
    pub(super) fn add(&mut self, image: String, file: Result<TextFile, String>) {
        let position = file.map(|file| {
            self.files.push(file);
            self.files.len() - 1
        });
        self.file_of.insert(image, position);
    }
}

impl PlacedLabel {
    pub(super) fn new(image: String, class: String, bounds: ExactBox, span: Range<usize>) -> Self {
        Self { image, class, bounds, span, state: State::AsInFile }
    }

    fn text<'t>(&'t self, file: &'t str) -> &'t str {
        match &self.state {
            State::AsInFile => &file[self.span.clone()],
            State::Changed(text) | State::Deleted(text) => text,
        }
    }
}

impl TextFile {
    pub(super) fn new(name: String, content: &[u8]) -> Result<Self, String> {
        let text = crate::annotations::text_of(content)?.to_owned();
        Ok(Self { name, text, has_bom: content.starts_with(BOM), labels: Vec::new(), of_image: HashMap::new() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn with_labels(mut self, labels: Vec<PlacedLabel>) -> Self {
        for label in labels {
            self.push(label);
        }
        self
    }

    fn push(&mut self, label: PlacedLabel) {
        self.of_image.entry(label.image.clone()).or_default().push(self.labels.len());
        self.labels.push(label);
    }

    fn is_changed(&self) -> bool {
        self.labels.iter().any(|label| !matches!(label.state, State::AsInFile))
    }

    fn content(&self) -> Vec<u8> {
        let mut edits: Vec<&PlacedLabel> =
            self.labels.iter().filter(|label| !matches!(label.state, State::AsInFile)).collect();
        edits.sort_by_key(|label| label.span.start);
        let mut content = if self.has_bom { BOM.to_vec() } else { Vec::new() };
        let mut end = 0;
        for label in edits {
            content.extend(&self.text.as_bytes()[end..label.span.start]);
            content.extend(label.text(&self.text).as_bytes());
            end = label.span.end;
        }
        content.extend(&self.text.as_bytes()[end..]);
        content
    }
}

/// The labels of an image, in pixels of an image of this size.
struct OfImage<'c> {
    image: &'c str,
    unit: BoxUnit,
    size: Option<[u32; 2]>,
    added_score: Option<f64>,
}

impl OfImage<'_> {
    /// The labels that exist, with their positions in the file.
    fn labels<'f>(&self, file: &'f TextFile) -> impl Iterator<Item = (usize, &'f PlacedLabel)> {
        let positions = file.of_image.get(self.image).map_or(&[][..], Vec::as_slice);
        let labels = positions.iter().map(|at| (*at, &file.labels[*at]));
        labels.filter(|(_, placed)| !matches!(placed.state, State::Deleted(_)))
    }

    /// The labels that exist, with their positions in the file.
    fn in_pixels(&self, file: &TextFile) -> impl Iterator<Item = (usize, Label)> {
        self.labels(file).filter_map(|(at, placed)| {
            let bbox = in_pixels(placed.bounds, self.unit, self.size)?;
            Some((at, Label { class: placed.class.clone(), bbox }))
        })
    }

    /// A box in the unit of the file.
    fn in_unit(&self, [x, y, width, height]: [f64; 4]) -> ExactBox {
        match (self.unit, self.size.map(|size| size.map(f64::from))) {
            (BoxUnit::Fractions, Some([columns, rows])) => [x / columns, y / rows, width / columns, height / rows],
            _ => [x, y, width, height],
        }
        .into()
    }

    /// Changes the label at this position, or adds one.
    fn change<F: TextFormat>(
        &self,
        format: &F,
        file: &mut TextFile,
        change: &LabelChange,
        at: Option<usize>,
    ) -> Result<Applied, String> {
        match (at, &change.before, &change.after) {
            (Some(at), Some(before), Some(after)) => {
                let class = (after.class != before.class).then_some(after.class.as_str());
                let bounds = (after.bbox != before.bbox).then(|| self.in_unit(after.bbox));
                if class.is_none() && bounds.is_none() {
                    return Ok(Applied::Unchanged);
                }
                let text = file.labels[at].text(&file.text);
                let (text, lost_mask) = format.changed(&LabelEdit { file: &file.text, text, class, bounds })?;
                let label = &mut file.labels[at];
                label.state = State::Changed(text);
                label.bounds = bounds.unwrap_or(label.bounds);
                label.class.clone_from(&after.class);
                Ok(Applied::Changed { lost_mask })
            }
            (Some(at), ..) => {
                let is_last = self.labels(file).count() == 1;
                let text = format.deleted(file.labels[at].text(&file.text), is_last);
                file.labels[at].state = State::Deleted(text);
                Ok(Applied::Changed { lost_mask: false })
            }
            (None, _, after) => {
                let after = after.as_ref().ok_or("an added label needs “after”")?;
                let bounds = self.in_unit(after.bbox);
                let (image, class, size, score) = (self.image, &*after.class, self.size, self.added_score);
                let new = NewLabel { image, class, bounds, size, score };
                let (position, text) = format.added(&file.text, &new)?;
                let label = PlacedLabel::new(self.image.to_owned(), after.class.clone(), bounds, position..position);
                file.push(PlacedLabel { state: State::Changed(text), ..label });
                Ok(Applied::Changed { lost_mask: false })
            }
        }
    }
}

impl<F: TextFormat> Labels for TextLabels<F> {
    fn apply(&mut self, mut changes: Vec<LabelChange>, added_score: Option<f64>) -> Vec<Result<Applied, String>> {
        let Some(LabelChange { image, size, .. }) = changes.first().cloned() else { return Vec::new() };
        let of_image = OfImage { image: &image, unit: self.format.unit(), size, added_score };
        let file = match (self.file_of.get(&image), &self.unlisted) {
            (Some(Ok(file)), _) | (None, Some(file)) => &mut self.files[*file],
            (Some(Err(reason)), _) => {
                let reason = format!("the labels of the image cannot be read: {reason}");
                return vec![Err(reason); changes.len()];
            }
            (None, None) => return vec![Err("the ground truth has no such image".to_owned()); changes.len()],
        };
        if of_image.unit == BoxUnit::Fractions && size.is_none_or(|size| size.contains(&0)) {
            let reason = "“size”, the width and height of the image, is missing";
            return vec![Err(reason.to_owned()); changes.len()];
        }
        for LabelChange { before, after, near, .. } in &mut changes {
            for label in near.iter_mut().chain(before.as_mut()).chain(after.as_mut()) {
                label.class = self.format.class_as_read(&label.class);
            }
            if let Some(after) = after.as_mut().filter(|after| before.as_ref().is_none_or(|one| one.bbox != after.bbox))
            {
                after.bbox = self.format.stored(after.bbox);
            }
        }
        let (positions, labels): (Vec<usize>, Vec<Label>) = of_image.in_pixels(file).unzip();
        let steps = steps(&changes, &labels);
        let mut outcomes = Vec::new();
        for (change, step) in changes.iter().zip(steps) {
            outcomes.push(step.and_then(|step| match step {
                Step::Unchanged => Ok(Applied::Unchanged),
                Step::Apply(at) => of_image.change(&self.format, file, change, at.map(|at| positions[at])),
            }));
        }
        outcomes
    }

    fn finish(self: Box<Self>) -> Result<Corrected, LabelPatchError> {
        if self.output == Output::File {
            return Ok(Corrected::File(self.files.first().map(TextFile::content).unwrap_or_default()));
        }
        let mut changed = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.is_changed()) {
            if !is_inside(&file.name) {
                return Err(LabelPatchError::Outside(file.name.clone()));
            }
            changed.insert(file.name.clone(), file.content());
        }
        Ok(Corrected::Folder(changed))
    }
}

/// Whether a path from a file stays below the folder that it is joined to.
fn is_inside(name: &str) -> bool {
    let path = std::path::Path::new(name);
    !name.is_empty() && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// The number of a class without a name: 7 and “class 7” are the same.
pub(super) fn number_of(class: &str) -> Option<i64> {
    let text = class.strip_prefix("class ").unwrap_or(class);
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// The name of a class that has only a number.
pub(super) fn unnamed(number: i64) -> String {
    class_name(&TruthLabel { number: Some(number), name: None })
}

/// The line break of a text.
pub(super) fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
