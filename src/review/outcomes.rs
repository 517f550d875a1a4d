//! The outcome of each box of a run against the ground truth, and the missed objects.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use super::by_class::ByClass;
use super::facts::{Gate, VisibleBoxes};
use super::suspects::{FilmBox, Suspect};
use super::{Predictions, Summary};
use crate::domain::{BoundingBox, ModelTask, SampleId};

/// The outcome of a box, or of an image's top class, at IoU 0.50. It holds at every minimum score: only boxes with a
/// higher score decide which objects are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum OutcomeKind {
    Correct,
    /// Another class than the object's.
    Class,
    /// The right class, but poorly localized.
    Location,
    /// Another class, and poorly localized.
    Both,
    /// An object that a box with a higher score already detects.
    Duplicate,
    /// No object.
    Background,
    /// A crowd or an object that does not count: neither correct nor wrong.
    Ignored,
}

impl OutcomeKind {
    pub fn is_wrong(self) -> bool {
        !matches!(self, Self::Correct | Self::Ignored)
    }

    /// The mark on boxes: true or false positive.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Correct => "TP",
            Self::Ignored => "ignored",
            _ => "FP",
        }
    }

    /// The kind of error of a false positive.
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

    /// The mark with the kind of error: “FP, duplicate”.
    pub fn text(self) -> String {
        self.why().map_or_else(|| self.mark().to_owned(), |why| format!("{}, {why}", self.mark()))
    }
}

/// One box of a prediction, or the top class of a classifier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxOutcome {
    /// `None` if the box was not evaluated: the ground truth does not have its class, a better box suppresses it, or it
    /// is not the top class.
    pub kind: Option<OutcomeKind>,
    /// The object that it detects or is closest to: an index into [`ImageOutcomes::objects`], or [`NO_OBJECT`].
    pub object: u32,
    /// With that object; `0.0..=1.0`.
    pub iou: f32,
}

/// Stands for a missing index.
pub const NO_OBJECT: u32 = u32::MAX;

/// A ground-truth object, or the class of a whole image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectOutcome {
    /// Index into [`Outcomes::classes`].
    pub class: u32,
    /// In pixels of the upright image; all zero for the class of a whole image.
    pub bounds: BoundingBox,
    /// The box that detects it: an index into the stored prediction, or [`NO_OBJECT`].
    pub shown_by: u32,
    /// Whether it counts as missed if no box detects it; crowds and objects that do not count are never missed.
    pub counts: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ImageOutcomes<'o> {
    /// One per box or class of the stored prediction.
    pub boxes: &'o [BoxOutcome],
    pub objects: &'o [ObjectOutcome],
    /// Labels that may be wrong, highest gain first.
    pub suspects: &'o [Suspect],
}

/// A ground-truth class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeClass {
    /// Its number in the ground truth, or its index if not every class there has its own number.
    pub number: i64,
    pub name: String,
    /// The model's class that matches it; the first of several.
    pub of_model: Option<u32>,
}

