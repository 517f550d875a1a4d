//! Decodes a JPEG at a quarter or an eighth of its size, for thumbnails: only the frequencies that are visible at that
//! size are read, and nearly all of a decoder's work concerns the others.
//!
//! Only for the most common kind of file: 8 bits, Huffman codes, one scan, gray or YCbCr. Everything else, and whatever
//! is damaged or merely unusual, is left to libjpeg-turbo. Formulas and section numbers are those of ITU-T T.81.

use turbojpeg::{Colorspace, DecompressHeader, ScalingFactor};

use super::cosines::{Inverse, SIDE, Samples, inverse_for, rgb, selection};
use super::huffman::{BLOCK, Bits, Class, Codes, LANES, Lanes, Leaps, Selection, Table};
use crate::image::decode::format::{Frame, START_OF_SCAN, Segment, segments};
use crate::image::decode::limits::zeroed;

/// RGB pixels, `[height, width, 3]`, scaled by `factor`, if this is an intact JPEG of the common kind.
pub(super) fn decode(bytes: &[u8], header: &DecompressHeader, factor: ScalingFactor) -> Option<Vec<u8>> {
    // At one half, so many coefficients are visible that libjpeg-turbo is faster.
    let is_reduced = factor.num() == 1 && matches!(factor.denom(), 4 | 8);
    if !is_reduced || header.is_progressive || header.is_arithmetic || header.is_lossless {
        return None;
    }
    let tables = Tables::parse(bytes)?;
    let mut scan = Scan::new(&tables, header, SIDE / factor.denom())?;
    let scaled = header.scaled(factor);
    let mut rgb = zeroed((scaled.width * scaled.height * 3) as u64).ok()?;
    let line_bytes = scaled.width * 3;
    for lines in rgb.chunks_mut(line_bytes * scan.unit[1]) {
        scan.read_row(lines, line_bytes)?;
    }
    scan.is_whole().then_some(rgb)
}

/// The approximate memory that [`decode`] uses besides the pixels: the scan without its markers.
pub(super) fn working_bytes(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// Everything before the scan.
struct Tables<'a> {
    quantization: [Option<&'a [u8; BLOCK]>; 4],
    dc: [Option<Table>; 4],
    ac: [Option<(Leaps, Table)>; 4],
    /// Units between two restart markers; 0 if there are none.
    restart_interval: u16,
    frame: Option<Frame<'a>>,
    scan: &'a [u8],
    /// The entropy-coded bytes and everything after them.
    coded: &'a [u8],
}

impl<'a> Tables<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut tables = Self {
            quantization: [None; 4],
            dc: [const { None }; 4],
            ac: [const { None }; 4],
            restart_interval: 0,
            frame: None,
            scan: &[],
            coded: &[],
        };
        for Segment { marker, payload, .. } in segments(bytes) {
            let content = &bytes[payload.clone()];
            match marker {
                0xc0 | 0xc1 if tables.frame.is_none() => {
                    tables.frame = Some(Frame::parse(content)?);
                }
                0xc4 => tables.add_huffman(content)?,
                0xdb => tables.add_quantization(content)?,
                0xdd => tables.restart_interval = u16::from_be_bytes(content.try_into().ok()?),
                START_OF_SCAN => {
                    tables.scan = content;
                    tables.coded = &bytes[payload.end..];
                }
                // Application data and comments.
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
        Some(tables)
    }

    /// B.2.4.1, with 8 bits each.
    fn add_quantization(&mut self, mut content: &'a [u8]) -> Option<()> {
        while let Some((&index, rest)) = content.split_first() {
            let (table, rest) = rest.split_first_chunk()?;
            *self.quantization.get_mut(usize::from(index))? = Some(table);
            content = rest;
        }
        Some(())
    }

    /// B.2.4.2
    fn add_huffman(&mut self, mut content: &[u8]) -> Option<()> {
        while let Some((&class_and_index, rest)) = content.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let count = counts.iter().map(|&count| usize::from(count)).sum();
            let (values, rest) = rest.split_at_checked(count)?;
            let index = usize::from(class_and_index & 15);
            match class_and_index >> 4 {
                0 => *self.dc.get_mut(index)? = Some(Table::new(counts, values, Class::Dc)?),
                1 => {
                    let table = Table::new(counts, values, Class::Ac)?;
                    *self.ac.get_mut(index)? = Some((Leaps::new(&table), table));
                }
                _ => return None,
            }
            content = rest;
        }
        Some(())
    }

    /// Sampling factors and tables of each component, from the frame and scan headers: B.2.2, B.2.3.
    fn components(&self, header: &DecompressHeader) -> Option<Vec<Coded<'_>>> {
        let count = match header.colorspace {
            Colorspace::Gray => 1,
            Colorspace::YCbCr => 3,
            _ => return None,
        };
        let frame = self.frame?;
        let size = frame.size.map(usize::from);
        let (&in_scan, scan) = self.scan.split_first()?;
        let (scan, scan_rest) = scan.as_chunks::<2>();
        let (scan, spectrum) = scan.split_at_checked(count)?;
        let is_common = frame.precision == 8
            && size == [header.width, header.height]
            && !size.contains(&0)
            && [usize::from(frame.component_count), usize::from(in_scan), frame.components.len()] == [count; 3]
            && frame.is_exact
            // All coefficients, with all their bits.
            && (spectrum, scan_rest) == (&[[0, 63]], &[0]);
        if !is_common {
            return None;
        }
        frame
            .components
            .iter()
            .zip(scan)
            .map(|(&[id, sampling, quantization], &[scan_id, tables])| {
                let factors = [sampling >> 4, sampling & 15].map(usize::from);
                if id != scan_id || factors.iter().any(|factor| !(1..=2).contains(factor)) {
                    return None;
                }
                let (leaps, ac) = self.ac.get(usize::from(tables & 15))?.as_ref()?;
                let dc = self.dc.get(usize::from(tables >> 4))?.as_ref()?;
                Some(Coded {
                    // A component alone in its scan is coded block by block, whatever its factors; A.2.2.
                    blocks: if count == 1 { [1, 1] } else { factors },
                    quantization: (*self.quantization.get(usize::from(quantization))?)?,
                    codes: Codes { dc, ac, leaps },
                })
            })
            .collect()
    }
}

