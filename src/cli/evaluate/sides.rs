//! The two sides of an evaluation: ground truth and predictions, matched image by image and class by class.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Serialize;

use super::EvaluateArgs;
use crate::annotations::{self, Found};
use crate::aws::Aws;
use crate::cli::export::{choose_run, name_below, open_project, stored_view};
use crate::cli::place::{Place, S3Args};
use crate::cli::values::NmsIou;
use crate::dirs::AppDirs;
use crate::domain::{
    AnnotatedImage, AnnotatedImageId, FileStamp, ModelTask, Prediction, SamplePrediction, SampleUri, TruthLabel,
};
use crate::evaluation::{
    DetectedObject, EvaluatedClass, EvaluatedClasses, ImageObjects, OTHER_CLASS, annotated_detections, detections,
};
use crate::matching::{ClassCorrections, ClassMatches, ImageKey, ImageMatches, classes_of};
use crate::source::{Files, for_task};
use crate::tasks::TaskControl;

/// Classes and images that a note names.
const MAX_NAMED: usize = 5;
/// The minimum score where no project says one.
const USUAL_MIN_SCORE: f64 = 0.5;

pub(super) struct Sides {
    pub(super) task: ModelTask,
    pub(super) classes: Vec<EvaluatedClass>,
    /// In the order that decides between equal scores: that of their ids if the ground truth numbers them, as
    /// pycocotools has it, otherwise that of the ground truth.
    pub(super) images: Vec<ImageSides>,
    /// The minimum score of each class.
    pub(super) thresholds: Vec<f64>,
    pub(super) counted: Counted,
    /// What a person should know before the numbers: whole sentences.
    pub(super) notes: Vec<String>,
}

/// The ground truth and the prediction of one image.
#[derive(Default)]
pub(super) struct ImageSides {
    pub(super) objects: ImageObjects,
    /// The class of the whole image in the ground truth.
    pub(super) truth_class: Option<u32>,
    /// The predicted classes of the whole image with their scores, the best first.
    pub(super) classes: Vec<(u32, f64)>,
}

/// What was evaluated and what was not.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counted {
    /// The run or file of the predictions.
    pub(super) predictions: String,
    pub(super) truth: String,
    /// Images of the ground truth without a prediction. Those of a file of detections count as images without a
    /// detection, as pycocotools counts them; of a project they are left out.
    pub(super) images_without_prediction: u64,
    /// Images with a prediction that the ground truth does not have; left out.
    pub(super) images_without_truth: u64,
    /// Images whose prediction failed, or is of an older version of the file; left out.
    pub(super) images_failed: u64,
    pub(super) images_outdated: u64,
    /// Detections, or top classes, of classes that the ground truth does not have.
    pub(super) predictions_of_other_classes: u64,
    /// Entries of the files that could not be used, by kind.
    pub(super) problems: BTreeMap<&'static str, u64>,
}

impl Counted {
    /// Whether every image and entry was used.
    pub(super) fn is_complete(&self) -> bool {
        let left_out = self.images_without_truth + self.images_failed + self.images_outdated;
        left_out == 0 && self.problems.is_empty()
    }
}

