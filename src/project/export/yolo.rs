//! YOLO: one text file per image with one line per box, `class x_center y_center width height`, as fractions of the
//! image's size, as described by Ultralytics (<https://docs.ultralytics.com/datasets/detect/>).
//!
//! ```text
//! labels/sub/photo.txt   images/sub/photo.jpg (copies, if requested)
//! data.yaml              classes.txt     classes.csv: YOLO's ids, which start at 0, next to the model's
//! images.csv             the label file of each image
//! authors.csv            the lines of label files with the box or class of a person; the others are the model's
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;

use super::csv_table::{escape_formula, io_error};
use super::dataset_folder::{DatasetFolder, Places};
use super::row::{ChosenImage, ExportContext, InsideBox};
use super::tally::Tally;
use super::target::ExportTarget;
use super::{ExportError, Writer};
use crate::annotations::dataset_files::yolo_label_text;
use crate::domain::BoundingBox;
use crate::project::export::options::ExportOptions;

pub(super) struct YoloWriter<'c> {
    folder: DatasetFolder<'c>,
    with_scores: bool,
    classes: Classes,
    authors: csv::Writer<BufWriter<File>>,
    target: ExportTarget,
}

/// YOLO counts classes from 0 without gaps: the model's in the order of their ids, new ones, then those without a label,
/// in order of occurrence.
struct Classes {
    model_ids_and_names: Vec<(u32, String)>,
    yolo_ids: HashMap<u32, usize>,
}

impl Classes {
    fn new(context: &ExportContext) -> Self {
        let model_ids_and_names = context.classes();
        let yolo_ids = model_ids_and_names.iter().enumerate();
        Self { yolo_ids: yolo_ids.map(|(yolo_id, (id, _))| (*id, yolo_id)).collect(), model_ids_and_names }
    }

    fn yolo_id(&mut self, class_id: u32, label: &str) -> usize {
        let known = &mut self.model_ids_and_names;
        *self.yolo_ids.entry(class_id).or_insert_with(|| {
            known.push((class_id, label.to_owned()));
            known.len() - 1
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.model_ids_and_names.iter().map(|(_, name)| name.as_str())
    }

    fn data_yaml(&self) -> String {
        // Without `path`, Ultralytics looks next to this file; a relative one starts at its current folder. CVAT takes
        // `nc` for a split.
        let mut yaml = "train: images\nval: images\nnames:\n".to_owned();
        for (yolo_id, name) in self.names().enumerate() {
            let _ = writeln!(yaml, "  {yolo_id}: {}", yaml_text(name));
        }
        yaml
    }

    /// The text of the file, one name per line.
    fn text(&self) -> String {
        self.names().map(|name| name.replace(['\r', '\n'], " ") + "\n").collect()
    }

    fn table(&self) -> csv::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(["yolo_id", "model_class_id", "label"])?;
        for (yolo_id, (class_id, name)) in self.model_ids_and_names.iter().enumerate() {
            table.write_record([yolo_id.to_string(), class_id.to_string(), escape_formula(name)])?;
        }
        table.into_inner().map_err(|error| error.into_error().into())
    }
}

impl<'c> YoloWriter<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let places = Places { labels: "labels", extension: "txt", images: "images" };
        let folder = DatasetFolder::create(target, context, options, places)?;
        let authors = csv::Writer::from_writer(BufWriter::new(folder.create_file("authors.csv")?));
        let (with_scores, classes) = (options.yolo_scores, Classes::new(context));
        let mut writer = Self { folder, with_scores, classes, authors, target: target.clone() };
        writer.author(["label", "line", "author"])?;
        Ok(writer)
    }

    fn author(&mut self, cells: [&str; 3]) -> Result<(), ExportError> {
        self.authors.write_record(cells).map_err(|error| ExportError::write(&self.target.path)(io_error(error)))
    }
}

impl Writer for YoloWriter<'_> {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let Some((size, boxes)) = image.inside_boxes(tally) else {
            return Ok(());
        };
        let mut lines = String::new();
        for InsideBox { chosen, bounds } in &boxes {
            let yolo_id = self.classes.yolo_id(chosen.class_id, chosen.label);
            let _ = write!(lines, "{yolo_id} {}", yolo_label_text(center_and_size(*bounds, size)));
            if self.with_scores {
                let _ = write!(lines, " {}", chosen.score);
            }
            lines.push('\n');
        }
        let names = self.folder.name(image, tally);
        if self.folder.write_image(image, &names, lines.as_bytes(), boxes.len() as u64, tally)? {
            let label = escape_formula(&format!("labels/{}.txt", names.label));
            for (line, InsideBox { chosen, .. }) in (1..).zip(&boxes).filter(|(_, found)| found.chosen.is_by_person) {
                self.author([&label, &u64::to_string(&line), chosen.author()])?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.target.path);
        self.authors.flush().map_err(&failed)?;
        let table = self.classes.table();
        let table = table.map_err(|error| failed(io_error(error)))?;
        let folder = self.folder;
        folder.write("data.yaml", self.classes.data_yaml().as_bytes())?;
        folder.write("classes.txt", self.classes.text().as_bytes())?;
        folder.write("classes.csv", &table)?;
        folder.commit(tally)
    }
}

/// The center and size as fractions of the image's width and height, `0.0..=1.0`.
fn center_and_size(bounds: BoundingBox, size: [u32; 2]) -> [f64; 4] {
    let [x1, y1, x2, y2] = <[f32; 4]>::from(bounds).map(f64::from);
    let [width, height] = size.map(f64::from);
    [f64::midpoint(x1, x2) / width, f64::midpoint(y1, y2) / height, (x2 - x1) / width, (y2 - y1) / height]
}

/// A double-quoted scalar (YAML 1.2, section 7.3.1): safe for every name, such as `no` or `1: 2`.
fn yaml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_names_are_quoted() {
        assert_eq!(yaml_text("no"), "\"no\"");
        assert_eq!(yaml_text("a \"b\" \\ c\n\u{7f}"), r#""a \"b\" \\ c\u000a\u007f""#);
    }

    #[test]
    fn boxes_are_relative_centers() {
        let bounds = BoundingBox::new(10.0, 0.0, 30.0, 80.0);
        assert_eq!(center_and_size(bounds, [100, 80]), [0.2, 0.5, 0.2, 1.0]);
    }
}
