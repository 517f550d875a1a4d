//! Matches ground truth with predictions, image by image and class by class.

use std::collections::HashMap;

use super::{EvaluateError, some_of};
use crate::annotations::Found;
use crate::annotations::matching::{
    ClassList, Doubt, ImageKey, ImageMatches, MatchRules, MatchSummary, OtherFolders, Unmatched, classes_of,
};
use crate::domain::{
    AnnotatedImage, Annotations, FileStamp, ModelTask, Prediction, PredictionStatus, RunInfo, Sample, SampleId,
    SamplePrediction, SampleUri, TruthLabel, ViewSettings, counted, decimal, grouped,
};
use crate::evaluation::{
    BoxChecks, Counted, DetectedObject, GroundTruth, ImageObjects, ImageSides, MatchedClasses, OTHER_CLASS, Sides,
    annotated_detections, detections,
};
use crate::image::source::stamp_on_disk;
use crate::project::Project;
use crate::tasks::{ProgressUnit, TaskControl};

/// The predictions of a run in a project.
pub struct RunSide<'r> {
    pub project: &'r Project,
    pub run: &'r RunInfo,
    /// The minimum scores and NMS.
    pub view: &'r ViewSettings,
    /// The current images: others are skipped, and so are predictions of older versions. `None`: all images; only local
    /// files can have changed since prediction.
    pub listed: Option<ListedSamples>,
}

/// The index of each image in a listing, and its current file.
pub struct ListedSamples(HashMap<SampleUri, (SampleId, FileStamp)>);

impl<'s> FromIterator<&'s Sample> for ListedSamples {
    fn from_iter<I: IntoIterator<Item = &'s Sample>>(samples: I) -> Self {
        let listed = samples.into_iter().enumerate();
        Self(listed.map(|(at, sample)| (sample.uri.clone(), (SampleId::from_index(at), sample.stamp()))).collect())
    }
}

impl RunSide<'_> {
    /// An image's index in the listing, if there is one, and its current file; `None` if it is not listed.
    fn listed(&self, uri: &SampleUri) -> Option<(Option<SampleId>, FileStamp)> {
        let Some(listed) = &self.listed else {
            return Some((None, stamp_on_disk(uri).unwrap_or_default()));
        };
        let (sample, stamp) = listed.0.get(uri)?;
        Some((Some(*sample), stamp.clone()))
    }
}

/// Predictions from another tool.
pub struct FileSide<'f> {
    /// The name of the file or folder.
    pub name: String,
    pub found: Found,
    /// The minimum score of all classes.
    pub min_score: f64,
    /// The size of each ground-truth image in its own file, in pixels; `None` if no images are given.
    pub sizes: Option<&'f [Option<[u32; 2]>]>,
}

/// The detected format of annotations, and other notes.
pub(super) fn notes_of(name: &str, found: &Found) -> Vec<String> {
    let annotations = &found.annotations;
    let mut notes = vec![format!(
        "{name}: {}, {}, {}.",
        found.format,
        counted(annotations.images.len(), "image", "images"),
        counted(annotations.classes.len(), "class", "classes")
    )];
    notes.extend(found.notes.iter().cloned());
    notes
}

