//! How each box of a run compares with the ground truth, and which objects were missed.

use std::collections::BTreeSet;
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use super::by_class::ByClass;
use super::facts::{Gate, VisibleBoxes};
use super::{Predictions, Summary};
use crate::domain::{BoundingBox, ModelTask, SampleId};

/// What a box, or the top class of an image, is worth at an IoU of 0.50. It holds at every minimum score: only boxes
/// with a higher score decide which objects are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum OutcomeKind {
    Correct,
    /// Another class than the object.
    Class,
    /// The right class, but the box is badly placed.
    Location,
    /// Another class, and badly placed.
    Both,
    /// An object that a box with a higher score shows already.
    Duplicate,
    /// There is nothing.
    Background,
    /// A crowd or an object that does not count: neither right nor wrong.
    Ignored,
}

impl OutcomeKind {
    pub fn is_wrong(self) -> bool {
        !matches!(self, Self::Correct | Self::Ignored)
    }

    /// As boxes are marked: true or false positive.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Correct => "TP",
            Self::Ignored => "ignored",
            _ => "FP",
        }
    }

    /// What is wrong with a false positive.
    pub fn why(self) -> Option<&'static str> {
        Some(match self {
            Self::Correct | Self::Ignored => return None,
            Self::Class => "wrong class",
            Self::Location => "localization",
            Self::Both => "wrong class and localization",
            Self::Duplicate => "duplicate",
            Self::Background => "background",
        })
    }

    /// The mark, with what is wrong: “FP, duplicate”.
    pub fn text(self) -> String {
        self.why().map_or_else(|| self.mark().to_owned(), |why| format!("{}, {why}", self.mark()))
    }
}

/// One box of a prediction, or the top class of a classifier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxOutcome {
    /// `None` if the box was not evaluated: it is of a class that the ground truth does not have, hidden by a better
    /// box, or not the top class.
    pub kind: Option<OutcomeKind>,
    /// The object that it shows, or is nearest to: an index into [`ImageOutcomes::objects`], or [`NO_OBJECT`].
    pub object: u32,
    /// With that object; `0.0..=1.0`.
    pub iou: f32,
}

/// In place of an index.
pub const NO_OBJECT: u32 = u32::MAX;

/// One object of the ground truth, or what a whole image shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectOutcome {
    /// Index into [`Outcomes::classes`].
    pub class: u32,
    /// In pixels of the upright image; all zero for a class of a whole image.
    pub bounds: BoundingBox,
    /// The box that shows it: an index into the stored prediction, or [`NO_OBJECT`].
    pub shown_by: u32,
    /// Whether it is missed if no box shows it; a crowd or an object that does not count is not.
    pub counts: bool,
}

/// The outcomes of one image.
#[derive(Debug, Clone, Copy)]
pub struct ImageOutcomes<'o> {
    /// As many as the stored prediction has boxes or classes.
    pub boxes: &'o [BoxOutcome],
    pub objects: &'o [ObjectOutcome],
}

/// A class of the ground truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeClass {
    /// Its number in the ground truth; its place, from 0, if not each class there has a number of its own.
    pub number: i64,
    pub name: String,
    /// The class of the model that is the same; the first of several.
    pub of_model: Option<u32>,
}

/// The outcomes of all evaluated images of a run. 12 bytes a box.
#[derive(Debug)]
pub struct Outcomes {
    /// The predictions that were evaluated: an image that was predicted again has no outcome.
    predictions: Predictions,
    /// In the order of the evaluation.
    pub classes: Arc<[OutcomeClass]>,
    /// The place among `classes` of each class of the model.
    pub(super) places: ByClass<Option<u32>>,
    /// By sample.
    rows: Vec<Row>,
    boxes: Vec<BoxOutcome>,
    objects: Vec<ObjectOutcome>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    is_evaluated: bool,
    first_box: u64,
    boxes: u32,
    first_object: u64,
    objects: u32,
}

impl Outcomes {
    /// `named`: the classes of the ground truth, each with its number if it has one. `model_classes`: each class id of
    /// the model that is one of them, with its place among them.
    pub fn new(
        predictions: Predictions,
        named: impl IntoIterator<Item = (Option<i64>, String)>,
        model_classes: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        let (numbers, names): (Vec<Option<i64>>, Vec<String>) = named.into_iter().unzip();
        let different: BTreeSet<i64> = numbers.iter().flatten().copied().collect();
        let are_numbered = different.len() == names.len();
        let class = |(place, (number, name)): (usize, (Option<i64>, String))| {
            let number = number.filter(|_| are_numbered).unwrap_or(place as i64);
            OutcomeClass { number, name, of_model: None }
        };
        let mut classes: Vec<OutcomeClass> = numbers.into_iter().zip(names).enumerate().map(class).collect();
        let mut places = ByClass::new(None);
        for (id, place) in model_classes {
            *places.get_mut(id) = Some(place);
            if let Some(class) = classes.get_mut(place as usize) {
                class.of_model.get_or_insert(id);
            }
        }
        let (rows, boxes, objects) = (Vec::new(), Vec::new(), Vec::new());
        Self { predictions, classes: classes.into(), places, rows, boxes, objects }
    }

