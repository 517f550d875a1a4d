//! Changes in a COCO file: labels are found by id, and all other fields stay as they are.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Applied, Corrected, ImageLabels, KnownLabel, Label, LabelChange, LabelPatchError, Labels};
use crate::annotations::coco::tail_of_url;
use crate::annotations::json::Scalar;
use crate::annotations::rows::BOM;
use crate::domain::AnnotatedImageId as Id;

/// A COCO file of labels.
pub(super) struct CocoLabels {
    root: Map<String, Value>,
    /// The positions of the labels with each id.
    positions: HashMap<Id, Vec<usize>>,
    /// The positions of the labels of each image.
    of_image: HashMap<Id, Vec<usize>>,
    /// The ids of the images with each name.
    image_ids: HashMap<String, Vec<Value>>,
    free_ids: FreeIds,
}

/// A list of the file.
fn list<'v>(root: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    root.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An id as readers compare it: 12, 12.0 and "12" are the same.
fn id_of(value: &Value) -> Id {
    let id = Scalar::deserialize(value).ok().and_then(|scalar| scalar.into_id("id").ok());
    id.unwrap_or_else(|| Id::Text(value.to_string()))
}

/// The name of an image, as readers find it.
fn name_of(image: &Value) -> &str {
    let name = image["file_name"].as_str().filter(|name| !name.is_empty());
    name.or_else(|| image["coco_url"].as_str().map(tail_of_url)).unwrap_or_default()
}

impl CocoLabels {
    /// # Errors
    /// It is not a COCO file with images, annotations and categories.
    pub(super) fn parse(content: &[u8]) -> Result<Self, LabelPatchError> {
        let content = content.strip_prefix(BOM).unwrap_or(content);
        let root: Map<String, Value> =
            serde_json::from_slice(content).map_err(|error| LabelPatchError::NoCoco(error.to_string()))?;
        for key in ["images", "annotations", "categories"] {
            if !root.get(key).is_some_and(Value::is_array) {
                return Err(LabelPatchError::NoCoco(format!("it has no list of {key}")));
            }
        }
        let (mut positions, mut of_image) = (HashMap::<Id, Vec<usize>>::new(), HashMap::<Id, Vec<usize>>::new());
        for (position, annotation) in list(&root, "annotations").iter().enumerate() {
            positions.entry(id_of(&annotation["id"])).or_default().push(position);
            of_image.entry(id_of(&annotation["image_id"])).or_default().push(position);
        }
        let mut image_ids: HashMap<String, Vec<Value>> = HashMap::new();
        for image in list(&root, "images") {
            image_ids.entry(name_of(image).to_owned()).or_default().push(image["id"].clone());
        }
        let free_ids = FreeIds::new(positions.keys());
        Ok(Self { root, positions, of_image, image_ids, free_ids })
    }

    /// Category names by id.
    fn classes(&self) -> HashMap<Id, &str> {
        list(&self.root, "categories")
            .iter()
            .filter_map(|category| Some((id_of(&category["id"]), category["name"].as_str()?)))
            .collect()
    }

    /// The labels of each image.
    pub(super) fn images(&self) -> Vec<ImageLabels> {
        let classes = self.classes();
        let annotations = list(&self.root, "annotations");
        let mut of_image = self.of_image.clone();
        let known = |position: usize| {
            let Label { class, bbox } = label_of(&annotations[position], &classes)?;
            Some(KnownLabel { id: annotations[position]["id"].clone(), class, bounds: bbox.into() })
        };
        let mut image = |image: &Value| {
            let positions = of_image.remove(&id_of(&image["id"])).unwrap_or_default();
            ImageLabels { name: name_of(image).to_owned(), labels: positions.into_iter().filter_map(known).collect() }
        };
        list(&self.root, "images").iter().map(&mut image).collect()
    }

