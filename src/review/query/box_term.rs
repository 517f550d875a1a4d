//! Conditions on the boxes of an image: their class, and their outcome against the ground truth.

use std::fmt;

use super::{SHOWN_LETTERS, Span, matches, nearest, quoted};
use crate::domain::{LabelSet, ModelTask, SampleId, shortened};
use crate::review::Summary;
use crate::review::by_class::ByClass;
use crate::review::candidate::Candidate;
use crate::review::facts::Gate;
use crate::review::outcomes::{MissedObject, OutcomeClass, OutcomeKind, ShownBox, ShownOutcomes, ShownSuspect};
use crate::review::suspects::{FilmBox, SuspectKind};

/// Boxes and missed objects that meet any of these conditions. Displays as the text that searches for them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoxQuery(pub Vec<BoxTerm>);

/// Conditions that one box, or one missed object, has to meet together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoxTerm {
    /// A class of the model; for a missed object, the matching class.
    pub class: Option<ClassName>,
    /// The class of the ground-truth object.
    pub truth: Option<ClassName>,
    pub outcome: Option<OutcomeWord>,
    /// With the object.
    pub iou: Option<Span>,
    /// Tests the best score of the class rather than a visible box; with a condition on ground truth, the score of the
    /// box.
    pub score: Option<Span>,
    /// The number of such visible boxes.
    pub boxes: Option<Span>,
}

/// A search word about ground truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeWord {
    /// True positive.
    Right,
    /// False positive.
    Wrong,
    /// A false negative: no correct box detects the object.
    NotFound,
    /// No box of any class covers the object.
    Missed,
    /// A false positive of this kind.
    Error(OutcomeKind),
    /// A false positive of any kind except `Class`: the box covers no object.
    Unmatched,
    /// A label that may be wrong, of this kind or of any.
    Suspicious(Option<SuspectKind>),
}

/// A class as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassName {
    /// The name in lowercase, with `*` as a wildcard; or a number after `#`.
    pattern: String,
    /// The classes that match the pattern; empty before the lookup.
    is_meant: ByClass<bool>,
}

impl ClassName {
    pub fn new(pattern: &str) -> Self {
        Self { pattern: pattern.to_lowercase(), is_meant: ByClass::new(false) }
    }

    /// Finds only this class: by its name, or by its number if other classes match the name.
    pub fn exact(labels: &LabelSet, class: u32) -> Self {
        let others = labels.iter().filter(|(id, _)| *id != class).map(|(_, name)| name);
        Self::unambiguous(&labels.name(class), others, class)
    }

    /// As [`Self::exact`], for the ground-truth class at this index.
    pub fn exact_truth(truth: &[OutcomeClass], index: u32) -> Option<Self> {
        let class = truth.get(index as usize)?;
        let others = truth.iter().enumerate().filter(|(at, _)| *at != index as usize).map(|(_, other)| &*other.name);
        Some(Self::unambiguous(&class.name, others, class.number))
    }

    fn unambiguous<'n>(name: &str, mut others: impl Iterator<Item = &'n str>, number: impl fmt::Display) -> Self {
        let name = name.to_lowercase();
        let is_found_alone = !name.is_empty()
            && !name.contains('*')
            && !name.starts_with('#')
            && !others.any(|other| other.to_lowercase() == name);
        Self::new(&if is_found_alone { name } else { format!("#{number}") })
    }

    fn means(&self, class: u32) -> bool {
        *self.is_meant.get(class)
    }

    fn prepare(&mut self, ids: impl IntoIterator<Item = u32>) {
        for id in ids {
            *self.is_meant.get_mut(id) = true;
        }
    }

    /// The number after `#`.
    fn number(&self) -> Option<i64> {
        self.pattern.strip_prefix('#')?.parse().ok()
    }

    /// The indices of the matching ground-truth classes.
    pub fn places(&self, truth: &[OutcomeClass]) -> Vec<u32> {
        let number = self.number();
        let is_meant = |class: &OutcomeClass| match number {
            Some(number) => class.number == number,
            None => matches(&self.pattern, &class.name.to_lowercase()),
        };
        (0_u32..).zip(truth).filter(|(_, class)| is_meant(class)).map(|(place, _)| place).collect()
    }

    /// The ids of the matching classes.
    pub fn ids(&self, labels: &LabelSet) -> Vec<u32> {
        if let Some(number) = self.number() {
            return u32::try_from(number).into_iter().collect();
        }
        let named = labels.iter();
        let mut ids: Vec<u32> =
            named.filter(|(_, name)| matches(&self.pattern, &name.to_lowercase())).map(|(id, _)| id).collect();
        if ids.is_empty() {
            ids.extend(self.id_by_number(labels));
        }
        ids
    }

    /// A class without a name is written as it is shown, `class 17`, or only as its number.
    fn id_by_number(&self, labels: &LabelSet) -> Option<u32> {
        let number = self.pattern.strip_prefix("class ").unwrap_or(&self.pattern);
        let id = number.parse().ok()?;
        labels.get(id).is_none().then_some(id)
    }

    fn warning(&self, whose: &str, key: &str, names: &[&str]) -> String {
        let advice = match nearest(&self.pattern, names.iter().copied()) {
            Some(name) => format!("did you mean “{name}”?"),
            None => format!("* matches any text: {key}:*part*"),
        };
        format!("{whose} has no class “{}”; {advice}", shortened(&self.pattern, SHOWN_LETTERS))
    }
}

