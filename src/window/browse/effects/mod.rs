//! Opening and listing sources.

pub(crate) mod alike;
mod captures;
pub(crate) mod thumbnails;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::CacheError;
use crate::dirs::shipped;
use crate::domain::{Location, Problem, S3Place};
use crate::image::source::{
    ImageList, LinesSource, ListingChange, S3Source, Source, WithRecords, absolute, folder_of, for_task,
};
use crate::tasks::TaskControl;
use crate::window::effects::{Effects, Shared, desktop};
use crate::window::state::{BrowseEffect, BrowseEvent, Event, Relisting, SourceId, SourceSpec, Ticket};
use crate::window::{duplicates, outputs, project};

pub(crate) fn carry_out(effects: &mut Effects, effect: BrowseEffect) {
    let shared = &effects.shared;
    match effect {
        BrowseEffect::Open { source, spec, ticket } => {
            if let SourceSpec::Path(path) | SourceSpec::Project(path) = &spec {
                desktop::remember_folder(shared, path);
            }
            open(shared, source, spec, ticket);
        }
        BrowseEffect::BeginDialogsAt(path) => desktop::remember_folder(shared, &path),
        BrowseEffect::MakeThumbnails { source, side, requested } => {
            effects.thumbnails.request(shared, source, side, requested);
        }
        BrowseEffect::ReadAhead { source, samples } => {
            effects.thumbnails.read_ahead(source, samples);
        }
        BrowseEffect::ListAgain { source, ticket } => list_again(shared, source, ticket),
        BrowseEffect::ReadCaptures { source, samples, ticket } => captures::read(shared, source, samples, ticket),
        BrowseEffect::LimitCache(bytes) => shared.cache.set_max_bytes(bytes),
        BrowseEffect::MeasureCache => measure_cache(shared),
        BrowseEffect::ClearCache => clear_cache(shared),
        BrowseEffect::Display { source, sample, uri } => {
            effects.thumbnails.stop_reading_ahead(uri.clone());
            effects.display.request(source, sample, uri);
        }
        BrowseEffect::MakeTiles { source, sample, requested } => {
            effects.display.request_tiles(source, sample, requested);
        }
        BrowseEffect::LimitMegapixels(max) => shared.limits.lock().max_megapixels = max,
        BrowseEffect::LookAtDropped { source, paths, ticket } => {
            outputs::effects::import::look(shared, source, paths, ticket);
        }
        BrowseEffect::Reveal(uri) => desktop::reveal(shared, uri),
        BrowseEffect::FindAlike { request, ticket } => alike::find(shared, *request, ticket),
        BrowseEffect::FindDuplicates { request, ticket } => duplicates::effects::find(shared, request, ticket),
        BrowseEffect::Measure { basis, samples, ticket } => {
            duplicates::effects::measure(shared, basis, samples, ticket);
        }
        BrowseEffect::CopyImage { source, uri, drawn, to } => desktop::copy_image(shared, source, uri, drawn, to),
    }
}

fn open(shared: &Arc<Shared>, source: SourceId, spec: SourceSpec, ticket: Ticket) {
    shared.run_task(
        "list images",
        ticket,
        move |shared, ticket| match list(shared, source, spec, &ticket.control) {
            // Another source is being opened, which is not a failure.
            Err(_) if ticket.control.is_cancelled() => Ok(()),
            listed => listed,
        },
        move |task, result| BrowseEvent::ListingEnded { source, task, result },
    );
}

