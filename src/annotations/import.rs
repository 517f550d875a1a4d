//! Predictions from other tools as a run over the images of a source, for the CLI and the window.
//!
//! Knows nothing about projects: the predictions are passed on one by one.

use std::convert::Infallible;
use std::sync::Arc;

use crate::annotations::dataset_files::xml_char;
use crate::annotations::matching::{
    ClassCorrections, CorrectionsError, Doubt, Folders, ImageKey, ImageMatches, OtherFolders, Unmatched,
};
use crate::annotations::{self, AnnotationsError, Found, RunClasses, name_by, task_of};
use crate::domain::{
    AnnotatedImage, Annotations, BoxRole, Detection, InferenceLocation, KeepRule, LABELS_ORIGIN, LabelSet, ModelCard,
    ModelTask, PredictionStatus, Problem, RunKey, Sample, SampleId, TruthLabel, Unscored, Utc, counted, leaves_image,
};
use crate::image::size::{SizeError, image_size};
use crate::image::source::{Files, FilesError, Source, SourceError, for_task};
use crate::predict::SampleResult;
use crate::tasks::{Cancelled, TaskControl, in_parallel};

/// The number of example names in a message.
const EXAMPLES: usize = 5;
/// The number of images that a reader reads before their predictions are passed on.
const READS_IN_TURN: usize = 8;

/// Why predictions cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("this file has no scores, so it is ground truth: {place}")]
    NoScores { place: String },
    #[error("the predictions mix boxes with image classes; import them from two files: {place}")]
    Mixed { place: String },
    #[error(transparent)]
    Classes(#[from] CorrectionsError),
    #[error(
        "the class name {name} contains a control character, which some formats cannot store; rename it in the file, or \
         choose other class names: {place}"
    )]
    ClassName {
        /// With the character as an escape sequence.
        name: String,
        place: String,
    },
    #[error("none of the {images} in the predictions matches the {samples} opened, for example {example}")]
    NoImage {
        /// “3 images”
        images: String,
        samples: String,
        /// One of each side.
        example: String,
    },
    #[error(
        "{} the same file name as an opened image, but their folders differ, so these may be different images, for \
         example {example}",
        counted(*count, "image in the predictions has", "images in the predictions have")
    )]
    OtherFolders {
        count: usize,
        /// One of each side.
        example: String,
    },
    /// No image can be read any more.
    #[error("the images can no longer be read, so the rest is not imported: {0}")]
    Unreachable(String),
}

/// The annotations of a file or folder.
pub struct AnnotationFile {
    pub name: String,
    pub found: Found,
    /// The modification time, or that of the newest file in a folder.
    written: Option<Utc>,
}

/// What the predictions do not contain themselves.
#[derive(Default)]
pub struct Naming<'n> {
    /// The dataset that provides names for numbered classes and images.
    pub truth: Option<(&'n [TruthLabel], &'n [AnnotatedImage])>,
    /// The classes of the run; by default, those of the predictions.
    pub labels: Option<LabelSet>,
    pub corrections: ClassCorrections,
    /// The model name; by default, that of the file or folder.
    pub model: Option<&'n str>,
    pub unscored: Unscored,
}

/// Predictions as a run, with its classes.
pub struct ImportedRun {
    pub key: RunKey,
    pub card: ModelCard,
    pub labels: LabelSet,
    /// Classes that are not in `labels`; their predictions are dropped.
    pub left_out: Vec<String>,
    /// Classes that the dataset does not have.
    pub unknown_classes: Vec<String>,
    /// Corrected classes that the predictions do not have.
    pub unused_corrections: Vec<String>,
    /// Labels that are marked as a crowd or as difficult: the run does not keep the mark.
    pub unmarked: usize,
    task: ModelTask,
    images: Vec<AnnotatedImage>,
    classes: RunClasses,
    unlisted: UnlistedImages,
}

/// What predictions mean for images that they do not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnlistedImages {
    /// Nothing was found there: files of detections need not list such images, which count as empty in an evaluation.
    Empty,
    /// Nothing.
    Unpredicted,
}

pub struct MatchedImages {
    /// Images of the source in order, with the index of their prediction; `None` for an image in which nothing was
    /// found.
    pub pairs: Vec<(SampleId, Option<u32>)>,
    /// Predicted images that the source does not have.
    unmatched: Vec<(usize, Unmatched)>,
    /// Images with the same file name whose folders differ.
    pub other_folders: Option<OtherFolders>,
    samples: usize,
}

