//! `spotcheck predict`: runs a model over a source, from listing to written results.

pub(crate) mod embedding;
pub(crate) mod outputs;
mod remote;
pub(crate) mod saving;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;

use super::inspect::recognize_for_run;
use super::out_file::{Replaceable, check_is_no_image, check_out};
use super::place::{self, LayoutArgs, Opened, S3Args, parse_location};
use super::terminal::{summary, with_progress};
use super::values::{NmsIou, parse_nms_iou};
use super::{Outcome, describe_latency, describe_refused};
use crate::alike::ImageEmbeddings;
use crate::cli::terminal::{interruptible, print_problems, step_of};
use crate::dirs::AppDirs;
use crate::domain::{
    DeviceChoice, DeviceReport, InferenceLocation, KeepRule, LabelSet, Location, ModelCard, RunKey, Sample, SampleId,
    SampleSet,
};
use crate::image::decode::DecodeLimits;
use crate::image::source::{Page, ReadTwice, Source, for_task};
use crate::model::catalog::{Library, LibraryError, Model};
use crate::model::onnx::{LoadOptions, OnnxPredictor};
use crate::model::{AnyPredictor, runtime};
use crate::predict::{PredictOutcome, PredictRequest, ResultSink, SampleResult, Stopped, predict_some};
use crate::review::NothingFound;
use crate::sagemaker::jobs::quoted;
use crate::tasks::{ProgressUnit, TaskControl};
use embedding::SavedEmbeddings;
use outputs::{ImageFailures, Outputs};
use remote::{Remote, RemoteArgs};
use saving::{SavedLabels, Saving, SavingArgs};

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Folder, image, TFRecord file, `s3://bucket/folder/`, or `-` to read paths from stdin, one per line
    source: PathBuf,
    /// Model id (see `spotcheck models list`) or ONNX file
    #[arg(long, value_name = "ID|FILE.onnx", required_unless_present_any = ["endpoint", "tensorflow_serving"])]
    model: Option<String>,
    /// Preprocessing preset for an ONNX file without a card; `models inspect --try-presets` lists the names
    #[arg(long, value_name = "NAME", requires = "model")]
    preset: Option<String>,
    /// Device: auto, cpu, cuda, webgpu or coreml; only auto falls back to another device
    #[arg(long, default_value_t)]
    device: DeviceChoice,
    /// Images per model call [default: 8 on a GPU if the model allows it, otherwise 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Option<u32>,
    /// CPU threads for the model [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Predict only the first N images
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Minimum score of detections
    #[arg(long, default_value_t = KeepRule::default().min_score, value_parser = super::values::parse_score::<f32>)]
    min_score: f32,
    /// NMS IoU threshold for the outputs, or `off`; a project always stores all boxes [default: from the model's card]
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou)]
    nms_iou: Option<NmsIou>,
    /// Number of classes per image for classifiers
    #[arg(long, default_value_t = KeepRule::default().top_k as u32, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: u32,
    /// Write JSON Lines to this file, or to stdout with `-` [default: a table on stdout]
    #[arg(long, value_name = "FILE.jsonl|-")]
    out: Option<PathBuf>,
    /// Write annotated images, with boxes or top classes, to this folder
    #[arg(long, value_name = "DIR")]
    annotate: Option<PathBuf>,
    /// Maximum image size in megapixels
    #[arg(long, default_value_t = DecodeLimits::default().max_megapixels)]
    max_megapixels: u64,
    #[command(flatten)]
    saving: SavingArgs,
    /// With --project, save no embeddings, which `spotcheck alike` needs to find similar images
    #[arg(long)]
    no_embeddings: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    listing: LayoutArgs,
}

