//! `spotcheck review changes` and `apply`: what a review changed in ground truth.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::annotations::matching::{Folders, MatchRules};
use crate::annotations::patch::{Corrected, LabelChange, apply_changes};
use crate::annotations::rows::each_line;
use crate::cli::Outcome;
use crate::cli::out_file::{Input, check_is_new, check_is_no_input, is_below, is_stdout};
use crate::cli::place::S3Args;
use crate::cli::stored::{find_run, open_project};
use crate::cli::terminal::{raw_stdout, with_progress};
use crate::cli::truth::{files, problem_notes};
use crate::cli::values::read_class_map;
use crate::dirs::AppDirs;
use crate::domain::{AnnotationProblems, counted};
use crate::local_file;
use crate::project::export::label_patch::{LabelChanges, write_corrected};
use crate::project::export::{Existing, ExportTarget};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Project with the ground truth opened to correct it (`import --to-correct`, or “Correct ground truth”)
    project: PathBuf,
    /// The ground truth that was opened: a COCO or CSV file, or the folder or data.yaml of YOLO or Pascal VOC labels
    #[arg(long, value_name = "FILE|FOLDER")]
    truth: PathBuf,
    /// Split of a data.yaml [default: val, test or train]
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Match images by file name even if their folders differ, if `import` did
    #[arg(long)]
    ignore_folders: bool,
    /// CSV file with the class corrections of `import --class-map`; the names of `--labels` are in the project
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
    /// Run, by name or number [default: the newest with opened labels]
    #[arg(long, value_name = "NAME|NUMBER")]
    run: Option<String>,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The ground truth to correct; it stays unchanged
    truth: PathBuf,
    /// Split of a data.yaml [default: val, test or train]
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Changes as `review changes` or the window writes them
    #[arg(long, value_name = "FILE.jsonl")]
    changes: PathBuf,
    /// Lines of the changes to reject, for example `3,7`
    #[arg(long, value_name = "LINES", value_delimiter = ',')]
    reject: Vec<u64>,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Args)]
struct OutArgs {
    /// Write to this file (`-` for stdout), or for the labels of a folder, write the changed files to this folder
    #[arg(long, value_name = "FILE|FOLDER")]
    out: PathBuf,
    /// Replace an existing file, or a folder that an export or `review apply` wrote
    #[arg(long)]
    force: bool,
}

