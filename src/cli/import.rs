//! `spotcheck import`: predictions of other programs become a run of a project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use super::place::{Place, S3Args};
use super::predict::list;
use super::predict::saving::{SavedLabels, Saving, SavingArgs};
use super::progress::{summary, with_progress};
use super::terminal::interruptible;
use super::values::find_labels;
use crate::annotations::{Found, RunClasses, name_by, task_of};
use crate::aws::Aws;
use crate::domain::{
    AnnotatedImage, InferenceLocation, KeepRule, ModelTask, Problem, RunKey, Sample, SampleId, counted,
};
use crate::matching::{ClassCorrections, ImageKey, ImageMatches, Unmatched};
use crate::predict::SampleResult;
use crate::remote::outputs::image_size;
use crate::remote::predictor::card_of_remote;
use crate::source::{Files, Source, absolute, for_task};
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of examples in a message.
const EXAMPLES: usize = 5;

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Images of the predictions: a folder, an image or a TFRecord file, local or in S3
    source: PathBuf,
    /// Predictions: a file or folder of a format in docs/ground-truth.md, local or in S3
    #[arg(long, value_name = "FILE|DIR|s3://…")]
    predictions: PathBuf,
    /// Ground truth that names what the predictions only number: the data set of COCO results
    #[arg(long, value_name = "FILE|DIR|s3://…")]
    truth: Option<PathBuf>,
    /// Class names: imagenet, coco-80, coco-91, cifar-10, a label file, or a label map (`.pbtxt`); default: those of
    /// the predictions
    #[arg(long, value_name = "NAME|FILE")]
    labels: Option<String>,
    /// Corrections of classes: a CSV file with `from,to` in each line, names or numbers; an empty `to` leaves a class
    /// out
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
    /// Name of the model; default: the name of the file or folder
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    saving: SavingArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    if args.saving.project().is_none() {
        bail!("add --project FILE.spotcheck: predictions are imported into a project");
    }
    let interrupt = interruptible(ProgressUnit::Bytes)?;
    let corrections = match &args.class_map {
        Some(path) => read_corrections(path)?,
        None => ClassCorrections::default(),
    };
    let labels = args.labels.as_deref().map(find_labels).transpose()?;
    let (found, name) = read(&args.predictions, args, "Reading predictions", &interrupt)?;
    let mut annotations = found.annotations;
    let problems = annotations.problems.total();
    if !annotations.has_scores() {
        bail!("these predictions have no scores, so they look like ground truth: {}", args.predictions.display());
    }
    if let Some(truth) = &args.truth {
        let truth = read(truth, args, "Reading ground truth", &interrupt)?.0;
        name_by(&mut annotations, &truth.annotations)?;
    }
    let Some(task) = task_of(&annotations) else {
        bail!("these are boxes and classes of whole images in one; import them from two files: {name}");
    };
    let classes = RunClasses::of(&annotations, labels, &corrections);
    let classes = classes.with_context(|| match &args.class_map {
        Some(path) => format!("Could not use {}", path.display()),
        None => "Could not match the classes".to_owned(),
    })?;
    let unmatched = classes.of_annotations.iter().zip(&annotations.classes).filter(|(matched, _)| matched.is_none());
    let unmatched: Vec<String> = unmatched.map(|(_, class)| class.to_string()).collect();
    if !unmatched.is_empty() {
        eprintln!("left out, because --labels does not name their classes: {}", unmatched.join(", "));
    }

    let place = Place::parse(&args.source, args.s3_of(&args.source))?;
    let opened = args.saving.spelt_as_known(place).open(&interrupt)?;
    let source = Arc::clone(&opened.source);
    let page = list(&source, None, &interrupt)?;
    for problem in &page.problems {
        eprintln!("skipped {problem}");
    }
    if page.samples.is_empty() {
        bail!("{} contains no images", source.name());
    }
    let samples = page.samples;
    let matches = match_images(&annotations.images, &samples)?;

    let origin = format!("predictions in {name}, read as {}", found.format);
    let card = card_of_remote(args.name.as_deref().unwrap_or_else(|| last_part(&name)), task, &[], &origin);
    let keep = KeepRule { min_score: 0.0, ..KeepRule::default() };
    let key = RunKey::of_predictions(card.id.clone(), keep, InferenceLocation::Outputs { folder: name });
    let control = TaskControl::new(ProgressUnit::Images);
    let of_import = control.clone();
    let _cancel = interrupt.on_cancel(move || of_import.cancel());
    let Some(project) = args.saving.open_project(&opened, "spotcheck import")? else {
        bail!("add --project FILE.spotcheck");
    };
    let with_prediction: Vec<Sample> =
        matches.of_samples.iter().zip(&samples).filter_map(|(image, sample)| image.map(|_| sample.clone())).collect();
    let images: Vec<&AnnotatedImage> =
        matches.of_samples.iter().flatten().map(|index| &annotations.images[*index as usize]).collect();
    let saved = SavedLabels::given(classes.labels.clone());
    let mut saving = Saving::begin(&args.saving, project, key, (&card, saved), &with_prediction, &control)?;
    let import = Import { source: &source, samples: &with_prediction, images: &images, classes: &classes, task };
    let failures = with_progress("Importing", &control, || import.run(&mut saving, &control));
    saving.finish(&interrupt)?;
    let failures = failures?;
    eprintln!("{}", summary(&control.progress()));
    for problem in &failures {
        eprintln!("failed {problem}");
    }
    matches.print(&annotations.images, samples.len());
    let is_well = failures.is_empty() && problems == 0 && unmatched.is_empty() && matches.unmatched.is_empty();
    Ok(if is_well { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn read_corrections(path: &Path) -> anyhow::Result<ClassCorrections> {
    let text = std::fs::read_to_string(path).with_context(|| format!("Could not read {}", path.display()))?;
    ClassCorrections::parse(&text).with_context(|| format!("Could not use {}", path.display()))
}

/// What is at a place, with the name of the place; says what was recognised and what cannot be used.
fn read(path: &Path, args: &ImportArgs, label: &str, interrupt: &TaskControl) -> anyhow::Result<(Found, String)> {
    let files = match Place::parse(path, args.s3_of(path))? {
        Place::Stdin => bail!("predictions are read from a file or folder, not from stdin"),
        Place::Path(path) => Files::local(&absolute(&path)?),
        Place::S3(place) => Files::in_s3(&Aws::new(), &place),
    };
    let control = TaskControl::new(ProgressUnit::Bytes);
    let of_reading = control.clone();
    let _cancel = interrupt.on_cancel(move || of_reading.cancel());
    let found = with_progress(label, &control, || crate::annotations::open(&files, &control))?;
    print_found(&found, &files.name());
    Ok((found, files.name()))
}

fn print_found(found: &Found, place: &str) {
    let annotations = &found.annotations;
    eprintln!(
        "{place}: {}, {} about {} in {}",
        found.format,
        counted(found.entries as usize, "entry", "entries"),
        counted(annotations.images.len(), "image", "images"),
        counted(annotations.classes.len(), "class", "classes")
    );
    for note in &found.notes {
        eprintln!("note: {note}");
    }
    for (kind, count) in annotations.problems.counts() {
        eprintln!("{}: {}", if kind.is_used() { "note" } else { "not used" }, kind.text(count));
        let examples = annotations.problems.iter().filter(|problem| problem.kind == kind);
        for problem in examples.take(EXAMPLES) {
            eprintln!("  {problem}");
        }
    }
}

/// Which predictions are those of which images.
struct MatchedImages {
    /// The place among the images of the predictions, by sample.
    of_samples: Vec<Option<u32>>,
    /// Images of the predictions that are not in the source.
    unmatched: Vec<(usize, Unmatched)>,
}

fn match_images(images: &[AnnotatedImage], samples: &[Sample]) -> anyhow::Result<MatchedImages> {
    let keys: Vec<ImageKey> = images.iter().map(ImageKey::of).collect();
    let named: Vec<ImageKey> = samples.iter().map(|sample| ImageKey::named(&sample.name)).collect();
    let matches = ImageMatches::between(&keys, &named);
    let mut of_samples = vec![None; samples.len()];
    let mut unmatched = Vec::new();
    for (index, matched) in matches.left.iter().enumerate() {
        match matched {
            Ok((sample, _)) => of_samples[*sample as usize] = u32::try_from(index).ok(),
            Err(why) => unmatched.push((index, *why)),
        }
    }
    let is_filled = |image: &AnnotatedImage| !image.boxes.is_empty() || !image.labels.is_empty();
    let are_lost =
        images.iter().any(is_filled) && !of_samples.iter().flatten().any(|at| is_filled(&images[*at as usize]));
    if (are_lost || of_samples.iter().all(Option::is_none))
        && let (Some(image), Some(sample)) = (images.first(), samples.first())
    {
        bail!(
            "none of the {} of the predictions is one of the {} here: for example {} and {}. If the \
             predictions only number their images, add the data set with --truth",
            counted(images.len(), "image", "images"),
            counted(samples.len(), "image", "images"),
            name_of(image),
            sample.name
        );
    }
    Ok(MatchedImages { of_samples, unmatched })
}

/// The name of an image of the predictions, for people.
fn name_of(image: &AnnotatedImage) -> String {
    match &image.id {
        Some(id) if image.name.is_empty() => format!("image {id}"),
        _ => image.name.clone(),
    }
}

impl MatchedImages {
    fn print(&self, images: &[AnnotatedImage], samples: usize) {
        let without = self.of_samples.iter().filter(|image| image.is_none()).count();
        eprintln!("{} of {} in the predictions", samples - without, counted(samples, "image is", "images are"));
        for (why, [one, several]) in [
            (Unmatched::Missing, ["is not here", "are not here"]),
            (
                Unmatched::Ambiguous,
                [
                    "has the name of several images here, or shares its own, and was skipped",
                    "have the name of several images here, or share theirs, and were skipped",
                ],
            ),
        ] {
            let those: Vec<usize> =
                self.unmatched.iter().filter(|(_, reason)| *reason == why).map(|(index, _)| *index).collect();
            if !those.is_empty() {
                let examples: Vec<String> = those.iter().take(EXAMPLES).map(|at| name_of(&images[*at])).collect();
                let text = if those.len() == 1 { one } else { several };
                let images = counted(those.len(), "image", "images");
                eprintln!("UNMATCHED: {images} of the predictions {text}: {}", examples.join(", "));
            }
        }
    }
}

/// What is imported: an image of the predictions for each sample.
struct Import<'i> {
    source: &'i Arc<dyn Source>,
    samples: &'i [Sample],
    images: &'i [&'i AnnotatedImage],
    classes: &'i RunClasses,
    task: ModelTask,
}

