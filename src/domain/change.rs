//! Verdicts, and changes to a project file.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::{
    Detection, DrawnBox, FileStamp, LabelSet, NEW_CLASS, Prediction, PredictionContent, RunId, RunInfo, SampleUri,
};

/// The view setting that marks a project as a blind second pass: `true` if it is one.
pub const SECOND_PASS: &str = "second-pass";

/// A person's judgment of an image's prediction, or of one of its boxes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Verdict {
    Accept,
    Reject,
    Unsure,
    /// The position is right, the class is not. Contains the right class, which need not be one of the model's.
    #[strum(serialize = "wrong")]
    WrongClass(String),
    /// The object is there, but not exactly in this position. Contains the right box, of the same or another class.
    Moved(DrawnBox),
    /// The model did not detect this object: the box is a person's. Its index follows those of the prediction and of
    /// other added boxes.
    Added(DrawnBox),
    /// No object is missing in the image, which therefore counts as judged. Says nothing about its boxes.
    Complete,
    /// The labels of the image must be made again: it goes back to the labeler. Says nothing about its boxes.
    Returned,
    /// The ground truth has this object, which the model did not detect, and it is not there.
    Spurious(DrawnBox),
}

impl Verdict {
    /// The class that the person gave, or that of the label, where a verdict has one.
    pub fn right_class(&self) -> Option<&str> {
        match self {
            Self::WrongClass(class) => Some(class),
            Self::Moved(drawn) | Self::Added(drawn) | Self::Spurious(drawn) => Some(drawn.class()),
            Self::Accept | Self::Reject | Self::Unsure | Self::Complete | Self::Returned => None,
        }
    }

    /// The box that the person drew, or that of the label, where a verdict has one.
    pub fn drawn(&self) -> Option<&DrawnBox> {
        match self {
            Self::Moved(drawn) | Self::Added(drawn) | Self::Spurious(drawn) => Some(drawn),
            _ => None,
        }
    }

    /// Whether a verdict on an image also applies to its visible boxes that have none. A class belongs to a single object,
    /// and marks of an image say nothing about its boxes.
    pub fn applies_to_boxes(&self) -> bool {
        matches!(self, Self::Accept | Self::Reject | Self::Unsure)
    }

    /// Whether a verdict on an image says that no object is missing in it.
    pub fn rules_out_missing(&self) -> bool {
        matches!(self, Self::Accept | Self::Complete)
    }

    /// Whether it says more than another verdict on the same image, without contradicting it: an image with a verdict
    /// is complete, unless it goes back to the labeler.
    pub fn implies(&self, other: &Self) -> bool {
        *other == Self::Complete && !matches!(self, Self::Complete | Self::Returned)
    }
}

/// Whether the verdicts on an image and on its visible boxes, with added ones, cover everything in it: it was accepted
/// as a whole, or each box has a verdict. Without boxes, it needs a verdict of its own. Rejected, unsure and returned
/// images are not covered, and neither are images with an unsure box among all those `judged`: nobody said what is
/// right.
pub fn covers_image<'v>(
    image: Option<&Verdict>,
    shown: impl IntoIterator<Item = Option<&'v Verdict>>,
    judged: impl IntoIterator<Item = &'v Verdict>,
) -> bool {
    if judged.into_iter().any(|verdict| *verdict == Verdict::Unsure) {
        return false;
    }
    let mut boxes = shown.into_iter().peekable();
    match image {
        Some(Verdict::Accept) => true,
        Some(Verdict::Complete) => boxes.all(|verdict| verdict.is_some()),
        Some(_) => false,
        None => boxes.peek().is_some() && boxes.all(|verdict| verdict.is_some()),
    }
}

impl Prediction {
    /// The detections that are this box if a person draws them.
    pub fn drawn_as(&self, drawn: &DrawnBox) -> impl Iterator<Item = u32> {
        let size = [self.width, self.height];
        let is_same = move |found: &Detection| DrawnBox::new(&found.label, found.bounds, size).as_ref() == Some(drawn);
        (0..).zip(self.detections()).filter(move |(_, found)| is_same(found)).map(|(index, _)| index)
    }

