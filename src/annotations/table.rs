//! CSV with one row per box, or per class of an image.
//!
//! The columns have names, in any order and case. `docs/ground-truth.md` lists them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};
use std::num::IntErrorKind;

use super::collect::{Category, Collector, Refusal, Tally, checked_box, checked_score, class_name, unreadable};
use super::flag::flag;
use super::json::{Scalar, shortened};
use super::rows::{each_row, fields, unescaped};
use super::{AnnotationFormat, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedLabel, AnnotationProblemKind as Kind, BoxRole, BoxUnit, ExactBox, TruthLabel,
    column_delimiter,
};

/// Column names, in lowercase with only letters and digits.
const IMAGE: &[&str] = &["image", "filename", "imagepath", "path", "imageid", "imagename", "file"];
const NAME: &[&str] = &["label", "class", "classname", "category", "labelname"];
const NUMBER: &[&str] = &["classid", "categoryid"];
const SCORE: &[&str] = &["score", "confidence"];
/// Each can be prefixed with `bbox` or `box`.
const CORNERS: &[[&str; 4]] = &[
    ["x1", "y1", "x2", "y2"],
    ["xmin", "ymin", "xmax", "ymax"],
    ["x0", "y0", "x1", "y1"],
    ["left", "top", "right", "bottom"],
];
const LEFT_TOP: &[[&str; 2]] = &[["x", "y"], ["left", "top"], ["xmin", "ymin"], ["x1", "y1"]];
const CENTERS: &[[&str; 2]] = &[["xcenter", "ycenter"], ["xcentre", "ycentre"], ["centerx", "centery"], ["cx", "cy"]];
const WIDTH_HEIGHT: &[[&str; 2]] = &[["w", "h"], ["width", "height"]];
/// Columns with all four numbers of a box.
const WHOLE: &[&str] = &["bbox", "box", "boundingbox"];
const IMAGE_SIZE: &[[&str; 2]] = &[["imagewidth", "imageheight"], ["imgwidth", "imgheight"], ["width", "height"]];

/// How far a fractional edge may exceed the image through rounding.
const ROUNDING: f64 = 1e-6;

/// The positions of the columns.
pub(super) struct Columns {
    image: usize,
    pub name: Option<usize>,
    pub number: Option<usize>,
    pub score: Option<usize>,
    pub bounds: Option<Bounds>,
    size: Option<[usize; 2]>,
    crowd: Option<usize>,
    ignored: Option<usize>,
    status: Option<usize>,
    error: Option<usize>,
    verdict: Option<usize>,
    /// All classes, in the first row of corrected labels.
    pub all_classes: Option<usize>,
    /// Set for Open Images, whose boxes are fractions.
    unit: Option<BoxUnit>,
}

#[derive(Clone, Copy)]
pub(super) enum Bounds {
    Corners([usize; 4]),
    Size([usize; 4]),
    /// The center and the size.
    Center([usize; 4]),
    /// Left, top, width and height in one column, as pandas writes COCO's `bbox`.
    Whole(usize),
}

