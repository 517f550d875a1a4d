//! COCO's dataset format (<https://cocodataset.org/#format-data>) with a `score` in each annotation: it opens as a
//! dataset, and `loadRes` can read its annotations.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::file_names::FileNames;
use super::row::{ChosenImage, ExportContext, InsideBox};
use super::tally::Tally;
use super::target::{ExportTarget, JsonEntries, WholeFile};
use super::{ExportError, Writer};
use crate::domain::{BoundingBox, Verdict};
use crate::project::export::options::{ExportOptions, VerdictChoice};

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
    /// Empty: CVAT requires the key.
    segmentation: [f32; 0],
    iscrowd: u8,
    score: f32,
    /// `person` if the box, or its category, is not the model's.
    author: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_class: Option<&'r str>,
    /// The model's class, if `category_id` is the class of a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_category_id: Option<u32>,
    /// The model's box, if `bbox` is a person's: left, top, width, height in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_bbox: Option<[f32; 4]>,
}

#[derive(Serialize)]
struct Category<'r> {
    id: u32,
    name: &'r str,
    supercategory: &'static str,
}

/// Images are written as they come; annotations go to a second file that is appended at the end.
pub(super) struct CocoWriter {
    images: JsonEntries<WholeFile>,
    annotations: JsonEntries<BufWriter<File>>,
    /// The model's ids and names, new ones, and those that only a prediction has.
    categories: BTreeMap<u32, String>,
    /// The difference between a category's id and the model's.
    id_offset: u32,
    names: FileNames,
}

impl CocoWriter {
    pub(super) fn create(
        target: &ExportTarget,
        context: &ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let mut file = WholeFile::create(target)?;
        let annotations = file.entries()?;
        let info = serde_json::json!({
            "description": format!(
                "Predictions of {} over {}", context.run.card.name, context.source_name
            ),
            "version": env!("CARGO_PKG_VERSION"),
            "contributor": "Spotcheck",
            "run": context.run.name,
            "model": context.run.card.id,
        });
        let head = format!("{{\"info\":{info},\"licenses\":[],\"images\":[");
        file.write_all(head.as_bytes()).map_err(ExportError::write(file.path()))?;
        let categories: BTreeMap<u32, String> = context.classes().into_iter().collect();
        // CVAT and Datumaro drop the class of labels in category 0.
        let starts_at_0 = categories.first_key_value().is_none_or(|(id, _)| *id == 0);
        let id_offset = u32::from(options.verdicts == VerdictChoice::Corrected && starts_at_0);
        Ok(Self {
            images: JsonEntries { file, len: 0 },
            annotations,
            categories,
            id_offset,
            names: FileNames::default(),
        })
    }

    fn failed(&self) -> impl Fn(io::Error) -> ExportError + use<> {
        ExportError::write(self.images.file.path())
    }

    fn write_annotation(&mut self, image_id: u64, found: &InsideBox) -> Result<(), ExportError> {
        let InsideBox { chosen, bounds } = found;
        self.categories.entry(chosen.class_id).or_insert_with(|| chosen.label.to_owned());
        let annotation = Annotation {
            id: self.annotations.len + 1,
            image_id,
            category_id: chosen.class_id.saturating_add(self.id_offset),
            bbox: [bounds.x1, bounds.y1, bounds.width(), bounds.height()],
            area: bounds.area(),
            segmentation: [],
            iscrowd: 0,
            score: chosen.score,
            author: chosen.author(),
            verdict: chosen.verdict.map(Verdict::into_str),
            right_class: chosen.verdict.and_then(Verdict::right_class),
            model_category_id: chosen
                .is_relabeled()
                .then_some(chosen.detection.class_id.saturating_add(self.id_offset)),
            model_bbox: (chosen.bounds != chosen.detection.bounds).then(|| {
                let BoundingBox { x1, y1, .. } = chosen.detection.bounds;
                [x1, y1, chosen.detection.bounds.width(), chosen.detection.bounds.height()]
            }),
        };
        self.annotations.push(&annotation).map_err(self.failed())
    }
}

impl Writer for CocoWriter {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let Some(([width, height], boxes)) = image.inside_boxes(tally) else {
            return Ok(());
        };
        let row = image.row;
        let id = self.images.len + 1;
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
            width,
            height,
            verdict: row.verdict.as_ref().map(Verdict::into_str),
            note: row.note.as_deref(),
            tags: row.tags.iter().map(String::as_str).collect(),
        };
        self.images.push(&entry).map_err(self.failed())?;
        tally.images += 1;
        tally.boxes += boxes.len() as u64;
        boxes.iter().try_for_each(|found| self.write_annotation(id, found))
    }

    fn finish(self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError> {
        let failed = self.failed();
        let Self { images, annotations, categories, id_offset, .. } = *self;
        tally.moves_category_ids = id_offset > 0;
        let categories = categories.iter().map(|(id, name)| (id.saturating_add(id_offset), name));
        let categories: Vec<Category> = categories.map(|(id, name)| Category { id, name, supercategory: "" }).collect();
        let categories = serde_json::to_string(&categories).expect("numbers, strings and lists always serialize");
        let mut file = images.file;
        write!(file, "\n],\"categories\":{categories},\"annotations\":[")
            .and_then(|()| annotations.append_to(&mut file))
            .and_then(|()| file.write_all(b"\n]}\n"))
            .map_err(failed)?;
        file.commit()
    }
}
