//! `spotcheck predict --project`: saves predictions as they arrive, and resumes an earlier run.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use parking_lot::Mutex;

use crate::cli::place::Opened;
use crate::domain::{
    Change, LabelSet, Location, ModelCard, Problem, RunId, RunInfo, RunKey, S3Place, Sample, SampleId,
    SamplePrediction, SampleSet, SampleUri, counted,
};
use crate::image::source::absolute;
use crate::predict::SampleResult;
use crate::project::{Access, EmbeddingStore, OpenMode, OpenRequest, Project, SaveEvent, StoreError};
use crate::tasks::{TaskControl, now_ms};

/// The number of stored predictions that are read together for the output.
const READ_AT_ONCE: usize = 256;
/// How often the number of saved predictions is printed, unless it has doubled earlier.
const TELL_EVERY: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// The interval of reminders about unsaved predictions.
const REMIND_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct SavingArgs {
    /// Project file for the predictions; created if it does not exist
    #[arg(long, value_name = "FILE.spotcheck")]
    project: Option<PathBuf>,
    /// Resume the run with this model and these settings: process only new and outdated images; the output contains all
    /// images
    #[arg(long, requires = "project")]
    resume: bool,
    /// With --resume, also retry failed images
    #[arg(long, requires = "resume")]
    retry_failed: bool,
    /// Start a new run even if the project has one with this model and these settings
    #[arg(long, requires = "project", conflicts_with = "resume")]
    new_run: bool,
}

/// A writable project, before its run is known.
pub(crate) struct OpenProject {
    project: Project,
    reporter: Arc<SaveReporter>,
}

impl SavingArgs {
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// The location as the project spells it, if it knows another name for it, such as a link.
    pub(crate) fn spelt_as_known(&self, location: Location) -> Location {
        let known = |path: &Path| {
            let project = self.project.as_deref().filter(|project| project.exists())?;
            let request = OpenRequest { path: project, root: None, mode: OpenMode::Read, program: "" };
            // The error is reported when the project is opened for writing.
            let root = Project::open(&request, |_| ()).ok()?.project.root()?;
            let root = Path::new(&*root);
            if absolute(path).ok()?.starts_with(root) {
                return None;
            }
            let below = path.canonicalize().ok()?;
            let below = below.strip_prefix(root.canonicalize().ok()?).ok()?;
            // Joined with an empty path, it would end in a separator.
            let is_root = below.as_os_str().is_empty();
            Some(if is_root { root.to_owned() } else { root.join(below) })
        };
        match location {
            Location::Path(path) => Location::Path(known(&path).unwrap_or(path)),
            location @ Location::S3(_) => location,
        }
    }

    /// `None` without --project.
    ///
    /// # Errors
    /// The project cannot be opened or written (naming the program that has it open), or belongs to another location.
    pub(crate) fn open_project(&self, opened: &Opened, program: &'static str) -> anyhow::Result<Option<OpenProject>> {
        let Some(path) = &self.project else {
            return Ok(None);
        };
        let reporter = Arc::new(SaveReporter::new(path));
        let request = OpenRequest { path, root: opened.root.as_deref(), mode: OpenMode::Write, program };
        let told = Arc::clone(&reporter);
        let place = opened;
        let opened = Project::open(&request, move |event| told.print_note(&event))?;
        if let Access::ReadOnly { reason } = opened.project.access() {
            bail!("the project is read-only: {reason}, or choose another project: {}", path.display());
        }
        for note in opened.notes {
            eprintln!("note: {note}");
        }
        let project = opened.project;
        check_is_about(&project, path, place)?;
        if let Some(place) = &place.place
            && project.root().as_deref() == request.root
        {
            project.set_place(place)?;
        }
        Ok(Some(OpenProject { project, reporter }))
    }
}