impl Sides {
    pub(super) fn read(args: &EvaluateArgs, dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<Self> {
        let corrections = args.class_map.as_deref().map(corrections).transpose()?.unwrap_or_default();
        let truth = Truth::read(&args.truth, &args.s3, control)?;
        let mut sides = match &args.predictions {
            Some(predictions) => of_file(predictions, &truth, &corrections, args, control)?,
            None => of_project(&truth, &corrections, args, dirs, control)?,
        };
        sides.notes.splice(0..0, truth.notes);
        sides.counted.truth = truth.name;
        for (kind, count) in truth.problems {
            *sides.counted.problems.entry(kind).or_default() += count;
        }
        Ok(sides)
    }
}

fn corrections(path: &Path) -> anyhow::Result<ClassCorrections> {
    let failed = || format!("Could not read {}", path.display());
    let text = std::fs::read_to_string(path).with_context(failed)?;
    ClassCorrections::parse(&text).with_context(failed)
}

struct Truth {
    name: String,
    images: Vec<AnnotatedImage>,
    labels: Vec<TruthLabel>,
    classes: EvaluatedClasses,
    task: ModelTask,
    notes: Vec<String>,
    problems: BTreeMap<&'static str, u64>,
}

impl Truth {
    fn read(path: &Path, s3: &S3Args, control: &TaskControl) -> anyhow::Result<Self> {
        begin(control, "reading the ground truth");
        let (name, found) = open(path, s3, control).context("Could not read the ground truth")?;
        let mut notes = Vec::new();
        let problems = report(&name, &found, &mut notes);
        let annotations = found.annotations;
        if annotations.has_scores() {
            bail!("The ground truth has scores, so these are predictions: {name}. Give them with --predictions");
        }
        let images = annotations.images;
        let several = images.iter().filter(|image| image.labels.len() > 1).count();
        if several > 0 {
            notes.push(format!(
                "Images of the ground truth with several classes, of which the first counts: {several}."
            ));
        }
        let with_boxes = images.iter().any(|image| !image.boxes.is_empty());
        let with_labels = images.iter().any(|image| !image.labels.is_empty());
        let task = match (with_boxes, with_labels) {
            (true, _) => ModelTask::Detection,
            (false, true) => ModelTask::Classification,
            (false, false) => bail!("The ground truth has neither boxes nor classes of images: {name}"),
        };
        let classes = EvaluatedClasses::of(&annotations.classes);
        Ok(Self { name, images, labels: annotations.classes, classes, task, notes, problems })
    }

    fn keys(&self) -> Vec<ImageKey<'_>> {
        self.images.iter().map(ImageKey::of).collect()
    }

    /// The classes of predictions, by the place of the class among those of the evaluation.
    fn match_classes(
        &self,
        predicted: &[TruthLabel],
        corrections: &ClassCorrections,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Vec<Option<u32>>> {
        let matches = ClassMatches::between(predicted, &self.labels, corrections)
            .context("Could not use the corrections of the classes")?;
        let unmatched: Vec<&TruthLabel> = matches.unmatched().collect();
        if unmatched.len() == predicted.len() && !predicted.is_empty() {
            return Err(self.no_class_in_common(predicted));
        }
        if !unmatched.is_empty() {
            let consequence = match self.task {
                ModelTask::Detection => "their boxes are left out",
                ModelTask::Classification => "images that are predicted so are wrong",
            };
            notes.push(format!(
                "The ground truth does not have {} of {} classes of the predictions; {consequence}: {}.",
                unmatched.len(),
                predicted.len(),
                some_of(unmatched.into_iter())
            ));
        }
        let place = |index: u32| self.classes.place(matches.index(index)?);
        Ok((0..predicted.len() as u32).map(place).collect())
    }

    fn no_class_in_common(&self, predicted: &[TruthLabel]) -> anyhow::Error {
        anyhow!(
            "The ground truth has none of the classes of the predictions. Classes of the predictions: {}; of the \
            ground truth: {}. --class-map says which is which",
            some_of(predicted.iter()),
            some_of(self.labels.iter())
        )
    }

    /// The objects or the class of an image.
    fn image(&self, index: usize, size: Option<[u32; 2]>) -> anyhow::Result<ImageSides> {
        let image = &self.images[index];
        let size = size.or(image.size);
        let Some(truths) = self.classes.truths(image, size) else {
            bail!(
                "The boxes of the ground truth are fractions of images whose sizes are unknown: {}. Evaluate a \
                project: spotcheck import makes one of predictions",
                image.name
            );
        };
        let truth_class = image.labels.first().and_then(|label| self.classes.place(label.class));
        let objects = ImageObjects { truths, detections: Vec::new() };
        Ok(ImageSides { objects, truth_class, classes: Vec::new() })
    }

    /// The order of the images in which equal scores are compared.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.images.len()).collect();
        let is_numbered = self.images.iter().all(|image| matches!(image.id, Some(AnnotatedImageId::Number(_))));
        if is_numbered {
            order.sort_by_key(|&index| &self.images[index].id);
        }
        order
    }
}