impl From<OutcomeWord> for BoxTerm {
    fn from(outcome: OutcomeWord) -> Self {
        Self { outcome: Some(outcome), ..Self::default() }
    }
}

impl<T: Into<BoxTerm>> From<T> for BoxQuery {
    fn from(term: T) -> Self {
        Self(vec![term.into()])
    }
}

impl fmt::Display for BoxQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.0.iter().map(BoxTerm::text).collect();
        formatter.write_str(&terms.join(" or "))
    }
}

impl OutcomeWord {
    fn text(self) -> String {
        let word = match self {
            Self::Right => "tp",
            Self::Wrong => "fp",
            Self::NotFound => "fn",
            Self::Missed => "error:missed",
            Self::Unmatched => "error:unmatched",
            Self::Error(kind) => return format!("error:{}", kind.into_str()),
            Self::Suspicious(None) => "suspicious",
            Self::Suspicious(Some(kind)) => return format!("suspicious:{}", kind.into_str()),
        };
        word.to_owned()
    }
}

impl BoxTerm {
    fn text(&self) -> String {
        let Self { class, truth, outcome, iou, score, boxes } = self;
        let mut words: Vec<String> = outcome.map(OutcomeWord::text).into_iter().collect();
        for (key, class) in [("truth", truth), ("class", class)] {
            words.extend(class.iter().map(|class| format!("{key}:{}", quoted(&class.pattern))));
        }
        for (key, span) in [("iou", iou), ("score", score), ("boxes", boxes)] {
            words.extend(span.iter().flat_map(|span| span.texts(key)));
        }
        words.join(" ")
    }

    /// Whether it finds nothing without ground truth.
    pub fn needs_truth(&self) -> bool {
        self.truth.is_some() || self.outcome.is_some() || self.iou.is_some()
    }

    pub fn prepare(&mut self, labels: &LabelSet, truth: &[OutcomeClass]) {
        if let Some(class) = &mut self.class {
            class.prepare(class.ids(labels));
        }
        if let Some(class) = &mut self.truth {
            class.prepare(class.places(truth));
        }
    }

    pub fn warnings(&self, task: ModelTask, labels: &LabelSet, truth: &[OutcomeClass]) -> Option<String> {
        if let Some(class) = &self.class {
            if self.boxes.is_some() && task == ModelTask::Classification {
                return Some("This model predicts classes, not boxes; remove “boxes”".to_owned());
            }
            if class.ids(labels).is_empty() {
                let names: Vec<&str> = labels.iter().map(|(_, name)| name).collect();
                return Some(class.warning("This model", "class", &names));
            }
        }
        let class = self.truth.as_ref().filter(|_| !truth.is_empty())?;
        let names: Vec<&str> = truth.iter().map(|class| class.name.as_str()).collect();
        class.places(truth).is_empty().then(|| class.warning("The ground truth", "truth", &names))
    }

    pub fn passes(&self, image: &Candidate<'_>) -> bool {
        if self.needs_truth() {
            return image.outcomes.is_some_and(|shown| self.passes_outcomes(shown));
        }
        let (Some(summary), Some(gate), Some(class)) = (image.summary, image.gate, &self.class) else {
            return false;
        };
        match gate.task() {
            ModelTask::Classification => self.passes_classes(class, summary, gate),
            ModelTask::Detection => self.passes_boxes(class, image.id, summary, gate),
        }
    }

    /// Whether it only names a ground-truth class.
    fn is_truth_alone(&self) -> bool {
        let Self { class, truth, outcome, iou, score, boxes } = self;
        truth.is_some() && (class, outcome, iou, score, boxes) == (&None, &None, &None, &None, &None)
    }

    fn passes_outcomes(&self, shown: ShownOutcomes<'_>) -> bool {
        if let Some(class) = self.truth.as_ref().filter(|_| self.is_truth_alone()) {
            return shown.outcomes.objects.iter().any(|object| class.means(object.class));
        }
        let count = if self.is_about_suspects() {
            self.suspects_of(shown).count()
        } else {
            self.boxes_of(shown).count() + self.objects_of(shown).count()
        };
        match self.boxes {
            Some(span) => span.contains(count as f32),
            None => count > 0,
        }
    }

    pub fn is_about_suspects(&self) -> bool {
        matches!(self.outcome, Some(OutcomeWord::Suspicious(_)))
    }