/// # Errors
/// The project is for other images than the opened ones. A list of paths can be for any.
fn check_is_about(project: &Project, path: &Path, opened: &Opened) -> anyhow::Result<()> {
    let (Some(about), Some(root)) = (project.root(), &opened.root) else {
        return Ok(());
    };
    let server = |place: &S3Place| {
        let endpoint = place.access.endpoint.as_deref();
        endpoint.map(|endpoint| endpoint.trim_end_matches('/').to_owned())
    };
    let (stored, here) = (project.place()?, &opened.place);
    let is_within = match (&stored, here) {
        // A bucket with the same name on another server is a different location.
        (Some(stored), Some(here)) => root.starts_with(&*about) && server(stored) == server(here),
        (None, Some(_)) => root.starts_with(&*about),
        (_, None) => Path::new(root).starts_with(&*about),
    };
    if is_within {
        return Ok(());
    }
    let at = |root: &str, place: &Option<S3Place>| match place.as_ref().and_then(server) {
        Some(server) => format!("{root} at {server}"),
        None => root.to_owned(),
    };
    bail!(
        "the project belongs to {}, not to {}; choose another project file or, if the images moved, run `spotcheck \
        project relocate`: {}",
        at(&about, &stored),
        at(root, here),
        path.display()
    )
}

/// The run that predictions are saved in.
pub(crate) struct Saving {
    project: Project,
    run: RunId,
    labels: SavedLabels,
    /// Indices in the listing without a valid prediction.
    missing: SampleSet,
    /// Indices in the listing that failed earlier and are not retried.
    failed: SampleSet,
    /// The index up to which stored predictions were written.
    written: usize,
    /// The number of queued predictions, which is also the ticket of the last one.
    queued: u64,
    reporter: Arc<SaveReporter>,
}

impl Saving {
    /// Finds the run to resume, or starts one, and reports it.
    pub(crate) fn begin(
        args: &SavingArgs,
        OpenProject { project, reporter }: OpenProject,
        key: RunKey,
        (card, labels): (&ModelCard, SavedLabels),
        samples: &[Sample],
        control: &TaskControl,
    ) -> anyhow::Result<Self> {
        let what = if card.is_encoder() { "embeddings" } else { "predictions" };
        let runs = project.runs()?;
        let of_settings = runs.iter().rev().filter(|run| is_same(run, &key, card));
        let (same, named_otherwise): (Vec<_>, Vec<_>) =
            of_settings.partition(|run| labels.difference(&run.labels).is_none());
        let last = same.first().copied();
        if let (None, Some(run)) = (last, named_otherwise.first())
            && let Some(difference) = labels.difference(&run.labels)
        {
            eprintln!("note: “{}” has different class names and is therefore a separate run: {difference}", run.name);
        }
        let (run, (missing, failed), labels) = match last {
            Some(run) if args.resume => {
                let left = resume(&project, run, samples, args.retry_failed)?;
                (run.id, left, labels.with(&run.labels))
            }
            Some(run) if !args.new_run => {
                let counts = project.prediction_counts(run.id)?;
                bail!(
                    "the project already has a run with this model and these settings, “{}”, with {} {what}; resume it \
                     with --resume, or start another with --new-run",
                    run.name,
                    counts.predicted + counts.failed
                );
            }
            _ => {
                let why_new = match (args.resume, runs.is_empty()) {
                    (true, false) => "the project has no run with this model and these settings; started a new run",
                    (true, true) => "the project has no runs; started a new one",
                    (false, _) => "saving in the project",
                };
                let name = key.run_name(&card.name, |name| runs.iter().any(|run| run.name == name));
                eprintln!("{why_new}: the run is named “{name}”");
                let id = project.new_run_id();
                let info =
                    RunInfo { id, name, key, card: card.clone(), labels: labels.known.clone(), created_ms: now_ms() };
                project.write(0, Change::AddRun(Box::new(info)))?;
                let all = (0..samples.len()).map(SampleId::from_index).collect();
                (id, (all, SampleSet::default()), labels)
            }
        };
        let stored = samples.len() - missing.len();
        reporter.begin(what, stored as u64, samples.len() as u64, control);
        Ok(Self { project, run, labels, missing, failed, written: 0, queued: 0, reporter })
    }

    /// Indices in the listing that had no valid prediction at the start.
    pub(crate) fn missing(&self) -> &SampleSet {
        &self.missing
    }

    /// Whether an image had a prediction at the start.
    pub(crate) fn is_predicted(&self, id: SampleId) -> bool {
        !self.missing.contains(id) && !self.failed.contains(id)
    }

