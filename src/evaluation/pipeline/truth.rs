//! Opens ground truth.

use super::EvaluateError;
use super::sides::{RunSide, notes_of};
use crate::annotations::{self, Found, JudgedImage};
use crate::domain::{
    JudgedSample, LabelSet, NamePattern, Prediction, RunInfo, SamplePrediction, SampleUri, TruthLabel, Verdict,
    VerdictTarget, ViewSettings,
};
use crate::evaluation::{GroundTruth, NoTruth};
use crate::image::source::Files;
use crate::model::catalog::{built_in_labels, imagenet_class};
use crate::project::Project;
use crate::review::VerdictKind;
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of judged images whose predictions are read together.
const READ_AT_ONCE: usize = 1000;

#[derive(Clone)]
pub enum TruthFrom {
    /// A file or folder of annotations; for a dataset with several splits, the given one or the default.
    Files { files: Files, split: Option<String>, scores: TruthScores },
    /// The verdicts on a run, as `view` shows it.
    Verdicts { project: Project, run: Box<RunInfo>, view: Box<ViewSettings> },
    /// The class of each image is in its name.
    Names { names: Vec<String>, pattern: NamePattern },
}

/// What scores in a ground-truth file mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TruthScores {
    /// The file contains predictions, unless every score is 1.
    #[default]
    OfPredictions,
    /// Nothing: the user declared the file ground truth.
    Ignored,
}

/// Reads ground truth; the format of files is detected from their content, and stated in the notes of the result.
/// Progress is in bytes. `labels` names classes that only have numbers.
///
/// # Errors
/// It cannot be read, is not ground truth, or the class names do not fit.
pub fn open_truth(
    from: &TruthFrom,
    labels: Option<&LabelSet>,
    control: &TaskControl,
) -> Result<GroundTruth, EvaluateError> {
    control.begin(ProgressUnit::Bytes);
    control.set_step("ground truth");
    let (name, found) = match from {
        TruthFrom::Files { files, split, scores } => {
            let mut found = annotations::open_split(files, split.as_deref(), control)?;
            if *scores == TruthScores::Ignored && found.annotations.has_scores() {
                found.annotations.set_scores(None);
                found.notes.push("its scores are ignored".to_owned());
            }
            (files.name(), found)
        }
        TruthFrom::Verdicts { project, run, view } => {
            (format!("verdicts on the run “{}”", run.name), verdicts(project, run, view, control)?)
        }
        TruthFrom::Names { names, pattern } => {
            let names = names.iter().map(String::as_str);
            ("image names".to_owned(), annotations::from_file_names(names, pattern))
        }
    };
    truth_of(name, found, labels)
}

/// Converts annotations to ground truth.
///
/// # Errors
/// They are not ground truth, or the class names do not fit.
pub fn truth_of(name: String, mut found: Found, labels: Option<&LabelSet>) -> Result<GroundTruth, EvaluateError> {
    if name_wordnet_ids(&mut found.annotations.classes) {
        found.notes.push("its class folders are WordNet ids, read as ImageNet's classes".to_owned());
    }
    if let Some(labels) = labels {
        annotations::name_classes(&mut found.annotations, labels)
            .map_err(|reason| EvaluateError::ClassNames { name: name.clone(), reason })?;
    }
    let notes = notes_of(&name, &found);
    let problem = found.annotations.problems.iter().next().map(ToString::to_string);
    GroundTruth::new(name.clone(), found.annotations, notes).map_err(|reason| match (reason, problem) {
        (NoTruth::Nothing, Some(problem)) => EvaluateError::NothingUsable { name, problem },
        (reason, _) => EvaluateError::NoTruth { name, reason },
    })
}

