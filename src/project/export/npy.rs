//! Vectors as a NumPy array, one per row: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::ExportError;
use super::target::{ExportTarget, WholeFile, start_of};
use crate::alike::Embedding;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// How each table begins that an export writes.
const TABLE_START: &[u8] = b"row,uri,";

/// Why a NumPy array cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error("could not read {}: {reason}", path.display())]
    Io { path: PathBuf, reason: io::Error },
    #[error(
        "{} is not a two-dimensional NumPy array of float16, float32 or float64 in C order: {reason}; save it with \
         `np.save(\"FILE.npy\", np.ascontiguousarray(array, dtype=np.float32))`",
        path.display()
    )]
    NotAnArray { path: PathBuf, reason: String },
    #[error(
        "{} must name the image of each row in a column “uri”, each image once, and each row once if it has a column \
         “row”: {reason}",
        path.display()
    )]
    Table { path: PathBuf, reason: String },
}

/// The table of an array: `a.csv` for `a.npy`.
pub fn rows_file(array: &Path) -> PathBuf {
    array.with_extension("csv")
}

/// An array of 16-bit floats and its table, which appear together.
pub(super) struct VectorFiles {
    array: WholeFile,
    table: WholeFile,
    /// Whether the table replaces none.
    is_new: bool,
}

impl VectorFiles {
    pub(super) fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        if target.path == rows_file(&target.path) {
            return Err(ExportError::IsTable { path: target.path.clone() });
        }
        let of_table = ExportTarget { path: rows_file(&target.path), existing: target.existing };
        let array = WholeFile::create(target)?;
        let table = WholeFile::create(&of_table)?;
        let found = table.path().symlink_metadata().is_ok();
        // Nobody named this file.
        if found && !start_of(table.path()).starts_with(TABLE_START) {
            return Err(ExportError::NotATable { path: of_table.path });
        }
        Ok(Self { array, table, is_new: !found })
    }

    pub(super) fn commit(
        mut self,
        (rows, dims): (usize, usize),
        vectors: impl Iterator<Item = Embedding>,
        table: csv::Writer<Vec<u8>>,
    ) -> Result<(), ExportError> {
        let array = self.array.path().to_owned();
        let failed = ExportError::write(&array);
        self.array.write_all(&header(rows, dims)).map_err(&failed)?;
        for vector in vectors {
            self.array.write_all(&vector.to_bytes()).map_err(&failed)?;
        }
        let table = table.into_inner().map_err(|error| failed(error.into_error()))?;
        let path = self.table.path().to_owned();
        self.table.commit_with(&table)?;
        let committed = self.array.commit();
        if committed.is_err() && self.is_new {
            let _ = std::fs::remove_file(path);
        }
        committed
    }
}

fn header(rows: usize, dims: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '<f2', 'fortran_order': False, 'shape': ({rows}, {dims}), }}");
    // The values begin at a multiple of 64.
    while !(MAGIC.len() + 4 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let length = (text.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, text.as_bytes()].concat()
}

/// An array of numbers in C order.
struct Array<'b> {
    /// Numbers per row.
    dims: usize,
    /// Bytes per number.
    size: usize,
    values: &'b [u8],
}

/// The rows; `None` for one that is not finite.
pub(super) fn read_array(path: &Path) -> Result<Vec<Option<Embedding>>, VectorsError> {
    let bytes = std::fs::read(path).map_err(|reason| VectorsError::Io { path: path.to_owned(), reason })?;
    let Array { dims, size, values } =
        parse(&bytes).map_err(|reason| VectorsError::NotAnArray { path: path.to_owned(), reason })?;
    let rows = values.chunks_exact(dims * size);
    if size == 2 {
        return Ok(rows.map(Embedding::from_bytes).collect());
    }
    let number = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    };
    Ok(scaled(rows.map(|row| row.chunks_exact(size).map(number)), dims))
}

fn parse(bytes: &[u8]) -> Result<Array<'_>, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no NumPy file")?;
    let (length, start): (usize, usize) = match rest {
        [1, _, low, high, ..] => (usize::from(u16::from_le_bytes([*low, *high])), 4),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 6),
        _ => return Err("its version is unknown".to_owned()),
    };
    let text = start.checked_add(length).and_then(|end| rest.get(start..end)).ok_or("its header is truncated")?;
    let values = &rest[start + length..];
    let text = String::from_utf8_lossy(text).replace(' ', "");
    let entry = |name: &str| text.split_once(&format!("'{name}':")).map_or("", |(_, rest)| rest);
    let descr = entry("descr").split(',').next().unwrap_or_default().trim_matches('\'');
    let size = match descr {
        "<f2" => 2,
        "<f4" => 4,
        "<f8" => 8,
        _ => return Err(format!("its type is {descr}")),
    };
    let shape = entry("shape").trim_start_matches('(').split(')').next().unwrap_or_default();
    let sides: Vec<usize> = shape.split(',').filter_map(|side| side.parse().ok()).collect();
    let &[rows, dims] = sides.as_slice() else {
        return Err(format!("its shape is ({shape})"));
    };
    if !entry("fortran_order").starts_with("False") {
        return Err("it is in Fortran order".to_owned());
    }
    if dims == 0 {
        return Err(format!("its shape is ({shape}), so its rows have no numbers"));
    }
    let expected = rows.checked_mul(dims).and_then(|count| count.checked_mul(size));
    if expected != Some(values.len()) {
        return Err(format!("its shape is ({shape}), but it has {} bytes of values", values.len()));
    }
    Ok(Array { dims, size, values })
}

/// The rows minus their mean, so that a large value that all have costs no precision in 16 bits, and divided by the same
/// power of two, so that the largest number is below 65,504 and small ones do not vanish. Neither changes similarities.
fn scaled<R: Iterator<Item = f64> + Clone>(rows: impl Iterator<Item = R>, dims: usize) -> Vec<Option<Embedding>> {
    const LARGEST: f64 = 16384.0;
    let rows: Vec<Option<R>> = rows.map(|row| row.clone().all(f64::is_finite).then_some(row)).collect();
    let finite = || rows.iter().flatten().cloned();
    let count = finite().count().max(1) as f64;
    let mut mean = vec![0.0; dims];
    for row in finite() {
        for (mean, value) in mean.iter_mut().zip(row) {
            *mean += value / count;
        }
    }
    // Halves, because a difference can be larger than any number.
    let centered = |row: R| row.zip(&mean).map(|(value, mean)| value / 2.0 - mean / 2.0);
    let largest = finite().flat_map(centered).fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let power = if largest > 0.0 { largest.log2().floor().exp2() } else { 1.0 };
    let scaled = |row: R| -> Vec<f32> { centered(row).map(|value| (value / power * LARGEST) as f32).collect() };
    rows.iter().map(|row| Embedding::new(&scaled(row.clone()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::export::Existing;

    #[test]
    fn table_does_not_stay_without_its_array() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let files = VectorFiles::create(&ExportTarget { path: path.clone(), existing: Existing::Keep }).unwrap();
        std::fs::write(&path, "another program's").unwrap();
        let failed = files.commit((0, 1), std::iter::empty(), csv::Writer::from_writer(Vec::new()));
        assert!(matches!(failed, Err(ExportError::Exists { .. })), "{failed:?}");
        assert!(!rows_file(&path).exists());
        assert_eq!(std::fs::read(&path).unwrap(), b"another program's");
    }
}
