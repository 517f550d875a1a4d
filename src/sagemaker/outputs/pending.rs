//! Results that wait for their turn. The responses for a list come in its order rather than that of the images, so all
//! of them may have to wait: beyond a limit, they are stored in a temporary file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::domain::{Prediction, Problem, SampleUri};
use crate::predict::SampleResult;

/// The number of results that wait in memory: 100 MB of large ones.
const IN_MEMORY: usize = 20_000;

/// Pending results by index in the listing.
pub(super) struct PendingResults {
    in_memory: BTreeMap<usize, SampleResult>,
    most_in_memory: usize,
    /// `None` until needed.
    file: Option<File>,
    /// The position and length of each result in the file.
    in_file: BTreeMap<usize, (u64, usize)>,
    file_len: u64,
}

/// A result as written to the file.
type Written = Result<Prediction, (Option<SampleUri>, String)>;

impl PendingResults {
    pub(super) fn new() -> Self {
        Self::with_room_for(IN_MEMORY)
    }

    fn with_room_for(most_in_memory: usize) -> Self {
        Self { in_memory: BTreeMap::new(), most_in_memory, file: None, in_file: BTreeMap::new(), file_len: 0 }
    }

    pub(super) fn insert(&mut self, place: usize, result: SampleResult) {
        let is_full = self.in_memory.len() >= self.most_in_memory;
        // A full disk costs memory, but no result.
        if !is_full || self.write(place, &result).is_err() {
            self.in_memory.insert(place, result);
        }
    }

    /// The result at this index; `None` if there is none.
    pub(super) fn remove(&mut self, place: usize) -> Option<SampleResult> {
        let in_memory = self.in_memory.remove(&place);
        in_memory.or_else(|| {
            let (at, len) = self.in_file.remove(&place)?;
            Some(self.read(at, len))
        })
    }

    /// The result that is closest to the beginning of the listing.
    pub(super) fn remove_first(&mut self) -> Option<(usize, SampleResult)> {
        let in_memory = self.in_memory.keys().next();
        let in_file = self.in_file.keys().next();
        let place = *in_memory.into_iter().chain(in_file).min()?;
        self.remove(place).map(|result| (place, result))
    }

    fn write(&mut self, place: usize, result: &SampleResult) -> std::io::Result<()> {
        let written: Written = result.clone().map_err(|problem| (problem.uri, problem.message));
        let bytes = serde_json::to_vec(&written)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        // Reading has moved the position.
        file.seek(SeekFrom::Start(self.file_len))?;
        file.write_all(&bytes)?;
        self.in_file.insert(place, (self.file_len, bytes.len()));
        self.file_len += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self, at: u64, len: usize) -> SampleResult {
        let mut read = || -> std::io::Result<Written> {
            let file = self.file.as_mut();
            let file = file.ok_or(std::io::ErrorKind::NotFound)?;
            let mut bytes = vec![0; len];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)?;
            Ok(serde_json::from_slice(&bytes)?)
        };
        match read() {
            Ok(written) => written.map_err(|(uri, message)| Problem { uri, message }),
            Err(error) => Err(Problem::general(format!(
                "could not read a response back from a temporary file: {error}; read the outputs again"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, ClassScore, Detection, PredictionContent};

    fn result(number: usize) -> SampleResult {
        let response = match number % 3 {
            0 => {
                let message = format!("broken: {number}");
                return Err(Problem::new(SampleUri::new("/a.jpg"), message));
            }
            1 => PredictionContent::Classes(vec![ClassScore {
                index: 7,
                label: "tiger “cat”".to_owned(),
                score: 0.1 + number as f32 / 7.0,
            }]),
            _ => PredictionContent::Detections(vec![Detection {
                bounds: BoundingBox::new(-0.1, 0.2, 1.0 / 3.0, 1e-7),
                class_id: 1,
                label: String::new(),
                score: 0.3,
                runners_up: Vec::new(),
            }]),
        };
        Ok(Prediction { width: 3, height: 2, content: response, warnings: Vec::new() })
    }

    #[test]
    fn queued_items_round_trip_in_order() {
        let mut pending = PendingResults::with_room_for(5);
        for number in (0..60).rev() {
            pending.insert(number, result(number));
        }
        assert_eq!((pending.in_memory.len(), pending.in_file.len()), (5, 55));
        // Requested one by one with more arriving in between, then the rest.
        assert_eq!(pending.remove(0), Some(result(0)));
        assert_eq!(pending.remove(58), Some(result(58)));
        assert_eq!(pending.remove(0), None);
        pending.insert(60, result(60));
        pending.insert(61, result(61));
        let mut rest = Vec::new();
        while let Some((place, found)) = pending.remove_first() {
            assert_eq!(found, result(place));
            rest.push(place);
        }
        let expected: Vec<usize> = (1..62).filter(|place| *place != 58).collect();
        assert_eq!(rest, expected);
    }
}