/// Gives ImageNet's numbers and names to classes that are named by `WordNet` ids, as ImageNet's folders are. Returns
/// whether there are any.
fn name_wordnet_ids(classes: &mut [TruthLabel]) -> bool {
    let number = |class: &TruthLabel| class.name.as_deref().and_then(imagenet_class);
    let numbers: Option<Vec<u32>> = classes.iter().map(number).collect();
    let Some((numbers, labels)) = numbers.filter(|numbers| !numbers.is_empty()).zip(built_in_labels("imagenet")) else {
        return false;
    };
    for (class, number) in classes.iter_mut().zip(numbers) {
        *class = TruthLabel { number: Some(number.into()), name: labels.get(number).map(str::to_owned) };
    }
    true
}

/// An image with verdicts, and the judged prediction with the boxes that a person moved or added.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) prediction: Prediction,
    /// On the prediction, or else the one given without a prediction.
    pub(super) verdict: Option<Verdict>,
    /// Lowest index first.
    pub(super) boxes: Vec<(u32, Verdict)>,
    /// The visible and the confirmed boxes.
    pub(super) shown: Vec<u32>,
}

impl Judged {
    fn new(judged: &JudgedSample, prediction: &Prediction, side: &RunSide<'_>, root: Option<&str>) -> Self {
        let RunSide { run, view, .. } = side;
        let verdicts = judged.on_run(Some(run.id));
        let image = verdicts.get(&None).map(|verdict| (*verdict).clone());
        let boxes = verdicts.into_iter().filter_map(|(index, verdict)| Some((index?, verdict.clone())));
        let implied = judged.implied(run, prediction).into_iter().map(|(index, verdict, _)| (index, verdict));
        let mut boxes: Vec<(u32, Verdict)> = boxes.chain(implied).collect();
        boxes.sort_unstable_by_key(|(index, _)| *index);
        let drawn = boxes.iter().map(|(index, verdict)| (*index, verdict));
        let prediction = prediction.with_drawn_boxes(drawn, &run.labels);
        let confirmed = boxes.iter().filter(|(_, verdict)| VerdictKind::from(verdict).confirms());
        let confirmed: Vec<u32> = confirmed.map(|(index, _)| *index).collect();
        let shown = view.visible_detections(&prediction, &confirmed);
        let shown = shown.into_iter().map(|index| index as u32).collect();
        Self { name: judged.sample.name_below(root), prediction, verdict: image, boxes, shown }
    }
}

/// Reads the predicted images with a verdict that `is_used`, and passes them on with all of their verdicts.
pub(super) fn each_judged(
    side: &RunSide<'_>,
    is_used: impl Fn(&(VerdictTarget, Verdict)) -> bool,
    control: &TaskControl,
    mut each: impl FnMut(Judged, &[(VerdictTarget, Verdict)]),
) -> Result<(), EvaluateError> {
    let RunSide { project, run, .. } = side;
    let root = project.root();
    let mut judged = project.judgments()?;
    judged.retain(|judged| judged.verdicts.iter().any(&is_used));
    for judged in judged.chunks(READ_AT_ONCE) {
        control.checkpoint()?;
        let uris: Vec<SampleUri> = judged.iter().map(|judged| judged.sample.clone()).collect();
        for (judged, stored) in judged.iter().zip(project.predictions(run.id, &uris)?) {
            if let Some(SamplePrediction { result: Ok(prediction), .. }) = stored {
                each(Judged::new(judged, &prediction, side, root.as_deref()), &judged.verdicts);
            }
        }
    }
    Ok(())
}

fn verdicts(
    project: &Project,
    run: &RunInfo,
    view: &ViewSettings,
    control: &TaskControl,
) -> Result<Found, EvaluateError> {
    let side = RunSide { project, run, view, listed: None };
    let mut images = Vec::new();
    let is_used = |(target, verdict): &(VerdictTarget, Verdict)| {
        target.is_of(run.id) || run.is_labels() && matches!(verdict, Verdict::Spurious(_))
    };
    each_judged(&side, is_used, control, |image, _| images.push(image))?;
    let judged_images = images.iter().map(|image| JudgedImage {
        name: &image.name,
        prediction: &image.prediction,
        verdict: image.verdict.as_ref(),
        boxes: &image.boxes,
        shown: &image.shown,
    });
    Ok(annotations::from_verdicts(judged_images, &run.labels))
}
