//! JPEG by libjpeg-turbo with the same settings as in Pillow: slow integer DCT, smooth upsampling. `reduced` decodes
//! thumbnails of the common kind.

mod cosines;
mod huffman;
mod reduced;

use std::borrow::Cow;

use turbojpeg::{Colorspace, DecompressHeader, Decompressor, Image, PixelFormat, ScalingFactor};

use super::format::{
    END_OF_IMAGE, Frame, START_OF_SCAN, Segment, first_scan, is_start_of_frame, next_marker, segments,
};
use super::limits::zeroed;
use super::{DecodeError, DecodeLimits, Decoded, Flaw, Format, Scale, orientation};

/// A progressive image from common tools has about ten scans. A hostile one can have thousands, each as much work as
/// the whole image, so large images are limited to `MIN_SCANS`; smaller ones may have more, up to `MAX_SCANS`.
const MIN_SCANS: u64 = 20;
const MAX_SCANS: u64 = 200;
/// Pixels times scans of an image with more than `MIN_SCANS` scans.
const MAX_SCANNED_PIXELS: u64 = 2_000_000_000;

/// What libjpeg stores per coefficient until the last scan.
const BYTES_PER_COEFFICIENT: u64 = 2;

/// Each 8 x 8 luma block takes at least one bit in a Huffman-coded scan; twice that for odd sampling factors. A file
/// that claims more pixels per byte is truncated.
const MAX_PIXELS_PER_BYTE: u64 = 1024;

/// The decoder can skip frequencies: half, a quarter, or an eighth of the pixels per side.
const MAX_HALVINGS: usize = 3;

/// An image of this size is decoded in full without a visible delay.
const QUICK_PIXELS: usize = 16_000_000;

/// The longer side of a coarse image that is shown until a large one is decoded.
const FIRST_SIDE: u32 = 1024;

pub(super) fn decode(bytes: &[u8], limits: &DecodeLimits, scale: Scale) -> Result<Decoded, DecodeError> {
    let bytes = with_plain_header(bytes);
    let header = read_header(&bytes)?;
    check_header(&header, bytes.len(), limits)?;
    let orientation = orientation::orientation(&bytes, Format::Jpeg);
    let factor = scaling_factor(&header, scale);
    let scaled = header.scaled(factor);
    let copies = if orientation == super::Orientation::Upright || scale.stays_as_stored() { 1 } else { 2 };
    let is_thumbnail = matches!(scale, Scale::AtLeast(_));
    let mut needed_bytes = pixel_bytes(&scaled, copies) + coefficient_bytes(&bytes, &header);
    if is_thumbnail {
        needed_bytes += reduced::working_bytes(&bytes);
    }
    let reservation = limits.reserve(needed_bytes)?;
    let reduced = if is_thumbnail { reduced::decode(&bytes, &header, factor) } else { None };
    let (rgb, flaw) = match reduced {
        Some(rgb) => (rgb, None),
        None => decompress(&bytes, &header, factor)?,
    };
    Ok(Decoded {
        width: scaled.width as u32,
        height: scaled.height as u32,
        full_size: [header.width as u32, header.height as u32],
        rgb,
        orientation,
        flaw,
        reservation,
    })
}

/// Width, height and kind from the header only.
pub(super) fn read_header(bytes: &[u8]) -> Result<DecompressHeader, DecodeError> {
    let header = Decompressor::new().and_then(|mut decompressor| decompressor.read_header(bytes));
    header.map_err(|error| {
        // If the file ends before a frame header, libjpeg has no size to report.
        let is_sizeless = matches!(error, turbojpeg::Error::IntegerOverflow(_));
        match Trouble::from_error(&error) {
            Trouble::Truncated => truncated(),
            _ if is_sizeless || first_scan(bytes).is_none() => truncated(),
            _ => damaged(&error),
        }
    })
}

fn check_header(header: &DecompressHeader, length: usize, limits: &DecodeLimits) -> Result<(), DecodeError> {
    let (width, height) = (header.width as u64, header.height as u64);
    limits.check(width, height)?;
    let possible_pixels = (length as u64).saturating_mul(MAX_PIXELS_PER_BYTE);
    if !header.is_arithmetic && width * height > possible_pixels {
        return Err(truncated());
    }
    Ok(())
}

/// The size of the decoded pixels, times the copies held in parallel.
fn pixel_bytes(scaled: &DecompressHeader, copies: u64) -> u64 {
    let pixels = (scaled.width * scaled.height) as u64;
    let ink = if is_ink(scaled) { pixels * 4 } else { 0 };
    pixels * 3 * copies + ink
}

/// Whether libjpeg returns pixels only after the last scan: for a progressive image, and for one with one scan per
/// component.
fn has_several_scans(bytes: &[u8], header: &DecompressHeader) -> bool {
    let first = segments(bytes).find(|segment| segment.marker == START_OF_SCAN);
    let in_first = first.and_then(|scan| bytes[scan.payload].first());
    let components = Frame::find(bytes).map_or(0, |frame| frame.components.len());
    header.is_progressive || in_first.is_none_or(|&count| usize::from(count) < components)
}

