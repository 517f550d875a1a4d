//! `spotcheck review changes` and `apply`: what a review changed in a COCO file of labels.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::annotations::rows::each_line;
use crate::cli::Outcome;
use crate::cli::export::{find_run, open_project};
use crate::cli::out_file::{Input, check_is_new, check_is_no_input, is_stdout};
use crate::cli::place::S3Args;
use crate::cli::terminal::raw_stdout;
use crate::dirs::AppDirs;
use crate::domain::counted;
use crate::local_file;
use crate::project::export::{CocoLabels, Existing, ExportTarget, LabelChange, WholeFile, kinds_of};

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Project with the ground truth opened to correct it (`import --to-correct`, or “Correct ground truth”)
    project: PathBuf,
    /// The COCO file that was opened
    #[arg(long, value_name = "FILE.json")]
    truth: PathBuf,
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
    /// The COCO file to correct; it stays unchanged
    truth: PathBuf,
    /// Changes as `review changes` writes them; delete a line to reject its change
    #[arg(long, value_name = "FILE.jsonl")]
    changes: PathBuf,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Debug, Args)]
struct OutArgs {
    /// Write to this file; `-` for stdout
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn changes(args: &ChangesArgs) -> anyhow::Result<Outcome> {
    args.out.check(&[("the ground truth", Some(&args.truth)), ("the project", Some(&args.project))])?;
    let project = open_project(&args.project, &args.s3, &AppDirs::find()?, "spotcheck review")?;
    let runs = project.runs()?;
    let run = match &args.run {
        Some(wanted) => find_run(&runs, wanted)?,
        None => runs.iter().rfind(|run| run.is_labels()).cloned().context(
            "the project has no opened labels; open the ground truth with “Correct ground truth” or `spotcheck import \
             --to-correct`",
        )?,
    };
    if !run.is_labels() {
        bail!("“{}” is a run of a model; only changes of opened labels can be listed", run.name);
    }
    let found = read_coco(&args.truth)?.changes(&project, run.id)?;
    let mut lines = String::new();
    for change in &found.changes {
        writeln!(lines, "{}", serde_json::to_string(change)?)?;
    }
    args.out.write(lines.as_bytes())?;
    for reason in &found.unknown {
        eprintln!("not listed: {reason}");
    }
    eprintln!("{}: {}", counted(found.changes.len(), "change", "changes"), kinds_of(&found.changes));
    Ok(if found.unknown.is_empty() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

pub(crate) fn apply(args: &ApplyArgs) -> anyhow::Result<Outcome> {
    args.out.check(&[("the ground truth", Some(&args.truth)), ("the changes", Some(&args.changes))])?;
    let failed = || format!("Could not read {}", args.changes.display());
    let mut changes: Vec<(u64, LabelChange)> = Vec::new();
    let mut rejected = Vec::new();
    each_line(local_file::open(&args.changes).with_context(failed)?, |line, text| {
        let parsed =
            text.map_err(str::to_owned).and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()));
        match parsed {
            Ok(change) => changes.push((line, change)),
            Err(reason) => rejected.push((line, reason)),
        }
    })
    .with_context(failed)?;
    let mut labels = read_coco(&args.truth)?;
    let mut applied = labels.apply(&changes);
    applied.conflicts.extend(rejected);
    applied.conflicts.sort_unstable();
    args.out.write(labels.to_json().as_bytes())?;
    for (line, reason) in &applied.conflicts {
        eprintln!("line {line}: {reason}");
    }
    if applied.masks > 0 {
        let masks = counted(applied.masks, "mask of a moved label", "masks of moved labels");
        eprintln!("note: removed {masks}, which no longer fit");
    }
    let conflicts = applied.conflicts.len();
    eprintln!(
        "applied {}, {} unchanged, {conflicts} in conflict",
        counted(applied.applied, "change", "changes"),
        applied.unchanged
    );
    Ok(if conflicts == 0 { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn read_coco(path: &Path) -> anyhow::Result<CocoLabels> {
    let failed = || format!("Could not read {}", path.display());
    CocoLabels::parse(&local_file::read(path).with_context(failed)?).with_context(failed)
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

    fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        if is_stdout(&self.out) {
            return raw_stdout().write_all(content).context("Could not write to stdout");
        }
        let target = ExportTarget { path: self.out.clone(), existing: Existing::from_force(self.force) };
        Ok(WholeFile::create(&target)?.commit_with(content)?)
    }
}