    fn change_label(&mut self, change: &LabelChange, id: &Value) -> Result<Applied, String> {
        let position = match self.positions.get(&id_of(id)).map_or(&[][..], Vec::as_slice) {
            [position] => *position,
            [] if change.after.is_none() => return Ok(Applied::Unchanged),
            [] => return Err("the file has no label with this id".to_owned()),
            _ => return Err("the file has several labels with this id".to_owned()),
        };
        let annotation = &list(&self.root, "annotations")[position];
        let image_id = id_of(&annotation["image_id"]);
        let mut image_ids = self.image_ids.get(&change.image).into_iter().flatten();
        if !annotation.is_null() && image_ids.all(|id| id_of(id) != image_id) {
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

    fn add_label(&mut self, change: &LabelChange, score: Option<f64>) -> Result<Applied, String> {
        let after = change.after.as_ref().ok_or("an added label needs “after”")?;
        let image_id = self.image_ids.get(&change.image).and_then(|ids| ids.first());
        let image_id = image_id.ok_or("the file has no such image")?.clone();
        let classes = self.classes();
        let annotations = list(&self.root, "annotations");
        let mut of_image = self.of_image.get(&id_of(&image_id)).into_iter().flatten();
        if of_image.any(|position| label_of(&annotations[*position], &classes).as_ref() == Some(after)) {
            return Ok(Applied::Unchanged);
        }
        let category = self.category(&after.class);
        let [_, _, width, height] = after.bbox;
        let mut annotation = json!({
            "id": self.free_ids.take(), "image_id": image_id, "category_id": category, "bbox": after.bbox,
            "area": width * height, "iscrowd": 0, "segmentation": [],
        });
        if let Some(score) = score {
            annotation["score"] = json!(score);
        }
        if let Some(annotations) = self.root.get_mut("annotations").and_then(Value::as_array_mut) {
            self.of_image.entry(id_of(&image_id)).or_default().push(annotations.len());
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
        let ids: Vec<Id> = categories.iter().map(|category| id_of(&category["id"])).collect();
        let id = json!(FreeIds::new(&ids).take());
        if let Some(categories) = self.root.get_mut("categories").and_then(Value::as_array_mut) {
            categories.push(json!({ "id": id, "name": class, "supercategory": "" }));
        }
        id
    }
}

impl Labels for CocoLabels {
    fn apply(&mut self, changes: Vec<LabelChange>, added_score: Option<f64>) -> Vec<Result<Applied, String>> {
        let mut apply = |change: &LabelChange| match (&change.id, &change.before) {
            (Some(id), _) => self.change_label(change, id),
            (None, Some(_)) => Err("a change of a COCO label needs its “id”".to_owned()),
            (None, None) => self.add_label(change, added_score),
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

/// Ids for new entries: after the largest, or the first free ones if there is none after it.
struct FreeIds {
    next: i64,
    taken: HashSet<i64>,
}

impl FreeIds {
    fn new<'i>(ids: impl IntoIterator<Item = &'i Id>) -> Self {
        let number = |id: &Id| if let Id::Number(number) = id { Some(*number) } else { None };
        let taken: HashSet<i64> = ids.into_iter().filter_map(number).collect();
        let largest = taken.iter().copied().max().unwrap_or_default();
        Self { next: largest.saturating_add(1).max(1), taken }
    }

    fn take(&mut self) -> i64 {
        while !self.taken.insert(self.next) {
            self.next = self.next.checked_add(1).unwrap_or(1);
        }
        self.next
    }
}

fn has_mask(annotation: &Value) -> bool {
    match &annotation["segmentation"] {
        Value::Array(polygons) => !polygons.is_empty(),
        segmentation => segmentation.is_object(),
    }
}

fn label_of(annotation: &Value, classes: &HashMap<Id, &str>) -> Option<Label> {
    let class = (*classes.get(&id_of(&annotation["category_id"]))?).to_owned();
    let edges: Vec<f64> = annotation["bbox"].as_array()?.iter().filter_map(Value::as_f64).collect();
    Some(Label { class, bbox: edges.try_into().ok()? })
}