pub(crate) fn run(args: &PredictArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let place = args.location()?;
    args.check_out()?;
    let place = args.saving.spelt_as_known(place);
    let interrupt = interruptible(ProgressUnit::Bytes)?;
    let opened = place::open(&place, &interrupt)?;
    let mut source = Arc::clone(&opened.source);
    if args.annotate.is_some() && opened.place.is_some() {
        // Each image is read twice: for the model, and to draw on.
        source = Arc::new(ReadTwice::new(source));
    }
    let limit = args.limit.map(|limit| limit as usize);
    let if_empty = "Spotcheck reads JPEG, PNG, WebP, BMP, TIFF, GIF and TFRecord";
    let Page { samples, problems: listing_problems, .. } =
        list_images(&source, limit, args.out.as_deref(), if_empty, &interrupt)?;
    let limits = DecodeLimits { max_megapixels: args.max_megapixels, ..DecodeLimits::default() };
    let (control, _cancel_run) = step_of(&interrupt, ProgressUnit::Images);
    let new_project = args.saving.project().filter(|path| !path.exists());
    let project = args.saving.open_project(&opened, "spotcheck predict")?;
    let begin = || {
        let model = Loaded::load(args, &opened, &samples, &dirs, &interrupt)?;
        let saving = project.map(|project| {
            let info = (model.card(), model.saved_labels());
            Saving::begin(&args.saving, project, run_key(args, &model), info, &samples, &control)
        });
        let saving = saving.transpose()?;
        let outputs = args.open_outputs(model.card(), &source, &limits)?;
        anyhow::Ok((model, saving, outputs))
    };
    let (model, saving, mut outputs) = match begin() {
        Ok(begun) => begun,
        Err(error) => {
            // The project is empty.
            if let Some(Err(problem)) = new_project.map(std::fs::remove_file) {
                eprintln!("note: the new, empty project was not deleted: {problem}");
            }
            return Err(error);
        }
    };
    let is_encoder = model.card().is_encoder();
    let nothing_found = Rc::new(RefCell::new(NothingFound::default()));
    if args.min_score <= NothingFound::MIN_SCORE {
        observe_nothing_found(&mut outputs, Rc::clone(&nothing_found), model.advice_on_presets(args));
    }
    let request =
        PredictRequest { source: Arc::clone(&source), samples: samples.into(), predictor: model.predictor(), limits };
    let all = (0..request.samples.len()).map(SampleId::from_index);
    let missing = saving.as_ref().map_or_else(|| all.collect(), |saving| saving.missing().clone());
    let embeddings = match (&saving, &model) {
        (Some(saving), Loaded::Local(predictor)) => SavedEmbeddings::begin(saving, predictor, &request.samples)?,
        _ => None,
    };
    let only_embedding = embeddings.iter().flat_map(|embeddings| embeddings.only_embedding.iter());
    let computed: SampleSet = missing.iter().chain(only_embedding).collect();
    let mut sink = Sink {
        samples: &request.samples,
        control: &control,
        outputs,
        saving,
        unsaved: Vec::new(),
        embeddings,
        error: None,
    };
    let doing = if is_encoder { "Computing embeddings" } else { "Predicting" };
    let outcome = with_progress(doing, &control, || predict_some(&request, &computed, &control, &mut sink));
    let stored = request.samples.len() - computed.len();
    let failures = sink.finish(&interrupt)?;
    eprintln!("{}", summary(&control.progress()));
    if nothing_found.borrow().images() < FIRST_IMAGES {
        note_nothing_found(&nothing_found.borrow(), &model.advice_on_presets(args));
    }
    if let Some(latency) = model.describe_latency() {
        eprintln!("{latency}");
    }
    if is_encoder {
        eprintln!(
            "no predictions, only embeddings: use them with `spotcheck alike`, `duplicates`, `export` or the map"
        );
    }
    conclude(
        &outcome,
        &failures,
        listing_problems.len(),
        stored,
        request.samples.len(),
        args.saving.project().map(|_| if is_encoder { "embeddings" } else { "predictions" }),
    )
}

/// If a detector finds nothing in this many images, a note appears while the run continues.
const FIRST_IMAGES: usize = 8;

fn observe_nothing_found(outputs: &mut Outputs, nothing_found: Rc<RefCell<NothingFound>>, advice: String) {
    outputs.observe(move |_, prediction| {
        let mut found = nothing_found.borrow_mut();
        found.add_prediction(prediction);
        if found.images() == FIRST_IMAGES {
            note_nothing_found(&found, &advice);
        }
    });
}

fn note_nothing_found(found: &NothingFound, advice: &str) {
    if found.is_suspicious() {
        eprintln!("note: {}. {advice}", found.message());
    }
}

