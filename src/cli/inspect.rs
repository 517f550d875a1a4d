//! `spotcheck models inspect` and `models add`: recognizes a model from its graph, and adds it to the library.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::out_file::{Replaceable, check_out};
use super::place::{self, S3Args, parse_location};
use super::terminal::with_progress;
use super::values::find_labels;
use crate::alike::METRIC;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::{LabelSet, ModelCard, Prediction, RgbImage, SampleUri, shortened};
use crate::image::decode::{DecodeLimits, decode};
use crate::local_file;
use crate::model::catalog::{Library, LibraryError, Model, write_card};
use crate::model::onnx::{EmbeddingLayer, Inspection, PresetTrial, TrialImage, labels_of, truth_of, undecided_resize};
use crate::model::recognize::{
    Basis, Finding, GraphSignature, Misfit, Overrules, Recognition, preset, presets, preview,
};
use crate::model::runtime::Loaded;
use crate::model::{preprocess, runtime};
use crate::project::export::write_image;
use crate::sagemaker::jobs::quoted;
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of images in a source from which some are selected.
const MAX_LISTED: usize = 10_000;
/// The number of images whose predictions are printed for each preset.
const FIRST_PREDICTIONS: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Model id (see `spotcheck models list`) or ONNX file
    #[arg(value_name = "ID|FILE.onnx")]
    model: String,
    #[command(flatten)]
    hints: Hints,
    /// Write the input tensor for --image to this PNG file, with normalization undone
    #[arg(long, value_name = "OUT.png", requires = "image")]
    preview: Option<PathBuf>,
    /// Image for --preview
    #[arg(long, value_name = "FILE", requires = "preview")]
    image: Option<PathBuf>,
    /// Try the preprocessing presets on these images; reports accuracy if folders are named after classes or ImageNet
    /// ids (n01440764)
    #[arg(long, value_name = "SOURCE")]
    try_presets: Option<PathBuf>,
    /// Number of images for --try-presets, spread over the source
    #[arg(long, value_name = "COUNT", default_value_t = 8, requires = "try_presets")]
    limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// ONNX file to copy into the library
    #[arg(value_name = "FILE.onnx")]
    file: PathBuf,
    #[command(flatten)]
    hints: Hints,
}

/// Corrections to the recognized card.
#[derive(Debug, Args)]
struct Hints {
    /// Class names: `imagenet`, `coco-80`, `coco-91`, `cifar-10`, or a file with one name per line (from 0),
    /// `id<TAB>name`, a label map (`.pbtxt`), `names` in a `.yaml`, or `id2label` in a `.json`
    #[arg(long, value_name = "NAME|FILE")]
    labels: Option<String>,
    /// Set a field of the model card, for example `input.channels=bgr` or `id=my-model`, or select a reading of the
    /// outputs that `models inspect` lists (`reading=NUMBER`); repeatable
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Preprocessing preset, applied before --set; `models inspect --try-presets` lists the names
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
}

impl Hints {
    fn labels(&self) -> anyhow::Result<Option<LabelSet>> {
        self.labels.as_deref().map(find_labels).transpose()
    }
}

pub(crate) fn inspect(args: &InspectArgs, dirs: &AppDirs) -> anyhow::Result<()> {
    let file = Path::new(&args.model);
    if let Some(preview) = &args.preview {
        let inputs = [
            ("the image itself", args.image.as_deref()),
            ("the model", Some(file).filter(|file| file.exists())),
            ("the class names", args.hints.labels.as_deref().map(Path::new)),
        ];
        check_out(preview, Replaceable::Empty, &inputs)?;
    }
    let unit = if args.try_presets.is_some() { ProgressUnit::Images } else { ProgressUnit::Bytes };
    let control = interruptible(unit)?;
    let Hints { labels, set, preset } = &args.hints;
    let has_hints = labels.is_some() || !set.is_empty() || preset.is_some() || args.try_presets.is_some();
    // A file with a card next to it, or with the content of a model in the library, uses that card.
    let known = if is_file(file) && !has_hints { Library::open(dirs).find(&args.model).ok() } else { None };
    if is_file(file) && known.is_none() {
        let labels = args.hints.labels()?;
        let runtime = load_runtime(dirs, &control)?;
        let mut inspection = Inspection::open(&runtime, file)?;
        print(&signature_text(&args.model, inspection.signature()))?;
        let recognition = recognize(&mut inspection, &args.hints, labels.as_ref(), &control)?;
        if let Some(source) = &args.try_presets {
            let trials = try_presets(&mut inspection, &recognition, source, args.limit, &control)?;
            return print(&trials_text(&trials, &args.model));
        }
        let card = write_card(&recognition.card)?;
        print(&findings_text(&recognition))?;
        print(&embedding_text(&inspection.embedding(&runtime, &recognition.card, &control)))?;
        print(&format!("\nmodel card that `spotcheck models add` would write\n\n{card}"))?;
        return preview_tensor(args, &recognition.card);
    }
    if has_hints {
        bail!("--labels, --set, --preset and --try-presets are for an ONNX file; {} already has a card", args.model);
    }
    let model = match known {
        Some(model) => model,
        None => Library::open(dirs).find(&args.model)?,
    };
    let runtime = load_runtime(dirs, &control)?;
    let mut inspection = Inspection::open(&runtime, &model.weights)?;
    print(&signature_text(&args.model, inspection.signature()))?;
    print(&embedding_text(&inspection.embedding(&runtime, &model.card, &control)))?;
    print(&format!("\nmodel card of {}\n\n{}", model.card.id, write_card(&model.card)?))?;
    preview_tensor(args, &model.card)
}