/// The outcomes of all evaluated images of a run, 12 bytes per box.
#[derive(Debug)]
pub struct Outcomes {
    /// The evaluated predictions: an image that was predicted again has no outcome.
    predictions: Predictions,
    /// In the order of the evaluation.
    pub classes: Arc<[OutcomeClass]>,
    /// The index into `classes` of each class of the model.
    pub places: ByClass<Option<u32>>,
    /// By sample.
    rows: Vec<Row>,
    boxes: Vec<BoxOutcome>,
    objects: Vec<ObjectOutcome>,
    suspects: HashMap<SampleId, Vec<Suspect>>,
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
    /// `named`: the ground-truth classes, each with its number if it has one. `model_classes`: each class id of the
    /// model that matches one of them, with its index.
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
        let (rows, boxes, objects, suspects) = (Vec::new(), Vec::new(), Vec::new(), HashMap::new());
        Self { predictions, classes: classes.into(), places, rows, boxes, objects, suspects }
    }

    /// The ground-truth index of a class of the model.
    pub fn place_of(&self, class: u32) -> Option<u32> {
        *self.places.get(class)
    }

    /// The model's classes that match this ground-truth class.
    pub fn model_classes(&self, place: u32) -> impl Iterator<Item = u32> {
        self.places.iter().filter(move |(_, found)| **found == Some(place)).map(|(id, _)| id)
    }

    /// `boxes`: one per box or class of the image's stored prediction.
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

    /// Adds a label that may be wrong, after those with a higher gain.
    pub fn add_suspect(&mut self, id: SampleId, suspect: Suspect) {
        self.suspects.entry(id).or_default().push(suspect);
    }

    /// The outcomes of an image with this prediction; `None` if it was not evaluated, or was predicted again since.
    pub fn image(&self, id: SampleId, summary: Summary<'_>) -> Option<ImageOutcomes<'_>> {
        let row = self.rows.get(id.index()).filter(|row| row.is_evaluated)?;
        let evaluated = self.predictions.summary(id)?;
        // Nearly always, both share the same memory.
        let is_same = std::ptr::eq(evaluated.classes, summary.classes) || evaluated == summary;
        let range = |first: u64, len: u32| first as usize..first as usize + len as usize;
        let found = ImageOutcomes {
            boxes: self.boxes.get(range(row.first_box, row.boxes))?,
            objects: self.objects.get(range(row.first_object, row.objects))?,
            suspects: self.suspects.get(&id).map_or(&[], Vec::as_slice),
        };
        (is_same && found.boxes.len() == summary.classes.len()).then_some(found)
    }

    /// The outcome of a box with names; `None` if it was not evaluated.
    pub fn named(&self, of_image: ImageOutcomes<'_>, index: usize) -> Option<NamedOutcome<'_>> {
        let outcome = of_image.boxes.get(index)?;
        let kind = outcome.kind?;
        let is_other = matches!(kind, OutcomeKind::Class | OutcomeKind::Both);
        let object = of_image.objects.get(outcome.object as usize).filter(|_| is_other);
        let class = object.and_then(|object| self.classes.get(object.class as usize));
        Some(NamedOutcome { kind, iou: outcome.iou, right_class: class.map(|class| class.name.as_str()) })
    }

    /// Whether both cover the same images.
    pub fn has_same_images(&self, other: &Self) -> bool {
        let longest = self.rows.len().max(other.rows.len());
        let has = |outcomes: &Self, at: usize| outcomes.rows.get(at).is_some_and(|row| row.is_evaluated);
        (0..longest).all(|at| has(self, at) == has(other, at))
    }

    pub fn predictions(&self) -> &Predictions {
        &self.predictions
    }
}

/// The outcome of a box, with class names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedOutcome<'o> {
    pub kind: OutcomeKind,
    /// With the object that it detects or is closest to.
    pub iou: f32,
    /// The class name of that object, if it differs from the predicted one.
    pub right_class: Option<&'o str>,
}

impl NamedOutcome<'_> {
    /// “cup”, or “cup, is bottle” if the object is a bottle.
    pub fn class_text(&self, predicted: &str) -> String {
        self.right_class.map_or_else(|| predicted.to_owned(), |right| format!("{predicted}, is {right}"))
    }

    /// The error, apart from what [`Self::class_text`] states.
    pub fn error_text(&self) -> Option<&'static str> {
        match (self.kind, self.right_class) {
            (OutcomeKind::Class, Some(_)) => None,
            (OutcomeKind::Both, Some(_)) => OutcomeKind::Location.why(),
            (kind, _) => kind.why(),
        }
    }

    /// “FP, localization”: the mark, with [`Self::error_text`].
    pub fn mark_text(&self) -> String {
        let mark = self.kind.mark();
        self.error_text().map_or_else(|| mark.to_owned(), |error| format!("{mark}, {error}"))
    }
}

/// The visible part of an image's outcomes.
#[derive(Debug, Clone, Copy)]
pub struct ShownOutcomes<'a> {
    pub task: ModelTask,
    pub summary: Summary<'a>,
    pub visible: VisibleBoxes<'a>,
    pub classes: &'a [OutcomeClass],
    /// The index into `classes` of each class of the model.
    pub places: &'a ByClass<Option<u32>>,
    pub outcomes: ImageOutcomes<'a>,
}

impl<'a> ShownOutcomes<'a> {
    /// `None` if the image was not evaluated with this prediction.
    pub fn new(outcomes: &'a Outcomes, id: SampleId, summary: Summary<'a>, gate: &'a Gate<'a>) -> Option<Self> {
        Some(Self {
            task: gate.task(),
            summary,
            visible: gate.visible(id),
            classes: &outcomes.classes,
            places: &outcomes.places,
            outcomes: outcomes.image(id, summary)?,
        })
    }

    /// Whether this box is visible; for a classifier, the top class.
    pub fn shows(&self, index: usize) -> bool {
        match self.task {
            ModelTask::Classification => index == 0,
            ModelTask::Detection => {
                let found = self.summary.classes.get(index).zip(self.summary.scores.get(index));
                found.is_some_and(|(class, score)| self.visible.contains(index, *class, *score))
            }
        }
    }