    /// The place among the classes of the ground truth of a class of the model.
    pub fn place_of(&self, class: u32) -> Option<u32> {
        *self.places.get(class)
    }

    /// The classes of the model that are this class of the ground truth.
    pub fn model_classes(&self, place: u32) -> impl Iterator<Item = u32> {
        self.places.iter().filter(move |(_, found)| **found == Some(place)).map(|(id, _)| id)
    }

    /// `boxes`: as many as the stored prediction of the image has boxes or classes.
    pub fn add(&mut self, id: SampleId, boxes: &[BoxOutcome], objects: &[ObjectOutcome]) {
        if self.rows.len() <= id.index() {
            self.rows.resize(id.index() + 1, Row::default());
        }
        self.rows[id.index()] = Row {
            is_evaluated: true,
            first_box: self.boxes.len() as u64,
            boxes: boxes.len() as u32,
            first_object: self.objects.len() as u64,
            objects: objects.len() as u32,
        };
        self.boxes.extend_from_slice(boxes);
        self.objects.extend_from_slice(objects);
    }

    /// The outcomes of an image with this prediction; `None` if it was not evaluated, or predicted again since.
    pub fn of(&self, id: SampleId, summary: Summary<'_>) -> Option<ImageOutcomes<'_>> {
        let row = self.rows.get(id.index()).filter(|row| row.is_evaluated)?;
        let evaluated = self.predictions.summary(id)?;
        // Nearly always both are in the same memory.
        let is_same = std::ptr::eq(evaluated.classes, summary.classes) || evaluated == summary;
        let range = |first: u64, len: u32| first as usize..first as usize + len as usize;
        let found = ImageOutcomes {
            boxes: self.boxes.get(range(row.first_box, row.boxes))?,
            objects: self.objects.get(range(row.first_object, row.objects))?,
        };
        (is_same && found.boxes.len() == summary.classes.len()).then_some(found)
    }

    /// How a box of an image compares; `None` if it was not evaluated.
    pub fn named(&self, of_image: ImageOutcomes<'_>, index: usize) -> Option<NamedOutcome<'_>> {
        let outcome = of_image.boxes.get(index)?;
        let kind = outcome.kind?;
        let is_other = matches!(kind, OutcomeKind::Class | OutcomeKind::Both);
        let object = of_image.objects.get(outcome.object as usize).filter(|_| is_other);
        let class = object.and_then(|object| self.classes.get(object.class as usize));
        Some(NamedOutcome { kind, iou: outcome.iou, right_class: class.map(|class| class.name.as_str()) })
    }

    /// Whether both are about the same images.
    pub fn has_same_images(&self, other: &Self) -> bool {
        let longest = self.rows.len().max(other.rows.len());
        let has = |outcomes: &Self, at: usize| outcomes.rows.get(at).is_some_and(|row| row.is_evaluated);
        (0..longest).all(|at| has(self, at) == has(other, at))
    }

    pub fn predictions(&self) -> &Predictions {
        &self.predictions
    }
}

/// How a box compares with the ground truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedOutcome<'o> {
    pub kind: OutcomeKind,
    /// With the object that it shows, or is nearest to.
    pub iou: f32,
    /// The name of that object's class, where it is another one than the predicted.
    pub right_class: Option<&'o str>,
}

impl NamedOutcome<'_> {
    /// “cup”, or “cup, is bottle” if the object is a bottle.
    pub fn class_text(&self, predicted: &str) -> String {
        self.right_class.map_or_else(|| predicted.to_owned(), |right| format!("{predicted}, is {right}"))
    }

    /// What is wrong besides what [`Self::class_text`] names.
    pub fn error_text(&self) -> Option<&'static str> {
        match (self.kind, self.right_class) {
            (OutcomeKind::Class, Some(_)) => None,
            (OutcomeKind::Both, Some(_)) => OutcomeKind::Location.why(),
            (kind, _) => kind.why(),
        }
    }

    /// “FP, badly placed”: the mark, with [`Self::error_text`].
    pub fn mark_text(&self) -> String {
        let mark = self.kind.mark();
        self.error_text().map_or_else(|| mark.to_owned(), |error| format!("{mark}, {error}"))
    }
}

/// What of an image is on screen.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownOutcomes<'a> {
    pub(super) task: ModelTask,
    pub(super) summary: Summary<'a>,
    pub(super) visible: VisibleBoxes<'a>,
    pub(super) classes: &'a [OutcomeClass],
    /// The place among `classes` of each class of the model.
    pub(super) places: &'a ByClass<Option<u32>>,
    pub(super) outcomes: ImageOutcomes<'a>,
}

