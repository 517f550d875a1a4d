//! Shared code of dataset formats with one file per image: names, copies of the images, the list of both, and the mark
//! of an export.

use std::fs::File;
use std::io::{self, BufWriter};

use super::ExportError;
use super::csv_table::{escape_formula, io_error};
use super::error::is_fatal;
use super::file_names::{FileNames, safe_stem};
use super::row::{ChosenImage, ExportContext};
use super::tally::Tally;
use super::target::{ExportTarget, FOLDER_MARK, WholeFolder};
use crate::annotations::dataset_files::{IMAGE_LIST, IMAGE_LIST_COLUMNS};
use crate::domain::Problem;
use crate::image::source::SourceError;
use crate::project::export::options::ExportOptions;

/// An unfinished folder with a label file, and possibly a copy, of each image.
pub(super) struct DatasetFolder<'c> {
    folder: WholeFolder,
    context: &'c ExportContext,
    options: ExportOptions,
    names: FileNames,
    places: Places,
    /// The label file of each image: their names can differ.
    images: csv::Writer<BufWriter<File>>,
}

/// The layout of the folder.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub labels: &'static str,
    /// The extension of the label files.
    pub extension: &'static str,
    pub images: &'static str,
}

/// The names of one image's files, relative to the folders in [`Places`], with `/` between their parts.
pub(super) struct ImageNames {
    /// The name of the label file, without folder and extension.
    pub label: String,
    /// The name of the image: that of its copy, or its own.
    pub image: String,
}

impl<'c> DatasetFolder<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
        places: Places,
    ) -> Result<Self, ExportError> {
        let folder = WholeFolder::create(target)?;
        let images = BufWriter::new(create_file(&folder, IMAGE_LIST)?);
        let images = csv::Writer::from_writer(images);
        let mut created = Self { folder, context, options, names: FileNames::default(), places, images };
        created.list(IMAGE_LIST_COLUMNS.map(str::to_owned))?;
        Ok(created)
    }

    /// Unique names. The label's name follows the image's, and the copy's follows the label's, because readers find one
    /// by the other.
    pub(super) fn name(&mut self, image: &ChosenImage, tally: &mut Tally) -> ImageNames {
        let name = &image.row.sample.name;
        let (stem, extension) = safe_stem(name);
        let file = self.names.free(&stem, self.places.extension);
        let label = file
            .strip_suffix(self.places.extension)
            .and_then(|stem| stem.strip_suffix('.'))
            .unwrap_or(&file)
            .to_owned();
        let own_stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        if label != own_stem {
            tally.rename(name, &file);
        }
        let copied_name = if extension.is_empty() { label.clone() } else { format!("{label}.{extension}") };
        ImageNames { image: if self.options.with_images { copied_name } else { name.clone() }, label }
    }

    /// Writes the label file and, if requested, the image's copy. Returns false for an unreadable image, which is
    /// listed and has neither.
    pub(super) fn write_image(
        &mut self,
        image: &ChosenImage,
        names: &ImageNames,
        content: &[u8],
        boxes: u64,
        tally: &mut Tally,
    ) -> Result<bool, ExportError> {
        let Places { labels, extension, images } = self.places;
        let uri = &image.row.sample.uri;
        if self.options.with_images {
            match self.context.source.read(uri) {
                Ok(bytes) => {
                    let copied = self.folder.write(&format!("{images}/{}", names.image), &bytes);
                    if !self.is_written(copied, image, tally)? {
                        return Ok(false);
                    }
                }
                Err(SourceError::Unreachable(reason)) => {
                    return Err(ExportError::SourceUnreachable(reason));
                }
                Err(error) => {
                    let message = format!("skipped: {error}");
                    tally.problems.push(Problem::new(uri.clone(), message));
                    return Ok(false);
                }
            }
        }
        let name = format!("{labels}/{}.{extension}", names.label);
        let is_written = self.is_written(self.folder.write(&name, content), image, tally)?;
        if is_written {
            tally.images += 1;
            tally.boxes += boxes;
            let uri = uri.as_str();
            self.list([&name, &names.image, uri].map(escape_formula))?;
        }
        Ok(is_written)
    }

    /// Writes a file of the dataset as a whole.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<(), ExportError> {
        self.folder.write(name, content).map_err(ExportError::write(self.folder.partial()))
    }

    /// Creates a file of the dataset as a whole, and the folders above it.
    pub(super) fn create_file(&self, name: &str) -> Result<File, ExportError> {
        create_file(&self.folder, name)
    }

    fn list(&mut self, cells: [String; 3]) -> Result<(), ExportError> {
        self.images.write_record(cells).map_err(|error| ExportError::write(self.folder.partial())(io_error(error)))
    }

    pub(super) fn commit(mut self, tally: &Tally) -> Result<(), ExportError> {
        self.images.flush().map_err(ExportError::write(self.folder.partial()))?;
        let mark = folder_mark(self.context, self.options, tally);
        self.write(FOLDER_MARK, mark.as_bytes())?;
        self.folder.commit()
    }

    /// False if only this file could not be written, which is listed; an error if no other could either.
    fn is_written(&self, result: io::Result<()>, image: &ChosenImage, tally: &mut Tally) -> Result<bool, ExportError> {
        match result {
            Ok(()) => Ok(true),
            Err(error) if is_fatal(&error) => Err(ExportError::write(self.folder.partial())(error)),
            Err(error) => {
                let message = format!("skipped, because its file could not be written: {error}");
                let uri = image.row.sample.uri.clone();
                tally.problems.push(Problem::new(uri, message));
                Ok(false)
            }
        }
    }
}

fn create_file(folder: &WholeFolder, name: &str) -> Result<File, ExportError> {
    let path = folder.partial().join(name);
    let create = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        File::create(&path)
    };
    create().map_err(ExportError::write(folder.partial()))
}

/// A description of the folder's content and origin for people and programs, which also marks it as an export.
pub(super) fn folder_mark(context: &ExportContext, options: ExportOptions, tally: &Tally) -> String {
    let mark = serde_json::json!({
        "spotcheck": env!("CARGO_PKG_VERSION"),
        "source": context.source_name,
        "run": context.run.name,
        "key": context.run.key,
        "view": context.view,
        "options": options,
        "images": tally.images,
        "boxes": tally.boxes,
        "notes": tally.notes(options.format, context.task()),
    });
    format!("{mark:#}\n")
}
