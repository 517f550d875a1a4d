//! A mapping while it is edited: JSON pointers as typed, with the fields of both tasks.

use super::{
    JsonPlace, JsonPointer, MappedBoxFormat, MappedBoxSpace, MappedBoxes, MappedClasses, MappedContent, MappingFault,
    MappingField, OutputMapping, PlaceContent, ScoreValues,
};
use crate::domain::ModelTask;

/// The text that stands for the empty JSON pointer, which means the whole document.
pub const WHOLE_OUTPUT: &str = "the whole output";

/// The fields of an [`OutputMapping`]. Those of the other task are kept, so that nothing typed is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingDraft {
    pub name: String,
    /// If empty, the id is made from the name.
    pub id: String,
    pub task: ModelTask,
    pub classes: ClassesDraft,
    pub boxes: BoxesDraft,
}

/// JSON pointers, [`WHOLE_OUTPUT`], or empty for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassesDraft {
    pub scores: String,
    pub values: ScoreValues,
    pub classes: String,
    pub background: bool,
    pub best: String,
}

/// JSON pointers, [`WHOLE_OUTPUT`], or empty for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxesDraft {
    pub boxes: String,
    pub classes: String,
    pub scores: String,
    pub count: String,
    pub box_format: MappedBoxFormat,
    pub box_space: MappedBoxSpace,
    pub class_offset: i32,
}

impl Default for BoxesDraft {
    fn default() -> Self {
        Self {
            boxes: String::new(),
            classes: String::new(),
            scores: String::new(),
            count: String::new(),
            box_format: MappedBoxFormat::Xyxy,
            box_space: MappedBoxSpace::Pixels,
            class_offset: 0,
        }
    }
}

impl Default for MappingDraft {
    fn default() -> Self {
        Self {
            name: "My outputs".to_owned(),
            id: String::new(),
            task: ModelTask::Classification,
            classes: ClassesDraft::default(),
            boxes: BoxesDraft::default(),
        }
    }
}

impl From<&OutputMapping> for MappingDraft {
    fn from(mapping: &OutputMapping) -> Self {
        let text = |place: &JsonPointer| match place.as_str() {
            "" => WHOLE_OUTPUT.to_owned(),
            path => path.to_owned(),
        };
        let optional = |place: &Option<JsonPointer>| place.as_ref().map(text).unwrap_or_default();
        let mut draft =
            Self { name: mapping.name.clone(), id: mapping.id.clone(), task: mapping.task(), ..Self::default() };
        match &mapping.content {
            MappedContent::Classification(classes) => {
                draft.classes = ClassesDraft {
                    scores: optional(&classes.scores),
                    values: classes.values,
                    classes: optional(&classes.classes),
                    background: classes.background,
                    best: optional(&classes.best),
                };
            }
            MappedContent::Detection(boxes) => {
                draft.boxes = BoxesDraft {
                    boxes: text(&boxes.boxes),
                    classes: text(&boxes.classes),
                    scores: text(&boxes.scores),
                    count: optional(&boxes.count),
                    box_format: boxes.box_format,
                    box_space: boxes.box_space,
                    class_offset: boxes.class_offset,
                };
            }
        }
        draft
    }
}

impl MappingDraft {
    /// The mapping as entered, without labels, which are chosen separately.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn mapping(&self) -> Result<OutputMapping, MappingFault> {
        let name = self.name.trim();
        if name.is_empty() {
            return Err(MappingFault::new(MappingField::Name, "enter a name for the mapping"));
        }
        let prediction = match self.task {
            ModelTask::Classification => MappedContent::Classification(self.classes.mapped()?),
            ModelTask::Detection => MappedContent::Detection(self.boxes.mapped()?),
        };
        Ok(OutputMapping { id: self.id(), name: name.to_owned(), labels: None, content: prediction })
    }

    /// The typed id, or else one made from the name.
    pub fn id(&self) -> String {
        let typed = self.id.trim();
        if typed.is_empty() { id_of(&self.name) } else { typed.to_owned() }
    }

    /// Fills the empty fields with the most likely values for a prediction with these places.
    pub fn fill(&mut self, places: &[JsonPlace]) {
        match self.task {
            ModelTask::Classification => self.classes.fill(places),
            ModelTask::Detection => self.boxes.fill(places),
        }
    }

    /// The most likely mapping for a prediction with these places.
    pub fn from_places(places: &[JsonPlace]) -> Self {
        let has_boxes = places.iter().any(is_row);
        let mut draft =
            Self { task: if has_boxes { ModelTask::Detection } else { ModelTask::Classification }, ..Self::default() };
        draft.fill(places);
        draft
    }
}

