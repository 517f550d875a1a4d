//! Ground truth on the command line, for `evaluate`, `compare`, `review report` and `export`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;

use super::out_file::Input;
use super::place::{S3Args, is_stdin, parse_location};
use super::stored::{find_run, open_project, stored_view};
use super::values::{find_labels, read_class_map};
use crate::annotations::AnnotationsError;
use crate::annotations::matching::{ClassCorrections, Doubt, Folders, MatchRules, MatchSummary, OtherFolders};
use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::domain::{
    AnnotationProblems, LabelSet, Location, NamePattern, RunId, RunInfo, Sample, SampleId, ViewSettings,
};
use crate::evaluation::pipeline::{
    EvaluateError, Extras, RunSide, TruthFrom, TruthScores, measure_boxes, open_truth, run_sides,
};
use crate::evaluation::{Evaluated, GroundTruth, NoTruth};
use crate::image::source::Files;
use crate::project::Project;
use crate::project::export::{EvaluatedBoxes, known_predictions};
use crate::tasks::TaskControl;

/// The number of unusable entries per kind that are named.
const MAX_NAMED: usize = 5;

/// Ground truth, and how its classes and images match the predictions.
#[derive(Debug, Args)]
pub(crate) struct TruthArgs {
    /// Ground truth: a file or folder, local or in S3, in any format of docs/ground-truth.md; or a project file
    /// (`*.spotcheck`) with verdicts
    #[arg(long, value_name = "TRUTH")]
    truth: Option<PathBuf>,
    /// Run whose verdicts are the ground truth, by name or number [default: the newest with verdicts]
    #[arg(long, value_name = "NAME", requires = "truth")]
    truth_run: Option<String>,
    /// Split of a `data.yaml` to read as ground truth: train, val or test [default: val]
    #[arg(long, value_name = "NAME", requires = "truth")]
    split: Option<String>,
    /// Treat --truth as ground truth even if it has scores
    #[arg(long, requires = "truth")]
    ignore_truth_scores: bool,
    /// Class names for ground truth with class numbers only: imagenet, coco-80, coco-91, cifar-10, a label file, or
    /// `model` for the predictions' classes in order, from 0
    #[arg(long, value_name = "NAME|FILE|model", requires = "truth")]
    truth_labels: Option<String>,
    /// Read ground-truth classes from image file names, for example `*_{class}.png` or `{class}-*`; `*` matches any
    /// text, `?` one character, and `{class}` as much as possible
    #[arg(long, value_name = "PATTERN", conflicts_with = "truth", value_parser = NamePattern::parse)]
    truth_names: Option<NamePattern>,
    /// Match images by file name even if their folders differ
    #[arg(long)]
    ignore_folders: bool,
    /// CSV file that maps predicted classes to ground-truth classes by name or number: one `from,to` per line; an empty
    /// `to` skips the class
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
}

/// The word in `--truth-labels` for the classes of the predictions.
const OF_MODEL: &str = "model";

impl TruthArgs {
    /// Whether there is any ground truth.
    pub(crate) fn is_given(&self) -> bool {
        self.truth.is_some() || self.truth_names.is_some()
    }

    /// The files, with their names for messages.
    pub(crate) fn inputs(&self) -> [Input<'_>; 2] {
        [("the ground truth", self.truth.as_deref()), ("the class corrections", self.class_map.as_deref())]
    }

