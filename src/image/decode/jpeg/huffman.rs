//! Huffman-coded coefficients of a JPEG: reads the selected ones, and skips the others several at a time. Formulas and
//! section numbers are those of ITU-T T.81.

use std::io::BufRead as _;

pub(super) const BLOCK: usize = 64;

/// Codes of up to this many bits are looked up in one step. Few codes in real files are longer.
const SYMBOL_BITS: u32 = 10;

/// The number of bits whose complete symbols are skipped in one step. Tables of this size fit into the fastest cache.
const LEAP_BITS: u32 = 12;

/// Added to `advance` by the symbol that ends a block: more than all others of a [`Leap`] together.
const END: usize = 128;

/// What the numbers of a table represent.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// Differences of mean values.
    Dc,
    /// All other coefficients.
    Ac,
}

/// A code, which stands for the distance to the next coefficient and its size; packed, so that its length is known as
/// soon as possible.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Symbol(u32);

impl Symbol {
    /// No code, or a longer one.
    const NONE: Self = Self(0);

    /// Tables F.1 and F.2, for 8 bits per sample.
    fn new(value: u8, code_bits: u8, class: Class) -> Option<Self> {
        let [zeros, number_bits] = [value >> 4, value & 15];
        let is_valid = match class {
            Class::Dc => value <= 11,
            Class::Ac => matches!(number_bits, 1..=10) || matches!(value, 0x00 | 0xf0),
        };
        let advance = if value == 0 { END as u8 } else { zeros + 1 };
        let packed = u32::from_le_bytes([code_bits + number_bits, advance, code_bits, number_bits]);
        is_valid.then_some(Self(packed))
    }

    /// The length of the code and of the number after it.
    fn bits(self) -> u32 {
        self.0 & 0xff
    }

    /// The distance from the previous coefficient, or [`END`].
    fn advance(self) -> usize {
        ((self.0 >> 8) & 0xff) as usize
    }

    /// The number after the code at the start of `bits`; `EXTEND` in F.2.2.1.
    fn number(self, bits: u64) -> i32 {
        let [_, _, code_bits, number_bits] = self.0.to_le_bytes();
        let from_number = bits << code_bits;
        let number = (from_number >> 1 >> (63 - number_bits)) as i32;
        let is_negative = from_number >> 63 == 0;
        let offset = if is_negative { (1 << number_bits) - 1 } else { 0 };
        number - offset
    }
}

/// Several symbols in one, packed like a single one.
#[derive(Clone, Copy)]
struct Leap(u16);

impl Leap {
    const NONE: Self = Self(0xff00);

    fn bits(self) -> u32 {
        u32::from(self.0 & 0xff)
    }

    fn advance(self) -> usize {
        usize::from(self.0 >> 8)
    }
}

/// The symbol of each code.
pub(super) struct Table {
    /// The symbols by the next bits.
    symbols: Box<[Symbol; 1 << SYMBOL_BITS]>,
    /// The symbols with longer codes, in order, each with the first 16 bits after its code range.
    long_symbols: Vec<(u32, Symbol)>,
}

impl Table {
    /// `values` in the order of their codes, with `counts` of them for each length from 1 to 16 bits; annex C.
    pub(super) fn new(counts: &[u8; 16], values: &[u8], class: Class) -> Option<Self> {
        let mut symbols = Box::new([Symbol::NONE; 1 << SYMBOL_BITS]);
        let mut long_symbols = Vec::new();
        let mut values = values.iter();
        let mut code = 0;
        for (length, &count) in (1..).zip(counts) {
            for &value in values.by_ref().take(usize::from(count)) {
                let symbol = Symbol::new(value, length, class)?;
                if let Some(free_bits) = SYMBOL_BITS.checked_sub(u32::from(length)) {
                    let first = code << free_bits;
                    symbols.get_mut(first..first + (1 << free_bits))?.fill(symbol);
                } else {
                    long_symbols.push(((code as u32 + 1) << (16 - length), symbol));
                }
                code += 1;
            }
            // No code consists only of ones.
            if code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        Some(Self { symbols, long_symbols })
    }

    #[inline]
    fn symbol(&self, bits: u64) -> Option<Symbol> {
        let symbol = self.symbols[(bits >> (64 - SYMBOL_BITS)) as usize];
        if symbol == Symbol::NONE { self.long_symbol(bits) } else { Some(symbol) }
    }

    #[cold]
    fn long_symbol(&self, bits: u64) -> Option<Symbol> {
        let first_16 = (bits >> 48) as u32;
        let index = self.long_symbols.partition_point(|(beyond, _)| *beyond <= first_16);
        self.long_symbols.get(index).map(|(_, symbol)| *symbol)
    }
}

/// Several symbols of a table together, by the next bits.
pub(super) struct Leaps(Box<[Leap; 1 << LEAP_BITS]>);

impl Leaps {
    pub(super) fn new(table: &Table) -> Self {
        let mut leaps = Box::new([Leap::NONE; 1 << LEAP_BITS]);
        for (index, leap) in leaps.iter_mut().enumerate() {
            let all = (index as u64) << (64 - LEAP_BITS);
            let (mut bits, mut advance) = (0, 0);
            while advance < BLOCK {
                let symbol = table.symbols[(all << bits >> (64 - SYMBOL_BITS)) as usize];
                if symbol == Symbol::NONE || bits + symbol.bits() > LEAP_BITS {
                    break;
                }
                bits += symbol.bits();
                advance += symbol.advance();
            }
            if bits > 0 {
                *leap = Leap((advance << 8) as u16 | bits as u16);
            }
        }
        Self(leaps)
    }
}

/// How the coefficients of one component are coded.
#[derive(Clone, Copy)]
pub(super) struct Codes<'a> {
    pub dc: &'a Table,
    pub ac: &'a Table,
    pub leaps: &'a Leaps,
}