impl ClassesDraft {
    fn mapped(&self) -> Result<MappedClasses, MappingFault> {
        let classes = MappedClasses {
            scores: place(&self.scores, MappingField::Scores)?,
            classes: place(&self.classes, MappingField::Classes)?,
            values: self.values,
            background: self.background,
            best: place(&self.best, MappingField::Best)?,
        };
        classes.check()?;
        Ok(classes)
    }

    fn fill(&mut self, places: &[JsonPlace]) {
        if !is_blank(&self.scores) || !is_blank(&self.classes) {
            return;
        }
        let texts = places.iter().find(|place| {
            let is_several = matches!(place.holds, PlaceContent::Texts { .. });
            is_several && place.is_called(&CLASS_WORDS)
        });
        let is_list = |place: &&JsonPlace| matches!(place.holds, PlaceContent::Numbers { count: 2.., .. });
        let lists = || places.iter().filter(is_list);
        let with_texts = texts.and_then(|texts| {
            let found = lists().find(|place| place.count() == texts.count())?;
            Some((texts, found))
        });
        let scores = match with_texts {
            Some((texts, scores)) => {
                self.classes = shown(texts);
                Some(scores)
            }
            None => lists()
                .find(|place| place.is_called(&SCORE_WORDS))
                .or_else(|| lists().max_by_key(|place| place.count())),
        };
        if let Some(scores) = scores {
            self.scores = shown(scores);
            self.values = if scores.are_parts() || !is_blank(&self.classes) {
                ScoreValues::Probabilities
            } else {
                ScoreValues::Logits
            };
        }
    }
}

impl BoxesDraft {
    fn mapped(&self) -> Result<MappedBoxes, MappingFault> {
        let needed = |text: &str, field, reason| place(text, field)?.ok_or_else(|| MappingFault::new(field, reason));
        Ok(MappedBoxes {
            boxes: needed(&self.boxes, MappingField::Boxes, "enter the path of the boxes (four numbers each)")?,
            classes: needed(&self.classes, MappingField::Classes, "enter the path of the class of each box")?,
            scores: needed(&self.scores, MappingField::Scores, "enter the path of the score of each box")?,
            count: place(&self.count, MappingField::Count)?,
            box_format: self.box_format,
            box_space: self.box_space,
            class_offset: self.class_offset,
        })
    }

    fn fill(&mut self, places: &[JsonPlace]) {
        if !is_blank(&self.boxes) {
            return;
        }
        let rows = || places.iter().filter(|place| is_row(place));
        let named = rows().find(|place| place.is_called(&["box"]));
        let Some(boxes) = named.or_else(|| rows().next()) else {
            return;
        };
        self.boxes = shown(boxes);
        self.box_space = if boxes.are_parts() { MappedBoxSpace::Normalized } else { MappedBoxSpace::Pixels };
        let similar = |field: MappingField, words: &[&str]| {
            let mut suiting = places.iter().filter(|place| place.suits(field));
            suiting.find(|place| place.count() == boxes.count() && place.is_called(words))
        };
        if is_blank(&self.classes) {
            let found = similar(MappingField::Classes, &CLASS_WORDS);
            self.classes = found.map(shown).unwrap_or_default();
        }
        if is_blank(&self.scores) {
            let found = similar(MappingField::Scores, &SCORE_WORDS);
            self.scores = found.map(shown).unwrap_or_default();
        }
    }
}

const CLASS_WORDS: [&str; 4] = ["class", "label", "categor", "name"];
const SCORE_WORDS: [&str; 6] = ["score", "prob", "conf", "softmax", "certain", "logit"];

