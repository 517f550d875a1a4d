//! `spotcheck review import` and `export`: verdicts as CSV.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::ReviewedRun;
use crate::cli::Outcome;
use crate::cli::out_file::is_stdout;
use crate::cli::terminal::raw_stdout;
use crate::domain::counted;
use crate::local_file;
use crate::project::OpenMode;
use crate::project::export::{
    Existing, ExportTarget, OtherVerdicts, export_verdicts, import_verdicts, verdicts_as_csv,
};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    of: ReviewedRun,
    /// CSV file with the columns `image`, `box` (empty for the image and for spurious), `verdict` (accept, reject, unsure,
    /// wrong, moved or added; complete or returned for the image; spurious for a wrong ground-truth label),
    /// `right_class`, `x1`, `y1`, `x2`, `y2` (pixels, for moved, added and spurious) and `reviewer`; rows without a
    /// verdict are skipped
    verdicts: PathBuf,
    /// Reviewer of rows that name none
    #[arg(long, value_name = "NAME")]
    reviewer: Option<String>,
    /// Replace other verdicts on the same boxes and images
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    of: ReviewedRun,
    /// Write the verdicts as CSV; `-` for stdout
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let failed = || format!("Could not import {}", args.verdicts.display());
    let file = local_file::open(&args.verdicts).with_context(failed)?;
    let (project, run) = args.of.open(OpenMode::WriteExisting)?;
    let others = if args.replace { OtherVerdicts::Replace } else { OtherVerdicts::Keep };
    let mut imported = import_verdicts(&project, &run, file, others, args.reviewer.as_deref()).with_context(failed)?;
    let count = imported.changes.len();
    imported.changes.append(&mut imported.removals);
    project.write_together(&imported.changes).with_context(failed)?;
    for row in imported.rejected.iter().chain(&imported.conflicts) {
        eprintln!("{row}");
    }
    if !imported.new_classes.is_empty() {
        let names: Vec<&str> = imported.new_classes.iter().map(String::as_str).collect();
        let count = counted(names.len(), "class", "classes");
        eprintln!("note: {count} that the run does not have: “{}”", names.join("”, “"));
    }
    eprintln!(
        "imported {}, removed {}, {} unchanged, {} without a verdict, {} rejected, {} in conflict{}",
        counted(count, "verdict", "verdicts"),
        counted(imported.removed, "added box", "added boxes"),
        imported.unchanged,
        imported.without_verdict,
        imported.rejected.len(),
        imported.conflicts.len(),
        if imported.conflicts.is_empty() { "" } else { "; to replace existing verdicts, add --replace" }
    );
    let is_well = imported.rejected.is_empty() && imported.conflicts.is_empty();
    Ok(if is_well { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let (project, run) = args.of.open(OpenMode::Read)?;
    let failed = "Could not export the verdicts";
    if is_stdout(&args.out) {
        let (table, count) = verdicts_as_csv(&project, run.id).context(failed)?;
        raw_stdout().write_all(&table).context("Could not write to stdout")?;
        eprintln!("exported {}", counted(count, "verdict", "verdicts"));
        return Ok(Outcome::AllWell);
    }
    let target = ExportTarget { path: args.out.clone(), existing: Existing::from_force(args.force) };
    let count = export_verdicts(&project, run.id, &target).context(failed)?;
    eprintln!("exported {}: {}", counted(count, "verdict", "verdicts"), args.out.display());
    Ok(Outcome::AllWell)
}