/// The memory for the coefficients of an image with several scans, which libjpeg keeps until the last one; 0 for a
/// single scan.
fn coefficient_bytes(bytes: &[u8], header: &DecompressHeader) -> u64 {
    if !has_several_scans(bytes, header) {
        return 0;
    }
    let factors: Vec<_> = Frame::find(bytes).iter().flat_map(Frame::sampling_factors).collect();
    let [across, down] = [0, 1].map(|axis| factors.iter().map(|pair| pair[axis]).max().unwrap_or(1));
    let (width, height) = (header.width as u64, header.height as u64);
    // A unit has as many blocks of each component as its factors specify (A.2.3).
    let units = width.div_ceil(8 * across) * height.div_ceil(8 * down);
    let blocks: u64 = factors.iter().map(|[across, down]| units * across * down).sum();
    blocks * 64 * BYTES_PER_COEFFICIENT
}

fn max_scans(header: &DecompressHeader) -> u32 {
    let pixels = (header.width * header.height).max(1) as u64;
    (MAX_SCANNED_PIXELS / pixels).clamp(MIN_SCANS, MAX_SCANS) as u32
}

/// The smallest size that libjpeg-turbo has fast code for and that is still large enough.
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
    [ScalingFactor::ONE_EIGHTH, ScalingFactor::ONE_QUARTER, ScalingFactor::ONE_HALF]
        .into_iter()
        .find(|factor| factor.scale(longer_side) >= side as usize)
        .unwrap_or(ScalingFactor::ONE)
}

/// RGB pixels, and what is wrong with them.
///
/// Each call uses a new decompressor: libjpeg keeps the tables of the previous image, with which a file without tables
/// would be decoded into pixels that depend on the order of files.
fn decompress(
    bytes: &[u8],
    header: &DecompressHeader,
    factor: ScalingFactor,
) -> Result<(Vec<u8>, Option<Flaw>), DecodeError> {
    let scaled = header.scaled(factor);
    let format = if is_ink(header) { PixelFormat::CMYK } else { PixelFormat::RGB };
    let pitch = scaled.width * format.size();
    let mut pixels = zeroed((pitch * scaled.height) as u64)?;
    let mut run = |bytes: &[u8]| {
        let output = Image { pixels: pixels.as_mut_slice(), width: scaled.width, pitch, height: scaled.height, format };
        let mut decompressor = Decompressor::new()?;
        decompressor.set_scan_limit(max_scans(header))?;
        decompressor.set_scaling_factor(factor)?;
        decompressor.decompress(bytes, output)
    };
    let flaw = match run(bytes) {
        Ok(()) => None,
        // libjpeg reports only its first warning, so a harmless one may hide that the end is missing.
        Err(error) => match (Trouble::from_error(&error), is_complete(bytes, header)) {
            // Stray bytes between two scans are the rest of a damaged scan.
            (Trouble::Harmless | Trouble::Stray, true) if has_several_scans(bytes, header) => {
                Some(Flaw::Damage(damage(&error)))
            }
            (Trouble::Stray, true) => Some(Flaw::Suspicion(damage(&error))),
            (Trouble::Harmless | Trouble::Truncated, true) => None,
            (Trouble::Lost, true) => Some(Flaw::Damage(damage(&error))),
            (Trouble::Fatal, true) => Some(Flaw::Loss(damaged(&error))),
            // A cut between two scans leaves half a table, which stops libjpeg before it returns any pixels.
            (Trouble::Fatal, false) => {
                let _shows_what_it_can = run(&up_to_last_marker(bytes));
                Some(Flaw::Loss(truncated()))
            }
            (_, false) => Some(Flaw::Loss(truncated())),
        },
    };
    if let Some(Flaw::Loss(loss)) = &flaw
        && pixels.iter().all(|byte| *byte == 0)
    {
        return Err(loss.clone());
    }
    if format == PixelFormat::CMYK {
        return Ok((rgb_from_inverted_cmyk(&pixels), flaw));
    }
    Ok((pixels, flaw))
}

/// The kind of a libjpeg message. Only the text distinguishes warnings from errors, and lost pixels from oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// All pixels are present; Pillow and browsers show no warning.
    Harmless,
    /// Coded data was left over. Some encoders pad the data, but a decoder that lost its place in damaged data reports
    /// the same.
    Stray,
    /// The file ends early.
    Truncated,
    /// Some pixels were made up; Pillow makes up the same ones without a warning.
    Lost,
    /// Decoding stopped.
    Fatal,
}

