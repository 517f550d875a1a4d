//! Whether a sample is wanted.

use std::sync::Arc;

use super::arrange::ClassChanges;
use super::by_class::ByClass;
use super::facts::{Facts, Gate};
use super::query::{ClassTerm, Node, Query, Span, Term};
use super::{Mark, Summary, VerdictKind};
use crate::domain::{LabelSet, ModelTask, Sample, SampleId};

/// A query made ready for one run: its classes are ids.
#[derive(Debug)]
pub(super) struct Filter(Option<Test>);

#[derive(Debug)]
enum Test {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Name(String),
    Class(ClassTest),
    Score(Span),
    Boxes(Span),
    Margin(Span),
    Verdict(Option<VerdictKind>),
    Tag(Option<String>),
    Note(Option<String>),
    Problem,
    Predicted,
    Damaged,
    Outdated,
    /// Lowest first.
    Among(Arc<[SampleId]>),
}

#[derive(Debug)]
struct ClassTest {
    is_meant: ByClass<bool>,
    score: Option<Span>,
    boxes: Option<Span>,
}

/// All that is known of one sample.
pub(super) struct Candidate<'a> {
    pub(super) id: SampleId,
    pub(super) sample: &'a Sample,
    pub(super) prediction: Option<(Summary<'a>, Facts)>,
    pub(super) mark: Option<&'a Mark>,
    /// `None` while the image is unjudged; see [`Mark::judged`].
    pub(super) verdict: Option<VerdictKind>,
    pub(super) has_problem: bool,
    pub(super) is_damaged: bool,
    pub(super) is_outdated: bool,
}

impl Filter {
    pub(super) fn new(query: &Query, labels: &LabelSet, changes: &ClassChanges) -> Self {
        let root = query.root.as_ref();
        Self(root.map(|root| Test::new(root, labels, changes)))
    }

    /// True where every sample passes.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn wants(&self, candidate: &Candidate<'_>, gate: Option<&Gate<'_>>) -> bool {
        let test = self.0.as_ref();
        test.is_none_or(|test| test.passes(candidate, gate))
    }
}

impl Test {
    fn new(node: &Node, labels: &LabelSet, changes: &ClassChanges) -> Self {
        let new = |node: &Node| Self::new(node, labels, changes);
        let all = |nodes: &[Node]| nodes.iter().map(new).collect();
        match node {
            Node::All(nodes) => Self::All(all(nodes)),
            Node::Any(nodes) => Self::Any(all(nodes)),
            Node::Not(node) => Self::Not(Box::new(new(node))),
            Node::Term(term) => match term {
                Term::Name(part) => Self::Name(part.clone()),
                Term::Class(class) => Self::Class(ClassTest::new(class, labels)),
                Term::Score(span) => Self::Score(*span),
                Term::Boxes(span) => Self::Boxes(*span),
                Term::Margin(span) => Self::Margin(*span),
                Term::Verdict(kind) => Self::Verdict(*kind),
                Term::Tag(tag) => Self::Tag(tag.clone()),
                Term::Note(part) => Self::Note(part.clone()),
                Term::Problem => Self::Problem,
                Term::Predicted => Self::Predicted,
                Term::Damaged => Self::Damaged,
                Term::Outdated => Self::Outdated,
                Term::Changed(change) => {
                    Self::Among(changes.get(change).cloned().unwrap_or_default())
                }
            },
        }
    }

    fn passes(&self, candidate: &Candidate<'_>, gate: Option<&Gate<'_>>) -> bool {
        let facts = candidate.prediction.map(|(_, facts)| facts);
        let is_in =
            |span: &Span, value: Option<f32>| value.is_some_and(|value| span.contains(value));
        match self {
            Self::All(tests) => tests.iter().all(|test| test.passes(candidate, gate)),
            Self::Any(tests) => tests.iter().any(|test| test.passes(candidate, gate)),
            Self::Not(test) => !test.passes(candidate, gate),
            Self::Name(part) => contains(&candidate.sample.name, part),
            Self::Class(class) => match (candidate.prediction, gate) {
                (Some((summary, _)), Some(gate)) => class.passes(candidate.id, summary, gate),
                _ => false,
            },
            Self::Score(span) => is_in(span, facts.and_then(|facts| facts.best)),
            Self::Margin(span) => is_in(span, facts.and_then(|facts| facts.margin)),
            Self::Boxes(span) => {
                let has_boxes = gate.is_some_and(|gate| gate.task() == ModelTask::Detection);
                has_boxes && facts.is_some_and(|facts| span.contains(facts.boxes as f32))
            }
            Self::Verdict(None) => candidate.verdict.is_some(),
            Self::Verdict(kind) => candidate.verdict == *kind,
            Self::Tag(tag) => candidate.mark.is_some_and(|mark| match tag {
                Some(tag) => mark.tags.iter().any(|known| known.to_lowercase() == *tag),
                None => !mark.tags.is_empty(),
            }),
            Self::Note(part) => {
                let note = candidate.mark.and_then(|mark| mark.note.as_deref());
                note.is_some_and(|note| part.as_deref().is_none_or(|part| contains(note, part)))
            }
            Self::Problem => candidate.has_problem,
            Self::Predicted => candidate.prediction.is_some(),
            Self::Damaged => candidate.is_damaged,
            Self::Outdated => candidate.is_outdated,
            Self::Among(ids) => ids.binary_search(&candidate.id).is_ok(),
        }
    }
}

impl ClassTest {
    fn new(term: &ClassTerm, labels: &LabelSet) -> Self {
        let mut is_meant = ByClass::new(false);
        for id in term.ids(labels) {
            *is_meant.get_mut(id) = true;
        }
        Self {
            is_meant,
            score: term.score,
            boxes: term.boxes,
        }
    }

    fn passes(&self, id: SampleId, summary: Summary<'_>, gate: &Gate<'_>) -> bool {
        match gate.task() {
            ModelTask::Classification => self.passes_classes(summary, gate),
            ModelTask::Detection => self.passes_boxes(id, summary, gate),
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
                score.is_none_or(|span| span.contains(best))
                    && boxes.is_none_or(|span| span.contains(shown as f32))
            }
        }
    }
}

/// Whether a text contains a part that is in lower case, whatever the case of the text.
fn contains(text: &str, part: &str) -> bool {
    if !text.is_ascii() || !part.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty()
        || text
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_of_no_account_in_any_script() {
        for (text, part, expected) in [
            ("Beach/IMG_1.JPG", "img_1", true),
            ("Beach/IMG_1.JPG", "img_2", false),
            ("ÉTÉ.png", "été", true),
            ("a", "ab", false),
            ("a", "", true),
        ] {
            assert_eq!(contains(text, part), expected, "{text} {part}");
        }
    }
}
