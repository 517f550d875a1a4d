//! COCO: a dataset (<https://cocodataset.org/#format-data>) or a list of results
//! (<https://cocodataset.org/#format-results>).
//!
//! As in pycocotools, the last of several images or categories with one id wins; annotations of an unlisted image or
//! category do not count; a missing `iscrowd` means 0. Unlike there, a repeated annotation `id` is reported, and both
//! annotations count (there, the last one counts twice). Boxes without an area and boxes outside their image count, as
//! there. Masks and keypoints are skipped.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::collect::{Refusal, Tally, unreadable};
use super::flag::flag;
use super::json::{Each, FourNumbers, Scalar};
use super::{AnnotationFormat, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, AnnotationProblemKind, AnnotationProblems, Annotations, BoxRole,
    BoxUnit, ExactBox, TruthLabel,
};

const BUFFER_BYTES: usize = 256 << 10;

/// Reads a dataset or a list of results.
///
/// # Errors
/// The JSON is invalid, or its parts are not lists.
pub(super) fn read(reader: impl Read, format: AnnotationFormat) -> Result<Found, String> {
    let mut dataset = Dataset::default();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
    if reader.fill_buf().is_ok_and(|head| head.starts_with(super::BOM)) {
        reader.consume(super::BOM.len());
    }
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = Document(&mut dataset).deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| reason(&error))?;
    Ok(dataset.finish(format))
}

