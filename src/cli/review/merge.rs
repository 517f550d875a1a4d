//! `spotcheck review merge`: the verdicts of two people in one project.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::out_file::{check_is_new, check_is_no_input, is_same_file, is_stdout};
use crate::cli::place::S3Args;
use crate::cli::stored::{choose_predictions, open_project};
use crate::cli::terminal::{interruptible, with_progress};
use crate::cli::values::variant;
use crate::cli::{Outcome, UsageError};
use crate::dirs::AppDirs;
use crate::domain::{Prefer, counted};
use crate::project::export::{ConflictCsv, Existing, ExportTarget, merge_projects};
use crate::project::{Merge, run_to_merge, with_extension, write_merged};
use crate::review::{Kappa, kappas};
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
    let merged = with_extension(&args.out);
    for out in [Some(&merged), args.conflicts.as_ref()].into_iter().flatten() {
        if is_stdout(out) {
            bail!("conflicts cannot be written to stdout; give a file name to --conflicts");
        }
        check_is_no_input(out, &inputs)?;
        check_is_new(out, args.force)?;
    }
    if args.conflicts.as_ref().is_some_and(|conflicts| is_same_file(conflicts, &merged)) {
        return Err(UsageError(format!("--out and --conflicts name the same file: {}", merged.display())).into());
    }
    let dirs = AppDirs::find()?;
    let open = |path: &Path| open_project(path, &S3Args::default(), &dirs, "spotcheck review");
    let (first, second) = (open(&args.first)?, open(&args.second)?);
    let run = choose_predictions(&first, args.run.as_deref(), "merging")?;
    let second_run = run_to_merge(&second, &run)?;
    let control = interruptible(ProgressUnit::Images)?;
    let merge = with_progress("Comparing", &control, || {
        merge_projects([&first, &second], [&run, &second_run], |_| args.prefer, &control)
    })?;
    for note in &merge.notes {
        eprintln!("note: {note}");
    }
    let conflicts = merge.pairs.iter().filter(|pair| pair.is_conflict());
    let table = args.conflicts.as_ref().map(|path| {
        let target = ExportTarget { path: path.clone(), existing: Existing::from_force(args.force) };
        ConflictCsv::create(&first, conflicts, &target)
    });
    let table = table.transpose().context("Could not write the conflicts")?;
    let path = write_merged(&first, &merge.changes, &merged, "spotcheck review", &control)?;
    if let Some(table) = table {
        table.commit().context("Could not write the conflicts")?;
    }
    eprint!("{}", summary(&merge));
    eprintln!("written: {}", path.display());
    Ok(Outcome::AllWell)
}

fn summary(merge: &Merge) -> String {
    let conflicts = merge.pairs.iter().filter(|pair| pair.is_conflict()).count();
    let mut lines = vec![format!(
        "{} only in the second project, {} in both, {}",
        counted(merge.added, "verdict", "verdicts"),
        merge.pairs.len(),
        counted(conflicts, "conflict", "conflicts")
    )];
    let mut add = |name: &str, found: &Kappa| {
        let kappa = found.kappa.map_or("unknown, all verdicts are the same".to_owned(), |kappa| format!("{kappa:.3}"));
        lines.push(format!("Cohen's kappa, {name}: {kappa} (from {})", counted(found.pairs, "pair", "pairs")));
    };
    let (all, classes) = kappas(&merge.pairs);
    if all.pairs > 0 {
        add("all", &all);
    }
    for (class, found) in &classes {
        add(class.unwrap_or("whole images"), found);
    }
    lines.push(String::new());
    lines.join("\n")
}