impl Import<'_> {
    /// Saves predictions in the order of the listing; gives the problems of single images.
    fn run(&self, saving: &mut Saving, control: &TaskControl) -> anyhow::Result<Vec<Problem>> {
        let source = for_task(self.source, control);
        let wanted: Vec<usize> =
            (0..self.samples.len()).filter(|at| saving.missing().contains(SampleId::from_index(*at))).collect();
        control.set_total(Some(wanted.len() as u64));
        let mut failures = Vec::new();
        let readers = source.useful_reads().max(1);
        for chunk in wanted.chunks(readers * 8) {
            control.checkpoint()?;
            let results: Vec<Vec<SampleResult>> = std::thread::scope(|scope| {
                let one = |at: &usize| self.result(&*source, *at);
                let read = move |from: usize| chunk.iter().skip(from).step_by(readers).map(one).collect::<Vec<_>>();
                let threads: Vec<_> = (0..readers).map(|from| scope.spawn(move || read(from))).collect();
                let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined.map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
            });
            // A read that was cancelled says nothing about its image.
            control.checkpoint()?;
            let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
            for (index, at) in chunk.iter().enumerate() {
                let Some(result) = results[index % readers].next() else {
                    continue;
                };
                saving.save(&self.samples[*at], &result, control)?;
                control.add_done(1);
                failures.extend(result.err());
            }
        }
        Ok(failures)
    }

    fn result(&self, source: &dyn Source, at: usize) -> SampleResult {
        let uri = &self.samples[at].uri;
        let size = image_size(source, uri).map_err(|error| error.to_string());
        let prediction = size.and_then(|size| self.classes.prediction(self.images[at], self.task, size));
        prediction.map_err(|reason| Problem::of_sample(uri.clone(), reason))
    }
}

/// The name of a file without its extension, or of a folder.
fn last_part(place: &str) -> &str {
    let place = place.trim_end_matches(['/', '\\']);
    let name = place.rsplit(['/', '\\']).next().unwrap_or(place);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

impl ImportArgs {
    /// Flags for S3 have no effect on local places, if another place is in S3.
    fn s3_of(&self, place: &Path) -> &S3Args {
        static NONE: std::sync::LazyLock<S3Args> = std::sync::LazyLock::new(S3Args::default);
        let is_remote = |path: &Path| path.to_str().is_some_and(crate::domain::S3Link::is_address);
        let places = [Some(&self.source), Some(&self.predictions), self.truth.as_ref()];
        let any_is_remote = places.into_iter().flatten().any(|path| is_remote(path));
        if !is_remote(place) && any_is_remote { &NONE } else { &self.s3 }
    }
}
