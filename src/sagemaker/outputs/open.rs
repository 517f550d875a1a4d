//! Opens a folder of outputs as a run: lists them, matches them with images, and detects their format.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::folder::{OutputFolder, OutputsError, OutputsPart, RetryPart, Sent};
use super::join::{Images, Joined, Work, Written, is_list, join};
use super::json::Json;
use super::reader::{LabelSource, OutputReader};
use super::recognize::{OutputShape, Recognition, Unrecognized};
use super::responses::{ResponseFile, ResponseFormat};
use crate::domain::{
    Change, InferenceLocation, KeepRule, LabelSet, ModelCard, ModelTask, OutputConvention, Problem, RunId, RunKey,
    Sample, SampleId, SampleSet,
};
use crate::image::source::{FileEntry, Source};
use crate::project::{Project, StoreError};
use crate::sagemaker::spec::output_mapping::OutputMapping;
use crate::sagemaker::spec::transform::predicted_by_retry;
use crate::tasks::TaskControl;

/// The number of outputs that are tried for detection.
const LOOKED_AT: usize = 50;
/// The part of an unrecognized output that is in the message.
const RAW_BYTES: u64 = 400;
/// The number of example names in a message.
pub(super) const EXAMPLES: usize = 3;

#[derive(Debug, Clone, Default)]
pub struct ReadingChoice {
    /// The mapping; `None` detects the format.
    pub mapping: Option<OutputMapping>,
    /// The labels; `None` uses those of the mapping, the model's card or the outputs.
    pub labels: Option<LabelSet>,
    pub keep: KeepRule,
}

impl ReadingChoice {
    /// The labels for reading `made` (“outputs”). `card`: the local model that the outputs name, whose labels are used
    /// if they agree with the first output.
    pub fn label_source(
        &self,
        shape: &OutputShape,
        card: Option<&(ModelCard, LabelSet)>,
        agrees: impl Fn(&OutputReader) -> bool,
        made: &str,
        assumed: &mut Vec<String>,
    ) -> LabelSource {
        if let Some(labels) = &self.labels {
            assumed.retain(|line| !line.contains("ImageNet"));
            return LabelSource::Known(labels.clone());
        }
        match card {
            Some((_, labels)) => {
                let labels = LabelSource::Known(labels.clone());
                if agrees(&OutputReader::new(shape.clone(), labels.clone(), self.keep)) {
                    return labels;
                }
                assumed.push(format!(
                    "class names are from the {made}; the local model with this name has different \
                    ones"
                ));
                LabelSource::Outputs
            }
            None => LabelSource::from_shape(shape),
        }
    }
}

/// Outputs that were listed and matched with images.
pub struct FoundOutputs {
    /// The first part is the run's, the others are of retries.
    parts: Vec<FoundPart>,
    /// The outputs of all parts.
    pub files: Vec<FileEntry>,
    pub samples: Arc<[Sample]>,
    pub joined: Joined,
}

struct FoundPart {
    folder: OutputFolder,
    /// The folders that may contain the job's input lists.
    lists: Vec<OutputFolder>,
    retry: Option<RetryPart>,
    /// Its job has ended, and the job's inputs are known.
    is_final: bool,
    /// A list of images that was sent to the job has no output.
    lacks_lists: bool,
    /// The index of its first file.
    first: usize,
}

pub struct OutputRun {
    pub key: RunKey,
    pub card: ModelCard,
    /// The class names so far; outputs may add more.
    pub labels: LabelSet,
    pub reader: Arc<OutputReader>,
}