    /// The class corrections.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn corrections(&self) -> anyhow::Result<ClassCorrections> {
        Ok(self.class_map.as_deref().map(read_class_map).transpose()?.unwrap_or_default())
    }

    pub(crate) fn folders(&self) -> Folders {
        if self.ignore_folders { Folders::MayDiffer } else { Folders::Agree }
    }

    /// `names`: the image names, if they contain the classes. `of_model`: the classes of the predictions.
    pub(crate) fn read(
        &self,
        s3: &S3Args,
        dirs: &AppDirs,
        control: &TaskControl,
        names: impl FnOnce() -> anyhow::Result<Vec<String>>,
        of_model: impl FnOnce() -> LabelSet,
    ) -> anyhow::Result<GroundTruth> {
        let from = match (&self.truth, &self.truth_names) {
            (_, Some(pattern)) => TruthFrom::Names { names: names()?, pattern: pattern.clone() },
            (Some(path), None) if is_project(path) => judged(path, self.truth_run.as_deref(), dirs)?,
            (Some(path), None) if self.truth_run.is_none() => {
                let scores = if self.ignore_truth_scores { TruthScores::Ignored } else { TruthScores::default() };
                TruthFrom::Files { files: files(path, s3)?, split: self.split.clone(), scores }
            }
            (Some(_), None) => bail!("--truth-run is for a project (*.spotcheck) as --truth"),
            (None, None) => bail!("Specify the ground truth with --truth or --truth-names"),
        };
        let labels = match self.truth_labels.as_deref() {
            Some(OF_MODEL) => {
                let labels = of_model();
                if labels.is_empty() {
                    bail!("The predictions have no class names; set --truth-labels to a label file or coco-80");
                }
                Some(labels.counted_from_0())
            }
            labels => labels.map(find_labels).transpose()?,
        };
        open_truth(&from, labels.as_ref(), control).map_err(|error| match error {
            EvaluateError::NoTruth { reason: NoTruth::Scores, .. } => anyhow::Error::from(error).context(
                "If these are ground truth, add --ignore-truth-scores; `spotcheck evaluate` reads predictions with \
                 --predictions",
            ),
            EvaluateError::Annotations(AnnotationsError::NoSplit { place, wanted, splits }) if !splits.is_empty() => {
                let choices: Vec<String> = splits.iter().map(|split| format!("--split {split}")).collect();
                anyhow!("{place} has no split “{wanted}”; choose {}", choices.join(" or "))
            }
            error => anyhow::Error::from(error).context("Could not read the ground truth"),
        })
    }

    /// The metrics of a run over `samples`, with intervals unless `draws` is 0, and the outcomes of its boxes.
    /// Predictions of other versions of a file are ignored. Prints skipped entries and doubtful matches to stderr.
    pub(crate) fn evaluate(
        &self,
        s3: &S3Args,
        (project, run, view): (&Project, &RunInfo, &ViewSettings),
        samples: &[Sample],
        draws: usize,
        control: &TaskControl,
    ) -> anyhow::Result<(Evaluated, EvaluatedBoxes)> {
        let names = || names_of_run(project, run, control);
        let truth = self.read(s3, &AppDirs::find()?, control, names, || run.labels.clone())?;
        let corrections = self.corrections()?;
        let rules = MatchRules { corrections: &corrections, folders: self.folders() };
        let ids: HashMap<_, _> =
            (0..).map(SampleId::from_index).zip(samples).map(|(id, sample)| (&sample.uri, id)).collect();
        let predictions = known_predictions(project, run, &ids, control)?;
        let side = RunSide { project, run, view, listed: Some(samples.iter().collect()) };
        let sides = run_sides(&truth, &side, rules, control).map_err(with_advice)?;
        for note in problem_notes(&truth.problems).iter().chain(&sides.notes) {
            eprintln!("{note}");
        }
        print_doubts("", &sides.matching);
        let extras = Extras { draws, ..Extras::default() };
        let (mut evaluated, drawn, outcomes) = measure_boxes(sides, predictions, extras, control)?;
        if let Some(drawn) = drawn {
            drawn.add_intervals(&mut evaluated, control)?;
        }
        let samples = ids.into_iter().map(|(uri, id)| (uri.clone(), id)).collect();
        Ok((evaluated, EvaluatedBoxes { outcomes: Arc::new(outcomes), samples }))
    }
}

/// Warns of what is in doubt about the matching, and says what to do. `lead` names the run, if there are several.
pub(crate) fn print_doubts(lead: &str, matching: &MatchSummary) {
    for doubt in &matching.doubts {
        eprintln!("warning: {lead}{doubt}{}", advice(doubt));
    }
}

