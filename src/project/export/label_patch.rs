//! What a review changed in a COCO file of labels, one change per line, and back into a file.
//!
//! A change names its label by COCO's id and repeats what the label was, so that a file that has changed meanwhile is
//! noticed. Everything else in the file stays as it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::annotations::matching::{Folders, ImageKey, ImageMatches};
use crate::domain::{BoundingBox, Detection, Prediction, RunId, SampleUri, Verdict, VerdictTarget};
use crate::project::{Project, StoreError};

/// The largest distance of an edge, in pixels, between a label in the file and in the project, which has 32 bits.
const SAME_EDGE: f32 = 0.01;

/// Beyond any image, in pixels.
const FARTHEST: f64 = 1e7;

/// A line of the file of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// COCO's `file_name`.
    pub image: String,
    /// COCO's id of the label; `None` for an added one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    pub change: ChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Label>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Label>,
    /// The reviewer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Deleted,
    /// Another class.
    Class,
    /// Another position, and perhaps another class.
    Moved,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    pub class: String,
    /// Left, top, width, height in pixels, as in the file.
    pub bbox: [f64; 4],
}

impl LabelChange {
    /// Why this is no change; `Ok` if its kind has the label before and after that it needs.
    fn check(&self) -> Result<(), String> {
        let is_moved = |before: &Label, after: &Label| before.bbox != after.bbox;
        let needs = match (self.change, &self.id, &self.before, &self.after) {
            (ChangeKind::Added, None, None, Some(_)) | (ChangeKind::Deleted, Some(_), Some(_), None) => None,
            (ChangeKind::Class, Some(_), Some(before), Some(after)) if !is_moved(before, after) => None,
            (ChangeKind::Moved, Some(_), Some(before), Some(after)) if is_moved(before, after) => None,
            (ChangeKind::Added, ..) => Some("“added” needs “after”, without “id” and “before”"),
            (ChangeKind::Deleted, ..) => Some("“deleted” needs “id” and “before”, without “after”"),
            (ChangeKind::Class, ..) => Some("“class” needs “id”, “before”, and “after” with the same “bbox”"),
            (ChangeKind::Moved, ..) => Some("“moved” needs “id”, “before”, and “after” with another “bbox”"),
        };
        let is_possible = |label: &Label| {
            let [x, y, width, height] = label.bbox;
            let is_near = label.bbox.iter().all(|value| value.abs() < FARTHEST);
            let is_in_image = is_near && x >= 0.0 && y >= 0.0 && width > 0.0 && height > 0.0;
            !label.class.trim().is_empty() && (is_in_image || self.change == ChangeKind::Class)
        };
        match needs {
            Some(needs) => Err(needs.to_owned()),
            None if self.after.as_ref().is_some_and(|after| !is_possible(after)) => {
                Err("“after” needs a class, and a box of positive size in the image".to_owned())
            }
            None => Ok(()),
        }
    }
}

impl Label {
    fn new(class: &str, bounds: BoundingBox) -> Self {
        let [x1, y1, x2, y2] = <[f32; 4]>::from(bounds).map(f64::from);
        Self { class: class.to_owned(), bbox: [x1, y1, x2 - x1, y2 - y1] }
    }

