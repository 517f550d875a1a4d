//! Opening and listing sources.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Shared;
use crate::source::{LocalSource, Source};
use crate::state::{Event, SourceId, SourceSpec, TaskId};
use crate::tasks::TaskControl;

pub(super) fn open(
    shared: &Arc<Shared>,
    id: SourceId,
    spec: SourceSpec,
    task: TaskId,
    control: TaskControl,
) {
    let ended = move |result| Event::ListingEnded {
        source: id,
        task,
        result,
    };
    shared.spawn_answer(
        "list images",
        move |shared| ended(list(shared, id, spec, &control)),
        move |mistake| ended(Err(mistake)),
    );
}

fn list(
    shared: &Shared,
    id: SourceId,
    spec: SourceSpec,
    control: &TaskControl,
) -> Result<(), String> {
    let is_samples = spec == SourceSpec::SamplePhotographs;
    let source = open_spec(spec)?;
    let name = if is_samples {
        "Sample photographs".to_owned()
    } else {
        source.name()
    };
    let pages = source.pages();
    shared.set_source(id, source);
    super::project::open(shared, id);
    shared.report(Event::Opened { source: id, name });
    for page in pages {
        // Cancelled: another source is being opened. What was listed so far stays.
        if control.checkpoint().is_err() {
            break;
        }
        control.add_done(page.samples.len() as u64);
        if !shared.report(Event::Listed { source: id, page }) {
            break;
        }
    }
    Ok(())
}

fn open_spec(spec: SourceSpec) -> Result<Arc<dyn Source>, String> {
    let source = match spec {
        SourceSpec::Path(path) => open_path(&path)?,
        SourceSpec::Project(path) => return Err(format!("{}", path.display())),
        SourceSpec::Paths(paths) => LocalSource::from_paths(paths),
        SourceSpec::SamplePhotographs => {
            let folder = sample_photographs().ok_or(
                "The sample photographs are not beside the program; open the folder `assets/samples` of Spotcheck's sources",
            )?;
            open_path(&folder)?
        }
    };
    Ok(Arc::new(source))
}

fn open_path(path: &Path) -> Result<LocalSource, String> {
    let path = with_home(path);
    LocalSource::open(&path).map_err(|error| format!("Could not open {}: {error}", path.display()))
}

/// People type `~/pictures`.
fn with_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}

/// Beside the installed program, or in the folder it was built in.
fn sample_photographs() -> Option<PathBuf> {
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent);
    let candidates = [
        beside.map(|folder| folder.join("assets/samples")),
        beside.map(|folder| folder.join("../share/spotcheck/samples")),
        Some(PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/assets/samples"
        ))),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|folder| folder.is_dir())
}
