//! File dialogs, the file manager, the clipboard, the log: the rest of the desktop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use poll_promise::Promise;
use rfd::AsyncFileDialog;

use super::{Delivery, Shared, guarded};
use crate::dirs::shipped;
use crate::domain::{RgbImage, SampleUri};
use crate::image::decode;
use crate::model::diagnostics::diagnostics;
use crate::project::export::{DrawnObjects, TruthMarks, annotate, write_image};
use crate::window::state::{AnnotationsPick, DrawnPrediction, Event, FilePick, FileRequest, SourceId};

/// A dialog that ends without a result faster than a person can click was never shown.
const SOONER_THAN_A_PERSON: Duration = Duration::from_millis(250);

const PROJECT_EXTENSION: &str = "spotcheck";

const LABEL_EXTENSIONS: [&str; 6] = ["txt", "names", "pbtxt", "json", "yaml", "yml"];

/// Extensions of ground-truth and prediction files.
pub(crate) const ANNOTATION_EXTENSIONS: [&str; 10] =
    ["json", "jsonl", "jsonlines", "ndjson", "csv", "tsv", "txt", "xml", "yaml", "yml"];

const IMAGE_EXTENSIONS: [&str; 15] = [
    "jpg",
    "jpeg",
    "jpe",
    "jfif",
    "png",
    "webp",
    "bmp",
    "dib",
    "tif",
    "tiff",
    "gif",
    "tfrecord",
    "tfrecords",
    "tfrec",
    "record",
];

