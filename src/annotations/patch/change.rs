//! A line of the list of changes: what it needs to be one, and how its box fits the image.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{BoundingBox, ExactBox};

/// Beyond any image, in pixels.
const FARTHEST: f64 = 1e7;
/// The largest distance of an edge, in pixels, between equal boxes: files round fractions.
const SAME_EDGE: f64 = 0.02;
/// How much (IoU) the boxes of labels overlap that may be the same, or how close their edges are in pixels.
const SAME_OBJECT: f32 = 0.5;
const NEAR_EDGE: f64 = 1.0;

/// A line of the file of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// As the ground truth names it.
    pub image: String,
    /// COCO's id of the label; `None` for an added one, and in other formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    pub change: ChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Label>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Label>,
    /// In formats without ids, the other labels that the image had before any change at about the same place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Label>,
    /// The number of equal lines in the list, itself included, if there are several: a part of a list may lack some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal: Option<usize>,
    /// Width and height of the image, where the ground truth has boxes as fractions of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[u32; 2]>,
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
#[serde(deny_unknown_fields, expecting = "a label, an object with “class” and “bbox”")]
pub struct Label {
    pub class: String,
    /// Left, top, width, height in pixels.
    pub bbox: [f64; 4],
}

/// A change as it is applied.
pub(super) struct Fitted {
    pub change: LabelChange,
    /// Its new box extended beyond the image.
    pub is_clipped: bool,
}

impl LabelChange {
    /// Reads a line.
    ///
    /// # Errors
    /// It is not a change; a message to follow the line number.
    pub fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| {
            let message = error.to_string();
            let reason = message.split(" at line ").next().unwrap_or_default();
            format!("is not JSON: {reason} at column {}", error.column())
        })?;
        if !value.is_object() {
            return Err(
                "is not a change: it needs an object with “image”, “change”, and “before” or “after”".to_owned()
            );
        }
        Self::deserialize(value).map_err(|error| format!("is not a change: {error}"))
    }

    /// Whether both do the same to labels that cannot be told apart.
    pub fn has_same_labels(&self, other: &Self) -> bool {
        self.id.is_none() && other.id.is_none() && [&self.before, &self.after] == [&other.before, &other.after]
    }

    /// The change of an image of this size, if known. Unless only the class changes, the new box is clipped.
    ///
    /// # Errors
    /// It is not a change, is for an image of another size, or its new box is outside the image.
    pub(super) fn fitted(&self, size: Option<[u32; 2]>) -> Result<Fitted, String> {
        self.check()?;
        if let (Some(stated @ [width, height]), Some(size @ [columns, rows])) = (self.size, size)
            && stated != size
        {
            return Err(format!(
                "“size” is {width} × {height}, but the image is {columns} × {rows} pixels in the ground truth or in \
                 another change; correct one of them, or list the changes again"
            ));
        }
        let mut change = Self { size, ..self.clone() };
        let Some(after) = change.after.as_mut().filter(|_| self.change != ChangeKind::Class) else {
            return Ok(Fitted { change, is_clipped: false });
        };
        let stated = after.clone();
        let limits = size.map_or([f64::INFINITY; 2], |size| size.map(f64::from));
        for (axis, limit) in limits.into_iter().enumerate() {
            let [low, length] = [axis, axis + 2].map(|at| stated.bbox[at]);
            if low < 0.0 || low + length > limit {
                let [start, end] = [low, low + length].map(|edge| edge.clamp(0.0, limit));
                [after.bbox[axis], after.bbox[axis + 2]] = [start, end - start];
            }
        }
        if after.bbox[2] <= 0.0 || after.bbox[3] <= 0.0 {
            let size = size.map(|[width, height]| format!(", which is {width} × {height} pixels"));
            return Err(format!("the box of “after” is outside the image{}", size.unwrap_or_default()));
        }
        let is_clipped = !after.has_edges(&stated, SAME_EDGE);
        Ok(Fitted { change, is_clipped })
    }

    /// Why this is not a change; `Ok` if its kind has the label before and after that it needs.
    fn check(&self) -> Result<(), String> {
        let is_moved = |before: &Label, after: &Label| before.bbox != after.bbox;
        let needs = match (self.change, &self.before, &self.after) {
            (ChangeKind::Added, None, Some(_)) if self.id.is_none() => None,
            (ChangeKind::Deleted, Some(_), None) => None,
            (ChangeKind::Class, Some(before), Some(after)) if !is_moved(before, after) => None,
            (ChangeKind::Moved, Some(before), Some(after)) if is_moved(before, after) => None,
            (ChangeKind::Added, ..) => Some("“added” needs “after”, without “id” and “before”"),
            (ChangeKind::Deleted, ..) => Some("“deleted” needs “before”, without “after”"),
            (ChangeKind::Class, ..) => Some("“class” needs “before”, and “after” with the same “bbox”"),
            (ChangeKind::Moved, ..) => Some("“moved” needs “before”, and “after” with another “bbox”"),
        };
        let is_possible = |label: &Label| {
            let [_, _, width, height] = label.bbox;
            let is_near = label.bbox.iter().all(|value| value.abs() < FARTHEST);
            let has_area = is_near && width > 0.0 && height > 0.0;
            !label.class.trim().is_empty() && (has_area || self.change == ChangeKind::Class)
        };
        match needs {
            Some(needs) => Err(needs.to_owned()),
            None if self.after.as_ref().is_some_and(|after| !is_possible(after)) => {
                Err("“after” needs a class, and a box of positive size".to_owned())
            }
            None => Ok(()),
        }
    }
}

impl Label {
    pub fn new(class: &str, bounds: BoundingBox) -> Self {
        let [x1, y1, x2, y2] = <[f32; 4]>::from(bounds).map(f64::from);
        Self { class: class.to_owned(), bbox: [x1, y1, x2 - x1, y2 - y1] }
    }

    pub fn bounds(&self) -> ExactBox {
        self.bbox.into()
    }

    fn has_edges(&self, other: &Self, tolerance: f64) -> bool {
        let edges = |[x, y, width, height]: [f64; 4]| [x, y, x + width, y + height];
        edges(self.bbox).into_iter().zip(edges(other.bbox)).all(|(one, other)| (one - other).abs() <= tolerance)
    }

    /// Whether both labels are equal, but for rounding.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.class == other.class && self.has_edges(other, SAME_EDGE)
    }

    /// Whether both may be labels of the same object.
    pub fn is_near(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|label| BoundingBox::from(label.bounds()));
        one.iou(&two) >= SAME_OBJECT || self.has_edges(other, NEAR_EDGE)
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