impl FoundOutputs {
    /// Lists folders of outputs and matches them with images: the first folder, and later jobs for the same images.
    /// `root` is the folder or prefix that image names are relative to; `samples` is the whole listing of `source`. If
    /// that is only a part of the images, outputs of others are skipped.
    ///
    /// # Errors
    /// There are no outputs, or none for these images.
    pub fn find(
        parts: Vec<OutputsPart>,
        source: &dyn Source,
        samples: &Arc<[Sample]>,
        root: &str,
        control: &TaskControl,
    ) -> Result<Self, OutputsError> {
        let images = Images { samples, root };
        let names: Option<HashSet<&str>> = source.is_part().then(|| images.file_names().collect());
        let is_wanted = |output: &str| {
            let last = output.rsplit('/').next().unwrap_or(output);
            let input = last.strip_suffix(super::OUT).unwrap_or(last);
            names.as_ref().is_none_or(|names| names.contains(input) || is_list(output))
        };
        let mut files = Vec::new();
        let mut joined: Option<Joined> = None;
        let mut found = Vec::with_capacity(parts.len());
        for part in parts {
            let first = files.len();
            let listed = part.folder.list(control, is_wanted)?;
            let address = part.folder.address();
            let of_part = join(
                &images,
                &Written {
                    outputs: &listed,
                    first,
                    named_from: part.named_from.as_ref(),
                    sent: part.sent.as_ref(),
                    folder: &address,
                },
            );
            joined = Some(match (joined, &part.retry) {
                (Some(earlier), Some(RetryPart::ByItsLooks(_))) => earlier.filled_by(of_part),
                (Some(earlier), _) => earlier.then(of_part),
                (None, _) => of_part,
            });
            files.extend(listed);
            found.push(FoundPart {
                lists: part.places_of_lists(root),
                folder: part.folder,
                retry: part.retry,
                lacks_lists: part.sent.as_ref().is_some_and(lacks_lists),
                is_final: part.sent.is_some_and(|sent| sent.is_final),
                first,
            });
        }
        Self { parts: found, files, samples: Arc::clone(samples), joined: joined.unwrap_or_default() }.unless_empty()
    }

    fn unless_empty(self) -> Result<Self, OutputsError> {
        if self.files.is_empty() {
            let failed: Vec<Problem> = self.permanently_missing().filter_map(|place| self.failure(place)).collect();
            let is_unknown = failed.is_empty();
            return Err(if is_unknown { OutputsError::NoOutput(self.name()) } else { OutputsError::AllFailed(failed) });
        }
        if self.joined.works.is_empty() {
            return Err(OutputsError::NoImage {
                outputs: self.files.len(),
                images: self.samples.len(),
                example: self.name_of(0),
                image: self.samples.first().map(|sample| sample.uri.to_string()).unwrap_or_default(),
            });
        }
        Ok(self)
    }

    /// The folder that the run is named after.
    fn name(&self) -> String {
        let first = self.parts.first();
        first.map_or_else(String::new, |part| part.folder.files.name())
    }

