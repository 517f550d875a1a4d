//! File dialogs, the file manager, the clipboard, the log: the rest of the desktop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use poll_promise::Promise;
use rfd::AsyncFileDialog;

use super::{Delivery, Shared, guarded};
use crate::decode;
use crate::domain::{Prediction, RgbImage, SampleUri, ViewSettings};
use crate::export::{DrawnObjects, TruthMarks, annotate};
use crate::state::{AnnotationsPick, DrawnTruth, Event, FilePick, SourceId};

/// A dialog that ends without a prediction sooner than a person can click was never shown.
const SOONER_THAN_A_PERSON: Duration = Duration::from_millis(250);

const PROJECT_EXTENSION: &str = "spotcheck";

const LABEL_EXTENSIONS: [&str; 6] = ["txt", "names", "pbtxt", "json", "yaml", "yml"];

/// Files of ground truth and predictions.
pub(super) const ANNOTATION_EXTENSIONS: [&str; 10] =
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

pub(super) fn pick_folder(shared: &Arc<Shared>) {
    pick_a_folder(shared, "Open folder", FilePick::Folder);
}

pub(super) fn pick_images(shared: &Arc<Shared>) {
    pick(shared, async |dialog| {
        let files = dialog.set_title("Open images").add_filter("Images", &IMAGE_EXTENSIONS).pick_files().await?;
        let paths = files.iter().map(|file| file.path().to_owned());
        Some(FilePick::Files(paths.collect()))
    });
}

pub(super) fn pick_model(shared: &Arc<Shared>) {
    pick_file(shared, "Add a model", ONNX, FilePick::Model);
}

pub(super) fn pick_labels(shared: &Arc<Shared>) {
    pick_file(shared, "Names of the classes", ("Label files", &LABEL_EXTENSIONS), FilePick::Labels);
}

pub(super) fn pick_weights(shared: &Arc<Shared>, id: String) {
    pick_file(shared, "Use a file of the model", ONNX, |path| FilePick::Weights(id, path));
}

pub(super) fn pick_mapping(shared: &Arc<Shared>) {
    pick_file(shared, "Load a mapping", ("Output mappings", &["toml"]), FilePick::Mapping);
}

pub(super) fn pick_annotations(shared: &Arc<Shared>, pick: AnnotationsPick) {
    let picked = move |path| FilePick::Annotations(pick, path);
    match pick {
        AnnotationsPick::File => pick_file(shared, "Choose a file", ANNOTATIONS, picked),
        AnnotationsPick::Folder => pick_a_folder(shared, "Choose a folder", picked),
        AnnotationsPick::ClassMap => pick_file(shared, "Corrections of classes", ("CSV files", &["csv"]), picked),
    }
}

pub(super) fn pick_project(shared: &Arc<Shared>) {
    pick_file(shared, "Open project", ("Spotcheck projects", &[PROJECT_EXTENSION]), FilePick::Project);
}

