//! Embeddings as a NumPy array, and a table with the image of each row.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::csv_table::io_error;
use super::npy::{VectorFiles, VectorsError, read_array, rows_file};
use super::{ExportError, ExportTarget};
use crate::alike::{Embedding, Embeddings, METRIC, NEIGHBORS, NeighborGraph};
use crate::annotations::rows::each_row;
use crate::domain::{Encoder, FileStamp, InferenceLocation, RunInfo, Sample, SampleUri, column_delimiter, counted};
use crate::project::{EmbeddingStore, Project, StoreError};
use crate::tasks::{Cancelled, TaskControl};

/// The embeddings of images, one row each.
#[derive(Debug, Default)]
pub struct Vectors {
    pub uris: Vec<SampleUri>,
    /// The version of each image, if known.
    pub stamps: Vec<Option<FileStamp>>,
    pub rows: Embeddings,
    /// Rows that are not used: not finite, or of another length.
    pub unusable: usize,
}

/// Why a run has no embeddings, as far as the project shows, and how to get them.
pub fn missing_embeddings(run: &RunInfo) -> String {
    let RunInfo { name, card, key, .. } = run;
    match key.made {
        InferenceLocation::Here => format!(
            "“{name}” has no embeddings; add them with `spotcheck predict SOURCE --model MODEL --project FILE.spotcheck \
             --resume`, where MODEL is {} or, if `spotcheck models list` does not show it, the ONNX file of {}",
            key.model_id, card.name
        ),
        _ => format!(
            "“{name}” has no embeddings, because its predictions were not made by a model on this computer; predict the \
             images here with a model"
        ),
    }
}

/// The embeddings of a run's images, of whichever versions the files had; `None` if it has none. Progress is in images.
///
/// # Errors
/// They cannot be read, or canceled.
pub fn stored_vectors(
    project: &Project,
    run: &RunInfo,
    control: &TaskControl,
) -> Result<Option<(Encoder, Vectors)>, StoreError> {
    let Some(store) = EmbeddingStore::open(project)? else {
        return Ok(None);
    };
    let Some(stored) = store.encoder_of(run)? else {
        return Ok(None);
    };
    let mut vectors = Vectors::default();
    store.each(&stored, control, |uri, stamp, embedding| vectors.push(uri, Some(stamp), Some(&embedding)))?;
    Ok(Some((stored.1, vectors)))
}

/// The embeddings of a listing, compared with each other.
pub struct ComparedVectors {
    pub vectors: Vectors,
    /// The row of each image.
    pub rows: Vec<Option<usize>>,
    pub graph: NeighborGraph,
}

impl ComparedVectors {
    /// Compares `vectors`, as [`Vectors::of_samples`] returns them for `samples`.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn new(vectors: Vectors, samples: &[Sample], control: &TaskControl) -> Result<Self, Cancelled> {
        let graph = NeighborGraph::build(&vectors.rows, NEIGHBORS, control)?;
        // The rows are in the order of the images.
        let mut uris = vectors.uris.iter().enumerate().peekable();
        let row = |sample: &Sample| Some(uris.next_if(|(_, uri)| **uri == sample.uri)?.0);
        let rows = samples.iter().map(row).collect();
        Ok(Self { vectors, rows, graph })
    }

    /// The embeddings, their graph, and the row of each image.
    pub fn parts(&self) -> (&Embeddings, &NeighborGraph, &[Option<usize>]) {
        (&self.vectors.rows, &self.graph, &self.rows)
    }
}

impl Vectors {
    /// Adds the vector of an image, or counts it as unusable.
    pub fn push(&mut self, uri: SampleUri, stamp: Option<FileStamp>, embedding: Option<&Embedding>) {
        if embedding.is_some_and(|embedding| self.rows.push(embedding)) {
            self.uris.push(uri);
            self.stamps.push(stamp);
        } else {
            self.unusable += 1;
        }
    }

