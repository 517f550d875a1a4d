//! The strip with all boxes of one class.

use std::collections::BTreeSet;

use crate::domain::{ModelTask, SampleId, Verdict};
use crate::review::{FilmBox, FilmFrame, FilmOrder, Suspect, SuspectOrder, VerdictKind};
use crate::window::search::state::Basis;
use crate::window::state::{ChosenBoxes, Derived, State};

/// The open strip: its request and its current frames.
#[derive(Debug, Default)]
pub struct Filmstrip {
    /// `None` until the user or the predictions determine it, or for all classes found by a query about the ground
    /// truth.
    pub class: Option<u32>,
    pub order: FilmOrder,
    /// The order of suspicious labels.
    pub suspects: SuspectOrder,
    /// Shows these boxes instead, of all classes or of `class`.
    pub chosen: Option<ChosenBoxes>,
    pub(crate) frames: Derived<FilmBasis, Vec<FilmFrame>>,
    /// Several selected boxes, to judge together; empty if only the box in view is.
    pub selected: BTreeSet<(SampleId, FilmBox)>,
    /// The box that was shown or selected last.
    pub(crate) anchor: Option<(SampleId, FilmBox)>,
}

/// Everything that the frames depend on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilmBasis {
    pub(crate) images: Basis,
    pub(crate) class: Option<u32>,
    /// The overlap above which boxes are hidden, and the revision of the known overlaps.
    pub(crate) hidden: Option<(f32, u64)>,
    pub(crate) order: FilmOrder,
    pub(crate) suspects: SuspectOrder,
    /// The number of the chosen boxes; 0 without them.
    pub(crate) chosen: u64,
}

impl Filmstrip {
    pub(crate) fn new(class: Option<u32>) -> Self {
        Self { class, ..Self::default() }
    }

    /// Whether there is something to gather: a class, or chosen boxes.
    pub(crate) fn has_boxes(&self) -> bool {
        self.class.is_some() || self.chosen.is_some()
    }

    /// The frames in order, for the last requested class and run.
    pub fn frames(&self) -> &[FilmFrame] {
        self.frames.value().map_or(&[], Vec::as_slice)
    }

    /// Whether the requested frames are still being gathered.
    pub fn is_under_way(&self) -> bool {
        self.frames.is_under_way()
    }

    /// The position of a box.
    pub(crate) fn position(&self, (sample, shows): (SampleId, FilmBox)) -> Option<usize> {
        self.frames().iter().position(|frame| (frame.sample, frame.shows) == (sample, shows))
    }

    /// Adds a box to the selected ones or removes it; or selects all between the last one and this one.
    pub(crate) fn select(&mut self, to: (SampleId, FilmBox), extends: bool) {
        let anchor = self.anchor.filter(|anchor| self.position(*anchor).is_some());
        let ends = anchor.and_then(|anchor| Some([self.position(anchor)?, self.position(to)?]));
        if let Some([from, to]) = ends.filter(|_| extends) {
            let between = &self.frames()[from.min(to)..=from.max(to)];
            self.selected = between.iter().map(|frame| (frame.sample, frame.shows)).collect();
            return;
        }
        if self.selected.is_empty() {
            self.selected.extend(anchor.filter(|anchor| *anchor != to));
        }
        if !self.selected.remove(&to) {
            self.selected.insert(to);
        }
        self.anchor = Some(to);
    }

    /// Deselects boxes that are no longer in the strip.
    pub(crate) fn follow_frames(&mut self) {
        if !self.selected.is_empty() {
            let known: BTreeSet<_> = self.frames().iter().map(|frame| (frame.sample, frame.shows)).collect();
            self.selected.retain(|selected| known.contains(selected));
        }
    }

    /// Whether frames have to be gathered for this basis. A pending request is replaced only by one for another class
    /// or run.
    pub(crate) fn needs(&self, basis: &FilmBasis) -> bool {
        match self.frames.pending() {
            Some((_, pending)) => !pending.is_same_question(basis),
            None => self.frames.inputs() != Some(basis),
        }
    }
}

impl FilmBasis {
    pub(crate) fn is_same_question(&self, other: &Self) -> bool {
        self.images.is_same_question(&other.images)
            && (self.class, self.order, self.suspects, self.chosen)
                == (other.class, other.order, other.suspects, other.chosen)
    }
}

impl State {
    /// What the next verdict applies to: the boxes selected in the strip, or the box or undetected object selected on
    /// the image. Empty if it applies to the selected images.
    pub fn judged_boxes(&self) -> Vec<(SampleId, FilmBox)> {
        if let Some(strip) = self.filmstrip.as_ref().filter(|strip| strip.selected.len() > 1) {
            return strip.selected.iter().copied().collect();
        }
        let Some(sample) = self.shown_sample().filter(|_| self.selection.selected().len() == 1) else {
            return Vec::new();
        };
        let boxes = self.shown.prediction.as_ref().map_or(0, |prediction| prediction.detections().len());
        let selected =
            self.shown.selected_box.filter(|index| *index < boxes).map(|index| FilmBox::Predicted(index as u32));
        let object = self.shown.selected_object.map(|index| FilmBox::FalseNegative(index as u32));
        selected.or(object).map(|shows| (sample, shows)).into_iter().collect()
    }

    /// The suspicious labels that the next verdict applies to.
    pub fn selected_suspects(&self) -> Vec<(SampleId, Suspect)> {
        let Some(task) = self.task() else {
            return Vec::new();
        };
        let mut judged = self.judged_boxes();
        if judged.is_empty() && task == ModelTask::Classification && self.selection.selected().len() == 1 {
            judged.extend(self.shown_sample().map(|sample| (sample, FilmBox::Predicted(0))));
        }
        let suspect = |(sample, shows): (SampleId, FilmBox)| {
            let suspects = self.outcomes_of(sample)?.suspects;
            let found = suspects.iter().find(|suspect| suspect.shows(task) == Some(shows))?;
            Some((sample, *found))
        };
        judged.into_iter().filter_map(suspect).collect()
    }

    /// The verdict on a box of the run on screen, on an image of a classifier, or on the label of an undetected object:
    /// accepted if it is right, rejected if it is wrong.
    pub fn verdict_on(&self, sample: SampleId, shows: FilmBox) -> Option<VerdictKind> {
        let run = self.run()?;
        let verdict = match shows {
            FilmBox::Predicted(index) if run.task() == Some(ModelTask::Detection) => {
                self.judgments.box_verdict(sample, index as usize)
            }
            FilmBox::Predicted(_) => self.judgments.verdict(sample),
            FilmBox::FalseNegative(object) => {
                let judged = self.judgments.get(sample)?;
                let (_, verdict) = judged.of_label(run.id(), &self.label_of(sample, object)?)?;
                return Some(match verdict {
                    Verdict::Added(_) => VerdictKind::Accept,
                    verdict => verdict.into(),
                });
            }
        };
        verdict.map(VerdictKind::from)
    }

    /// The initial class of a strip: that of the selected box or class, or of the best one on screen, or the first of
    /// the run.
    pub(crate) fn class_at_hand(&self) -> Option<u32> {
        use crate::domain::SaliencyTarget;
        let pending = self.question().map(|question| match question.target {
            SaliencyTarget::Class(class) => class,
            SaliencyTarget::Box { class_id, .. } => class_id,
        });
        let first = || {
            let predictions = &self.run()?.predictions;
            let (_, summary) = predictions.iter().find(|(_, found)| !found.classes.is_empty())?;
            summary.classes.first().copied()
        };
        pending.or_else(first)
    }
}
