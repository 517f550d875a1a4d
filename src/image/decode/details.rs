//! Details of an image file for the inspector, and the size of the upright image, without decoding it.

use std::sync::Arc;

use exif::{Exif, Field, In, Tag, Value};
use image::{ColorType, ImageDecoder};
use turbojpeg::Colorspace;

use super::{Format, Orientation, jpeg, orientation, raster};
use crate::domain::{Capture, GeoPoint};

/// What can be read without decoding the pixels. Missing if unreadable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageDetails {
    pub format: Option<Format>,
    /// Width and height as stored, before the orientation is applied.
    pub stored_size: Option<(u32, u32)>,
    pub orientation: Orientation,
    /// Color model and depth: “RGB, 8 bits per channel”.
    pub color: Option<String>,
    /// Labels and values, the most useful first: camera, lens, exposure, date, location.
    pub exif: Vec<(String, String)>,
}

impl ImageDetails {
    /// Width and height of the upright image, in pixels; `None` if the header cannot be read.
    pub fn upright_size(&self) -> Option<[u32; 2]> {
        let (width, height) = self.stored_size?;
        Some(if self.orientation.swaps_sides() { [height, width] } else { [width, height] })
    }
}

/// Reads header and metadata. Never fails: a damaged file has fewer details.
pub fn details(bytes: &[u8]) -> ImageDetails {
    let Ok(format) = Format::detect(bytes) else {
        return ImageDetails::default();
    };
    let exif = orientation::exif(bytes, format);
    let mut details = ImageDetails {
        format: Some(format),
        orientation: exif.as_ref().map_or_else(Orientation::default, orientation::orientation_of),
        exif: exif.as_ref().map(exif_rows).unwrap_or_default(),
        ..ImageDetails::default()
    };
    if format == Format::Jpeg {
        add_jpeg_header(&mut details, bytes);
    } else if let Ok(decoder) = raster::open(bytes, format) {
        details.stored_size = Some(decoder.dimensions());
        details.color = Some(color_name(decoder.color_type()).to_owned());
    }
    details
}

/// The EXIF data that images can be searched for. Never fails: a damaged file has less of it.
pub fn capture(bytes: &[u8]) -> Capture {
    let exif = Format::detect(bytes).ok().and_then(|format| orientation::exif(bytes, format));
    exif.map_or_else(Capture::default, |exif| Capture {
        taken: taken(&exif),
        camera: camera(&exif).map(Arc::from),
        location: location(&exif),
    })
}

/// By the clock of the camera; `None` if it was not set.
fn taken(exif: &Exif) -> Option<jiff::civil::DateTime> {
    let parse = |tag| match &exif.get_field(tag, In::PRIMARY)?.value {
        Value::Ascii(lines) => exif::DateTime::from_ascii(lines.first()?).ok(),
        _ => None,
    };
    let found = parse(Tag::DateTimeOriginal).or_else(|| parse(Tag::DateTime))?;
    let part = |part: u8| i8::try_from(part).ok();
    let (month, day) = (part(found.month)?, part(found.day)?);
    let (hour, minute, second) = (part(found.hour)?, part(found.minute)?, part(found.second)?);
    jiff::civil::DateTime::new(i16::try_from(found.year).ok()?, month, day, hour, minute, second, 0).ok()
}

fn add_jpeg_header(details: &mut ImageDetails, bytes: &[u8]) {
    let Ok(header) = jpeg::read_header(bytes) else {
        return;
    };
    details.stored_size = Some((header.width as u32, header.height as u32));
    let model = match header.colorspace {
        Colorspace::RGB => "RGB",
        Colorspace::YCbCr => "YCbCr",
        Colorspace::Gray => "gray",
        Colorspace::CMYK => "CMYK",
        Colorspace::YCCK => "YCCK",
    };
    let progressive = if header.is_progressive { ", progressive" } else { "" };
    details.color = Some(format!("{model}, 8 bits per channel{progressive}"));
}