impl Columns {
    /// # Errors
    /// What is missing.
    fn parse(header: &[Cow<'_, str>]) -> Result<Self, String> {
        let names: Vec<String> = header.iter().map(|name| plain(name)).collect();
        let find = |name: &str| names.iter().position(|known| known == name);
        let first = |known: &[&str]| known.iter().find_map(|name| find(name));
        let bounds = Bounds::parse(&names);
        let is_free = |column: usize| !bounds.is_some_and(|bounds| bounds.columns().contains(&column));
        let pair = |[one, other]: &[&str; 2]| Some([find(one)?, find(other)?]);
        let size = IMAGE_SIZE.iter().filter_map(pair).find(|pair| pair.iter().all(|column| is_free(*column)));
        let has = |name: &str| header.iter().any(|known| known.trim().eq_ignore_ascii_case(name));
        let is_open_images = has("ImageID") && has("LabelName");
        let columns = Self {
            image: first(IMAGE).ok_or("there is no column named image")?,
            name: first(NAME),
            number: first(NUMBER),
            score: first(SCORE),
            bounds,
            size,
            crowd: first(&["iscrowd", "isgroupof"]),
            ignored: first(&["difficult", "ignore"]),
            status: find("status"),
            error: find("error"),
            verdict: find("verdict"),
            all_classes: find("allclasses"),
            unit: is_open_images.then_some(BoxUnit::Fractions),
        };
        if columns.name.is_none() && columns.number.is_none() {
            return Err("there is no column named label or class_id".to_owned());
        }
        let of_boxes: Vec<&str> =
            header.iter().zip(&names).filter(|(_, name)| is_of_box(name)).map(|(name, _)| name.trim()).collect();
        if bounds.is_none() && !of_boxes.is_empty() {
            let (columns, verb) = if of_boxes.len() == 1 { ("column", "does") } else { ("columns", "do") };
            return Err(format!(
                "the {columns} {} {verb} not define a box, which needs for example x1, y1, x2 and y2, or x, y, w and \
                 h",
                of_boxes.join(", ")
            ));
        }
        Ok(columns)
    }
}

impl Columns {
    /// The columns that describe the image of a row.
    pub(super) fn of_image(&self) -> Vec<usize> {
        [self.image].into_iter().chain(self.status).chain(self.size.into_iter().flatten()).collect()
    }

    /// Fills a row of an image that has none, in a table of so many columns.
    pub(super) fn name_image(&self, cells: &mut Vec<String>, columns: usize, image: String, size: Option<[u32; 2]>) {
        *cells = vec![String::new(); columns];
        cells[self.image] = image;
        for (column, side) in self.size.into_iter().flatten().zip(size.into_iter().flatten()) {
            cells[column] = side.to_string();
        }
        if let Some(column) = self.status {
            cells[column].push_str("ok");
        }
    }

    /// The columns that describe the label of a row.
    pub(super) fn of_label(&self) -> Vec<usize> {
        let bounds = self.bounds.iter().flat_map(Bounds::columns).copied();
        let others = [self.name, self.number, self.score, self.crowd, self.ignored, self.verdict];
        others.into_iter().flatten().chain(bounds).collect()
    }
}

impl Bounds {
    fn parse(names: &[String]) -> Option<Self> {
        let find = |name: &str| {
            let prefixed = |prefix: &str| names.iter().position(|known| *known == format!("{prefix}{name}"));
            ["bbox", "box", ""].into_iter().find_map(prefixed)
        };
        let four = |[a, b, c, d]: &[&str; 4]| Some([find(a)?, find(b)?, find(c)?, find(d)?]);
        let with_size = |[x, y]: &[&str; 2]| WIDTH_HEIGHT.iter().find_map(|[w, h]| four(&[x, y, w, h]));
        let whole = || WHOLE.iter().find_map(|name| names.iter().position(|known| known == name));
        CORNERS
            .iter()
            .find_map(four)
            .map(Self::Corners)
            .or_else(|| LEFT_TOP.iter().find_map(with_size).map(Self::Size))
            .or_else(|| CENTERS.iter().find_map(with_size).map(Self::Center))
            .or_else(|| whole().map(Self::Whole))
    }

    fn columns(&self) -> &[usize] {
        match self {
            Self::Corners(columns) | Self::Size(columns) | Self::Center(columns) => columns,
            Self::Whole(column) => std::slice::from_ref(column),
        }
    }