/// Predictions from another tool against ground truth.
///
/// # Errors
/// The sides have nothing in common, or are of different kinds.
pub fn annotation_sides(truth: &GroundTruth, side: FileSide, rules: MatchRules) -> Result<Sides, EvaluateError> {
    let FileSide { name, found, min_score, sizes } = side;
    let notes = notes_of(&name, &found);
    let predicted = found.annotations;
    check_usable(truth, &name, &predicted)?;
    let mut matching = Matching::new(truth, rules, name, notes);
    let matched = matching.match_classes(&predicted.classes)?;
    let counted = &mut matching.counted;
    counted.problems = predicted.problems.counts().map(|(kind, count)| (kind.word(), count)).collect();
    for image in &predicted.images {
        counted.images_failed += u64::from(matches!(image.status, PredictionStatus::Failed(_)));
        counted.images_outdated += u64::from(image.status == PredictionStatus::Outdated);
    }
    let is_predicted = |image: &AnnotatedImage| image.status == PredictionStatus::Predicted;
    let keys: Vec<ImageKey<'_>> = predicted.images.iter().map(ImageKey::new).collect();
    let name_of = |index: usize| predicted.images[index].shown_name();
    let matches = matching.match_images(&keys, name_of, |index| is_predicted(&predicted.images[index]))?;
    let (mut with_objects, mut unpredicted) = (0, 0);
    let mut compared = 0;
    for index in truth.order() {
        let partner = matches.index(index).map(|partner| &predicted.images[partner as usize]);
        with_objects += u64::from(!truth.images[index].boxes.is_empty());
        if !partner.is_some_and(is_predicted) {
            matching.counted.images_without_prediction += u64::from(partner.is_none());
            unpredicted += u64::from(partner.is_none() && !truth.images[index].boxes.is_empty());
            // Files of detections need not list images in which nothing was found.
            if partner.is_some() || truth.task == ModelTask::Classification {
                continue;
            }
        }
        let measured = sizes.and_then(|sizes| sizes[index]);
        if matching.add_annotated(index, partner, measured, &matched) {
            compared += u64::from(partner.is_some());
        }
    }
    if let (None, Some((side, image))) = (sizes, matching.left_out.unknown.first()) {
        return Err(EvaluateError::UnknownSize { side, image: image.clone() });
    }
    if unpredicted * 4 > with_objects {
        matching.doubts.push(Doubt::Unpredicted { count: unpredicted, of: with_objects });
    }
    let thresholds = vec![min_score; truth.classes.classes.len()];
    matching.finish(compared, &matches, ClassList::Predicted, matched, Vec::new(), thresholds)
}

/// # Errors
/// The predictions have no scores, are lost, or are of another kind than the ground truth.
fn check_usable(truth: &GroundTruth, name: &str, predicted: &Annotations) -> Result<(), EvaluateError> {
    let is_empty = predicted.images.iter().all(|image| image.boxes.is_empty() && image.labels.is_empty());
    if !is_empty && !predicted.has_scores() {
        return Err(EvaluateError::NoScores { name: name.to_owned() });
    }
    let are_lost = is_empty || predicted.images.iter().all(|image| image.status != PredictionStatus::Predicted);
    if let (true, Some(problem)) = (are_lost, predicted.problems.iter().next()) {
        return Err(EvaluateError::NothingUsable { name: name.to_owned(), problem: problem.to_string() });
    }
    let is_fitting = |image: &AnnotatedImage| match truth.task {
        ModelTask::Detection => image.labels.is_empty(),
        ModelTask::Classification => image.boxes.is_empty(),
    };
    match predicted.images.iter().find(|image| !is_fitting(image)) {
        Some(other) => Err(EvaluateError::OtherTask {
            truth: truth.task,
            predictions: format!("the prediction of {}", other.name),
        }),
        None => Ok(()),
    }
}

