//! JPEG by libjpeg-turbo, with its settings left as Pillow leaves them: slow integer DCT, smooth upsampling. Thumbnails of the common
//! kind are decoded by `reduced`.

mod cosines;
mod huffman;
mod reduced;

use std::borrow::Cow;
use std::cell::RefCell;

use turbojpeg::{Colorspace, DecompressHeader, Decompressor, Image, PixelFormat, ScalingFactor};

use super::limits::zeroed;
use super::{DecodeError, DecodeLimits, Decoded, Format, Scale, metadata};

/// A progressive image of normal tools has about ten scans, and a hostile one can have thousands, each as much work as all
/// the image.
const MAX_SCANS: u32 = 200;

/// Each 8 x 8 block of the brightness takes at least one bit in a Huffman-coded scan; twice that for odd sampling factors. An
/// image that claims more pixels than this a byte is not there.
const MAX_PIXELS_PER_BYTE: u64 = 1024;

/// The decoder can leave out whole frequencies: a half, a quarter, an eighth of the pixels a side.
const MAX_HALVINGS: usize = 3;

/// Decoded in full in less time than anybody notices.
const QUICK_PIXELS: usize = 16_000_000;

/// The longer side of a coarse picture that is shown before a large one is decoded.
const FIRST_SIDE: u32 = 1024;

pub(super) fn decode(
    bytes: &[u8],
    limits: &DecodeLimits,
    scale: Scale,
) -> Result<Decoded, DecodeError> {
    let bytes = with_known_versions(bytes);
    let header = read_header(&bytes)?;
    check_header(&header, bytes.len(), limits)?;
    let orientation = metadata::orientation(&bytes, Format::Jpeg);
    let factor = scaling_factor(&header, scale);
    let scaled = header.scaled(factor);
    let copies = if orientation == super::Orientation::Upright || scale.stays_as_stored() {
        1
    } else {
        2
    };
    let is_thumbnail = matches!(scale, Scale::AtLeast(_));
    let mut needed_bytes = estimated_bytes(&header, &scaled, copies);
    if is_thumbnail {
        needed_bytes += reduced::working_bytes(&bytes);
    }
    let reservation = limits.budget.acquire(needed_bytes);
    let reduced = if is_thumbnail {
        reduced::decode(&bytes, &header, factor)
    } else {
        None
    };
    let (rgb, loss) = match reduced {
        Some(rgb) => (rgb, None),
        None => decompress(&bytes, &scaled, factor)?,
    };
    Ok(Decoded {
        width: scaled.width as u32,
        height: scaled.height as u32,
        full_size: [header.width as u32, header.height as u32],
        rgb,
        orientation,
        loss,
        reservation,
    })
}

/// Width, height and kind from the header alone.
pub(super) fn read_header(bytes: &[u8]) -> Result<DecompressHeader, DecodeError> {
    with_decompressor(|decompressor| decompressor.read_header(bytes)).map_err(|error| {
        // Where no frame header comes up to the end of the file, libjpeg has no size to report.
        let is_sizeless = matches!(error, turbojpeg::Error::IntegerOverflow(_));
        match Trouble::of(&error) {
            Trouble::Truncated => truncated(),
            _ if is_sizeless || first_scan(bytes).is_none() => truncated(),
            _ => damaged(&error),
        }
    })
}

fn check_header(
    header: &DecompressHeader,
    length: usize,
    limits: &DecodeLimits,
) -> Result<(), DecodeError> {
    let (width, height) = (header.width as u64, header.height as u64);
    limits.check(width, height)?;
    let possible_pixels = (length as u64).saturating_mul(MAX_PIXELS_PER_BYTE);
    if !header.is_arithmetic && width * height > possible_pixels {
        return Err(truncated());
    }
    Ok(())
}

/// Pixels, and for a progressive image the coefficients that libjpeg keeps until the last scan.
fn estimated_bytes(header: &DecompressHeader, scaled: &DecompressHeader, copies: u64) -> u64 {
    let stored_pixels = (header.width * header.height) as u64;
    let scaled_pixels = (scaled.width * scaled.height) as u64;
    let bytes_per_coefficient = 2;
    let channels = match header.colorspace {
        Colorspace::Gray => 1,
        Colorspace::CMYK | Colorspace::YCCK => 4,
        Colorspace::RGB | Colorspace::YCbCr => 3,
    };
    let coefficients = if header.is_progressive {
        stored_pixels * channels * bytes_per_coefficient
    } else {
        0
    };
    let ink = if is_ink(header) { scaled_pixels * 4 } else { 0 };
    scaled_pixels * 3 * copies + ink + coefficients
}