pub(super) fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let hint = match error.classify() {
        serde_json::error::Category::Eof => "; the file ends early",
        _ if message.starts_with("invalid unicode code point") => "; the file is not UTF-8, save it as UTF-8",
        serde_json::error::Category::Syntax => "; JSON has no comments, no NaN and no Infinity",
        serde_json::error::Category::Data | serde_json::error::Category::Io => "",
    };
    format!("{message}{hint}")
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawImage {
    id: Scalar,
    file_name: Scalar,
    /// LVIS's replacement for the file name.
    coco_url: Scalar,
    width: Scalar,
    height: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCategory {
    id: Scalar,
    name: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawAnnotation {
    id: Scalar,
    image_id: Scalar,
    category_id: Scalar,
    bbox: FourNumbers,
    area: Scalar,
    iscrowd: Scalar,
    ignore: Scalar,
    score: Scalar,
}

/// The parts of the file that are used.
#[derive(Default)]
struct Dataset {
    images: Named<AnnotatedImage>,
    classes: Named<TruthLabel>,
    boxes: Vec<RawBox>,
    annotation_ids: HashSet<AnnotatedImageId>,
    are_results: bool,
    has_annotations: bool,
    has_scores: bool,
    problems: AnnotationProblems,
    entries: u64,
    without_area: Tally,
    outside: Tally,
    ignored: Tally,
    broken_areas: Tally,
    broken_sizes: Tally,
}

/// Images or classes by id. Ids in annotations are recorded before it is known whether the file lists them, because
/// annotations can come first.
struct Named<T> {
    values: Vec<T>,
    index_of: HashMap<AnnotatedImageId, u32>,
    /// The position of each value in the file's list, if it is listed.
    listed_as: Vec<Option<u32>>,
    /// The length of the list; `None` if the file has none.
    listed: Option<u32>,
}

/// An annotation in compact form, because there can be millions.
struct RawBox {
    index: u32,
    image: u32,
    class: u32,
    role: BoxRole,
    bounds: ExactBox,
    /// NaN if missing.
    area: f64,
    /// NaN if missing.
    score: f64,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { values: Vec::new(), index_of: HashMap::new(), listed_as: Vec::new(), listed: None }
    }
}

impl<T> Named<T> {
    fn index(&mut self, id: AnnotatedImageId, make: impl FnOnce(&AnnotatedImageId) -> T) -> u32 {
        let next = self.values.len() as u32;
        *self.index_of.entry(id).or_insert_with_key(|id| {
            self.values.push(make(id));
            self.listed_as.push(None);
            next
        })
    }

    /// Lists `value`.
    ///
    /// # Errors
    /// It replaces one that was listed before.
    fn list(&mut self, id: AnnotatedImageId, value: T) -> Result<(), Refusal>
    where
        T: Clone,
    {
        let repeated = format!("has the duplicate id {id}; the last entry is used");
        let index = self.index(id, |_| value.clone()) as usize;
        self.values[index] = value;
        let next = self.listed.get_or_insert(0);
        let was_listed = self.listed_as[index].is_some();
        if was_listed {
            return Err((AnnotationProblemKind::Duplicate, repeated));
        }
        self.listed_as[index] = Some(*next);
        *next += 1;
        Ok(())
    }

    /// The values that count, in list order (annotation order without a list), and the new index of each value.
    fn finish(self) -> (Vec<T>, Vec<Option<u32>>) {
        if self.listed.is_none() {
            let places = (0..self.values.len() as u32).map(Some).collect();
            return (self.values, places);
        }
        let mut listed: Vec<(u32, T)> = self
            .values
            .into_iter()
            .zip(&self.listed_as)
            .filter_map(|(value, place)| Some(((*place)?, value)))
            .collect();
        listed.sort_by_key(|(place, _)| *place);
        (listed.into_iter().map(|(_, value)| value).collect(), self.listed_as)
    }
}

impl Dataset {
    fn note(&mut self, taken: Result<(), Refusal>, place: impl FnOnce(&Self) -> String) {
        if let Err((kind, reason)) = taken {
            self.problems.add(kind, place(self), reason);
        }
    }

    fn place(&self, index: u64) -> String {
        if self.are_results { format!("[{index}]") } else { format!("annotations[{index}]") }
    }

    fn image(&mut self, index: u64, raw: Option<RawImage>) -> Result<(), Refusal> {
        let raw = raw.ok_or_else(not_an_object)?;
        let id = raw.id.into_id("id").map_err(unreadable)?;
        let size = size(&raw.width, &raw.height);
        if size.is_none() && !(raw.width.is_missing() && raw.height.is_missing()) {
            self.broken_sizes.add(|| format!("images[{index}]"));
        }
        let name = raw.file_name.into_text().filter(|name| !name.is_empty());
        let name = name.or_else(|| raw.coco_url.into_text().map(|url| tail_of_url(&url).to_owned()));
        let image = AnnotatedImage {
            id: Some(id.clone()),
            name: super::image_name(&name.unwrap_or_default()),
            size,
            ..AnnotatedImage::default()
        };
        self.images.list(id, image)
    }

    fn category(&mut self, raw: Option<RawCategory>) -> Result<(), Refusal> {
        let raw = raw.ok_or_else(not_an_object)?;
        let id = raw.id.into_id("id").map_err(unreadable)?;
        let mut label = class_of_id(&id);
        label.name = raw.name.into_text().filter(|name| !name.trim().is_empty()).or(label.name);
        self.classes.list(id, label)
    }

    fn annotation(&mut self, index: u64, raw: Option<RawAnnotation>) {
        self.entries += 1;
        let taken = self.take_annotation(index, raw);
        self.note(taken, |dataset| dataset.place(index));
    }

    /// # Errors
    /// Why it cannot be used.
    fn take_annotation(&mut self, index: u64, raw: Option<RawAnnotation>) -> Result<(), Refusal> {
        use AnnotationProblemKind as Kind;
        let raw = raw.ok_or_else(not_an_object)?;
        let index_u32 = u32::try_from(index).map_err(|_| unreadable("exceeds the supported number of annotations"))?;
        let place = |dataset: &Self| dataset.place(index);
        let image_id = raw.image_id.into_id("image_id").map_err(unreadable)?;
        let category_id = raw.category_id.into_id("category_id").map_err(unreadable)?;
        let bounds = match raw.bbox {
            FourNumbers::Numbers(numbers) => ExactBox::from(numbers),
            FourNumbers::Missing => return Err((Kind::BrokenBox, "has no bbox".to_owned())),
            FourNumbers::Other => return Err((Kind::BrokenBox, "has a bbox that is not four numbers".to_owned())),
        };
        let ExactBox { width, height, .. } = bounds;
        let numbers = <[f64; 4]>::from(bounds);
        if width < 0.0 || height < 0.0 || numbers.iter().any(|number| !number.is_finite()) {
            return Err((Kind::BrokenBox, format!("has the bbox {numbers:?}; width and height cannot be negative")));
        }
        let score = match (&raw.score, raw.score.number()) {
            (Scalar::Missing, _) => f64::NAN,
            (_, Some(score)) if (0.0..=1.0).contains(&score) => score,
            (told, _) => return Err((Kind::BrokenScore, format!("has the score {told}; scores must be 0 to 1"))),
        };
        let role = if flag("iscrowd", &raw.iscrowd)? { BoxRole::Crowd } else { BoxRole::Object };
        let is_ignored = flag("ignore", &raw.ignore)?;
        self.has_scores |= !score.is_nan();
        let area = raw.area.number().filter(|area| area.is_finite() && *area >= 0.0);
        if area.is_none() && !raw.area.is_missing() {
            let place = place(self);
            self.broken_areas.add(|| place);
        }
        if width == 0.0 || height == 0.0 {
            let place = place(self);
            self.without_area.add(|| place);
        }
        // pycocotools overwrites `ignore` with `iscrowd` (`COCOeval._prepare`).
        if role == BoxRole::Object && is_ignored {
            let place = place(self);
            self.ignored.add(|| place);
        }
        if !self.are_results
            && let Ok(id) = raw.id.into_id("id")
            && let Some(id) = self.annotation_ids.replace(id)
        {
            let reason = format!("has the duplicate id {id}; both are kept");
            let place = place(self);
            self.problems.add(Kind::RepeatedId, place, reason);
        }
        let image = self.images.index(image_id, |id| AnnotatedImage { id: Some(id.clone()), ..Default::default() });
        let class = self.classes.index(category_id, class_of_id);
        let area = area.unwrap_or(f64::NAN);
        self.boxes.push(RawBox { index: index_u32, image, class, role, bounds, area, score });
        Ok(())
    }

    fn finish(mut self, format: AnnotationFormat) -> Found {
        let mut notes = Vec::new();
        if !self.are_results {
            if self.images.listed.is_none() {
                notes.push("the file has no images section; image ids are taken from the annotations".to_owned());
            }
            if self.classes.listed.is_none() {
                notes.push("the file has no categories; classes have numbers only".to_owned());
            }
        }
        let unlisted: Vec<AnnotatedImageId> = ids_without_place(&self.images);
        let unlisted_classes = ids_without_place(&self.classes);
        let (mut images, image_places) = std::mem::take(&mut self.images).finish();
        let (classes, class_places) = std::mem::take(&mut self.classes).finish();
        let mut boxes_of_image = vec![0_u32; images.len()];
        for one in &self.boxes {
            if let Some(place) = image_places[one.image as usize] {
                boxes_of_image[place as usize] += 1;
            }
        }
        for (image, count) in images.iter_mut().zip(boxes_of_image) {
            image.boxes.reserve_exact(count as usize);
        }
        for one in std::mem::take(&mut self.boxes) {
            let place = || self.place(one.index.into());
            let Some(image) = image_places[one.image as usize] else {
                let reason = format!("has the image_id {}, which images does not list", unlisted[one.image as usize]);
                self.problems.add(AnnotationProblemKind::UnknownImage, place(), reason);
                continue;
            };
            let Some(class) = class_places[one.class as usize] else {
                let id = &unlisted_classes[one.class as usize];
                let reason = format!("has the category_id {id}, which categories does not list");
                self.problems.add(AnnotationProblemKind::UnknownClass, place(), reason);
                continue;
            };
            if one.score.is_nan() && (self.are_results || self.has_scores) {
                let place = place();
                self.problems.add(AnnotationProblemKind::BrokenScore, place, "has no score");
                continue;
            }
            let image = &mut images[image as usize];
            if is_outside(one.bounds, image.size) {
                let place = place();
                self.outside.add(|| place);
            }
            image.boxes.push(AnnotatedBox {
                bounds: one.bounds,
                unit: BoxUnit::Pixels,
                class,
                score: Some(one.score).filter(|score| !score.is_nan()),
                area: Some(one.area).filter(|area| !area.is_nan()),
                role: one.role,
            });
        }
        notes.extend(self.notes());
        let annotations = Annotations { classes, images, problems: self.problems, split: None };
        Found { format, annotations, files: 1, entries: self.entries, notes }
    }

    fn notes(&self) -> Vec<String> {
        let notes = [
            self.without_area.without_area(),
            self.outside.note("box is outside its image and is kept", "boxes are outside their images and are kept"),
            self.ignored.note(
                "box has “ignore”; it is kept, as in pycocotools",
                "boxes have “ignore”; they are kept, as in pycocotools",
            ),
            self.broken_areas.note(
                "area is not a positive number; the box area is used",
                "areas are not positive numbers; the box areas are used",
            ),
            self.broken_sizes.note("image size cannot be used", "image sizes cannot be used"),
        ];
        notes.into_iter().flatten().collect()
    }
}

fn not_an_object() -> Refusal {
    unreadable("is not an object")
}

/// The id of each value by its index, if some are not listed; otherwise empty.
fn ids_without_place<T>(named: &Named<T>) -> Vec<AnnotatedImageId> {
    if named.listed.is_none() || named.listed_as.iter().all(Option::is_some) {
        return Vec::new();
    }
    let mut ids = vec![AnnotatedImageId::Number(0); named.values.len()];
    for (id, index) in &named.index_of {
        ids[*index as usize] = id.clone();
    }
    ids
}

fn class_of_id(id: &AnnotatedImageId) -> TruthLabel {
    match id {
        AnnotatedImageId::Number(number) => TruthLabel { number: Some(*number), name: None },
        AnnotatedImageId::Text(name) => TruthLabel { number: None, name: Some(name.clone()) },
    }
}

pub(super) fn size(width: &Scalar, height: &Scalar) -> Option<[u32; 2]> {
    let side = |side: &Scalar| {
        let side = side.number().filter(|side| side.fract() == 0.0)?;
        (1.0..=f64::from(u32::MAX)).contains(&side).then_some(side as u32)
    };
    Some([side(width)?, side(height)?])
}

fn is_outside(bounds: ExactBox, size: Option<[u32; 2]>) -> bool {
    size.is_some_and(|size| {
        let [columns, rows] = size.map(f64::from);
        let is_before = bounds.right() <= 0.0 && bounds.width > 0.0 || bounds.bottom() <= 0.0 && bounds.height > 0.0;
        bounds.left >= columns || bounds.top >= rows || is_before
    })
}

/// `val2017/000000397133.jpg` for `http://images.cocodataset.org/val2017/000000397133.jpg`.
pub(super) fn tail_of_url(url: &str) -> &str {
    let behind_host = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    behind_host.map_or(url, |(_, path)| path)
}

/// The whole file: an object with lists, or a list of results.
struct Document<'d>(&'d mut Dataset);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a dataset or a list of results")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.0.are_results = true;
        Each::new("a list", |index, raw| self.0.annotation(index, raw)).visit_list(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let dataset = self.0;
        let twice = |key| serde::de::Error::custom(format!("the file has {key} twice"));
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "images" if dataset.images.listed.is_some() => return Err(twice("images")),
                "categories" if dataset.classes.listed.is_some() => return Err(twice("categories")),
                "annotations" if dataset.has_annotations => return Err(twice("annotations")),
                "images" => {
                    dataset.images.listed = Some(0);
                    map.next_value_seed(Each::new("a list of images", |index, raw| {
                        let taken = dataset.image(index, raw);
                        dataset.note(taken, |_| format!("images[{index}]"));
                    }))?;
                }
                "categories" => {
                    dataset.classes.listed = Some(0);
                    map.next_value_seed(Each::new("a list of categories", |index, raw| {
                        let taken = dataset.category(raw);
                        dataset.note(taken, |_| format!("categories[{index}]"));
                    }))?;
                }
                "annotations" => {
                    dataset.has_annotations = true;
                    map.next_value_seed(Each::new("a list of annotations", |index, raw| {
                        dataset.annotation(index, raw);
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