fn open(path: &Path, s3: &S3Args, control: &TaskControl) -> anyhow::Result<(String, Found)> {
    // Flags for S3 may be about the images alone.
    let is_in_s3 = path.to_str().is_some_and(crate::domain::S3Link::is_address);
    let no_flags = S3Args::default();
    let files = match Place::parse(path, if is_in_s3 { s3 } else { &no_flags })? {
        Place::S3(place) => Files::in_s3(&Aws::new(), &place),
        Place::Path(path) => Files::local(&path),
        Place::Stdin => bail!("annotations are read from a file or folder, not from standard input"),
    };
    Ok((files.name(), annotations::open(&files, control)?))
}

/// Begins a step whose progress is its own.
fn begin(control: &TaskControl, step: &str) {
    control.set_step(step);
    control.set_total(None);
    control.set_done_before(0);
}

/// Says what was recognised and what could not be used; returns the problems by kind.
fn report(name: &str, found: &Found, notes: &mut Vec<String>) -> BTreeMap<&'static str, u64> {
    let annotations = &found.annotations;
    notes.push(format!(
        "{name}: {}, {} images, {} classes.",
        found.format,
        annotations.images.len(),
        annotations.classes.len()
    ));
    notes.extend(found.notes.iter().cloned());
    let mut problems = BTreeMap::new();
    for (kind, count) in annotations.problems.counts() {
        problems.insert(kind.word(), count);
        let of_kind = annotations.problems.iter().filter(|problem| problem.kind == kind);
        notes.extend(of_kind.take(MAX_NAMED).map(|problem| format!("{} {}", problem.place, problem.reason)));
        let more = count.saturating_sub(MAX_NAMED as u64);
        if more > 0 {
            notes.push(format!("and {more} more such entries that could not be used"));
        }
    }
    problems
}

/// The first ones, as a list.
fn some_of<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut list: Vec<String> = names.take(MAX_NAMED).map(|name| name.to_string()).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list.join(", ")
}

fn of_file(
    path: &Path,
    truth: &Truth,
    corrections: &ClassCorrections,
    args: &EvaluateArgs,
    control: &TaskControl,
) -> anyhow::Result<Sides> {
    begin(control, "reading the predictions");
    let (name, found) = open(path, &args.s3, control).context("Could not read the predictions")?;
    let mut notes = Vec::new();
    let problems = report(&name, &found, &mut notes);
    let predicted = found.annotations;
    let is_empty = predicted.images.iter().all(|image| image.boxes.is_empty() && image.labels.is_empty());
    if !is_empty && !predicted.has_scores() {
        bail!("The predictions have no scores, so they look like ground truth: {name}");
    }
    let is_fitting = |image: &AnnotatedImage| match truth.task {
        ModelTask::Detection => image.labels.is_empty(),
        ModelTask::Classification => image.boxes.is_empty(),
    };
    if let Some(other) = predicted.images.iter().find(|image| !is_fitting(image)) {
        bail!(
            "The ground truth is for {}, the predictions are not, such as those of {}",
            truth.task.into_str(),
            other.name
        );
    }
    let class_places = truth.match_classes(&predicted.classes, corrections, &mut notes)?;
    let class_of = |class: u32| class_places.get(class as usize).copied().flatten();
    let predicted_keys: Vec<ImageKey<'_>> = predicted.images.iter().map(ImageKey::of).collect();
    let matches = ImageMatches::between(&truth.keys(), &predicted_keys);
    let mut counted = Counted { predictions: name, problems, ..Counted::default() };
    counted.images_without_truth = matches.right_unmatched.len() as u64;
    name_unmatched(&matches, |index| image_name(&predicted.images[index]), &mut notes);
    let mut images = Vec::with_capacity(truth.images.len());
    for index in truth.order() {
        let partner = matches.index(index).map(|partner| &predicted.images[partner as usize]);
        let size = truth.images[index].size.or_else(|| partner?.size);
        if partner.is_none() {
            counted.images_without_prediction += 1;
            if truth.task == ModelTask::Classification {
                continue;
            }
        }
        let mut image = truth.image(index, size)?;
        if let Some(partner) = partner {
            let Some(detections) = annotated_detections(partner, size, class_of) else {
                bail!("The boxes of the predictions are fractions of images whose sizes are unknown: {}", partner.name);
            };
            counted.predictions_of_other_classes += (partner.boxes.len() - detections.len()) as u64;
            image.objects.detections = detections;
            let scored = partner.labels.iter().map(|label| (class_of(label.class), label.score.unwrap_or(1.0)));
            image.classes = classified(scored, &mut counted);
        }
        images.push(image);
    }
    let min_score = args.min_score.map_or(USUAL_MIN_SCORE, f64::from);
    let classes = truth.classes.classes.clone();
    let thresholds = vec![min_score; classes.len()];
    Ok(Sides { task: truth.task, classes, images, thresholds, counted, notes })
}