    /// Whether this is the label of a detection, which may have been clipped.
    fn is_of(&self, detection: &Detection, prediction: &Prediction) -> bool {
        let [x, y, width, height] = self.bbox;
        let bounds = BoundingBox::from([x, y, x + width, y + height].map(|edge| edge as f32));
        let edges = |bounds: BoundingBox| <[f32; 4]>::from(bounds.clipped(prediction.width, prediction.height));
        let near =
            edges(bounds).into_iter().zip(edges(detection.bounds)).all(|(one, other)| (one - other).abs() <= SAME_EDGE);
        near && self.class == detection.label
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LabelPatchError {
    #[error("only changes of COCO files are supported, and this is no COCO file: {0}")]
    NoCoco(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a review changed.
#[derive(Debug, Default)]
pub struct LabelChanges {
    pub changes: Vec<LabelChange>,
    /// Judged labels that the file does not have, or that have no id; whole phrases.
    pub unknown: Vec<String>,
}

/// What became of the changes.
#[derive(Debug, Default)]
pub struct AppliedChanges {
    pub applied: usize,
    /// Changes that the file already contains.
    pub unchanged: usize,
    /// Lines that do not fit the file, with the reason.
    pub conflicts: Vec<(u64, String)>,
    /// Moved labels whose mask was removed, because it no longer fits.
    pub masks: usize,
}

/// A COCO file of labels.
pub struct CocoLabels {
    root: Map<String, Value>,
}

/// A list of the file.
fn list<'v>(root: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    root.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl CocoLabels {
    /// # Errors
    /// It is no COCO file with images, annotations and categories.
    pub fn parse(content: &[u8]) -> Result<Self, LabelPatchError> {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let root: Map<String, Value> =
            serde_json::from_slice(content).map_err(|error| LabelPatchError::NoCoco(error.to_string()))?;
        for key in ["images", "annotations", "categories"] {
            if !root.get(key).is_some_and(Value::is_array) {
                return Err(LabelPatchError::NoCoco(format!("it has no list of {key}")));
            }
        }
        Ok(Self { root })
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.root).expect("it was read from JSON") + "\n"
    }

    /// Category names by id.
    fn classes(&self) -> HashMap<String, &str> {
        list(&self.root, "categories")
            .iter()
            .filter_map(|category| Some((category["id"].to_string(), category["name"].as_str()?)))
            .collect()
    }

    /// What the verdicts on a run of these labels change.
    ///
    /// # Errors
    /// The project cannot be read.
    pub fn changes(&self, project: &Project, run: RunId) -> Result<LabelChanges, LabelPatchError> {
        let judged = project.judgments()?;
        let judged: Vec<_> = judged
            .into_iter()
            .filter(|judged| judged.verdicts.iter().any(|(target, _)| target.run == Some(run)))
            .collect();
        let reviewers = project.reviewers(run)?;
        let uris: Vec<SampleUri> = judged.iter().map(|judged| judged.sample.clone()).collect();
        let root = project.root();
        let names: Vec<String> = uris.iter().map(|uri| uri.name_below(root.as_deref())).collect();
        let images = list(&self.root, "images");
        let in_file = images.iter().map(|image| ImageKey::named(image["file_name"].as_str().unwrap_or_default()));
        let in_file: Vec<ImageKey> = in_file.collect();
        let own: Vec<ImageKey> = names.iter().map(|name| ImageKey::named(name)).collect();
        let matches = ImageMatches::between(&own, &in_file, Folders::Agree);
        let mut labels = self.labels_of_images();
        let mut found = LabelChanges::default();
        let predictions = project.predictions(run, &uris)?;
        for (((judged, name), matched), prediction) in judged.iter().zip(&names).zip(&matches.left).zip(predictions) {
            let (Ok((image, _)), Some(Ok(prediction))) = (matched, prediction.map(|found| found.result)) else {
                found.unknown.push(format!("{name}: the file has no such image"));
                continue;
            };
            let image = &images[*image as usize];
            let labels = labels.remove(&image["id"].to_string()).unwrap_or_default();
            let author = |target: &VerdictTarget| reviewers.get(&(judged.sample.clone(), *target)).cloned();
            let of_run = judged.verdicts.iter().filter(|(target, _)| target.run == Some(run));
            let verdicts = of_run.map(|(target, verdict)| (target.box_index, verdict, author(target))).collect();
            let image = image["file_name"].as_str().unwrap_or_default();
            let review = ImageReview { image, prediction: &prediction, labels, verdicts };
            review.add_changes(&mut found);
        }
        Ok(found)
    }

    /// The id and content of each label, by the id of its image.
    fn labels_of_images(&self) -> HashMap<String, Vec<(&Value, Label)>> {
        let classes = self.classes();
        let mut labels: HashMap<String, Vec<(&Value, Label)>> = HashMap::new();
        for annotation in list(&self.root, "annotations") {
            if let Some(label) = label_of(annotation, &classes) {
                labels.entry(annotation["image_id"].to_string()).or_default().push((&annotation["id"], label));
            }
        }
        labels
    }

    /// Applies changes with their line numbers.
    pub fn apply(&mut self, changes: &[(u64, LabelChange)]) -> AppliedChanges {
        let mut outcome = AppliedChanges::default();
        let mut positions: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, annotation) in list(&self.root, "annotations").iter().enumerate() {
            positions.entry(annotation["id"].to_string()).or_default().push(position);
        }
        for (line, change) in changes {
            let applied = change.check().and_then(|()| match &change.id {
                Some(id) => {
                    self.change_label(change, positions.get(&id.to_string()).map_or(&[], Vec::as_slice), &mut outcome)
                }
                None => self.add_label(change),
            });
            match applied {
                Ok(true) => outcome.applied += 1,
                Ok(false) => outcome.unchanged += 1,
                Err(reason) => outcome.conflicts.push((*line, reason)),
            }
        }
        if let Some(annotations) = self.root.get_mut("annotations").and_then(Value::as_array_mut) {
            annotations.retain(|annotation| !annotation.is_null());
        }
        outcome
    }

    /// False if the file has the change already.
    fn change_label(
        &mut self,
        change: &LabelChange,
        positions: &[usize],
        outcome: &mut AppliedChanges,
    ) -> Result<bool, String> {
        let position = match positions {
            [position] => *position,
            [] if change.after.is_none() => return Ok(false),
            [] => return Err("the file has no label with this id".to_owned()),
            _ => return Err("the file has several labels with this id".to_owned()),
        };
        let annotation = &list(&self.root, "annotations")[position];
        let mut images = list(&self.root, "images").iter().filter(|image| image["id"] == annotation["image_id"]);
        if !annotation.is_null() && images.all(|image| image["file_name"] != *change.image) {
            return Err("the label with this id is of another image".to_owned());
        }
        let current = label_of(annotation, &self.classes());
        if current.is_some() && current == change.after || current.is_none() && change.after.is_none() {
            return Ok(false);
        }
        if current != change.before {
            return Err("the label has changed since the review".to_owned());
        }
        let category = change.after.as_ref().map(|after| self.category(&after.class));
        let Some(annotation) = self.root.get_mut("annotations").and_then(|annotations| annotations.get_mut(position))
        else {
            return Ok(false);
        };
        match (&change.after, category) {
            (Some(after), Some(category)) => {
                annotation["category_id"] = category;
                if change.before.as_ref().is_some_and(|before| before.bbox != after.bbox) {
                    outcome.masks += usize::from(has_mask(annotation));
                    annotation["bbox"] = json!(after.bbox);
                    annotation["area"] = json!(after.bbox[2] * after.bbox[3]);
                    annotation["segmentation"] = json!([]);
                }
            }
            _ => *annotation = Value::Null,
        }
        Ok(true)
    }

    /// False if the file has the label already.
    fn add_label(&mut self, change: &LabelChange) -> Result<bool, String> {
        let after = change.after.as_ref().ok_or("an added label needs “after”")?;
        let image = list(&self.root, "images").iter().find(|image| image["file_name"] == *change.image);
        let image_id = image.ok_or("the file has no such image")?["id"].clone();
        let classes = self.classes();
        let annotations = list(&self.root, "annotations");
        let mut of_image = annotations.iter().filter(|annotation| annotation["image_id"] == image_id);
        if of_image.any(|annotation| label_of(annotation, &classes).as_ref() == Some(after)) {
            return Ok(false);
        }
        let id = next_id(annotations);
        let category = self.category(&after.class);
        let [_, _, width, height] = after.bbox;
        let annotation = json!({
            "id": id, "image_id": image_id, "category_id": category, "bbox": after.bbox, "area": width * height,
            "iscrowd": 0, "segmentation": [],
        });
        if let Some(annotations) = self.root.get_mut("annotations").and_then(Value::as_array_mut) {
            annotations.push(annotation);
        }
        Ok(true)
    }

    /// The id of a class, which is added if necessary.
    fn category(&mut self, class: &str) -> Value {
        let categories = list(&self.root, "categories");
        if let Some(known) = categories.iter().find(|category| category["name"] == class) {
            return known["id"].clone();
        }
        let id = json!(next_id(categories));
        if let Some(categories) = self.root.get_mut("categories").and_then(Value::as_array_mut) {
            categories.push(json!({ "id": id, "name": class, "supercategory": "" }));
        }
        id
    }
}

fn next_id(entries: &[Value]) -> u64 {
    // Some files have ids in quotes, which stand for the same.
    let number = |id: &Value| id.as_u64().or_else(|| id.as_str()?.parse().ok());
    entries.iter().filter_map(|entry| number(&entry["id"])).max().map_or(1, |last| last.saturating_add(1))
}

fn has_mask(annotation: &Value) -> bool {
    match &annotation["segmentation"] {
        Value::Array(polygons) => !polygons.is_empty(),
        segmentation => segmentation.is_object(),
    }
}

fn label_of(annotation: &Value, classes: &HashMap<String, &str>) -> Option<Label> {
    let class = (*classes.get(&annotation["category_id"].to_string())?).to_owned();
    let edges: Vec<f64> = annotation["bbox"].as_array()?.iter().filter_map(Value::as_f64).collect();
    Some(Label { class, bbox: edges.try_into().ok()? })
}

/// The verdicts on the labels of an image.
struct ImageReview<'r> {
    image: &'r str,
    prediction: &'r Prediction,
    /// The id and content of each label in the file.
    labels: Vec<(&'r Value, Label)>,
    /// The box, verdict and reviewer.
    verdicts: Vec<(Option<u32>, &'r Verdict, Option<String>)>,
}

impl ImageReview<'_> {
    fn add_changes(&self, found: &mut LabelChanges) {
        let judged: HashSet<u32> = self.verdicts.iter().filter_map(|(index, ..)| *index).collect();
        let mut taken = HashSet::new();
        for (index, verdict, author) in &self.verdicts {
            match (index, verdict) {
                (None, Verdict::Reject) => {
                    let all = 0..self.prediction.detections().len() as u32;
                    for index in all.filter(|index| !judged.contains(index)) {
                        self.change(index, None, author.as_deref(), &mut taken, found);
                    }
                }
                (Some(_), Verdict::Added(drawn)) => found.changes.push(LabelChange {
                    image: self.image.to_owned(),
                    id: None,
                    change: ChangeKind::Added,
                    before: None,
                    after: Some(Label::new(drawn.class(), drawn.bounds())),
                    author: author.clone(),
                }),
                (Some(index), Verdict::Reject | Verdict::WrongClass(_) | Verdict::Moved(_)) => {
                    self.change(*index, Some(verdict), author.as_deref(), &mut taken, found);
                }
                _ => {}
            }
        }
    }

    /// Adds the change of a label; without a verdict, it is deleted.
    fn change(
        &self,
        index: u32,
        verdict: Option<&Verdict>,
        author: Option<&str>,
        taken: &mut HashSet<usize>,
        found: &mut LabelChanges,
    ) {
        let detection = self.prediction.detections().get(index as usize);
        let labels = self.labels.iter().enumerate();
        let mut same = labels.filter(|(at, (_, label))| {
            !taken.contains(at) && detection.is_some_and(|detection| label.is_of(detection, self.prediction))
        });
        let Some((at, (id, before))) = same.next() else {
            found.unknown.push(format!("{}: the file has no label like box {index}", self.image));
            return;
        };
        taken.insert(at);
        if id.is_null() {
            found.unknown.push(format!("{}: the label of box {index} has no id in the file", self.image));
            return;
        }
        let (change, after) = match verdict {
            Some(Verdict::WrongClass(class)) => {
                (ChangeKind::Class, Some(Label { class: class.clone(), bbox: before.bbox }))
            }
            Some(Verdict::Moved(drawn)) => {
                let after = Label::new(drawn.class(), drawn.bounds());
                let is_moved = after.bbox != before.bbox;
                (if is_moved { ChangeKind::Moved } else { ChangeKind::Class }, Some(after))
            }
            _ => (ChangeKind::Deleted, None),
        };
        found.changes.push(LabelChange {
            image: self.image.to_owned(),
            id: Some((*id).clone()),
            change,
            before: Some(before.clone()),
            after,
            author: author.map(str::to_owned),
        });
    }
}

/// The number of changes of each kind: “2 added, 1 moved”.
pub fn kinds_of(changes: &[LabelChange]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for change in changes {
        let kind = match change.change {
            ChangeKind::Added => "added",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Class => "with another class",
            ChangeKind::Moved => "moved",
        };
        *counts.entry(kind).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    parts.join(", ")
}