impl Trouble {
    /// The messages in libjpeg-turbo's `jerror.h` that are warnings; all others are errors.
    fn from_error(error: &turbojpeg::Error) -> Self {
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
        } else if says("extraneous bytes before marker") {
            Self::Stray
        } else if says("Inconsistent progression sequence")
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

/// libjpeg's message about the damage.
fn damage(error: &turbojpeg::Error) -> String {
    let message = error.to_string();
    message.trim_start_matches("TurboJPEG error: ").trim_start_matches("Corrupt JPEG data: ").to_owned()
}

fn damaged(error: &turbojpeg::Error) -> DecodeError {
    let reason = damage(error);
    let is_exotic = ["Unsupported JPEG", "precision", "color conversion", "Requested feature"]
        .iter()
        .any(|part| reason.contains(part));
    if is_exotic {
        return DecodeError::UnsupportedKind { format: "JPEG", reason };
    }
    DecodeError::Damaged { reason }
}

fn is_ink(header: &DecompressHeader) -> bool {
    matches!(header.colorspace, Colorspace::CMYK | Colorspace::YCCK)
}

/// Pillow treats every CMYK JPEG as inverted, as Adobe writes them; the arithmetic is that of its `Convert.c`.
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

/// Whether Pillow considers the file complete. For a single scan, any marker after the coded data suffices: missing
/// data before it is made up. For several scans, the end of the image must be found when skipping from marker to
/// marker.
fn is_complete(bytes: &[u8], header: &DecompressHeader) -> bool {
    let Some(scan) = first_scan(bytes) else {
        return false;
    };
    if !has_several_scans(bytes, header) {
        return marker_after_data(scan, 0).is_some();
    }
    let mut from = 0;
    while let Some(at) = marker_after_data(scan, from) {
        let length = match scan[at] {
            END_OF_IMAGE => return true,
            // Reserved: followed by nothing.
            ..0xc0 => 0,
            _ => match scan[at + 1..] {
                [high, low, ..] => usize::from(u16::from_be_bytes([high, low])),
                _ => return false,
            },
        };
        from = at + 1 + length;
    }
    false
}

/// The position of the next marker code after coded data, which may contain restart markers.
fn marker_after_data(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_marker(bytes, at)?;
        if !matches!(bytes[at], 0xd0..=0xd7) {
            return Some(at);
        }
    }
}

/// The file without the segment that was cut off, properly terminated.
fn up_to_last_marker(bytes: &[u8]) -> Vec<u8> {
    let is_segment = |pair: &[u8]| pair[0] == 0xff && matches!(pair[1], 0xc0..=0xcf | 0xda..=0xfe);
    let end = bytes.windows(2).rposition(is_segment).unwrap_or_default();
    let mut whole = bytes[..end].to_vec();
    whole.extend([0xff, 0xd9]);
    whole
}

/// The binding turns libjpeg's warnings about headers into errors, where libjpeg and Pillow continue: with the last
/// JFIF or Adobe version that they know, and without bytes between segments. Those numbers are therefore set to known
/// ones and those bytes dropped, in a copy.
fn with_plain_header(bytes: &[u8]) -> Cow<'_, [u8]> {
    const APP0: u8 = 0xe0;
    const APP14: u8 = 0xee;
    let mut components = 0;
    let mut jfif_version = None;
    let mut adobe_transform = None;
    let mut end = 2;
    // Bytes between segments, last first.
    let mut strays = Vec::new();
    for Segment { start, marker, payload } in segments(bytes) {
        let content = &bytes[payload.clone()];
        match marker {
            APP0 if content.starts_with(b"JFIF\0") && content.len() >= 14 && content[5] != 1 => {
                jfif_version = Some(payload.start + 5);
            }
            APP14 if content.starts_with(b"Adobe") && content.len() >= 12 && content[11] > 2 => {
                adobe_transform = Some(payload.start + 11);
            }
            _ if is_start_of_frame(marker) => {
                components = Frame::parse(content).map_or(0, |frame| frame.component_count);
            }
            _ => {}
        }
        if bytes[end..start].iter().any(|byte| *byte != 0xff) {
            strays.insert(0, end..start);
        }
        end = payload.end;
    }
    if jfif_version.is_none() && adobe_transform.is_none() && strays.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut repaired = bytes.to_vec();
    if let Some(position) = jfif_version {
        repaired[position] = 1;
    }
    if let Some(position) = adobe_transform {
        // What libjpeg assumes: YCbCr, or YCCK for four components.
        repaired[position] = if components == 4 { 2 } else { 1 };
    }
    for stray in strays {
        repaired.drain(stray);
    }
    Cow::Owned(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libjpeg_messages_are_classified() {
        for (message, expected) in [
            ("Premature end of JPEG file", Trouble::Truncated),
            ("Corrupt JPEG data: bad Huffman code", Trouble::Lost),
            ("Corrupt JPEG data: premature end of data segment", Trouble::Lost),
            ("Corrupt JPEG data: found marker 0xd5 instead of RST3", Trouble::Lost),
            ("Corrupt JPEG data: 27 extraneous bytes before marker 0xd9", Trouble::Stray),
            ("Bogus Huffman table definition", Trouble::Fatal),
        ] {
            let error = turbojpeg::Error::TurboJpegError(message.to_owned());
            assert_eq!(Trouble::from_error(&error), expected, "{message}");
        }
    }
}
