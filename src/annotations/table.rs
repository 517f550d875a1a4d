//! CSV with a row for each box, or for each class of an image.
//!
//! The columns have names in any order; upper and lower case make no difference. `docs/ground-truth.md` lists them.

use std::borrow::Cow;
use std::io::{self, Read};
use std::num::IntErrorKind;

use super::collect::{Collector, Refusal, checked_box, checked_score};
use super::flag::flag;
use super::json::{Scalar, shortened};
use super::rows::{each_row, fields};
use super::{AnnotationFormat, Found};
use crate::domain::{AnnotatedBox, AnnotatedLabel, AnnotationProblemKind as Kind, BoxRole, BoxUnit, PredictionStatus};

const IMAGE: &[&str] = &["image", "filename", "file_name", "image_path", "path", "imageid"];
const NAME: &[&str] = &["label", "class", "class_name", "category", "labelname"];
const NUMBER: &[&str] = &["class_id", "category_id"];
const SCORE: &[&str] = &["score", "confidence"];
const CORNERS: &[[&str; 4]] = &[["x1", "y1", "x2", "y2"], ["xmin", "ymin", "xmax", "ymax"]];
const SIZES: &[[&str; 4]] = &[["x", "y", "w", "h"], ["left", "top", "box_width", "box_height"]];

/// Where in a row is what.
struct Columns {
    image: usize,
    name: Option<usize>,
    number: Option<usize>,
    score: Option<usize>,
    bounds: Option<Bounds>,
    size: Option<[usize; 2]>,
    crowd: Option<usize>,
    ignored: Option<usize>,
    status: Option<usize>,
    error: Option<usize>,
    /// Open Images counts boxes in parts of the image.
    unit: Option<BoxUnit>,
}

#[derive(Clone, Copy)]
enum Bounds {
    Corners([usize; 4]),
    Size([usize; 4]),
}