impl AnnotationFile {
    /// Reads the annotations of a file or folder; see [`annotations::open_split`]. Progress is in bytes.
    pub fn read(files: &Files, split: Option<&str>, control: &TaskControl) -> Result<Self, AnnotationsError> {
        Self::new(annotations::open_split(files, split, control)?, files, control)
    }

    pub fn new(found: Found, files: &Files, control: &TaskControl) -> Result<Self, AnnotationsError> {
        let listed = files.list(control).map_err(|error| match error {
            FilesError::Cancelled(cancelled) => AnnotationsError::Cancelled(cancelled),
            error => AnnotationsError::Files(error),
        })?;
        let newest = listed.iter().filter_map(|file| file.modified_ns).max();
        let written = newest.map(|nanoseconds| Utc::from_ms(nanoseconds / 1_000_000));
        Ok(Self { name: files.name(), found, written })
    }

    /// What was detected: “COCO results, 3 entries about 2 images in 1 class”.
    pub fn summary(&self) -> String {
        let Annotations { images, classes, .. } = &self.found.annotations;
        let Found { format, entries, .. } = &self.found;
        format!(
            "{format}, {} for {} in {}",
            counted(*entries as usize, "entry", "entries"),
            counted(images.len(), "image", "images"),
            counted(classes.len(), "class", "classes")
        )
    }

    /// What was interpreted differently than written, and what could not be used, with the first locations of each
    /// kind.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.found.notes.iter().map(|note| format!("note: {note}")).collect();
        let problems = &self.found.annotations.problems;
        for (kind, count) in problems.counts() {
            lines.push(format!("{}: {}", if kind.is_used() { "note" } else { "not used" }, kind.text(count)));
            let examples = problems.iter().filter(|problem| problem.kind == kind).take(EXAMPLES);
            lines.extend(examples.map(|problem| format!("  {problem}")));
        }
        lines
    }
}

impl ImportedRun {
    pub fn new(predictions: AnnotationFile, naming: Naming) -> Result<Self, ImportError> {
        let AnnotationFile { name, found, written } = predictions;
        let mut annotations = found.annotations;
        let mut unmarked = 0;
        if !annotations.has_scores() {
            if naming.unscored == Unscored::Refused {
                return Err(ImportError::NoScores { place: name });
            }
            annotations.set_scores(Some(1.0));
            let boxes = annotations.images.iter().flat_map(|image| &image.boxes);
            unmarked = boxes.filter(|found| found.role != BoxRole::Object).count();
        }
        let unknown_classes = match naming.truth {
            Some((classes, images)) => name_by(&mut annotations, classes, images)?,
            None => Vec::new(),
        };
        let Some(task) = task_of(&annotations) else {
            return Err(ImportError::Mixed { place: name });
        };
        let unlisted = match (task, naming.truth) {
            // The dataset lists the images of these predictions.
            (ModelTask::Classification, _) | (ModelTask::Detection, Some(_)) => UnlistedImages::Unpredicted,
            (ModelTask::Detection, None) => UnlistedImages::Empty,
        };
        let classes = RunClasses::new(&annotations, naming.labels, &naming.corrections)?;
        if let Some((_, class)) = classes.labels.iter().find(|(_, class)| class.chars().any(|one| xml_char(one) != one))
        {
            return Err(ImportError::ClassName { name: format!("{class:?}"), place: name });
        }
        let left_out = classes.of_annotations.iter().zip(&annotations.classes).filter(|(matched, _)| matched.is_none());
        let left_out = left_out.map(|(_, class)| class.to_string()).collect();
        // Distinguishes what was written into the same file at different times.
        let written = written.map_or_else(String::new, |at| format!(" of {at}"));
        let what = if naming.unscored == Unscored::Labels { LABELS_ORIGIN } else { "predictions in " };
        let origin = format!("{what}{name}{written}, read as {}", found.format);
        let card =
            ModelCard::from_remote(naming.model.unwrap_or_else(|| last_part(&name)), task, Vec::new(), origin.clone());
        let keep = KeepRule { min_score: 0.0, ..KeepRule::default() };
        let key = RunKey::for_predictions(card.id.clone(), keep, InferenceLocation::Outputs { folder: name });
        let labels = classes.labels.clone();
        let unused_corrections = classes.unused_corrections.clone();
        Ok(Self {
            key,
            card,
            labels,
            left_out,
            unknown_classes,
            unused_corrections,
            unmarked,
            task,
            images: annotations.images,
            classes,
            unlisted,
        })
    }