/// Adds the user's own model to the library.
pub(crate) fn add(args: &AddArgs, dirs: &AppDirs) -> anyhow::Result<()> {
    let control = interruptible(ProgressUnit::Bytes)?;
    let overrules = Overrules::parse(&args.hints.set)?;
    let library = Library::open(dirs);
    let given_labels = args.hints.labels()?;
    let (card, labels) = match library.find(&args.file.to_string_lossy()) {
        Err(LibraryError::NoCard { .. }) => {
            let mut inspection = Inspection::open(&load_runtime(dirs, &control)?, &args.file)?;
            let recognition = recognize(&mut inspection, &args.hints, given_labels.as_ref(), &control)?;
            eprint!("{}", findings_text(&recognition));
            (recognition.card, recognition.labels)
        }
        found => {
            let model = found?;
            if args.hints.preset.is_some() {
                bail!("--preset is for an ONNX file without a card; there is a card next to {}", args.file.display());
            }
            if let Some(known) = library.entries().iter().find(|entry| entry.card.id == model.card.id) {
                bail!("this model is already in the library as {}", known.card.id);
            }
            eprintln!("using the model card next to the file");
            let own_labels = model.card.labels.is_some().then_some(model.labels);
            (overrules.apply("", &model.card)?, given_labels.or(own_labels))
        }
    };
    let model = library.add(&args.file, card, labels.as_ref())?;
    print(&format!("added {id}: {}\nuse it with --model {id}\n", model.weights.display(), id = model.card.id))
}

/// The draft card with the hints applied.
fn recognize(
    inspection: &mut Inspection,
    hints: &Hints,
    labels: Option<&LabelSet>,
    control: &TaskControl,
) -> anyhow::Result<Recognition> {
    let overrules = Overrules::parse(&hints.set)?;
    let recognition = inspection.recognize(labels, &overrules, control)?;
    let Some(name) = &hints.preset else {
        check_settings(inspection, &recognition, &overrules, control)?;
        return Ok(recognition);
    };
    let card = &recognition.card;
    let Some(preset) = preset(card.task, &card.input, name) else {
        let names: Vec<&str> = presets(card.task, &card.input).iter().map(|preset| preset.name).collect();
        bail!("no preset {name} for {}; available presets: {}", card.task.into_str(), names.join(", "));
    };
    let fields = preset.fields().into_iter().map(|(field, value)| format!("{field}={value}"));
    let overrules: Vec<String> = fields.chain(hints.set.iter().cloned()).collect();
    Ok(inspection.recognize(labels, &Overrules::parse(&overrules)?, control)?)
}

/// Runs the model with the user's settings on a synthetic image.
///
/// # Errors
/// A setting contradicts the model's outputs.
fn check_settings(
    inspection: &mut Inspection,
    recognition: &Recognition,
    settings: &Overrules,
    control: &TaskControl,
) -> anyhow::Result<()> {
    const LABELS: [&str; 2] = ["labels", "output.classification.background"];
    if settings.is_empty() {
        return Ok(());
    }
    let (width, height) = (256, 192);
    let pixels = (0..width * height * 3).map(|at| (at % 251) as u8).collect();
    let image = RgbImage::new(width, height, pixels).context("no image to try the settings on")?;
    let card = &recognition.card;
    let tried = inspection.try_card(card, &labels_of(recognition), &preprocess(&card.input, &image)?, control);
    let misfits = tried.map_or_else(|misfit| vec![misfit], |(_, misfits)| misfits);
    let is_set = |field: &str| settings.text(field).is_some();
    let of_setting =
        |misfit: &&Misfit| is_set(misfit.field) || (misfit.field == "labels" && LABELS.into_iter().any(is_set));
    match misfits.iter().find(of_setting) {
        Some(misfit) => bail!("--set {}: {}", misfit.field, misfit.text),
        None => Ok(()),
    }
}