/// How a component is coded.
struct Coded<'a> {
    /// The number of blocks per unit of the scan, horizontally and vertically.
    blocks: [usize; 2],
    quantization: &'a [u8; BLOCK],
    codes: Codes<'a>,
}

/// A scan, read unit by unit (“MCU”).
struct Scan<'a> {
    bits: Bits<'a>,
    /// The marker that ends the current segment.
    marker: u8,
    components: Vec<Component<'a>>,
    /// Units per row.
    columns: usize,
    /// Width and height of a unit in the reduced image.
    unit: [usize; 2],
    restart_interval: usize,
    units_until_restart: usize,
    restarts: u8,
}

impl<'a> Scan<'a> {
    /// `size` is that of a block of the largest component, in pixels of the reduced image.
    fn new(tables: &'a Tables<'a>, header: &DecompressHeader, size: usize) -> Option<Self> {
        let coded = tables.components(header)?;
        let across = coded.iter().map(|component| component.blocks[0]).max()?;
        let down = coded.iter().map(|component| component.blocks[1]).max()?;
        let unit = [across * size, down * size];
        let restart_interval = match tables.restart_interval {
            0 => usize::MAX,
            units => usize::from(units),
        };
        let components = coded.into_iter().map(|coded| Component::new(coded, unit));
        let mut scan = Self {
            bits: Bits::new(tables.coded)?,
            marker: 0,
            components: components.collect::<Option<_>>()?,
            columns: header.width.div_ceil(across * SIDE),
            unit,
            restart_interval,
            units_until_restart: restart_interval,
            restarts: 0,
        };
        scan.marker = scan.bits.next_segment()?;
        Some(scan)
    }

    /// Reads a row of units into `lines` of the reduced image, which can be fewer than the height of a unit at the
    /// bottom.
    fn read_row(&mut self, lines: &mut [u8], line_bytes: usize) -> Option<()> {
        for first in (0..self.columns).step_by(LANES) {
            for lane in 0..LANES.min(self.columns - first) {
                self.read_unit(lane)?;
            }
            for component in &mut self.components {
                component.compute_samples();
            }
            for (y, line) in lines.chunks_exact_mut(line_bytes).enumerate() {
                self.write_line(y, &mut line[first * self.unit[0] * 3..]);
            }
        }
        (self.bits.left() >= 0).then_some(())
    }

    fn read_unit(&mut self, lane: usize) -> Option<()> {
        if self.units_until_restart == 0 {
            self.restart()?;
        }
        self.units_until_restart -= 1;
        for component in &mut self.components {
            component.read_blocks(&mut self.bits, lane)?;
        }
        Some(())
    }

