//! Inspecting a model of the user's own, testing cards with it, and adding it to the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;

use crate::domain::{
    CardTask, LabelSet, ModelCard, Prediction, PredictionContent, RgbImage, SampleUri, ViewSettings, capitalized,
    counted,
};
use crate::image::decode;
use crate::model::catalog::{built_in_labels, check_card, labels_from_file};
use crate::model::onnx::{InspectError, Inspection, PresetTrial, TrialImage, labels_of, truth_of, undecided_resize};
use crate::model::recognize::{
    Basis, Dimension, Finding, Overrules, Port, Recognition, draft_output, image_layouts, preview,
};
use crate::model::{preprocess, runtime};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::effects::{Delivery, Shared};
use crate::window::state::{
    Failure, ImportFinding, ImportPort, ImportProblem, ImportStart, ImportSubject, ImportTrial, LabelChoice,
    ModelsEvent, PresetRow, PresetTable, PresetsRequest, RecognizeRequest, SaveRequest, SourceId, Ticket, TrialRequest,
};

#[derive(Default)]
pub(crate) struct ModelInspector {
    model: Arc<Mutex<Option<InspectedModel>>>,
    /// The control of the work that a newer request replaces.
    current: Mutex<Option<TaskControl>>,
}

struct InspectedModel {
    weights: PathBuf,
    inspection: Inspection,
    found_labels: LabelSet,
    /// Whether the graph is known to accept several images per call.
    takes_batches: bool,
    /// The last decoded image.
    image: Option<(SourceId, SampleUri, RgbImage)>,
}

/// The size of the gray input used if no image is open: width and height in pixels.
const GREY_SIZE: [u32; 2] = [640, 480];
/// The limit of boxes in the preview.
const MOST_BOXES: usize = 300;
/// The number of boxes in the preview if none of them would be shown.
const BEST_BOXES: usize = 3;

impl ModelInspector {
    pub(crate) fn recognize(&self, shared: &Arc<Shared>, request: RecognizeRequest) {
        let model = Arc::clone(&self.model);
        let control = self.begin();
        let import = request.import;
        let work = move |shared: &Arc<Shared>| {
            let mut model = model.lock();
            let start = recognize(shared, &mut model, &request, &control);
            start.map(Box::new).map_err(|error| format!("{error:#}"))
        };
        shared.run("inspect a model", work, move |result| ModelsEvent::Recognized { import, result });
    }

    pub(crate) fn try_card(&self, shared: &Arc<Shared>, request: TrialRequest) {
        let model = Arc::clone(&self.model);
        let control = self.begin();
        let import = request.import;
        let ended = move |trial| ModelsEvent::Tried { import, trial: Box::new(trial) };
        let work = move |shared: &Arc<Shared>| {
            let mut model = model.lock();
            ended(try_card(shared, model.as_mut(), &request, &control))
        };
        shared.spawn_reporting("try a model", work, move |reason| ended(failed_trial(reason)));
    }

    pub(crate) fn try_presets(&self, shared: &Arc<Shared>, request: PresetsRequest) {
        let model = Arc::clone(&self.model);
        let ticket = request.ticket.clone();
        let work = move |shared: &Arc<Shared>, ticket: &Ticket| {
            let mut model = model.lock();
            try_presets(shared, model.as_mut(), &request, &ticket.control).map(Arc::new)
        };
        shared.run_task("try presets", ticket, work, ModelsEvent::PresetsTried);
    }

    pub(crate) fn save(&self, shared: &Arc<Shared>, request: SaveRequest) {
        let model = Arc::clone(&self.model);
        let import = request.import;
        let work = move |shared: &Arc<Shared>| {
            let model = model.lock();
            save(shared, model.as_ref(), request).map_err(|error| format!("{error:#}"))
        };
        shared.run("add a model", work, move |result| ModelsEvent::Saved { import, result });
    }

    /// Releases the memory of the model once pending work has ended.
    pub(crate) fn close(&self) {
        self.begin();
        if let Some(mut model) = self.model.try_lock() {
            *model = None;
        }
    }