/// A run against ground truth.
///
/// # Errors
/// The sides have nothing in common, are of different kinds, or the project cannot be read.
pub fn run_sides(
    truth: &GroundTruth,
    side: &RunSide<'_>,
    rules: MatchRules,
    control: &TaskControl,
) -> Result<Sides, EvaluateError> {
    let RunSide { run, view, .. } = side;
    if run.card.must_predict()? != truth.task {
        let predictions = format!("the run “{}”", run.name);
        return Err(EvaluateError::OtherTask { truth: truth.task, predictions });
    }
    let notes = vec![format!("Predictions: run “{}”.", run.name)];
    let mut matching = Matching::new(truth, rules, run.name.clone(), notes);
    let classes = RunClasses::new(&mut matching, run)?;
    let mut thresholds = vec![decimal(view.min_score); truth.classes.classes.len()];
    for (id, min_score) in &view.min_score_by_class {
        if let Some(place) = classes.place(*id) {
            thresholds[place as usize] = decimal(*min_score);
        }
    }
    let mut stored = side.stored(&classes, &mut matching, control)?;
    let keys: Vec<ImageKey<'_>> = stored.iter().map(|stored| ImageKey::named(&stored.name)).collect();
    let matches = matching.match_images(&keys, |index| stored[index].name.clone(), |_| true)?;
    drop(keys);
    let keys: Vec<ImageKey<'_>> = matching.skipped.iter().map(|name| ImageKey::named(name)).collect();
    let skipped = ImageMatches::between(&truth.keys(), &keys, rules.folders);
    for index in truth.order() {
        let Some(partner) = matches.index(index) else {
            matching.counted.images_without_prediction += u64::from(skipped.index(index).is_none());
            continue;
        };
        let partner = &mut stored[partner as usize];
        let known = [("in the ground truth", truth.images[index].size), ("in the predictions", Some(partner.size))];
        let image = matching.left_out.size(truth, index, known).ok().and_then(|size| truth.image(index, size));
        if let Some(image) = image {
            matching.counted.predictions_of_other_classes += partner.of_other_classes;
            matching.add(Some(partner.size), partner.add_to(image));
        }
    }
    let list = if run.labels.is_empty() { ClassList::Predicted } else { ClassList::Complete };
    let model_classes = run.labels.iter().filter_map(|(id, _)| Some((id, classes.place(id)?))).collect();
    let compared = matching.images.len() as u64;
    matching.finish(compared, &matches, list, classes.matched, model_classes, thresholds)
}

impl RunSide<'_> {
    /// The current predictions of the run.
    ///
    /// # Errors
    /// No prediction has a ground-truth class, or the project cannot be read.
    fn stored(
        &self,
        classes: &RunClasses,
        matching: &mut Matching<'_>,
        control: &TaskControl,
    ) -> Result<Vec<Stored>, EvaluateError> {
        control.begin(ProgressUnit::Images);
        control.set_step("project");
        let root = self.project.root();
        let mut stored: Vec<Stored> = Vec::new();
        let mut each = |uri: &SampleUri, stamp: &FileStamp, result: Result<Prediction, String>| {
            let Some((sample, now)) = self.listed(uri) else { return };
            let Ok(prediction) = result else {
                matching.counted.images_failed += 1;
                matching.skipped.push(uri.name_below(root.as_deref()));
                return;
            };
            if !stamp.is_of(&now) {
                matching.counted.images_outdated += 1;
                matching.skipped.push(uri.name_below(root.as_deref()));
                return;
            }
            let kept = prediction.kept_without_overlaps(self.view.nms_iou);
            let (places, found) = detections(&prediction, &kept, |class| classes.place(class));
            let scored = prediction.classes().iter().map(|class| (classes.place(class.index), decimal(class.score)));
            stored.push(Stored {
                name: uri.name_below(root.as_deref()),
                size: [prediction.width, prediction.height],
                sample,
                places,
                of_other_classes: (kept.len() - found.len()) as u64,
                detections: found,
                classes: classified(scored),
            });
        };
        self.project.each_prediction(self.run.id, control, |page| {
            for SamplePrediction { sample, stamp, result } in page {
                each(&sample, &stamp, result);
            }
        })?;
        control.checkpoint()?;
        let has_class = |stored: &Stored| {
            !stored.detections.is_empty() || stored.classes.iter().any(|(class, _)| *class != OTHER_CLASS)
        };
        let has_others = |stored: &Stored| stored.of_other_classes > 0 || !stored.classes.is_empty();
        if stored.iter().any(has_others) && !stored.iter().any(has_class) {
            return Err(no_class_in_common(matching.truth, &classes.predicted));
        }
        Ok(stored)
    }
}

/// The two sides while they are matched.
struct Matching<'t> {
    truth: &'t GroundTruth,
    rules: MatchRules<'t>,
    counted: Counted,
    notes: Vec<String>,
    left_out: LeftOut,
    /// Of the boxes of the ground truth, and of the predictions.
    checks: [BoxChecks; 2],
    doubts: Vec<Doubt>,
    images: Vec<ImageSides>,
    /// The names of failed and outdated images of a run.
    skipped: Vec<String>,
}

