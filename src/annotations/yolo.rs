//! YOLO: one text file per image with one line per box, `class x_center y_center width height`, as fractions of the
//! image size (<https://docs.ultralytics.com/datasets/detect/>), and class names in `data.yaml` or `classes.txt`.
//!
//! A sixth number is the score. Other rows are `class x1 y1 x2 y2 …`, a polygon, whose bounding box is used; if
//! `data.yaml` has a `kpt_shape`, boxes are followed by keypoints, which are skipped. An image without a label file is
//! empty, as in Ultralytics.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::collect::{Collector, Refusal, Tally, checked_box, checked_score, unreadable};
use super::dataset_files::ImagesByFile;
use super::json::{Scalar, shortened};
use super::{AnnotationFormat, AnnotationsError, Found};
use crate::domain::{AnnotatedBox, AnnotationProblemKind as Kind, BoxRole, BoxUnit, DatasetSplit, ExactBox};
use crate::image::source::{FileEntry, Files};
use crate::tasks::TaskControl;

/// The files of a dataset or folder.
#[derive(Default)]
pub(super) struct YoloFiles {
    pub data: Option<DataYaml>,
    /// `classes.txt`, one name per line.
    pub names: Option<FileEntry>,
    pub labels: Vec<FileEntry>,
    /// The paths of the known images, relative to the same folder as the labels.
    pub images: Vec<String>,
    /// The image of each label file, where their names differ.
    pub listed: ImagesByFile,
    pub split: Option<DatasetSplit>,
    /// As [`Found::notes`].
    pub notes: Vec<String>,
}

/// The parts of `data.yaml` that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DataYaml {
    names: Option<Names>,
    kpt_shape: Option<[usize; 2]>,
    /// The folder that paths of splits are relative to.
    pub path: Option<String>,
    train: Option<Places>,
    #[serde(alias = "validation")]
    val: Option<Places>,
    test: Option<Places>,
}

/// Image folders, or text files that list images.
#[derive(Deserialize)]
#[serde(untagged)]
enum Places {
    One(String),
    Several(Vec<String>),
}

/// Class names by number. Names that YAML reads as numbers, such as those of the ten digits, stay names.
#[derive(Deserialize)]
#[serde(try_from = "NamesInYaml")]
struct Names(Vec<(i64, String)>);

#[derive(Deserialize)]
#[serde(untagged)]
enum NamesInYaml {
    List(Vec<Scalar>),
    Map(BTreeMap<i64, Scalar>),
}

impl TryFrom<NamesInYaml> for Names {
    type Error = String;

    fn try_from(names: NamesInYaml) -> Result<Self, String> {
        let names: Vec<(i64, Scalar)> = match names {
            NamesInYaml::List(names) => (0..).zip(names).collect(),
            NamesInYaml::Map(names) => names.into_iter().collect(),
        };
        let text = |(number, name): (i64, Scalar)| match name {
            Scalar::Text(text) => Ok((number, text)),
            Scalar::Other | Scalar::Missing => Err(format!("the name of class {number} is not a string")),
            name => Ok((number, name.to_string())),
        };
        names.into_iter().map(text).collect::<Result<_, String>>().map(Self)
    }
}

impl DataYaml {
    pub(super) fn read(files: &Files, file: &FileEntry, control: &TaskControl) -> Result<Self, AnnotationsError> {
        let content = files.read(file, control)?;
        let data = super::text_of(&content).map_err(str::to_owned).and_then(|text| {
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_str_with_options::<Self>(text, options)
                .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
        });
        data.map_err(|reason| broken(files, file, reason))
    }

    /// The splits in the file, each with the places of its images.
    pub(super) fn splits(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let splits = [("train", &self.train), ("val", &self.val), ("test", &self.test)];
        splits.into_iter().filter_map(|(name, places)| {
            let places = match places.as_ref()? {
                Places::One(place) => std::slice::from_ref(place),
                Places::Several(places) => places,
            };
            (!places.iter().all(|place| place.trim().is_empty())).then_some((name, places))
        })
    }
}

impl YoloFiles {
    /// Adds the files of another place of the same split.
    pub(super) fn append(&mut self, more: Self) {
        self.names = self.names.take().or(more.names);
        self.labels.extend(more.labels);
        self.images.extend(more.images);
        self.notes.extend(more.notes);
    }
}