fn list(shared: &Arc<Shared>, id: SourceId, spec: SourceSpec, control: &TaskControl) -> Result<(), String> {
    let place = find(shared, id, spec, control)?;
    // The reference is weak, because the source owns the receiver of changes.
    let listener = Arc::downgrade(shared);
    place.source.watch(Box::new(move |change| {
        if let Some(shared) = listener.upgrade() {
            shared.report(BrowseEvent::ListingChanged { source: id, change });
        }
    }));
    let pages = for_task(&place.source, control).pages();
    let server = place.source.server().map(str::to_owned);
    shared.set_source(id, place.source);
    if let Some(root) = place.project_root {
        let in_s3 = place.in_s3.clone();
        let in_s3 = in_s3.map(|in_s3| in_s3.on_server(server.as_deref()));
        project::effects::open_default(shared, id, root, in_s3);
    }
    let Place { name, in_s3, list_of, .. } = place;
    shared.report(BrowseEvent::Opened { source: id, name, place: in_s3, list_of });
    for page in pages {
        // Canceled, because another source is being opened. The images listed so far stay.
        if control.checkpoint().is_err() {
            break;
        }
        control.add_done(page.samples.len() as u64);
        if !shared.report(BrowseEvent::Listed { source: id, page }) {
            break;
        }
    }
    Ok(())
}

/// Lists the source again. Changes are reported page by page, to limit the work per frame.
fn list_again(shared: &Arc<Shared>, source: SourceId, ticket: Ticket) {
    shared.run_task(
        "list images again",
        ticket,
        move |shared, ticket| relist(shared, source, &ticket.control),
        move |task, result| BrowseEvent::ListedAgain { source, task, result },
    );
}

fn relist(shared: &Shared, id: SourceId, control: &TaskControl) -> Result<Relisting, String> {
    let source = shared.source(id).ok_or("The folder has been closed")?;
    let mut found = Relisting::default();
    let mut present = HashSet::new();
    for page in for_task(&source, control).pages() {
        if control.checkpoint().is_err() {
            break;
        }
        control.add_done(page.samples.len() as u64);
        present.extend(page.samples.iter().map(|sample| sample.uri.clone()));
        found.problems.extend(page.problems);
        found.notes.extend(page.notes);
        let change = ListingChange::Seen(page.samples);
        if !shared.report(BrowseEvent::ListingChanged { source: id, change }) {
            break;
        }
    }
    let is_whole = found.problems.is_empty() && !control.is_cancelled();
    found.present = is_whole.then_some(present);
    Ok(found)
}

/// A source to list.
struct Place {
    source: Arc<dyn Source>,
    name: String,
    /// The folder whose default project should be opened; `None` if a project is open already.
    project_root: Option<String>,
    /// That folder, if it is in S3.
    in_s3: Option<S3Place>,
    /// What a list of images was drawn from.
    list_of: Option<Location>,
}

fn find(shared: &Arc<Shared>, id: SourceId, spec: SourceSpec, control: &TaskControl) -> Result<Place, String> {
    match spec {
        SourceSpec::Path(path) if let Some(list) = list_in(&path)? => {
            let place = match &list.source {
                Location::Path(folder) => Place::with_default_project(Arc::new(open_path(folder)?), folder),
                Location::S3(place) => open_in_s3(shared, place, control)?,
            };
            let source = list.over(place.source, &path);
            Ok(Place { name: source.name(), source, list_of: Some(list.source), ..place })
        }
        SourceSpec::Path(path) => {
            let source = LinesSource::in_place_of(Arc::new(open_path(&path)?), control);
            // The project of a single image is that of its folder.
            let root = folder_of(Path::new(&source.name()));
            Ok(Place::with_default_project(source, &root))
        }
        SourceSpec::Paths(paths) => {
            let root = common_folder(&paths);
            let source = Arc::new(WithRecords::from_paths(paths));
            Ok(Place::with_default_project(source, &root))
        }
        SourceSpec::SampleImages => {
            let folder = sample_images().ok_or(
                "The sample images are not next to the program; open the folder `assets/samples` in Spotcheck's \
                 source code",
            )?;
            let place = Place::with_default_project(Arc::new(open_path(&folder)?), &folder);
            Ok(Place { name: "Sample images".to_owned(), ..place })
        }
        SourceSpec::S3(place) => open_in_s3(shared, &place, control),
        SourceSpec::Project(path) => {
            let path = with_home(&path);
            let (root, place) = project::effects::open_chosen(shared, id, &path)?;
            if let Some(place) = place {
                return Ok(Place { project_root: None, ..open_in_s3(shared, &place, control)? });
            }
            let source = WithRecords::open(Path::new(&root))
                .map_err(|error| format!("This project's images are no longer in {root}: {error}"))?;
            Ok(Place { name: source.name(), source: Arc::new(source), project_root: None, in_s3: None, list_of: None })
        }
    }
}

