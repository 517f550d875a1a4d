//! Model cards as TOML text: parsed with the line of each error, checked beyond what types can express, and written.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::built_in;
use crate::domain::card_fields::{CARD_FIELDS, COLUMN, SIDE};
use crate::domain::{
    Activation, Background, BoxFormat, BoxSpace, Columns, DetectionOutput, ElementType, Grid, GridCoding, ImageInput,
    Layout, ModelCard, ModelFile, OutputConvention, ResizeRule,
};

pub(super) const CARD_FILE: &str = "model.toml";

/// No real graph has a larger batch.
const MAX_FIXED_BATCH: u32 = 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}, line {line}, column {column}: {reason}", path.display())]
pub struct CardError {
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub reason: String,
}

/// A field with an invalid value of the right type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct FieldError {
    /// The path of the field in the card, `input.std`.
    pub field: &'static str,
    pub reason: String,
}

/// Parses a card. `path` is only named in errors.
///
/// # Errors
/// Text that is not TOML, an unknown or missing field, a value of the wrong type, or one that [`check_card`] rejects.
pub fn parse_card(text: &str, path: &Path) -> Result<ModelCard, CardError> {
    parse_checked(text, path, check_card)
}

/// Parses TOML, then checks it. `path` is only named in errors.
pub(super) fn parse_checked<T: DeserializeOwned>(
    text: &str,
    path: &Path,
    check: impl FnOnce(&T) -> Result<(), FieldError>,
) -> Result<T, CardError> {
    let at = |span: Range<usize>, reason: String| {
        let (line, column) = position(text, span.start);
        CardError { path: path.to_owned(), line, column, reason }
    };
    let value: T =
        toml::from_str(text).map_err(|error| at(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    check(&value).map_err(|error| at(field_span(text, error.field), error.to_string()))?;
    Ok(value)
}

/// The card as the text of a `model.toml`.
///
/// # Errors
/// What [`check_card`] rejects.
pub fn write_card(card: &ModelCard) -> Result<String, FieldError> {
    check_card(card)?;
    Ok(toml::to_string(card).expect("every field of a card has a form in TOML"))
}

/// Checks what a card's types cannot express.
///
/// # Errors
/// The first invalid field.
pub fn check_card(card: &ModelCard) -> Result<(), FieldError> {
    check_id(&card.id)?;
    require(!card.name.trim().is_empty(), "name", "a model needs a name")?;
    if let Some(labels) = &card.labels {
        let known = built_in::label_set(labels).is_some() || is_plain_file_name(labels);
        require(
            known,
            "labels",
            &format!("must be {} or the name of a file next to the card", built_in::known_label_sets()),
        )?;
    }
    let task = card.output.task();
    require(card.task == task, "task", &format!("is {}, but the output is {}", card.task.into_str(), task.into_str()))?;
    check_file(&card.file)?;
    check_ranges(card)?;
    check_input(&card.input)?;
    match &card.output {
        OutputConvention::Classification(_) => Ok(()),
        OutputConvention::Detection(output) => check_detection(output),
        OutputConvention::Embedding(output) => {
            require(!output.name.is_empty(), "output.embedding.name", "must name an output")
        }
    }
}

pub(super) fn check_id(id: &str) -> Result<(), FieldError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let fits = (1..=64).contains(&id.len()) && id.chars().all(allowed) && !id.starts_with('.');
    require(fits, "id", "must be 1 to 64 lower-case letters, digits, `-`, `_` or `.`, and not begin with `.`")
}

fn check_file(file: &ModelFile) -> Result<(), FieldError> {
    require(
        is_plain_file_name(&file.name) && file.name != CARD_FILE,
        "file.name",
        "must be the name of a file next to the card, without a folder",
    )?;
    require(file.bytes > 0, "file.bytes", "must be more than 0")?;
    let is_hash = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    require(
        file.sha256.len() == 64 && file.sha256.chars().all(is_hash),
        "file.sha256",
        "must be 64 lower-case hexadecimal digits",
    )?;
    let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    require(file.urls.iter().all(is_web), "file.urls", "must begin with https:// or http://")
}

fn check_ranges(card: &ModelCard) -> Result<(), FieldError> {
    let card = serde_json::to_value(card).expect("cards have only text keys");
    match CARD_FIELDS.iter().copied().flatten().find_map(|field| field.fault(&card)) {
        Some((field, reason)) => Err(FieldError { field, reason }),
        None => Ok(()),
    }
}

fn check_input(input: &ImageInput) -> Result<(), FieldError> {
    require(input.divide_by.is_finite() && input.divide_by > 0.0, "input.divide_by", "must be a number above 0")?;
    require(input.mean.iter().all(|mean| mean.is_finite()), "input.mean", "must be three finite numbers")?;
    require(
        input.std.iter().all(|std| std.is_finite() && *std != 0.0),
        "input.std",
        "must be three finite numbers other than 0: pixels are divided by them",
    )?;
    if input.element_type == ElementType::Uint8 {
        let reason = "a uint8 input takes unscaled pixels: divide_by and std must be 1, and mean 0";
        require(input.divide_by == 1.0, "input.divide_by", reason)?;
        require(input.mean == [0.0; 3], "input.mean", reason)?;
        require(input.std == [1.0; 3], "input.std", reason)?;
    }
    let one_image = matches!(input.layout, Layout::Chw | Layout::Hwc);
    require(
        !(input.batches && one_image),
        "input.batches",
        "a layout without a batch dimension takes one image per call",
    )?;
    require(
        input.fixed_batch.is_none_or(|images| (2..=MAX_FIXED_BATCH).contains(&images) && !one_image && !input.batches),
        "input.fixed_batch",
        &format!("must be 2 to {MAX_FIXED_BATCH}, with a batch dimension and without input.batches"),
    )?;
    let mut names: Vec<&str> = input.auxiliary.iter().map(|input| input.name.as_str()).collect();
    names.sort_unstable();
    let differ = names.iter().all(|name| !name.is_empty()) && names.windows(2).all(|pair| pair[0] != pair[1]);
    require(differ, "input.auxiliary", "each must name another input")?;
    let mut mask_sides = input.auxiliary.iter().filter_map(|input| input.mask_size).flatten();
    require(
        mask_sides.all(|side| SIDE.contains(side)),
        "input.auxiliary",
        &format!("sides of a mask {}", SIDE.rule()),
    )?;
    check_resize(&input.resize)
}

fn check_resize(rule: &ResizeRule) -> Result<(), FieldError> {
    match *rule {
        ResizeRule::Stretch { width, height, crop: Some(crop) } => {
            let fits = "must not be larger than the resized side";
            require(crop.width <= width, "input.resize.stretch.crop.width", fits)?;
            require(crop.height <= height, "input.resize.stretch.crop.height", fits)
        }
        ResizeRule::ShortSideCrop { short_side, crop_width, crop_height, .. } => {
            let fits = "must not be larger than short_side";
            require(crop_width <= short_side, "input.resize.short-side-crop.crop_width", fits)?;
            require(crop_height <= short_side, "input.resize.short-side-crop.crop_height", fits)
        }
        _ => Ok(()),
    }
}

fn check_detection(output: &DetectionOutput) -> Result<(), FieldError> {
    for (columns, field) in [
        (Some(&output.boxes), "output.detection.boxes"),
        (output.labels.as_ref(), "output.detection.labels"),
        (Some(&output.scores), "output.detection.scores"),
        (output.objectness.as_ref(), "output.detection.objectness"),
        (output.batch_index.as_ref(), "output.detection.batch_index"),
        (output.angle.as_ref(), "output.detection.angle"),
    ] {
        let fits = |columns: &Columns| !columns.outputs.is_empty() && COLUMN.contains(columns.column);
        let reason = format!("must name an output, and a column up to {}", COLUMN.max);
        require(columns.is_none_or(fits), field, &reason)?;
    }
    require(
        output.selected.is_none() || (output.labels.is_none() && output.background == Background::None),
        "output.detection.selected",
        "needs a score for each class, without labels and background",
    )?;
    let softmax_of_one = output.activation == Activation::Softmax && output.labels.is_some();
    require(!softmax_of_one, "output.detection.activation", "softmax needs a score for each class, without labels")?;
    require(
        output.angle.is_none() || output.box_format == BoxFormat::Cxcywh,
        "output.detection.angle",
        "needs boxes as center and size: box_format must be cxcywh",
    )?;
    output.grid.as_ref().map_or(Ok(()), |grid| check_grid(grid, output))
}

fn check_grid(grid: &Grid, output: &DetectionOutput) -> Result<(), FieldError> {
    require(!grid.strides.is_empty(), "output.detection.grid.strides", "must have a stride for each level")?;
    if let GridCoding::Anchors { sizes } | GridCoding::Priors { sizes } = &grid.coding {
        let levels = grid.strides.len();
        require(
            !sizes.is_empty() && sizes.len().is_multiple_of(levels),
            match grid.coding {
                GridCoding::Anchors { .. } => "output.detection.grid.coding.anchors.sizes",
                _ => "output.detection.grid.coding.priors.sizes",
            },
            &format!("must have the same number of sizes for each of the {levels} strides"),
        )?;
    }
    let format = grid.coding.box_format();
    require(
        output.box_format == format && output.box_space == BoxSpace::ModelPixels,
        "output.detection.grid",
        &format!("this coding returns boxes as {} in model-pixels", format.into_str()),
    )
}

fn require(holds: bool, field: &'static str, reason: &str) -> Result<(), FieldError> {
    if holds {
        return Ok(());
    }
    Err(FieldError { field, reason: reason.to_owned() })
}

/// Whether `name` stays in its folder on every operating system.
pub(super) fn is_plain_file_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':', '\0'])
}