/// The smallest of the sizes for which libjpeg-turbo has fast code that is still large enough.
fn scaling_factor(header: &DecompressHeader, scale: Scale) -> ScalingFactor {
    let side = match scale {
        _ if header.is_lossless => return ScalingFactor::ONE,
        Scale::Full => return ScalingFactor::ONE,
        Scale::Level(level) => return ScalingFactor::new(1, 1 << level.min(MAX_HALVINGS)),
        Scale::FirstLevel if header.width * header.height <= QUICK_PIXELS => {
            return ScalingFactor::ONE;
        }
        Scale::FirstLevel => FIRST_SIDE,
        Scale::AtLeast(side) => side,
    };
    let longer_side = header.width.max(header.height);
    [
        ScalingFactor::ONE_EIGHTH,
        ScalingFactor::ONE_QUARTER,
        ScalingFactor::ONE_HALF,
    ]
    .into_iter()
    .find(|factor| factor.scale(longer_side) >= side as usize)
    .unwrap_or(ScalingFactor::ONE)
}

/// RGB pixels, and why they are not all there.
fn decompress(
    bytes: &[u8],
    scaled: &DecompressHeader,
    factor: ScalingFactor,
) -> Result<(Vec<u8>, Option<DecodeError>), DecodeError> {
    let format = if is_ink(scaled) {
        PixelFormat::CMYK
    } else {
        PixelFormat::RGB
    };
    let pitch = scaled.width * format.size();
    let mut pixels = zeroed((pitch * scaled.height) as u64)?;
    let mut run = |bytes: &[u8]| {
        let output = Image {
            pixels: pixels.as_mut_slice(),
            width: scaled.width,
            pitch,
            height: scaled.height,
            format,
        };
        with_decompressor(|decompressor| {
            decompressor.set_scaling_factor(factor)?;
            decompressor.decompress(bytes, output)
        })
    };
    let loss = match run(bytes) {
        Ok(()) => None,
        Err(error) => match Trouble::of(&error) {
            // libjpeg reports only its first warning: what looks harmless may hide that the end is missing.
            Trouble::Harmless => (!has_end(bytes)).then(truncated),
            Trouble::Truncated => Some(truncated()),
            // A cut between two scans leaves half a table, over which libjpeg stops before it shows anything.
            Trouble::Fatal if !has_end(bytes) => {
                let _shows_what_it_can = run(&up_to_last_marker(bytes));
                Some(truncated())
            }
            Trouble::Lost | Trouble::Fatal => Some(damaged(&error)),
        },
    };
    if let Some(loss) = &loss
        && pixels.iter().all(|byte| *byte == 0)
    {
        return Err(loss.clone());
    }
    if format == PixelFormat::CMYK {
        return Ok((rgb_from_inverted_cmyk(&pixels), loss));
    }
    Ok((pixels, loss))
}

/// libjpeg tells warnings from errors, and lost pixels from oddities, by its text only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// All pixels are there; Pillow and the browsers say nothing.
    Harmless,
    /// The file ends early.
    Truncated,
    /// Some pixels were made up.
    Lost,
    /// Decoding stopped.
    Fatal,
}

impl Trouble {
    /// The messages of libjpeg-turbo's `jerror.h` that are warnings; all others are errors.
    fn of(error: &turbojpeg::Error) -> Self {
        let message = error.to_string();
        let says = |part: &str| message.contains(part);
        if says("Premature end of JPEG file") {
            Self::Truncated
        } else if says("premature end of data segment")
            || says("bad Huffman code")
            || says("bad arithmetic code")
            || says("instead of RST")
        {
            Self::Lost
        } else if says("extraneous bytes before marker")
            || says("Inconsistent progression sequence")
            || says("Invalid SOS parameters")
            || says("unknown JFIF revision")
            || says("Unknown Adobe color transform")
        {
            Self::Harmless
        } else {
            Self::Fatal
        }
    }
}

fn truncated() -> DecodeError {
    DecodeError::Truncated { format: "JPEG" }
}

fn damaged(error: &turbojpeg::Error) -> DecodeError {
    let message = error.to_string();
    let reason = message
        .trim_start_matches("TurboJPEG error: ")
        .trim_start_matches("Corrupt JPEG data: ")
        .to_owned();
    let is_exotic = [
        "Unsupported JPEG",
        "precision",
        "color conversion",
        "Requested feature",
    ]
    .iter()
    .any(|part| reason.contains(part));
    if is_exotic {
        return DecodeError::UnsupportedKind {
            format: "JPEG",
            reason,
        };
    }
    DecodeError::Damaged { reason }
}

thread_local! {
    /// Making a decompressor costs more than a small image.
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

/// Lends this thread's decompressor. After an error it is thrown away: libjpeg may be in the middle of a header.
fn with_decompressor<T>(
    work: impl FnOnce(&mut Decompressor) -> turbojpeg::Result<T>,
) -> turbojpeg::Result<T> {
    let mut decompressor = match DECOMPRESSOR.take() {
        Some(decompressor) => decompressor,
        None => new_decompressor()?,
    };
    let result = work(&mut decompressor)?;
    DECOMPRESSOR.set(Some(decompressor));
    Ok(result)
}

fn new_decompressor() -> turbojpeg::Result<Decompressor> {
    let mut decompressor = Decompressor::new()?;
    decompressor.set_scan_limit(MAX_SCANS)?;
    Ok(decompressor)
}

fn is_ink(header: &DecompressHeader) -> bool {
    matches!(header.colorspace, Colorspace::CMYK | Colorspace::YCCK)
}

/// Pillow takes every CMYK JPEG as inverted, as Adobe writes them; the arithmetic is that of its `Convert.c`.
fn rgb_from_inverted_cmyk(cmyk: &[u8]) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(cmyk.len() / 4 * 3);
    for pixel in cmyk.chunks_exact(4) {
        let light = u32::from(pixel[3]);
        for &inverted_ink in &pixel[..3] {
            let product = u32::from(255 - inverted_ink) * light + 128;
            let darkened = ((product >> 8) + product) >> 8;
            rgb.push(light.saturating_sub(darkened) as u8);
        }
    }
    rgb
}