impl<'t> Matching<'t> {
    fn new(truth: &'t GroundTruth, rules: MatchRules<'t>, predictions: String, notes: Vec<String>) -> Self {
        let counted = Counted { predictions, ..Counted::default() };
        let (left_out, checks) = (LeftOut::default(), Default::default());
        let (doubts, images, skipped) = Default::default();
        Self { truth, rules, counted, notes, left_out, checks, doubts, images, skipped }
    }

    /// # Errors
    /// No class matches.
    fn match_classes(&mut self, predicted: &[TruthLabel]) -> Result<MatchedClasses, EvaluateError> {
        let matched = self.truth.match_classes(predicted, self.rules.corrections)?;
        let unmatched: Vec<&TruthLabel> = matched.matches.unmatched().collect();
        if unmatched.len() == predicted.len() && !predicted.is_empty() {
            return Err(no_class_in_common(self.truth, predicted));
        }
        let unused = &matched.matches.unused_corrections;
        if !unused.is_empty() {
            self.notes.push(format!(
                "Class corrections for classes that the predictions do not have: {}.",
                some_of(unused.iter())
            ));
        }
        if !unmatched.is_empty() {
            let consequence = match self.truth.task {
                ModelTask::Detection => "their boxes are skipped",
                ModelTask::Classification => "images predicted as these are incorrect",
            };
            self.notes.push(format!(
                "{} of {} in the predictions are not in the ground truth; {consequence}: {}.",
                grouped(unmatched.len()),
                counted(predicted.len(), "class", "classes"),
                some_of(unmatched.into_iter())
            ));
        }
        Ok(matched)
    }

    /// Matches the images, and counts and names the predicted ones that are skipped.
    ///
    /// # Errors
    /// No image matches.
    fn match_images(
        &mut self,
        keys: &[ImageKey],
        name_of: impl Fn(usize) -> String,
        is_predicted: impl Fn(usize) -> bool,
    ) -> Result<ImageMatches, EvaluateError> {
        let mut matches = ImageMatches::between(&self.truth.keys(), keys, self.rules.folders);
        if let Some(OtherFolders { example: [truth, predicted], count, .. }) = matches.only_other_folders() {
            let (truth, predicted) = (truth.clone(), predicted.clone());
            return Err(EvaluateError::OtherFolders { count: *count, truth, predicted });
        }
        if matches.left.iter().all(Result::is_err) {
            return Err(EvaluateError::NoImageInCommon {
                truth: some_of(self.truth.images.iter().map(AnnotatedImage::shown_name)),
                predicted: some_of((0..keys.len()).map(name_of)),
            });
        }
        matches.right_unmatched.retain(|(index, _)| is_predicted(*index as usize));
        let Self { counted: count, notes, .. } = self;
        for (why, total, [one, several]) in [
            (
                Unmatched::Missing,
                &mut count.images_without_truth,
                [
                    "predicted image is not in the ground truth and is skipped",
                    "predicted images are not in the ground truth and are skipped",
                ],
            ),
            (
                Unmatched::Ambiguous,
                &mut count.images_ambiguous,
                [
                    "predicted image has an ambiguous name and is skipped",
                    "predicted images have ambiguous names and are skipped",
                ],
            ),
        ] {
            let names = matches.right_unmatched.iter().filter(|(_, reason)| *reason == why);
            let names: Vec<String> = names.map(|(index, _)| name_of(*index as usize)).collect();
            *total = names.len() as u64;
            if !names.is_empty() {
                notes.push(format!("{}: {}.", counted(names.len(), one, several), some_of(names.iter())));
            }
        }
        Ok(matches)
    }