fn is_row(place: &JsonPlace) -> bool {
    matches!(place.holds, PlaceContent::Rows { .. })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The text of a field for a place.
fn shown(place: &JsonPlace) -> String {
    match place.pointer.as_str() {
        "" => WHOLE_OUTPUT.to_owned(),
        path => path.to_owned(),
    }
}

/// `None` for an empty field.
fn place(text: &str, field: MappingField) -> Result<Option<JsonPointer>, MappingFault> {
    let text = match text.trim() {
        "" => return Ok(None),
        WHOLE_OUTPUT => "",
        path => path,
    };
    let place = JsonPointer::parse(text);
    place.map(Some).map_err(|error| MappingFault::new(field, error.to_string()))
}

/// Lowercase letters, digits and hyphens; never empty.
fn id_of(name: &str) -> String {
    let mut id = String::new();
    for letter in name.trim().chars() {
        if letter.is_ascii_alphanumeric() {
            id.push(letter.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(MAX_ID);
    let id = id.trim_end_matches('-');
    if id.is_empty() { "my-outputs" } else { id }.to_owned()
}

/// Maximum length of an id.
const MAX_ID: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pointer: &str, holds: PlaceContent) -> JsonPlace {
        JsonPlace { pointer: JsonPointer::parse(pointer).unwrap(), holds }
    }

    fn numbers(count: usize) -> PlaceContent {
        PlaceContent::Numbers { count, are_parts: true }
    }

    #[test]
    fn mapping_fields_round_trip() {
        let pointer = |text: &str| JsonPointer::parse(text).unwrap();
        let classes = |classes| MappedContent::Classification(classes);
        for prediction in [
            classes(MappedClasses {
                scores: Some(pointer("")),
                classes: None,
                values: ScoreValues::Logits,
                background: true,
                best: Some(pointer("/best")),
            }),
            classes(MappedClasses {
                scores: None,
                classes: Some(pointer("/names")),
                values: ScoreValues::Probabilities,
                background: false,
                best: None,
            }),
            MappedContent::Detection(MappedBoxes {
                boxes: pointer("/d/*/box"),
                classes: pointer("/d/*/class"),
                scores: pointer("/d/*/score"),
                count: Some(pointer("/n")),
                box_format: MappedBoxFormat::Cxcywh,
                box_space: MappedBoxSpace::Normalized,
                class_offset: -1,
            }),
        ] {
            let mapping =
                OutputMapping { id: "own.v2".to_owned(), name: "Own".to_owned(), labels: None, content: prediction };
            assert_eq!(MappingDraft::from(&mapping).mapping().unwrap(), mapping);
        }
    }

    #[test]
    fn invalid_field_is_named() {
        let fault = |change: &dyn Fn(&mut MappingDraft)| {
            let mut draft = MappingDraft::default();
            draft.classes.scores = "/scores".to_owned();
            change(&mut draft);
            let fault = draft.mapping().unwrap_err();
            (fault.field, fault.reason)
        };
        let (field, _) = fault(&|draft| draft.name.clear());
        assert_eq!(field, MappingField::Name);
        let (field, reason) = fault(&|draft| draft.classes.scores = "scores".to_owned());
        assert_eq!(field, MappingField::Scores);
        assert!(reason.contains("not a path in JSON"), "{reason}");
        let (field, reason) = fault(&|draft| draft.classes.scores.clear());
        assert_eq!(field, MappingField::Scores);
        assert!(reason.contains("path of the scores"), "{reason}");
        let (field, _) = fault(&|draft| {
            draft.classes.classes = "/classes".to_owned();
            draft.classes.values = ScoreValues::Logits;
        });
        assert_eq!(field, MappingField::Values);
        let (field, _) = fault(&|draft| {
            draft.task = ModelTask::Detection;
            draft.boxes.boxes = "/boxes".to_owned();
        });
        assert_eq!(field, MappingField::Classes);
    }

    #[test]
    fn id_defaults_to_the_name() {
        let id = |name: &str, id: &str| {
            let draft = MappingDraft { name: name.to_owned(), id: id.to_owned(), ..MappingDraft::default() };
            draft.id()
        };
        assert_eq!(id("Shelf detector (v2)", ""), "shelf-detector-v2");
        assert_eq!(id("Shelf detector", "other"), "other");
        assert_eq!(id("猫", " "), "my-outputs");
    }

    #[test]
    fn known_prediction_fills_the_fields() {
        let rows = PlaceContent::Rows { count: 3, are_parts: false };
        let draft = MappingDraft::from_places(&[
            at("/items/*/bounds", rows),
            at("/items/*/track", numbers(3)),
            at("/items/*/label", PlaceContent::Texts { count: 3 }),
            at("/items/*/confidence", numbers(3)),
        ]);
        assert_eq!(draft.task, ModelTask::Detection);
        assert_eq!(draft.boxes.boxes, "/items/*/bounds");
        assert_eq!(draft.boxes.classes, "/items/*/label");
        assert_eq!(draft.boxes.scores, "/items/*/confidence");
        assert_eq!(draft.boxes.box_space, MappedBoxSpace::Pixels);

        let logits = PlaceContent::Numbers { count: 10, are_parts: false };
        let draft = MappingDraft::from_places(&[at("/id", PlaceContent::Number), at("", logits)]);
        assert_eq!(draft.classes.scores, WHOLE_OUTPUT);
        assert_eq!(draft.classes.values, ScoreValues::Logits);

        let draft = MappingDraft::from_places(&[
            at("/top/*/label", PlaceContent::Texts { count: 5 }),
            at("/top/*/p", numbers(5)),
            at("/embedding", numbers(128)),
        ]);
        assert_eq!(draft.classes.classes, "/top/*/label");
        assert_eq!(draft.classes.scores, "/top/*/p");
    }

    #[test]
    fn typed_values_are_kept() {
        let mut draft = MappingDraft::default();
        draft.classes.scores = "/mine".to_owned();
        draft.fill(&[at("/scores", numbers(10))]);
        assert_eq!(draft.classes.scores, "/mine");
    }
}
