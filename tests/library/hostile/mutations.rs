//! Almost valid inputs: bytes of a file with some of them flipped, dropped, duplicated or replaced.

use std::path::Path;

/// The contents of the files in a folder, by name; at least one.
pub(crate) fn read_files(folder: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Seeded, reproducible mutations of the files in a folder.
pub(crate) struct Mutations {
    corpus: Vec<Vec<u8>>,
    tokens: &'static [&'static [u8]],
    random: Random,
}

impl Mutations {
    /// `tokens` are meaningful to the parser; they are inserted anywhere.
    pub(crate) fn new(folder: &Path, tokens: &'static [&'static [u8]]) -> Self {
        Self { corpus: read_files(folder), tokens, random: Random(0x9e37_79b9_7f4a_7c15) }
    }

    /// The unchanged files.
    pub(crate) fn corpus(&self) -> &[Vec<u8>] {
        &self.corpus
    }

    /// A file after one to three mutations.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let place = self.random.below(self.corpus.len());
        let mut bytes = self.corpus[place].clone();
        let more = self.random.below(2) * self.random.below(3);
        for _ in 0..=more {
            self.mutate(&mut bytes);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, again));
            }
            3 => {
                let other = &self.corpus[random.below(self.corpus.len())];
                let from = random.below(other.len() + 1);
                let until = (from + 1 + random.below(64)).min(other.len());
                drop(bytes.splice(at..end, other[from..until].to_vec()));
            }
            4 if at + 4 <= bytes.len() => {
                // In place of a length: a large one, a small one or zero.
                let lengths = [0_u32, 1, 0x7f, 0xff, 0x8000, 0x7fff_ffff, u32::MAX];
                let length = lengths[random.below(lengths.len())].to_le_bytes();
                bytes[at..at + 4].copy_from_slice(&length);
            }
            5 | 6 if !self.tokens.is_empty() => {
                let token = self.tokens[random.below(self.tokens.len())];
                let end = if random.below(2) == 0 { at } else { end };
                drop(bytes.splice(at..end, token.iter().copied()));
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
}

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    /// `0..limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }
}