    pub(crate) fn save(&mut self, sample: &Sample, result: SampleResult, control: &TaskControl) -> anyhow::Result<()> {
        let prediction = SamplePrediction {
            sample: sample.uri.clone(),
            stamp: sample.stamp(),
            result: result.map_err(|problem| problem.message),
        };
        if let Some(labels) = self.labels.added_labels() {
            self.queued += 1;
            let change = Change::SetRunLabels(self.run, labels);
            self.project.write(self.queued, change)?;
        }
        self.queued += 1;
        let change = Change::Predictions { run: self.run, predictions: vec![prediction] };
        match self.project.write_when_there_is_room(self.queued, change, control) {
            // The run ends in any case and reports what is not saved.
            Err(StoreError::Cancelled(_)) => Ok(()),
            Err(error @ StoreError::Stopped(_)) => Err(self.lost(&error)),
            queued => Ok(queued?),
        }
    }

    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// Requests these again, whatever the project has for them.
    pub(crate) fn request_again(&mut self, places: &SampleSet) {
        let missing = self.missing.len();
        for id in places.iter() {
            self.missing.insert(id);
        }
        let again = self.missing.len() - missing;
        if again > 0 {
            eprintln!("{again} of them are read again because their output files changed");
            self.reporter.forget(again as u64);
        }
    }

    /// Queues a change other than a prediction.
    pub(crate) fn note(&self, change: Change) -> anyhow::Result<()> {
        Ok(self.project.write(self.queued, change)?)
    }

    /// Passes on the stored predictions of all indices before `index` that were not passed on yet and are not predicted
    /// in this run.
    pub(crate) fn each_stored_before(
        &mut self,
        index: usize,
        samples: &[Sample],
        mut write: impl FnMut(&Sample, SampleResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let is_stored = |place: &usize| !self.missing.contains(SampleId::from_index(*place));
        let stored: Vec<usize> = (self.written..index).filter(is_stored).collect();
        self.written = self.written.max(index);
        for places in stored.chunks(READ_AT_ONCE) {
            let uris: Vec<SampleUri> = places.iter().map(|&place| samples[place].uri.clone()).collect();
            let predictions = self.project.predictions(self.run, &uris)?;
            for (&place, prediction) in places.iter().zip(predictions) {
                let sample = &samples[place];
                let prediction =
                    prediction.with_context(|| format!("the project has lost its prediction for {}", sample.uri))?;
                let result = prediction.result.map_err(|reason| Problem::new(sample.uri.clone(), reason));
                write(sample, result)?;
            }
        }
        Ok(())
    }

    /// The error about unsaved predictions.
    fn lost(&self, error: &StoreError) -> anyhow::Error {
        let path = self.project.path().unwrap_or_default();
        anyhow::anyhow!(
            "{} could not be saved: {error}. Rerun the command with --resume: it sets a damaged project aside, \
             recovers readable data and predicts the rest: {}",
            changes_are(self.project.unsaved()),
            path.display()
        )
    }

    /// Waits until everything is saved, until nothing can be saved any more, or until the user cancels; reports what is
    /// unsaved and why.
    pub(crate) fn finish(self, interrupt: &TaskControl) -> anyhow::Result<()> {
        let path = self.project.path().unwrap_or_default();
        let mut told = None;
        while let Err(error) = self.project.flush() {
            if matches!(error, StoreError::Stopped(_)) {
                return Err(self.lost(&error));
            }
            let unsaved = changes_are(self.project.unsaved());
            if interrupt.is_cancelled() {
                bail!(
                    "canceled with {unsaved} not saved in {}; rerun the command with --resume to predict the rest: \
                     {error}",
                    path.display()
                );
            }
            let is_due = told.is_none_or(|told: Instant| told.elapsed() >= REMIND_EVERY);
            if is_due {
                eprintln!(
                    "waiting: {unsaved} not saved yet in {}: {error}. Retrying; Ctrl+C discards them",
                    path.display()
                );
                told = Some(Instant::now());
            }
            // Woken by Ctrl+C, which the next iteration sees.
            let _ = interrupt.sleep(RETRY_EVERY);
        }
        self.reporter.conclude(&self.project)
    }
}

fn changes_are(count: usize) -> String {
    match count {
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    }
}

/// Remote outputs can be read in several ways, which the run's description distinguishes. The card of the user's own
/// model may have been edited since.
fn is_same(run: &RunInfo, key: &RunKey, card: &ModelCard) -> bool {
    run.key == *key && if key.made.is_here() { run.card.predicts_as(card) } else { run.card.origin == card.origin }
}

/// The class names of a run in the project.
pub(crate) struct SavedLabels {
    known: LabelSet,
    naming: Naming,
}

/// The source of class names.
enum Naming {
    /// The labels of the model, which its key identifies.
    OfModel,
    /// From the reader of the predictions: other names make another run.
    Given,
    /// From the predictions as they arrive; the reader records them.
    OfPredictions,
    KnownLabels(KnownLabels),
}

/// A callback for the class names known so far.
type KnownLabels = Box<dyn Fn() -> LabelSet>;

impl SavedLabels {
    pub(crate) fn from_model(known: LabelSet) -> Self {
        let naming = Naming::OfModel;
        Self { known, naming }
    }