/// Gives a class that the ground truth does not have a number that is never right.
fn classified(scored: impl Iterator<Item = (Option<u32>, f64)>, counted: &mut Counted) -> Vec<(u32, f64)> {
    let classes: Vec<(Option<u32>, f64)> = scored.collect();
    counted.predictions_of_other_classes += u64::from(classes.first().is_some_and(|(class, _)| class.is_none()));
    classes.into_iter().map(|(class, score)| (class.unwrap_or(OTHER_CLASS), score)).collect()
}

fn image_name(image: &AnnotatedImage) -> String {
    match &image.id {
        Some(id) if image.name.is_empty() => id.to_string(),
        _ => image.name.clone(),
    }
}

fn name_unmatched(matches: &ImageMatches, name_of: impl Fn(usize) -> String, notes: &mut Vec<String>) {
    let unmatched = &matches.right_unmatched;
    if !unmatched.is_empty() {
        notes.push(format!(
            "{} predicted images are not in the ground truth, and are left out: {}.",
            unmatched.len(),
            some_of(unmatched.iter().map(|(index, _)| name_of(*index as usize)))
        ));
    }
}

/// A stored prediction of an image that is evaluated.
struct Stored {
    name: String,
    size: [u32; 2],
    detections: Vec<DetectedObject>,
    classes: Vec<(u32, f64)>,
}

