//! `spotcheck project`: shows the contents of a project file, and sets the location of its images.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use super::place::{Opened, S3Args, open as open_location, parse_location};
use super::stored::open_project;
use crate::cli::terminal::stdout;
use crate::dirs::AppDirs;
use crate::domain::{JudgedSample, Location, S3Access};
use crate::project::{Access, OpenMode, OpenRequest, Project};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct ProjectArgs {
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Debug, Subcommand)]
enum ProjectCommand {
    /// Show a project's image folder, runs and verdict counts
    Info {
        /// Project file (`*.spotcheck`), or the image folder of a project in the data folder
        project: PathBuf,
    },
    /// Point a project to the new folder or S3 prefix of its images
    Relocate {
        /// Project file (`*.spotcheck`)
        project: PathBuf,
        /// New image folder, or `s3://bucket/folder/`
        folder: PathBuf,
        #[command(flatten)]
        s3: S3Args,
    },
}

pub(crate) fn run(args: &ProjectArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        ProjectCommand::Info { project } if project.is_dir() => {
            info(&open_project(project, &S3Args::default(), &AppDirs::find()?, "spotcheck project")?)?;
        }
        ProjectCommand::Info { project } => info(&open(project, OpenMode::Read)?)?,
        ProjectCommand::Relocate { project, folder, s3 } => {
            let place = parse_location(folder, s3)?;
            if !matches!(place, Location::S3(_)) && !folder.is_dir() {
                bail!("the folder does not exist: {}", folder.display());
            }
            if !project.exists() {
                bail!("the project does not exist: {}", project.display());
            }
            let opened = open_location(&place, &TaskControl::new(ProgressUnit::Images))?;
            let folder = opened.root.clone().context("the folder name is not valid Unicode; rename it")?;
            let project = open(project, OpenMode::WriteExisting)?;
            if let Access::ReadOnly { reason } = project.access() {
                bail!("the project is read-only: {reason}");
            }
            let outcome = check_images(&project, &opened, &folder)?;
            project.relocate(&folder)?;
            if let Some(place) = &opened.place {
                project.set_place(place)?;
            }
            eprintln!("the project now refers to {folder}");
            return Ok(outcome);
        }
    }
    Ok(Outcome::AllWell)
}

/// Reports how many of the project's images are in the folder.
///
/// # Errors
/// None of them is.
fn check_images(project: &Project, opened: &Opened, folder: &str) -> anyhow::Result<Outcome> {
    let images = project.images_below(folder)?;
    let found = if opened.place.is_some() {
        let listed = opened.source.pages().flat_map(|page| page.samples);
        listed.filter(|sample| images.contains(&sample.uri)).count()
    } else {
        images.iter().filter(|image| Path::new(image.file()).is_file()).count()
    };
    let total = images.len();
    if found == 0 && total > 0 {
        bail!("none of the project's {total} images is in this folder under the same relative path: {folder}");
    }
    eprintln!("{found} of {total} images of the project are in {folder}");
    if found == total {
        return Ok(Outcome::AllWell);
    }
    let missing = total - found;
    eprintln!("warning: {missing} {} missing", if missing == 1 { "is" } else { "are" });
    Ok(Outcome::SomeImagesFailed)
}

fn open(path: &Path, mode: OpenMode) -> anyhow::Result<Project> {
    let request = OpenRequest { path, root: None, mode, program: "spotcheck project" };
    let opened = Project::open(&request, |_| ())?;
    if mode == OpenMode::WriteExisting {
        for note in opened.notes {
            eprintln!("note: {note}");
        }
    }
    Ok(opened.project)
}

/// “profile work, at `http://127.0.0.1:9000`”.
fn describe(access: &S3Access) -> String {
    let mut parts = vec![access.credentials.to_string()];
    parts.extend(access.endpoint.as_ref().map(|at| format!("at {at}")));
    parts.extend(access.region.as_ref().map(|region| format!("in {region}")));
    if access.requester_pays {
        parts.push("requester pays".to_owned());
    }
    parts.join(", ")
}

fn info(project: &Project) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    match project.root() {
        Some(root) if let Some(place) = project.place()? => {
            lines.push(format!("images in {root}, accessed with {}", describe(&place.access)));
        }
        Some(root) if Path::new(&*root).is_dir() => lines.push(format!("images in {root}")),
        Some(root) => lines.push(format!(
            "images in {root}, which does not exist; set the image folder with `spotcheck project \
                relocate`"
        )),
        None => lines.push("images from several folders".to_owned()),
    }
    for run in project.runs()? {
        let counts = project.prediction_counts(run.id)?;
        lines.push(format!(
            "run {}: {}, {} images {}, {} failed",
            run.id.0,
            run.name,
            counts.predicted,
            if run.card.is_encoder() { "embedded" } else { "predicted" },
            counts.failed
        ));
        if !run.key.made.is_here() {
            lines.push(format!("  made: {}; {}", run.key.made, run.card.origin));
            let assumed = run.card.assumed.iter();
            lines.extend(assumed.map(|assumed| format!("  assumed: {assumed}")));
        }
    }
    let judged = project.judgments()?;
    let count = |is_counted: fn(&JudgedSample) -> bool| judged.iter().filter(|judged| is_counted(judged)).count();
    lines.push(format!(
        "{} images with verdicts, {} with a note, {} with tags",
        count(|judged| !judged.verdicts.is_empty()),
        count(|judged| !judged.note.is_empty()),
        count(|judged| !judged.tags.is_empty()),
    ));
    let mut stdout = stdout();
    lines.iter().try_for_each(|line| writeln!(stdout, "{line}")).context("Could not write to stdout")
}