    /// The suspicious labels that match. A score, an IoU or a class of the model is that of the box that contradicts the
    /// label, or the class that matches the label.
    pub fn suspects_of<'a>(&'a self, shown: ShownOutcomes<'a>) -> impl Iterator<Item = ShownSuspect> + 'a {
        let suspects = self.is_about_suspects().then(|| shown.suspects()).into_iter().flatten();
        suspects.filter(move |found| {
            let suspect = found.suspect;
            let index = suspect.found.map(|index| index as usize);
            let object = suspect.object.and_then(|object| shown.outcomes.objects.get(object as usize));
            let class = index.and_then(|index| shown.summary.classes.get(index)).copied();
            let labeled = object.and_then(|object| shown.classes.get(object.class as usize)?.of_model);
            let iou = index.and_then(|index| shown.outcomes.boxes.get(index)).map(|outcome| outcome.iou);
            matches!(self.outcome, Some(OutcomeWord::Suspicious(kind)) if kind.is_none_or(|kind| kind == suspect.kind))
                && self
                    .class
                    .as_ref()
                    .is_none_or(|name| class.into_iter().chain(labeled).any(|class| name.means(class)))
                && self.truth.as_ref().is_none_or(|name| object.is_some_and(|object| name.means(object.class)))
                && self.iou.is_none_or(|span| iou.is_some_and(|iou| span.contains(iou)))
                && self.score.is_none_or(|span| found.score.is_some_and(|score| span.contains(score)))
        })
    }

    /// The visible boxes that match.
    pub fn boxes_of<'a>(&'a self, shown: ShownOutcomes<'a>) -> impl Iterator<Item = ShownBox> + 'a {
        let are_meant = !matches!(self.outcome, Some(OutcomeWord::NotFound | OutcomeWord::Missed));
        let boxes = are_meant.then(|| shown.boxes()).into_iter().flatten();
        boxes.filter(move |found| self.means_box(shown, found))
    }

    fn means_box(&self, shown: ShownOutcomes<'_>, found: &ShownBox) -> bool {
        let object = shown.outcomes.objects.get(found.outcome.object as usize);
        let has_outcome = match self.outcome {
            None => true,
            Some(OutcomeWord::Right) => found.kind == OutcomeKind::Correct,
            Some(OutcomeWord::Wrong) => found.kind.is_wrong(),
            Some(OutcomeWord::Error(kind)) => found.kind == kind,
            Some(OutcomeWord::Unmatched) => found.kind.is_wrong() && found.kind != OutcomeKind::Class,
            Some(OutcomeWord::NotFound | OutcomeWord::Missed) => false,
            Some(OutcomeWord::Suspicious(_)) => self.suspects(shown, FilmBox::Predicted(found.index as u32)),
        };
        has_outcome
            && self.class.as_ref().is_none_or(|class| class.means(found.class))
            && self.truth.as_ref().is_none_or(|class| object.is_some_and(|object| class.means(object.class)))
            && self.iou.is_none_or(|span| span.contains(found.outcome.iou))
            && self.score.is_none_or(|span| span.contains(found.score))
    }

    /// Whether a matching suspicious label is shown as this box or object.
    fn suspects(&self, shown: ShownOutcomes<'_>, shows: FilmBox) -> bool {
        self.suspects_of(shown).any(|found| found.shows == shows)
    }

    /// The matching objects that no visible box detects.
    pub fn objects_of<'a>(&'a self, shown: ShownOutcomes<'a>) -> impl Iterator<Item = MissedObject> + 'a {
        let without_others = self.outcome == Some(OutcomeWord::Missed);
        // An undetected object has no score and no IoU.
        let are_meant = (without_others
            || self.outcome == Some(OutcomeWord::NotFound)
            || self.is_about_suspects()
            || self.is_truth_alone())
            && self.score.is_none()
            && self.iou.is_none();
        let objects = are_meant.then(|| shown.missed()).into_iter().flatten();
        objects.filter(move |missed| {
            let class = shown.classes.get(missed.object.class as usize).and_then(|class| class.of_model);
            !(without_others && shown.is_confused(missed.index))
                && (!self.is_about_suspects() || self.suspects(shown, FilmBox::FalseNegative(missed.index as u32)))
                && self.class.as_ref().is_none_or(|name| class.is_some_and(|class| name.means(class)))
                && self.truth.as_ref().is_none_or(|name| name.means(missed.object.class))
        })
    }

    /// Whether the class comes first. A classifier has no boxes to count.
    fn passes_classes(&self, name: &ClassName, summary: Summary<'_>, gate: &Gate<'_>) -> bool {
        let (Some(class), Some(&score)) = (summary.classes.first(), summary.scores.first()) else {
            return false;
        };
        let scores_well = match self.score {
            Some(span) => span.contains(score),
            None => gate.top_class(summary).is_some(),
        };
        self.boxes.is_none() && name.means(*class) && scores_well
    }

    fn passes_boxes(&self, name: &ClassName, id: SampleId, summary: Summary<'_>, gate: &Gate<'_>) -> bool {
        let visible = gate.visible(id);
        let mut best = f32::NAN;
        let mut shown = 0_u32;
        for (at, (&class, &score)) in summary.classes.iter().zip(summary.scores).enumerate() {
            if name.means(class) && visible.has_class(at, class) {
                best = best.max(score);
                shown += u32::from(visible.contains(at, class, score));
            }
        }
        match (self.score, self.boxes) {
            (None, None) => shown > 0,
            (score, boxes) => {
                score.is_none_or(|span| span.contains(best)) && boxes.is_none_or(|span| span.contains(shown as f32))
            }
        }
    }
}
