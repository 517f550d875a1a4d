//! A class in a query, with the conditions on its boxes.

use std::ops::Range;

use super::{QueryError, Span, matches, nearest, shortened};
use crate::domain::{LabelSet, ModelTask, SampleId};
use crate::review::Summary;
use crate::review::by_class::ByClass;
use crate::review::candidate::Candidate;
use crate::review::facts::Gate;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClassTerm {
    /// The name, with `*` for any characters; in lower case.
    pub(super) pattern: String,
    pub(super) at: Range<usize>,
    /// Asks for the best score of the class instead of for a box that is shown.
    pub(super) score: Option<Span>,
    /// How many boxes of the class are shown.
    pub(super) boxes: Option<Span>,
    /// The classes that the pattern names; none before [`Self::prepare`].
    pub(super) is_meant: ByClass<bool>,
}

impl ClassTerm {
    pub(super) fn new(pattern: String, at: Range<usize>) -> Self {
        Self { pattern, at, score: None, boxes: None, is_meant: ByClass::new(false) }
    }

    pub(super) fn prepare(&mut self, labels: &LabelSet) {
        for id in self.ids(labels) {
            *self.is_meant.get_mut(id) = true;
        }
    }

    pub(super) fn warning(&self, task: ModelTask, labels: &LabelSet) -> Option<QueryError> {
        let warning = |message: String| {
            let at = self.at.clone();
            Some(QueryError { at, message })
        };
        if self.boxes.is_some() && task == ModelTask::Classification {
            return warning("This model gives classes, not boxes; leave “boxes” out".to_owned());
        }
        if !self.ids(labels).is_empty() {
            return None;
        }
        let near = nearest(&self.pattern, labels.iter().map(|(_, name)| name));
        let advice = match near {
            Some(name) => format!("did you mean “{name}”?"),
            None => "* stands for any letters: class:*part*".to_owned(),
        };
        warning(format!("This model has no class “{}”; {advice}", shortened(&self.pattern)))
    }

    /// The ids of the classes that are meant.
    pub(super) fn ids(&self, labels: &LabelSet) -> Vec<u32> {
        let named = labels.iter();
        let mut ids: Vec<u32> =
            named.filter(|(_, name)| matches(&self.pattern, &name.to_lowercase())).map(|(id, _)| id).collect();
        if ids.is_empty() {
            ids.extend(self.id_by_number(labels));
        }
        ids
    }

    /// A class that has no name is written as it is shown, `class 17`, or by its number alone.
    fn id_by_number(&self, labels: &LabelSet) -> Option<u32> {
        let number = self.pattern.strip_prefix("class ").unwrap_or(&self.pattern);
        let id = number.parse().ok()?;
        labels.get(id).is_none().then_some(id)
    }

    pub(super) fn passes(&self, image: &Candidate<'_>) -> bool {
        let (Some((summary, _)), Some(gate)) = (image.prediction, image.gate) else {
            return false;
        };
        match gate.task() {
            ModelTask::Classification => self.passes_classes(summary, gate),
            ModelTask::Detection => self.passes_boxes(image.id, summary, gate),
        }
    }

    /// The class must come first. A classifier has no boxes to count.
    fn passes_classes(&self, summary: Summary<'_>, gate: &Gate<'_>) -> bool {
        let (Some(class), Some(&score)) = (summary.classes.first(), summary.scores.first()) else {
            return false;
        };
        let scores_well = match self.score {
            Some(span) => span.contains(score),
            None => gate.top_class(summary).is_some(),
        };
        self.boxes.is_none() && *self.is_meant.get(*class) && scores_well
    }

    fn passes_boxes(&self, id: SampleId, summary: Summary<'_>, gate: &Gate<'_>) -> bool {
        let visible = gate.visible(id);
        let mut best = f32::NAN;
        let mut shown = 0_u32;
        for (at, (&class, &score)) in summary.classes.iter().zip(summary.scores).enumerate() {
            if *self.is_meant.get(class) && visible.has_class(at, class) {
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