    /// The rows of the present versions of `samples`, in their order. A table from elsewhere can name images by their
    /// names in the source.
    pub fn of_samples<'s>(&self, samples: impl IntoIterator<Item = &'s Sample>) -> Self {
        let row_of: HashMap<&str, usize> = self.uris.iter().map(SampleUri::as_str).zip(0..).collect();
        let mut kept = Self::default();
        for sample in samples {
            let row = row_of.get(sample.uri.as_str()).or_else(|| row_of.get(&*sample.name)).copied();
            let is_present = |row: &usize| self.stamps[*row].as_ref().is_none_or(|stamp| *stamp == sample.stamp());
            if let Some(row) = row.filter(is_present) {
                kept.push(sample.uri.clone(), self.stamps[row].clone(), self.rows.row(row).as_ref());
            }
        }
        kept
    }

    /// The similarity of each sample to the image `query`; NaN for those without a vector. `None` if the query has none.
    pub fn similarity_to<'s>(
        &self,
        samples: impl IntoIterator<Item = &'s Sample>,
        query: &SampleUri,
    ) -> Option<Arc<[f32]>> {
        let row = self.rows.row(self.uris.iter().position(|uri| uri == query)?)?;
        Some(self.similarities(samples, &row))
    }

    /// The similarity of each sample to a vector; NaN for those without one.
    pub fn similarities<'s>(&self, samples: impl IntoIterator<Item = &'s Sample>, query: &Embedding) -> Arc<[f32]> {
        let similarities = self.rows.similarities(query);
        let similarity_of: HashMap<&SampleUri, f32> = self.uris.iter().zip(similarities).collect();
        samples.into_iter().map(|sample| similarity_of.get(&sample.uri).copied().unwrap_or(f32::NAN)).collect()
    }

    /// Writes the array, of 16-bit floats, and its table.
    ///
    /// # Errors
    /// As for any export; neither file appears. A table of another program is never replaced.
    pub fn write(&self, target: &ExportTarget, encoder: &Encoder) -> Result<(), ExportError> {
        let files = VectorFiles::create(target)?;
        let failed = |error| ExportError::write(&target.path)(io_error(error));
        let tensor = encoder.tensor_text();
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(["row", "uri", "encoder", "layer", "metric"]).map_err(failed)?;
        for (row, uri) in self.uris.iter().enumerate() {
            let record = [&row.to_string(), uri.as_str(), &encoder.model_id, &tensor, METRIC];
            table.write_record(record).map_err(failed)?;
        }
        let rows = (0..self.rows.len()).filter_map(|row| self.rows.row(row));
        files.commit((self.rows.len(), self.rows.dims()), rows, table)
    }

    /// Reads an array and its table.
    pub fn read(array: &Path) -> Result<Self, VectorsError> {
        let table = rows_file(array);
        let not_a_table = |reason: String| VectorsError::Table { path: table.clone(), reason };
        let named = read_table(&table).map_err(not_a_table)?;
        let rows = read_array(array)?;
        if rows.len() != named.len() {
            return Err(not_a_table(format!(
                "it has {}, and the array {}",
                counted(named.len(), "row", "rows"),
                rows.len()
            )));
        }
        let mut uris = vec![None; rows.len()];
        for NamedRow { line, row, uri } in named {
            let last = rows.len() - 1;
            let of_row = uris.get_mut(row);
            let of_row =
                of_row.ok_or_else(|| not_a_table(format!("line {line}: row {row} is not between 0 and {last}")))?;
            if of_row.replace(uri).is_some() {
                return Err(not_a_table(format!("line {line} is about row {row} again")));
            }
        }
        let mut vectors = Self::default();
        for (uri, row) in uris.into_iter().flatten().zip(rows) {
            vectors.push(uri, None, row.as_ref());
        }
        Ok(vectors)
    }
}

/// A line of the table of an array.
struct NamedRow {
    line: u64,
    row: usize,
    uri: SampleUri,
}