impl Columns {
    /// # Errors
    /// What is missing.
    fn of(header: &[Cow<'_, str>]) -> Result<Self, String> {
        let names: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
        let find = |name: &str| names.iter().position(|known| known == name);
        let first = |known: &[&str]| known.iter().find_map(|name| find(name));
        let four =
            |known: &[[&str; 4]]| known.iter().find_map(|[a, b, c, d]| Some([find(a)?, find(b)?, find(c)?, find(d)?]));
        let bounds = four(CORNERS).map(Bounds::Corners).or_else(|| four(SIZES).map(Bounds::Size));
        let columns = Self {
            image: first(IMAGE).ok_or("no column is called image")?,
            name: first(NAME),
            number: first(NUMBER),
            score: first(SCORE),
            bounds,
            size: find("width").zip(find("height")).map(|(width, height)| [width, height]),
            crowd: first(&["iscrowd", "isgroupof"]),
            ignored: first(&["difficult", "ignore"]),
            status: find("status"),
            error: find("error"),
            unit: (find("imageid").is_some() && find("labelname").is_some()).then_some(BoxUnit::Fractions),
        };
        if columns.name.is_none() && columns.number.is_none() {
            return Err("no column is called label or class_id".to_owned());
        }
        Ok(columns)
    }
}

/// Whether `line` names columns that are enough.
///
/// # Errors
/// What is missing.
pub(super) fn check_header(line: &str) -> Result<(), String> {
    let header = fields(line, delimiter(line)).map_err(|_| "the quotes of its header are not closed")?;
    Columns::of(&header).map(drop)
}

fn delimiter(header: &str) -> char {
    let count = |delimiter: &char| header.matches(*delimiter).count();
    [',', ';', '\t'].into_iter().rev().max_by_key(count).unwrap_or(',')
}

/// `header` is the first line.
///
/// # Errors
/// The reader's, or words about the header.
pub(super) fn read(reader: impl Read, header: &str) -> io::Result<Result<Found, String>> {
    let mut rows = Rows::default();
    let mut columns: Option<Result<Columns, String>> = None;
    each_row(reader, delimiter(header), |line, row| {
        let Some(columns) = &columns else {
            columns = Some(row.map_err(str::to_owned).and_then(Columns::of));
            return;
        };
        let Ok(columns) = columns else { return };
        rows.collector.entries += 1;
        let place = || format!("line {line}");
        let row = row.map_err(|reason| (Kind::Unreadable, reason.to_owned()));
        if let Err((kind, reason)) = row.and_then(|row| rows.take(columns, row, place)) {
            rows.collector.problem(kind, place(), reason);
        }
    })?;
    let columns = columns.unwrap_or_else(|| Err("it has no header".to_owned()));
    Ok(columns.map(|columns| rows.finish(columns.unit)))
}

#[derive(Default)]
struct Rows {
    collector: Collector,
}

impl Rows {
    fn take(&mut self, columns: &Columns, row: &[Cow<'_, str>], place: impl Fn() -> String) -> Result<(), Refusal> {
        let unreadable = |reason: String| (Kind::Unreadable, reason);
        let text = |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", |text| text.trim());
        let image = unescaped(text(Some(columns.image)));
        if image.is_empty() {
            return Err(unreadable("names no image".to_owned()));
        }
        if image.contains('\n') || text(columns.name).contains('\n') {
            return Err(unreadable("has a line break in a name; check its quotes".to_owned()));
        }
        let status = text(columns.status);
        if !matches!(status, "" | "ok") {
            self.collector.add_unpredicted(image, status, text(columns.error), place);
            return Ok(());
        }
        let number_of = |column: usize| -> Result<Option<f64>, Refusal> {
            let text = text(Some(column));
            let wrong = || (Kind::Unreadable, format!("has “{}” instead of a number", shortened(text)));
            if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) }
        };
        let is_set = |key: &str, column: Option<usize>| flag(key, &Scalar::Text(text(column).to_owned()));
        let size = match columns.size {
            Some([width, height]) => match (text(Some(width)).parse(), text(Some(height)).parse()) {
                (Ok(width), Ok(height)) if width > 0 && height > 0 => Some([width, height]),
                _ => None,
            },
            None => None,
        };
        let name = unescaped(text(columns.name));
        let number = match text(columns.number) {
            "" => None,
            text => Some(text.parse::<i64>().map_err(|error| match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                    unreadable(format!("has the class number {}, which is too large for 64 bits", shortened(text)))
                }
                _ => unreadable(format!("has “{}” instead of the number of a class", shortened(text))),
            })?),
        };
        // Without a column for numbers, a number in that of names is one.
        let name_as_number = name.parse::<i64>().ok().filter(|number| number.to_string() == name);
        let (number, name) = match name_as_number.filter(|_| columns.number.is_none()) {
            Some(number) => (Some(number), None),
            None => (number, Some(name).filter(|name| !name.is_empty())),
        };
        let has_class = number.is_some() || name.is_some();
        let numbers = match columns.bounds {
            Some(Bounds::Corners(at) | Bounds::Size(at)) => {
                let [a, b, c, d] = at.map(number_of);
                [a?, b?, c?, d?]
            }
            None => [None; 4],
        };
        let score = columns.score.map_or(Ok(None), number_of)?.map(checked_score).transpose()?;
        let role = match (is_set("iscrowd", columns.crowd)?, is_set("difficult", columns.ignored)?) {
            (true, _) => BoxRole::Crowd,
            (false, true) => BoxRole::Ignored,
            (false, false) => BoxRole::Object,
        };
        match (numbers, has_class) {
            ([None, None, None, None], has_class) => {
                if has_class {
                    let class = self.collector.class(number, name);
                    self.collector.add_label(image, AnnotatedLabel { class, score });
                }
            }
            ([Some(a), Some(b), Some(c), Some(d)], true) => {
                let bounds = match columns.bounds {
                    Some(Bounds::Corners(_)) => [a, b, c - a, d - b],
                    _ => [a, b, c, d],
                };
                let bounds = checked_box(bounds, columns.unit.unwrap_or_default())?;
                let class = self.collector.class(number, name);
                let found = AnnotatedBox { bounds, unit: BoxUnit::Pixels, class, score, area: None, role };
                self.collector.add_box(image, found, place);
            }
            (_, true) => return Err((Kind::BrokenBox, "has a box without four numbers".to_owned())),
            (_, false) => return Err((Kind::UnknownClass, "has a box without a class".to_owned())),
        }
        let image = self.collector.image(image);
        image.status = PredictionStatus::Predicted;
        image.size = image.size.or(size);
        Ok(())
    }

    fn finish(mut self, unit: Option<BoxUnit>) -> Found {
        let collector = &mut self.collector;
        collector.files = 1;
        let is_small = |bounds: [f64; 4]| bounds.iter().all(|number| (0.0..=1.0).contains(number));
        let are_small = collector.boxes().all(|found| {
            let [x, y, width, height] = found.bounds;
            is_small(found.bounds) && x + width <= 1.0 && y + height <= 1.0
        });
        let is_pixel = |found: &AnnotatedBox| found.bounds.iter().all(|number| number.fract() == 0.0);
        let looks_so = unit.is_none() && are_small && collector.boxes().any(|found| !is_pixel(found));
        if looks_so {
            collector.notes.push("boxes are parts of their images: none of their numbers is above 1".to_owned());
        }
        if looks_so || unit == Some(BoxUnit::Fractions) {
            collector.in_fractions();
        }
        self.collector.finish(AnnotationFormat::Csv)
    }
}

/// Without the apostrophe that keeps spreadsheets from computing a text.
fn unescaped(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| rest.starts_with(['=', '+', '-', '@'])).unwrap_or(text)
}