pub(super) fn read(files: &Files, found: YoloFiles, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let mut reader = reader(files, &found, control)?;
    reader.collector.notes = found.notes;
    if reader.classes.is_empty() {
        reader.collector.notes.push("classes have numbers only; add data.yaml or classes.txt to name them".to_owned());
    }
    let images = ImagesByLabel::new(&found.images, &found.listed);
    files.read_each(&found.labels, control, |index, content| {
        let file = &found.labels[index];
        reader.collector.files += 1;
        let image = images.image_of(&file.name);
        reader.file(file, &image, &content);
        reader.collector.set_original(&image, found.listed.original(&file.name));
    })?;
    if let Some(shape) = reader.long_rows.kpt_shape() {
        let reason = format!(
            "its rows look like poses (a box and keypoints), not polygons; add a data.yaml with “kpt_shape: \
             {shape:?}”"
        );
        return Err(AnnotationsError::Broken { place: files.name(), format: AnnotationFormat::Yolo, reason });
    }
    reader.add_unlabeled(&found.images, &found.labels, found.split.as_ref());
    Ok(reader.finish(found.split))
}

/// A reader that knows the class names and keypoints of a dataset.
pub(super) fn reader(files: &Files, found: &YoloFiles, control: &TaskControl) -> Result<Reader, AnnotationsError> {
    let mut reader = Reader::default();
    if let Some(data) = &found.data {
        reader.keypoints = data.kpt_shape.map(|[points, values]| points.saturating_mul(values));
        if let Some(Names(names)) = &data.names {
            reader.name_classes(names.iter().cloned());
        }
    } else if let Some(names) = &found.names {
        let content = files.read(names, control)?;
        let text = super::text_of(&content).map_err(|reason| broken(files, names, reason))?;
        let names = text.trim_end().lines().map(|name| name.trim().to_owned());
        reader.name_classes((0..).zip(names).filter(|(_, name)| !name.is_empty()));
    }
    Ok(reader)
}

fn broken(files: &Files, file: &FileEntry, reason: impl Into<String>) -> AnnotationsError {
    let (place, reason) = (files.name_of(file), reason.into());
    AnnotationsError::Broken { place, format: AnnotationFormat::Yolo, reason }
}

#[derive(Default)]
pub(super) struct Reader {
    collector: Collector,
    /// The named classes by number; empty if no file names them.
    classes: HashMap<i64, u32>,
    /// The number of values after each box.
    keypoints: Option<usize>,
    polygons: Tally,
    long_rows: LongRows,
}

/// Common properties of rows that are longer than a box, to distinguish poses from polygons.
#[derive(Default)]
struct LongRows {
    count: u64,
    /// How many numbers follow the class in each row; 0 if rows differ.
    len: usize,
    /// The number of rows that fit keypoints with two and with three numbers.
    fitting: [u64; 2],
    /// The number of rows with 0, 1 or 2 as third number of each keypoint: its visibility.
    flagged: u64,
}

impl LongRows {
    /// Fewer rows could fit by chance.
    const ENOUGH: u64 = 5;

    fn add(&mut self, numbers: &[f64]) {
        self.len = if self.count == 0 || self.len == numbers.len() { numbers.len() } else { 0 };
        self.count += 1;
        let (bounds, points) = numbers.split_at(4);
        for (fitting, values) in self.fitting.iter_mut().zip([2, 3]) {
            // A score may follow.
            let points = &points[..points.len() - points.len() % values];
            *fitting += u64::from(numbers.len() - 4 - points.len() <= 1 && are_inside(bounds, points, values));
        }
        let is_flag = |point: &[f64]| [0.0, 1.0, 2.0].contains(&point[2]);
        let flags = points.chunks_exact(3);
        self.flagged += u64::from(flags.remainder().len() <= 1 && flags.clone().all(is_flag));
    }

    /// The shape of the keypoints, if all rows are boxes followed by keypoints inside them.
    fn kpt_shape(&self) -> Option<[usize; 2]> {
        if self.count == 0 || self.len == 0 {
            return None;
        }
        let points = self.len - 4;
        let mut shapes = [2, 3].map(|values| [points / values, values]);
        // Prefer shapes without a trailing score.
        shapes.sort_by_key(|[_, values]| (points % values, std::cmp::Reverse(*values)));
        shapes.into_iter().find(|[_, values]| {
            let are_flagged = *values == 3 && self.flagged == self.count;
            self.fitting[values - 2] == self.count && (self.count >= Self::ENOUGH || are_flagged)
        })
    }
}