/// The coefficients of a block that are used.
pub(super) struct Selection {
    /// The last one, in zigzag order.
    pub last: usize,
    /// The position of each coefficient, in zigzag order. Unselected ones share a spare position.
    pub places: [u8; BLOCK],
}

/// The number of blocks that are computed in parallel.
pub(super) const LANES: usize = 8;

/// One coefficient from each of these blocks, as coded.
pub(super) type Lanes = [i32; LANES];

/// The bits of a scan, one entropy-coded segment after another. The end of a segment is followed by zeros.
pub(super) struct Bits<'a> {
    /// What follows the segment and its marker.
    rest: &'a [u8],
    /// The bytes of the segment, without the zeros after each 0xff.
    segment: Vec<u8>,
    /// The next bits, most significant first.
    buffer: u64,
    /// The number of bits that count as read. Those below are zeros, or what comes next anyway.
    filled: u32,
    /// The first byte of the segment that is not completely in the buffer.
    position: usize,
    /// The 8 bytes there, read ahead so that the decoder does not wait for memory.
    ahead: u64,
}

impl<'a> Bits<'a> {
    /// A reader before the first segment. `None` if memory is insufficient.
    pub(super) fn new(scan: &'a [u8]) -> Option<Self> {
        let mut segment = Vec::new();
        segment.try_reserve_exact(scan.len()).ok()?;
        Some(Self { rest: scan, segment, buffer: 0, filled: 0, position: 0, ahead: 0 })
    }

    /// Advances to the next segment, and returns the marker that ends it; B.1.1.5. `None` if none does.
    pub(super) fn next_segment(&mut self) -> Option<u8> {
        self.segment.clear();
        loop {
            self.rest.read_until(0xff, &mut self.segment).ok()?;
            let (&next, rest) = self.rest.split_first()?;
            self.rest = rest;
            if next != 0 {
                self.segment.pop();
                (self.buffer, self.filled, self.position) = (0, 0, 0);
                self.look_ahead();
                return Some(next);
            }
        }
    }

    /// The remaining bits of the segment; negative if it had too few.
    pub(super) fn left(&self) -> i64 {
        let read = self.position as i64 * 8 - i64::from(self.filled);
        self.segment.len() as i64 * 8 - read
    }

    /// Fills the buffer to at least 56 bits.
    #[inline]
    fn fill(&mut self) {
        self.buffer |= self.ahead >> self.filled;
        self.position += ((63 - self.filled) / 8) as usize;
        self.filled |= 0b11_1000;
        self.look_ahead();
    }

    #[inline]
    fn look_ahead(&mut self) {
        let bytes = self.segment.get(self.position..).unwrap_or_default();
        self.ahead = match bytes.first_chunk() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => last_bytes(bytes),
        };
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.buffer <<= bits;
        self.filled -= bits;
    }

    /// Reads a block up to the last selected coefficient into one lane, and skips the rest; F.2.2. `mean` is that of
    /// the previous block, and becomes that of this one. `None` for an invalid code.
    pub(super) fn read_block(
        &mut self,
        codes: &Codes<'_>,
        selection: &Selection,
        mean: &mut i32,
        coefficients: &mut [Lanes],
        lane: usize,
    ) -> Option<()> {
        self.fill();
        let symbol = codes.dc.symbol(self.buffer)?;
        *mean += symbol.number(self.buffer);
        self.skip(symbol.bits());
        // The differences in an image never add up to more.
        if mean.unsigned_abs() >= 1 << 11 {
            return None;
        }
        coefficients[0][lane] = *mean;
        let mut next = 1;
        while next <= selection.last {
            self.fill();
            // Two of 16 + 10 bits.
            for _ in 0..2 {
                let symbol = codes.ac.symbol(self.buffer)?;
                let number = symbol.number(self.buffer);
                self.skip(symbol.bits());
                next += symbol.advance();
                let Some(place) = selection.places.get(next - 1) else {
                    return (symbol.advance() == END).then_some(());
                };
                coefficients[usize::from(*place)][lane] = number;
                if next > selection.last {
                    break;
                }
            }
        }
        self.skip_block(codes, next)
    }

    /// Skips the coefficients from `next` on.
    #[inline]
    fn skip_block(&mut self, codes: &Codes<'_>, mut next: usize) -> Option<()> {
        const LEAPS_PER_FILL: u32 = 56 / LEAP_BITS;
        'fill: while next < BLOCK {
            self.fill();
            for _ in 0..LEAPS_PER_FILL {
                let leap = codes.leaps.0[(self.buffer >> (64 - LEAP_BITS)) as usize];
                let after = next + leap.advance();
                if after < BLOCK {
                    self.skip(leap.bits());
                    next = after;
                    continue;
                }
                if leap.advance() >= END && after < END + BLOCK {
                    self.skip(leap.bits());
                    return Some(());
                }
                // One by one: a number with many bits, or a full block, which is followed by the next one.
                self.fill();
                let symbol = codes.ac.symbol(self.buffer)?;
                self.skip(symbol.bits());
                if symbol.advance() == END {
                    return Some(());
                }
                next += symbol.advance();
                continue 'fill;
            }
        }
        (next == BLOCK).then_some(())
    }
}

/// Fills the buffer with the remaining bytes, then with zeros.
#[cold]
fn last_bytes(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (byte, last) in word.iter_mut().zip(bytes) {
        *byte = *last;
    }
    u64::from_be_bytes(word)
}