    /// The control of new work, which replaces pending work.
    fn begin(&self) -> TaskControl {
        let control = TaskControl::new(ProgressUnit::Bytes);
        if let Some(earlier) = self.current.lock().replace(control.clone()) {
            earlier.cancel();
        }
        control
    }
}

fn recognize(
    shared: &Shared,
    model: &mut Option<InspectedModel>,
    request: &RecognizeRequest,
    control: &TaskControl,
) -> anyhow::Result<ImportStart> {
    let Some(_working) = shared.model_work.begin(control) else {
        anyhow::bail!("the window is being closed");
    };
    // Two models may not fit into memory together.
    *model = None;
    let added = match &request.subject {
        ImportSubject::File(_) => None,
        ImportSubject::Added(id) => Some(shared.library.find(id)?),
    };
    let weights = match (&request.subject, &added) {
        (ImportSubject::File(path), _) => path.clone(),
        (ImportSubject::Added(_), Some(model)) => model.weights.clone(),
        (ImportSubject::Added(id), None) => anyhow::bail!("the model {id} no longer exists"),
    };
    let runtime = runtime::ensure_loaded(&shared.dirs, request.runtime_library.as_deref(), control)?;
    let mut inspection = Inspection::open(&runtime, &weights)?;
    let start = match added {
        Some(model) => start_of_added(&inspection, model.card, model.labels),
        None => start_of_file(&mut inspection, request.reading, control)?,
    };
    let found_labels = start.found_labels.clone();
    // A call with several images is part of the recognition.
    let takes_batches = start.card.input.batches;
    *model = Some(InspectedModel { weights, inspection, found_labels, takes_batches, image: None });
    Ok(start)
}

/// The initial form. A model that is not recognized is left to the user, unless it has no image input.
fn start_of_file(inspection: &mut Inspection, reading: usize, control: &TaskControl) -> anyhow::Result<ImportStart> {
    match inspection.recognize(None, &Overrules::with_reading(reading), control) {
        Ok(recognition) => {
            let labels = labels_of(&recognition);
            let choice = match (&recognition.card.labels, &recognition.labels) {
                (Some(_), Some(_)) => LabelChoice::Found,
                (Some(name), None) => LabelChoice::BuiltIn(name.clone()),
                (None, _) => LabelChoice::None,
            };
            let found = if choice == LabelChoice::Found { labels } else { LabelSet::default() };
            let findings = recognition.findings.iter().map(finding).collect();
            let Recognition { card, remarks, readings, reading, .. } = recognition;
            let remarks = remarks.into_iter().chain(card.not_shown.clone()).collect();
            let start = start_with(inspection, card, choice, found, findings);
            Ok(ImportStart { remarks, readings, reading, ..start })
        }
        Err(InspectError::Refused { path, reason }) => {
            let Ok((card, found)) = inspection.draft() else {
                return Err(InspectError::Refused { path, reason }.into());
            };
            let choice = if found.is_empty() { LabelChoice::None } else { LabelChoice::Found };
            let start = start_with(inspection, card, choice, found, Vec::new());
            Ok(ImportStart { refusal: Some(reason.to_string()), ..start })
        }
        Err(error) => Err(error.into()),
    }
}

fn start_of_added(inspection: &Inspection, card: ModelCard, labels: LabelSet) -> ImportStart {
    let (choice, found) = match &card.labels {
        None => (LabelChoice::None, LabelSet::default()),
        Some(name) if built_in_labels(name).is_some() => (LabelChoice::BuiltIn(name.clone()), LabelSet::default()),
        Some(_) => (LabelChoice::Found, labels),
    };
    let assumed = card.assumed.iter().filter_map(|text| text.split_once(" = "));
    let findings = assumed.map(|(field, value)| ImportFinding {
        field: field.to_owned(),
        value: value.to_owned(),
        basis: Basis::Assumed.to_string(),
        is_assumed: true,
        because: "when it was added".to_owned(),
    });
    let findings = findings.collect();
    start_with(inspection, card, choice, found, findings)
}