fn of_project(
    truth: &Truth,
    corrections: &ClassCorrections,
    args: &EvaluateArgs,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<Sides> {
    let path = args.project.as_ref().or(args.source.as_ref());
    let path: &PathBuf = path.context("Give a folder of images, or --project, or --predictions")?;
    let project = open_project(path, &args.s3, dirs, "spotcheck evaluate")?;
    let run = choose_run(&project, args.run.as_deref(), "evaluating")?;
    if run.card.task != truth.task {
        bail!(
            "The ground truth is for {}, and “{}” is a run of {}; --run chooses another",
            truth.task.into_str(),
            run.name,
            run.card.task.into_str()
        );
    }
    let mut view = stored_view(&project, &run)?;
    if let Some(min_score) = args.min_score {
        view.min_score = min_score;
        view.min_score_by_class.clear();
    }
    if let Some(NmsIou(iou)) = args.nms_iou {
        view.nms_iou = iou;
    }
    let mut notes = vec![format!("Predictions: run “{}”.", run.name)];
    let mut predicted = classes_of(&run.labels);
    for class in &mut predicted {
        // A class without a name is stored with this one.
        let is_nameless = class.name == class.number.map(|number| format!("class {number}"));
        class.name.take_if(|_| is_nameless);
    }
    let by_label = truth.match_classes(&predicted, corrections, &mut notes)?;
    let ids: Vec<u32> = run.labels.iter().map(|(id, _)| id).collect();
    let places: HashMap<u32, Option<u32>> = ids.into_iter().zip(by_label).collect();
    let by_number: HashMap<i64, u32> =
        truth.classes.classes.iter().zip(0..).filter_map(|(class, place)| Some((class.id?, place))).collect();
    let class_of = |id: u32| match places.get(&id) {
        Some(place) => *place,
        None => by_number.get(&i64::from(id)).copied(),
    };
    let mut thresholds = vec![f64::from(view.min_score); truth.classes.classes.len()];
    for (id, min_score) in &view.min_score_by_class {
        if let Some(place) = class_of(*id) {
            thresholds[place as usize] = f64::from(*min_score);
        }
    }
    let mut counted = Counted { predictions: run.name.clone(), ..Counted::default() };
    let listed = args.source.as_deref().map(|source| listing(source, &args.s3, control)).transpose()?;
    begin(control, "reading the project");
    let root = project.root();
    let mut stored: Vec<Stored> = Vec::new();
    let mut each = |uri: &SampleUri, stamp: &FileStamp, result: Result<Prediction, String>| {
        let now = listed.as_ref().map(|listed| listed.get(uri));
        let Ok(prediction) = result else {
            counted.images_failed += u64::from(now != Some(None));
            return;
        };
        match now {
            Some(None) => return,
            Some(Some(now)) if !stamp.is_of(now) => {
                counted.images_outdated += 1;
                return;
            }
            _ => {}
        }
        let prediction = prediction.without_overlaps(view.nms_iou);
        let detections = detections(&prediction, class_of);
        counted.predictions_of_other_classes += (prediction.detections().len() - detections.len()) as u64;
        let scored = prediction.classes().iter().map(|class| (class_of(class.index), f64::from(class.score)));
        stored.push(Stored {
            name: name_below(root.as_deref(), uri),
            size: [prediction.width, prediction.height],
            detections,
            classes: classified(scored, &mut counted),
        });
    };
    project.each_prediction(run.id, control, |page| {
        for SamplePrediction { sample, stamp, result } in page {
            each(&sample, &stamp, result);
        }
    })?;
    control.checkpoint()?;
    let has_class = |stored: &Stored| {
        !stored.detections.is_empty() || stored.classes.iter().any(|(class, _)| *class != OTHER_CLASS)
    };
    if counted.predictions_of_other_classes > 0 && !stored.iter().any(has_class) {
        return Err(truth.no_class_in_common(&predicted));
    }
    let stored_keys: Vec<ImageKey<'_>> = stored.iter().map(|stored| ImageKey::named(&stored.name)).collect();
    let matches = ImageMatches::between(&truth.keys(), &stored_keys);
    drop(stored_keys);
    counted.images_without_truth = matches.right_unmatched.len() as u64;
    name_unmatched(&matches, |index| stored[index].name.clone(), &mut notes);
    let mut images = Vec::with_capacity(stored.len());
    for index in truth.order() {
        let Some(partner) = matches.index(index) else {
            counted.images_without_prediction += 1;
            continue;
        };
        let partner = &mut stored[partner as usize];
        let mut image = truth.image(index, Some(partner.size))?;
        image.objects.detections = std::mem::take(&mut partner.detections);
        image.classes = std::mem::take(&mut partner.classes);
        images.push(image);
    }
    if images.is_empty() {
        bail!(
            "No image of the ground truth has a prediction. Images of the ground truth: {}; of the run: {}",
            some_of(truth.images.iter().map(image_name)),
            some_of(stored.iter().map(|stored| stored.name.as_str()))
        );
    }
    Ok(Sides { task: truth.task, classes: truth.classes.classes.clone(), images, thresholds, counted, notes })
}

/// The files of a source as they are now.
fn listing(source: &Path, s3: &S3Args, control: &TaskControl) -> anyhow::Result<HashMap<SampleUri, FileStamp>> {
    control.set_step("listing the images");
    let opened = Place::parse(source, s3)?.open(control)?;
    let listed = for_task(&opened.source, control);
    let samples = listed.pages().flat_map(|page| page.samples);
    let listed: HashMap<SampleUri, FileStamp> = samples.map(|sample| (sample.uri.clone(), sample.stamp())).collect();
    control.checkpoint()?;
    Ok(listed)
}