    /// The prediction as a person corrected it: moved boxes have the drawn position and added boxes follow, all with
    /// the class that the person gave ([`NEW_CLASS`] if it is not in `labels`). An added box has a score of 1. Wrong
    /// classes remain. Added boxes whose index does not follow are skipped with a warning.
    ///
    /// `verdicts` are those on boxes, lowest index first.
    pub fn with_drawn_boxes<'v>(
        &self,
        verdicts: impl IntoIterator<Item = (u32, &'v Verdict)>,
        labels: &LabelSet,
    ) -> Self {
        let mut corrected = self.clone();
        let PredictionContent::Detections(detections) = &mut corrected.content else {
            return corrected;
        };
        let mut skipped = 0;
        for (index, verdict) in verdicts {
            let index = index as usize;
            let Some(drawn) = verdict.drawn() else {
                continue;
            };
            let label = drawn.class().to_owned();
            let class_id = labels.id_of(&label).unwrap_or(NEW_CLASS);
            match verdict {
                Verdict::Moved(_) if index < self.detections().len() => {
                    let moved = &mut detections[index];
                    moved.bounds = drawn.bounds();
                    if moved.label != label {
                        (moved.class_id, moved.label) = (class_id, label);
                    }
                }
                Verdict::Added(_) if index == detections.len() => {
                    detections.push(Detection::new(drawn.bounds(), class_id, label, 1.0));
                }
                _ => skipped += 1,
            }
        }
        if skipped > 0 {
            corrected.warnings.push(format!("has drawn boxes that do not belong to this prediction: {skipped}"));
        }
        corrected
    }
}

/// What a verdict applies to. A verdict belongs to the run whose prediction it judges; an image can be judged before
/// any model has predicted it. Notes and tags belong to the image, whatever the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VerdictTarget {
    /// `None` if the image was judged without a prediction, or for [`Verdict::Spurious`]: labels belong to no run.
    pub run: Option<RunId>,
    /// Index into the detections of the stored prediction, followed by the boxes that a person added; `None` for the
    /// image as a whole. Without a run, only a number.
    pub box_index: Option<u32>,
}

impl VerdictTarget {
    /// Whether it is this run's prediction, one of its boxes, or the image.
    pub fn is_of(self, run: RunId) -> bool {
        self.run.map_or(self.box_index.is_none(), |of| of == run)
    }
}

/// The verdicts, note and tags of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedSample {
    pub sample: SampleUri,
    pub verdicts: Vec<(VerdictTarget, Verdict)>,
    /// Empty if there is none.
    pub note: String,
    pub tags: Vec<String>,
}

impl JudgedSample {
    /// What verdicts on ground truth mean for the same labels opened as a run: one judged as wrong is rejected, or has
    /// the class with which it was added to another run. With the index of the label's box and the original verdict's
    /// target. A label with a verdict of its own keeps that.
    pub fn implied(&self, run: &RunInfo, prediction: &Prediction) -> Vec<(u32, Verdict, VerdictTarget)> {
        let own = self.verdicts.iter().filter(|(target, _)| target.run == Some(run.id));
        let mut taken: HashSet<u32> = own.filter_map(|(target, _)| target.box_index).collect();
        let mut implied = Vec::new();
        for (target, wrong) in self.wrong_labels().filter(|_| run.is_labels()) {
            let mut same = prediction.drawn_as(wrong);
            let Some(index) = same.find(|index| taken.insert(*index)) else { continue };
            let class = self.replacement(wrong, run.id).map(str::to_owned);
            implied.push((index, class.map_or(Verdict::Reject, Verdict::WrongClass), target));
        }
        implied
    }

    /// The labels of the ground truth that were judged as wrong.
    pub fn wrong_labels(&self) -> impl Iterator<Item = (VerdictTarget, &DrawnBox)> {
        self.verdicts.iter().filter_map(|(target, verdict)| match verdict {
            Verdict::Spurious(wrong) => Some((*target, wrong)),
            _ => None,
        })
    }

    /// The class with which a wrong label was added to another run.
    pub fn replacement(&self, wrong: &DrawnBox, run: RunId) -> Option<&str> {
        self.verdicts.iter().find_map(|(target, verdict)| match verdict {
            Verdict::Added(drawn) if target.run != Some(run) && drawn.bounds() == wrong.bounds() => Some(drawn.class()),
            _ => None,
        })
    }

    /// The verdicts on the boxes of a run's prediction, by index, and that on the image (`None`): of the run, or else the
    /// one given without a prediction.
    pub fn on_run(&self, run: Option<RunId>) -> BTreeMap<Option<u32>, &Verdict> {
        let of = |wanted: Option<RunId>| self.verdicts.iter().filter(move |(target, _)| target.run == wanted);
        let before = of(None).filter(|(target, _)| target.box_index.is_none());
        let of_run = run.into_iter().flat_map(|run| of(Some(run)));
        before.chain(of_run).map(|(target, verdict)| (target.box_index, verdict)).collect()
    }
}

