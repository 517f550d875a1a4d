//! `spotcheck project`: what a project file holds, and where its images are.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use crate::domain::JudgedSample;
use crate::store::{Access, OpenRequest, Project, Wanted};

#[derive(Debug, Args)]
pub(super) struct ProjectArgs {
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Debug, Subcommand)]
enum ProjectCommand {
    /// Show where the images of a project are, its runs, and how much was judged
    Info {
        /// The project file (`*.spotcheck`)
        project: PathBuf,
    },
    /// Point a project to the folder that its images were moved to
    Relocate {
        /// The project file (`*.spotcheck`)
        project: PathBuf,
        /// Where the images are now
        folder: PathBuf,
    },
}

pub(super) fn run(args: &ProjectArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        ProjectCommand::Info { project } => info(&open(project, Wanted::Read)?)?,
        ProjectCommand::Relocate { project, folder } => {
            if !folder.is_dir() {
                bail!("there is no such folder: {}", folder.display());
            }
            if !project.exists() {
                bail!("there is no such project: {}", project.display());
            }
            let folder = std::path::absolute(folder)
                .with_context(|| format!("Could not find {}", folder.display()))?;
            let folder = folder
                .to_str()
                .context("the folder's name is not valid Unicode; rename it")?;
            let project = open(project, Wanted::Write)?;
            if let Access::ReadOnly { reason } = project.access() {
                bail!("the project cannot be changed, {reason}; close it there");
            }
            project.relocate(folder)?;
            eprintln!("the images of the project are in {folder} now");
        }
    }
    Ok(Outcome::AllWell)
}

fn open(path: &std::path::Path, wanted: Wanted) -> anyhow::Result<Project> {
    let request = OpenRequest {
        path,
        root: None,
        wanted,
        program: "spotcheck project",
    };
    let opened = Project::open(&request, |_| ())?;
    if wanted == Wanted::Write {
        for note in opened.notes {
            eprintln!("note: {note}");
        }
    }
    Ok(opened.project)
}

fn info(project: &Project) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    match project.root() {
        Some(root) if std::path::Path::new(&*root).is_dir() => lines.push(format!("images in {root}")),
        Some(root) => lines.push(format!(
            "images in {root}, which is not there; `spotcheck project relocate` points the project to another folder"
        )),
        None => lines.push("images anywhere".to_owned()),
    }
    for run in project.runs()? {
        let counts = project.answer_counts(run.id)?;
        lines.push(format!(
            "run {}: {}, {} images answered, {} failed",
            run.id.0, run.name, counts.answered, counts.failed
        ));
    }
    let judged = project.judgements()?;
    let count = |is_counted: fn(&JudgedSample) -> bool| {
        judged.iter().filter(|judged| is_counted(judged)).count()
    };
    lines.push(format!(
        "{} images judged, {} with a note, {} with tags",
        count(|judged| !judged.verdicts.is_empty()),
        count(|judged| !judged.note.is_empty()),
        count(|judged| !judged.tags.is_empty()),
    ));
    let mut stdout = std::io::stdout();
    lines
        .iter()
        .try_for_each(|line| writeln!(stdout, "{line}"))
        .context("Could not write to stdout")
}