fn run_key(args: &PredictArgs, model: &Loaded) -> RunKey {
    let card = model.card();
    RunKey {
        model_id: card.id.clone(),
        weights_sha256: model.weights_sha256(),
        device: args.device,
        batch: args.batch.map(|batch| batch as usize),
        threads: args.threads.map(|threads| threads as usize),
        keep: args.keep(),
        made: model.made(),
    }
}

impl PredictArgs {
    fn location(&self) -> anyhow::Result<Location> {
        let place = parse_location(&self.source, &self.s3).map_err(|error| {
            if self.remote.is_endpoint() && self.s3.is_given() {
                return error.context("--sagemaker-profile and --sagemaker-region need --endpoint");
            }
            error
        })?;
        self.listing.apply_to(place)
    }

    fn open_outputs(
        &self,
        card: &ModelCard,
        source: &Arc<dyn Source>,
        limits: &DecodeLimits,
    ) -> anyhow::Result<Outputs> {
        let nms_iou = self.nms_iou.map_or_else(|| card.nms_iou(), |NmsIou(iou)| iou);
        Outputs::open(self.out.as_deref(), self.annotate.as_deref(), card.clone(), nms_iou, source, limits)
    }

    fn check_out(&self) -> anyhow::Result<()> {
        let Some(out) = &self.out else {
            return Ok(());
        };
        let [mapping, labels] = self.remote.files();
        let model = self.model.as_deref().map(Path::new);
        let inputs = [
            ("the images", Some(&*self.source)),
            ("the project", self.saving.project()),
            ("the model", model.filter(|model| model.exists())),
            ("the mapping", mapping),
            ("the class names", labels),
        ];
        check_out(out, Replaceable::JsonLines, &inputs)
    }

    /// # Errors
    /// An encoder would compute nothing that is kept, or is asked for predictions.
    fn check_encoder(&self, card: &ModelCard) -> anyhow::Result<()> {
        if !card.is_encoder() {
            return Ok(());
        }
        let id = &card.id;
        if self.out.is_some() || self.annotate.is_some() {
            bail!(
                "{id} is an encoder and predicts nothing, so there is nothing for --out and --annotate; export its \
                 embeddings with: spotcheck export FILE.spotcheck --format embeddings --out FILE.npy"
            );
        }
        if self.saving.project().is_none() {
            bail!("{id} is an encoder: it only computes embeddings; store them with --project FILE.spotcheck");
        }
        if self.no_embeddings {
            bail!("{id} is an encoder: with --no-embeddings, there is nothing to compute");
        }
        let usual = KeepRule::default();
        let options = [
            (self.keep().min_score != usual.min_score, "--min-score"),
            (self.nms_iou.is_some(), "--nms-iou"),
            (self.keep().top_k != usual.top_k, "--top-k"),
        ];
        if let Some((_, option)) = options.into_iter().find(|(is_given, _)| *is_given) {
            bail!("{id} is an encoder: it has neither classes nor boxes for {option}; leave it out");
        }
        Ok(())
    }

    fn keep(&self) -> KeepRule {
        KeepRule { min_score: self.min_score, top_k: self.top_k as usize }
    }
}

/// Saves each result in the project as it arrives, and writes all results, including those already in the project, in
/// listing order. Cancels the run if nothing more can be written.
pub(crate) struct Sink<'r> {
    pub(crate) samples: &'r [Sample],
    pub(crate) control: &'r TaskControl,
    pub(crate) outputs: Outputs,
    pub(crate) saving: Option<Saving>,
    /// Results whose embeddings are not committed yet: an interrupted run computes both again or neither.
    pub(crate) unsaved: Vec<(usize, SampleResult)>,
    pub(crate) embeddings: Option<SavedEmbeddings>,
    pub(crate) error: Option<anyhow::Error>,
}