fn start_with(
    inspection: &Inspection,
    card: ModelCard,
    labels: LabelChoice,
    found_labels: LabelSet,
    findings: Vec<ImportFinding>,
) -> ImportStart {
    let graph = inspection.signature();
    let tasks = [CardTask::Classification, CardTask::Detection, CardTask::Embedding];
    let other_tasks = tasks.into_iter().filter(|task| *task != card.task);
    ImportStart {
        labels,
        found_labels,
        findings,
        refusal: None,
        remarks: Vec::new(),
        readings: Vec::new(),
        reading: 0,
        inputs: graph.inputs.iter().map(port).collect(),
        outputs: graph.outputs.iter().map(port).collect(),
        other_outputs: other_tasks.map(|task| draft_output(graph, task)).collect(),
        card,
    }
}

fn finding(finding: &Finding) -> ImportFinding {
    ImportFinding {
        field: finding.field.clone(),
        value: finding.value.clone(),
        basis: finding.basis.to_string(),
        is_assumed: finding.basis == Basis::Assumed,
        because: finding.because.clone(),
    }
}

fn port(port: &Port) -> ImportPort {
    let text = port.to_string();
    let shape = text.strip_prefix(&port.name).unwrap_or(&text).trim_start().to_owned();
    let declared_batch = port.dims.first().filter(|_| port.dims.len() == 4).and_then(Dimension::fixed);
    ImportPort {
        name: port.name.clone(),
        shape,
        layouts: image_layouts(port),
        declared_batch: declared_batch.and_then(|images| u32::try_from(images).ok()),
    }
}

fn failed_trial(reason: String) -> ImportTrial {
    ImportTrial { problems: vec![fatal("", reason)], ..ImportTrial::default() }
}

fn fatal(field: &str, text: impl Into<String>) -> ImportProblem {
    ImportProblem { field: field.to_owned(), text: text.into(), is_fatal: true }
}

fn warning(field: &str, text: impl Into<String>) -> ImportProblem {
    ImportProblem { is_fatal: false, ..fatal(field, text) }
}

fn try_card(
    shared: &Shared,
    model: Option<&mut InspectedModel>,
    request: &TrialRequest,
    control: &TaskControl,
) -> ImportTrial {
    let (Some(model), Some(_working)) = (model, shared.model_work.begin(control)) else {
        return failed_trial("The model is no longer open; open it again".to_owned());
    };
    let mut trial = ImportTrial::default();
    if let Err(problem) = fill_in(&mut trial, shared, model, request, control) {
        trial.problems.push(problem);
    }
    trial
}