    /// The numbers of a row; `None` for empty cells.
    ///
    /// # Errors
    /// A cell is not a number.
    fn numbers<'t>(self, text: impl Fn(usize) -> &'t str) -> Result<[Option<f64>; 4], Refusal> {
        let (Self::Corners(columns) | Self::Size(columns) | Self::Center(columns)) = self else {
            let whole = self.columns().first().map(|column| text(*column)).unwrap_or_default();
            let inner = whole.trim_matches(|letter: char| "[](){} ".contains(letter));
            let parts = inner.split([',', ';', ' ', '\t']).filter(|part| !part.is_empty());
            let numbers: Vec<Option<f64>> = parts.map(cell_number).collect::<Result<_, _>>()?;
            return match numbers.len() {
                0 => Ok([None; 4]),
                _ => numbers.try_into().map_err(|_| (Kind::BrokenBox, "has a box without four numbers".to_owned())),
            };
        };
        let [a, b, c, d] = columns.map(|column| cell_number(text(column)));
        Ok([a?, b?, c?, d?])
    }

    fn bounds(self, numbers: [f64; 4]) -> ExactBox {
        match self {
            Self::Corners(_) => ExactBox::from_edges(numbers),
            Self::Center(_) => ExactBox::from_center(numbers),
            Self::Size(_) | Self::Whole(_) => numbers.into(),
        }
    }
}

/// `None` for an empty cell.
fn cell_number(text: &str) -> Result<Option<f64>, Refusal> {
    let wrong = |_| (Kind::Unreadable, format!("has “{}” instead of a number", shortened(text)));
    (!text.is_empty()).then(|| text.parse().map_err(wrong)).transpose()
}