/// A kind of file: its name and the endings of its files.
type FileKind = (&'static str, &'static [&'static str]);

const ANNOTATIONS: FileKind = (
    "Annotations",
    &["json", "jsonl", "csv", "tsv", "yaml", "yml", "xml", "txt", "tfrecord", "tfrecords", "record", "gz"],
);

const ONNX: FileKind = ("ONNX models", &["onnx"]);

fn pick_file(
    shared: &Arc<Shared>,
    title: &'static str,
    (kind, endings): FileKind,
    picked: impl FnOnce(PathBuf) -> FilePick + Send + 'static,
) {
    pick(shared, async move |dialog| {
        let file = dialog.set_title(title).add_filter(kind, endings).pick_file().await?;
        Some(picked(file.path().to_owned()))
    });
}

fn pick_a_folder(shared: &Arc<Shared>, title: &'static str, picked: impl FnOnce(PathBuf) -> FilePick + Send + 'static) {
    pick(shared, async move |dialog| {
        let folder = dialog.set_title(title).pick_folder().await?;
        Some(picked(folder.path().to_owned()))
    });
}

pub(super) fn pick_project_target(shared: &Arc<Shared>, stem: &str) {
    let name = format!("{stem}.{PROJECT_EXTENSION}");
    pick(shared, async move |dialog| {
        let file = dialog
            .set_title("Save project as")
            .add_filter("Spotcheck projects", &[PROJECT_EXTENSION])
            .set_file_name(name)
            .save_file()
            .await?;
        Some(FilePick::ProjectTarget(file.path().to_owned()))
    });
}

pub(super) fn pick_export_target(shared: &Arc<Shared>, name: String) {
    pick(shared, async move |dialog| {
        let dialog = dialog.set_title("Export to").set_file_name(name);
        let file = dialog.save_file().await?;
        Some(FilePick::ExportTarget(file.path().to_owned()))
    });
}

pub(super) fn pick_moved_folder(shared: &Arc<Shared>) {
    pick_a_folder(shared, "New folder of the images", FilePick::MovedFolder);
}

/// The dialogs that do not block: macOS shows the others on its main thread only.
fn pick(shared: &Arc<Shared>, ask: impl AsyncFnOnce(AsyncFileDialog) -> Option<FilePick> + Send + 'static) {
    let (sender, promise) = Promise::new();
    shared.dialogs.lock().push(promise);
    shared.spawn("file dialog", move |shared| {
        let begun = Instant::now();
        // A promise must be kept, so a panic of the dialog is reported as a result too.
        let pick = match guarded(|| Ok(block_on(ask(AsyncFileDialog::new())))) {
            Ok(Some(pick)) => pick,
            Err(reason) => FilePick::Unavailable(reason),
            Ok(None) if begun.elapsed() < SOONER_THAN_A_PERSON => FilePick::Unavailable(
                "Your desktop could not show a file dialog (it offers no file chooser portal). Type the \
                 path into the field above the thumbnails, or drop a folder on the window"
                    .to_owned(),
            ),
            Ok(None) => FilePick::Cancelled,
        };
        sender.send(pick);
        shared.waker.wake();
    });
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

pub(super) fn reveal(shared: &Arc<Shared>, uri: SampleUri) {
    shared.spawn("show in file manager", move |shared| {
        if let Err(error) = opener::reveal(uri.file()) {
            shared.report_problem(format!("Could not open a file manager; the image is here: {uri} ({error})"));
        }
    });
}

pub(super) fn open_manual(shared: &Arc<Shared>) {
    shared.spawn("open the manual", |shared| {
        let Some(page) = super::browse::shipped("docs/README.md", "docs/README.md") else {
            let advice = "The manual is not beside the program; open `docs/README.md` of Spotcheck's sources";
            return shared.report_problem(advice);
        };
        if let Err(error) = open_file(&page) {
            shared.report_problem(format!("Could not open the manual {}: {error}", page.display()));
        }
    });
}

pub(super) fn open_log(shared: &Arc<Shared>) {
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

pub(super) fn copy_text(shared: &Shared, text: String, notice: String) {
    shared.deliver(Delivery::CopyText(text));
    shared.report(Event::Notice(notice));
}

/// What is drawn over an image, as on screen.
pub(super) struct Drawn {
    pub(super) prediction: Prediction,
    pub(super) view: ViewSettings,
    pub(super) confirmed: Vec<u32>,
    pub(super) truth: Option<DrawnTruth>,
}

impl Drawn {
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

/// The image at full size with what is drawn over it.
pub(super) fn copy_image(shared: &Arc<Shared>, source: SourceId, uri: SampleUri, drawn: Option<Drawn>) {
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
                shared.deliver(Delivery::CopyImage(image));
                shared.report(Event::Notice("Copied the image".to_owned()));
            }
            Err(reason) => shared.report_problem(format!("Could not copy the image: {reason}")),
        }
    });
}

/// Starts the program again with the same arguments and closes this window.
pub(super) fn restart(shared: &Arc<Shared>) {
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