impl ResultSink for Sink<'_> {
    fn embedded(&mut self, index: usize, embeddings: ImageEmbeddings) {
        if let Some(saved) = &mut self.embeddings
            && let Err(error) = saved.save(&self.samples[index], embeddings)
        {
            self.fail(error);
        }
    }

    fn arrived(&mut self, index: usize, result: &SampleResult) {
        if self.saving.is_some() && !self.has_prediction(index) {
            self.unsaved.push((index, result.clone()));
        }
        if self.embeddings.as_ref().is_none_or(SavedEmbeddings::is_due) {
            self.save();
        }
    }

    fn in_order(&mut self, index: usize, result: SampleResult) {
        let sample = &self.samples[index];
        let has_prediction = self.has_prediction(index);
        let written = self.write_stored_before(index).and_then(|()| {
            // Otherwise, the stored one is written.
            if has_prediction { Ok(()) } else { self.outputs.write(sample, result) }
        });
        if let Err(error) = written {
            self.fail(error);
        }
    }
}

impl Sink<'_> {
    /// Saves everything that has arrived.
    fn save(&mut self) {
        let mut saved = self.embeddings.as_mut().map_or(Ok(()), SavedEmbeddings::commit);
        if let Some(saving) = &mut self.saving {
            for (index, result) in self.unsaved.drain(..) {
                saved = saved.and_then(|()| saving.save(&self.samples[index], result, self.control));
            }
        }
        if let Err(error) = saved {
            self.fail(error);
        }
    }

    /// Whether the image is computed only for its embedding.
    fn has_prediction(&self, index: usize) -> bool {
        let embeddings = self.embeddings.as_ref();
        embeddings.is_some_and(|embeddings| embeddings.only_embedding.contains(SampleId::from_index(index)))
    }

    fn write_stored_before(&mut self, index: usize) -> anyhow::Result<()> {
        let Some(saving) = &mut self.saving else {
            return Ok(());
        };
        let outputs = &mut self.outputs;
        saving.each_stored_before(index, self.samples, |sample, result| outputs.write(sample, result))
    }

    pub(crate) fn fail(&mut self, error: anyhow::Error) {
        self.error.get_or_insert(error);
        self.control.cancel();
    }

    /// Waits for everything that is still being written and saved.
    pub(crate) fn finish(mut self, interrupt: &TaskControl) -> anyhow::Result<ImageFailures> {
        self.save();
        let rest = self.write_stored_before(self.samples.len());
        let failures = self.outputs.finish();
        let saved = self.saving.map_or(Ok(()), |saving| saving.finish(interrupt));
        if let Some(error) = self.error {
            return Err(error);
        }
        rest?;
        saved?;
        failures
    }
}

/// The images to predict, after their problems and notes are printed; `out` must not be one of them. `if_empty`: what to
/// do if there are none.
pub(crate) fn list_images(
    source: &Arc<dyn Source>,
    limit: Option<usize>,
    out: Option<&Path>,
    if_empty: &str,
    interrupt: &TaskControl,
) -> anyhow::Result<Page> {
    let page = list(source, limit, interrupt)?;
    print_problems("skipped ", &page.problems);
    for note in &page.notes {
        eprintln!("note: {note}");
    }
    if page.samples.is_empty() {
        bail!("No images in {}; {if_empty}", source.name());
    }
    if let Some(out) = out {
        check_is_no_image(out, &page.samples)?;
    }
    Ok(page)
}

/// The listing as one page, up to `limit` samples.
pub(crate) fn list(source: &Arc<dyn Source>, limit: Option<usize>, interrupt: &TaskControl) -> anyhow::Result<Page> {
    let limit = limit.unwrap_or(usize::MAX);
    let (control, _cancel) = step_of(interrupt, ProgressUnit::Images);
    let listed = with_progress("Listing", &control, || {
        let mut listed = Page::default();
        for page in for_task(source, &control).pages() {
            control.add_done(page.samples.len() as u64);
            listed.problems.extend(page.problems);
            listed.notes.extend(page.notes);
            listed.samples.extend(page.samples);
            if listed.samples.len() >= limit {
                listed.samples.truncate(limit);
                break;
            }
            if control.is_cancelled() {
                break;
            }
        }
        listed
    });
    if interrupt.is_cancelled() {
        bail!("canceled while listing the images");
    }
    Ok(listed)
}

/// A local or remote model.
enum Loaded {
    Local(Arc<OnnxPredictor>),
    Remote(Box<Remote>),
}