/// What to do about a doubt, to follow its sentence.
fn advice(doubt: &Doubt) -> &'static str {
    match doubt {
        Doubt::NumbersAlone { .. } => {
            " Set --truth-labels to coco-80, a label file, or `model` for the model's class order."
        }
        Doubt::UnknownNumbers { .. } => {
            " Name the classes of the predictions with --labels: coco-91, coco-80 or a label file."
        }
        Doubt::SameName(_) | Doubt::FewClasses { .. } => " Map the classes with --class-map.",
        Doubt::OtherFolders(OtherFolders { are_refused: true, .. }) => {
            " If the images are the same, add --ignore-folders."
        }
        Doubt::OtherFolders(_)
        | Doubt::FewImages { .. }
        | Doubt::Unpredicted { .. }
        | Doubt::Outside { .. }
        | Doubt::Fractions { .. }
        | Doubt::Repeated { .. } => "",
    }
}

pub(crate) fn is_project(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("spotcheck"))
}

/// The verdicts on a run of a project.
fn judged(path: &Path, wanted: Option<&str>, dirs: &AppDirs) -> anyhow::Result<TruthFrom> {
    let project = open_project(path, &S3Args::default(), dirs, "spotcheck evaluate")?;
    let runs = project.runs()?;
    let run = if let Some(wanted) = wanted {
        find_run(&runs, wanted)?
    } else {
        let judgments = project.judgments()?;
        let targets = judgments.iter().flat_map(|judged| &judged.verdicts).filter_map(|(target, _)| target.run);
        let judged: HashSet<RunId> = targets.collect();
        let newest = runs.iter().rfind(|run| judged.contains(&run.id));
        let newest = newest.with_context(|| format!("No verdicts on predictions in {}", path.display()))?;
        newest.clone()
    };
    run.card.must_predict()?;
    let view = stored_view(&project, &run)?;
    Ok(TruthFrom::Verdicts { project, run: Box::new(run), view: Box::new(view) })
}

/// The names of a run's images.
pub(crate) fn names_of_run(project: &Project, run: &RunInfo, control: &TaskControl) -> anyhow::Result<Vec<String>> {
    let root = project.root();
    let mut names = Vec::new();
    project.each_summary(run.id, control, |page| {
        names.extend(page.iter().map(|summary| summary.sample.name_below(root.as_deref())));
    })?;
    control.checkpoint()?;
    Ok(names)
}

/// Adds what to do on the command line.
pub(crate) fn with_advice(error: EvaluateError) -> anyhow::Error {
    let advice = match &error {
        EvaluateError::NoClassInCommon { .. } => "Map the classes with --class-map",
        EvaluateError::OtherFolders { .. } => "If the images are the same, add --ignore-folders",
        EvaluateError::OtherTask { .. } => "Choose another run of the project with --run",
        _ => return error.into(),
    };
    anyhow!("{error}. {advice}")
}

pub(crate) fn files(path: &Path, s3: &S3Args) -> anyhow::Result<Files> {
    // S3 flags may only apply to the images.
    match parse_location(path, s3.for_path(path, true))? {
        Location::Path(path) if is_stdin(&path) => {
            bail!("annotations are read from a file or folder, not from standard input")
        }
        location => Ok(Files::new(&Aws::new(), &location)),
    }
}

/// Names some of the unusable entries, by kind.
pub(crate) fn problem_notes(problems: &AnnotationProblems) -> Vec<String> {
    let mut notes = Vec::new();
    for (kind, count) in problems.counts() {
        let of_kind = problems.iter().filter(|problem| problem.kind == kind);
        notes.extend(of_kind.take(MAX_NAMED).map(|problem| format!("{} {}", problem.place, problem.reason)));
        let more = count.saturating_sub(MAX_NAMED as u64);
        if more > 0 {
            notes.push(format!("and {more} more; {}", kind.text(count)));
        }
    }
    notes
}
