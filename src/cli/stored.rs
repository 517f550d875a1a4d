//! Projects and their runs, as commands name them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;

use super::place::{self, S3Args, is_in_s3, parse_location};
use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::domain::{CardTask, Location, RunInfo, S3Place, ViewSettings};
use crate::image::source::{Source, WithRecords, absolute};
use crate::project::{OpenMode, OpenRequest, Project, default_path, default_path_of_place};
use crate::tasks::TaskControl;

/// `program` is the name that other programs show while the project is locked.
pub(crate) fn open_project(path: &Path, s3: &S3Args, dirs: &AppDirs, program: &'static str) -> anyhow::Result<Project> {
    open_project_as(path, s3, dirs, OpenMode::Read, program)
}

/// As [`open_project`], also for writing.
pub(crate) fn open_project_as(
    path: &Path,
    s3: &S3Args,
    dirs: &AppDirs,
    mode: OpenMode,
    program: &'static str,
) -> anyhow::Result<Project> {
    let path = match default_project(path, s3, dirs)? {
        Some((of, project)) if !project.exists() => {
            bail!("{of} has no project yet; open it in the window, or predict with --project")
        }
        Some((_, project)) => project,
        None => path.to_owned(),
    };
    let request = OpenRequest { path: &path, root: None, mode, program };
    let opened = Project::open(&request, |_| ())?;
    for note in &opened.notes {
        eprintln!("note: {note}");
    }
    Ok(opened.project)
}

/// The root and project of a folder or an S3 prefix; `None` for a project file.
fn default_project(path: &Path, s3: &S3Args, dirs: &AppDirs) -> anyhow::Result<Option<(String, PathBuf)>> {
    if path.is_dir() {
        let root = absolute(path)?;
        let root = root.to_string_lossy();
        return Ok(Some((root.to_string(), default_path(dirs, &root))));
    }
    if !is_in_s3(path) {
        return Ok(None);
    }
    let Location::S3(place) = parse_location(path, s3)? else {
        return Ok(None);
    };
    let server = Aws::new().s3(&place.access).endpoint(None)?;
    let folder = S3Place { address: place.address.as_folder(), ..*place };
    let folder = folder.on_server(server.as_deref());
    Ok(Some((folder.identity(), default_path_of_place(dirs, &folder))))
}

pub(crate) const NO_RUNS: &str = "the project has no runs yet; run `spotcheck predict` first";

/// The run with this name or number, or the newest of a model: labels that were opened to correct them are chosen only
/// if there is nothing else. `doing` is the action for messages: “exporting”.
pub(crate) fn choose_run(project: &Project, wanted: Option<&str>, doing: &str) -> anyhow::Result<RunInfo> {
    choose(project, wanted, (doing, "of a model"), |_| true)
}

/// As [`choose_run`], for what needs boxes.
pub(crate) fn choose_detector(project: &Project, wanted: Option<&str>, doing: &str) -> anyhow::Result<RunInfo> {
    choose(project, wanted, (doing, "of a detector"), |run| run.card.task == CardTask::Detection)
}

/// As [`choose_run`], for what needs predictions.
///
/// # Errors
/// Also if the run is an encoder's.
pub(crate) fn choose_predictions(project: &Project, wanted: Option<&str>, doing: &str) -> anyhow::Result<RunInfo> {
    let run = choose(project, wanted, (doing, "of a model"), |run| !run.card.is_encoder())?;
    run.card.must_predict()?;
    Ok(run)
}

fn choose(
    project: &Project,
    wanted: Option<&str>,
    (doing, which): (&str, &str),
    fits: impl Fn(&RunInfo) -> bool,
) -> anyhow::Result<RunInfo> {
    let mut runs = project.runs()?;
    let Some(wanted) = wanted else {
        if runs.is_empty() {
            bail!(NO_RUNS);
        }
        let last = runs.len() - 1;
        let newest = runs.iter().rposition(|run| !run.is_labels() && fits(run));
        let newest = newest.or_else(|| runs.iter().rposition(&fits)).unwrap_or(last);
        let newest = runs.remove(newest);
        if !runs.is_empty() {
            eprintln!(
                "{doing} the newest run {which}, “{}”; to choose another, add --run:{}",
                newest.name,
                list_of_runs(&runs)
            );
        }
        return Ok(newest);
    };
    find_run(&runs, wanted)
}

pub(crate) fn find_run(runs: &[RunInfo], wanted: &str) -> anyhow::Result<RunInfo> {
    let is_wanted = |run: &&RunInfo| run.name == wanted || run.id.0.to_string() == wanted;
    let found: Vec<&RunInfo> = runs.iter().filter(is_wanted).collect();
    let list = list_of_runs(runs);
    match found[..] {
        [run] => Ok(run.clone()),
        [] => bail!("the project has no run “{wanted}”; it has:{list}"),
        _ => bail!("several runs are named “{wanted}”; specify one by number:{list}"),
    }
}

/// One line per run, with its number.
pub(crate) fn list_of_runs(runs: &[RunInfo]) -> String {
    let lines = runs.iter().map(|run| format!("\n  {}  {}", run.id.0, run.name));
    lines.collect()
}

/// The project's last view settings for the run's model.
pub(crate) fn stored_view(project: &Project, run: &RunInfo) -> anyhow::Result<ViewSettings> {
    let (view, note) = project.view_of_run(run)?;
    if let Some(note) = note {
        eprintln!("note: {note}");
    }
    Ok(view)
}

/// The name of a project's images for people.
pub(crate) fn source_name(project: &Project) -> String {
    project.root().as_deref().unwrap_or("several locations").to_owned()
}

/// The source of the images. If it does not exist any more, only formats with images fail.
pub(crate) fn open_source(project: &Project, args: &S3Args, control: &TaskControl) -> anyhow::Result<Arc<dyn Source>> {
    let nothing = || Arc::new(WithRecords::from_paths([]));
    let Some(root) = project.root() else {
        return Ok(nothing());
    };
    let location = match project.place()? {
        Some(place) => args.place(place),
        None => parse_location(Path::new(&*root), args)?,
    };
    let opened = place::open(&location, control);
    control.checkpoint()?;
    Ok(opened.map_or_else(
        |error| {
            eprintln!("note: could not open the images ({error:#}): {root}");
            nothing() as Arc<dyn Source>
        },
        |opened| opened.source,
    ))
}