/// Adds the results of the card to `trial`, up to the first failure.
fn fill_in(
    trial: &mut ImportTrial,
    shared: &Shared,
    model: &mut InspectedModel,
    request: &TrialRequest,
    control: &TaskControl,
) -> Result<(), ImportProblem> {
    let mut card = request.card.clone();
    set_labels(&mut card, &request.labels);
    check_card(&card).map_err(|error| fatal(error.field, error.reason))?;
    let labels = chosen_labels(model, &request.labels).unwrap_or_else(|error| {
        trial.problems.push(fatal("labels", format!("{error:#}")));
        LabelSet::default()
    });
    load_image(shared, model, request.image.as_ref()).map_err(|error| warning("", format!("{error:#}")))?;
    let (pixels, uri) = match &model.image {
        Some((_, uri, pixels)) => (pixels, Some(uri)),
        None => (&gray_image(), None),
    };
    let prepared = preprocess(&card.input, pixels).map_err(|error| fatal("input.resize", error.to_string()))?;
    if let Some(uri) = uri {
        let seen = preview(&card.input, &prepared.tensor).map_err(|error| fatal("input", error.to_string()))?;
        trial.tensor.push(format!("Shape {:?}, made from {}", prepared.tensor.shape, uri.file_name()));
        for (index, channel) in seen.channels.iter().enumerate() {
            let (min, max, mean) = (channel.min, channel.max, channel.mean);
            trial.tensor.push(format!("Channel {index}: {min:.3} to {max:.3}, mean {mean:.3}"));
        }
        shared.deliver(Delivery::ImportPreview { image: seen.image });
    }
    if card.is_encoder() {
        let layer = model.inspection.encoder(&card, control);
        let layer = layer.map_err(|reason| fatal("output.embedding.name", capitalized(&reason)))?;
        trial.embedding_dims = Some(layer.dims);
    }
    let tried = model.inspection.try_card(&card, &labels, &prepared, control);
    let (prediction, misfits) = tried.map_err(|misfit| fatal(misfit.field, capitalized(&misfit.text)))?;
    for misfit in misfits {
        // A gray image confirms shapes, but not values.
        if misfit.field == "labels" {
            trial.problems.push(fatal(misfit.field, misfit.text));
        } else if uri.is_some() {
            trial.problems.push(warning(misfit.field, misfit.text));
        }
    }
    if card.input.batches && !model.takes_batches {
        let misfit = model.inspection.try_batch(&card, &prepared, control);
        model.takes_batches = misfit.is_none();
        trial.problems.extend(misfit.map(|misfit| fatal(misfit.field, misfit.text)));
    }
    trial.image = uri.cloned();
    if uri.is_some() {
        trial.prediction = Some(worth_showing(prediction, &card, &mut trial.sure_boxes));
    }
    Ok(())
}

/// The boxes that the window would show, or else the best ones. `sure` is set to the number of the former.
fn worth_showing(mut prediction: Prediction, card: &ModelCard, sure: &mut usize) -> Prediction {
    let view = ViewSettings { min_score: ImportTrial::MIN_SCORE, ..ViewSettings::from_card(card) };
    let visible = view.visible_detections(&prediction, &[]);
    *sure = visible.len();
    if let PredictionContent::Detections(boxes) = &mut prediction.content {
        *boxes = match visible.len() {
            0 => boxes.drain(..boxes.len().min(BEST_BOXES)).collect(),
            _ => visible.into_iter().take(MOST_BOXES).filter_map(|index| boxes.get(index).cloned()).collect(),
        };
    }
    prediction
}

fn gray_image() -> RgbImage {
    let [width, height] = GREY_SIZE;
    let pixels = vec![128; width as usize * height as usize * 3];
    RgbImage::new(width, height, pixels).expect("there are three bytes for each pixel")
}

fn try_presets(
    shared: &Shared,
    model: Option<&mut InspectedModel>,
    request: &PresetsRequest,
    control: &TaskControl,
) -> Result<PresetTable, Failure> {
    let model = model.ok_or(Failure::Cancelled)?;
    let _working = shared.model_work.begin(control).ok_or(Failure::Cancelled)?;
    let labels = chosen_labels(model, &request.labels).map_err(|error| Failure::new(format!("{error:#}")))?;
    let source = shared.source(request.source).ok_or(Failure::Cancelled)?;
    let (mut images, mut named) = (Vec::new(), Vec::new());
    for (sample, uri) in &request.images {
        control.checkpoint().map_err(|_| Failure::Cancelled)?;
        let bytes = source.read(uri).ok();
        // An unreadable image has its own message in the list.
        if let Some(Ok(decoded)) = bytes.map(|bytes| decode::decode(&bytes, &shared.limits())) {
            let folder = Path::new(uri.as_str()).parent().and_then(Path::file_name).unwrap_or_default();
            let truth = truth_of(&folder.to_string_lossy(), &labels);
            let name = uri.file_name().to_owned();
            named.push((*sample, name.clone()));
            images.push(TrialImage { name, image: decoded.image, truth });
        }
    }
    if images.is_empty() {
        return Err(Failure::new("None of the images on screen can be read; open a folder with images first"));
    }
    let mut trials =
        model.inspection.try_presets(&request.card, &labels, &images, control).map_err(|error| match error {
            InspectError::Cancelled => Failure::Cancelled,
            error => Failure::new(error.to_string()),
        })?;
    trials.sort_by(|left, right| right.compare(left));
    let undecided = undecided_resize(&trials);
    Ok(PresetTable { images: named, rows: trials.into_iter().map(preset_row).collect(), undecided })
}

