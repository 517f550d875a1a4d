//! Reads EXIF from the formats that contain it.

use std::io::Cursor;

use super::{Format, Orientation, jpeg_segments};

/// The EXIF block, as far as it can be read; `None` if there is none. Invalid metadata never spoils an image.
pub(crate) fn exif(bytes: &[u8], format: Format) -> Option<exif::Exif> {
    if !matches!(format, Format::Jpeg | Format::Png | Format::WebP | Format::Tiff) {
        return None;
    }
    // In a JPEG without EXIF, the reader would search the whole file.
    let bytes = if format == Format::Jpeg { jpeg_segments::up_to_scan(bytes) } else { bytes };
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    reader.read_from_container(&mut Cursor::new(bytes)).or_else(|error| error.distill_partial_result(|_| ())).ok()
}

pub(crate) fn orientation(bytes: &[u8], format: Format) -> Orientation {
    exif(bytes, format).map_or_else(Orientation::default, |exif| orientation_of(&exif))
}

pub(crate) fn orientation_of(exif: &exif::Exif) -> Orientation {
    exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY)
        .and_then(|field| field.value.get_uint(0))
        .map_or_else(Orientation::default, Orientation::from_exif)
}