/// Whose verdict counts where two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Prefer {
    First,
    Second,
    /// Neither: the box or image becomes unjudged.
    None,
}

/// A box, label or image that both reviewers have judged. A verdict on an image counts for its boxes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// In the first project.
    pub sample: SampleUri,
    /// `None` for the image and for a label.
    pub box_index: Option<u32>,
    /// The model's class, or the label's; `None` for the image of a detector.
    pub class: Option<String>,
    pub verdicts: [Verdict; 2],
    /// Whether each is the verdict on the whole image, and this is a box in it.
    pub are_of_image: [bool; 2],
    pub reviewers: [Option<String>; 2],
}

impl Pair {
    pub fn is_conflict(&self) -> bool {
        self.verdicts[0] != self.verdicts[1]
    }

    /// Whether it is about an object that the model did not detect: an added box, or a label.
    pub fn is_undetected(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Added(_) | Verdict::Spurious(_)))
    }
}

/// A change to a project. Changes apply in the order in which they were made.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    AddRun(Box<RunInfo>),
    RenameRun(RunId, String),
    /// Adds class names to a run that learns them only from its predictions; known ones stay. Written before the
    /// predictions that need them.
    SetRunLabels(RunId, LabelSet),
    /// Deletes a run with its predictions and the verdicts on them.
    DeleteRun(RunId),
    /// Predictions of one run, or why there are none. They replace earlier ones of the same images.
    Predictions {
        run: RunId,
        predictions: Vec<SamplePrediction>,
    },
    /// `None` clears the verdict.
    SetVerdict {
        sample: SampleUri,
        target: VerdictTarget,
        verdict: Option<Verdict>,
        /// The name of the reviewer, if it is known.
        reviewer: Option<String>,
    },
    /// An empty text deletes the note.
    SetNote {
        sample: SampleUri,
        text: String,
    },
    /// Replaces all tags of the image.
    SetTags {
        sample: SampleUri,
        tags: Vec<String>,
    },
    /// View settings by name, as JSON.
    SetView {
        name: String,
        json: String,
    },
}

/// A run's prediction for one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePrediction {
    pub sample: SampleUri,
    /// The predicted file. A different size or time means that the prediction is outdated.
    pub stamp: FileStamp,
    pub result: Result<Prediction, String>,
}

impl SamplePrediction {
    /// Whether the prediction is of this version of the file, as far as is known.
    pub fn is_of(&self, file: &FileStamp) -> bool {
        self.stamp.is_of(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BoundingBox;

    fn drawn(class: &str, bounds: [f32; 4]) -> DrawnBox {
        DrawnBox::new(class, bounds.into(), [100, 50]).unwrap()
    }

    #[test]
    fn drawn_boxes_replace_and_follow_predicted_ones() {
        let labels = LabelSet::parse("bird\ncat").unwrap();
        let found = |score| Detection::new(BoundingBox::new(0.0, 0.0, 9.0, 9.0), 1, "cat", score);
        let content = PredictionContent::Detections(vec![found(0.9), found(0.5)]);
        let stored = Prediction { width: 100, height: 50, content, warnings: vec![] };
        let moved = Verdict::Moved(drawn("cat", [1.0, 1.0, 8.0, 8.0]));
        let added = Verdict::Added(drawn("bird", [20.0, 1.0, 30.0, 8.0]));
        let new_class = Verdict::Added(drawn("kite", [40.0, 1.0, 50.0, 8.0]));
        let verdicts = [(0, &Verdict::Reject), (1, &moved), (2, &added), (3, &new_class)];
        let corrected = stored.with_drawn_boxes(verdicts, &labels);
        let all: Vec<(f32, u32, f32)> =
            corrected.detections().iter().map(|one| (one.bounds.x1, one.class_id, one.score)).collect();
        assert_eq!(all, [(0.0, 1, 0.9), (1.0, 1, 0.5), (20.0, 0, 1.0), (40.0, NEW_CLASS, 1.0)]);
        assert!(corrected.warnings.is_empty());
        let gap = stored.with_drawn_boxes([(3, &added), (7, &moved)], &labels);
        assert_eq!((gap.detections().len(), gap.warnings.len()), (2, 1));
    }
}
