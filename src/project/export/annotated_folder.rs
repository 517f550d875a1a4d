//! A folder of annotated images.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::annotated::{DrawnObjects, TruthMarks};
use super::file_names::{FileNames, safe_stem};
use super::image_pool::{ImagePool, Job};
use super::row::{ChosenContent, ChosenImage, ExportContext};
use super::tally::Tally;
use super::target::{ExportTarget, FOLDER_MARK, WholeFolder};
use super::{ExportError, Writer, dataset_folder::folder_mark};
use crate::domain::{Prediction, Problem, Sample, ViewSettings};
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::project::export::options::{AnnotatedKind, ExportOptions};

/// Written by `predict` while it runs. The folder's structure is that of the source; JPEG and PNG files keep their
/// names, other formats become `NAME.png`.
pub struct AnnotatedFolder {
    folder: PathBuf,
    names: FileNames,
    pool: ImagePool,
}

#[derive(Debug, thiserror::Error)]
pub enum AnnotatedFolderError {
    #[error("this folder contains the source images, which would be overwritten; choose another one")]
    InsideSource,
    #[error("the folder contains files that Spotcheck did not write and could overwrite; choose an empty folder")]
    Foreign,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl AnnotatedFolder {
    /// Creates the folder if it does not exist, and marks it as one whose files can be replaced.
    ///
    /// # Errors
    /// It cannot be created, it is the folder of the images, or it contains files but no mark.
    pub fn create(
        folder: &Path,
        source: &Arc<dyn Source>,
        limits: &DecodeLimits,
        view: &ViewSettings,
    ) -> Result<Self, AnnotatedFolderError> {
        std::fs::create_dir_all(folder)?;
        if Path::new(&source.name())
            .canonicalize()
            .is_ok_and(|root| folder.canonicalize().is_ok_and(|target| target == root))
        {
            return Err(AnnotatedFolderError::InsideSource);
        }
        let mark = folder.join(FOLDER_MARK);
        if !mark.is_file() {
            if folder.read_dir()?.next().is_some() {
                return Err(AnnotatedFolderError::Foreign);
            }
            std::fs::write(mark, "{}\n")?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            names: FileNames::default(),
            pool: ImagePool::start(source, limits, view),
        })
    }

    /// Queues one image; waits if the queue is full.
    pub fn add(&mut self, sample: &Sample, prediction: Prediction) {
        let name = image_name(&mut self.names, &sample.name, AnnotatedKind::AsImage);
        let marks = TruthMarks::default();
        self.pool.add(Job { uri: sample.uri.clone(), target: self.folder.join(name), prediction, marks });
    }

    /// Waits for the last image and returns those that could not be written.
    pub fn finish(self) -> Vec<Problem> {
        self.pool.finish().0
    }
}

/// The export of annotated images: only predicted images, and only what was selected.
pub(super) struct AnnotatedWriter<'c> {
    /// Dropped before the folder, so that no thread writes into it while it is deleted.
    pool: ImagePool,
    folder: WholeFolder,
    context: &'c ExportContext,
    options: ExportOptions,
    names: FileNames,
    target: ExportTarget,
}

impl<'c> AnnotatedWriter<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let everything = ViewSettings { min_score: 0.0, top_k: usize::MAX, ..ViewSettings::default() };
        let folder = WholeFolder::create(target)?;
        Ok(Self {
            pool: ImagePool::start(&context.source, &context.limits, &everything),
            folder,
            context,
            options,
            names: FileNames::default(),
            target: target.clone(),
        })
    }

    /// For the drawn boxes, if the run was evaluated.
    fn marks(&self, image: &ChosenImage) -> TruthMarks {
        let shown: Vec<(usize, usize)> = image.boxes().iter().map(|chosen| chosen.index).enumerate().collect();
        let (Some(Ok(stored)), Some(truth)) = (&image.row.result, &self.context.truth) else {
            return TruthMarks::default();
        };
        truth.samples.get(&image.row.sample.uri).map_or_else(TruthMarks::default, |&sample| {
            TruthMarks::new(&truth.outcomes, sample, stored, &shown, DrawnObjects::All)
        })
    }
}

impl Writer for AnnotatedWriter<'_> {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let Some(prediction) = image.predicted(tally) else {
            return Ok(());
        };
        let boxes = match &prediction.content {
            ChosenContent::Boxes(boxes) => boxes.iter().filter(|chosen| chosen.clipped.is_some()).count(),
            ChosenContent::Classes(classes) => classes.len(),
        };
        if let Some(halt) = self.pool.take_error() {
            return Err(halt.into_error(&self.target.path));
        }
        let sample = &image.row.sample;
        let name = image_name(&mut self.names, &sample.name, self.options.annotated_kind);
        tally.images += 1;
        tally.boxes += boxes as u64;
        let target = self.folder.partial().join(name);
        let (prediction, marks) = (prediction.to_prediction(), self.marks(image));
        self.pool.add(Job { uri: sample.uri.clone(), target, prediction, marks });
        Ok(())
    }

    fn finish(self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError> {
        let Self { pool, folder, context, options, target, .. } = *self;
        let (problems, halt) = pool.finish();
        if let Some(halt) = halt {
            return Err(halt.into_error(&target.path));
        }
        tally.images = tally.images.saturating_sub(problems.len() as u64);
        tally.problems.extend(problems);
        let mark = folder_mark(context, options, tally);
        folder.write(FOLDER_MARK, mark.as_bytes()).map_err(ExportError::write(&target.path))?;
        folder.commit()
    }
}

/// The sample's name with a supported extension; numbered if two samples share it.
fn image_name(names: &mut FileNames, name: &str, kind: AnnotatedKind) -> String {
    let (stem, extension) = safe_stem(name);
    match (kind, extension.to_ascii_lowercase().as_str()) {
        (AnnotatedKind::Png, _) | (AnnotatedKind::AsImage, "") => names.free(&stem, "png"),
        (AnnotatedKind::Jpeg, _) => names.free(&stem, "jpg"),
        (AnnotatedKind::AsImage, "jpg" | "jpeg" | "png") => names.free(&stem, &extension),
        (AnnotatedKind::AsImage, _) => names.free(&format!("{stem}.{extension}"), "png"),
    }
}