impl Place {
    fn with_default_project(source: Arc<dyn Source>, root: &Path) -> Self {
        let project_root = Some(root.to_string_lossy().into_owned());
        Self { name: source.name(), source, project_root, in_s3: None, list_of: None }
    }
}

fn open_in_s3(shared: &Arc<Shared>, place: &S3Place, control: &TaskControl) -> Result<Place, String> {
    // The reference is weak, because the source owns the receiver of problems.
    let listener = Arc::downgrade(shared);
    let with_cache = |source: S3Source| {
        source.with_cache(Arc::clone(&shared.cache), move |error| {
            if let Some(shared) = listener.upgrade() {
                report_cache_failure(&shared, error);
            }
        })
    };
    let (source, of_s3) =
        WithRecords::in_s3(&shared.aws, place, Some(control), with_cache).map_err(|error| error.to_string())?;
    let folder = S3Place { address: of_s3.folder(), ..place.clone() };
    Ok(Place {
        name: source.name(),
        source: LinesSource::in_place_of(Arc::new(source), control),
        project_root: Some(folder.address.to_string()),
        in_s3: Some(folder),
        list_of: None,
    })
}

fn list_in(path: &Path) -> Result<Option<ImageList>, String> {
    let path = with_home(path);
    ImageList::in_file(&path).map_err(|error| format!("Could not open {}: {error}", path.display()))
}

pub(crate) fn open_path(path: &Path) -> Result<WithRecords, String> {
    let path = with_home(path);
    WithRecords::open(&path).map_err(|error| format!("Could not open {}: {error}", path.display()))
}

/// The innermost folder that contains all paths.
fn common_folder(paths: &[PathBuf]) -> PathBuf {
    let folders = paths.iter().map(|path| {
        let from_root = absolute(path).unwrap_or_else(|_| path.clone());
        folder_of(&from_root)
    });
    let common = folders.reduce(|left, right| {
        let same = left.iter().zip(right.iter());
        same.take_while(|(left, right)| left == right).map(|(part, _)| part).collect()
    });
    common.unwrap_or_default()
}

/// Expands `~`, as in `~/images`.
pub(crate) fn with_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}

fn sample_images() -> Option<PathBuf> {
    shipped("assets/samples").filter(|folder| folder.is_dir())
}

fn measure_cache(shared: &Arc<Shared>) {
    shared.spawn("measure the disk cache", |shared| {
        shared.report(BrowseEvent::CacheMeasured(shared.cache.usage()));
    });
}

fn clear_cache(shared: &Arc<Shared>) {
    shared.spawn("clear the disk cache", |shared| {
        match shared.cache.clear() {
            Ok(()) => {
                shared.report(Event::Notice("Cleared the disk cache".to_owned()));
            }
            Err(error) => report_cache_failure(shared, &error),
        }
        shared.report(BrowseEvent::CacheMeasured(shared.cache.usage()));
    });
}

pub(crate) fn report_cache_failure(shared: &Shared, error: &CacheError) {
    shared.report(Event::Problem(Problem::general(error.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_and_samples_are_found() {
        assert!(sample_images().is_some());
        assert!(shipped("docs/README.md").is_some_and(|page| page.is_file()));
    }

    #[test]
    fn folders_share_the_project_of_their_parent() {
        let paths = ["/photos/a/1.jpg", "/photos/b/c/2.jpg"].map(PathBuf::from);
        assert_eq!(common_folder(&paths), PathBuf::from("/photos"));
        assert_eq!(common_folder(&paths[..1]), PathBuf::from("/photos/a"));
    }
}