    /// Finds the predicted images among those of a source.
    ///
    /// # Errors
    /// No predicted image is in the source, or none with predictions.
    pub fn match_images(&self, samples: &[Sample], folders: Folders) -> Result<MatchedImages, ImportError> {
        let keys: Vec<ImageKey> = self.images.iter().map(ImageKey::new).collect();
        let named: Vec<ImageKey> = samples.iter().map(|sample| ImageKey::named(&sample.name)).collect();
        let matches = ImageMatches::between(&keys, &named, folders);
        if let Some(OtherFolders { example: [one, other], count, .. }) = matches.only_other_folders() {
            return Err(ImportError::OtherFolders { count: *count, example: format!("{one} and {other}") });
        }
        let mut pairs = Vec::new();
        let mut unmatched = Vec::new();
        for (index, matched) in (0_u32..).zip(&matches.left) {
            let status = &self.images[index as usize].status;
            match matched {
                _ if matches!(status, PredictionStatus::Outdated | PredictionStatus::Unpredicted) => {}
                Ok((sample, _)) => pairs.push((SampleId::from_index(*sample as usize), Some(index))),
                Err(why) => unmatched.push((index as usize, *why)),
            }
        }
        let is_filled = |image: &AnnotatedImage| !image.boxes.is_empty() || !image.labels.is_empty();
        let are_lost = self.images.iter().any(is_filled)
            && !pairs.iter().any(|(_, index)| index.is_some_and(|index| is_filled(&self.images[index as usize])));
        if (are_lost || pairs.is_empty())
            && let (Some(image), Some(sample)) = (self.images.first(), samples.first())
        {
            return Err(ImportError::NoImage {
                images: counted(self.images.len(), "image", "images"),
                samples: counted(samples.len(), "image", "images"),
                example: format!("{} and {}", image.shown_name(), sample.name),
            });
        }
        if self.unlisted == UnlistedImages::Empty {
            let missing = matches.right_unmatched.iter().filter(|(_, why)| *why == Unmatched::Missing);
            pairs.extend(missing.map(|(sample, _)| (SampleId::from_index(*sample as usize), None)));
        }
        pairs.sort_unstable();
        Ok(MatchedImages { pairs, unmatched, other_folders: matches.other_folders, samples: samples.len() })
    }

    /// The predicted images that the source does not have, or that are ambiguous; one line per reason.
    pub fn unmatched_lines(&self, matches: &MatchedImages) -> Vec<String> {
        let reasons = [
            (Unmatched::Missing, ["is not among the opened images", "are not among the opened images"]),
            (Unmatched::Ambiguous, ["has an ambiguous name and was skipped", "have ambiguous names and were skipped"]),
        ];
        let line = |(why, [one, several]): (Unmatched, [&str; 2])| {
            let those = matches.unmatched.iter().filter(|(_, reason)| *reason == why).map(|(index, _)| *index);
            let those: Vec<usize> = those.collect();
            let examples: Vec<String> = those.iter().take(EXAMPLES).map(|at| self.images[*at].shown_name()).collect();
            let text = if those.len() == 1 { one } else { several };
            let images = counted(those.len(), "image", "images");
            (!those.is_empty()).then(|| format!("{images} in the predictions {text}: {}", examples.join(", ")))
        };
        let doubt = matches.other_folders.clone().map(|other_folders| Doubt::OtherFolders(other_folders).to_string());
        reasons.into_iter().filter_map(line).chain(doubt).collect()
    }

    /// What the run does not keep of labels to correct.
    pub fn unmarked_line(&self) -> Option<String> {
        let boxes = counted(self.unmarked, "label is", "labels are");
        (self.unmarked > 0)
            .then(|| format!("{boxes} marked as a crowd or as difficult; the mark is lost, so exports do not have it"))
    }