impl Loaded {
    /// Loads the local model, or connects to the remote one, and prints what it runs on.
    fn load(
        args: &PredictArgs,
        opened: &Opened,
        samples: &[Sample],
        dirs: &AppDirs,
        control: &TaskControl,
    ) -> anyhow::Result<Self> {
        let Some(model) = &args.model else {
            let images = (&opened.source, samples);
            let place = opened.place.as_ref();
            if args.batch.is_some() || args.threads.is_some() || args.device != DeviceChoice::Auto {
                bail!(
                    "--batch, --threads and --device are for models on this computer; use --concurrency for remote \
                    models"
                );
            }
            let remote = args.remote.load(place, images, args.keep(), dirs, control)?;
            return Ok(Self::Remote(Box::new(remote)));
        };
        let predictor = load_here(args, model, dirs, control)?;
        let card = predictor.card();
        print_report(card, &predictor.report());
        if args.batch.is_some_and(|batch| batch > 1) && !card.input.batches {
            eprintln!("note: {} takes one image per call, so --batch has no effect", card.id);
        }
        Ok(Self::Local(Arc::new(predictor)))
    }

    fn card(&self) -> &ModelCard {
        match self {
            Self::Local(predictor) => predictor.card(),
            Self::Remote(remote) => &remote.card,
        }
    }

    fn saved_labels(&self) -> SavedLabels {
        match self {
            Self::Local(predictor) => SavedLabels::from_model(predictor.labels().clone()),
            Self::Remote(remote) => {
                let predictor = Arc::clone(&remote.predictor);
                predictor
                    .given_labels()
                    .map_or_else(|| SavedLabels::from_predictions(move || predictor.labels()), SavedLabels::given)
            }
        }
    }

    /// The weights of a remote model are unknown, whatever its name.
    fn weights_sha256(&self) -> String {
        match self {
            Self::Local(predictor) => predictor.card().file.sha256.clone(),
            Self::Remote(_) => String::new(),
        }
    }

    fn made(&self) -> InferenceLocation {
        match self {
            Self::Local(_) => InferenceLocation::Here,
            Self::Remote(remote) => remote.made.clone(),
        }
    }

    fn predictor(&self) -> AnyPredictor {
        match self {
            Self::Local(predictor) => AnyPredictor::OfTensors(Arc::clone(predictor) as _),
            Self::Remote(remote) => AnyPredictor::OfFiles(Arc::clone(&remote.predictor) as _),
        }
    }

    /// How to find the model's preprocessing.
    fn advice_on_presets(&self, args: &PredictArgs) -> String {
        let bare_file = args.model.as_deref().filter(|model| Path::new(model).is_file());
        match (self, bare_file) {
            (Self::Remote(_), _) => "Check the model behind the endpoint".to_owned(),
            (Self::Local(_), Some(file)) => format!(
                "Compare preprocessing presets with: spotcheck models inspect {} --try-presets {}",
                quoted(file),
                quoted(&args.source.to_string_lossy())
            ),
            (Self::Local(_), None) => "Compare preprocessing presets in the window: “Edit…” next to the model, then \
                “Find preprocessing…”"
                .to_owned(),
        }
    }

    fn describe_latency(&self) -> Option<String> {
        match self {
            Self::Local(predictor) => describe_latency(&predictor.report()),
            Self::Remote(remote) => {
                let latency = remote.predictor.latency()?;
                Some(format!(
                    "response time: p50 {:.1} ms, p95 {:.1} ms, including the image upload; responses: {}",
                    latency.p50, latency.p95, latency.calls
                ))
            }
        }
    }
}

