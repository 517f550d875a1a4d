//! PNG, WebP, BMP, TIFF and GIF by the `image` crate.

use std::error::Error;
use std::io::{self, Cursor};

use image::{ColorType, ImageDecoder, ImageError, ImageReader, Limits};

use super::limits::zeroed;
use super::{DecodeError, DecodeLimits, Decoded, Flaw, Format, Orientation, orientation};

/// Decodes the first frame. Gray becomes three equal channels, 16-bit values are divided by 257, alpha is blended onto
/// white.
pub(super) fn decode(bytes: &[u8], format: Format, limits: &DecodeLimits) -> Result<Decoded, DecodeError> {
    let mut decoder = open(bytes, format)?;
    let (width, height) = decoder.dimensions();
    limits.check(u64::from(width), u64::from(height))?;
    let color = decoder.color_type();
    let orientation = if format == Format::Tiff {
        // The EXIF reader would copy the whole file.
        orientation_of_tiff(&mut decoder)
    } else {
        orientation::orientation(bytes, format)
    };
    let stored_bytes = decoder.total_bytes();
    let rgb_bytes = u64::from(width) * u64::from(height) * 3;
    let estimated_bytes = estimated_bytes(format, stored_bytes, rgb_bytes, orientation);
    let reservation = limits.reserve(estimated_bytes)?;
    let mut allocations = Limits::no_limits();
    // Headroom for tables and rows; a stream that needs more is a decompression bomb.
    allocations.max_alloc = Some(estimated_bytes + (64 << 20));
    decoder.set_limits(allocations).map_err(|error| explain(&error, format))?;
    let mut stored = zeroed(stored_bytes)?;
    let loss = match decoder.read_image(&mut stored) {
        // The WebP decoder makes up missing data; Pillow's rejects such a file.
        _ if is_cut_short(bytes, format) => Some(truncated(format)),
        Ok(()) => None,
        Err(error) => Some(explain(&error, format)),
    };
    if let Some(loss) = &loss
        && stored.iter().all(|byte| *byte == 0)
    {
        return Err(loss.clone());
    }
    Ok(Decoded {
        width,
        height,
        full_size: [width, height],
        rgb: rgb8_over_white(stored, color, format)?,
        orientation,
        flaw: loss.map(Flaw::Loss),
        reservation,
    })
}

/// The peak memory: while the stored pixels are decoded, converted to RGB, and turned upright.
fn estimated_bytes(format: Format, stored: u64, rgb: u64, orientation: Orientation) -> u64 {
    let decoding = match format {
        // These decoders first fill a buffer of their own.
        Format::WebP | Format::Tiff | Format::Gif => stored * 2,
        _ => stored,
    };
    // RGB is computed in place unless it is larger.
    let converting = if stored < rgb { stored + rgb } else { stored };
    let turning = match orientation {
        Orientation::Upright => 0,
        _ => stored.max(rgb) + rgb,
    };
    decoding.max(converting).max(turning)
}

/// Reads the header.
pub(super) fn open(bytes: &[u8], format: Format) -> Result<impl ImageDecoder + '_, DecodeError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format.to_image_crate());
    let mut limits = Limits::no_limits();
    // For headers, palettes and color profiles; pixels get their own limit once their number is known.
    limits.max_alloc = Some(256 << 20);
    reader.limits(limits);
    reader.into_decoder().map_err(|error| explain(&error, format))
}

fn orientation_of_tiff(decoder: &mut impl ImageDecoder) -> Orientation {
    decoder
        .orientation()
        .map_or_else(|_| Orientation::default(), |known| Orientation::from_exif(u32::from(known.to_exif())))
}

/// Whether the file is shorter than its own header states.
fn is_cut_short(bytes: &[u8], format: Format) -> bool {
    let declared = match (format, bytes.get(4..8)) {
        (Format::WebP, Some(&[a, b, c, d])) => u64::from(u32::from_le_bytes([a, b, c, d])) + 8,
        _ => 0,
    };
    (bytes.len() as u64) < declared
}

fn truncated(format: Format) -> DecodeError {
    DecodeError::Truncated { format: format.into_str() }
}