fn preset_row(trial: PresetTrial) -> PresetRow {
    let best = |prediction: &Result<Prediction, String>| match prediction {
        Err(reason) => format!("⚠ {reason}"),
        Ok(prediction) => match &prediction.content {
            PredictionContent::Classes(classes) => {
                classes.first().map_or_else(String::new, |class| format!("{} {:.0}%", class.label, class.score * 100.0))
            }
            PredictionContent::Detections(boxes) => {
                let sure = boxes.iter().take_while(|found| found.score >= ImportTrial::MIN_SCORE).count();
                let best = boxes.first().map(|found| format!(", {} {:.0}%", found.label, found.score * 100.0));
                counted(sure, "box", "boxes") + &best.unwrap_or_default()
            }
        },
    };
    PresetRow {
        name: trial.preset.name.to_owned(),
        about: trial.preset.about.to_owned(),
        mean_top_score: trial.mean_top_score,
        mean_entropy: trial.mean_entropy,
        accuracy: trial.accuracy,
        best: trial.predictions.iter().map(best).collect(),
        input: trial.preset.input,
    }
}

/// Decodes the current image, unless it was the last one.
fn load_image(
    shared: &Shared,
    model: &mut InspectedModel,
    image: Option<&(SourceId, SampleUri)>,
) -> anyhow::Result<()> {
    if model.image.as_ref().map(|(source, uri, _)| (*source, uri)) == image.map(|(source, uri)| (*source, uri)) {
        return Ok(());
    }
    model.image = None;
    if let Some((id, uri)) = image {
        let source = shared.source(*id).context("The folder has been closed; open it again")?;
        let decoded = decode::decode(&source.read(uri)?, &shared.limits())?;
        model.image = Some((*id, uri.clone(), decoded.image));
    }
    Ok(())
}

fn chosen_labels(model: &InspectedModel, choice: &LabelChoice) -> anyhow::Result<LabelSet> {
    match choice {
        LabelChoice::None => Ok(LabelSet::default()),
        LabelChoice::Found => Ok(model.found_labels.clone()),
        LabelChoice::BuiltIn(name) => built_in_labels(name).with_context(|| format!("There is no label set {name}")),
        LabelChoice::File(path) if path.as_os_str().is_empty() => anyhow::bail!("Enter the path of a label file"),
        LabelChoice::File(path) => Ok(labels_from_file(path)?),
    }
}

/// Sets the labels. The card names a built-in set itself, and a file once it is saved.
fn set_labels(card: &mut ModelCard, choice: &LabelChoice) {
    card.labels = match choice {
        LabelChoice::BuiltIn(name) => Some(name.clone()),
        LabelChoice::None | LabelChoice::Found | LabelChoice::File(_) => None,
    };
}

fn save(shared: &Shared, model: Option<&InspectedModel>, request: SaveRequest) -> anyhow::Result<String> {
    let model = model.context("The model is no longer open; open it again")?;
    let mut card = request.card;
    let labels = chosen_labels(model, &request.labels)?;
    let is_added = matches!(request.subject, ImportSubject::Added(_));
    // The file next to the card stays, and the card refers to it.
    let stays = is_added && request.labels == LabelChoice::Found;
    if !stays {
        set_labels(&mut card, &request.labels);
    }
    let is_file = matches!(request.labels, LabelChoice::Found | LabelChoice::File(_));
    let labels = (is_file && !stays).then_some(&labels);
    let saved = if is_added {
        shared.library.replace_card(card, labels)?
    } else {
        shared.library.add(&model.weights, card, labels)?
    };
    Ok(saved.card.id)
}
