//! Changes in a COCO file: labels are found by id, and all other fields stay as they are.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::rows::BOM;
use super::{Applied, Corrected, ImageLabels, KnownLabel, Label, LabelChange, LabelPatchError, Labels};

/// A COCO file of labels.
pub(super) struct CocoLabels {
    root: Map<String, Value>,
    /// The positions of the labels with each id.
    positions: HashMap<String, Vec<usize>>,
}

/// A list of the file.
fn list<'v>(root: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    root.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl CocoLabels {
    /// # Errors
    /// It is no COCO file with images, annotations and categories.
    pub(super) fn parse(content: &[u8]) -> Result<Self, LabelPatchError> {
        let content = content.strip_prefix(BOM).unwrap_or(content);
        let root: Map<String, Value> =
            serde_json::from_slice(content).map_err(|error| LabelPatchError::NoCoco(error.to_string()))?;
        for key in ["images", "annotations", "categories"] {
            if !root.get(key).is_some_and(Value::is_array) {
                return Err(LabelPatchError::NoCoco(format!("it has no list of {key}")));
            }
        }
        let mut positions: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, annotation) in list(&root, "annotations").iter().enumerate() {
            positions.entry(annotation["id"].to_string()).or_default().push(position);
        }
        Ok(Self { root, positions })
    }

    /// Category names by id.
    fn classes(&self) -> HashMap<String, &str> {
        list(&self.root, "categories")
            .iter()
            .filter_map(|category| Some((category["id"].to_string(), category["name"].as_str()?)))
            .collect()
    }

    /// The labels of each image.
    pub(super) fn images(&self) -> Vec<ImageLabels> {
        let classes = self.classes();
        let mut labels: HashMap<String, Vec<KnownLabel>> = HashMap::new();
        for annotation in list(&self.root, "annotations") {
            if let Some(Label { class, bbox }) = label_of(annotation, &classes) {
                let known = KnownLabel { id: annotation["id"].clone(), class, bounds: bbox.into() };
                labels.entry(annotation["image_id"].to_string()).or_default().push(known);
            }
        }
        let image = |image: &Value| ImageLabels {
            name: image["file_name"].as_str().unwrap_or_default().to_owned(),
            labels: labels.remove(&image["id"].to_string()).unwrap_or_default(),
        };
        list(&self.root, "images").iter().map(image).collect()
    }

    fn change_label(&mut self, change: &LabelChange, id: &Value) -> Result<Applied, String> {
        let position = match self.positions.get(&id.to_string()).map_or(&[][..], Vec::as_slice) {
            [position] => *position,
            [] if change.after.is_none() => return Ok(Applied::Unchanged),
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
            return Ok(Applied::Unchanged);
        }
        if current != change.before {
            return Err("the label has changed since the review".to_owned());
        }
        let category = change.after.as_ref().map(|after| self.category(&after.class));
        let Some(annotation) = self.root.get_mut("annotations").and_then(|annotations| annotations.get_mut(position))
        else {
            return Ok(Applied::Unchanged);
        };
        let mut lost_mask = false;
        match (&change.after, category) {
            (Some(after), Some(category)) => {
                annotation["category_id"] = category;
                if change.before.as_ref().is_some_and(|before| before.bbox != after.bbox) {
                    lost_mask = has_mask(annotation);
                    annotation["bbox"] = json!(after.bbox);
                    annotation["area"] = json!(after.bbox[2] * after.bbox[3]);
                    annotation["segmentation"] = json!([]);
                }
            }
            _ => *annotation = Value::Null,
        }
        Ok(Applied::Changed { lost_mask })
    }

    fn add_label(&mut self, change: &LabelChange) -> Result<Applied, String> {
        let after = change.after.as_ref().ok_or("an added label needs “after”")?;
        let image = list(&self.root, "images").iter().find(|image| image["file_name"] == *change.image);
        let image_id = image.ok_or("the file has no such image")?["id"].clone();
        let classes = self.classes();
        let annotations = list(&self.root, "annotations");
        let mut of_image = annotations.iter().filter(|annotation| annotation["image_id"] == image_id);
        if of_image.any(|annotation| label_of(annotation, &classes).as_ref() == Some(after)) {
            return Ok(Applied::Unchanged);
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
        Ok(Applied::Changed { lost_mask: false })
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

impl Labels for CocoLabels {
    fn apply(&mut self, changes: Vec<LabelChange>) -> Vec<Result<Applied, String>> {
        let mut apply = |change: &LabelChange| match (&change.id, &change.before) {
            (Some(id), _) => self.change_label(change, id),
            (None, Some(_)) => Err("a change of a COCO label needs its “id”".to_owned()),
            (None, None) => self.add_label(change),
        };
        changes.iter().map(&mut apply).collect()
    }

    fn finish(mut self: Box<Self>) -> Result<Corrected, LabelPatchError> {
        if let Some(annotations) = self.root.get_mut("annotations").and_then(Value::as_array_mut) {
            annotations.retain(|annotation| !annotation.is_null());
        }
        let text = serde_json::to_string(&self.root).expect("it was read from JSON") + "\n";
        Ok(Corrected::File(text.into_bytes()))
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