    /// E.2.4
    fn restart(&mut self) -> Option<()> {
        const FIRST_RESTART: u8 = 0xd0;
        if self.marker != FIRST_RESTART + self.restarts || !self.is_segment_used_up() {
            return None;
        }
        self.restarts = (self.restarts + 1) % 8;
        self.units_until_restart = self.restart_interval;
        self.marker = self.bits.next_segment()?;
        for component in &mut self.components {
            component.mean = 0;
        }
        Some(())
    }

    /// Whether the segment was read up to the padding in its last byte; F.1.2.3.
    fn is_segment_used_up(&self) -> bool {
        (0..8).contains(&self.bits.left())
    }

    /// Whether the image ends where the scan was read to.
    fn is_whole(&self) -> bool {
        const END_OF_IMAGE: u8 = 0xd9;
        self.marker == END_OF_IMAGE && self.is_segment_used_up()
    }

    /// Line `y` of the units in the lanes, as RGB; as many pixels as fit.
    fn write_line(&self, y: usize, line: &mut [u8]) {
        let mut colors = [[0; LANES]; SIDE];
        match self.components.as_slice() {
            [luma, blue, red] => {
                let samples = luma.line(y).iter().zip(blue.line(y)).zip(red.line(y));
                for (color, ((luma, blue), red)) in colors.iter_mut().zip(samples) {
                    *color = rgb(luma, blue, red);
                }
            }
            components => {
                let samples = components.iter().flat_map(|gray| gray.line(y));
                for (color, gray) in colors.iter_mut().zip(samples) {
                    *color = rgb(gray, &[0.0; LANES], &[0.0; LANES]);
                }
            }
        }
        for (lane, pixels) in (0..LANES).zip(line.chunks_mut(self.unit[0] * 3)) {
            for (pixel, color) in pixels.as_chunks_mut::<3>().0.iter_mut().zip(&colors) {
                let [red, green, blue, _] = color[lane].to_le_bytes();
                *pixel = [red, green, blue];
            }
        }
    }
}

/// The blocks of one component, of as many units as there are lanes.
struct Component<'a> {
    coded: Coded<'a>,
    selection: Selection,
    /// The factor of each selected coefficient.
    factors: Vec<f32>,
    inverse: Inverse,
    /// Width and height of a block in the reduced image.
    block: [usize; 2],
    /// Width of a unit in the reduced image.
    unit_width: usize,
    /// The mean of the previous block, as coded.
    mean: i32,
    /// The selected coefficients of each block of a unit, line by line, and one spare position for all others.
    coefficients: Vec<Lanes>,
    /// The samples of a unit, line by line.
    samples: Vec<Samples>,
}

impl<'a> Component<'a> {
    /// `unit` is its width and height in the reduced image.
    fn new(coded: Coded<'a>, unit: [usize; 2]) -> Option<Self> {
        let [across, down] = coded.blocks;
        // A block that covers more of the image is decoded larger, which saves enlarging it afterward.
        let block = [unit[0] / across, unit[1] / down];
        let (selection, factors) = selection(coded.quantization, block);
        Some(Self {
            selection,
            factors,
            inverse: inverse_for(block)?,
            block,
            unit_width: unit[0],
            mean: 0,
            coefficients: vec![[0; LANES]; across * down * (block[0] * block[1] + 1)],
            samples: vec![[0.0; LANES]; unit[0] * unit[1]],
            coded,
        })
    }

    fn read_blocks(&mut self, bits: &mut Bits<'_>, lane: usize) -> Option<()> {
        let [width, height] = self.block;
        for block in self.coefficients.chunks_exact_mut(width * height + 1) {
            bits.read_block(&self.coded.codes, &self.selection, &mut self.mean, block, lane)?;
        }
        Some(())
    }

    /// Computes samples from the coefficients and resets those to zero.
    fn compute_samples(&mut self) {
        let [width, height] = self.block;
        let blocks = self.coefficients.chunks_exact(width * height + 1);
        for (index, block) in blocks.enumerate() {
            let [x, y] = [index % self.coded.blocks[0], index / self.coded.blocks[0]];
            let samples = &mut self.samples[y * height * self.unit_width + x * width..];
            (self.inverse)(block, &self.factors, samples, self.unit_width);
        }
        self.coefficients.fill([0; LANES]);
    }

    /// Line `y` of the units.
    fn line(&self, y: usize) -> &[Samples] {
        &self.samples[y * self.unit_width..][..self.unit_width]
    }
}

#[cfg(test)]
mod tests;