/// Whether the first four numbers are a box inside the image that contains all points except (0, 0).
fn are_inside(bounds: &[f64], points: &[f64], values: usize) -> bool {
    const ROUNDING: f64 = 1e-3;
    let span = |axis: usize| [bounds[axis] - bounds[axis + 2] / 2.0, bounds[axis] + bounds[axis + 2] / 2.0];
    let is_within = |number: f64, [low, high]: [f64; 2]| (low - ROUNDING..=high + ROUNDING).contains(&number);
    let spans = [span(0), span(1)];
    let is_box = spans.iter().flatten().all(|edge| is_within(*edge, [0.0, 1.0]));
    is_box
        && points
            .chunks_exact(values)
            .all(|point| point[..2] == [0.0, 0.0] || (0..2).all(|axis| is_within(point[axis], spans[axis])))
}

impl Reader {
    pub(super) fn keypoints(&self) -> Option<usize> {
        self.keypoints
    }

    /// The number of each named class.
    pub(super) fn numbers_by_name(&self) -> HashMap<String, i64> {
        self.classes.iter().map(|(number, class)| (self.collector.class_name(*class), *number)).collect()
    }

    /// The class name and box of a line; `None` if it cannot be used.
    pub(super) fn label(&mut self, line: &str) -> Option<(String, ExactBox)> {
        let found = self.row(line, &String::new).ok()?;
        Some((self.collector.class_name(found.class), found.bounds))
    }

    fn name_classes(&mut self, names: impl IntoIterator<Item = (i64, String)>) {
        for (number, name) in names {
            let class = self.collector.class(Some(number), Some(&name));
            self.classes.insert(number, class);
        }
    }

    fn file(&mut self, file: &FileEntry, image: &str, content: &Result<Vec<u8>, String>) {
        let text = match content {
            Ok(content) => super::text_of(content),
            Err(reason) => Err(reason.as_str()),
        };
        let text = match text {
            Ok(text) => text,
            Err(reason) => return self.collector.problem(Kind::Unreadable, &file.name, reason),
        };
        self.collector.image(image);
        for (number, line) in (1_u64..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            self.collector.entries += 1;
            let place = || format!("{}, line {number}", file.name);
            match self.row(line, &place) {
                Ok(found) => self.collector.add_box(image, found, place),
                Err((kind, reason)) => self.collector.problem(kind, place(), reason),
            }
        }
    }

    fn row(&mut self, line: &str, place: &impl Fn() -> String) -> Result<AnnotatedBox, Refusal> {
        let mut numbers = Vec::new();
        for text in line.split_ascii_whitespace() {
            let wrong = || unreadable(format!("has “{}” instead of a number", shortened(text)));
            numbers.push(text.parse::<f64>().map_err(|_| wrong())?);
        }
        let &[class, ref rest @ ..] = &numbers[..] else {
            return Err(unreadable("is empty"));
        };
        if self.keypoints.is_none() && rest.len() >= 6 {
            self.long_rows.add(rest);
        }
        let (bounds, score) = match (self.keypoints, rest) {
            (Some(keypoints), [x, y, w, h, rest @ ..]) if [keypoints, keypoints + 1].contains(&rest.len()) => {
                (ExactBox::from_center([*x, *y, *w, *h]), rest.get(keypoints).copied())
            }
            (_, &[x, y, w, h]) => (ExactBox::from_center([x, y, w, h]), None),
            (_, &[x, y, w, h, score]) => (ExactBox::from_center([x, y, w, h]), Some(score)),
            (_, [points @ .., score]) if points.len() >= 6 && points.len() % 2 == 0 => {
                self.polygons.add(place);
                (around(points), Some(*score))
            }
            (_, points) if points.len() >= 6 => {
                self.polygons.add(place);
                (around(points), None)
            }
            (_, rest) => {
                let reason = format!("has {} numbers; a box has 5, or 6 with a score", rest.len() + 1);
                return Err(unreadable(reason));
            }
        };
        if class.fract() != 0.0 || !(0.0..=1e9).contains(&class) {
            return Err(unreadable(format!("has the class {class}, which is not a class number")));
        }
        let number = class as i64;
        let class = match self.classes.get(&number) {
            Some(class) => *class,
            None if self.classes.is_empty() => self.collector.class(Some(number), None),
            None => return Err((Kind::UnknownClass, format!("has the class {number}, which has no name"))),
        };
        let bounds = checked_box(bounds, BoxUnit::Fractions)?;
        let score = score.map(checked_score).transpose()?;
        Ok(AnnotatedBox { bounds, unit: BoxUnit::Fractions, class, score, area: None, role: BoxRole::Object })
    }