    pub(crate) fn given(known: LabelSet) -> Self {
        let naming = Naming::Given;
        Self { known, naming }
    }

    pub(crate) fn recorded_by_reader() -> Self {
        Self { known: LabelSet::default(), naming: Naming::OfPredictions }
    }

    pub(crate) fn from_predictions(from_predictions: impl Fn() -> LabelSet + 'static) -> Self {
        Self { known: LabelSet::default(), naming: Naming::KnownLabels(Box::new(from_predictions)) }
    }

    /// How these labels differ from the stored ones, which requires another run.
    fn difference(&self, stored: &LabelSet) -> Option<String> {
        if !matches!(self.naming, Naming::Given) {
            return None;
        }
        let ids = stored.iter().chain(self.known.iter()).map(|(id, _)| id);
        let mut ids = ids.filter(|&id| stored.get(id) != self.known.get(id));
        let called = |name: Option<&str>| name.map_or_else(|| "without a name".to_owned(), |name| format!("“{name}”"));
        let id = ids.next()?;
        Some(format!("class {id} is {} in the project and {} now", called(stored.get(id)), called(self.known.get(id))))
    }

    /// Adds the labels that the run had when it stopped.
    fn with(mut self, stored: &LabelSet) -> Self {
        self.known = self.known.with_more(stored);
        self
    }

