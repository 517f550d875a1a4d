//! The labels of an evaluation as a reviewer corrected them.

use std::collections::{BTreeMap, HashMap};

use super::EvaluateError;
use super::sides::RunSide;
use super::truth::READ_AT_ONCE;
use crate::domain::{
    DrawnBox, ExactBox, ModelTask, Prediction, RunId, RunInfo, SamplePrediction, SampleUri, Verdict, VerdictTarget,
    ViewSettings,
};
use crate::evaluation::{EvaluatedClass, ImageSides, LabelCorrections, OTHER_CLASS, Sides};
use crate::review::VerdictKind;
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
    let RunSide { project, run, view, .. } = *side;
    control.set_step("verdicts");
    let root = project.root();
    let Sides { task, classes, model_classes, images, .. } = sides;
    let classes = Classes { run, evaluated: classes, of_model: model_classes.iter().copied().collect() };
    let indices: HashMap<String, usize> =
        images.iter().enumerate().map(|(at, image)| (image.name.clone(), at)).collect();
    let is_used =
        |(target, verdict): &(VerdictTarget, Verdict)| target.is_of(run.id) || matches!(verdict, Verdict::Spurious(_));
    let mut judged = project.judgments()?;
    judged.retain(|judged| judged.verdicts.iter().any(is_used));
    let mut corrections = LabelCorrections::default();
    for judged in judged.chunks(READ_AT_ONCE) {
        control.checkpoint()?;
        let uris: Vec<SampleUri> = judged.iter().map(|judged| judged.sample.clone()).collect();
        for (judged, stored) in judged.iter().zip(project.predictions(run.id, &uris)?) {
            let index = indices.get(&judged.sample.name_below(root.as_deref()));
            let (Some(index), Some(SamplePrediction { result: Ok(prediction), .. })) = (index, stored) else {
                continue;
            };
            let image = &mut images[*index];
            match task {
                ModelTask::Detection => {
                    correct_boxes(image, &prediction, &judged.verdicts, view, &classes, &mut corrections);
                }
                ModelTask::Classification => correct_class(image, &judged.verdicts, &classes, &mut corrections),
            }
        }
    }
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

/// The verdict on the image: on the prediction, or else the one given without a prediction.
fn of_image(verdicts: &[(VerdictTarget, Verdict)], run: RunId) -> Option<&Verdict> {
    let of = |run| verdicts.iter().find(|(target, _)| *target == VerdictTarget { run, box_index: None });
    of(Some(run)).or_else(|| of(None)).map(|(_, verdict)| verdict)
}

fn correct_class(
    image: &mut ImageSides,
    verdicts: &[(VerdictTarget, Verdict)],
    classes: &Classes<'_>,
    corrections: &mut LabelCorrections,
) {
    let class = match of_image(verdicts, classes.run.id) {
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

fn correct_boxes(
    image: &mut ImageSides,
    prediction: &Prediction,
    verdicts: &[(VerdictTarget, Verdict)],
    view: &ViewSettings,
    classes: &Classes<'_>,
    corrections: &mut LabelCorrections,
) {
    let (run, size) = (classes.run.id, [prediction.width, prediction.height]);
    let truths = &mut image.objects.truths;
    let before = truths.len();
    truths.retain(|truth| {
        let class = classes.evaluated.get(truth.class as usize);
        let label = class.and_then(|class| DrawnBox::new(&class.name, truth.bounds.into(), size));
        let is_wrong = |verdict: &Verdict| matches!(verdict, Verdict::Spurious(wrong) if Some(wrong) == label.as_ref());
        !verdicts.iter().any(|(_, verdict)| is_wrong(verdict))
    });
    corrections.removed += (before - truths.len()) as u64;
    let of_run = verdicts.iter().filter(|(target, _)| target.run == Some(run));
    let boxes: BTreeMap<u32, &Verdict> =
        of_run.filter_map(|(target, verdict)| Some((target.box_index?, verdict))).collect();
    let accepts_all = of_image(verdicts, run) == Some(&Verdict::Accept);
    let drawn = prediction.with_drawn_boxes(boxes.iter().map(|(at, verdict)| (*at, *verdict)), &classes.run.labels);
    let confirmed = boxes.iter().filter(|(_, verdict)| VerdictKind::from(**verdict).confirms());
    let confirmed: Vec<u32> = confirmed.map(|(at, _)| *at).collect();
    let shown = view.visible_detections(&drawn, &confirmed);
    for (index, detection) in drawn.detections().iter().enumerate() {
        let class = match boxes.get(&(index as u32)) {
            Some(Verdict::Accept) => classes.by_id(detection.class_id),
            Some(Verdict::WrongClass(name)) => classes.by_name(name),
            Some(Verdict::Moved(drawn) | Verdict::Added(drawn)) => classes.by_name(drawn.class()),
            None if accepts_all && shown.contains(&index) => classes.by_id(detection.class_id),
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