pub(crate) fn changes(args: &ChangesArgs) -> anyhow::Result<Outcome> {
    let class_map = ("the class corrections", args.class_map.as_deref());
    args.out.check(&[("the ground truth", Some(&args.truth)), ("the project", Some(&args.project)), class_map])?;
    let project = open_project(&args.project, &args.s3, &AppDirs::find()?, "spotcheck review")?;
    let runs = project.runs()?;
    let run = match &args.run {
        Some(wanted) => find_run(&runs, wanted)?,
        None => runs.iter().rfind(|run| run.is_labels()).cloned().context(
            "the project has no opened labels; open the ground truth with “Correct ground truth” or `spotcheck import \
             --to-correct`",
        )?,
    };
    let files = files(&args.truth, &args.s3)?;
    let corrections = args.class_map.as_deref().map(read_class_map).transpose()?.unwrap_or_default();
    let folders = if args.ignore_folders { Folders::MayDiffer } else { Folders::Agree };
    let rules = MatchRules { corrections: &corrections, folders };
    let control = TaskControl::new(ProgressUnit::Bytes);
    let find = || LabelChanges::find(&project, &run, &files, args.split.as_deref(), rules, &control);
    let found = with_progress("Reading the ground truth", &control, find).context("Could not list the changes")?;
    args.out.write(&Corrected::File(found.to_json_lines().into_bytes()))?;
    for reason in &found.unknown {
        eprintln!("not listed: {reason}");
    }
    for note in found.notes() {
        eprintln!("note: {note}");
    }
    print_unused(&found.problems);
    eprintln!("{}", found.summary());
    Ok(if found.unknown.is_empty() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

pub(crate) fn apply(args: &ApplyArgs) -> anyhow::Result<Outcome> {
    args.out.check(&[("the ground truth", Some(&args.truth)), ("the changes", Some(&args.changes))])?;
    if args.truth.is_dir() {
        check_is_outside(&args.out.out, &args.truth)?;
    }
    let Lines { changes, rejected, broken } = Lines::read(&args.changes, &args.reject)?;
    let files = files(&args.truth, &args.s3)?;
    let control = TaskControl::new(ProgressUnit::Bytes);
    let apply = || apply_changes(&files, args.split.as_deref(), &changes, &control);
    let applied = with_progress("Reading the ground truth", &control, apply);
    let mut applied = applied.with_context(|| format!("Could not apply changes to {}", args.truth.display()))?;
    applied.conflicts.extend(broken);
    applied.conflicts.sort_unstable();
    if matches!(applied.written, Corrected::Folder(_)) && args.truth.is_file() {
        check_is_outside(&args.out.out, args.truth.parent().filter(|folder| *folder != "").unwrap_or(".".as_ref()))?;
    }
    args.out.write(&applied.written)?;
    for (line, reason) in &applied.conflicts {
        eprintln!("line {line}: {reason}");
    }
    if applied.masks > 0 {
        let [one, several] =
            ["mask of a moved label, which no longer fits", "masks of moved labels, which no longer fit"];
        eprintln!("note: removed {}", counted(applied.masks, one, several));
    }
    if applied.clipped > 0 {
        let boxes =
            counted(applied.clipped, "box that extends beyond its image", "boxes that extend beyond their images");
        eprintln!("note: clipped {boxes}");
    }
    if !applied.new_images.is_empty() {
        let images: Vec<&str> = applied.new_images.iter().map(String::as_str).collect();
        eprintln!("note: added rows of images without one: {}", images.join(", "));
    }
    print_unused(&applied.problems);
    if let Corrected::Folder(written) = &applied.written {
        match written.len() {
            0 => eprintln!("no file changed"),
            1 => eprintln!("wrote 1 changed file; copy it over the ground truth"),
            several => eprintln!("wrote {several} changed files; copy them over the ground truth"),
        }
    }
    let conflicts = applied.conflicts.len();
    eprintln!(
        "applied {}, {} unchanged, {rejected} rejected, {conflicts} in conflict",
        counted(applied.applied, "change", "changes"),
        applied.unchanged
    );
    Ok(if conflicts == 0 { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

/// # Errors
/// The output is in the folder of the ground truth, which would contain it.
fn check_is_outside(out: &Path, folder: &Path) -> anyhow::Result<()> {
    if is_below(out, folder) {
        bail!(
            "the output is inside the ground truth, which would contain it; choose a path outside {}: {}",
            folder.display(),
            out.display()
        );
    }
    Ok(())
}

/// Names some of the entries of the ground truth that are not changed.
fn print_unused(problems: &AnnotationProblems) {
    for note in problem_notes(problems) {
        eprintln!("not used: {note}");
    }
}

/// The lines of a file of changes.
struct Lines {
    changes: Vec<(u64, LabelChange)>,
    rejected: usize,
    /// Those that are no changes, with the reason.
    broken: Vec<(u64, String)>,
}

impl Lines {
    fn read(path: &Path, rejected: &[u64]) -> anyhow::Result<Self> {
        let mut rejected: BTreeSet<u64> = rejected.iter().copied().collect();
        let mut lines = Self { changes: Vec::new(), rejected: 0, broken: Vec::new() };
        let failed = || format!("Could not read {}", path.display());
        each_line(local_file::open(path).with_context(failed)?, |line, text| {
            if rejected.remove(&line) {
                lines.rejected += 1;
                return;
            }
            match text.map_err(str::to_owned).and_then(LabelChange::parse) {
                Ok(change) => lines.changes.push((line, change)),
                Err(reason) => lines.broken.push((line, reason)),
            }
        })
        .with_context(failed)?;
        if let (true, 0, Some((line, reason))) = (lines.changes.is_empty(), lines.rejected, lines.broken.first()) {
            bail!("{} contains no changes; line {line}: {reason}", path.display());
        }
        if let Some(line) = rejected.first() {
            bail!("--reject {line}: {} has no such line", path.display());
        }
        Ok(lines)
    }
}

impl OutArgs {
    /// What can fail early fails before anything is read.
    fn check(&self, inputs: &[Input<'_>]) -> anyhow::Result<()> {
        if is_stdout(&self.out) {
            return Ok(());
        }
        check_is_no_input(&self.out, inputs)?;
        check_is_new(&self.out, self.force)
    }

    fn write(&self, corrected: &Corrected) -> anyhow::Result<()> {
        match corrected {
            Corrected::File(content) if is_stdout(&self.out) => {
                raw_stdout().write_all(content).context("Could not write to stdout")
            }
            Corrected::Folder(_) if is_stdout(&self.out) => {
                bail!("these labels are in several files; specify a folder with --out")
            }
            corrected => {
                let target = ExportTarget { path: self.out.clone(), existing: Existing::from_force(self.force) };
                Ok(write_corrected(corrected, &target)?)
            }
        }
    }
}