    /// All labels, if there are more than last time.
    fn added_labels(&mut self) -> Option<LabelSet> {
        let Naming::KnownLabels(from_predictions) = &self.naming else {
            return None;
        };
        let all = from_predictions().with_more(&self.known);
        (all != self.known).then(|| {
            self.known = all.clone();
            all
        })
    }
}

/// Reports what of a run is left; returns what is missing, and what failed and is not retried.
fn resume(
    project: &Project,
    run: &RunInfo,
    samples: &[Sample],
    retry_failed: bool,
) -> anyhow::Result<(SampleSet, SampleSet)> {
    let (missing, failed) = find_missing(project, run, samples, retry_failed)?;
    eprintln!(
        "resuming “{}”: {} of {} {}, {}",
        run.name,
        samples.len() - missing.len(),
        counted(samples.len(), "image", "images"),
        if run.card.is_encoder() { "embedded" } else { "predicted" },
        counted(missing.len(), "remains", "remain")
    );
    if !failed.is_empty() {
        let them = if failed.len() == 1 { "it" } else { "them" };
        eprintln!("{} of those failed; retry {them} with --retry-failed", failed.len());
    }
    Ok((missing, failed))
}

/// The indices of the images that must be predicted to complete a run, and which of the others failed. The run of an
/// encoder needs the embeddings themselves.
fn find_missing(
    project: &Project,
    run: &RunInfo,
    samples: &[Sample],
    retry_failed: bool,
) -> anyhow::Result<(SampleSet, SampleSet)> {
    let stamps = project.stamps(run.id)?;
    let is_encoder = run.card.is_encoder();
    let embedded = if is_encoder { EmbeddingStore::stamps_of(project, run)? } else { HashMap::default() };
    let (mut missing, mut failed) = (SampleSet::default(), SampleSet::default());
    let mut changed = Vec::new();
    for (place, sample) in samples.iter().enumerate() {
        let id = SampleId::from_index(place);
        match stamps.get(&sample.uri) {
            None => {
                missing.insert(id);
            }
            Some(stored) if stored.stamp.as_ref().is_some_and(|stamp| *stamp != sample.stamp()) => {
                changed.push(id);
            }
            Some(stored) if stored.is_failure => {
                if retry_failed { &mut missing } else { &mut failed }.insert(id);
            }
            Some(_) if is_encoder && embedded.get(&sample.uri) != Some(&sample.stamp()) => {
                missing.insert(id);
            }
            Some(_) => {}
        }
    }
    if changed.is_empty() {
        return Ok((missing, failed));
    }
    // A verdict on a prediction, or on its third box, means nothing for another prediction.
    let judged: HashSet<SampleUri> = project
        .judgments()?
        .into_iter()
        .filter(|judged| judged.verdicts.iter().any(|(target, _)| target.run == Some(run.id)))
        .map(|judged| judged.sample)
        .collect();
    let (kept, again): (Vec<SampleId>, Vec<SampleId>) =
        changed.into_iter().partition(|id| judged.contains(&samples[id.index()].uri));
    if !again.is_empty() {
        eprintln!("outdated images, predicted again: {}", again.len());
    }
    for id in kept {
        eprintln!(
            "note: this image is outdated but has a verdict, so its prediction is kept; predict it in another run \
             with --new-run: {}",
            samples[id.index()].uri
        );
    }
    for id in again {
        missing.insert(id);
    }
    Ok((missing, failed))
}

/// Reports on stderr how much is saved.
struct SaveReporter {
    /// The project file.
    path: PathBuf,
    counts: Mutex<SaveCounts>,
}

#[derive(Default)]
struct SaveCounts {
    /// The number of predictions that were saved before this run.
    before: u64,
    saved: u64,
    total: u64,
    /// “predictions”, or “embeddings” of an encoder.
    what: &'static str,
    /// The task with the progress bar, if there is one.
    control: Option<TaskControl>,
    told: u64,
    told_at: Option<Instant>,
    rejected: u64,
}

impl SaveReporter {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), counts: Mutex::default() }
    }

    fn begin(&self, what: &'static str, before: u64, total: u64, control: &TaskControl) {
        let mut counts = self.counts.lock();
        counts.what = what;
        counts.before = before;
        counts.saved = before;
        counts.told = before;
        counts.total = total;
        counts.told_at = Some(Instant::now());
        counts.control = std::io::stderr().is_terminal().then(|| control.clone());
    }

    /// Lowers the count of saved predictions by those that will be saved again. Called before the first of them.
    fn forget(&self, again: u64) {
        let mut counts = self.counts.lock();
        counts.before = counts.before.saturating_sub(again);
        counts.saved = counts.before;
        counts.told = counts.before;
    }

    /// Called on the thread that saves.
    fn print_note(&self, event: &SaveEvent) {
        let mut counts = self.counts.lock();
        match event {
            SaveEvent::Saved { up_to } => {
                counts.saved = counts.before + up_to;
                counts.print_saved();
            }
            SaveEvent::Failed { reason } => {
                eprintln!(
                    "could not save predictions in {}; keeping them in memory and retrying: {reason}",
                    self.path.display()
                );
                if let Some(control) = &counts.control {
                    control.set_step("waiting for the disk to save predictions");
                }
            }
            // Reported when the run ends because of it.
            SaveEvent::Stopped { .. } => {}
            SaveEvent::Rejected { reason, .. } => {
                counts.rejected += 1;
                eprintln!("could not save a prediction: {reason}");
            }
        }
    }

    fn conclude(&self, project: &Project) -> anyhow::Result<()> {
        let counts = self.counts.lock();
        if counts.rejected > 0 {
            bail!("could not save {} predictions in the project", counts.rejected);
        }
        let path = project.path().unwrap_or_default();
        eprintln!("saved {} of {} {} in {}", counts.saved, counts.total, counts.what, path.display());
        Ok(())
    }
}

impl SaveCounts {
    /// Updates the progress bar, or prints a line: often at first, then rarely.
    fn print_saved(&mut self) {
        if let Some(control) = &self.control {
            control.set_step(format!("{} saved", self.saved));
            return;
        }
        let new = self.saved - self.before;
        let has_doubled = new >= 2 * (self.told - self.before).max(1) || self.told == self.before && new > 0;
        let is_due = self.told_at.is_none_or(|told_at| told_at.elapsed() >= TELL_EVERY);
        if self.saved > self.told && (has_doubled || is_due) {
            eprintln!("saved {} of {} {}", self.saved, self.total, self.what);
            self.told = self.saved;
            self.told_at = Some(Instant::now());
        }
    }
}