    /// Adds an image with its prediction, if there is one. `measured`: its size in its own file. False if it is skipped.
    fn add_annotated(
        &mut self,
        index: usize,
        partner: Option<&AnnotatedImage>,
        measured: Option<[u32; 2]>,
        matched: &MatchedClasses,
    ) -> bool {
        let truth = self.truth;
        let known = [
            ("in the ground truth", truth.images[index].size),
            ("in the predictions", partner.and_then(|partner| partner.size)),
            ("in its file", measured),
        ];
        let Ok(size) = self.left_out.size(truth, index, known) else { return false };
        let Some(mut image) = truth.image(index, size) else {
            self.left_out.unknown.push(("the ground truth", truth.images[index].shown_name()));
            return false;
        };
        if let Some(partner) = partner {
            let class_of = |class: u32| matched.places.get(class as usize).copied().flatten();
            let Some(detections) = annotated_detections(partner, size, class_of) else {
                self.left_out.unknown.push(("the predictions", partner.shown_name()));
                return false;
            };
            self.counted.predictions_of_other_classes += (partner.boxes.len() - detections.len()) as u64;
            image.objects.detections = detections;
            let scored = partner.labels.iter().map(|label| (class_of(label.class), label.score.unwrap_or(1.0)));
            image.classes = classified(scored);
        }
        self.add(size, image);
        true
    }

    fn add(&mut self, size: Option<[u32; 2]>, image: ImageSides) {
        let is_other = image.classes.first().is_some_and(|(class, _)| *class == OTHER_CLASS);
        self.counted.predictions_of_other_classes += u64::from(is_other);
        let ImageObjects { truths, detections } = &image.objects;
        let [of_truth, of_predictions] = &mut self.checks;
        of_truth.add(&image.name, size, truths.iter().map(|truth| (truth.bounds, truth.class, 1.0)));
        of_predictions.add(&image.name, size, detections.iter().map(|found| (found.bounds, found.class, found.score)));
        self.images.push(ImageSides { size, ..image });
    }

    /// `compared`: the number of images with both sides.
    ///
    /// # Errors
    /// No image is left to compare.
    fn finish(
        self,
        compared: u64,
        matches: &ImageMatches,
        list: ClassList,
        matched: MatchedClasses,
        model_classes: Vec<(u32, u32)>,
        thresholds: Vec<f64>,
    ) -> Result<Sides, EvaluateError> {
        let Self { truth, mut counted, mut notes, left_out, checks, doubts, images, .. } = self;
        left_out.finish(compared, (&mut counted, &mut notes))?;
        let mut matching = MatchSummary::new(matches, truth.counted_classes(), &matched.matches, list);
        matching.doubts.extend(doubts);
        for (checks, side) in checks.into_iter().zip(["the ground truth", "the predictions"]) {
            let (doubts, more) = checks.finish(side);
            matching.doubts.extend(doubts);
            notes.extend(more);
        }
        notes.splice(0..0, truth.notes.iter().cloned());
        notes.extend(matching.notes());
        counted.truth.clone_from(&truth.name);
        for (kind, count) in truth.problems.counts() {
            *counted.problems.entry(kind.word()).or_default() += count;
        }
        let (task, classes) = (truth.task, truth.classes.classes.clone());
        let split = truth.split.as_ref().map(|split| split.name.clone());
        Ok(Sides { task, classes, matched, model_classes, images, thresholds, counted, matching, split, notes })
    }
}

/// Images that are skipped because of their size.
#[derive(Default)]
struct LeftOut {
    /// Each with its sizes.
    contradicting: Vec<String>,
    /// Each with the side whose boxes are fractions of it.
    unknown: Vec<(&'static str, String)>,
}

/// The known sizes of an image contradict each other.
struct Contradiction;

impl LeftOut {
    /// The size of an image, if known.
    ///
    /// # Errors
    /// The sizes contradict each other: boxes of different scale or orientation cannot be compared.
    fn size<const N: usize>(
        &mut self,
        truth: &GroundTruth,
        index: usize,
        known: [(&str, Option<[u32; 2]>); N],
    ) -> Result<Option<[u32; 2]>, Contradiction> {
        let mut sizes = known.into_iter().filter_map(|(place, size)| Some((place, size?)));
        let Some((first_place, first)) = sizes.next() else {
            return Ok(None);
        };
        let other = sizes.find(|(_, size)| *size != first && truth.task == ModelTask::Detection);
        let Some((other_place, other)) = other else {
            return Ok(Some(first));
        };
        let text = |[width, height]: [u32; 2]| format!("{width} × {height}");
        let name = truth.images[index].shown_name();
        self.contradicting.push(format!("{name} ({} {first_place}, {} {other_place})", text(first), text(other)));
        Err(Contradiction)
    }

