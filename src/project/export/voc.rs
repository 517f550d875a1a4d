//! Pascal VOC: one XML file per image, as written by `LabelImg` and the development kit.
//!
//! Pixels are counted from 1 and edges are inclusive (the kit's `VOCdevkit`: a box covers `xmax - xmin + 1` columns). A
//! box from `x1` to `x2`, measured from the image's left edge, therefore has `xmin = round(x1) + 1` and `xmax =
//! round(x2)`; `supervision` reads and writes the same.
//!
//! ```text
//! Annotations/sub/photo.xml  JPEGImages/sub/photo.jpg (copies, if requested)
//! ImageSets/Main/default.txt: the names of all images     dataset_meta.json: the names of all classes
//! images.csv: the label file of each image
//! ```
//!
//! CVAT and Datumaro, its library, read the list of images, and only classes in `dataset_meta.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use quick_xml::Writer as Xml;

use super::dataset_folder::{DatasetFolder, ImageNames, Places};
use super::row::{ChosenImage, ExportContext, InsideBox};
use super::tally::Tally;
use super::target::ExportTarget;
use super::{ExportError, Writer};
use crate::annotations::dataset_files::{VOC_CLASSES, XmlBytes, whole_pixels, write_object, xml_text as text};
use crate::domain::Verdict;
use crate::project::export::options::ExportOptions;

pub(super) struct VocWriter<'c> {
    folder: DatasetFolder<'c>,
    images: BufWriter<File>,
    /// The model's ids and names, new ones, and those that only a prediction has.
    classes: BTreeMap<u32, String>,
    context: &'c ExportContext,
    target: ExportTarget,
}

impl<'c> VocWriter<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let places = Places { labels: "Annotations", extension: "xml", images: "JPEGImages" };
        let folder = DatasetFolder::create(target, context, options, places)?;
        let images = BufWriter::new(folder.create_file("ImageSets/Main/default.txt")?);
        let classes = context.classes().into_iter().collect();
        Ok(Self { folder, images, classes, context, target: target.clone() })
    }

    fn xml(&self, image: &ChosenImage, names: &ImageNames, size: [u32; 2], boxes: &[InsideBox]) -> io::Result<Vec<u8>> {
        let mut xml = Xml::new_with_indent(Vec::new(), b'\t', 1);
        let folder = names.image.rsplit_once('/').map_or("", |(folder, _)| folder);
        xml.create_element("annotation").write_inner_content(|xml| {
            text(xml, "folder", folder)?;
            // With its folders, as CVAT writes and reads it.
            text(xml, "filename", &names.image)?;
            xml.create_element("source").write_inner_content(|xml| {
                text(xml, "database", &self.context.source_name)?;
                text(xml, "annotation", &self.context.run.name)
            })?;
            xml.create_element("size").write_inner_content(|xml| {
                text(xml, "width", &size[0].to_string())?;
                text(xml, "height", &size[1].to_string())?;
                text(xml, "depth", "3")
            })?;
            text(xml, "segmented", "0")?;
            write_judgment(xml, image.row.verdict.as_ref())?;
            if let Some(note) = &image.row.note {
                text(xml, "note", note)?;
            }
            for tag in &image.row.tags {
                text(xml, "tag", tag)?;
            }
            boxes.iter().try_for_each(|found| write_box(xml, found, size))
        })?;
        let mut bytes = xml.into_inner();
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Writer for VocWriter<'_> {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let Some((size, boxes)) = image.inside_boxes(tally) else {
            return Ok(());
        };
        let names = self.folder.name(image, tally);
        let failed = ExportError::write(&self.target.path);
        let xml = self.xml(image, &names, size, &boxes).map_err(&failed)?;
        for InsideBox { chosen, .. } in &boxes {
            self.classes.entry(chosen.class_id).or_insert_with(|| chosen.label.to_owned());
        }
        if self.folder.write_image(image, &names, &xml, boxes.len() as u64, tally)? {
            writeln!(self.images, "{}", names.label).map_err(&failed)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError> {
        self.images.flush().map_err(ExportError::write(&self.target.path))?;
        let labels: Vec<&String> = self.classes.values().collect();
        let classes = serde_json::json!({ "labels": labels });
        self.folder.write(VOC_CLASSES, format!("{classes:#}\n").as_bytes())?;
        self.folder.commit(tally)
    }
}

fn write_box(xml: &mut XmlBytes, found: &InsideBox, [width, height]: [u32; 2]) -> io::Result<()> {
    let InsideBox { chosen, bounds } = found;
    let [xmin, xmax] = inclusive(bounds.x1, bounds.x2, width);
    let [ymin, ymax] = inclusive(bounds.y1, bounds.y2, height);
    write_object(xml, chosen.label, [xmin, ymin, xmax, ymax].map(f64::from), |xml| {
        text(xml, "score", &chosen.score.to_string())?;
        text(xml, "author", chosen.author())?;
        write_judgment(xml, chosen.verdict)
    })
}

/// The first and last pixel, counted from 1, of an interval inside `0..=side`.
fn inclusive(low: f32, high: f32, side: u32) -> [u32; 2] {
    let [low, high] = whole_pixels([low, high].map(f64::from));
    [low as u32 + 1, high as u32].map(|pixel| pixel.min(side))
}

fn write_judgment(xml: &mut XmlBytes, verdict: Option<&Verdict>) -> io::Result<()> {
    if let Some(verdict) = verdict {
        text(xml, "verdict", verdict.into_str())?;
    }
    if let Some(right) = verdict.and_then(Verdict::right_class) {
        text(xml, "right_class", right)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_one_based_and_inclusive() {
        for (low, high, expected) in [
            (0.0, 10.0, [1, 10]),
            (0.0, 1.0, [1, 1]),
            (3.4, 7.6, [4, 8]),
            (9.7, 10.0, [10, 10]),
            (10.0, 10.0, [10, 10]),
            (4.2, 4.4, [5, 5]),
            (3.0, 3.5, [4, 4]),
            (3.5, 4.0, [4, 4]),
            (3.5, 4.5, [5, 5]),
        ] {
            assert_eq!(inclusive(low, high, 10), expected, "{low}..{high}");
        }
    }
}
