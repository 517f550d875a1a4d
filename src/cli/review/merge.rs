//! `spotcheck review merge`: the verdicts of two people in one project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::Outcome;
use crate::cli::export::{choose_run, list_of_runs, open_project};
use crate::cli::out_file::{check_is_new, check_is_no_input, is_stdout};
use crate::cli::place::S3Args;
use crate::cli::terminal::{interruptible, with_progress};
use crate::cli::values::variant;
use crate::dirs::AppDirs;
use crate::domain::{Change, RunInfo, SECOND_PASS, counted};
use crate::project::export::{Existing, ExportTarget, export_conflicts, review_sample};
use crate::project::{Merge, OpenMode, OpenRequest, Pair, Prefer, Project, merge_verdicts};
use crate::review::{ReviewSample, cohens_kappa};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Project file of the first reviewer (`*.spotcheck`)
    first: PathBuf,
    /// Project file of the second reviewer, with the same images and predictions
    second: PathBuf,
    /// Run of the first project, by name or number [default: the newest of a model]
    #[arg(long, value_name = "NAME|NUMBER")]
    run: Option<String>,
    /// Write the first project with the verdicts of both to this file
    #[arg(long, value_name = "FILE.spotcheck")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Write the boxes and images with different verdicts as CSV
    #[arg(long, value_name = "FILE.csv")]
    conflicts: Option<PathBuf>,
    /// Whose verdict to keep where two differ; `none` leaves the box or image unjudged
    #[arg(long, default_value = "none", value_parser = variant::<Prefer>())]
    prefer: Prefer,
}

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<Outcome> {
    let inputs = [("the first project", Some(&*args.first)), ("the second project", Some(&*args.second))];
    if is_stdout(&args.out) {
        bail!("a merged project is a file and cannot be written to stdout; give a file name to --out");
    }
    for out in [Some(&args.out), args.conflicts.as_ref()].into_iter().flatten() {
        if is_stdout(out) {
            bail!("conflicts cannot be written to stdout; give a file name to --conflicts");
        }
        check_is_no_input(out, &inputs)?;
        check_is_new(out, args.force)?;
    }
    if args.conflicts.as_ref() == Some(&args.out) {
        bail!("--out and --conflicts name the same file: {}", args.out.display());
    }
    let dirs = AppDirs::find()?;
    let open = |path: &Path| open_project(path, &S3Args::default(), &dirs, "spotcheck review");
    let (first, second) = (open(&args.first)?, open(&args.second)?);
    let run = choose_run(&first, args.run.as_deref(), "merging")?;
    let second_run = same_run(&second, &run)?;
    let control = interruptible(ProgressUnit::Images)?;
    let mut merge = with_progress("Comparing", &control, || {
        merge_verdicts([&first, &second], [run.id, second_run.id], args.prefer, &control)
    })?;
    if first.views()?.get(SECOND_PASS).is_some_and(|json| json == "true") {
        merge.changes.push(Change::SetView { name: SECOND_PASS.to_owned(), json: "false".to_owned() });
    }
    if let (None, Some(sample)) = (review_sample(&first, &run)?, review_sample(&second, &second_run)?) {
        let name = ReviewSample::name_in_project(run.id.0);
        merge.changes.push(Change::SetView { name, json: serde_json::to_string(&sample)? });
    }
    if let Some(path) = &args.conflicts {
        let target = ExportTarget { path: path.clone(), existing: Existing::from_force(args.force) };
        let conflicts = merge.pairs.iter().filter(|pair| pair.is_conflict());
        export_conflicts(&first, conflicts, &target).context("Could not write the conflicts")?;
    }
    let text = summary(&merge);
    let path = write(&first, merge.changes, &args.out)?;
    eprint!("{text}");
    eprintln!("written: {}", path.display());
    Ok(Outcome::AllWell)
}

/// The run of the same model.
fn same_run(project: &Project, run: &RunInfo) -> anyhow::Result<RunInfo> {
    let runs = project.runs()?;
    let is_same = |other: &&RunInfo| {
        other.key.model_id == run.key.model_id
            && other.key.weights_sha256 == run.key.weights_sha256
            && other.card.task == run.card.task
    };
    let of_model: Vec<&RunInfo> = runs.iter().filter(is_same).collect();
    let named = of_model.iter().find(|other| other.name == run.name);
    match named.or(of_model.last()) {
        Some(other) => Ok((*other).clone()),
        None => bail!(
            "the second project has no run of the model of “{}” with the same weights; it has:{}",
            run.name,
            list_of_runs(&runs)
        ),
    }
}

/// Writes a copy of the project with the changes. It appears under its name once all of them are saved.
fn write(project: &Project, changes: Vec<Change>, out: &Path) -> anyhow::Result<PathBuf> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".spotcheck-").tempdir_in(folder);
    let scratch = scratch.with_context(|| format!("Could not write into {}", folder.display()))?;
    let program = "spotcheck review";
    let path = project.save_as(&scratch.path().join("merged.spotcheck"), program)?;
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::WriteExisting, program };
    let merged = Project::open(&request, |_| ())?.project;
    for (ticket, change) in (1..).zip(changes) {
        merged.write(ticket, change)?;
    }
    merged.flush()?;
    Ok(merged.save_as(out, program)?)
}

fn summary(merge: &Merge) -> String {
    let conflicts = merge.pairs.iter().filter(|pair| pair.is_conflict()).count();
    let mut lines = vec![format!(
        "{} only in the second project, {} in both, {}",
        counted(merge.added, "verdict", "verdicts"),
        merge.pairs.len(),
        counted(conflicts, "conflict", "conflicts")
    )];
    let words = |pair: &&Pair| pair.verdicts.each_ref().map(|verdict| -> &'static str { verdict.into() });
    let mut add = |name: &str, pairs: &[&Pair]| {
        let kappa = cohens_kappa(pairs.iter().map(words).map(<(&str, &str)>::from));
        let kappa = kappa.map_or("unknown, all verdicts are the same".to_owned(), |kappa| format!("{kappa:.3}"));
        lines.push(format!("Cohen's kappa, {name}: {kappa} (from {})", counted(pairs.len(), "pair", "pairs")));
    };
    let mut by_class = BTreeMap::<Option<&str>, Vec<&Pair>>::new();
    for pair in &merge.pairs {
        by_class.entry(pair.class.as_deref()).or_default().push(pair);
    }
    if !merge.pairs.is_empty() {
        add("all", &merge.pairs.iter().collect::<Vec<_>>());
    }
    for (class, pairs) in &by_class {
        add(class.unwrap_or("whole images"), pairs);
    }
    lines.push(String::new());
    lines.join("\n")
}