    /// # Errors
    /// No image is left to compare.
    fn finish(self, compared: u64, (count, notes): (&mut Counted, &mut Vec<String>)) -> Result<(), EvaluateError> {
        let Self { contradicting, unknown } = self;
        match (contradicting.first(), unknown.first()) {
            (Some(example), _) if compared == 0 => {
                return Err(EvaluateError::OtherSizes { example: example.clone() });
            }
            (None, Some((side, image))) if compared == 0 => {
                return Err(EvaluateError::UnknownSize { side, image: image.clone() });
            }
            _ => {}
        }
        count.images_of_other_size = contradicting.len() as u64;
        count.images_without_size = unknown.len() as u64;
        let unknown: Vec<String> = unknown.into_iter().map(|(_, image)| image).collect();
        for (images, [one, several]) in [
            (
                contradicting,
                [
                    "image is skipped, because its sizes contradict each other",
                    "images are skipped, because their sizes contradict each other",
                ],
            ),
            (
                unknown,
                [
                    "image is skipped, because its size is needed and it is not in the source",
                    "images are skipped, because their sizes are needed and they are not in the source",
                ],
            ),
        ] {
            if !images.is_empty() {
                notes.push(format!("{}: {}.", counted(images.len(), one, several), some_of(images.iter())));
            }
        }
        Ok(())
    }
}

/// The classes of a run among the ground-truth classes.
struct RunClasses {
    predicted: Vec<TruthLabel>,
    by_id: HashMap<u32, Option<u32>>,
    by_number: HashMap<i64, u32>,
    matched: MatchedClasses,
}

impl RunClasses {
    fn new(matching: &mut Matching<'_>, run: &RunInfo) -> Result<Self, EvaluateError> {
        let mut predicted = classes_of(&run.labels);
        for class in &mut predicted {
            // A class without a name is stored with this one.
            let is_nameless = class.name == class.number.map(|number| format!("class {number}"));
            class.name.take_if(|_| is_nameless);
        }
        let matched = matching.match_classes(&predicted)?;
        let ids = run.labels.iter().map(|(id, _)| id);
        let by_id = ids.zip(matched.places.iter().copied()).collect();
        let numbered = matching.truth.classes.classes.iter().zip(0..);
        let by_number = numbered.filter_map(|(class, place)| Some((class.id?, place))).collect();
        Ok(Self { predicted, by_id, by_number, matched })
    }

    /// The index of a model's class id among the classes of the evaluation.
    fn place(&self, id: u32) -> Option<u32> {
        match self.by_id.get(&id) {
            Some(place) => *place,
            None => self.by_number.get(&i64::from(id)).copied(),
        }
    }
}

/// The stored prediction of an evaluated image.
struct Stored {
    name: String,
    size: [u32; 2],
    sample: Option<SampleId>,
    /// The index of each detection in the prediction.
    places: Vec<u32>,
    /// Detections of classes without ground truth.
    of_other_classes: u64,
    detections: Vec<DetectedObject>,
    classes: Vec<(u32, f64)>,
}

impl Stored {
    /// Adds the prediction to the ground truth of its image.
    fn add_to(&mut self, mut image: ImageSides) -> ImageSides {
        image.name = std::mem::take(&mut self.name);
        image.objects.detections = std::mem::take(&mut self.detections);
        image.classes = std::mem::take(&mut self.classes);
        image.stored = std::mem::take(&mut self.places);
        image.sample = self.sample;
        image
    }
}

/// Replaces classes that the ground truth does not have by a number that is never correct.
fn classified(scored: impl Iterator<Item = (Option<u32>, f64)>) -> Vec<(u32, f64)> {
    scored.map(|(class, score)| (class.unwrap_or(OTHER_CLASS), score)).collect()
}

fn no_class_in_common(truth: &GroundTruth, predicted: &[TruthLabel]) -> EvaluateError {
    EvaluateError::NoClassInCommon { predicted: some_of(predicted.iter()), truth: some_of(truth.labels.iter()) }
}