/// A kind of file: its name and its extensions.
type FileKind = (&'static str, &'static [&'static str]);

const ANNOTATIONS: FileKind = (
    "Annotations",
    &["json", "jsonl", "csv", "tsv", "yaml", "yml", "xml", "txt", "tfrecord", "tfrecords", "record", "gz"],
);

/// Opens the desktop's file dialog in the last used folder, without blocking. macOS shows blocking dialogs only on its
/// main thread.
pub(crate) fn pick(shared: &Arc<Shared>, request: FileRequest) {
    let (sender, promise) = Promise::new();
    shared.dialogs.lock().push(promise);
    shared.spawn("file dialog", move |shared| {
        let begun = Instant::now();
        let folder = shared.last_folder.lock().clone();
        // Every request needs a result, so a panic of the dialog is reported as well.
        let pick = match guarded(|| Ok(block_on(ask(&request, folder)))) {
            Ok(Some(paths)) => {
                if let Some(path) = paths.first() {
                    remember_folder(shared, path);
                }
                FilePick::Picked(request, paths)
            }
            Err(reason) => FilePick::Unavailable { request, reason },
            Ok(None) if begun.elapsed() < SOONER_THAN_A_PERSON => {
                let reason = "No file dialog is available on this desktop".to_owned();
                FilePick::Unavailable { request, reason }
            }
            Ok(None) => FilePick::Cancelled,
        };
        sender.send(pick);
        shared.waker.wake();
    });
}

/// Remembers the folder of the last opened path for the next file dialog.
pub(crate) fn remember_folder(shared: &Shared, path: &Path) {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    if let Some(folder) = folder {
        *shared.last_folder.lock() = Some(folder.to_owned());
    }
}

async fn ask(request: &FileRequest, folder: Option<PathBuf>) -> Option<Vec<PathBuf>> {
    let mut dialog = AsyncFileDialog::new().set_title(request.title());
    if let Some(folder) = folder {
        dialog = dialog.set_directory(folder);
    }
    if let Some((kind, extensions)) = file_kind(request) {
        dialog = dialog.add_filter(kind, extensions);
    }
    let picked = match request {
        FileRequest::Images => dialog.pick_files().await?,
        FileRequest::Folder | FileRequest::MovedFolder | FileRequest::Annotations(AnnotationsPick::Folder) => {
            vec![dialog.pick_folder().await?]
        }
        FileRequest::ProjectTarget { name }
        | FileRequest::SecondPassTarget { name }
        | FileRequest::MergeTarget { name }
        | FileRequest::ExportTarget { name }
        | FileRequest::ImageTarget { name } => {
            vec![dialog.set_file_name(name).save_file().await?]
        }
        _ => vec![dialog.pick_file().await?],
    };
    Some(picked.iter().map(|file| file.path().to_owned()).collect())
}

fn file_kind(request: &FileRequest) -> Option<FileKind> {
    Some(match request {
        FileRequest::Images => ("Images", &IMAGE_EXTENSIONS),
        FileRequest::Model | FileRequest::Weights(_) => ("ONNX models", &["onnx"]),
        FileRequest::Annotations(AnnotationsPick::File) => ANNOTATIONS,
        FileRequest::Annotations(AnnotationsPick::ClassMap) => ("CSV files", &["csv"]),
        FileRequest::Labels => ("Label files", &LABEL_EXTENSIONS),
        FileRequest::Mapping => ("Output mappings", &["toml"]),
        FileRequest::Project
        | FileRequest::ProjectTarget { .. }
        | FileRequest::SecondPassTarget { .. }
        | FileRequest::MergedProject
        | FileRequest::MergeTarget { .. } => ("Spotcheck projects", &[PROJECT_EXTENSION]),
        FileRequest::ImageTarget { .. } => ("PNG or JPEG", &["png", "jpg", "jpeg"]),
        FileRequest::Folder
        | FileRequest::MovedFolder
        | FileRequest::ExportTarget { .. }
        | FileRequest::Annotations(AnnotationsPick::Folder) => return None,
    })
}

/// Waits on this thread, which has nothing else to do.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(crate) fn reveal(shared: &Arc<Shared>, uri: SampleUri) {
    shared.spawn("show in file manager", move |shared| {
        if let Err(error) = opener::reveal(uri.file()) {
            shared.report_problem(format!("Could not open a file manager; the image is here: {uri} ({error})"));
        }
    });
}

pub(crate) fn open_manual(shared: &Arc<Shared>) {
    shared.spawn("open the manual", |shared| {
        let Some(page) = shipped("docs/README.md") else {
            let advice = "The manual is not next to the program; open `docs/README.md` in Spotcheck's source code";
            return shared.report_problem(advice);
        };
        if let Err(error) = open_file(&page) {
            shared.report_problem(format!("Could not open the manual {}: {error}", page.display()));
        }
    });
}

pub(crate) fn open_log(shared: &Arc<Shared>) {
    shared.spawn("open the log", |shared| {
        let path = shared.dirs.log_file();
        if let Err(error) = open_file(&path) {
            shared.report_problem(format!("Could not open the log file {}: {error}", path.display()));
        }
    });
}

fn open_file(path: &Path) -> Result<(), String> {
    if !path.exists() {
        return Err("nothing has been written yet".to_owned());
    }
    opener::open(path).map_err(|error| error.to_string())
}

pub(crate) fn copy_text(shared: &Shared, text: String, notice: String) {
    shared.deliver(Delivery::CopyText(text));
    shared.report(Event::Notice(notice));
}

impl DrawnPrediction {
    fn over(&self, image: &RgbImage) -> RgbImage {
        let Self { prediction, view, confirmed, truth } = self;
        let visible = view.visible_detections(prediction, confirmed);
        let shown: Vec<(usize, usize)> = visible.into_iter().map(|index| (index, index)).collect();
        let marks = truth.as_ref().map_or_else(TruthMarks::default, |truth| {
            let objects = if truth.shows_objects { DrawnObjects::All } else { DrawnObjects::None };
            TruthMarks::new(&truth.outcomes, truth.sample, prediction, &shown, objects)
        });
        annotate(image, prediction, view, confirmed, &marks)
    }
}

/// Copies the image at full size with what is drawn over it: to the clipboard, or to a new file.
pub(crate) fn copy_image(
    shared: &Arc<Shared>,
    source: SourceId,
    uri: SampleUri,
    drawn: Option<DrawnPrediction>,
    to: Option<PathBuf>,
) {
    shared.spawn("copy the image", move |shared| {
        let Some(source) = shared.source(source) else {
            return;
        };
        let image = source
            .read(&uri)
            .map_err(|error| error.to_string())
            .and_then(|bytes| decode::decode_for_display(&bytes, &shared.limits()).map_err(|error| error.to_string()));
        match image {
            Ok(displayed) => {
                let image = match &drawn {
                    Some(drawn) => drawn.over(&displayed.image),
                    None => displayed.image,
                };
                if let Some(path) = to {
                    save_image(shared, &image, &path);
                } else {
                    shared.deliver(Delivery::CopyImage(image));
                    shared.report(Event::Notice("Copied the image".to_owned()));
                }
            }
            Err(reason) => shared.report_problem(format!("Could not copy the image: {reason}")),
        }
    });
}

fn save_image(shared: &Shared, image: &RgbImage, path: &Path) {
    let saved = if path.exists() {
        Err("a file with this name exists, and images are never replaced".to_owned())
    } else if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Err("the folder does not exist".to_owned())
    } else {
        write_image(image, path).map_err(|error| error.to_string())
    };
    match saved {
        Ok(()) => drop(shared.report(Event::Notice(format!("Saved {}", path.display())))),
        Err(reason) => shared.report_problem(format!(
            "Could not save the image: {reason}. Choose another name or folder: {}",
            path.display()
        )),
    }
}

/// Restarts the program with the same arguments and closes this window.
pub(crate) fn restart(shared: &Arc<Shared>) {
    shared.spawn("restart", |shared| {
        let started = std::env::current_exe()
            .and_then(|program| std::process::Command::new(program).args(std::env::args_os().skip(1)).spawn());
        match started {
            Ok(_) => drop(shared.deliver(Delivery::Close)),
            Err(error) => {
                shared.report_problem(format!("Could not restart Spotcheck; close it and start it again: {error}"));
            }
        }
    });
}

/// Copies diagnostics for a bug report, without secrets.
pub(crate) fn copy_diagnostics(shared: &Arc<Shared>, runtime_library: Option<PathBuf>, lines: Vec<String>) {
    shared.spawn("collect diagnostics", move |shared| {
        let mut text = diagnostics(&shared.dirs, runtime_library.as_deref());
        text.extend(lines);
        text.push(format!("log: {}", shared.dirs.log_file().display()));
        text.push(String::new());
        shared.deliver(Delivery::CopyText(text.join("\n")));
        shared.report(Event::Notice("Copied the diagnostics".to_owned()));
    });
}