/// Predicts images of a source, spread over its listing, with each preset.
fn try_presets(
    inspection: &mut Inspection,
    recognition: &Recognition,
    source: &Path,
    limit: usize,
    control: &TaskControl,
) -> anyhow::Result<Vec<PresetTrial>> {
    let labels = labels_of(recognition);
    let opened = place::open(&parse_location(source, &S3Args::default())?, control)?;
    let listed: Vec<SampleUri> =
        opened.source.pages().flat_map(|page| page.samples).map(|sample| sample.uri).take(MAX_LISTED).collect();
    let step = (listed.len() / limit.max(1)).max(1);
    let mut images = Vec::new();
    for uri in listed.iter().step_by(step).take(limit) {
        let decoded = opened.source.read(uri).map_err(anyhow::Error::from);
        match decoded.and_then(|bytes| Ok(decode(&bytes, &DecodeLimits::default())?)) {
            Ok(decoded) => images.push(TrialImage {
                name: uri.file_name().to_owned(),
                image: decoded.image,
                truth: folder_name(uri).and_then(|folder| truth_of(&folder, &labels)),
            }),
            Err(error) => eprintln!("note: {} was skipped: {error:#}", uri.as_str()),
        }
    }
    if images.is_empty() {
        bail!("{} has no readable image", source.display());
    }
    let card = &recognition.card;
    Ok(with_progress("presets", control, || inspection.try_presets(card, &labels, &images, control))?)
}

/// The name of an image's folder.
fn folder_name(uri: &SampleUri) -> Option<String> {
    let folders = uri.file().rsplit(['/', '\\']).nth(1)?;
    Some(folders.to_owned())
}

/// One row per preset: its name, how certain and accurate the model is with it, and its first predictions.
fn trials_text(trials: &[PresetTrial], model: &str) -> String {
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}%", share * 100.0));
    let mut text = String::new();
    let _ =
        writeln!(text, "\n  {:22} {:>9} {:>8} {:>8}  first predictions", "preset", "top score", "entropy", "accuracy");
    for trial in trials {
        let marker = if trial.is_present { '*' } else { ' ' };
        let entropy = trial.mean_entropy.map_or("-".to_owned(), |entropy| format!("{entropy:.3}"));
        let first: Vec<String> = trial.predictions.iter().take(FIRST_PREDICTIONS).map(best_text).collect();
        let _ = writeln!(
            text,
            "{marker} {:22} {:>9} {entropy:>8} {:>8}  {}",
            trial.preset.name,
            percent(Some(trial.mean_top_score)),
            percent(trial.accuracy),
            first.join(", ")
        );
    }
    let _ =
        writeln!(text, "\n* current card. The correct preset usually has the highest score and the lowest entropy.");
    if let Some(undecided) = undecided_resize(trials) {
        let _ = writeln!(text, "{undecided}.");
    }
    let _ = writeln!(text, "Choose one with: spotcheck models add {} --preset NAME", quoted(model));
    text
}

/// The best class or box of an image, in short.
fn best_text(prediction: &Result<Prediction, String>) -> String {
    let (label, score) = match prediction {
        Err(reason) => return format!("failed: {}", reason.lines().next().unwrap_or_default()),
        Ok(prediction) => match (prediction.classes().first(), prediction.detections().first()) {
            (Some(class), _) => (&class.label, class.score),
            (_, Some(detection)) => (&detection.label, detection.score),
            (None, None) => return "nothing".to_owned(),
        },
    };
    format!("{label} {score:.2}")
}

/// The recognized model of an ONNX file, for one run; prints what was recognized to stderr.
pub(crate) fn recognize_for_run(
    runtime: &Loaded,
    path: &Path,
    (preset, labels): (Option<&str>, Option<&LabelSet>),
    control: &TaskControl,
) -> anyhow::Result<Model> {
    let mut inspection = Inspection::open(runtime, path)?;
    let hints = Hints { labels: None, set: Vec::new(), preset: preset.map(str::to_owned) };
    let recognition = recognize(&mut inspection, &hints, labels, control)?;
    for basis in [Basis::Given, Basis::Recognized] {
        let findings: Vec<String> =
            recognition.with_basis(basis).map(|finding| format!("{} = {}", finding.field, finding.value)).collect();
        if !findings.is_empty() {
            eprintln!("{basis}: {}", findings.join("; "));
        }
    }
    for remark in &recognition.remarks {
        eprintln!("note: {remark}");
    }
    eprintln!(
        "see why with `spotcheck models inspect {0}`; correct it with `spotcheck models add {0} --set FIELD=VALUE`",
        quoted(&path.to_string_lossy())
    );
    Ok(inspection.model(&recognition))
}