    /// Passes on the prediction for each of `pairs` in order, or why the image has none. Returns the number of boxes
    /// that exceed their images, and of all boxes.
    ///
    /// # Errors
    /// The task was canceled, the images can no longer be read, or `each` fails.
    pub fn each_prediction<E: From<ImportError>>(
        &self,
        source: &Arc<dyn Source>,
        samples: &[Sample],
        pairs: &[(SampleId, Option<u32>)],
        control: &TaskControl,
        mut each: impl FnMut(SampleId, SampleResult) -> Result<(), E>,
    ) -> Result<OutsideBoxes, E> {
        let source = for_task(source, control);
        let mut outside = OutsideBoxes::default();
        control.set_total(Some(pairs.len() as u64));
        let readers = source.useful_reads().max(1);
        for chunk in pairs.chunks(readers * READS_IN_TURN) {
            control.checkpoint().map_err(ImportError::from)?;
            let nothing = AnnotatedImage::default();
            let one = |(sample, image): &(SampleId, Option<u32>)| {
                let image = image.map_or(&nothing, |image| &self.images[image as usize]);
                self.result(&*source, &samples[sample.index()], image)
            };
            let Ok(results) = in_parallel(readers, chunk.len(), |_, index| Ok::<_, Infallible>(one(&chunk[index])));
            // A canceled read says nothing about its image.
            control.checkpoint().map_err(ImportError::from)?;
            for ((sample, _), result) in chunk.iter().zip(results) {
                let result = result?;
                outside.add(&result);
                each(*sample, result)?;
                control.add_done(1);
            }
        }
        Ok(outside)
    }

    fn result(
        &self,
        source: &dyn Source,
        sample: &Sample,
        image: &AnnotatedImage,
    ) -> Result<SampleResult, ImportError> {
        if let PredictionStatus::Failed(reason) = &image.status {
            return Ok(Err(Problem::new(sample.uri.clone(), reason.clone())));
        }
        let size = match image_size(source, &sample.uri) {
            Err(SizeError::Unread(SourceError::Unreachable(reason))) => return Err(ImportError::Unreachable(reason)),
            size => size.map_err(|error| error.to_string()),
        };
        let prediction = size.and_then(|size| self.classes.prediction(image, self.task, size));
        Ok(prediction.map_err(|reason| Problem::new(sample.uri.clone(), reason)))
    }
}

/// Predicted boxes that exceed their images by more than rounding explains. Everything that shows, exports or evaluates
/// a run clips them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutsideBoxes {
    count: usize,
    of: usize,
}

impl OutsideBoxes {
    fn add(&mut self, result: &SampleResult) {
        let Ok(prediction) = result else { return };
        let size = [prediction.width, prediction.height];
        let leaves = |found: &&Detection| leaves_image(<[f32; 4]>::from(found.bounds).map(f64::from), size);
        self.count += prediction.detections().iter().filter(leaves).count();
        self.of += prediction.detections().len();
    }

    /// Whether there are so many that the file may mean something else.
    pub fn are_many(self) -> bool {
        self.count * 20 > self.of
    }

    pub fn line(self) -> Option<String> {
        let boxes = counted(self.of, "box", "boxes");
        (self.count > 0).then(|| {
            format!(
                "{} of {boxes} extend beyond their images and will be clipped; right and bottom may be given instead \
                 of width and height, or the boxes may be for images of another size",
                self.count
            )
        })
    }
}

impl MatchedImages {
    /// “2 of 3 images are in the predictions; the other is imported as an image in which nothing was found”
    pub fn summary(&self) -> String {
        let empty = self.pairs.iter().filter(|(_, image)| image.is_none()).count();
        let listed = self.pairs.len() - empty;
        let listed = format!("{listed} of {} in the predictions", counted(self.samples, "image is", "images are"));
        match empty {
            0 => listed,
            1 => format!("{listed}; 1 is imported without detections"),
            _ => format!("{listed}; {empty} are imported without detections"),
        }
    }

    /// Whether the source has every predicted image, beyond doubt.
    pub fn is_complete(&self) -> bool {
        self.unmatched.is_empty() && self.other_folders.is_none()
    }
}

/// The name of a file without its extension, or of a folder.
fn last_part(place: &str) -> &str {
    let place = place.trim_end_matches(['/', '\\']);
    let name = place.rsplit(['/', '\\']).next().unwrap_or(place);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
