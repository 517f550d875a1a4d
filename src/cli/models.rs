//! `spotcheck models`: lists, downloads and removes models.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use super::inspect::{self, AddArgs, InspectArgs};
use super::terminal::with_progress;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::{ModelCard, ModelTask, human_bytes};
use crate::model::catalog::{EntryOrigin, FetchError, Library, LibraryEntry, WeightsState};
use crate::model::download::DownloadError;
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
}

#[derive(Debug, Subcommand)]
enum ModelsCommand {
    /// List models and whether their weights are present (the default)
    List,
    /// Download and verify a model's weights
    Fetch {
        /// Model id (see `spotcheck models list`)
        id: String,
        /// Import the weights from this file instead of downloading them
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Show a model's inputs and outputs, and how they were recognized
    Inspect(InspectArgs),
    /// Add your own ONNX model to the library
    Add(AddArgs),
    /// Delete a model's downloaded weights, or your own model
    Remove {
        /// Model id (see `spotcheck models list`)
        id: String,
    },
}

pub(crate) fn run(args: &ModelsArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let library = Library::open(&dirs);
    let prediction = match &args.command {
        Some(ModelsCommand::Inspect(args)) => {
            inspect::inspect(args, &dirs)?;
            return Ok(Outcome::AllWell);
        }
        Some(ModelsCommand::Add(args)) => {
            inspect::add(args, &dirs)?;
            return Ok(Outcome::AllWell);
        }
        None | Some(ModelsCommand::List) => list(&library),
        Some(ModelsCommand::Fetch { id, from }) => fetch(&library, id, from.as_ref())?,
        Some(ModelsCommand::Remove { id }) => {
            let freed = library.remove(id)?;
            format!("removed {id}, freed {}\n", human_bytes(freed))
        }
    };
    let written = stdout().write_all(prediction.as_bytes());
    written.context("Could not write to stdout")?;
    Ok(Outcome::AllWell)
}

fn list(library: &Library) -> String {
    for problem in library.problems() {
        eprintln!("problem: {problem}");
    }
    let entries = library.entries();
    let defaults: Vec<String> = [ModelTask::Classification, ModelTask::Detection]
        .into_iter()
        .filter_map(|task| library.default_for(task).ok())
        .map(|model| model.card.id)
        .collect();
    let header = ["", "ID", "NAME", "TASK", "SIZE", "LICENSE", "ACCURACY", "STATE"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(entries.iter().map(|entry| {
        let mark = if defaults.contains(&entry.card.id) { "*" } else { "" };
        row(mark, entry)
    }));
    let used: u64 = entries.iter().map(|entry| entry.disk_bytes).sum();
    format!(
        "{}\n* default for its task\nDisk space used by downloads and your own models: {}\n",
        table(&rows),
        human_bytes(used)
    )
}

fn row(mark: &str, entry: &LibraryEntry) -> [String; 8] {
    let card = &entry.card;
    [
        mark.to_owned(),
        card.id.clone(),
        card.name.clone(),
        card.task.into_str().to_owned(),
        human_bytes(card.file.bytes),
        card.license.clone(),
        card.accuracy.clone().unwrap_or_default(),
        state(entry),
    ]
}

fn state(entry: &LibraryEntry) -> String {
    let id = &entry.card.id;
    match (&entry.state, &entry.problem) {
        (WeightsState::Ready(_), _) if entry.disk_bytes == 0 => "ready (built in)".to_owned(),
        (WeightsState::Ready(path), _) => format!("ready: {}", path.display()),
        (WeightsState::Missing, Some(problem)) => problem.clone(),
        (WeightsState::Missing, None) if entry.card.file.urls.is_empty() => {
            format!("missing; import the file with: spotcheck models fetch {id} --from FILE")
        }
        (WeightsState::Missing, None) if entry.origin == EntryOrigin::BuiltIn && entry.disk_bytes > 0 => {
            let here = human_bytes(entry.disk_bytes);
            format!("incomplete ({here} downloaded); resume with: spotcheck models fetch {id}")
        }
        (WeightsState::Missing, None) => {
            format!("not downloaded; download with: spotcheck models fetch {id}")
        }
    }
}

/// A table with columns as wide as their widest cell, two spaces apart.
fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths);
        let padded: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn fetch(library: &Library, id: &str, from: Option<&PathBuf>) -> anyhow::Result<String> {
    let control = interruptible(ProgressUnit::Bytes)?;
    if from.is_none()
        && let Some(missing) = missing(library, id)
    {
        eprintln!(
            "downloading {} ({}) into {}",
            missing.name,
            human_bytes(missing.file.bytes),
            library.folder(id).display()
        );
    }
    let fetched = with_progress(id, &control, || library.fetch(id, from.map(PathBuf::as_path), &control));
    match fetched {
        Ok(model) => {
            for note in control.notes() {
                eprintln!("note: {note}");
            }
            Ok(format!("{id} is ready: {}\n", model.weights.display()))
        }
        Err(FetchError::Download(DownloadError::Cancelled(_))) => {
            bail!("canceled; resume with: spotcheck models fetch {id}")
        }
        Err(error @ FetchError::Download(DownloadError::NoMirrorWorks { .. })) => {
            bail!("{error}\nWithout a connection, copy the file here and run: spotcheck models fetch {id} --from FILE")
        }
        Err(error) => Err(error.into()),
    }
}

/// The card of a model whose weights must be downloaded.
fn missing(library: &Library, id: &str) -> Option<ModelCard> {
    let mut entries = library.entries().into_iter();
    let entry = entries.find(|entry| entry.card.id == id)?;
    let can_be_fetched = !entry.card.file.urls.is_empty();
    (entry.state == WeightsState::Missing && can_be_fetched).then_some(entry.card)
}