/// The lines of a table. A spreadsheet may have sorted them; without a column `row`, they are in the array's order.
fn read_table(table: &Path) -> Result<Vec<NamedRow>, String> {
    let bytes = std::fs::read(table).map_err(|error| error.to_string())?;
    let header = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let mut rows = Vec::new();
    let read = each_row(&*bytes, column_delimiter(&header), |line, cells| {
        let cells = cells.map(|cells| cells.iter().map(ToString::to_string).collect::<Vec<_>>());
        rows.push((line, cells.map_err(|reason| format!("line {line} {reason}"))));
    });
    read.map_err(|error| error.to_string())?;
    let mut rows = rows.into_iter();
    let columns = rows.next().map_or(Ok(Vec::new()), |(_, columns)| columns)?;
    let column = |wanted: &str| columns.iter().position(|name| name == wanted);
    let (of_uri, of_row) = (column("uri").ok_or("it has no column “uri”")?, column("row"));
    let mut named = Vec::new();
    let mut known = HashSet::new();
    for (line, cells) in rows {
        let cells = cells?;
        if cells.len() != columns.len() {
            let cells = counted(cells.len(), "cell", "cells");
            return Err(format!("line {line} has {cells}, and the first line {}", columns.len()));
        }
        let uri = &cells[of_uri];
        if !known.insert(uri.clone()) {
            return Err(format!("line {line} is about {uri} again"));
        }
        let row = match of_row.map(|column| &cells[column]) {
            Some(row) => row.trim().parse().map_err(|_| format!("line {line}: “{row}” is not the number of a row"))?,
            None => named.len(),
        };
        named.push(NamedRow { line, row, uri: SampleUri::new(uri) });
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::super::npy::MAGIC;
    use super::*;

    #[test]
    fn table_may_be_sorted_by_another_column() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 1), }\n";
        // 1, 2 and 4.
        let values = [0, 0x3c, 0, 0x40, 0, 0x44];
        let bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &values].concat();
        std::fs::write(&path, bytes).unwrap();
        let read = |rows: &str| {
            let end = if rows.contains('\r') { "\r\n" } else { "\n" };
            std::fs::write(rows_file(&path), format!("uri,row{end}{rows}")).unwrap();
            Vectors::read(&path)
        };
        let sorted = read("/a.jpg,2\n/b.jpg,0\n/c.jpg,1\n").unwrap();
        assert_eq!(sorted.uris, ["/b.jpg", "/c.jpg", "/a.jpg"].map(SampleUri::new));
        assert_eq!(sorted.rows.row(2), Embedding::new(&[4.0]));
        // As Excel writes it in many countries.
        std::fs::write(rows_file(&path), "\u{feff}row;uri\r\n2;/a.jpg\r\n0;/b.jpg\r\n1;/c.jpg\r\n").unwrap();
        assert_eq!(Vectors::read(&path).unwrap().uris, sorted.uris);
        for (rows, line) in [
            ("/a.jpg,2\n/b.jpg,0\n/c.jpg,2\n", "line 4"),
            ("/a.jpg,1\n/b.jpg,3\n/c.jpg,2\n", "line 3"),
            ("/a.jpg,x\n/b.jpg,1\n/c.jpg,2\n", "line 2"),
            ("/a.jpg,\n/b.jpg,1\n/c.jpg,2\n", "line 2"),
            ("/a.jpg,0\n/a.jpg,1\n/c.jpg,2\n", "line 3"),
            ("/a.jpg,0\r\n/b.jpg,x\r\n/c.jpg,2\r\n", "line 3"),
            ("/a.jpg,0\n/b.jpg\n/c.jpg,2\n", "line 3"),
        ] {
            let refused = read(rows).unwrap_err();
            assert!(matches!(refused, VectorsError::Table { .. }) && refused.to_string().contains(line), "{refused}");
        }
    }

    #[test]
    fn arrays_of_numpy_are_read_and_others_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let write = |header: &str, values: &[u8]| {
            let bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), values].concat();
            std::fs::write(&path, bytes).unwrap();
            std::fs::write(rows_file(&path), "name,uri\nx,/a.jpg\ny,/b.jpg\n").unwrap();
        };
        let bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
        // What all rows share costs no precision.
        write(header, &bytes(&[100_000.0, 2.0, 100_001.0, 4.0]));
        let read = Vectors::read(&path).unwrap();
        assert_eq!((read.rows.row(0), read.unusable), (Embedding::new(&[-8192.0, -16384.0]), 0));
        // Nor does their scale.
        let assert_opposite = |scale: f64| {
            let read = Vectors::read(&path).unwrap();
            let similarities = read.rows.similarities(&read.rows.row(0).unwrap());
            let error = similarities.iter().zip([1.0, -1.0]).map(|(found, expected)| (found - expected).abs());
            assert!(error.fold(0.0, f32::max) < 1e-6 && read.unusable == 0, "{scale}: {similarities:?}");
        };
        for scale in [1e-44, 1e-30, 1e-8, 60_000.0, 70_000.0, 3e38] {
            write(header, &bytes(&[scale, -scale, -scale, scale]));
            assert_opposite(scale.into());
        }
        for scale in [1e-320_f64, 1e-300, 1.7e308] {
            let values: Vec<u8> = [scale, -scale, -scale, scale].iter().flat_map(|value| value.to_le_bytes()).collect();
            write(&header.replace("f4", "f8"), &values);
            assert_opposite(scale);
        }
        let values = bytes(&[1.0, 2.0, f32::NAN, 4.0]);
        write(header, &values);
        let read = Vectors::read(&path).unwrap();
        assert_eq!((read.uris, read.unusable), (vec![SampleUri::new("/a.jpg")], 1));
        for (header, fact) in [
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }", "<i4"),
            ("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", ">f4"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "(4,)"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", "16 bytes"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }", "no numbers"),
        ] {
            write(header, &values);
            let error = Vectors::read(&path).unwrap_err().to_string();
            assert!(error.contains(fact), "{error}");
        }
        std::fs::write(&path, "PK").unwrap();
        assert!(matches!(Vectors::read(&path), Err(VectorsError::NotAnArray { .. })));
    }
}
