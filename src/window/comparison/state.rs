//! The comparison of two runs.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::domain::{Prediction, RunId, Sample, SharedList, ViewSettings};
use crate::evaluation::{Agreement, ClassMap, Comparison};
use crate::review::ClassChanges;
use crate::window::state::{Display, Loadable, Run, SourceId, State};

/// The run on screen (left) and the one it is compared with (right).
#[derive(Debug)]
pub struct Comparing {
    pub left: RunId,
    pub right: RunId,
    pub status: Loadable<Compared>,
    /// The class of the left run for each class of the right one.
    pub classes: ClassMap,
    /// The filters used for the comparison, left and right.
    pub(crate) views: [ViewSettings; 2],
    /// Whether its page replaces the image.
    pub is_shown: bool,
}

/// The layout of two compared runs, or of predictions and ground truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum CompareLayout {
    /// The boxes of both over one image.
    #[default]
    Overlaid,
    /// The image twice, with synchronized zoom and position.
    SideBySide,
    /// One image, with one run on each side of a line that the user moves.
    Slider,
    /// The same with the predictions on the left and the ground truth on the right.
    TruthSlider,
}

/// The right side of a divided image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightSide {
    Run(RunId),
    Truth,
}

/// Two runs, left and right, to compare image by image.
#[derive(Debug, Clone)]
pub struct CompareRequest {
    pub source: SourceId,
    pub runs: [RunId; 2],
    pub samples: SharedList<Sample>,
    pub comparison: Box<Comparison>,
}

#[derive(Debug)]
pub struct Compared {
    pub agreement: Arc<Agreement>,
    /// The disagreement per sample, the key of the order by disagreement.
    pub(crate) column: Arc<[f32]>,
    /// The samples whose class changed.
    pub(crate) changes: Arc<ClassChanges>,
}

impl Comparing {
    /// The agreement; `None` before it is computed.
    pub fn agreement(&self) -> Option<&Arc<Agreement>> {
        Some(&self.status.ready()?.agreement)
    }

    pub(crate) fn changes(&self) -> Arc<ClassChanges> {
        let compared = self.status.ready();
        compared.map_or_else(Arc::default, |compared| Arc::clone(&compared.changes))
    }

    pub(crate) fn column(&self) -> Option<&Arc<[f32]>> {
        Some(&self.status.ready()?.column)
    }
}

impl State {
    pub fn shows_comparison(&self) -> bool {
        self.comparing.as_ref().is_some_and(|comparing| comparing.is_shown)
    }

    /// The runs that the one on screen can be compared with, oldest first.
    pub fn comparable_runs(&self) -> impl Iterator<Item = &Run> {
        let current = self.run().filter(|run| run.task().is_some());
        self.runs
            .iter()
            .filter(move |run| current.is_some_and(|current| current.id() != run.id() && current.task() == run.task()))
    }

    /// The runs that can replace the one on screen, oldest first. During a comparison, its other run stays where it is.
    pub(crate) fn runs_to_step(&self) -> impl Iterator<Item = RunId> {
        let right = self.compared_run().and_then(|right| self.runs.get(right));
        let may_replace =
            move |run: &&Run| right.is_none_or(|right| right.id() != run.id() && right.task() == run.task());
        self.runs.iter().filter(may_replace).map(Run::id)
    }

    /// The right side of the image; `None` if it is not divided.
    pub fn right_side(&self) -> Option<RightSide> {
        match self.settings.compare_layout {
            CompareLayout::Overlaid => None,
            CompareLayout::SideBySide | CompareLayout::Slider => Some(RightSide::Run(self.compared_run()?)),
            CompareLayout::TruthSlider => self.shows_truth().then_some(RightSide::Truth),
        }
    }

    /// Whether there is ground truth to compare with, or boxes are stored with the shown image.
    fn shows_truth(&self) -> bool {
        let is_stored = matches!(&self.shown.display, Display::Ready(info) if !info.stored_boxes.is_empty());
        self.opened_truth().is_some() || is_stored
    }

    /// The layouts that there is something to show for, in the order of the key that changes them. Two runs that are not
    /// compared yet count.
    pub(crate) fn layouts(&self) -> Vec<CompareLayout> {
        let has_runs = self.comparing.is_some() || self.comparable_runs().next().is_some();
        let is_possible = |layout: &CompareLayout| match layout {
            CompareLayout::Overlaid => true,
            CompareLayout::SideBySide | CompareLayout::Slider => has_runs,
            CompareLayout::TruthSlider => self.shows_truth(),
        };
        CompareLayout::VARIANTS.iter().copied().filter(is_possible).collect()
    }

    /// The right run's prediction for the shown image, if it is in memory.
    pub fn compared_prediction(&self) -> Option<&Prediction> {
        let right = self.comparing.as_ref()?.right;
        let prediction = self.runs.prediction(right, self.shown_sample()?)?;
        Some(prediction)
    }

    /// The visible boxes of that prediction, highest score first.
    pub fn compared_boxes(&self) -> Vec<usize> {
        let right = self.compared_run();
        let shown = right.zip(self.shown_sample());
        let shown = shown.zip(self.compared_prediction());
        shown.map_or_else(Vec::new, |((right, sample), prediction)| self.visible_boxes(right, sample, prediction))
    }

    /// The live filters of a run's model.
    pub fn view_of_run(&self, run: RunId) -> Cow<'_, ViewSettings> {
        self.runs.get(run).map_or_else(Cow::default, |run| self.settings.view_of(&run.info.card))
    }

    /// Whether the filters have changed since the comparison.
    pub fn comparison_is_outdated(&self) -> bool {
        self.comparing.as_ref().is_some_and(|comparing| {
            let views = [comparing.left, comparing.right].map(|run| self.view_of_run(run));
            *views[0] != comparing.views[0] || *views[1] != comparing.views[1]
        })
    }
}