fn load_runtime(dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<Loaded> {
    Ok(with_progress("ONNX Runtime", control, || runtime::ensure_loaded(dirs, None, control))?)
}

fn is_file(path: &Path) -> bool {
    let is_onnx = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"));
    is_onnx || path.components().count() > 1 || path.is_file()
}

fn signature_text(name: &str, signature: &GraphSignature) -> String {
    let mut text = format!("{name}\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "  {key:9} {value}");
    };
    for port in &signature.inputs {
        line("input", port.to_string());
    }
    for port in &signature.outputs {
        line("output", port.to_string());
    }
    line("opset", signature.opset.map_or_else(|| "unknown".to_owned(), |opset| opset.to_string()));
    if !signature.producer.is_empty() {
        line("producer", signature.producer.clone());
    }
    // Class names would fill pages.
    for (key, value) in &signature.metadata {
        line("metadata", format!("{key} = {}", shortened(value, 120)));
    }
    text
}

/// `embedding: …`, the tensor that describes an image.
fn embedding_text(embedding: &Result<EmbeddingLayer, String>) -> String {
    match embedding {
        Ok(layer) => {
            let notes: Vec<String> = layer.notes().iter().map(|note| format!("{note}\n")).collect();
            format!("\nembedding: {layer}\nmetric: {METRIC}\n{}", notes.concat())
        }
        Err(reason) => format!("\nembedding: none, because {reason}\n"),
    }
}

fn findings_text(recognition: &Recognition) -> String {
    let mut text = String::new();
    for (basis, heading) in [
        (Basis::Given, "set by you"),
        (Basis::Recognized, "recognized"),
        (Basis::Assumed, "assumed: ONNX does not record this; correct it with --set FIELD=VALUE"),
    ] {
        let findings: Vec<&Finding> = recognition.with_basis(basis).collect();
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{heading}");
        // A reason for several fields is printed once, below them.
        for group in findings.chunk_by(|left, right| left.because == right.because) {
            for Finding { field, value, .. } in group {
                let _ = writeln!(text, "  {field} = {value}");
            }
            if let (false, [first, ..]) = (basis == Basis::Given, group) {
                let _ = writeln!(text, "      because {}", first.because);
            }
        }
    }
    if recognition.readings.len() > 1 {
        let _ = writeln!(
            text,
            "\nthe outputs can be interpreted in several ways; choose one with --set \
            reading=NUMBER"
        );
        for (index, reading) in recognition.readings.iter().enumerate() {
            let marker = if index == recognition.reading { '*' } else { ' ' };
            let _ = writeln!(text, "{marker} {} {reading}", index + 1);
        }
    }
    if !recognition.ignored_outputs.is_empty() {
        let _ = writeln!(text, "\nunused outputs: {}", recognition.ignored_outputs.join(", "));
    }
    for remark in recognition.remarks.iter().chain(&recognition.card.not_shown) {
        let _ = writeln!(text, "\nnote: {remark}");
    }
    text
}

fn preview_tensor(args: &InspectArgs, card: &ModelCard) -> anyhow::Result<()> {
    let (Some(target), Some(image)) = (&args.preview, &args.image) else {
        return Ok(());
    };
    let bytes = local_file::read(image).with_context(|| format!("Could not read {}", image.display()))?;
    let decoded =
        decode(&bytes, &DecodeLimits::default()).with_context(|| format!("Could not decode {}", image.display()))?;
    if let Some(warning) = &decoded.warning {
        eprintln!("note: {} {warning}", image.display());
    }
    let prepared = preprocess(&card.input, &decoded.image)?;
    let preview = preview(&card.input, &prepared.tensor)?;
    write_image(&preview.image, target).with_context(|| format!("Could not write {}", target.display()))?;
    let mut text = format!(
        "\ninput tensor for {}: {:?}; written to {} with normalization undone\n",
        image.display(),
        prepared.tensor.shape,
        target.display()
    );
    for (channel, range) in preview.channels.iter().enumerate() {
        let _ = writeln!(text, "  channel {channel}: {:.4} to {:.4}, mean {:.4}", range.min, range.max, range.mean);
    }
    print(&text)
}

fn print(text: &str) -> anyhow::Result<()> {
    let written = stdout().write_all(text.as_bytes());
    written.context("Could not write to stdout")
}