fn color_name(color: ColorType) -> &'static str {
    match color {
        ColorType::L8 => "gray, 8 bits per channel",
        ColorType::La8 => "gray and alpha, 8 bits per channel",
        ColorType::Rgb8 => "RGB, 8 bits per channel",
        ColorType::Rgba8 => "RGB and alpha, 8 bits per channel",
        ColorType::L16 => "gray, 16 bits per channel",
        ColorType::La16 => "gray and alpha, 16 bits per channel",
        ColorType::Rgb16 => "RGB, 16 bits per channel",
        ColorType::Rgba16 => "RGB and alpha, 16 bits per channel",
        _ => "RGB, 32-bit floats",
    }
}

fn exif_rows(exif: &Exif) -> Vec<(String, String)> {
    let shown = |tag| exif.get_field(tag, In::PRIMARY).and_then(|field| value(exif, field));
    [
        ("Camera", camera(exif)),
        ("Lens", shown(Tag::LensModel)),
        ("Exposure", shown(Tag::ExposureTime)),
        ("Aperture", shown(Tag::FNumber)),
        ("ISO", shown(Tag::PhotographicSensitivity)),
        ("Focal length", shown(Tag::FocalLength)),
        ("Flash", shown(Tag::Flash)),
        ("Date", shown(Tag::DateTimeOriginal).or_else(|| shown(Tag::DateTime))),
        ("Place", place(exif)),
        ("Altitude", shown(Tag::GPSAltitude)),
        ("Description", shown(Tag::ImageDescription)),
        ("Artist", shown(Tag::Artist)),
        ("Copyright", shown(Tag::Copyright)),
        ("Software", shown(Tag::Software)),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some((label.to_owned(), value?)))
    .collect()
}

/// The value for display; `None` if the camera left it blank.
fn value(exif: &Exif, field: &Field) -> Option<String> {
    const LONGEST: usize = 200;
    let text = match &field.value {
        Value::Ascii(lines) => {
            lines.iter().map(|line| String::from_utf8_lossy(line).trim().to_owned()).collect::<Vec<_>>().join(" ")
        }
        _ => field.display_value().with_unit(exif).to_string(),
    };
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
    (!text.trim().is_empty()).then_some(text)
}

/// Make and model; many models already begin with the make.
fn camera(exif: &Exif) -> Option<String> {
    let text = |tag| exif.get_field(tag, In::PRIMARY).and_then(|field| value(exif, field));
    match (text(Tag::Make), text(Tag::Model)) {
        (Some(make), Some(model)) if !model.starts_with(&make) => Some(format!("{make} {model}")),
        (make, model) => model.or(make),
    }
}

/// Decimal degrees, as map searches accept them: `48.85837, 2.29448`.
fn place(exif: &Exif) -> Option<String> {
    let [latitude, longitude] = coordinates(exif)?;
    Some(format!("{latitude:.5}, {longitude:.5}"))
}

fn location(exif: &Exif) -> Option<GeoPoint> {
    let [latitude, longitude] = coordinates(exif)?;
    GeoPoint::new(latitude, longitude)
}

fn coordinates(exif: &Exif) -> Option<[f64; 2]> {
    let latitude = degrees(exif, Tag::GPSLatitude, Tag::GPSLatitudeRef, b'S')?;
    Some([latitude, degrees(exif, Tag::GPSLongitude, Tag::GPSLongitudeRef, b'W')?])
}

/// EXIF stores degrees, minutes and seconds, and the hemisphere in a separate field.
fn degrees(exif: &Exif, tag: Tag, hemisphere: Tag, negative: u8) -> Option<f64> {
    let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY)?.value else {
        return None;
    };
    let total: f64 = parts.iter().zip([1.0, 60.0, 3600.0]).map(|(part, divisor)| part.to_f64() / divisor).sum();
    let is_negative = matches!(
        exif.get_field(hemisphere, In::PRIMARY).map(|field| &field.value),
        Some(Value::Ascii(text)) if text.first().and_then(|line| line.first()) == Some(&negative)
    );
    total.is_finite().then_some(if is_negative { -total } else { total })
}
