//! The labels of an evaluation as a reviewer corrected them.

use std::collections::{BTreeMap, HashMap};

use super::EvaluateError;
use super::sides::RunSide;
use super::truth::{Judged, each_judged};
use crate::domain::{DrawnBox, ExactBox, ModelTask, RunInfo, Verdict, VerdictTarget};
use crate::evaluation::{EvaluatedClass, ImageSides, LabelCorrections, OTHER_CLASS, Sides};
use crate::tasks::TaskControl;

/// Applies the verdicts on a run, and on labels, to the labels of `sides`: labels judged as wrong are removed, and
/// confirmed boxes that no label of their class covers (IoU ≥ 0.50) are added. An image of a classifier gets its accepted
/// or corrected class. `side` is the run of `sides`, and its verdicts must be saved.
///
/// # Errors
/// Canceled, or the project cannot be read.
pub fn correct(
    sides: &mut Sides,
    side: &RunSide<'_>,
    control: &TaskControl,
) -> Result<LabelCorrections, EvaluateError> {
    control.set_step("verdicts");
    let run = side.run;
    let Sides { task, classes, model_classes, images, .. } = sides;
    let classes = Classes { run, evaluated: classes, of_model: model_classes.iter().copied().collect() };
    let indices: HashMap<String, usize> =
        images.iter().enumerate().map(|(at, image)| (image.name.clone(), at)).collect();
    let is_used =
        |(target, verdict): &(VerdictTarget, Verdict)| target.is_of(run.id) || matches!(verdict, Verdict::Spurious(_));
    let mut corrections = LabelCorrections::default();
    each_judged(side, is_used, control, |judged, verdicts| {
        let Some(index) = indices.get(&judged.name) else {
            return;
        };
        let image = &mut images[*index];
        match task {
            ModelTask::Detection => correct_boxes(image, &judged, verdicts, &classes, &mut corrections),
            ModelTask::Classification => correct_class(image, judged.verdict.as_ref(), &classes, &mut corrections),
        }
    })?;
    Ok(corrections)
}

/// Finds classes of the evaluation.
struct Classes<'s> {
    run: &'s RunInfo,
    evaluated: &'s [EvaluatedClass],
    of_model: HashMap<u32, u32>,
}

impl Classes<'_> {
    /// By the id of the model.
    fn by_id(&self, id: u32) -> Option<u32> {
        if self.run.labels.get(id).is_some() {
            return self.of_model.get(&id).copied();
        }
        self.position(|class| class.id == Some(id.into()))
    }

    /// By the name in the ground truth, or else of the model.
    fn by_name(&self, name: &str) -> Option<u32> {
        let of_model = || self.of_model.get(&self.run.labels.id_of(name)?).copied();
        self.position(|class| class.name == name).or_else(of_model)
    }

    fn position(&self, is_meant: impl Fn(&EvaluatedClass) -> bool) -> Option<u32> {
        self.evaluated.iter().position(is_meant).map(|place| place as u32)
    }
}

fn correct_class(
    image: &mut ImageSides,
    verdict: Option<&Verdict>,
    classes: &Classes<'_>,
    corrections: &mut LabelCorrections,
) {
    let class = match verdict {
        Some(Verdict::Accept) => image.classes.first().map(|(class, _)| *class).filter(|class| *class != OTHER_CLASS),
        Some(Verdict::WrongClass(name)) => classes.by_name(name),
        _ => return,
    };
    if class.is_none() {
        corrections.of_other_classes += 1;
    } else if image.truth_class.is_some() && image.truth_class != class {
        image.truth_class = class;
        corrections.relabeled += 1;
    }
}

/// `verdicts` are all of those on the image, also on its labels.
fn correct_boxes(
    image: &mut ImageSides,
    judged: &Judged,
    verdicts: &[(VerdictTarget, Verdict)],
    classes: &Classes<'_>,
    corrections: &mut LabelCorrections,
) {
    let size = [judged.prediction.width, judged.prediction.height];
    let truths = &mut image.objects.truths;
    let before = truths.len();
    truths.retain(|truth| {
        let class = classes.evaluated.get(truth.class as usize);
        let label = class.and_then(|class| DrawnBox::new(&class.name, truth.bounds.into(), size));
        let is_wrong = |verdict: &Verdict| matches!(verdict, Verdict::Spurious(wrong) if Some(wrong) == label.as_ref());
        !verdicts.iter().any(|(_, verdict)| is_wrong(verdict))
    });
    corrections.removed += (before - truths.len()) as u64;
    let boxes: BTreeMap<u32, &Verdict> = judged.boxes.iter().map(|(index, verdict)| (*index, verdict)).collect();
    let accepts_all = judged.verdict == Some(Verdict::Accept);
    for (index, detection) in (0..).zip(judged.prediction.detections()) {
        let class = match boxes.get(&index) {
            Some(Verdict::Accept) => classes.by_id(detection.class_id),
            Some(Verdict::WrongClass(name)) => classes.by_name(name),
            Some(Verdict::Moved(drawn) | Verdict::Added(drawn)) => classes.by_name(drawn.class()),
            None if accepts_all && judged.shown.contains(&index) => classes.by_id(detection.class_id),
            _ => continue,
        };
        let Some(class) = class else {
            corrections.of_other_classes += 1;
            continue;
        };
        let bounds: ExactBox = detection.bounds.clipped(size[0], size[1]).into();
        if image.objects.add_object(bounds, class) {
            corrections.added += 1;
        }
    }
}