impl<'a> ShownOutcomes<'a> {
    /// `None` if the image was not evaluated with this prediction.
    pub(super) fn of(outcomes: &'a Outcomes, id: SampleId, summary: Summary<'a>, gate: &'a Gate<'a>) -> Option<Self> {
        Some(Self {
            task: gate.task(),
            summary,
            visible: gate.visible(id),
            classes: &outcomes.classes,
            places: &outcomes.places,
            outcomes: outcomes.of(id, summary)?,
        })
    }

    /// Whether this box is on screen; of a classifier it is the top class.
    pub(super) fn shows(&self, index: usize) -> bool {
        match self.task {
            ModelTask::Classification => index == 0,
            ModelTask::Detection => {
                let found = self.summary.classes.get(index).zip(self.summary.scores.get(index));
                found.is_some_and(|(class, score)| self.visible.contains(index, *class, *score))
            }
        }
    }

    /// The evaluated boxes on screen: index, class of the model, score, outcome.
    pub(super) fn boxes(self) -> impl Iterator<Item = ShownBox> + use<'a> {
        let boxes = self.outcomes.boxes.iter().enumerate();
        boxes.filter_map(move |(index, outcome)| {
            let kind = outcome.kind?;
            let (&class, &score) = self.summary.classes.get(index).zip(self.summary.scores.get(index))?;
            self.shows(index).then_some(ShownBox { index, class, score, kind, outcome: *outcome })
        })
    }

    /// The objects that count, are of a class that is shown, and that no right box on screen shows.
    pub(super) fn missed(self) -> impl Iterator<Item = MissedObject> + use<'a> {
        let objects = self.outcomes.objects.iter().enumerate();
        objects.filter_map(move |(index, object)| {
            let is_found = object.shown_by != NO_OBJECT && self.shows(object.shown_by as usize);
            if is_found || !object.counts || self.hides(object.class) {
                return None;
            }
            Some(MissedObject { index, object: *object })
        })
    }

    /// Whether the filters hide a class of the ground truth.
    fn hides(&self, class: u32) -> bool {
        let class = self.classes.get(class as usize).and_then(|class| class.of_model);
        self.task == ModelTask::Detection && class.is_some_and(|class| !self.visible.shows_class(class))
    }

    /// Whether a box of another class of the ground truth on screen shows an object.
    pub(super) fn is_confused(&self, object: usize) -> bool {
        let boxes = self.outcomes.boxes.iter().enumerate();
        let mut of_object =
            boxes.filter(|(_, found)| found.kind == Some(OutcomeKind::Class) && found.object as usize == object);
        of_object.any(|(index, _)| {
            let class = self.summary.classes.get(index);
            class.is_some_and(|class| self.places.get(*class).is_some()) && self.shows(index)
        })
    }

    pub(super) fn facts(self) -> OutcomeFacts {
        let mut facts = OutcomeFacts { correct: 0, wrong: 0, missed: self.missed().count() as u32, worst: None };
        for found in self.boxes() {
            if found.kind == OutcomeKind::Correct {
                facts.correct += 1;
            } else if found.kind.is_wrong() {
                facts.wrong += 1;
                facts.worst = Some(facts.worst.map_or(found.score, |worst| worst.max(found.score)));
            }
        }
        facts
    }
}

impl OutcomeFacts {
    /// Wrong boxes and missed objects.
    pub(super) fn errors(self) -> i64 {
        i64::from(self.wrong) + i64::from(self.missed)
    }
}

/// What the outcomes of an image come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OutcomeFacts {
    /// Right and wrong boxes on screen.
    pub(super) correct: u32,
    pub(super) wrong: u32,
    /// Objects without a right box.
    pub(super) missed: u32,
    /// The highest score of a wrong box.
    pub(super) worst: Option<f32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ShownBox {
    pub(super) index: usize,
    /// Of the model.
    pub(super) class: u32,
    pub(super) score: f32,
    pub(super) kind: OutcomeKind,
    pub(super) outcome: BoxOutcome,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MissedObject {
    pub(super) index: usize,
    pub(super) object: ObjectOutcome,
}

/// Boxes and objects, or classified images, of one class or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassOutcomes {
    /// Boxes of the class that are right.
    pub correct: u64,
    /// Boxes of the class that are wrong.
    pub wrong: u64,
    /// Objects of the class without a right box.
    pub missed: u64,
}

impl ClassOutcomes {
    /// Objects of the class.
    pub fn truths(&self) -> u64 {
        self.correct + self.missed
    }

    /// The right boxes among all; `None` without boxes.
    pub fn precision(&self) -> Option<f64> {
        share(self.correct, self.correct + self.wrong)
    }

    /// The found objects among all; `None` without objects.
    pub fn recall(&self) -> Option<f64> {
        share(self.correct, self.truths())
    }

    /// The harmonic mean of precision and recall; `None` if there are neither boxes nor objects.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.correct, 2 * self.correct + self.wrong + self.missed)
    }
}

impl std::ops::AddAssign for ClassOutcomes {
    fn add_assign(&mut self, other: Self) {
        self.correct += other.correct;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

/// `None` if there is nothing to have a share of.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