fn explain(error: &ImageError, format: Format) -> DecodeError {
    if is_end_of_file(error) {
        return truncated(format);
    }
    let reason = error.to_string();
    let reason = match reason.split_once(": ") {
        Some((prefix, cause)) if prefix.starts_with("Format error decoding") => cause.to_owned(),
        _ => reason,
    };
    if reason.starts_with("CRC error") {
        return DecodeError::Damaged { reason: "a checksum is wrong".to_owned() };
    }
    match error {
        ImageError::Unsupported(_) => DecodeError::UnsupportedKind { format: format.into_str(), reason },
        _ => DecodeError::Damaged { reason },
    }
}

/// Whether the data ended early, at any depth of the causes.
fn is_end_of_file(error: &ImageError) -> bool {
    // An I/O error is displayed as its own cause, so it is checked first.
    let mut cause: Option<&(dyn Error + 'static)> = match error {
        ImageError::IoError(error) => Some(error),
        other => Some(other),
    };
    while let Some(error) = cause {
        let ended = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        // The GIF decoder has its own error for this.
        if ended || error.to_string().ends_with("Unexpected End of File") {
            return true;
        }
        cause = error.source();
    }
    false
}

/// `stored` holds the decoder's pixels, with 16-bit channels in native byte order.
fn rgb8_over_white(stored: Vec<u8>, color: ColorType, format: Format) -> Result<Vec<u8>, DecodeError> {
    Ok(match color {
        ColorType::Rgb8 => stored,
        ColorType::L8 => converted(stored, |[gray]: &[u8; 1]| [*gray; 3]),
        ColorType::La8 => converted(stored, |[gray, alpha]: &[u8; 2]| [over_white(*gray, *alpha); 3]),
        ColorType::Rgba8 => converted(stored, |[red, green, blue, alpha]: &[u8; 4]| {
            [red, green, blue].map(|value| over_white(*value, *alpha))
        }),
        ColorType::L16 => converted(stored, |pixel: &[u8; 2]| [scaled_to_8_bits(wide(pixel, 0)); 3]),
        ColorType::La16 => converted(stored, |pixel: &[u8; 4]| [over_white16(wide(pixel, 0), wide(pixel, 1)); 3]),
        ColorType::Rgb16 => {
            converted(stored, |pixel: &[u8; 6]| [0, 1, 2].map(|channel| scaled_to_8_bits(wide(pixel, channel))))
        }
        ColorType::Rgba16 => converted(stored, |pixel: &[u8; 8]| {
            [0, 1, 2].map(|channel| over_white16(wide(pixel, channel), wide(pixel, 3)))
        }),
        _ => {
            return Err(DecodeError::UnsupportedKind {
                format: format.into_str(),
                reason: "its pixels are floating-point numbers".to_owned(),
            });
        }
    })
}

/// Converts pixels of `BYTES` bytes to RGB, in place unless that is larger: a second copy of a large image can be a
/// gigabyte.
fn converted<const BYTES: usize>(mut stored: Vec<u8>, rgb: impl Fn(&[u8; BYTES]) -> [u8; 3]) -> Vec<u8> {
    if BYTES < 3 {
        return stored.as_chunks().0.iter().flat_map(rgb).collect();
    }
    let count = stored.len() / BYTES;
    let mut pixel = [0; BYTES];
    for index in 0..count {
        pixel.copy_from_slice(&stored[index * BYTES..][..BYTES]);
        stored[index * 3..][..3].copy_from_slice(&rgb(&pixel));
    }
    stored.truncate(count * 3);
    stored
}

/// A 16-bit channel in native byte order.
fn wide(pixel: &[u8], channel: usize) -> u16 {
    u16::from_ne_bytes([pixel[channel * 2], pixel[channel * 2 + 1]])
}

/// Divides by 257, rounding to nearest.
fn scaled_to_8_bits(value: u16) -> u8 {
    ((u32::from(value) + 128) / 257) as u8
}

/// A value blended onto white, rounded to nearest.
fn over_white(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u32::from(value), u32::from(alpha));
    ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

/// Blends onto white with all 16 bits, and only then rounds to 8.
fn over_white16(value: u16, alpha: u16) -> u8 {
    let (value, alpha) = (u64::from(value), u64::from(alpha));
    let full = 65_535;
    let divisor = full * 257;
    ((value * alpha + full * (full - alpha) + divisor / 2) / divisor) as u8
}