/// The name of a column without variations in spelling.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a column name belongs to a box; `width` and `height` may be those of the image.
fn is_of_box(name: &str) -> bool {
    let pairs = LEFT_TOP.iter().chain(CENTERS).chain(&WIDTH_HEIGHT[..1]).flatten();
    let is_known = |name: &str| CORNERS.iter().flatten().chain(pairs.clone()).any(|known| *known == name);
    let inner = ["bbox", "box"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    WHOLE.contains(&name)
        || is_known(name)
        || inner.is_some_and(|inner| is_known(inner) || ["width", "height"].contains(&inner))
}

/// Whether `line` is a header with sufficient columns.
///
/// # Errors
/// What is missing.
pub(super) fn check_header(line: &str) -> Result<(), String> {
    let header = fields(line, column_delimiter(line)).map_err(|_| "the quotes of its header are not closed")?;
    Columns::parse(&header).map(drop)
}

/// `header` is the first line.
///
/// # Errors
/// Those of the reader, or a problem with the header.
pub(super) fn read(reader: impl Read, header: &str) -> io::Result<Result<Found, String>> {
    let mut rows = Rows::default();
    let mut columns: Option<Result<Columns, String>> = None;
    each_row(reader, column_delimiter(header), |line, row| {
        let Some(columns) = &columns else {
            columns = Some(row.map_err(str::to_owned).and_then(Columns::parse));
            return;
        };
        let Ok(columns) = columns else { return };
        // Spreadsheets write blank rows as delimiters.
        if row.is_ok_and(|row| row.iter().all(|cell| cell.trim().is_empty())) {
            return;
        }
        rows.collector.entries += 1;
        let place = || format!("line {line}");
        let row = row.map_err(|reason| (Kind::Unreadable, reason.to_owned()));
        if let Err((kind, reason)) = row.and_then(|row| rows.take(columns, row, place)) {
            rows.collector.problem(kind, place(), reason);
        }
    })?;
    let columns = columns.unwrap_or_else(|| Err("it has no header".to_owned()));
    Ok(columns.map(|columns| rows.finish(&columns)))
}

/// A row of an image, and the class name and box of its label.
pub(super) struct PlacedRow {
    pub line: u64,
    pub image: String,
    pub label: Option<(String, ExactBox)>,
}

/// The rows of a file.
pub(super) struct PlacedRows {
    pub columns: Columns,
    pub unit: BoxUnit,
    pub classes: HashMap<String, TruthLabel>,
    pub rows: Vec<PlacedRow>,
}

/// The usable rows.
///
/// # Errors
/// As [`read`].
pub(super) fn placed_rows(text: &str, delimiter: char) -> Result<PlacedRows, String> {
    let mut rows = Rows::default();
    let mut columns: Option<Result<Columns, String>> = None;
    let mut placed = Vec::new();
    let read = each_row(text.as_bytes(), delimiter, |line, row| {
        let Some(columns) = &columns else {
            columns = Some(row.map_err(str::to_owned).and_then(Columns::parse));
            return;
        };
        let (Ok(columns), Ok(row)) = (columns, row) else { return };
        let boxes = rows.parts.count() + rows.beyond.count();
        if rows.take(columns, row, String::new).is_err() {
            return;
        }
        let image = super::image_name(unescaped(row.get(columns.image).map_or("", |cell| cell)));
        let is_box = rows.parts.count() + rows.beyond.count() > boxes;
        let found = rows.collector.known_image(&image).and_then(|image| image.boxes.last()).filter(|_| is_box);
        placed.push((line, image, found.map(|found| (found.class, found.bounds))));
    });
    read.map_err(|error| error.to_string())?;
    let columns = columns.unwrap_or_else(|| Err("it has no header".to_owned()))?;
    let annotations = rows.finish(&columns).annotations;
    let unit =
        annotations.images.iter().find_map(|image| image.boxes.first()).map_or(BoxUnit::Pixels, |found| found.unit);
    let names: Vec<String> = annotations.classes.iter().map(class_name).collect();
    let row = |(line, image, label): (u64, String, Option<(u32, ExactBox)>)| {
        let label = label.map(|(class, bounds)| (names[class as usize].clone(), bounds));
        PlacedRow { line, image, label }
    };
    let rows = placed.into_iter().map(row).collect();
    let classes = names.into_iter().zip(annotations.classes).collect();
    Ok(PlacedRows { columns, unit, classes, rows })
}

#[derive(Default)]
struct Rows {
    collector: Collector,
    /// Boxes that may be fractions, and boxes that cannot be.
    parts: Tally,
    beyond: Tally,
    judged: Tally,
    /// Whether any number in `parts` is not an integer.
    has_fractions: bool,
}

impl Rows {
    fn take(&mut self, columns: &Columns, row: &[Cow<'_, str>], place: impl Fn() -> String) -> Result<(), Refusal> {
        let cell = |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", |text| &**text);
        let text = |column| cell(column).trim();
        let image = unescaped(cell(Some(columns.image)));
        if image.is_empty() {
            return Err(unreadable("names no image"));
        }
        let all_classes = text(columns.all_classes);
        if !all_classes.is_empty() {
            let categories: Vec<Category> = serde_json::from_str(all_classes)
                .map_err(|error| unreadable(format!("has no list of ids and names in all_classes: {error}")))?;
            self.collector.categories(categories);
        }
        let status = text(columns.status);
        if !matches!(status, "" | "ok") {
            self.collector.add_unpredicted(image, status, text(columns.error), place);
            return Ok(());
        }
        let is_set = |key: &str, column: Option<usize>| flag(key, &Scalar::Text(text(column).to_owned()));
        let size = match columns.size {
            Some([width, height]) => match (text(Some(width)).parse(), text(Some(height)).parse()) {
                (Ok(width), Ok(height)) if width > 0 && height > 0 => Some([width, height]),
                _ => None,
            },
            None => None,
        };
        let number = columns.number.map(|column| text(Some(column)));
        let (number, name) = class_of(number, unescaped(cell(columns.name)))?;
        let has_class = number.is_some() || name.is_some();
        let numbers = match columns.bounds {
            Some(bounds) => bounds.numbers(|column| text(Some(column)))?,
            None => [None; 4],
        };
        let score = cell_number(text(columns.score)).and_then(|score| score.map(checked_score).transpose());
        let role = match (is_set("iscrowd", columns.crowd)?, is_set("difficult", columns.ignored)?) {
            (true, _) => BoxRole::Crowd,
            (false, true) => BoxRole::Ignored,
            (false, false) => BoxRole::Object,
        };
        match (numbers, has_class) {
            ([None, None, None, None], has_class) => {
                if has_class {
                    let score = score.map_err(|refusal| self.collector.refuse_label(image, refusal))?;
                    let class = self.collector.class(number, name);
                    self.collector.add_label_once(image, AnnotatedLabel { class, score })?;
                }
            }
            ([Some(a), Some(b), Some(c), Some(d)], true) => {
                let bounds = columns.bounds.map_or([a, b, c, d].into(), |bounds| bounds.bounds([a, b, c, d]));
                let bounds = checked_box(bounds, columns.unit.unwrap_or_default())?;
                let score = score?;
                let class = self.collector.class(number, name);
                let found = AnnotatedBox { bounds, unit: BoxUnit::Pixels, class, score, area: None, role };
                let tally = if is_part(bounds) { &mut self.parts } else { &mut self.beyond };
                tally.add(&place);
                self.has_fractions |=
                    is_part(bounds) && <[f64; 4]>::from(bounds).iter().any(|number| number.fract() != 0.0);
                if !text(columns.verdict).is_empty() {
                    self.judged.add(&place);
                }
                self.collector.add_box(image, found, place);
            }
            (_, true) => return Err((Kind::BrokenBox, "has a box without four numbers".to_owned())),
            (_, false) => return Err((Kind::UnknownClass, "has a box without a class".to_owned())),
        }
        let image = self.collector.image(image);
        image.size = image.size.or(size);
        Ok(())
    }

    fn finish(mut self, &Columns { unit, bounds, number, .. }: &Columns) -> Found {
        let collector = &mut self.collector;
        collector.files = 1;
        if number.is_none() {
            collector.name_by_numbers();
        }
        collector.notes.extend(self.judged.unread_verdicts());
        if matches!(bounds, Some(Bounds::Whole(_))) {
            collector.notes.push("boxes are read as left, top, width and height, as in COCO".to_owned());
        }
        let looks_so = unit.is_none() && self.has_fractions && self.parts.count() > self.beyond.count();
        if looks_so {
            let others = self.beyond.note("box extends beyond its image", "boxes extend beyond their images");
            let most = "boxes are fractions of their images: no number is above 1".to_owned();
            collector.notes.push(others.map_or(most, |others| {
                format!("boxes are fractions of their images: most have no number above 1; {others}")
            }));
        } else if unit.is_none() && self.has_fractions {
            collector.notes.extend(self.parts.note(
                "box has no number above 1 but is treated as pixels, like most boxes",
                "boxes have no number above 1 but are treated as pixels, like most boxes",
            ));
        }
        if looks_so || unit == Some(BoxUnit::Fractions) {
            collector.in_fractions();
        }
        self.collector.finish(AnnotationFormat::Csv)
    }
}

/// The number and the name of a class. Without a column for numbers, a number in the name column is one, unless
/// [`Collector::name_by_numbers`] finds names there.
fn class_of<'t>(number: Option<&str>, name: &'t str) -> Result<(Option<i64>, Option<&'t str>), Refusal> {
    let name_as_number = name.parse::<i64>().ok().filter(|number| number.to_string() == name);
    let number = match number {
        None if name_as_number.is_some() => return Ok((name_as_number, None)),
        None | Some("") => None,
        Some(text) => Some(text.parse::<i64>().map_err(|error| {
            unreadable(match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                    format!("has the class number {}, which is too large for 64 bits", shortened(text))
                }
                _ => format!("has “{}” instead of a class number", shortened(text)),
            })
        })?),
    };
    Ok((number, Some(name).filter(|name| !name.is_empty())))
}

/// Whether a box may be a fraction of its image, 0 to 1. Edges are rounded sums.
fn is_part(bounds: ExactBox) -> bool {
    let edges = [bounds.left, bounds.top, bounds.right(), bounds.bottom()];
    edges.iter().all(|edge| (-ROUNDING..=1.0 + ROUNDING).contains(edge))
}