/// The range of a field in the text, or of the closest table around it if the field has its default.
pub(super) fn field_span(text: &str, field: &str) -> Range<usize> {
    let Ok(document) = DeTable::parse(text) else {
        return 0..0;
    };
    let mut span = 0..0;
    let mut table = document.get_ref();
    for key in field.split('.') {
        // Mappings of earlier versions.
        let former = || (key == "prediction").then(|| table.get_key_value("answer"))?;
        let Some((key, value)) = table.get_key_value(key).or_else(former) else {
            break;
        };
        span = key.span();
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    span
}

/// The line and column of a byte offset, both from 1, the column in characters.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = include_str!("../../../models/resnet50-v2/model.toml");

    /// The number (from 1) of the first line in `text` that begins with `start`.
    fn line_of(text: &str, start: &str) -> usize {
        text.lines().position(|l| l.starts_with(start)).unwrap() + 1
    }

    fn refused(text: &str) -> CardError {
        parse_card(text, Path::new("model.toml")).unwrap_err()
    }

    #[test]
    fn unknown_field_has_line_and_column() {
        for (after, added) in [
            ("task", "confidence = 3"),
            ("bytes", "md5 = \"\""),
            ("layout", "color = \"rgb\""),
            ("values", "softmax = true"),
            ("crop_width", "crop = 7"),
        ] {
            let line = line_of(CARD, after);
            let text = CARD.replacen(
                CARD.lines().nth(line - 1).unwrap(),
                &format!("{}\n{added}", CARD.lines().nth(line - 1).unwrap()),
                1,
            );
            let error = refused(&text);
            assert_eq!((error.line, error.column), (line + 1, 1), "{error}");
            let name = added.split(' ').next().unwrap();
            assert!(error.reason.contains(name), "{error}");
        }
    }

    #[test]
    fn invalid_value_has_its_position() {
        for (from, to, field) in [
            ("id = \"resnet50-v2\"", "id = \"../resnet\"", "id"),
            ("name = \"ResNet-50 v2\"", "name = \" \"", "name"),
            ("task = \"classification\"", "task = \"detection\"", "task"),
            ("labels = \"imagenet\"", "labels = \"../names.txt\"", "labels"),
            ("name = \"model.onnx\"", "name = \"/etc/passwd\"", "file.name"),
            ("bytes = 102442452", "bytes = 0", "file.bytes"),
            ("sha256 = \"7910", "sha256 = \"7910F", "file.sha256"),
            ("std = [0.229,", "std = [0.0,", "input.std"),
            ("mean = [0.485,", "mean = [nan,", "input.mean"),
            ("type = \"float32\"", "type = \"uint8\"", "input.divide_by"),
            ("divide_by = 255.0", "divide_by = -1.0", "input.divide_by"),
            ("layout = \"nchw\"", "layout = \"chw\"", "input.batches"),
            ("crop_width = 224", "crop_width = 300", "input.resize.short-side-crop.crop_width"),
            ("short_side = 256", "short_side = 99999999", "input.resize.short-side-crop.short_side"),
        ] {
            assert!(CARD.contains(from), "{from}");
            let text = CARD.replacen(from, to, 1);
            let error = refused(&text);
            assert!(error.reason.starts_with(&format!("{field}: ")), "{error}");
            let last = field.rsplit('.').next().unwrap();
            let line = text.lines().nth(error.line - 1).unwrap();
            assert!(line.starts_with(&format!("{last} = ")), "{error}: {line}");
        }
    }

    #[test]
    fn card_round_trips() {
        for built_in in built_in::CARDS {
            let card = parse_card(built_in.text, Path::new(built_in.id)).unwrap();
            let text = write_card(&card).unwrap();
            assert_eq!(parse_card(&text, Path::new("again")).unwrap(), card);
        }
    }

    #[test]
    fn british_spellings_are_read() {
        let text = include_str!("../../../models/ssd-mobilenet-coco/model.toml");
        let former = [("license", "licence"), ("\"rgb\"", "\"grey\""), ("model-pixels", "normalised")];
        let former = former.iter().fold(text.to_owned(), |text, (now, then)| text.replacen(now, then, 1));
        let card = parse_card(&former, Path::new("model.toml")).unwrap();
        assert_eq!(card.license, "Apache-2.0");
        assert_eq!(card.input.channels, crate::domain::ChannelOrder::Gray);
        let OutputConvention::Detection(output) = card.output else { panic!("it is a detector") };
        assert_eq!(output.box_space, crate::domain::BoxSpace::Normalized);
    }

    #[test]
    fn numbers_keep_their_notation() {
        let card = parse_card(CARD, Path::new("model.toml")).unwrap();
        let text = write_card(&card).unwrap();
        assert!(text.contains("mean = [0.485, 0.456, 0.406]"), "{text}");
    }
}