    /// Why a folder became unreadable.
    pub fn outage(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| part.folder.outage())
    }

    fn part_of(&self, output: usize) -> &FoundPart {
        let behind = self.parts.partition_point(|part| part.first <= output);
        &self.parts[behind.saturating_sub(1)]
    }

    pub fn responses<'f>(&'f self, work: &Work, control: &'f TaskControl) -> ResponseFile<'f> {
        let format = match work {
            Work::One { .. } => ResponseFormat::One,
            Work::Records { .. } | Work::Named { .. } => ResponseFormat::Several,
        };
        let output = work.output();
        ResponseFile { folder: &self.part_of(output).folder, file: &self.files[output], control, format }
    }

    /// The list of images that an output is for, and its folder.
    ///
    /// # Errors
    /// The list does not exist or could not be read; the message states where it was expected, and what to do.
    pub fn list_of(&self, output: usize, control: &TaskControl) -> Result<(&OutputFolder, FileEntry), String> {
        let part = self.part_of(output);
        let key = self.files[output].key.as_str();
        let below = key.strip_prefix(&part.folder.address().prefix);
        let name = below.unwrap_or(key);
        let name = name.strip_suffix(super::OUT).unwrap_or(name);
        for folder in &part.lists {
            if let Some(file) = folder.find(name, control)? {
                return Ok((folder, file));
            }
        }
        let places: Vec<String> = part.lists.iter().map(|folder| folder.files.name()).collect();
        Err(format!(
            "the input list {name} of the job is not in {}; open the job by its name, or copy the list to the images",
            places.join(" or ")
        ))
    }

    pub fn name_of(&self, output: usize) -> String {
        self.part_of(output).folder.files.name_of(&self.files[output])
    }

    pub fn useful_reads(&self) -> usize {
        let reads = self.parts.iter().map(|part| part.folder.files.useful_reads());
        reads.max().unwrap_or(1)
    }

    /// The number of images that retries predicted, as text; `None` without retries.
    pub fn retries_text(&self) -> Option<String> {
        let mut texts = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let Some(retry) = &part.retry else {
                continue;
            };
            let end = self.parts.get(index + 1);
            let numbers = part.first..end.map_or(self.files.len(), |next| next.first);
            let works = self.joined.works.iter();
            let works = works.filter(|work| numbers.contains(&work.output()));
            let images: usize = works.map(|work| work.places().count()).sum();
            match retry {
                RetryPart::Known(job) => texts.push(predicted_by_retry(images as u64, job)),
                // It may belong to something else.
                RetryPart::ByItsLooks(_) if images == 0 => {}
                RetryPart::ByItsLooks(job) => texts.push(format!(
                    "{}, which was not started on this computer and only looks like a retry",
                    predicted_by_retry(images as u64, job)
                )),
            }
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Indices of images without an output for which [`Self::missing_reason`] has a reason.
    pub fn permanently_missing(&self) -> impl Iterator<Item = usize> + '_ {
        let without = self.joined.without_output.iter().copied();
        without.filter(|place| self.missing_reason(*place).is_some())
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The number of listed outputs.
    pub fn outputs(&self) -> usize {
        self.files.len()
    }

    /// Images with an output of their own, or of the file that contains them.
    pub fn images(&self) -> usize {
        self.samples.len() - self.joined.without_output.len() - self.not_sent()
    }

    /// Images that the job never received.
    pub fn not_sent(&self) -> usize {
        self.joined.not_sent.len()
    }

    /// The final reason why an image has no output, if its job has ended.
    pub fn missing_reason(&self, place: usize) -> Option<&str> {
        let is_final = self.parts.first().is_some_and(|part| part.is_final);
        let why = self.joined.reasons.get(&place)?;
        is_final.then_some(why)
    }

    /// The image as a problem, if [`Self::missing_reason`] has a reason.
    pub fn failure(&self, place: usize) -> Option<Problem> {
        let why = self.missing_reason(place)?;
        Some(Problem::new(self.samples[place].uri.clone(), why))
    }

    /// Outputs whose images are named only in their lines; those images are counted in
    /// [`super::ReadOutcome::without_output`].
    pub fn lists(&self) -> usize {
        let works = self.joined.works.iter();
        works.filter(|work| matches!(work, Work::Named { .. })).count()
    }

    /// Whether the job has ended with an output for each list that it received.
    pub fn all_lists_have_outputs(&self) -> bool {
        let first = self.parts.first();
        self.lists() > 0 && first.is_some_and(|part| part.is_final && !part.lacks_lists)
    }

    /// When the newest output was written, in nanoseconds since 1970-01-01 UTC by the clock of the storage.
    pub fn newest_ns(&self) -> Option<i64> {
        self.files.iter().filter_map(|file| file.modified_ns).max()
    }

    pub fn problems(&self) -> Vec<Problem> {
        let strays = &self.joined.strays;
        if strays.is_empty() {
            return Vec::new();
        }
        let examples = self.examples_of(strays);
        vec![Problem::general(match strays.len() {
            1 => format!("1 output matches no image and was skipped: {examples}"),
            count => {
                format!("{count} outputs match no image and were skipped, for example {examples}")
            }
        })]
    }

    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = not_sent_text(self.not_sent()).into_iter().collect();
        let unlisted = &self.joined.unlisted;
        if !unlisted.is_empty() {
            let examples = self.examples_of(unlisted);
            notes.push(match unlisted.len() {
                1 => format!(
                    "1 output is for an object that is not listed as an image (hidden, another file or another \
                     folder) and was skipped: {examples}"
                ),
                count => format!(
                    "{count} outputs are for objects that are not listed as images (hidden, other files or other \
                     folders) and were skipped, for example {examples}"
                ),
            });
        }
        notes
    }

    fn examples_of(&self, outputs: &[usize]) -> String {
        let examples = outputs.iter().take(EXAMPLES);
        let examples: Vec<String> = examples.map(|number| self.name_of(*number)).collect();
        examples.join(", ")
    }

    /// Detects the format from the first outputs, and creates a run. `known` finds models by id.
    ///
    /// # Errors
    /// None of them can be read, or none has a known format.
    pub fn describe(
        &self,
        made: InferenceLocation,
        choice: &ReadingChoice,
        known: impl Fn(&str) -> Option<(ModelCard, LabelSet)>,
        control: &TaskControl,
    ) -> Result<OutputRun, OutputsError> {
        let first = match &choice.mapping {
            Some(mapping) => First { recognition: mapping.clone().into(), response: None },
            None => self.first(control)?,
        };
        let Recognition { shape, mut assumed } = first.recognition;
        let card = match &shape {
            OutputShape::Spotcheck { model, .. } => known(model),
            OutputShape::Mapped(_) => None,
        };
        let agrees =
            |reader: &OutputReader| first.response.as_ref().is_some_and(|response| reader.agrees_on_labels(response));
        let labels = choice.label_source(&shape, card.as_ref(), agrees, "outputs", &mut assumed);
        let made_text = match made {
            InferenceLocation::Outputs { .. } => self.name(),
            _ => format!("{made}, {}", self.name()),
        };
        let origin = format!("outputs of {made_text}, read as {}", shape.description());
        let card = match card {
            Some((card, _)) => ModelCard { origin, assumed: card.assumed.into_iter().chain(assumed).collect(), ..card },
            None => card_of(&shape, origin, assumed),
        };
        let key = RunKey::for_predictions(card.id.clone(), choice.keep, made);
        let reader = OutputReader::new(shape, labels, choice.keep);
        match &first.response {
            Some(response) if matches!(reader.shape(), OutputShape::Mapped(_)) => {
                reader.begin_with(response);
            }
            None if reader.labels().is_empty() => self.begin(&reader, control)?,
            _ => {}
        }
        Ok(OutputRun { key, card, labels: reader.labels(), reader: Arc::new(reader) })
    }

    /// Passes the first readable response to the reader. Only classifiers have an unknown property that all responses
    /// share.
    fn begin(&self, reader: &OutputReader, control: &TaskControl) -> Result<(), OutputsError> {
        if reader.shape().task() != ModelTask::Classification {
            return Ok(());
        }
        for work in self.joined.works.iter().take(LOOKED_AT) {
            control.checkpoint()?;
            let mut responses = self.responses(work, control).responses();
            for _ in 0..LOOKED_AT {
                // Unreadable outputs are reported when the run reads them.
                let Ok(Some(response)) = responses.read_next() else {
                    break;
                };
                if response.is_ok_and(|json| reader.begin_with(&json)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The first response with a known format. Others, such as the error page of a proxy, are skipped.
    fn first(&self, control: &TaskControl) -> Result<First, OutputsError> {
        let (mut unknown, mut broken) = (None, None);
        for work in self.joined.works.iter().take(LOOKED_AT) {
            control.checkpoint()?;
            let looked_at = self.first_of(work, control);
            control.checkpoint()?;
            let example = self.name_of(work.output());
            match looked_at {
                Ok(first) => return Ok(first),
                Err(error @ Unrecognized::Unknown(_)) => {
                    unknown.get_or_insert((example, error.to_string()));
                }
                Err(Unrecognized::Broken(reason)) => {
                    broken.get_or_insert((example, reason));
                }
            }
        }
        if let Some((example, reason)) = unknown {
            return Err(OutputsError::Unknown { example, reason });
        }
        let (example, reason) = broken.unwrap_or_default();
        Err(OutputsError::Broken { example, reason })
    }

    fn first_of(&self, work: &Work, control: &TaskControl) -> Result<First, Unrecognized> {
        let file = self.responses(work, control);
        let mut responses = file.responses();
        let mut best_error = None;
        for _ in 0..LOOKED_AT {
            let Some(response) = responses.read_next().map_err(Unrecognized::Broken)? else {
                break;
            };
            let recognized = response.map_err(Unrecognized::Broken).and_then(|json| {
                let recognition = Recognition::from_json(&json, b"")?;
                Ok(First { recognition, response: Some(json) })
            });
            match (recognized, &best_error) {
                (Ok(first), _) => return Ok(first),
                (Err(error), None) | (Err(error @ Unrecognized::Unknown(_)), Some(Unrecognized::Broken(_))) => {
                    best_error = Some(error);
                }
                (Err(_), Some(_)) => {}
            }
        }
        Err(match best_error {
            Some(Unrecognized::Unknown(_)) => {
                let beginning = file.folder.read_range(file.file, 0..RAW_BYTES, control);
                Unrecognized::unknown(&beginning.unwrap_or_default())
            }
            Some(broken) => broken,
            None => Unrecognized::Broken("it contains no response".to_owned()),
        })
    }
}

/// Whether a list of images has no output.
fn lacks_lists(sent: &Sent) -> bool {
    sent.without_output.iter().any(|(key, _)| is_list(key))
}

/// “3 images were not sent to the job”
pub(super) fn not_sent_text(images: usize) -> Option<String> {
    match images {
        0 => None,
        1 => Some("1 image was not sent to the job".to_owned()),
        count => Some(format!("{count} images were not sent to the job")),
    }
}

struct First {
    recognition: Recognition,
    response: Option<Json>,
}

/// A card for a model that is known only by its responses. It can be shown and stored, but not loaded.
fn card_of(shape: &OutputShape, origin: String, assumed: Vec<String>) -> ModelCard {
    let (id, name, labels) = match shape {
        OutputShape::Spotcheck { model, .. } => (model.clone(), model.clone(), None),
        OutputShape::Mapped(mapping) => (mapping.id.clone(), mapping.name.clone(), mapping.labels.clone()),
    };
    let output = OutputConvention::for_predictions(shape.task());
    ModelCard { origin, assumed, labels, ..ModelCard::for_predictions(id, name, output) }
}

/// The outputs that a run has already read, so that opening them again reads only new ones. Stored in the project with
/// the run. A single time suffices: outputs that are older than the newest one in a completely read listing are in the
/// run. It is by the clock of the storage, so clocks are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenOutputs {
    newest_ns: Option<i64>,
}

impl SeenOutputs {
    pub fn all_of(found: &FoundOutputs) -> Self {
        Self { newest_ns: found.newest_ns() }
    }

    /// The state of a run in the project; `None` without one.
    pub fn from_run(project: &Project, run: RunId) -> Result<Option<Self>, StoreError> {
        let text = project.views()?.remove(&name(run));
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The change that stores it in the project.
    pub fn change(self, run: RunId) -> Change {
        let json = serde_json::to_string(&self).expect("a number always serializes");
        Change::SetView { name: name(run), json }
    }

    /// The images whose outputs are newer, or may be.
    pub fn newer(self, found: &FoundOutputs) -> SampleSet {
        let is_newer = |output: usize| match (found.files[output].modified_ns, self.newest_ns) {
            (Some(modified), Some(newest)) => modified > newest,
            _ => true,
        };
        let newer = found.joined.works.iter();
        let newer = newer.filter(|work| is_newer(work.output()));
        let (lists, others): (Vec<&Work>, Vec<&Work>) = newer.partition(|work| matches!(work, Work::Named { .. }));
        // A list can be for any of the images that have no output of their own.
        let of_lists = if lists.is_empty() { &[][..] } else { &found.joined.without_output[..] };
        others.into_iter().flat_map(Work::places).chain(of_lists.iter().copied()).map(SampleId::from_index).collect()
    }
}

fn name(run: RunId) -> String {
    format!("outputs/{}", run.0)
}