/// ONNX Runtime, and the model with this id or in this file, which is recognized if it has no card. Only then can a
/// preset and labels be given.
pub(crate) fn find_model(
    model: &str,
    (preset, labels): (Option<&str>, Option<&LabelSet>),
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<(runtime::Loaded, Model)> {
    let found = match Library::open(dirs).find(model) {
        Err(LibraryError::NoCard { path }) => Err(path),
        found => Ok(found?),
    };
    let runtime = with_progress("ONNX Runtime", control, || runtime::ensure_loaded(dirs, None, control))?;
    let model = match found {
        Ok(model) => {
            if preset.is_some() {
                bail!("--preset is for an ONNX file without a card; {} has one", model.card.id);
            }
            if labels.is_some() {
                bail!("--labels is for a remote model or an ONNX file without a card; {} has one", model.card.id);
            }
            model
        }
        Err(bare_file) => recognize_for_run(&runtime, &bare_file, (preset, labels), control)?,
    };
    Ok((runtime, model))
}

fn load_here(args: &PredictArgs, model: &str, dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<OnnxPredictor> {
    let labels = args.remote.labels()?;
    let (runtime, model) = find_model(model, (args.preset.as_deref(), labels.as_ref()), dirs, control)?;
    args.check_encoder(&model.card)?;
    let options = LoadOptions {
        device: args.device,
        batch: args.batch.map(|batch| batch as usize),
        threads: args.threads.map(|threads| threads as usize),
        keep: args.keep(),
        embeddings: args.saving.project().is_some() && !args.no_embeddings,
        proofs: Some(dirs.proofs()),
    };
    Ok(OnnxPredictor::load(&runtime, &model, &options, control)?)
}

/// Prints the model and its device, and why others are not used.
pub(crate) fn print_report(card: &ModelCard, report: &DeviceReport) {
    eprintln!("{} on {} because {}", card.id, report.device.name(), report.reason);
    for line in describe_refused(&report.refused) {
        eprintln!("{line}");
    }
    if !card.assumed.is_empty() {
        eprintln!("assumed: {}", card.assumed.join("; "));
    }
    if let Some(not_shown) = &card.not_shown {
        eprintln!("note: {not_shown}");
    }
}

/// Reports the result, and returns the outcome for the exit code.
fn conclude(
    outcome: &PredictOutcome,
    failures: &ImageFailures,
    skipped: usize,
    stored: usize,
    total: usize,
    saved: Option<&str>,
) -> anyhow::Result<Outcome> {
    for note in &outcome.notes {
        eprintln!("note: {note}");
    }
    if let Some(slowest) = outcome.stages.slowest() {
        eprintln!("slowest stage: {}", slowest.into_str());
    }
    if outcome.warned > 0 {
        eprintln!(
            "note: damaged or possibly damaged images: {}. They were predicted from the pixels that Pillow decodes. \
            Find them with “warnings” in the output or the search word “damaged”",
            outcome.warned
        );
    }
    for problem in failures.predicting.iter().chain(&failures.drawing) {
        eprintln!("failed {problem}");
    }
    let tried = stored + outcome.done + outcome.failed;
    let to_go_on = if saved.is_some() { "; rerun the command with --resume to complete the run" } else { "" };
    let written = format!("their {} are written{to_go_on}", saved.unwrap_or("predictions"));
    match &outcome.stopped {
        Some(Stopped::Cancelled) => {
            bail!("canceled after {tried} of {total} images; {written}")
        }
        Some(Stopped::DeviceLost(reason)) => {
            bail!("the device was lost after {tried} of {total} images: {reason}; {written}")
        }
        Some(Stopped::OutOfReach(reason)) => {
            bail!("the remote model became unavailable after {tried} of {total} images; {written}: {reason}")
        }
        Some(Stopped::SourceUnreachable(reason)) => {
            bail!("the images became unavailable after {tried} of {total}; {written}: {reason}")
        }
        None => Ok(report_failures(failures, skipped, total)),
    }
}

/// Reports how many images of a complete run failed.
fn report_failures(failures: &ImageFailures, skipped: usize, total: usize) -> Outcome {
    let mut went_wrong = Vec::new();
    if !failures.predicting.is_empty() {
        went_wrong.push(format!("{} of {total} images failed", failures.predicting.len()));
    }
    if !failures.drawing.is_empty() {
        let predicted = total - failures.predicting.len();
        went_wrong.push(format!("{} of {predicted} predicted images could not be drawn", failures.drawing.len()));
    }
    if skipped > 0 {
        went_wrong.push(format!("{skipped} could not be listed"));
    }
    if went_wrong.is_empty() {
        return Outcome::AllWell;
    }
    eprintln!("{}", went_wrong.join(", "));
    Outcome::SomeImagesFailed
}