    /// The evaluated visible boxes: index, class of the model, score, outcome.
    pub fn boxes(self) -> impl Iterator<Item = ShownBox> + use<'a> {
        let boxes = self.outcomes.boxes.iter().enumerate();
        boxes.filter_map(move |(index, outcome)| {
            let kind = outcome.kind?;
            let (&class, &score) = self.summary.classes.get(index).zip(self.summary.scores.get(index))?;
            self.shows(index).then_some(ShownBox { index, class, score, kind, outcome: *outcome })
        })
    }

    /// Objects that count, have a visible class, and are not detected by a visible correct box.
    pub fn missed(self) -> impl Iterator<Item = MissedObject> + use<'a> {
        let objects = self.outcomes.objects.iter().enumerate();
        objects.filter_map(move |(index, object)| {
            let is_found = object.shown_by != NO_OBJECT && self.shows(object.shown_by as usize);
            if is_found || !object.counts || self.hides(object.class) {
                return None;
            }
            Some(MissedObject { index, object: *object })
        })
    }

    /// The suspicious labels with the boxes or objects that stand for them, and the scores of the boxes that contradict
    /// them. Only visible boxes contradict a label, and only undetected objects stand for one.
    pub fn suspects(self) -> impl Iterator<Item = ShownSuspect> + use<'a> {
        let missed: Vec<u32> = match self.outcomes.suspects {
            [] => Vec::new(),
            _ => self.missed().map(|missed| missed.index as u32).collect(),
        };
        self.outcomes.suspects.iter().filter_map(move |suspect| {
            let shows = suspect.shows(self.task)?;
            let is_shown = suspect.found.is_none_or(|found| self.shows(found as usize));
            let is_missed = !matches!(shows, FilmBox::FalseNegative(object) if !missed.contains(&object));
            let score = suspect.found.and_then(|found| self.summary.scores.get(found as usize)).copied();
            (is_shown && is_missed).then_some(ShownSuspect { suspect: *suspect, shows, score })
        })
    }

    /// Whether the filters hide a ground-truth class.
    fn hides(&self, class: u32) -> bool {
        let class = self.classes.get(class as usize).and_then(|class| class.of_model);
        self.task == ModelTask::Detection && class.is_some_and(|class| !self.visible.shows_class(class))
    }

    /// Whether a visible box of another ground-truth class covers an object.
    pub fn is_confused(&self, object: usize) -> bool {
        let boxes = self.outcomes.boxes.iter().enumerate();
        let mut of_object =
            boxes.filter(|(_, found)| found.kind == Some(OutcomeKind::Class) && found.object as usize == object);
        of_object.any(|(index, _)| {
            let class = self.summary.classes.get(index);
            class.is_some_and(|class| self.places.get(*class).is_some()) && self.shows(index)
        })
    }

    pub fn facts(self) -> OutcomeFacts {
        let mut facts =
            OutcomeFacts { correct: 0, wrong: 0, false_negatives: self.missed().count() as u32, worst: None };
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
    /// False positives and missed objects.
    pub fn errors(self) -> i64 {
        i64::from(self.wrong) + i64::from(self.false_negatives)
    }
}

/// Totals of an image's outcomes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutcomeFacts {
    /// Visible correct boxes; `wrong` are the false positives.
    pub correct: u32,
    pub wrong: u32,
    /// Objects without a correct box.
    pub false_negatives: u32,
    /// The highest score of a false positive.
    pub worst: Option<f32>,
}

#[derive(Debug, Clone, Copy)]
pub struct ShownBox {
    pub index: usize,
    /// Of the model.
    pub class: u32,
    pub score: f32,
    pub kind: OutcomeKind,
    pub outcome: BoxOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShownSuspect {
    pub suspect: Suspect,
    pub shows: FilmBox,
    /// `None` if no box contradicts the label.
    pub score: Option<f32>,
}

#[derive(Debug, Clone, Copy)]
pub struct MissedObject {
    pub index: usize,
    pub object: ObjectOutcome,
}

/// Boxes and objects, or classified images, of one class or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassOutcomes {
    /// True positives.
    pub correct: u64,
    /// False positives.
    pub wrong: u64,
    pub false_negatives: u64,
}

impl ClassOutcomes {
    /// Ground-truth objects of the class.
    pub fn truths(&self) -> u64 {
        self.correct + self.false_negatives
    }

    /// `None` without boxes.
    pub fn precision(&self) -> Option<f64> {
        share(self.correct, self.correct + self.wrong)
    }

    /// `None` without objects.
    pub fn recall(&self) -> Option<f64> {
        share(self.correct, self.truths())
    }

    /// The harmonic mean of precision and recall; `None` if there are neither boxes nor objects.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.correct, 2 * self.correct + self.wrong + self.false_negatives)
    }
}

impl std::ops::AddAssign for ClassOutcomes {
    fn add_assign(&mut self, other: Self) {
        self.correct += other.correct;
        self.wrong += other.wrong;
        self.false_negatives += other.false_negatives;
    }
}

/// `part / whole`; `None` if `whole` is zero.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
