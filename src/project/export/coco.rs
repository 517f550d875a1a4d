//! COCO's dataset format (<https://cocodataset.org/#format-data>) with a `score` in each annotation: it opens as a
//! dataset, and `loadRes` can read its annotations.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use serde::Serialize;

use super::file_names::FileNames;
use super::row::{BoxesOfImage, ChosenBox, ChosenImage, ExportContext, right_class};
use super::tally::Tally;
use super::target::{ExportTarget, WholeFile};
use super::{ExportError, Writer};
use crate::domain::Verdict;

#[derive(Serialize)]
struct Image<'r> {
    id: u64,
    file_name: &'r str,
    width: u32,
    height: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'r str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'r str>,
}

#[derive(Serialize)]
struct Annotation<'r> {
    id: u64,
    image_id: u64,
    category_id: u32,
    /// Left, top, width, height in pixels, clipped to the image.
    bbox: [f32; 4],
    area: f32,
    iscrowd: u8,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_class: Option<&'r str>,
    /// The model's class, if `category_id` is the class of a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_category_id: Option<u32>,
}

#[derive(Serialize)]
struct Category<'r> {
    id: u32,
    name: &'r str,
    supercategory: &'static str,
}

/// Images are written as they come; annotations go to a second file that is appended at the end.
pub(crate) struct CocoWriter {
    images: WholeFile,
    annotations: BufWriter<File>,
    /// The model's ids and names, and those that only a prediction has.
    categories: BTreeMap<u32, String>,
    names: FileNames,
    next_image_id: u64,
    next_annotation_id: u64,
}

impl CocoWriter {
    pub(crate) fn create(target: &ExportTarget, context: &ExportContext) -> Result<Self, ExportError> {
        let images = WholeFile::create(target)?;
        let annotations = images.annex()?;
        let labels = context.run.labels.iter();
        let mut writer = Self {
            images,
            annotations,
            categories: labels.map(|(id, name)| (id, name.to_owned())).collect(),
            names: FileNames::default(),
            next_image_id: 1,
            next_annotation_id: 1,
        };
        let info = serde_json::json!({
            "description": format!(
                "Predictions of {} over {}", context.run.card.name, context.source_name
            ),
            "version": env!("CARGO_PKG_VERSION"),
            "contributor": "Spotcheck",
            "run": context.run.name,
            "model": context.run.card.id,
        });
        writer.put(|file, _| write!(file, "{{\"info\":{info},\"licenses\":[],\"images\":["))?;
        Ok(writer)
    }

    fn put(
        &mut self,
        put: impl FnOnce(&mut WholeFile, &mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), ExportError> {
        put(&mut self.images, &mut self.annotations).map_err(ExportError::write(self.images.path()))
    }

    fn write_annotation(&mut self, image_id: u64, chosen: &ChosenBox, tally: &mut Tally) -> Result<(), ExportError> {
        let Some(clipped) = chosen.clipped else {
            tally.outside += 1;
            return Ok(());
        };
        tally.boxes += 1;
        tally.relabeled += u64::from(chosen.is_relabeled());
        self.categories.entry(chosen.class_id).or_insert_with(|| chosen.label.to_owned());
        let id = self.next_annotation_id;
        self.next_annotation_id += 1;
        let annotation = Annotation {
            id,
            image_id,
            category_id: chosen.class_id,
            bbox: [clipped.x1, clipped.y1, clipped.width(), clipped.height()],
            area: clipped.area(),
            iscrowd: 0,
            score: chosen.detection.score,
            verdict: chosen.verdict.map(Verdict::into_str),
            right_class: right_class(chosen.verdict),
            model_category_id: chosen.is_relabeled().then_some(chosen.detection.class_id),
        };
        self.put(|_, annotations| write_entry(annotations, id, &annotation))
    }
}

impl Writer for CocoWriter {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let Some(BoxesOfImage { size, boxes }) = image.boxes(tally) else {
            return Ok(());
        };
        let row = image.row;
        let id = self.next_image_id;
        self.next_image_id += 1;
        // Two images in a list of files can share a name; a full path is unique, and works if joined to a folder.
        let file_name = if self.names.take(&row.sample.name) {
            &row.sample.name
        } else {
            tally.rename(&row.sample.name, row.sample.uri.as_str());
            row.sample.uri.as_str()
        };
        let entry = Image {
            id,
            file_name,
            width: size.0,
            height: size.1,
            verdict: row.verdict.as_ref().map(Verdict::into_str),
            note: row.note.as_deref(),
            tags: row.tags.iter().map(String::as_str).collect(),
        };
        self.put(|images, _| write_entry(images, id, &entry))?;
        tally.images += 1;
        for chosen in boxes {
            self.write_annotation(id, chosen, tally)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &mut Tally) -> Result<(), ExportError> {
        let categories: Vec<Category> =
            self.categories.iter().map(|(&id, name)| Category { id, name, supercategory: "" }).collect();
        let categories = serde_json::to_string(&categories).expect("numbers, strings and lists always serialize");
        self.put(|file, annotations| {
            write!(file, "\n],\"categories\":{categories},\"annotations\":[")?;
            annotations.flush()?;
            let annex = annotations.get_mut();
            annex.rewind()?;
            io::copy(annex, file)?;
            file.write_all(b"\n]}\n")
        })?;
        self.images.commit()
    }
}

/// A list element: number 1 is the first. One per line, so that the file is readable.
fn write_entry(file: &mut impl Write, number: u64, entry: &impl Serialize) -> io::Result<()> {
    file.write_all(if number == 1 { b"\n" } else { b",\n" })?;
    serde_json::to_writer(file, entry).map_err(io::Error::from)
}