    /// Images without a label file: those of the split, or of the folders with labels.
    fn add_unlabeled(&mut self, images: &[String], found: &[FileEntry], split: Option<&DatasetSplit>) {
        let folders: std::collections::HashSet<String> =
            found.iter().map(|file| folder(&label_stem(&file.name)).to_owned()).collect();
        let is_meant = |image: &&String| split.is_some() || folders.contains(folder(image));
        let meant: Vec<&String> = images.iter().filter(is_meant).collect();
        let is_unlabeled = |image: &&&String| self.collector.known_image(image).is_none();
        let unlabeled_images: Vec<&String> = meant.iter().filter(is_unlabeled).copied().collect();
        // A single image may well be empty, even in a small dataset.
        let are_many = unlabeled_images.len() > 1 && unlabeled_images.len() * 4 > meant.len();
        let mut unlabeled = Tally::default();
        for image in unlabeled_images {
            self.collector.image(image);
            if are_many {
                self.collector.problem(Kind::Unlabeled, image, "has no label file; it is treated as empty");
            } else {
                unlabeled.add(|| image.clone());
            }
        }
        let note =
            unlabeled.note("image has no label file; treated as empty", "images have no label file; treated as empty");
        self.collector.notes.extend(note);
    }

    fn finish(mut self, split: Option<DatasetSplit>) -> Found {
        let note = self
            .polygons
            .note("row is a polygon; its bounding box is used", "rows are polygons; their bounding boxes are used");
        self.collector.notes.extend(note);
        let mut found = self.collector.finish(AnnotationFormat::Yolo);
        found.annotations.split = split;
        found
    }
}

fn around(points: &[f64]) -> ExactBox {
    // Not `f64::min`, which drops NaN.
    let least = |from: usize| points[from..].iter().step_by(2).copied().reduce(|a, b| if b < a { b } else { a });
    let most = |from: usize| points[from..].iter().step_by(2).copied().reduce(|a, b| if b > a { b } else { a });
    if points.iter().any(|number| !number.is_finite()) {
        return [f64::NAN; 4].into();
    }
    match (least(0), least(1), most(0), most(1)) {
        (Some(left), Some(top), Some(right), Some(bottom)) => ExactBox::from_edges([left, top, right, bottom]),
        _ => [f64::NAN; 4].into(),
    }
}

/// Maps label files to listed images.
pub(super) struct ImagesByLabel<'i> {
    by_stem: HashMap<&'i str, &'i str>,
    listed: &'i ImagesByFile,
}

impl<'i> ImagesByLabel<'i> {
    pub(super) fn new(images: &'i [String], listed: &'i ImagesByFile) -> Self {
        Self { by_stem: images.iter().map(|image| (without_extension(image), image.as_str())).collect(), listed }
    }

    /// `labels/a/1.txt` describes `images/a/1.jpg` (Ultralytics' `img2label_paths`), or an image next to it. The
    /// extension is missing if the image is not listed.
    pub(super) fn image_of(&self, label: &str) -> String {
        let stem = label_stem(label);
        let found = self.by_stem.get(stem.as_str()).or_else(|| self.by_stem.get(without_extension(label)));
        let found = found.map(|image| (*image).to_owned());
        found.or_else(|| self.listed.get(label).map(|image| format!("images/{image}"))).unwrap_or(stem)
    }
}

/// The path of the image without its extension: the last `labels` folder becomes `images`.
fn label_stem(label: &str) -> String {
    let stem = without_extension(label);
    let mut parts: Vec<&str> = stem.split('/').collect();
    let folders = parts.len() - 1;
    if let Some(part) = parts[..folders].iter_mut().rev().find(|part| **part == "labels") {
        *part = "images";
    }
    parts.join("/")
}

/// The label file of an image, the reverse of [`ImagesByLabel::image_of`].
pub(super) fn label_of_image(image: &str) -> String {
    let stem = without_extension(image);
    let mut parts: Vec<&str> = stem.split('/').collect();
    let folders = parts.len() - 1;
    if let Some(part) = parts[..folders].iter_mut().rev().find(|part| **part == "images") {
        *part = "labels";
    }
    parts.join("/") + ".txt"
}

fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn without_extension(name: &str) -> &str {
    let file = name.rfind('/').map_or(0, |slash| slash + 1);
    name[file..].rfind('.').map_or(name, |dot| &name[..file + dot])
}