const START_OF_SCAN: u8 = 0xda;

/// A segment before the first scan: its marker and where its payload lies.
struct Segment {
    marker: u8,
    payload: std::ops::Range<usize>,
}

/// The segments up to and with the first start of scan.
fn segments(bytes: &[u8]) -> impl Iterator<Item = Segment> + '_ {
    let mut position = 2;
    let mut finished = false;
    std::iter::from_fn(move || {
        if finished {
            return None;
        }
        while bytes.get(position) == Some(&0xff) && bytes.get(position + 1) == Some(&0xff) {
            position += 1;
        }
        let head = bytes.get(position..position + 4)?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if head[0] != 0xff || length < 2 {
            return None;
        }
        let payload = position + 4..(position + 2 + length).min(bytes.len());
        position += 2 + length;
        finished = head[1] == START_OF_SCAN;
        (payload.start <= payload.end).then_some(Segment {
            marker: head[1],
            payload,
        })
    })
}

/// The file without its first scan and all that follows.
pub(super) fn up_to_scan(bytes: &[u8]) -> &[u8] {
    first_scan(bytes).map_or(bytes, |scan| &bytes[..bytes.len() - scan.len()])
}

/// The entropy-coded data of the first scan and all that follows.
fn first_scan(bytes: &[u8]) -> Option<&[u8]> {
    segments(bytes)
        .find(|segment| segment.marker == START_OF_SCAN)
        .map(|segment| &bytes[segment.payload.end..])
}

/// Whether an end-of-image marker follows the first scan.
fn has_end(bytes: &[u8]) -> bool {
    first_scan(bytes).is_some_and(|scan| scan.windows(2).any(|pair| pair == [0xff, 0xd9]))
}

/// The file without the segment that the cut fell into, properly ended.
fn up_to_last_marker(bytes: &[u8]) -> Vec<u8> {
    let is_segment = |pair: &[u8]| pair[0] == 0xff && matches!(pair[1], 0xc0..=0xcf | 0xda..=0xfe);
    let end = bytes.windows(2).rposition(is_segment).unwrap_or_default();
    let mut whole = bytes[..end].to_vec();
    whole.extend([0xff, 0xd9]);
    whole
}

/// The binding takes libjpeg's warnings about unknown JFIF and Adobe versions for errors, where libjpeg itself
/// and Pillow go on with the last version they know. So those numbers are set to the known ones, in a copy.
fn with_known_versions(bytes: &[u8]) -> Cow<'_, [u8]> {
    const APP0: u8 = 0xe0;
    const APP14: u8 = 0xee;
    let mut components = 0;
    let mut jfif_version = None;
    let mut adobe_transform = None;
    for Segment { marker, payload } in segments(bytes) {
        let content = &bytes[payload.clone()];
        match marker {
            APP0 if content.starts_with(b"JFIF\0") && content.len() >= 14 && content[5] != 1 => {
                jfif_version = Some(payload.start + 5);
            }
            APP14 if content.starts_with(b"Adobe") && content.len() >= 12 && content[11] > 2 => {
                adobe_transform = Some(payload.start + 11);
            }
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                components = content.get(5).copied().unwrap_or_default();
            }
            _ => {}
        }
    }
    if jfif_version.is_none() && adobe_transform.is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut repaired = bytes.to_vec();
    if let Some(position) = jfif_version {
        repaired[position] = 1;
    }
    if let Some(position) = adobe_transform {
        // What libjpeg assumes: YCbCr, and YCCK for four components.
        repaired[position] = if components == 4 { 2 } else { 1 };
    }
    Cow::Owned(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_that_means_lost_pixels_is_told_from_the_harmless_ones() {
        for (message, expected) in [
            ("Premature end of JPEG file", Trouble::Truncated),
            ("Corrupt JPEG data: bad Huffman code", Trouble::Lost),
            (
                "Corrupt JPEG data: premature end of data segment",
                Trouble::Lost,
            ),
            (
                "Corrupt JPEG data: found marker 0xd5 instead of RST3",
                Trouble::Lost,
            ),
            (
                "Corrupt JPEG data: 27 extraneous bytes before marker 0xd9",
                Trouble::Harmless,
            ),
            ("Bogus Huffman table definition", Trouble::Fatal),
        ] {
            let error = turbojpeg::Error::TurboJpegError(message.to_owned());
            assert_eq!(Trouble::of(&error), expected, "{message}");
        }
    }
}
