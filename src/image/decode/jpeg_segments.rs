//! The segments of a JPEG file, and its frame header. Section numbers are those of ITU-T T.81.

const START_OF_IMAGE: u8 = 0xd8;
pub(super) const START_OF_SCAN: u8 = 0xda;
pub(super) const END_OF_IMAGE: u8 = 0xd9;

/// DHT, JPG and DAC are in the same range.
pub(super) fn is_start_of_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// A segment before the first scan: its start, its marker, and the range of its payload.
pub(super) struct Segment {
    pub start: usize,
    pub marker: u8,
    pub payload: std::ops::Range<usize>,
}

/// The segments up to and including the first start of scan. Bytes between segments are skipped, as in libjpeg.
pub(super) fn segments(bytes: &[u8]) -> impl Iterator<Item = Segment> + '_ {
    let mut position = 2;
    let mut finished = false;
    std::iter::from_fn(move || {
        if finished {
            return None;
        }
        let mut at = next_marker(bytes, position)?;
        // These two kinds have no payload.
        while matches!(bytes[at], 1 | 0xd0..=0xd7) {
            at = next_marker(bytes, at + 1)?;
        }
        let length = bytes.get(at + 1..at + 3)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 || matches!(bytes[at], START_OF_IMAGE | END_OF_IMAGE) {
            return None;
        }
        let payload = at + 3..(at + 1 + length).min(bytes.len());
        position = at + 1 + length;
        finished = bytes[at] == START_OF_SCAN;
        (payload.start <= payload.end).then_some(Segment { start: at - 1, marker: bytes[at], payload })
    })
}

/// The position of the next marker code: the byte after any number of `ff` that is neither `ff` nor zero.
pub(super) fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0xff)?;
        at += bytes[at..].iter().position(|byte| *byte != 0xff)?;
        if bytes[at] != 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// The file up to its first scan.
pub(super) fn up_to_scan(bytes: &[u8]) -> &[u8] {
    first_scan(bytes).map_or(bytes, |scan| &bytes[..bytes.len() - scan.len()])
}

/// The entropy-coded data of the first scan and everything after it.
pub(super) fn first_scan(bytes: &[u8]) -> Option<&[u8]> {
    segments(bytes).find(|segment| segment.marker == START_OF_SCAN).map(|segment| &bytes[segment.payload.end..])
}

/// The frame header (B.2.2).
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub precision: u8,
    /// Width, height.
    pub size: [u16; 2],
    /// The number of components stated in the header.
    pub component_count: u8,
    /// The id, sampling factors (horizontal in the upper four bits, vertical in the lower), and quantization table of
    /// each component that is present.
    pub components: &'a [[u8; 3]],
    /// Whether the payload ends with the last component.
    pub is_exact: bool,
}

impl<'a> Frame<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Option<Self> {
        let (&[precision, y1, y0, x1, x0, component_count], rest) = payload.split_first_chunk()?;
        let (components, rest) = rest.as_chunks();
        Some(Self {
            precision,
            size: [[x1, x0], [y1, y0]].map(u16::from_be_bytes),
            component_count,
            components,
            is_exact: rest.is_empty(),
        })
    }

    /// The first frame before the first scan.
    pub(super) fn find(bytes: &'a [u8]) -> Option<Self> {
        let frame = segments(bytes).find(|segment| is_start_of_frame(segment.marker))?;
        Self::parse(&bytes[frame.payload])
    }

    /// The horizontal and vertical sampling factors of each component.
    pub(super) fn sampling_factors(&self) -> impl Iterator<Item = [u64; 2]> {
        let factors = self.components.iter().map(|[_, factors, _]| [factors >> 4, factors & 15]);
        factors.map(|pair| pair.map(|factor| factor.max(1).into()))
    }
}
